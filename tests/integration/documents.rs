//! Checks that the documents agree with the code.

use std::path::Path;

use benchgate::exit_code::ExitCode;
use benchgate::gate::described;
use benchgate::ingest::Format;
use benchgate::model::{Metric, MetricSeries, Process, Series, Verdict};

use crate::harness::World;

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

#[test]
fn every_exit_code_is_documented_and_in_the_help() {
    let (text, help) = (document("exit-codes.md"), World::new().run(["--help"]).expect_code(0).stdout);
    for code in ExitCode::ALL.map(ExitCode::code) {
        assert!(text.contains(&format!("| {code} |")), "docs/exit-codes.md lacks {code}");
        // Exit code 1 is a bug, which --help need not list.
        let listed =
            help.split([',', ':', '.', '\n']).any(|part| part.trim().starts_with(&format!("{code} ")));
        assert!(code == 1 || listed, "--help lacks {code}");
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
fn the_workflows_that_the_documents_print_are_those_that_init_writes() {
    let text = document("action.md");
    let world = World::new();
    git2::Repository::init(world.work()).unwrap();
    let action = "benchgate/benchgate@1111111111111111111111111111111111111111";
    world.run(["init", "--runner", "self-hosted,gpu", "--action", action]).expect_code(0);
    for name in ["benchgate.yml", "benchgate-publish.yml", "benchgate-nightly.yml"] {
        let written = world.read(&format!(".github/workflows/{name}"));
        assert!(
            text.contains(&format!("```yaml\n{written}```\n")),
            "docs/action.md does not print {name} as it is written"
        );
    }
}

#[test]
fn the_glossary_knows_every_verdict() {
    let text = document("glossary.md");
    for verdict in Verdict::ALL {
        assert!(text.contains(&format!("*{verdict}*")), "docs/glossary.md lacks {verdict}");
    }
}

/// The five repetitions of a process have the values 1 to 5, so its location shows which quartile it is.
#[test]
fn the_glossary_names_the_quartile_that_is_a_process_s_location() {
    let quartile = |metric: Metric| {
        let samples = vec![1.0, 2.0, 3.0, 4.0, 5.0];
        let process = Process { samples, ..Process::default() };
        let series = MetricSeries { metric, series: Series::Processes(vec![process]) };
        match described(&series).unwrap().location {
            2.0 => "lower quartile",
            4.0 => "upper quartile",
            other => panic!("{other} is neither quartile"),
        }
    };
    let text = document("glossary.md");
    let entry = text.lines().find(|line| line.starts_with("| **location** |")).unwrap();
    let cost = format!("the {} of its repetitions", quartile(Metric::LATENCY));
    let rate = format!("(the {} if higher is better)", quartile(Metric::THROUGHPUT));
    assert!(entry.contains(&cost) && entry.contains(&rate), "expected {cost:?} and {rate:?}, found {entry}");
}

/// Collects the text of all files with tests.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "mjs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_threat_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = String::new();
    for folder in ["src", "crates", "tests"] {
        sources(&root.join(folder), &mut tests);
    }
    let text = document("security.md");
    let rows: Vec<&str> =
        text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| threat")).collect();
    assert!(rows.len() >= 15, "docs/security.md has {} threats", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let named: Vec<&str> = cells[2].split(", `").flat_map(|part| part.split(", *")).collect();
        assert!(!named.is_empty() && !cells[2].is_empty(), "{}: no test", cells[0]);
        for name in named {
            let name = name.trim_matches(['`', '*', ' ']);
            let is_there =
                tests.contains(&format!("fn {name}()")) || tests.contains(&format!("test(\"{name}\","));
            assert!(is_there, "docs/security.md: there is no test {name:?}");
        }
    }
}

#[test]
fn the_words_that_the_first_change_searches_for_are_written_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let words = guide.split("grep -rn '").nth(1).unwrap().split('\'').next().unwrap();
    let mut text = String::new();
    for folder in ["src", "crates"] {
        sources(&root.join(folder), &mut text);
    }
    assert_eq!(text.matches(words).count(), 1, "{words:?}");
}

