//! Findings about whole runs: what the tool printed about its host, and whether the machines agree.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    Benchmark, Consequence, Context, Lint, LintCode, Metric, Run, Series, SideName, Subject, Testbed, excerpt,
};
use benchgate_stats::classical::{UMethod, mann_whitney};
use benchgate_stats::describe;

use super::evidence::{Evidence, SpreadSource};
use super::status::is_reported;

/// Share of the processors, beyond the one that the benchmark itself needs, that may be busy before a host
/// counts as overloaded. At three quarters, the scheduler no longer finds idle cores quickly.
const BUSY_SHARE: f64 = 0.75;

/// Findings that ask for more data. These findings are not reported for informational metrics.
pub const ABOUT_LITTLE_DATA: [LintCode; 3] =
    [LintCode::SingleRepetition, LintCode::AssumedSpread, LintCode::AggregatesOnly];

/// Returns the findings from the context of one side.
pub fn of_context(context: &Context) -> Vec<Lint> {
    let mut lints = Vec::new();
    if let (Some(&load), Some(cpus)) = (context.load_avg.first(), context.num_cpus)
        && load.is_finite()
        && load - 1.0 >= BUSY_SHARE * f64::from(cpus)
    {
        let detail = format!(
            "load average {load:.1} on {}",
            benchgate_core::model::counted(cpus as usize, "processor")
        );
        lints.push(Lint::new(LintCode::HostOverloaded, detail));
    }
    lints.extend(context.debug_build());
    if context.cpu_scaling_enabled == Some(true) {
        lints.push(Lint::new(LintCode::CpuScaling, "frequency scaling is enabled"));
    }
    lints
}

/// The least number of sessions of each side whose loads are compared.
const ENOUGH_LOADS: usize = 10;

/// Probability below which the loads of the sides' sessions don't differ by chance. It is large, because a difference
/// that is overlooked could be taken for a slowdown.
const OTHER_LOAD: f64 = 0.2;

/// Returns whether so many sessions of both sides state their load that a difference would show, and none does.
fn are_loaded_alike(base: &Run, head: &Run) -> bool {
    let sides = [base, head].map(|run| run.origin.loads.as_slice());
    let is_stated = |(run, loads): (&Run, &[f64])| {
        loads.len() >= ENOUGH_LOADS && loads.len() == run.origin.sessions.len()
    };
    let are_alike = |one: &[f64], two: &[f64]| {
        mann_whitney(one, two, UMethod::Auto).is_some_and(|test| test.two_sided >= OTHER_LOAD)
    };
    // The loads of one side may vary more, around the same middle.
    let distances = describe::median(&sides.concat())
        .map(|middle| sides.map(|loads| loads.iter().map(|load| (load - middle).abs()).collect::<Vec<_>>()));
    is_stated((base, sides[0]))
        && is_stated((head, sides[1]))
        && are_alike(sides[0], sides[1])
        && distances.is_some_and(|[base, head]| are_alike(&base, &head))
}

/// Returns by which factor other programs can slow down a benchmark with one thread at the load that a run states.
pub fn load_factor(context: &Context) -> f64 {
    let load = context.load_avg.first().copied().filter(|load| load.is_finite());
    load.zip(context.num_cpus).map_or(1.0, |(load, cpus)| (load / f64::from(cpus.max(1))).max(1.0))
}

/// Returns the finding that one side was measured with a debug build and the other was not: the program was probably
/// built like the library.
fn other_build(base: &Run, head: &Run) -> Option<Lint> {
    let side = match [base, head].map(Run::is_debug_build) {
        [true, false] => SideName::Base,
        [false, true] => SideName::Head,
        _ => return None,
    };
    let detail = format!("only the benchmark library of {side} is a debug build");
    Some(Lint::new(LintCode::WorkloadChanged, detail))
}

/// Factor by which two statements of a clock may differ: a tool may state the clock of the moment.
const OTHER_CLOCK: f64 = 1.1;

