//! Metrics: name, unit, direction, kind, and how each is judged by default.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
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

    /// Returns whether the metric's name and unit say neither which direction is better nor that it is a measurement.
    pub fn is_of_unknown_meaning(&self) -> bool {
        self.better == Better::Unknown
            && Self::built_in(&self.name).is_none()
            && !Quality::may_differ(&self.name)
            && Quality::of_metric(self).is_none()
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

/// The way in which a metric states that a result is right. The names of such metrics are classified here, for the fields,
/// counters and metrics of every format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// Less is worse: `accuracy`, `passed`.
    Score,
    /// A score that is 1 for a perfect result: `cosine`.
    Similarity,
    /// More is worse: `loss`, `perplexity`.
    Loss,
    /// A deviation, of which more is worse: `max_err`.
    Error,
    /// A count of failures. A base that doesn't state it counted none.
    Failures,
    /// Any other value is another result.
    Checksum,
    /// Any other value is other work, if the value is constant at base. A total depends on the number of iterations.
    Work,
}

/// Words in the names of metrics that count failures, whatever else the name says. In this list and the others, words that
/// a name may separate (`exact_match`) are written as one.
const FAILURES: &str = "failed failures nan nans mismatch mismatches mismatched crashes crashed crash timeouts timedout \
    oom ooms diverged dropped overflow overflows underflow underflows nonfinite infcount violations \
    violation corrupt corrupted panics panicked unconverged notconverged misclassified nfail nfails failcount hallucinations falsepositives \
    falsenegatives deadlinemisses misseddeadlines missingkeys";

/// Words that count failures if all other words of the name are in [`OF_COUNTS`].
const ERRORS: &str = "error errors failure fail fails err errs exceptions aborted aborts asserts invalid wrong incorrect \
    skipped lost truncated saturated clipped missing";
const OF_COUNTS: &str = "count counts num number n total of rate per op s sec second iteration check checks runtime is \
    has packets requests frames rows tokens elements values items keys outputs";

const LOSSES: &str = "loss losses perplexity ppl wer cer ter nll bpb bpc bitsperbyte bitspercharacter bitsperchar \
    crossentropy kl kldiv kldivergence brier ece eer fid lpips toxicity";
const DEVIATIONS: &str = "err errs error errors diff diffs difference differences distance dissimilarity rmse nrmse rmsd \
    mse mae mape relerr abserr l2err bad wrong incorrect invalid ulp ulps residual residuals resid maxerr maxdiff linf discrepancy \
    epe hausdorff chamfer levenshtein distortion mcd";
const SIMILARITIES: &str =
    "cosine cossim similarity ssim correlation corr pearson spearman bitexact withintol withintolerance";
const SCORES: &str = "accuracy score scores psnr snr sqnr sdr sisdr sisnr f1 bleu sacrebleu rouge chrf meteor bertscore \
    comet auc auroc auprc precision recall ndcg mrr map50 map75 map5095 ap50 ap75 iou miou dice mcc kappa r2 top1 top5 acc1 acc5 prec1 prec5 passed passing success \
    successes succeeded successful ok valid validated verified correct match matches matched agreement exactmatch em \
    pass1 pass5 pass10 passat1 passat5 passat10 passrate winrate solverate reward fidelity quality completeness \
    loglikelihood logprob mmlu gsm8k hellaswag humaneval winogrande truthfulqa mbpp allclose converged";
const CHECKSUMS: &str = "checksum checksums crc crc32 crc64 digest md5 sha1 sha256";

/// Names of numbers that determine how much work is done, separated by `|`. `size`, `bytes`, `count`, `nodes`, `ops`,
/// `steps`, `calls`, `flops`, `depth`, `queries`, `messages`, `blocks` and `nnz` are missing, because they also name
/// results that an improvement makes smaller: the nodes that a search visits, the operations after a fusion.
const WORK: &str = "n|items|item|elements|element|elems|pixels|input size|problem size|tolerance|threshold|batch|\
    batch size|bs|seq len|seqlen|sequence length|tokens|generated tokens|new tokens|output tokens|\
    context len|context length|rows|row|columns|cols|images|frames|requests|records|documents|atoms|\
    epochs|beams|topk|nprobe|particles|rays|width|channels|resolution|dim|hidden size|heads|hidden|dims|\
    m|k|threads";
/// Words before and after such a name that don't change its meaning: `num_items`, `row_count`, `rows/op`.
const BEFORE_WORK: &str = "num n number nr of input prompt";
const AFTER_WORK: &str = "count per op iter iteration call";

