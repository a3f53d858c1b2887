//! The meaning of a metric by the words of its name: how right a result is, how much work was done, or a rate.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::LocalKey;

use super::metric::{Better, Metric, Unit};

impl Metric {
    /// Returns whether the metric's name and unit say neither which direction is better nor that it is a measurement.
    pub fn is_of_unknown_meaning(&self) -> bool {
        self.better == Better::Unknown
            && Self::built_in(&self.name).is_none()
            && !Quality::may_differ(&self.name)
            && Quality::of_metric(self).is_none()
    }

    /// Returns whether the metric is a rate, which shows the work of a call next to its time.
    pub fn is_rate(&self) -> bool {
        let lower = name_words(&self.name);
        if words(&lower).last().is_some_and(|word| is_in(SHARES, word)) {
            return false;
        }
        let by_unit = match &self.unit {
            Unit::PerSecond => true,
            Unit::Other(unit) => states_rate(unit),
            Unit::Nanoseconds | Unit::Bytes | Unit::Count | Unit::Fraction => false,
        };
        by_unit || states_rate(&self.name)
    }

    /// Returns whether the metric is a rate of what a program works on. Others may fall because it got better: cache misses.
    pub fn is_rate_of_work(&self) -> bool {
        let of_machine = || words(&name_words(&self.name)).iter().any(|word| is_in(MACHINE, word));
        self.is_rate() && !states_costs(&self.name) && !of_machine()
    }
}

/// Returns whether a name or a unit states a rate: `GB/s`, `frames_per_sec`, `decode_tps`, `TFLOPS`.
pub fn states_rate(name: &str) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, bool>> = RefCell::default();
    }
    remembered(&KNOWN, name, states_new_rate)
}

fn states_new_rate(name: &str) -> bool {
    let per = name.trim().rsplit_once('/').map(|(_, per)| per.to_lowercase());
    per.is_some_and(|per| is_in(TIMES, &per)) || is_rate(&words(&name_words(name)))
}

/// Returns whether a name states what costs time, energy or money, so that less of it, also in a given time, is no less work.
pub fn states_costs(name: &str) -> bool {
    states_waste(name) || words(&name_words(name)).iter().any(|word| is_in(COSTS, word))
}

/// Returns whether a name states something of which a program should have none, so that a higher rate of it is not better.
pub fn states_waste(name: &str) -> bool {
    words(&name_words(name)).iter().any(|word| is_in(WASTE, word))
}

/// Returns what was found out about a name. The rows of a file repeat a few names many times.
fn remembered<T: Copy>(
    known: &'static LocalKey<RefCell<HashMap<String, T>>>,
    name: &str,
    find: impl FnOnce(&str) -> T,
) -> T {
    const MOST_NAMES: usize = 4096;
    known.with_borrow_mut(|known| {
        if let Some(found) = known.get(name) {
            return *found;
        }
        if known.len() == MOST_NAMES {
            known.clear();
        }
        let found = find(name);
        known.insert(name.to_owned(), found);
        found
    })
}

/// Returns whether words without a slash state a rate.
fn is_rate(words: &[&str]) -> bool {
    let is_per = |pair: &[&str]| pair[0] == "per" && is_in(TIMES, pair[1]);
    words.windows(2).any(is_per)
        || words.last().is_some_and(|word| is_in(SHORT_RATES, word))
        || words.iter().any(|word| is_in(RATES, word))
}

/// Words for rates, wherever they stand in a name, and words that must be the last one.
const RATES: &str = "throughput bandwidth flops kflops mflops gflops tflops pflops";
const SHORT_RATES: &str = "fps qps rps tps sps ips iops mops gops tops bps kbps mbps gbps bw";
/// Units of time after `per` or a slash.
const TIMES: &str = "ns us µs ms s sec secs second seconds minute minutes hour hours";
/// Last words of names that compare a rate with another one.
const SHARES: &str = "util utilization utilisation efficiency eff ratio share percent percentage pct";
/// Words for what a program should have none of, and for money.
const WASTE: &str = "miss misses fault faults error errors failure failures failed retry retries stall stalls drop drops \
    dropped spill spills conflict conflicts collision collisions eviction evictions timeout timeouts abort \
    aborts alloc allocs allocations cost costs price usd";
/// Words for what a machine can do, which is not the rate of a program's own work.
const MACHINE: &str = "peak machine theoretical memory mem dram disk network net nic pcie host";
/// Other words for what costs time or energy.
const COSTS: &str = "allocation malloc mallocs insn insns inst insts cyc instruction instructions instr branches loads stores walks launches compares \
    dram energy power latency cycle cycles clock clocks dispatch dispatches switch switches migration \
    migrations interrupt interrupts overhead wait waits idle bubbles steals spins rehashes probes recompiles barriers syncs gc syscall syscalls wakeup wakeups hz khz mhz ghz";

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
/// Words that turn the direction of a score.
const DECLINES: &str = "drop gap delta degradation regression deviation decrease decline reduction";
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
const MEASURED: &str = "standard time latency duration elapsed runtime std stddev stdev stderr var cv memory \
    mem rss vram power energy temperature clock speedup slowdown speculation fps qps rps";
