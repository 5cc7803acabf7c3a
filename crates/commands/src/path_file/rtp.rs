//! Makes a table of changes of a stream of RTP in a capture: the delay and the loss of its packets over time.
//!
//! ```text
//! packets due within   0 to 200 ms    200 to 400 ms   ...
//! delay, median        51 ms          78 ms
//! loss                 0 of 10        2 of 10
//! row                  0,51,0         0.2,78,20
//! ```
//!
//! Of a conversation, the streams `NAME-up` and `NAME-down`, each direction has columns of its own:
//! `up_delay_ms` and so on, with times from the first packet of either.
//!
//! A capture has the delays of the packets above that of the fastest packet. How long the fastest packet took
//! is said by `--one-way`, by RTCP, or assumed (`talkpath rate` has the same rule). The rate of the path is
//! not known: a call shows only that it is not below that of the call.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use talkpath_capture::{Capture, OneWayBasis, Options, StreamSummary, read};
use talkpath_measure::FlowRecord;
use talkpath_units::{Duration, Instant, counted};

/// The time of a row. We chose 200 ms: ten packets of a usual call, so that a loss of 10 % can be told from
/// none, and short enough to keep a burst of losses a burst.
const WINDOW: Duration = Duration::from_millis(200);

/// The first four bytes of a capture: pcapng (draft-ietf-opsawg-pcapng §4.1), and pcap in both byte orders
/// with microseconds and with nanoseconds (draft-ietf-opsawg-pcap §4).
const MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// Whether the file begins as a capture does.
pub(crate) fn is_capture(path: &Path) -> bool {
    let mut first = [0; 4];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    is_read && MAGIC.contains(&first)
}

/// Which stream of a capture is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamWanted {
    /// Its name, as `rate` has it. `None` is the stream with the most packets, and the other direction of its
    /// conversation.
    pub(crate) stream: Option<String>,
    /// How long its fastest packet took, if the user says it.
    pub(crate) one_way: Option<Duration>,
}

/// A stream of a capture, or the two of a conversation, as the path that their packets saw.
pub(crate) struct StreamPath {
    /// What the capture has, in a few lines.
    pub(crate) description: String,
    /// The table of changes.
    pub(crate) table: String,
    /// What makes the capture implausible, a sentence each.
    pub(crate) doubts: Vec<String>,
}

/// A stream, and the rows of its table.
struct StreamRows<'a> {
    stream: &'a StreamSummary,
    rows: Vec<Row>,
}

impl StreamPath {
    /// Reads the capture, and makes the table of the stream that the user names, or else of the one with the
    /// most packets and of the other direction of its conversation. Messages call the file `name`.
    ///
    /// # Errors
    /// Returns why there is no such stream, or why the file cannot be read, with the name.
    pub(crate) fn read(file: &Path, name: &str, wanted: &StreamWanted) -> Result<Self, String> {
        let usage = |why: String| format!("{name}: {why}");
        let file = File::open(file).map_err(|why| usage(why.to_string()))?;
        let options = Options { one_way: wanted.one_way, ..Options::default() };
        let capture = read(file, &options).map_err(|why| usage(why.to_string()))?;
        let chosen = choose(&capture, wanted.stream.as_deref()).map_err(usage)?;
        let both = if wanted.stream.is_none() { both_directions(&capture.streams, chosen) } else { None };
        let streams: Vec<&StreamSummary> = both.map_or_else(|| vec![chosen], |both| both.to_vec());
        let flow_of =
            |stream: &StreamSummary| capture.record.flows.iter().find(|flow| flow.info.name == stream.flow);
        let first_due = |stream: &&StreamSummary| Some(flow_of(stream)?.forward.messages.first()?.due);
        let start = streams.iter().filter_map(first_due).min().unwrap_or(Instant::ZERO);
        let rows_of = |stream| StreamRows {
            stream,
            rows: flow_of(stream).map(|flow| rows(flow, start)).unwrap_or_default(),
        };
        let streams: Vec<StreamRows<'_>> = streams.into_iter().map(rows_of).collect();
        if let Some(empty) = streams.iter().find(|stream| stream.rows.is_empty()) {
            return Err(usage(format!("{}: its packets have no times", empty.stream.flow)));
        }
        let described: Vec<String> = streams.iter().map(StreamRows::describe).collect();
        let others = match capture.streams.len() - streams.len() {
            0 => String::new(),
            others => format!(" (and {}: --stream takes another)", counted(others as u64, "other stream")),
        };
        let mut description = format!("{name}: RTP{others}: {}", described.join("; "));
        if let Some(damage) = &capture.damage {
            description += &format!("; what follows byte {} is damaged: {}", damage.at, damage.what);
        }
        let mut doubts: Vec<String> = capture.order.warning().into_iter().collect();
        doubts.extend(streams.iter().flat_map(StreamRows::doubts));
        Ok(Self { description, table: table(name, &streams), doubts })
    }
}

