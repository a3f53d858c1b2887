//! `[[artifact]]`: files to download, such as weights that are too large for a repository.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::fields::ValueKind;
use super::problems::Collector;
use super::table::{DeclaredTable, table};
use super::values;
use super::values::ConfigView;
use super::values::shown;

/// The folder below a side's sources in which benchgate links artifacts. Only benchgate uses it, so an
/// artifact can't replace a file of the repository, a stored session or a file of git.
const FOLDER: &str = "artifacts";

table! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Artifact, ARTIFACT: "[[artifact]]",
        "A file that is downloaded, such as weights that are too large for the repository. Models and flags name it as \
        `artifacts/NAME`, like a file of the sources: before a run, benchgate puts a link there to the verified copy in \
        its cache. Only files that the selected benchmarks need and the cache lacks are downloaded. On a pull \
        request each side has the artifacts of its own configuration, and a change of `sha256` counts like a change of \
        the file.";
    head "name" => name: String, ValueKind::Inside,
        "The path below `artifacts/`, with the extension of the file's kind: `llama/weights.irpa`.";
    head "url" => url: String, ValueKind::Url,
        "The file's URL, without credentials. A redirect to another host is followed only from https to https.";
    head "sha256" => sha256: String, ValueKind::Sha256,
        "SHA-256 of the file. Different content is an error and is never used.";
    head "size" => size: Option<u64>, ValueKind::Integer { min: 1, max: i64::MAX },
        "Size of the file in bytes, so that a wrong file is refused before it is downloaded.";
}

impl Artifact {
    /// The artifact's path below a side's sources.
    pub fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// Returns true if `path`, which is relative to the sources, is this artifact.
    pub fn is_at(&self, path: &Path) -> bool {
        let own = self.path();
        path.components().filter(|part| *part != Component::CurDir).eq(own.components())
    }
}

pub(super) fn artifacts(root: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Artifact> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let views: Vec<ConfigView<'_, '_>> = root.get("artifact").items().collect();
    for view in &views {
        let name = view.get("name");
        let Some(text) = name.text() else { continue };
        if values::is_inside(text) && !text.split('/').all(values::is_name) {
            let message = format!(
                "`name`: expected names of letters, digits, `.`, `_` and `-` with `/` between them, found `{}`",
                shown(text)
            );
            problems.add(name.at(), message);
        }
        if !names.insert(text) {
            problems.add(name.at(), format!("a second artifact is named `{}`", shown(text)));
        }
    }
    for view in &views {
        let name = view.get("name");
        let mut above = name.text().map(Path::new).into_iter().flat_map(|path| path.ancestors().skip(1));
        if let Some(file) = above.find(|folder| names.contains(&*folder.to_string_lossy())) {
            let message = format!(
                "`name`: `{}` is an artifact too, so it can't be a folder",
                shown(&file.to_string_lossy())
            );
            problems.add(name.at(), message);
        }
    }
    views.into_iter().map(Artifact::read).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tests::{MINIMAL, good, message};

    /// Declares an artifact of this name. Tests add it to the minimal configuration, whose model file need
    /// not exist.
    fn artifact(name: &str) -> String {
        let sha256 = "0".repeat(64);
        format!("[[artifact]]\nname = \"{name}\"\nurl = \"https://example.com/x\"\nsha256 = \"{sha256}\"\n")
    }

    #[test]
    fn an_artifact_can_not_take_the_place_of_another_file() {
        for name in ["../x", "/x", "a/../x", "./x", "a//x", "a/", ".gitignore", "a/.git/x", "-x", "a b"] {
            assert!(message(&artifact(name)).contains("`name`"), "{name}");
        }
        assert!(message(&(artifact("a") + &artifact("a"))).contains("a second artifact"));
        assert!(message(&(artifact("a/b/c") + &artifact("a"))).contains("can't be a folder"));
        let config = good(&format!("{MINIMAL}{}", artifact("a/w.irpa")));
        assert!(config.artifacts[0].is_at(Path::new("./artifacts/a/w.irpa")));
        assert!(!config.artifacts[0].is_at(Path::new("a/w.irpa")));
    }

    #[test]
    fn an_artifact_needs_a_hash_and_an_address_without_credentials() {
        let table = artifact("a");
        for (from, to) in [
            ("https://example.com/x", "https://user:token@example.com/x"),
            ("https://example.com/x", "file:///etc/passwd"),
            ("sha256 = ", "# "),
            (&"0".repeat(64), "0"),
        ] {
            message(&table.replace(from, to));
        }
    }
}
