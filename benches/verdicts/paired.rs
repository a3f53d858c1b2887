//! The recorded ABBA session, resampled.

use benchgate::gate::Policy;
use benchgate::gate::noise::{NoiseOptions, Recording, measure, noise};
use benchgate::model::{Benchmark, Run, Series, Verdict};
use benchgate::stats::robust::NU;
use benchgate::stats::{student_quantile, student_tail};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use crate::peers::PEERS;
use crate::tally::Tally;
use crate::{corpus, parallel};

const SLOWDOWNS: [f64; 4] = [0.0, 0.03, 0.05, 0.10];
/// Blocks that the other rules get: as many pairs as benchgate's mean bar allows.
const PEER_BLOCKS: u32 = 6;

/// One resampled suite, judged.
struct Suite {
    drawn: Vec<usize>,
    red: bool,
    seen: bool,
    blocks: f64,
    green: f64,
    inconclusive: f64,
    /// By peer: red with one process a side, red with all; and the same for the slowed row.
    peers: Vec<[bool; 4]>,
    slowed_green: bool,
}

pub fn print(suites: u32, seed: u64) {
    let (base, head) = corpus::paired();
    let recording = Recording::new(&base, &head, "latency");
    let rounds = recording.rounds();
    println!("## Recorded pairs (paired.jsonl): {} models, {} rounds", recording.len(), rounds);
    print_oracle(&base, &head);
    print_size(&recording, suites, seed);
    let mut peer_rows: Vec<Vec<String>> = PEERS.iter().map(|(name, _)| vec![(*name).to_owned()]).collect();
    for slowdown in SLOWDOWNS {
        let results = parallel(suites, |suite| one(&recording, slowdown, suite, seed));
        let tally = |of: &dyn Fn(&Suite) -> f64| {
            let mut tally = Tally::new(rounds);
            results.iter().for_each(|suite| tally.add(of(suite), &suite.drawn));
            tally
        };
        let share = |of: &dyn Fn(&Suite) -> bool| tally(&|suite| f64::from(u8::from(of(suite))));
        let pairs = 2.0 * tally(&|s| s.blocks).mean();
        if slowdown == 0.0 {
            println!("benchgate, unchanged:  suites red {}", share(&|s| s.red).percent());
            println!("                       rows green {}", tally(&|s| s.green).percent());
            println!("                       rows inconclusive {}", tally(&|s| s.inconclusive).percent());
            println!("                       pairs a row {pairs:.1}");
        } else {
            println!(
                "benchgate, +{:.0} %:      seen {}   called green {}   pairs a row {pairs:.1}",
                slowdown * 100.0,
                share(&|s| s.seen).percent(),
                share(&|s| s.slowed_green).percent(),
            );
            print_by_model(&recording, &results);
        }
        for (peer, row) in peer_rows.iter_mut().enumerate() {
            let (one, all) = if slowdown == 0.0 { (0, 1) } else { (2, 3) };
            row.push(share(&|s| s.peers[peer][one]).percent());
            row.push(share(&|s| s.peers[peer][all]).percent());
        }
    }
    println!("\nother rules (one process a side | {} processes a side, pooled)", 2 * PEER_BLOCKS);
    println!(
        "{:<30} {:^25} {:^25} {:^25} {:^25}",
        "", "suites red, unchanged", "+3 % seen", "+5 % seen", "+10 % seen"
    );
    for row in peer_rows {
        println!(
            "{:<30} {:>12}|{:>12} {:>12}|{:>12} {:>12}|{:>12} {:>12}|{:>12}",
            row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]
        );
    }
    println!();
}

/// The error at the edge of what is allowed: every row of head is slower by exactly the floor.
fn print_size(recording: &Recording, suites: u32, seed: u64) {
    let policy = Policy::default();
    let mut tally = Tally::new(recording.rounds());
    let reds = parallel(suites, |suite| {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(u64::from(suite));
        let (drawn, base, mut head) = recording.draw(policy.sequential.max_blocks, None, &mut random);
        for series in head.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
            if let Series::Processes(processes) = &mut series.series {
                processes.iter_mut().flat_map(|p| &mut p.samples).for_each(|sample| *sample *= 1.01);
            }
        }
        let rows = measure(&base, &head, &policy).comparison.rows;
        (drawn, rows.iter().any(|row| row.verdict == Verdict::Regressed))
    });
    reds.iter().for_each(|(drawn, red)| tally.add(f64::from(u8::from(*red)), drawn));
    println!("benchgate, all rows slower by exactly the floor (1 %): suites red {}", tally.percent());
}