/// Returns whether two clocks, in any unit, differ so much that they explain a change of the time.
pub fn is_other_clock(base: f64, head: f64) -> bool {
    (base / head).max(head / base) > OTHER_CLOCK
}

/// Returns the finding that two different tools wrote the results: one times a whole process and the other a
/// function, so even equal names don't make their times comparable.
fn other_tool(base: &Run, head: &Run) -> Option<Lint> {
    let (base, head) = (tool(&base.origin.format)?, tool(&head.origin.format)?);
    (base != head).then(|| {
        let detail = format!(
            "base is a result of {base} and head one of {head}: different tools time different things"
        );
        Lint::new(LintCode::WorkloadChanged, detail)
    })
}

/// Returns the tool that writes a format; `None` for benchgate's own formats and github-action-benchmark's lists,
/// which can come from any tool.
fn tool(format: &str) -> Option<&str> {
    const FAMILIES: [(&str, &str); 6] = [
        ("google-benchmark", "Google Benchmark"),
        ("criterion", "cargo bench"),
        ("cargo-bench", "cargo bench"),
        ("benchfmt", "go test"),
        ("go-test", "go test"),
        ("compile-benchmark", "the compile benchmark"),
    ];
    let is_general = ["run-json", "benchgate/", "custom-"].iter().any(|start| format.starts_with(start));
    if format.is_empty() || is_general {
        return None;
    }
    let family = FAMILIES.iter().find(|(start, _)| format.starts_with(start));
    Some(family.map_or(format, |(_, tool)| tool))
}

/// Returns findings about both runs, each of which names its side, including those that a reader attached to
/// the run.
pub fn of_runs(base: &Run, head: &Run) -> Vec<Lint> {
    let mut lints = Vec::new();
    for (side, run) in [(SideName::Base, base), (SideName::Head, head)] {
        let mut found = of_context(&run.context);
        if base.session.is_some() && base.session == head.session || are_loaded_alike(base, head) {
            // Both sides ran under the same load, and the interval includes its effect.
            for lint in found.iter_mut().filter(|lint| lint.code == LintCode::HostOverloaded) {
                lint.code = LintCode::HostBusy;
            }
        }
        let is_known = |lint: &Lint| {
            lint.code == LintCode::ReportedProblem
                && (side == SideName::Base || is_reported(&base.lints, lint))
        };
        let of_run = run.lints.iter().filter(|l| found.iter().all(|f| f.code != l.code) && !is_known(l));
        found.extend(of_run.cloned().collect::<Vec<_>>());
        lints.extend(found.into_iter().map(|l| Lint::new(l.code, format!("{side}: {}", l.detail))));
    }
    lints.extend(testbeds(base, head));
    lints.extend(other_tool(base, head));
    lints.extend(other_build(base, head));
    if let (Some(base), Some(head)) = (&base.toolchain, &head.toolchain)
        && base != head
    {
        let detail = format!(
            "base {} ({}), head {} ({})",
            base.version, base.compiler_commit, head.version, head.compiler_commit
        );
        lints.push(Lint::new(LintCode::ToolchainMismatch, detail));
    }
    lints.extend(lost_repetitions(base, head));
    lints.extend(lost_sessions(base, head));
    lints.extend(environments(base, head));
    // Foreign tools only know the commit of the folder in which they ran.
    if let (None, None, Some(commit)) = (&base.session, &head.session, &base.commit)
        && head.commit.as_ref() == Some(commit)
    {
        lints.push(Lint::new(LintCode::SameCommit, excerpt(commit, LONGEST_COMMIT)));
    }
    lints
}

/// Maximum number of characters of a commit in a finding.
const LONGEST_COMMIT: usize = 48;

