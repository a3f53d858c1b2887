//! Determines whether the device of a target is present. The pinned runtime is queried once for each
//! combination of tools, device and environment.
//!
//! There are three results, because with only two, an unknown error would count as an absent device. If a
//! device is *absent*, its benchmarks are compiled but not run. Any error that is not known to mean absence
//! makes the device *broken*, and its benchmarks fail. A device is also broken if it is absent although the
//! configuration requires it or the machine's bus shows it.

use std::sync::Arc;
use std::time::Duration;

use benchgate_config::Target;
use benchgate_core::model::{DeviceKind, device_driver, is_cpu};
use benchgate_host::device;
use benchgate_host::process::{self, Cancel, Command, Exit, Finished};
use benchgate_toolchain::Installed;

use super::PipelineError;
use super::diagnostics;
use super::host::Host;

/// Timeout of a query. The first use of a GPU after a boot loads firmware.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Presence of a target's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Presence {
    Present,
    /// The device is absent. `what` is a phrase such as `no CUDA device`, and `said` is the runtime's
    /// message.
    Absent {
        what: String,
        said: String,
    },
    /// The device should be present, or the runtime reported an error that is not known to mean absence.
    Broken {
        why: String,
    },
}

/// Queries the runtime, or returns an earlier result. A CPU is always present.
pub(super) async fn presence(
    host: &Host<'_>,
    tools: &Installed,
    target: &Target,
) -> Result<Presence, PipelineError> {
    if is_cpu(&target.device) {
        return Ok(Presence::Present);
    }
    let driver = device_driver(&target.device);
    let key = (tools.iree_run_module.clone(), driver.to_owned(), target.env.clone());
    let ask = async || host.run(&list_devices(tools, target)).await.map(Arc::new);
    let listed = host.listed_devices.get(key, ask).await?;
    Ok(judged(read(&listed, &target.device), target.required, device::accelerator(driver)))
}

/// Determines whether a command could use its device. Its programs may bring a driver's library of their own, so the
/// pinned runtime is not asked: the device is absent if no program can use one. Otherwise it counts as present.
pub(super) fn presence_for_command(host: &Host<'_>, device: &str) -> Presence {
    let driver = device_driver(device);
    let Some(said) = host.gpus.absence(driver) else { return Presence::Present };
    let what = no_device(device);
    match device::accelerator(driver) {
        Some(address) => {
            Presence::Broken { why: format!("{what}, although the machine has one at {address}: {said}") }
        }
        None => Presence::Absent { what, said },
    }
}

/// A phrase such as `no CUDA device`.
fn no_device(device: &str) -> String {
    let title = match DeviceKind::from_uri(device).facts().title {
        "" => device_driver(device),
        title => title,
    };
    format!("no {title} device")
}

fn list_devices(tools: &Installed, target: &Target) -> Command {
    Command::new(&tools.iree_run_module, TIMEOUT)
        .arg(format!("--list_devices={}", device_driver(&target.device)))
        .envs(&target.env)
        .capture_stdout()
}

/// The devices that the runtime lists for a target, or the reason why the target's benchmarks would not be
/// measured.
///
/// # Errors
/// A tool can't be started, or the run was interrupted.
pub async fn listed_devices(
    tools: &Installed,
    target: &Target,
    cancel: &Cancel,
) -> Result<Result<Vec<String>, String>, PipelineError> {
    let finished = process::run(&list_devices(tools, target), cancel).await?;
    if finished.exit == Exit::Interrupted {
        return Err(PipelineError::Interrupted);
    }
    if !is_cpu(&target.device) {
        match read(&finished, &target.device) {
            Presence::Present => {}
            Presence::Absent { what, said } => return Ok(Err(format!("{what}: {said}"))),
            Presence::Broken { why } => return Ok(Err(why)),
        }
    }
    let text = String::from_utf8_lossy(&finished.stdout).into_owned();
    Ok(Ok(text.lines().map(str::trim).filter(|line| line.contains("://")).map(str::to_owned).collect()))
}

/// The names of the drivers that the runtime was built with.
///
/// # Errors
/// A tool can't be started, or the run was interrupted.
pub async fn listed_drivers(tools: &Installed, cancel: &Cancel) -> Result<Vec<String>, PipelineError> {
    let command = Command::new(&tools.iree_run_module, TIMEOUT).arg("--list_drivers").capture_stdout();
    let finished = process::run(&command, cancel).await?;
    if finished.exit == Exit::Interrupted {
        return Err(PipelineError::Interrupted);
    }
    // Below a heading, the lines look like `    cuda: NVIDIA CUDA HAL driver (via dylib)`.
    let text = String::from_utf8_lossy(&finished.stdout).into_owned();
    let name = |line: &str| line.trim().split_once(": ").map(|(name, _)| name.to_owned());
    let is_name = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    Ok(text.lines().filter_map(name).filter(is_name).collect())
}

