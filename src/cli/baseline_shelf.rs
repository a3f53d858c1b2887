//! Selection of one suite and testbed of the baseline, and its errors.

use crate::store::{self, BaselineFolder, Fault, Files};

use super::{CliError, Terminal};

/// A suite on a testbed.
#[derive(Debug, Clone, clap::Args)]
pub struct ShelfArgs {
    /// The suite; needed if there are several
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// The testbed, or the beginning of its name; needed if there are several
    #[arg(long, value_name = "ID")]
    testbed: Option<String>,
}

impl ShelfArgs {
    /// A suite's, on the testbed that is named, or on the only one.
    pub fn of_suite(suite: &str, testbed: Option<&str>) -> Self {
        Self { suite: Some(suite.to_owned()), testbed: testbed.map(str::to_owned) }
    }

    /// The selected suite and testbed.
    pub fn open(&self, files: &dyn Files) -> Result<BaselineFolder, CliError> {
        let suite = self.suite.as_deref().map(store::folder_name);
        let testbed = self.testbed.as_deref().map(store::folder_name);
        let fits = |(of_suite, of_testbed): &(String, String)| {
            suite.as_ref().is_none_or(|suite| suite == of_suite)
                && testbed.as_ref().is_none_or(|testbed| of_testbed.starts_with(testbed.as_str()))
        };
        let all = store::baseline_folders(files)?;
        let found: Vec<&(String, String)> = all.iter().filter(|shelf| fits(shelf)).collect();
        match found.as_slice() {
            [(suite, testbed)] => Ok(BaselineFolder::open_folder(files, format!("{suite}/{testbed}"))?),
            [] => Err(CliError::baseline_missing(format!(
                "no such suite and testbed in {}",
                files.place()
            ))
            .hint("`benchgate baseline list` shows what is stored; `benchgate baseline update` adds a session to it")),
            several => Err(CliError::usage(format!("{} match", several.len()))
                .hint("name the suite, and the testbed with --testbed; `benchgate baseline list`")),
        }
    }
}

/// A pattern that selects nothing is a mistake, not an empty answer.
pub fn no_match(pattern: &str, folder: &str) -> CliError {
    CliError::usage(format!("`{pattern}` matches no benchmark in {folder}"))
        .hint("`benchgate baseline show` lists their names")
}

/// Damaged files are left out of everything, and never silently: `--quiet` does not hide them.
pub fn say_faults(faults: &[Fault], terminal: &Terminal) {
    for fault in faults {
        terminal.warn(&format!("{} is left out: {}", fault.path, fault.why));
    }
}
