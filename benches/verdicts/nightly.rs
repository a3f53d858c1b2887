//! A stored baseline: simulated nightly sessions on chips that differ and days that differ.

use benchgate::gate::{CompareOptions, Policy, compare_with_history};
use benchgate::model::{Process, Run, Verdict};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::corpus::benchmark;
use crate::generators::{ROWS, normal};
use crate::parallel;
use crate::tally::Tally;

const PROCESSES: usize = 8;
const SLOWDOWNS: [f64; 4] = [0.0, 0.05, 0.10, 0.20];
/// (chip to chip, day to day and row), as standard deviations of the log.
const MACHINES: [(&str, f64, f64); 2] =
    [("one chip, days 1 %", 0.0, 0.01), ("several chips 3 %, days 1 %", 0.03, 0.01)];
const HISTORIES: [usize; 4] = [1, 3, 10, 30];

fn session(chip: f64, day: f64, slowed: (usize, f64), random: &mut ChaCha12Rng) -> Run {
    // A chip is faster or slower as a whole; a day moves all rows a little and each a little more.
    let whole = chip * normal(random) + day / 2.0 * normal(random);
    let benchmarks = (0..ROWS).map(|row| {
        let cost = whole + day * normal(random);
        let factor = if row == slowed.0 { slowed.1 } else { 1.0 };
        let processes = (0..PROCESSES)
            .map(|_| {
                let process = cost + 0.007 * normal(random);
                let samples =
                    (0..8).map(|_| 1e6 * factor * (process + 0.005 * normal(random)).exp()).collect();
                Process { samples, slot: None, started: None }
            })
            .collect();
        benchmark(&format!("row-{row}"), processes)
    });
    Run { benchmarks: benchmarks.collect(), ..Run::default() }
}

pub fn print(suites: u32, seed: u64) {
    println!("## Stored baseline: one session of {PROCESSES} processes against simulated nightly sessions");
    println!(
        "{:<36} {:>9} {:>14} {:>14} {:>14} {:>14} {:>14}",
        "", "sessions", "suites red", "rows green", "+5 % seen", "+10 % seen", "+20 % seen"
    );
    for (at, (name, chip, day)) in MACHINES.into_iter().enumerate() {
        for sessions in HISTORIES {
            let mut cells = Vec::new();
            for slowdown in SLOWDOWNS {
                let results = parallel(suites, |suite| {
                    let mut random = ChaCha12Rng::seed_from_u64(seed ^ ((at as u64 + 1) << 40));
                    random.set_stream(u64::from(suite));
                    let slow = random.random_range(0..ROWS);
                    let history: Vec<Run> =
                        (0..sessions).map(|_| session(chip, day, (0, 1.0), &mut random)).collect();
                    let head = session(chip, day, (slow, 1.0 + slowdown), &mut random);
                    let comparison =
                        compare_with_history(&head, &history, &Policy::default(), &CompareOptions::default());
                    let rows = comparison.rows;
                    let green =
                        rows.iter().filter(|row| row.verdict == Verdict::Pass).count() as f64 / ROWS as f64;
                    let hit = if slowdown > 0.0 {
                        rows[slow].verdict == Verdict::Regressed
                    } else {
                        rows.iter().any(|row| row.verdict == Verdict::Regressed)
                    };
                    (f64::from(u8::from(hit)), green)
                });
                let share = |of: fn(&(f64, f64)) -> f64| {
                    let mut tally = Tally::new(0);
                    results.iter().for_each(|result| tally.add(of(result), &[]));
                    tally.percent()
                };
                cells.push(share(|(hit, _)| *hit));
                if slowdown == 0.0 {
                    cells.push(share(|(_, green)| *green));
                }
            }
            println!(
                "{name:<36} {sessions:>9} {:>14} {:>14} {:>14} {:>14} {:>14}",
                cells[0], cells[1], cells[2], cells[3], cells[4]
            );
        }
    }
    println!();
}
