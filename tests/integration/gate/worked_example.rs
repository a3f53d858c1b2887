//! Runs the example of docs/method.md, so that the page agrees with the program.

use std::path::Path;

use benchgate::model::{Metric, Process, Series};

use super::build::{judged, process, session, with};

fn fenced<'a>(page: &'a str, name: &str) -> &'a str {
    let start = page.find(&format!("```{name}\n")).unwrap() + name.len() + 4;
    let end = page[start..].find("```").unwrap();
    page[start..start + end].trim_end()
}

#[test]
fn the_worked_example_gives_the_answer_that_the_page_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/method.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (mut base, mut head): (Vec<Process>, Vec<Process>) = (Vec::new(), Vec::new());
    for line in fenced(&page, "worked-example").lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let samples: Vec<f64> = words[3..].iter().map(|v| v.parse::<f64>().unwrap() * 1e3).collect();
        let process = process(&samples, Some((words[0].parse().unwrap(), words[1].parse().unwrap())));
        if words[2] == "base" { base.push(process) } else { head.push(process) }
    }
    let side = |processes| session(vec![with("example", Metric::LATENCY, Series::Processes(processes))]);
    let row = judged(&side(base), &side(head)).rows.remove(0);
    let estimate = row.estimate.unwrap();
    let interval = estimate.interval.unwrap();
    let answer = format!(
        "{}: {:+.2} %, between {:+.2} % and {:+.2} % at level {:.5}, from {} blocks",
        row.verdict,
        (estimate.ratio - 1.0) * 100.0,
        (interval.low - 1.0) * 100.0,
        (interval.high - 1.0) * 100.0,
        interval.level,
        estimate.blocks
    );
    assert_eq!(answer, fenced(&page, "worked-answer"));
}
