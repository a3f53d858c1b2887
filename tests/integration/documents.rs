//! The documents say what the code does.

use std::path::Path;

use benchgate::exit_code::ExitCode;
use benchgate::ingest::Format;
use benchgate::model::Verdict;

use crate::harness::World;

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

#[test]
fn every_exit_code_is_documented_and_in_the_help() {
    let (text, help) = (document("exit-codes.md"), World::new().run(["--help"]).expect_code(0).stdout);
    for code in ExitCode::ALL.map(ExitCode::code) {
        assert!(text.contains(&format!("| {code} |")), "docs/exit-codes.md lacks {code}");
        // 1 is a defect, which nobody plans for.
        let told = help.split([',', ':', '.', '\n']).any(|part| part.trim().starts_with(&format!("{code} ")));
        assert!(code == 1 || told, "--help lacks {code}");
    }
    let documented =
        text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code")).count();
    assert_eq!(documented, ExitCode::ALL.len());
}

#[test]
fn every_format_that_is_read_is_listed() {
    let text = document("formats.md");
    for format in Format::ALL {
        let line = format!("| `{format}` | {} |", format.description());
        assert!(text.contains(&line), "docs/formats.md lacks the line\n{line}");
    }
}

#[test]
fn the_glossary_knows_every_verdict() {
    let text = document("glossary.md");
    for verdict in Verdict::ALL {
        assert!(text.contains(&format!("*{verdict}*")), "docs/glossary.md lacks {verdict}");
    }
}
