//! One page for one or several runs: comparisons, charts, tables and machines.

use strum::VariantArray;

use benchgate_core::record::RunFile;

use super::backends::{self, BackendTable};
use super::chart::{Picture, picture};
use super::document::{self, Block, Text};
use super::{DrawnRun, Outcomes, View, comparison};

pub fn html(runs: &[DrawnRun]) -> String {
    let title = runs.first().map_or("benchgate", |run| run.file.suite.as_str());
    let compared = runs.iter().filter_map(|run| Some((run, View::new(run.comparison.as_ref()?, None))));
    let compared: Vec<(&DrawnRun, View<'_>)> = compared.collect();
    let outcomes: Vec<Outcomes> = runs.iter().map(Outcomes::of_run).collect();
    let backends: Vec<BackendTable> = runs.iter().map(BackendTable::new).collect();
    let mut blocks = Vec::new();
    for (run, view) in &compared {
        blocks.push(Block::Title(Text::named(&run.name)));
        blocks.push(Block::Prose(view.headline.as_str().into()));
        blocks.extend(comparison::page(view));
    }
    for &which in Picture::VARIANTS {
        blocks.extend(picture(runs, which).map(Block::Picture));
    }
    for ((run, outcomes), backends) in runs.iter().zip(&outcomes).zip(&backends) {
        blocks.push(Block::Title(Text::from("Benchmarks of ").name(&run.name)));
        blocks.push(Block::Table(vec![outcomes.table(usize::MAX)]));
        blocks.extend(backends::blocks(backends));
        blocks.push(Block::Title("Machine and tools".into()));
        blocks.push(machine(&run.file));
    }
    document::html_page(title, &blocks)
}

/// Returns when the run was measured. The time that the tool states is preferred, because the
/// record of a converted file is newer.
fn measured_at(run: &RunFile) -> &str {
    let mut printed = run.sides.iter().filter_map(|side| side.context.as_ref()?.date.as_deref());
    printed.next().unwrap_or(&run.created)
}

fn machine(run: &RunFile) -> Block<'_> {
    let facts = run.testbed.facts.iter().map(|(name, value)| Text::named(name).say(": ").name(value));
    let tools = run.sides.iter().filter_map(|side| {
        let tools = side.toolchain.as_ref()?;
        let text = Text::from(format!("{}: IREE ", side.name)).name(&tools.version);
        Some(text.say(" (").name(&tools.compiler_commit).say(")"))
    });
    let measured = Text::from("measured: ").name(measured_at(run));
    let testbed = Text::from("testbed: ").name(&run.testbed.id);
    Block::list([measured, testbed].into_iter().chain(facts).chain(tools))
}
