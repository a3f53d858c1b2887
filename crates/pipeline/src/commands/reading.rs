//! Reads the measurements of one process of a command: the benchmarks that it printed, or its own time.
//! Implausible output makes the process or the row fail, and is never used as a number.

use std::borrow::Cow;
use std::path::Path;

use benchgate_config::{CommandLine, OutputReading};
use benchgate_core::model::{
    Benchmark, Consequence, Context, Lint, LintCode, Metric, MetricSeries, Outcome, STANDARD_OUTPUT, Series,
    Stage, Unit,
};
use benchgate_core::record::{MOST_RESULT_BYTES, OutcomeRecord, SampleMap};
use benchgate_host::files;
use benchgate_host::process::{Exit, Finished};
use benchgate_ingest::{self, FileContent, Format};

use super::super::compile::failure;
use super::said::said;
use super::{CommandRows, PreparedCommand, Printed, PrintedRow, PrintedStatistic};

/// Measurements of a process of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) printed: Printed,
    pub(crate) context: Option<Context>,
}

/// Reads the results that a finished process printed or wrote to `output`.
///
/// # Errors
/// The reason why the process has no usable results.
pub(crate) fn read(
    command: &PreparedCommand,
    finished: &Finished,
    output: &Path,
) -> Result<CommandOutput, String> {
    if finished.exit != Exit::Success {
        return Err(failure(finished, None).why);
    }
    let mut output = printed(command, finished, output)?;
    // A script can hide the exit status of its program.
    let mut problems = benchgate_ingest::logged_problems(&finished.stderr_tail);
    let spec = &command.spec;
    // The reader of results has searched the text that contains them.
    if output.printed.format.is_none() || spec.run.names(CommandLine::OUTPUT) {
        problems.extend(benchgate_ingest::logged_problems(&String::from_utf8_lossy(&finished.stdout)));
    }
    for row in &mut output.printed.rows {
        row.lints.extend(problems.iter().cloned());
    }
    Ok(output)
}

/// Reads the results of a process that succeeded.
fn printed(command: &PreparedCommand, finished: &Finished, output: &Path) -> Result<CommandOutput, String> {
    let spec = &command.spec;
    if spec.reading == OutputReading::Whole {
        return whole(command, finished);
    }
    let results = results(command, finished, output)?;
    let bytes = results.as_ref();
    let format = match spec.reading {
        OutputReading::Format(format) => format,
        OutputReading::Detected | OutputReading::Whole => match benchgate_ingest::detect(bytes) {
            Some(format) => format,
            None if benchgate_ingest::content(bytes) == FileContent::Directionless => {
                return Err(format!("the command's results need a `format`: {}", FileContent::Directionless));
            }
            None if spec.run.names(CommandLine::OUTPUT) => {
                return Err(format!("`{}` is not in a known format", CommandLine::OUTPUT));
            }
            None if spec.run.names(CommandLine::FILTER) => {
                return Err("the command printed no benchmark in a known format".to_owned());
            }
            None => return unread(command, finished, bytes),
        },
    };
    if format == Format::RunJson {
        return Err("the command printed a run.json, which is not the output of a benchmark".to_owned());
    }
    let run = benchgate_ingest::read(bytes, format, "its output").map_err(|error| error.to_string())?;
    // The end of a log can show that the program crashed.
    let (problems, others): (Vec<Lint>, Vec<Lint>) =
        run.lints.into_iter().partition(|lint| lint.code == LintCode::ReportedProblem);
    if let Some(lint) = others.into_iter().find(|lint| lint.code.consequence() != Consequence::Note) {
        return Err(lint.detail);
    }
    let mut metrics: Vec<Metric> = Vec::new();
    let counts = |name: &str| spec.rows.is_empty() || spec.rows.iter().any(|row| row == name);
    let counted = run.benchmarks.iter().filter(|benchmark| counts(benchmark.name.as_str()));
    let mut rows: Vec<PrintedRow> = counted.map(|benchmark| row(command, benchmark, &mut metrics)).collect();
    for row in &mut rows {
        row.lints.extend(problems.iter().cloned());
    }
    let printed = Printed { format: Some(format), asked: None, metrics, rows };
    Ok(CommandOutput { printed, context: Some(run.context) })
}

