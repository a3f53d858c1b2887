//! `benchgate compare`: compares two results and judges the difference.

use std::path::Path;

use crate::exit_code::ExitCode;
use crate::gate::{self, CompareOptions, Comparison, Policy, compare};
use crate::model::{Consequence, LintCode};
use crate::report::{self, Compared};

use super::inputs::{self, LoadedRun};
use super::policy_args::PolicyArgs;
use super::rendering::{ComparisonArgs, OutputFormat};
use super::reporting::{GithubArgs, Story, Texts};
use super::result_args::{PairArgs, SourceArgs};
use super::select::SelectArgs;
use super::{CliError, Terminal, guesses, numbered, runtime};

/// Compare two results and judge the difference
///
/// Reads benchgate's own run.json and the formats of other tools, recognized by content. Prints a table and ends with
/// the exit code of the verdict (docs/exit-codes.md).
#[derive(Debug, clap::Args)]
// Results are required, so that a script whose variables are empty doesn't compare an unrelated run.json.
#[command(
    after_help = EXAMPLES,
    group = clap::ArgGroup::new("results").args(["base_file", "base", "run", "explain"]).required(true).multiple(true)
)]
pub struct CompareArgs {
    #[command(flatten)]
    inputs: PairArgs,
    /// More results, each compared with BASE in a separate column
    #[arg(value_name = "MORE")]
    more: Vec<String>,
    /// Show each further result in a separate column, even if the names look like two patterns that the shell expanded
    #[arg(long, requires = "more")]
    columns: bool,
    /// Seed of all random choices; the same files, policy and seed give the same bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Explain a finding and how to fix it
    #[arg(long, value_name = "CODE", conflicts_with_all = ["base_file", "head_file", "base", "head"])]
    explain: Option<String>,
    #[command(flatten)]
    report: ComparisonArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    github: GithubArgs,
}

const EXAMPLES: &str = "\
Examples:
  benchgate compare base.json head.json           two results, any format
  benchgate compare run.json                      both sides of one run
  benchgate compare old.json#head run.json#head   the heads of two runs
  benchgate compare 'base-*.json' 'head-*.json'   several processes per side
  benchgate compare base.json a.json b.json       several results side by side
  benchgate compare results/base results/head     the results in two folders
  benchgate compare two.json --base-filter old --head-filter new
  iree-benchmark-module … | benchgate compare base.json -
  benchgate compare base.json head.json --format markdown --output report.md
  benchgate compare --explain single-repetition

Exit codes: 0 pass, 2 usage, 10 regressed, 11 inconclusive, 12 a benchmark is
missing, 13 diverged, 20 a stage failed or a result can't be judged, 21 input unreadable.";

pub fn run(args: &CompareArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(code) = &args.explain {
        return explain(code, terminal);
    }
    if !args.more.is_empty() {
        let names: Vec<String> = args.inputs.named().chain(&args.more).cloned().collect();
        if let Some([base, head]) = numbered::expanded_patterns(&names).filter(|_| !args.columns) {
            return Err(CliError::usage(format!(
                "{} results were given: did the shell expand two patterns?",
                names.len()
            ))
            .hint(format!(
                "quote them to compare two sides of several files: `benchgate compare '{base}' '{head}'`; `--columns` \
                 compares each file with the first"
            )));
        }
        let columns = ColumnsRequest {
            names: &names,
            source: &args.inputs.source,
            options: CompareOptions {
                seed: args.seed,
                today: runtime::today(),
                metrics: args.select.metrics().to_vec(),
                ..CompareOptions::default()
            },
            report: &args.report,
            select: &args.select,
            policy: &args.policy,
            github: args.github.wanted(),
        };
        return compare_columns(&columns, terminal);
    }
    // Contradictory options are reported before large files are read.
    args.policy.resolve()?;
    let destination = args.report.output.open()?;
    let (mut base, mut head) = args.inputs.load(&args.select)?;
    let recorded = head.recorded.take();
    // The number of blocks belongs to measuring, not to the rules for judging.
    let rules = |policy: &Policy| Policy { sequential: Policy::default().sequential, ..policy.clone() };
    let foreign = recorded.as_ref().is_some_and(|recorded| rules(&recorded.policy) != Policy::default());
    // If both sides have the same commit, the run chose its own base and policy. A proposed change must use
    // its base's, as for `gate`.
    if recorded.is_some() && args.policy.policy.is_none() && base.run.commit == head.run.commit {
        let is_of_a_suite = base.run.commit.is_some();
        if is_of_a_suite || foreign {
            super::gate::only_merged(Path::new("."))?;
        }
    }
    let mut policy = args.policy.again(recorded)?;
    let partial = args.select.leaves_out(&args.inputs.source.names);
    args.policy.refuse_unmatched(&policy, [&base.run, &head.run], partial)?;
    let notes = args.select.apply(&args.inputs.source.names, &mut base.run, &mut head.run, &mut policy)?;
    let options = CompareOptions {
        seed: args.seed,
        today: runtime::today(),
        metrics: args.select.metrics().to_vec(),
        whole_suite: args.policy.is_of_whole_suite(partial),
        ..CompareOptions::default()
    };
    let mut comparison = compare(&base.run, &head.run, &policy, &options);
    let sides = if base.notes == head.notes {
        vec![("both sides", base.notes)]
    } else {
        vec![("base", base.notes), ("head", head.notes)]
    };
    for (side, notes) in sides {
        comparison.notes.extend(notes.into_iter().map(|note| format!("{side}: {note}")));
    }
    comparison.notes.extend(notes);
    comparison.notes.extend(guesses::notes(&base.run, &head.run));
    comparison.notes.extend(args.policy.note_of_a_change()?);
    if foreign && args.policy.policy.is_none() {
        // The file may come from a fork, so the report must say that the policy came from this file.
        let note = "judged by the policy in the run file, which differs from the default; --policy FILE selects another";
        comparison.notes.push(note.to_owned());
    }
    args.policy.downgrade(&mut comparison);
    report::withhold(&mut comparison, args.report.disclose.unwrap_or_default());
    // On a terminal the user has just typed the command, so only a report shows it.
    let reproduce = (args.report.output.format != OutputFormat::Terminal).then(runtime::command_line);
    args.report.write(&comparison, reproduce, destination, terminal)?;
    if args.github.wanted() {
        let story = Story::Compared {
            comparison: &comparison,
            reproduce: Some(runtime::command_line()),
            alerts: &[],
        };
        args.github.reporting().report(&Texts::new(&story, None, true), None, None, terminal)?;
    }
    let code = comparison.exit_code;
    // The process is about to exit, and freeing the samples of thousands of rows would only take time.
    std::mem::forget((base.run, head.run, comparison));
    Ok(code)
}

