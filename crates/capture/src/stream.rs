//! A stream of RTP: its record, and what else is known about it.

use core::net::IpAddr;
use std::collections::BTreeMap;

use serde::Serialize;
use talkpath_config::{Codec, Coding};
use talkpath_measure::rtp::{RtpPacket, call_terms, is_comfort_noise};
use talkpath_measure::summary::RtpStream;
use talkpath_measure::{CallTerms, Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, Terms};
use talkpath_units::{Bytes, Duration, Instant, counted};

use crate::encoding::{Encoding, EncodingSource};
use crate::figures::{SeenPacket, figures};
use crate::numbers::Numbers;
use crate::observed::{FoundStream, Observed};
use crate::one_way::{OneWay, OneWayBasis};
use crate::options::Options;
use crate::opus::{CodingSummary, OpusCoding, OpusPacket};
use crate::rows::{Limits, Row, with_missing};
use crate::speech::Speech;

/// A stream of a capture.
pub(crate) struct Stream<'a> {
    pub(crate) found: &'a FoundStream<'a>,
    encoding: Option<(Encoding, EncodingSource)>,
    /// The rate of the timestamps in hertz.
    clock_rate: Option<u32>,
    /// The time between two packets.
    pub(crate) frame: Option<Duration>,
    pub(crate) one_way: OneWay,
    /// The packets by number, with those that are missing.
    pub(crate) rows: Vec<Row>,
    /// How often the timestamps began anew.
    clock_restarts: usize,
    number_restarts: u64,
    strays: u64,
    pub(crate) is_encrypted: bool,
    endpoints: Option<[(IpAddr, u16); 2]>,
    report: Option<Reported>,
    /// The codec with which the stream is rated.
    codec: Option<Codec>,
    /// The coding of a stream of Opus. `None` if its packets do not show it.
    pub(crate) opus: Option<OpusCoding>,
    /// The payload type of the speech in packets of RED. `None` if the stream is not RED.
    pub(crate) red_type: Option<u8>,
}

/// What the receiver of a stream reported by RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Reported {
    lost: i32,
    jitter_ms: Option<f64>,
}

impl Reported {
    /// The last report about a stream. `None` if the capture has none.
    fn latest(found: &FoundStream<'_>, observed: &Observed, clock_rate: Option<u32>) -> Option<Self> {
        let report = observed.reports.latest(found.source)?;
        let jitter_ms = clock_rate.map(|rate| f64::from(report.jitter) * 1e3 / f64::from(rate));
        Some(Self { lost: report.lost, jitter_ms })
    }
}

