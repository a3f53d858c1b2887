//! Horizontal bars in groups. Each group has its own scale, because models differ by orders of magnitude and
//! the comparison is between the backends of one model.

use super::Theme;
use super::data::{Bar, Chart, Group, Who};
use super::svg::{Palette, Svg, TextAnchor, WIDTH, fitted, round_step, width_of};
use benchgate_core::model::Unit;

const ROW: f64 = 24.0;
const BAR: f64 = 15.0;
const HEAD: f64 = 64.0;
/// Height of a title and of the scale above the bars.
const SCALE_HEAD: f64 = 48.0;
const GROUP_GAP: f64 = 10.0;
const MARGIN: f64 = 20.0;
const SIZE: f64 = 13.0;
/// Width of the text after the longest bar.
const VALUE: f64 = 86.0;
/// Maximum height: nobody reads a longer chart, and the tables contain the rest.
const MOST_HEIGHT: f64 = 2600.0;

pub(super) fn draw(chart: &Chart, theme: Theme) -> Option<String> {
    let rows: usize = chart.groups.iter().map(|group| group.bars.len()).sum();
    if rows == 0 || chart.groups.iter().flat_map(|group| &group.bars).all(|bar| bar.value.is_none()) {
        return None;
    }
    let head = SCALE_HEAD;
    let (groups, left_out) = shown(&chart.groups, head);
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = HEAD
        + rows as f64 * ROW
        + groups.len() as f64 * (head + GROUP_GAP)
        + MARGIN
        + if left_out > 0 { ROW } else { 0.0 };
    let mut svg = Svg::new(height, theme);
    let palette = svg.palette;
    svg.title(MARGIN, chart.title, chart.subtitle);
    let widest = groups
        .iter()
        .flat_map(|group| &group.bars)
        .map(|bar| width_of(&bar.label, SIZE))
        .fold(60.0, f64::max);
    let left = MARGIN + widest.min(300.0) + 12.0;
    let mut y = HEAD;
    for group in &groups {
        svg.text(
            (MARGIN, y + 18.0),
            14.0,
            TextAnchor::Start,
            palette.ink,
            &fitted(&group.title, 14.0, WIDTH - 2.0 * MARGIN),
        );
        y += head;
        if chart.ratios {
            ratios(&mut svg, group, left, y);
        } else {
            amounts(&mut svg, group, left, y);
        }
        for _ in &group.bars {
            y += ROW;
        }
        y += GROUP_GAP;
    }
    if left_out > 0 {
        let text = format!("and {} in the tables", benchgate_core::model::counted(left_out, "more row"));
        svg.text((MARGIN, y + 14.0), SIZE, TextAnchor::Start, palette.muted, &text);
    }
    Some(svg.finish(&format!("{}: {}", chart.title, chart.subtitle)))
}

/// Returns the first rows, as many as fit, and the number of rows that are not shown.
fn shown(groups: &[Group], head: f64) -> (Vec<Group>, usize) {
    let mut room = MOST_HEIGHT;
    let mut kept = Vec::new();
    for group in groups {
        room -= head + GROUP_GAP;
        // There must be room for at least one row below each title.
        if room < ROW {
            break;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rows of a picture are counted in hundreds"
        )]
        let rows = ((room / ROW) as usize).min(group.bars.len());
        let height = rows as f64 * ROW;
        room -= height;
        kept.push(Group { title: group.title.clone(), bars: group.bars[..rows].to_vec() });
    }
    let count = |groups: &[Group]| groups.iter().map(|group| group.bars.len()).sum::<usize>();
    let left_out = count(groups) - count(&kept);
    (kept, left_out)
}

const fn fill(palette: &Palette, who: Who) -> &'static str {
    match who {
        Who::Iree => palette.iree,
        Who::IreeBase => palette.base,
        Who::Other => palette.other,
    }
}

fn label(svg: &mut Svg, bar: &Bar, left: f64, y: f64) {
    let ink = svg.palette.ink;
    let text = fitted(&bar.label, SIZE, left - MARGIN - 10.0);
    svg.text((left - 10.0, y + BAR - 2.0), SIZE, TextAnchor::End, ink, &text);
}

/// Draws the thin line from the fastest to the slowest process.
fn whisker(svg: &mut Svg, from: f64, to: f64, y: f64) {
    let (middle, ink) = (y + BAR / 2.0, svg.palette.ink);
    svg.line((from, middle), (to, middle), ink, 1.2);
    for x in [from, to] {
        svg.line((x, middle - 3.5), (x, middle + 3.5), ink, 1.2);
    }
}