/// Names whose capitals don't begin words, and names without them.
const SPELLINGS: [(&str, &str); 7] = [
    ("NaN", " nan"),
    ("IoU", " iou"),
    ("mAP", " accuracy"),
    ("pass@", " passat"),
    ("op-1", "op1"),
    ("op-5", "op5"),
    ("cc@", "cc"),
];

/// Words for what a metric measures, also if it is the error or the difference of that.
const MEASURED: &str = "standard time latency duration elapsed runtime std stddev stdev stderr var cv throughput bandwidth memory \
    mem rss vram power energy temperature clock speedup slowdown speculation flops gflops tflops qps fps rps";
/// Words for settings.
const SETTINGS: &str =
    "scale size threshold tolerance tol bound bounds limit mode type function weight length seed";
/// Words in the names of numbers that tell runs and builds apart.
const IDENTITIES: &str = "run ci build version v revision rev commit git sha seed pid id number date day timestamp job port gpu cpu cuda \
    hip rocm vulkan device index core host ptr addr address iter iters iterations repeat repeats repetitions reps rounds samples warmup";
/// Words for what a machine reads, or what is computed from times.
const READINGS: &str =
    "ipc cpi temp util utilization occupancy load freq frequency mhz ghz hz gbps bw eff efficiency";
/// Words for what a compiler chooses, also the memory that its code needs.
const CHOICES: &str = "tile tiles tiling unroll unrolled regs registers vgprs sgprs smem lds grid warps waves stages vec vector vlen lmul heap used";
const UNITS: &str = "ps ns us ms s sec secs second seconds kb mb gb kib mib gib bytes";

impl Quality {
    /// Returns what a metric with this name states about the result; `None` for a measurement. The rows of a file repeat a
    /// few names many times, so results are remembered.
    pub fn of_name(name: &str) -> Option<Self> {
        const MOST_NAMES: usize = 4096;
        thread_local! {
            static KNOWN: RefCell<HashMap<String, Option<Quality>>> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            if let Some(found) = known.get(name) {
                return *found;
            }
            if known.len() == MOST_NAMES {
                known.clear();
            }
            let found = Self::of_new_name(name);
            known.insert(name.to_owned(), found);
            found
        })
    }

    /// Returns what a metric states about the result; `None` for a measurement.
    pub fn of_metric(metric: &Metric) -> Option<Self> {
        let quality = Self::of_name(&metric.name)?;
        match (&metric.unit, quality, metric.better) {
            (Unit::Nanoseconds | Unit::Bytes, ..) => None,
            // The policy or the tool states it.
            (_, Self::Score, Better::Lower) => Some(Self::Error),
            (_, Self::Loss | Self::Error | Self::Failures, Better::Higher) => None,
            _ => Some(quality),
        }
    }

    /// Returns whether a name states that the number is a measurement, such as that of memory or a time.
    pub fn is_measurement(name: &str) -> bool {
        let name = name_words(name);
        let words = words(&name);
        is_measured(&words) || words.iter().any(|word| is_in(READINGS, word))
    }

    /// Returns whether a name states that the number may be another one although the program does the same: it identifies
    /// a run, a build or a device, counts what the tool repeats, or states what a compiler chose.
    fn may_differ(name: &str) -> bool {
        let name = name_words(name);
        let words = words(&name);
        let is_percentile =
            |word: &str| word.strip_prefix('p').is_some_and(|rank| rank.parse::<u16>().is_ok());
        let is_identity = |word: &&str| is_in(IDENTITIES, word);
        !words.is_empty() && words.iter().all(is_identity)
            || words.iter().any(|word| is_in(CHOICES, word) || is_percentile(word))
    }

    fn of_new_name(name: &str) -> Option<Self> {
        let spelled = SPELLINGS.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to));
        let name = name_words(&spelled);
        let words = words(&name);
        if is_work(&words) {
            return Some(Self::Work);
        }
        let joined = joined(&words);
        let any = |known: &str| joined.iter().any(|word| is_in(known, word));
        let is_count = any(ERRORS) && words.iter().all(|word| is_in(ERRORS, word) || is_in(OF_COUNTS, word));
        // A name of one of these words is more often a deviation.
        if any(FAILURES) || is_count && !matches!(words.as_slice(), ["error" | "err"]) {
            return Some(Self::Failures);
        }
        // The score of a whole benchmark is how fast it is.
        if matches!(words.as_slice(), ["score" | "scores"]) || is_measured(&words) || any(SETTINGS) {
            return None;
        }
        let known = [
            (LOSSES, Self::Loss),
            (DEVIATIONS, Self::Error),
            (SIMILARITIES, Self::Similarity),
            (SCORES, Self::Score),
            (CHECKSUMS, Self::Checksum),
        ];
        let found = known.into_iter().find(|(words, _)| any(words)).map(|(_, quality)| quality);
        // `top1_acc` and `output_hash`, but not `acc_cycles` or `hash_collisions`.
        found.or_else(|| match *words.last()? {
            "acc" => Some(Self::Score),
            "hash" => Some(Self::Checksum),
            _ => None,
        })
    }
}