/// What is known about a stream besides its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamSummary {
    /// The name of the flow.
    pub flow: String,
    /// The synchronisation source, as `0x1a2b3c4d`.
    pub ssrc: String,
    /// The payload type of the most packets.
    pub payload_type: u8,
    /// The name of the encoding. `None` if nothing says it.
    pub encoding: Option<String>,
    /// Who says what the payload type means. `None` if nothing does.
    pub encoding_by: Option<EncodingSource>,
    /// The rate of the timestamps in hertz. `None` if it is not known.
    pub clock_rate: Option<u32>,
    /// The time between two packets. `None` if it is not known.
    pub frame_ms: Option<f64>,
    /// The coding of a stream of Opus. `None` of other streams, and if the packets do not show it.
    pub coding: Option<CodingSummary>,
    /// Whether the payload is encrypted (SRTP), as far as the capture shows it.
    pub encrypted: bool,
    /// The time of the first packet, in seconds on the record's clock.
    pub from_s: f64,
    /// The time of the last packet, in seconds on the record's clock.
    pub to_s: f64,
    /// The packets that were captured. Duplicates do not count.
    pub packets: u64,
    /// The packets whose numbers are missing.
    pub lost: u64,
    /// The share of the packets that are lost.
    pub lost_share: f64,
    /// The lost packets whose speech was in a later packet, by RED or in-band FEC.
    pub repaired: u64,
    /// The largest number of earlier packets whose speech a packet also has, by RED (RFC 2198). `None` if the
    /// stream is not RED.
    pub red: Option<u8>,
    /// The packets that were captured more than once.
    pub duplicates: u64,
    /// The number of gaps, each of one lost packet or more.
    pub gaps: u64,
    /// The longest gap. `None` if the time between packets is not known.
    pub longest_gap_ms: Option<f64>,
    /// The one-way delay of the fastest packet.
    pub one_way_ms: f64,
    /// How the one-way delay is known.
    pub one_way_by: OneWayBasis,
    /// How often the sender began its timestamps anew.
    pub clock_restarts: usize,
    /// How often the sender began its sequence numbers anew.
    pub number_restarts: u64,
    /// The packets whose sequence numbers fit nowhere, which are left out.
    pub strays: u64,
    /// The last report of the receiver. `None` if the capture has none.
    pub(crate) receiver: Option<Reported>,
    /// The address and port of the sender. `None` unless addresses are wanted.
    pub from: Option<String>,
    /// The address and port of the receiver. `None` unless addresses are wanted.
    pub to: Option<String>,
    /// Why the stream has no opinion score. `None` if it has one.
    pub not_rated: Option<String>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        found: &'a FoundStream<'a>,
        observed: &Observed,
        options: &Options,
        one_way: OneWay,
        limits: &mut Limits,
    ) -> Self {
        let source = found.packets;
        let packets = source.packets();
        let seen_ns: Vec<i128> =
            packets.iter().map(|packet| i128::from(found.row(packet.row).at_ns)).collect();
        let meaning = |payload_type| encoding(found, payload_type, observed, options);
        let outer = meaning(source.payload_type());
        let is_red = outer.as_ref().is_some_and(|(outer, _)| outer.is_red());
        let red_type = if is_red { carried_type(found) } else { None };
        let outer_rate = outer.as_ref().and_then(|(outer, _)| outer.clock_rate);
        let encoding = if is_red { red_type.and_then(meaning) } else { outer };
        let stated_rate = encoding.as_ref().and_then(|(encoding, _)| encoding.clock_rate);
        let clock_rate = outer_rate.or(stated_rate).or_else(|| source.clock_rate(&seen_ns));
        let times = clock_rate.map(|rate| source.due_times(rate, &seen_ns));
        let clock_restarts = times.as_ref().map_or(0, |times| times.restarts.len());
        // Without a clock rate a packet is due when it is captured.
        let due_ns = times.map_or_else(|| seen_ns.clone(), |times| times.due_ns);
        let frame = clock_rate.zip(source.usual_step()).and_then(|(rate, step)| frame(rate, step));
        let Numbers { numbers, restarts, strays } = Numbers::of(packets);
        let row = |index: usize| {
            let seen = found.row(packets[index].row);
            Row {
                due_ns: due_ns[index],
                seen_ns: Some(seen_ns[index]),
                size: seen.size,
                copies: 1,
                packet: u32::try_from(index).ok(),
                earlier: seen.red.filter(|_| is_red).map_or(0, |red| red.earlier),
            }
        };
        let numbered =
            numbers.iter().enumerate().filter_map(|(index, number)| Some(((*number)?, row(index))));
        let is_opus = encoding.as_ref().is_some_and(|(encoding, _)| encoding.is_opus());
        let is_encrypted = observed.descriptions.is_encrypted(found.endpoints.to)
            || is_red && red_type.is_none()
            || is_opus && has_too_many_modes(opus_packets(found, is_red));
        let speech_type = red_type.unwrap_or(source.payload_type());
        let stated_bit_rate = || observed.descriptions.opus_rate(found.endpoints.to, speech_type);
        let opus = match (is_opus, is_encrypted) {
            (true, false) => OpusCoding::of(opus_packets(found, is_red), stated_bit_rate()),
            (true, true) if !is_red => {
                let sizes = main_packets(found).map(|(packet, after)| (packet.payload, after));
                frame.and_then(|frame| OpusCoding::of_encrypted(sizes, frame, stated_bit_rate()))
            }
            _ => None,
        };
        Self {
            found,
            codec: encoding.as_ref().map_or(options.codec, |(encoding, _)| encoding.codec()),
            encoding,
            clock_rate,
            frame,
            one_way,
            rows: with_missing(numbered.collect(), frame, limits),
            clock_restarts,
            number_restarts: restarts,
            strays,
            is_encrypted,
            endpoints: options.names.then_some([found.endpoints.from, found.endpoints.to]),
            report: Reported::latest(found, observed, clock_rate),
            opus,
            red_type,
        }
    }

    pub(crate) fn payload_type(&self) -> u8 {
        self.found.packets.payload_type()
    }

    /// Whether the stream is a call.
    pub(crate) fn is_call(&self) -> bool {
        self.call_terms().is_some()
    }

    /// How the call is played and rated. The second receiver is that of a run whose scenario names no
    /// receiver.
    fn call_terms(&self) -> Option<CallTerms> {
        let terms = call_terms(self.codec?, self.frame?);
        let rated = terms.rated.or_else(|| self.opus.as_ref()?.rated());
        Some(CallTerms { others: true, rated, ..terms })
    }

    /// Returns the coded speech of a call. Returns `None` if the stream is none.
    pub(crate) fn speech(&self) -> Option<Speech> {
        let terms = self.call_terms()?;
        let usual = Coding::usual(terms.codec);
        let coding = match &self.opus {
            Some(opus) => opus.coding,
            None => Coding { frame: terms.frame, frames_in_packet: 1, ..usual },
        };
        let mut packets: Vec<Box<[u8]>> =
            (0..self.rows.len()).map(|number| self.own_speech(number).into()).collect();
        if self.red_type.is_some() {
            for (number, repair) in self.repairs() {
                if packets[number].is_empty() {
                    packets[number] = self.earlier_speech(number, repair.by).into();
                }
            }
        }
        Some(Speech {
            coding,
            encoding: self.encoding.as_ref().map(|(encoding, _)| encoding.name.clone()),
            is_encrypted: self.is_encrypted,
            packets,
        })
    }

    /// Why the stream is not rated. `None` if it is.
    fn not_rated(&self) -> Option<String> {
        if self.call_terms().is_some_and(|terms| terms.rated.is_some()) {
            return None;
        }
        let Some((encoding, _)) = &self.encoding else {
            if self.is_encrypted {
                return Some("SRTP hides what RED has in it".to_owned());
            }
            let number = self.red_type.unwrap_or(self.payload_type());
            return Some(format!(
                "nothing says what payload type {number} means, so say --payload-type {number}=NAME"
            ));
        };
        let name = &encoding.name;
        if let Some(opus) = &self.opus {
            let assumed = if self.is_encrypted { ", as far as SRTP shows it" } else { "" };
            return Some(format!(
                "nobody published the impairment of {name} as it is here ({}{assumed}); published are {}",
                opus.summary().words(),
                Codec::OPUS_PUBLISHED
            ));
        }
        if encoding.is_opus() && self.is_encrypted {
            return Some(format!("SRTP hides the bandwidth and the mode of {name}"));
        }
        if encoding.is_opus() {
            return Some(format!("the capture has cut the first bytes of {name}, which say its bandwidth"));
        }
        if encoding.codec().is_none() {
            return Some(format!("talkpath has none for {name}"));
        }
        Some("the time between its packets is not known".to_owned())
    }

    /// The earliest time of the record, ns since 1970.
    pub(crate) fn earliest_ns(&self) -> Option<i128> {
        let due = self.rows.iter().map(|row| row.due_ns).min()?;
        let seen = self.rows.iter().filter_map(|row| row.seen_ns).min()?;
        Some((due - i128::from(self.one_way.delay.as_nanos())).min(seen))
    }

    /// Makes the record of the stream, whose time 0 is `origin_ns` since 1970.
    pub(crate) fn record(&self, name: &str, origin_ns: i128) -> FlowRecord {
        let instant = |ns: i128| Instant::from_nanos(u64::try_from(ns - origin_ns).unwrap_or(0));
        let one_way = i128::from(self.one_way.delay.as_nanos());
        let mut messages = Vec::with_capacity(self.rows.len());
        let mut arrivals: Vec<(Instant, u64)> = Vec::new();
        for (seq, row) in (0..).zip(&self.rows) {
            let due = instant(row.due_ns - one_way);
            let received = row.seen_ns.map(instant);
            arrivals.extend(received.map(|at| (at, seq)));
            messages.push(MessageRecord {
                seq,
                size: Bytes::new(row.size.into()),
                due,
                sent: Some(due),
                wire: None,
                received,
                fate: if received.is_some() { Fate::Delivered } else { Fate::Missing },
                drop_cause: None,
                copies: row.copies,
                transmissions: 1,
            });
        }
        arrivals.sort_unstable();
        let info = FlowInfo {
            transport: "rtp".to_owned(),
            start: messages.first().map_or(Instant::ZERO, |message| message.due),
            terms: Terms { call: self.call_terms(), ..Terms::default() },
            ..FlowInfo::on_a_clock(name)
        };
        FlowRecord {
            forward: LegRecord {
                messages,
                arrivals: arrivals.into_iter().map(|(_, seq)| seq).collect(),
                brought_later: self
                    .repairs()
                    .into_iter()
                    .map(|(number, repair)| (number as u64, instant(repair.seen_ns)))
                    .collect(),
                ..LegRecord::default()
            },
            ..FlowRecord::new(info)
        }
    }

    /// The figures of tshark's table of streams.
    pub(crate) fn figures(&self) -> Option<RtpStream> {
        let main = self.payload_type();
        let packets = self.found.packets.packets().iter().map(|packet| SeenPacket {
            packet,
            at_ns: i128::from(self.found.row(packet.row).at_ns),
            clock_rate: self
                .clock_rate
                .filter(|_| packet.payload_type == main || is_comfort_noise(packet.payload_type)),
        });
        figures(packets)
    }

    pub(crate) fn summary(&self, name: &str, origin_ns: i128) -> StreamSummary {
        let seen = || self.rows.iter().filter_map(|row| row.seen_ns);
        let seconds = |ns: Option<i128>| ns.map_or(0.0, |ns| (ns - origin_ns) as f64 / 1e9);
        let packets = seen().count() as u64;
        let lost = self.rows.len() as u64 - packets;
        let (gaps, longest) = self.gaps();
        let repairs = self.repairs();
        let [from, to] = match self.endpoints {
            Some(ends) => {
                ends.map(|(address, port)| Some(core::net::SocketAddr::new(address, port).to_string()))
            }
            None => [None, None],
        };
        StreamSummary {
            flow: name.to_owned(),
            ssrc: format!("{:#010x}", self.found.source),
            payload_type: self.payload_type(),
            encoding: self.encoding.as_ref().map(|(encoding, _)| encoding.name.clone()),
            encoding_by: self.encoding.as_ref().map(|(_, by)| *by),
            clock_rate: self.clock_rate,
            frame_ms: self.frame.map(Duration::as_millis_f64),
            coding: self.opus.as_ref().map(OpusCoding::summary),
            encrypted: self.is_encrypted,
            from_s: seconds(seen().min()),
            to_s: seconds(seen().max()),
            packets,
            lost,
            lost_share: lost as f64 / self.rows.len().max(1) as f64,
            repaired: repairs.keys().filter(|number| self.rows[**number].seen_ns.is_none()).count() as u64,
            red: self.red_type.map(|_| {
                let heads = (0..self.rows.len()).filter_map(|number| self.red_head(number));
                heads.map(|head| head.earlier).max().unwrap_or(0)
            }),
            duplicates: self.rows.iter().filter(|row| row.copies > 1).count() as u64,
            gaps,
            longest_gap_ms: self.frame.map(|frame| (frame * longest).as_millis_f64()),
            one_way_ms: self.one_way.delay.as_millis_f64(),
            one_way_by: self.one_way.basis,
            clock_restarts: self.clock_restarts,
            number_restarts: self.number_restarts,
            strays: self.strays,
            receiver: self.report,
            from,
            to,
            not_rated: self.not_rated(),
        }
    }

    /// The number of gaps, and the number of packets of the longest.
    fn gaps(&self) -> (u64, u64) {
        let (mut gaps, mut longest, mut length) = (0, 0, 0);
        for row in &self.rows {
            if row.seen_ns.is_some() {
                length = 0;
                continue;
            }
            gaps += u64::from(length == 0);
            length += 1;
            longest = longest.max(length);
        }
        (gaps, longest)
    }
}

