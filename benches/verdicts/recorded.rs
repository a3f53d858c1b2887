//! Figures from recorded sessions, resampled.

use std::path::PathBuf;

use benchgate::gate::noise::{Recording, measure};
use benchgate::gate::{Interval, Policy, SequentialPolicy};
use benchgate::model::{Benchmark, Run, Series, Verdict};
use benchgate::stats::describe::median;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::bars::{Bar, Bars};
use crate::peers::PEERS;
use crate::tally::Tally;
use crate::{corpus, parallel};

/// Number of blocks that the rules of other tools get.
const PEER_BLOCKS: u32 = 6;
/// Name of a cell, the factor of a slowed row's head, and the factor of all rows' heads.
const CELLS: [(&str, f64, f64); 5] = [
    ("unchanged", 1.0, 1.0),
    ("all at the floor", 1.0, 1.01),
    ("+3 %", 1.03, 1.0),
    ("+5 %", 1.05, 1.0),
    ("+10 %", 1.1, 1.0),
];
/// The project's recordings that end at twelve blocks; the others use the default looks.
const TWELVE_BLOCKS: [&str; 3] = ["regimes-aa.jsonl", "regimes-plus5.jsonl", "design-default-aa.jsonl"];
/// The project's recordings without blocks.
const UNPAIRED: [&str; 1] = ["loaded.jsonl"];

/// One kind of line of a recording.
struct Recorded {
    name: String,
    file: PathBuf,
    kind: String,
    policy: Policy,
}

impl Recorded {
    fn sessions(&self) -> Recording {
        let share = crate::value("--hold-out").map_or(1.0, |share| share.parse().unwrap());
        let (base, head) = corpus::session_of(&self.file, &self.kind, share);
        Recording::new(&base, &head, "latency")
    }

    /// Returns the true slowdown of head, if there is one: 5 % for `plus5`.
    fn truth(&self) -> Option<f64> {
        self.kind.strip_prefix("plus").and_then(|percent| percent.parse().ok()).map(|p: f64| p / 100.0)
    }
}

/// Returns the requested recordings.
fn recordings() -> Vec<Recorded> {
    let foreign = crate::value("--data").map(PathBuf::from);
    let folder = foreign.clone().unwrap_or_else(corpus::folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort_unstable();
    let asked = crate::value("--blocks").map(|blocks| blocks.parse().unwrap());
    let mut found = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !crate::wanted(&name) || (foreign.is_none() && UNPAIRED.contains(&name.as_str())) {
            continue;
        }
        let twelve = foreign.is_none() && TWELVE_BLOCKS.contains(&name.as_str());
        for kind in corpus::kinds(&file) {
            let policy = policy(asked.or(twelve.then_some(12)));
            found.push(Recorded { name: name.clone(), file: file.clone(), kind, policy });
        }
    }
    found
}

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
    /// Intervals of head / base, by row.
    intervals: Vec<Option<Interval>>,
    slow: usize,
    blocks: f64,
}

impl Suite {
    fn red(&self) -> bool {
        self.verdicts.contains(&Verdict::Regressed)
    }

    fn green(&self) -> f64 {
        self.share(is_green)
    }

    fn share(&self, of: impl Fn(Verdict) -> bool) -> f64 {
        self.verdicts.iter().filter(|verdict| of(**verdict)).count() as f64 / self.verdicts.len() as f64
    }

    /// Returns the share of the intervals that contain a ratio within these limits.
    fn covered(&self, truth: impl Fn(usize) -> (f64, f64)) -> f64 {
        let holds = |(row, interval): (usize, &Option<Interval>)| {
            let (least, most) = truth(row);
            interval.is_some_and(|interval| interval.low <= most && interval.high >= least)
        };
        self.intervals.iter().enumerate().filter(|it| holds(*it)).count() as f64 / self.intervals.len() as f64
    }
}

/// Returns the median width of the intervals of these suites, in percent of the ratio.
fn width(suites: &[Suite]) -> f64 {
    let intervals = suites.iter().flat_map(|suite| suite.intervals.iter().flatten());
    let widths: Vec<f64> = intervals.map(|interval| 100.0 * (interval.high / interval.low).ln()).collect();
    median(&widths).unwrap_or(f64::NAN)
}