fn explain(code: &str, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let Some(lint) = LintCode::parse(code) else {
        let nearest = LintCode::ALL
            .iter()
            .map(|known| (strsim::osa_distance(known.as_str(), code), known.as_str()))
            .min()
            .filter(|(distance, known)| *distance <= known.len().min(code.len()) / 2);
        let known: Vec<&str> = LintCode::ALL.iter().map(|known| known.as_str()).collect();
        let hint = match nearest {
            Some((_, nearest)) => format!("did you mean {nearest}?"),
            None => format!("the codes are {}", known.join(", ")),
        };
        return Err(
            CliError::usage(format!("there is no finding with the code {}", report::clean(code))).hint(hint)
        );
    };
    let consequence = match lint.consequence() {
        Consequence::Note => "the finding is only reported; the verdict is not affected",
        Consequence::NotGreen => "the row can't be green; a slowdown stays red",
        Consequence::Inconclusive if lint == LintCode::Quarantined => {
            "there is nothing to compare with: the row is missing"
        }
        Consequence::Inconclusive => "the row is inconclusive: it can be neither green nor red",
        Consequence::Error => "the row can't be judged",
    };
    terminal.say(&format!(
        "{lint}\n  meaning      {}\n  consequence  {consequence}\n  fix          {}\n",
        lint.description(),
        lint.fix()
    ));
    Ok(ExitCode::Pass)
}

/// A request to compare results in columns.
#[derive(Debug)]
pub struct ColumnsRequest<'a> {
    /// The results by the names that the user gave. The first one is the base of all others.
    pub names: &'a [String],
    pub source: &'a SourceArgs,
    pub options: CompareOptions,
    pub report: &'a ComparisonArgs,
    pub select: &'a SelectArgs,
    pub policy: &'a PolicyArgs,
    /// True if publishing was requested, which only works for two results.
    pub github: bool,
}

/// Compares every other result with the first.
pub fn compare_columns(args: &ColumnsRequest<'_>, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let names = args.names;
    let format = args.report.output.format;
    if !matches!(format, OutputFormat::Terminal | OutputFormat::Markdown) || args.github {
        return Err(CliError::usage("more than two results can only be written as a table or as Markdown")
            .hint("compare two of them for other formats and for GitHub"));
    }
    let policy = args.policy.resolve()?;
    let destination = args.report.output.open()?;
    let sides =
        names.iter().map(|name| inputs::expand(std::slice::from_ref(name))).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&[inputs::Input]> = sides.iter().map(Vec::as_slice).collect();
    inputs::refuse_shared_stdin(&all)?;
    let mut loaded = all
        .iter()
        .map(|side| inputs::load_side(side, args.source.format_in))
        .collect::<Result<Vec<LoadedRun>, _>>()?
        .into_iter();
    let Some(base) = loaded.next() else { return Ok(ExitCode::Usage) };
    let mut compared = Vec::new();
    // A false positive can occur in any column, so the columns share the error budget.
    let share = policy.alpha / (names.len() - 1) as f64;
    for (mut head, label) in loaded.zip(&names[1..]) {
        head.run.lints.extend(inputs::lost_files(&base, &head));
        let mut policy = policy.clone();
        policy.alpha = share;
        let mut base = base.clone();
        let partial = args.select.leaves_out(&args.source.names);
        args.policy.refuse_unmatched(&policy, [&base.run, &head.run], partial)?;
        let notes = args.select.apply(&args.source.names, &mut base.run, &mut head.run, &mut policy)?;
        let whole_suite = args.policy.is_of_whole_suite(partial);
        let options = CompareOptions { whole_suite, ..args.options.clone() };
        let mut comparison: Comparison = compare(&base.run, &head.run, &policy, &options);
        comparison.notes.extend(base.notes.into_iter().map(|note| format!("{}: {note}", names[0])));
        comparison.notes.extend(head.notes.into_iter().map(|note| format!("{label}: {note}")));
        comparison.notes.extend(notes);
        comparison.notes.extend(args.policy.note_of_a_change()?);
        args.policy.downgrade(&mut comparison);
        report::withhold(&mut comparison, args.report.disclose.unwrap_or_default());
        compared.push(Compared { label: label.clone(), comparison });
    }
    let code = gate::first_of(compared.iter().map(|compared| compared.comparison.exit_code));
    let text = if format == OutputFormat::Markdown {
        report::columns_markdown(&names[0], &compared, args.report.sort, args.report.all)
    } else {
        let options = destination.options(terminal, args.report.all);
        report::columns(&names[0], &compared, args.report.sort, code, options)
    };
    destination.write(&text, terminal)?;
    Ok(code)
}