impl StreamSummary {
    /// What distorts the figures of the stream.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let flow = &self.flow;
        let mut warnings = Vec::new();
        if let Some(why) = &self.not_rated {
            warnings.push(format!("{flow} has no opinion score: {why}"));
        } else if self.coding.as_ref().is_some_and(|coding| coding.assumed) {
            warnings.push(format!(
                "{flow}: SRTP hides the bandwidth, the channels and the in-band FEC of its packets: its score is for \
                 super-wideband of one channel without FEC, which is assumed"
            ));
        }
        if self.clock_rate.is_none() {
            warnings.push(format!(
                "{flow}: the rate of its timestamps is not known, so its jitter and its delays are not: \
                 --payload-type {}=NAME/RATE says it",
                self.payload_type
            ));
        }
        warnings.into_iter().chain(self.restarts_in_words())
    }

    /// Where the sender began its timestamps or sequence numbers anew, and what fits nowhere, a sentence
    /// each.
    pub fn restarts_in_words(&self) -> Vec<String> {
        let flow = &self.flow;
        let mut warnings = Vec::new();
        if self.clock_restarts > 0 {
            warnings.push(format!(
                "{flow}: its timestamps begin anew {}: the delays behind each are measured by the fastest packet there",
                talkpath_units::times(self.clock_restarts as u64)
            ));
        }
        if self.number_restarts > 0 {
            warnings.push(format!(
                "{flow}: its sequence numbers begin anew {}, and no packet counts as lost there",
                talkpath_units::times(self.number_restarts)
            ));
        }
        if self.strays > 0 {
            warnings.push(format!(
                "{flow}: {} left out, because their sequence numbers fit nowhere",
                counted(self.strays, "packet")
            ));
        }
        warnings
    }

    /// Describes the stream in a line.
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![self.described_encoding()];
        parts.extend(self.coding.as_ref().map(|coding| {
            let assumed = if coding.assumed { ", its bandwidth assumed" } else { "" };
            coding.words() + assumed
        }));
        parts.extend(self.frame_ms.map(|ms| format!("{ms} ms a packet")));
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            parts.push(format!("{from} to {to}"));
        }
        parts.push(format!("SSRC {}", self.ssrc));
        parts.push(format!("{:.1} s to {:.1} s", self.from_s, self.to_s));
        let mut losses = format!("{}, {} lost", counted(self.packets, "packet"), self.lost);
        if self.gaps > 0 {
            losses += &format!(" in {}", counted(self.gaps, "gap"));
            if let Some(ms) = self.longest_gap_ms {
                losses += &format!(", the longest {ms} ms");
            }
        }
        if self.repaired > 0 {
            let by = if self.red.is_some() { "RED" } else { "in-band FEC" };
            losses += &format!("; {} of them came in a later packet, by {by}", self.repaired);
        }
        if self.duplicates > 0 {
            losses += &format!("; {} captured more than once", self.duplicates);
        }
        parts.push(losses);
        parts.push(match self.one_way_by {
            OneWayBasis::Option => format!("{:.1} ms one way, by --one-way", self.one_way_ms),
            OneWayBasis::Rtcp => format!("{:.1} ms one way, half of RTCP's round trip", self.one_way_ms),
            OneWayBasis::Assumed => format!("{:.1} ms one way, which is assumed", self.one_way_ms),
        });
        if let Some(Reported { lost, jitter_ms }) = self.receiver {
            let jitter = jitter_ms.map_or_else(String::new, |ms| format!(" and a jitter of {ms:.1} ms"));
            parts.push(format!("its receiver reports {lost} lost{jitter} (RTCP)"));
        }
        format!("{}: {}", self.flow, parts.join(", "))
    }

    fn described_encoding(&self) -> String {
        let number = self.payload_type;
        match (&self.encoding, self.encoding_by) {
            (Some(name), Some(by)) => {
                let encrypted = if self.encrypted { ", encrypted" } else { "" };
                let name = match self.red {
                    Some(earlier) => {
                        format!("{name} in RED with {}", counted(earlier, "earlier packet"))
                    }
                    None => name.clone(),
                };
                format!("{name} (payload type {number}, {}{encrypted})", by.words())
            }
            _ => format!("payload type {number}"),
        }
    }
}

