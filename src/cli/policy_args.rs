//! The policy of a command: the defaults, overridden by a policy file, overridden by the command line.

use std::path::{Path, PathBuf};

use crate::config;
use crate::exit_code::ExitCode;
use crate::gate::{self, Comparison, FailOn, Policy, TestKind, Waiver};
use crate::model::{Run, Verdict};

use super::inputs::Recorded;
use super::{CliError, choices, runtime};

/// Options that change the policy.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// Use the policy of this benchgate.toml; the options below override it
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Minimum slowdown that fails, for every gating metric except metrics of generated code; a lower tolerance of the
    /// policy is raised to the same value [default: 1%]
    #[arg(long, value_name = "PERCENT", value_parser = config::fraction)]
    pub floor: Option<f64>,
    /// Slowdown that a pass must rule out, for every gating metric except metrics of generated code; a higher floor of
    /// the policy is lowered to the same value [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = config::fraction)]
    pub tolerance: Option<f64>,
    /// Probability that an unchanged suite turns red [default: 0.01]
    #[arg(long, value_name = "P", value_parser = config::alpha)]
    pub alpha: Option<f64>,
    /// Coefficient of variation between processes, used if the files don't show it [default: estimated from how much
    /// the repetitions vary]
    #[arg(long, value_name = "PERCENT", value_parser = config::spread)]
    pub between_cv: Option<f64>,
    /// Statistical test for the verdict
    #[arg(long, value_name = "TEST", value_parser = choices::described(&TestKind::ALL, TestKind::as_str, described))]
    pub test: Option<TestKind>,
    /// Verdicts that make the exit code non-zero [default: regressed,diverged,error,missing,inconclusive]
    #[arg(long, value_name = "VERDICTS", value_delimiter = ',', value_parser = failing_verdict)]
    pub fail_on: Option<Vec<Verdict>>,
    /// Report the verdict, but don't fail because of it
    #[arg(long)]
    pub warn_only: bool,
}

fn described(test: TestKind) -> Option<&'static str> {
    Some(match test {
        TestKind::Auto => {
            "A paired test if base and head were measured in pairs; otherwise an unpaired test that uses the \
             spread between processes"
        }
        TestKind::Welch => "Welch's t-test on all repetitions, as older benchmark tools do",
        TestKind::MannWhitney => {
            "Mann-Whitney U test on all repetitions, as google/benchmark's compare.py does"
        }
    })
}

impl PolicyArgs {
    /// With `--warn-only`, sets the exit code to 0 before anything is written, so that the report and the
    /// process agree. Notes the original exit code.
    pub fn downgrade(&self, comparison: &mut Comparison) {
        if self.warn_only && comparison.exit_code != ExitCode::Pass {
            let code = comparison.exit_code.code();
            comparison
                .notes
                .push(format!("warnings only: without --warn-only the exit code would be {code}"));
            comparison.exit_code = ExitCode::Pass;
        }
    }

    /// The policy of the command line alone, when no configuration provides one.
    ///
    /// # Errors
    /// A policy file that can't be used, and contradictory options.
    pub fn resolve(&self) -> Result<Policy, CliError> {
        self.over(Policy::default())
    }

    /// Applies these options to the policy that judged a run when it was measured. Without options, judging
    /// the run again gives the same verdict.
    pub fn again(&self, recorded: Option<Recorded>) -> Result<Policy, CliError> {
        let Some(Recorded { policy, blocks }) = recorded else { return self.resolve() };
        let mut policy = self.over(policy)?;
        // The number of looks was fixed by the measurement, no matter which policy judges it now.
        policy.sequential = blocks.unwrap_or(policy.sequential);
        Ok(policy)
    }

    /// Refuses a policy file that requires something of benchmarks or metrics that neither result has: a
    /// misspelled name would never be judged. If `filtered`, only a part of the results is judged, so nothing
    /// is refused.
    pub fn refuse_unmatched(&self, policy: &Policy, runs: [&Run; 2], partial: bool) -> Result<(), CliError> {
        let Some(file) = self.policy.as_ref().filter(|_| self.is_of_whole_suite(partial)) else {
            return Ok(());
        };
        let unmatched = gate::unmatched(policy, runs);
        if unmatched.is_empty() {
            return Ok(());
        }
        Err(CliError::usage(format!(
            "failed to use the policy in {}: {}",
            file.display(),
            unmatched.join("; ")
        ))
        .hint("correct the name; with `--filter`, a policy may mention benchmarks that are not compared"))
    }

    /// Returns whether the results should have every benchmark that the policy mentions. That is unknown if it comes with
    /// a result, which may be a part of its suite's.
    pub fn is_of_whole_suite(&self, partial: bool) -> bool {
        self.policy.is_some() && !partial
    }

    /// A note if the policy file belongs to the very change that it judges.
    pub fn note_of_a_change(&self) -> Result<Option<String>, CliError> {
        let Some(file) = &self.policy else { return Ok(None) };
        let is_own = runtime::is_part_of_a_proposed_change(file, Path::new("."))?;
        Ok(is_own.then(|| {
            format!(
                "judged by the policy in {} of this checkout, which the change itself can edit",
                file.display()
            )
        }))
    }

