//! A long flag of the command line has the same meaning in every command.

use std::collections::BTreeMap;

use benchgate::cli::Cli;
use clap::{Command, CommandFactory};

/// The name of a long flag's value, and the first sentence of the flag's help.
type Meaning = (String, String);

fn meanings(command: &Command, path: &str, found: &mut BTreeMap<String, BTreeMap<Meaning, Vec<String>>>) {
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        let values = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
        let values = if argument.get_action().takes_values() { values.collect() } else { Vec::new() };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let sentence = help.split([';', '.']).next().unwrap_or_default();
        let sentence = sentence.split(" [default").next().unwrap_or_default().trim().to_owned();
        let meaning = (values.join(" "), sentence);
        found.entry(long.to_owned()).or_default().entry(meaning).or_default().push(path.to_owned());
    }
    for child in command.get_subcommands() {
        meanings(child, &format!("{path} {}", child.get_name()), found);
    }
}

#[test]
fn a_long_flag_has_one_value_and_one_meaning_in_every_command() {
    let mut found = BTreeMap::new();
    meanings(&Cli::command(), "benchgate", &mut found);
    assert!(found.len() > 50, "only {} flags were read", found.len());
    found.retain(|_, meanings| meanings.len() > 1);
    assert!(found.is_empty(), "flags that mean different things: {found:#?}");
}
