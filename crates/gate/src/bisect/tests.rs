use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::{Policy, TestKind};
use benchgate_core::model::{
    Benchmark, BlockSlot, Lint, LintCode, Metric, MetricSeries, Process, Run, Series, Verdict,
};

/// A machine with 1 % of noise that measures candidates with these levels.
struct Machine {
    levels: Vec<f64>,
    /// Share of each candidate's repetitions that take [`WAIT`] times as long, because another program has
    /// the processor.
    waits: Vec<f64>,
    /// Number of repetitions in a process.
    repetitions: usize,
    /// A finding that is added to every benchmark.
    finding: Option<Lint>,
    options: BisectOptions,
    random: ChaCha8Rng,
}

const WAIT: f64 = 2.1;

impl Machine {
    fn new(candidates: usize, changes: &[(usize, f64)]) -> Self {
        let level = |at: usize| changes.iter().filter(|(first, _)| *first <= at).map(|(_, by)| by).product();
        Self {
            levels: (0..candidates).map(level).collect(),
            waits: vec![0.0; candidates],
            repetitions: 3,
            finding: None,
            options: latency(),
            random: ChaCha8Rng::seed_from_u64(5),
        }
    }

    fn measure(&mut self, pair: Pair, blocks: u32) -> Observed {
        let [base, head] = self.runs(pair, blocks);
        Observed::paired(&base, &head, &self.options.metric, &self.options.policy).unwrap()
    }

    fn runs(&mut self, pair: Pair, blocks: u32) -> [Run; 2] {
        let mut sides = [Vec::new(), Vec::new()];
        for block in 0..blocks {
            for (slot, side) in (0..).zip([0, 1, 1, 0]) {
                let candidate = if side == 0 { pair.base } else { pair.head };
                let (level, waits) = (self.levels[candidate], self.waits[candidate]);
                let process = 1.0 + 0.01 * (self.random.random::<f64>() - 0.5);
                let mut sample = || {
                    let wait = if waits > 0.0 && self.random.random_bool(waits) { WAIT } else { 1.0 };
                    1e6 * level * wait * process * (1.0 + 0.005 * self.random.random::<f64>())
                };
                let samples = (0..self.repetitions).map(|_| sample()).collect();
                sides[side].push(Process {
                    samples,
                    slot: Some(BlockSlot { block, slot }),
                    ..Process::default()
                });
            }
        }
        sides.map(|processes| {
            let mut benchmark = Benchmark::new("row");
            benchmark.lints.extend(self.finding.clone());
            let series = Series::Processes(processes);
            benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series });
            Run { session: Some("one".to_owned()), benchmarks: vec![benchmark], ..Run::default() }
        })
    }

    fn search(&mut self, prepare: impl Fn(&mut Search)) -> Found {
        let mut search = Search::new(self.levels.len(), self.options.clone());
        prepare(&mut search);
        let mut last = None;
        while let Next::Measure { pair, blocks } = search.next() {
            assert_ne!(last, Some((pair, blocks)), "the same is asked again");
            last = Some((pair, blocks));
            let observed = self.measure(pair, blocks);
            search.observe(pair, observed);
        }
        search.found()
    }
}

fn latency() -> BisectOptions {
    BisectOptions::new(&Policy::default(), Metric::LATENCY, 48)
}

fn culprits(found: &Found) -> Vec<(usize, usize)> {
    found.culprits().collect()
}

#[test]
fn one_slower_candidate_is_named_after_a_direct_comparison_with_its_predecessor() {
    let found = Machine::new(65, &[(23, 1.03)]).search(|_| ());
    assert_eq!(culprits(&found), [(22, 23)]);
    assert!(found.probes.iter().any(|probe| probe.pair == Pair { base: 22, head: 23 }));
    let culprit = found.parts.iter().find(|part| part.kind == PartKind::Culprit).unwrap();
    assert!(culprit.probability.unwrap() >= 0.95 && culprit.observed.verdict == Verdict::Regressed);
    assert!((culprit.observed.change - 1.03_f64.ln()).abs() < 0.01);
}

