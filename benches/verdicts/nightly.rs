//! A stored baseline: simulated nightly sessions, on chips that differ and on days that differ.

use benchgate::gate::{CompareOptions, Policy, compare_with_history};
use benchgate::model::{Anchor, BenchmarkName, Process, Run, Verdict};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::bars::{Bar, Bars};
use crate::corpus::benchmark;
use crate::generators::{ROWS, normal};
use crate::parallel;
use crate::tally::Tally;

const PROCESSES: usize = 8;
const SLOWDOWNS: [f64; 4] = [0.0, 0.05, 0.10, 0.20];
/// The variation of the machine between sessions, as standard deviations of the log.
struct Machine {
    name: &'static str,
    /// Variation from chip to chip.
    chip: f64,
    /// Variation of each row from day to day. A variation of half this size affects all rows
    /// together.
    day: f64,
    /// The share of both variations that also affects the anchor, which is measured in the same
    /// session; `None` if there is no anchor.
    anchor: Option<f64>,
}

const MACHINES: [Machine; 5] = [
    Machine { name: "one chip, days 1 %", chip: 0.0, day: 0.01, anchor: None },
    Machine { name: "one chip, days 1 %, anchor", chip: 0.0, day: 0.01, anchor: Some(1.0) },
    Machine { name: "one chip, days 1 %, half an anchor", chip: 0.0, day: 0.01, anchor: Some(0.5) },
    Machine { name: "several chips 3 %, days 1 %", chip: 0.03, day: 0.01, anchor: None },
    Machine { name: "several chips 3 %, days 1 %, anchor", chip: 0.03, day: 0.01, anchor: Some(1.0) },
];
/// The machine for which there are goals.
const WITH_BARS: &str = "one chip, days 1 %, anchor";
const HISTORIES: [usize; 4] = [1, 3, 10, 30];

fn session(machine: &Machine, slowed: Slowed, random: &mut ChaCha12Rng) -> Run {
    // A chip is faster or slower as a whole. A day shifts all rows together, and each row
    // separately by twice as much.
    let whole = machine.chip * normal(random) + machine.day / 2.0 * normal(random);
    let mut anchor = Anchor::default();
    let benchmarks = (0..ROWS).map(|row| {
        let cost = whole + machine.day * normal(random);
        let factor = match slowed {
            Slowed::One(slow, factor) if slow == row => factor,
            Slowed::All(factor) => factor,
            Slowed::One(..) => 1.0,
        };
        let mut processes = |cost: f64| -> Vec<Process> {
            (0..PROCESSES)
                .map(|_| {
                    let process = cost + 0.007 * normal(random);
                    let samples = (0..8).map(|_| 1e6 * (process + 0.005 * normal(random)).exp()).collect();
                    Process { samples, ..Process::default() }
                })
                .collect()
        };
        let name = format!("row-{row}");
        let head = processes(cost + factor.ln());
        if let Some(share) = machine.anchor {
            // The medians of processes are used instead of the paired estimate, because these simulated
            // sessions have no blocks.
            let ratio = median(&head) / median(&processes(share * cost));
            anchor.ratios.insert((BenchmarkName::new(&name), "latency".to_owned()), ratio);
            anchor.artifacts.insert(BenchmarkName::new(&name), name.clone());
        }
        benchmark(&name, head)
    });
    let benchmarks = benchmarks.collect();
    Run { benchmarks, anchor: machine.anchor.map(|_| anchor), ..Run::default() }
}

/// The benchmarks that a change slows down, with the factor.
#[derive(Clone, Copy)]
enum Slowed {
    One(usize, f64),
    All(f64),
}

fn median(processes: &[Process]) -> f64 {
    let mut all: Vec<f64> = processes.iter().flat_map(|process| process.samples.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

pub fn print((suites, seed): (u32, u64), bars: &mut Bars) {
    println!("## Stored baseline: one session of {PROCESSES} processes against simulated nightly sessions");
    println!(
        "{:<36} {:>9} {:>14} {:>14} {:>14} {:>14} {:>14}",
        "", "sessions", "suites red", "rows green", "+5 % seen", "+10 % seen", "+20 % seen"
    );
    for (at, machine) in MACHINES.iter().enumerate() {
        let name = machine.name;
        for sessions in HISTORIES {
            let mut cells = Vec::new();
            for slowdown in SLOWDOWNS {
                let results = parallel(suites, |suite| {
                    let mut random = ChaCha12Rng::seed_from_u64(seed ^ ((at as u64 + 1) << 40));
                    random.set_stream(u64::from(suite));
                    let slow = random.random_range(0..ROWS);
                    let history: Vec<Run> =
                        (0..sessions).map(|_| session(machine, Slowed::All(1.0), &mut random)).collect();
                    let head = session(machine, Slowed::One(slow, 1.0 + slowdown), &mut random);
                    let comparison = compare_with_history(
                        &head,
                        history.as_slice(),
                        &Policy::default(),
                        &CompareOptions::default(),
                    );
                    let rows = comparison.rows;
                    let green = rows.iter().filter(|row| row.verdict == Verdict::Pass).count() as f64
                        / rows.len() as f64;
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
                    tally
                };
                let (hit, green) = (share(|(hit, _)| *hit), share(|(_, green)| *green));
                if sessions == 10 && name == WITH_BARS {
                    let mut bar = |what: &str, bar, found: &Tally| {
                        bars.add(format!("stored, {name}, 10 sessions: {what}"), bar, found)
                    };
                    if slowdown == 0.0 {
                        bar("suites red on unchanged code", Bar::Most(0.01), &hit);
                        bar("rows green", Bar::Least(0.9), &green);
                    } else if slowdown == 0.05 {
                        bar("+5 % red", Bar::Least(0.9), &hit);
                    }
                }
                cells.push(hit.percent());
                if slowdown == 0.0 {
                    cells.push(green.percent());
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
