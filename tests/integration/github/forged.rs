//! Forged results: every field of a regressed result is deleted or changed, every missing field is added, and
//! sides and benchmarks are exchanged, renamed and replayed. `publish` must never report a pass. It can't
//! detect plausible invented samples, so no case here invents samples.

use std::collections::BTreeMap;
use std::path::Path;

use benchgate::numerics::NumericsTolerance;
use serde_json::{Value, json};

use super::red::{Red, renamed_and_kept};

/// Collects every field and its positions. In the name of a field, `*` stands for each index of an array and
/// each key of a map.
fn fields(value: &Value, shape: &str, pointer: &str, found: &mut BTreeMap<String, Vec<String>>) {
    let mut add = |key: &str, pointer_key: &str, inner: &Value| {
        let shape = format!("{shape}/{key}");
        let pointer = format!("{pointer}/{pointer_key}");
        found.entry(shape.clone()).or_default().push(pointer.clone());
        fields(inner, &shape, &pointer, found);
    };
    match value {
        // One number of a list is like the others.
        Value::Array(list) if list.first().is_none_or(Value::is_number) => {}
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                // The sides and the benchmarks are distinguished, because a forgery depends on its position.
                let key = if shape == "/sides" || shape.ends_with("/benchmarks") {
                    at.to_string()
                } else {
                    "*".into()
                };
                add(&key, &at.to_string(), inner);
            }
        }
        Value::Object(map) => {
            for (name, inner) in map {
                let is_open =
                    shape.ends_with("/facts") || shape.ends_with("/notes") || shape.ends_with("/compiler");
                let key = if is_open { "*" } else { name };
                add(key, &name.replace('~', "~0").replace('/', "~1"), inner);
            }
        }
        _ => {}
    }
}

fn delete(run: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match run.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.remove(&key.replace("~1", "/").replace("~0", "~"))),
        // Positions are processed from the last to the first, so that removing one does not shift those that
        // remain.
        Some(Value::Array(list)) => drop(list.remove(key.parse().unwrap())),
        _ => {}
    }
}

/// Another value of the same kind.
fn altered(value: &Value, shape: &str) -> Vec<Value> {
    match value {
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            vec![json!((number * 2.0).round() + 1.0), json!(0)]
        }
        Value::String(text) => {
            let known: &[&str] = match shape.rsplit('/').next().unwrap_or_default() {
                "better" => &["higher", "lower"],
                "kind" => &["exact", "noisy"],
                "unit" => &["us", "1/s", "bytes"],
                "status" => &["unsupported", "skipped", "cached", "ok"],
                "code" => &["PASS", "VERIFIER_SKIPPED"],
                "design" => &["single"],
                _ => &["another"],
            };
            known.iter().filter(|word| *word != text).map(|word| json!(word)).collect()
        }
        Value::Array(list) => {
            let mut reversed = list.clone();
            reversed.reverse();
            vec![json!([]), json!(reversed), json!(list[..list.len() / 2])]
        }
        Value::Object(_) => vec![json!({})],
        Value::Null => Vec::new(),
    }
}

/// Returns true if changing this field means inventing samples of one side.
fn invents(shape: &str) -> bool {
    shape.ends_with("/samples/latency")
}

#[test]
fn a_red_result_with_any_field_deleted_or_changed_is_never_green() {
    no_field_deleted_or_changed_makes_it_green(&Red::new());
}

#[test]
fn a_red_result_of_a_command_with_any_field_deleted_or_changed_is_never_green() {
    no_field_deleted_or_changed_makes_it_green(&Red::of_command());
}

