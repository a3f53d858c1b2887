//! The system calls that are observed: those that name files, and those that reach memory of the kernel, or
//! attributes of other processes, which outlive the calling process.

use std::mem::offset_of;

use nix::libc;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;

/// A path as a call names it: the positions of its arguments.
#[derive(Clone, Copy)]
pub(super) struct Named {
    /// The descriptor of the folder that a relative name starts from, if the call has one.
    pub(super) folder: Option<usize>,
    pub(super) name: usize,
}

/// The way in which a system call uses the files that it names. Numbers are positions of arguments.
#[derive(Clone, Copy)]
pub(super) enum Call {
    Open {
        path: Named,
        flags: usize,
    },
    /// `creat`, which has no flags.
    #[cfg(target_arch = "x86_64")]
    Create(Named),
    /// `openat2`, whose flags are in memory.
    OpenHow,
    Look {
        path: Named,
        /// The flags, which may say that the name is empty and that the descriptor itself is meant.
        flags: Option<usize>,
    },
    /// The call binds a socket to an address, which may be taken for a while after the process.
    Bind,
    /// The call reads or changes extended attributes of a file or folder, or learns whether there are any.
    /// Without a path, or with an empty one, the first argument is the descriptor.
    Attributes(Option<Named>),
    /// The call creates something that is not a regular file, and fails if the name exists.
    Make(Named),
    MakeLink(Named),
    HardLink([Named; 2]),
    Remove(Named),
    Rename {
        paths: [Named; 2],
        flags: Option<usize>,
    },
    /// The call uses memory of the kernel that outlives the process. Contains the name of the kind
    /// of memory.
    Kept(&'static str),
    /// The call sets something of the process in the argument `pid`, where 0 means the caller itself.
    SetOf {
        pid: usize,
        /// The pointer to the new value, without which the call only reads the old one.
        value: Option<usize>,
    },
    /// The call sets the priority of a process, a group or a user's processes.
    Priority {
        /// The value of the first argument for one process.
        process: u64,
    },
    /// The call could open files unobserved, so it is refused, as Docker's default profile does. Programs
    /// that would use it fall back to calls that can be observed.
    Refused,
}

const fn at(folder: usize) -> Named {
    Named { folder: Some(folder), name: folder + 1 }
}

const fn plain(name: usize) -> Named {
    Named { folder: None, name }
}

const fn look(path: Named, flags: Option<usize>) -> Call {
    Call::Look { path, flags }
}

const SEGMENTS: Call = Call::Kept("System V shared memory segments");
const QUEUES: Call = Call::Kept("System V message queues");
const SEMAPHORES: Call = Call::Kept("System V semaphores");
const POSIX_QUEUES: Call = Call::Kept("POSIX message queues");
const KEYS: Call = Call::Kept("keyrings of the kernel");

// Calls of newer kernels (Linux 6.6 to 6.17). They have the same numbers on all architectures.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const GETXATTRAT: libc::c_long = 464;
const LISTXATTRAT: libc::c_long = 465;
const REMOVEXATTRAT: libc::c_long = 466;
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_GETATTR: libc::c_long = 468;
const FILE_SETATTR: libc::c_long = 469;

/// The system calls that are stopped.
const CALLS: &[(libc::c_long, Call)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, Call::Open { path: plain(0), flags: 1 }),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, Call::Create(plain(0))),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, Call::Make(plain(0))),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, Call::Make(plain(0))),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_symlink, Call::MakeLink(plain(1))),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, Call::HardLink([plain(0), plain(1)])),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, Call::Rename { paths: [plain(0), plain(1)], flags: None }),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, Call::Remove(plain(0))),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, Call::Remove(plain(0))),
    (libc::SYS_openat, Call::Open { path: at(0), flags: 2 }),
    (libc::SYS_openat2, Call::OpenHow),
    (libc::SYS_newfstatat, look(at(0), Some(3))),
    (libc::SYS_statx, look(at(0), Some(2))),
    (libc::SYS_faccessat, look(at(0), None)),
    (libc::SYS_faccessat2, look(at(0), None)),
    (libc::SYS_readlinkat, look(at(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utime, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utimes, look(plain(0), None)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_futimesat, look(at(0), None)),
    (libc::SYS_fchmodat, look(at(0), None)),
    (FCHMODAT2, look(at(0), None)),
    (libc::SYS_fchownat, look(at(0), None)),
    (libc::SYS_utimensat, look(at(0), None)),
    (libc::SYS_chdir, look(plain(0), None)),
    (libc::SYS_truncate, look(plain(0), None)),
    (libc::SYS_statfs, look(plain(0), None)),
    (libc::SYS_inotify_add_watch, look(plain(1), None)),
    (libc::SYS_name_to_handle_at, look(at(0), None)),
    (libc::SYS_umount2, look(plain(0), None)),
    (libc::SYS_open_tree, look(at(0), None)),
    (OPEN_TREE_ATTR, look(at(0), None)),
    (libc::SYS_bind, Call::Bind),
    (libc::SYS_getxattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_lgetxattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_listxattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_llistxattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_setxattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_lsetxattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_removexattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_lremovexattr, Call::Attributes(Some(plain(0)))),
    (libc::SYS_fsetxattr, Call::Attributes(None)),
    (libc::SYS_fremovexattr, Call::Attributes(None)),
    (libc::SYS_fgetxattr, Call::Attributes(None)),
    (libc::SYS_flistxattr, Call::Attributes(None)),
    (SETXATTRAT, Call::Attributes(Some(at(0)))),
    (GETXATTRAT, Call::Attributes(Some(at(0)))),
    (LISTXATTRAT, Call::Attributes(Some(at(0)))),
    (REMOVEXATTRAT, Call::Attributes(Some(at(0)))),
    (FILE_GETATTR, Call::Attributes(Some(at(0)))),
    (FILE_SETATTR, Call::Attributes(Some(at(0)))),
    (libc::SYS_mkdirat, Call::Make(at(0))),
    (libc::SYS_mknodat, Call::Make(at(0))),
    (libc::SYS_symlinkat, Call::MakeLink(at(1))),
    (libc::SYS_linkat, Call::HardLink([at(0), at(2)])),
    (libc::SYS_renameat, Call::Rename { paths: [at(0), at(2)], flags: None }),
    (libc::SYS_renameat2, Call::Rename { paths: [at(0), at(2)], flags: Some(4) }),
    (libc::SYS_unlinkat, Call::Remove(at(0))),
    (libc::SYS_shmget, SEGMENTS),
    (libc::SYS_shmat, SEGMENTS),
    (libc::SYS_shmctl, SEGMENTS),
    (libc::SYS_msgget, QUEUES),
    (libc::SYS_msgrcv, QUEUES),
    (libc::SYS_msgctl, QUEUES),
    (libc::SYS_semget, SEMAPHORES),
    (libc::SYS_semop, SEMAPHORES),
    (libc::SYS_semtimedop, SEMAPHORES),
    (libc::SYS_semctl, SEMAPHORES),
    (libc::SYS_mq_open, POSIX_QUEUES),
    (libc::SYS_mq_unlink, POSIX_QUEUES),
    (libc::SYS_add_key, KEYS),
    (libc::SYS_request_key, KEYS),
    (libc::SYS_keyctl, KEYS),
    (libc::SYS_prlimit64, Call::SetOf { pid: 0, value: Some(2) }),
    (libc::SYS_sched_setaffinity, Call::SetOf { pid: 0, value: None }),
    (libc::SYS_sched_setscheduler, Call::SetOf { pid: 0, value: None }),
    (libc::SYS_sched_setparam, Call::SetOf { pid: 0, value: None }),
    (libc::SYS_sched_setattr, Call::SetOf { pid: 0, value: None }),
    (libc::SYS_process_vm_writev, Call::SetOf { pid: 0, value: None }),
    (libc::SYS_ptrace, Call::SetOf { pid: 1, value: None }),
    (libc::SYS_setpriority, Call::Priority { process: libc::PRIO_PROCESS as u64 }),
    (libc::SYS_ioprio_set, Call::Priority { process: 1 }),
    (libc::SYS_io_uring_setup, Call::Refused),
];

/// The filter program: stops [`CALLS`] and every call of another architecture, and allows all others.
pub(super) fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const HAS_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let stop = step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0);
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let load = |offset: usize| step(LOAD, offset as u32, 0, 0);
    let mut program = vec![load(offset_of!(libc::seccomp_data, arch)), step(EQUAL, NATIVE, 1, 0), stop];
    program.push(load(offset_of!(libc::seccomp_data, nr)));
    // Calls of the x32 ABI have this bit.
    program.extend([step(HAS_BIT, 0x4000_0000, 0, 1), stop]);
    for (number, call) in CALLS {
        // The argument by which most calls need not be stopped, and the condition that stops them.
        let condition = match call {
            // `fstat` of an open file is by far the most frequent call, and names no file.
            Call::Look { flags: Some(flags), .. } => {
                Some((*flags, step(HAS_BIT, libc::AT_EMPTY_PATH as u32, 0, 1)))
            }
            // Programs read their own limits and bind their own threads.
            Call::SetOf { pid, .. } => Some((*pid, step(EQUAL, 0, 0, 1))),
            _ => None,
        };
        match condition {
            None => program.extend([step(EQUAL, *number as u32, 0, 1), stop]),
            Some((argument, is_frequent)) => program.extend([
                step(EQUAL, *number as u32, 0, 4),
                load(offset_of!(libc::seccomp_data, args) + 8 * argument),
                is_frequent,
                allow,
                stop,
            ]),
        }
    }
    program.push(allow);
    program
}

/// The kind of a system call. `None` if it belongs to another architecture, whose arguments are not known.
pub(super) fn call_of(data: &libc::seccomp_data) -> Option<Call> {
    let known = CALLS.iter().find(|(number, _)| *number == libc::c_long::from(data.nr))?;
    (data.arch == NATIVE).then_some(known.1)
}
