//! `simulated_history FOLDER [BENCHMARKS] [NIGHTS] [PROCESSES]` writes a baseline of simulated nights, and
//! prints the planted changes as JSON, for the tests that open the site in a browser.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests may panic and prints")]

mod history;

use std::path::PathBuf;

use history::{Plan, began, chip_change, dropped, name, planted, unstable, write};
use serde_json::json;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap());
    let mut number = |default: usize| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (benchmarks, nights, processes) = (number(12), number(730), number(6));
    let plan = Plan { seed: 1, nights, benchmarks, processes, noise: 0.008, hostile: true };
    write(&plan, &folder);
    let day = |night: usize| began(night).strftime("%Y-%m-%d").to_string();
    let truth = planted(&plan).into_iter().map(|planted| {
        let names: Vec<String> = planted.benchmarks.iter().map(|at| name(*at, &plan)).collect();
        json!({ "kind": planted.kind, "testbed": planted.testbed, "benchmarks": names,
            "date": day(planted.night), "night": planted.night, "ratio": planted.size.exp() })
    });
    let truth = json!({
        "planted": truth.collect::<Vec<_>>(),
        "dropped": { "benchmark": name(dropped(&plan).0, &plan), "since": day(dropped(&plan).1 - 1) },
        "unstable": { "benchmark": name(unstable(&plan).0, &plan), "since": day(unstable(&plan).1) },
        "chip_change": day(chip_change(&plan)),
        "now": began(nights).to_string(),
        "newest": day(nights - 1),
    });
    println!("{truth:#}");
}
