//! The lock that keeps two measurements apart, between real processes.

use std::process::Stdio;
use std::time::Duration;

use benchgate::device::lock;
use benchgate::model::Quiet;
use benchgate::process::Cancel;

use super::process::{assert_gone, fake_tool, wait_for_note};

#[tokio::test]
async fn a_killed_measurement_gives_its_device_back() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let device = format!("test-{}", std::process::id());
    let mut job = std::process::Command::new(fake_tool())
        .args(["measure", &device, "hang-ignoring-sigterm", note.to_str().unwrap()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_note(&note);
    let cancel = Cancel::new();
    let held = tokio::time::timeout(Duration::from_millis(300), lock(&device, &Quiet, &cancel)).await;
    assert!(held.is_err(), "two measurements at once");
    job.kill().unwrap();
    job.wait().unwrap();
    tokio::time::timeout(Duration::from_secs(10), lock(&device, &Quiet, &cancel)).await.unwrap().unwrap();
    assert_gone(&note, Duration::from_secs(5));
    for folder in ["/run/lock", "/var/lock", "/tmp"] {
        drop(std::fs::remove_file(format!("{folder}/benchgate-{device}.lock")));
    }
}