fn no_field_deleted_or_changed_makes_it_green(red: &Red) {
    assert_eq!(red.published(&red.run, 0), Some(10), "the result as it was measured");
    let mut found = BTreeMap::new();
    fields(&red.run, "", "", &mut found);
    // A field is also changed on both sides at once, because then a comparison of the sides can't detect it.
    let mut groups = found.clone();
    for (shape, places) in &found {
        if let Some(rest) = shape.strip_prefix("/sides/0/").or_else(|| shape.strip_prefix("/sides/1/")) {
            groups.entry(format!("/both sides/{rest}")).or_default().extend(places.iter().cloned());
        }
    }
    let mut forgeries = Vec::new();
    for (shape, places) in &groups {
        // The other two benchmarks have the same fields as the slow one, so their fields are not tested.
        let own = ["/benchmarks/1/", "/benchmarks/2/"].iter().any(|part| shape.contains(part));
        if own {
            continue;
        }
        let mut deleted = red.run.clone();
        places.iter().rev().for_each(|place| delete(&mut deleted, place));
        forgeries.push((format!("delete {shape}"), deleted));
        let choices =
            places.iter().filter_map(|place| red.run.pointer(place)).map(|v| altered(v, shape).len()).max();
        for choice in 0..choices.unwrap_or(0) {
            let mut changed = red.run.clone();
            for place in places {
                let Some(value) = changed.pointer_mut(place) else { continue };
                if let Some(other) = altered(value, shape).get(choice) {
                    *value = other.clone();
                }
            }
            if changed != red.run && !invents(shape) {
                forgeries.push((format!("change {shape} ({choice})"), changed));
            }
        }
    }
    assert!(forgeries.len() > 200, "only {} forgeries", forgeries.len());
    let greens = red.greens(&forgeries);
    assert!(greens.is_empty(), "{} of {} are green:\n{}", greens.len(), forgeries.len(), greens.join("\n"));
}

/// Optional fields that a value lacks but its schema names. The key is the shape with the field's name; the
/// values are its positions and possible values.
type Absent = BTreeMap<String, (Vec<String>, Vec<Value>)>;

/// Checks the JSON Schemas of results.
struct Schema(Value);

impl Schema {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/run.json");
        Self(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    }

    /// Follows references, and ignores the `null` alternative of an optional value.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str() {
            return self.resolve(self.0.pointer(name.trim_start_matches('#')).unwrap());
        }
        let choices = schema["anyOf"].as_array();
        match choices.and_then(|choices| choices.iter().find(|choice| choice["type"] != "null")) {
            Some(choice) => self.resolve(choice),
            None => schema,
        }
    }

    fn absent(&self, schema: &Value, value: &Value, shape: &str, pointer: &str, found: &mut Absent) {
        let schema = self.resolve(schema);
        match value {
            Value::Object(map) => {
                for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                    let (shape, below) = (format!("{shape}/{name}"), format!("{pointer}/{name}"));
                    match map.get(name) {
                        Some(value) => self.absent(inner, value, &shape, &below, found),
                        None => {
                            let values = self.plausible(inner, 0);
                            found.entry(shape).or_insert_with(|| (Vec::new(), values)).0.push(below);
                        }
                    }
                }
            }
            Value::Array(list) => {
                for (at, value) in list.iter().enumerate() {
                    let listed = shape == "/sides" || shape.ends_with("/benchmarks");
                    let key = if listed { at.to_string() } else { "*".to_owned() };
                    self.absent(
                        &schema["items"],
                        value,
                        &format!("{shape}/{key}"),
                        &format!("{pointer}/{at}"),
                        found,
                    );
                }
            }
            _ => {}
        }
    }

    /// Values that the schema accepts.
    fn plausible(&self, schema: &Value, depth: u32) -> Vec<Value> {
        let schema = self.resolve(schema);
        if let Some(only) = schema.get("const") {
            return vec![only.clone()];
        }
        for list in ["enum", "oneOf"] {
            if let Some(choices) = schema[list].as_array() {
                let of = |choice: &Value| {
                    if list == "enum" { vec![choice.clone()] } else { self.plausible(choice, depth) }
                };
                return choices.iter().flat_map(of).collect();
            }
        }
        let first =
            |schema: &Value| self.plausible(schema, depth + 1).into_iter().next().unwrap_or(Value::Null);
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or_default();
        match kind {
            "boolean" => vec![json!(true), json!(false)],
            "integer" => vec![json!(0), json!(1), json!(1_000_000)],
            "number" => vec![json!(0.0), json!(5.0), json!(1e300)],
            "string" => vec![json!("slow/cpu/main"), json!("2099-01-01T00:00:00Z")],
            "array" if depth < 5 => vec![json!([]), json!([first(&schema["items"])])],
            "object" if depth < 5 => {
                let properties = schema["properties"].as_object();
                let mut whole: serde_json::Map<String, Value> = properties
                    .into_iter()
                    .flatten()
                    .map(|(name, inner)| (name.clone(), first(inner)))
                    .collect();
                if schema["additionalProperties"].is_object() {
                    let inner = first(&schema["additionalProperties"]);
                    whole.extend(["slow/cpu/main", "latency"].map(|name| (name.to_owned(), inner.clone())));
                }
                vec![json!({}), Value::Object(whole)]
            }
            _ => vec![json!(5.0), json!("latency")],
        }
    }
}

