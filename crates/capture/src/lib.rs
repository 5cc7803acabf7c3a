//! Reads captures of other programs, and makes records of the streams of RTP in them.
//!
//! ```text
//! file ─► blocks ─► packets ─► datagrams ─► RTP, RTCP, SDP ─► streams ─► RunRecord
//!   file.rs    order.rs   link.rs      observed.rs,       stream.rs, rows.rs,   names.rs
//!                                      rtcp.rs, sdp.rs    opus.rs, repair.rs,
//!                                                         speech.rs
//! ```
//!
//! The record is rated as that of a run.
//!
//! - *capture*: a file of packets, in the formats pcap and pcapng.
//! - *stream*: the packets of RTP of one source from one address and port to another
//!   (`talkpath_measure::rtp`).
//! - *encoding*: the meaning of a payload type: a codec's name and the rate of its timestamps.
//! - *one-way delay*: the time from the sender of a stream to the place of the capture. A capture does not
//!   have it (`one_way.rs`).
//!
//! Begin to read with [`read`]. Memory is bounded, whatever the file holds: by the largest block, the number
//! of packets of RTP that are kept, and the number of conversations.
//!
//! Left out: tunnels, fragments of IP, RTP over TCP, SIP that is spread over several TCP segments, and time
//! stamps of a sender's clock that runs faster or slower than ours.

mod encoding;
mod figures;
mod file;
mod link;
mod names;
mod numbers;
mod observed;
mod one_way;
mod options;
mod opus;
mod order;
mod red;
mod repair;
mod rows;
mod rtcp;
mod sdp;
mod speech;
mod stream;

use std::collections::BTreeMap;
use std::io::Read;

use talkpath_measure::summary::RtpStream;
use talkpath_measure::{ClockRecord, FlowRecord, RunRecord, warning};
use talkpath_units::{Duration, Instant, counted};

pub use self::encoding::{Encoding, EncodingSource};
pub use self::file::{Damage, ReadError};
pub use self::observed::Counts;
pub use self::one_way::OneWayBasis;
pub use self::options::Options;
pub use self::opus::{CodingSummary, RateSource};
pub use self::order::PacketOrder;
pub use self::speech::Speech;
pub use self::stream::StreamSummary;

use self::observed::Observed;
use self::one_way::OneWay;
use self::rows::Limits;
use self::stream::Stream;

/// The streams of a capture.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The record, with a flow for each stream. The time 0 is the time of the earliest packet, or the time
    /// at which it was due.
    pub record: RunRecord,
    /// What is known about each stream, in the order of the flows.
    pub streams: Vec<StreamSummary>,
    /// The figures of tshark's `-z rtp,streams`, by the name of the flow.
    pub figures: BTreeMap<String, RtpStream>,
    /// The speech of each call, by the name of the flow. Empty unless the options want it.
    pub speech: BTreeMap<String, Speech>,
    /// Where the file is damaged. The record has what comes before.
    pub damage: Option<Damage>,
    /// The counts of what the capture holds.
    pub counts: Counts,
    /// Whether its packets are in order of time.
    pub order: PacketOrder,
    /// What the record leaves out, a sentence each. They are also among the record's warnings.
    pub left_out: Vec<String>,
}

/// Reads a capture.
///
/// # Errors
/// Returns an error if `file` cannot be read, or if it is not a capture. If it is damaged behind its
/// beginning, what comes before is returned with the [`Damage`].
pub fn read(file: impl Read + Send, options: &Options) -> Result<Capture, ReadError> {
    let mut observed = Observed::new(options.speech);
    let mut order = PacketOrder::default();
    let damage = file::read_packets(file, |packet| {
        order.take(packet.at_ns);
        observed.take(packet);
    })?;
    Ok(rate(&observed, options, damage, order))
}

