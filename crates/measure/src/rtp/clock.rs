//! The media clock of a stream: its rate, and when its packets were due.

use super::payload_type::{is_comfort_noise, nearest_rate};
use super::source::{RtpPacket, RtpSource};

/// When the packets of a stream were due, on the clock of whoever saw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueTimes {
    /// The due time of each packet in nanoseconds, in the order in which the packets were seen. In each
    /// stretch the fastest packet was due when it was seen.
    pub due_ns: Vec<i128>,
    /// The numbers of the packets with which the sender's clock began anew. Each begins a stretch.
    pub restarts: Vec<usize>,
}

/// A packet's place on the media clock.
#[derive(Clone, Copy)]
struct OnClock {
    /// The packet's media time since the first packet, ns.
    media_ns: i128,
    /// The time at which the packet was seen minus its media time, ns.
    offset_ns: i128,
    /// Whether the packet's timestamp says when the packet was due.
    follows_clock: bool,
}

impl RtpSource {
    /// Returns the clock rate in hertz that the timestamps show. `seen_ns` has the time at which each packet
    /// was seen. Returns `None` if the rate is none of the usual ones.
    pub fn clock_rate(&self, seen_ns: &[i128]) -> Option<u32> {
        let ticks = *self.ticks().last()?;
        let passed = (seen_ns.last()? - seen_ns.first()?) as f64 / 1e9;
        nearest_rate(ticks as f64 / passed)
    }

    /// Returns when each packet was due by its timestamp. `rate` is the clock rate in hertz, above 0, and
    /// `seen_ns` has the time at which each packet was seen.
    ///
    /// A sender may begin its timestamps anew, for example after a call was on hold. Such a jump begins a new
    /// stretch: the packets after it are measured by the fastest of them. A silence is no jump, because the
    /// timestamps go on during it.
    pub fn due_times(&self, rate: u32, seen_ns: &[i128]) -> DueTimes {
        let packets = self.places(rate, seen_ns);
        let mut times = DueTimes::default();
        let mut begin = 0;
        while begin < packets.len() {
            let end = stretch_end(&packets, begin);
            push_due_times(&packets[begin..end], &seen_ns[begin..end], &mut times.due_ns);
            if end < packets.len() {
                times.restarts.push(end);
            }
            begin = end;
        }
        times
    }

    /// The timestamps, counted from the first packet without wrapping. Frames of video may go back in time
    /// (RFC 3550 §5.1).
    fn ticks(&self) -> Vec<i64> {
        let mut ticks = Vec::with_capacity(self.packets.len());
        let mut latest: Option<(u32, i64)> = None;
        for packet in &self.packets {
            let tick = latest.map_or(0, |(timestamp, tick)| {
                tick + i64::from(packet.timestamp.wrapping_sub(timestamp).cast_signed())
            });
            latest = Some((packet.timestamp, tick));
            ticks.push(tick);
        }
        ticks
    }

    fn places(&self, rate: u32, seen_ns: &[i128]) -> Vec<OnClock> {
        let main = self.payload_type();
        let ticks = self.ticks();
        let mut latest_event: Option<RtpPacket> = None;
        let mut places = Vec::with_capacity(ticks.len());
        for ((packet, tick), seen_ns) in self.packets.iter().zip(ticks).zip(seen_ns) {
            let media_ns = i128::from(tick) * 1_000_000_000 / i128::from(rate.max(1));
            // All packets of a telephone event have the timestamp of its beginning (RFC 4733 §2.2.1).
            let is_event = packet.payload_type != main && !is_comfort_noise(packet.payload_type);
            let is_later_in_event =
                is_event && latest_event.is_some_and(|event| event.timestamp == packet.timestamp);
            if is_event {
                latest_event = Some(*packet);
            }
            places.push(OnClock {
                media_ns,
                offset_ns: seen_ns - media_ns,
                follows_clock: !is_later_in_event,
            });
        }
        places
    }
}

