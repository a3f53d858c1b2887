//! Tests of `--dump` and `--collect`.

use strum::VariantArray;

use super::*;

fn xla(folder: &Path, symbol: &str) -> SideInput {
    let mut side = suite(folder, symbol, "");
    side.config.backends[0].kind = BackendKind::XlaLazy;
    side
}

fn run(folder: &Path, side: &SideInput, extras: Extras) -> (Vec<BackendRecord>, Vec<String>) {
    records_with(folder, side, &[], &Environments::new(), &Extras { folder: folder.join("dumps"), ..extras })
}

#[test]
fn what_is_dumped_while_xla_compiles_has_a_process_that_measures_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let side = xla(folder.path(), "works");
    let dump = vec![DumpKind::XlaIr, DumpKind::Profile, DumpKind::XlaCompiledHlo, DumpKind::XlaIr];
    let (records, warnings) = run(folder.path(), &side, Extras { dump, ..Extras::default() });
    let experiment = folder.path().join("dumps/m/xla-lazy-cpu-eval");
    let found: Vec<_> = calls(folder.path())
        .into_iter()
        .map(|call| {
            (
                call["measure"].as_bool(),
                call["verify"].as_bool(),
                call["dump"].to_string(),
                call["dump-dir"].clone(),
            )
        })
        .collect();
    let expected = [
        (Some(true), Some(true), "[\"profile\"]", experiment.join("0")),
        (Some(true), Some(false), "[\"profile\"]", experiment.join("1")),
        (Some(false), Some(false), "[\"xla-ir\"]", experiment.clone()),
        (Some(false), Some(false), "[\"xla-compiled-hlo\"]", experiment),
    ]
    .map(|(measure, verify, dump, folder)| (measure, verify, dump.to_owned(), serde_json::json!(folder)));
    assert_eq!(found, expected);
    assert_eq!((records[0].processes.len(), warnings), (2, Vec::new()), "the record holds what was measured");
}

#[test]
fn a_dump_that_fails_is_a_warning_and_the_row_stays() {
    let folder = tempfile::tempdir().unwrap();
    let side = xla(folder.path(), "wrong");
    let (records, warnings) =
        run(folder.path(), &side, Extras { dump: vec![DumpKind::XlaHlo], ..Extras::default() });
    assert_eq!(Outcome::from(&records[0].outcome), Outcome::Ok);
    assert_eq!(warnings, ["no xla-hlo of m/xla-lazy-cpu-eval: failed: benchmark: dump: no graph"]);
}

#[test]
fn a_backend_that_failed_is_not_started_again_for_its_dumps() {
    let folder = tempfile::tempdir().unwrap();
    let side = xla(folder.path(), "raises");
    run(folder.path(), &side, Extras { dump: vec![DumpKind::XlaHlo], ..Extras::default() });
    assert_eq!(calls(folder.path()).len(), 1);
}

#[test]
fn what_is_collected_is_in_the_record_of_each_process() {
    let folder = tempfile::tempdir().unwrap();
    let side = suite(folder.path(), "works", "");
    let (records, _) =
        run(folder.path(), &side, Extras { collect: vec![CollectKind::DynamoCounters], ..Extras::default() });
    for process in &records[0].processes {
        let counters = process.collected.as_ref().unwrap().dynamo_counters.as_ref().unwrap();
        assert_eq!(counters["stats"]["unique_graphs"], 1);
    }
    assert_eq!(calls(folder.path())[0]["collect"], serde_json::json!(["dynamo-counters"]));
}

#[test]
fn a_dump_that_no_experiment_can_leave_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let side = suite(folder.path(), "works", "");
    let planned = plan(&side, &Filter::default());
    let eager = experiments(&planned, &side.config.backends, &Axes::default()).unwrap();
    let asked = |dump: DumpKind| Extras { dump: vec![dump], ..Extras::default() };
    for (extras, experiments, part) in [
        (asked(DumpKind::XlaIr), eager.as_slice(), "xla-ir needs an experiment on xla-lazy or xla-dynamo"),
        (asked(DumpKind::XlaMetrics), eager.as_slice(), "xla-metrics needs"),
        (asked(DumpKind::Profile), &[], "this run has none"),
    ] {
        let error = extras.check(experiments).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    asked(DumpKind::Profile).check(&eager).unwrap();
    Extras::default().check(&[]).unwrap();
}

#[test]
fn the_kinds_are_those_of_the_package_and_of_the_documentation() {
    let protocol = BackendsSource::FILES.iter().find(|(name, _)| *name == "protocol.py").unwrap().1;
    let documentation = include_str!("../../../../docs/backends.md");
    let dumps: Vec<&str> = DumpKind::VARIANTS.iter().map(Into::into).collect();
    let collected: Vec<&str> = CollectKind::VARIANTS.iter().map(Into::into).collect();
    for (constant, names) in [("DUMPS", &dumps), ("COLLECTED", &collected)] {
        let quoted = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        assert!(protocol.contains(&format!("\n{constant} = ({quoted})\n")), "{constant}: {quoted}");
        for name in names {
            assert!(documentation.contains(&format!("| `{name}` |")), "{name} is not in docs/backends.md");
        }
    }
}
