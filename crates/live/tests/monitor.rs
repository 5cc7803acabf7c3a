//! Session after session: no gap at the borders, and a far end that goes and comes back.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration as StdDuration;

use crate::support::quiet::undisturbed;
use crate::support::{Serving, echoed, scenario};
use talkpath_arena::{ArenaError, MonitorEvent, MonitorSession};
use talkpath_kernel::clock::monotonic;
use talkpath_live::{Key, Limits, LiveOptions, Monitor};

/// Monitors `host` in sessions of `ms`; `handle` says when it is enough.
fn monitor(host: &str, ms: u64, handle: &mut dyn FnMut(&MonitorEvent) -> bool) -> Vec<MonitorEvent> {
    let (seen, ended) = monitor_with(host, ms, None, handle);
    ended.unwrap();
    seen
}

/// The same with a key, and how it ended.
fn monitor_with(
    host: &str,
    ms: u64,
    key: Option<Key>,
    handle: &mut dyn FnMut(&MonitorEvent) -> bool,
) -> (Vec<MonitorEvent>, Result<(), ArenaError>) {
    let scenario = scenario(ms, vec![echoed("call", "udp")]);
    let (interrupt, until) = (AtomicBool::new(false), AtomicI64::new(0));
    let monitor = Monitor {
        host,
        options: LiveOptions { key, ..LiveOptions::default() },
        scenario: &scenario,
        series: None,
        interrupt: &interrupt,
        measured_until_ns: &until,
    };
    let mut seen = Vec::new();
    let ended = std::thread::scope(|scope| {
        let (is_running, ends) = channel::<()>();
        let interrupt = &interrupt;
        // What would go on for ever fails a test instead.
        scope.spawn(move || {
            if ends.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                interrupt.store(true, Ordering::Relaxed);
            }
        });
        let ended = monitor.run(&mut |happening| {
            if handle(&happening) {
                interrupt.store(true, Ordering::Relaxed);
            }
            seen.push(happening);
        });
        drop(is_running);
        ended
    });
    (seen, ended)
}

fn key(text: &str) -> Key {
    Key::new(text.as_bytes()).unwrap()
}

/// Longer than any of these monitors takes on a busy machine.
const PATIENCE: StdDuration = StdDuration::from_secs(30);
const ONE_KEY: &str = "0123456789abcdef0123456789abcdef";
const ANOTHER_KEY: &str = "fedcba9876543210fedcba9876543210";

#[test]
fn a_key_that_was_never_right_ends_it_and_is_no_outage() {
    let server = Serving::at("127.0.0.1:0", Some(key(ONE_KEY)), Limits::default());
    let host = server.address.to_string();
    for (ours, says) in [(Some(key(ANOTHER_KEY)), "the key is not this server's"), (None, "asks for a key")] {
        let (seen, ended) = monitor_with(&host, 400, ours, &mut |_| true);
        let Err(ArenaError::Unwelcome(why)) = ended else { panic!("{ended:?}") };
        assert!(why.contains(says) && seen.is_empty(), "{why}: {seen:?}");
    }
    // A key for a server without one.
    let open = Serving::loopback();
    let (_, ended) = monitor_with(&open.address.to_string(), 400, Some(key(ONE_KEY)), &mut |_| true);
    assert!(matches!(ended, Err(ArenaError::Unwelcome(_))), "{ended:?}");
}

#[test]
fn a_key_that_was_right_and_is_changed_is_an_outage_until_it_is_changed_back() {
    undisturbed(|| {
        let mut server = Some(Serving::at("127.0.0.1:0", Some(key(ONE_KEY)), Limits::default()));
        let host = server.as_ref().unwrap().address.to_string();
        let mut restart = |with: &str| {
            server = None;
            server = Some(Serving::at(&host, Some(key(with)), Limits::default()));
        };
        let (mut is_changed, mut was_refused) = (false, false);
        let (seen, ended) = monitor_with(&host, 400, Some(key(ONE_KEY)), &mut |happening| match happening {
            MonitorEvent::Measured(_) if !is_changed => {
                restart(ANOTHER_KEY);
                is_changed = true;
                false
            }
            MonitorEvent::Down { .. } => {
                // The first attempt after it meets the other key.
                std::thread::sleep(StdDuration::from_millis(300));
                restart(ONE_KEY);
                was_refused = true;
                false
            }
            MonitorEvent::Measured(measured) => was_refused && measured.cut.is_none(),
            MonitorEvent::Up { .. } => false,
        });
        ended.unwrap();
        assert!(seen.iter().any(|it| matches!(it, MonitorEvent::Up { .. })), "{seen:?}");
    });
}

#[test]
fn a_plan_that_was_never_taken_ends_it_though_the_far_end_came_later() {
    let host = Serving::loopback().address.to_string();
    let mut server = None;
    let (seen, ended) = monitor_with(&host, 400, None, &mut |happening| {
        // The echo of a call takes 128 kbps.
        let limits = Limits { rate_bps: 100_000, ..Limits::default() };
        server.get_or_insert_with(|| Serving::at(&host, None, limits));
        !matches!(happening, MonitorEvent::Down { .. })
    });
    let Err(ArenaError::Unsupported(why)) = ended else { panic!("{ended:?}") };
    assert!(why.contains("128000 bps"), "{why}");
    assert!(matches!(seen[..], [MonitorEvent::Down { .. }]), "{seen:?}");
}

