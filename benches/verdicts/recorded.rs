//! Recorded sessions, resampled.

use benchgate::gate::noise::{Recording, measure};
use benchgate::gate::{Policy, SequentialPolicy};
use benchgate::model::{Benchmark, Run, Series, Verdict};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use crate::peers::PEERS;
use crate::tally::Tally;
use crate::{corpus, parallel};

/// Blocks that the other rules get.
const PEER_BLOCKS: u32 = 6;
/// Name of a cell, the factor of a slowed row's head, and of all rows' heads.
const CELLS: [(&str, f64, f64); 5] = [
    ("unchanged", 1.0, 1.0),
    ("all at the floor", 1.0, 1.01),
    ("+3 %", 1.03, 1.0),
    ("+5 %", 1.05, 1.0),
    ("+10 %", 1.1, 1.0),
];
/// File, kind of its lines, blocks of a session (`None`: the default looks).
const UNCHANGED: [(&str, Option<&str>, Option<u32>); 8] = [
    ("paired.jsonl", None, None),
    ("paired.jsonl", None, Some(12)),
    ("regimes-aa.jsonl", None, Some(12)),
    ("design-default-aa.jsonl", None, Some(12)),
    ("design-short-aa.jsonl", None, None),
    ("two-threads.jsonl", Some("aa"), None),
    ("competitor.jsonl", Some("aa"), None),
    ("competitor-niced.jsonl", Some("aa"), None),
];
/// Sides that really differ.
const CHANGED: [(&str, &str, Option<u32>); 6] = [
    ("regimes-plus5.jsonl", "plus5", Some(12)),
    ("two-threads.jsonl", "plus5", None),
    ("competitor.jsonl", "plus5", None),
    ("competitor.jsonl", "plus10", None),
    ("competitor-niced.jsonl", "plus5", None),
    ("competitor-niced.jsonl", "plus10", None),
];

fn policy(blocks: Option<u32>) -> Policy {
    let mut policy = Policy::default();
    if let Some(blocks) = blocks {
        policy.sequential = SequentialPolicy { min_blocks: blocks, max_blocks: blocks };
    }
    policy
}

fn is_green(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Improved)
}

fn blocks_of(sequential: SequentialPolicy) -> String {
    match sequential {
        SequentialPolicy { min_blocks, max_blocks } if min_blocks == max_blocks => format!("{max_blocks}"),
        SequentialPolicy { min_blocks, max_blocks } => format!("{min_blocks}-{max_blocks}"),
    }
}

/// One resampled suite, judged.
struct Suite {
    drawn: Vec<usize>,
    verdicts: Vec<Verdict>,
    slow: usize,
    blocks: f64,
}

impl Suite {
    fn red(&self) -> bool {
        self.verdicts.contains(&Verdict::Regressed)
    }

    fn green(&self) -> f64 {
        self.verdicts.iter().filter(|verdict| is_green(**verdict)).count() as f64 / self.verdicts.len() as f64
    }
}

fn suites(
    recording: &Recording,
    policy: &Policy,
    (one, all): (f64, f64),
    (suites, seed): (u32, u64),
) -> Vec<Suite> {
    parallel(suites, |suite| {
        // One stream a suite, the same for every slowdown: differences between columns are not luck.
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(u64::from(suite));
        let slow = suite as usize % recording.len();
        let slowed = (one > 1.0).then_some((slow, one));
        let (drawn, base, mut head) = recording.draw(policy.sequential.max_blocks, slowed, &mut random);
        for series in head.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
            if let Series::Processes(processes) = &mut series.series {
                processes.iter_mut().flat_map(|p| &mut p.samples).for_each(|sample| *sample *= all);
            }
        }
        judged(&base, &head, policy, drawn, slow)
    })
}

fn judged(base: &Run, head: &Run, policy: &Policy, drawn: Vec<usize>, slow: usize) -> Suite {
    let measured = measure(base, head, policy);
    let verdicts: Vec<Verdict> = measured.comparison.rows.iter().map(|row| row.verdict).collect();
    let blocks = measured.blocks.iter().map(|n| f64::from(*n)).sum::<f64>() / verdicts.len() as f64;
    Suite { drawn, verdicts, slow, blocks }
}

fn tally(recording: &Recording, suites: &[Suite], of: impl Fn(&Suite) -> f64) -> Tally {
    let mut tally = Tally::new(recording.rounds());
    suites.iter().for_each(|suite| tally.add(of(suite), &suite.drawn));
    tally
}