/// Returns the streams `NAME-up` and `NAME-down` of the conversation of `chosen`. `None` if the capture has
/// one of them alone.
fn both_directions<'a>(
    streams: &'a [StreamSummary],
    chosen: &'a StreamSummary,
) -> Option<[&'a StreamSummary; 2]> {
    let name = chosen.flow.strip_suffix("-up").or_else(|| chosen.flow.strip_suffix("-down"))?;
    let of = |way: &str| streams.iter().find(|stream| stream.flow == format!("{name}-{way}"));
    Some([of("up")?, of("down")?])
}

impl StreamRows<'_> {
    /// Says what makes the times of the stream implausible.
    fn doubts(&self) -> Vec<String> {
        let (stream, delays) = (self.stream, || self.rows.iter().map(|row| row.delay));
        let mut doubts = Vec::new();
        let varies = delays().max().unwrap_or_default().saturating_sub(delays().min().unwrap_or_default());
        if varies >= LONGEST_VARIATION {
            doubts.push(format!(
                "the delay of {} varies by {varies}, more than any path holds packets: the clock of the capture or of the sender was \
                 set, and what lies before and behind it are two captures",
                stream.flow
            ));
        }
        if stream.number_restarts > 0 || stream.clock_restarts > 0 {
            doubts.push(format!(
                "the sender of {} began its numbers or times anew: nothing is known of losses there, or the packets are out of order",
                stream.flow
            ));
        }
        doubts
    }

    fn describe(&self) -> String {
        let Self { stream, rows } = self;
        let delays = rows.iter().map(|row| row.delay);
        let (least, most) = (delays.clone().min().unwrap_or_default(), delays.max().unwrap_or_default());
        let mean = rows.iter().map(|row| row.delay.as_millis_f64()).sum::<f64>() / rows.len().max(1) as f64;
        let losses: Vec<f64> = rows.iter().map(|row| row.loss * 100.0).collect();
        let (least_loss, most_loss) = (
            losses.iter().copied().fold(f64::INFINITY, f64::min),
            losses.iter().copied().fold(0.0, f64::max),
        );
        format!(
            "{}, {} over {:.1} s, {:.2} % lost{}; within {} ms the median delay is {:.1} to {:.1} ms, {mean:.1} in the mean, and the \
             loss {least_loss:.0} to {most_loss:.0} %; {}",
            stream.flow,
            counted(stream.packets, "packet"),
            stream.to_s - stream.from_s,
            stream.lost_share * 100.0,
            stream.longest_gap_ms.map_or_else(String::new, |ms| format!(", the longest gap {ms:.0} ms")),
            WINDOW.as_millis(),
            least.as_millis_f64(),
            most.as_millis_f64(),
            one_way(stream)
        )
    }
}

/// We chose 30 s: Linux gives up a fragment after that time, and no queue of an access line is as long.
const LONGEST_VARIATION: Duration = Duration::from_secs(30);

/// Finds the stream `wanted`, or else the one with the most packets.
fn choose<'a>(capture: &'a Capture, wanted: Option<&str>) -> Result<&'a StreamSummary, String> {
    let streams = &capture.streams;
    let Some(wanted) = wanted else {
        // The first of those that are equally long.
        let longest = streams.iter().rev().max_by_key(|stream| stream.packets);
        return longest
            .ok_or_else(|| "found no stream of RTP; `talkpath rate FILE` says what it has".to_owned());
    };
    streams.iter().find(|stream| stream.flow == wanted).ok_or_else(|| {
        let names: Vec<&str> = streams.iter().map(|stream| stream.flow.as_str()).collect();
        format!("found no stream {wanted:?}, expected one of {}", names.join(", "))
    })
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    time: Duration,
    delay: Duration,
    /// The share of the packets that are lost.
    loss: f64,
}

/// Makes the rows of a flow, with times from `start` on. A window in which nothing was due, as in a pause of
/// speech, has no row. If all of its packets are lost, the delay is that of the row before.
fn rows(flow: &FlowRecord, start: Instant) -> Vec<Row> {
    struct Window {
        number: u64,
        due: u64,
        delays: Vec<Duration>,
    }
    let messages = &flow.forward.messages;
    let mut windows: Vec<Window> = Vec::new();
    for message in messages {
        let number = since(start, message.due).as_nanos() / WINDOW.as_nanos();
        if windows.last().is_none_or(|last| last.number != number) {
            windows.push(Window { number, due: 0, delays: Vec::new() });
        }
        if let Some(window) = windows.last_mut() {
            window.due += 1;
            window.delays.extend(message.received.map(|received| since(message.due, received)));
        }
    }
    let first_delay = windows.iter_mut().find_map(|window| median(&mut window.delays));
    let Some(mut delay) = first_delay else { return Vec::new() };
    let mut rows = Vec::new();
    for mut window in windows {
        let loss = 1.0 - window.delays.len() as f64 / window.due as f64;
        delay = median(&mut window.delays).unwrap_or(delay);
        rows.push(Row { time: WINDOW.saturating_mul(window.number), delay, loss });
    }
    rows
}

