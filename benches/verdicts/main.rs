//! Prints all figures about the reliability of verdicts: `cargo bench --bench verdicts`.
//!
//! The figures are how often suites of unchanged code fail, how often a slowdown is detected, and after how
//! many pairs. They cover benchgate's own gate and the rules of other tools, on the recorded corpus, on
//! generators of hostile noise, and against a stored baseline. The resulting table is in docs/results.md.
//!
//! | after `--` | |
//! |---|---|
//! | `--suites N`, `--seed S` | resampled suites per figure (simulated noise: a fifth), and seed |
//! | `--only TEXT` | only recordings and generators whose name contains it |
//! | `--data FOLDER` | only the recordings (`*.jsonl`, as in tests/fixtures/corpus) of this folder |
//! | `--hold-out FRACTION` | only the last rounds of each recording |
//! | `--blocks N` | one look after this many blocks, instead of the default looks |
//! | `--design 1` | instead: seconds until +3 % is detected, by process length and block count |
//! | `--bisect N` | instead: simulated bisections |
#![expect(clippy::print_stdout, reason = "a table on the terminal is what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

mod bars;
mod bisection;
mod corpus;
mod design;
mod generators;
mod hostile;
mod nightly;
mod peers;
mod recorded;
mod tally;
mod unpaired;

use std::time::Instant;

use bars::Bars;

/// Number of suites per figure, unless `--suites` sets it.
const SUITES: u32 = 300;

/// Returns the value of a command-line option.
pub fn value(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn option(name: &str, default: u64) -> u64 {
    value(name).and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Returns whether `--only` selects this name.
pub fn wanted(name: &str) -> bool {
    value("--only").is_none_or(|only| name.contains(&only))
}

fn main() {
    let suites = option("--suites", u64::from(SUITES)) as u32;
    let seed = option("--seed", 1);
    let started = Instant::now();
    let bisections = option("--bisect", 0) as u32;
    if bisections > 0 {
        bisection::print(bisections, seed);
        println!("took {:.0} s", started.elapsed().as_secs_f64());
        return;
    }
    if option("--design", 0) > 0 {
        design::print((suites, seed));
        println!("took {:.0} s", started.elapsed().as_secs_f64());
        return;
    }
    println!("{suites} suites a figure, seed {seed}; percent, ± half a 95 % interval clustered by round\n");
    let mut bars = Bars::default();
    recorded::print((suites, seed), &mut bars);
    if value("--data").is_none() {
        hostile::print((suites / 5, seed), &mut bars);
    }
    if value("--data").is_none() && value("--only").is_none() {
        unpaired::print(suites, seed);
        nightly::print((suites / 5, seed), &mut bars);
    }
    bars.print();
    println!("took {:.0} s", started.elapsed().as_secs_f64());
}

/// Runs `work(first..last)` on every processor and joins the results in order, so that the figures don't
/// depend on the number of processors.
pub fn parallel<T: Send>(suites: u32, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let share = suites.div_ceil(threads);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|t| {
                let work = &work;
                scope.spawn(move || (t * share..((t + 1) * share).min(suites)).map(work).collect::<Vec<T>>())
            })
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    })
}
