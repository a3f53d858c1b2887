//! Compares what a file states about the repetitions of a benchmark with the repetitions in it.

use super::super::stated::contradiction;
use super::summaries::Statistic;

/// Facts other than measurements that the rows with one name state.
#[derive(Debug, Default)]
pub(super) struct StatedRepetitions {
    instance: Option<Instance>,
    other_instance: bool,
    other_threads: bool,
    /// True if a row states zero iterations, or fewer.
    no_iterations: bool,
    /// Number of repetitions that the rows, or the row of their mean, state.
    repetitions: Option<f64>,
    /// Wall-clock and processor time of each summarizing row, in the tool's unit.
    summaries: Vec<(Statistic, [f64; 2])>,
}

/// Index of a row's benchmark in its program; NaN if the format does not state it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub family: f64,
    pub in_family: f64,
    pub threads: f64,
    /// Index of the table, if a file has several with a header each because runs were appended to it.
    pub table: f64,
}

impl Instance {
    pub(super) const UNKNOWN: Self =
        Self { family: f64::NAN, in_family: f64::NAN, threads: f64::NAN, table: f64::NAN };

    /// Returns the instance of a row in this table, in a format that states nothing else.
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

    /// Adds a row that summarizes repetitions in the same file, in the tool's unit; NaN is ignored.
    pub(super) fn summary(&mut self, statistic: Statistic, times: [f64; 2], repetitions: Option<f64>) {
        self.summaries.push((statistic, times));
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

    /// Returns the number of threads if there are several and the name, contrary to the tool's convention,
    /// does not contain it.
    pub(super) fn unnamed_threads(&self, name: &str) -> Option<f64> {
        let threads = self.instance?.threads;
        (threads > 1.0 && !name.split('/').any(|part| part == format!("threads:{threads}")))
            .then_some(threads)
    }

    /// Returns the standard deviations of the times, in the tool's unit, if each is stated once.
    pub(super) fn stddev(&self) -> Option<[f64; 2]> {
        let mut stated = self.summaries.iter().filter(|(statistic, _)| *statistic == Statistic::Stddev);
        stated.next().filter(|_| stated.next().is_none()).map(|(_, times)| *times)
    }

    /// Returns whether rows with one name belong to different benchmarks of the program.
    pub(super) fn has_several_benchmarks(&self) -> bool {
        self.other_instance
    }

    /// Returns a contradiction between rows that all belong to one benchmark and were all measured. `times`
    /// are wall-clock and processor times in nanoseconds, or `None` if they are not to be compared with their
    /// summaries; `factor` is the tool's unit in nanoseconds.
    pub(super) fn contradiction(
        &self,
        name: &str,
        rows: u64,
        factor: f64,
        times: Option<[&[f64]; 2]>,
    ) -> Option<String> {
        if self.no_iterations {
            return Some("a time for zero iterations".to_owned());
        }
        if self.other_threads {
            return Some("rows with the same name have different numbers of threads".to_owned());
        }
        // If the program sets the number itself, the name contains it.
        let named = name.split('/').find_map(|part| part.strip_prefix("repeats:")?.parse().ok());
        if let Some(stated) = named.or(self.repetitions).filter(|stated| *stated != rows as f64) {
            return Some(format!("{rows} repetitions, but the file states {stated}"));
        }
        let [real, cpu] = times.filter(|_| !self.summaries.is_empty())?;
        let cpu = if cpu.len() == real.len() { cpu } else { &[] };
        let wrong = |times: &[f64], at: usize| {
            // The time is converted back to the printed unit, which shows its precision.
            let times: Vec<f64> = times.iter().map(|time| time / factor).collect();
            let stated = self.summaries.iter().filter(|(_, stated)| !stated[at].is_nan());
            let stated = stated.map(|(statistic, stated)| statistic.alone(stated[at]));
            stated.filter(|_| !times.is_empty()).find_map(|stated| contradiction(&times, &stated))
        };
        wrong(real, 0).or_else(|| wrong(cpu, 1))
    }
}
