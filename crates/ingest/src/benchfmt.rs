//! The Go benchmark format, which benchstat reads: `BenchmarkName-8  1000  123 ns/op  45 B/op`, with `key:
//! value` lines above. Lines with the same name are the repetitions of one process.
//!
//! Source: <https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md>.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use serde::Deserialize;

use benchgate_core::model::{Benchmark, Better, Lint, LintCode, Metric, Run, Stage, Unit};

use super::build::{
    carried, direction, direction_of_name, fail, has_room, own_metric, own_unit, processes, testbed,
};
use super::facts::{Field, footer, is_commit, problem, shared, state};
use super::json::parse_stream;
use super::logs::{crash, problems};
use super::text::{cut_line, lines, short};
use super::{LineFault, line_fault};

/// Maximum number of units of one benchmark: more of them are an attack.
const MAX_UNITS: usize = 64;

pub(super) fn is_result(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().and_then(|name| name.strip_prefix("Benchmark"));
    let named = name.is_some_and(|name| !name.starts_with(char::is_lowercase));
    named
        && words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        && words.next().is_some_and(|word| word.parse::<f64>().is_ok())
        && words.next().is_some_and(|word| word.contains('/'))
}

/// Returns whether the line has the values of a result, but not its name.
fn is_nameless(line: &str) -> bool {
    let words = line.split_ascii_whitespace().skip(2);
    words.take(1).any(|unit| unit.ends_with("/op")) && is_result(&format!("Benchmark {line}"))
}

/// The result lines with one name.
#[derive(Default)]
struct BenchfmtRows {
    name: String,
    /// The beginning of the names in its package.
    package: String,
    units: Vec<(String, Vec<f64>)>,
    /// Number of lines with values.
    lines: usize,
    failed: Option<String>,
    cut: bool,
    /// The key of a configuration line whose value changes between these lines.
    reconfigured: Option<String>,
    section: usize,
    /// The configuration lines above the first line.
    fields: Rc<Vec<Field>>,
}