#[test]
fn the_first_and_the_last_candidate_can_be_culprits() {
    for at in [1, 16] {
        let found = Machine::new(17, &[(at, 1.04)]).search(|_| ());
        assert_eq!(culprits(&found), [(at - 1, at)]);
    }
}

#[test]
fn two_slower_candidates_are_both_named() {
    for places in [[10, 11], [3, 30]] {
        let found = Machine::new(33, &[(places[0], 1.03), (places[1], 1.04)]).search(|_| ());
        assert_eq!(culprits(&found), places.map(|at| (at - 1, at)), "{places:?}");
    }
}

#[test]
fn where_the_bad_end_is_not_worse_only_the_ends_are_measured_and_no_candidate_is_named() {
    for changes in [&[][..], &[(9, 0.9)], &[(9, 1.05), (12, 1.0 / 1.05)]] {
        let found = Machine::new(33, changes).search(|_| ());
        assert!(matches!(found.ends, Ends::NotWorse(_)), "{:?}", found.ends);
        assert_eq!((found.probes.len(), culprits(&found).len()), (1, 0));
    }
}

#[test]
fn a_culprit_among_candidates_that_can_not_be_measured_is_a_range() {
    let found = Machine::new(33, &[(12, 1.05)]).search(|search| {
        (10..15).for_each(|at| search.skip(at, "does not build"));
    });
    assert_eq!(culprits(&found), [(9, 15)]);
    assert!(found.probes.iter().all(|probe| !(10..15).contains(&probe.pair.head)));
    assert_eq!(found.skipped.len(), 5);
}

#[test]
fn candidates_with_the_same_program_are_measured_once() {
    let found = Machine::new(65, &[(40, 1.05)]).search(|search| {
        (1..40).for_each(|at| search.same(0, at));
        (41..65).for_each(|at| search.same(40, at));
    });
    assert_eq!(culprits(&found), [(39, 40)]);
    assert_eq!(found.probes.len(), 1, "{:?}", found.probes);
}

#[test]
fn many_changes_below_the_floor_are_not_blamed_on_one() {
    let changes: Vec<(usize, f64)> = (1..=16).map(|at| (at, 1.003)).collect();
    let found = Machine::new(17, &changes).search(|_| ());
    assert!(culprits(&found).is_empty(), "{:?}", culprits(&found));
    assert!(found.parts.iter().any(|part| part.kind == PartKind::Unexplained));
}

fn exact(values: &[f64]) -> (Found, usize) {
    let mut search = Search::new(values.len(), latency());
    let mut probes = 0;
    while let Next::Measure { pair, .. } = search.next() {
        let change = values[pair.head] - values[pair.base];
        let verdict = if change > 0.0 { Verdict::Regressed } else { Verdict::Pass };
        search.observe(pair, Observed::exact(change, verdict));
        probes += 1;
    }
    (search.found(), probes)
}

#[test]
fn an_exact_value_takes_one_probe_a_step() {
    let values: Vec<f64> = (0..1025).map(|at| if at < 700 { 12.0 } else { 15.0 }).collect();
    let (found, probes) = exact(&values);
    assert_eq!(culprits(&found), [(699, 700)]);
    // The ends, ten halvings, the pair of neighbors, and the ranges before and after it.
    assert!(probes <= 1 + 10 + 3, "{probes}");
}

#[test]
fn exact_values_that_grow_twice_have_two_culprits() {
    let values: Vec<f64> = (0..100)
        .map(|at| 10.0 + f64::from(u8::from(at >= 17)) + 3.0 * f64::from(u8::from(at >= 60)))
        .collect();
    assert_eq!(culprits(&exact(&values).0), [(16, 17), (59, 60)]);
}

#[test]
fn what_comes_next_depends_on_the_answers_and_not_on_their_order() {
    let mut machine = Machine::new(17, &[(6, 1.03)]);
    let mut search = Search::new(17, latency());
    let mut answers = Vec::new();
    while let Next::Measure { pair, blocks } = search.next() {
        let observed = machine.measure(pair, blocks);
        search.observe(pair, observed.clone());
        answers.push((pair, observed));
        let last: std::collections::BTreeMap<Pair, Observed> = answers.iter().cloned().collect();
        let mut again = Search::new(17, latency());
        last.into_iter().rev().for_each(|(pair, observed)| again.observe(pair, observed));
        assert_eq!(again.next(), search.next());
    }
    assert_eq!(culprits(&search.found()), [(5, 6)]);
}