/// The payload type of the speech in most packets of a stream of RED. `None` if less than half of them can be
/// read, because they are encrypted.
fn carried_type(found: &FoundStream<'_>) -> Option<u8> {
    let main = found.packets.payload_type();
    let packets = || found.packets.packets().iter().filter(|packet| packet.payload_type == main);
    let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
    for head in packets().filter_map(|packet| found.row(packet.row).red) {
        *counts.entry(head.payload_type).or_default() += 1;
    }
    let (payload_type, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (2 * count > packets().count()).then_some(payload_type)
}

/// Finds out what a payload type of a stream means. What the user says goes before SDP, and SDP before the
/// table of fixed types.
fn encoding(
    found: &FoundStream<'_>,
    payload_type: u8,
    observed: &Observed,
    options: &Options,
) -> Option<(Encoding, EncodingSource)> {
    let stated = options.payload_types.get(&payload_type).map(|it| (it.clone(), EncodingSource::Option));
    let described = || {
        let encoding = observed.descriptions.encoding(found.endpoints.to, payload_type)?;
        Some((encoding.clone(), EncodingSource::Sdp))
    };
    let fixed = || Some((Encoding::fixed(payload_type)?, EncodingSource::Table));
    stated.or_else(described).or_else(fixed)
}

/// The time between two packets, if it can be that of speech.
fn frame(rate: u32, step: u32) -> Option<Duration> {
    let ns = u64::from(step) * 1_000_000_000 / u64::from(rate);
    Some(Duration::from_nanos(ns)).filter(|frame| (LEAST_FRAME..=MOST_FRAME).contains(frame))
}

/// The packets of the stream's payload type in the order in which they were seen, each with whether it
/// follows a silence.
fn main_packets<'a>(found: &'a FoundStream<'a>) -> impl Iterator<Item = (&'a RtpPacket, bool)> + 'a {
    let usual_step = found.packets.usual_step();
    let payload_type = found.packets.payload_type();
    let mut before: Option<RtpPacket> = None;
    found.packets.packets().iter().filter(move |packet| packet.payload_type == payload_type).map(
        move |packet| {
            let follows_silence = before.replace(*packet).zip(usual_step).is_some_and(|(before, step)| {
                let passed = packet.timestamp.wrapping_sub(before.timestamp).cast_signed();
                packet.sequence == before.sequence.wrapping_add(1) && i64::from(passed) > i64::from(step)
            });
            (packet, follows_silence)
        },
    )
}