/// Every Markdown file of the repository, except quoted evidence and files from other projects.
pub fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let hidden = path.file_name().unwrap().to_str().unwrap().starts_with('.') && name != ".github";
            if path.is_dir()
                && !hidden
                && !["target", "tests/fixtures", "docs/evidence"].contains(&name.as_str())
            {
                folders.push(path);
            } else if name.ends_with(".md") {
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 15, "{}", found.len());
    found
}

/// The lines of code of a document, fenced or indented, and the commands that its sentences name.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language.trim()) };
        } else if fence.is_some_and(|language| ["console", "bash", "sh", ""].contains(&language))
            || line.starts_with("    ")
        {
            let line = line.trim_start().trim_start_matches("$ ");
            let built = line.split_once(" -- ").filter(|(program, _)| program.starts_with("cargo run"));
            found.extend(built.map(|(_, rest)| rest).or_else(|| line.strip_prefix("benchgate ")));
        } else if fence.is_none() {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter_map(|span| span.strip_prefix("benchgate ")));
        }
    }
    // Placeholders are not commands. Redirections, pipes and comments after a command are cut off.
    let whole = found.into_iter().filter(|command| !command.contains(['…', '[', '<']));
    whole.map(|command| command.split([';', '|', '>']).next().unwrap().to_owned()).collect()
}

/// The words of a line, split as by a shell.
fn words(command: &str) -> Vec<String> {
    let command = command.split("  ").next().unwrap().split(" # ").next().unwrap();
    let mut words = vec!["benchgate".to_owned()];
    let (mut word, mut quoted) = (String::new(), false);
    for letter in command.chars() {
        match letter {
            '"' | '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Commands are parsed but not run. This shows that the documented commands, options and values exist.
#[test]
fn every_command_that_the_documents_show_is_one() {
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    // A sentence may name a command without its required arguments.
    let shortened = [ErrorKind::MissingRequiredArgument, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, text) in documents() {
        for command in commands(&text) {
            seen += 1;
            let parsed = benchgate::cli::Cli::command().try_get_matches_from(words(&command));
            match parsed {
                Err(error) if error.use_stderr() && !shortened.contains(&error.kind()) => {
                    wrong.push(format!("{name}: benchgate {command}\n{error}"));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 45, "only {seen} commands were found");
}

/// The names of a document's headings, as GitHub links them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .collect::<String>()
            .replace(' ', "-")
    };
    headings.map(name).collect()
}

#[test]
fn the_readme_names_the_test_command_that_ci_looks_for_in_it() {
    let read = |name| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let ci = read(".ci/run");
    let command = ci.split("TEST_COMMAND=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(!command.is_empty() && read("README.md").contains(command), "{command}");
}

#[test]
fn every_path_and_heading_that_the_documents_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for (name, text) in documents() {
        let folder = root.join(&name).parent().unwrap().to_owned();
        // Links are relative to the document, and paths in backticks are relative to the repository.
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.contains(' ')) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if path.is_empty() { root.join(&name) } else { folder.join(path) };
            if !path.exists() {
                missing.push(format!("{name}: {link}"));
            } else if !anchor.is_empty() {
                let target = std::fs::read_to_string(&path).unwrap();
                if !anchors(&target).iter().any(|known| known == anchor) {
                    missing.push(format!("{name}: {link}: no such heading"));
                }
            }
        }
        let folders = "src/ crates/ tests/ docs/ examples/ schemas/ baselines/ benches/".split(' ');
        for word in text.split('`').skip(1).step_by(2) {
            let named = folders.clone().any(|folder| word.starts_with(folder));
            // A README in a folder names the files of that folder.
            let there = root.join(word).exists() || folder.join(word).exists();
            if named && !word.contains(['<', '*', ' ', '…', '{']) && !there {
                missing.push(format!("{name}: `{word}`"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
