//! Metrics: their name, its unit, and which direction is better.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// Which direction of change is an improvement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Better: "direction" {
        Lower = "lower",
        Higher = "higher",
    }
}

/// The unit that values are held in. Every duration is held in nanoseconds, whatever unit a tool
/// printed it in, so that two files can only differ in unit when they differ in dimension.
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
    /// The name used in stored files.
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

    /// The inverse of [`Unit::as_str`].
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
    /// How a metric behaves when nothing changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum MetricKind: "metric kind" {
        /// Varies from process to process; compared by statistics.
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

/// Between a fact about generated code and the kernel it is about.
const OF_KERNEL: &str = " of ";

impl Metric {
    const fn known(name: &'static str, unit: Unit, better: Better, kind: MetricKind) -> Self {
        Self { name: Cow::Borrowed(name), unit, better, kind }
    }

    /// Whether it is a duration of the compiler, about which its program says nothing.
    pub fn is_compile_time(&self) -> bool {
        self.name == Self::COMPILE_TIME.name
    }

    /// Wall-clock time of one iteration of the measured function. The metric a gate judges.
    pub const LATENCY: Self = Self::known("latency", Unit::Nanoseconds, Better::Lower, MetricKind::Noisy);
    /// Processor time of one iteration, over all threads.
    pub const CPU_TIME: Self = Self::known("cpu-time", Unit::Nanoseconds, Better::Lower, MetricKind::Noisy);
    /// Wall-clock time of the compiler.
    pub const COMPILE_TIME: Self =
        Self::known("compile-time", Unit::Nanoseconds, Better::Lower, MetricKind::Noisy);
    /// Instructions that the compiler executes with one thread.
    pub const COMPILE_INSTRUCTIONS: Self =
        Self::known("compile-instructions", Unit::Count, Better::Lower, MetricKind::Exact);
    /// Size of the compiled module.
    pub const VMFB_SIZE: Self = Self::known("vmfb-size", Unit::Bytes, Better::Lower, MetricKind::Exact);
    /// Number of dispatches (kernel launches) in the compiled module.
    pub const DISPATCH_COUNT: Self =
        Self::known("dispatch-count", Unit::Count, Better::Lower, MetricKind::Exact);
    /// Peak resident memory of the benchmark process.
    pub const PEAK_HOST_MEMORY: Self =
        Self::known("peak-host-memory", Unit::Bytes, Better::Lower, MetricKind::Noisy);
    /// Peak memory allocated on the device.
    pub const PEAK_DEVICE_MEMORY: Self =
        Self::known("peak-device-memory", Unit::Bytes, Better::Lower, MetricKind::Exact);
    /// Items processed per second, as Google Benchmark's `items_per_second`.
    pub const THROUGHPUT: Self =
        Self::known("items-per-second", Unit::PerSecond, Better::Higher, MetricKind::Noisy);

    const fn of_code(name: &'static str, unit: Unit, better: Better) -> Self {
        Self::known(name, unit, better, MetricKind::Exact)
    }

