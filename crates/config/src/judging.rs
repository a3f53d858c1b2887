//! The tables of a policy: the gate, its waivers, and the allowed differences between outputs.

use strum::VariantNames;

use benchgate_core::model::{Better, Verdict};
use benchgate_core::numerics::DType;
use benchgate_gate::{ChangedReference, FailOn, FailureKind, TestKind};

use super::fields::{Field, Section, ValueKind, of_policy, optional, required};
use super::values::{ALPHA, ConfigView};

/// A fraction of the reference's magnitude. From 1 on, an output of zeros would agree with every reference.
const PART: ValueKind = ValueKind::Number { min: 0.0, max: 0.5 };
/// An absolute bound. Outputs so large that they would need a larger bound should use `rtol`, which grows
/// with the elements.
const ABSOLUTE: ValueKind = ValueKind::Number { min: 0.0, max: 1_000.0 };

const FAILING: &[&str] = &{
    let mut words = [""; FailOn::POSSIBLE.len()];
    let mut at = 0;
    // Iterators are not available in constants.
    while at < words.len() {
        words[at] = FailOn::POSSIBLE[at].as_str();
        at += 1;
    }
    words
};

// The tables of the policy, which a pull request must not choose for itself.
pub(super) const GATE_TABLE: Field =
    optional("gate", ValueKind::Table(&GATE), "What counts as a regression.");
pub(super) const WAIVERS: Field = optional("waiver", ValueKind::Tables(&WAIVER), "Reviewed exceptions.");
pub(super) const EXPECTATIONS: Field = optional("expect", ValueKind::Tables(&EXPECT), "Known failures.");
pub(super) const LIMITS: Field = optional("limit", ValueKind::Tables(&LIMIT), "Absolute limits.");
pub(super) const NUMERICS_TABLE: Field =
    optional("numerics", ValueKind::Table(&NUMERICS), "Allowed differences between outputs and references.");
pub(super) const NUMERICS_OVERRIDES: Field = optional(
    "numerics-override",
    ValueKind::Tables(&NUMERICS_OVERRIDE),
    "Tolerances for selected benchmarks.",
);

/// The content of the file that `policy = "…"` names.
pub(super) static POLICY: Section = Section {
    title: "a policy file",
    doc: "",
    fields: &[GATE_TABLE, WAIVERS, EXPECTATIONS, LIMITS, NUMERICS_TABLE, NUMERICS_OVERRIDES],
};

pub(super) static GATE: Section = Section {
    title: "[gate]",
    doc: "Policy. In a pull request it is read from the base.",
    fields: &[
        of_policy(
            "alpha",
            ValueKind::Number { min: ALPHA.0, max: ALPHA.1 },
            |policy| policy.alpha.to_string(),
            |policy, view| policy.alpha = view.number().unwrap_or(policy.alpha),
            "Probability of at least one false positive over all fatal rows of the suite.",
        ),
        of_policy(
            "test",
            ValueKind::Choice(TestKind::WORDS),
            |policy| format!("{:?}", policy.test.as_str()),
            |policy, view| policy.test = view.text().and_then(TestKind::parse).unwrap_or_default(),
            "Statistical test for the verdict.",
        ),
        of_policy(
            "fail-on",
            ValueKind::List(&ValueKind::Choice(FAILING)),
            |policy| {
                let verdicts = policy.fail_on.0.iter().map(|verdict| verdict.as_str());
                format!("{:?}", verdicts.collect::<Vec<_>>())
            },
            |policy, view| {
                if view.is_present() {
                    policy.fail_on = FailOn(
                        view.items().filter_map(ConfigView::text).filter_map(Verdict::parse).collect(),
                    );
                }
            },
            "The verdicts that make the exit code non-zero.",
        ),
        optional(
            "between-cv",
            ValueKind::Spread,
            "Coefficient of variation between processes that are not measured in pairs; by default it is estimated from how much their repetitions vary.",
        ),
        optional("metric", ValueKind::Named(&METRIC), "How each metric is judged."),
        optional(
            "override",
            ValueKind::Tables(&OVERRIDE),
            "Exceptions by benchmark; where several match, the last wins.",
        ),
    ],
};