/// Returns the finding that a file of head has fewer repetitions of a benchmark than base's files, although another of
/// its files or benchmarks has as many: tables don't state how many there should be, and a crash leaves whole rows. If
/// there are several files of lines, none may have less than half of the lines that any file of base has.
fn lost_repetitions(base: &Run, head: &Run) -> Option<Lint> {
    let is_lines = |run: &Run| run.origin.format == "latency-csv";
    let is_table =
        |run: &Run| matches!(&*run.origin.format, "google-benchmark-csv" | "google-benchmark-console");
    // The number of repetitions in each file, and their sum.
    let totals = |side: &Benchmark| -> Vec<(usize, f64)> {
        let mut of_session: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
        if let Some(Series::Processes(processes)) =
            side.metric(&Metric::LATENCY.name).map(|found| &found.series)
        {
            for process in processes {
                let (count, sum) = of_session.entry(process.session).or_default();
                *count += process.samples.len();
                *sum += process.samples.iter().sum::<f64>();
            }
        }
        of_session.into_values().collect()
    };
    let counts =
        |side: &Benchmark| -> Vec<usize> { totals(side).into_iter().map(|(count, _)| count).collect() };
    let least_share = match [base, head] {
        sides if sides.into_iter().all(is_table) => 1.0,
        // A program that measures for a fixed time writes a few lines more or less.
        sides if sides.into_iter().all(is_lines) => 0.5,
        _ => return None,
    };
    let of_base = base.by_name();
    let pairs: Vec<(&Benchmark, usize, Vec<usize>)> = head
        .benchmarks
        .iter()
        .filter_map(|head| Some((head, *counts(of_base.get(&head.name)?).iter().min()?, counts(head))))
        .collect();
    let is_kept =
        pairs.iter().any(|(_, wanted, found)| *wanted > 1 && found.iter().any(|count| count >= wanted));
    // The other lines may have another name.
    let new = head.benchmarks.iter().filter(|head| !of_base.contains_key(&head.name));
    let renamed: BTreeSet<usize> = new.flat_map(counts).collect();
    // A loop of a fixed duration has fewer lines if each takes longer.
    let is_cut = |head: &Benchmark| {
        let sides = of_base.get(&head.name).map(|base| [totals(base), totals(head)]);
        sides.filter(|sides| is_lines(base) && sides.iter().all(|files| files.len() > 1)).is_some_and(
            |[base, head]| {
                let is_less =
                    |few: &(usize, f64), many: &(usize, f64)| 2 * few.0 < many.0 && 2.0 * few.1 < many.1;
                head.iter().any(|few| base.iter().all(|many| is_less(few, many)))
            },
        )
    };
    let lost = pairs.iter().find_map(|(head, wanted, found)| {
        let is_few = |count: usize| count < *wanted && count as f64 <= least_share * *wanted as f64;
        let fewest = found.iter().min().filter(|fewest| is_few(**fewest))?;
        (is_kept || renamed.contains(&(wanted - fewest)) || is_cut(head)).then_some((head, wanted, fewest))
    });
    let (head, wanted, fewest) = lost?;
    let detail =
        format!("head: a file has {fewest} repetitions of {}, base's files have {wanted}", head.name);
    Some(Lint::new(LintCode::TruncatedInput, detail))
}

/// Returns the finding that a benchmark is in fewer of head's files than of base's, and in a smaller share of them. Files
/// of several programs may lie in one folder, so each side alone doesn't show that some lack a benchmark.
fn lost_sessions(base: &Run, head: &Run) -> Option<Lint> {
    let all = [base, head].map(|run| run.origin.sessions.len());
    let of_base = base.by_name();
    head.benchmarks.iter().filter(|_| all.iter().all(|all| *all > 1)).find_map(|head| {
        let sessions = |side: &Benchmark| side.metrics.iter().filter_map(|it| it.series.sessions()).max();
        let (before, now) = sessions(of_base.get(&head.name)?).zip(sessions(head))?;
        let is_lost = now < before && now * all[0] < before * all[1];
        let detail = || {
            let [of_base, of_head] = all;
            format!("head: {} is in {now} of {of_head} files, at base in {before} of {of_base}", head.name)
        };
        let is_known = head.lints.iter().any(|lint| lint.code == LintCode::IncompleteJoin);
        (is_lost && !is_known).then(|| Lint::new(LintCode::IncompleteJoin, detail()))
    })
}

