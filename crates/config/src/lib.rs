#![doc = include_str!("../README.md")]
//!
//! [`table`] declares every key once, in the file of its table; [`sections`] has the top level and
//! [`judging`] the policy. The first pass (`check`) reports what violates a declaration. The second pass
//! (`build` and the files that it calls) converts values and checks the rules between them. `load` then
//! checks the files that the configuration names. Other crates only ever get a [`Config`] without problems.

mod artifact;
mod backend;
mod check;
mod command;
mod fields;
mod flags;
pub mod fleet;
pub mod import;
mod judging;
mod load;
mod model;
mod policy;
mod policy_changes;
mod problems;
mod reference;
mod sections;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub use artifact::Artifact;
pub use backend::{Backend, BackendKind, BackendTest};
pub use command::{CommandLine, CommandSpec, OutputReading, command_device};
pub use flags::refused_flag;
pub use load::{
    check_policy, load, load_judging, load_judging_within, load_policy, load_toolchains, load_within, parse,
    read as read_text,
};
pub use model::{
    Exporter, Model, ModelInput, ModelSource, OutputType, ParameterSource, Parameters, TorchbenchCheckout,
    ZOO, is_python_name,
};
pub use policy_changes::policy_changes;
pub use problems::{ConfigError, ConfigProblems, Problem};
pub use reference::{EXAMPLE, head_keys, json_schema, reference};
pub use sections::{CommentWhen, GitHub, Measure, Profiling, PythonSettings, Store, is_lockable};
pub use target::{Assembler, Pin, Side, Target, ToolSource, repinned};
pub use types::{AmbiguousRename, Config, ConfigChanges, PolicyPart};
pub use values::{alpha, duration as parse_duration, fraction, spread};
