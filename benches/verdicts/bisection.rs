//! Bisection on simulated noise: a range of commits of which none, one or two are slower.

use std::collections::BTreeMap;

use benchgate::gate::bisect::{BisectOptions, Ends, Next, Observed, Pair, Search};
use benchgate::gate::noise::Share;
use benchgate::gate::{CompareOptions, Policy, compare};
use benchgate::model::{Metric, Process, Run, Verdict};
use benchgate::record::PartKind;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::corpus::{benchmark, session};
use crate::generators::{BLOCKS, GENERATORS, Generator, Program, row};
use crate::{parallel, wanted};

/// Number of candidates after the good end.
const COMMITS: usize = 256;
/// Maximum number of blocks for a pair.
const MAX_BLOCKS: u32 = 192;
/// Number of blocks for each step of the plain binary search.
const PLAIN: u32 = 12;
/// Number of ranges without a change for each range with one. Many are needed to verify a rate of
/// 99 %, and each costs only one pair.
const UNCHANGED: u32 = 10;

/// Changes in a range: the first candidate with each change, and the factor of the change.
type Changes = Vec<(usize, f64)>;

/// The machine that measures pairs of candidates.
struct Machine {
    generator: &'static Generator,
    changes: Changes,
    random: ChaCha12Rng,
    sessions: BTreeMap<Pair, [Vec<Process>; 2]>,
}

impl Machine {
    fn program(&self, candidate: usize) -> Program {
        let behind = self.changes.iter().filter(|(at, _)| *at <= candidate);
        let factor =
            if self.generator.changes { 1.0 } else { behind.clone().map(|(_, factor)| factor).product() };
        Program { factor, changed: behind.count() > 0 }
    }

    /// Returns all blocks of a pair, at least `blocks`. Each visit is a separate session, as on a real
    /// machine.
    fn measure(&mut self, pair: Pair, blocks: u32) -> (Run, Run) {
        let programs = [self.program(pair.base), self.program(pair.head)];
        let sides = self.sessions.entry(pair).or_default();
        let mut have = sides[0].len() as u32 / 2;
        while have < blocks {
            let visit = (blocks - have).min(BLOCKS as u32);
            let made = row(Some(self.generator), programs, &mut self.random);
            for (into, processes) in sides.iter_mut().zip(made) {
                for mut process in processes {
                    let Some(slot) = process.slot.as_mut().filter(|slot| slot.block < visit) else {
                        continue;
                    };
                    slot.block += have;
                    into.push(process);
                }
            }
            have += visit;
        }
        let run = |side: &Vec<Process>| session(vec![benchmark("row", side.clone())]);
        (run(&sides[0]), run(&sides[1]))
    }
}

/// The result of one bisection.
struct Outcome {
    blamed: Vec<usize>,
    ends_worse: bool,
    unexplained: usize,
    pairs: usize,
    blocks: u32,
}

fn bisect(machine: &mut Machine) -> Outcome {
    let options = BisectOptions::new(&Policy::default(), Metric::LATENCY, MAX_BLOCKS);
    let policy = options.policy.clone();
    let mut search = Search::new(COMMITS + 1, options);
    while let Next::Measure { pair, blocks } = search.next() {
        let (base, head) = machine.measure(pair, blocks);
        search.observe(pair, Observed::paired(&base, &head, &Metric::LATENCY, &policy).unwrap());
    }
    let found = search.found();
    Outcome {
        blamed: found.culprits().map(|(_, upto)| upto).collect(),
        ends_worse: matches!(found.ends, Ends::Worse(_)),
        unexplained: found.parts.iter().filter(|part| part.kind == PartKind::Unexplained).count(),
        pairs: found.probes.len(),
        blocks: found.blocks(),
    }
}

/// The manual method: halve the range, measure a fixed number of blocks, and decide whether it is slower.
fn plain(machine: &mut Machine) -> (usize, u32) {
    let (mut good, mut bad, mut steps) = (0, COMMITS, 0);
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        let (base, head) = machine.measure(Pair { base: 0, head: middle }, PLAIN);
        let comparison = compare(&base, &head, &Policy::default(), &CompareOptions::default());
        let worse = comparison.rows.first().is_some_and(|row| row.verdict == Verdict::Regressed);
        if worse {
            bad = middle
        } else {
            good = middle
        }
        steps += 1;
    }
    (bad, steps * PLAIN)
}

