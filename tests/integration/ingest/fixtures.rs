//! One snapshot for each captured file, checked by eye against the file when it was accepted.

use super::{describe, fixture_path};

use benchgate::ingest;

#[test]
fn every_captured_file_is_read_to_the_numbers_in_it() {
    let root = fixture_path("");
    let mut checked = 0;
    let mut tools: Vec<_> = std::fs::read_dir(&root).unwrap().map(|tool| tool.unwrap().path()).collect();
    tools.sort();
    for tool in tools {
        let mut files: Vec<_> = std::fs::read_dir(&tool).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| !file.ends_with("README.md")) {
            let name = file.strip_prefix(&root).unwrap().to_str().unwrap();
            let read = ingest::read_detected(&std::fs::read(file).unwrap(), name);
            let text = read.map_or_else(|error| format!("error: {error}\n"), |run| describe(&run));
            insta::with_settings!({ snapshot_path => "../snapshots/ingest", prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(name.replace('/', "__"), text);
            });
            checked += 1;
        }
    }
    assert!(checked > 10, "the fixtures are gone");
}