/// Returns the number of the packet behind the stretch that begins with the packet `begin`.
fn stretch_end(packets: &[OnClock], begin: usize) -> usize {
    let (mut least, mut previous) = (packets[begin].offset_ns, packets[begin].offset_ns);
    for (number, packet) in packets.iter().enumerate().skip(begin + 1) {
        if !packet.follows_clock {
            continue;
        }
        let offset = packet.offset_ns;
        // A path that holds packets back gives way in the end, so the smallest offset of the next packets
        // comes back. After a jump of the timestamps it does not. No path makes an earlier packet that much
        // slower than all packets behind it.
        let is_jump = (offset - previous).abs() > FARTHEST_NS
            && (least_offset(&packets[number..]) - least).abs() > FARTHEST_NS;
        if is_jump {
            return number;
        }
        (least, previous) = (least.min(offset), offset);
    }
    packets.len()
}

/// The smallest offset of the next packets.
fn least_offset(packets: &[OnClock]) -> i128 {
    let next = packets.iter().take(LOOK_AHEAD).filter(|packet| packet.follows_clock);
    next.map(|packet| packet.offset_ns).min().unwrap_or(0)
}

fn push_due_times(stretch: &[OnClock], seen_ns: &[i128], due_ns: &mut Vec<i128>) {
    let on_clock = stretch.iter().filter(|packet| packet.follows_clock);
    let least = on_clock.map(|packet| packet.offset_ns).min().unwrap_or(0);
    let mut delay = 0;
    for (packet, seen_ns) in stretch.iter().zip(seen_ns) {
        if packet.follows_clock {
            delay = packet.offset_ns - least;
            due_ns.push(packet.media_ns + least);
        } else {
            // The packet says nothing of its delay, so it counts as slow as the packet before it.
            due_ns.push(seen_ns - delay);
        }
    }
}

/// By how much the offsets of packets differ if the clock began anew. We chose 2 s because neither a sender
/// nor a path holds packets so long and keeps on doing so.
const FARTHEST_NS: i128 = 2_000_000_000;
/// The number of packets after a jump that show whether it stays. We chose 500, which is 10 s of speech.
const LOOK_AHEAD: usize = 500;

#[cfg(test)]
mod tests {
    use super::super::{RtpHeader, RtpSources};

    const MS: i128 = 1_000_000;

    /// Makes a source of packets of 20 ms at 8 kHz, each with its media time in ms and its delay in ms.
    fn due_ms(packets: &[(i128, i128)]) -> (Vec<i128>, Vec<usize>) {
        let mut sources = RtpSources::default();
        let mut seen = Vec::new();
        for (number, (media, delay)) in (0..).zip(packets) {
            let header = RtpHeader {
                payload_type: 0,
                is_marked: false,
                sequence: number,
                timestamp: (*media * 8) as u32,
                source: 7,
                payload: 160,
                first_byte: None,
            };
            sources.note(header, number.into());
            seen.push(delay * MS);
        }
        let times = sources.streams()[0].1.due_times(8000, &seen);
        (times.due_ns.iter().map(|due| due / MS).collect(), times.restarts)
    }

    #[test]
    fn silence_and_a_stall_of_the_path_are_no_restart_of_the_clock() {
        // 30 packets, a silence of 5 s, then a stall of 3 s that the path works off.
        let mut packets: Vec<(i128, i128)> = (0..30).map(|n| (20 * n, 20 * n + n % 3)).collect();
        packets.extend((0..400).map(|n| {
            let media = 5600 + 20 * n;
            let stall = if (50..200).contains(&n) { (3000 - 20 * (n - 50)).max(0) } else { 0 };
            (media, media + stall)
        }));
        let (due, restarts) = due_ms(&packets);
        assert!(restarts.is_empty());
        assert!(due.iter().zip(&packets).all(|(due, (media, _))| due == media));
    }

    #[test]
    fn timestamps_that_begin_anew_begin_a_stretch_of_their_own() {
        // The sender's clock stands still while the call is on hold for 8 s, and a new one begins at 0.
        for later in [600, 0] {
            let mut packets: Vec<(i128, i128)> = (0..30).map(|n| (20 * n, 20 * n)).collect();
            packets.extend((0..30).map(|n| (later + 20 * n, 8600 + 20 * n + 5 * (n % 2))));
            let (due, restarts) = due_ms(&packets);
            assert_eq!(restarts, [30], "{later}");
            assert_eq!((due[29], due[30], due[31]), (580, 8600, 8620), "{later}");
        }
    }
}