#[test]
fn a_red_result_that_gains_a_field_is_never_green() {
    no_field_that_is_gained_makes_it_green(&Red::new());
}

#[test]
fn a_red_result_of_a_command_that_gains_a_field_is_never_green() {
    no_field_that_is_gained_makes_it_green(&Red::of_command());
}

fn no_field_that_is_gained_makes_it_green(red: &Red) {
    let schema = Schema::new();
    let mut found = Absent::new();
    schema.absent(&schema.0, &red.run, "", "", &mut found);
    let mut groups = found.clone();
    for (shape, (places, values)) in &found {
        if let Some(rest) = shape.strip_prefix("/sides/0/").or_else(|| shape.strip_prefix("/sides/1/")) {
            let group = groups.entry(format!("/both sides/{rest}"));
            group.or_insert_with(|| (Vec::new(), values.clone())).0.extend(places.iter().cloned());
        }
    }
    let mut forgeries = Vec::new();
    for (shape, (places, values)) in &groups {
        if ["/benchmarks/1/", "/benchmarks/2/"].iter().any(|part| shape.contains(part)) {
            continue;
        }
        for value in values {
            let mut forged = red.run.clone();
            for place in places {
                let (parent, name) = place.rsplit_once('/').unwrap();
                forged.pointer_mut(parent).unwrap()[name] = value.clone();
            }
            forgeries.push((format!("{shape} = {value}"), forged));
        }
    }
    assert!(forgeries.len() > 100, "only {} forgeries", forgeries.len());
    let greens = red.greens(&forgeries);
    assert!(greens.is_empty(), "{} of {} are green:\n{}", greens.len(), forgeries.len(), greens.join("\n"));
}

