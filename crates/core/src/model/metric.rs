//! Metrics: name, unit, direction, kind, and how each is judged by default.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{Floor, MetricPolicy};

words! {
    /// The direction of change that is an improvement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Better: "direction" {
        Lower = "lower",
        Higher = "higher",
        /// Neither the tool nor the policy states it.
        Unknown = "unknown",
    }
}

impl Better {
    /// Returns the sign of a change that is worse. A measure of unknown direction is treated as a cost.
    pub const fn worse(self) -> f64 {
        match self {
            Self::Lower | Self::Unknown => 1.0,
            Self::Higher => -1.0,
        }
    }
}

/// The unit of the values. Durations are always stored in nanoseconds, whatever unit a tool printed, so the
/// units of two files differ only if their dimensions do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Unit {
    Nanoseconds,
    Bytes,
    Count,
    PerSecond,
    /// A dimensionless fraction.
    Fraction,
    /// A foreign tool's own unit, compared by name only.
    Other(Cow<'static, str>),
}

impl Unit {
    /// Returns the name used in stored files.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::PerSecond => "1/s",
            Self::Fraction => "fraction",
            Self::Other(name) => name,
        }
    }

    /// Parses a name; the inverse of [`Unit::as_str`].
    pub fn parse(name: &str) -> Self {
        match name {
            "ns" => Self::Nanoseconds,
            "bytes" => Self::Bytes,
            "count" => Self::Count,
            "1/s" => Self::PerSecond,
            "fraction" => Self::Fraction,
            other => Self::Other(Cow::Owned(other.to_owned())),
        }
    }
}

