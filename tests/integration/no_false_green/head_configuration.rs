//! A pull request sets every declared configuration key to every plausible value.

use std::path::Path;

use benchgate::config::{self, Config};
use benchgate::gate::{self, CompareOptions, Policy};
use benchgate::record::RunFile;
use serde_json::{Value, json};

use super::{FAIL_ON, Greens};
use crate::pull_request::{commit, repository};

/// A change of one key, with the key's name in the reference page: `[[model]] flags`.
struct Change {
    key: String,
    head: Value,
}

/// Values of keys for text that has no pattern.
const TEXTS: &[&str] =
    &["other", "local-sync", "models/b.mlir", "data/z.npy", "--other", "--task_topology_group_count=1"];

fn values(schema: &Value) -> Vec<Value> {
    if let Some(words) = schema["enum"].as_array() {
        return words.clone();
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().flat_map(values).collect();
    }
    match (schema["type"].as_str(), schema["pattern"].as_str()) {
        (Some("boolean"), _) => vec![json!(true), json!(false)],
        (Some("integer"), _) => {
            let (least, most) =
                (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64().unwrap_or(1000));
            [least, 1, 3, most].into_iter().filter(|n| (least..=most).contains(n)).map(|n| json!(n)).collect()
        }
        (Some("number"), _) => [0.0, 0.01, 0.1, 0.4].map(|number| json!(number)).to_vec(),
        (Some("array"), _) => {
            let items = values(&schema["items"]);
            let one = items.iter().map(|item| json!([item]));
            std::iter::once(json!([])).chain(one).collect()
        }
        (Some("object"), _) if schema["properties"].is_object() => Vec::new(),
        (Some("object"), _) => vec![json!({}), json!({ "A": "1" }), json!({ "--old": "--new" })],
        (_, Some(pattern)) if pattern.contains("ns|us") => vec![json!("1ms"), json!("3h")],
        (_, Some(pattern)) if pattern.contains('%') => vec![json!("90%"), json!("0%")],
        (_, Some(pattern)) if pattern.contains("{40}") => vec![json!("2".repeat(40))],
        (_, Some(pattern)) if pattern.contains("{64}") => vec![json!("3".repeat(64))],
        (_, Some(pattern)) if pattern.contains("{2}") => vec![json!("2027-01-01")],
        (_, Some(pattern)) if pattern.contains("://") => {
            vec![json!("https://example.com/x"), json!("s3://bucket/x")]
        }
        _ => TEXTS.iter().map(|text| json!(text)).chain([json!("9.9.8")]).collect(),
    }
}

/// Every change of `document` in one key of `schema`, which is at `path` in the document.
fn changes(schema: &Value, path: &[Value], title: &str, document: &Value, all: &mut Vec<Change>) {
    for (key, inner) in schema["properties"].as_object().unwrap() {
        let at = [path, &[json!(key)]].concat();
        let named = |name: &str| [&at[..], &[json!(name)]].concat();
        let below = if title.is_empty() { key.clone() } else { title.to_owned() };
        if inner["properties"].is_object() {
            changes(inner, &at, &below, document, all);
        }
        if inner["items"]["properties"].is_object() {
            changes(&inner["items"], &[&at[..], &[json!(0)]].concat(), &below, document, all);
        }
        if inner["additionalProperties"]["properties"].is_object() {
            let name = match key.as_str() {
                "metric" => "latency",
                "numerics" => "f32",
                _ => "main",
            };
            changes(&inner["additionalProperties"], &named(name), &below, document, all);
        }
        for value in values(inner).into_iter().map(Some).chain([None]) {
            let mut head = document.clone();
            set(&mut head, &at, value);
            all.push(Change {
                key: if title.is_empty() { key.clone() } else { format!("{title} {key}") },
                head,
            });
        }
    }
}

