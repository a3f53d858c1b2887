//! Findings about the state of the machine while a row was measured, and about blocks that lost a process.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    Benchmark, BenchmarkName, Consequence, DEVICE_CLOCK, Lint, LintCode, Run, SideName, Telemetry, counted,
};
use benchgate_stats::describe::lopsided;

use super::series::Readings;
use super::{context, copied, series};

/// Excess of one side's share of disturbed processes over the other's, above which its result may have moved:
/// the location of a row is robust and tolerates a quarter of bad values.
const BEARABLE: f64 = 0.25;

/// Probability below which the sides' disturbances don't differ by chance. Sides that take turns are
/// disturbed alike except by chance, and the interval already includes chance. At this level, one row in a
/// thousand on a machine that is never quiet needs another look.
const NOT_CHANCE: f64 = 0.001;

/// Change of the device's temperature over a session, in degrees, that is reported. Leakage and the clock
/// that a chip chooses change by about a percent over this range.
const DEGREES: f64 = 10.0;

/// Returns findings that forbid a verdict about a run without any comparison, for the whole run (`None`) or
/// for one benchmark. Such a run must not join the baseline.
pub fn unfit(run: &Run) -> Vec<(Option<BenchmarkName>, Lint)> {
    let forbids = |lint: &Lint| {
        lint.code.consequence() != Consequence::Note && !context::ABOUT_LITTLE_DATA.contains(&lint.code)
    };
    let whole = context::of_context(&run.context).into_iter().chain(run.lints.iter().cloned());
    let mut found: Vec<(Option<BenchmarkName>, Lint)> =
        whole.filter(|lint| forbids(lint)).map(|lint| (None, lint)).collect();
    let repeated = copied::repeated(run);
    for benchmark in &run.benchmarks {
        let alone = of_row(&Benchmark::new(benchmark.name.as_str()), benchmark, Measured::Alone);
        let alone = alone.into_iter().chain(copied::lint_repeated(&benchmark.name, &repeated));
        let lints = benchmark.lints.iter().cloned().chain(alone).filter(|lint| forbids(lint));
        found.extend(lints.map(|lint| (Some(benchmark.name.clone()), lint)));
        // A series that can't be read can't be compared.
        let metrics = benchmark.metrics.iter().filter(|series| !series::is_signed(series));
        let unusable = metrics.filter_map(|series| series::read(series).err());
        found.extend(unusable.map(|lint| (Some(benchmark.name.clone()), lint)));
    }
    found
}

/// Adds to each benchmark the findings that forbid a verdict and that only telemetry and samples show, for
/// formats that keep neither.
pub fn record_unfit(run: &mut Run) {
    for (name, lint) in unfit(run) {
        let found = run.benchmarks.iter_mut().find(|benchmark| Some(&benchmark.name) == name.as_ref());
        if let Some(benchmark) = found.filter(|benchmark| !benchmark.lints.contains(&lint)) {
            benchmark.lints.push(lint);
        }
    }
}

/// The way in which the sides of a row were measured. Sides that were measured at different times did not share
/// their disturbances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// In one session, process by process.
    Together,
    Apart,
    /// Head, after the sessions of a baseline.
    AfterStored,
    /// Head, without another side.
    Alone,
}

impl Measured {
    pub const fn new(together: bool, after_stored: bool) -> Self {
        match (together, after_stored) {
            (true, _) => Self::Together,
            (false, true) => Self::AfterStored,
            (false, false) => Self::Apart,
        }
    }

    /// Returns the words before a finding about one side.
    fn of_side(self, side: SideName) -> String {
        match (self, side) {
            (Self::Together, _) => format!("{side}: "),
            (Self::AfterStored, SideName::Base) => "in the newest stored session: ".to_owned(),
            (Self::Apart | Self::AfterStored, _) => format!("while {side} was measured: "),
            (Self::Alone, _) => String::new(),
        }
    }
}