#[test]
fn a_red_result_that_is_exchanged_renamed_rescaled_or_replayed_is_never_green() {
    let red = Red::new();
    let mut forgeries: Vec<(String, Value)> = Vec::new();
    let mut forge = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut run = red.run.clone();
        change(&mut run);
        assert_ne!(run, red.run, "{what}");
        forgeries.push((what.to_owned(), run));
    };
    fn of(run: &mut Value, side: usize) -> &mut Vec<Value> {
        run["sides"][side]["benchmarks"].as_array_mut().unwrap()
    }
    fn both(run: &mut Value, change: impl Fn(&mut Value)) {
        (0..2).for_each(|side| change(&mut of(run, side)[0]));
    }
    forge("the sides exchanged", &|run| run["sides"].as_array_mut().unwrap().reverse());
    forge("the benchmarks of the sides exchanged", &|run| {
        let base = run["sides"][0]["benchmarks"].take();
        run["sides"][0]["benchmarks"] = run["sides"][1]["benchmarks"].take();
        run["sides"][1]["benchmarks"] = base;
    });
    forge("the processes of the sides exchanged", &|run| {
        let base = of(run, 0)[0]["processes"].take();
        let head = of(run, 1)[0]["processes"].take();
        of(run, 0)[0]["processes"] = head;
        of(run, 1)[0]["processes"] = base;
    });
    forge("the slow benchmark named as an even one and back", &|run| {
        for side in 0..2 {
            let name = of(run, side)[0]["name"].take();
            of(run, side)[0]["name"] = of(run, side)[1]["name"].take();
            of(run, side)[1]["name"] = name;
        }
    });
    forge("the slow benchmark renamed on both sides", &|run| both(run, |b| b["name"] = json!("x/cpu/main")));
    forge("the slow benchmark deleted on both sides", &|run| {
        (0..2).for_each(|side| drop(of(run, side).remove(0)))
    });
    forge("every benchmark deleted", &|run| (0..2).for_each(|side| of(run, side).clear()));
    for status in ["unsupported", "skipped"] {
        forge(&format!("{status} on both sides"), &|run| {
            both(run, |b| b["outcome"] = json!({"status": status, "why": "no device"}));
        });
        forge(&format!("{status} at base"), &|run| {
            of(run, 0)[0]["outcome"] = json!({"status": status, "why": "no device"});
        });
    }
    forge("unsupported and without a trace of the device", &|run| {
        both(run, |b| {
            b["outcome"] = json!({"status": "unsupported", "why": "no device"});
            b["processes"] = json!([]);
        });
    });
    for stage in ["export", "compile", "verify"] {
        forge(&format!("{stage} failed at base"), &|run| {
            of(run, 0)[0]["outcome"] = json!({"status": "failed", "stage": stage, "why": "crash"});
            of(run, 0)[0]["processes"] = json!([]);
        });
    }
    forge("latency is better when higher", &|run| run["metrics"][0]["better"] = json!("higher"));
    forge("latency has another name", &|run| {
        let text = run.to_string().replace("\"latency\"", "\"latency2\"");
        *run = serde_json::from_str(&text).unwrap();
    });
    forge("latency is not there", &|run| {
        for side in 0..2 {
            for process in of(run, side)[0]["processes"].as_array_mut().unwrap() {
                process["samples"].as_object_mut().unwrap().remove("latency");
            }
        }
    });
    forge("base has no latency", &|run| {
        for process in of(run, 0)[0]["processes"].as_array_mut().unwrap() {
            process["samples"].as_object_mut().unwrap().remove("latency");
        }
    });
    forge("both claim to execute the same bytes", &|run| {
        let artifact = of(run, 0)[0]["artifact"].clone();
        of(run, 1)[0]["artifact"] = artifact;
    });
    forge("both claim the same bytes, and one block is left", &|run| {
        let artifact = of(run, 0)[0]["artifact"].clone();
        of(run, 1)[0]["artifact"] = artifact;
        for side in 0..2 {
            let processes = of(run, side)[0]["processes"].as_array_mut().unwrap();
            processes.retain(|process| process["slot"]["block"] == 0);
        }
    });
    forge("every time is a thousandth", &|run| {
        for side in 0..2 {
            for process in of(run, side)[0]["processes"].as_array_mut().unwrap() {
                for sample in process["samples"]["latency"].as_array_mut().unwrap() {
                    *sample = json!(sample.as_f64().unwrap() / 1000.0);
                }
            }
        }
    });
    forge("the processes are not paired", &|run| {
        for side in 0..2 {
            for process in of(run, side)[0]["processes"].as_array_mut().unwrap() {
                process.as_object_mut().unwrap().remove("slot");
            }
        }
    });
    forge("head has one process", &|run| of(run, 1)[0]["processes"].as_array_mut().unwrap().truncate(1));
    forge("a calibration that expects anything", &|run| {
        run["calibration"] = json!({"source": "x", "spreads": [{
            "benchmark": "slow/cpu/main", "metric": "latency",
            "within_process": 5.0, "between_processes": 5.0, "between_blocks": 5.0, "between_sessions": 5.0,
        }]});
    });
    forge("an interrupted run", &|run| run["complete"] = json!(false));
    forge("another suite", &|run| run["suite"] = json!("other"));
    forge("another head", &|run| run["sides"][1]["commit"] = json!("3".repeat(40)));
    forge("another base", &|run| run["sides"][0]["commit"] = json!("3".repeat(40)));
    forge("other tools at base", &|run| {
        run["sides"][0]["toolchain"]["compiler_commit"] = json!("4".repeat(40));
        run["sides"][0]["toolchain"]["runtime_commit"] = json!("4".repeat(40));
    });
    forge("another version at base", &|run| run["sides"][0]["toolchain"]["version"] = json!("1.0.0"));
    forge("only head", &|run| drop(run["sides"].as_array_mut().unwrap().remove(0)));
    forge("head twice", &|run| {
        let head = run["sides"][1]["benchmarks"].clone();
        run["sides"][0]["benchmarks"] = head;
    });
    forge("base twice", &|run| {
        let base = run["sides"][0]["benchmarks"].clone();
        run["sides"][1]["benchmarks"] = base;
    });
    let greens = red.greens(&forgeries);
    assert!(greens.is_empty(), "{} of {} are green:\n{}", greens.len(), forgeries.len(), greens.join("\n"));
}

