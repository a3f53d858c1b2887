//! Logs that several tools wrote, and transcripts with more than one call.

use crate::harness::World;

use super::{FAIL_ON, Greens};

fn call(values: &str) -> String {
    format!("EXEC @main\nresult[0]: hal.buffer_view\n4xf32={values}\n")
}

fn results(numbers: [u8; 2]) -> String {
    let result =
        |(number, values): (u8, &str)| format!("result[{number}]: hal.buffer_view\n4xf32={values}\n");
    let both: Vec<String> = numbers.into_iter().zip(["1 2 3 4", "5 6 7 8"]).map(result).collect();
    format!("EXEC @main\n{}", both.concat())
}

/// Compares the files of each side. A side with several files is a folder.
fn compared(base: &[String], head: &[String]) -> crate::harness::Outcome {
    let world = World::new();
    for (side, files) in [("base", base), ("head", head)] {
        for (at, text) in files.iter().enumerate() {
            world.write(&format!("{side}/{at}.txt"), text);
        }
    }
    world.run(["compare", "base", "head", "--fail-on", FAIL_ON])
}

#[test]
fn every_call_of_a_function_is_compared_and_each_result_by_its_number() {
    let (right, wrong) = (call("1 2 3 4"), call("90 80 70 60"));
    let mut greens = Greens::default();
    for (case, base, head) in [
        ("a wrong second call", vec![right.repeat(2)], vec![format!("{right}{wrong}")]),
        ("one call of two", vec![right.repeat(2)], vec![right.clone()]),
        ("a second value", vec![right.clone()], vec![format!("{right}4xf32=9 9 9 9\n")]),
        ("exchanged numbers", vec![results([0, 1])], vec![results([1, 0])]),
        ("a wrong second file", vec![right.clone(), right.clone()], vec![right.clone(), wrong]),
        ("zeros", vec![call("0 0 0 0")], vec![call("0 0 0 0")]),
        ("a constant", vec![call("2 2 2 2")], vec![call("2 2 2 2")]),
        ("a problem", vec![right.clone()], vec![format!("{right}comparison failed\n")]),
        ("another device", vec![right.clone()], vec![format!("{right}falling back to local-task\n")]),
        ("failed tests", vec![right.clone()], vec![format!("{right}3 tests failed\n")]),
    ] {
        greens.check(case, &compared(&base, &head));
    }
    greens.none(10);
    compared(&[right.repeat(2)], &[right.repeat(2)]).expect_code(0);
    compared(&[right.clone(), right.clone()], &[right.clone(), right.clone()]).expect_code(0);
    compared(&[results([0, 1])], &[results([0, 1])]).expect_code(0);
    compared(std::slice::from_ref(&right), &[format!("{right}INFO: time=3\n")]).expect_code(0);
}

#[test]
fn results_of_two_tools_in_one_file_are_an_error() {
    let console = |time: u32| {
        format!(
            "{}\nBenchmark               Time             CPU   Iterations\n{}\nBM_a            {time} ns          {time} ns      1000\n",
            "-".repeat(60),
            "-".repeat(60)
        )
    };
    let go = |time: u32| format!("goos: linux\nBenchmarkA-8 \t 1000 \t {time} ns/op\nok  \tp\t1.2s\n");
    let cargo = |time: u32| format!("running 1 test\ntest sum ... bench:         {time} ns/iter (+/- 1)\n");
    let json = |time: u32| {
        format!(
            "{{\n\"context\": {{}},\n\"benchmarks\": [{{\"name\": \"BM_b\", \"run_name\": \"BM_b\", \"run_type\": \"iteration\", \"iterations\": 9, \"real_time\": {time}, \"cpu_time\": {time}, \"time_unit\": \"ns\"}}]}}\n"
        )
    };
    let mut greens = Greens::default();
    for (case, base, head) in [
        ("a transcript, then a table", call("1 2 3 4") + &console(100), call("1 2 3 4") + &console(300)),
        (
            "a table, then a wrong output",
            format!("{}\n{}", console(100), call("1 2 3 4")),
            format!("{}\n{}", console(100), call("9 9 9 9")),
        ),
        ("cargo bench, then go test", cargo(100) + &go(100), cargo(100) + &go(300)),
        ("go test, then JSON", go(100) + &json(100), go(100) + &json(300)),
        (
            "a table, then rows of CSV",
            console(100) + "2026-11-27T10:00:00Z,cpu,resnet,100\n",
            console(100) + "2026-11-27T10:00:00Z,cpu,resnet,300\n",
        ),
        ("a table, then a line of JSON", console(100) + &json(100).replace('\n', ""), console(100)),
    ] {
        let outcome = compared(&[base], &[head]);
        greens.check(case, &outcome);
        outcome.expect_code(21);
    }
    greens.none(6);
    let driver = |valid: char| {
        let row = |kernel: &str, valid: char| {
            format!("[fwd:40] {kernel}, cost:0.100000ms, tflops:100.0, valid:{valid}\n")
        };
        row("igemm", 'y') + &row("naive_conv", valid)
    };
    let mut greens = Greens::default();
    greens.check("a kernel of another kind with a wrong result", &compared(&[driver('y')], &[driver('n')]));
    greens.none(1);
    // Names in Google Benchmark may begin like names in Go.
    let named = console(100).replace("BM_a ", "BenchmarkSum/8 ");
    let log = format!("note: model, mean ms, a log's words\n{named}");
    compared(std::slice::from_ref(&log), &[log.replace("100 ns", "101 ns")]).expect_code(11);
}

#[test]
fn a_table_of_a_report_that_is_not_read_as_a_whole_is_an_error() {
    let report = |last: char, more: &str, time: &str| {
        let first = format!("## m\n| Backend | Latency (ms) |\n|---|---|\n| eager | 10.00{last} |\n");
        first + &more.replace('@', time)
    };
    let mut greens = Greens::default();
    for more in [
        "\n## n\n| Backend | Time (ms) |\n|---|---|\n| inductor | @ |\n",
        "\n## n\n| Backend | Latency [ms] |\n|---|---|\n| inductor | @ |\n",
        "\n| Backend | Latency (ms) | Mean latency compiled (ms) |\n|---|---|---|\n| y | 5.00 | @ |\n",
        "inductor | @\n",
    ] {
        let outcome = compared(&[report('0', more, "5.000")], &[report('1', more, "15.00")]);
        greens.check(more, &outcome);
        outcome.expect_code(21);
    }
    greens.none(4);
}
