//! CCID 3's and 4's options on acknowledgements (RFC 4342 §8, RFC 5622 §8).

use talkpath_units::Duration;

use talkpath_wire::dccp::{DccpOption, Options};

/// One entry of the Loss Intervals option, with its Drop Count (RFC 5622 §8.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedInterval {
    pub(super) lossless: u32,
    pub(super) lossy: u32,
    pub(super) data: u32,
    pub(super) dropped: u32,
}

/// The Loss Intervals option: newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedIntervals {
    pub(super) skip: u8,
    list: [ReportedInterval; MOST],
    count: usize,
}

/// What makes an acknowledgement a feedback packet (RFC 4342 §6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FeedbackOptions {
    pub(super) elapsed: Duration,
    /// Bytes per second.
    pub(super) receive_rate: u32,
    pub(super) intervals: ReportedIntervals,
    /// The rate that the receiver worked out itself, if it reported no intervals; see
    /// docs/models/departures.md.
    pub(super) told_rate: Option<f64>,
    pub(super) slow_receiver: bool,
}

impl ReportedIntervals {
    pub(super) fn new(skip: u64) -> Self {
        Self { skip: u8::try_from(skip).unwrap_or(u8::MAX), ..Self::default() }
    }

    /// Adds the next older one, as long as there is room.
    pub(super) fn push(&mut self, interval: ReportedInterval) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = interval;
            self.count += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[ReportedInterval] {
        &self.list[..self.count]
    }

    /// Puts the option, and Dropped Packets behind it if `drop_counts` are wanted; false if there is no room.
    #[must_use]
    pub(super) fn put(&self, options: &mut Options, drop_counts: bool) -> bool {
        let mut data = [0; 1 + MOST * ENTRY];
        data[0] = self.skip;
        for (entry, interval) in data[1..].chunks_exact_mut(ENTRY).zip(self.as_slice()) {
            // The nonce echo, the top bit of the second field, is 0.
            put_24(&mut entry[..3], interval.lossless);
            put_24(&mut entry[3..6], interval.lossy.min(MAX_24 >> 1));
            put_24(&mut entry[6..], interval.data);
        }
        let fits =
            options.push(DccpOption::Ccid { kind: LOSS_INTERVALS, data: &data[..1 + self.count * ENTRY] });
        if !drop_counts {
            return fits;
        }
        let mut counts = [0; MOST * DROP_COUNT];
        for (entry, interval) in counts.chunks_exact_mut(DROP_COUNT).zip(self.as_slice()) {
            put_24(entry, interval.dropped);
        }
        fits && options
            .push(DccpOption::Ccid { kind: DROPPED_PACKETS, data: &counts[..self.count * DROP_COUNT] })
    }

    /// `data` is one Loss Intervals option's: nine bytes an interval after Skip Length. Of several options
    /// the first is read; it holds more than the average takes.
    fn read(data: &[u8]) -> Option<Self> {
        let (&skip, entries) = data.split_first()?;
        if entries.is_empty() || entries.len() % ENTRY != 0 {
            return None;
        }
        let mut intervals = Self::new(skip.into());
        for entry in entries.chunks_exact(ENTRY) {
            let lossy = get_24(&entry[3..6]) & (MAX_24 >> 1);
            // Without a Drop Count the Loss Length takes its place (RFC 5622 §8.7).
            let interval = ReportedInterval {
                lossless: get_24(&entry[..3]),
                lossy,
                data: get_24(&entry[6..]),
                dropped: lossy,
            };
            intervals.push(interval);
        }
        Some(intervals)
    }

    /// RFC 5622 §8.7: a count above the Loss Length is treated as equal to it.
    fn read_drop_counts(&mut self, data: &[u8]) {
        let count = self.count;
        for (interval, entry) in self.list[..count].iter_mut().zip(data.chunks_exact(DROP_COUNT)) {
            interval.dropped = get_24(entry).min(interval.lossy);
        }
    }
}

/// The options of a feedback packet; `None` if one of the three that make it one is missing. A Loss Event
/// Rate may replace Loss Intervals, and a missing Elapsed Time then counts as none: Linux's receiver sends
/// nothing else.
pub(super) fn read_feedback(options: &Options) -> Option<FeedbackOptions> {
    let (mut elapsed, mut receive_rate, mut intervals, mut counts, mut rate) = (None, None, None, None, None);
    let mut slow_receiver = false;
    for option in options {
        match option {
            DccpOption::ElapsedTime(units) | DccpOption::TimestampEcho { elapsed: units, .. } => {
                elapsed = Some(Duration::from_micros(u64::from(units) * 10));
            }
            DccpOption::Ccid { kind: RECEIVE_RATE, data: &[a, b, c, d] } => {
                receive_rate = Some(u32::from_be_bytes([a, b, c, d]));
            }
            DccpOption::Ccid { kind: LOSS_INTERVALS, data } if intervals.is_none() => {
                intervals = ReportedIntervals::read(data);
            }
            DccpOption::Ccid { kind: LOSS_EVENT_RATE, data: &[a, b, c, d] } => {
                rate = Some(event_rate(u32::from_be_bytes([a, b, c, d])));
            }
            DccpOption::Ccid { kind: DROPPED_PACKETS, data } if counts.is_none() => counts = Some(data),
            DccpOption::SlowReceiver => slow_receiver = true,
            _ => {}
        }
    }
    let elapsed = elapsed.or((intervals.is_none() && rate.is_some()).then_some(Duration::ZERO));
    let told_rate = if intervals.is_some() { None } else { Some(rate?) };
    let mut intervals = intervals.unwrap_or_default();
    if let Some(counts) = counts {
        intervals.read_drop_counts(counts);
    }
    Some(FeedbackOptions {
        elapsed: elapsed?,
        receive_rate: receive_rate?,
        intervals,
        told_rate,
        slow_receiver,
    })
}

