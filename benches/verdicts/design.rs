//! Compares ways to spend a second of measuring by what they detect: long processes in few blocks, or short
//! ones in many.

use benchgate::gate::noise::{Recording, measure};
use benchgate::gate::{Policy, SequentialPolicy};
use benchgate::model::Verdict;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::tally::Tally;
use crate::{corpus, parallel};

/// Recordings of one host on one day, by the length of their processes.
const DESIGNS: [(&str, &str); 3] = [
    ("design-default-aa.jsonl", "8 repetitions of 40 ms"),
    ("design-short-aa.jsonl", "4 repetitions of 12 ms"),
    ("regimes-aa.jsonl", "8 repetitions of 40 ms"),
];
const BLOCKS: [u32; 7] = [6, 8, 12, 18, 24, 36, 48];
const PROCESSES_A_BLOCK: f64 = 4.0;
const SLOWER: f64 = 1.03;
const WANTED: f64 = 0.95;

pub fn print((suites, seed): (u32, u64)) {
    println!("## Design: +3 % seen at one look, by blocks and by seconds of measuring a row");
    for (file, processes) in DESIGNS {
        let file = corpus::folder().join(file);
        let (base, head) = corpus::session_of(&file, "aa", 1.0);
        let recording = Recording::new(&base, &head, "latency");
        let seconds = PROCESSES_A_BLOCK * corpus::seconds_a_process(&file);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        println!("{name}, {processes}, {:.2} s a process", seconds / PROCESSES_A_BLOCK);
        let mut reached = None;
        for blocks in BLOCKS {
            let sequential = SequentialPolicy { min_blocks: blocks, max_blocks: blocks };
            let policy = Policy { sequential, ..Policy::default() };
            let seen = parallel(suites, |suite| {
                let mut random = ChaCha12Rng::seed_from_u64(seed);
                random.set_stream(u64::from(suite));
                let slow = suite as usize % recording.len();
                let (drawn, base, head) = recording.draw(blocks, Some((slow, SLOWER)), true, &mut random);
                let rows = measure(&base, &head, &policy).comparison.rows;
                (drawn, rows[slow].verdict == Verdict::Regressed)
            });
            let mut tally = Tally::new(recording.rounds());
            seen.iter().for_each(|(drawn, seen)| tally.add(f64::from(u8::from(*seen)), drawn));
            println!("  {blocks:>3} blocks {:>7.1} s {:>14}", f64::from(blocks) * seconds, tally.percent());
            if tally.mean() >= WANTED && reached.is_none() {
                reached = Some(f64::from(blocks) * seconds);
            }
        }
        match reached {
            Some(seconds) => println!("  {:.0} % after {seconds:.1} s a row", 100.0 * WANTED),
            None => println!("  {:.0} % not reached", 100.0 * WANTED),
        }
    }
}
