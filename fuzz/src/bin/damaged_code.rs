//! Checks many damaged, cut, nested and oversized modules: each is read or rejected within limits
//! of time and memory that no input may exceed.
//!
//! `cargo run --release --bin damaged_code -- 10000 ../tests/fixtures/compiled_code/*.gz`

use std::fs;
use std::time::{Duration, Instant};

use benchgate_fuzz::ingest::{self, CompiledCode};

const LONGEST: Duration = Duration::from_millis(100);
const MOST_MEMORY: u64 = 64 << 20;
const ELF: &[u8] = b"\x7fELF";

/// SplitMix64, which generates the same inputs in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Sizes, counts and offsets that readers often mishandle.
const EXTREMES: [u64; 8] = [0, 1, 0x7f, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX];

fn damaged(seeds: &[Vec<u8>], draws: &mut Draws) -> Vec<u8> {
    let mut bytes = seeds[draws.below(seeds.len())].clone();
    let other = &seeds[draws.below(seeds.len())];
    match draws.below(6) {
        // Cuts the module at its end or in the middle.
        0 => bytes.truncate(draws.below(bytes.len())),
        1 => {
            let at = draws.below(bytes.len());
            bytes.drain(at..at + draws.below(bytes.len() - at));
        }
        // Inserts another module, or replaces some bytes with it.
        2 => {
            let at = draws.below(bytes.len());
            let end = at + draws.below(bytes.len() - at);
            bytes.splice(at..end, other.iter().copied());
        }
        // Repeats a part, which gives many entries, symbols or notes.
        3 => {
            let at = draws.below(bytes.len());
            let part = bytes[at..at + draws.below((bytes.len() - at).min(4096))].to_vec();
            let copies = part.repeat(draws.below(512));
            bytes.splice(at..at, copies);
        }
        _ => {}
    }
    for _ in 0..draws.below(8) {
        // Headers and tables are near the start and the end.
        let near = draws.below(512);
        let at = match draws.below(3) {
            0 => near,
            1 => bytes.len().saturating_sub(near + 8),
            _ => draws.below(bytes.len()),
        };
        let extreme = EXTREMES[draws.below(EXTREMES.len())].to_le_bytes();
        let width = [1, 2, 4, 8][draws.below(4)];
        if let Some(place) = bytes.get_mut(at..at + width) {
            place.copy_from_slice(&extreme[..width]);
        }
    }
    bytes
}

/// Peak memory in bytes since the last write to `clear_refs`.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() << 10
}

fn main() {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let mut seeds = Vec::new();
    for file in args {
        let bytes = fs::read(&file).expect("a fixture");
        let module = ingest::decompressed(&bytes, &file).expect("a fixture").into_owned();
        // The ELF library is also tested alone, because its tables are read by their addresses.
        let inner = module.windows(4).position(|window| window == ELF).map(|at| module[at..].to_vec());
        seeds.extend([Some(module), inner].into_iter().flatten());
    }
    let mut draws = Draws(1);
    let (mut read, mut times, mut most) = (0, Vec::new(), 0);
    for number in 0..count {
        let bytes = damaged(&seeds, &mut draws);
        fs::write("/proc/self/clear_refs", "5").expect("a peak that can be forgotten");
        let before = peak();
        let began = Instant::now();
        let found = CompiledCode::read(&bytes).map(CompiledCode::generated);
        let took = began.elapsed();
        let memory = peak().saturating_sub(before);
        read += usize::from(found.is_ok());
        most = most.max(memory);
        if took > LONGEST || memory > MOST_MEMORY {
            println!("input {number} ({} bytes): {took:?}, {} KiB", bytes.len(), memory >> 10);
            fs::write(format!("slow-{number}"), &bytes).expect("a file");
        }
        times.push(took);
    }
    times.sort_unstable();
    let slow = times.iter().filter(|took| **took > LONGEST).count();
    println!(
        "{count} inputs of {} seeds: {read} read, {} refused; median {:?}, longest {:?}, {slow} beyond {LONGEST:?}; most \
         memory {} KiB",
        seeds.len(),
        count - read,
        times[count / 2],
        times[count - 1],
        most >> 10
    );
    assert!(slow == 0 && most <= MOST_MEMORY);
}
