//! Measures how much comparisons of plain files can detect: `cargo bench --bench plain_files`. Its table is
//! in docs/results.md.
//!
//! The files are recordings of real tools on a loaded and on an idle machine (tests/fixtures/corpus/plain),
//! and sessions drawn from the idle one. `--draws N` sets the number of comparisons behind a simulated
//! figure, `--seed S` the seed.
#![expect(clippy::print_stdout, reason = "a table on the terminal is what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

mod recorded;

use benchgate::gate::{CompareOptions, Comparison, Policy, Row, compare};
use benchgate::model::{Metric, Run, Verdict};
use benchgate::stats::robust::{ScalePrior, quicker_mean};
use benchgate::stats::unpaired::disturbance_of;
use benchgate::stats::{describe, student_quantile};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use recorded::{benchmark, level, residuals, sessions, slowed};

const TOOLS: [&str; 7] =
    ["hyperfine", "pytest-benchmark", "google-benchmark", "go", "asv", "criterion", "hyperfine-waiting"];
const SLOWDOWNS: [f64; 3] = [0.10, 0.20, 0.50];
/// Slowdowns that are tried until one is detected.
const FACTORS: [f64; 9] = [1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 100.0];
/// Distances between the two sessions of a pair, as numbers of sessions.
const APART: [usize; 2] = [1, 5];

