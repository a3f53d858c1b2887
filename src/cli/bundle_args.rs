//! Options of a command whose stages are split over two machines, and the output of the first half.

use std::path::{Path, PathBuf};

use crate::exit_code::ExitCode;
use crate::model::{Outcome, Unit, counted, is_sha256};
use crate::pipeline::{OpenBundle, PackedBundle, SideInput};
use crate::report::{clean, quantity};

use super::session::MeasureArgs;
use super::{CliError, Terminal};

/// One half of the stages, and the bundle between the two.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Stages split over machines")]
#[group(skip)]
#[command(group(clap::ArgGroup::new("half").args(["until", "from"])))]
pub struct BundleArgs {
    /// Stop after this stage, and pack the input of the next stages into --bundle (docs/bundles.md)
    #[arg(long, value_name = "STAGE", value_enum, requires = "bundle", conflicts_with = "run")]
    until: Option<Until>,
    /// Begin with this stage, from --bundle; needs no configuration, sources, compiler or Python
    #[arg(long, value_name = "STAGE", value_enum, requires = "bundle", conflicts_with = "dump_ir")]
    from: Option<From>,
    /// Bundle that --until writes and --from reads
    #[arg(long, value_name = "FILE", requires = "half")]
    bundle: Option<PathBuf>,
    /// Digest that --until printed; any other bundle is refused
    #[arg(long, value_name = "SHA256", requires = "from", value_parser = sha256)]
    bundle_sha256: Option<String>,
}

/// The last stage of the first half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Until {
    Compile,
}

/// The first stage of the second half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum From {
    Verify,
}

fn sha256(text: &str) -> Result<String, String> {
    let digits = text.to_ascii_lowercase();
    if is_sha256(&digits) { Ok(digits) } else { Err("expected 64 hexadecimal digits".to_owned()) }
}

/// The stages that a command runs.
pub enum Half<'a> {
    Whole,
    /// The stages up to compilation, whose results are packed into this bundle.
    UntilCompile(&'a Path),
    /// The stages from verification on, which read this bundle.
    FromVerify(&'a Path),
}

impl BundleArgs {
    pub fn half(&self) -> Half<'_> {
        match (self.until, self.from, &self.bundle) {
            (Some(Until::Compile), _, Some(bundle)) => Half::UntilCompile(bundle),
            (_, Some(From::Verify), Some(bundle)) => Half::FromVerify(bundle),
            _ => Half::Whole,
        }
    }

    /// Runs the first half: exports, compiles and packs. Returns a description of the bundle for printing.
    pub fn make(
        &self,
        bundle: &Path,
        sides: &[SideInput],
        notices: &[String],
        measure: &MeasureArgs,
        json: bool,
        terminal: &Terminal,
    ) -> Result<(String, ExitCode), CliError> {
        let made = measure.make_bundle(sides, notices, bundle, terminal)?;
        let text = if json { packed_json(&made, bundle) } else { packed(&made, bundle) };
        let failed = made.benchmarks.iter().any(|(_, _, outcome)| matches!(outcome, Outcome::Failed { .. }));
        Ok((text, if failed { ExitCode::Error } else { ExitCode::Pass }))
    }

    /// Opens the bundle, with which the second half begins.
    pub fn open(
        &self,
        bundle: &Path,
        measure: &MeasureArgs,
        terminal: &Terminal,
    ) -> Result<OpenBundle, CliError> {
        measure.open_bundle(bundle, self.bundle_sha256.as_deref(), terminal)
    }
}

fn reported(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Ok => ("ok", None),
        Outcome::Unsupported { reason } => ("unsupported", Some(reason.clone())),
        Outcome::Failed { stage, why } => ("failed", Some(format!("{stage}: {why}"))),
        Outcome::Skipped { reason } => ("skipped", Some(reason.clone())),
    }
}

/// Describes the contents of a written bundle, and what was left out.
fn packed(made: &PackedBundle, bundle: &Path) -> String {
    let mut text = String::new();
    let mut whole = 0;
    for (side, name, outcome) in &made.benchmarks {
        match reported(outcome) {
            (_, None) => whole += 1,
            (status, Some(why)) => {
                text.push_str(&format!("{status} {side} {}: {}\n", clean(name), clean(&why)));
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "three digits of it are shown")]
    let size = quantity(made.bytes as f64, &Unit::Bytes);
    let all = made.benchmarks.len();
    let modules = counted(all, "module");
    let of = if whole == all { String::new() } else { format!("{whole} of ") };
    text.push_str(&format!("wrote {}: {of}{modules}, {size}\n", bundle.display()));
    text.push_str(&format!("sha256 {}\n", made.sha256));
    text
}

/// Describes the bundle as JSON, for programs.
fn packed_json(made: &PackedBundle, bundle: &Path) -> String {
    let benchmarks = made.benchmarks.iter().map(|(side, name, outcome)| {
        let (status, why) = reported(outcome);
        serde_json::json!({"side": side.as_str(), "benchmark": name, "status": status, "why": why})
    });
    let value = serde_json::json!({
        "bundle": bundle,
        "sha256": made.sha256,
        "bytes": made.bytes,
        "benchmarks": benchmarks.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}