/// Phrases in the runtime's messages that mean that there is no such device, and nothing else.
const ABSENT: [&str; 9] = [
    // A driver library is missing: libcuda.so, libamdhip64.so, or the Vulkan loader.
    "driver library '",
    "HIP runtime library '",
    "Vulkan loader library not found",
    "Vulkan runtime library not available",
    // There is a loader, but no driver.
    "VK_ERROR_INCOMPATIBLE_DRIVER",
    // There is a driver, but no device.
    "CUDA_ERROR_NO_DEVICE",
    "hipErrorNoDevice",
    "no ROCm-capable device",
    // The tools were built without the driver.
    "no driver '",
];

/// Interprets the result of `--list_devices`, which prints one URI per line, or an error.
fn read(finished: &Finished, device: &str) -> Presence {
    let driver = device_driver(device);
    let what = no_device(device);
    if finished.exit != Exit::Success {
        let said = complaint(&finished.stderr_tail);
        let known = ABSENT.iter().any(|known| finished.stderr_tail.contains(known));
        return match finished.exit {
            Exit::Code(_) if known => Presence::Absent { what, said },
            _ => Presence::Broken {
                why: format!("iree-run-module --list_devices={driver} {}: {said}", finished.exit),
            },
        };
    }
    let text = String::from_utf8_lossy(&finished.stdout);
    let listed: Vec<&str> =
        text.lines().map(str::trim).filter(|line| line.starts_with(&format!("{driver}://"))).collect();
    let counted = || match listed.len() {
        0 => "the runtime lists no device".to_owned(),
        1 => format!("the runtime lists only {}", listed[0]),
        many => format!("the runtime lists {many} devices"),
    };
    if listed.is_empty() && finished.stderr_tail.lines().any(diagnostics::is_error) {
        let said = complaint(&finished.stderr_tail);
        return Presence::Broken {
            why: format!("iree-run-module --list_devices={driver} lists nothing: {said}"),
        };
    }
    if listed.is_empty() || !is_among(device, &listed) {
        let what = if listed.is_empty() { what } else { format!("{what} {device}") };
        return Presence::Absent { what, said: counted() };
    }
    Presence::Present
}

/// Returns whether a URI matches one of the listed devices: any device, the one with an index, or the one
/// with a name.
fn is_among(device: &str, listed: &[&str]) -> bool {
    let path = device.split_once("://").map_or("", |(_, path)| path);
    let path = path.split('?').next().unwrap_or_default();
    match path.parse::<usize>() {
        Ok(index) => index < listed.len(),
        Err(_) => path.is_empty() || listed.iter().any(|known| known.eq_ignore_ascii_case(device)),
    }
}

/// The line that contains the reason; the first lines may be ASCII art.
fn complaint(stderr: &str) -> String {
    let line = stderr.lines().map(str::trim).find(|line| line.contains("; "));
    let line = line.or_else(|| stderr.lines().map(str::trim).find(|line| !line.is_empty()));
    // In `c/runtime/src/iree/hal/…:66: UNAVAILABLE; …`, the location in IREE's sources is left out, because
    // they are not on this machine.
    let line = line.unwrap_or("no message");
    line.split_once(": ").filter(|(place, _)| place.contains(".c")).map_or(line, |(_, rest)| rest).to_owned()
}

