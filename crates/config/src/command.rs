//! `[[command]]`: programs of any project that measure themselves, or whose whole run is timed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchgate_core::model::{BenchmarkName, DeviceKind, is_in};
use benchgate_ingest::Format;

use super::Model;
use super::fields::{KeyPresence, LINES, ValueKind};
use super::problems::{Collector, suggestion, unique};
use super::table::{DeclaredTable, minutes, table};
use super::values::ConfigView;
use super::values::shown;

table! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct CommandSpec, COMMAND: "[[command]]",
        "A program of the repository, built and measured on both sides: see docs/commands.md. Commands \
          are split into words as by a shell, but no shell is started.";
    head "name" => name: String, ValueKind::Name,
        "Name of the command; unique among commands and models. Its benchmarks are `NAME/ROW`, or `NAME` where whole processes are timed.";
    head "build": KeyPresence::Optional => build: Vec<CommandLine> = Vec::new(), ValueKind::OneOrMore(&ValueKind::Line),
        "Commands that build the program, in order, in each side's checkout: `[\"cmake -B {build}\", \
        \"cmake --build {build}\"]`. `{build}` is an \
             empty folder of this side and session; base's checkout itself is read-only.";
    head "run": KeyPresence::Required => run: CommandLine = CommandLine::Words(Vec::new()), ValueKind::Line,
        "The command to measure. `{build}` is the folder that `build` filled, `{output}` is a file for the results, and \
        `{filter}` is a pattern, in the tool's syntax, for the benchmarks that are still undecided.";
    head "setup": KeyPresence::Optional => setup: Option<CommandLine> = None, ValueKind::Line,
        "Runs once on each side before anything is measured.";
    head "prepare": KeyPresence::Optional => prepare: Option<CommandLine> = None, ValueKind::Line,
        "Runs before each measured process, untimed.";
    "warmup" => warmup: u32 = 1, ValueKind::Integer { min: 0, max: 1000 },
        "Processes of each side that run first and are not counted.";
    head "folder" => folder: PathBuf = PathBuf::from("."), ValueKind::Inside,
        "Working folder, relative to the sources folder of the side.";
    "format": KeyPresence::Optional => reading: OutputReading = OutputReading::Detected, ValueKind::Line,
        "Format of the output (docs/formats.md), or `whole` to time whole processes. By default \
             the format is detected, and a command whose output has no known format is timed as a \
             whole.";
    "rows" => rows: Vec<String>, LINES,
        "Names of the benchmarks that count, as the tool prints them; each process must print them all. By \
        default all printed benchmarks count. `publish` needs these names: otherwise a forged result could \
        leave out a benchmark.";
    "metrics" => metrics: Vec<String>, LINES,
        "Names of the metrics that count, such as `latency` or `items_per_second`; each benchmark must have \
        them all. If one is a latency, it decides, and the others do with `fatal = true` in `[gate.metric.NAME]`. \
        Those that are not named, such as an accuracy, only show that head does the same work. By default all count.";
    "outputs" => outputs: Vec<String>, LINES,
        "Files in `{build}` that the command writes, and in which head must agree with base: `y.npy` and \
        raw tensors (`4x8xbf16=@y.bin`) within the \
             tolerances of `[numerics]`, others byte for byte.";
    "device": KeyPresence::Optional => device: String = CPU.to_owned(), ValueKind::Line,
        "`cpu` (the default), or the GPU that the command uses, such as `cuda` or `hip://0`: the GPU is \
        observed, and no processor is pinned.";
    head "env" => env: BTreeMap<String, String>, ValueKind::Texts,
        "Environment variables in addition to those that every tool inherits; with `build` or `outputs`, they may contain `{build}`.";
    "timeout" => timeout: Duration = minutes(5), ValueKind::Duration, "Limit of one measured process.";
}

/// The CPU's name in IREE's runtime.
const CPU: &str = DeviceKind::Cpu.facts().device;

/// The commands of a suite.
pub(super) fn commands(
    root: ConfigView<'_, '_>,
    models: &[Model],
    problems: &mut Collector,
) -> Vec<CommandSpec> {
    let mut seen = BTreeMap::new();
    root.get("command").items().map(|view| command(view, models, &mut seen, problems)).collect()
}