/// Returns which side was disturbed, in the words of a finding that forbids a verdict.
pub fn disturbed_side(lint: &Lint) -> Option<String> {
    if !matches!(lint.code, LintCode::ForeignProcess | LintCode::Throttled) {
        return None;
    }
    let sides = [SideName::Base, SideName::Head].map(|side| {
        let labels = [Measured::Together, Measured::Apart, Measured::AfterStored].map(|it| it.of_side(side));
        let named = labels.into_iter().find(|label| lint.detail.split("; ").any(|it| it.starts_with(label)));
        named.map(|label| label.trim_end_matches(": ").to_owned())
    });
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    (!sides.is_empty()).then(|| sides.join(" and "))
}

/// Returns a finding about the machine that was recorded with one side, so that it names the side.
pub fn recorded(lint: &Lint, side: SideName) -> Lint {
    use LintCode::{Disturbed, ForeignProcess, PowerCapped, TemperatureDrift, Throttled};
    let is_of_machine =
        [Disturbed, ForeignProcess, PowerCapped, TemperatureDrift, Throttled].contains(&lint.code);
    match is_of_machine {
        true => Lint::new(lint.code, format!("{side}: {}", lint.detail)),
        false => lint.clone(),
    }
}

/// Returns findings about one row.
pub fn of_row(base: &Benchmark, head: &Benchmark, measured: Measured) -> Vec<Lint> {
    let sides = [(SideName::Base, base), (SideName::Head, head)];
    let mut lints = Vec::new();
    lints.extend(of_kind(&sides, measured, LintCode::ForeignProcess, foreign));
    lints.extend(of_kind(&sides, measured, LintCode::Throttled, |t| {
        (!t.throttled.is_empty()).then(|| format!("limited by {}", t.throttled.join(" and ")))
    }));
    for (side, benchmark) in sides {
        let capped = benchmark.telemetry.iter().filter(|telemetry| telemetry.power_capped).count();
        if capped > 0 {
            let place = measured.of_side(side);
            let detail = format!("{place}in {capped} of {} processes", benchmark.telemetry.len());
            lints.push(Lint::new(LintCode::PowerCapped, detail));
        }
        lints.extend(drift(&measured.of_side(side), &benchmark.telemetry));
    }
    lints
}

/// Returns the finding that the device's clock, as the tool measured it, differs between the sides.
pub fn clocks(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let clock = |side: &Benchmark| Some(series::described(side.metric(DEVICE_CLOCK)?)?.location);
    let (base, head) = clock(base).zip(clock(head))?;
    let detail =
        || format!("the device's clock was {:.2} GHz at base, {:.2} GHz at head", base / 1e9, head / 1e9);
    // A head that uses the device better may draw more power and lower the clock, which hides no slowdown.
    (head > base && context::is_other_clock(base, head)).then(|| Lint::new(LintCode::Throttled, detail()))
}

/// Returns the note that other programs used the processors in most processes of a benchmark, on both sides.
pub fn busy(base: &Run, head: &Run) -> Option<Lint> {
    let is_busy = |benchmark: &&Benchmark| {
        let shared = benchmark.telemetry.iter().filter(|seen| seen.foreign_share.is_some()).count();
        2 * shared > benchmark.telemetry.len()
    };
    let of_base: BTreeSet<&BenchmarkName> =
        base.benchmarks.iter().filter(is_busy).map(|it| &it.name).collect();
    let count = head.benchmarks.iter().filter(is_busy).filter(|it| of_base.contains(&it.name)).count();
    (count > 0).then(|| {
        let detail = format!("other programs ran during most processes of {}", counted(count, "benchmark"));
        Lint::new(LintCode::HostBusy, detail)
    })
}

/// Other programs' use of the measured devices during a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OtherPrograms {
    /// Number of processes that they disturbed, and of all processes.
    pub disturbed: usize,
    pub processes: usize,
    /// Their average share of the measured processors; zero if they only used a GPU.
    pub share: f64,
}