pub fn print(suites_asked: u32, seed: u64) {
    println!("## Recorded, unchanged; one row slowed by a factor");
    println!(
        "{:<26} {:>6} {:<17} {:>14} {:>14} {:>14} {:>13} {:>7}",
        "", "blocks", "", "suites red", "rows green", "slowed red", "slowed green", "blocks"
    );
    for (file, kind, blocks) in UNCHANGED {
        let (base, head) = corpus::session_of(file, kind);
        let recording = Recording::new(&base, &head, "latency");
        let policy = policy(blocks);
        for (cell, one, all) in CELLS {
            let judged = suites(&recording, &policy, (one, all), (suites_asked, seed));
            let share = |of: &dyn Fn(&Suite) -> f64| tally(&recording, &judged, of);
            let bit = |is: bool| f64::from(u8::from(is));
            let slowed =
                |of: &dyn Fn(&Suite) -> f64| if one > 1.0 { share(of).percent() } else { String::new() };
            println!(
                "{file:<26} {:>6} {cell:<17} {:>14} {:>14} {:>14} {:>13} {:>7.1}",
                blocks_of(policy.sequential),
                if one > 1.0 { String::new() } else { share(&|s| bit(s.red())).percent() },
                if one > 1.0 { String::new() } else { share(&Suite::green).percent() },
                slowed(&|s| bit(s.verdicts[s.slow] == Verdict::Regressed)),
                slowed(&|s| bit(is_green(s.verdicts[s.slow]))),
                share(&|s| s.blocks).mean(),
            );
        }
    }
    print_changed(suites_asked, seed);
    print_peers(suites_asked, seed);
}

fn print_changed(suites_asked: u32, seed: u64) {
    println!("\n## Recorded, head really does more work; rows");
    println!("{:<26} {:>6} {:<9} {:>14} {:>14} {:>7}", "", "blocks", "", "red", "green", "blocks");
    for (file, kind, blocks) in CHANGED {
        let (base, head) = corpus::session_of(file, Some(kind));
        let recording = Recording::new(&base, &head, "latency");
        let policy = policy(blocks);
        let judged = parallel(suites_asked, |suite| {
            let mut random = ChaCha12Rng::seed_from_u64(seed);
            random.set_stream(u64::from(suite));
            let (drawn, base, head) = recording.draw_as_labelled(policy.sequential.max_blocks, &mut random);
            judged(&base, &head, &policy, drawn, 0)
        });
        let red = |s: &Suite| {
            s.verdicts.iter().filter(|v| **v == Verdict::Regressed).count() as f64 / s.verdicts.len() as f64
        };
        println!(
            "{file:<26} {:>6} {kind:<9} {:>14} {:>14} {:>7.1}",
            blocks_of(policy.sequential),
            tally(&recording, &judged, red).percent(),
            tally(&recording, &judged, Suite::green).percent(),
            tally(&recording, &judged, |s| s.blocks).mean(),
        );
    }
    println!();
}

fn print_peers(suites: u32, seed: u64) {
    const SLOWDOWNS: [f64; 4] = [1.0, 1.03, 1.05, 1.1];
    let (base, head) = corpus::session_of("paired.jsonl", None);
    let recording = Recording::new(&base, &head, "latency");
    println!(
        "## Other rules on paired.jsonl (one process a side | {} processes a side, pooled)",
        2 * PEER_BLOCKS
    );
    println!(
        "{:<30} {:^25} {:^25} {:^25} {:^25}",
        "", "suites red, unchanged", "+3 % seen", "+5 % seen", "+10 % seen"
    );
    let mut cells: Vec<Vec<String>> = PEERS.iter().map(|_| Vec::new()).collect();
    for factor in SLOWDOWNS {
        let results = parallel(suites, |suite| {
            let mut random = ChaCha12Rng::seed_from_u64(seed);
            random.set_stream(u64::from(suite));
            let slow = suite as usize % recording.len();
            let slowed = (factor > 1.0).then_some((slow, factor));
            let (drawn, base, head) = recording.draw(PEER_BLOCKS, slowed, &mut random);
            let red = |rule: crate::peers::Rule, row: usize, processes: usize| {
                let sides = samples(&base, row, processes).zip(samples(&head, row, processes));
                sides.is_some_and(|(base, head)| rule(&base, &head))
            };
            let hits: Vec<[bool; 2]> = PEERS
                .iter()
                .map(|(_, rule)| {
                    [1, 2 * PEER_BLOCKS as usize].map(|processes| match factor > 1.0 {
                        true => red(*rule, slow, processes),
                        false => (0..recording.len()).any(|row| red(*rule, row, processes)),
                    })
                })
                .collect();
            (drawn, hits)
        });
        for (peer, cells) in cells.iter_mut().enumerate() {
            for many in 0..2 {
                let mut tally = Tally::new(recording.rounds());
                results
                    .iter()
                    .for_each(|(drawn, hits)| tally.add(f64::from(u8::from(hits[peer][many])), drawn));
                cells.push(tally.percent());
            }
        }
    }
    for ((name, _), row) in PEERS.iter().zip(cells) {
        println!(
            "{name:<30} {:>12}|{:>12} {:>12}|{:>12} {:>12}|{:>12} {:>12}|{:>12}",
            row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        );
    }
    println!();
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