/// Returns the bytes that a process printed or wrote to `output`.
fn results<'a>(
    command: &PreparedCommand,
    finished: &'a Finished,
    output: &Path,
) -> Result<Cow<'a, [u8]>, String> {
    if command.spec.run.names(CommandLine::OUTPUT) {
        let written = files::read_bounded(output, MOST_RESULT_BYTES);
        return written
            .map(Cow::Owned)
            .map_err(|error| format!("the command left no readable `{}`: {error}", CommandLine::OUTPUT));
    }
    if finished.stdout_truncated {
        return Err("the command printed more than benchgate keeps; let it write to `{output}`".to_owned());
    }
    Ok(Cow::Borrowed(&finished.stdout))
}

/// Returns whether a process of a command whose format is detected left results that can't be read unless the
/// configuration states their format. Such a process is never timed as a whole.
pub(super) fn needs_format(command: &PreparedCommand, finished: &Finished, output: &Path) -> bool {
    finished.exit == Exit::Success
        && command.spec.reading == OutputReading::Detected
        && results(command, finished, output).is_ok_and(|bytes| {
            benchgate_ingest::detect(&bytes).is_none()
                && benchgate_ingest::content(&bytes) == FileContent::Directionless
        })
}

/// Treats the process itself as one benchmark, with a finding if it printed something that may be its result.
fn unread(command: &PreparedCommand, finished: &Finished, bytes: &[u8]) -> Result<CommandOutput, String> {
    // Such a program usually runs until its time is over, so that the time of its process shows nothing.
    if let Some(word) = benchgate_ingest::time_of_an_operation(&String::from_utf8_lossy(bytes)) {
        return Err(format!(
            "the command prints times of its own (`{word}`) in no known format, so the time of its process may show \
             nothing: let it write a known format, or time whole processes (`format = \"whole\"`, `pair --whole`)"
        ));
    }
    let mut output = whole(command, finished)?;
    if !bytes.trim_ascii().is_empty() {
        let lint = Lint::new(LintCode::UnreadOutput, "the output has no known format");
        output.printed.rows.iter_mut().for_each(|row| row.lints.push(lint.clone()));
    }
    Ok(output)
}

/// Treats the process itself as one benchmark.
fn whole(command: &PreparedCommand, finished: &Finished) -> Result<CommandOutput, String> {
    if finished.leftovers > 0 {
        // The measured time would not include the work of the remaining processes.
        return Err(format!(
            "the command left {} running when it ended",
            benchgate_core::model::counted(finished.leftovers as usize, "process")
        ));
    }
    let nanoseconds = |seconds: std::time::Duration| seconds.as_secs_f64() * 1e9;
    let mut samples = SampleMap::default();
    samples.insert(Metric::LATENCY.name.into_owned(), vec![nanoseconds(finished.wall)]);
    let busy = nanoseconds(finished.user + finished.system);
    if busy > 0.0 {
        samples.insert(Metric::CPU_TIME.name.into_owned(), vec![busy]);
    }
    let said = (STANDARD_OUTPUT.to_owned(), said(&String::from_utf8_lossy(&finished.stdout)));
    // `pair --whole` says that the output doesn't matter.
    let is_ignored = command.rows == CommandRows::AsPrinted && command.spec.reading == OutputReading::Whole;
    let row = PrintedRow {
        name: command.spec.name.clone(),
        labels: (!is_ignored).then_some(said).into_iter().collect(),
        outcome: OutcomeRecord::from(&Outcome::Ok),
        lints: Vec::new(),
        iterations: None,
        statistic: PrintedStatistic::Repetitions,
        samples,
    };
    let metrics = vec![Metric::LATENCY, Metric::CPU_TIME];
    Ok(CommandOutput {
        printed: Printed { format: None, asked: None, metrics, rows: vec![row] },
        context: None,
    })
}