    /// Applies these options to the policy of `--policy` or, without that option, to the configured policy.
    pub fn over(&self, configured: Policy) -> Result<Policy, CliError> {
        let mut policy = match &self.policy {
            None => configured,
            Some(file) => load(file)?,
        };
        bounded(&policy.waivers, &runtime::today())?;
        if let (Some(floor), Some(tolerance)) = (self.floor, self.tolerance)
            && tolerance < floor
        {
            return Err(CliError::usage(format!(
                "--tolerance {} is below --floor {}: a change between them could be neither red nor green",
                percent(tolerance),
                percent(floor)
            ))
            .hint("give a tolerance that is at least the floor"));
        }
        for (_, metric) in policy.metrics.iter_mut().filter(|(_, metric)| metric.fatal) {
            if let Some(floor) = self.floor {
                metric.floor.relative = floor;
                // If the floor were above the tolerance, some changes could neither regress nor pass.
                metric.tolerance = metric.tolerance.max(floor);
            }
            if let Some(tolerance) = self.tolerance {
                metric.tolerance = tolerance;
                metric.floor.relative = metric.floor.relative.min(tolerance);
            }
        }
        // An option applies to all rows, so it also replaces the values in overrides.
        for rule in &mut policy.overrides {
            rule.floor_relative = if self.floor.is_some() { None } else { rule.floor_relative };
            rule.tolerance = if self.tolerance.is_some() { None } else { rule.tolerance };
            rule.between_cv = if self.between_cv.is_some() { None } else { rule.between_cv };
        }
        policy.alpha = self.alpha.unwrap_or(policy.alpha);
        policy.between_cv = self.between_cv.or(policy.between_cv);
        policy.test = self.test.unwrap_or(policy.test);
        if let Some(verdicts) = &self.fail_on {
            policy.fail_on = FailOn(verdicts.clone());
        }
        Ok(policy)
    }
}

/// Loads the policy of the file that `--policy` names.
pub fn load(file: &Path) -> Result<Policy, CliError> {
    config::load_policy(file).map(|part| part.policy).map_err(|error| {
        CliError::usage(format!("failed to {error}")).hint(docs!("configuration.md", "every key"))
    })
}

/// Refuses waivers that expire too late. A waiver with an invalid date never applies, so it is not refused.
fn bounded(waivers: &[Waiver], today: &str) -> Result<(), CliError> {
    let day = |text: &str| text.parse::<jiff::civil::Date>().ok();
    let latest = day(today).map(|day| day.saturating_add(jiff::Span::new().days(Waiver::LONGEST_DAYS)));
    let late = waivers.iter().find(|waiver| day(&waiver.expires) > latest);
    let (Some(waiver), Some(latest)) = (late, latest) else { return Ok(()) };
    Err(CliError::usage(format!(
        "the waiver for `{}` expires on {}: the latest day is {latest}, {} days from today",
        waiver.benchmark,
        waiver.expires,
        Waiver::LONGEST_DAYS
    ))
    .hint("set an earlier `expires`, and renew the waiver if it is still needed"))
}

fn percent(fraction: f64) -> String {
    crate::report::percent(fraction)
}

fn failing_verdict(text: &str) -> Result<Verdict, String> {
    match Verdict::parse(text) {
        Some(verdict) if FailOn::POSSIBLE.contains(&verdict) => Ok(verdict),
        Some(_) => Err(format!("`{text}` is not a verdict that can fail a job")),
        None => Err(format!("expected one of {}", FailOn::POSSIBLE.map(Verdict::as_str).join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_is_never_a_failure() {
        assert!(failing_verdict("pass").is_err());
        assert_eq!(failing_verdict("inconclusive"), Ok(Verdict::Inconclusive));
    }

    #[test]
    fn a_waiver_holds_for_a_year_at_most() {
        let waiver = |expires: &str| Waiver {
            benchmark: "a/*".to_owned(),
            metric: None,
            owner: "@o".to_owned(),
            reason: "r".to_owned(),
            expires: expires.to_owned(),
        };
        let refused = |expires| bounded(&[waiver(expires)], "2026-02-01").is_err();
        assert_eq!(
            ["2025-01-01", "2026-12-31", "2027-02-02", "2027-02-03", "2999-01-01", "soon"].map(refused),
            [false, false, false, true, true, false]
        );
    }

    #[test]
    fn the_help_names_the_defaults_of_the_policy() {
        let command = <PolicyArgs as clap::Args>::augment_args(clap::Command::new("benchgate"));
        let policy = Policy::default();
        let (_, fatal) = policy.metrics.iter().find(|(_, metric)| metric.fatal).unwrap();
        let verdicts: Vec<&str> = policy.fail_on.0.iter().map(|verdict| verdict.as_str()).collect();
        for (option, default) in [
            ("floor", format!("{}%", fatal.floor.relative * 100.0)),
            ("tolerance", format!("{}%", fatal.tolerance * 100.0)),
            ("alpha", policy.alpha.to_string()),
            ("fail_on", verdicts.join(",")),
        ] {
            let argument = command.get_arguments().find(|argument| argument.get_id() == option).unwrap();
            let help = argument.get_help().unwrap().to_string();
            assert!(help.contains(&format!("[default: {default}]")), "--{option}: {help}");
        }
    }

    #[test]
    fn a_higher_floor_lifts_the_tolerance_with_it() {
        let args = PolicyArgs { floor: Some(0.05), ..PolicyArgs::default() };
        let policy = args.resolve().unwrap();
        let (_, latency) = policy.metrics.iter().find(|(name, _)| name == "latency").unwrap();
        assert_eq!((latency.floor.relative, latency.tolerance), (0.05, 0.05));
        let contradiction = PolicyArgs { tolerance: Some(0.03), ..args };
        assert!(contradiction.resolve().is_err());
    }
}