pub(super) fn read(text: &str) -> Result<Run, LineFault> {
    let mut list: Vec<BenchfmtRows> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut config = Configuration::default();
    let mut broken = None;
    // The packages whose last run printed its last line; `begun` is set if a run has not named its package yet.
    let (mut skipped, mut ended, mut begun) = (HashSet::new(), HashSet::new(), false);
    // The benchmark whose log is being read, and a problem in the log of each.
    let (mut logging, mut logged) = (None, HashMap::new());
    for line in lines(text) {
        let mut words = line.text.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let (name, why) = match first.strip_prefix("Benchmark") {
            Some(name) if !name.starts_with(char::is_lowercase) => (first, None),
            _ => match of_framework(line.text, "--- FAIL: ") {
                Some(name) => (name, Some("the test framework reports FAIL")),
                None => {
                    // The name may follow a time stamp or a color code; other lines of this benchmark may
                    // have been read.
                    let mut within = line.text.match_indices("Benchmark").skip_while(|(at, _)| *at == 0);
                    if within.any(|(at, _)| is_result(&line.text[at..])) {
                        return Err(line_fault(line.number, "a result that is not at the start of its line"));
                    }
                    if is_nameless(line.text) {
                        return Err(line_fault(
                            line.number,
                            "a result without a name at the start of its line",
                        ));
                    }
                    skipped.extend(of_framework(line.text, "--- SKIP: ").map(|name| config.in_package(name)));
                    logging = of_framework(line.text, "--- BENCH: ")
                        .map(|name| config.in_package(name))
                        .or(logging);
                    if let Some((name, problem)) = logging.as_ref().zip(logged_problem(line.text)) {
                        logged.insert(name.clone(), problem);
                    }
                    if line.text == "PASS" || line.text.starts_with("ok  ") {
                        begun = false;
                        ended.insert(config.in_package(""));
                    }
                    broken = broken.or_else(|| is_broken(line.text).then(|| short(line.text.trim())));
                    config.read_line(line.text).map_err(|what| line_fault(line.number, what))?;
                    begun |= line.text.starts_with("goos:");
                    if line.text.starts_with("pkg:") {
                        begun = false;
                        ended.remove(&config.in_package(""));
                    }
                    continue;
                }
            },
        };
        let rest: Vec<&str> = words.collect();
        // With `-v`, the name is first printed alone. The name of a result ends with a tab, so a tab at the end of the
        // line shows that the benchmark printed something between its name and its values.
        if why.is_none() && rest.is_empty() && line.terminated && !line.text.ends_with('\t') {
            continue;
        }
        // The log may have several runs.
        ended.remove(&config.in_package(""));
        let name = config.in_package(name);
        if !index.contains_key(&name) && !has_room(list.len()) {
            break;
        }
        let section = config.changes;
        let fields = config.fields().map_err(|what| line_fault(line.number, what))?;
        let at = *index.entry(name).or_insert_with_key(|name| {
            let package = config.in_package("");
            list.push(BenchfmtRows {
                name: name.clone(),
                package,
                section,
                fields,
                ..BenchfmtRows::default()
            });
            list.len() - 1
        });
        let rows = &mut list[at];
        if rows.section < section {
            rows.reconfigured = Some(config.last_changed.clone());
        }
        match why {
            Some(why) => rows.failed = Some(why.to_owned()),
            None => rows.take(&rest).map_err(|what| line_fault(line.number, what))?,
        }
        rows.cut |= !line.terminated;
    }
    // Two files may be compared only if these facts are equal; the package is already part of the names.
    config.go.remove("pkg");
    // Rows of several commits are several experiments, which is a separate finding.
    let commit = config.own.iter().find(|(key, value)| is_commit(key) && !value.is_empty());
    let commit = commit.map(|(_, commit)| commit.clone());
    let testbed = testbed(config.go);
    let broken = broken
        .map(|line| Lint::new(LintCode::TruncatedInput, format!("the test framework reports `{line}`")));
    let lints = broken.into_iter().chain(config.machines).collect();
    let finish = |rows: BenchfmtRows| {
        let is_ended = ended.contains(&rows.package) && !begun;
        let fields = Rc::clone(&rows.fields);
        let mut benchmark = rows.finish();
        state(&mut benchmark, &fields);
        footer(&mut benchmark, is_ended);
        benchmark
    };
    let mut benchmarks: Vec<Benchmark> = list.into_iter().map(finish).collect();
    for benchmark in benchmarks.iter_mut().filter(|benchmark| skipped.contains(benchmark.name.as_str())) {
        benchmark.lints.push(Lint::new(LintCode::SkippedRow, "the test framework reports SKIP"));
    }
    for benchmark in &mut benchmarks {
        benchmark.lints.extend(logged.remove(benchmark.name.as_str()));
    }
    Ok(Run { benchmarks, testbed, lints, commit, ..Run::default() })
}

/// The `key: value` lines so far.
#[derive(Default)]
struct Configuration {
    /// The keys that `go test` writes.
    go: BTreeMap<String, String>,
    own: BTreeMap<String, String>,
    /// Number of changes of these values; each change starts another experiment, as in benchstat.
    changes: usize,
    last_changed: String,
    /// The facts among `own`, until it changes.
    fields: Option<Rc<Vec<Field>>>,
    /// Set if the file has results of two machines.
    machines: Option<Lint>,
}

impl Configuration {
    /// Returns the name with the package that the lines before it state.
    fn in_package(&self, name: &str) -> String {
        self.go.get("pkg").map_or_else(|| name.to_owned(), |pkg| format!("{pkg}/{name}"))
    }