/// Returns the finding that foreign tools state other environments for some benchmarks. The interpreter may be what
/// changed.
fn environments(base: &Run, head: &Run) -> Option<Lint> {
    /// Maximum number of differences in a finding.
    const MOST: usize = 6;
    let of_base = base.by_name();
    let pairs = head.benchmarks.iter().filter_map(|head| Some((of_base.get(&head.name)?, head)));
    let differing: BTreeSet<String> =
        pairs.flat_map(|(base, head)| base.differing_environment(head)).collect();
    let mut shown: Vec<String> = differing.iter().take(MOST).cloned().collect();
    if differing.len() > MOST {
        shown.push(format!("{} more", differing.len() - MOST));
    }
    (!shown.is_empty()).then(|| Lint::new(LintCode::ToolchainMismatch, shown.join(", ")))
}

/// Returns the finding that forbids comparing the two runs, by their fingerprints if both have one and
/// otherwise by what tools print about the machine.
fn testbeds(base: &Run, head: &Run) -> Option<Lint> {
    let fingerprints = base.testbed.as_ref().zip(head.testbed.as_ref());
    if let Some(differing) = fingerprints.and_then(|(base, head)| differing_facts(base, head)) {
        return Some(Lint::new(LintCode::TestbedMismatch, differing));
    }
    // If head's result states less about its machine than base's, although both are of the same tool, it may
    // come from another machine.
    if base.origin.format == head.origin.format {
        let states = |run: &Run| [run.testbed.is_some(), run.context.num_cpus.is_some()];
        if states(base).into_iter().zip(states(head)).any(|(base, head)| base && !head) {
            return Some(Lint::new(LintCode::TestbedMismatch, "base states its machine, but head does not"));
        }
    }
    // One session measures both sides on one machine, but two versions of a tool may count its processors
    // differently.
    let together = base.session.is_some() && base.session == head.session;
    match (base.context.num_cpus, head.context.num_cpus) {
        (Some(base), Some(head)) if base != head && !(together && fingerprints.is_some()) => {
            return Some(Lint::new(LintCode::TestbedMismatch, format!("{base} / {head} processors")));
        }
        _ => {}
    }
    let chips = fingerprints.and_then(|(base, head)| other_chip(base, head));
    // benchgate's fingerprint identifies a kind of machine; if it is complete, the host's name adds no information.
    let is_own = base.session.is_some() || head.session.is_some();
    match (&base.context.host_name, &head.context.host_name) {
        (Some(one), Some(two)) if one != two && !(is_own && fingerprints.is_some()) => {
            let clocks = base.context.mhz_per_cpu.zip(head.context.mhz_per_cpu);
            let hosts = format!("{one} / {two}");
            Some(match clocks.filter(|(base, head)| is_other_clock(*base, *head)) {
                Some((base, head)) => {
                    Lint::new(LintCode::TestbedMismatch, format!("{hosts}, {base:.0} / {head:.0} MHz"))
                }
                None => Lint::new(LintCode::OtherHost, hosts),
            })
        }
        _ => chips,
    }
}

