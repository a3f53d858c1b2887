//! The power curve of a calibration, as SVG.

use std::error::Error;

use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color as _, EmptyElement, IntoDrawingArea as _, IntoFont as _, LineSeries,
    PathElement, RGBColor, SVGBackend, SeriesLabelPosition, Text, WHITE,
};

use crate::gate::noise::{NoiseReport, PowerPoint};

use super::{clean, percent};

const SIZE: (u32, u32) = (820, 480);
/// Okabe and Ito's blue, which colour-blind readers tell from grey.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const GREY: RGBColor = RGBColor(170, 170, 170);
/// Past this many, thin curves can't be told apart, and only the suite's own is drawn.
const MOST_CURVES: usize = 40;

/// How often a slowdown turns a session red, by its size: the suite's curve, and each benchmark's thin
/// behind it. At zero stands the measured rate of false reds.
///
/// # Errors
/// What the drawing library refuses, in its words.
pub fn noise_svg(report: &NoiseReport) -> Result<String, String> {
    let mut svg = String::new();
    draw(report, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(report: &NoiseReport, svg: &mut String) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let most = report.power.iter().map(|point| point.slowdown).fold(0.01, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption("What this machine can see", ("sans-serif", 20).into_font())
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..most * 1.1, 0.0..1.08)?;
    chart
        .configure_mesh()
        .x_desc("slowdown of one benchmark")
        .y_desc("sessions that turn red")
        .x_label_formatter(&|slowdown| percent(*slowdown))
        .y_label_formatter(&|share| percent(*share))
        .light_line_style(WHITE)
        .draw()?;

    if report.rows.len() <= MOST_CURVES {
        for row in &report.rows {
            chart.draw_series(LineSeries::new(curve(&row.power), GREY.stroke_width(1)))?;
            // The label goes where the curve begins: there curves lie apart, and at their ends all see
            // everything.
            if let Some((x, y)) = curve(&row.power).next() {
                let text = clean(row.benchmark.as_str());
                let font = ("sans-serif", 11).into_font().color(&RGBColor(110, 110, 110));
                let right = plotters::style::text_anchor::Pos::new(
                    plotters::style::text_anchor::HPos::Right,
                    plotters::style::text_anchor::VPos::Center,
                );
                chart.draw_series([EmptyElement::at((x, y)) + Text::new(text, (-6, 0), font.pos(right))])?;
            }
        }
    }

    let mut whole = vec![(0.0, report.red_suites.value())];
    whole.extend(curve(&report.power));
    whole.retain(|(_, share)| share.is_finite());
    chart
        .draw_series(LineSeries::new(whole.iter().copied(), BLUE.stroke_width(3)))?
        .label("all benchmarks; at 0: false reds")
        .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], BLUE.stroke_width(3)));
    chart.draw_series(whole.into_iter().map(|at| {
        EmptyElement::at(at)
            + Circle::new((0, 0), 4, BLUE.filled())
            // Beside the curve that rises, but never on the axis.
            + Text::new(percent(at.1), (8, if at.0 == 0.0 { -18 } else { 3 }), ("sans-serif", 13).into_font())
    }))?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.filled())
        .border_style(BLACK.mix(0.2))
        .draw()?;
    area.present()?;
    drop(chart);
    Ok(())
}

fn curve(points: &[PowerPoint]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().map(|point| (point.slowdown, point.seen.value())).filter(|(_, share)| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::noise::tests::sample;

    #[test]
    fn the_curve_is_labelled_and_a_name_is_no_markup() {
        let svg = noise_svg(&sample()).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for label in
            ["slowdown of one benchmark", "sessions that turn red", "59.5 %", "90.5 %", "vit/cpu/main"]
        {
            assert!(svg.contains(label), "{label} is missing:\n{svg}");
        }
        assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;&amp;"), "{svg}");
    }
}