fn machine(at: usize, seed: u64, number: u32, changes: &[f64]) -> Machine {
    let mut random =
        ChaCha12Rng::seed_from_u64(seed ^ ((at as u64 + 1) << 40) ^ ((changes.len() as u64) << 36));
    random.set_stream(u64::from(number));
    let mut places: Vec<usize> = Vec::new();
    while places.len() < changes.len() {
        let place = random.random_range(1..=COMMITS);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut changes: Changes = places.into_iter().zip(changes.iter().copied()).collect();
    changes.sort_by_key(|(at, _)| *at);
    Machine { generator: &GENERATORS[at], changes, random, sessions: BTreeMap::new() }
}

fn percent(outcomes: &[(Outcome, Vec<usize>)], of: impl Fn(&Outcome, &[usize]) -> bool) -> f64 {
    let hits = outcomes.iter().filter(|(outcome, truth)| of(outcome, truth)).count();
    100.0 * hits as f64 / outcomes.len() as f64
}

fn mean(outcomes: &[(Outcome, Vec<usize>)], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(|(outcome, _)| of(outcome)).sum::<f64>() / outcomes.len() as f64
}

pub fn print(bisections: u32, seed: u64) {
    println!(
        "## Bisection: {COMMITS} commits, {bisections} ranges a figure, {} where nothing is slower, {MAX_BLOCKS} blocks a \
         pair at most; percent\n",
        bisections * UNCHANGED
    );
    let mut totals: BTreeMap<usize, Share> = BTreeMap::new();
    println!(
        "{:<36} {:<10} {:>6} {:>6} {:>8} {:>6} {:>11} {:>6} {:>7} {:>12} {:>7}",
        "",
        "slower",
        "right",
        "some",
        "wrongly",
        "ends",
        "unexplained",
        "pairs",
        "blocks",
        "plain right",
        "blocks"
    );
    for (at, generator) in GENERATORS.iter().enumerate() {
        let name = generator.name;
        if !wanted(name) {
            continue;
        }
        let cases: &[(&str, &[f64])] = if generator.changes {
            &[("none", &[]), ("1", &[1.0])]
        } else {
            &[("none", &[]), ("+3 %", &[1.03]), ("+3, +4 %", &[1.03, 1.04])]
        };
        for (case, changes) in cases {
            let ranges = if changes.is_empty() { bisections * UNCHANGED } else { bisections };
            let outcomes = parallel(ranges, |number| {
                let mut machine = machine(at, seed, number, changes);
                let truth: Vec<usize> = machine.changes.iter().map(|(at, _)| *at).collect();
                let outcome = bisect(&mut machine);
                machine.sessions.clear();
                let plain = if changes.is_empty() { None } else { Some(plain(&mut machine)) };
                (outcome, truth, plain)
            });
            let (outcomes, plains): (Vec<_>, Vec<_>) = outcomes
                .into_iter()
                .map(|(outcome, truth, plain)| ((outcome, truth.clone()), (plain, truth)))
                .unzip();
            let total = totals.entry(changes.len()).or_insert(Share { hits: 0, of: 0 });
            total.of += outcomes.len() as u64;
            total.hits += outcomes.iter().filter(|(outcome, truth)| outcome.blamed == *truth).count() as u64;
            let plain_right = plains
                .iter()
                .filter(|(plain, truth)| plain.is_some_and(|(at, _)| truth.contains(&at)))
                .count();
            println!(
                "{name:<36} {case:<10} {:>6.1} {:>6.1} {:>8.1} {:>6.1} {:>11.1} {:>6.1} {:>7.1} {:>12.1} {:>7}",
                percent(&outcomes, |outcome, truth| outcome.blamed == truth),
                percent(&outcomes, |outcome, truth| outcome.blamed.iter().any(|at| truth.contains(at))),
                percent(&outcomes, |outcome, truth| outcome.blamed.iter().any(|at| !truth.contains(at))),
                percent(&outcomes, |outcome, _| outcome.ends_worse),
                percent(&outcomes, |outcome, _| outcome.unexplained > 0),
                mean(&outcomes, |outcome| outcome.pairs as f64),
                mean(&outcomes, |outcome| f64::from(outcome.blocks)),
                100.0 * plain_right as f64 / f64::from(ranges),
                plains.iter().find_map(|(plain, _)| plain.map(|(_, blocks)| blocks)).unwrap_or_default(),
            );
        }
    }
    for (slower, total) in totals {
        let (low, high) = total.interval();
        println!(
            "{slower} slower: {} of {} right, {:.2} to {:.2} % (Clopper and Pearson, 95 %)",
            total.hits,
            total.of,
            100.0 * low,
            100.0 * high
        );
    }
}
