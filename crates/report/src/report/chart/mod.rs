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
mod svg;

pub(super) use bisection::bisection_svg;
pub use data::DrawnRun;
pub(crate) use data::shown_latencies;
pub use power::power_curve;
pub use svg::round_step;

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

/// Draws a picture of one or several runs, each with its name, in both themes; `None` if they hold nothing to draw.
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