#[test]
fn an_outage_is_told_to_be_over_when_the_session_behind_it_begins() {
    undisturbed(|| {
        let host = Serving::loopback().address.to_string();
        let mut server = None;
        let mut late_ns = None;
        monitor(&host, 2_000, &mut |happening| match happening {
            MonitorEvent::Down { .. } => {
                server = Some(Serving::at(&host, None, Limits::default()));
                false
            }
            MonitorEvent::Up { to_ns, .. } => {
                late_ns = Some(monotonic() - to_ns);
                true
            }
            MonitorEvent::Measured(_) => true,
        });
        let late_ns = late_ns.unwrap();
        assert!((0..1_000_000_000).contains(&late_ns), "{late_ns} ns after its beginning");
    });
}

fn sessions(seen: &[MonitorEvent]) -> Vec<&MonitorSession> {
    let session = seen.iter().filter_map(|happening| match happening {
        MonitorEvent::Measured(measured) => Some(&**measured),
        MonitorEvent::Down { .. } | MonitorEvent::Up { .. } => None,
    });
    session.collect()
}

#[test]
fn sessions_follow_each_other_to_the_nanosecond_and_each_message_is_in_one() {
    undisturbed(|| {
        let server = Serving::loopback();
        let host = server.address.to_string();
        let seen = monitor(
            &host,
            400,
            &mut |happening| matches!(happening, MonitorEvent::Measured(measured) if measured.number == 3),
        );
        let sessions = sessions(&seen);
        assert_eq!(seen.len(), sessions.len(), "no outage: {seen:?}");
        assert!(sessions.len() >= 5, "the last one was cut short by the user: {}", sessions.len());
        for pair in sessions.windows(2) {
            let length = i64::try_from(pair[0].length.as_nanos()).unwrap();
            assert_eq!(pair[1].start_ns, pair[0].start_ns + length, "session {}", pair[1].number);
        }
        // Frames stand on one grid of 20 ms, across all borders.
        let mut due = Vec::new();
        for session in &sessions[..4] {
            let record = session.record.as_ref().unwrap();
            let messages = &record.flows[0].forward.messages;
            assert_eq!((messages.len(), &session.cut), (20, &None));
            due.extend(messages.iter().map(|row| session.start_ns + row.due.as_nanos() as i64));
        }
        assert!(due.windows(2).all(|pair| pair[1] - pair[0] == 20_000_000), "{due:?}");
    });
}

#[test]
fn a_server_that_goes_and_comes_back_is_an_outage_with_its_ends() {
    undisturbed(|| {
        let mut server = Some(Serving::loopback());
        let host = server.as_ref().unwrap().address.to_string();
        let mut was_down = false;
        let seen = monitor(&host, 400, &mut |happening| match happening {
            MonitorEvent::Measured(measured) if measured.number == 1 && server.is_some() && !was_down => {
                server.take().unwrap().kill();
                false
            }
            MonitorEvent::Down { .. } if server.is_none() => {
                was_down = true;
                std::thread::sleep(StdDuration::from_millis(300));
                server = Some(Serving::at(&host, None, Limits::default()));
                false
            }
            MonitorEvent::Measured(measured) => was_down && measured.cut.is_none(),
            MonitorEvent::Down { .. } | MonitorEvent::Up { .. } => false,
        });
        let down = seen.iter().position(|it| matches!(it, MonitorEvent::Down { .. })).unwrap();
        let MonitorEvent::Down { from_ns: down_ns, why } = &seen[down] else { unreachable!() };
        assert!(why.contains(&host) || why.contains("refused") || why.contains("closed"), "{why}");
        let before = sessions(&seen[..down]);
        let last = before.last().unwrap();
        assert_eq!(*down_ns, last.start_ns + last.length.as_nanos() as i64);
        let MonitorEvent::Up { from_ns, to_ns, .. } = &seen[down + 1] else { panic!("{seen:?}") };
        let after = sessions(&seen[down..]);
        assert_eq!((*from_ns, *to_ns), (*down_ns, after[0].start_ns));
        assert!(to_ns > from_ns && after[0].record.is_some());
        // Every row of a session that was cut short was due before its end.
        for session in sessions(&seen) {
            let rows = session.record.iter().flat_map(|record| &record.flows[0].forward.messages);
            assert!(rows.into_iter().all(|row| row.due.as_nanos() < session.length.as_nanos()));
        }
    });
}

#[test]
fn a_far_end_that_is_not_there_at_first_is_waited_for() {
    undisturbed(|| {
        let host = Serving::loopback().address.to_string();
        let mut server = None;
        let seen = monitor(&host, 400, &mut |happening| match happening {
            MonitorEvent::Down { .. } => {
                server = Some(Serving::at(&host, None, Limits::default()));
                false
            }
            MonitorEvent::Measured(_) => true,
            MonitorEvent::Up { .. } => false,
        });
        assert!(
            matches!(seen[..2], [MonitorEvent::Down { .. }, MonitorEvent::Up { attempts: 1, .. }]),
            "{seen:?}"
        );
    });
}
