//! Reports each kernel's share of a change, for people and for programs.

use serde_json::{Value, json};

use benchgate_core::model::counted;
use benchgate_core::record::Number;
use benchgate_gate::{Comparison, Exchange, Exchanged, Sum};

use super::document::{self, Block, Rules, Table, TerminalOptions, Text};
use super::human::signed_percent;
use super::percent;

/// Returns the command that exchanges the kernels of a benchmark. The command names the commit of
/// base, abbreviated as git does in a large repository, if head has a different commit; both sides
/// of a suite with `[side.base]` have the same commit.
pub(super) fn command(comparison: &Comparison, benchmark: &str) -> String {
    let [base, head] = [&comparison.base, &comparison.head].map(|side| side.commit.as_deref());
    let is_commit = |commit: &&str| commit.chars().all(|c| c.is_ascii_hexdigit());
    let other = base.filter(|_| head.is_some() && base != head).filter(is_commit);
    let option = other.and_then(|commit| commit.get(..12)).map(|commit| format!(" --merge-base {commit}"));
    format!("benchgate explain --swap {benchmark}{}", option.unwrap_or_default())
}

/// The result of exchanging kernels, including those that were not exchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeReport {
    pub benchmark: String,
    pub exchange: Exchange,
    /// Number of kernels with the same code on both sides.
    pub identical: usize,
    /// Kernels of base that could not be exchanged, each with the reason.
    pub unmatched: Vec<(String, String)>,
    /// The command that times base's call with all of head's kernels.
    pub reproduce: String,
}

impl ExchangeReport {
    /// Returns the exchanges that are missing in the sum, each with the reason.
    fn missing(&self) -> impl Iterator<Item = &(String, String)> {
        self.unmatched.iter().chain(&self.exchange.failed)
    }

    fn sum_is(&self) -> Sum {
        if self.unmatched.is_empty() { self.exchange.sum_is() } else { Sum::Unknown }
    }

    /// Describes whether the changes of the kernels add up.
    fn sum(&self) -> String {
        let [sum, whole] = [self.exchange.sum(), self.exchange.whole.change].map(signed_percent);
        let allowance = percent(self.exchange.allowance());
        let missing = self.missing().count();
        let [in_order, reversed] = self.exchange.sums().map(signed_percent);
        let of = format!(
            "{sum} of {whole}, and chance allows a difference of {allowance} (in one order: {in_order}; in the opposite one: {reversed})"
        );
        match self.sum_is() {
            Sum::AddsUp => format!("the kernels add up: {of}"),
            Sum::Differs => {
                format!(
                    "the kernels do not add up: {of}. The machine may have changed during the measurement: \
                    repeat the measurement, or measure more blocks (--max-blocks)"
                )
            }
            Sum::Unknown if missing > 0 => {
                format!(
                    "it is unknown whether the kernels add up: {} could not be exchanged",
                    counted(missing, "kernel")
                )
            }
            Sum::Unknown => format!(
                "it is unknown whether the kernels add up: {of}. Measure more blocks (--max-blocks), or on a quieter machine"
            ),
        }
    }
}

/// Renders the exchange as a table.
pub fn exchange(report: &ExchangeReport, options: TerminalOptions) -> String {
    let exchange = &report.exchange;
    let mut table = Table::new(&["kernel of head"], &["adds", "95 % interval", "share of"], Rules::Header);
    table.columns[3].title.push("the change".into());
    for kernel in exchange.kernels.iter().chain([&exchange.whole]) {
        let share =
            if exchange.has_changed() { percent_share(exchange.share(kernel)) } else { String::new() };
        let name = Text::named(kernel.name.as_str());
        let adds = signed_percent(kernel.change);
        table.rows.push(vec![name.into(), adds.into(), bounds(kernel).into(), share.into()]);
    }
    let mut said: Vec<Text<'_>> = Vec::new();
    let blamed = exchange.to_blame();
    said.push(if !exchange.has_changed() {
        "no change of the time is certain, so there is nothing to attribute to kernels".into()
    } else if blamed.is_empty() {
        "no single kernel is certain to change the time".into()
    } else {
        let share: f64 = blamed.iter().map(|kernel| exchange.share(kernel)[0]).sum();
        let names = blamed.iter().map(|kernel| Text::named(kernel.name.as_str()));
        Text::joined(names, ", ").say(format!(": {} of the change", percent(share)))
    });
    said.push(report.sum().into());
    if exchange.by_processor {
        said.push("the times are CPU times, which other programs disturb less than the latency".into());
    }
    if report.identical > 0 {
        said.push(format!("{} identical on both sides", counted(report.identical, "kernel")).into());
    }
    said.extend(report.missing().map(|(name, why)| Text::named(name.as_str()).detail(Some(why.as_str()))));
    said.push(Text::from("to reproduce: ").with(document::Part::Copied(report.reproduce.as_str().into())));
    let title = Block::Title(Text::named(report.benchmark.as_str()));
    let blocks = [title, Block::Table(vec![table.without_empty_columns()]), Block::list(said)];
    document::terminal(&blocks, TerminalOptions { all: true, ..options })
}