/// Sets or removes the value at a path, and creates missing tables.
fn set(document: &mut Value, path: &[Value], value: Option<Value>) {
    let Some((last, before)) = path.split_last() else { return };
    let mut at = document;
    for (index, step) in before.iter().enumerate() {
        let empty = if path[index + 1].is_u64() { json!([]) } else { json!({}) };
        at = match step.as_u64() {
            Some(_) => {
                let list = at.as_array_mut().unwrap();
                if list.is_empty() {
                    list.push(empty);
                }
                &mut list[0]
            }
            None => at.as_object_mut().unwrap().entry(step.as_str().unwrap()).or_insert(empty),
        };
    }
    let table = at.as_object_mut().unwrap();
    match value {
        Some(value) => drop(table.insert(last.as_str().unwrap().to_owned(), value)),
        None => drop(table.remove(last.as_str().unwrap())),
    }
}

/// Converts JSON to TOML with one inline value for each top-level key.
fn toml(document: &Value) -> String {
    fn inline(value: &Value) -> String {
        let list = |items: Vec<String>| items.join(", ");
        match value {
            Value::Array(items) => format!("[{}]", list(items.iter().map(inline).collect())),
            Value::Object(table) => {
                let entry = |(key, value): (&String, &Value)| format!("{key:?} = {}", inline(value));
                format!("{{ {} }}", list(table.iter().map(entry).collect()))
            }
            other => other.to_string(),
        }
    }
    document
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key:?} = {}\n", inline(value)))
        .collect()
}

/// Two suites: one with almost only required keys, and one with values for many keys.
fn documents(tools: &Path) -> [Value; 2] {
    let few = json!({
        "suite": { "name": "fake" },
        "toolchain": { "version": "9.9.9", "commit": crate::suite::COMMIT, "path": tools },
        "model": [{ "name": "a", "source": "models/a.mlir", "inputs": ["3xf32=1"], "expected": ["data/y.npy"] }],
        "target": [{ "name": "cpu", "backend": "llvm-cpu", "device": "local-task" }],
        "measure": { "repetitions": 4, "min-time": "1ms", "warmup": "0ms", "min-blocks": 4, "max-blocks": 12, "timeout": "20s", "compile-timeout": "20s" },
    });
    let mut many = few.clone();
    for (path, value) in [
        (&["side", "head", "flags"][..], json!(["--x"])),
        (&["measure", "processes"], json!(2)),
        (&["measure", "max-blocks"], json!(13)),
        (&["measure", "jobs"], json!(2)),
        (&["measure", "seed"], json!(7)),
        (&["gate", "alpha"], json!(0.02)),
        (&["gate", "metric", "latency", "floor"], json!("2%")),
        (&["numerics", "f32", "rtol"], json!(0.001)),
        (&["report", "disclose"], json!("ratios")),
        (&["store", "sessions"], json!(10)),
        (&["github", "check-run"], json!(true)),
        (&["aliases", "--a"], json!("--b")),
    ] {
        let path: Vec<Value> = path.iter().map(|step| json!(step)).collect();
        set(&mut many, &path, Some(value));
    }
    [few, many]
}

fn parsed(document: &Value) -> Option<Config> {
    config::parse(&toml(document), Path::new("benchgate.toml")).ok()
}

fn all_changes(document: &Value) -> Vec<Change> {
    let schema: Value = serde_json::from_str(&config::json_schema()).unwrap();
    let mut all = Vec::new();
    changes(&schema, &[], "", document, &mut all);
    all
}

/// Returns true if the declaration lets the head choose the key.
fn is_heads(key: &str) -> bool {
    let (table, key) = key.split_once(' ').unwrap_or((key, ""));
    let named = |list: &str, key: &str| list.contains(&format!("`{key}`"));
    let (own, of_each) = config::head_keys();
    named(&own, table)
        || of_each.iter().any(|(known, keys)| *known == table && (key.is_empty() || named(keys, key)))
}

