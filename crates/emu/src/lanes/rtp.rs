//! Streams of RTP (RFC 3550), and of SRTP (RFC 3711), whose headers are not encrypted.
//!
//! A stream is the packets of one direction of a conversation with the same synchronisation source and the
//! same payload type. Each stream is a flow of the record, with a message for each packet. A message is due
//! at the time that the packet's timestamp says. So the record's jitter is that of RFC 3550 §6.4.1, as a
//! receiver computes it.
//!
//! Nothing announces RTP, so any datagram may look like a packet of RTP. We count a source as a stream if it
//! sent [`LEAST_PACKETS`] packets, and if most of them have the sequence number behind that of the packet
//! before.

use std::collections::BTreeMap;

use talkpath_measure::{
    CallTerms, Codec, FlowInfo, FlowRecord, LegRecord, MessageRecord, PlayoutRule, Terms,
};
use talkpath_units::{Duration, Instant};

/// The sources of RTP of one direction of a conversation.
#[derive(Default)]
pub(super) struct RtpSources {
    by_source: BTreeMap<(u32, u8), RtpSource>,
}

/// The packets of a synchronisation source that have the same payload type.
#[derive(Default)]
pub(super) struct RtpSource {
    packets: Vec<RtpPacket>,
    /// How many packets have the sequence number behind that of the packet before.
    consecutive: usize,
}

/// A packet of RTP.
#[derive(Clone, Copy)]
struct RtpPacket {
    /// The number of the packet's row in its leg.
    row: u32,
    sequence: u16,
    timestamp: u32,
    payload: u32,
}

/// The header of a packet of RTP (RFC 3550 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RtpHeader {
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    source: u32,
    /// The bytes behind the header, with padding and the authentication tag of SRTP.
    payload: u32,
}

impl RtpHeader {
    /// Reads the header of the payload of a datagram. `None` if it is none of RTP.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let [first, second, ..] = *datagram else { return None };
        let payload_type = second & 0x7f;
        // RFC 5761 §4: these payload types are packets of RTCP.
        if first >> 6 != VERSION || (64..=95).contains(&payload_type) {
            return None;
        }
        let mut header = 12 + 4 * usize::from(first & 0x0f);
        if first & 0x10 != 0 {
            header += 4 + 4 * usize::from(u16::from_be_bytes(bytes_at(datagram, header + 2)?));
        }
        let payload = datagram.len().checked_sub(header).filter(|payload| *payload > 0)?;
        Some(Self {
            payload_type,
            sequence: u16::from_be_bytes(bytes_at(datagram, 2)?),
            timestamp: u32::from_be_bytes(bytes_at(datagram, 4)?),
            source: u32::from_be_bytes(bytes_at(datagram, 8)?),
            payload: u32::try_from(payload).ok()?,
        })
    }
}

fn bytes_at<const N: usize>(datagram: &[u8], at: usize) -> Option<[u8; N]> {
    datagram.get(at..at + N)?.try_into().ok()
}

impl RtpSources {
    /// Takes note of a packet whose row in its leg has the number `row`. Beyond [`MOST_SOURCES`] no source is
    /// noted.
    pub(super) fn note(&mut self, header: RtpHeader, row: u32) {
        let RtpHeader { payload_type, sequence, timestamp, source, payload } = header;
        let key = (source, payload_type);
        if !self.by_source.contains_key(&key) && self.by_source.len() >= MOST_SOURCES {
            return;
        }
        let source = self.by_source.entry(key).or_default();
        let is_next = source.packets.last().is_some_and(|last| sequence == last.sequence.wrapping_add(1));
        source.consecutive += usize::from(is_next);
        source.packets.push(RtpPacket { row, sequence, timestamp, payload });
    }

    /// The streams, each with its payload type, in the order of their first packets.
    pub(super) fn streams(&self) -> Vec<(u8, &RtpSource)> {
        let all = self.by_source.iter().map(|((_, payload_type), source)| (*payload_type, source));
        let mut streams: Vec<_> = all.filter(|(_, source)| source.is_stream()).collect();
        streams.sort_by_key(|(_, source)| source.packets.first().map(|packet| packet.row));
        streams
    }
}

