//! Simulated hostile noise: each generator makes a session of unchanged code on a machine with one kind of
//! disturbance.

use benchgate::model::{BlockSlot, Process, Run};
use rand::RngExt;
use rand::rngs::ChaCha12Rng;

use crate::corpus::{benchmark, session};

/// Number of rows in a suite, and of blocks in a session.
pub const ROWS: usize = 12;
pub const BLOCKS: usize = 24;
const SLOTS: usize = BLOCKS * 4;
const REPETITIONS: usize = 8;

/// Returns a random number with a standard normal distribution, by the method of Box and Muller.
pub fn normal(random: &mut ChaCha12Rng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn chance(random: &mut ChaCha12Rng, p: f64) -> bool {
    random.random::<f64>() < p
}

/// The effect of the host on the log cost of each process of one row, in the order in which they
/// run. The last argument marks the processes that ran a changed program.
pub type Vice = fn(&mut ChaCha12Rng, &mut [f64; SLOTS], &[bool; SLOTS]);

/// A disturbance with its name.
pub struct Generator {
    pub name: &'static str,
    pub vice: Vice,
    /// Computes the wall-clock time of a repetition from its computing time in nanoseconds.
    pub waits: Wait,
    /// True if the disturbance changes head, so that reporting a regression is correct.
    pub changes: bool,
}

/// Returns the wall-clock time of one repetition from its computing time.
pub type Wait = fn(&mut ChaCha12Rng, f64) -> f64;

const fn vice(name: &'static str, vice: Vice) -> Generator {
    Generator { name, vice, waits: |_, time| time, changes: false }
}

const fn changing(name: &'static str, vice: Vice) -> Generator {
    Generator { name, vice, waits: |_, time| time, changes: true }
}

const fn waiting(name: &'static str, waits: Wait) -> Generator {
    Generator { name, vice: any_length, waits, changes: false }
}

pub const GENERATORS: &[Generator] = &[
    vice("calm 1 %", |_, _, _| {}),
    vice("regimes x1.5", regimes),
    vice("regimes of two processes", short_regimes),
    vice("drift and random walk", drift),
    vice("order: first of four +5 %", first_slow),
    vice("order: first of a pair +3 %", pair_order),
    vice("bimodal 50/50, 10 % apart", bimodal_even),
    vice("bimodal 20/80, 10 % apart", bimodal_rare),
    vice("heavy tails, t with 2 df", heavy),
    vice("heavy tails, Cauchy", cauchy),
    vice("exponential delays of 5 %", delays),
    vice("scales from 0.1 to 10 %", scales),
    changing("head slow 30 % of the time by 20 %", intermittent),
    changing("head slow 20 % of the time by 50 %", rare_intermittent),
    waiting("competitor, same weight, slices of 4 ms", |random, time| shared(random, time, 4.0, 4.0)),
    waiting("competitor, same weight, slices of 3 ms", |random, time| shared(random, time, 3.0, 3.0)),
    waiting("competitor at nice 19, ticks of 4 ms", |random, time| shared(random, time, 68.0, 4.0)),
    changing("slow by 60 %: base 10 %, head 25 %", more_often),
    changing("20 % slow: base by 30 %, head by 60 %", for_longer),
];

/// Number of iterations in a repetition, whose mean is reported.
const ITERATIONS: f64 = 24.0;
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// Simulates a repetition while a busy loop runs on the same processor, under a scheduler that switches at
/// its tick (Linux: a task runs for `ours` milliseconds, then the other one for `theirs`, in proportion to
/// their weights: 1024 and 1024, or 1024 and 15 at nice 19). The repetition begins at a random point of our
/// turn.
fn shared(random: &mut ChaCha12Rng, time: f64, ours: f64, theirs: f64) -> f64 {
    let computes = ITERATIONS * time / NANOSECONDS_PER_MILLISECOND;
    let waits = ((computes + ours * random.random::<f64>()) / ours).floor();
    (computes + waits * theirs) * NANOSECONDS_PER_MILLISECOND / ITERATIONS
}

/// Lengthens all processes of a row by the same random amount, so that each row's repetitions end
/// at a different point of the scheduler's time slice.
fn any_length(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    let length = 0.3 * random.random::<f64>();
    costs.iter_mut().for_each(|cost| *cost += length);
}

fn regimes(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    let mut slow = chance(random, 0.2);
    for cost in costs {
        slow = if slow { chance(random, 0.75) } else { chance(random, 0.08) };
        *cost += if slow { 1.5_f64.ln() } else { 0.0 };
    }
}

fn short_regimes(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    for block in costs.chunks_mut(4) {
        if chance(random, 0.3) {
            let start = random.random_range(0..3_usize);
            block[start] += 0.3;
            block[start + 1] += 0.3;
        }
    }
}

fn drift(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    let mut walk = 0.0;
    for (at, cost) in costs.iter_mut().enumerate() {
        walk += 0.01 * normal(random);
        *cost += walk + 0.01 * at as f64;
    }
}

fn first_slow(_: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    costs.iter_mut().step_by(4).for_each(|cost| *cost += 0.05);
}

fn pair_order(_: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    costs.iter_mut().step_by(2).for_each(|cost| *cost += 0.03);
}

fn bimodal_even(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    costs.iter_mut().for_each(|cost| *cost += if chance(random, 0.5) { 0.1 } else { 0.0 });
}

fn bimodal_rare(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    costs.iter_mut().for_each(|cost| *cost += if chance(random, 0.2) { 0.1 } else { 0.0 });
}

fn heavy(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    for cost in costs {
        let (a, b) = (normal(random), normal(random));
        *cost += 0.01 * normal(random) / ((a * a + b * b) / 2.0).sqrt();
    }
}

fn cauchy(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    for cost in costs {
        let value = 0.005 * normal(random) / normal(random);
        // The change is limited to a factor of twenty, beyond which a run would have reached its
        // timeout.
        *cost += value.clamp(-3.0, 3.0);
    }
}

fn delays(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    costs.iter_mut().for_each(|cost| *cost -= 0.05 * (1.0 - random.random::<f64>()).ln());
}

fn scales(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], _: &[bool; SLOTS]) {
    let scale = 0.01 * normal(random).clamp(-2.3, 2.3).exp();
    costs.iter_mut().for_each(|cost| *cost += scale * normal(random));
}

