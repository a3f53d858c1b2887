//! Results to which a file of the other side was appended: `>>` instead of `>` keeps what an earlier run wrote, and the old
//! values hide the new ones.

use std::collections::BTreeSet;

use benchgate_core::model::{MetricSeries, Process, Series, SideName};

/// The least number of different values that the files of the sides don't share by chance.
const NOT_CHANCE: usize = 8;

/// Describes that each file of a side begins or ends with the samples of the other side's file.
pub fn appended(base: &MetricSeries, head: &MetricSeries) -> Option<String> {
    let [base, head] = [processes(base)?, processes(head)?];
    let found = [(SideName::Head, head, base), (SideName::Base, base, head)];
    let side = found.into_iter().find_map(|(side, whole, part)| contains(whole, part).then_some(side))?;
    let other = if side == SideName::Head { SideName::Base } else { SideName::Head };
    Some(format!("{side}'s files contain the samples of {other}'s, in the same order, next to others"))
}

fn processes(series: &MetricSeries) -> Option<&[Process]> {
    match &series.series {
        Series::Processes(processes) => Some(processes),
        Series::Summaries(_) | Series::Exact(_) => None,
    }
}

fn contains(whole: &[Process], part: &[Process]) -> bool {
    let is_in = |(whole, part): (&Process, &Process)| {
        let (whole, part) = (&whole.samples, &part.samples);
        part.len() < whole.len() && (whole.starts_with(part) || whole.ends_with(part))
    };
    let values: BTreeSet<u64> =
        part.iter().zip(whole).flat_map(|(part, _)| &part.samples).map(|value| value.to_bits()).collect();
    values.len() >= NOT_CHANCE && whole.iter().zip(part).all(is_in)
}
