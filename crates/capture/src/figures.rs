//! The figures of a stream as tshark's `-z rtp,streams` reports them.
//!
//! The time between arrivals and the jitter go from each packet to the next in the order of arrival (RFC 3550
//! appendix A.8), also over packets that changed places. tshark leaves some packets out of the smallest, mean
//! and largest values, although the jitter goes on over them: packets with the marker bit and those around
//! comfort noise, because a silence is before them. A packet that is left out counts as the mean so far. A
//! packet that is older than the first one by its timestamp does not count at all.

use talkpath_measure::rtp::{RtpPacket, is_comfort_noise};
use talkpath_measure::summary::{MinMeanMax, RtpStream};

/// A packet as the figures need it.
#[derive(Clone, Copy)]
pub(crate) struct SeenPacket<'a> {
    pub(crate) packet: &'a RtpPacket,
    pub(crate) at_ns: i128,
    /// The clock rate of the payload type in hertz. `None` for telephone events, and if it is not known.
    pub(crate) clock_rate: Option<u32>,
}

/// The smallest, mean and largest value so far.
#[derive(Clone, Copy, Default)]
struct Spread {
    min: Option<f64>,
    mean: f64,
    max: f64,
}

impl Spread {
    /// Adds a value. `number` is the number of values with it and with those that were left out.
    fn add(&mut self, value: f64, number: f64) {
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = self.max.max(value);
        self.mean = (self.mean * (number - 1.0) + value) / number;
    }

    fn figures(self) -> Option<MinMeanMax> {
        Some(MinMeanMax { min: self.min?, mean: self.mean, max: self.max })
    }
}

/// Computes the figures of the packets of a stream, in the order in which they were seen. Returns `None` with
/// fewer than two packets, or if the clock rate is not known.
pub(crate) fn figures<'a>(packets: impl Iterator<Item = SeenPacket<'a>>) -> Option<RtpStream> {
    let (mut deltas, mut jitters) = (Spread::default(), Spread::default());
    let mut jitter = 0.0;
    let mut first_timestamp: Option<u32> = None;
    let mut latest: Option<Latest> = None;
    for (number, seen) in packets.enumerate() {
        let SeenPacket { packet, at_ns, clock_rate } = seen;
        let since_first = packet.timestamp.wrapping_sub(*first_timestamp.get_or_insert(packet.timestamp));
        if since_first.cast_signed() < 0 {
            continue;
        }
        let is_noise = is_comfort_noise(packet.payload_type);
        let Some(before) = latest.replace(Latest { timestamp: packet.timestamp, at_ns, is_noise }) else {
            continue;
        };
        let delta = (at_ns - before.at_ns) as f64 / 1e6;
        if let Some(rate) = clock_rate {
            let ticks = packet.timestamp.wrapping_sub(before.timestamp).cast_signed();
            let difference = (delta - f64::from(ticks) * 1e3 / f64::from(rate)).abs();
            jitter = (15.0 * jitter + difference) / 16.0;
        }
        if !packet.is_marked && !is_noise && !before.is_noise {
            deltas.add(delta, number as f64);
            if clock_rate.is_some() {
                jitters.add(jitter, number as f64);
            }
        }
    }
    Some(RtpStream { delta_ms: deltas.figures()?, jitter_ms: jitters.figures()? })
}

/// The packet before.
#[derive(Clone, Copy)]
struct Latest {
    timestamp: u32,
    at_ns: i128,
    is_noise: bool,
}
