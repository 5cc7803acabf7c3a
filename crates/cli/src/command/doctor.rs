//! `talkpath doctor`: what this machine can do, and how to get what is missing.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::num::NonZeroUsize;
use std::thread;

use crate::failure::Failure;
use crate::terminal::Terminal;

/// Prints one line a finding.
pub(crate) fn run(terminal: Terminal) -> Result<(), Failure> {
    let mut text = String::new();
    for Finding { subject, state, advice } in findings() {
        let _ = writeln!(text, "{subject:<16} {state}");
        if let Some(advice) = advice {
            let _ = writeln!(text, "{:<16} help: {advice}", "");
        }
    }
    terminal.result(&text)
}

struct Finding {
    subject: &'static str,
    state: String,
    advice: Option<&'static str>,
}

fn findings() -> Vec<Finding> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    vec![
        Finding { subject: "sim", state: format!("ready: {cores} repetitions at a time"), advice: None },
        live(),
        Finding {
            subject: "emu",
            state: "not built yet: this version has sim and live".to_owned(),
            advice: Some("use --arena sim, or --arena live with `talkpath serve` on another host"),
        },
        ip("IPv4", UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_ok()),
        ip("IPv6", UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()),
        congestion_control(),
    ]
}

fn live() -> Finding {
    Finding {
        subject: "live",
        state: "ready: UDP and TCP of this kernel".to_owned(),
        advice: Some("run `talkpath serve` on another host, then `talkpath compare --to HOST` here"),
    }
}

fn ip(subject: &'static str, works: bool) -> Finding {
    match works {
        true => Finding { subject, state: "ready".to_owned(), advice: None },
        false => Finding {
            subject,
            state: "no socket can be opened".to_owned(),
            advice: Some("live runs use the other one where both hosts have it"),
        },
    }
}

/// What `cc = ...` may name in a live run on this machine.
fn congestion_control() -> Finding {
    let subject = "TCP cc";
    match fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control") {
        Ok(list) => Finding { subject, state: format!("this kernel has {}", list.trim()), advice: None },
        Err(why) => Finding {
            subject,
            state: format!("unknown: {why}"),
            advice: Some("live runs need Linux to choose a congestion control"),
        },
    }
}
