//! The only integration test binary: every area is a module, so that the library is linked once.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod absolute_limits;
mod alert;
mod anchored;
mod artifacts;
mod baseline;
mod baseline_show;
mod bisect;
mod bisect_history;
mod bundle;
mod code_gate;
mod command_line;
mod compare;
mod compare_guesses;
mod compare_select;
mod configuration;
mod contradictions;
mod device;
mod doctor;
mod documents;
mod documents_configuration;
mod error_tour;
mod exchange;
mod fleet;
mod gate;
mod generated;
mod git_server;
mod github;
mod gpu;
mod harness;
mod honest_files;
mod hostile_files;
mod import;
mod ingest;
mod init;
mod inputs;
mod killed;
mod large_files;
mod leftovers;
mod limits;
#[path = "../simulated_history/nights.rs"]
#[expect(dead_code, reason = "the bench plays whole years")]
mod nights;
mod no_false_green;
mod noise;
mod numerics;
mod object_stores;
mod objects;
mod outputs_gate;
mod pair;
mod pipeline;
mod plain_files_said;
mod process;
mod profile;
mod propose_limits;
mod pull_request;
mod rated_files;
mod raw_files;
mod real_tools;
#[path = "../simulated_history/replay.rs"]
mod replay;
mod schemas;
#[path = "../simulated_history/history.rs"]
mod simulated_history;
mod site;
mod split_machines;
mod store;
mod stored_gate;
mod suite;
mod suite_commands;
mod targets;
mod tools;
mod torch_export;
mod vocabulary;