fn suites(
    recording: &Recording,
    policy: &Policy,
    (one, all): (f64, f64),
    (suites, seed): (u32, u64),
) -> Vec<Suite> {
    parallel(suites, |suite| {
        // Each suite has one random stream for all slowdowns, so that differences between columns are not due
        // to chance.
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(u64::from(suite));
        let slow = suite as usize % recording.len();
        let slowed = (one > 1.0).then_some((slow, one));
        let (drawn, base, mut head) = recording.draw(policy.sequential.max_blocks, slowed, true, &mut random);
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
    let rows = measured.comparison.rows.iter();
    let intervals = rows.map(|row| row.estimate.as_ref().and_then(|estimate| estimate.interval)).collect();
    let blocks = measured.blocks.iter().map(|n| f64::from(*n)).sum::<f64>() / verdicts.len() as f64;
    Suite { drawn, verdicts, intervals, slow, blocks }
}

fn tally(recording: &Recording, suites: &[Suite], of: impl Fn(&Suite) -> f64) -> Tally {
    let mut tally = Tally::new(recording.rounds());
    suites.iter().for_each(|suite| tally.add(of(suite), &suite.drawn));
    tally
}

pub fn print((suites_asked, seed): (u32, u64), bars: &mut Bars) {
    let recordings = recordings();
    let (changed, unchanged): (Vec<_>, Vec<_>) =
        recordings.into_iter().partition(|recorded| recorded.truth().is_some());
    if !unchanged.is_empty() {
        println!("## Recorded, unchanged; one row slowed by a factor");
        println!(
            "{:<24} {:>6} {:<16} {:>14} {:>14} {:>14} {:>13} {:>14} {:>7} {:>7}",
            "",
            "blocks",
            "",
            "suites red",
            "rows green",
            "slowed red",
            "slowed green",
            "covered",
            "width",
            "blocks"
        );
    }
    for recorded in unchanged {
        print_unchanged(&recorded, (suites_asked, seed), bars);
    }
    if !changed.is_empty() {
        println!("\n## Recorded, head really does more work; rows");
        println!(
            "{:<24} {:>6} {:<9} {:>14} {:>14} {:>14} {:>14} {:>7} {:>7}",
            "", "blocks", "", "red", "all rows red", "green", "covered", "width", "blocks"
        );
    }
    for recorded in changed {
        print_changed(&recorded, (suites_asked, seed), bars);
    }
    println!();
    if crate::value("--data").is_none() && crate::wanted("peers") {
        print_peers(suites_asked, seed);
    }
}

/// Returns the minimum share of slowdowns in these cells that must fail. Hardly any are detected in
/// recordings of a host with fifteen waiting programs (`competitor` and `two-threads`).
fn seen(recording: &str) -> &'static [(&'static str, f64)] {
    match recording {
        "paired.jsonl" => &[("+3 %", 0.95), ("+5 %", 0.99), ("+10 %", 0.99)],
        "regimes-aa.jsonl" => &[("+3 %", 0.5), ("+5 %", 0.9), ("+10 %", 0.98)],
        "crossed.jsonl" => &[("+5 %", 0.9), ("+10 %", 0.9)],
        "design-default-aa.jsonl" => &[("+5 %", 0.95), ("+10 %", 0.97)],
        "design-short-aa.jsonl" => &[("+5 %", 0.98), ("+10 %", 0.99)],
        "competitor-niced.jsonl" => &[("+5 %", 0.3), ("+10 %", 0.7)],
        _ => &[],
    }
}

