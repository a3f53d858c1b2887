//! The figures behind the verdict, in one command: `cargo bench --bench verdicts`.
//!
//! How often suites of unchanged code turn red, how often a slowdown is seen, and after how many pairs:
//! benchgate's own gate and the rules of other tools, on the recorded corpus, on generators of
//! hostile noise, and against a stored baseline. docs/statistics.md holds the table it printed.
//! `-- --suites N --seed S` change the number of resampled suites and the seed; `-- --bisect N` prints N simulated
//! bisections a figure instead, of the generators that `--only NAME` names.
#![expect(clippy::print_stdout, reason = "a table on the terminal is what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

mod bisection;
mod corpus;
mod generators;
mod hostile;
mod nightly;
mod peers;
mod recorded;
mod tally;
mod unpaired;

use std::time::Instant;

/// Suites per figure, unless `--suites` says otherwise.
const SUITES: u32 = 300;

fn option(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).and_then(|value| value.parse().ok()).unwrap_or(default)
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
    println!("{suites} suites a figure, seed {seed}; percent, ± half a 95 % interval clustered by round\n");
    recorded::print(suites, seed);
    hostile::print(suites / 5, seed);
    unpaired::print(suites, seed);
    nightly::print(suites / 5, seed);
    println!("took {:.0} s", started.elapsed().as_secs_f64());
}

/// Runs `work(first..last)` on every processor and joins the results in order, so that the figures
/// don't depend on how many processors there are.
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