#[test]
fn a_head_s_configuration_decides_nothing_but_the_keys_that_are_its_own() {
    let (suite, repository) = repository();
    suite.source("a", &["latency-us=3000"]);
    commit(&repository, "slow");
    suite.world.run(["gate", "--base", "main"]).expect_code(10);
    let run = RunFile::from_slice(suite.world.read("run.json").as_bytes()).unwrap();
    let [base_run, head_run] = [0, 1].map(|side| run.run(&run.sides[side], "run.json"));

    let is_green = |policy: &Policy| {
        gate::compare(&base_run, &head_run, policy, &CompareOptions::default()).exit_code.code() == 0
    };
    let (mut cases, mut refused, mut wrong) = (0, 0, Vec::new());
    for document in documents(Path::new("tools")) {
        let base = parsed(&document).unwrap();
        assert!(!is_green(&base.policy));
        for Change { key, head } in all_changes(&document) {
            cases += 1;
            // If the configuration is refused, the result is an error and never a pass.
            let Some(head) = parsed(&head) else {
                refused += 1;
                continue;
            };
            let mut judged = head.clone();
            judged.judge_by(&base);
            let reported = head.changes(&base);
            let policy = config::policy_changes(&base.policy_part(), &head.policy_part());
            let same_tables =
                head.models.len() == base.models.len() && head.targets.len() == base.targets.len();
            let renamed =
                head.models[0].name != base.models[0].name || head.targets[0].name != base.targets[0].name;
            let fault = if head == base {
                None
            } else if is_heads(&key) {
                // A changed name makes another benchmark, so that the base's one is missing.
                (reported.chosen.is_empty()
                    && same_tables
                    && !renamed
                    && head.models[0].function == base.models[0].function)
                    .then_some("is not in the report")
            } else if judged != base {
                Some("is taken from the head")
            } else {
                (reported.ignored.is_empty() && policy.is_empty()).then_some("is ignored in silence")
            };
            wrong.extend(fault.map(|fault| format!("{key} {fault}")));
            // With the base's policy, the verdict is the base's too.
            if judged.policy != base.policy && is_green(&judged.policy) {
                wrong.push(format!("{key} makes a slow head green"));
            }
        }
    }
    assert!(cases - refused >= 500, "{cases} cases, {refused} refused");
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_change_of_a_configuration_makes_a_slow_or_wrong_head_green() {
    /// The number of changes that are tested with the whole program.
    const SAMPLE: usize = 16;
    let (suite, repository) = repository();
    let [document, _] = documents(&suite.world.locks().join("tools"));
    for name in ["a", "b"] {
        suite.source(name, &["latency-us=1000"]);
    }
    suite.world.write("data/z.npy", crate::suite::npy(&[10.0, 20.0, 30.0]));
    suite.world.write("benchgate.toml", toml(&document));
    repository.set_head("refs/heads/main").unwrap();
    commit(&repository, "inline tables");
    let main = repository.head().unwrap().peel_to_commit().unwrap();
    repository.branch("change", &main, true).unwrap();
    repository.set_head("refs/heads/change").unwrap();
    commit(&repository, "nothing yet");
    suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]).expect_no_failure();

    let valid: Vec<Change> = all_changes(&document)
        .into_iter()
        .filter(|change| parsed(&change.head).is_some_and(|head| Some(head) != parsed(&document)))
        .collect();
    let mut greens = Greens::default();
    for (index, change) in valid.iter().step_by(valid.len() / SAMPLE).enumerate() {
        let directives = if index % 2 == 0 { &["latency-us=3000"] } else { &["output=1.5,3,4.5"] };
        for name in ["a", "b"] {
            suite.source(name, directives);
        }
        suite.world.write("benchgate.toml", toml(&change.head));
        let outcome = suite.world.run(["gate", "--base", "main", "--fail-on", FAIL_ON]);
        greens.check(&change.key, &outcome);
    }
    greens.none(SAMPLE);
}