fn amounts(svg: &mut Svg, group: &Group, left: f64, top: f64) {
    let most = group
        .bars
        .iter()
        .flat_map(|bar| [bar.value, bar.range.map(|(_, most)| most)])
        .flatten()
        .fold(0.0, f64::max);
    let room = WIDTH - left - MARGIN - VALUE;
    let scale = |value: f64| if most > 0.0 { value / most * room } else { 0.0 };
    let palette = svg.palette;
    let bottom = top + group.bars.len() as f64 * ROW - (ROW - BAR);
    let step = round_step(most / 4.0);
    let mut amount = 0.0;
    while step > 0.0 && amount <= most {
        let at = left + scale(amount);
        svg.line((at, top - 4.0), (at, bottom + 4.0), palette.grid, 1.0);
        let text = super::memory::tick(amount, &Unit::Nanoseconds);
        svg.text((at, top - 8.0), 11.5, TextAnchor::Middle, palette.muted, &text);
        amount += step;
    }
    let mut y = top;
    for bar in &group.bars {
        label(svg, bar, left, y);
        if let Some(value) = bar.value {
            svg.rect(left, y, scale(value), BAR, fill(&palette, bar.who));
            let mut end = left + scale(value);
            if let Some((least, most)) = bar.range {
                whisker(svg, left + scale(least), left + scale(most), y);
                end = end.max(left + scale(most));
            }
            svg.text((end + 8.0, y + BAR - 2.0), SIZE, TextAnchor::Start, palette.ink, &bar.text);
        } else {
            let text = fitted(&bar.text, 12.0, WIDTH - left - MARGIN - 6.0);
            svg.text((left + 6.0, y + BAR - 2.0), 12.0, TextAnchor::Start, palette.muted, &text);
        }
        y += ROW;
    }
    svg.line((left, top - 3.0), (left, bottom + 3.0), palette.muted, 1.0);
}

fn ratios(svg: &mut Svg, group: &Group, left: f64, top: f64) {
    let farthest = group
        .bars
        .iter()
        .flat_map(|bar| [bar.value, bar.range.map(|(least, _)| least), bar.range.map(|(_, most)| most)])
        .flatten()
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .map(|ratio| ratio.log2().abs())
        .fold(0.5, f64::max);
    // Leave room for a number on both sides.
    let half = (WIDTH - left - MARGIN) / 2.0;
    let (middle, room) = (left + half, half - 64.0);
    let x = |ratio: f64| middle + (ratio.log2() / farthest).clamp(-1.0, 1.0) * room;
    let palette = svg.palette;
    let bottom = top + group.bars.len() as f64 * ROW - (ROW - BAR);
    for ratio in ticks(farthest) {
        let at = x(ratio);
        svg.line((at, top - 4.0), (at, bottom + 4.0), palette.grid, 1.0);
        let text = match ratio {
            // A doubling and a halving have the same length.
            ..1.0 if farthest >= 1.0 => format!("1/{} ×", ratio.recip()),
            _ => format!("{ratio} ×"),
        };
        svg.text((at, top - 8.0), 11.5, TextAnchor::Middle, palette.muted, &text);
    }
    let mut y = top;
    for bar in &group.bars {
        label(svg, bar, left, y);
        if let Some(ratio) = bar.value.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            let (from, to) = (x(ratio).min(middle), x(ratio).max(middle));
            let color = if ratio < 1.0 { palette.slower } else { fill(&palette, bar.who) };
            svg.rect(from, y, to - from, BAR, color);
            let (mut least, mut most) = (from, to);
            if let Some((low, high)) = bar.range {
                whisker(svg, x(low), x(high), y);
                (least, most) = (least.min(x(low)), most.max(x(high)));
            }
            let (at, anchor) =
                if ratio < 1.0 { (least - 7.0, TextAnchor::End) } else { (most + 7.0, TextAnchor::Start) };
            svg.text((at, y + BAR - 2.0), SIZE, anchor, palette.ink, &bar.text);
        }
        y += ROW;
    }
    svg.line((middle, top - 4.0), (middle, bottom + 4.0), palette.muted, 1.2);
}

/// Returns the marks of a scale that reaches `farthest` doublings to both sides: at doublings that are far
/// enough apart to be readable or, below one doubling, at round ratios.
fn ticks(farthest: f64) -> Vec<f64> {
    if farthest < 1.0 {
        let round = [0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6];
        return round.into_iter().filter(|ratio: &f64| ratio.log2().abs() <= farthest).collect();
    }
    let step = (farthest / 5.0).ceil();
    let mut power = -(farthest / step).floor() * step;
    let mut all = Vec::new();
    while power <= farthest {
        all.push(power.exp2());
        power += step;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_of_ratios_is_marked_at_doublings_or_where_it_is_short_at_round_ratios() {
        assert_eq!(ticks(2.5), [0.25, 0.5, 1.0, 2.0, 4.0]);
        assert_eq!(ticks(7.0), [1.0 / 64.0, 1.0 / 16.0, 0.25, 1.0, 4.0, 16.0, 64.0]);
        assert_eq!(ticks(0.5), [0.8, 0.9, 1.0, 1.1, 1.2, 1.4]);
    }
}