/// Turns an absence into a failure if the device is required or visible on the bus.
fn judged(found: Presence, required: Option<bool>, on_bus: Option<String>) -> Presence {
    match (found, required, on_bus) {
        (Presence::Absent { what, said }, Some(true), _) => {
            Presence::Broken { why: format!("{what}, and the target requires it: {said}") }
        }
        (Presence::Absent { what, said }, None, Some(address)) => Presence::Broken {
            why: format!(
                "{what}, although the machine has one at {address} (set `required = false` to ignore it): \
                {said}"
            ),
        },
        (found, ..) => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(exit: Exit, stdout: &str, stderr: &str) -> Finished {
        Finished::new(exit, stdout.as_bytes().to_vec(), stderr.to_owned())
    }

    macro_rules! captured {
        ($name:literal) => {
            include_str!(concat!("../../../tests/fixtures/list_devices/", $name))
        };
    }

    fn absent(device: &str, stderr: &str) -> (String, String) {
        match read(&finished(Exit::Code(1), "", stderr), device) {
            Presence::Absent { what, said } => (what, said),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_driver_that_is_not_installed_is_an_absent_device() {
        for (device, stderr, what) in [
            ("cuda", captured!("3.13.0-cuda-none.stderr"), "no CUDA device"),
            ("cuda://0", captured!("3.9.0-cuda-none.stderr"), "no CUDA device"),
            ("hip", captured!("3.13.0-hip-none.stderr"), "no ROCm device"),
            ("hip", captured!("3.9.0-hip-none.stderr"), "no ROCm device"),
            ("vulkan", captured!("3.13.0-vulkan-none.stderr"), "no Vulkan device"),
            ("vulkan", captured!("3.9.0-vulkan-none.stderr"), "no Vulkan device"),
            // A Vulkan loader is installed, but no driver.
            ("vulkan", captured!("3.13.0-vulkan-no-icd.stderr"), "no Vulkan device"),
            ("vulkan", captured!("3.9.0-vulkan-no-icd.stderr"), "no Vulkan device"),
            (
                "metal",
                "c/runtime/src/iree/hal/driver_registry.c:319: NOT_FOUND; no driver 'metal' registered",
                "no Metal device",
            ),
        ] {
            let (found, said) = absent(device, stderr);
            assert_eq!(found, what, "{stderr}");
            assert!(!said.contains('╯') && !said.contains(".c:"), "{said}");
        }
        let (_, said) = absent("cuda", captured!("3.13.0-cuda-none.stderr"));
        assert!(said.starts_with("UNAVAILABLE; CUDA driver library 'libcuda.so'"), "{said}");
    }

    #[test]
    fn a_listed_device_is_present_and_an_empty_list_is_not() {
        let one = captured!("3.13.0-vulkan-mesa.stdout");
        assert_eq!(read(&finished(Exit::Success, one, ""), "vulkan"), Presence::Present);
        assert_eq!(read(&finished(Exit::Success, one, ""), "vulkan://0"), Presence::Present);
        assert_eq!(read(&finished(Exit::Success, one, ""), one.trim()), Presence::Present);
        let none = read(&finished(Exit::Success, "", ""), "vulkan");
        assert!(matches!(none, Presence::Absent { ref what, .. } if what == "no Vulkan device"), "{none:?}");
    }

    #[test]
    fn a_device_beyond_the_last_is_absent_by_name() {
        let one = captured!("3.13.0-vulkan-mesa.stdout");
        for device in ["vulkan://1", "vulkan://GPU-00000000000000000000000000000000"] {
            let Presence::Absent { what, said } = read(&finished(Exit::Success, one, ""), device) else {
                panic!("{device} was found");
            };
            assert_eq!(what, format!("no Vulkan device {device}"));
            assert!(said.contains("lists only vulkan://GPU-"), "{said}");
        }
    }

    #[test]
    fn what_is_not_known_to_mean_absence_is_broken() {
        for (exit, stderr) in [
            (Exit::Code(1), "a.c:1: INTERNAL; CUDA driver error 'CUDA_ERROR_SYSTEM_DRIVER_MISMATCH' (803)"),
            (Exit::Code(1), "a.c:1: UNKNOWN; CUDA_ERROR_ECC_UNCORRECTABLE"),
            (Exit::Signal(11), ""),
            (Exit::TimedOut(Duration::ZERO), "CUDA driver library 'libcuda.so' is slow today"),
        ] {
            let found = read(&finished(exit, "", stderr), "cuda");
            assert!(matches!(found, Presence::Broken { .. }), "{stderr}: {found:?}");
        }
    }

    #[test]
    fn an_absence_fails_where_the_device_is_required_or_seen_on_the_bus() {
        let absent = || Presence::Absent { what: "no CUDA device".into(), said: "no library".into() };
        let on_bus = || Some("0000:65:00.0".to_owned());
        assert_eq!(judged(absent(), None, None), absent());
        assert_eq!(judged(absent(), Some(false), on_bus()), absent());
        for (required, on_bus) in [(Some(true), None), (None, on_bus())] {
            let Presence::Broken { why } = judged(absent(), required, on_bus) else { panic!("it passed") };
            assert!(why.starts_with("no CUDA device, "), "{why}");
        }
        assert_eq!(judged(Presence::Present, Some(true), None), Presence::Present);
    }
}
