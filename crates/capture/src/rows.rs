//! The packets of a stream in the order of their numbers, with those that are missing.

use talkpath_units::Duration;

/// The number of rows that may still be added to the record.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: MOST_ROWS }
    }
}

impl Limits {
    pub(crate) const fn is_reached(self) -> bool {
        self.rows == 0
    }
}

/// A packet by its number.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// When the packet was due at the place of the capture, ns since 1970.
    pub(crate) due_ns: i128,
    /// When the packet was captured first. `None` if it is missing.
    pub(crate) seen_ns: Option<i128>,
    /// The size of what UDP carries, bytes. A missing packet has the size of the packet before it.
    pub(crate) size: u32,
    pub(crate) copies: u32,
    /// The number of the packet in the stream. `None` if it is missing.
    pub(crate) packet: Option<u32>,
    /// The number of packets just before this packet whose speech it repeats, by RED (RFC 2198).
    pub(crate) earlier: u8,
}

/// Puts the packets in the order of their numbers, joins duplicates, and adds the missing packets.
pub(crate) fn with_missing(
    mut numbered: Vec<(i64, Row)>,
    frame: Option<Duration>,
    limits: &mut Limits,
) -> Vec<Row> {
    numbered.sort_by_key(|(number, row)| (*number, row.seen_ns));
    let mut rows: Vec<Row> = Vec::with_capacity(numbered.len());
    let mut latest: Option<i64> = None;
    for (number, row) in numbered {
        let missing = match (latest, rows.last_mut()) {
            (Some(latest), Some(before)) if latest == number => {
                before.copies += 1;
                continue;
            }
            // A jump of this size is where the sender began its numbers anew.
            (Some(latest), _) if number - latest <= i64::from(crate::numbers::MAX_DROPOUT) => {
                number - latest - 1
            }
            _ => 0,
        };
        let missing = usize::try_from(missing).unwrap_or(0);
        if limits.rows <= missing {
            limits.rows = 0;
            break;
        }
        limits.rows -= missing + 1;
        if let Some(before) = rows.last().copied() {
            rows.extend(missing_rows(before, row, missing, frame));
        }
        rows.push(row);
        latest = Some(number);
    }
    rows
}

/// The rows of the packets that are missing between `before` and `after`. They were due at equal distances.
/// If the speaker was silent in between, the missing packets whose speech `after` repeats by RED were due
/// just before `after`, because RED repeats what was said last. The others were due just behind `before`.
fn missing_rows(
    before: Row,
    after: Row,
    missing: usize,
    frame: Option<Duration>,
) -> impl Iterator<Item = Row> {
    let even = (after.due_ns - before.due_ns) / (missing as i128 + 1);
    let frame = frame.map_or(even, |frame| i128::from(frame.as_nanos()));
    let step = even.clamp(0, frame.max(0));
    let follows_silence = even > step;
    (1..=missing).map(move |index| {
        let distance = missing + 1 - index;
        let is_repeated = follows_silence && distance <= usize::from(after.earlier);
        let due_ns = if is_repeated {
            after.due_ns - step * distance as i128
        } else {
            before.due_ns + step * index as i128
        };
        Row { due_ns, seen_ns: None, size: before.size, copies: 0, packet: None, earlier: 0 }
    })
}

/// The largest number of rows of a record, with those of missing packets. We chose 4,000,000, which takes
/// half a gigabyte of memory.
const MOST_ROWS: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: i128) -> Row {
        let due_ns = number * 20_000_000;
        Row { due_ns, seen_ns: Some(due_ns), size: 200, copies: 1, packet: None, earlier: 0 }
    }

    #[test]
    fn gaps_of_thousands_of_packets_do_not_fill_the_memory() {
        let mut limits = Limits { rows: 5000 };
        let numbered = (0..100).map(|number| (2900 * number, row(2900 * i128::from(number)))).collect();
        let rows = with_missing(numbered, None, &mut limits);
        assert_eq!((rows.len(), limits.is_reached()), (2901, true));
    }

    #[test]
    fn missing_packets_were_due_in_between_or_follow_the_packet_before_a_silence() {
        let frame = Some(Duration::from_millis(20));
        let due_ms = |numbered: Vec<(i64, Row)>| {
            let rows = with_missing(numbered, frame, &mut Limits::default());
            rows.iter().map(|row| row.due_ns / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(due_ms(vec![(0, row(0)), (3, row(3))]), [0, 20, 40, 60]);
        assert_eq!(due_ms(vec![(0, row(0)), (3, row(100))]), [0, 20, 40, 2000]);
        let with_red = Row { earlier: 2, ..row(100) };
        assert_eq!(due_ms(vec![(0, row(0)), (4, with_red)]), [0, 20, 1960, 1980, 2000]);
        assert_eq!(due_ms(vec![(0, row(0)), (3, Row { earlier: 2, ..row(3) })]), [0, 20, 40, 60]);
    }
}
