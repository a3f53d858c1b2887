//! L3: raw (toml) → validated [`Config`]. Every problem is reported at once, with its span.

mod types;

pub use types::{
    Config, Input, Measure, Model, ModelSource, OutputType, Parameters, Pin, Side, Target, ToolSource,
};
