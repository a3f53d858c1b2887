//! `--axis NAME=VALUE`: which combinations of a suite's axes are run.

use std::collections::BTreeMap;

use super::Experiment;

/// The axes that experiments have.
const NAMES: [&str; 5] = ["backend", "test", "batch-size", "dtype", "matmul-precision"];

/// The value of an axis that the configuration leaves to the model.
const UNSET: &str = "default";

/// The wanted values of some axes. Several values of one axis select all experiments that match any of them; an axis
/// that is not named selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes(BTreeMap<String, Vec<String>>);

impl Axes {
    /// Reads `NAME=VALUE` texts.
    pub fn new(texts: &[String]) -> Result<Self, String> {
        let mut axes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in texts {
            let Some((name, value)) = text.split_once('=').filter(|(_, value)| !value.is_empty()) else {
                return Err(format!("expected NAME=VALUE, found `{text}`"));
            };
            if !NAMES.contains(&name) {
                return Err(format!("there is no axis `{name}`; the axes are {}", NAMES.join(", ")));
            }
            axes.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        Ok(Self(axes))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether only IREE is requested, which is always measured.
    pub(super) fn name_iree(&self) -> bool {
        self.0.get("backend").is_some_and(|wanted| wanted.iter().any(|name| name == "iree"))
    }

    pub(super) fn selects(&self, experiment: &Experiment<'_>) -> bool {
        self.0.iter().all(|(name, wanted)| {
            let value = value(experiment, name).unwrap_or_else(|| UNSET.to_owned());
            wanted.contains(&value)
        })
    }
}

fn value(experiment: &Experiment<'_>, axis: &str) -> Option<String> {
    match axis {
        "backend" => Some(experiment.backend.kind.into_str().to_owned()),
        "test" => Some(experiment.test.into_str().to_owned()),
        "batch-size" => experiment.batch_size.map(|size| size.to_string()),
        "dtype" => experiment.dtype.clone(),
        _ => experiment.matmul_precision.clone(),
    }
}
