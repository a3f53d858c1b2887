//! `benchgate compare A B C`: several results with one base, a column each.

use crate::exit_code::ExitCode;
use crate::gate::{self, CompareOptions, Comparison};
use crate::report::{self, Compared};

use super::inputs::{self, LoadedRun};
use super::policy_args::PolicyArgs;
use super::rendering::{ComparisonArgs, OutputFormat};
use super::result_args::SourceArgs;
use super::select::SelectArgs;
use super::{CliError, Terminal};

/// A request to compare results in columns.
#[derive(Debug)]
pub struct ColumnsRequest<'a> {
    /// The results as the user named them; the first is the base of all others.
    pub names: &'a [String],
    pub source: &'a SourceArgs,
    pub options: CompareOptions,
    pub report: &'a ComparisonArgs,
    pub select: &'a SelectArgs,
    pub policy: &'a PolicyArgs,
    /// Publishing was requested, which takes two results.
    pub github: bool,
}

/// Compares every other result with the first.
pub fn run(args: &ColumnsRequest<'_>, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let names = args.names;
    let format = args.report.output.format;
    if !matches!(format, OutputFormat::Terminal | OutputFormat::Markdown) || args.github {
        return Err(CliError::usage("more than two results are only written as a table or as Markdown")
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
    // An unchanged result may turn red in any column, so the columns share the error budget.
    let share = policy.alpha / (names.len() - 1) as f64;
    for (mut head, label) in loaded.zip(&names[1..]) {
        let mut policy = policy.clone();
        policy.alpha = share;
        let mut base = base.clone();
        let notes = args.select.apply(&args.source.filter, &mut base.run, &mut head.run, &mut policy)?;
        let mut comparison: Comparison = gate::compare(&base.run, &head.run, &policy, &args.options);
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
