//! The files of one suite on one testbed: a listing, and single files on request.

use crate::record::{AcceptanceFile, BaselineFile, RecordError};

use super::name::{self, RunName};
use super::{Files, StoreError, folder_name};

/// A file that can't be used, and why. It is left out of everything, and always said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub path: String,
    pub why: String,
}

/// A run of a baseline, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub name: RunName,
    pub file: BaselineFile,
}

/// One suite on one testbed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shelf {
    /// `<suite>/<testbed>`.
    pub folder: String,
    /// Oldest first.
    pub runs: Vec<RunName>,
    /// With the name of each file, oldest first.
    pub acceptances: Vec<(String, AcceptanceFile)>,
    /// Acceptances that can't be read, and files that don't belong here.
    pub faults: Vec<Fault>,
}

/// Every suite and testbed that has a folder.
pub fn shelves(files: &dyn Files) -> Result<Vec<(String, String)>, StoreError> {
    let mut found = Vec::new();
    for suite in files.folders("")? {
        for testbed in files.folders(&suite)? {
            found.push((suite.clone(), testbed));
        }
    }
    Ok(found)
}

impl Shelf {
    /// Lists the shelf of a suite on a testbed; an absent one is empty. Acceptances are few and are read.
    pub fn open(files: &dyn Files, suite: &str, testbed: &str) -> Result<Self, StoreError> {
        Self::of_folder(files, format!("{}/{}", folder_name(suite), folder_name(testbed)))
    }

    /// The same by the names of the folders.
    pub fn of_folder(files: &dyn Files, folder: String) -> Result<Self, StoreError> {
        let mut shelf = Self { folder, runs: Vec::new(), acceptances: Vec::new(), faults: Vec::new() };
        let mut accepted = Vec::new();
        for file in files.names(&shelf.folder)? {
            if let Some(name) = RunName::parse(&file) {
                shelf.runs.push(name);
            } else if name::is_acceptance(&file) {
                accepted.push(file);
            } else {
                let path = shelf.path(&file);
                shelf.faults.push(Fault { path, why: "its name is not that of a run".to_owned() });
            }
        }
        files.announce(&accepted.iter().map(|file| shelf.path(file)).collect::<Vec<_>>())?;
        for file in accepted {
            let path = shelf.path(&file);
            match AcceptanceFile::from_slice(&files.read(&path)?) {
                Ok(acceptance) => shelf.acceptances.push((file, acceptance)),
                Err(error) => shelf.faults.push(fault(path, &error)),
            }
        }
        Ok(shelf)
    }

    /// The path of a file of this shelf.
    pub fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    /// Reads one run. A file that can't be used is a finding; a place that can't be read is an error.
    pub fn load(&self, files: &dyn Files, name: &RunName) -> Result<Result<Stored, Fault>, StoreError> {
        let path = self.path(&name.file());
        let bytes = files.read(&path)?;
        Ok(match BaselineFile::from_slice(&bytes) {
            Ok(file) => match self.misplaced(name, &file) {
                None => Ok(Stored { name: name.clone(), file }),
                Some(why) => Err(Fault { path, why }),
            },
            Err(error) => Err(fault(path, &error)),
        })
    }

    /// Why a file is not where its content says that it belongs.
    fn misplaced(&self, name: &RunName, file: &BaselineFile) -> Option<String> {
        let belongs = format!("{}/{}", folder_name(&file.suite), folder_name(&file.testbed.id));
        if belongs != self.folder {
            return Some(format!("it belongs in {belongs}"));
        }
        let named = RunName::new(&file.created, file.commit.as_deref())?;
        let same = name == &named || *name == named.beside(&file.sha256);
        (!same).then(|| format!("its content says that its name is {named}"))
    }
}

fn fault(path: String, error: &RecordError) -> Fault {
    Fault { path, why: error.to_string() }
}
