//! L3: raw (toml) → validated [`Config`]. Every problem is reported at once, with its place.
//!
//! [`table`] declares every key once, in the file of its table; [`sections`] is the top level, [`judging`] the policy.
//! The first pass (`check`) reports what does not fit a declaration, the second (`build` and the files that it calls)
//! makes values and checks the rules between them, and `load` looks at the files that are named. Only a [`Config`]
//! without problems leaves.

mod artifact;
mod backend;
mod build;
mod check;
mod command;
mod fields;
mod flags;
mod fraction;
mod functions;
mod judging;
mod load;
#[cfg(test)]
mod load_tests;
mod measure;
mod model;
mod names;
mod parse;
mod policy;
mod policy_changes;
mod problems;
mod python;
mod reference;
mod repin;
mod sections;
mod services;
mod side;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod types;
mod values;
mod view;
mod zoo;

pub use artifact::Artifact;
pub use backend::{Backend, BackendKind, BackendTest};
pub use command::{CommandLine, CommandSpec, OutputReading, command_device};
pub use flags::refused_flag;
pub use fraction::{alpha, fraction, spread};
pub use load::{
    load, load_judging, load_judging_within, load_policy, load_policy_within, load_toolchains, load_within,
    read as read_text,
};
pub use measure::{Measure, Profiling};
pub use model::{
    Exporter, Model, ModelInput, ModelSource, OutputType, ParameterSource, Parameters, TorchbenchCheckout,
    is_python_name,
};
pub use parse::parse;
pub use policy_changes::policy_changes;
pub use problems::{ConfigError, ConfigProblems, Problem};
pub use python::{PythonSettings, is_lockable};
pub use reference::{EXAMPLE, head_keys, json_schema, reference};
pub use repin::repinned;
pub use services::{CommentWhen, GitHub, Store};
pub use side::{Pin, Side, ToolSource};
pub use target::{Assembler, Target};
pub use types::{AmbiguousRename, Config, ConfigChanges, PolicyPart};
pub use values::duration as parse_duration;
