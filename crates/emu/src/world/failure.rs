//! The errors of making the two hosts: for each step of the child, what this machine does not allow and how
//! to get it.

use std::fs;
use std::io;

use talkpath_arena::ArenaError;
use talkpath_kernel::descriptors;

/// The error of a step of the child.
pub(super) struct SetupError {
    pub(super) step: SetupStep,
    pub(super) error: io::Error,
}

/// The steps of the child. Its message has the number of the step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SetupStep {
    Done,
    Namespace,
    UserNamespace,
    Tap,
    Device,
    Counters,
    Socket,
    Send,
    PathManager,
}

const STEPS: [SetupStep; 9] = [
    SetupStep::Done,
    SetupStep::Namespace,
    SetupStep::UserNamespace,
    SetupStep::Tap,
    SetupStep::Device,
    SetupStep::Counters,
    SetupStep::Socket,
    SetupStep::Send,
    SetupStep::PathManager,
];

/// The settings that forbid user namespaces to users without privileges: the file of each, the value that
/// forbids, and what allows. The first is Ubuntu's since 23.10, the second is of Debian's kernels, and the
/// third is every kernel's (namespaces(7)).
const FORBIDDING: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
];

impl SetupStep {
    /// The step with this number in the child's message.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        STEPS.into_iter().find(|step| *step as u8 == number)
    }
}

/// Makes the error that says what is missing, and how to get it.
pub(super) fn unavailable(step: SetupStep, error: &io::Error) -> ArenaError {
    // Every step opens descriptors. If none is left, the step does not matter.
    if let Some((what, how)) = descriptors::shortage(error) {
        return ArenaError::Unavailable { what: format!("{what} for two hosts: {error}"), how };
    }
    if error.raw_os_error() == Some(libc::ENOENT)
        && matches!(step, SetupStep::Namespace | SetupStep::UserNamespace | SetupStep::Counters)
    {
        // The files that these steps open are all below /proc.
        return ArenaError::Unavailable {
            what: format!("the two hosts cannot be set up without /proc: {error}"),
            how: "mount it: `mount -t proc proc /proc`".to_owned(),
        };
    }
    let root = "run as root (or with CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW)";
    let (what, how) = match step {
        SetupStep::Namespace | SetupStep::UserNamespace => (
            "this machine lets us make no network namespace",
            format!("{root}, or {}; in a container, give it those capabilities", allow_user_namespaces()),
        ),
        SetupStep::Tap => (
            "no packet socket can be made",
            format!(
                "the kernel needs CONFIG_PACKET (`modprobe af_packet`); {root}; seccomp must allow AF_PACKET"
            ),
        ),
        SetupStep::Device => (
            "no device can be made for a host",
            format!("the kernel needs CONFIG_VETH (`modprobe veth`) and memory for its packets; {root}"),
        ),
        SetupStep::Counters => ("the device's counters cannot be read", "mount /proc".to_owned()),
        SetupStep::Socket => (
            "a socket in the namespace cannot be made",
            "see the congestion controls in `talkpath doctor` and the limit of open files (ulimit -n)"
                .to_owned(),
        ),
        SetupStep::PathManager => (
            "a host's Multipath TCP cannot be set up",
            format!("the kernel needs CONFIG_MPTCP (Linux 5.6) and net.mptcp.enabled = 1; {root}"),
        ),
        SetupStep::Done | SetupStep::Send => (
            "the two hosts cannot be set up",
            "see the limits of processes and open files (ulimit -u, ulimit -n)".to_owned(),
        ),
    };
    ArenaError::Unavailable { what: format!("{what}: {error}"), how }
}

/// Says how to allow user namespaces, by the setting that forbids them here.
fn allow_user_namespaces() -> String {
    let forbidding = FORBIDDING
        .iter()
        .find(|(file, value, _)| fs::read_to_string(file).is_ok_and(|text| text.trim() == *value));
    match forbidding {
        Some((_, _, setting)) => format!("allow user namespaces: `sudo sysctl -w {setting}`"),
        None => {
            let settings: Vec<String> =
                FORBIDDING.iter().map(|(_, _, setting)| format!("`{setting}`")).collect();
            format!("allow user namespaces (sysctl {})", settings.join(", "))
        }
    }
}