impl OtherPrograms {
    /// Returns `None` if they disturbed so few processes that the results of the session hardly depend on them.
    pub fn of_runs(runs: [&Run; 2]) -> Option<Self> {
        let all = || runs.into_iter().flat_map(|run| &run.benchmarks).flat_map(|it| &it.telemetry);
        let (processes, disturbed) = (all().count(), all().filter_map(foreign).count());
        let shares: f64 = all().filter_map(|seen| seen.foreign_share).sum();
        let share = shares / processes as f64;
        (disturbed as f64 > BEARABLE * processes as f64).then_some(Self { disturbed, processes, share })
    }
}

/// Describes other programs' use of the measured devices.
fn foreign(telemetry: &Telemetry) -> Option<String> {
    let who = telemetry.foreign.join(", ");
    match telemetry.foreign_share {
        Some(share) if who.is_empty() => {
            Some(format!("other programs used {:.0} % of the measured processors", share * 100.0))
        }
        Some(share) => {
            Some(format!("other programs used {:.0} % of the measured processors: {who}", share * 100.0))
        }
        None if who.is_empty() => None,
        None => Some(format!("{who} on the device")),
    }
}

/// Returns a finding that forbids a verdict if the disturbance affects so many more processes of one side
/// that it may explain the result; otherwise a note.
fn of_kind(
    sides: &[(SideName, &Benchmark); 2],
    measured: Measured,
    code: LintCode,
    disturbed: impl Fn(&Telemetry) -> Option<String>,
) -> Option<Lint> {
    let found = sides.map(|(side, benchmark)| {
        let all: Vec<(u32, String)> =
            benchmark.telemetry.iter().filter_map(|t| Some((t.order, disturbed(t)?))).collect();
        (side, benchmark.telemetry.len(), all)
    });
    let share = |(_, of, all): &(SideName, usize, Vec<(u32, String)>)| match of {
        0 => 0.0,
        of => all.len() as f64 / *of as f64,
    };
    let (base, head) = (share(&found[0]), share(&found[1]));
    let counts = |at: usize| (found[at].2.len(), found[at].1);
    let ((base_hit, base_all), (head_hit, head_all)) = (counts(0), counts(1));
    let moved = match measured {
        Measured::Together => {
            (base - head).abs() > BEARABLE
                && lopsided((base_hit, head_hit), (base_all, head_all)) < NOT_CHANCE
        }
        Measured::Apart | Measured::AfterStored | Measured::Alone => base.max(head) > BEARABLE,
    };
    let parts: Vec<String> = found
        .iter()
        .filter_map(|(side, of, all)| {
            let (order, first) = all.first()?;
            let place = measured.of_side(*side);
            let count = all.len();
            Some(format!("{place}{count} of {of} processes, first in process {}: {first}", order + 1))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let code = if moved { code } else { LintCode::Disturbed };
    Some(Lint::new(code, parts.join("; ")))
}

/// Distance between the sides, on the log scale, that other programs don't explain: a process that shares its
/// processor with one other program takes twice as long.
const BEYOND_OTHERS: f64 = std::f64::consts::LN_2;

/// Returns whether the quickest repetition of every process of head is far beyond the median of every process of
/// base, even if head's load made it slower by a factor. A process that takes longer meets other programs more often, so head is then the more disturbed side because
/// it is slower. A head that is far quicker gets no such benefit: it could have left the program that disturbs base.
pub fn is_beyond_other_programs(base: &Readings, head: &Readings, load: f64) -> bool {
    let quickest: Option<Vec<f64>> = head.costs.iter().map(|process| process.first().copied()).collect();
    // Repetitions are only kept of processes with a position in a schedule.
    let quickest = if head.costs.is_empty() { Some(head.clean.clone()) } else { quickest };
    let least = quickest.and_then(|costs| costs.into_iter().reduce(f64::min));
    let most = base.middle.iter().copied().reduce(f64::max);
    least.zip(most).is_some_and(|(least, most)| least - most > BEYOND_OTHERS + load.ln())
}

/// Turns the finding that other programs disturbed one side more than the other into a note.
pub fn only_note_other_programs(lints: &mut [Lint]) {
    for lint in lints.iter_mut().filter(|lint| lint.code == LintCode::ForeignProcess) {
        lint.code = LintCode::Disturbed;
    }
}

fn drift(place: &str, telemetry: &[Telemetry]) -> Option<Lint> {
    let mut temperatures = telemetry.iter().filter_map(|telemetry| telemetry.temperature);
    let first = temperatures.next()?;
    let last = temperatures.next_back()?;
    ((last - first).abs() >= DEGREES).then(|| {
        let detail = format!("{place}{first:.0} °C after the first process, {last:.0} °C after the last");
        Lint::new(LintCode::TemperatureDrift, detail)
    })
}

// Blocks of a paired session that lost a process: the remaining processes don't follow the schedule, and the
// lost one may have been slow.

/// Returns the finding about a pair of series in which blocks differ in the number of processes of a side, or
/// use one slot twice. Processes without a slot were not scheduled in blocks.
pub fn lint_incomplete(base: &Readings, head: &Readings) -> Option<Lint> {
    let mut blocks: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    let mut slots = BTreeSet::new();
    let mut repeated = 0;
    for (readings, is_head) in [(base, false), (head, true)] {
        for slot in readings.slots.iter().flatten() {
            let counts = blocks.entry(slot.block).or_default();
            *(if is_head { &mut counts.1 } else { &mut counts.0 }) += 1;
            repeated += usize::from(!slots.insert(*slot));
        }
    }
    let whole = blocks.values().map(|(base, head)| *base.max(head)).max().unwrap_or_default();
    let unequal = blocks.values().filter(|counts| **counts != (whole, whole)).count();
    (unequal + repeated > 0).then(|| {
        let detail = format!(
            "blocks that lack processes: {unequal} of {}; schedule positions with more than one process: {repeated}",
            blocks.len()
        );
        Lint::new(LintCode::IncompleteBlocks, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(count: u32, change: impl Fn(u32, &mut Telemetry)) -> Benchmark {
        let mut benchmark = Benchmark::new("a");
        for order in 0..count {
            let mut telemetry = Telemetry { order, ..Telemetry::default() };
            change(order, &mut telemetry);
            benchmark.telemetry.push(telemetry);
        }
        benchmark
    }

    fn burnt(orders: &'static [u32]) -> Benchmark {
        side(8, |order, telemetry| {
            if orders.contains(&order) {
                telemetry.foreign_share = Some(0.5);
                telemetry.foreign = vec!["process 7 (burner)".into()];
            }
        })
    }

    fn codes(lints: &[Lint]) -> Vec<&'static str> {
        lints.iter().map(|lint| lint.code.as_str()).collect()
    }

    #[test]
    fn a_burner_in_one_block_is_said_and_the_verdict_stands() {
        let lints = of_row(&burnt(&[2, 3]), &burnt(&[2, 3]), Measured::Together);
        assert_eq!(codes(&lints), ["disturbed"]);
        let expected = "base: 2 of 8 processes, first in process 3: other programs used 50 % of the \
        measured processors: \
                        process 7 (burner); head: 2 of 8";
        assert!(lints[0].detail.starts_with(expected), "{}", lints[0].detail);
        assert_eq!(codes(&of_row(&burnt(&[1, 2]), &burnt(&[]), Measured::Together)), ["disturbed"]);
    }

    #[test]
    fn a_burner_that_found_one_side_only_forbids_a_verdict() {
        let all = &[0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(codes(&of_row(&burnt(&[]), &burnt(all), Measured::Together)), ["foreign-process"]);
        // On a machine that is never quiet, chance alone can cause this.
        assert_eq!(
            codes(&of_row(&burnt(&[0, 1]), &burnt(&[0, 2, 4, 5, 6]), Measured::Together)),
            ["disturbed"]
        );
        // In another session, base did not share the disturbance.
        assert_eq!(
            codes(&of_row(&burnt(&[0, 1, 2]), &burnt(&[0, 1, 2]), Measured::Apart)),
            ["foreign-process"]
        );
    }

    #[test]
    fn other_programs_during_most_processes_of_both_sides_make_the_host_busy() {
        let found = |base: &'static [u32], head: &'static [u32]| {
            let [base, head] =
                [base, head].map(|orders| Run { benchmarks: vec![burnt(orders)], ..Run::default() });
            busy(&base, &head).map(|lint| (lint.code, lint.detail))
        };
        let most = &[0, 1, 2, 3, 4];
        let detail = "other programs ran during most processes of 1 benchmark".to_owned();
        assert_eq!(found(most, most), Some((LintCode::HostBusy, detail)));
        assert_eq!(found(&[0, 1, 2, 3], most), None);
        assert_eq!(found(&[], &[]), None);
    }

    #[test]
    fn a_finding_says_which_side_was_disturbed() {
        let all = &[0, 1, 2, 3, 4, 5, 6, 7];
        let detail = |base: &Benchmark, head: &Benchmark, measured| {
            let lints = of_row(base, head, measured);
            lints[0].detail.split_once(", first").unwrap().0.to_owned()
        };
        let quiet = burnt(&[]);
        for (base, head, measured, said) in [
            (&quiet, &burnt(all), Measured::Together, "head: 8 of 8 processes"),
            (&quiet, &burnt(all), Measured::Apart, "while head was measured: 8 of 8 processes"),
            (&burnt(all), &quiet, Measured::Apart, "while base was measured: 8 of 8 processes"),
            (&quiet, &burnt(all), Measured::AfterStored, "while head was measured: 8 of 8 processes"),
            (&burnt(all), &quiet, Measured::AfterStored, "in the newest stored session: 8 of 8 processes"),
        ] {
            assert_eq!(detail(base, head, measured), said);
            let found = &of_row(base, head, measured)[0];
            let side = said.split_once(": ").unwrap().0;
            assert_eq!(disturbed_side(found).as_deref(), Some(side), "{found:?}");
        }
        // A session that is stored or converted does not know yet on which side it will be.
        let mut converted = Run { benchmarks: vec![burnt(all)], ..Run::default() };
        record_unfit(&mut converted);
        let [found] = converted.benchmarks[0].lints.as_slice() else { panic!("{converted:?}") };
        assert!(found.detail.starts_with("8 of 8 processes"), "{}", found.detail);
        assert!(recorded(found, SideName::Base).detail.starts_with("base: 8 of 8 processes"));
    }

    #[test]
    fn a_quiet_machine_and_one_that_was_not_watched_say_nothing() {
        assert!(of_row(&burnt(&[]), &burnt(&[]), Measured::Together).is_empty());
        assert!(of_row(&side(0, |_, _| {}), &side(0, |_, _| {}), Measured::Apart).is_empty());
    }

    #[test]
    fn heat_power_and_warming_are_distinguished() {
        let hot = side(8, |order, telemetry| {
            telemetry.temperature = Some(50.0 + f64::from(order) * 2.0);
            telemetry.power_capped = true;
            telemetry.throttled = vec!["heat".into()];
        });
        let cool = side(8, |_, telemetry| telemetry.temperature = Some(60.0));
        assert_eq!(
            codes(&of_row(&cool, &hot, Measured::Together)),
            ["throttled", "power-capped", "temperature-drift"]
        );
        assert_eq!(codes(&of_row(&cool, &cool, Measured::Together)), Vec::<&str>::new());
    }
}