fn print_unchanged(recorded: &Recorded, asked: (u32, u64), bars: &mut Bars) {
    let (recording, policy, name) = (recorded.sessions(), &recorded.policy, &recorded.name);
    for (cell, one, all) in CELLS {
        let judged = suites(&recording, policy, (one, all), asked);
        let share = |of: &dyn Fn(&Suite) -> f64| tally(&recording, &judged, of);
        let bit = |is: bool| f64::from(u8::from(is));
        let (red, green) = (share(&|s| bit(s.red())), share(&Suite::green));
        let slowed_red = share(&|s| bit(s.verdicts[s.slow] == Verdict::Regressed));
        let slowed_green = share(&|s| bit(is_green(s.verdicts[s.slow])));
        let truth = |slow: usize, row: usize| all * if row == slow { one } else { 1.0 };
        let covered = share(&|s| s.covered(|row| (truth(s.slow, row), truth(s.slow, row))));
        let is_slowed = one > 1.0;
        let shown = |tally: &Tally, shown: bool| if shown { tally.percent() } else { String::new() };
        println!(
            "{name:<24} {:>6} {cell:<16} {:>14} {:>14} {:>14} {:>13} {:>14} {:>7.1} {:>7.1}",
            blocks_of(policy.sequential),
            shown(&red, !is_slowed),
            shown(&green, !is_slowed),
            shown(&slowed_red, is_slowed),
            shown(&slowed_green, is_slowed),
            covered.percent(),
            width(&judged),
            share(&|s| s.blocks).mean(),
        );
        let mut bar = |what: &str, bar, found: &Tally| bars.add(format!("{name}: {what}"), bar, found);
        let least_green = match name.as_str() {
            "paired.jsonl" => 0.99,
            "regimes-aa.jsonl" => 0.9,
            _ => 0.0,
        };
        match cell {
            "unchanged" => {
                bar("suites red on unchanged code", Bar::Most(0.01), &red);
                if least_green > 0.0 {
                    bar("rows green", Bar::Least(least_green), &green);
                }
            }
            "all at the floor" => bar("suites red, all rows slower by the floor", Bar::Most(0.02), &red),
            "+10 %" => bar("+10 % called green", Bar::Most(0.001), &slowed_green),
            _ => {}
        }
        if let Some((_, least)) = seen(name).iter().find(|(seen, _)| *seen == cell) {
            bar(&format!("{cell} red"), Bar::Least(*least), &slowed_red);
        }
    }
}

/// Possible shortfall of the true effect: the cost of starting a call is the same on both sides, so the
/// effect may be slightly smaller than the slowdown.
const LESS: f64 = 0.005;

fn print_changed(recorded: &Recorded, (suites_asked, seed): (u32, u64), bars: &mut Bars) {
    let (recording, policy, name, kind) =
        (recorded.sessions(), &recorded.policy, &recorded.name, &recorded.kind);
    let truth = recorded.truth().unwrap_or_default();
    let judged = parallel(suites_asked, |suite| {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        random.set_stream(u64::from(suite));
        let (drawn, base, head) = recording.draw(policy.sequential.max_blocks, None, false, &mut random);
        judged(&base, &head, policy, drawn, 0)
    });
    let share = |of: &dyn Fn(&Suite) -> f64| tally(&recording, &judged, of);
    let is_red = |verdict| verdict == Verdict::Regressed;
    let red = share(&|s| s.share(is_red));
    let all_red = share(&|s| f64::from(u8::from(s.verdicts.iter().all(|verdict| is_red(*verdict)))));
    let green = share(&Suite::green);
    let covered = share(&|s| s.covered(|_| (1.0 + truth - LESS, 1.0 + truth)));
    println!(
        "{name:<24} {:>6} {kind:<9} {:>14} {:>14} {:>14} {:>14} {:>7.1} {:>7.1}",
        blocks_of(policy.sequential),
        red.percent(),
        all_red.percent(),
        green.percent(),
        covered.percent(),
        width(&judged),
        share(&|s| s.blocks).mean(),
    );
    if name == "regimes-plus5.jsonl" {
        bars.add(format!("{name}: rows red"), Bar::Least(1.0), &red);
        bars.add(format!("{name}: intervals that hold +4.5 to +5 %"), Bar::Least(0.99), &covered);
    } else {
        bars.add(format!("{name}, {kind}: rows called green"), Bar::Most(0.001), &green);
    }
}

fn print_peers(suites: u32, seed: u64) {
    const SLOWDOWNS: [f64; 4] = [1.0, 1.03, 1.05, 1.1];
    let (base, head) = corpus::session_of(&corpus::folder().join("paired.jsonl"), "aa", 1.0);
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
            let (drawn, base, head) = recording.draw(PEER_BLOCKS, slowed, true, &mut random);
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

/// Returns the pooled repetitions of the first processes of a row.
fn samples(run: &Run, row: usize, processes: usize) -> Option<Vec<f64>> {
    let benchmark: &Benchmark = run.benchmarks.get(row)?;
    match &benchmark.metrics.first()?.series {
        Series::Processes(all) => {
            Some(all.iter().take(processes).flat_map(|process| process.samples.iter().copied()).collect())
        }
        Series::Summaries(_) | Series::Exact(_) => None,
    }
}
