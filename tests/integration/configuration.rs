//! Checks that benchgate accepts the configurations in the repository.

use std::path::Path;

#[test]
fn every_example_suite_loads() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut suites = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let file = entry.unwrap().path().join("benchgate.toml");
        if file.is_file() {
            let config = benchgate::config::load(&file).unwrap_or_else(|error| panic!("{error}"));
            assert!(!config.models.is_empty() && !config.targets.is_empty());
            suites += 1;
        }
    }
    assert!(suites > 0);
}
