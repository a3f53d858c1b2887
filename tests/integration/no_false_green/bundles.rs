//! Bundles whose manifest, files or order were changed before they reached the measuring machine.

use std::path::Path;

use serde_json::Value;

use super::Greens;
use crate::bundle::{There, entries, made, paired, write_entries};

type Entries = Vec<(String, Vec<u8>)>;
type Change = fn(&mut Entries);

fn manifest(entries: &mut Entries, change: impl FnOnce(&mut Value)) {
    let mut manifest: Value = serde_json::from_slice(&entries[0].1).unwrap();
    change(&mut manifest);
    entries[0].1 = serde_json::to_vec(&manifest).unwrap();
}

/// The positions of the modules of base's and head's first benchmarks in the archive.
fn modules(entries: &Entries) -> [usize; 2] {
    let at = |latency: &str| {
        let is = |(name, content): &(String, Vec<u8>)| {
            name.ends_with(".vmfb") && String::from_utf8_lossy(content).contains(latency)
        };
        entries.iter().position(is).unwrap()
    };
    let head = at("latency-us=1300");
    let is_base = |(index, (name, content)): &(usize, &(String, Vec<u8>))| {
        let text = String::from_utf8_lossy(content);
        *index != head
            && name.ends_with(".vmfb")
            && text.contains("latency-us=1000")
            && !text.contains("1300")
    };
    [entries.iter().enumerate().find(is_base).unwrap().0, head]
}

fn swap(value: &mut Value, field: &str) {
    let base = value["sides"][0][field].take();
    value["sides"][0][field] = value["sides"][1][field].take();
    value["sides"][1][field] = base;
}

const CHANGES: &[(&str, Change)] = &[
    ("head's module has base's content", |entries| {
        let [base, head] = modules(entries);
        entries[head].1 = entries[base].1.clone();
    }),
    ("head's and base's modules are exchanged", |entries| {
        let [base, head] = modules(entries);
        let content = std::mem::take(&mut entries[base].1);
        entries[base].1 = std::mem::replace(&mut entries[head].1, content);
    }),
    ("head's module has the name of base's", |entries| {
        let [base, head] = modules(entries);
        entries[head].0 = entries[base].0.clone();
    }),
    ("a digest is another one", |entries| {
        manifest(entries, |manifest| manifest["files"][0]["sha256"] = "0".repeat(64).into());
    }),
    ("the digests of two files are exchanged", |entries| {
        manifest(entries, |manifest| {
            let one = manifest["files"][0]["sha256"].take();
            manifest["files"][0]["sha256"] = manifest["files"][1]["sha256"].take();
            manifest["files"][1]["sha256"] = one;
        });
    }),
    ("the list of files is empty", |entries| {
        manifest(entries, |manifest| manifest["files"] = Value::Array(Vec::new()));
    }),
    ("the list of files lacks one", |entries| {
        manifest(entries, |manifest| drop(manifest["files"].as_array_mut().unwrap().pop()));
    }),
    ("the list of files has one twice", |entries| {
        manifest(entries, |manifest| {
            let one = manifest["files"][0].clone();
            manifest["files"].as_array_mut().unwrap().push(one);
        });
    }),
    ("a file is missing", |entries| drop(entries.pop())),
    ("a file is there twice", |entries| entries.push(entries[1].clone())),
    ("a file is there that the list lacks", |entries| entries.push(("data/more".into(), b"x".to_vec()))),
    ("the manifest is there twice", |entries| entries.insert(1, entries[0].clone())),
    ("the manifest comes last", |entries| entries.rotate_left(1)),
    ("the manifest is missing", |entries| drop(entries.remove(0))),
    ("the manifest is cut off", |entries| {
        let half = entries[0].1.len() / 2;
        entries[0].1.truncate(half);
    }),
    ("head has no benchmark", |entries| {
        manifest(entries, |manifest| manifest["sides"][1]["benchmarks"] = Value::Array(Vec::new()));
    }),
    ("neither side has a benchmark", |entries| {
        manifest(entries, |manifest| {
            for side in manifest["sides"].as_array_mut().unwrap() {
                side["benchmarks"] = Value::Array(Vec::new());
            }
        });
    }),
    ("head is missing", |entries| {
        manifest(entries, |manifest| drop(manifest["sides"].as_array_mut().unwrap().pop()));
    }),
];

/// Manipulations that only the digest of the whole bundle shows, because the bundle itself is consistent.
const FORGERIES: &[(&str, Change)] = &[
    ("the benchmarks of the sides are exchanged", |entries| manifest(entries, |it| swap(it, "benchmarks"))),
    ("head has base's benchmarks", |entries| {
        manifest(entries, |manifest| {
            let base = manifest["sides"][0]["benchmarks"].clone();
            manifest["sides"][1]["benchmarks"] = base;
        });
    }),
    ("a note was added", |entries| manifest(entries, |manifest| manifest["benchgate"] = "0.0.1".into())),
];

#[test]
fn no_bundle_that_was_changed_is_green() {
    let suite = paired().write();
    let (bundle, outcome) = made(&suite, 0);
    let sha256 = outcome.stdout.split_once("sha256 ").unwrap().1.trim().to_owned();
    There::new(&bundle).gate(&["--bundle-sha256", &sha256]).expect_code(10);
    let honest = entries(&bundle);
    let mut greens = Greens::default();
    let mut judged = |case: &str, content: &[u8], more: &[&str]| {
        let there = There::new(&bundle);
        there.replace(content);
        greens.check(case, &there.gate(more));
    };
    for (case, change) in CHANGES {
        let mut changed = honest.clone();
        change(&mut changed);
        assert_ne!(changed, honest, "{case}");
        judged(case, &write_entries(&changed), &[]);
    }
    for (case, change) in FORGERIES {
        let mut changed = honest.clone();
        change(&mut changed);
        assert_ne!(changed, honest, "{case}");
        judged(case, &write_entries(&changed), &["--bundle-sha256", &sha256]);
    }
    let whole = std::fs::read(Path::new(&bundle)).unwrap();
    for tenths in [0, 1, 5, 9] {
        judged(&format!("{tenths} tenths of the bundle"), &whole[..whole.len() * tenths / 10], &[]);
    }
    greens.none(25);
}
