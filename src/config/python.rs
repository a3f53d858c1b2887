//! `[python]`: packages and folders that Python models import, in addition to benchgate's own environment.

use std::path::PathBuf;

use super::fields::{LINES, ValueKind};
use super::problems::{Collector, shown};
use super::table::{DeclaredTable, table};
use super::view::ConfigView;

table! {
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PythonSettings, PYTHON: "[python]",
        "Packages and folders that models in Python import from, in addition to torch and its companions.";
    head "requirements" => requirements: Vec<String>, LINES,
        "Packages from pip's index, such as `einops==0.8.1`. `benchgate tools pin` locks them and their \
             dependencies by hash, in versions that fit benchgate's own packages. It also locks the \
             `requirements.txt` of each `torchbench:` model.";
    head "path" => path: Vec<PathBuf>, ValueKind::List(&ValueKind::Inside),
        "Folders to import from, relative to the sources folder, which is searched before them.";
}

/// Reads the table and checks its values.
pub(super) fn python(view: ConfigView<'_, '_>, problems: &mut Collector) -> PythonSettings {
    for item in view.get("requirements").items() {
        let Some(text) = item.text() else { continue };
        if !is_lockable(text) {
            let message = format!(
                "`requirements`: expected a package of an index such as `einops==0.8.1`, found `{}`; addresses, paths and \
                 options of pip can't be locked by hash",
                shown(text)
            );
            problems.add(item.at(), message);
        }
    }
    PythonSettings::read(view)
}

/// Returns true if a line of requirements names a package of an index; only those can be locked by hash.
pub fn is_lockable(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !line.contains(['@', '/', '\\'])
        && !line.contains(" -")
        && line.len() <= 200
}
