//! Findings about the data. Lints are data with stable codes, never errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect of a lint on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Consequence {
    /// Only reported.
    Note,
    /// The row can't be green, but red.
    NotGreen,
    /// The row can't be green or red.
    Inconclusive,
    /// The row can't be judged at all.
    Error,
}

/// The subject of a finding that concerns more than its own row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The benchmark, whatever the metric: the sides did different work, it is unknown what was measured, or
    /// some of it is lost. A waiver of one metric does not cover such a finding.
    Benchmark,
    /// The measuring conditions, or the part of the values that changed. The interval already includes their
    /// effect, so a short report names such a finding only if it is a note.
    Measuring,
}

/// A finding: a stable code and the detail of this one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lint {
    pub code: LintCode,
    /// The observation, in one lowercase fragment: `load average 125.1 on 128 processors`.
    pub detail: String,
}

impl Lint {
    pub fn new(code: LintCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

macro_rules! lint_codes {
    ($($variant:ident $code:literal $consequence:ident $($subject:ident)?, $description:literal, $fix:literal;)+) => {
        /// The stable kebab-case codes. `benchgate compare --explain CODE` prints the meaning of each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LintCode { $(#[doc = $description] $variant,)+ }

        impl LintCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            pub const fn consequence(self) -> Consequence {
                match self { $(Self::$variant => Consequence::$consequence,)+ }
            }

            /// Returns the declared subject; `None` if the finding concerns only its row.
            pub const fn subject(self) -> Option<Subject> {
                match self { $(Self::$variant => lint_codes!(@subject $($subject)?),)+ }
            }

            /// Returns the meaning of the code.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description,)+ }
            }

            /// Returns advice on how to fix it.
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$variant => $fix,)+ }
            }
        }
    };
    (@subject) => { None };
    (@subject $subject:ident) => { Some(Subject::$subject) };
}

