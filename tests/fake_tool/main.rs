//! A tool that misbehaves on request. `fake_tool MODE [ARGUMENTS]`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "a fake may"
)]

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, raise, signal};
use nix::unistd::{ForkResult, fork, setsid};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |index: usize| args.get(index).map(String::as_str).unwrap_or_default();
    match arg(0) {
        "exit" => std::process::exit(arg(1).parse().unwrap()),
        "hang" => {
            note_pid(arg(1));
            hang();
        }
        "hang-ignoring-sigterm" => {
            // SAFETY: ignoring a signal installs no handler.
            unsafe { signal(Signal::SIGTERM, SigHandler::SigIgn).unwrap() };
            note_pid(arg(1));
            hang();
        }
        // Leaves a child outside its process group and without a living parent; then ends or hangs.
        "escape" => {
            escape(arg(1));
            if arg(2) == "hang" {
                hang();
            }
        }
        "fork-forever" => loop {
            // SAFETY: the process has one thread.
            if let ForkResult::Child = unsafe { fork() }.unwrap() {
                note_pid(arg(1));
            } else {
                std::thread::sleep(Duration::from_millis(5));
            }
        },
        "flood" => {
            let line = [b'x'; 4096];
            let mut out = std::io::stdout().lock();
            for _ in 0..arg(1).parse::<u64>().unwrap() / 4096 {
                out.write_all(&line).unwrap();
            }
        }
        "segfault" => segfault(),
        "kill-oneself" => raise(Signal::try_from(arg(1).parse::<i32>().unwrap()).unwrap()).unwrap(),
        "memory" => {
            let bytes = vec![1u8; arg(1).parse::<usize>().unwrap() << 20];
            println!("{}", std::hint::black_box(&bytes).len());
        }
        "burn" => {
            let until = std::time::Instant::now() + Duration::from_millis(arg(1).parse().unwrap());
            while std::time::Instant::now() < until {
                std::hint::black_box(0);
            }
        }
        "print" => {
            println!("{}", arg(1));
            eprintln!("{}", arg(2));
        }
        "environment" => {
            for (name, _) in std::env::vars_os() {
                println!("{}", name.to_string_lossy());
            }
        }
        "processors" => {
            let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
            let on = (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap());
            println!("{:?}", on.collect::<Vec<_>>());
        }
        "cgroup" => print!("{}", std::fs::read_to_string("/proc/self/cgroup").unwrap()),
        // Echoes each line; some lines are commands.
        "talk" => {
            for line in std::io::stdin().lock().lines() {
                match line.unwrap().as_str() {
                    "crash" => segfault(),
                    "hang" => hang(),
                    "half" => {
                        print!("half an ans");
                        std::io::stdout().flush().unwrap();
                        raise(Signal::SIGKILL).unwrap();
                    }
                    line => {
                        eprintln!("heard {line}");
                        println!("{line}");
                    }
                }
            }
        }
        // Acts as benchgate: runs this program contained, with the remaining arguments.
        "contain" => contain(&args[1..], None),
        // Acts as benchgate while it holds the lock of a device.
        "measure" => contain(&args[2..], Some(arg(1))),
        other => panic!("unknown mode {other:?}"),
    }
}

fn contain(args: &[String], device: Option<&str>) {
    use benchgate::process::{Command, interrupts, run};
    let command = Command::new(std::env::current_exe().unwrap(), Duration::from_secs(60)).args(args.iter());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let exit = runtime.block_on(async {
        let interrupts = interrupts().unwrap();
        let _alone = match device {
            Some(name) => Some(
                benchgate::device::lock(name, None, &benchgate::model::Quiet, &interrupts.cancel)
                    .await
                    .unwrap(),
            ),
            None => None,
        };
        run(&command, &interrupts.cancel).await.unwrap().exit
    });
    println!("{exit:?}");
}

/// Appends this process's ID to a file, so that a test can look for the process later.
fn note_pid(file: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(Path::new(file)).unwrap();
    file.write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
}

fn segfault() {
    // Rust's own handler, which only knows stack overflows, would swallow a raised signal.
    // SAFETY: the default action is no handler.
    unsafe { signal(Signal::SIGSEGV, SigHandler::SigDfl).unwrap() };
    raise(Signal::SIGSEGV).unwrap();
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Starts a grandchild in a separate session, whose parent has ended.
fn escape(file: &str) {
    // SAFETY: the process has one thread.
    if let ForkResult::Child = unsafe { fork() }.unwrap() {
        setsid().unwrap();
        // SAFETY: as above.
        if let ForkResult::Child = unsafe { fork() }.unwrap() {
            // SAFETY: ignoring a signal installs no handler.
            unsafe { signal(Signal::SIGTERM, SigHandler::SigIgn).unwrap() };
            note_pid(file);
            hang();
        }
        std::process::exit(0);
    }
    nix::sys::wait::wait().unwrap();
    // Waits until the grandchild has written its ID. The file may exist but still be empty.
    while !std::fs::metadata(file).is_ok_and(|found| found.len() > 0) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
