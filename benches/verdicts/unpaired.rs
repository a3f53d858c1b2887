//! Compares two files, with one process per side, from a machine that other programs use: `benchgate compare`
//! and the rules of other tools.

use benchgate::gate::{CompareOptions, Policy, compare};
use benchgate::model::{Process, Run, Verdict};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::corpus::{benchmark, loaded};
use crate::parallel;
use crate::peers::PEERS;
use crate::tally::Tally;

const SLOWDOWNS: [f64; 4] = [0.0, 0.05, 0.20, 1.0];

fn run(round: &std::collections::BTreeMap<String, Vec<f64>>, slowed: Option<(usize, f64)>) -> Run {
    let benchmarks = round.iter().enumerate().map(|(at, (name, samples))| {
        let factor = slowed.filter(|(slow, _)| *slow == at).map_or(1.0, |(_, factor)| factor);
        let samples = samples.iter().map(|sample| sample * factor).collect();
        benchmark(name, vec![Process { samples, ..Process::default() }])
    });
    Run { benchmarks: benchmarks.collect(), ..Run::default() }
}

fn samples(run: &Run, row: usize) -> Vec<f64> {
    match &run.benchmarks[row].metrics[0].series {
        benchgate::model::Series::Processes(processes) => processes[0].samples.clone(),
        _ => Vec::new(),
    }
}

pub fn print(suites: u32, seed: u64) {
    let rounds = loaded("3.13.0");
    let models = rounds.iter().map(std::collections::BTreeMap::len).min().unwrap();
    println!(
        "## Two files from a loaded machine (loaded.jsonl): {models} models, one process a side, neighboring rounds"
    );
    println!(
        "{:<30} {:>16} {:>16} {:>16} {:>16}",
        "", "suites red", "+5 % seen", "+20 % seen", "+100 % seen"
    );
    let policy = Policy::default();
    let mut rows: Vec<Vec<String>> = vec![vec!["benchgate compare".to_owned()]];
    rows.extend(PEERS.iter().map(|(name, _)| vec![(*name).to_owned()]));
    let mut green = Tally::new(rounds.len());
    for slowdown in SLOWDOWNS {
        let results = parallel(suites, |suite| {
            let mut random = ChaCha12Rng::seed_from_u64(seed);
            random.set_stream(u64::from(suite));
            let first = random.random_range(0..rounds.len() - 1);
            let backwards: bool = random.random();
            let (a, b) = if backwards { (first + 1, first) } else { (first, first + 1) };
            let slow = suite as usize % models;
            let base = run(&rounds[a], None);
            let head = run(&rounds[b], (slowdown > 0.0).then_some((slow, 1.0 + slowdown)));
            let comparison = compare(&base, &head, &policy, &CompareOptions::default());
            let ours: Vec<bool> =
                comparison.rows.iter().map(|row| row.verdict == Verdict::Regressed).collect();
            let passed = comparison.rows.iter().filter(|row| row.verdict == Verdict::Pass).count();
            let mut hits = vec![if slowdown > 0.0 { ours[slow] } else { ours.contains(&true) }];
            for (_, rule) in PEERS {
                let red = |row: usize| rule(&samples(&base, row), &samples(&head, row));
                hits.push(if slowdown > 0.0 { red(slow) } else { (0..models).any(red) });
            }
            (vec![a, b], hits, passed as f64 / models as f64)
        });
        for (at, row) in rows.iter_mut().enumerate() {
            let mut tally = Tally::new(rounds.len());
            results.iter().for_each(|(drawn, hits, _)| tally.add(f64::from(u8::from(hits[at])), drawn));
            row.push(tally.percent());
        }
        if slowdown == 0.0 {
            results.iter().for_each(|(drawn, _, passed)| green.add(*passed, drawn));
        }
    }
    for row in rows {
        println!("{:<30} {:>16} {:>16} {:>16} {:>16}", row[0], row[1], row[2], row[3], row[4]);
    }
    println!("benchgate calls {} of unchanged rows green here; the rest is inconclusive\n", green.percent());
}
