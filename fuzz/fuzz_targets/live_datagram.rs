//! Datagrams for the end of a flow over UDP or over DCCP, with and without a key.
//!
//! The first byte chooses the flow and the key; then each record is a length (1 B) and so many bytes of a
//! datagram. Of an odd length the datagram becomes a message of the flow: its token and its size are right,
//! so that the fuzzer need not guess them. No datagram costs more rows than its end may keep, and with a key
//! none is counted.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use talkpath_fuzz::{MACHINES, session};
use talkpath_kernel::clock::HostClock;
use talkpath_kernel::end::{EndContext, EndPlace, QuicConnections, SharedEnd};
use talkpath_kernel::log::RowBudget;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::sys::Received;
use talkpath_kernel::tag::TagKey;
use talkpath_kernel::wire::read_registration;
use talkpath_model::Receiver;
use talkpath_units::Seed;

/// Flows whose messages are large enough for a tag come first.
static SESSION: LazyLock<SessionSpec> = LazyLock::new(|| session(FLOWS).1);

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let index = usize::from(first & 7) % SESSION.flows.len();
    let (is_keyed, is_sender) = (first & 0x10 != 0, first & 0x20 != 0);
    let flow = SESSION.flows[index].served();
    let host = HostClock::anchor();
    let budget = RowBudget::new(MAX_ROWS);
    let common = EndContext {
        clock: host.run_from(host.now_ns() - 1_000_000_000),
        budget: Arc::clone(&budget),
        alarm: Arc::default(),
        connections: QuicConnections::default(),
        machines: MACHINES,
    };
    let tag_key = is_keyed.then_some(TagKey([7; 32]));
    let place = EndPlace {
        index,
        is_sender,
        is_client: false,
        token: TOKEN,
        tag_key,
        has_trains: true,
        seed: Seed::new(1),
        quic_keys: None,
    };
    let end = SharedEnd::new(&SESSION, &flow, &place, Receiver::default(), &common).receiving_file(false);
    let size = usize::try_from(flow.constant_size().unwrap_or(160)).unwrap_or(160);
    while let Some((&length, more)) = rest.split_first() {
        let (said, after) = more.split_at(more.len().min(usize::from(length)));
        rest = after;
        let mut datagram = said.to_vec();
        if length % 2 == 1 {
            datagram.resize(size, 0);
            if size >= 8 {
                datagram[..4].copy_from_slice(&TOKEN.to_be_bytes());
            }
        }
        let _ = read_registration(&datagram);
        let (from, to, tos, ttl) = (None, None, Some(length), Some(length));
        end.handle_datagram(&Received { from, to, stamp_ns: None, tos, ttl, payload: &datagram });
    }
    let mut end = end.lock();
    end.finish();
    assert!(end.log.held() <= MAX_ROWS + 1, "{} rows", end.log.held());
    let received = end.progress().received;
    assert!(!is_keyed || size < 16 || received == 0, "{received} messages without their tag");
});

const TOKEN: u32 = 0x0102_0304;
const MAX_ROWS: u64 = 2000;
const FLOWS: &str = r#"
[flow.call]
transport = "udp"
workload = { kind = "voice", echo = true }

[flow.dccp]
transport = "dccp-ccid2"
workload = { kind = "voice", echo = true }

[flow.one-way]
transport = "udp"
workload = { kind = "cbr", rate = "800 kbps", size = "100 B" }

[flow.down]
transport = "udp"
direction = "down"
workload = { kind = "burst", count = 5000, size = "64 B" }

[flow.short]
transport = "udp"
workload = { kind = "cbr", rate = "8 kbps", size = "5 B", echo = true }

[flow.byte]
transport = "udp"
workload = { kind = "cbr", rate = "8 kbps", size = "1 B", echo = true }
"#;
