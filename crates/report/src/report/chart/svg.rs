//! An SVG under construction: shapes in pixels, escaped text, and round numbers for axes.

use std::fmt::Write;

use crate::report::clean;
use crate::report::document::escape;

use super::Theme;

/// Width in pixels, which fits into comments and pages.
pub(super) const WIDTH: f64 = 900.0;

/// Colors by meaning. Color-blind readers can distinguish blue, gray and orange on either background.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) ground: &'static str,
    pub(super) ink: &'static str,
    pub(super) muted: &'static str,
    pub(super) grid: &'static str,
    pub(super) iree: &'static str,
    pub(super) base: &'static str,
    pub(super) other: &'static str,
    pub(super) slower: &'static str,
    /// Colors for lines that are distinguished by color alone.
    pub(super) lines: [&'static str; 8],
}

impl Palette {
    pub(super) const fn for_theme(theme: Theme) -> Self {
        match theme {
            Theme::Light => Self {
                ground: "#ffffff",
                ink: "#1f2328",
                muted: "#59636e",
                grid: "#d9dfe5",
                iree: "#0969da",
                base: "#80b4f0",
                other: "#a3abb3",
                slower: "#d2691e",
                // The palette of Okabe and Ito, with a darker yellow for a white background.
                lines: [
                    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#b8a900", "#5c5c5c",
                ],
            },
            Theme::Dark => Self {
                ground: "#0d1117",
                ink: "#f0f6fc",
                muted: "#9198a1",
                grid: "#2f363e",
                iree: "#4493f8",
                base: "#2a5b99",
                other: "#6e7681",
                slower: "#db7c3a",
                lines: [
                    "#4aa3df", "#f07c34", "#2fc49a", "#e09cc4", "#8fd0f5", "#f2b93b", "#f0e442", "#c0c6cc",
                ],
            },
        }
    }
}

/// Alignment of a text relative to its position.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

pub(super) struct Svg {
    body: String,
    height: f64,
    pub(super) palette: Palette,
}

impl Svg {
    pub(super) fn new(height: f64, theme: Theme) -> Self {
        Self { body: String::new(), height, palette: Palette::for_theme(theme) }
    }

    // Writing to a `String` can't fail.
    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{arguments}");
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        self.put(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{:.1}" height="{height:.1}" rx="2" fill="{fill}"/>"#,
            width.max(1.0)
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        self.put(format_args!(
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{stroke}" stroke-width="{width}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    /// Draws a line through points, with the area down to `floor` filled lightly.
    pub(super) fn area(&mut self, points: &[(f64, f64)], floor: f64, stroke: &str, width: f64) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let path: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
        let path = path.trim_end();
        self.put(format_args!(
            r#"<polygon points="{:.1},{floor:.1} {path} {:.1},{floor:.1}" fill="{stroke}" fill-opacity="0.18"/>"#,
            first.0, last.0
        ));
        self.put(format_args!(
            r#"<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"/>"#
        ));
    }

    pub(super) fn text(&mut self, at: (f64, f64), size: f64, anchor: TextAnchor, fill: &str, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        let text = escape(&clean(text));
        self.put(format_args!(
            r#"<text x="{:.1}" y="{:.1}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{text}</text>"#,
            at.0, at.1
        ));
    }

    /// Writes the chart's title and, below it, a description.
    pub(super) fn title(&mut self, left: f64, title: &str, subtitle: &str) {
        let Palette { ink, muted, .. } = self.palette;
        self.text((left, 30.0), 20.0, TextAnchor::Start, ink, title);
        self.text((left, 50.0), 12.5, TextAnchor::Start, muted, subtitle);
    }

    pub(super) fn finish(self, title: &str) -> String {
        let (height, ground) = (self.height, self.palette.ground);
        let title = escape(title);
        // The embedded font comes first, so that the PNG and browsers that have the font agree.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"'DejaVu Sans', Verdana, sans-serif\" role=\"img\">\n\
             <title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{ground}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Returns the approximate width of a text in the embedded font.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    let letters: f64 = text
        .chars()
        .map(|letter| match letter {
            'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '1' | 't' | 'f' | 'r' => 0.42,
            'm' | 'w' | 'M' | 'W' | '@' => 0.95,
            letter if letter.is_uppercase() => 0.70,
            _ => 0.62,
        })
        .sum();
    letters * size
}

/// Returns a text that fits, shortened at its end.
pub(super) fn fitted(text: &str, size: f64, width: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if width_of(&kept, size) + 1.6 * size > width {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}

/// Returns 1, 2 or 5 times a power of ten: the first that is at least `least`. Zero if there is none, so that
/// callers draw no ticks.
pub fn round_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= least).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::round_step;

    #[test]
    fn a_step_is_round_and_not_below_what_is_asked_for() {
        assert_eq!([0.3, 1.0, 1.1, 20.0, 51.0].map(round_step), [0.5, 1.0, 2.0, 20.0, 100.0]);
        assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(round_step), [0.0; 4]);
    }
}