fn command<'a>(
    view: ConfigView<'a, '_>,
    models: &[Model],
    seen: &mut BTreeMap<&'a str, usize>,
    problems: &mut Collector,
) -> CommandSpec {
    let name = view.get("name");
    unique(name, "command", seen, problems);
    if models.iter().any(|model| Some(model.name.as_str()) == name.text()) {
        problems.add(name.at(), format!("a model already has the name `{}`", shown(&name.owned())));
    }
    for (_, _, value) in view.get("env").entries() {
        report_misspelled("env", &CommandLine::Shell(value.owned()), value.at(), problems);
    }
    let mut line = |key: &str, view: ConfigView<'_, '_>| {
        let text = view.text()?;
        match CommandLine::words(text) {
            Ok(line) => {
                report_misspelled(key, &line, view.at(), problems);
                Some(line)
            }
            Err(why) => {
                problems.add(view.at(), format!("`{key}`: {why}"));
                None
            }
        }
    };
    let build: Vec<CommandLine> =
        view.get("build").one_or_more().into_iter().filter_map(|item| line("build", item)).collect();
    let [run, setup, prepare] = ["run", "setup", "prepare"].map(|key| line(key, view.get(key)));
    let run = run.unwrap_or_else(|| CommandLine::Words(Vec::new()));
    if build.is_empty() && !view.get("outputs").is_present() {
        let lines = [("run", Some(&run)), ("setup", setup.as_ref()), ("prepare", prepare.as_ref())];
        let of_lines =
            lines.into_iter().filter(|(_, line)| line.is_some_and(|it| it.names(CommandLine::BUILD)));
        let mut places: Vec<(&str, usize)> = of_lines.map(|(key, _)| (key, view.get(key).at())).collect();
        let env = view.get("env").entries();
        let of_env =
            env.filter(|(_, _, value)| value.text().is_some_and(|it| it.contains(CommandLine::BUILD)));
        places.extend(of_env.map(|(_, _, value)| ("env", value.at())));
        for (key, at) in places {
            problems.add(at, format!("`{key}`: `{{build}}` is valid only with `build` or `outputs`"));
        }
    }
    let mut choose = |key: &str, reason: &str| {
        problems
            .add(view.get(key).at(), format!("`{key}`: {reason}, found `{}`", shown(&view.get(key).owned())));
    };
    let reading = match view.get("format").text() {
        None => OutputReading::Detected,
        Some("whole") => OutputReading::Whole,
        Some(text) => match text.parse() {
            Ok(format) => OutputReading::Format(format),
            Err(_) => {
                choose("format", "expected `whole` or a format of docs/formats.md");
                OutputReading::Detected
            }
        },
    };
    let device = match view.get("device").text() {
        None => CPU.to_owned(),
        Some(text) => command_device(text).unwrap_or_else(|why| {
            choose("device", why);
            CPU.to_owned()
        }),
    };
    if reading == OutputReading::Whole && view.get("rows").is_present() {
        problems.add(view.get("rows").at(), "`rows` is not valid with `format = \"whole\"`");
    }
    CommandSpec { build, run, setup, prepare, reading, device, ..CommandSpec::read(view) }
}

fn report_misspelled(key: &str, line: &CommandLine, at: usize, problems: &mut Collector) {
    if let Some((word, meant)) = line.misspelled_placeholder() {
        let word = shown(&word);
        problems.add(at, format!("`{key}`: unknown placeholder `{{{word}}}`; did you mean `{{{meant}}}`?"));
    }
}

/// The device of a command, by its name in IREE's runtime, which is how benchgate identifies drivers.
///
/// # Errors
/// The form that was expected.
pub fn command_device(text: &str) -> Result<String, &'static str> {
    match DeviceKind::from_uri(text) {
        _ if text == "cpu" => Ok(CPU.to_owned()),
        DeviceKind::Other => {
            Err("expected cpu, or cuda, hip, vulkan or metal, optionally with a number as in cuda://0")
        }
        _ => Ok(text.to_owned()),
    }
}

impl CommandSpec {
    /// The benchmarks that the command will print; `None` if they are unknown before it runs.
    pub fn benchmarks(&self) -> Option<Vec<BenchmarkName>> {
        match self.reading {
            OutputReading::Whole => Some(vec![BenchmarkName::new(&self.name)]),
            _ if self.rows.is_empty() => None,
            _ => Some(self.rows.iter().map(|row| BenchmarkName::of_command(&self.name, row)).collect()),
        }
    }

    /// The command with its `{build}` placeholders replaced by `folder`.
    #[must_use]
    pub fn built_in(&self, folder: &Path) -> Self {
        let text = folder.to_string_lossy();
        let filled = |line: &CommandLine| match line {
            CommandLine::Words(words) => {
                CommandLine::Words(words.iter().map(|word| word.replace(CommandLine::BUILD, &text)).collect())
            }
            shell @ CommandLine::Shell(_) => shell.clone(),
        };
        Self {
            build: self.build.iter().map(filled).collect(),
            run: filled(&self.run),
            setup: self.setup.as_ref().map(filled),
            prepare: self.prepare.as_ref().map(filled),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.replace(CommandLine::BUILD, &text)))
                .collect(),
            ..self.clone()
        }
    }
}

/// A program with its arguments, or a script for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CommandLine {
    /// The program and its arguments.
    Words(Vec<String>),
    /// A script for `sh -c`.
    Shell(String),
}

