//! What this machine can do for the real arenas, as `talkpath doctor` prints it.

use std::os::fd::AsFd;
use std::{fs, io};

use socket2::{Domain, Socket, Type};
use talkpath_arena::ArenaError;
use talkpath_kernel::host::fork;
use talkpath_kernel::stolen::StolenTime;
use talkpath_kernel::sys::{SocketSwitch, switch_on};

use crate::preemption::{PreemptionModel, preemption};
use crate::world::{Means, World, WorldPlan};

/// The capabilities of this machine. An `Err` says to a person what is missing and how to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Capabilities {
    /// The means by which network namespaces with cables can be made. The emulated arena needs nothing else.
    pub emulation: Result<Means, String>,
    /// The number of user namespaces that a user may have. Without any, emulation needs root.
    pub user_namespaces: Result<u64, String>,
    /// `Ok` if threads can be scheduled in real time, and the emulator's thread one step above the others.
    pub real_time: Result<(), String>,
    /// When a real-time thread gets the processor from another thread's system call. `None` if unknown.
    pub preemption: Option<PreemptionModel>,
    /// The share of all processors' time since the machine's start that a hypervisor gave to others, 0 to 1.
    /// `None` if unknown.
    pub stolen_share: Option<f64>,
    /// True if the processor says that this is a virtual machine (x86's `hypervisor` flag).
    pub is_virtual: bool,
    /// `Ok` if the kernel stamps arriving datagrams.
    pub kernel_stamps: Result<(), String>,
    /// `Ok` if the kernel reports DSCP, ECN field and TTL of arriving datagrams.
    pub ip_headers: Result<(), String>,
    /// The congestion controls that a socket may select now. The kernel may have more as modules.
    pub congestion_controls: Vec<String>,
    /// The congestion control that sockets have by default.
    pub default_congestion_control: Option<String>,
    /// The source from which the kernel reads the time. `tsc` is quick, `hpet` and `acpi_pm` are not.
    pub clock_source: Option<String>,
    /// The kernel's release.
    pub kernel: String,
}

/// Finds out what this machine can do. Leaves nothing behind; takes some milliseconds.
pub fn probe() -> Capabilities {
    let congestion_controls = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    Capabilities {
        emulation: World::build(&WorldPlan::bare()).map(|world| world.means).map_err(|error| match error {
            ArenaError::Unavailable { what, how } => format!("{what}; {how}"),
            other => other.to_string(),
        }),
        user_namespaces: user_namespaces(),
        real_time: real_time(),
        preemption: preemption(),
        stolen_share: StolenTime::since_boot().share(),
        is_virtual: is_virtual(&read("/proc/cpuinfo").unwrap_or_default()),
        kernel_stamps: check_options(&[SocketSwitch::KernelStamps]),
        ip_headers: check_options(&[SocketSwitch::MarksV4, SocketSwitch::TtlV4]),
        congestion_controls: congestion_controls
            .map(|names| names.split_ascii_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        default_congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
    }
}

fn user_namespaces() -> Result<u64, String> {
    let max = read("/proc/sys/user/max_user_namespaces")
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| "this kernel has none (CONFIG_USER_NS)".to_owned())?;
    let forbidding = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    for (path, bad, remedy) in forbidding {
        if read(path).as_deref() == Some(bad) {
            return Err(format!("forbidden without root by {path}; `{remedy}` allows them"));
        }
    }
    if max == 0 {
        Err("forbidden; `sysctl user.max_user_namespaces=1000` allows them".to_owned())
    } else {
        Ok(max)
    }
}

fn real_time() -> Result<(), String> {
    // The priority is tried in a new thread, which ends afterwards.
    let raised = std::thread::Builder::new()
        .spawn(fork::take_emulator_priority)
        .and_then(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
    raised.map_err(|error| {
        format!("{error}; run as root, or allow it with `ulimit -r 2` (limits.conf: rtprio 2)")
    })
}

/// Checks that a UDP socket takes these options. Returns the first option that it does not take, and the
/// reason.
fn check_options(options: &[SocketSwitch]) -> Result<(), String> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(|error| error.to_string())?;
    options.iter().try_for_each(|option| {
        switch_on(socket.as_fd(), *option).map_err(|error| format!("{}: {error}", option.name()))
    })
}

fn is_virtual(cpu_info: &str) -> bool {
    let flags = cpu_info.lines().filter(|line| line.starts_with("flags"));
    flags.flat_map(str::split_ascii_whitespace).any(|flag| flag == "hypervisor")
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processors_flags_say_whether_it_is_virtual() {
        assert!(is_virtual("processor\t: 0\nflags\t\t: fpu tsc hypervisor lm\nbugs\t: none"));
        assert!(!is_virtual("processor\t: 0\nmodel name\t: hypervisor\nflags\t\t: fpu tsc lm"));
        assert!(!is_virtual(""));
    }
}