fn bounds(kernel: &Exchanged) -> String {
    format!("{} … {}", signed_percent(kernel.interval.low), signed_percent(kernel.interval.high))
}

fn percent_share([share, low, high]: [f64; 3]) -> String {
    format!("{} ({:.0} … {:.0})", signed_percent(share), 100.0 * low, 100.0 * high)
}

/// Renders JSON for programs.
pub fn exchange_json(report: &ExchangeReport) -> String {
    let exchange = &report.exchange;
    let kernel = |kernel: &Exchanged| {
        let json = json!({
            "kernel": kernel.name,
            // A fraction of base's time: the mean of the change if the kernel is exchanged after the preceding
            // kernels and if it is exchanged after the following ones.
            "change": Number(kernel.change),
            "in_order": Number(kernel.in_order),
            "reversed": Number(kernel.reversed),
            "low": Number(kernel.interval.low),
            "high": Number(kernel.interval.high),
            // The kernel's share of the change by all kernels; absent if that is not known to be a change.
            "share": exchange.has_changed().then(|| Number(exchange.share(kernel)[0])),
            "blocks": kernel.blocks,
        });
        document::without_null(json, &["share"])
    };
    let missing = report.missing().map(|(kernel, why)| json!({ "kernel": kernel, "why": why }));
    document::json(&json!({
        "benchmark": report.benchmark,
        "time": if exchange.by_processor { "cpu-time" } else { "latency" },
        "kernels": exchange.kernels.iter().map(kernel).collect::<Vec<Value>>(),
        "all": kernel(&exchange.whole),
        "sum": Number(exchange.sum()),
        "allowance": Number(exchange.allowance()),
        "sum_is": report.sum_is().as_str(),
        "to_blame": exchange.to_blame().iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(),
        "identical": report.identical,
        "missing": missing.collect::<Vec<Value>>(),
        "reproduce": report.reproduce,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_gate::Interval;

    fn exchanged(name: &str, change: f64) -> Exchanged {
        let interval = Interval { low: change - 0.02, high: change + 0.02, level: 0.95 };
        Exchanged { name: name.to_owned(), change, interval, in_order: change, reversed: change, blocks: 8 }
    }

    fn report(unmatched: Vec<(String, String)>) -> ExchangeReport {
        ExchangeReport {
            benchmark: "m/cpu/main".to_owned(),
            exchange: Exchange {
                by_processor: true,
                whole: exchanged("all-kernels", 0.5),
                kernels: vec![exchanged("softmax", 0.45), exchanged("matmul", 0.04)],
                failed: Vec::new(),
            },
            identical: 1,
            unmatched,
            reproduce: "iree-benchmark-replay base.ireereplay".to_owned(),
        }
    }

    fn text(report: &ExchangeReport) -> String {
        exchange(report, TerminalOptions { width: 120, ..TerminalOptions::default() })
    }

    #[test]
    fn the_table_names_the_kernel_to_blame_and_says_whether_the_shares_add_up() {
        insta::assert_snapshot!(text(&report(Vec::new())));
    }

    #[test]
    fn a_kernel_that_could_not_be_exchanged_leaves_the_sum_open() {
        let lacking = report(vec![("transpose".to_owned(), "head has no kernel of this name".to_owned())]);
        let said = text(&lacking);
        assert!(
            said.contains("it is unknown whether the kernels add up: 1 kernel could not be exchanged"),
            "{said}"
        );
        assert!(said.contains("transpose: head has no kernel of this name"), "{said}");
        let json: Value = serde_json::from_str(&exchange_json(&lacking)).unwrap();
        assert_eq!((&json["sum_is"], &json["to_blame"][0]), (&"unknown".into(), &"softmax".into()), "{json}");
    }
}
