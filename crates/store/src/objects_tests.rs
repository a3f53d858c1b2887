//! Tests that a history in an object store equals the same history in a folder.

use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use benchgate_core::record::BaselineFile;

use super::tests::{acceptance, ancestor, commit, found, missing, put, run, ten_days, testbed};
use super::{
    BaselineFolder, Directory, Encoding, Files, History, HistoryQuery, Objects, RunName, StoreError, accept,
    export, history_for_gate, prunable, verify,
};

const FOLDER: &str = "sessions/suite=quickstart/testbed=9c1f0e57";

fn objects(store: &Arc<InMemory>) -> Objects {
    Objects::new(store.clone(), Path::default(), "memory://".to_owned(), true).unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn put_object(store: &InMemory, key: &str, bytes: &[u8]) {
    block_on(store.put(&Path::parse(key).unwrap(), bytes.to_vec().into())).unwrap();
}

/// Removes the file names, which differ in their extensions.
fn content(mut history: History) -> History {
    let earlier = history.earlier.iter_mut().flat_map(|earlier| &mut earlier.runs);
    for run in history.runs.iter_mut().chain(&mut history.slow).chain(&mut history.before).chain(earlier) {
        run.origin.label = String::new();
    }
    history
}

#[test]
fn the_same_sessions_are_selected_as_from_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (mut files, memory) = (Directory::new(folder.path()), Arc::new(InMemory::new()));
    let mut objects = objects(&memory);
    for files in [&mut files as &mut dyn Files, &mut objects] {
        ten_days(files);
        // Two regressed sessions, which an acceptance releases below.
        put(files, &run(11, 'b', 180_000.0)).unwrap();
        put(files, &run(12, 'c', 180_100.0)).unwrap();
    }
    assert_eq!(content(found(&objects)), content(found(&files)));
    for files in [&mut files as &mut dyn Files, &mut objects] {
        accept(files, acceptance("2026-10-20T12:00:00Z"), Some("bbbbbbb")).unwrap();
    }
    assert_eq!(found(&objects).names.len(), 2);
    assert_eq!(content(found(&objects)), content(found(&files)));
    assert_eq!(verify(&objects).unwrap(), verify(&files).unwrap());
    let (pruned, _) = prunable(&objects, "quickstart/9c1f0e57", 1, super::tests::now()).unwrap();
    objects.apply(&pruned.change()).unwrap();
    assert_eq!(verify(&objects).unwrap().runs, 2);
}

#[test]
fn each_session_is_one_object_at_a_path_that_query_engines_take_apart() {
    let memory = Arc::new(InMemory::new());
    let mut objects = objects(&memory);
    let path = put(&mut objects, &run(1, 'a', 100.0)).unwrap().path;
    let name = format!("20261001T120000Z-{}.parquet", commit('a'));
    assert_eq!(path, format!("quickstart/9c1f0e57/{name}"));
    let key = Path::parse(format!("{FOLDER}/month=2026-10/{name}")).unwrap();
    let bytes = block_on(async { memory.get(&key).await.unwrap().bytes().await.unwrap() });
    assert_eq!(BaselineFile::from_parquet(&bytes).unwrap().session, "session-1");
}

#[test]
fn the_same_run_twice_changes_nothing_and_two_sessions_of_one_second_are_kept() {
    let memory = Arc::new(InMemory::new());
    let mut files = objects(&memory);
    assert!(!put(&mut files, &run(1, 'a', 100.0)).unwrap().already);
    assert!(put(&mut files, &run(1, 'a', 100.0)).unwrap().already);
    let mut other = run(1, 'a', 101.0);
    other.session = "another".to_owned();
    assert!(!put(&mut files, &other).unwrap().already);
    assert_eq!(verify(&files).unwrap().runs, 2);
    assert_eq!(verify(&files).unwrap().faults, []);
}

#[test]
fn racing_writers_lose_nothing() {
    let memory = Arc::new(InMemory::new());
    std::thread::scope(|scope| {
        for writer in 0..50 {
            let memory = memory.clone();
            scope.spawn(move || {
                // All runs have the same commit and second, so that they compete for one name.
                let mut run = run(1, 'a', 100.0 + f64::from(writer));
                run.session = format!("writer-{writer}");
                put(&mut objects(&memory), &run).unwrap();
            });
        }
    });
    let verified = verify(&objects(&memory)).unwrap();
    assert_eq!((verified.runs, verified.faults), (50, Vec::new()));
}

fn gate_at(files: &Objects, now: &str) -> Result<super::Selection, StoreError> {
    let (testbed, now) = (testbed(), now.parse().unwrap());
    let query = HistoryQuery {
        suite: "quickstart",
        testbed: &testbed,
        sessions: 10,
        stale_days: 14,
        lineage: &ancestor,
        now,
    };
    history_for_gate(files, &query)
}

#[test]
fn a_gate_finds_the_newest_sessions_however_old_they_are() {
    let mut files = objects(&Arc::new(InMemory::new()));
    ten_days(&mut files);
    for now in
        ["2026-10-12T00:00:00Z", "2026-11-30T23:59:59Z", "2026-12-01T00:00:00Z", "2031-01-01T00:00:00Z"]
    {
        let super::Selection::Found(history) = gate_at(&files, now).unwrap() else { panic!() };
        assert_eq!(history.runs.len(), 10, "{now}");
        assert!(history.names.is_sorted_by_key(|name| name.as_str().to_owned()), "{now}");
    }
}