/// Words for settings.
const SETTINGS: &str =
    "scale size threshold tolerance tol bound bounds limit mode type function weight length seed";
/// Words in the names of numbers that tell runs and builds apart.
const IDENTITIES: &str = "run ci build version v revision rev commit git sha seed pid id number date day timestamp job port gpu cpu cuda \
    hip rocm vulkan gcc clang llvm iree torch python driver device index core thread worker lane host ptr addr address pr pull request issue runner node agent attempt tid nvcc glibc msvc iter iters iterations repeat repeats repetitions reps rounds samples runs times procs warmup";
/// Words for what a machine reads, or what is computed from times.
const READINGS: &str =
    "ipc cpi temp util utilization occupancy load freq frequency mhz ghz hz eff efficiency";
/// Words for what a compiler chooses, also the memory that its code needs.
const CHOICES: &str = "tile tiles tiling split splitk tactic unroll unrolled vgpr sgpr regs registers vgprs sgprs smem lds grid warps waves stages vec vector vlen lmul heap allocated dispatch dispatches";
const UNITS: &str = "ps ns us ms s sec secs second seconds kb mb gb kib mib gib bytes";

/// Words in the names of hashes that identify a program or its source.
const OF_PROGRAMS: &str = "git commit build source src repo rev revision binary exe program executable";

impl Quality {
    /// Returns what a metric with this name states about the result; `None` for a measurement.
    pub fn of_name(name: &str) -> Option<Self> {
        thread_local! {
            static KNOWN: RefCell<HashMap<String, Option<Quality>>> = RefCell::default();
        }
        remembered(&KNOWN, name, Self::of_new_name)
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

    /// Returns whether a name states a checksum of results, and not the hash of a commit or a program.
    pub fn is_checksum(name: &str) -> bool {
        let lower = name_words(name);
        let words = words(&lower);
        let any = |known: &str| words.iter().any(|word| is_in(known, word));
        // A program can compute the checksum of a tree, but hashes of trees are git's.
        let is_of_program =
            any(OF_PROGRAMS) || any("hash sha sha1 sha256 md5 digest") && any("code head tree version");
        Self::of_name(name) == Some(Self::Checksum) && !matches!(words.as_slice(), ["hash"]) && !is_of_program
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
        let any = |known: &str| words.iter().any(|word| is_in(known, word));
        !words.is_empty() && words.iter().all(is_identity)
            || any("used") && any("bytes memory mem heap ram vram")
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
        if any(FAILURES) || any(ERRORS) {
            // `no_errors` and `error_free` are 1 if all is well.
            if matches!(words.first(), Some(&("no" | "without"))) || words.last() == Some(&"free") {
                return Some(Self::Score);
            }
        }
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
        // `accuracy_drop`, of which more is worse.
        let found = match found {
            Some(Self::Score | Self::Similarity) if any(DECLINES) => Some(Self::Error),
            found => found,
        };
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

/// Plurals of words of the lists.
const PLURALS: &str = "accuracies perplexities similarities correlations wers cers psnrs ious bleus";

/// Words of the lists that a number may follow, which states a threshold or a position: `mAP50`, `recall5`.
const NUMBERED: &str = "accuracy ap ndcg recall precision";

/// Returns the words, those without a plural's ending, the compounds among them, and words without their numbers.
fn joined(words: &[&str]) -> Vec<String> {
    let compounds = (2..=3).flat_map(|count| words.windows(count)).map(<[&str]>::concat);
    let numbered = words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    let own = words.iter().map(|word| (*word).to_owned());
    let singular = words.iter().filter(|word| is_in(PLURALS, word)).map(|word| {
        word.strip_suffix("ies")
            .map_or_else(|| word.trim_end_matches('s').to_owned(), |stem| format!("{stem}y"))
    });
    let compounds = compounds.filter(|word| is_in(COMPOUNDS, word));
    own.chain(singular).chain(compounds).chain(numbered.filter(|word| is_in(NUMBERED, word))).collect()
}

/// Returns whether a name with these words states a measurement, also a rate: `matches/s`, `crc32_per_second`.
fn is_measured(words: &[&str]) -> bool {
    let has_unit = words.last().is_some_and(|word| is_in(UNITS, word));
    has_unit || is_rate(words) || words.iter().any(|word| is_in(MEASURED, word))
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
                "accuracy_drop score_gap recall_delta cosine_deviation error max_error relErr max_abs_diff bad_pixels verification-errors cosine_distance max_ulp residual",
                Quality::Error,
            ),
            ("loss val_loss perplexity nll bits_per_byte cross_entropy kl_div", Quality::Loss),
            (
                "no_errors error_free accuracy top1 top-1 top1_acc passed success_rate valid_rows F1 IoU mIoU mAP mAP50 converged ndcg@10 \
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