fn intermittent(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], head: &[bool; SLOTS]) {
    for (cost, head) in costs.iter_mut().zip(head) {
        *cost += if *head && chance(random, 0.3) { 1.2_f64.ln() } else { 0.0 };
    }
}

fn rare_intermittent(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], head: &[bool; SLOTS]) {
    for (cost, head) in costs.iter_mut().zip(head) {
        *cost += if *head && chance(random, 0.2) { 1.5_f64.ln() } else { 0.0 };
    }
}

fn more_often(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], head: &[bool; SLOTS]) {
    for (cost, head) in costs.iter_mut().zip(head) {
        *cost += if chance(random, if *head { 0.25 } else { 0.1 }) { 1.6_f64.ln() } else { 0.0 };
    }
}

fn for_longer(random: &mut ChaCha12Rng, costs: &mut [f64; SLOTS], head: &[bool; SLOTS]) {
    for (cost, head) in costs.iter_mut().zip(head) {
        let longer: f64 = if *head { 1.6 } else { 1.3 };
        *cost += if chance(random, 0.2) { longer.ln() } else { 0.0 };
    }
}

/// The program of one side of a row.
#[derive(Clone, Copy)]
pub struct Program {
    /// Factor for the time of every repetition.
    pub factor: f64,
    /// True if a generator that changes head changes this side.
    pub changed: bool,
}

pub const UNCHANGED: Program = Program { factor: 1.0, changed: false };

/// Returns the processes of one row, by side.
pub fn row(
    generator: Option<&Generator>,
    [base, head]: [Program; 2],
    random: &mut ChaCha12Rng,
) -> [Vec<Process>; 2] {
    let mut is_head = [false; SLOTS];
    for pair in is_head.chunks_mut(2) {
        let head_first = chance(random, 0.5);
        pair.copy_from_slice(&[head_first, !head_first]);
    }
    let mut costs = [0.0; SLOTS];
    costs.iter_mut().for_each(|cost| *cost = 0.007 * normal(random));
    if let Some(generator) = generator {
        (generator.vice)(
            random,
            &mut costs,
            &is_head.map(|is_head| if is_head { head.changed } else { base.changed }),
        );
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (at, (cost, is_head)) in costs.iter().zip(is_head).enumerate() {
        let location = 1e6 * cost.exp() * if is_head { head.factor } else { base.factor };
        let mut repetition = || {
            let time = location * (0.005 * normal(random)).exp();
            generator.map_or(time, |generator| (generator.waits)(random, time))
        };
        let samples = (0..REPETITIONS).map(|_| repetition()).collect();
        let slot = Some(BlockSlot { block: (at / 4) as u32, slot: (at % 4) as u8 });
        sides[usize::from(is_head)].push(Process { samples, slot, ..Process::default() });
    }
    sides
}

/// Returns one session. `slowed` is a row and the factor of its head. If the generator changes head, only row
/// `slowed.0` has the disturbance; the others stay calm.
pub fn make(generator: &Generator, slowed: (usize, f64), random: &mut ChaCha12Rng) -> (Run, Run) {
    let (mut base, mut head) = (session(Vec::new()), session(Vec::new()));
    for number in 0..ROWS {
        let generator = (!generator.changes || number == slowed.0).then_some(generator);
        let factor = if number == slowed.0 { slowed.1 } else { 1.0 };
        let [a, b] = row(generator, [UNCHANGED, Program { factor, changed: true }], random);
        base.benchmarks.push(benchmark(&format!("row-{number}"), a));
        head.benchmarks.push(benchmark(&format!("row-{number}"), b));
    }
    (base, head)
}
