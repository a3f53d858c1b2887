//! Compares source files that the lines of a command name: scripts and data that are not built. Such files
//! define the benchmark rather than the program under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::CommandLine;
use crate::model::{Lint, LintCode, excerpt};
use crate::pipeline::cache::Digests;
use crate::pipeline::trace::file_state;

use super::leftovers::LONGEST_NAME;
use super::{CommandRows, PreparedCommand};

/// The state of each file. The key consists of the configuration key whose line names the file, and the
/// file's name.
pub(super) type NamedFiles = BTreeMap<(&'static str, String), Option<String>>;

impl PreparedCommand {
    /// Records the state of the files before any process of the command can change them.
    pub(super) async fn look_at_named(&self, digests: &Digests) -> NamedFiles {
        let mut found = NamedFiles::new();
        let keys = [("setup", &self.spec.setup), ("prepare", &self.spec.prepare)];
        let prepared = keys.into_iter().filter_map(|(key, line)| Some((key, line.as_ref()?)));
        for (key, line) in prepared.chain([("run", &self.spec.run)]) {
            for word in words(line) {
                let path = self.folder.join(&word);
                // An absolute path names the same file on both sides, or one in the build folder, so it is
                // left out.
                if Path::new(&word).is_relative() && path.is_file() {
                    found.insert((key, word), file_state(&path, digests).await);
                }
            }
        }
        found
    }
}

/// The words of a line, including those of a nested line (`sh -c "…"`) and the values of options
/// (`--config=FILE`).
fn words(line: &CommandLine) -> Vec<String> {
    let mut words = line.words_read();
    let nested = words.iter().filter(|word| word.contains(char::is_whitespace));
    let nested: Vec<String> = nested.flat_map(|word| CommandLine::Shell(word.clone()).words_read()).collect();
    words.extend(nested);
    let values: Vec<String> =
        words.iter().filter_map(|word| Some(word.split_once('=')?.1.to_owned())).collect();
    words.extend(values);
    words
}

/// Findings about named files that differ between the sides. A different file for `setup` or `prepare` means
/// that work may have moved out of the measured processes. The file that `run` names may be the program under
/// test itself, so a difference there is only pointed out.
pub(super) fn lints(base: &PreparedCommand, head: &PreparedCommand) -> Vec<Lint> {
    // The commands of `pair` are different programs anyway.
    if head.rows == CommandRows::AsPrinted {
        return Vec::new();
    }
    let names = base.named.keys().chain(head.named.keys());
    let mut differing: Vec<&(&str, String)> =
        names.filter(|name| base.named.get(*name) != head.named.get(*name)).collect();
    differing.dedup();
    let of_kind = |is_run: bool, code: LintCode| {
        let mut found = differing.iter().filter(move |(key, _)| (*key == "run") == is_run);
        let (key, name) = found.next()?;
        let name = excerpt(&PathBuf::from(name).to_string_lossy(), LONGEST_NAME);
        Some(Lint::new(code, format!("`{name}`, named in `{key}`, differs from base's")))
    };
    let work = of_kind(false, LintCode::WorkloadChanged);
    work.into_iter().chain(of_kind(true, LintCode::ScriptChanged)).collect()
}
