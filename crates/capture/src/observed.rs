//! What a capture holds, as its packets are read one after the other.

use core::net::IpAddr;
use std::collections::BTreeMap;

use serde::Serialize;
use talkpath_measure::rtp::{RtpHeader, RtpSource, RtpSources};

use crate::file::CapturedPacket;
use crate::link::{Content, Datagram, content};
use crate::red::{RedBlocks, RedHead};
use crate::rtcp::Reports;
use crate::sdp::Descriptions;

/// The numbers of packets in a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All packets that could be read.
    pub packets: u64,
    /// The datagrams of UDP.
    pub udp: u64,
    /// The fragments of IP, which are left out.
    pub fragments: u64,
    /// The packets whose link layer is not known, or whose headers are damaged.
    pub unknown: u64,
    /// The packets of RTP that are left out because the capture has too many.
    pub beyond_limit: u64,
}

/// What was read of a capture.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) counts: Counts,
    /// The packets of RTP of each direction of a conversation.
    legs: BTreeMap<Endpoints, ObservedLeg>,
    pub(crate) reports: Reports,
    pub(crate) descriptions: Descriptions,
    rows: usize,
    /// The number of bytes of speech that may still be kept. 0 if nobody wants to hear it.
    speech_room: usize,
}

/// The endpoints of one direction of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoints {
    pub(crate) from: (IpAddr, u16),
    pub(crate) to: (IpAddr, u16),
}

/// The packets of RTP of one direction of a conversation.
#[derive(Default)]
pub(crate) struct ObservedLeg {
    sources: RtpSources,
    /// The time and the size of each packet.
    rows: Vec<ObservedRow>,
    /// The coded speech of each row, if somebody wants to hear it. It is empty if the capture did not keep
    /// all of it.
    speech: Vec<Box<[u8]>>,
}

/// A row of a leg.
#[derive(Clone, Copy)]
pub(crate) struct ObservedRow {
    /// The time of the capture since 1970, ns.
    pub(crate) at_ns: i64,
    /// The size of what UDP carries, bytes: the message of the flow, with the header of RTP.
    pub(crate) size: u32,
    /// The second byte behind the header of RTP. `None` if it was not kept.
    pub(crate) second_byte: Option<u8>,
    /// The blocks of the packet, if it can be read as RED.
    pub(crate) red: Option<RedHead>,
}

/// A stream that was found.
pub(crate) struct FoundStream<'a> {
    pub(crate) endpoints: Endpoints,
    /// The synchronisation source.
    pub(crate) source: u32,
    pub(crate) packets: &'a RtpSource,
    leg: &'a ObservedLeg,
}

impl Observed {
    /// Makes an empty one, which keeps the speech of packets if it `keeps_speech`.
    pub(crate) fn new(keeps_speech: bool) -> Self {
        Self { speech_room: if keeps_speech { MOST_SPEECH } else { 0 }, ..Self::default() }
    }

    /// Takes the next packet of the file.
    pub(crate) fn take(&mut self, packet: CapturedPacket<'_>) {
        self.counts.packets += 1;
        match content(&packet) {
            Content::Udp(datagram) => {
                self.counts.udp += 1;
                self.take_datagram(&datagram, packet.at_ns);
            }
            Content::Tcp(payload) => self.descriptions.take(payload),
            Content::Fragment => self.counts.fragments += 1,
            Content::Unknown => self.counts.unknown += 1,
            Content::Other => {}
        }
    }

    fn take_datagram(&mut self, datagram: &Datagram<'_>, at_ns: i64) {
        let Datagram { from, to, kept, length } = *datagram;
        if self.reports.take(kept, length, at_ns) {
            return;
        }
        let Some(header) = RtpHeader::read_cut(kept, length) else {
            return self.descriptions.take(kept);
        };
        let endpoints = Endpoints { from, to };
        if self.rows >= MOST_ROWS || self.legs.len() >= MOST_LEGS && !self.legs.contains_key(&endpoints) {
            self.counts.beyond_limit += 1;
            return;
        }
        let leg = self.legs.entry(endpoints).or_default();
        let Ok(row) = u32::try_from(leg.rows.len()) else { return };
        if leg.sources.note(header, row) {
            let payload = kept.get(length - header.payload as usize..).unwrap_or_default();
            let second_byte = payload.get(1).copied();
            let red = RedBlocks::parse(payload, header.payload as usize).map(|blocks| blocks.head(payload));
            leg.rows.push(ObservedRow { at_ns, size: length as u32, second_byte, red });
            self.rows += 1;
            let is_whole = kept.len() == length && payload.len() <= self.speech_room;
            let speech = if is_whole { without_padding(kept, payload) } else { &[] };
            if self.speech_room > 0 {
                self.speech_room -= speech.len();
                leg.speech.push(speech.into());
            }
        }
    }

    /// Returns the streams in the order of their first packets.
    pub(crate) fn streams(&self) -> Vec<FoundStream<'_>> {
        let mut found = Vec::new();
        for (endpoints, leg) in &self.legs {
            for (source, packets) in leg.sources.streams() {
                found.push(FoundStream { endpoints: *endpoints, source, packets, leg });
            }
        }
        found.sort_by_key(|stream| {
            stream.packets.packets().first().map(|packet| stream.row(packet.row).at_ns)
        });
        found
    }
}

impl FoundStream<'_> {
    /// Returns the row with the number `row`.
    pub(crate) fn row(&self, row: u32) -> ObservedRow {
        let none = ObservedRow { at_ns: 0, size: 0, second_byte: None, red: None };
        self.leg.rows.get(row as usize).copied().unwrap_or(none)
    }

    /// Returns the coded speech of the row with the number `row`. It is empty if it was not kept.
    pub(crate) fn speech(&self, row: u32) -> &[u8] {
        self.leg.speech.get(row as usize).map(AsRef::as_ref).unwrap_or_default()
    }
}

/// Returns the payload without the padding that the last byte counts (RFC 3550 §5.1, P).
pub(crate) fn without_padding<'a>(datagram: &[u8], payload: &'a [u8]) -> &'a [u8] {
    let is_padded = datagram.first().is_some_and(|first| first & PADDING != 0);
    let padding = payload.last().filter(|_| is_padded).map_or(0, |count| usize::from(*count));
    payload.get(..payload.len().saturating_sub(padding)).unwrap_or_default()
}

/// The bit of the first byte that says that there is padding (RFC 3550 §5.1).
const PADDING: u8 = 0x20;
/// The largest number of bytes of speech that are kept. We chose 128 MiB: four hours of G.711.
const MOST_SPEECH: usize = 128 << 20;
/// The largest number of packets of RTP that are kept. We chose 4,000,000, as `talkpath shell` does: 20 hours
/// of one call, and half a gigabyte of memory.
const MOST_ROWS: usize = 4_000_000;
/// The largest number of directions of conversations. We chose 16,384: a busy gateway has some thousand
/// calls.
const MOST_LEGS: usize = 16_384;