/// The rate of a Loss Event Rate option, which holds the inverse (RFC 4342 §8.5).
fn event_rate(inverse: u32) -> f64 {
    match inverse {
        u32::MAX => 0.0,
        inverse => 1.0 / f64::from(inverse.max(1)),
    }
}

/// Whether an option of this type, 128 or above, is known if our data goes under the CCID of this number.
/// Types from 192 on come from the receiver of our data (RFC 4340 §10.3). Of the types below, which come from
/// the sender of the peer's data, RFC 4341, RFC 4342 and RFC 5622 define none.
pub(in crate::dccp) const fn knows_option(ccid: u64, kind: u8) -> bool {
    match ccid {
        3 => matches!(kind, LOSS_EVENT_RATE..=RECEIVE_RATE),
        4 => matches!(kind, LOSS_EVENT_RATE..=DROPPED_PACKETS),
        _ => false,
    }
}

/// Puts Receive Rate (RFC 4342 §8.3).
#[must_use]
pub(super) fn put_receive_rate(options: &mut Options, bytes_per_second: f64) -> bool {
    let data = (bytes_per_second.round() as u32).to_be_bytes();
    options.push(DccpOption::Ccid { kind: RECEIVE_RATE, data: &data })
}

/// Puts Loss Event Rate (RFC 4342 §8.5): its inverse, rounded up; all ones before the first loss event.
#[must_use]
pub(super) fn put_loss_event_rate(options: &mut Options, mean_interval: Option<f64>) -> bool {
    let data = mean_interval.map_or(u32::MAX, |mean| mean.ceil() as u32).to_be_bytes();
    options.push(DccpOption::Ccid { kind: LOSS_EVENT_RATE, data: &data })
}

/// How many packets after `above` packets back from the acknowledgement number were dropped for want of room
/// in the receive buffer: Drop Code 2 of Data Dropped (RFC 4340 §11.7).
pub(super) fn receive_buffer_drops(options: &Options, newly_acknowledged: u64) -> u64 {
    let mut passed = 0;
    let mut dropped = 0;
    for option in options {
        let DccpOption::DataDropped(blocks) = option else { continue };
        for &block in blocks {
            let is_drop = block & 0x80 != 0;
            let run = u64::from(if is_drop { block & 0x0f } else { block & 0x7f }) + 1;
            if is_drop && block >> 4 & 7 == RECEIVE_BUFFER_DROP {
                dropped += run.min(newly_acknowledged.saturating_sub(passed));
            }
            passed += run;
        }
    }
    dropped
}

fn put_24(place: &mut [u8], value: u32) {
    place.copy_from_slice(&value.min(MAX_24).to_be_bytes()[1..]);
}

