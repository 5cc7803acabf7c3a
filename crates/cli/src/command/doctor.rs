//! `talkpath doctor` says what this machine can do, and how to get what is missing.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::num::NonZeroUsize;
use std::thread;

use serde::Serialize;
use talkpath_commands::args::Common;
use talkpath_commands::failure::Failure;
use talkpath_commands::terminal::{self, Terminal};
use talkpath_emu::{Capabilities, Means, Preemption, probe};
use talkpath_experiment::json::json;
use talkpath_measure::STOLEN_SHARE_TOLD;
use talkpath_system::this_kernel::this_kernel;
use talkpath_units::counted;

/// Prints a line for each finding, or with `--json` all findings as an object.
pub(crate) fn run(common: &Common, terminal: Terminal) -> Result<(), Failure> {
    if common.json() {
        return terminal::print(&json(&Findings {
            talkpath: env!("CARGO_PKG_VERSION"),
            findings: findings(),
        }));
    }
    let mut text = String::new();
    for Finding { subject, state, advice } in findings() {
        let _ = writeln!(text, "{subject:<16} {state}");
        if let Some(advice) = advice {
            let _ = writeln!(text, "{:<16} help: {advice}", "");
        }
    }
    terminal.result(&text)
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Findings {
    talkpath: &'static str,
    findings: Vec<Finding>,
}

/// What was found about one ability of this machine.
#[derive(Serialize)]
struct Finding {
    subject: &'static str,
    /// The state begins with `ready` if the machine has the ability.
    state: String,
    /// What the user can do about it.
    advice: Option<&'static str>,
}

fn findings() -> Vec<Finding> {
    let machine = probe();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    vec![
        Finding {
            subject: "sim",
            state: format!("ready: {} at a time", counted(cores, "repetition")),
            advice: None,
        },
        live(),
        emu(&machine),
        real_time(&machine),
        preemption(&machine),
        hypervisor(&machine),
        kernel_stamps(&machine),
        ip_headers(&machine),
        clock_source(&machine),
        ip("IPv4", UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_ok()),
        ip("IPv6", UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()),
        congestion_control(&machine),
        kernel_profile(),
    ]
}

fn live() -> Finding {
    Finding {
        subject: "live",
        state: "ready: UDP and TCP of this kernel".to_owned(),
        advice: Some("run `talkpath serve --open` on another host, then `talkpath compare --to HOST` here"),
    }
}

fn ip(subject: &'static str, works: bool) -> Finding {
    if works {
        return Finding { subject, state: "ready".to_owned(), advice: None };
    }
    Finding {
        subject,
        state: "no socket can be opened".to_owned(),
        advice: Some("live runs use the other one where both hosts have it"),
    }
}

fn emu(machine: &Capabilities) -> Finding {
    let subject = "emu";
    match &machine.emulation {
        Ok(means) => {
            let by = match means {
                Means::Privilege => "by privilege",
                Means::UserNamespace => "in a user namespace",
            };
            let state = format!("ready: network namespaces {by}, Linux {}", machine.kernel);
            Finding { subject, state, advice: None }
        }
        Err(why) => Finding {
            subject,
            state: format!("not here: {why}"),
            advice: Some(
                "it needs Linux, veth devices, packet sockets, and root's capabilities or user namespaces",
            ),
        },
    }
}

fn real_time(machine: &Capabilities) -> Finding {
    let subject = "real time";
    match &machine.real_time {
        Ok(()) => {
            Finding { subject, state: "ready: timed threads run before others".to_owned(), advice: None }
        }
        Err(why) => Finding {
            subject,
            state: format!("not here: {why}"),
            advice: Some("real-time threads keep a busy machine out of the figures"),
        },
    }
}

/// Whether a system call of another process can delay a thread that is due to run. This matters on a machine
/// that is not idle.
fn preemption(machine: &Capabilities) -> Finding {
    let subject = "preemption";
    let Some(model) = machine.preemption else {
        return Finding {
            subject,
            state: "unknown".to_owned(),
            advice: Some("the kernel's configuration tells (CONFIG_PREEMPT..., in /boot or /proc/config.gz)"),
        };
    };
    let (state, is_late) = match model.kind {
        Preemption::RealTime => ("ready: PREEMPT_RT, a real-time thread waits for nobody", false),
        Preemption::Full => {
            ("ready: full, a real-time thread does not wait for a neighbour's system call", false)
        }
        Preemption::Lazy => {
            ("ready: lazy, a real-time thread does not wait for a neighbour's system call", false)
        }
        Preemption::Voluntary => {
            ("voluntary: a neighbour's long system call can hold a real-time thread up", true)
        }
        Preemption::None => {
            ("none: a neighbour's long system call holds a real-time thread up for milliseconds", true)
        }
    };
    let advice = if model.is_dynamic {
        "boot with preempt=full, or as root write full to /sys/kernel/debug/sched/preempt; else leave the \
         machine alone during a run"
    } else {
        "take a kernel with CONFIG_PREEMPT or PREEMPT_LAZY, or leave the machine alone during a run"
    };
    Finding { subject, state: state.to_owned(), advice: is_late.then_some(advice) }
}

/// How much processor time a hypervisor has taken. No setting of this machine can change that.
fn hypervisor(machine: &Capabilities) -> Finding {
    let subject = "hypervisor";
    let (state, is_late) = match machine.stolen_share {
        None => ("unknown".to_owned(), false),
        Some(0.0) => ("ready: none, or it has taken no processor time".to_owned(), false),
        Some(share) => {
            let state =
                format!("has given {:.1} % of the processors' time to others since the start", share * 100.0);
            (state, share >= STOLEN_SHARE_TOLD)
        }
    };
    let advice = match (is_late, machine.is_virtual) {
        (true, _) => Some(
            "real-time runs tell how much it took of each; one packet in a hundred late is its doing from 1 % on",
        ),
        (false, true) => Some(
            "a virtual processor that sleeps comes back late: `--keep-awake` keeps them from it in emu and live",
        ),
        (false, false) => None,
    };
    Finding { subject, state, advice }
}

fn kernel_stamps(machine: &Capabilities) -> Finding {
    let subject = "kernel stamps";
    match &machine.kernel_stamps {
        Ok(()) => {
            Finding { subject, state: "ready: datagrams are stamped as they arrive".to_owned(), advice: None }
        }
        Err(why) => Finding {
            subject,
            state: format!("not here: {why}"),
            advice: Some("arrivals are stamped when they are read, which is late on a busy machine"),
        },
    }
}

fn ip_headers(machine: &Capabilities) -> Finding {
    let subject = "IP headers";
    match &machine.ip_headers {
        Ok(()) => {
            let state = "ready: DSCP, ECN field and TTL of datagrams are read".to_owned();
            Finding { subject, state, advice: None }
        }
        Err(why) => Finding {
            subject,
            state: format!("not here: {why}"),
            advice: Some("what of DSCP, ECN field and TTL cannot be read is null in emu and live"),
        },
    }
}

fn clock_source(machine: &Capabilities) -> Finding {
    let subject = "clock source";
    let source = machine.clock_source.as_deref();
    Finding {
        subject,
        state: source.unwrap_or("unknown").to_owned(),
        advice: matches!(source, Some("hpet" | "acpi_pm"))
            .then_some("it is slow to read: tsc or kvm-clock is better"),
    }
}

/// The values that `kernel = "this"` stands for.
fn kernel_profile() -> Finding {
    let subject = "kernel = \"this\"";
    match this_kernel() {
        Ok(own) => Finding { subject, state: format!("ready: {}", own.values_text()), advice: None },
        Err(why) => Finding {
            subject,
            state: format!("not here: {why}"),
            advice: Some("name another profile; `talkpath check --keys` lists them"),
        },
    }
}

/// The congestion controls that the key `cc` may name in `emu` and `live` on this machine.
fn congestion_control(machine: &Capabilities) -> Finding {
    let subject = "TCP cc";
    match machine.congestion_controls.as_slice() {
        [] => Finding {
            subject,
            state: "unknown".to_owned(),
            advice: Some("real-time runs need Linux to choose a congestion control"),
        },
        known => Finding { subject, state: format!("this kernel has {}", known.join(" ")), advice: None },
    }
}
