//! Follows slowdowns that no one accepts through `update`, `gate --stored`, `alert` and the site's data, in a
//! hundred simulated years.
//!
//! For each level of noise between nights, `cargo bench --bench nights` prints how many slow nights were
//! stored as good or passed, which steps no alert showed, and how long a repaired benchmark still fails. `--
//! YEARS FIRST NOISE…` sets the number of years, the first seed and the standard deviations between nights in
//! percent (by default 0.4 and 0.6). With the word `unchanged`, nothing changes in these years; with `weeks`,
//! the machine is occasionally faster by 2 to 5 % for a week. With `accepted`, slowdowns are accepted at once and others
//! follow within days; with `one` or `two`, the suite then has so few benchmarks; with `wider`, their nights differ three
//! times as much after the first acceptance.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints its figures")]

use std::ops::Range;
use std::time::Instant;

#[path = "../tests/simulated_history/nights.rs"]
mod nights;

use nights::{Machine, NightsYear, ROWS, Slowdown, accepted_at_once, play_nights, slowdowns};

const NIGHTS: usize = 365;

fn main() {
    let numbers: Vec<String> = std::env::args().filter(|text| text.parse::<f64>().is_ok()).collect();
    let number = |at: usize| numbers.get(at).and_then(|text| text.parse::<u64>().ok());
    let (seeds, first) = (number(0).unwrap_or(100), number(1).unwrap_or(0));
    let given: Vec<f64> = numbers.iter().skip(2).filter_map(|text| text.parse().ok()).collect();
    let noise = if given.is_empty() { vec![0.4, 0.6] } else { given };
    let has = |word: &str| std::env::args().any(|text| text == word);
    let plan = Plan {
        is_unchanged: has("unchanged"),
        has_weeks: has("weeks"),
        is_accepted: has("accepted"),
        rows: if has("one") {
            1
        } else if has("two") {
            2
        } else {
            ROWS
        },
        wider: if has("wider") { 3.0 } else { 1.0 },
    };
    for between in noise.iter().map(|percent| percent / 100.0) {
        let played = years(first..first + seeds, between, plan);
        let sum = |of: fn(&NightsYear) -> usize| played.iter().map(|(_, year)| of(year)).sum::<usize>();
        let mut waits: Vec<usize> =
            played.iter().flat_map(|(_, year)| year.nights_to_recover.iter().copied()).collect();
        waits.sort_unstable();
        println!(
            "noise {:.1} %, {seeds} years: {} nights with an open slowdown of 3 % or more, {} stored as good, {} passed; \
             {} steps, {} without an alert in their range; {} nights of {} not on the site after a week; {:.2} false reds a \
             year; {} of {} unchanged nights not part of the baseline; {} repaired or accepted benchmarks wait {} nights (median), {} at most, {} not at all",
            between * 100.0,
            sum(|year| year.slow_nights),
            sum(|year| year.stored_as_good.len()),
            sum(|year| year.passed.len()),
            sum(|year| year.steps),
            sum(|year| year.steps_not_shown.len()),
            sum(|year| year.not_on_site.len()),
            sum(|year| year.slow_nights),
            sum(|year| year.false_red.len()) as f64 / seeds as f64,
            sum(|year| year.unchanged_held),
            sum(|year| year.unchanged_nights),
            waits.len(),
            waits.get(waits.len() / 2).copied().unwrap_or_default(),
            waits.last().copied().unwrap_or_default(),
            waits.iter().filter(|nights| **nights == 0).count()
        );
        for (seed, year) in &played {
            if !(year.stored_as_good.is_empty() && year.passed.is_empty() && year.steps_not_shown.is_empty())
            {
                println!(
                    "  seed {seed}: stored as good {:?}, passed {:?}, not shown {:?}, of {:?}",
                    year.stored_as_good,
                    year.passed,
                    year.steps_not_shown,
                    plan.slowdowns(*seed)
                );
            }
        }
    }
}

/// The events of the simulated years.
#[derive(Clone, Copy)]
struct Plan {
    is_unchanged: bool,
    has_weeks: bool,
    is_accepted: bool,
    rows: usize,
    wider: f64,
}

impl Plan {
    fn slowdowns(self, seed: u64) -> Vec<Slowdown> {
        match self {
            Self { is_unchanged: true, .. } => Vec::new(),
            Self { is_accepted: true, rows, .. } => accepted_at_once(seed, NIGHTS, rows),
            _ => slowdowns(seed, NIGHTS),
        }
    }

    fn machine(self, seed: u64, between: f64) -> Machine {
        let machine = if self.has_weeks {
            Machine::with_fast_weeks(between, seed, NIGHTS)
        } else {
            Machine::steady(between)
        };
        Machine { rows: self.rows, wider: self.wider, ..machine }
    }
}

/// Simulates one year for each seed, on all processors.
fn years(seeds: Range<u64>, between: f64, plan: Plan) -> Vec<(u64, NightsYear)> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let part = |worker| {
            let seeds = seeds.clone().skip(worker).step_by(workers);
            let play = move |seed| {
                let began = Instant::now();
                let machine = plan.machine(seed, between);
                let year = play_nights(seed, NIGHTS, &machine, &plan.slowdowns(seed));
                println!(
                    "seed {seed} at {:.1} %: {} slow nights, {} stored as good, {} passed; {} of {} steps without an alert; \
                     {} false reds, {} of {} unchanged nights held; {:.0} s",
                    between * 100.0,
                    year.slow_nights,
                    year.stored_as_good.len(),
                    year.passed.len(),
                    year.steps_not_shown.len(),
                    year.steps,
                    year.false_red.len(),
                    year.unchanged_held,
                    year.unchanged_nights,
                    began.elapsed().as_secs_f64()
                );
                (seed, year)
            };
            scope.spawn(move || seeds.map(play).collect::<Vec<_>>())
        };
        let parts: Vec<_> = (0..workers).map(part).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}
