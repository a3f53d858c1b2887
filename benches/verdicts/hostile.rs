//! Tests the gate on simulated noise.

use benchgate::gate::Policy;
use benchgate::gate::noise::measure;
use benchgate::model::Verdict;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::bars::{Bar, Bars};
use crate::generators::{GENERATORS, ROWS, make};
use crate::tally::Tally;
use crate::{parallel, wanted};

/// One simulated session, judged.
struct Session {
    verdicts: Vec<Verdict>,
    slow: usize,
    /// True if the slowed row's interval contains the true value.
    covered: bool,
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

fn sessions((suites, seed): (u32, u64), at: usize, slowdown: f64) -> Vec<Session> {
    let policy = Policy::default();
    parallel(suites, |suite| {
        let mut random = ChaCha12Rng::seed_from_u64(seed ^ ((at as u64 + 1) << 32));
        random.set_stream(u64::from(suite));
        let slow = suite as usize % ROWS;
        let (base, head) = make(&GENERATORS[at], (slow, 1.0 + slowdown), &mut random);
        let measured = measure(&base, &head, &policy);
        let rows = &measured.comparison.rows;
        let verdicts = rows.iter().map(|row| row.verdict).collect();
        let interval = rows[slow].estimate.as_ref().and_then(|estimate| estimate.interval);
        let truth = 1.0 + slowdown;
        let covered = interval.is_some_and(|interval| interval.low <= truth && truth <= interval.high);
        let blocks: f64 = measured.blocks.iter().map(|n| f64::from(*n)).sum();
        Session { verdicts, slow, covered, blocks: blocks / ROWS as f64 }
    })
}

pub fn print(asked: (u32, u64), bars: &mut Bars) {
    println!(
        "## Made noise: {ROWS} rows, one vice, {} suites a figure, looks at 12, 18 and 24 blocks",
        asked.0
    );
    println!(
        "{:<40} {:>13} {:>13} {:>7} {:>13} {:>13} {:>13} {:>13}",
        "", "suites red", "rows green", "blocks", "+5 % red", "+5 % green", "+10 % green", "covered"
    );
    for (at, generator) in GENERATORS.iter().enumerate().filter(|(_, generator)| wanted(generator.name)) {
        let unchanged = sessions(asked, at, 0.0);
        let name = generator.name;
        let mut bar = |what: &str, bar, found: &Tally| bars.add(format!("{name}: {what}"), bar, found);
        if generator.changes {
            let [red, open, green] = [&[Verdict::Regressed][..], &[Verdict::Inconclusive], &GREEN]
                .map(|verdicts| tally(&unchanged, |s| s.slowed_is(verdicts)));
            println!(
                "{name:<40} caught {}   inconclusive {}   called green {}",
                red.percent(),
                open.percent(),
                green.percent()
            );
            bar("called green", Bar::Most(0.01), &green);
            continue;
        }
        let slower = [0.05, 0.10].map(|slowdown| sessions(asked, at, slowdown));
        let red = tally(&unchanged, |s| s.count(&[Verdict::Regressed]).min(1.0));
        let green = tally(&unchanged, |s| s.count(&GREEN) / ROWS as f64);
        let seen = tally(&slower[0], |s| s.slowed_is(&[Verdict::Regressed]));
        let called_green = [0, 1].map(|at| tally(&slower[at], |s| s.slowed_is(&GREEN)));
        let covered = tally(&slower[0], |s| f64::from(u8::from(s.covered)));
        println!(
            "{name:<40} {:>13} {:>13} {:>7.1} {:>13} {:>13} {:>13} {:>13}",
            red.percent(),
            green.percent(),
            tally(&unchanged, |s| s.blocks).mean(),
            seen.percent(),
            called_green[0].percent(),
            called_green[1].percent(),
            covered.percent(),
        );
        bar("suites red on unchanged code", Bar::Most(0.01), &red);
        if name.starts_with("competitor") {
            bar("+5 % called green", Bar::Most(0.001), &called_green[0]);
            bar("+10 % called green", Bar::Most(0.001), &called_green[1]);
        } else {
            bar("+5 % red", Bar::Least(0.85), &seen);
            bar("rows green", Bar::Least(0.85), &green);
        }
    }
    println!();
}
