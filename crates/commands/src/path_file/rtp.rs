//! Makes a table of changes of a stream of RTP in a capture: the delay and the loss of its packets over time.
//!
//! ```text
//! packets due within   0 to 200 ms    200 to 400 ms   ...
//! delay, median        51 ms          78 ms
//! loss                 0 of 10        2 of 10
//! row                  0,51,0         0.2,78,20
//! ```
//!
//! A conversation has two streams, `NAME-up` and `NAME-down`. Each direction then has columns of its own, such
//! as `up_delay_ms`, and the times count from the first packet of either direction.
//!
//! A capture shows how much longer each packet took than the fastest packet. The delay of the fastest packet
//! comes from `--one-way` or RTCP, or is assumed (`talkpath rate` has the same rule). The rate of the path is
//! not known: a call shows only that it is not below the rate of the call.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use talkpath_capture::{Capture, OneWayBasis, Options, StreamSummary, read};
use talkpath_measure::FlowRecord;
use talkpath_units::{Duration, Instant, counted};

/// The time of a row. We chose 200 ms because it has ten packets of a usual call, so that a row shows a loss
/// of 10 %, and because it is short enough to keep a burst of losses in one row or two.
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
    /// The name of the stream, as `talkpath rate` prints it. `None` is the stream with the most packets, and
    /// the other direction of its conversation.
    pub(crate) stream: Option<String>,
    /// The delay of the fastest packet. `None` if the user does not say it.
    pub(crate) one_way: Option<Duration>,
}

/// The path that the packets of a stream saw, or those of both streams of a conversation.
pub(crate) struct StreamPath {
    /// The streams with their figures, in a few lines.
    pub(crate) description: String,
    /// The text of the table of changes.
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

/// Returns the streams `NAME-up` and `NAME-down` of the conversation of `chosen`. `None` if the capture does
/// not have both streams.
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

/// The largest variation of a plausible delay. We chose 30 s: Linux gives up a fragment after that time
/// (`ipfrag_time`), and no queue of an access line is as long.
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
/// speech, has no row. A window whose packets are all lost has the delay of the row before.
fn rows(flow: &FlowRecord, start: Instant) -> Vec<Row> {
    #[derive(Default)]
    struct Window {
        due: u64,
        delays: Vec<Duration>,
    }
    // Packets of video need not be due in the order of their numbers.
    let mut windows: BTreeMap<u64, Window> = BTreeMap::new();
    for message in &flow.forward.messages {
        let number = since(start, message.due).as_nanos() / WINDOW.as_nanos();
        let window = windows.entry(number).or_default();
        window.due += 1;
        window.delays.extend(message.received.map(|received| since(message.due, received)));
    }
    let first_delay = windows.values_mut().find_map(|window| median(&mut window.delays));
    let Some(mut delay) = first_delay else { return Vec::new() };
    let mut rows = Vec::new();
    for (number, mut window) in windows {
        let loss = 1.0 - window.delays.len() as f64 / window.due as f64;
        delay = median(&mut window.delays).unwrap_or(delay);
        rows.push(Row { time: WINDOW.saturating_mul(number), delay, loss });
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

/// Writes the table that `file` of a change reads. If there is one stream, its values are those of both
/// directions. If there are two, the first is `up`, and a time at which a stream has no row has empty cells.
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
    // The first row needs the values of both directions.
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
    use talkpath_fixtures::call_record;

    use super::*;

    /// A flow with a message every 20 ms, the first of which is due after 1 s, and these delays in ms.
    fn flow(delays_ms: &[Option<u64>]) -> FlowRecord {
        let mut flow = call_record(20 * delays_ms.len() as u64, u64::MAX).flows.remove(0);
        for (message, delay) in flow.forward.messages.iter_mut().zip(delays_ms) {
            message.due = message.due.saturating_add(Duration::from_secs(1));
            message.received = delay.map(|ms| message.due.saturating_add(Duration::from_millis(ms)));
        }
        flow
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

    #[test]
    fn packets_that_are_due_in_another_order_are_counted_in_the_row_of_their_time() {
        let mut flow = flow(&[[Some(50); 9].as_slice(), &[None, Some(50)]].concat());
        // Numbers 9 and 10 change places, as those of frames of video do.
        let messages = &mut flow.forward.messages;
        (messages[9].due, messages[10].due) = (messages[10].due, messages[9].due);
        messages[10].received = Some(messages[10].due.saturating_add(Duration::from_millis(50)));
        let losses: Vec<f64> =
            rows(&flow, Instant::from_millis(1000)).into_iter().map(|row| row.loss).collect();
        assert_eq!(losses, [0.0, 1.0]);
    }
}
