//! The journal of a search: one run.json for each visit to a pair, and the reasons for skipped candidates. A
//! restarted search reads it and continues at the same point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::files;
use crate::gate::bisect::Pair;
use crate::model::{Run, Series, SideName, hex};
use crate::record::RunFile;

use super::super::{CliError, inputs};

/// The measurements of a pair, or of a single candidate.
pub struct Visit {
    /// Base and head are equal if a single candidate was observed.
    pub pair: Pair,
    pub base: Run,
    pub head: Run,
    /// The total time of the visit's processes, in seconds.
    pub seconds: f64,
}

pub struct VisitJournal {
    folder: PathBuf,
    /// The number of visits to each pair so far.
    counts: BTreeMap<Pair, u32>,
}

fn failed(doing: &str, path: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::failed(format!("failed to {doing} {}: {error}", path.display()))
}

impl VisitJournal {
    /// Opens the journal of the search with this identity in the working folder.
    pub fn open(work: &Path, identity: &[String]) -> Result<Self, CliError> {
        let mut key = Sha256::new();
        for part in identity {
            key.update(part.as_bytes());
            key.update([0]);
        }
        let key = hex(&key.finalize()[..8]);
        let folder = work.join("bisect").join(key);
        std::fs::create_dir_all(&folder).map_err(|error| failed("make", &folder, &error))?;
        Ok(Self { folder, counts: BTreeMap::new() })
    }

    /// The measurements of earlier attempts, ordered by pair and visit.
    pub fn visits(&mut self) -> Result<Vec<Visit>, CliError> {
        let listed = std::fs::read_dir(&self.folder).map_err(|error| failed("list", &self.folder, &error))?;
        let mut found: BTreeMap<(Pair, u32), PathBuf> = BTreeMap::new();
        for entry in listed {
            let path = entry.map_err(|error| failed("list", &self.folder, &error))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(named);
            found.extend(name.map(|key| (key, path)));
        }
        let mut visits: Vec<Visit> = Vec::new();
        let mut sessions: BTreeMap<Option<String>, PathBuf> = BTreeMap::new();
        for ((pair, count), path) in found {
            self.counts.insert(pair, count + 1);
            let visit = read(&path, pair)?;
            if let Some(other) = sessions.insert(visit.head.session.clone(), path.clone()) {
                let error = format!("{} is the same session; delete one of the two", other.display());
                return Err(failed("take over", &path, &error));
            }
            visits.push(visit);
        }
        Ok(visits)
    }

    /// The path for the next visit to a pair.
    pub fn next(&self, pair: Pair) -> PathBuf {
        let count = self.counts.get(&pair).copied().unwrap_or_default();
        self.folder.join(format!("visit-{}-{}-{count}.json", pair.base, pair.head))
    }

    /// Reads the visit that was just written, and counts it.
    pub fn read(&mut self, pair: Pair) -> Result<Visit, CliError> {
        let visit = read(&self.next(pair), pair)?;
        *self.counts.entry(pair).or_default() += 1;
        Ok(visit)
    }

    fn skips(&self) -> PathBuf {
        self.folder.join("skipped.json")
    }

    /// The candidates that earlier attempts skipped, with the reasons.
    pub fn skipped(&self) -> Result<BTreeMap<usize, String>, CliError> {
        let path = self.skips();
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed("read", &path, &error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(failed("read", &path, &error)),
        }
    }

    pub fn skip(&self, skipped: &BTreeMap<usize, String>) -> Result<(), CliError> {
        let path = self.skips();
        let text = serde_json::to_vec_pretty(skipped).map_err(|error| failed("write", &path, &error))?;
        files::write(&path, &text).map_err(|error| failed("write", &path, &error))
    }
}

/// The pair and the number of a visit, from its file name `visit-BASE-HEAD-COUNT.json`.
fn named(name: &str) -> Option<(Pair, u32)> {
    let mut numbers = name.strip_prefix("visit-")?.strip_suffix(".json")?.split('-');
    let (base, head, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let pair = Pair { base: base.parse().ok()?, head: head.parse().ok()? };
    Some((pair, count.parse().ok()?)).filter(|_| numbers.next().is_none())
}

fn read(path: &Path, pair: Pair) -> Result<Visit, CliError> {
    let file: RunFile = inputs::load_run(path)?;
    let seconds = file.processes().map(|process| process.seconds.0).sum();
    let (mut base, mut head) = (Run::default(), Run::default());
    for (name, run) in file.into_runs(&path.display().to_string()) {
        if name == SideName::Base { base = run } else { head = run }
    }
    Ok(Visit { pair, base, head, seconds })
}

/// Joins several visits to the same programs into one session by renumbering their blocks consecutively.
pub fn joined(visits: &[&Visit], benchmark: &str) -> (Run, Run) {
    let whole = || Run { session: Some("bisection".to_owned()), ..Run::default() };
    let (mut base, mut head) = (whole(), whole());
    let mut offset = 0;
    for visit in visits {
        let mut next = offset;
        for (into, from) in [(&mut base, &visit.base), (&mut head, &visit.head)] {
            let Some(found) = from.benchmarks.iter().find(|found| found.name.as_str() == benchmark) else {
                continue;
            };
            let mut found = found.clone();
            for process in found.metrics.iter_mut().flat_map(|metric| match &mut metric.series {
                Series::Processes(processes) => processes.as_mut_slice(),
                Series::Summaries(_) | Series::Exact(_) => &mut [],
            }) {
                if let Some(slot) = &mut process.slot {
                    slot.block += offset;
                    next = next.max(slot.block + 1);
                }
            }
            match into.benchmarks.first_mut() {
                None => into.benchmarks.push(found),
                Some(known) => {
                    known.telemetry.extend(found.telemetry);
                    for metric in found.metrics {
                        let same = known.metrics.iter_mut().find(|known| known.metric == metric.metric);
                        if let Some(Series::Processes(known)) = same.map(|known| &mut known.series)
                            && let Series::Processes(more) = metric.series
                        {
                            known.extend(more);
                        }
                    }
                }
            }
        }
        offset = next;
    }
    (base, head)
}