/// What could be seen at best: one look at the last block, every row's scale known and its tails those
/// of the model (Fisher's bound), one slowed row tested at Bonferroni's level.
fn print_oracle(base: &Run, head: &Run) {
    let policy = Policy::default();
    let nothing = NoiseOptions { resamples: 0, slowdowns: Vec::new(), ..NoiseOptions::default() };
    let rows = noise(base, head, &policy, &nothing).rows;
    let quantile = student_quantile(policy.alpha / rows.len() as f64, f64::INFINITY);
    let power = |slowdown: f64| {
        let of = |scale: f64| {
            let se = scale * ((NU + 3.0) / (NU + 1.0) / f64::from(policy.sequential.max_blocks)).sqrt();
            let beyond = (slowdown.ln_1p() - 0.01_f64.ln_1p()) / se;
            student_tail(quantile - beyond, f64::INFINITY)
        };
        let powers: Vec<f64> = rows.iter().filter_map(|row| row.spread.between_blocks).map(of).collect();
        100.0 * powers.iter().sum::<f64>() / powers.len() as f64
    };
    println!(
        "oracle, 24 pairs a row:  +3 % {:.1}, +5 % {:.1}, +10 % {:.1}",
        power(0.03),
        power(0.05),
        power(0.10)
    );
}

fn print_by_model(recording: &Recording, results: &[Suite]) {
    let models = recording.len();
    let shares: Vec<String> = (0..models)
        .map(|model| {
            let of: Vec<&Suite> = results.iter().skip(model).step_by(models).collect();
            let seen = of.iter().filter(|suite| suite.seen).count() as f64 / of.len().max(1) as f64;
            format!("{} {:.0}", recording.names().nth(model).unwrap(), 100.0 * seen)
        })
        .collect();
    println!("                       by model: {}", shares.join(", "));
}

fn one(recording: &Recording, slowdown: f64, suite: u32, seed: u64) -> Suite {
    let policy = Policy::default();
    // One stream a suite, the same for every slowdown: differences between columns are not luck.
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    random.set_stream(u64::from(suite));
    let slow = suite as usize % recording.len();
    let slowed = (slowdown > 0.0).then_some((slow, 1.0 + slowdown));
    let (drawn, base, head) = recording.draw(policy.sequential.max_blocks, slowed, &mut random);
    let measured = measure(&base, &head, &policy);
    let rows = &measured.comparison.rows;
    let share = |of: &dyn Fn(Verdict) -> bool| {
        rows.iter().filter(|row| of(row.verdict)).count() as f64 / rows.len() as f64
    };
    let green = |verdict| matches!(verdict, Verdict::Pass | Verdict::Improved);
    let peers = PEERS.iter().map(|(_, rule)| {
        let reds: Vec<[bool; 2]> = (0..recording.len())
            .map(|row| {
                let one = samples(&base, row, 1).zip(samples(&head, row, 1));
                let all = samples(&base, row, 2 * PEER_BLOCKS as usize).zip(samples(
                    &head,
                    row,
                    2 * PEER_BLOCKS as usize,
                ));
                [one, all].map(|sides| sides.is_some_and(|(base, head)| rule(&base, &head)))
            })
            .collect();
        [reds.iter().any(|r| r[0]), reds.iter().any(|r| r[1]), reds[slow][0], reds[slow][1]]
    });
    Suite {
        drawn,
        red: rows.iter().any(|row| row.verdict == Verdict::Regressed),
        seen: rows[slow].verdict == Verdict::Regressed,
        slowed_green: green(rows[slow].verdict),
        blocks: measured.blocks.iter().map(|n| f64::from(*n)).sum::<f64>() / rows.len() as f64,
        green: share(&green),
        inconclusive: share(&|verdict| verdict == Verdict::Inconclusive),
        peers: peers.collect(),
    }
}

/// The pooled repetitions of the first processes of a row.
fn samples(run: &Run, row: usize, processes: usize) -> Option<Vec<f64>> {
    let benchmark: &Benchmark = run.benchmarks.get(row)?;
    match &benchmark.metrics.first()?.series {
        Series::Processes(all) => {
            Some(all.iter().take(processes).flat_map(|process| process.samples.iter().copied()).collect())
        }
        Series::Summaries(_) | Series::Exact(_) => None,
    }
}
