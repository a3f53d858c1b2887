//! Selects the benchmarks and metrics of results, and renames benchmarks.

use std::collections::{BTreeSet, HashSet};

use regex::Regex;

use crate::gate::Policy;
use crate::model::{BenchmarkName, Run, counted};
use crate::pipeline::Filter;

use super::CliError;

/// Options that select benchmarks by name, for every command that reads results.
#[derive(Debug, Clone, clap::Args)]
pub struct NameArgs {
    /// Only benchmarks whose name (model/target/function) matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    filter: Vec<Regex>,
    /// Leave out benchmarks whose name matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<Regex>,
}

impl NameArgs {
    /// Returns true if `--filter` names the benchmarks to show.
    pub fn is_filtered(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Returns the names that the options keep.
    ///
    /// # Errors
    /// A pattern that matches none of the names, or options that leave nothing.
    pub fn kept<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Result<KeptNames, CliError> {
        let filter = matching(&self.filter, names.clone(), "--filter")?;
        let exclude = matching(&self.exclude, names.clone(), "--exclude")?;
        let kept = KeptNames { filter, exclude: (!self.exclude.is_empty()).then_some(exclude) };
        if !self.exclude.is_empty() && !names.into_iter().any(|name| kept.has(name)) {
            return Err(CliError::usage("--exclude leaves out every benchmark of these results")
                .hint("use a pattern that matches fewer names"));
        }
        Ok(kept)
    }
}

/// The names that `--filter` and `--exclude` keep.
#[derive(Debug)]
pub struct KeptNames {
    filter: Filter,
    exclude: Option<Filter>,
}

impl KeptNames {
    pub fn has(&self, name: &str) -> bool {
        self.filter.selects(name) && !self.excludes(name)
    }

    fn excludes(&self, name: &str) -> bool {
        self.exclude.as_ref().is_some_and(|exclude| exclude.selects(name))
    }

    /// Notes that tell readers of a verdict which of these names it does not cover.
    pub fn notes<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
        let filtered = names.clone().filter(|name| !self.filter.selects(name)).count();
        let excluded: BTreeSet<&str> =
            names.filter(|name| self.filter.selects(name) && self.excludes(name)).collect();
        let first: Vec<String> = excluded.iter().take(SHOWN).map(|name| crate::report::clean(name)).collect();
        let more = excluded.len() - first.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named =
            left_out("--exclude", excluded.len()).map(|note| format!("{note}: {}{more}", first.join(", ")));
        left_out("--filter", filtered).into_iter().chain(named).collect()
    }
}

/// Maximum number of excluded benchmarks that a note names.
const SHOWN: usize = 5;

fn left_out(option: &str, count: usize) -> Option<String> {
    let verb = if count == 1 { "was" } else { "were" };
    (count > 0)
        .then(|| format!("{option} leaves out {}, which {verb} not judged", counted(count, "benchmark")))
}

/// Options of a comparison that select benchmarks, or pair benchmarks with different names.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Only this metric; repeatable; a selected metric can fail the gate
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    metric: Vec<String>,
    /// Use only benchmarks that match as the base side; a single result can then provide both sides
    #[arg(long, value_name = "REGEX")]
    base_filter: Vec<Regex>,
    /// Use only benchmarks that match as the head side
    #[arg(long, value_name = "REGEX")]
    head_filter: Vec<Regex>,
    /// Compare the base's benchmark FROM with the head's TO; `*` stands for the same text in both
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    rename: Vec<String>,
}

impl SelectArgs {
    /// Returns true if a single result is enough, because the options select each side from it by name.
    pub fn splits_one(&self) -> bool {
        !self.base_filter.is_empty() || !self.head_filter.is_empty()
    }

    /// The metrics that are judged; empty for all.
    pub fn metrics(&self) -> &[String] {
        &self.metric
    }

    /// Returns true if these options, or those for names, may leave benchmarks out of the comparison.
    pub fn leaves_out(&self, names: &NameArgs) -> bool {
        self.splits_one() || names.is_filtered() || !names.exclude.is_empty()
    }

    /// Reduces both runs and the policy to the selection, also by name. Returns notes for the report.
    ///
    /// # Errors
    /// A pattern, name or metric that matches nothing: the remaining benchmarks would be judged instead of
    /// the intended ones.
    pub fn apply(
        &self,
        names: &NameArgs,
        base: &mut Run,
        head: &mut Run,
        policy: &mut Policy,
    ) -> Result<Vec<String>, CliError> {
        let mut notes = Vec::new();
        keep(base, &self.base_filter, "--base-filter")?;
        keep(head, &self.head_filter, "--head-filter")?;
        self.rename(base)?;
        if self.splits_one()
            && let ([base], [head]) = (base.benchmarks.as_mut_slice(), head.benchmarks.as_slice())
            && base.name != head.name
        {
            notes.push(format!("{} is compared with {}", head.name, base.name));
            base.rename(head.name.clone());
        }
        let all: BTreeSet<BenchmarkName> =
            base.benchmarks.iter().chain(&head.benchmarks).map(|benchmark| benchmark.name.clone()).collect();
        let all = all.iter().map(BenchmarkName::as_str);
        let kept = names.kept(all.clone())?;
        for run in [&mut *base, &mut *head] {
            run.benchmarks.retain(|benchmark| kept.has(benchmark.name.as_str()));
        }
        notes.extend(kept.notes(all));
        self.only_metrics(base, head, policy)?;
        Ok(notes)
    }

