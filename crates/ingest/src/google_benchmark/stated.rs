//! Comparison of a file's statements about the repetitions of a benchmark with the repetitions in it.

use super::super::stated::agree;
use super::statistic::Statistic;

/// Statements of the rows of one name beyond their measurements.
#[derive(Debug, Default)]
pub(super) struct StatedRepetitions {
    instance: Option<Instance>,
    other_instance: bool,
    other_threads: bool,
    /// A row of no iterations, or fewer.
    no_iterations: bool,
    /// How many repetitions the rows, or the row of their mean, say that there are.
    repetitions: Option<f64>,
    real: Vec<(Statistic, f64)>,
    cpu: Vec<(Statistic, f64)>,
}

/// Index of a row's benchmark in its program; NaN if the format does not have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub family: f64,
    pub in_family: f64,
    pub threads: f64,
    /// Which of several tables with a header each, as runs that were appended to one file leave them.
    pub table: f64,
}

impl Instance {
    pub(super) const UNKNOWN: Self =
        Self { family: f64::NAN, in_family: f64::NAN, threads: f64::NAN, table: f64::NAN };

    /// A row of this table, in a format without other marks.
    pub(super) fn of_table(table: u32) -> Self {
        Self { table: f64::from(table), ..Self::UNKNOWN }
    }
}

impl StatedRepetitions {
    /// Adds one repetition; `repetitions` is the total that the row states, if any.
    pub(super) fn repetition(&mut self, instance: Instance, iterations: f64, repetitions: Option<f64>) {
        let first = *self.instance.get_or_insert(instance);
        let differ = |one: f64, two: f64| !one.is_nan() && !two.is_nan() && one != two;
        self.other_instance |= differ(first.family, instance.family)
            || differ(first.in_family, instance.in_family)
            || differ(first.table, instance.table);
        self.other_threads |= differ(first.threads, instance.threads);
        self.no_iterations |= iterations <= 0.0;
        self.repetitions(repetitions);
    }

    /// Adds a row that summarizes repetitions of the same file, in nanoseconds; NaN is ignored.
    pub(super) fn summary(&mut self, statistic: Statistic, [real, cpu]: [f64; 2], repetitions: Option<f64>) {
        self.real.push((statistic, real));
        self.cpu.push((statistic, cpu));
        if statistic == Statistic::Mean {
            self.repetitions(repetitions);
        }
    }

    fn repetitions(&mut self, stated: Option<f64>) {
        // Releases before 1.6 write 0 if the number came from the command line.
        let stated = stated.filter(|stated| *stated > 0.0);
        self.repetitions =
            stated.map(|stated| stated.max(self.repetitions.unwrap_or(stated))).or(self.repetitions);
    }

    /// Whether rows of one name are of different benchmarks of the program.
    pub(super) fn has_several_benchmarks(&self) -> bool {
        self.other_instance
    }

    /// A contradiction between rows that all belong to one benchmark and were all measured. `times` are wall-clock and
    /// processor times; `None` if they are not to be compared with their summaries.
    pub(super) fn contradiction(&self, rows: u64, times: Option<[&[f64]; 2]>) -> Option<String> {
        if self.no_iterations {
            return Some("a time of no iterations".to_owned());
        }
        if self.other_threads {
            return Some("rows of one name with different numbers of threads".to_owned());
        }
        if let Some(stated) = self.repetitions.filter(|stated| *stated != rows as f64) {
            return Some(format!("{rows} repetitions where the file states {stated}"));
        }
        let [real, cpu] = times?;
        let cpu = if cpu.len() == real.len() { cpu } else { &[] };
        wrong_summary(real, &self.real).or_else(|| wrong_summary(cpu, &self.cpu))
    }
}

/// The first of these statistics that contradicts the times.
fn wrong_summary(times: &[f64], stated: &[(Statistic, f64)]) -> Option<String> {
    if times.is_empty() {
        return None;
    }
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (count, middle) = (times.len() as f64, times.len() / 2);
    let mean = times.iter().sum::<f64>() / count;
    let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
    stated.iter().find_map(|&(statistic, stated)| {
        let (name, found) = match statistic {
            Statistic::Mean => ("mean", mean),
            // The tool takes the mean of two.
            Statistic::Median if times.len() % 2 == 1 => ("median", sorted[middle]),
            Statistic::Median => ("median", f64::midpoint(sorted[middle - 1], sorted[middle])),
            Statistic::Min => ("least", sorted[0]),
            Statistic::Max => ("largest", sorted[times.len() - 1]),
            Statistic::Stddev if times.len() > 1 => ("standard deviation", (squares / (count - 1.0)).sqrt()),
            Statistic::Stddev | Statistic::Cv | Statistic::Fit | Statistic::Other => return None,
        };
        // A small deviation is the difference of large numbers, and has few correct digits.
        let agrees =
            agree(found, stated) || statistic == Statistic::Stddev && agree(mean, mean + (found - stated));
        (!agrees).then(|| {
            format!("the {name} of the repetitions is {found:.4e} ns, and the file states {stated:.4e} ns")
        })
    })
}
