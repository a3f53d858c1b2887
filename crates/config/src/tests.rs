//! Valid and invalid configurations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use benchgate_core::numerics::TensorFile;

use super::{
    Backend, BackendKind, BackendTest, Config, EXAMPLE, Exporter, ModelInput, ModelSource, OutputType,
    ToolSource, parse,
};

pub(super) const MINIMAL: &str = r#"
[suite]
name = "s"
[toolchain]
version = "3.13.0"
commit = "89ece87b89852100c0a4ac3d515e14842d090967"
[[model]]
name = "a"
source = "a.mlir"
[[target]]
name = "cpu"
backend = "llvm-cpu"
"#;

pub(super) fn good(text: &str) -> Config {
    match parse(text, Path::new("benchgate.toml")) {
        Ok(config) => config,
        Err(problems) => panic!("{problems}"),
    }
}

fn messages(text: &str) -> Vec<String> {
    match parse(text, Path::new("benchgate.toml")) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.problems.into_iter().map(|problem| problem.message).collect(),
    }
}

/// The only problem of the minimal configuration with `more` appended to it.
pub(super) fn message(more: &str) -> String {
    let mut all = messages(&format!("{MINIMAL}{more}"));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn a_limit_is_in_the_unit_of_its_metric() {
    let limit = |metric: &str, bound: &str| {
        format!("[[limit]]\nbenchmark = \"a/*\"\nmetric = \"{metric}\"\n{bound}\n")
    };
    let config = good(&format!("{MINIMAL}{}", limit("latency", "max = \"12ms\"")));
    assert_eq!((config.policy.limits[0].max, config.policy.limits[0].min), (Some(12e6), None));
    for (metric, bound, words) in [
        ("latency", "max = 12", "is a time"),
        ("latency", "max = \"1ms/step\"", "found `1ms/step`"),
        ("dispatch-count", "max = \"12ms\"", "is not a time"),
        ("latency", "", "needs `max` or `min`"),
        ("items-per-second", "max = 1\nmin = 2", "`min` is more than `max`"),
        ("latancy", "max = \"1ms\"", "did you mean `latency`"),
    ] {
        let message = message(&limit(metric, bound));
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn one_mistake_is_one_problem_and_a_misnamed_required_key_is_named() {
    let waiver = "[[waiver]]\nbenchmark = \"a/*\"\nowner = \"a\"\nreason = \"x\"\n";
    for (text, words) in [
        ("[[command]]\nname = \"b\"\ncommand = \"./b\"\n".to_owned(), "did you mean `run`?"),
        ("[[command]]\nname = \"b\"\nrun = \"./b {filters}\"\n".to_owned(), "did you mean `{filter}`?"),
        (format!("{waiver}until = \"2026-12-31\"\n"), "did you mean `expires`?"),
        (format!("{waiver}expires = 2026-12-31\n"), "write \"2026-12-31\", with quotes"),
        ("[gate]\nfail-on = \"regressed\"\n".to_owned(), "`fail-on`: expected"),
    ] {
        let message = message(&text);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_small_configuration_gets_the_defaults() {
    let config = good(MINIMAL);
    assert_eq!(config.suite, "s");
    assert_eq!(config.base, None);
    assert_eq!(config.head.pin.source, ToolSource::Pypi);
    assert_eq!(config.root, PathBuf::from("."));
    assert_eq!(config.models[0].source, ModelSource::Mlir("a.mlir".into()));
    assert_eq!(config.models[0].function, "main");
    assert_eq!(config.targets[0].device, "local-task");
    assert_eq!(config.measure.min_time, None);
    assert_eq!(config.policy, benchgate_gate::Policy::default());
    assert_eq!(config.measure.processes, 8);
    assert_eq!(config.measure.timeout, Duration::from_secs(5 * 60));
    assert_eq!((config.store.sessions, config.store.remote.as_str()), (20, "origin"));
    assert!(config.github.annotations && !config.github.check_run);
    assert_eq!(Backend::new(BackendKind::Eager).tests, [BackendTest::Eval]);
}

/// Writes every documented default into a file and parses it.
#[test]
fn the_documented_defaults_are_the_real_ones() {
    use super::fields::{Section, ValueKind};
    fn write(section: &'static Section, header: &str, out: &mut String) {
        for field in section.fields {
            if let Some(default) = field.default() {
                // An MLIR file can't have these keys, even with their default values.
                if !matches!(field.key, "exporter" | "output-type" | "options") {
                    out.push_str(&format!("{} = {default}\n", field.key));
                }
            }
        }
        for field in section.fields {
            if let ValueKind::Table(inner) = field.kind
                && matches!(field.key, "measure" | "gate" | "head")
            {
                let path = format!("{header}{}", field.key);
                out.push_str(&format!("[{path}]\n"));
                write(inner, &format!("{path}."), out);
            }
        }
    }
    let section = |key: &str| match super::sections::ROOT.field(key).map(|field| field.kind) {
        Some(ValueKind::Tables(section) | ValueKind::Table(section)) => section,
        other => panic!("{key}: {other:?}"),
    };
    let (mut model, mut target, mut rest) = (String::new(), String::new(), String::new());
    write(section("model"), "", &mut model);
    write(section("target"), "", &mut target);
    write(&super::sections::ROOT, "", &mut rest);
    write(section("side"), "side.", &mut rest);
    let text =
        MINIMAL.replace("source = \"a.mlir\"\n", &format!("source = \"a.mlir\"\n{model}")) + &target + &rest;
    assert!(text.contains("min-blocks") && text.contains("run-flags"), "{text}");
    let (written, unwritten) = (good(&text), good(MINIMAL));
    // Writing all defaults must have the same effect as writing none.
    assert_eq!(written, unwritten);
}

#[test]
fn a_list_of_exporters_is_a_benchmark_for_each_and_a_single_one_keeps_the_name() {
    let zoo = |exporter: &str| {
        MINIMAL.replace("source = \"a.mlir\"", &format!("source = \"zoo:bert\"\n{exporter}"))
    };
    let names = |text: &str| good(text).models.iter().map(|model| model.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&zoo("")), ["a"]);
    assert_eq!(names(&zoo("exporter = \"onnx\"")), ["a"]);
    assert_eq!(names(&zoo("exporter = [\"onnx\"]")), ["a@onnx"]);
    let config = good(&zoo("exporter = [\"torch-xla\", \"onnx\"]"));
    let exporters: Vec<_> = config.models.iter().map(|m| (m.name.as_str(), m.exporter)).collect();
    assert_eq!(
        exporters,
        [("a@torch-xla", Some(Exporter::TorchXla)), ("a@onnx", Some(Exporter::Onnx))],
        "one of each, in the order of the list"
    );
    assert_eq!(good(MINIMAL).models[0].exporter, None);
}

#[test]
fn a_model_that_the_zoo_lacks_and_an_exporter_twice_are_problems() {
    let text =
        MINIMAL.replace("source = \"a.mlir\"", "source = \"zoo:brt\"\nexporter = [\"onnx\", \"onnx\"]");
    let said = messages(&text);
    assert!(said.iter().any(|p| p.contains("the zoo has no model `brt`; did you mean `bert`?")), "{said:?}");
    assert!(said.iter().any(|p| p.contains("`onnx` is listed twice")), "{said:?}");
}

#[test]
fn saved_models_and_those_of_torchbench_are_sources() {
    let with = |source: &str| MINIMAL.replace("source = \"a.mlir\"", source);
    let onnx = good(&with("source = \"d/a.onnx\"\noptions = { batch = 2 }\ninputs = [\"1x3xf32=@x.bin\"]"));
    let model = &onnx.models[0];
    assert_eq!(
        (&model.source, model.exporter, model.inputs.len()),
        (&ModelSource::Onnx("d/a.onnx".into()), Some(Exporter::Onnx), 1)
    );
    let saved = good(&with("source = \"a.pt2\"\nexporter = \"iree-turbine\""));
    assert_eq!(
        (&saved.models[0].source, saved.models[0].exporter),
        (&ModelSource::Pt2("a.pt2".into()), Some(Exporter::IreeTurbine))
    );
    let torchbench = with("source = \"torchbench:resnet18\"") + "\n[torchbench]\npath = \"../bench\"\n";
    let ModelSource::Torchbench { name, checkout } = good(&torchbench).models[0].source.clone() else {
        panic!("{torchbench}")
    };
    assert_eq!((name.as_str(), checkout.folder.as_path()), ("resnet18", Path::new("./../bench")));
    // The checkouts are equal although each side resolves the path against its own folder.
    let other = parse(&torchbench, Path::new("/base/benchgate.toml")).unwrap();
    assert_eq!(good(&torchbench).changes(&other).chosen, Vec::<String>::new());
    let usual = torchbench.replace("path =", "options = { weights = \"random\", batch_size = 1 }\npath =");
    let options = |text: &str| format!("{:?}", good(text).models[0].options);
    assert_eq!(options(&usual), r#"{"batch_size": "1", "weights": "random"}"#);
    let own = usual.replacen("resnet18\"", "resnet18\"\noptions = { batch_size = 4 }", 1);
    assert_eq!(options(&own), r#"{"batch_size": "4", "weights": "random"}"#);
    for (wrong, part) in [
        ("source = \"a.onnx\"\nexporter = \"torch-mlir\"", "`exporter` is not valid for an ONNX model"),
        ("source = \"a.onnx\"\nexpected = [\"y.npy\"]", "`expected` is not valid for an ONNX model"),
        ("source = \"a.pt2\"\npreset = \"small\"", "`preset` is not valid for a saved program"),
        ("source = \"torchbench:resnet18\"", "needs `path` in [torchbench]"),
        ("source = \"../a.onnx\"", "inside the sources folder"),
    ] {
        let said = messages(&with(wrong));
        assert!(said.iter().any(|message| message.contains(part)), "{wrong}: {said:?}");
    }
}

#[test]
fn the_example_of_the_reference_parses() {
    let config = good(EXAMPLE);
    assert_eq!(config.models[0].inputs[1], ModelInput::Literal("1x3xf32=1".into()));
    assert_eq!(config.models[1].output_types, [OutputType::Stablehlo, OutputType::LinalgOnTensors]);
    assert_eq!(config.models[1].options["width"], "64");
    let latency = &config.policy.metrics.iter().find(|(name, _)| name == "latency").unwrap().1;
    // Times are stored in nanoseconds.
    assert_eq!(latency.floor.absolute, 5000.0);
    assert_eq!(config.policy.overrides[0].floor_relative, Some(0.02));
    assert_eq!(config.base.unwrap().pin.version, "3.9.0");
}

#[test]
fn a_file_of_mlir_has_no_backend_that_would_run_it_instead() {
    let text = MINIMAL.replace("source = \"a.mlir\"", "source = \"a.mlir\"\ncompile = false");
    let problems = parse(&text, Path::new("benchgate.toml")).unwrap_err();
    assert!(problems.to_string().contains("`compile`: no backend can run an MLIR file"), "{problems}");
    let python = MINIMAL.replace("source = \"a.mlir\"", "source = \"a.py:make\"\ncompile = false");
    assert!(!good(&python).models[0].compile);
}

#[test]
fn a_misspelled_key_gets_a_suggestion() {
    assert_eq!(
        message("[measure]\nrepititions = 8\n"),
        "unknown key `repititions` in [measure]; did you mean `repetitions`?"
    );
    assert_eq!(
        message("[measure]\nmin_time = \"1s\"\n"),
        "unknown key `min_time` in [measure]; did you mean `min-time`?"
    );
}

#[test]
fn a_key_in_the_wrong_table_is_shown_home() {
    assert_eq!(
        message("[gate]\nmax-blocks = 8\n"),
        "unknown key `max-blocks` in [gate]; it belongs in [measure]"
    );
}

#[test]
fn a_file_with_many_problems_reports_all_of_them_in_order() {
    let text = include_str!("many_problems.toml");
    let problems = parse(text, Path::new("suites/benchgate.toml")).unwrap_err();
    let positions: Vec<_> = problems.problems.iter().map(|problem| (problem.line, problem.column)).collect();
    assert!(positions.is_sorted());
    insta::assert_snapshot!(problems.to_string());
}

#[test]
fn text_that_is_not_toml_is_one_problem_with_its_place() {
    let problems = parse("[suite]\nname = \n", Path::new("b.toml")).unwrap_err();
    assert_eq!(problems.problems.len(), 1);
    assert_eq!(problems.problems[0].line, 2);
    assert!(problems.problems[0].message.starts_with("not valid TOML"), "{problems}");
}

#[test]
fn columns_count_characters_and_not_bytes() {
    let text = format!("{MINIMAL}env = {{ \"ÉÉ\" = \"x\", A = 2 }}\n");
    let problems = parse(&text, Path::new("b.toml")).unwrap_err().problems;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!((problems[0].line, problems[0].column), (13, 10));
    // Counted in bytes, the column would be 27.
    assert_eq!((problems[1].line, problems[1].column), (13, 25));
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let text = format!("{MINIMAL}\n\"evil\\u001b[31m\\u202e\" = 1\n");
    for message in messages(&text) {
        assert!(!message.chars().any(|c| c.is_control() || c == '\u{202e}'), "{message:?}");
    }
}

#[test]
fn a_model_can_not_leave_its_folder() {
    for source in ["../a.mlir", "/etc/a.mlir", "x/../../a.mlir", "a\\\\b.mlir"] {
        let text = MINIMAL.replace("a.mlir", source);
        assert_eq!(messages(&text).len(), 1, "{source}");
    }
}

#[test]
fn a_gate_that_never_fails_is_refused() {
    assert!(message("[gate]\nfail-on = []\n").contains("at least one verdict"));
    assert!(message("[gate]\nalpha = 0.0\n").contains("`alpha`"));
    assert!(message("[gate]\nalpha = 0.7\n").contains("`alpha`"));
}

#[test]
fn a_tolerance_below_the_floor_is_refused() {
    let text = "[gate.metric.latency]\nfloor = \"5%\"\n";
    assert_eq!(
        message(text),
        "the tolerance (3 %) is below the floor (5 %): a change between them could be neither red nor green"
    );
}

#[test]
fn a_metric_that_is_almost_a_known_one_is_refused() {
    assert_eq!(
        message("[gate.metric.latncy]\nfloor = \"2%\"\n"),
        "unknown metric `latncy`; did you mean `latency`?"
    );
    // A metric with a completely different name belongs to another tool.
    let config = good(&format!("{MINIMAL}[gate.metric.tokens-per-watt]\nfloor = \"2%\"\n"));
    assert!(config.policy.metrics.iter().any(|(name, policy)| name == "tokens-per-watt" && policy.fatal));
}

#[test]
fn policy_is_here_or_in_its_own_file_but_not_both() {
    let text = format!("policy = \"policy.toml\"\n{MINIMAL}[gate]\nalpha = 0.05\n");
    assert_eq!(messages(&text), ["`gate` belongs in the file that `policy` names"]);
}

#[test]
fn a_wheel_by_address_must_not_carry_credentials() {
    let hash = "6e1f83dc404f5dcdd76354a869cbbb389bd3f93b4623096de3195799ceb323a7";
    let wheels = |compiler: &str| {
        let wheel = |url: &str| format!("{{ url = \"{url}\", sha256 = \"{hash}\" }}");
        let more = format!("compiler = {}\nruntime = {}\n", wheel(compiler), wheel("https://x.org/r.whl"));
        MINIMAL.replace("[[model]]", &format!("{more}[[model]]"))
    };
    assert_eq!(messages(&wheels("https://x.org/c.whl")), [""; 0]);
    assert!(messages(&wheels("https://me:secret@x.org/c.whl"))[0].contains("without credentials"));
}

#[test]
fn durations_and_fractions_read_as_written() {
    let config = good(&format!("{MINIMAL}[measure]\nwarmup = \"1.5s\"\ntimeout = \"2h\"\n"));
    assert_eq!(config.measure.warmup, Some(Duration::from_millis(1500)));
    assert_eq!(config.measure.timeout, Duration::from_secs(7200));
    for bad in ["\"40\"", "40", "\"ms\"", "\"-1s\"", "\"1 day\"", "\"1e99h\"", "\"1..5s\""] {
        assert!(message(&format!("[measure]\nwarmup = {bad}\n")).contains("duration"), "{bad}");
    }
    let config = good(&format!("{MINIMAL}[gate]\nbetween-cv = \"2.5 %\"\n"));
    assert_eq!(config.policy.between_cv, Some(0.025));
}

#[test]
fn a_loosened_policy_is_said_in_words() {
    let base = good(EXAMPLE).policy_part();
    let head = EXAMPLE
        .replace("alpha = 0.01", "alpha = 0.05\nfail-on = [\"error\"]")
        .replace("floor = \"1%\"", "floor = \"2.5%\"\nfatal = false")
        .replace("floor = \"2%\"", "floor = \"20%\"")
        .replace("2026-12-31", "2027-12-31")
        .replace("rtol = 1e-3", "rtol = 1e-1")
        .replace("max-blocks = 24", "max-blocks = 12");
    let head = good(&head).policy_part();
    assert_eq!(super::policy_changes(&base, &base), [""; 0]);
    insta::assert_snapshot!(super::policy_changes(&base, &head).join("\n"));
}

#[test]
fn what_is_not_policy_may_change_in_silence() {
    let base = good(EXAMPLE).policy_part();
    let head =
        good(&EXAMPLE.replace("cpus = [1]", "cpus = [2]\nseed = 7").replace("3.9.0", "3.10.0")).policy_part();
    assert_eq!(super::policy_changes(&base, &head), [""; 0]);
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let deep = 200_000;
    for text in [
        format!("x = {}", "[".repeat(deep)),
        format!("x = {}1{}", "[".repeat(deep), "]".repeat(deep)),
        format!("x = {}", "{a=".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]\nb = 1", "a.".repeat(deep)),
        format!("[[{}a]]\nb = 1", "a.".repeat(deep)),
        format!("x = {{ {}a = 1 }}", "a.".repeat(deep)),
    ] {
        assert!(parse(&text, Path::new("b.toml")).is_err());
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        drop(parse(&text, Path::new("b.toml")));
    }

    /// Mutations of a valid configuration reach deeper code than random text does.
    #[test]
    fn a_damaged_configuration_never_panics(at in 0..EXAMPLE.len(), cut in 0usize..40, put in "[\\[\\]{}\"=.,x0-9\n-]{0,6}") {
        let mut text = EXAMPLE.to_owned();
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, &put);
        if let Err(problems) = parse(&text, Path::new("b.toml")) {
            prop_assert!(!problems.problems.is_empty());
        }
    }
}

#[test]
fn functions_of_a_module_have_data_of_their_own() {
    let module = MINIMAL.replace(
        "source = \"a.mlir\"\n",
        "source = \"a.mlir\"\n[model.functions.add]\ninputs = [\"3xf32=1\"]\n[model.functions.mul]\nexpected = [\"y.npy\"]\n",
    );
    let config = good(&module);
    let found: Vec<(&str, &str, usize, usize)> = config
        .models
        .iter()
        .map(|m| (m.name.as_str(), m.function.as_str(), m.inputs.len(), m.expected.len()))
        .collect();
    assert_eq!(found, [("a", "add", 1, 0), ("a", "mul", 0, 1)]);
    let both = messages(&module.replace("[model.functions.add]", "function = \"f\"\n[model.functions.add]"));
    assert_eq!(both, ["`function` and `functions` can't both be set: each function has its own settings"]);
    let python = messages(&module.replace("a.mlir", "a.py:make"));
    assert_eq!(python, ["`functions` is not valid for a Python model"]);
}

#[test]
fn rocm_is_another_name_of_hip() {
    let of = |target: &str| good(&MINIMAL.replace("backend = \"llvm-cpu\"", target)).targets.remove(0);
    for (target, device) in [
        ("backend = \"rocm\"", "hip"),
        ("backend = \"rocm\"\ndevice = \"rocm://1\"", "hip://1"),
        ("backend = \"hip\"", "hip"),
    ] {
        let target = of(target);
        assert_eq!((target.backend.as_str(), target.device.as_str()), ("hip", device));
    }
}

#[test]
fn half_of_a_repeat_count_is_refused_wherever_flags_may_be() {
    for more in [
        "run-flags = [\"--batch_size=10\"]",
        "flags = [\"--iree-hal-benchmark-dispatch-repeat-count=10\"]",
        "\n[side.head]\nrun-flags = [\"-batch_size=10\"]",
    ] {
        assert!(message(more).contains("use `dispatch-repeats`"), "{more}");
    }
}

#[test]
fn an_execution_model_that_repeats_no_dispatch_is_refused() {
    for flags in
        ["\"--iree-execution-model=inline-dynamic\"", "\"--iree-execution-model\", \"inline-static\""]
    {
        let message = message(&format!("flags = [{flags}]"));
        assert!(message.contains("other models ignore `dispatch-repeats`"), "{message}");
    }
    good(&MINIMAL.replace(
        "backend = \"llvm-cpu\"",
        "backend = \"llvm-cpu\"\nflags = [\"--iree-execution-model=async-external\"]",
    ));
}

#[test]
fn flags_that_benchgate_sets_itself_are_refused_wherever_flags_may_be() {
    for (more, name) in [
        ("flags = [\"-o=stolen.vmfb\"]", "`-o`"),
        ("flags = [\"-o\", \"stolen.vmfb\"]", "`-o`"),
        ("flags = [\"--compile-to=flow\"]", "`--compile-to`"),
        ("\n[side.head]\nflags = [\"-output-format=vm-c\"]", "`--output-format`"),
        ("run-flags = [\"--benchmark_out=x.json\"]", "`--benchmark_out`"),
    ] {
        assert!(message(more).contains(&format!("benchgate sets {name}")), "{more}: {}", message(more));
    }
}

#[test]
fn a_literal_input_that_names_a_file_is_refused() {
    let inputs = |text: &str| {
        let more = format!("source = \"a.mlir\"\ninputs = [\"{text}\"]");
        messages(&MINIMAL.replace("source = \"a.mlir\"", &more)).len()
    };
    assert_eq!(inputs("2x3xf32=1"), 0);
    for text in ["2x3xf32=@/etc/passwd", "f32=@../x.bin", "f32= @x.bin", "@x.bin"] {
        assert_eq!(inputs(text), 1, "{text}");
    }
}

#[test]
fn a_raw_file_is_named_with_its_type_and_stays_inside_the_sources() {
    let data = |inputs: &str, expected: &str| {
        let more = format!("source = \"a.mlir\"\ninputs = [\"{inputs}\"]\nexpected = [\"{expected}\"]");
        MINIMAL.replace("source = \"a.mlir\"", &more)
    };
    let model = good(&data("2x3xbf16=@d/x.bin", "y.4xbf16.bin")).models.remove(0);
    let file = |path: &str, raw: &str| TensorFile { path: path.into(), raw: Some(raw.into()) };
    assert_eq!(model.inputs, [ModelInput::File(file("d/x.bin", "2x3xbf16"))]);
    assert_eq!(model.expected, [file("y.4xbf16.bin", "4xbf16")]);
    for bad in ["4xbf16=@../x.bin", "4xbf16=@/x.bin", "../x.4xbf16.bin", "/x.npy", "4xbf17=@x.bin", "x.bin"] {
        assert_eq!(messages(&data(bad, "y.npy")).len(), 1, "{bad}");
        assert_eq!(messages(&data("x.npy", bad)).len(), 1, "{bad}");
    }
}

#[test]
fn there_is_an_fp64_output_for_every_expected_one_or_none() {
    let data =
        |text: &str| MINIMAL.replace("source = \"a.mlir\"\n", &format!("source = \"a.mlir\"\n{text}\n"));
    let model = good(&data("expected = [\"y.npy\"]\nexpected-f64 = [\"y64.npy\"]")).models.remove(0);
    assert_eq!(model.expected_f64, [TensorFile::named("y64.npy")]);
    let lonely = messages(&data("expected-f64 = [\"y64.npy\"]"));
    assert_eq!(lonely, ["`expected-f64`: expected one file for each of `expected` (0), found 1"]);
}

#[test]
fn a_configuration_and_the_command_line_read_fractions_alike() {
    for (text, expected) in [("1%", 0.01), ("2.5 %", 0.025), ("40%", 0.4), ("0%", 0.0)] {
        let config = good(&format!("{MINIMAL}[gate.metric.new]\nfloor = \"{text}\"\ntolerance = \"50%\"\n"));
        let (_, metric) = config.policy.metrics.iter().find(|(name, _)| name == "new").unwrap();
        assert_eq!(metric.floor.relative, expected, "{text}");
        assert_eq!(super::fraction(text), Ok(expected), "{text}");
    }
    for number in ["0.05", "0.19"] {
        let config = good(&format!("{MINIMAL}[gate]\nbetween-cv = {number}\n"));
        assert_eq!(config.policy.between_cv.map(Ok), Some(super::spread(number)), "{number}");
    }
}

/// If such a value were accepted, the gate would let every change pass.
#[test]
fn a_fraction_that_is_a_forgotten_percent_sign_is_refused_wherever_it_stands() {
    let bad = [
        "1", "3", "0.5", "0.2", "1.0", "nan", "inf", "-0.01", "\"100%\"", "\"300%\"", "\"NaN%\"", "\"0.01\"",
    ];
    let places = ["[gate.metric.latency]\nfloor", "[gate.metric.latency]\ntolerance", "[gate]\nbetween-cv"];
    let overrides = ["floor", "tolerance", "between-cv"]
        .map(|key| format!("[[gate.override]]\nbenchmark = \"a*\"\n{key}"));
    for place in places.into_iter().chain(overrides.iter().map(String::as_str)) {
        for value in bad {
            let found = messages(&format!("{MINIMAL}{place} = {value}\n"));
            assert!(
                found.iter().any(|message| message.contains("expected a percentage")),
                "{place} = {value}"
            );
        }
    }
    assert_eq!(
        message("[gate.metric.latency]\nfloor = 1\n"),
        "`floor`: expected a percentage such as 1%, or a fraction below 0.2 such as 0.01; did you mean 1%?"
    );
}

#[test]
fn levels_and_tolerances_at_which_the_gate_is_no_gate_are_refused() {
    for alpha in ["0", "1e-7", "1e-30", "1e-200", "1e-320", "0.5", "1", "nan", "inf", "-0.1"] {
        assert_eq!(messages(&format!("{MINIMAL}[gate]\nalpha = {alpha}\n")).len(), 1, "{alpha}");
    }
    for spread in ["0", "0.0", "\"0%\"", "1e-300"] {
        assert_eq!(messages(&format!("{MINIMAL}[gate]\nbetween-cv = {spread}\n")).len(), 1, "{spread}");
    }
    for key in ["rtol", "stol", "max-error"] {
        assert_eq!(messages(&format!("{MINIMAL}[numerics.f32]\n{key} = 1e3\n")).len(), 1, "{key}");
    }
}

#[test]
fn a_backend_may_have_several_tables_if_their_experiments_differ() {
    let with = |tables: &str| MINIMAL.to_owned() + tables;
    let eval = "\n[[backend]]\nname = \"eager\"\n";
    for other in ["test = \"train\"", "dtype = \"amp\"", "batch-size = [4]", "matmul-precision = \"high\""] {
        assert_eq!(good(&with(&format!("{eval}{eval}{other}\n"))).backends.len(), 2, "{other}");
    }
    for other in ["", "test = [\"train\", \"eval\"]", "models = [\"a\"]"] {
        let said = messages(&with(&format!("{eval}{eval}{other}\n")));
        assert!(said.iter().any(|message| message.contains("a second backend `eager`")), "{other}: {said:?}");
    }
}

#[test]
fn packages_are_those_of_an_index_and_folders_to_import_from_lie_in_the_sources() {
    let python = "[python]\nrequirements = [\"einops==0.8.1\", \"timm[extra]>=1; python_version > '3.10'\"]\npath = [\"src\"]\n";
    let python = good(&format!("{MINIMAL}{python}")).python;
    assert_eq!((python.requirements.len(), python.path), (2, vec![PathBuf::from("src")]));
    for bad in [
        "git+https://example.com/x.git",
        "x @ https://example.com/x.whl",
        "-r more.txt",
        "./local",
        "x --pre",
    ] {
        let message = message(&format!("[python]\nrequirements = [\"{bad}\"]\n"));
        assert!(message.contains("can't be locked by hash"), "{bad}: {message}");
    }
    assert!(message("[python]\npath = [\"../other\"]\n").contains("`path`"));
}
