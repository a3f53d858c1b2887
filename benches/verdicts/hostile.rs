//! The gate on made noise.

use benchgate::gate::Policy;
use benchgate::gate::noise::measure;
use benchgate::model::Verdict;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use crate::generators::{GENERATORS, ROWS, make};
use crate::parallel;
use crate::tally::Tally;

/// One made session, judged.
struct Session {
    verdicts: Vec<Verdict>,
    slow: usize,
    blocks: f64,
}

impl Session {
    fn slowed_is(&self, of: &[Verdict]) -> f64 {
        f64::from(u8::from(of.contains(&self.verdicts[self.slow])))
    }

    fn count(&self, of: &[Verdict]) -> f64 {
        self.verdicts.iter().filter(|verdict| of.contains(verdict)).count() as f64
    }
}

const GREEN: [Verdict; 2] = [Verdict::Pass, Verdict::Improved];

fn tally(sessions: &[Session], of: impl Fn(&Session) -> f64) -> Tally {
    let mut tally = Tally::new(0);
    sessions.iter().for_each(|session| tally.add(of(session), &[]));
    tally
}

fn sessions(suites: u32, seed: u64, at: usize, slowdown: f64) -> Vec<Session> {
    let (_, vice, changes) = GENERATORS[at];
    parallel(suites, |suite| {
        let mut random = ChaCha12Rng::seed_from_u64(seed ^ ((at as u64 + 1) << 32));
        random.set_stream(u64::from(suite));
        let slow = suite as usize % ROWS;
        let (base, head) = make(vice, changes, (slow, 1.0 + slowdown), &mut random);
        let measured = measure(&base, &head, &Policy::default());
        let verdicts = measured.comparison.rows.iter().map(|row| row.verdict).collect();
        let blocks: f64 = measured.blocks.iter().map(|n| f64::from(*n)).sum();
        Session { verdicts, slow, blocks: blocks / ROWS as f64 }
    })
}

pub fn print(suites: u32, seed: u64) {
    println!("## Made noise: {ROWS} rows, one vice, {suites} suites a figure");
    println!(
        "{:<36} {:>14} {:>14} {:>12} {:>14} {:>14}",
        "", "suites red", "rows green", "pairs a row", "+5 % seen", "+10 % seen"
    );
    for (at, (name, _, changes)) in GENERATORS.iter().enumerate() {
        let unchanged = sessions(suites, seed, at, 0.0);
        if *changes {
            let of = |verdicts: &[Verdict]| tally(&unchanged, |s| s.slowed_is(verdicts)).percent();
            println!(
                "{name:<36} caught {}   inconclusive {}   called green {}",
                of(&[Verdict::Regressed]),
                of(&[Verdict::Inconclusive]),
                of(&GREEN)
            );
            continue;
        }
        let seen = |slowdown| {
            tally(&sessions(suites, seed, at, slowdown), |s| s.slowed_is(&[Verdict::Regressed])).percent()
        };
        println!(
            "{name:<36} {:>14} {:>14} {:>12.1} {:>14} {:>14}",
            tally(&unchanged, |s| s.count(&[Verdict::Regressed]).min(1.0)).percent(),
            tally(&unchanged, |s| s.count(&GREEN) / ROWS as f64).percent(),
            2.0 * tally(&unchanged, |s| s.blocks).mean(),
            seen(0.05),
            seen(0.10),
        );
    }
    println!();
}