fn get_24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// RFC 4342 §8, table 1, and RFC 5622 §8, table 1.
const LOSS_EVENT_RATE: u8 = 192;
const LOSS_INTERVALS: u8 = 193;
const RECEIVE_RATE: u8 = 194;
const DROPPED_PACKETS: u8 = 195;
/// RFC 4342 §8.6: bytes of a Loss Interval.
const ENTRY: usize = 9;
/// RFC 5622 §8.7: bytes of a Drop Count.
const DROP_COUNT: usize = 3;
/// NINTERVAL + 1 (RFC 4342 §8.6.1).
const MOST: usize = crate::tfrc::INTERVALS + 1;
const MAX_24: u32 = (1 << 24) - 1;
/// Drop Code 2 (RFC 4340 §11.7.1).
const RECEIVE_BUFFER_DROP: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4342 §8.6.2 and RFC 5622 §8.7.1, with their nonce echoes of L3 and L0 left at 0.
    const LOSS_INTERVALS_BYTES: [u8; 39] = [
        193, 39, 2, 0, 0, 10, 0, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 10, 0, 0, 8, 0, 0, 1, 0, 0, 8, 0, 0,
        10, 0, 0, 0, 0, 0, 15,
    ];
    const DROPPED_BYTES: [u8; 14] = [195, 14, 0, 0, 1, 0, 0, 4, 0, 0, 1, 0, 0, 0];

    fn example() -> ReportedIntervals {
        let mut intervals = ReportedIntervals::new(2);
        for (lossless, lossy, data, dropped) in [(10, 1, 10, 1), (8, 5, 10, 4), (8, 1, 8, 1), (10, 0, 15, 0)]
        {
            intervals.push(ReportedInterval { lossless, lossy, data, dropped });
        }
        intervals
    }

    #[test]
    fn the_example_of_both_documents_is_written_byte_for_byte() {
        let mut options = Options::EMPTY;
        assert!(example().put(&mut options, true));
        assert_eq!(options.as_bytes(), [&LOSS_INTERVALS_BYTES[..], &DROPPED_BYTES].concat());
    }

    #[test]
    fn the_example_is_read_with_its_nonces_and_in_any_order() {
        let mut bytes = LOSS_INTERVALS_BYTES;
        (bytes[6], bytes[33]) = (128, 128);
        let area = [&DROPPED_BYTES[..], &[43, 4, 1, 0], &[194, 6, 0, 0, 0x3e, 0x80], &bytes].concat();
        let feedback = read_feedback(&Options::from_wire(&area)).expect("all three are there");
        assert_eq!(feedback.intervals, example());
        assert_eq!((feedback.elapsed, feedback.receive_rate), (Duration::from_micros(2560), 16_000));
    }

    #[test]
    fn a_receiver_that_tells_its_rate_alone_is_believed() {
        let with = |inverse: [u8; 4]| {
            let area = [&[43, 4, 1, 0][..], &[194, 6, 0, 0, 0x3e, 0x80], &[192, 6], &inverse].concat();
            read_feedback(&Options::from_wire(&area)).and_then(|feedback| feedback.told_rate)
        };
        assert_eq!(with([0, 0, 0, 100]), Some(0.01));
        assert_eq!(with([0xff; 4]), Some(0.0), "no loss event yet (RFC 4342 §8.5)");
        assert_eq!(with([0; 4]), Some(1.0));
        let linux = [194, 6, 0, 0, 0, 0xa0, 192, 6, 0xff, 0xff, 0xff, 0xff];
        let feedback = read_feedback(&Options::from_wire(&linux)).expect("what Linux 6.1 sends");
        assert_eq!((feedback.elapsed, feedback.receive_rate), (Duration::ZERO, 160));
    }

    /// RFC 4342 §6: Elapsed Time, Receive Rate and Loss Intervals, or it is no feedback.
    #[test]
    fn without_one_of_the_three_it_is_no_feedback() {
        let parts = [&[43, 4, 1, 0][..], &[194, 6, 0, 0, 0x3e, 0x80], &LOSS_INTERVALS_BYTES];
        assert!(read_feedback(&Options::from_wire(&parts.concat())).is_some());
        for missing in 0..3 {
            let mut rest = parts.to_vec();
            rest.remove(missing);
            assert_eq!(read_feedback(&Options::from_wire(&rest.concat())), None);
        }
        let cut = [parts[0], parts[1], &[193, 11, 0, 0, 0, 1, 0, 0, 1, 0, 0]].concat();
        assert_eq!(read_feedback(&Options::from_wire(&cut)), None, "eight bytes of an interval");
    }

    /// RFC 5622 §8.7.
    #[test]
    fn a_drop_count_is_bounded_by_the_loss_length_and_stands_for_it_where_missing() {
        let area =
            [&[43, 4, 1, 0][..], &[194, 6, 0, 0, 0, 1], &[193, 12, 0, 0, 0, 9, 0, 0, 5, 0, 0, 14]].concat();
        let dropped = |area: &[u8]| {
            read_feedback(&Options::from_wire(area)).map(|feedback| feedback.intervals.as_slice()[0].dropped)
        };
        assert_eq!(dropped(&area), Some(5));
        assert_eq!(dropped(&[&area[..], &[195, 5, 0, 0, 2]].concat()), Some(2));
        assert_eq!(dropped(&[&area[..], &[195, 5, 0, 0, 9]].concat()), Some(5));
    }

    /// RFC 4342 §8, table 1: 192 to 194; RFC 5622 §8, table 1: 195 as well; RFC 4341 has none.
    #[test]
    fn an_option_is_known_under_its_ccid() {
        let known = |ccid| (128..=255).filter(|&kind| knows_option(ccid, kind)).collect::<Vec<u8>>();
        assert_eq!(known(2), [0; 0]);
        assert_eq!(known(3), [192, 193, 194]);
        assert_eq!(known(4), [192, 193, 194, 195]);
    }

    /// RFC 4340 §11.7: drop blocks of code 2 and run length n + 1, normal blocks in between.
    #[test]
    fn receive_buffer_drops_are_counted_among_the_newly_acknowledged() {
        let mut options = Options::EMPTY;
        assert!(options.push(DccpOption::DataDropped(&[0xa1, 0x03, 0xa0, 0x90])));
        assert_eq!(receive_buffer_drops(&options, 100), 3);
        assert_eq!(receive_buffer_drops(&options, 5), 2);
        assert_eq!(receive_buffer_drops(&options, 1), 1);
    }
}
