//! Fuzzing of the server: input from a stranger, from a guest after its handshake, or from somebody who
//! changes a guest's bytes on the path.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use talkpath_kernel::alarm::Alarm;
use talkpath_kernel::clock::HostClock;
use talkpath_kernel::end::{EndContext, EndPlace, QuicConnections, SharedEnd};
use talkpath_kernel::log::RowBudget;
use talkpath_kernel::spec::{FlowSpec, SessionSpec};
use talkpath_kernel::threads::Punctuality;
use talkpath_model::Receiver;
use talkpath_units::Seed;
use talkpath_wire::machine::Machines;

use super::handshake::{ExpectedMessage, ReadResult, Stranger};
use super::origin::Shares;
use super::resumptions::Resumptions;
use super::{Limits, Shared, handshake, session};
use crate::fuzzing::wire::{heard, key, line, pair, say};
use crate::protocol::{Answer, Control, OPENING_LIMIT, Request, VERSION};
use crate::seal::{Opening, Seal};

/// The bit that gives the server a key.
pub(crate) const KEYED: u8 = 1;
/// The bit that lets a valid handshake go before the input.
pub(crate) const INTRODUCED: u8 = 2;
/// The bit that seals the input with the keys of the handshake. Without it the input is sent as it is.
pub(crate) const GUEST: u8 = 4;
/// The sizes of the pieces in which the input is sent, bytes. The two bits above [`GUEST`] choose one.
const PIECES: [usize; 4] = [usize::MAX, 1, 7, 100];

/// Sends `said` to a server, and returns whether a session begins. Panics if a session begins without the
/// key, or if the server answers with more bytes than it was sent.
pub(crate) fn hear(how: u8, said: &[u8], machines: Machines) -> bool {
    let is_keyed = how & KEYED != 0;
    let shared = server(is_keyed);
    let Ok((far, near)) = pair() else { return false };
    let Ok(control) = Control::new(near, OPENING_LIMIT) else { return false };
    let from = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut stranger = Stranger { control, from, expected: ExpectedMessage::Hello, deadline_ns: i64::MAX };
    let mut seal = None;
    if how & INTRODUCED != 0 {
        let opening = is_keyed.then(|| Opening::new(key()).ok()).flatten();
        say(&far, &line(&Request::hello(VERSION, opening.as_ref().map_or("", Opening::word))));
        let ReadResult::Waiting(welcomed) = handshake::read(stranger, shared) else {
            panic!("an honest hello is welcome")
        };
        stranger = welcomed;
        let welcome = heard(&far);
        seal = opening.map(|opening| finish(opening, &welcome));
    }
    let mut wire = Vec::new();
    match &mut seal {
        Some(seal) if how & GUEST != 0 => seal.seal(said, &mut wire).expect("a few pieces"),
        _ => wire.extend_from_slice(said),
    }
    let may_begin = !is_keyed || (how & INTRODUCED != 0 && how & GUEST != 0);
    let (mut sent, mut answered, mut begins) = (0, 0, false);
    for piece in wire.chunks(PIECES[usize::from(how >> 3 & 3)]) {
        sent += say(&far, piece);
        let next = handshake::read(stranger, shared);
        answered += heard(&far).len();
        match next {
            ReadResult::Waiting(waiting) => stranger = waiting,
            ReadResult::Session(_, spec) => {
                assert!(may_begin, "a session without the key: {spec:?}");
                take(&spec, machines);
                begins = true;
                break;
            }
            ReadResult::Resumption(..) => {
                assert!(may_begin, "a session is continued without the key");
                break;
            }
            ReadResult::FlowConnection(..) | ReadResult::Refused(_) | ReadResult::Done => break,
        }
    }
    assert!(answered <= sent, "{answered} B for {sent} B");
    begins
}

/// Checks the session `spec` against the default limits. If the session is let in, asserts that it keeps
/// within the limits and that the ends of its flows can be made.
pub(crate) fn take(spec: &SessionSpec, machines: Machines) {
    let limits = Limits::default();
    if session::admit::check(spec, &limits).is_err() {
        return;
    }
    let text = serde_json::to_vec(spec).expect("a session can be written");
    assert_eq!(serde_json::from_slice::<SessionSpec>(&text).ok().as_ref(), Some(spec), "as it was read");
    assert!((1..=limits.flows).contains(&spec.flows.len()));
    assert!(spec.message_bound() <= limits.rows && spec.payload_rate() <= limits.rate_bps);
    let host = HostClock::anchor();
    let common = EndContext {
        clock: host.run_from(host.now_ns().saturating_sub(NOW_NS)),
        budget: RowBudget::new(MAX_ROWS),
        alarm: Arc::<Alarm>::default(),
        connections: QuicConnections::default(),
        machines,
    };
    for (index, flow) in spec.flows.iter().map(FlowSpec::served).enumerate() {
        let seed = Seed::new(1);
        let is_sender = !flow.is_up;
        let place = EndPlace {
            index,
            is_sender,
            is_client: false,
            token: 7,
            tag_key: None,
            has_trains: true,
            seed,
            quic_keys: None,
        };
        let end = SharedEnd::new(spec, &flow, &place, Receiver::default(), &common);
        // A server counts the memory of a large file before it makes the end. This test makes no large file.
        let end = if flow.held_bytes(false) <= MAX_FILE { end.receiving_file(false) } else { end };
        let mut end = end.lock();
        let _ = (end.poll_timeout(), end.progress());
        end.finish();
        // No connection was opened, so each message that was due has a row. The budget does not pay for these
        // rows: there are at most as many as the session has messages, and the server's limit bounds those.
        assert!(end.log.held() <= spec.message_bound() + 1, "{} rows", end.log.held());
        assert!(end.log.chunks().count() >= 1);
    }
}

/// Returns the seal of a client whose hello the server has welcomed.
fn finish(opening: Opening, answer: &[u8]) -> Seal {
    match serde_json::from_slice(answer) {
        Ok(Answer::Welcome { answer: Some(answer) }) => opening.finish(&answer).expect("both hold the key"),
        other => panic!("a hello with the key is answered by {other:?}"),
    }
}

/// Returns a server without sockets.
fn server(is_keyed: bool) -> &'static Arc<Shared> {
    static SERVERS: OnceLock<[Arc<Shared>; 2]> = OnceLock::new();
    let new = |is_keyed: bool| {
        let limits = Limits::default();
        Arc::new(Shared {
            key: is_keyed.then(|| key().clone()),
            sockets: Vec::new(),
            limits,
            keep: None,
            log: None,
            punctuality: Punctuality { real_time: false, spins: false },
            machines: Machines::default(),
            seats: Shares::new(limits.sessions as u64),
            memory: Shares::new(limits.held_bytes),
            kept_bytes: AtomicU64::new(0),
            offers_ports: false,
            flows: Mutex::default(),
            resumptions: Resumptions::default(),
            quic_ids: super::IdTable::default(),
            limited_log: Mutex::default(),
            stop: AtomicBool::new(false),
        })
    };
    &SERVERS.get_or_init(|| [new(false), new(true)])[usize::from(is_keyed)]
}

/// How long ago the run began. We chose it so that some messages are due.
const NOW_NS: i64 = 1_000_000_000;
/// The number of rows that a session may keep in this test.
const MAX_ROWS: u64 = 1000;
/// The largest file that this test makes an end for, bytes.
const MAX_FILE: u64 = 1 << 16;
