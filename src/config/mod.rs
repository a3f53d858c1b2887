//! L3: raw (toml) → validated [`Config`]. Every problem is reported at once, with its place.
//!
//! [`sections`], [`judging`] (policy) and [`services`] (`[store]`, `[github]`) describe every table once. The first pass (`check`) reports what does not fit that
//! description, the second (`build` and the files that it calls) makes values and checks the rules between
//! them, and `load` looks at the files that are named. Only a [`Config`] without problems leaves.

mod backend;
mod build;
mod check;
mod fields;
mod flags;
mod fraction;
mod functions;
mod judging;
mod load;
mod model;
mod names;
mod parse;
mod policy;
mod policy_changes;
mod problems;
mod reference;
mod schema;
mod sections;
mod services;
mod side;
#[cfg(test)]
mod tests;
mod types;
mod values;
mod view;
mod zoo;

pub use flags::refused_flag;
pub use fraction::{alpha, fraction, spread};
pub use load::{
    load, load_judging, load_judging_within, load_policy, load_policy_within, load_toolchains, load_within,
};
pub use model::is_python_name;
pub use parse::parse;
pub use policy_changes::policy_changes;
pub use problems::{ConfigError, ConfigProblems, Problem};
pub use reference::{EXAMPLE, reference};
pub use schema::json_schema;
pub use types::{
    Backend, BackendKind, BackendTest, CommentWhen, Config, Exporter, GitHub, Measure, Model, ModelInput,
    ModelSource, OutputType, Parameters, Pin, PolicyPart, Profiling, Side, Store, Target, ToolSource,
};
pub use values::duration as parse_duration;
