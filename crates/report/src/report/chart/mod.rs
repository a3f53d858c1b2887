//! Pictures of a run, as SVG.
//!
//! The SVG is written by hand: a bar chart is rectangles and text, and what a library would choose about
//! them (margins, labels, colors in the dark) is all that makes one readable at the width of a comment.

mod alignment;
mod bars;
mod bisection;
mod data;
mod hills;
mod memory;
mod power;
mod scale;
mod svg;

use super::DrawnRun;

pub(super) use bisection::bisection_svg;
pub use power::power_curve;
pub use scale::round_step;

/// Light or dark, as the page around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub const BOTH: [Self; 2] = [Self::Light, Self::Dark];

    /// The end of a file's name before its extension.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Light => "",
            Self::Dark => "-dark",
        }
    }
}

/// A picture. Its word is the file's name without theme and extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Picture {
    Alignment,
    Latency,
    CompileTime,
    Speedup,
    Memory,
}

/// Draws a picture of one or several runs, each with its name; `None` if they hold nothing to draw.
pub fn picture(runs: &[DrawnRun], picture: Picture, theme: Theme) -> Option<String> {
    match picture {
        Picture::Alignment => alignment::draw(runs, theme),
        Picture::Latency => bars::draw(&data::latency(runs), theme),
        Picture::CompileTime => bars::draw(&data::compile_time(runs), theme),
        Picture::Speedup => bars::draw(&data::speedup(runs), theme),
        Picture::Memory => memory::draw(runs, theme),
    }
}

#[cfg(test)]
mod tests;
