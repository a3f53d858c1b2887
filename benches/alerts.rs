//! How often the alerts say what was planted: a hundred simulated years, night by night.
//!
//! `cargo bench --bench alerts` prints, by the noise between nights, in how many years there is exactly one issue for
//! each planted cause and no other, and the false issues of a year; then the false issues of years without any change.
//! `-- SEEDS` plays fewer or more.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints its figures")]

#[path = "../tests/simulated_history/replay.rs"]
mod replay;

use replay::{PLANTED, Year, play};

fn main() {
    let seeds: u64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(100);
    for noise in [0.008, 0.005, 0.012] {
        let years: Vec<Year> = (0..seeds).map(|seed| play(seed, noise, &PLANTED)).collect();
        let exact = years.iter().filter(|year| year.is_exact(&PLANTED)).count();
        let wrong: usize = years.iter().map(|year| year.false_issues(&PLANTED)).sum();
        let (closed, reopened) =
            years.iter().fold((0, 0), |(c, r), year| (c + year.closed, r + year.reopened));
        println!(
            "noise {:.1} %: exactly the planted causes in {exact} of {seeds} years, {:.2} false issues a year, \
             {:.1} closed and {:.2} opened again a year",
            noise * 100.0,
            wrong as f64 / seeds as f64,
            closed as f64 / seeds as f64,
            reopened as f64 / seeds as f64
        );
        for (seed, year) in years.iter().enumerate().filter(|(_, year)| !year.is_exact(&PLANTED)).take(5) {
            println!("  seed {seed}: {:?}", year.opened);
        }
        let quiet: Vec<Year> = (1000..1000 + seeds).map(|seed| play(seed, noise, &[])).collect();
        let wrong: usize = quiet.iter().map(|year| year.opened.len()).sum();
        println!("  without any change: {:.2} issues a year", wrong as f64 / seeds as f64);
    }
}
