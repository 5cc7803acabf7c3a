//! The streams of RTP among the packets of a leg (`talkpath_measure::rtp` recognises them).
//!
//! Each stream is a flow of the record, with a message for each packet. A message is due at the time that the
//! packet's timestamp says. So the record's jitter is that of RFC 3550 §6.4.1, as a receiver computes it.

use talkpath_measure::rtp::{RtpSource, call_terms, static_type};
use talkpath_measure::{CallTerms, Codec, FlowInfo, FlowRecord, LegRecord, MessageRecord, Terms};
use talkpath_units::{Duration, Instant};

/// Makes the record of a stream, whose rows in its leg are among `rows`.
pub(super) fn record(source: &RtpSource, name: &str, group: String, rows: &[MessageRecord]) -> FlowRecord {
    let packets = source.packets().iter();
    let mut messages: Vec<MessageRecord> =
        packets.filter_map(|packet| rows.get(packet.row as usize).copied()).collect();
    for (message, due) in messages.iter_mut().zip(dues(source, rows)) {
        message.due = due;
    }
    // A sender may have changed the order of its packets before the path.
    messages.sort_by_key(|message| message.due);
    for (number, message) in (0..).zip(&mut messages) {
        message.seq = number;
    }
    let mut arrivals: Vec<(Instant, u64)> =
        messages.iter().filter_map(|message| Some((message.received?, message.seq))).collect();
    arrivals.sort_unstable();
    let info = FlowInfo {
        group,
        transport: "rtp".to_owned(),
        start: messages.first().map_or(Instant::ZERO, |message| message.due),
        terms: Terms { call: g711_terms(source), ..Terms::default() },
        ..FlowInfo::on_a_clock(name)
    };
    FlowRecord {
        forward: LegRecord {
            messages,
            arrivals: arrivals.into_iter().map(|(_, seq)| seq).collect(),
            ..LegRecord::default()
        },
        ..FlowRecord::new(info)
    }
}

/// The times that the timestamps say. The earliest packet, measured by its timestamp, entered the path when
/// it was due. Empty if the clock rate is not known: a packet is then due when it enters the path.
fn dues(source: &RtpSource, rows: &[MessageRecord]) -> Vec<Instant> {
    let entered = |row: u32| rows.get(row as usize).map_or(Instant::ZERO, |message| message.due);
    let sent: Vec<i128> =
        source.packets().iter().map(|packet| i128::from(entered(packet.row).as_nanos())).collect();
    let known = static_type(source.payload_type()).map(|meaning| meaning.clock_rate);
    let Some(rate) = known.or_else(|| source.clock_rate(&sent)) else { return Vec::new() };
    let due = |due_ns: i128| Instant::from_nanos(u64::try_from(due_ns).unwrap_or(0));
    source.due_times(rate, &sent).due_ns.into_iter().map(due).collect()
}

/// How the stream is rated: as a call with G.711 if the payload type says so (RFC 3551 §6).
fn g711_terms(source: &RtpSource) -> Option<CallTerms> {
    if !G711.contains(&source.payload_type()) {
        return None;
    }
    // A sample is a byte. Most packets have the same size.
    let mut sizes: Vec<u16> = source.packets().iter().map(|packet| packet.payload).collect();
    sizes.sort_unstable();
    let frame = Duration::from_micros(u64::from(*sizes.get(sizes.len() / 2)?) * 125);
    Some(call_terms(Codec::G711, frame))
}

/// The payload types of G.711 with μ-law and A-law (RFC 3551 §6).
const G711: [u8; 2] = [0, 8];

#[cfg(test)]
mod tests {
    use talkpath_measure::Fate;
    use talkpath_measure::rtp::{RtpHeader, RtpSources};
    use talkpath_units::Bytes;

    use super::*;

    fn packet(payload_type: u8, sequence: u16, timestamp: u32) -> Vec<u8> {
        let mut bytes = vec![0x80, payload_type];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(timestamp.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend([0; 160]);
        bytes
    }

    /// A stream of packets each 20 ms, which enter the path `late` after their times.
    fn stream(payload_type: u8, step: u32, late: impl Fn(u64) -> u64) -> (RtpSources, Vec<MessageRecord>) {
        let (mut sources, mut rows) = (RtpSources::default(), Vec::new());
        for number in 0..100_u32 {
            // The timestamp and the sequence number wrap.
            let timestamp = (step * number).wrapping_sub(50 * step);
            let bytes = packet(payload_type, (number as u16).wrapping_sub(50), timestamp);
            sources.note(RtpHeader::read(&bytes).unwrap(), number);
            let sent = Instant::from_millis(1000 + 20 * u64::from(number) + late(number.into()));
            rows.push(MessageRecord {
                seq: number.into(),
                size: Bytes::new(200),
                due: sent,
                sent: Some(sent),
                wire: None,
                received: Some(sent + Duration::from_millis(30)),
                fate: Fate::Delivered,
                drop_cause: None,
                copies: 1,
                transmissions: 1,
            });
        }
        (sources, rows)
    }

    #[test]
    fn a_packet_is_due_when_its_timestamp_says_and_g711_is_rated() {
        let (sources, rows) = stream(8, 160, |number| number % 3);
        let streams = sources.streams();
        let [(_, source)] = streams[..] else { panic!("{} streams", streams.len()) };
        let flow = record(source, "rtp-8-1-up", "rtp-8-1".to_owned(), &rows);
        for (number, message) in (0..).zip(&flow.forward.messages) {
            assert_eq!(message.due, Instant::from_millis(1000 + 20 * number), "{number}");
        }
        let call = flow.info.terms.call.unwrap();
        assert_eq!((call.codec, call.frame), (Codec::G711, Duration::from_millis(20)));
    }

    #[test]
    fn the_clock_rate_of_other_payload_types_comes_from_their_timestamps() {
        let (sources, rows) = stream(111, 960, |number| 2 * (number % 2));
        let streams = sources.streams();
        let flow = record(streams[0].1, "", String::new(), &rows);
        assert_eq!(flow.forward.messages[99].due, Instant::from_millis(1000 + 20 * 99));
        assert!(flow.info.terms.call.is_none());
        // 10 kHz is the rate of no codec, so the packets are due when they enter the path.
        let (sources, rows) = stream(111, 200, |number| 2 * (number % 2));
        let flow = record(sources.streams()[0].1, "", String::new(), &rows);
        assert_eq!(flow.forward.messages[99].due, Instant::from_millis(1000 + 20 * 99 + 2));
    }
}
