//! Counters that may be zero, so that no ratio can be computed.

use benchgate::gate::{CompareOptions, Policy, Reason, compare};
use benchgate::ingest;
use benchgate::model::{Run, Verdict};

fn run(counters: [f64; 3]) -> Run {
    let mut text = "name,iterations,real_time,cpu_time,time_unit,\"misses\"\n".to_owned();
    for misses in counters {
        text.push_str(&format!("\"a\",1,100,100,ns,{misses}\n"));
    }
    ingest::read_detected(text.as_bytes(), "x").unwrap()
}

fn judged(base: [f64; 3], head: [f64; 3]) -> (Verdict, Reason) {
    let comparison = compare(&run(base), &run(head), &Policy::default(), &CompareOptions::default());
    let is_counter = |row: &&benchgate::gate::Row| row.metric.as_ref().is_some_and(|m| m.name == "misses");
    let row = comparison.rows.iter().find(is_counter).unwrap();
    (row.verdict, row.reason.clone())
}

#[test]
fn equal_zeros_pass_and_a_zero_on_one_side_is_inconclusive() {
    assert_eq!(judged([0.0; 3], [0.0; 3]), (Verdict::Pass, Reason::Exact));
    for (base, head) in
        [([0.0; 3], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [0.0; 3]), ([0.0, 1.0, 2.0], [1.0; 3])]
    {
        let (verdict, reason) = judged(base, head);
        assert_eq!(verdict, Verdict::Inconclusive, "{base:?} {head:?}");
        assert!(matches!(reason, Reason::TooLittle(_)), "{reason:?}");
    }
}
