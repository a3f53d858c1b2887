//! Tests of the gate's public function, which turns two runs and a policy into a comparison.

mod believable;
mod build;
mod calibration;
mod classical;
mod common_shift;
mod compile_time;
mod compiled_only;
mod copied;
mod deciding_metric;
mod outcomes;
mod plain_files;
mod recorded;
mod worked_example;
mod zeros;
