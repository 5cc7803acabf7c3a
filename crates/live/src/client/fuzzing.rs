//! Fuzzing of the client: input from a false server.

use std::net::Shutdown;

use talkpath_kernel::clock::HostClock;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::udp_drops::UdpDrops;

use super::control::{PROBES, ReportLimits, ServerControl, SessionAnswer};
use crate::fuzzing::wire::{line, pair, say};
use crate::protocol::{Answer, HELLO_SIZE, Registrations};

/// Sends `said` to a client, after the first steps of an honest server. The low three bits of `how` say how
/// many steps. Asserts that the client ends with a short printable error, or with a report within its bounds.
pub(crate) fn hear(how: u8, said: &[u8]) {
    let Ok((far, near)) = pair() else { return };
    let mut all: Vec<u8> = honest(how & 7).iter().flat_map(line).collect();
    all.extend_from_slice(said);
    say(&far, &all);
    let _ = far.shutdown(Shutdown::Write);
    if let Err(why) = talk(near) {
        assert!(why.len() < 2 * HELLO_SIZE && !why.contains(char::is_control), "{why:?}");
    }
}

/// Carries out a run without flows, from hello to report.
fn talk(near: std::net::TcpStream) -> Result<(), String> {
    let host = HostClock::anchor();
    let session = SessionSpec { flows: Vec::new(), warm_up_ns: 0, duration_ns: 1_000_000_000, drain_ns: 0 };
    let mut server = ServerControl::greet(near, "fuzz", None).map_err(|why| why.to_string())?;
    match server.begin(&session, &[])? {
        SessionAnswer::Ready { warnings, .. } => {
            assert!(warnings.iter().all(|warning| !warning.contains(char::is_control)));
        }
        SessionAnswer::Refused(why) => return Err(why),
    }
    server.probe(host)?;
    server.go(0)?;
    server.ask_progress(host)?;
    for _ in 0..3 {
        server.receive_progress(0, host)?;
    }
    let _ = server.stop(1)?;
    let limits = ReportLimits::new(MAX_ROWS, None);
    assert!(server.fetch_log(0, &limits)?.row_count() <= MAX_ROWS);
    server.leave();
    Ok(())
}

/// Returns the answers of an honest server in its first `step` steps.
fn honest(step: u8) -> Vec<Answer> {
    let progress = || Answer::Progress { flows: Vec::new(), received_ns: 1, sent_ns: 2, trouble: None };
    let steps: [Vec<Answer>; 6] = [
        vec![Answer::Welcome { answer: None }],
        vec![Answer::Ready {
            flows: Vec::new(),
            warnings: Vec::new(),
            ports: vec![443],
            resume: "0".repeat(32),
        }],
        (0..PROBES).map(|number| Answer::Probe { number, received_ns: 1, sent_ns: 2 }).collect(),
        vec![Answer::Going { start_ns: 0 }],
        vec![progress(), progress(), progress()],
        vec![Answer::Stopped {
            lateness_ns: None,
            drops: UdpDrops::none(),
            registrations: Registrations::default(),
        }],
    ];
    steps.into_iter().take(step.into()).flatten().collect()
}

/// The number of rows that a report may have.
const MAX_ROWS: u64 = 100;
