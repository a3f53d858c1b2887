//! The rules of other tools for "slower", applied to the samples of two sides as the tools' sources define
//! them.
//!
//! For a tool that reports without gating, rows that it marks as slower count as regressed.

use benchgate::stats::classical::{UMethod, mann_whitney};
use benchgate::stats::describe::{mean, median, stddev};

pub type Rule = fn(base: &[f64], head: &[f64]) -> bool;

pub const PEERS: &[(&str, Rule)] = &[
    ("google/benchmark U p<.05", google_benchmark),
    ("benchstat U p<.05", benchstat),
    ("asv ratio>1.1, p<.002", asv),
    ("nvbench intervals .5 % apart", nvbench),
    ("mean +10 %", mean_ten),
    ("ratio 200 %", doubled),
];

fn ratio(of: fn(&[f64]) -> Option<f64>, base: &[f64], head: &[f64]) -> f64 {
    of(head).zip(of(base)).map_or(f64::NAN, |(head, base)| head / base)
}

fn u_test(base: &[f64], head: &[f64], method: UMethod) -> f64 {
    mann_whitney(base, head, method).map_or(1.0, |test| test.two_sided)
}

/// tools/gbench/report.py: scipy's two-sided Mann-Whitney U, alpha 0.05.
fn google_benchmark(base: &[f64], head: &[f64]) -> bool {
    u_test(base, head, UMethod::Auto) < 0.05 && ratio(median, base, head) > 1.0
}

/// benchmath: exact U up to fifty samples, alpha 0.05, comparing medians.
fn benchstat(base: &[f64], head: &[f64]) -> bool {
    let method = if base.len().max(head.len()) <= 50 { UMethod::Exact } else { UMethod::Auto };
    u_test(base, head, method) < 0.05 && ratio(median, base, head) > 1.0
}

/// asv compare and continuous: factor 1.1 on the medians, and Mann-Whitney p below 0.002.
fn asv(base: &[f64], head: &[f64]) -> bool {
    ratio(median, base, head) > 1.1 && u_test(base, head, UMethod::Auto) < 0.002
}

/// nvbench_compare: the intervals of mean ± relative standard deviation must be half a percent apart. (Its
/// second condition, agreement of clock cycles, can only reduce what it detects.)
fn nvbench(base: &[f64], head: &[f64]) -> bool {
    let (Some(base_mean), Some(head_mean)) = (mean(base), mean(head)) else { return false };
    let (base_noise, head_noise) = (stddev(base).unwrap_or(0.0), stddev(head).unwrap_or(0.0));
    head_mean - head_noise > (base_mean + base_noise) * 1.005
}

fn mean_ten(base: &[f64], head: &[f64]) -> bool {
    ratio(mean, base, head) > 1.1
}

/// github-action-benchmark: one value, with an alert threshold of 200 %.
fn doubled(base: &[f64], head: &[f64]) -> bool {
    ratio(mean, base, head) > 2.0
}
