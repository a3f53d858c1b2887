//! Result lines of the igemm convolution library's driver:
//! `[fwd:40] KERNEL, p_in:0x…, …, n:2,k:1280,c:1280,…, cost:0.183ms, tflops:329.672(41.27%), valid:y`.
//!
//! A benchmark is identified by direction, problem and kernel; addresses and launch details are ignored.

use std::borrow::Cow;

use benchgate_core::model::{Benchmark, Better, Metric, Run, Stage, Summary, Unit, Verification, VerifyCode};

use super::build::{check_summary, fail, own_metric, processes, time_unit};
use super::join::ByName;
use super::text::lines;
use super::{LineFault, line_fault};

/// The keys that describe the convolution, in the order in which the name lists them.
const PROBLEM: [&str; 16] = [
    "n",
    "c",
    "hi",
    "wi",
    "k",
    "y",
    "x",
    "ho",
    "wo",
    "stride_h",
    "stride_w",
    "dilation_h",
    "dilation_w",
    "pad_h",
    "pad_w",
    "group",
];

/// Returns whether this line is a result, complete or cut off.
pub(super) fn is_result(line: &str) -> bool {
    direction(line)
        .is_some_and(|(_, rest)| (rest.contains("igemm") || is_measured(rest)) && rest.contains(','))
}

/// Returns whether a line states a cost and whether the output is valid, as every complete result does.
fn is_measured(line: &str) -> bool {
    line.contains("cost:") && line.contains("valid:")
}

/// Splits `[fwd:40] rest` into `fwd` and the rest.
fn direction(line: &str) -> Option<(&str, &str)> {
    let (head, rest) = line.trim().strip_prefix('[')?.split_once(']')?;
    let (direction, number) = head.split_once(':')?;
    let number = number.trim();
    let good = matches!(direction, "fwd" | "bwd" | "wrw")
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit());
    good.then_some((direction, rest))
}

/// Reads every result line of a log; the driver's other output is ignored.
pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut benchmarks = ByName::default();
    for line in lines(text) {
        if !is_result(line.text) {
            if line.text.trim_start().starts_with('[') && is_measured(line.text) {
                return Err(line_fault(
                    line.number,
                    "a result whose direction is not `[fwd:N]`, `[bwd:N]` or `[wrw:N]`",
                ));
            }
            continue;
        }
        benchmarks.push(benchmark(line.text).map_err(|what| line_fault(line.number, what))?);
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

fn benchmark(line: &str) -> Result<Benchmark, Cow<'static, str>> {
    let (direction, rest) = direction(line).ok_or("not a result line")?;
    let mut parts = rest.split(',').map(str::trim);
    let kernel = parts.next().filter(|kernel| !kernel.is_empty()).ok_or("no kernel")?;
    let fields: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once(':')).collect();
    let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value.trim());
    let problem: Vec<String> =
        PROBLEM.iter().filter_map(|name| Some(format!("{name}{}", field(name)?))).collect();
    let mut benchmark = Benchmark::new(format!("{direction}/{}/{kernel}", problem.join("-")));
    benchmark.labels.insert("kernel".to_owned(), kernel.to_owned());
    benchmark.labels.insert("direction".to_owned(), direction.to_owned());
    for name in PROBLEM {
        if let Some(value) = field(name) {
            benchmark.labels.insert(name.to_owned(), value.to_owned());
        }
    }
    let (cost, scale) = field("cost").and_then(quantity).ok_or("no `cost` with a unit of time")?;
    let (tflops, share) = field("tflops").and_then(rate).ok_or("no `tflops`")?;
    match field("valid").ok_or("no `valid`; the line is truncated")? {
        "y" => benchmark.verification = Some(verified(VerifyCode::Pass, None)),
        "n" => {
            let why = "the driver compared the output with its reference and found it wrong";
            benchmark.verification = Some(verified(VerifyCode::Fail, Some(why.to_owned())));
            fail(&mut benchmark, Stage::Verify, why);
            return Ok(benchmark);
        }
        other => return Err(format!("`valid:{other}` is neither y nor n").into()),
    }
    // The driver computes the rate as the operations of the convolution divided by the time.
    let sizes = ["n", "k", "c", "ho", "wo", "y", "x"].map(|name| field(name)?.parse::<f64>().ok());
    let sizes: Option<f64> = sizes.into_iter().product();
    let groups: Option<f64> = field("group").and_then(|groups| groups.parse().ok());
    if let Some(operations) = sizes.zip(groups).map(|(product, groups)| 2.0 * product / groups) {
        let time = operations / (tflops * 1e12) * 1e9 / scale;
        check_summary(&mut benchmark, &[time], &Summary { mean: Some(cost), ..Summary::default() });
    }
    processes(&mut benchmark, Metric::LATENCY, scale, vec![vec![cost]]);
    let unit = Unit::Other("TFLOP/s".into());
    processes(&mut benchmark, own_metric("tflops", unit, Better::Higher), 1.0, vec![vec![tflops]]);
    if let Some(share) = share {
        let metric = own_metric("efficiency", Unit::Fraction, Better::Higher);
        processes(&mut benchmark, metric, 0.01, vec![vec![share]]);
    }
    Ok(benchmark)
}

fn verified(code: VerifyCode, why: Option<String>) -> Verification {
    Verification::bare(code, why)
}

/// Splits `0.183ms` into the number and the nanoseconds in its unit.
fn quantity(text: &str) -> Option<(f64, f64)> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'))?;
    Some((text[..unit].parse().ok()?, time_unit(&text[unit..])?))
}

/// Splits `329.672(41.27%)` into the two numbers.
fn rate(text: &str) -> Option<(f64, Option<f64>)> {
    match text.split_once('(') {
        None => Some((text.parse().ok()?, None)),
        Some((rate, share)) => Some((rate.parse().ok()?, Some(share.strip_suffix("%)")?.parse().ok()?))),
    }
}
