//! The packages that a suite's own models import. These packages are laid over an environment, so that the
//! environment is not copied.

use std::collections::BTreeSet;
use std::path::Path;

use super::wheel::{Name, Wheel};
use crate::config::{self, Config, ModelSource};
use crate::files;
use crate::model::digest_of;

/// Maximum size of a model's list of requirements, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The packages that a suite needs in addition to benchgate's environments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuitePackages {
    /// The key `requirements` of `[python]`. `pin` fails if one of these packages can't be resolved.
    pub(super) own: Vec<String>,
    /// Packages in the lists of torchbench models. `pin` leaves out those for which no index has a wheel.
    pub(super) torchbench: BTreeSet<String>,
}

impl SuitePackages {
    /// Reads the requirements from the configuration and the torchbench checkout. Most models have no list.
    pub fn read(config: &Config) -> Self {
        let lists = config.models.iter().filter_map(|model| match &model.source {
            ModelSource::Torchbench { name, checkout } => Some((&checkout.folder, name)),
            _ => None,
        });
        let lists: BTreeSet<_> = lists.collect();
        let framework = !lists.is_empty();
        let of_models = lists.into_iter().flat_map(|(checkout, name)| {
            lines(&checkout.join("torchbenchmark/models").join(name).join("requirements.txt"))
        });
        // Packages that torchbench's own code imports before it imports a model.
        let of_framework = framework.then(|| FRAMEWORK.map(str::to_owned)).into_iter().flatten();
        Self { own: config.python.requirements.clone(), torchbench: of_models.chain(of_framework).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.torchbench.is_empty()
    }

    /// The digest of all requested packages together with the base environment's requirements.
    pub(super) fn digest(&self, requirements_sha256: &str) -> String {
        let own = self.own.iter().map(String::as_str);
        let torchbench = self.torchbench.iter().map(String::as_str);
        digest_of(std::iter::once(requirements_sha256).chain(own).chain(["torchbench"]).chain(torchbench))
    }
}

/// The imports of `torchbenchmark/util`. The checkout lists them only together with everything that its tests
/// need.
const FRAMEWORK: [&str; 3] = ["psutil", "pyyaml", "timm"];

/// The requirements of a file that a lock can contain. git URLs and pip options are left out.
fn lines(file: &Path) -> Vec<String> {
    let Ok(bytes) = files::read_bounded(file, MOST_BYTES) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.filter(|line| config::is_lockable(line)).map(str::to_owned).collect()
}

/// The project name of a requirement, in the spelling of wheel names.
pub(super) fn project_of(requirement: &str) -> String {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
    requirement[..end.unwrap_or(requirement.len())].to_ascii_lowercase().replace(['-', '.'], "_")
}

/// The wheels whose projects the environment does not contain yet.
pub(super) fn without(wheels: Vec<Wheel>, environment: &[Wheel]) -> Vec<Wheel> {
    let known = projects(environment);
    let is_new = |wheel: &Wheel| project(wheel).is_some_and(|project| !known.contains(&project));
    wheels.into_iter().filter(is_new).collect()
}

pub(super) fn projects(wheels: &[Wheel]) -> BTreeSet<String> {
    wheels.iter().filter_map(project).collect()
}

fn project(wheel: &Wheel) -> Option<String> {
    Name::parse(&wheel.file).map(|name| project_of(name.project))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_the_packages_of_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requirements.txt");
        let text = "# comment\nnumpy\ngit+https://example.com/x.git\nopacus>=1.1.2,<1.5.4  # why\n-r other.txt\n\n./local\n";
        std::fs::write(&file, text).unwrap();
        assert_eq!(lines(&file), ["numpy", "opacus>=1.1.2,<1.5.4"]);
        assert!(lines(Path::new("/none")).is_empty());
    }

    #[test]
    fn a_requirement_names_its_project_as_a_wheel_does() {
        for (requirement, project) in [
            ("Scikit-Image>=0.2", "scikit_image"),
            ("ruamel.yaml[jinja]==1", "ruamel_yaml"),
            ("numpy", "numpy"),
        ] {
            assert_eq!(project_of(requirement), project);
        }
    }
}
