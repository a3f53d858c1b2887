//! Sessions that were recorded on real machines, judged.

use std::collections::BTreeMap;

use benchgate::gate::{Comparison, Reason};
use benchgate::model::{Metric, Process, Series, Verdict};
use serde_json::Value;

use super::build::{judged, process, session, with};

/// Judges the sides A and B of a recording.
fn judge(recording: &str) -> Comparison {
    let mut sides: [BTreeMap<String, Vec<Process>>; 2] = Default::default();
    for line in recording.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let times = line["real_time_ms"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap() * 1e6);
        let slot = (line["round"].as_u64().unwrap() as u32, line["slot"].as_u64().unwrap() as u8);
        let side = &mut sides[usize::from(line["side"] == "B")];
        let model = line["model"].as_str().unwrap().to_owned();
        side.entry(model).or_default().push(process(&times.collect::<Vec<_>>(), Some(slot)));
    }
    let [base, head] = sides.map(|side| {
        let benchmarks = side.into_iter();
        session(
            benchmarks
                .map(|(name, processes)| with(&name, Metric::LATENCY, Series::Processes(processes)))
                .collect(),
        )
    });
    judged(&base, &head)
}

/// On a busy host a release was red that is 29 % faster when it has the processor: it waited longer than its base.
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

/// The same on another host, where half of head's processes never had the processor for a whole repetition.
#[test]
fn a_head_that_waits_in_every_other_process_is_not_red() {
    let comparison = judge(include_str!("../../fixtures/corpus/raw/waiting.jsonl"));
    let [row] = &comparison.rows[..] else { panic!("{:?}", comparison.rows) };
    assert_eq!(row.verdict, Verdict::Inconclusive);
    assert!(matches!(row.reason, Reason::TooLittle(_)), "{:?}", row.reason);
}
