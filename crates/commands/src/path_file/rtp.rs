//! Makes a table of changes of a stream of RTP in a capture: the delay and the loss of its packets over time.
//!
//! ```text
//! packets due within   0 to 200 ms    200 to 400 ms   ...
//! delay, median        51 ms          78 ms
//! loss                 0 of 10        2 of 10
//! row                  0,51,0         0.2,78,20
//! ```
//!
//! A capture has the delays of the packets above that of the fastest packet. How long the fastest packet took
//! is said by `--one-way`, by RTCP, or assumed (`talkpath rate` has the same rule). The rate of the path is
//! not known: a call shows only that it is not below that of the call.

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
    /// Its name, as `rate` has it. `None` is the stream with the most packets.
    pub(crate) stream: Option<String>,
    /// How long its fastest packet took, if the user says it.
    pub(crate) one_way: Option<Duration>,
}

/// A stream of a capture, as the path that its packets saw.
pub(crate) struct StreamPath {
    /// What the capture has, in a few lines.
    pub(crate) description: String,
    /// The table of changes.
    pub(crate) table: String,
    /// What makes the capture implausible, a sentence each.
    pub(crate) doubts: Vec<String>,
}

impl StreamPath {
    /// Reads the capture, and makes the table of the stream that the user names, or of the one with the most
    /// packets. Messages call the file `name`.
    ///
    /// # Errors
    /// Returns why there is no such stream, or why the file cannot be read, with the name.
    pub(crate) fn read(file: &Path, name: &str, wanted: &StreamWanted) -> Result<Self, String> {
        let usage = |why: String| format!("{name}: {why}");
        let file = File::open(file).map_err(|why| usage(why.to_string()))?;
        let options = Options { one_way: wanted.one_way, ..Options::default() };
        let capture = read(file, &options).map_err(|why| usage(why.to_string()))?;
        let stream = choose(&capture, wanted.stream.as_deref()).map_err(usage)?;
        let flow = capture.record.flows.iter().find(|flow| flow.info.name == stream.flow);
        let rows = flow.map(rows).unwrap_or_default();
        if rows.is_empty() {
            return Err(usage(format!("{}: its packets have no times", stream.flow)));
        }
        let mut description = format!("{name}: {}", describe(&capture, stream, &rows));
        if let Some(damage) = &capture.damage {
            description += &format!("; what follows byte {} is damaged: {}", damage.at, damage.what);
        }
        Ok(Self { description, table: table(name, stream, &rows), doubts: doubts(&capture, stream, &rows) })
    }
}

/// Says what makes the times of a capture implausible.
fn doubts(capture: &Capture, stream: &StreamSummary, rows: &[Row]) -> Vec<String> {
    let mut doubts: Vec<String> = capture.order.warning().into_iter().collect();
    let delays = || rows.iter().map(|row| row.delay);
    let varies = delays().max().unwrap_or_default().saturating_sub(delays().min().unwrap_or_default());
    if varies >= LONGEST_VARIATION {
        doubts.push(format!(
            "the delay varies by {varies}, more than any path holds packets: the clock of the capture or of the sender was set, and \
             what lies before and behind it are two captures"
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

/// Makes the rows of a flow. A window in which nothing was due, as in a pause of speech, has no row. If all
/// of its packets are lost, the delay is that of the row before.
fn rows(flow: &FlowRecord) -> Vec<Row> {
    struct Window {
        number: u64,
        due: u64,
        delays: Vec<Duration>,
    }
    let messages = &flow.forward.messages;
    let Some(start) = messages.first().map(|first| first.due) else { return Vec::new() };
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

/// Writes the table that `file` of a change reads.
fn table(name: &str, stream: &StreamSummary, rows: &[Row]) -> String {
    let name = talkpath_units::printable(name, LONGEST_NAME);
    let mut text =
        format!("# {} of {name}; {}\ntime_s,delay_ms,loss_percent\n", stream.flow, one_way(stream));
    for Row { time, delay, loss } in rows {
        text.push_str(&format!("{},{:.3},{:.4}\n", time.as_secs_f64(), delay.as_millis_f64(), loss * 100.0));
    }
    text
}

fn describe(capture: &Capture, stream: &StreamSummary, rows: &[Row]) -> String {
    let delays = rows.iter().map(|row| row.delay);
    let (least, most) = (delays.clone().min().unwrap_or_default(), delays.max().unwrap_or_default());
    let mean = rows.iter().map(|row| row.delay.as_millis_f64()).sum::<f64>() / rows.len().max(1) as f64;
    let losses: Vec<f64> = rows.iter().map(|row| row.loss * 100.0).collect();
    let (least_loss, most_loss) =
        (losses.iter().copied().fold(f64::INFINITY, f64::min), losses.iter().copied().fold(0.0, f64::max));
    let others = match capture.streams.len() - 1 {
        0 => String::new(),
        others => format!(" (and {}: --stream takes another)", counted(others as u64, "other stream")),
    };
    format!(
        "{} of RTP{others}: {} over {:.1} s, {:.2} % lost{}; within {} ms the median delay is {:.1} to {:.1} ms, {mean:.1} in the \
         mean, and the loss {least_loss:.0} to {most_loss:.0} %; {}",
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
        let rows = rows(&flow(&delays));
        let ms = Duration::from_millis;
        let expected = [(0, 50, 0.0), (200, 90, 0.2), (400, 90, 1.0)];
        assert_eq!(rows.len(), expected.len());
        for (row, (time, delay, loss)) in rows.iter().zip(expected) {
            assert_eq!((row.time, row.delay), (ms(time), ms(delay)));
            assert!((row.loss - loss).abs() < 1e-9, "{row:?}");
        }
        assert!(super::rows(&flow(&[None; 20])).is_empty(), "no packet came, so no delay is known");
    }
}