    fn rename(&self, base: &mut Run) -> Result<(), CliError> {
        let mut taken: HashSet<usize> = HashSet::new();
        for pair in self.rename.chunks_exact(2) {
            let (from, to) = (&pair[0], &pair[1]);
            let mut matched = false;
            for (at, benchmark) in base.benchmarks.iter_mut().enumerate() {
                if taken.contains(&at) {
                    continue;
                }
                if let Some(name) = renamed(benchmark.name.as_str(), from, to) {
                    benchmark.rename(BenchmarkName::new(name));
                    taken.insert(at);
                    matched = true;
                }
            }
            if !matched {
                return Err(nothing("--rename", from));
            }
        }
        let mut names = HashSet::new();
        match base.benchmarks.iter().find(|benchmark| !names.insert(&benchmark.name)) {
            Some(twice) if !self.rename.is_empty() => Err(CliError::usage(format!(
                "after --rename, two benchmarks of the base are called {}",
                twice.name
            ))
            .hint("leave one of them out with --base-filter")),
            _ => Ok(()),
        }
    }

    fn only_metrics(&self, base: &mut Run, head: &mut Run, policy: &mut Policy) -> Result<(), CliError> {
        if self.metric.is_empty() {
            return Ok(());
        }
        let named = policy.like_a_time();
        let wanted = |name: &str| self.metric.iter().any(|metric| metric == name);
        for metric in &self.metric {
            let mut all = base.benchmarks.iter().chain(&head.benchmarks);
            if !all.any(|benchmark| benchmark.metric(metric).is_some()) {
                return Err(nothing("--metric", metric));
            }
            match policy.metrics.iter_mut().find(|(known, _)| known == metric) {
                Some((_, rule)) => rule.fatal = true,
                None => policy.metrics.push((metric.clone(), named.clone())),
            }
        }
        // A metric that is not selected can't be required.
        for (_, rule) in policy.metrics.iter_mut().filter(|(known, _)| !wanted(known)) {
            rule.fatal = false;
        }
        // Overrides that exempt a benchmark stay in effect.
        let others = policy.overrides.iter_mut().filter(|rule| !rule.metric.as_deref().is_some_and(wanted));
        for rule in others.filter(|rule| rule.fatal == Some(true)) {
            rule.fatal = None;
        }
        let all = base.benchmarks.iter().chain(&head.benchmarks);
        let kept: HashSet<BenchmarkName> = all
            // Failed benchmarks have no metrics, so they would disappear here; they must stay.
            .filter(|b| !b.outcome.is_ok() || b.metrics.iter().any(|series| wanted(&series.metric.name)))
            .map(|benchmark| benchmark.name.clone())
            .collect();
        for run in [base, head] {
            run.benchmarks.retain(|benchmark| kept.contains(&benchmark.name));
        }
        Ok(())
    }
}

/// Reduces a run to the benchmarks that match.
fn keep(run: &mut Run, patterns: &[Regex], option: &str) -> Result<(), CliError> {
    let filter = matching(patterns, run.benchmarks.iter().map(|benchmark| benchmark.name.as_str()), option)?;
    run.benchmarks.retain(|benchmark| filter.selects(benchmark.name.as_str()));
    Ok(())
}

/// The filter for these patterns, each of which must select at least one of the names.
fn matching<'a>(
    patterns: &[Regex],
    names: impl Iterator<Item = &'a str> + Clone,
    option: &str,
) -> Result<Filter, CliError> {
    for pattern in patterns {
        let one = Filter::new(std::slice::from_ref(pattern));
        if !names.clone().any(|name| one.selects(name)) {
            return Err(nothing(option, pattern.as_str()));
        }
    }
    Ok(Filter::new(patterns))
}

/// The new name, if `name` matches `from`.
pub(super) fn renamed(name: &str, from: &str, to: &str) -> Option<String> {
    if name == from {
        return Some(to.to_owned());
    }
    let (before, after) = from.split_once('*')?;
    let same = name.strip_prefix(before)?.strip_suffix(after)?;
    Some(to.replacen('*', same, 1))
}

fn nothing(option: &str, what: &str) -> CliError {
    CliError::usage(format!("{option} {} matches nothing in these results", crate::report::clean(what)))
        .hint("without this option, `--all` lists every benchmark and metric")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_the_same_text_in_both_names() {
        assert_eq!(renamed("old/64/x", "old/*/x", "new/*/x").as_deref(), Some("new/64/x"));
        assert_eq!(renamed("old", "old", "new").as_deref(), Some("new"));
        assert_eq!(renamed("a*b", "a*b", "c").as_deref(), Some("c"));
        assert_eq!(renamed("other", "old/*", "new/*"), None);
        assert_eq!(renamed("aba", "ab*ba", "x*"), None);
    }
    #[test]
    fn notes_count_what_an_option_leaves_out() {
        let patterns = |words: &[&str]| words.iter().map(|word| Regex::new(word).unwrap()).collect();
        let names = NameArgs { filter: patterns(&["^a"]), exclude: patterns(&["2$"]) };
        let all = ["a1", "a2", "b1", "b2"];
        let kept = names.kept(all.into_iter()).unwrap();
        assert_eq!(
            kept.notes(all.into_iter()),
            [
                "--filter leaves out 2 benchmarks, which were not judged",
                "--exclude leaves out 1 benchmark, which was not judged: a2"
            ]
        );
        let kept =
            NameArgs { filter: patterns(&["^a|1$"]), exclude: Vec::new() }.kept(all.into_iter()).unwrap();
        assert_eq!(kept.notes(all.into_iter()), ["--filter leaves out 1 benchmark, which was not judged"]);
    }
}
