//! Results in which a rate next to the time shows that head's calls do less work.

use serde_json::json;

use crate::harness::World;
use crate::rated_files::{FORMATS, compare, least, mean, median, times};

use super::{FAIL_ON, Greens};

#[test]
fn no_head_whose_rate_in_a_field_or_column_shows_less_work_in_a_call_is_green() {
    let mut greens = Greens::default();
    for (format, file) in FORMATS {
        for name in ["throughput", "items_per_second", "tok/s", "gflops"] {
            // At head, half of the items in a little less time.
            let side = |time: f64, items: f64| {
                move |at: u64| file(&times(at, time, 0.01), name, &|times: &[f64]| items * 1e3 / mean(times))
            };
            compare(24, side(12.0, 32.0), side(11.4, 32.0)).expect_code(0);
            greens.check(&format!("{format}: {name}"), &compare(24, side(12.0, 32.0), side(11.4, 16.0)));
            greens.check(
                &format!("{format}: {name}, one file"),
                &compare(1, side(12.0, 32.0), side(11.4, 16.0)),
            );
        }
    }
    greens.none(6 * 4 * 2);
}

#[test]
fn no_head_whose_rate_is_less_than_bases_is_green_whatever_statistic_it_is_of() {
    let mut greens = Greens::default();
    for (format, file) in FORMATS {
        for (of, statistic) in [("median", median as fn(&[f64]) -> f64), ("least", least)] {
            let side = |items: fn(u64) -> f64| {
                move |at: u64| {
                    file(&times(at, 12.0, 0.02), "throughput", &|times: &[f64]| {
                        items(at) * 1e3 / statistic(times)
                    })
                }
            };
            greens.check(&format!("{format}: {of}"), &compare(24, side(|_| 32.0), side(|_| 16.0)));
            // The number of items varies at head only, or on both sides.
            let varying: fn(u64) -> f64 = |at| 16.0 + 0.01 * (at % 7) as f64;
            greens.check(&format!("{format}: {of}, varying"), &compare(24, side(|_| 32.0), side(varying)));
            let both: fn(u64) -> f64 = |at| 32.0 + 0.3 * (at % 7) as f64;
            greens.check(&format!("{format}: {of}, both"), &compare(24, side(both), side(varying)));
        }
    }
    greens.none(6 * 2 * 3);
}

#[test]
fn a_rate_in_a_field_decides_nothing_instead_of_another_metric() {
    let world = World::new();
    let file = |megabytes: f64, at: u64| {
        let value = times(at, megabytes, 0.001)[0];
        json!([{"name": "a", "unit": "MB", "value": value, "extra": "fps: 60.5"}]).to_string()
    };
    for at in 0..24 {
        for (side, megabytes, seed) in [("base", 100.0, 0), ("same", 100.0, 500), ("more", 150.0, 900)] {
            world.write(&format!("{side}-{at:02}"), file(megabytes, at + seed));
        }
    }
    let format = ["--format-in", "custom-smaller-is-better", "--fail-on", FAIL_ON];
    let compare = |head: &str| world.run(["compare", "base-*", head].iter().chain(&format));
    compare("same-*").expect_code(0);
    compare("more-*").expect_code(10);
}