#[test]
fn a_gate_lists_no_month_that_it_does_not_need() {
    let memory = Arc::new(InMemory::new());
    let mut files = objects(&memory);
    ten_days(&mut files);
    // The gate does not list this month; otherwise it would report this object.
    put_object(&memory, &format!("{FOLDER}/month=2026-09/not-a-run.parquet"), b"");
    let super::Selection::Found(history) = gate_at(&files, "2026-11-01T00:00:00Z").unwrap() else { panic!() };
    assert_eq!((history.runs.len(), history.faults), (10, Vec::new()));
    assert_eq!(found(&files).faults[0].path, "quickstart/9c1f0e57/not-a-run.parquet");
}

#[test]
fn a_session_that_can_not_be_read_is_named_and_never_a_missing_one() {
    let memory = Arc::new(InMemory::new());
    let name = format!("20261001T120000Z-{}.parquet", commit('a'));
    put_object(&memory, &format!("{FOLDER}/month=2026-10/{name}"), b"PAR1 or not");
    let files = objects(&memory);
    let faults = missing(&files, &testbed()).faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].why.starts_with("not a usable Parquet file"), "{}", faults[0].why);
    // A copy in a month that does not match its name.
    put_object(&memory, &format!("{FOLDER}/month=2026-09/{name}"), b"");
    assert_eq!(missing(&files, &testbed()).faults.len(), 2);
}

#[test]
fn a_copy_of_a_session_in_another_month_does_not_stop_the_gate() {
    let memory = Arc::new(InMemory::new());
    let mut files = objects(&memory);
    ten_days(&mut files);
    let name = format!("20261021T120000Z-{}.parquet", commit('a'));
    put_object(&memory, &format!("{FOLDER}/month=2026-09/{name}"), b"");
    let super::Selection::Found(history) = gate_at(&files, "2026-11-01T00:00:00Z").unwrap() else { panic!() };
    assert_eq!(history.runs.len(), 10);
}

#[test]
fn an_acceptance_that_can_not_be_read_stops_the_gate() {
    let memory = Arc::new(InMemory::new());
    let mut files = objects(&memory);
    ten_days(&mut files);
    put_object(
        &memory,
        "acceptances/suite=quickstart/testbed=9c1f0e57/20261020T120000Z-accept-01234567.json",
        b"{}",
    );
    assert!(matches!(gate_at(&files, "2026-11-01T00:00:00Z"), Err(StoreError::Unreadable { .. })));
}

#[test]
fn an_object_larger_than_any_session_is_not_read() {
    let memory = Arc::new(InMemory::new());
    let name = format!("20261001T120000Z-{}.parquet", commit('a'));
    put_object(&memory, &format!("{FOLDER}/month=2026-10/{name}"), &vec![0; (64 << 20) + 1]);
    let error = objects(&memory).read(&format!("quickstart/9c1f0e57/{name}")).unwrap_err();
    assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
}

#[test]
fn a_folder_with_the_same_layout_is_the_same_store() {
    let folder = tempfile::tempdir().unwrap();
    // Names that need encoding in folder names.
    let mut strange = run(1, 'a', 100.0);
    strange.suite = "a b/ü%20..".to_owned();
    strange.testbed.id = "../x".to_owned();
    let mut files = Objects::folder(folder.path()).unwrap();
    assert_eq!(super::baseline_folders(&files).unwrap(), []);
    put(&mut files, &strange).unwrap();
    let again = Objects::folder(folder.path()).unwrap();
    assert_eq!(verify(&again).unwrap().runs, 1);
    assert_eq!(verify(&again).unwrap().faults, []);
    let memory = Arc::new(InMemory::new());
    let copied = export(&again, &mut objects(&memory)).unwrap();
    assert_eq!((copied.sessions, copied.already), (1, 0));
    assert_eq!(verify(&objects(&memory)).unwrap().runs, 1);
}

#[test]
fn an_export_copies_what_is_missing_under_the_same_names() {
    let (folder, memory) = (tempfile::tempdir().unwrap(), Arc::new(InMemory::new()));
    let mut files = Directory::new(folder.path());
    ten_days(&mut files);
    accept(&mut files, acceptance("2026-10-20T12:00:00Z"), None).unwrap();
    let mut objects = objects(&memory);
    let first = export(&files, &mut objects).unwrap();
    assert_eq!((first.sessions, first.acceptances, first.already), (10, 1, 0));
    put(&mut files, &run(11, 'a', 120_000.0)).unwrap();
    let second = export(&files, &mut objects).unwrap();
    assert_eq!((second.sessions, second.acceptances, second.already), (1, 0, 11));
    let names = |files: &dyn Files| {
        let baseline = BaselineFolder::open(files, "quickstart", "9c1f0e57").unwrap();
        let runs: Vec<RunName> = baseline.runs(files).unwrap().names;
        (runs, baseline.acceptances)
    };
    assert_eq!(names(&objects), names(&files));
    // Copies the baseline back into a folder.
    let back = tempfile::tempdir().unwrap();
    export(&objects, &mut Directory::new(back.path())).unwrap();
    for file in files.names("quickstart/9c1f0e57").unwrap() {
        let path = format!("quickstart/9c1f0e57/{file}");
        assert_eq!(Directory::new(back.path()).read(&path).unwrap(), files.read(&path).unwrap());
    }
    assert_eq!(objects.encoding(), Encoding::Parquet);
    let listed = block_on(memory.list_with_delimiter(None)).unwrap();
    assert_eq!(listed.common_prefixes.len(), 2);
}