/// The floor, a key of both `[gate.metric.*]` and `[[gate.override]]`.
const FLOOR: Field = optional(
    "floor",
    ValueKind::Fraction,
    "Minimum slowdown that fails, relative to base: `\"1%\"` or `0.01`.",
);
const FLOOR_ABSOLUTE: Field = optional(
    "floor-absolute",
    ValueKind::Magnitude,
    "Minimum slowdown that fails: a duration for metrics of time, otherwise a number in the metric's unit.",
);
const TOLERANCE: Field =
    optional("tolerance", ValueKind::Fraction, "Slowdown that a pass must rule out; not below the floor.");
const FATAL: Field =
    optional("fatal", ValueKind::Bool, "True if a regression of this metric fails the gate.");

/// Directions that can be stated.
const DIRECTIONS: &[&str] = &[Better::Lower.as_str(), Better::Higher.as_str()];

static METRIC: Section = Section {
    title: "[gate.metric.<name>]",
    doc: "The name is one of {metrics}, or another tool's metric. A metric without a table keeps its \
    default. Another tool's metric decides (can fail the gate) for benchmarks without a time and is \
        informational for others. A built-in metric also decides for benchmarks that measure nothing else.",
    fields: &[
        FLOOR,
        FLOOR_ABSOLUTE,
        TOLERANCE,
        FATAL,
        optional(
            "better",
            ValueKind::Choice(DIRECTIONS),
            "The better direction of another tool's metric. Without this key the name or unit must state the \
            direction (`tokens/s`, `GFLOPS`, `ms/step`); otherwise a change is inconclusive.",
        ),
    ],
};

static OVERRIDE: Section = Section {
    title: "[[gate.override]]",
    doc: "",
    fields: &[
        required(
            "benchmark",
            ValueKind::Glob,
            "Glob over `model/target/function`, for example `vit*/cpu/*`.",
        ),
        optional("metric", ValueKind::Line, "The metric; by default every metric."),
        FLOOR,
        FLOOR_ABSOLUTE,
        TOLERANCE,
        FATAL,
        optional("between-cv", ValueKind::Spread, "As in `[gate]`, for these benchmarks."),
    ],
};

static WAIVER: Section = Section {
    title: "[[waiver]]",
    doc: "A reviewed exception: through the given day, matching rows don't count, whatever their verdict. \
    They stay visible. See docs/troubleshooting.md.",
    fields: &[
        required(
            "benchmark",
            ValueKind::Glob,
            "Glob over `model/target/function`; for a command, over `command/row`. `*` also matches `/`.",
        ),
        optional(
            "metric",
            ValueKind::Line,
            "The metric. By default, every metric and the benchmark as a whole (wrong outputs, failed \
            stages, a missing result).",
        ),
        required("owner", ValueKind::Line, "Person or team responsible."),
        required("reason", ValueKind::Line, "Why the exception is accepted."),
        required(
            "expires",
            ValueKind::Date,
            "Last day of the exception, `YYYY-MM-DD`; at most 366 days from today.",
        ),
    ],
};

static EXPECT: Section = Section {
    title: "[[expect]]",
    doc: "Benchmarks that are known to fail. They pass while they fail as expected on both sides. A \
    benchmark that works is an error, so that the fix is noticed. A change that removes an expectation must \
    make its benchmarks work.",
    fields: &[
        required(
            "benchmark",
            ValueKind::OneOrMore(&ValueKind::Glob),
            "Globs over `model/target/function`; where several expectations match, the last one counts.",
        ),
        required(
            "failure",
            ValueKind::OneOrMore(&ValueKind::Choice(FailureKind::WORDS)),
            "How the benchmark fails: it does not compile, it does not run, or its outputs differ \
             from the reference. With a list, any of these counts.",
        ),
        required("reason", ValueKind::Line, "Why the benchmark fails, for example a link to an issue."),
    ],
};

