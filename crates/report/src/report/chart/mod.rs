//! Charts of a run, as SVG.
//!
//! The SVG is written without a library. A bar chart consists of rectangles and text, and its readability at
//! the width of a comment depends on just those details that a library would decide (margins, labels, colors
//! on dark pages).

mod alignment;
mod bars;
mod bisection;
mod data;
mod memory;
mod svg;

pub(super) use bisection::bisection_svg;
pub use data::DrawnRun;
pub(crate) use data::shown_latencies;
pub use svg::round_step;

/// Light or dark, to match the surrounding page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub const BOTH: [Self; 2] = [Self::Light, Self::Dark];

    /// Returns the suffix of a file's name before its extension.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Light => "",
            Self::Dark => "-dark",
        }
    }
}

/// A chart. Its name is the file's, without theme and extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Picture {
    Alignment,
    Latency,
    CompileTime,
    Speedup,
    Memory,
}

/// Draws a chart of one or several named runs in both themes; `None` if they contain nothing to draw.
pub fn picture(runs: &[DrawnRun], picture: Picture) -> Option<[String; 2]> {
    match picture {
        Picture::Alignment => in_both(|theme| alignment::draw(runs, theme)),
        Picture::Latency => of_bars(&data::latency(runs)),
        Picture::CompileTime => of_bars(&data::compile_time(runs)),
        Picture::Speedup => of_bars(&data::speedup(runs)),
        Picture::Memory => {
            let chart = memory::MemoryChart::new(runs)?;
            in_both(|theme| Some(memory::draw(&chart, theme)))
        }
    }
}

fn of_bars(chart: &data::Chart) -> Option<[String; 2]> {
    in_both(|theme| bars::draw(chart, theme))
}

fn in_both(draw: impl Fn(Theme) -> Option<String>) -> Option<[String; 2]> {
    let [light, dark] = Theme::BOTH.map(draw);
    Some([light?, dark?])
}

#[cfg(test)]
mod tests;