/// Words of the lists that a name may separate: `exact_match`, `cross entropy`.
const COMPOUNDS: &str = "exactmatch passat1 passat5 passat10 passrate winrate solverate crossentropy bitsperbyte \
    bitspercharacter bitsperchar kldiv kldivergence cossim bitexact nonfinite infcount falsepositives falsenegatives \
    timedout notconverged deadlinemisses misseddeadlines missingkeys loglikelihood logprob maxerr maxdiff sisdr sisnr \
    allclose";

/// Words of the lists that a number may follow, which states a threshold or a position: `mAP50`, `recall5`.
const NUMBERED: &str = "accuracy ap ndcg recall precision";

/// Returns the words, the compounds among them, and words without their numbers.
fn joined(words: &[&str]) -> Vec<String> {
    let compounds = (2..=3).flat_map(|count| words.windows(count)).map(<[&str]>::concat);
    let numbered = words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    let own = words.iter().map(|word| (*word).to_owned());
    let compounds = compounds.filter(|word| is_in(COMPOUNDS, word));
    own.chain(compounds).chain(numbered.filter(|word| is_in(NUMBERED, word))).collect()
}

/// Returns whether a name with these words states a measurement, also a rate: `matches/s`, `crc32_per_second`.
fn is_measured(words: &[&str]) -> bool {
    let has_unit = words.last().is_some_and(|word| is_in(UNITS, word));
    has_unit || words.iter().any(|word| is_in(MEASURED, word))
}

/// Returns whether a name with these words states how much work is done.
fn is_work(words: &[&str]) -> bool {
    let before = words.iter().take_while(|word| is_in(BEFORE_WORK, word)).count();
    let after = words.iter().rev().take_while(|word| is_in(AFTER_WORK, word)).count();
    let named = words.get(before..words.len().saturating_sub(after)).unwrap_or_default();
    [words, named].iter().any(|words| WORK.split('|').any(|name| name == words.join(" ")))
}

/// Returns the lower-case words of a name: `batch_size`, `batchSize`, `Batch size`.
pub fn name_words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
        before = c;
    }
    words
}

/// Returns the words of a text, without the characters between them.
pub fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Returns whether a word is in a list, in which spaces separate the words.
pub fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_that_judge_a_result_are_known_by_their_names() {
        for (names, quality) in [
            (
                "errors error_count failures nan_count NaNs errors/op failed_requests fail_rate dropped overflows \
                 non_finite inf_count lost_packets false_positives timed_out",
                Quality::Failures,
            ),
            (
                "error max_error relErr max_abs_diff bad_pixels verification-errors cosine_distance max_ulp residual",
                Quality::Error,
            ),
            ("loss val_loss perplexity nll bits_per_byte cross_entropy kl_div", Quality::Loss),
            (
                "accuracy top1 top-1 top1_acc passed success_rate valid_rows F1 IoU mIoU mAP mAP50 converged ndcg@10 \
                 exact_match pass@1 pass_rate precision match_rate r2 AUROC",
                Quality::Score,
            ),
            ("cosine cosine_similarity cos_sim bit_exact", Quality::Similarity),
            ("checksum output_hash", Quality::Checksum),
            (
                "n elements batch batchSize seq_len tokens rows items num_items n_items numElements item_count pixels \
                 input_size rows/op elements_per_call images prompt_tokens context_len width channels \
                 hidden_size particles num_threads m k num_requests frames output_tokens bs",
                Quality::Work,
            ),
        ] {
            for name in names.split(' ') {
                assert_eq!(Quality::of_name(name), Some(quality), "{name}");
            }
        }
        let measured = "page-faults cache_misses items-per-second inflight latency_error std_err time_diff diff_ms p99 \
            branch-misses gc.alloc.rate.norm bytes_per_second iterations depth validation_s pass hits loss_scale hit_rate standard_deviation lost_ms top_speed map_ns fpr median_absolute_deviation identical_code_folding lost_samples pass_1_rewrites pass_10 top_5_kernels k_l num_inf_loops match2_ns inf/s inf_per_sec \
            matches/s crc32_per_second acc_cycles bad_speculation score
            error_tolerance hash_collisions size code_size hash_s bytes count nodes B/op allocs/op items_per_s items/s ns/op op \
            n_size opsize flops output_items bitems iter_count";
        for name in measured.split_ascii_whitespace() {
            assert_eq!(Quality::of_name(name), None, "{name}");
        }
    }
}
