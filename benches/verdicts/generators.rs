//! Hostile noise, made: each generator is a session of unchanged code on a machine with one vice.

use benchgate::model::{BlockSlot, Process, Run};
use rand::RngExt;
use rand_chacha::ChaCha12Rng;

use crate::corpus::{benchmark, session};

/// Rows of a suite and blocks of a session.
pub const ROWS: usize = 12;
pub const BLOCKS: usize = 24;
const SLOTS: usize = BLOCKS * 4;
const REPETITIONS: usize = 8;

/// A standard normal by Box and Muller.
pub fn normal(random: &mut ChaCha12Rng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn chance(random: &mut ChaCha12Rng, p: f64) -> bool {
    random.random::<f64>() < p
}

/// What the host does to the log cost of each process of one row, in the order they run. The last
/// argument says which processes a changed program ran.
pub type Vice = fn(&mut ChaCha12Rng, &mut [f64; SLOTS], &[bool; SLOTS]);

/// Name, what it does, and whether head is changed by it (so that a red is right).
pub const GENERATORS: &[(&str, Vice, bool)] = &[
    ("calm 1 %", |_, _, _| {}, false),
    ("regimes x1.5", regimes, false),
    ("regimes of two processes", short_regimes, false),
    ("drift and random walk", drift, false),
    ("order: first of four +5 %", first_slow, false),
    ("order: first of a pair +3 %", pair_order, false),
    ("bimodal 50/50, 10 % apart", bimodal_even, false),
    ("bimodal 20/80, 10 % apart", bimodal_rare, false),
    ("heavy tails, t with 2 df", heavy, false),
    ("heavy tails, Cauchy", cauchy, false),
    ("exponential delays of 5 %", delays, false),
    ("scales from 0.1 to 10 %", scales, false),
    ("head slow 30 % of the time by 20 %", intermittent, true),
    ("head slow 20 % of the time by 50 %", rare_intermittent, true),
];

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
        // Beyond a factor of twenty a run would have hit its timeout.
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

/// What one side of a row runs.
#[derive(Clone, Copy)]
pub struct Program {
    /// Multiplies every repetition.
    pub factor: f64,
    /// Whether a generator that changes head changes this side.
    pub changed: bool,
}

pub const UNCHANGED: Program = Program { factor: 1.0, changed: false };

/// The processes of one row, by side.
pub fn row(vice: Option<Vice>, [base, head]: [Program; 2], random: &mut ChaCha12Rng) -> [Vec<Process>; 2] {
    let mut is_head = [false; SLOTS];
    for pair in is_head.chunks_mut(2) {
        let head_first = chance(random, 0.5);
        pair.copy_from_slice(&[head_first, !head_first]);
    }
    let mut costs = [0.0; SLOTS];
    costs.iter_mut().for_each(|cost| *cost = 0.007 * normal(random));
    if let Some(vice) = vice {
        vice(random, &mut costs, &is_head.map(|is_head| if is_head { head.changed } else { base.changed }));
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (at, (cost, is_head)) in costs.iter().zip(is_head).enumerate() {
        let location = 1e6 * cost.exp() * if is_head { head.factor } else { base.factor };
        let samples = (0..REPETITIONS).map(|_| location * (0.005 * normal(random)).exp()).collect();
        let slot = Some(BlockSlot { block: (at / 4) as u32, slot: (at % 4) as u8 });
        sides[usize::from(is_head)].push(Process { samples, slot, started: None });
    }
    sides
}

/// One session. `slowed` is a row and the factor of its head. Where the generator changes head
/// (`changes`), only row `slowed.0` has it; the others stay calm.
pub fn make(vice: Vice, changes: bool, slowed: (usize, f64), random: &mut ChaCha12Rng) -> (Run, Run) {
    let (mut base, mut head) = (session(Vec::new()), session(Vec::new()));
    for number in 0..ROWS {
        let vice = (!changes || number == slowed.0).then_some(vice);
        let factor = if number == slowed.0 { slowed.1 } else { 1.0 };
        let [a, b] = row(vice, [UNCHANGED, Program { factor, changed: true }], random);
        base.benchmarks.push(benchmark(&format!("row-{number}"), a));
        head.benchmarks.push(benchmark(&format!("row-{number}"), b));
    }
    (base, head)
}
