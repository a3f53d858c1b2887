//! Calibrations from recorded sessions.

use benchgate::gate::Policy;
use benchgate::gate::noise::{Calibrating, NoiseOptions};

use super::build::{paired, session};

#[test]
fn a_calibration_without_time_judges_one_session_for_each_figure() {
    let times: Vec<f64> = (0..12).map(|block| 1e5 * (1.0 + 1e-3 * f64::from(block % 7))).collect();
    let (base, head) = paired("a", &times, &times, 0.0001);
    let (base, head) = (session(vec![base]), session(vec![head]));
    let (policy, options) =
        (Policy::default(), NoiseOptions { until_precise: true, ..NoiseOptions::default() });
    let judged = |batches: usize, is_late: bool| {
        let mut calibrating = Calibrating::new(&base, &head, &policy, &options);
        (0..batches).for_each(|_| calibrating.judge_more(|_| is_late));
        let report = calibrating.into_report();
        let of = |share: &benchgate::gate::noise::PowerPoint| share.seen.of;
        (report.red_suites.of, report.power.iter().map(of).collect::<Vec<_>>())
    };
    assert_eq!(judged(1, true), (1, vec![1; options.slowdowns.len()]));
    assert_eq!(judged(3, true), (3, vec![3; options.slowdowns.len()]));
    let (unchanged, _) = judged(1, false);
    assert!(unchanged > 1, "{unchanged}");
}