impl RtpSource {
    fn is_stream(&self) -> bool {
        self.packets.len() >= LEAST_PACKETS && self.consecutive * 2 > self.packets.len()
    }

    /// Makes the record of the stream, whose rows in its leg are among `rows`.
    pub(super) fn record(
        &self,
        payload_type: u8,
        name: &str,
        group: String,
        rows: &[MessageRecord],
    ) -> FlowRecord {
        let packets =
            self.packets.iter().filter_map(|packet| Some((packet, *rows.get(packet.row as usize)?)));
        let mut messages: Vec<MessageRecord> = packets.map(|(_, row)| row).collect();
        if let Some(dues) = self.dues(payload_type, &messages) {
            for (message, due) in messages.iter_mut().zip(dues) {
                message.due = due;
            }
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
            terms: Terms { call: self.call_terms(payload_type), ..Terms::default() },
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

    /// The times that the timestamps say. The earliest packet, measured by its timestamp, entered the path
    /// when it was due. `None` if the clock rate is not known, or if the timestamps leave the clock.
    fn dues(&self, payload_type: u8, messages: &[MessageRecord]) -> Option<Vec<Instant>> {
        let sent: Vec<i128> = messages.iter().map(|message| i128::from(message.due.as_nanos())).collect();
        let mut ticks = vec![0_i64];
        for pair in self.packets.windows(2) {
            // The clock wraps, and frames of video may go back in time (RFC 3550 §5.1).
            let step = pair[1].timestamp.wrapping_sub(pair[0].timestamp).cast_signed();
            ticks.push(ticks.last()? + i64::from(step));
        }
        let time = (sent.last()? - sent.first()?) as f64 / 1e9;
        let rate = clock_rate(payload_type).or_else(|| nearest_rate(*ticks.last()? as f64 / time))?;
        let media: Vec<i128> =
            ticks.iter().map(|&ticks| i128::from(ticks) * 1_000_000_000 / i128::from(rate)).collect();
        let offsets = || sent.iter().zip(&media).map(|(sent, media)| sent - media);
        let (least, most) = (offsets().min()?, offsets().max()?);
        if most - least > i128::from(FARTHEST.as_nanos()) {
            return None;
        }
        let due = |media: &i128| Instant::from_nanos(u64::try_from(least + media).unwrap_or(0));
        Some(media.iter().map(due).collect())
    }

    /// How the stream is rated: as a call with G.711 if the payload type says so (RFC 3551 §6), by a receiver
    /// with an adaptive playout delay that conceals what is missing.
    fn call_terms(&self, payload_type: u8) -> Option<CallTerms> {
        if !G711.contains(&payload_type) {
            return None;
        }
        // A sample is a byte. Most packets have the same size.
        let mut sizes: Vec<u32> = self.packets.iter().map(|packet| packet.payload).collect();
        sizes.sort_unstable();
        let frame = Duration::from_micros(u64::from(*sizes.get(sizes.len() / 2)?) * 125);
        Some(CallTerms {
            codec: Codec::G711,
            frame,
            playout: PlayoutRule::Adaptive,
            is_concealed: true,
            other_wait: None,
        })
    }
}

/// The clock rate in hertz of a payload type with a fixed meaning (RFC 3551 §6).
const fn clock_rate(payload_type: u8) -> Option<u32> {
    match payload_type {
        0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => Some(8000),
        6 => Some(16_000),
        10 | 11 => Some(44_100),
        14 | 25 | 26 | 28 | 31..=34 => Some(90_000),
        _ => None,
    }
}

/// The usual clock rate that is within 5 % of `rate`. `None` if there is none. A conversation agrees on the
/// meaning of the other payload types outside of RTP.
fn nearest_rate(rate: f64) -> Option<u32> {
    USUAL_RATES.into_iter().find(|&usual| (rate / f64::from(usual) - 1.0).abs() < 0.05)
}

/// RFC 3550 §5.1.
const VERSION: u8 = 2;
/// The payload types of G.711 with μ-law and A-law (RFC 3551 §6).
const G711: [u8; 2] = [0, 8];
/// The clock rates of codecs in use: RFC 3551 §6, Opus (RFC 7587 §4.1), EVS and AMR-WB.
const USUAL_RATES: [u32; 6] = [8000, 16_000, 32_000, 44_100, 48_000, 90_000];
/// The least number of packets of a stream. We chose 16 because other datagrams hardly look like RTP so
/// often.
const LEAST_PACKETS: usize = 16;
/// The largest number of sources that are noted in each direction of a conversation. We chose 64 because a
/// conference has fewer.
const MOST_SOURCES: usize = 64;
/// The farthest that a packet may leave its media clock. We chose 2 s because no sender holds a packet so
/// long.
const FARTHEST: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use talkpath_measure::Fate;
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

    #[test]
    fn a_header_is_read_with_its_sources_and_extension_and_other_protocols_are_none() {
        let mut bytes = packet(0x80 | 111, 9, 960);
        let header = RtpHeader::read(&bytes).unwrap();
        let expected = RtpHeader { payload_type: 111, sequence: 9, timestamp: 960, source: 7, payload: 160 };
        assert_eq!(header, expected);
        // Two contributing sources, and an extension of one word.
        bytes[0] = 0x92;
        bytes[22..24].copy_from_slice(&1_u16.to_be_bytes());
        assert_eq!(RtpHeader::read(&bytes).unwrap().payload, 160 - 8 - 8);
        // RTCP, DTLS, STUN, QUIC with a long and a short header, and a header without payload.
        for (first, second) in [(0x81, 200), (22, 254), (0, 1), (0xc0, 0), (0x40, 0)] {
            let mut other = packet(0, 9, 960);
            other[..2].copy_from_slice(&[first, second]);
            assert_eq!(RtpHeader::read(&other), None, "{first} {second}");
        }
        assert_eq!(RtpHeader::read(&packet(0, 1, 1)[..12]), None);
        assert_eq!(RtpHeader::read(&[0x80]), None);
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
        let [(payload_type, source)] = streams[..] else { panic!("{} streams", streams.len()) };
        let record = source.record(payload_type, "rtp-8-1-up", "rtp-8-1".to_owned(), &rows);
        for (number, message) in (0..).zip(&record.forward.messages) {
            assert_eq!(message.due, Instant::from_millis(1000 + 20 * number), "{number}");
        }
        let call = record.info.terms.call.unwrap();
        assert_eq!((call.codec, call.frame), (Codec::G711, Duration::from_millis(20)));
    }

    #[test]
    fn the_clock_rate_of_other_payload_types_comes_from_their_timestamps() {
        let (sources, rows) = stream(111, 960, |number| 2 * (number % 2));
        let streams = sources.streams();
        let record = streams[0].1.record(111, "", String::new(), &rows);
        assert_eq!(record.forward.messages[99].due, Instant::from_millis(1000 + 20 * 99));
        assert!(record.info.terms.call.is_none());
        // 10 kHz is the rate of no codec, so the packets are due when they enter the path.
        let (sources, rows) = stream(111, 200, |number| 2 * (number % 2));
        let record = sources.streams()[0].1.record(111, "", String::new(), &rows);
        assert_eq!(record.forward.messages[99].due, Instant::from_millis(1000 + 20 * 99 + 2));
    }

    #[test]
    fn datagrams_that_only_look_like_rtp_are_no_stream() {
        let mut sources = RtpSources::default();
        for number in 0..200_u32 {
            let bytes = packet(96, (number * 7919) as u16, number);
            sources.note(RtpHeader::read(&bytes).unwrap(), number);
        }
        assert!(sources.streams().is_empty());
    }
}
