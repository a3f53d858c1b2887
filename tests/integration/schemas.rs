//! The schemas in the repository are the ones the code writes. `UPDATE_SCHEMAS=1 cargo test schemas`
//! rewrites them.

use std::path::Path;

fn assert_same_as_file(name: &str, schema: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, schema).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == schema,
        "{name} is not what the code describes; UPDATE_SCHEMAS=1 cargo test schemas rewrites it"
    );
}

#[test]
fn run_json_is_described_by_its_schema() {
    assert_same_as_file("schemas/run.json", &benchgate::record::run_json_schema());
}

#[test]
fn the_configuration_is_described_by_its_schema() {
    assert_same_as_file("schemas/config.json", &benchgate::config::json_schema());
}

#[test]
fn the_reference_page_describes_every_key_of_the_configuration() {
    assert_same_as_file("docs/configuration.md", &benchgate::config::reference());
}

#[test]
fn comparison_json_is_described_by_its_schema() {
    assert_same_as_file("schemas/comparison.json", &benchgate::record::comparison_json_schema());
}