/// Returns the facts in which two fingerprints differ, if they belong to different machines.
fn differing_facts(base: &Testbed, head: &Testbed) -> Option<String> {
    let same_id = base.id == head.id;
    let keys = base.facts.keys().chain(head.facts.keys().filter(|key| !base.facts.contains_key(*key)));
    let differing = keys.filter(|key| match (base.facts.get(*key), head.facts.get(*key)) {
        (Some(base), Some(head)) => base != head,
        // Many tools identify a machine but don't state all of its facts each time.
        _ => !same_id,
    });
    let fact =
        |testbed: &Testbed, key| testbed.facts.get(key).cloned().unwrap_or_else(|| "unknown".to_owned());
    let differing: Vec<String> =
        differing.take(4).map(|key| format!("{key}: {} / {}", fact(base, key), fact(head, key))).collect();
    match (differing.is_empty(), same_id) {
        (false, _) => Some(differing.join(", ")),
        (true, false) => Some(format!("testbed {} / {}", base.id, head.id)),
        (true, true) => None,
    }
}

/// Returns the finding that the chips differ. Machines of one kind are one testbed, but their chips can still
/// differ by up to a tenth.
fn other_chip(base: &Testbed, head: &Testbed) -> Option<Lint> {
    let chips = base.notes.get("gpu-id").zip(head.notes.get("gpu-id"));
    let (base, head) = chips.filter(|(base, head)| base != head)?;
    Some(Lint::new(LintCode::OtherHost, format!("another chip of the same kind: {base} / {head}")))
}

/// Words in the name of a target that identify a GPU.
const GPU_WORDS: [&str; 10] =
    ["cuda", "hip", "rocm", "vulkan", "metal", "gpu", "nvidia", "amdgpu", "gfx", "webgpu"];

/// Returns whether a benchmark ran on a GPU, from its labels or its name. If that is unknown, a processor is
/// assumed, because its assumed spread is larger.
pub fn on_gpu(benchmark: &Benchmark) -> bool {
    let says = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| GPU_WORDS.iter().any(|gpu| word.starts_with(gpu)))
    };
    let labels = ["target", "device", "backend"].into_iter().filter_map(|key| benchmark.labels.get(key));
    let mut labels = labels.peekable();
    if labels.peek().is_some() {
        return labels.any(|label| says(label));
    }
    says(benchmark.name.as_str())
}

/// Returns the target that a benchmark belongs to, if known.
pub fn target(pair: super::status::Matched<'_>) -> Option<String> {
    pair.any()?.labels.get("target").cloned()
}

/// Returns the first lint that forbids judging any noisy row.
pub fn forbidding(lints: &[Lint]) -> Option<&Lint> {
    first_forbidding(lints.iter())
}

/// Returns the first lint that forbids judging even a row whose result no load explains.
pub fn forbidding_at_any_load(lints: &[Lint]) -> Option<&Lint> {
    first_forbidding(lints.iter().filter(|lint| lint.code != LintCode::HostOverloaded))
}

/// Returns the first lint that forbids judging a row with this evidence. A declared spread covers everything
/// in which processes differ, so a process that measured once counts like any other.
pub fn forbidding_with<'a>(lints: &'a [Lint], evidence: &Evidence) -> Option<&'a Lint> {
    let is_declared = matches!(evidence, Evidence::Unpaired { source: SpreadSource::Declared, .. });
    first_forbidding(lints.iter().filter(|lint| !is_declared || lint.code != LintCode::SingleRepetition))
}

fn first_forbidding<'a>(lints: impl Iterator<Item = &'a Lint> + Clone) -> Option<&'a Lint> {
    use Consequence::{Error, Inconclusive};
    let first = |consequence| lints.clone().find(|lint| lint.code.consequence() == consequence);
    first(Error).or_else(|| first(Inconclusive))
}

/// Returns whether a finding forbids a verdict about a benchmark, whatever the metric.
pub fn is_about_benchmark(code: LintCode) -> bool {
    code.consequence() == Consequence::Error || code.subject() == Some(Subject::Benchmark)
}

/// Keeps one lint of each code and detail, in order.
pub fn deduplicate(lints: Vec<Lint>) -> Vec<Lint> {
    let mut kept: Vec<Lint> = Vec::with_capacity(lints.len());
    for lint in lints {
        if !kept.contains(&lint) {
            kept.push(lint);
        }
    }
    kept
}