#[test]
fn samples_that_can_not_be_used_are_a_finding_and_not_a_reason_to_measure_more() {
    let mut machine = Machine::new(2, &[(1, 1.3)]);
    let [base, mut head] = machine.runs(Pair { base: 0, head: 1 }, 12);
    let Series::Processes(processes) = &mut head.benchmarks[0].metrics[0].series else { panic!() };
    processes.iter_mut().for_each(|process| process.samples.fill(1.3e6));
    let found = Observed::paired(&base, &head, &Metric::LATENCY, &latency().policy);
    assert_eq!(found.unwrap_err().code, LintCode::RepeatedSamples);
    let other = Metric::PEAK_DEVICE_MEMORY;
    assert!(Observed::paired(&base, &head, &other, &latency().policy).is_err());
}

#[test]
fn blocks_are_counted_whatever_they_are_evidence_of() {
    let mut machine = Machine::new(9, &[(4, 1.3)]);
    // A classical test pools samples and does not use blocks.
    machine.options.policy.test = TestKind::MannWhitney;
    assert_eq!(machine.measure(Pair { base: 0, head: 1 }, 12).blocks, 12);
    assert_eq!(culprits(&machine.search(|_| ())), [(3, 4)]);
}

#[test]
fn ends_that_a_finding_keeps_from_being_judged_are_measured_once() {
    let mut machine = Machine::new(9, &[(4, 1.3)]);
    machine.finding = Some(Lint::new(LintCode::HostOverloaded, "load average 99 on 2 processors"));
    let found = machine.search(|_| ());
    assert!(matches!(found.ends, Ends::Open(_)), "{:?}", found.ends);
    assert_eq!(found.blocks(), 12);
}

#[test]
fn not_worse_is_only_what_its_interval_shows_and_not_what_is_slow_more_often() {
    for seed in 0..3 {
        let mut machine = Machine::new(3, &[(1, 3.17)]);
        // The bad end waits twice as often as the candidate before it.
        machine.waits = vec![0.0, 0.24, 0.55];
        machine.repetitions = 10;
        machine.random = ChaCha8Rng::seed_from_u64(seed);
        let found = machine.search(|_| ());
        let quiet = found.parts.iter().filter(|part| part.kind == PartKind::NotWorse);
        assert_eq!(quiet.filter(|part| part.after == 1).count(), 0, "{seed}: {:?}", culprits(&found));
    }
    let found = Machine::new(9, &[(4, 3.17)]).search(|_| ());
    assert_eq!(culprits(&found), [(3, 4)]);
    for part in found.parts.iter().filter(|part| part.kind == PartKind::NotWorse) {
        let (_, high) = part.observed.interval.unwrap();
        assert!(high <= 0.05 * 3.17_f64.ln(), "not worse by up to {high}");
    }
}

#[test]
fn parts_that_do_not_make_the_whole_are_said() {
    let ends = Pair { base: 0, head: 8 };
    let mut machine = Machine::new(9, &[(4, 1.5)]);
    let mut search = Search::new(9, latency());
    while let Next::Measure { pair, blocks } = search.next() {
        // While the ends were measured, something else made the bad one slower.
        machine.levels[8] = if pair == ends { 3.0 } else { 1.5 };
        let observed = machine.measure(pair, blocks);
        search.observe(pair, observed);
    }
    let found = search.found();
    assert_eq!(culprits(&found), [(3, 4)]);
    let (low, high) = found.mismatch.unwrap();
    assert!(low < 1.5_f64.ln() && high > 1.5_f64.ln() && high < 2.0_f64.ln(), "{low} to {high}");
    assert_eq!(Machine::new(9, &[(4, 1.5)]).search(|_| ()).mismatch, None);
}