/// The time from `earlier` to `later`, or zero if the clock of the sender ran ahead.
fn since(earlier: Instant, later: Instant) -> Duration {
    Duration::from_nanos(later.as_nanos().saturating_sub(earlier.as_nanos()))
}

fn median(delays: &mut [Duration]) -> Option<Duration> {
    delays.sort_unstable();
    delays.get(delays.len() / 2).copied()
}

/// Writes the table that `file` of a change reads. The values of one stream are those of both directions. Of
/// two the first is `up`; where one of them has no row, the cells are empty.
fn table(name: &str, streams: &[StreamRows<'_>]) -> String {
    let name = talkpath_units::printable(name, LONGEST_NAME);
    let mut text = String::new();
    for StreamRows { stream, .. } in streams {
        text.push_str(&format!("# {} of {name}; {}\n", stream.flow, one_way(stream)));
    }
    let prefixes: &[&str] = if streams.len() == 1 { &[""] } else { &["up_", "down_"] };
    text.push_str("time_s");
    prefixes.iter().for_each(|way| text.push_str(&format!(",{way}delay_ms,{way}loss_percent")));
    let mut cells: BTreeMap<Duration, Vec<Option<Row>>> = BTreeMap::new();
    for (place, stream) in streams.iter().enumerate() {
        for row in &stream.rows {
            cells.entry(row.time).or_insert_with(|| vec![None; streams.len()])[place] = Some(*row);
        }
    }
    // A table begins with the values of both.
    if let Some(mut first) = cells.first_entry() {
        for (cell, stream) in first.get_mut().iter_mut().zip(streams) {
            *cell = cell.or_else(|| stream.rows.first().copied());
        }
    }
    for (time, cells) in cells {
        text.push_str(&format!("\n{}", time.as_secs_f64()));
        for cell in cells {
            match cell {
                Some(Row { delay, loss, .. }) => {
                    text.push_str(&format!(",{:.3},{:.4}", delay.as_millis_f64(), loss * 100.0));
                }
                None => text.push_str(",,"),
            }
        }
    }
    text.push('\n');
    text
}

/// Says how the delay of the fastest packet is known.
fn one_way(stream: &StreamSummary) -> String {
    let ms = stream.one_way_ms;
    match stream.one_way_by {
        OneWayBasis::Option => format!("the fastest packet took {ms:.1} ms, by --one-way"),
        OneWayBasis::Rtcp => {
            format!("the fastest packet took {ms:.1} ms, half of RTCP's smallest round trip")
        }
        OneWayBasis::Assumed => {
            format!("{ms:.1} ms are assumed for the fastest packet: --one-way says another delay")
        }
    }
}

/// The longest name of a capture in the table. We chose 100 characters.
const LONGEST_NAME: usize = 100;

#[cfg(test)]
mod tests {
    use talkpath_measure::{Fate, FlowInfo, LegRecord, MessageRecord};
    use talkpath_units::Bytes;

    use super::*;

    /// A flow with a message every 20 ms and these delays in ms.
    fn flow(delays_ms: &[Option<u64>]) -> FlowRecord {
        let message = |(seq, delay): (u64, &Option<u64>)| {
            let due = Instant::from_millis(1000 + 20 * seq);
            let received = delay.map(|ms| due.saturating_add(Duration::from_millis(ms)));
            let fate = if received.is_some() { Fate::Delivered } else { Fate::Missing };
            MessageRecord {
                seq,
                size: Bytes::new(160),
                due,
                sent: Some(due),
                wire: None,
                received,
                fate,
                drop_cause: None,
                copies: u32::from(received.is_some()),
                transmissions: 1,
            }
        };
        let messages = (0..).zip(delays_ms).map(message).collect();
        let forward = LegRecord { messages, ..LegRecord::default() };
        FlowRecord { forward, ..FlowRecord::new(FlowInfo::on_a_clock("call-1")) }
    }

    #[test]
    fn a_row_has_the_median_delay_and_the_loss_of_its_packets() {
        let mut delays = vec![Some(50); 10];
        delays.extend([
            Some(80),
            Some(90),
            Some(100),
            None,
            None,
            Some(90),
            Some(90),
            Some(90),
            Some(90),
            Some(90),
        ]);
        delays.extend([None; 10]);
        let rows = rows(&flow(&delays), Instant::from_millis(1000));
        let ms = Duration::from_millis;
        let expected = [(0, 50, 0.0), (200, 90, 0.2), (400, 90, 1.0)];
        assert_eq!(rows.len(), expected.len());
        for (row, (time, delay, loss)) in rows.iter().zip(expected) {
            assert_eq!((row.time, row.delay), (ms(time), ms(delay)));
            assert!((row.loss - loss).abs() < 1e-9, "{row:?}");
        }
        assert!(
            super::rows(&flow(&[None; 20]), Instant::from_millis(1000)).is_empty(),
            "no packet came, so no delay is known"
        );
    }
}