    /// Returns the facts that the user's own keys state, such as `size: 1000`.
    fn fields(&mut self) -> Result<Rc<Vec<Field>>, &'static str> {
        if let Some(fields) = &self.fields {
            return Ok(Rc::clone(fields));
        }
        let own = self.own.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Rc::clone(self.fields.insert(Rc::new(shared(own)?))))
    }

    /// Reads the line if it is a configuration line.
    fn read_line(&mut self, line: &str) -> Result<(), &'static str> {
        let Some((key, value)) = line.split_once(':') else { return Ok(()) };
        let is_key = key.starts_with(char::is_lowercase)
            && !key.contains(|c: char| c.is_whitespace() || c.is_uppercase());
        if !is_key || !(value.is_empty() || value.starts_with([' ', '\t'])) {
            return Ok(());
        }
        // With `2>&1`, a text begins with messages of the go command: `go: downloading …`.
        if key == "warning" || key == "go" && !value.trim().starts_with("go1") {
            return Ok(());
        }
        let key = if key == "go" { "go version" } else { key };
        let value = carried(value.trim())?;
        let known = match key {
            "goos" | "goarch" | "pkg" | "cpu" => &mut self.go,
            _ if self.own.len() < MAX_UNITS || self.own.contains_key(key) => &mut self.own,
            _ => return Ok(()),
        };
        let before =
            known.insert(carried(key)?.to_owned(), value.to_owned()).filter(|before| before != value);
        self.fields = None;
        let Some(before) = before else { return Ok(()) };
        match key {
            // The package is already part of the names.
            "pkg" => {}
            "goos" | "goarch" | "cpu" => {
                let detail = format!("{key}: {} / {} in one file", short(&before), short(value));
                self.machines = Some(Lint::new(LintCode::TestbedMismatch, detail));
            }
            _ => {
                self.changes += 1;
                self.last_changed = key.to_owned();
            }
        }
        Ok(())
    }
}

/// Returns whether the line shows that the test binary did not finish, so that any of its benchmarks may lack
/// repetitions.
fn is_broken(line: &str) -> bool {
    line == "FAIL"
        || ["FAIL\t", "panic: ", "fatal error: ", "exit status ", "signal: "]
            .iter()
            .any(|start| line.starts_with(start))
}

/// Returns the problem that a benchmark logged, as `    a_test.go:7: diverged`.
fn logged_problem(line: &str) -> Option<Lint> {
    let (_, place) = line.trim_start().split_once(".go:")?;
    let (number, said) = place.split_once(": ")?;
    number.parse::<u32>().ok().and_then(|_| problem("log", said))
}

/// Returns the name in a line of the test framework that begins with `label`, as `--- FAIL: BenchmarkName`.
fn of_framework<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    let name = line.trim_start().strip_prefix(label)?.split_ascii_whitespace().next()?;
    name.starts_with("Benchmark").then_some(name)
}

impl BenchfmtRows {
    fn take(&mut self, rest: &[&str]) -> Result<(), String> {
        let [iterations, values @ ..] = rest else { return Err("a result without values".to_owned()) };
        if !iterations.parse::<u64>().is_ok_and(|iterations| iterations > 0) {
            return Err(format!("expected a count of iterations, found `{}`", short(iterations)));
        }
        if values.is_empty() || values.len() % 2 != 0 {
            return Err("every value needs a unit".to_owned());
        }
        self.lines += 1;
        let mut of_line = HashSet::new();
        for pair in values.chunks_exact(2) {
            let value: f64 =
                pair[0].parse().map_err(|_| format!("expected a number, found `{}`", short(pair[0])))?;
            let (unit, scale) = own_unit(pair[1]);
            let value = value * scale;
            // Two values of one unit in a line would count as two repetitions, so one could hide the other.
            if !of_line.insert(unit.clone()) {
                return Err(format!("two values in {}", short(&unit)));
            }
            match self.units.iter().position(|(known, _)| *known == unit) {
                Some(at) => self.units[at].1.push(value),
                None if self.units.len() < MAX_UNITS => self.units.push((unit.into_owned(), vec![value])),
                None => return Err(format!("more than {MAX_UNITS} units")),
            }
        }
        Ok(())
    }