    /// Vector registers that a kernel saves to memory because it has too few.
    pub const SPILLED_REGISTERS: Self = Self::of_code("spilled-registers", Unit::Count, Better::Lower);
    /// Scalar registers that a kernel saves to lanes of vector registers, or to memory, because it has too few.
    pub const SPILLED_SCALAR_REGISTERS: Self =
        Self::of_code("spilled-scalar-registers", Unit::Count, Better::Lower);
    /// Private memory of one lane of a kernel, where spilled registers and local arrays are.
    pub const SCRATCH: Self = Self::of_code("scratch-size", Unit::Bytes, Better::Lower);
    /// Waves that a SIMD unit can hold of a kernel.
    pub const OCCUPANCY: Self = Self::of_code("occupancy", Unit::Count, Better::Higher);
    /// Instructions that multiply matrices, in the code of a kernel.
    pub const MATRIX_INSTRUCTIONS: Self = Self::of_code("matrix-instructions", Unit::Count, Better::Higher);
    /// Instructions in the code of a kernel.
    pub const INSTRUCTIONS: Self = Self::of_code("instructions", Unit::Count, Better::Lower);
    /// Instructions of a host library that compute with one floating-point number: what was not vectorized.
    pub const SCALAR_FLOAT_INSTRUCTIONS: Self =
        Self::of_code("scalar-float-instructions", Unit::Count, Better::Lower);
    /// Instructions of a host library by the width of their vectors, in bits; `scalable` is the processor's own (SVE).
    pub const VECTOR_128_INSTRUCTIONS: Self =
        Self::of_code("vector-128-instructions", Unit::Count, Better::Higher);
    pub const VECTOR_256_INSTRUCTIONS: Self =
        Self::of_code("vector-256-instructions", Unit::Count, Better::Higher);
    pub const VECTOR_512_INSTRUCTIONS: Self =
        Self::of_code("vector-512-instructions", Unit::Count, Better::Higher);
    pub const VECTOR_SCALABLE_INSTRUCTIONS: Self =
        Self::of_code("vector-scalable-instructions", Unit::Count, Better::Higher);
    /// Vector registers of a kernel, accumulator registers included where they are shared.
    pub const VECTOR_REGISTERS: Self = Self::of_code("vector-registers", Unit::Count, Better::Lower);
    pub const ACCUMULATOR_REGISTERS: Self =
        Self::of_code("accumulator-registers", Unit::Count, Better::Lower);
    pub const SCALAR_REGISTERS: Self = Self::of_code("scalar-registers", Unit::Count, Better::Lower);
    /// Local (shared) memory of a workgroup.
    pub const SHARED_MEMORY: Self = Self::of_code("shared-memory", Unit::Bytes, Better::Lower);
    /// Stack that a function of a host library takes.
    pub const STACK_FRAME: Self = Self::of_code("stack-frame", Unit::Bytes, Better::Lower);
    pub const CODE_SIZE: Self = Self::of_code("code-size", Unit::Bytes, Better::Lower);

    /// Facts about generated code, in order of importance.
    pub const OF_CODE: [Self; 17] = [
        Self::SPILLED_REGISTERS,
        Self::SPILLED_SCALAR_REGISTERS,
        Self::SCRATCH,
        Self::OCCUPANCY,
        Self::MATRIX_INSTRUCTIONS,
        Self::INSTRUCTIONS,
        Self::SCALAR_FLOAT_INSTRUCTIONS,
        Self::VECTOR_128_INSTRUCTIONS,
        Self::VECTOR_256_INSTRUCTIONS,
        Self::VECTOR_512_INSTRUCTIONS,
        Self::VECTOR_SCALABLE_INSTRUCTIONS,
        Self::VECTOR_REGISTERS,
        Self::ACCUMULATOR_REGISTERS,
        Self::SCALAR_REGISTERS,
        Self::SHARED_MEMORY,
        Self::STACK_FRAME,
        Self::CODE_SIZE,
    ];

    /// The metrics that a suite measures.
    pub const BUILT_IN: [Self; 9] = [
        Self::LATENCY,
        Self::CPU_TIME,
        Self::COMPILE_TIME,
        Self::COMPILE_INSTRUCTIONS,
        Self::VMFB_SIZE,
        Self::DISPATCH_COUNT,
        Self::PEAK_HOST_MEMORY,
        Self::PEAK_DEVICE_MEMORY,
        Self::THROUGHPUT,
    ];

    /// The built-in metric of this name. Its unit, direction and kind are facts of this program, so a file
    /// that describes it differently is wrong.
    pub fn built_in(name: &str) -> Option<Self> {
        let known = Self::BUILT_IN.into_iter().chain(Self::OF_CODE).find(|metric| metric.name == name);
        known.or_else(|| Some(Self { name: name.to_owned().into(), ..Self::kernel_fact(name)? }))
    }

    /// This fact of one kernel: `spilled-registers of matmul_64x64_f32`.
    pub fn of_kernel(&self, kernel: &str) -> Self {
        Self { name: format!("{}{OF_KERNEL}{kernel}", self.name).into(), ..self.clone() }
    }

    /// The fact about generated code that a metric of this name states of one kernel.
    pub fn kernel_fact(name: &str) -> Option<Self> {
        let (fact, _) = name.split_once(OF_KERNEL)?;
        Self::OF_CODE.into_iter().find(|metric| metric.name == fact)
    }
}