lint_codes! {
    SingleRepetition "single-repetition" Inconclusive,
        "Each process measured only once, so the spread inside a process is unknown.",
        "Repeat inside the process: `--benchmark_repetitions=3` (Google Benchmark), `--benchmark-min-rounds=10` (pytest-benchmark), \
        `--runs 10` (hyperfine), `-f 5 -i 5` (JMH), `-count=10` (`go test`), without `--quick` (asv); or give several files per side.";
    AggregatesOnly "aggregates-only" Note Measuring,
        "Only statistics were kept, not the samples, so robust estimates and the classical rank test are not possible.",
        "Keep the samples: with Google Benchmark, omit `--benchmark_report_aggregates_only`; with other tools, export the time of every run.";
    DebugBuild "debug-build" Note,
        "The benchmark library was built without optimization; its own overhead affects the times.",
        "Measure with a release build of the tools.";
    CpuScaling "cpu-scaling" Note Measuring,
        "CPU frequency scaling is enabled, so the clock can change during a measurement.",
        "Set the performance governor on the measuring host.";
    HostOverloaded "host-overloaded" Inconclusive Measuring,
        "The host was overloaded: more programs were running than it has free processors.",
        "Measure on an idle machine; leave at least one processor to the host.";
    HostBusy "host-busy" Note Measuring,
        "The host was overloaded equally while both sides were measured.",
        "The verdict is valid, but an overloaded host needs more blocks to reach one: measure on an idle \
        machine.";
    HighCv "high-cv" Note Measuring,
        "The samples of a process spread widely.",
        "Look for other programs on those processors, lengthen `min-time`, or pin the process (`cpus`) if \
        it is not \
        pinned.";
    Bimodal "bimodal" Note Measuring,
        "Processes or repetitions fall into two groups, as if two programs had been measured.",
        "Measure more processes or repetitions; look for address-space layout, clock or placement effects.";
    Drift "drift" Note Measuring,
        "Values drift in one direction during the session.",
        "Let the machine warm up or cool down first; paired blocks already cancel slow changes.";
    SlotOrder "slot-order" Note Measuring,
        "The first process of a pair differs from the second, whichever side runs first.",
        "The random order keeps the difference from favoring a side; a cool-down between processes removes \
        the difference.";
    Throttled "throttled" Inconclusive,
        "Thermal or power throttling lowered the device's clock during the measurement, more on one side than on the other.",
        "Improve cooling, lower the power limit or lock the clock.";
    ForeignProcess "foreign-process" Inconclusive,
        "Another process used the device, or the measured processors, and did not affect both sides alike.",
        "Run nothing else on the device.";
    ClockUnlocked "clock-unlocked" Note Measuring,
        "The device's clock was not locked.",
        "Allow benchgate to lock the clock (`lock-clocks = \"base\"`, see \
        https://github.com/benchgate/benchgate/blob/main/docs/gpu-guide.md), or lock the clock before the \
        job.";
    Disturbed "disturbed" Note Measuring,
        "Another program or a reduced clock disturbed both sides alike, or too few processes of one side to \
        affect its result.",
        "Run nothing else on the machine; the finding names the programs.";
    PowerCapped "power-capped" Note Measuring,
        "The device lowered its clock to stay within its power limit.",
        "No action is needed if both sides are affected. To avoid this, lock the clock below the limit.";
    TemperatureDrift "temperature-drift" Note Measuring,
        "The device warmed up or cooled down during the session.",
        "No action is needed if the sides are paired, because pairing cancels the drift. Otherwise warm up \
        the device first.";
    ZeroTime "zero-time" Error,
        "A time of zero or less, or that of an empty loop, is not a measurement.",
        "Look at the tool's log: a failed row is often printed as 0.";
    NonFinite "non-finite" Error,
        "A value is NaN or infinite.",
        "Look at the tool's log; nothing can be concluded from this row.";
    Errored "errored" Error,
        "The tool marked this row as failed.",
        "Look at the tool's message about this row, if there is one, or at the tool's log.";
    Contradictory "contradictory" Error,
        "The numbers contradict other facts about the row (its statistics, units or artifacts), so one of them is wrong.",
        "Measure both sides again without editing or cutting the tool's files; if the finding remains, \
        compare the recorded artifact hashes and units with the programs that really ran.";
    ReportedProblem "reported-problem" Inconclusive Benchmark,
        "Head's result reports a problem that base's does not: a remark about an error, a NaN in a field or \
        a counter, or a worse result.",
        "Read the log of head's tool and measure again once the problem is fixed.";
    SkippedRow "skipped-row" Inconclusive Benchmark,
        "The tool skipped some of this row's repetitions; the skipped ones may be the slow ones.",
        "Read the tool's message; measure again once nothing is skipped.";
    DuplicateName "duplicate-name" Inconclusive Benchmark,
        "Several results of one side have the same name but may come from different benchmarks, so a missing \
        benchmark could go unnoticed.",
        "Give every benchmark a unique name. Compare several runs of one benchmark as several files: `benchgate compare 'base-*.json' 'head-*.json'`.";
    SeveralPrograms "several-programs" Inconclusive Benchmark,
        "The results of one side come from different commits or programs, so their average describes none of them.",
        "Give the results of one program as one side, and compare the programs with each other.";
    RepeatedSamples "repeated-samples" Error,
        "Two benchmarks, processes or files have the same samples, so at least one was not measured.",
        "Measure again; make sure that two jobs do not share a work folder, and that each file is a result of its own measurement.";
    SameFile "same-file" Error,
        "Base and head contain the same samples, from one file.",
        "Pass the results file of the other program.";
    UnitMismatch "unit-mismatch" Error,
        "The two sides report this metric in units of different kinds.",
        "Compare files of the same tool and metric.";
    UnknownFlag "unknown-flag" Note,
        "The tool does not know one of the flags it was given, and ignores unknown flags silently.",
        "Correct the flag's spelling.";
    UnknownUnit "unknown-unit" Error,
        "The unit of this row is unknown to benchgate.",
        "Convert the value, or report the format as a bug.";
    TestbedMismatch "testbed-mismatch" Inconclusive,
        "The two sides were measured on different machines.",
        "Measure both sides on the same machine, paired in one job.";
    ToolchainMismatch "toolchain-mismatch" Note,
        "The tools differ between the sides.",
        "No action is needed if the toolchain was meant to change.";
    SameCommit "same-commit" Note,
        "Both sides state the same commit.",
        "No action is needed if something else differs, such as flags; otherwise pass the results of the other commit.";
    StaleBaseline "stale-baseline" Note,
        "The baseline is old; the machine may have changed since.",
        "Refresh the baseline: `benchgate baseline update`.";
    Gradual "gradual" Note,
        "The benchmark got slower by small steps: its newest sessions are slower than its best level since the last acceptance.",
        "`benchgate baseline show --changes` shows when. Fix the slowdown, or accept it: `benchgate baseline \
        accept --why REASON`.";
    Quarantined "quarantined" Inconclusive,
        "Stored sessions have this benchmark, but none of them is part of the baseline: they are quarantined, or older than an accepted change.",
        "`benchgate baseline show` says why. Accept a session that measured the benchmark (`benchgate \
        baseline accept --since SESSION --why REASON`), or store a good one.";
    AssumedSpread "assumed-spread" Note Measuring,
        "Too few sessions or processes were measured to show how much they differ, so a declared or assumed \
        spread was used. This widens the interval, and small changes stay inconclusive.",
        "Run the tool 21 times on each side, alternately, and give all files: `benchgate compare \
        'base-*.json' 'head-*.json'`. If you have measured the spread between processes, you can declare it \
        instead (`--between-cv`); a value that is too small makes noise look like a change. In a suite, run \
        `benchgate noise`.";
    TruncatedInput "truncated-input" Inconclusive Benchmark,
        "The result is incomplete. Either the file ends in the middle of a line, so its last number may be \
        cut, or the program that wrote the file crashed, failed or was interrupted.",
        "Read the tool's log for a crash or a failed test and measure again; if nothing is missing, end the last \
        line with a newline.";
    UnmatchedLimit "unmatched-limit" Inconclusive,
        "A `[[limit]]` matches no benchmark of the suite, so it was not judged.",
        "Correct its `benchmark`: a row of a command is called `COMMAND/ROW`.";
    UnmatchedWaiver "unmatched-waiver" Note,
        "A `[[waiver]]` matches no benchmark of the suite, so it has no effect.",
        "Correct its `benchmark`, or remove it: a benchmark is called `MODEL/TARGET/FUNCTION`, a row of a command \
        `COMMAND/ROW`.";
    DroppedMetric "dropped-metric" Note,
        "An additional metric of this row has values that are not measurements, and was left out.",
        "No action is needed if only the latency matters; otherwise look at the tool's log.";
    WarmupDropped "warmup-dropped" Note Measuring,
        "The tool's first repetitions compile and warm up, so they were left out, as in the tool's own \
        reports.",
        "No action is needed; the detail says how many were left out.";
    WarmupIncluded "warmup-included" Inconclusive,
        "The tool's first repetitions compile and warm up, and too few follow to leave them out.",
        "Repeat more often: `--repeat=10`.";
    RoundedTime "rounded-time" Inconclusive,
        "The tool printed so few digits of the times that their rounding can hide or create a change.",
        "Keep a result with all digits: Google Benchmark's `--benchmark_out=result.json`, or criterion's `sample.json`.";
    UnreadLine "unread-line" Note,
        "A line between results was not understood and was left out.",
        "Write the results to a separate file, or report the format as a bug.";
    IncompleteBlocks "incomplete-blocks" Inconclusive Benchmark,
        "Some blocks of a paired session lack processes of one side, so the schedule is incomplete.",
        "Measure again; don't edit or merge run files by hand.";
    IncompleteJoin "incomplete-join" Inconclusive Benchmark,
        "Some of the joined files have no row of this name, or a numbered file is missing.",
        "Check that every process ran to its end.";
    UnpinnedWorkers "unpinned-workers" Note Measuring,
        "A CPU target used every processor of the host, so the host's own work affects the times.",
        "Leave a processor to the host: `cpus = [1]` in `[measure]`.";
    CacheDiscarded "cache-discarded" Note,
        "The content of a cached file had changed since it was stored, so it was created again.",
        "Check the disk if this happens again.";
    Unobserved "unobserved" Note,
        "The files that the tools opened could not be observed, so benchmarks whose sides look identical are measured anyway.",
        "Allow seccomp notifications in the container (Docker's default profile does); they need Linux 5.5 on x86-64 or AArch64.";
    Unverified "unverified" Note,
        "The outputs of this benchmark were not checked against a reference.",
        "Give the model `expected` outputs, or let the exporter write them.";
    VacuousReference "vacuous-reference" Inconclusive Benchmark,
        "The outputs with which head's are compared prove nothing: a constant agrees with them, they differ from \
        call to call, or there are none.",
        "Give the model inputs or weights whose outputs differ from element to element (a zero-initialized \
        last layer hides every fault), make random numbers an input, and return the results.";
    Stateful "stateful" Inconclusive Benchmark,
        "The program may keep state from one call to the next, or read memory that it has not written, so the timed calls may \
        differ from the verified one.",
        "Pass the state in as inputs and out as outputs, initialize memory (the `outs` of a sum), and keep functions that set \
        up state out of the module.";
    LessAccurate "less-accurate" Note,
        "Head's outputs are within the tolerance, but clearly less accurate than base's.",
        "Look at what the compiler traded for speed (reduced precision, approximated functions); to fail \
        such a change, lower `max-error` in `[numerics]`.";
    OutputsMoved "outputs-moved" Note,
        "Both sides agree with the reference, but not with each other.",
        "No action is needed if the model is ill-conditioned; otherwise tighten `[numerics]`.";
    UnexpectedSuccess "unexpected-success" Error,
        "The benchmark works, but the suite expects it to fail.",
        "The benchmark was fixed: remove its `[[expect]]`.";
    WorkloadChanged "workload-changed" Inconclusive Benchmark,
        "The two sides may have done different work: their inputs, settings, devices or other files differ.",
        "Change these in a separate commit and accept that commit with a waiver, or rename the benchmark. Later changes \
        are then compared with the new ones.";
    FactChanged "fact-changed" NotGreen Benchmark,
        "Head's results state something else than all of base's: another number of unknown meaning, another printed text, \
        or another label. Head may have done something else, or its result may be wrong.",
        "If head is right, a waiver accepts this change. For a number that may change again, name the metric in base's policy: \
        `[gate.metric.NAME]` with `better = \"lower\"` or `\"higher\"` judges it, and with `fatal = false` it is only reported.";
    ScriptChanged "script-changed" Note,
        "A source file that the command names differs from base's. It may be the program itself, or a file that controls how the program is measured.",
        "Review the change: it must measure the same work. If it is the program, refer to it through `{build}`.";
    UnreadOutput "unread-output" Note,
        "The output of the command has no known format, so its processes were timed as a whole, with their start and end.",
        "Set `format` of the command to the format of its output, or to `whole` if this is intended.";
    KeptState "kept-state" Note,
        "On both sides, timed calls or processes reuse data that earlier ones wrote, or a model stores data that \
        its export leaves out, so writing the data is not timed.",
        "No action is needed if users have such a cache too. Otherwise remove the data in `prepare`, give \
        each call its own inputs, or return what a model stores in its attributes.";
    ReferenceChanged "reference-changed" Note,
        "Head's model or its reference differs from base's, and its outputs changed or could not be compared with \
        base's.",
        "Review the change like code: it decides what counts as correct. To allow it, add a waiver or `changed-reference = \"note\"` in `[numerics]` on the base branch.";
    Fp64ReferenceChanged "fp64-reference-changed" Inconclusive Benchmark,
        "Head was verified with a double-precision reference that base does not have, and such a reference can make a larger error acceptable.",
        "Add or change `expected-f64` in a separate commit and accept that commit with a waiver. Later \
        changes are then compared with the new reference.";
    KernelMoved "kernel-moved" Note Measuring,
        "The time of this kernel changed most, as measured by the profiler in separate processes.",
        "`benchgate explain` lists every kernel of both sides.";
    KernelCode "kernel-code" Note,
        "Number of kernels whose code differs from base's, even if they are equally fast.",
        "`benchgate explain` lists the facts of every kernel that changed.";
    CodeRegressed "code-regressed" Note,
        "The generated code got worse by the rules of `judge = \"code\"`: more spilled registers or scratch memory, a lower occupancy, or no matrix instructions.",
        "Review the change of the compiler even if the time passes: the new code may cost more on another \
        shape or device. With `judge = \"code\"`, the target fails.";
    LimitExceeded "limit-exceeded" Note,
        "Head's typical value is beyond an absolute limit of the policy (`[[limit]]`).",
        "Find the change that moved the value beyond the limit (`benchgate baseline show`, `benchgate bisect`), or move the limit in a reviewed change.";
    Killed "killed" Error,
        "A tool was ended from outside (the kernel's out-of-memory killer, a signal from another program), which says nothing about the model.",
        "Find the cause, give the machine or the container more memory or lower `jobs`, and run again.";
    CompilerRejected "compiler-rejected" Note,
        "The compiler rejected this side's program with a diagnostic that names a line of the program.",
        "No action is needed if the other side repairs the program; otherwise read the compile log.";
    NoDevice "no-device" Note,
        "The device of this target was absent, so its modules were compiled but not run.",
        "No action is needed if this is expected; if the device must be present, set `required = true` in its [[target]].";
    OtherHost "other-host" Note Measuring,
        "The host names differ, and machines of one model can differ by several percent.",
        "Measure both sides on the same machine, paired in one job.";
    FewSessions "few-sessions" Note,
        "The baseline has too few sessions to show how much sessions differ; an assumed spread was used.",
        "Let the nightly job add sessions, or declare the spread (`between-cv`).";
    AnchorChanged "anchor-changed" Inconclusive,
        "The anchor or its executed module has changed, so ratios of earlier sessions can't be compared with \
        the ratios of this session.",
        "No action is needed: a new history begins with this session. To compare with the base, measure both \
        sides in one job: `benchgate gate --base REF`.";
    Intermittent "intermittent" Note,
        "Head had more slow processes than base, even if head's other processes are as fast as base's.",
        "Look for differences between starts: allocation, placement, autotuning, caches.";
    Unmatched "unmatched" Note,
        "No benchmark of the other side has this name.",
        "If the benchmark was renamed, pair the two names (`--rename FROM TO`). Otherwise it can't be \
        compared.";
}

impl LintCode {
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}

// Every release adds codes, so the schema allows any string: a file with a new code stays valid for programs
// that only pass it on.
stored_word!(LintCode, "lint code", schemars::json_schema!({ "type": "string" }));