/// Converts one benchmark of the output. Its metrics are added to `metrics`.
fn row(command: &PreparedCommand, benchmark: &Benchmark, metrics: &mut Vec<Metric>) -> PrintedRow {
    let mut printed = PrintedRow {
        name: command.row_name(benchmark.name.as_str()),
        labels: benchmark.labels.clone(),
        outcome: OutcomeRecord::from(&benchmark.outcome),
        // Findings about an unknown spread within a process are dropped, because whole processes are
        // compared.
        lints: benchmark
            .lints
            .iter()
            .filter(|lint| !matches!(lint.code, LintCode::SingleRepetition | LintCode::AggregatesOnly))
            .cloned()
            .collect(),
        iterations: None,
        statistic: PrintedStatistic::Repetitions,
        samples: SampleMap::default(),
    };
    if benchmark.outcome.is_ok()
        && let Err(why) = measure(benchmark, &command.spec.metrics, metrics, &mut printed)
    {
        printed.samples = SampleMap::default();
        printed.outcome = OutcomeRecord::from(&Outcome::Failed { stage: Stage::Benchmark, why });
    }
    printed
}

/// Returns whether the configuration names a metric, as the program prints it or as benchgate calls it.
fn is_named(wanted: &str, name: &str) -> bool {
    wanted == name || benchgate_ingest::metric_name(wanted) == name
}

/// Reads the metrics in `wanted`, or all metrics. Other metrics are read if they show that both sides did the same work,
/// or did it equally well.
fn measure(
    benchmark: &Benchmark,
    wanted: &[String],
    metrics: &mut Vec<Metric>,
    row: &mut PrintedRow,
) -> Result<(), String> {
    let faulty = |lint: &&Lint| lint.code.consequence() == Consequence::Error;
    if let Some(lint) = benchmark.lints.iter().find(faulty) {
        return Err(lint.detail.clone());
    }
    let is_timed = wanted.iter().any(|wanted| is_named(wanted, &Metric::LATENCY.name));
    for series in &benchmark.metrics {
        let is_wanted =
            wanted.is_empty() || wanted.iter().any(|wanted| is_named(wanted, &series.metric.name));
        if is_wanted {
            add_metric(series, metrics, row)?;
        } else if benchgate_gate::is_check(&series.metric, is_timed) {
            // An unusable value shows nothing.
            drop(add_metric(series, metrics, row));
        }
    }
    if let Some(absent) =
        wanted.iter().find(|wanted| !row.samples.iter().any(|(name, _)| is_named(wanted, name)))
    {
        return Err(format!("{absent} was not printed for this benchmark"));
    }
    if row.samples.is_empty() { Err("no value was printed for this benchmark".to_owned()) } else { Ok(()) }
}

/// Adds the values of a metric to the row.
fn add_metric(series: &MetricSeries, metrics: &mut Vec<Metric>, row: &mut PrintedRow) -> Result<(), String> {
    let metric = &series.metric;
    let name = metric.name.as_ref();
    let known = metrics.iter().find(|known| known.name == metric.name);
    if let Some(known) = known.filter(|known| *known != metric) {
        return Err(format!("{name} is in {} here and in {} elsewhere", metric.unit, known.unit));
    }
    if Metric::built_in(name).is_some_and(|known| known != *metric) {
        return Err(format!("{name} is in {}", metric.unit));
    }
    let mut statistic = PrintedStatistic::Repetitions;
    let mut iterations = None;
    let values: Vec<f64> = match &series.series {
        Series::Exact(value) => vec![*value],
        Series::Processes(processes) => {
            iterations = processes.first().and_then(|process| process.iterations);
            processes.iter().flat_map(|process| process.samples.iter().copied()).collect()
        }
        Series::Summaries(summaries) => {
            let median = summaries.iter().all(|summary| summary.median.is_some());
            statistic = if median { PrintedStatistic::Median } else { PrintedStatistic::Mean };
            summaries.iter().filter_map(|it| if median { it.median } else { it.mean }).collect()
        }
    };
    let is_time = metric.unit == Unit::Nanoseconds;
    let unusable = |value: &&f64| {
        !value.is_finite() || **value < 0.0 && !metric.may_be_negative() || is_time && **value == 0.0
    };
    if let Some(value) = values.iter().find(unusable) {
        return Err(format!("{name} is {value}"));
    }
    if values.is_empty() {
        return Err(format!("{name} has no value"));
    }
    if known.is_none() {
        metrics.push(metric.clone());
    }
    if metric.name == Metric::LATENCY.name {
        row.statistic = statistic;
    }
    row.iterations = row.iterations.or(iterations);
    row.samples.insert(name.to_owned(), values);
    Ok(())
}