fn option(name: &str, default: u64) -> u64 {
    let value = std::env::args().skip_while(|argument| argument != name).nth(1);
    value.and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn judged(base: &Run, head: &Run) -> Comparison {
    compare(base, head, &Policy::default(), &CompareOptions::default())
}

/// Returns the rows of the time, in the order of the benchmarks.
fn times(comparison: &Comparison) -> Vec<&Row> {
    let latency = |row: &&Row| row.metric.as_ref().is_none_or(|metric| metric.name == Metric::LATENCY.name);
    comparison.rows.iter().filter(latency).collect()
}

fn is_red(row: &Row) -> bool {
    row.verdict == Verdict::Regressed
}

/// Shares of the possible outcomes, in percent.
#[derive(Default, Clone, Copy)]
struct Share {
    hits: f64,
    n: f64,
}

impl Share {
    fn add(&mut self, hit: bool) {
        self.hits += f64::from(u8::from(hit));
        self.n += 1.0;
    }

    fn percent(self) -> String {
        if self.n == 0.0 { "–".to_owned() } else { format!("{:.1}", 100.0 * self.hits / self.n) }
    }
}

/// Formats the factor at which half of the pairs were detected; if none of the factors was enough, a lower
/// bound.
fn in_half(least: &[f64]) -> String {
    let middle = describe::sorted(least)[least.len() / 2];
    if middle.is_finite() { format!("{middle} ×") } else { format!("> {} ×", FACTORS[FACTORS.len() - 1]) }
}

/// Returns whether the printed interval contains the true value; `None` for a row that prints no interval.
fn covers(row: &Row, truth: f64) -> Option<bool> {
    let interval = row.estimate.as_ref()?.interval?;
    Some(interval.low <= truth && truth <= interval.high)
}

fn recorded_tools() {
    println!("## Recorded sessions of unchanged programs on a loaded machine, one a side, in percent");
    println!(
        "One row slowed, next to an oracle that knows the standard deviation between sessions, and which unchanged pairs"
    );
    println!(
        "it calls red itself. `least`: the slowdown that was seen in half of the pairs; `inside`: how uneven the median"
    );
    println!(
        "session is, as its disturbance; `apart`: how far two unchanged sessions of a pair differ at most\n"
    );
    println!(
        "{:<17} {:>5} {:>18} {:>14} {:>14} {:>14} {:>7} {:>7} {:>6} {:>6}",
        "",
        "pairs",
        "pairs red | oracle",
        "+10 % | oracle",
        "+20 % | oracle",
        "+50 % | oracle",
        "least",
        "covered",
        "inside",
        "apart"
    );
    for tool in TOOLS {
        let runs = sessions(tool);
        let rows = runs[0].benchmarks.len();
        let pairs: Vec<(usize, usize)> = APART
            .iter()
            .flat_map(|&apart| (0..runs.len() - apart).map(move |at| (at, at + apart)))
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .collect();
        let difference = |row: usize, (a, b): (usize, usize)| level(&runs[b], row) - level(&runs[a], row);
        let deviation = |row: usize| {
            let squares: Vec<f64> = pairs.iter().map(|&pair| difference(row, pair).powi(2)).collect();
            describe::mean(&squares).unwrap().sqrt()
        };
        let deviations: Vec<f64> = (0..rows).map(deviation).collect();
        let quantile = student_quantile(0.01 / rows as f64, f64::INFINITY);
        let (mut red, mut oracle_red, mut covered) = (Share::default(), Share::default(), Share::default());
        let mut least = Vec::new();
        let mut seen = [(Share::default(), Share::default()); SLOWDOWNS.len()];
        for (number, &(a, b)) in pairs.iter().enumerate() {
            let unchanged = judged(&runs[a], &runs[b]);
            red.add(unchanged.rows.iter().any(is_red));
            let beyond = |row: usize, by: f64| {
                difference(row, (a, b)) + by - 0.01_f64.ln_1p() > quantile * deviations[row]
            };
            oracle_red.add((0..rows).any(|row| beyond(row, 0.0)));
            times(&unchanged).into_iter().filter_map(|row| covers(row, 1.0)).for_each(|hit| covered.add(hit));
            let slow = number % rows;
            for (slowdown, (ours, oracle)) in SLOWDOWNS.iter().zip(&mut seen) {
                let head = slowed(&runs[b], slow, 1.0 + slowdown);
                let comparison = judged(&runs[a], &head);
                let row = times(&comparison)[slow];
                ours.add(is_red(row));
                covers(row, 1.0 + slowdown).into_iter().for_each(|hit| covered.add(hit));
                oracle.add(beyond(slow, slowdown.ln_1p()));
            }
            let is_seen =
                |factor: f64| is_red(times(&judged(&runs[a], &slowed(&runs[b], slow, factor)))[slow]);
            least.push(FACTORS.into_iter().find(|factor| is_seen(*factor)).unwrap_or(f64::INFINITY));
        }
        let inside: Vec<f64> = runs
            .iter()
            .flat_map(|run| (0..rows).filter_map(|row| disturbance_of(&residuals(run, row))))
            .collect();
        let uneven = describe::median(&inside);
        let differences = pairs.iter().flat_map(|&pair| (0..rows).map(move |row| (row, pair)));
        let apart = differences.map(|(row, pair)| difference(row, pair)).fold(0.0, f64::max);
        let seen: Vec<String> =
            seen.iter().map(|(ours, oracle)| format!("{} | {}", ours.percent(), oracle.percent())).collect();
        println!(
            "{tool:<17} {:>5} {:>18} {:>14} {:>14} {:>14} {:>7} {:>7} {:>6} {:>6}",
            pairs.len(),
            format!("{} | {}", red.percent(), oracle_red.percent()),
            seen[0],
            seen[1],
            seen[2],
            in_half(&least),
            covered.percent(),
            uneven.map_or("–".to_owned(), |uneven| format!("{:.0} %", 100.0 * uneven)),
            format!("{:.1} ×", apart.exp())
        );
    }
    println!();
}

/// Sessions of one benchmark on the idle machine: the level of each relative to the median, and its
/// repetitions.
struct Idle {
    levels: Vec<f64>,
    residuals: Vec<Vec<f64>>,
}

impl Idle {
    fn read(runs: &[Run], row: usize) -> Self {
        let levels: Vec<f64> = runs.iter().map(|run| level(run, row)).collect();
        let middle = describe::median(&levels).unwrap();
        Self {
            levels: levels.iter().map(|level| level - middle).collect(),
            residuals: runs.iter().map(|run| residuals(run, row)).collect(),
        }
    }

    /// Returns how often an oracle detects a slowdown. The oracle knows every difference between two sessions
    /// of this row, and fails one in a hundred suites of this size by mistake.
    fn oracle(&self, rows: usize, factor: f64) -> f64 {
        let pair = |base: &f64| -> Vec<f64> { self.levels.iter().map(|head| head - base).collect() };
        let differences = describe::sorted(&self.levels.iter().flat_map(pair).collect::<Vec<f64>>());
        let quantile = (differences.len() as f64 * (1.0 - 0.01 / rows as f64)).ceil() as usize;
        let limit = differences[quantile.min(differences.len()) - 1].max(0.01_f64.ln_1p());
        let seen = differences.iter().filter(|difference| **difference + factor.ln() > limit).count();
        seen as f64 / differences.len() as f64
    }

    /// Returns how often an oracle lets this row pass if it is unchanged. The oracle knows by how much the
    /// locations of two sides of `count` sessions differ by chance, and passes one in a hundred rows that
    /// are slower by the tolerance.
    fn passing_oracle(&self, count: usize, random: &mut ChaCha12Rng) -> f64 {
        let mut location = || {
            let session = |_| describe::median(&logarithms(self.draw(random, 3, 1.0))).unwrap();
            quicker_mean(&(0..count).map(session).collect::<Vec<f64>>(), ScalePrior::NONE).unwrap().center
        };
        let differences: Vec<f64> = (0..ORACLE_DRAWS).map(|_| location() - location()).collect();
        let differences = describe::sorted(&differences);
        let limit = 0.03_f64.ln_1p() + differences[ORACLE_DRAWS / 100];
        differences.iter().filter(|difference| **difference < limit).count() as f64 / ORACLE_DRAWS as f64
    }

    /// Draws the repetitions of a simulated session: a recorded level, with the repetitions of that session.
    fn draw(&self, random: &mut ChaCha12Rng, repetitions: usize, factor: f64) -> Vec<f64> {
        let session = random.random_range(0..self.levels.len());
        let residuals = &self.residuals[session];
        let repetition = |random: &mut ChaCha12Rng| {
            let residual = residuals[random.random_range(0..residuals.len())];
            1e6 * factor * (self.levels[session] + residual).exp()
        };
        (0..repetitions).map(|_| repetition(random)).collect()
    }
}

const ORACLE_DRAWS: usize = 2_000;

fn logarithms(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(f64::ln).collect()
}

const ROWS: [usize; 7] = [1, 2, 3, 5, 8, 12, 20];

fn idle(draws: u64, seed: u64) {
    let runs = sessions("idle-google-benchmark");
    let by_name = |names: &[&str]| -> Vec<Idle> {
        let at = |name: &str| {
            runs[0].benchmarks.iter().position(|benchmark| benchmark.name.as_str() == name).unwrap()
        };
        names.iter().map(|name| Idle::read(&runs, at(name))).collect()
    };
    let steady = by_name(&["BM_xorshift", "BM_sum"]);
    let usual = by_name(&["BM_xorshift", "BM_sum", "BM_string", "BM_sort"]);
    println!("## Idle machine: ten repetitions of one process a side, drawn from recordings; in percent");
    println!(
        "`steady` rows differ by 1 % between sessions (2.9 % at most); `usual` ones by up to 43 %. Next to an oracle that"
    );
    println!("knows every difference between two sessions of each row\n");
    println!(
        "{:<8} {:<5} {:>11} {:>15} {:>15} {:>15} {:>19} {:>8}",
        "",
        "rows",
        "suites red",
        "+20 % | oracle",
        "+50 % | oracle",
        "+100 % | oracle",
        "+50 %, another /10",
        "covered"
    );
    for (name, pool) in [("steady", &steady), ("usual", &usual)] {
        for rows in ROWS {
            let mut shares = [Share::default(); 6];
            for number in 0..draws {
                let mut random = ChaCha12Rng::seed_from_u64(seed);
                random.set_stream(number);
                let slow = random.random_range(0..rows);
                let mut sides = |slowed: f64, other: f64| {
                    let mut side = |head: bool| {
                        let benchmarks = (0..rows).map(|row| {
                            let factor = match row {
                                row if head && row == slow => slowed,
                                row if head && row == (slow + 1) % rows => other,
                                _ => 1.0,
                            };
                            let samples = pool[row % pool.len()].draw(&mut random, 10, factor);
                            benchmark(&format!("row {row}"), vec![samples])
                        });
                        Run { benchmarks: benchmarks.collect(), ..Run::default() }
                    };
                    (side(false), side(true))
                };
                for (at, (slowed, other)) in
                    [(1.0, 1.0), (1.2, 1.0), (1.5, 1.0), (2.0, 1.0), (1.5, 0.1)].into_iter().enumerate()
                {
                    if other < 1.0 && rows == 1 {
                        continue;
                    }
                    let (base, head) = sides(slowed, other);
                    let comparison = judged(&base, &head);
                    let found = times(&comparison);
                    let hit = if at == 0 { found.iter().any(|row| is_red(row)) } else { is_red(found[slow]) };
                    shares[at].add(hit);
                    covers(found[slow], slowed).into_iter().for_each(|hit| shares[5].add(hit));
                }
            }
            let [red, plus20, plus50, plus100, other, covered] = shares.map(Share::percent);
            let next_to = |ours: String, factor: f64| {
                let each: Vec<f64> =
                    (0..rows).map(|row| pool[row % pool.len()].oracle(rows, factor)).collect();
                format!("{ours} | {:.1}", 100.0 * describe::mean(&each).unwrap())
            };
            let (plus20, plus50, plus100) =
                (next_to(plus20, 1.2), next_to(plus50, 1.5), next_to(plus100, 2.0));
            println!(
                "{name:<8} {rows:<5} {red:>11} {plus20:>15} {plus50:>15} {plus100:>15} {other:>19} {covered:>8}"
            );
        }
    }
    println!();
    files(&steady, &usual, draws, seed);
}

/// Compares several files per side, which is the solution that the report suggests.
fn files(steady: &[Idle], usual: &[Idle], draws: u64, seed: u64) {
    println!("## Idle machine: several sessions a side, three repetitions each, one row; in percent");
    println!("Green, next to an oracle that knows the error of the difference between two sides\n");
    println!(
        "{:<8} {:<9} {:>10} {:>15} {:>10} {:>10}",
        "", "sessions", "red", "green | oracle", "+5 % red", "covered"
    );
    for (name, pool) in [("steady", steady), ("usual", usual)] {
        for count in [3, 5, 10, 21] {
            let mut shares = [Share::default(); 4];
            for number in 0..draws {
                let mut random = ChaCha12Rng::seed_from_u64(seed);
                random.set_stream(number);
                let row = &pool[number as usize % pool.len()];
                let mut side = |factor: f64| {
                    let processes = (0..count).map(|_| row.draw(&mut random, 3, factor)).collect();
                    Run { benchmarks: vec![benchmark("row", processes)], ..Run::default() }
                };
                let base = side(1.0);
                for (at, factor) in [(0, 1.0), (2, 1.05)] {
                    let comparison = judged(&base, &side(factor));
                    let found = times(&comparison)[0];
                    shares[at].add(is_red(found));
                    if at == 0 {
                        shares[1].add(matches!(found.verdict, Verdict::Pass | Verdict::Improved));
                    }
                    covers(found, factor).into_iter().for_each(|hit| shares[3].add(hit));
                }
            }
            let [red, green, plus5, covered] = shares.map(Share::percent);
            let mut random = ChaCha12Rng::seed_from_u64(seed);
            let oracle: Vec<f64> = pool.iter().map(|row| row.passing_oracle(count, &mut random)).collect();
            let green = format!("{green} | {:.1}", 100.0 * describe::mean(&oracle).unwrap());
            println!("{name:<8} {count:<9} {red:>10} {green:>15} {plus5:>10} {covered:>10}");
        }
    }
    println!();
}

/// Compares 5,000 rows of 20 repetitions, 100 of which are slower by a tenth.
fn many(seed: u64) {
    const ROWS: usize = 5_000;
    const CHANGED: usize = 50;
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut side = |factor: f64| {
        let row = |row: usize| {
            let factor = if row.is_multiple_of(CHANGED) { factor } else { 1.0 };
            let level: f64 = 1e6 * factor * (0.004 * (random.random::<f64>() - 0.5)).exp();
            let samples = (0..20).map(|_| level * (1.0 + 0.04 * (random.random::<f64>() - 0.5))).collect();
            benchmark(&format!("row {row}"), vec![samples])
        };
        Run { benchmarks: (0..ROWS).map(row).collect(), ..Run::default() }
    };
    let (base, head) = (side(1.0), side(1.1));
    let comparison = judged(&base, &head);
    let red: Vec<bool> = times(&comparison).into_iter().map(is_red).collect();
    let right = red.iter().step_by(CHANGED).filter(|red| **red).count();
    let all = red.iter().filter(|red| **red).count();
    println!(
        "## 5,000 rows of 20 repetitions, 100 of them slower by 10 %: {right} of those red, {} others\n",
        all - right
    );
}

fn main() {
    let (draws, seed) = (option("--draws", 400), option("--seed", 1));
    recorded_tools();
    idle(draws, seed);
    many(seed);
}
