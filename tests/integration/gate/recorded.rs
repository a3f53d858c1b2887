//! Verdicts about sessions that were recorded on real machines.

use std::collections::BTreeMap;

use benchgate::gate::noise::{Recording, measure};
use benchgate::gate::{Comparison, Policy, Reason};
use benchgate::model::{Metric, Process, Run, Series, Verdict};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use serde_json::Value;

use super::build::{judged, process, session, with};

/// The sides A and B of a recorded session.
fn sides(recording: &str) -> [Run; 2] {
    let mut sides: [BTreeMap<String, Vec<Process>>; 2] = Default::default();
    for line in recording.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let times = line["real_time_ms"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap() * 1e6);
        let slot = (line["round"].as_u64().unwrap() as u32, line["slot"].as_u64().unwrap() as u8);
        let side = &mut sides[usize::from(line["side"] == "B")];
        let model = line["model"].as_str().unwrap().to_owned();
        side.entry(model).or_default().push(process(&times.collect::<Vec<_>>(), Some(slot)));
    }
    sides.map(|side| {
        let benchmarks = side.into_iter();
        session(
            benchmarks
                .map(|(name, processes)| with(&name, Metric::LATENCY, Series::Processes(processes)))
                .collect(),
        )
    })
}

fn judge(recording: &str) -> Comparison {
    let [base, head] = sides(recording);
    judged(&base, &head)
}

/// A busy host made a release look regressed because it waited longer than its base. When it has the
/// processor, it is 29 % faster.
#[test]
fn a_head_whose_quickest_repetitions_are_faster_is_not_red() {
    let comparison = judge(include_str!("../../fixtures/corpus/crossed.jsonl"));
    let verdicts: Vec<(&str, Verdict)> =
        comparison.rows.iter().map(|row| (row.benchmark.as_str(), row.verdict)).collect();
    assert!(verdicts.contains(&("transformer-layer", Verdict::Inconclusive)), "{verdicts:?}");
    assert!(verdicts.contains(&("vit-block", Verdict::Regressed)), "{verdicts:?}");
    assert!(verdicts.contains(&("pairwise-l1", Verdict::Regressed)), "{verdicts:?}");
    let crossed = comparison.rows.iter().find(|row| row.benchmark.as_str() == "transformer-layer").unwrap();
    assert!(matches!(crossed.reason, Reason::TooLittle(_)), "{:?}", crossed.reason);
}

/// A similar session on another host, in which half of head's processes never had the processor for a whole
/// repetition.
#[test]
fn a_head_that_waits_in_every_other_process_is_not_red() {
    let comparison = judge(include_str!("../../fixtures/corpus/raw/waiting.jsonl"));
    let [row] = &comparison.rows[..] else { panic!("{:?}", comparison.rows) };
    assert_eq!(row.verdict, Verdict::Inconclusive);
    assert!(matches!(row.reason, Reason::TooLittle(_)), "{:?}", row.reason);
}

/// The scheduler's slices of 4 ms determine the duration of a repetition: most repetitions of both sides end
/// after 8 or 12 ms, although head's fastest ones take 5 or 10 % longer.
#[test]
fn a_slower_head_does_not_pass_where_repetitions_end_with_the_slices_of_the_scheduler() {
    let comparison = judge(include_str!("../../fixtures/corpus/raw/slices.jsonl"));
    assert_eq!(comparison.rows.len(), 4);
    for row in &comparison.rows {
        assert_eq!(row.verdict, Verdict::Inconclusive, "{}", row.benchmark);
        assert!(matches!(row.reason, Reason::TooLittle(_)), "{}: {:?}", row.benchmark, row.reason);
    }
}

/// The processes of each side have two speeds, which differ by 29 %. So half of the pairs show a difference
/// in the other direction that is larger than the slowdown.
#[test]
fn a_slowdown_is_red_where_processes_of_both_sides_have_two_speeds() {
    let [base, head] = sides(include_str!("../../fixtures/corpus/crossed.jsonl"));
    // Exchanged labels mix the speeds of both programs on each side.
    let recording = Recording::new(&base, &head, "latency");
    let slow = recording.names().position(|name| name == "vit-block").unwrap();
    let policy = Policy::default();
    let judge = |seed: u64, factor: f64| {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let (_, base, head) =
            recording.draw(policy.sequential.max_blocks, Some((slow, factor)), true, &mut random);
        measure(&base, &head, &policy).comparison.rows[slow].verdict
    };
    let red = (0..10).filter(|seed| judge(*seed, 1.1) == Verdict::Regressed).count();
    assert!(red >= 9, "{red} of 10");
    assert!((0..10).all(|seed| judge(seed, 1.0) != Verdict::Regressed));
}
