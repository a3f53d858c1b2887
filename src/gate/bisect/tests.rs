use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::gate::Policy;
use crate::model::{Benchmark, BlockSlot, Metric, MetricSeries, Process, Run, Series, Verdict};

/// A machine with 1 % of noise that measures candidates of these levels.
struct Machine {
    levels: Vec<f64>,
    random: ChaCha8Rng,
}

impl Machine {
    fn new(candidates: usize, changes: &[(usize, f64)]) -> Self {
        let level = |at: usize| changes.iter().filter(|(first, _)| *first <= at).map(|(_, by)| by).product();
        Self { levels: (0..candidates).map(level).collect(), random: ChaCha8Rng::seed_from_u64(5) }
    }

    fn measure(&mut self, pair: Pair, blocks: u32, options: &BisectOptions) -> Observed {
        let mut sides = [Vec::new(), Vec::new()];
        for block in 0..blocks {
            for (slot, side) in (0..).zip([0, 1, 1, 0]) {
                let level = self.levels[if side == 0 { pair.base } else { pair.head }];
                let process = 1.0 + 0.01 * (self.random.random::<f64>() - 0.5);
                let mut sample = || 1e6 * level * process * (1.0 + 0.005 * self.random.random::<f64>());
                let samples = (0..3).map(|_| sample()).collect();
                sides[side].push(Process {
                    samples,
                    slot: Some(BlockSlot { block, slot }),
                    ..Process::default()
                });
            }
        }
        let [base, head] = sides.map(|processes| {
            let mut benchmark = Benchmark::new("row");
            let series = Series::Processes(processes);
            benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series });
            Run { session: Some("one".to_owned()), benchmarks: vec![benchmark], ..Run::default() }
        });
        Observed::paired(&base, &head, &options.metric, &options.policy).unwrap()
    }

    fn search(&mut self, prepare: impl Fn(&mut Search)) -> Found {
        let mut search = Search::new(self.levels.len(), latency());
        prepare(&mut search);
        while let Next::Measure { pair, blocks } = search.next() {
            let observed = self.measure(pair, blocks, &latency());
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
    let Some(Part::Culprit { probability, observed, .. }) =
        found.parts.iter().find(|part| matches!(part, Part::Culprit { .. }))
    else {
        panic!("{:?}", found.parts)
    };
    assert!(*probability >= 0.95 && observed.verdict == Verdict::Regressed);
    assert!((observed.change - 1.03_f64.ln()).abs() < 0.01);
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
    assert!(found.parts.iter().any(|part| matches!(part, Part::Unexplained { .. })));
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
    // The ends, ten halvings, the neighbors, and what lies before and behind.
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
        let observed = machine.measure(pair, blocks, &latency());
        search.observe(pair, observed.clone());
        answers.push((pair, observed));
        let last: std::collections::BTreeMap<Pair, Observed> = answers.iter().cloned().collect();
        let mut again = Search::new(17, latency());
        last.into_iter().rev().for_each(|(pair, observed)| again.observe(pair, observed));
        assert_eq!(again.next(), search.next());
    }
    assert_eq!(culprits(&search.found()), [(5, 6)]);
}