impl From<String> for Unit {
    fn from(name: String) -> Self {
        Self::parse(&name)
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> Self {
        unit.as_str().to_owned()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

words! {
    /// The behavior of a metric when nothing has changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum MetricKind: "metric kind" {
        /// Varies from process to process; compared statistically.
        Noisy = "noisy",
        /// Determined by the bytes alone; compared exactly.
        Exact = "exact",
    }
}

/// A measured quantity. Two metrics are the same when their names are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    pub name: Cow<'static, str>,
    /// `ns`, `bytes`, `count`, `1/s`, `fraction`, or a tool's own unit.
    #[schemars(with = "String")]
    pub unit: Unit,
    pub better: Better,
    pub kind: MetricKind,
}

/// Separates a fact about generated code from the kernel that it describes.
const OF_KERNEL: &str = " of ";

/// Declares metrics. A line has the metric's constant, name, unit, direction, kind and default policy, which
/// applies if the suite has none; `None` stands for [`MetricPolicy::UNNAMED`].
macro_rules! metrics {
    ($($(#[$about:meta])* $set:ident {
        $($(#[$doc:meta])* $metric:ident = $name:literal, $unit:ident, $better:ident, $kind:ident, $policy:expr;)+
    })+) => {
        impl Metric {
            $($($(#[$doc])*
            pub const $metric: Self = Self {
                name: Cow::Borrowed($name),
                unit: Unit::$unit,
                better: Better::$better,
                kind: MetricKind::$kind,
            };)+

            $(#[$about])*
            pub const $set: [Self; [$($name),+].len()] = [$(Self::$metric),+];)+

            /// Returns the policy that applies if a suite has none for this metric.
            pub fn default_policy(&self) -> Option<MetricPolicy> {
                match self.name.as_ref() {
                    $($($name => $policy,)+)+
                    _ => None,
                }
            }
        }
    };
}

const fn reported(relative: f64, tolerance: f64) -> Option<MetricPolicy> {
    Some(MetricPolicy { floor: Floor { relative, absolute: 0.0 }, tolerance, fatal: false, better: None })
}

const fn fatal(relative: f64, tolerance: f64) -> Option<MetricPolicy> {
    Some(MetricPolicy { floor: Floor { relative, absolute: 0.0 }, tolerance, fatal: true, better: None })
}

/// The floor is 0.5 s and 25 %: a compile time that is measured once, while other compilers share the
/// processors, varies by tens of percent. A regression is not fatal, because a slow compile does not affect
/// users of the compiled model.
const SLOW_COMPILE: Option<MetricPolicy> = Some(MetricPolicy {
    floor: Floor { relative: 0.25, absolute: 5e8 },
    tolerance: 0.50,
    fatal: false,
    better: None,
});

metrics! {
    /// The metrics that a suite measures.
    BUILT_IN {
        /// Wall-clock time of one iteration of the measured function: the metric that a gate judges by
        /// default.
        LATENCY = "latency", Nanoseconds, Lower, Noisy, fatal(0.01, 0.03);
        /// Processor time of one iteration, over all threads.
        CPU_TIME = "cpu-time", Nanoseconds, Lower, Noisy, None;
        /// Wall-clock time of the compiler.
        COMPILE_TIME = "compile-time", Nanoseconds, Lower, Noisy, SLOW_COMPILE;
        /// Instructions that the compiler executes with one thread.
        COMPILE_INSTRUCTIONS = "compile-instructions", Count, Lower, Exact, None;
        /// Size of the compiled module.
        VMFB_SIZE = "vmfb-size", Bytes, Lower, Exact, reported(0.01, 0.01);
        /// Number of dispatches (kernel launches) in the compiled module.
        DISPATCH_COUNT = "dispatch-count", Count, Lower, Exact, reported(0.0, 0.0);
        /// Peak resident memory of the benchmark process.
        PEAK_HOST_MEMORY = "peak-host-memory", Bytes, Lower, Noisy, reported(0.05, 0.10);
        /// Peak memory allocated on the device.
        PEAK_DEVICE_MEMORY = "peak-device-memory", Bytes, Lower, Exact, reported(0.01, 0.01);
        /// Items processed per second, as Google Benchmark's `items_per_second`.
        THROUGHPUT = "items-per-second", PerSecond, Higher, Noisy, None;
    }

    /// Facts about generated code, in order of importance. The gate decides by those that cost time in every
    /// program: newly spilled registers, fewer waves, and lost matrix instructions. Register counts alone
    /// change with every compiler version and mean little.
    OF_CODE {
        /// Vector registers that a kernel saves to memory because it has too few.
        SPILLED_REGISTERS = "spilled-registers", Count, Lower, Exact, fatal(0.10, 0.10);
        /// Scalar registers that a kernel saves to lanes of vector registers, or to memory, because it has too few.
        SPILLED_SCALAR_REGISTERS = "spilled-scalar-registers", Count, Lower, Exact, fatal(0.10, 0.10);
        /// Private memory of one lane of a kernel, where spilled registers and local arrays are.
        SCRATCH = "scratch-size", Bytes, Lower, Exact, fatal(0.10, 0.10);
        /// Number of waves of a kernel that one SIMD unit can hold.
        OCCUPANCY = "occupancy", Count, Higher, Exact, fatal(0.0, 0.0);
        /// Instructions in a kernel that multiply matrices.
        // The floor is 90 %, because a quarter as many instructions can do the same work if each is four times as
        // wide.
        MATRIX_INSTRUCTIONS = "matrix-instructions", Count, Higher, Exact, fatal(0.90, 0.90);
        /// Number of instructions in a kernel.
        INSTRUCTIONS = "instructions", Count, Lower, Exact, None;
        /// Instructions of a host library that compute with a single floating-point number, which means that
        /// this code was not vectorized.
        SCALAR_FLOAT_INSTRUCTIONS = "scalar-float-instructions", Count, Lower, Exact, None;
        /// Instructions of a host library by the width of their vectors, in bits; `scalable` is the processor's own (SVE).
        VECTOR_128_INSTRUCTIONS = "vector-128-instructions", Count, Higher, Exact, None;
        VECTOR_256_INSTRUCTIONS = "vector-256-instructions", Count, Higher, Exact, None;
        VECTOR_512_INSTRUCTIONS = "vector-512-instructions", Count, Higher, Exact, None;
        VECTOR_SCALABLE_INSTRUCTIONS = "vector-scalable-instructions", Count, Higher, Exact, None;
        /// Vector registers of a kernel, including accumulator registers if the two share one register file.
        VECTOR_REGISTERS = "vector-registers", Count, Lower, Exact, None;
        ACCUMULATOR_REGISTERS = "accumulator-registers", Count, Lower, Exact, None;
        SCALAR_REGISTERS = "scalar-registers", Count, Lower, Exact, None;
        /// Local (shared) memory of a workgroup.
        SHARED_MEMORY = "shared-memory", Bytes, Lower, Exact, None;
        /// Stack space that a function of a host library uses.
        STACK_FRAME = "stack-frame", Bytes, Lower, Exact, None;
        CODE_SIZE = "code-size", Bytes, Lower, Exact, None;
    }
}

impl Metric {
    /// Returns whether the values of both metrics can be compared. Versions before 0.2 assumed that less is
    /// better for a measure of unknown direction.
    pub fn is_like(&self, other: &Self) -> bool {
        self.unit == other.unit && self.better.worse() == other.better.worse()
    }

    /// Returns whether a value below zero can be right: a score or a loss can have one, but no ratio.
    pub const fn may_be_negative(&self) -> bool {
        matches!(self.unit, Unit::Count | Unit::Fraction | Unit::Other(_))
    }

    /// Returns whether the metric is the compiler's duration, which depends on the compiler's own code and is
    /// not a property of the compiled program.
    pub fn is_compile_time(&self) -> bool {
        self.name == Self::COMPILE_TIME.name
    }

    /// Returns the built-in metric with this name. benchgate defines its unit, direction and kind, so a file
    /// that describes it differently is wrong.
    pub fn built_in(name: &str) -> Option<Self> {
        let known = Self::BUILT_IN.into_iter().chain(Self::OF_CODE).find(|metric| metric.name == name);
        known.or_else(|| Some(Self { name: name.to_owned().into(), ..Self::kernel_fact(name)? }))
    }

    /// Returns this fact for one kernel: `spilled-registers of matmul_64x64_f32`.
    pub fn of_kernel(&self, kernel: &str) -> Self {
        Self { name: format!("{}{OF_KERNEL}{kernel}", self.name).into(), ..self.clone() }
    }

    /// Returns the fact about generated code that a per-kernel metric with this name states.
    pub fn kernel_fact(name: &str) -> Option<Self> {
        let (fact, _) = name.split_once(OF_KERNEL)?;
        Self::OF_CODE.into_iter().find(|metric| metric.name == fact)
    }

    /// Returns the kernel whose generated code this metric describes.
    pub fn kernel(&self) -> Option<&str> {
        Self::kernel_fact(&self.name)?;
        Some(self.name.split_once(OF_KERNEL)?.1)
    }
}