/// The way in which the output of a command becomes benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputReading {
    /// In the detected format; if no format is detected, whole processes are timed.
    Detected,
    Format(Format),
    /// Whole processes are timed, and their output is only searched for problems.
    Whole,
}

impl CommandLine {
    /// Placeholder for the folder in which the command was built.
    pub const BUILD: &'static str = "{build}";

    /// Placeholder for the file to which the command writes its results.
    pub const OUTPUT: &'static str = "{output}";

    /// Placeholder for a pattern, in the tool's own syntax, of the benchmarks that still need measuring.
    pub const FILTER: &'static str = "{filter}";

    /// Splits a text into words as a shell does.
    ///
    /// # Errors
    /// The reason why it can't be split.
    pub fn words(text: &str) -> Result<Self, &'static str> {
        match shlex::split(text) {
            Some(words) if !words.is_empty() => Ok(Self::Words(words)),
            Some(_) => Err("the command is empty"),
            None => Err("a quote is not closed"),
        }
    }

    /// The words that may name files which the command reads. A script is split into words as a shell does
    /// it, and the targets of redirections are left out.
    pub fn words_read(&self) -> Vec<String> {
        match self {
            Self::Words(words) => words.clone(),
            // A script with a syntax error names no file.
            Self::Shell(text) => {
                const OPERATORS: [char; 8] = [';', '&', '|', '(', ')', '<', '`', '\n'];
                let mut parts = text.split('>');
                let mut read = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    let ends = |c: char| c.is_whitespace() || OPERATORS.contains(&c);
                    let target = part.trim_start();
                    read.push_str(&target[target.find(ends).unwrap_or(target.len())..]);
                }
                shlex::split(&read.replace(OPERATORS, " ")).unwrap_or_default()
            }
        }
    }

    /// A word in braces that resembles a placeholder, and the placeholder that is probably meant. Other words in braces
    /// are left to the program: shells, awk and Python use braces too.
    pub fn misspelled_placeholder(&self) -> Option<(String, &'static str)> {
        /// Programs whose arguments have braces of their own.
        const INTERPRETERS: &str = "awk gawk mawk jq node perl python python3 ruby sed";
        let texts = match self {
            Self::Words(words) => words.clone(),
            Self::Shell(text) => shlex::split(text).unwrap_or_default(),
        };
        let known = [Self::BUILD, Self::OUTPUT, Self::FILTER].map(|it| it.trim_matches(['{', '}']));
        let is_interpreter = |text: &&String| {
            let name = Path::new(text).file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| is_in(INTERPRETERS, name))
        };
        let texts = texts.iter().take_while(|text| !is_interpreter(text));
        // A text with white space or variables is a script.
        let texts = texts.filter(|text| !text.contains(|c: char| c.is_whitespace() || c == '$'));
        let words = texts.flat_map(|text| {
            let starts = text.match_indices('{').filter(|(at, _)| !text[..*at].ends_with('{'));
            starts.filter_map(|(at, _)| Some(text[at + 1..].split_once('}')?.0))
        });
        let words = words.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
        words.filter(|word| !known.contains(word)).find_map(|word| {
            let close = suggestion(word, known.into_iter())?;
            Some((word.to_owned(), close))
        })
    }

    pub fn names(&self, placeholder: &str) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.contains(placeholder)),
            Self::Shell(text) => text.contains(placeholder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_braces_that_resembles_a_placeholder_is_a_mistake_and_others_are_not() {
        for (text, meant) in [
            ("{build}/b --f={filters}", Some(("filters", "filter"))),
            ("{build}/b {outputs} -o {output}", Some(("outputs", "output"))),
            ("make O={biuld}", Some(("biuld", "build"))),
            ("{build}/b --f={filter} > {output}", None),
            ("sh -c 'echo ${filters} {a,b} ${output}s'", None),
            ("awk '{print $1} {outputs}'", None),
            ("jq '{outputs}' x.json", None),
            ("sh -c 'f(){ output; }; f'", None),
            ("b --json={{outputs}} --body={\"builds\":3}", None),
            ("b {", None),
        ] {
            let line = CommandLine::words(text).unwrap();
            let meant = meant.map(|(word, meant)| (word.to_owned(), meant));
            assert_eq!(line.misspelled_placeholder(), meant, "{text}");
            assert_eq!(CommandLine::Shell(text.to_owned()).misspelled_placeholder(), meant, "{text}");
        }
    }

    #[test]
    fn a_line_reads_the_files_that_it_names_and_not_those_that_it_writes() {
        let line = CommandLine::Shell("cd x && sh ./a.sh>out.json 2> log; cat < in | (./b)".to_owned());
        let words = ["cd", "x", "sh", "./a.sh", "2", "cat", "in", "./b"];
        assert_eq!(line.words_read(), words);
        assert!(CommandLine::Shell("sh 'open".to_owned()).words_read().is_empty());
    }
}
