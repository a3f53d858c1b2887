//! Files of the sources that the lines of a command name: scripts and data that are not built, and so belong to the benchmark
//! more than to the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::CommandLine;
use crate::model::{Lint, LintCode, excerpt};
use crate::pipeline::cache::Digests;
use crate::pipeline::trace::file_state;

use super::leftovers::LONGEST_NAME;
use super::{CommandRows, PreparedCommand};

/// The state of each file, by the key whose line names it and its name.
pub(super) type NamedFiles = BTreeMap<(&'static str, String), Option<String>>;

impl PreparedCommand {
    /// Looks at the files before any process of the command can change them.
    pub(super) async fn look_at_named(&self, digests: &Digests) -> NamedFiles {
        let mut found = NamedFiles::new();
        let keys = [("setup", &self.spec.setup), ("prepare", &self.spec.prepare)];
        let prepared = keys.into_iter().filter_map(|(key, line)| Some((key, line.as_ref()?)));
        for (key, line) in prepared.chain([("run", &self.spec.run)]) {
            for word in words(line) {
                let path = self.folder.join(&word);
                // Absolute names are the same files on both sides, or those of the build folder.
                if Path::new(&word).is_relative() && path.is_file() {
                    found.insert((key, word), file_state(&path, digests).await);
                }
            }
        }
        found
    }
}

/// The words of a line, those of a line within it (`sh -c "…"`), and the values of options (`--config=FILE`).
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

/// Findings about named files that differ. What runs before the measured processes is work that moved. The file that `run`
/// names may be the program itself, so a difference there is only pointed out.
pub(super) fn lints(base: &PreparedCommand, head: &PreparedCommand) -> Vec<Lint> {
    // The commands of `pair` are different programs.
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
        Some(Lint::new(code, format!("`{name}`, which `{key}` names, differs from base's")))
    };
    let work = of_kind(false, LintCode::WorkloadChanged);
    work.into_iter().chain(of_kind(true, LintCode::ScriptChanged)).collect()
}