/// Makes the records of all streams.
fn rate(observed: &Observed, options: &Options, damage: Option<Damage>, order: PacketOrder) -> Capture {
    let mut limits = Limits::default();
    let mut streams = Vec::new();
    let found_streams = observed.streams();
    for found in &found_streams {
        let one_way = OneWay::of(found.source, &observed.reports, options.one_way);
        streams.push(Stream::new(found, observed, options, one_way, &mut limits));
    }
    let names = names::name(&streams);
    let streams: Vec<(names::FlowName, Stream<'_>)> = names.into_iter().zip(streams).collect();
    // The delay of a packet begins before the capture does. The record has no times below zero.
    let origin_ns = streams.iter().filter_map(|(_, stream)| stream.earliest_ns()).min().unwrap_or(0);
    let mut record = RunRecord { valid: true, ..RunRecord::default() };
    let mut capture_figures = BTreeMap::new();
    let mut speech = BTreeMap::new();
    let mut summaries = Vec::new();
    for (names::FlowName { name, conversation }, stream) in &streams {
        let mut flow = stream.record(name, origin_ns);
        flow.info.group.clone_from(conversation);
        record.window_end = record.window_end.max(end_of(&flow));
        record.flows.push(flow);
        capture_figures.extend(stream.figures().map(|figures| (name.clone(), figures)));
        summaries.push(stream.summary(name, origin_ns));
        if options.speech {
            speech.extend(stream.speech().map(|speech| (name.clone(), speech)));
        }
    }
    let bases: Vec<OneWay> = streams.iter().map(|(_, stream)| stream.one_way).collect();
    record.clock = clock(&bases);
    record.warnings = order.warning().into_iter().collect();
    let left_out = left_out(observed, limits);
    record.warnings.extend(left_out.iter().cloned());
    record.warnings.extend(warnings(&summaries, &bases));
    let (streams, figures, counts) = (summaries, capture_figures, observed.counts);
    Capture { record, streams, figures, speech, damage, counts, order, left_out }
}

/// The time behind the last message of a flow.
fn end_of(flow: &FlowRecord) -> Instant {
    let times = flow.forward.messages.iter().flat_map(|message| [Some(message.due), message.received]);
    let last = times.flatten().max().unwrap_or(Instant::ZERO);
    last.saturating_add(Duration::from_nanos(1))
}

/// The comparison of the clocks, which is what the one-way delays rest on.
fn clock(one_ways: &[OneWay]) -> ClockRecord {
    let mut sentences: Vec<String> = one_ways.iter().map(|one_way| one_way.sentence()).collect();
    sentences.sort_unstable();
    sentences.dedup();
    ClockRecord {
        offset_ms: None,
        skew_ppm: None,
        uncertainty_ms: None,
        change_uncertainty_ms: None,
        synchronised: false,
        trusted: true,
        why: sentences.join("; "),
    }
}

/// What of the capture is not in the record.
fn left_out(observed: &Observed, limits: Limits) -> Vec<String> {
    let mut warnings = Vec::new();
    if observed.counts.beyond_limit > 0 {
        warnings.push(format!(
            "the capture is too large: {} of RTP left out; cut it into pieces, for example with editcap",
            counted(observed.counts.beyond_limit, "packet")
        ));
    }
    if limits.is_reached() {
        warnings.push(
            "the sequence numbers have gaps of millions of packets: the streams are cut where the record is full"
                .to_owned(),
        );
    }
    if observed.counts.fragments > 0 {
        warnings.push(format!(
            "{} of IP left out: a stream whose packets are fragmented looks as if they were lost",
            counted(observed.counts.fragments, "fragment")
        ));
    }
    warnings
}

/// What distorts the figures, and what a reader has to know.
fn warnings(streams: &[StreamSummary], one_ways: &[OneWay]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut is_assumed = false;
    for one_way in one_ways {
        is_assumed |= one_way.basis == OneWayBasis::Assumed;
    }
    if is_assumed {
        warnings.push(format!(
            "a capture has no one-way delay, and no RTCP reports tell it: {} is assumed for the fastest packet of each \
             stream; --one-way says better",
            one_way::ASSUMED
        ));
    }
    warnings.extend(streams.iter().flat_map(StreamSummary::warnings));
    warnings.extend(streams.iter().map(|stream| warning::note(stream.line())));
    warnings
}

#[cfg(test)]
mod tests;
