//! Any rows as a far host's report of a flow: they are joined with what this host saw, and summed up.
//!
//! The first byte chooses the flow. If its top bit is set, the rest is JSON as it comes over the control
//! connection; else each record is a kind (1 B), a number (2 B) and a time in ms (2 B), of which that JSON is
//! made. A far host may say anything: no message that this host did not send gets a row of its own.
#![no_main]

use std::fmt::Write as _;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use talkpath_flow::Side;
use talkpath_fuzz::session;
use talkpath_kernel::join::{RunEnd, flow_record, series};
use talkpath_kernel::log::{Chunk, EndLog};
use talkpath_kernel::spec::SessionSpec;
use talkpath_measure::ReadMessages;
use talkpath_measure::summarise::summarise_flow;
use talkpath_model::Scenario;
use talkpath_units::{Bytes, Instant};

static SESSION: LazyLock<(Scenario, SessionSpec)> = LazyLock::new(|| session(FLOWS));

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, said)) = bytes.split_first() else { return };
    let (scenario, spec) = &*SESSION;
    let index = usize::from(first & 7) % spec.flows.len();
    let (flow, spec) = (&scenario.flows[index], &spec.flows[index]);
    let text = if first & 0x80 == 0 { rows(said) } else { String::from_utf8_lossy(said).into_owned() };
    let Ok(rows) = serde_json::from_str::<Chunk>(&text) else { return };
    let near = near(spec.is_up, spec.has_echo(), spec.features().keeps_messages);
    let (side, bound) = match spec.is_up {
        true => (Side::Far, MESSAGES),
        false => (Side::Near, rows.sent_rows() as u64),
    };
    let far = EndLog::from_chunk(&rows, side, spec, bound, &Instant::from_nanos);
    let (sender, receiver) = if spec.is_up { (&near, &far) } else { (&far, &near) };
    let window = Instant::ZERO..Instant::from_secs(1);
    let end = if first & 0x40 == 0 { RunEnd::Drained } else { RunEnd::Cut };
    let record = flow_record(flow, spec, Some(sender), Some(receiver), &window, end, first & 0x20 == 0);
    let sent = if spec.is_up { MESSAGES } else { bound };
    assert!(record.forward.messages.len() as u64 <= sent);
    // This host's own echoes have their rows, even if the far one denies what it sent.
    assert!(record.echo.as_ref().is_none_or(|echo| echo.messages.len() as u64 <= sent.max(MESSAGES)));
    let _ = series("fuzz", sender);
    let _ = serde_json::to_string(&summarise_flow(&record, &window));
});

/// What this host's end saw of 20 messages of 160 B.
fn near(is_sender: bool, is_echo: bool, keeps_messages: bool) -> EndLog {
    let side = if is_sender { Side::Near } else { Side::Far };
    let messages = if keeps_messages { ReadMessages::Whole } else { ReadMessages::OfSize(Bytes::new(160)) };
    let mut log = EndLog::new(side, is_echo, messages);
    let at = |seq: u64| Instant::from_millis(20 * seq);
    if let Some(tap) = log.taps.written_by(side) {
        for seq in 0..MESSAGES {
            tap.on_due(seq, Bytes::new(160), at(seq));
            match keeps_messages {
                true => tap.on_sent(seq, at(seq)),
                false => tap.on_sent_stream(seq, at(seq)),
            }
        }
    }
    if let Some(tap) = log.taps.read_by(side) {
        for seq in (0..MESSAGES).filter(|seq| seq % 7 != 3) {
            match keeps_messages {
                true => tap.on_received(seq, at(seq + 2)),
                false => drop(tap.on_read(Bytes::new(100), at(seq + 2))),
            }
        }
    }
    log
}

/// The JSON of the records in `bytes`.
fn rows(bytes: &[u8]) -> String {
    let mut lists: [String; 6] = Default::default();
    for record in bytes.chunks_exact(5) {
        let seq = u64::from(u16::from_be_bytes([record[1], record[2]]));
        let at = 1_000_000 * u64::from(u16::from_be_bytes([record[3], record[4]]));
        let (kind, place) =
            (usize::from(record[0] % 6), ["send_queue", "kernel", "inbox"][usize::from(record[0] / 6 % 3)]);
        let row = match kind {
            0 if record[0] & 0x80 == 0 => format!("[{seq},160,{at},{at},false]"),
            0 => format!("[{seq},160,{at},null,true]"),
            4 => format!("[{seq},\"{place}\"]"),
            5 => format!("[{at},{seq},4294967295,1,2,{seq},4,18446744073709551615]"),
            2 => format!("[{at},{seq}]"),
            _ => format!("[{seq},{at}]"),
        };
        let comma = if lists[kind].is_empty() { "" } else { "," };
        let _ = write!(lists[kind], "{comma}{row}");
    }
    let [sent, arrivals, reads, wires, drops, samples] = lists;
    format!(
        "{{\"sent\":[{sent}],\"arrivals\":[{arrivals}],\"reads\":[{reads}],\"wires\":[{wires}],\"drops\":[{drops}],\
         \"samples\":[{samples}],\"totals\":null}}"
    )
}

const MESSAGES: u64 = 20;
const FLOWS: &str = r#"
[flow.call]
transport = "udp"
workload = { kind = "voice", echo = true }

[flow.down]
transport = "udp"
direction = "down"
workload = { kind = "voice", echo = true }

[flow.stream]
transport = "tcp-nodelay"
workload = { kind = "voice", echo = true }

[flow.stream-down]
transport = "tcp"
direction = "down"
workload = { kind = "voice" }

[flow.dccp]
transport = "dccp-ccid2"
workload = { kind = "voice" }
"#;
