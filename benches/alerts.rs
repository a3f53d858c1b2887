//! Measures how often the alerts report exactly the planted changes, in a hundred simulated years, night by
//! night.
//!
//! For each level of noise between nights, `cargo bench --bench alerts` prints the number of years with
//! exactly one issue for each planted cause and no other, and the false issues per year; then the false
//! issues of years without any change. `-- YEARS FIRST` sets the number of years and the first seed.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints its figures")]

use std::ops::Range;

#[path = "../tests/simulated_history/replay.rs"]
mod replay;

use replay::{Change, PLANTED, Year, play};

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let (seeds, first): (u64, u64) = (numbers.next().unwrap_or(100), numbers.next().unwrap_or(0));
    for noise in [0.008, 0.005, 0.012] {
        let changed = years(first..first + seeds, noise, &PLANTED);
        let exact = changed.iter().filter(|(_, year)| year.is_exact(&PLANTED)).count();
        let wrong: usize = changed.iter().map(|(_, year)| year.false_issues(&PLANTED)).sum();
        let (closed, reopened) =
            changed.iter().fold((0, 0), |(c, r), (_, year)| (c + year.closed, r + year.reopened));
        println!(
            "noise {:.1} %: exactly the planted causes in {exact} of {seeds} years, {:.2} false issues a year, \
             {:.1} closed and {:.2} opened again a year",
            noise * 100.0,
            wrong as f64 / seeds as f64,
            closed as f64 / seeds as f64,
            reopened as f64 / seeds as f64
        );
        for (seed, year) in changed.iter().filter(|(_, year)| !year.is_exact(&PLANTED)).take(5) {
            println!("  seed {seed}: {:?}", year.opened);
        }
        let quiet = years(first + 1000..first + 1000 + seeds, noise, &[]);
        let wrong: usize = quiet.iter().map(|(_, year)| year.opened.len()).sum();
        println!("  without any change: {:.2} issues a year", wrong as f64 / seeds as f64);
    }
}

/// Simulates one year for each seed, on all processors.
fn years(seeds: Range<u64>, noise: f64, planted: &[Change]) -> Vec<(u64, Year)> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let part = |worker| {
            let seeds = seeds.clone().skip(worker).step_by(workers);
            scope.spawn(move || seeds.map(|seed| (seed, play(seed, noise, planted))).collect::<Vec<_>>())
        };
        let parts: Vec<_> = (0..workers).map(part).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}