impl Red {
    /// Makes the result pass, by giving head base's samples in the same slots, multiplied by a factor for
    /// each block.
    pub fn even(&mut self, factor: impl Fn(u64) -> f64) {
        let base = self.run["sides"][0]["benchmarks"][0]["processes"].clone();
        let processes = self.run["sides"][1]["benchmarks"][0]["processes"].as_array_mut().unwrap();
        for (process, base) in processes.iter_mut().zip(base.as_array().unwrap()) {
            process["samples"] = base["samples"].clone();
            let factor = factor(process["slot"]["block"].as_u64().unwrap());
            // All metrics are changed, because a processor time exactly equal to base's would count as a
            // copy.
            for samples in process["samples"].as_object_mut().unwrap().values_mut() {
                for sample in samples.as_array_mut().unwrap() {
                    *sample = (sample.as_f64().unwrap() * factor).into();
                }
            }
        }
    }
}

#[test]
fn a_passing_result_of_other_tools_commits_or_benchmarks_is_never_green() {
    let mut red = Red::new();
    red.even(|_| 1.000_001);
    assert_eq!(red.published(&red.run, 0), Some(0), "the result itself");
    let mut forgeries = Vec::new();
    let mut forge = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut run = red.run.clone();
        change(&mut run);
        forgeries.push((what.to_owned(), run));
    };
    for side in 0..2 {
        forge("another commit", &|run| run["sides"][side]["commit"] = json!("3".repeat(40)));
        forge("no commit", &|run| drop(run["sides"][side].as_object_mut().unwrap().remove("commit")));
        forge("a benchmark is gone", &|run| {
            run["sides"][side]["benchmarks"].as_array_mut().unwrap().remove(2);
        });
        forge("no verification", &|run| {
            for benchmark in run["sides"][1]["benchmarks"].as_array_mut().unwrap() {
                benchmark.as_object_mut().unwrap().remove("verification");
            }
        });
    }
    for sides in [&[1][..], &[0, 1]] {
        forge("a PASS of no output", &|run| {
            for &side in sides {
                for benchmark in run["sides"][side]["benchmarks"].as_array_mut().unwrap() {
                    benchmark["verification"]["outputs"] = json!([]);
                }
            }
        });
        forge("a skipped check", &|run| {
            for &side in sides {
                for benchmark in run["sides"][side]["benchmarks"].as_array_mut().unwrap() {
                    benchmark["verification"] = json!({ "code": "VERIFIER_SKIPPED" });
                }
            }
        });
        for (figure, value) in [("mismatched", json!(1)), ("non_finite", json!(1)), ("error", json!(0.4))] {
            forge(figure, &|run| {
                for &side in sides {
                    let check = &mut run["sides"][side]["benchmarks"][0]["verification"]["outputs"][0];
                    check["divergence"]["allowed_error"] = json!(0.001);
                    check["divergence"][figure] = value.clone();
                }
            });
        }
    }
    forge("no verification of a model without a reference", &|run| {
        let benchmark = run["sides"][1]["benchmarks"][2].as_object_mut().unwrap();
        benchmark.remove("verification").unwrap();
    });
    forge("no comparison with base of a model without a reference", &|run| {
        let checks = &mut run["sides"][1]["benchmarks"][2]["verification"]["against_base"];
        assert!(checks.is_array(), "{checks}");
        *checks = json!([]);
    });
    for dirty in [json!(true), Value::Null] {
        forge("a base that differs from its commit", &|run| run["sides"][0]["dirty"] = dirty.clone());
        forge("a head that differs from its commit", &|run| run["sides"][1]["dirty"] = dirty.clone());
    }
    forge("no tools at head", &|run| drop(run["sides"][1].as_object_mut().unwrap().remove("toolchain")));
    for (part, value) in [
        ("compiler_commit", json!("4".repeat(40))),
        ("runtime_commit", json!("4".repeat(40))),
        ("compiler_commit", json!("a compiler")),
        ("version", json!("")),
    ] {
        forge("tools that can't be", &|run| run["sides"][1]["toolchain"][part] = value.clone());
    }
    forge("tools of no commit", &|run| {
        for part in ["compiler_commit", "runtime_commit"] {
            run["sides"][1]["toolchain"][part] = json!("0.1");
        }
    });
    for sides in [&[0][..], &[1], &[0, 1]] {
        forge("another device", &|run| {
            for &side in sides {
                let artifact = &mut run["sides"][side]["benchmarks"][0]["artifact"];
                artifact["workload"]["device"] = json!("local-sync");
            }
        });
        forge("processes that took no time", &|run| {
            for &side in sides {
                for process in run["sides"][side]["benchmarks"][0]["processes"].as_array_mut().unwrap() {
                    process["seconds"] = json!(0);
                }
            }
        });
        forge("looser bounds", &|run| {
            for &side in sides {
                let check = &mut run["sides"][side]["benchmarks"][0]["verification"]["outputs"][0];
                check["divergence"]["allowed_error"] = json!(0.5);
                check["divergence"]["error"] = json!(0.4);
            }
        });
        forge("no bounds", &|run| {
            for &side in sides {
                let check = &mut run["sides"][side]["benchmarks"][0]["verification"]["outputs"][0];
                check["divergence"].as_object_mut().unwrap().remove("allowed_error");
                check["divergence"]["error"] = json!(0.4);
            }
        });
        // A type that the base's configuration does not name has to be the same on both sides.
        for benchmark in if sides.len() == 1 { &[0, 1][..] } else { &[0] } {
            for dtype in ["f16", "bf16"] {
                forge("the bounds of another type", &|run| {
                    let bounds = NumericsTolerance::for_dtype(dtype.parse().unwrap());
                    for &side in sides {
                        let found = &mut run["sides"][side]["benchmarks"][*benchmark]["verification"];
                        let divergence = &mut found["outputs"][0]["divergence"];
                        divergence["allowed_error"] = json!(bounds.max_error);
                        divergence["error"] = json!(bounds.max_error / 2.0);
                    }
                });
            }
        }
        forge("no workload", &|run| {
            for &side in sides {
                let artifact = run["sides"][side]["benchmarks"][0]["artifact"].as_object_mut().unwrap();
                artifact.remove("workload").unwrap();
            }
        });
    }
    // A benchmark that claims the old name of another one would be judged by that one's policy.
    forge("another's old name", &|run| {
        let other = run["sides"][0]["benchmarks"][1]["name"].clone();
        run["sides"][0]["benchmarks"][0]["labels"]["renamed-from"] = other;
    });
    forge("an old name that base does not have", &|run| {
        for side in 0..2 {
            let benchmark = &mut run["sides"][side]["benchmarks"][0];
            benchmark["name"] = json!("new/cpu/main");
            benchmark["labels"]["renamed-from"] = json!("old/cpu/main");
        }
    });
    forge("a slow benchmark whose old name stays next to its new one", &renamed_and_kept);
    for part in ["device", "inputs_sha256", "settings_sha256"] {
        forge("another workload", &|run| {
            run["sides"][1]["benchmarks"][0]["artifact"]["workload"][part] = json!("another");
        });
    }
    forge("a model of head that stores a tensor", &|run| {
        run["sides"][1]["benchmarks"][0]["artifact"]["workload"]["left_out"] = json!(["cache"]);
    });
    forge("no tools", &|run| drop(run["sides"][0].as_object_mut().unwrap().remove("toolchain")));
    forge("other tools", &|run| run["sides"][0]["toolchain"]["compiler_commit"] = json!("4".repeat(40)));
    forge("a benchmark too many", &|run| {
        let mut more = run["sides"][0]["benchmarks"][0].clone();
        more["name"] = json!("more/cpu/main");
        run["sides"][0]["benchmarks"].as_array_mut().unwrap().push(more);
    });
    let greens = red.greens(&forgeries);
    assert!(greens.is_empty(), "{} of {} are green:\n{}", greens.len(), forgeries.len(), greens.join("\n"));
}