static LIMIT: Section = Section {
    title: "[[limit]]",
    doc: "An absolute limit for a metric, in addition to the comparison with base and independent of base's \
    value. It applies to the median over head's processes. A row is red (`limit-exceeded`) if a test shows \
    that this median is beyond the limit; all limits share `alpha`. The row is inconclusive if the processes \
    don't show on which side of the limit the median is; more processes, or a limit further away, help. \
    Sizes and counts are compared exactly. Where both sides execute the same bytes, limits on times are not \
    checked. A benchmark without a value of the metric is inconclusive.",
    fields: &[
        required(
            "benchmark",
            ValueKind::Glob,
            "Glob over `model/target/function` or `command/row`; it has to match a benchmark of the suite. All matching limits apply.",
        ),
        required("metric", ValueKind::Line, "The metric: `latency`, `vmfb-size`, or another tool's metric."),
        optional(
            "max",
            ValueKind::Magnitude,
            "Largest value: a duration for metrics of time, otherwise a number in the metric's unit.",
        ),
        optional("min", ValueKind::Magnitude, "Minimum, mostly for rates."),
        optional(
            "testbed",
            ValueKind::Glob,
            "The machines to which the limit applies: a glob over the facts that `benchgate doctor` prints, \
            such as the name of the processor or GPU: `\"*EPYC 9654*\"`. By default the limit applies \
            everywhere.",
        ),
        optional("owner", ValueKind::Line, "Person or team responsible; named next to a red row."),
    ],
};

pub(super) static NUMERICS: Section = Section {
    title: "[numerics]",
    doc: "",
    fields: &[
        of_policy(
            "changed-reference",
            ValueKind::Choice(ChangedReference::WORDS),
            |policy| format!("{:?}", policy.changed_reference.as_str()),
            |policy, view| {
                policy.changed_reference = view.text().and_then(ChangedReference::parse).unwrap_or_default();
            },
            "Effect if head's program changed and its outputs differ from base's by more than the \
            tolerance: `fail` \
            makes the row *diverged*, `note` only reports it.",
        ),
        optional("<type>", ValueKind::Table(&NUMERICS_TYPE), "Tolerances of one element type."),
    ],
};

static NUMERICS_TYPE: Section = Section {
    title: "[numerics.<type>]",
    doc: "The type is one of `f64`, `f32`, `f16`, `bf16`, `i64` … `i8`, `u64` … `u8`, `bool`. With m the \
          typical magnitude of the reference, every element must satisfy |a − b| ≤ atol + rtol·|b| + stol·m. \
          Defaults depend on the type; integers must be equal.",
    fields: &[ATOL, RTOL, STOL, MAX_ERROR, MIN_COSINE],
};

static NUMERICS_OVERRIDE: Section = Section {
    title: "[[numerics-override]]",
    doc: "Tolerances of one element type for the benchmarks that a glob matches; keys that are left out keep the \
          type's value. If several match, the last one counts.",
    fields: &[
        required(
            "benchmark",
            ValueKind::Glob,
            "Glob over `model/target/function`, for example `resnet*/vulkan/*`.",
        ),
        required("type", ValueKind::Choice(DType::VARIANTS), "The element type."),
        ATOL,
        RTOL,
        STOL,
        MAX_ERROR,
        MIN_COSINE,
    ],
};

const ATOL: Field = optional("atol", ABSOLUTE, "Absolute part of an element's bound.");
const RTOL: Field = optional("rtol", PART, "Part relative to the reference's element.");
const STOL: Field = optional("stol", PART, "Part relative to the reference's typical magnitude.");
const MAX_ERROR: Field = optional("max-error", PART, "Bound of the root mean square of |a − b| / (|b| + m).");
const MIN_COSINE: Field = optional(
    "min-cosine",
    ValueKind::Number { min: -1.0, max: 1.0 },
    "Least cosine similarity of output and reference.",
);

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_gate::Waiver;

    #[test]
    fn the_longest_waiver_is_the_one_that_is_documented() {
        let limit = format!("at most {} days from today", Waiver::LONGEST_DAYS);
        assert!(WAIVER.field("expires").unwrap().doc.contains(&limit), "{limit}");
    }
}