/// The packets of Opus of a stream, in the order in which they were seen.
fn opus_packets<'a>(found: &'a FoundStream<'a>, is_red: bool) -> impl Iterator<Item = OpusPacket> + 'a {
    main_packets(found).filter_map(move |(packet, after)| opus_packet(found, packet, is_red, after))
}

/// Returns a packet of Opus. Returns `None` if its first byte was not kept.
pub(crate) fn opus_packet(
    found: &FoundStream<'_>,
    packet: &RtpPacket,
    is_red: bool,
    follows_silence: bool,
) -> Option<OpusPacket> {
    let row = found.row(packet.row);
    if is_red {
        let red = row.red?;
        let [toc, second_byte] = red.head?;
        let size = packet.payload.saturating_sub(red.begins);
        return Some(OpusPacket { toc, second_byte: Some(second_byte), size, follows_silence });
    }
    let (toc, second_byte) = (packet.first_byte?, row.second_byte);
    Some(OpusPacket { toc, second_byte, size: packet.payload, follows_silence })
}

/// Whether the first bytes of Opus packets name so many modes that they cannot be what RFC 6716 §3.1 calls
/// the TOC. They are encrypted then.
fn has_too_many_modes(packets: impl Iterator<Item = OpusPacket>) -> bool {
    let modes = packets.fold(0_u32, |modes, packet| modes | 1 << (packet.toc >> 3));
    modes.count_ones() > MOST_MODES
}

/// The times between packets of speech: from Opus's shortest frame (RFC 6716 §2.1.4) to 200 ms, which is
/// beyond what RFC 3551 §4.2 wants to be received.
const LEAST_FRAME: Duration = Duration::from_micros(2500);
const MOST_FRAME: Duration = Duration::from_millis(200);
/// The largest number of modes of Opus in a stream. We chose 8 of 32: an encoder changes between a few.
const MOST_MODES: u32 = 8;
