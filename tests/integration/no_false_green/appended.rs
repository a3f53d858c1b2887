//! Results of head that also contain measurements of base, because a tool appended head's to them.

use crate::harness::{Outcome, World};
use crate::rated_files::times;

use super::{FAIL_ON, Greens};

fn at_second(second: u64) -> String {
    format!("2026-11-20T10:{:02}:{:02}", second / 60 % 60, second % 60)
}

fn next_day(second: u64) -> String {
    at_second(second).replace("-20T", "-21T")
}

fn only_date(_: u64) -> String {
    "2026-11-20".to_owned()
}

/// Compares 24 files of each side, of which the texts without their header are given.
fn compare(base: impl Fn(u64) -> String, head: impl Fn(u64) -> String) -> Outcome {
    let world = World::new();
    for file in 0..24 {
        for (side, text) in [("base", base(file)), ("head", head(file))] {
            world.write(
                &format!("{side}-{file:02}.csv"),
                format!("timestamp,model,device,latency_ms\n{text}"),
            );
        }
    }
    world.run(["compare", "base-*", "head-*", "--fail-on", FAIL_ON])
}

/// Returns `count` lines of a file. Two sides have other times by their `seed`.
fn lines(
    file: u64,
    seed: u64,
    time: f64,
    count: usize,
    second: fn(u64) -> String,
    decimals: usize,
) -> String {
    let line = |(at, time): (u64, f64)| format!("{},m,cuda,{time:.decimals$}\n", second(file * 60 + at));
    (0..).zip(times(file + seed, time, 0.015)).take(count).map(line).collect()
}

#[test]
fn no_head_that_was_appended_to_bases_files_is_green() {
    let base = |file: u64| lines(file, 0, 12.0, 3, at_second, 4);
    compare(base, |file| lines(file, 500, 12.0, 3, next_day, 4)).expect_code(0);
    let mut greens = Greens::default();
    for new in 0..4 {
        let head = |file: u64| base(file) + &lines(file, 500, 12.6, new, next_day, 4);
        let outcome = compare(base, head);
        assert!(outcome.stdout.contains("repeated-samples"), "{}", outcome.said());
        greens.check(&format!("{new} new lines"), &outcome);
    }
    // One line of base is left, and only in some of head's files.
    let one = |file: u64| {
        let copied = base(file).lines().next().unwrap().to_owned() + "\n";
        let copied = if file.is_multiple_of(2) { copied } else { String::new() };
        copied + &lines(file, 500, 12.3, 3, next_day, 4)
    };
    greens.check("one line in every other file", &compare(base, one));
    // Each file of head also contains what those before it contain.
    let all = |file: u64| (0..=file).map(|file| lines(file, 500, 12.0, 1, next_day, 4)).collect::<String>();
    greens.check("files that continue each other", &compare(base, all));
    greens.none(6);
}

#[test]
fn no_output_of_go_that_was_appended_to_bases_is_green() {
    let world = World::new();
    let output = |file: u64, time: f64, count: usize| {
        let rows = times(file, time, 0.015).into_iter().take(count);
        let rows: String = rows.map(|time| format!("BenchmarkA-2 \t100\t{time:.3} ns/op\n")).collect();
        format!("goos: linux\npkg: x\n{rows}PASS\n")
    };
    let compared = |head: &dyn Fn(u64) -> String| {
        for file in 0..24 {
            world.write(&format!("base-{file:02}.txt"), output(file, 120.0, 3));
            world.write(&format!("head-{file:02}.txt"), head(file));
        }
        world.run(["compare", "base-*", "head-*", "--fail-on", FAIL_ON])
    };
    // Several runs in one file are usual.
    compared(&|file| output(file + 500, 120.0, 3) + &output(file + 700, 120.0, 1)).expect_code(0);
    let mut greens = Greens::default();
    greens.check("behind", &compared(&|file| output(file, 120.0, 3) + &output(file + 500, 124.0, 1)));
    greens.check("before", &compared(&|file| output(file + 500, 124.0, 1) + &output(file, 120.0, 3)));
    greens.none(2);
}

#[test]
fn measurements_that_began_in_the_same_second_are_no_copies() {
    // The times have only two or three digits, so some agree by chance.
    for decimals in [1, 2, 3] {
        for second in [at_second, only_date] {
            let side = |seed: u64| move |file: u64| lines(file, seed, 52.0, 4, second, decimals);
            let outcome = compare(side(0), side(500));
            assert_eq!(outcome.code, Some(0), "{decimals}: {}", outcome.said());
        }
    }
}
