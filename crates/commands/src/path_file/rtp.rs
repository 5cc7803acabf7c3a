//! Makes a table of changes of a stream of RTP in a capture: the delay and the loss of its packets over time.
//!
//! ```text
//! packets due within   0 to 200 ms    200 to 400 ms   ...
//! delay, median        51 ms          78 ms
//! loss                 0 of 10        2 of 10
//! row                  0,51,0         0.2,78,20
//! ```
//!
//! A conversation has two streams, `NAME-up` and `NAME-down`. Each direction then has columns of its own,
//! such as `up_delay_ms`, and the times count from the first packet of either direction.
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
use talkpath_units::text::three_digits;
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
        let start = streams.iter().filter_map(|stream| first_due(flow_of(stream)?)).min();
        let start = start.unwrap_or(Instant::ZERO);
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
        let of_both = if streams.len() == 1 { "; its values are those of both directions" } else { "" };
        let mut description = format!("{name}: RTP{others}: {}{of_both}", described.join("; "));
        if let Some(damage) = &capture.damage {
            description += &format!("; what follows byte {} is damaged: {}", damage.at, damage.what);
        }
        let mut doubts: Vec<String> = capture.order.warning().into_iter().collect();
        doubts.extend(capture.left_out.clone());
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
                "the delay of {} varies by {} s, more than any path holds packets: the clock of the capture or of the sender was set, \
                 and what lies before and behind it are two captures",
                stream.flow,
                three_digits(varies.as_secs_f64())
            ));
        }
        if stream.clock_rate.is_none() {
            doubts.push(format!(
                "the rate of the timestamps of {} is not known, so its delay is not: the table has its losses and a constant delay",
                stream.flow
            ));
        }
        doubts.extend(stream.restarts_in_words());
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
    // The first of those that are equally long.
    let Some(longest) = streams.iter().rev().max_by_key(|stream| stream.packets) else {
        return Err("found no stream of RTP; `talkpath rate FILE` says what it has".to_owned());
    };
    let Some(wanted) = wanted else { return Ok(longest) };
    streams.iter().find(|stream| stream.flow == wanted).ok_or_else(|| {
        let names: Vec<&str> = streams.iter().map(|stream| stream.flow.as_str()).collect();
        format!("found no stream {wanted:?}, expected one of {}", names.join(", "))
    })
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    time: Duration,
    /// The end of its last window.
    end: Duration,
    delay: Duration,
    /// The share of the packets that are lost.
    loss: f64,
}

/// The packets that were due in one window, or in windows that follow each other.
#[derive(Debug, Default)]
struct Window {
    /// The numbers of its first window, and of the window behind its last.
    windows: std::ops::Range<u64>,
    due: u64,
    delays: Vec<Duration>,
}

impl Window {
    /// Takes in what was due in `later`.
    fn join(&mut self, later: Self) {
        self.windows.end = later.windows.end;
        self.due += later.due;
        self.delays.extend(later.delays);
    }

    const fn is_small(&self) -> bool {
        self.due < FEWEST_PACKETS
    }
}

/// The fewest packets of a row, if there are others near. We chose 5, half of those of a usual call: of fewer
/// packets a lost packet is a large share, and its row would lose most packets of a faster stream.
const FEWEST_PACKETS: u64 = 5;

/// The longest time without packets that is not a pause, in windows. We chose three windows because a codec
/// in DTX sends a packet each 400 ms (RFC 6716 §2.1.9), so that a window or two between its packets are
/// empty.
const LONGEST_GAP: u64 = 3;

/// Makes the rows of a flow, with times from `start` on. A pause, in which nothing was due, has no row. A
/// window with few packets is joined to the next window, or before a pause to the one before. A row whose
/// packets are all lost has the delay of the row before.
fn rows(flow: &FlowRecord, start: Instant) -> Vec<Row> {
    let mut windows: BTreeMap<u64, Window> = BTreeMap::new();
    for message in &flow.forward.messages {
        let number = since(start, message.due).as_nanos() / WINDOW.as_nanos();
        let window = windows.entry(number).or_default();
        window.windows = number..number + 1;
        window.due += 1;
        window.delays.extend(message.received.map(|received| since(message.due, received)));
    }
    let mut windows = joined(windows.into_values());
    let first_delay = windows.iter_mut().find_map(|window| median(&mut window.delays));
    let Some(mut delay) = first_delay else { return Vec::new() };
    let mut rows = Vec::new();
    for mut window in windows {
        let loss = 1.0 - window.delays.len() as f64 / window.due as f64;
        delay = median(&mut window.delays).unwrap_or(delay);
        let [time, end] = [window.windows.start, window.windows.end].map(|at| WINDOW.saturating_mul(at));
        rows.push(Row { time, end, delay, loss });
    }
    rows
}

