//! JMH's `-rf json`. Every fork is a fresh JVM, so a fork is a process.

use std::collections::BTreeMap;

use serde::Deserialize;

use benchgate_core::model::{
    Benchmark, Better, ENVIRONMENT, Lint, LintCode, Metric, Quality, Run, Stage, Summary, Unit, is_in,
    name_words, words,
};

use super::build::{
    check_count, check_summary, contradict, direction, fail, own_metric, own_unit, processes, summary,
};
use super::join::ByName;
use super::json::{Value, parse, unique_entries};
use super::{LineFault, facts};

#[derive(Deserialize)]
struct JmhEntry {
    benchmark: String,
    mode: String,
    threads: Option<u64>,
    forks: Option<u64>,
    #[serde(rename = "measurementIterations")]
    iterations: Option<u64>,
    #[serde(rename = "warmupIterations")]
    warmups: Option<u64>,
    #[serde(rename = "warmupTime")]
    warmup_time: Option<String>,
    #[serde(rename = "warmupBatchSize")]
    warmup_batch: Option<u64>,
    #[serde(rename = "measurementTime")]
    time: Option<String>,
    /// Calls that one invocation makes.
    #[serde(rename = "measurementBatchSize")]
    batch: Option<u64>,
    #[serde(rename = "operationsPerInvocation")]
    operations: Option<u64>,
    jvm: Option<String>,
    #[serde(rename = "jvmArgs")]
    jvm_args: Option<Vec<String>>,
    #[serde(rename = "jdkVersion")]
    jdk_version: Option<String>,
    #[serde(rename = "vmName")]
    vm_name: Option<String>,
    #[serde(rename = "vmVersion")]
    vm_version: Option<String>,
    params: Option<BTreeMap<String, String>>,
    #[serde(rename = "primaryMetric")]
    primary: JmhScore,
    /// Values of profilers (`-prof gc`), and of the methods of a benchmark group.
    #[serde(default, rename = "secondaryMetrics", deserialize_with = "unique_entries")]
    secondary: Vec<(String, JmhScore)>,
    /// Fields that JMH doesn't write, and its version.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct JmhScore {
    score: Value,
    #[serde(rename = "scoreUnit")]
    unit: String,
    /// `0.0` is the smallest score, `50.0` the median, `100.0` the largest.
    #[serde(default, rename = "scorePercentiles")]
    percentiles: BTreeMap<String, Value>,
    /// Ends of the confidence interval of the mean; NaN if there are too few scores.
    #[serde(rename = "scoreConfidence")]
    interval: Option<(Value, Value)>,
    /// Scores by fork, then by iteration.
    #[serde(default, rename = "rawData")]
    raw: Vec<Vec<Option<f64>>>,
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let file: Vec<JmhEntry> = parse(text)?;
    let mut benchmarks = ByName::default();
    for mut entry in file {
        let others = std::mem::take(&mut entry.others);
        let mut benchmark = benchmark(entry);
        facts::state_results(&mut benchmark, &others, &[]);
        benchmarks.push_once(benchmark);
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

fn benchmark(entry: JmhEntry) -> Benchmark {
    let mut name = format!("{}/{}", entry.benchmark, entry.mode);
    for (param, value) in entry.params.iter().flatten() {
        name.push_str(&format!("/{param}={value}"));
    }
    // JMH's default number of threads is not part of the name.
    if let Some(threads) = entry.threads.filter(|threads| *threads != 1) {
        name.push_str(&format!("/threads={threads}"));
    }
    let mut benchmark = Benchmark::new(name);
    benchmark.labels.insert("mode".to_owned(), entry.mode);
    benchmark.labels.extend(entry.params.into_iter().flatten());
    // Flags of the virtual machine, except for paths, and its build decide how fast any program is.
    let is_flag = |word: &&str| {
        // Sizes of memory are reported; logs and dumps have names of their own on each side.
        let others = [
            "-Xmx",
            "-Xms",
            "-Xmn",
            "-Xss",
            "-Xlog",
            "-XX:StartFlightRecording",
            "-XX:HeapDumpPath",
            "-XX:ErrorFile",
        ];
        (word.starts_with("-X") || word.starts_with("-ea"))
            && !word.contains(['/', '\\'])
            && !others.iter().any(|start| word.starts_with(start))
    };
    let flags = entry.jvm_args.as_ref().map(|words| {
        let words = words.iter().map(|word| if word == "-enableassertions" { "-ea" } else { word.as_str() });
        let settings = words.filter_map(|word| {
            if is_flag(&word) { Some(word.to_owned()) } else { property(word).or_else(|| agent(word)) }
        });
        let mut flags: Vec<String> = settings.collect();
        flags.sort_unstable();
        flags.join(" ")
    });
    let build = entry.vm_version.as_ref().map(|version| {
        let debug = ["fastdebug", "slowdebug"].into_iter().find(|build| version.contains(build));
        debug.unwrap_or("release").to_owned()
    });
    for (label, value) in [("jvm-flags", flags), ("jvm-build", build)] {
        benchmark.labels.extend(value.map(|value| (label.to_owned(), value)));
    }
    let environment = [
        ("jvm", entry.jvm),
        ("jvmArgs", entry.jvm_args.map(|words| without_places(&words).join(" "))),
        ("jdkVersion", entry.jdk_version),
        ("vmName", entry.vm_name),
        ("vmVersion", entry.vm_version),
    ];
    for (name, value) in environment.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        benchmark.labels.insert(format!("{ENVIRONMENT}{name}"), value);
    }
    for (label, stated) in [("batch-size", entry.batch), ("operations-per-invocation", entry.operations)] {
        // Both numbers are 1 by default, and files that don't state them are old.
        benchmark.labels.insert(label.to_owned(), stated.unwrap_or(1).to_string());
    }
    let count = |stated: Option<u64>| stated.map(|count| count.to_string());
    let forked = entry.forks.map(|forks| if forks == 0 { "no" } else { "yes" }.to_owned());
    // A program that is less warm, or whose iterations are shorter, does other work.
    let design = [
        ("forked", forked),
        ("warmupIterations", count(entry.warmups)),
        ("warmupTime", entry.warmup_time),
        ("warmupBatchSize", count(entry.warmup_batch)),
        ("measurementTime", entry.time),
    ];
    for (name, stated) in design {
        benchmark.labels.insert(name.to_owned(), stated.unwrap_or_else(|| "not stated".to_owned()));
    }
    let Some((metric, scale)) = metric(&entry.primary.unit) else {
        let detail = format!("score unit `{}`", entry.primary.unit);
        benchmark.lints.push(Lint::new(LintCode::UnknownUnit, detail));
        return benchmark;
    };
    // The mode `thrpt` counts operations; all other modes measure the time of one operation.
    if (metric.better == Better::Higher) != (benchmark.labels["mode"] == "thrpt") {
        let detail = format!("mode `{}` with the unit `{}`", benchmark.labels["mode"], entry.primary.unit);
        contradict(&mut benchmark, detail);
    }
    let forks = entry.primary.forks();
    if !forks.is_empty() {
        // With zero forks, JMH measures once in its own process.
        check_count(&mut benchmark, entry.forks.map(|forks| forks.max(1)), forks.len(), "forks");
        let short = forks.iter().map(Vec::len).find(|length| Some(*length as u64) != entry.iterations);
        if let Some(short) = short {
            check_count(&mut benchmark, entry.iterations, short, "iterations of a fork");
        }
        check_summary(&mut benchmark, &forks.concat(), &entry.primary.stated());
        processes(&mut benchmark, metric, scale, forks);
    } else if entry.primary.score.0.is_nan() {
        fail(&mut benchmark, Stage::Benchmark, "the score is NaN and no iteration was kept");
    } else {
        // The error next to the score is an interval whose n is not stated, not a standard deviation.
        check_summary(&mut benchmark, &[], &entry.primary.stated());
        let stated = Summary { mean: Some(entry.primary.score.0), ..Summary::default() };
        summary(&mut benchmark, metric, scale, stated);
    }
    for (name, score) in entry.secondary.iter().take(MOST_SECONDARY) {
        // Releases before 1.36 mark a profiler's metrics with a dot: `·gc.alloc.rate.norm`.
        let name = name.trim_start_matches('·').to_owned();
        if name == Metric::LATENCY.name || benchmark.metric(&name).is_some() {
            let detail = format!("{name}: a metric of this name exists already");
            benchmark.lints.push(Lint::new(LintCode::DroppedMetric, detail));
            continue;
        }
        let better = match score.unit.as_str() {
            _ if Quality::of_name(&name) == Some(Quality::Failures) => Better::Lower,
            unit if unit.starts_with("ops/") => Better::Higher,
            // The cost of one operation, or the work of the garbage collector.
            unit if unit.ends_with("/op") || name.starts_with("gc.") => Better::Lower,
            unit => direction(unit),
        };
        let (unit, scale) = own_unit(&score.unit);
        let metric = own_metric(name, Unit::parse(&unit), better);
        // A profiler's time is zero if nothing happened, but a time of zero was not measured anywhere else.
        if metric.unit == Unit::Nanoseconds && score.forks().iter().flatten().any(|time| *time == 0.0) {
            let detail = format!("{}: a time of zero", metric.name);
            benchmark.lints.push(Lint::new(LintCode::DroppedMetric, detail));
            continue;
        }
        match score.forks() {
            forks if forks.is_empty() => {
                let stated = Summary { mean: Some(score.score.0), ..Summary::default() };
                summary(&mut benchmark, metric, scale, stated);
            }
            forks => processes(&mut benchmark, metric, scale, forks),
        }
    }
    benchmark
}

/// Returns the arguments of the virtual machine without paths and other values that differ between two runs.
fn without_places(words: &[String]) -> Vec<&str> {
    let is_kept = |word: &&str| match word.starts_with("-D") {
        true => property(word).is_some(),
        false => !word.contains(['/', '\\']) && !word.starts_with("-XX:ErrorFile"),
    };
    words.iter().map(String::as_str).filter(is_kept).collect()
}

/// Returns a system property (`-Dbench.n=1000`) that a program may depend on, unless its name or value shows that it may
/// differ between two runs of one program.
fn property(word: &str) -> Option<String> {
    const OWN: &str = "id ids uuid pid port ports host hostname address tmp temp tmpdir encoding date timestamp \
        version build commit sha revision branch";
    let (name, value) = word.strip_prefix("-D").map(|rest| rest.split_once('=').unwrap_or((rest, "")))?;
    let lower = name_words(name);
    let is_own = name.starts_with("user.") || words(&lower).iter().any(|word| is_in(OWN, word));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // `localhost:8080`, `10.0.0.1`
    let is_address = value.rsplit_once(':').is_some_and(|(_, port)| is_number(port))
        || value.split('.').count() == 4 && value.split('.').all(is_number);
    // `2026-11-29T10:00:00`
    let is_date = value.get(..10).is_some_and(|day| {
        let parts: Vec<&str> = day.split('-').collect();
        parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.into_iter().all(is_number)
    });
    let is_id = value.len() >= 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_place = value.contains(['/', '\\']) || value.starts_with("tmp") || is_address;
    (!is_own && !is_place && !is_date && !is_id).then(|| word.to_owned())
}

/// Returns an agent by the name of its file, without the folder and version: `-javaagent:lib/stub-1.2.jar=x` is
/// `-javaagent:stub`.
fn agent(word: &str) -> Option<String> {
    let mut kinds = ["-javaagent:", "-agentlib:", "-agentpath:"].into_iter();
    let (kind, rest) = kinds.find_map(|kind| Some((kind, word.strip_prefix(kind)?)))?;
    let path = rest.split_once('=').map_or(rest, |(path, _)| path);
    let file = path.rsplit(['/', '\\']).next()?;
    let stem =
        [".jar", ".so", ".dll", ".dylib"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
    let is_version = |at: &usize| stem[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let end = stem.match_indices('-').map(|(at, _)| at).find(is_version).unwrap_or(stem.len());
    Some(format!("{kind}{}", &stem[..end]))
}

/// Maximum number of metrics next to the score of one benchmark: more of them are an attack.
const MOST_SECONDARY: usize = 64;

impl JmhScore {
    /// Returns the statistics that the file states for the scores of all forks.
    fn stated(&self) -> Summary {
        let percentile = |name| self.percentiles.get(name).map(|score| score.0);
        Summary {
            mean: Some(self.score.0),
            median: percentile("50.0"),
            min: percentile("0.0"),
            max: percentile("100.0"),
            interval: self.interval.as_ref().map(|(low, high)| (low.0, high.0)),
            ..Summary::default()
        }
    }

    /// Returns the scores of each fork that has any.
    fn forks(&self) -> Vec<Vec<f64>> {
        let forks = self.raw.iter().filter(|fork| !fork.is_empty());
        forks.map(|fork| fork.iter().map(|score| score.unwrap_or(f64::NAN)).collect()).collect()
    }
}

/// Returns the metric of a unit: `us/op` is the time of an operation, `ops/ms` a throughput.
fn metric(unit: &str) -> Option<(Metric, f64)> {
    let (unit, scale) = own_unit(unit);
    let metric = match unit.as_ref() {
        "ns/op" => Metric::LATENCY,
        "ops/s" => own_metric("throughput", Unit::PerSecond, Metric::THROUGHPUT.better),
        _ => return None,
    };
    Some((metric, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_that_differ_between_runs_of_one_program_are_no_settings() {
        for word in [
            "-Dbench.n=1000",
            "-Dkernel=gpu",
            "-Dfast",
            "-Dbench.file=large.bin",
            "-Djmh.blackhole.mode=FULL",
        ] {
            assert_eq!(property(word).as_deref(), Some(word));
        }
        for word in [
            "-Djava.io.tmpdir=x",
            "-Duser.name=a",
            "-Dfile.encoding=UTF-8",
            "-Dcom.sun.management.jmxremote.port=9010",
            "-Drun.id=7",
            "-Dproject.version=1.2",
            "-Djava.library.path=/a/lib",
            "-Ddata=C:\\data",
            "-Dserver=localhost:8080",
            "-Dpeer=10.0.0.1",
            "-Dstarted=2026-11-29T10:00:00",
            "-Dwork=tmp4711",
            "-Dsession=0b9d1c3e-7a5f-4f1e-9d7a-3a1f0c2b4d5e",
            "-Xmx1g",
        ] {
            assert_eq!(property(word), None, "{word}");
        }
        assert_eq!(agent("-javaagent:/a/b/stub-1.2.3.jar=x=1").as_deref(), Some("-javaagent:stub"));
        assert_eq!(agent("-javaagent:co-agent.jar").as_deref(), Some("-javaagent:co-agent"));
        assert_eq!(agent("-agentlib:jdwp=transport=x").as_deref(), Some("-agentlib:jdwp"));
        assert_eq!(agent("-agentpath:/opt/async.so=start").as_deref(), Some("-agentpath:async"));
        assert_eq!(agent("-Xint"), None);
    }
}
