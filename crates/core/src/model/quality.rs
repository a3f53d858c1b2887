//! Metrics that state how right a result is. Their names are classified here, for the fields, counters and metrics of
//! every format.

/// How a metric states that a result is right.
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

/// Words in the names of metrics that count failures, whatever else the name says.
const FAILURES: &str = "failed failures nan nans mismatch mismatches mismatched crashes crashed timeouts oom diverged dropped overflow \
     overflows underflow underflows";

/// Words that count failures if all other words of the name are in [`OF_COUNTS`].
const ERRORS: &str =
    "error errors failure fail fails err errs exceptions aborted aborts invalid wrong incorrect skipped";
const OF_COUNTS: &str =
    "count counts num number n total of rate per op s sec second iteration check checks runtime is has";

const LOSSES: &str = "loss losses perplexity ppl wer cer";
const DEVIATIONS: &str = "err errs error errors diff diffs difference differences distance dissimilarity rmse mse mae \
    mape bad wrong incorrect invalid ulp ulps residual residuals";
const SIMILARITIES: &str = "cosine similarity ssim correlation pearson spearman";
const SCORES: &str = "accuracy score scores psnr snr f1 bleu rouge auc recall iou dice top1 top5 passed passing \
    success succeeded successful ok valid validated verified correct matches matched allclose converged";
const CHECKSUMS: &str = "checksum checksums crc crc32 digest";

/// Names of numbers that determine how much work is done.
const WORK: [&str; 4] = ["n", "elements", "tolerance", "threshold"];

/// Names whose capitals don't begin words, and names without them.
const SPELLINGS: [(&str, &str); 3] = [("NaN", " nan"), ("IoU", " iou"), ("mAP", " accuracy")];

/// Words for what a metric measures, also if it is the error or the difference of that.
const MEASURED: &str = "time latency duration elapsed runtime std stddev stdev stderr var cv throughput bandwidth memory \
    mem rss vram power energy temperature clock speedup slowdown speculation flops gflops tflops qps fps rps";
/// Words for settings.
const SETTINGS: &str =
    "scale size threshold tolerance tol bound bounds limit mode type function weight length seed";
const UNITS: &str = "ps ns us ms s sec secs second seconds kb mb gb kib mib gib bytes";

impl Quality {
    /// Returns what a metric with this name states about the result; `None` for a measurement.
    pub fn of_name(name: &str) -> Option<Self> {
        let spelled = SPELLINGS.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to));
        let name = name_words(&spelled);
        let words = words(&name);
        if matches!(words.as_slice(), [word] if WORK.contains(word)) {
            return Some(Self::Work);
        }
        let any = |known: &str| words.iter().any(|word| is_in(known, word));
        let is_count = any(ERRORS) && words.iter().all(|word| is_in(ERRORS, word) || is_in(OF_COUNTS, word));
        // A name of one of these words is more often a deviation.
        if any(FAILURES) || is_count && !matches!(words.as_slice(), ["error" | "err"]) {
            return Some(Self::Failures);
        }
        // Also a rate: `matches/s`, `crc32_per_second`.
        let has_unit = words.last().is_some_and(|word| is_in(UNITS, word));
        // The score of a whole benchmark is how fast it is.
        if matches!(words.as_slice(), ["score" | "scores"]) || any(MEASURED) || any(SETTINGS) || has_unit {
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
                "errors error_count failures nan_count NaNs errors/op failed_requests fail_rate dropped overflows",
                Quality::Failures,
            ),
            (
                "error max_error relErr max_abs_diff bad_pixels verification-errors cosine_distance max_ulp residual",
                Quality::Error,
            ),
            ("loss val_loss perplexity", Quality::Loss),
            ("accuracy top1 top1_acc passed success_rate valid_rows F1 IoU mAP converged", Quality::Score),
            ("cosine cosine_similarity", Quality::Similarity),
            ("checksum output_hash", Quality::Checksum),
            ("n elements", Quality::Work),
        ] {
            for name in names.split(' ') {
                assert_eq!(Quality::of_name(name), Some(quality), "{name}");
            }
        }
        let measured = "page-faults cache_misses items-per-second inflight latency_error std_err time_diff diff_ms p99 \
            branch-misses gc.alloc.rate.norm bytes_per_second iterations precision depth validation_s pass hits loss_scale inf/s inf_per_sec \
            matches/s crc32_per_second acc_cycles bad_speculation score
            error_tolerance hash_collisions size code_size hash_s";
        for name in measured.split_ascii_whitespace() {
            assert_eq!(Quality::of_name(name), None, "{name}");
        }
    }
}