/// Joins windows with few packets to a window beside them. Only those on their own stay as they are.
fn joined(windows: impl Iterator<Item = Window>) -> Vec<Window> {
    let are_near =
        |one: &Window, next: &Window| next.windows.start.saturating_sub(one.windows.end) <= LONGEST_GAP;
    let mut forward: Vec<Window> = Vec::new();
    for window in windows {
        match forward.last_mut() {
            Some(last) if last.is_small() && are_near(last, &window) => last.join(window),
            _ => forward.push(window),
        }
    }
    // What is small still has no window behind it.
    let mut all: Vec<Window> = Vec::new();
    for window in forward {
        match all.last_mut() {
            Some(last) if window.is_small() && are_near(last, &window) => last.join(window),
            _ => all.push(window),
        }
    }
    all
}

/// When the first packet was due. Packets of video need not be due in the order of their numbers.
fn first_due(flow: &FlowRecord) -> Option<Instant> {
    flow.forward.messages.iter().map(|message| message.due).min()
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
/// Nothing is known of a stream in a pause, so it has the delay from before and loses nothing.
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
    let ends = streams.iter().filter_map(|stream| Some(stream.rows.last()?.end)).max();
    let in_pause = |row: &Row| Row { time: row.end, loss: 0.0, ..*row };
    for (place, stream) in streams.iter().enumerate() {
        let mut put = |row: Row| {
            cells.entry(row.time).or_insert_with(|| vec![None; streams.len()])[place] = Some(row);
        };
        let next = stream.rows.iter().skip(1).map(|row| row.time).chain(ends);
        for (row, next) in stream.rows.iter().zip(next) {
            put(*row);
            if row.end < next {
                put(in_pause(row));
            }
        }
    }
    // The first row needs the values of both directions.
    if let Some(mut first) = cells.first_entry() {
        for (cell, stream) in first.get_mut().iter_mut().zip(streams) {
            *cell = cell.or_else(|| stream.rows.first().map(in_pause));
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
    if stream.clock_rate.is_none() {
        return format!("its delay is not known, and {ms:.1} ms are assumed");
    }
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

    /// The table of streams with these packets. Each has a summary of its own.
    fn table_of(delays_ms: &[&[Option<u64>]], due_ms: impl Fn(usize, u64) -> u64) -> String {
        let summary = summary();
        let rows_of = |(place, delays): (usize, &&[Option<u64>])| {
            let mut flow = flow(delays);
            for message in &mut flow.forward.messages {
                let later = Duration::from_millis(due_ms(place, message.seq));
                message.due = message.due.saturating_add(later);
                message.received = message.received.map(|at| at.saturating_add(later));
            }
            StreamRows { stream: &summary, rows: rows(&flow, Instant::from_millis(1000)) }
        };
        let streams: Vec<StreamRows<'_>> = delays_ms.iter().enumerate().map(rows_of).collect();
        let text = table("a.pcap", &streams);
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    }

    /// The summary of the only stream of a capture in IPv4 without a link layer: a packet of G.711 each 20
    /// ms.
    fn summary() -> StreamSummary {
        let capture = read(&capture_bytes(0, 0)[..], &Options::default()).unwrap();
        capture.streams.into_iter().next().unwrap()
    }

    /// A capture of 50 packets of RTP, each 20 ms, with a payload type, and of fragments of IP.
    fn capture_bytes(payload_type: u8, fragments: u64) -> Vec<u8> {
        let mut bytes = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0];
        // LINKTYPE_RAW is 101.
        [0_u32, 0, 65_535, 101].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        let mut packet = |at_ms: u64, fragment: u16, payload: &[u8]| {
            let length = 28 + payload.len() as u16;
            let captured = u32::from(length);
            let ns = (at_ms % 1000) * 1_000_000;
            for word in [(at_ms / 1000) as u32, ns as u32, captured, captured] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend([0x45, 0]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([0, 0]);
            bytes.extend(fragment.to_be_bytes());
            bytes.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            [5004_u16, 5004, length - 20, 0].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
            bytes.extend(payload);
        };
        for number in 0..50_u64 {
            let mut payload = vec![0x80, payload_type];
            payload.extend((number as u16).to_be_bytes());
            payload.extend((number as u32 * 160).to_be_bytes());
            payload.extend(7_u32.to_be_bytes());
            payload.extend([0xd5; 160]);
            packet(20 * number, 0, &payload);
        }
        // More than the first fragment: its offset is not zero.
        (0..fragments).for_each(|number| packet(1000 + number, 100, &[0; 100]));
        bytes
    }

    /// Writes a capture to a file, and reads a stream of it.
    fn stream_path(name: &str, bytes: &[u8], stream: Option<&str>) -> Result<StreamPath, String> {
        let file = std::env::temp_dir().join(format!("talkpath-rtp-{}-{name}.pcap", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let wanted = StreamWanted { stream: stream.map(str::to_owned), one_way: None };
        let read = StreamPath::read(&file, "a.pcap", &wanted);
        std::fs::remove_file(&file).unwrap();
        read
    }

    #[test]
    fn fragments_that_are_left_out_are_warned_of() {
        let whole = stream_path("whole", &capture_bytes(0, 0), None).unwrap();
        assert_eq!(whole.doubts, [""; 0]);
        assert!(whole.description.contains("those of both directions"), "{}", whole.description);
        let cut = stream_path("cut", &capture_bytes(0, 3), None).unwrap();
        assert!(
            cut.doubts.iter().any(|doubt| doubt.starts_with("3 fragments of IP left out")),
            "{:?}",
            cut.doubts
        );
    }

    #[test]
    fn a_stream_whose_clock_rate_is_not_known_has_no_known_delay() {
        let mut stream = summary();
        stream.clock_rate = None;
        let rows =
            StreamRows { stream: &stream, rows: rows(&flow(&[Some(50); 20]), Instant::from_millis(1000)) };
        assert!(rows.doubts()[0].contains("is not known, so its delay is not"), "{:?}", rows.doubts());
        assert!(table("a", &[rows]).contains("its delay is not known"));
    }

    #[test]
    fn a_stream_is_asked_for_of_a_capture_that_has_none() {
        let empty = &capture_bytes(0, 0)[..24];
        let why = stream_path("empty", empty, Some("call-1")).err().unwrap();
        assert!(why.starts_with("a.pcap: found no stream of RTP"), "{why}");
    }

    #[test]
    fn a_variation_of_the_delay_has_three_digits() {
        let stream = summary();
        let delays = [[Some(50); 10], [Some(35_173); 10]].concat();
        let rows = StreamRows { stream: &stream, rows: rows(&flow(&delays), Instant::from_millis(1000)) };
        assert!(rows.doubts()[0].contains(" varies by 35.1 s, "), "{:?}", rows.doubts());
    }

    #[test]
    fn times_count_from_the_packet_that_is_due_first() {
        let mut flow = flow(&[Some(50); 10]);
        let messages = &mut flow.forward.messages;
        (messages[0].due, messages[1].due) = (messages[1].due, messages[0].due);
        assert_eq!(first_due(&flow), Some(Instant::from_millis(1000)));
    }

    #[test]
    fn a_packet_lost_before_a_pause_does_not_lose_the_packets_of_the_pause() {
        let delays = [[Some(50); 10].as_slice(), &[None], &[Some(50); 10]].concat();
        // The speaker pauses for 5 s after the lost packet.
        let table = table_of(&[&delays], |_, seq| if seq > 10 { 5000 } else { 0 });
        // 1 of the 11 packets of 400 ms is lost. The packets behind the pause are due from 5.22 s on.
        assert_eq!(
            table,
            "time_s,delay_ms,loss_percent\n0,50.000,9.0909\n0.4,50.000,0.0000\n5.2,50.000,0.0000\n"
        );
    }

    #[test]
    fn windows_of_few_packets_are_rows_together() {
        // A packet each 100 ms, of which the fourth is lost.
        let mut delays = [Some(50); 12];
        delays[3] = None;
        let table = table_of(&[&delays], |_, seq| 80 * seq);
        assert_eq!(table, "time_s,delay_ms,loss_percent\n0,50.000,16.6667\n0.6,50.000,0.0000\n");
    }

    #[test]
    fn a_direction_without_packets_loses_nothing() {
        let lossy = [[None; 5], [Some(70); 5], [Some(70); 5], [None; 5]].concat();
        // The second direction begins 400 ms later than the first, which goes on for 400 ms behind its end.
        let table = table_of(&[&[Some(50); 60], &lossy], |place, _| 400 * place as u64);
        let down: Vec<&str> =
            table.lines().map(|line| line.split_once(",down_").map_or(line, |(_, it)| it)).collect();
        assert_eq!(
            down,
            [
                "delay_ms,down_loss_percent",
                "0,50.000,0.0000,70.000,0.0000",
                "0.2,50.000,0.0000,,",
                "0.4,50.000,0.0000,70.000,50.0000",
                "0.6,50.000,0.0000,70.000,50.0000",
                "0.8,50.000,0.0000,70.000,0.0000",
                "1,50.000,0.0000,,",
            ]
        );
    }

    #[test]
    fn packets_that_are_due_in_another_order_are_counted_in_the_row_of_their_time() {
        let mut flow = flow(&[[Some(50); 9].as_slice(), &[None], &[Some(50); 10]].concat());
        // Numbers 9 and 10 change places, as those of frames of video do.
        let messages = &mut flow.forward.messages;
        (messages[9].due, messages[10].due) = (messages[10].due, messages[9].due);
        messages[10].received = Some(messages[10].due.saturating_add(Duration::from_millis(50)));
        let losses: Vec<f64> =
            rows(&flow, Instant::from_millis(1000)).into_iter().map(|row| row.loss).collect();
        assert_eq!(losses.len(), 2);
        assert!(losses[0] == 0.0 && (losses[1] - 0.1).abs() < 1e-9, "{losses:?}");
    }
}
