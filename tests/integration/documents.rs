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

#[test]
fn every_path_that_the_documents_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/performance.md"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let folder = root.join(name).parent().unwrap().to_owned();
        // Links are relative to the document, paths in backticks to the repository.
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let links =
            links.filter(|link| !link.is_empty() && !link.contains("://")).map(|link| folder.join(link));
        let folders =
            ["src/", "tests/", "docs/", "examples/", "schemas/", "python/", "baselines/", "benches/"];
        let quoted = text.split('`').skip(1).step_by(2);
        let quoted = quoted
            .filter(|word| {
                folders.iter().any(|folder| word.starts_with(folder)) && !word.contains(['<', '*', ' '])
            })
            .map(|word| root.join(word));
        missing.extend(
            links
                .chain(quoted)
                .filter(|path| !path.exists())
                .map(|path| format!("{name}: {}", path.display())),
        );
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