    fn finish(self) -> Benchmark {
        let mut benchmark = Benchmark::new(&self.name);
        if let Some(why) = self.failed {
            fail(&mut benchmark, Stage::Benchmark, why);
            return benchmark;
        }
        for (unit, values) in self.units {
            let (metric, count) = (metric(&unit), values.len());
            // A failed or slow repetition may be the one without a value.
            if metric.name == Metric::LATENCY.name && count < self.lines {
                let detail = format!("{count} of {} lines have {}", self.lines, short(&unit));
                benchmark.lints.push(Lint::new(LintCode::TruncatedInput, detail));
            }
            processes(&mut benchmark, metric, 1.0, vec![values]);
        }
        if let Some(key) = self.reconfigured {
            let detail = format!("some of its lines are below a different `{key}:`");
            benchmark.lints.push(Lint::new(LintCode::DuplicateName, detail));
        }
        if self.cut {
            benchmark.lints.push(cut_line());
        }
        benchmark
    }
}

fn metric(unit: &str) -> Metric {
    if unit == "ns/op" {
        return Metric::LATENCY;
    }
    // Go's testing package has these two units, in which less is better.
    let better = match direction(unit) {
        _ if unit == "B/op" => Better::Lower,
        Better::Unknown => direction_of_name(unit),
        known => known,
    };
    own_metric(unit.to_owned(), Unit::parse(unit), better)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    #[serde(default)]
    output: String,
}

#[derive(Default)]
struct GoPackage {
    name: String,
    text: String,
    /// True if the last event is the package's own `pass`, `fail` or `skip`.
    ended: bool,
    /// True if the package failed, or one of its tests or benchmarks.
    failed: bool,
}

/// `go test -json`: the output of `go test`, split into events. Packages run at the same time, so their
/// events are interleaved.
pub(super) fn read_go_test(text: &str) -> Result<Run, LineFault> {
    let mut packages: Vec<GoPackage> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    parse_stream(text, |event: GoEvent| {
        let at = match index.get(&event.package) {
            Some(at) => *at,
            None => {
                let name = carried(&event.package)?.to_owned();
                packages.push(GoPackage { name, ..GoPackage::default() });
                index.insert(event.package, packages.len() - 1);
                packages.len() - 1
            }
        };
        let package = &mut packages[at];
        let is_final = matches!(event.action.as_str(), "pass" | "fail" | "skip") && event.test.is_none();
        // Building a package has events without a package.
        package.ended = is_final || event.action.starts_with("build-");
        match event.action.as_str() {
            "output" | "build-output" => package.text.push_str(&event.output),
            "build-fail" => package.failed = true,
            action @ ("pass" | "fail" | "skip") => {
                // A package without tests is skipped as a whole; it has no results either.
                let has_results = || package.text.contains(" ns/op");
                package.failed |= action == "fail" || (action == "skip" && package.ended && has_results());
            }
            _ => {}
        }
        Ok(())
    })?;
    let texts: String = packages.iter().flat_map(|package| [package.text.as_str(), "\n"]).collect();
    // A line number in the joined text doesn't exist in the file, so the error names line 1.
    let mut run = read(&texts).map_err(|fault| line_fault(1, fault.what))?;
    run.lints.extend(crash(&texts, true));
    run.lints.extend(problems(&texts));
    for package in packages.iter().filter(|package| !package.ended) {
        let detail = format!("the final event of package `{}` is missing", package.name);
        run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
    }
    for package in packages.iter().filter(|package| package.failed) {
        let detail =
            format!("an event says that package `{}` or a part of it failed or was skipped", package.name);
        run.lints.push(Lint::new(LintCode::TruncatedInput, detail));
    }
    Ok(run)
}
