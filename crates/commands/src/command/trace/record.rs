//! `talkpath trace record`: measures the line to a host that runs `talkpath serve`, and writes it as a path
//! that `--path` reads.
//!
//! ```text
//! cell   what runs                 what it shows
//! 0      a probe with an echo      the delay, and the loss of each direction, over time
//! 1      the probe and an upload   the rate of the upload over time, and how long its queue becomes
//! 2      the probe and a download  the same of the download
//! ```
//!
//! The three are measured one after the other, so the rows of a table are not of one moment: row 3 has the
//! rate of the third second of the upload, and the delay of the third second of the probe alone. A delay that
//! grows under load is taken as a queue and not as a longer path.

use std::fs::File;
use std::path::{Path, PathBuf};

use talkpath_experiment::choice::{ArenaKind, Records};
use talkpath_experiment::part::PACKETS;
use talkpath_experiment::place::Place;
use talkpath_measure::Leg;
use talkpath_measure::record_file::{PacketRow, read_packets};
use talkpath_scenario::{Options, Plan, Setting, Source};
use talkpath_units::{Duration, Instant};

use crate::args::{RecordArgs, quoted};
use crate::command::Context;
use crate::command::run::run_plan;
use crate::failure::Failure;
use crate::output_file::write_named_bytes;
use crate::scenario_file::load_source;

/// The scenario of the measurement. The probe has the packets of a call.
const SCENARIO: &str = "\
drain = \"5 s\"
[flow.probe]
transport = \"udp\"
workload = { kind = \"cbr\", size = \"172 B\", message_rate = \"50 Hz\", echo = true }
[flow.up]
transport = \"tcp\"
workload = \"bulk\"
[flow.down]
transport = \"tcp\"
direction = \"down\"
workload = \"bulk\"
[sweep]
\"flow.up.count, flow.down.count\" = [[0, 0], [1, 0], [0, 1]]
";
const IDLE: u64 = 0;
const UPLOAD: u64 = 1;
const DOWNLOAD: u64 = 2;

/// The time of a row. We chose 1 s, which is many round trips of TCP, so that the goodput follows the line.
const WINDOW: Duration = Duration::from_secs(1);
/// The bytes of an IP packet for the bytes of its payload: 1500 for 1448 with TCP's timestamps (RFC 9293
/// §3.7.1, RFC 7323 §3.2).
const IP_PER_PAYLOAD: f64 = 1500.0 / 1448.0;
/// The smallest queue that is written. We chose 10 ms: below that a drop-tail queue holds hardly a packet of
/// a slow line.
const LEAST_QUEUE: Duration = Duration::from_millis(10);

/// Measures the line, and writes the path file and a table for each direction.
pub(super) fn run(args: &RecordArgs, context: Context<'_>) -> Result<(), Failure> {
    let files = Files::new(&args.output)?;
    args.family.only()?;
    let ip = args.family.versions();
    let place = Place { ip, key_file: args.key_file.clone(), ..Place::new(ArenaKind::Live, Some(&args.to)) };
    if context.common.records() < Records::All {
        return Err(Failure::Usage(
            "trace record reads the rows of its run; it takes no --records".to_owned(),
        ));
    }
    let outcome = run_plan(&plan(args)?, place, false, None, context)?;
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    let path = outcome.dir.file(PACKETS);
    let file = File::open(&path).map_err(|why| Failure::read(&path, &why))?;
    let unreadable = |why: &dyn core::fmt::Display| Failure::Usage(format!("{}: {why}", path.display()));
    let mut line = Line::default();
    for row in read_packets(file).map_err(|why| unreadable(&why))? {
        line.add(&row.map_err(|why| unreadable(&why))?);
    }
    let measured = line.measured().map_err(|why| unreadable(&why))?;
    for (file, direction) in [(&files.up, &measured.up), (&files.down, &measured.down)] {
        write_named_bytes(file, direction.table(measured.delay).as_bytes())?;
    }
    write_named_bytes(&files.path, measured.path_file(&args.to, &files).as_bytes())?;
    context.terminal.result(&measured.text(&files))
}

fn plan(args: &RecordArgs) -> Result<Plan, Failure> {
    let set = vec![
        Setting::by("--to", "name", quoted(&format!("the line to {}", args.to))),
        Setting::by(&format!("--duration {}", args.duration), "duration", quoted(&args.duration)),
    ];
    load_source(&Source::new("talkpath trace record", SCENARIO), &Options { set, ..Options::default() })
}

/// The files that are written.
struct Files {
    path: PathBuf,
    up: PathBuf,
    down: PathBuf,
}

impl Files {
    fn new(path: &Path) -> Result<Self, Failure> {
        if path.extension().is_none_or(|extension| extension != "toml") {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "-o {path}: a path file must end in .toml, so that --path reads it"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            up: path.with_extension("up.csv"),
            down: path.with_extension("down.csv"),
        })
    }
}

/// What the rows say, second by second.
#[derive(Default)]
struct Line {
    up: Direction,
    down: Direction,
    /// The due times of the probe's messages, by their numbers, in the cell that is being read.
    due: Vec<Option<Instant>>,
    due_cell: u64,
    /// The smallest round trip of the probe alone.
    least_round_trip: Option<Duration>,
    /// The half round trips of the probe alone, the smallest of each second.
    half_round_trips: Vec<Option<Duration>>,
}

/// One direction, second by second.
#[derive(Default)]
struct Direction {
    /// When the first message of the transfer came, and the last one so far.
    arrivals: Option<(Instant, Instant)>,
    /// The bytes of the transfer that came in each second from the first message on.
    bytes: Vec<f64>,
    /// The messages of the probe alone that were due, and that were lost.
    probes: Vec<(u32, u32)>,
    /// The round trips of the probe beside the transfer.
    loaded_round_trips: Vec<Duration>,
}

impl Line {
    fn add(&mut self, row: &PacketRow) {
        if self.due_cell != row.cell {
            (self.due, self.due_cell) = (Vec::new(), row.cell);
        }
        match (&*row.flow, row.cell) {
            ("probe", cell) => self.add_probe(cell, row),
            ("up", UPLOAD) => self.up.add_transfer(row),
            ("down", DOWNLOAD) => self.down.add_transfer(row),
            _ => {}
        }
    }

    /// Adds a message of the probe, or its echo. The echo of a message comes later in the file.
    fn add_probe(&mut self, cell: u64, row: &PacketRow) {
        let message = &row.message;
        let seq = usize::try_from(message.seq).unwrap_or(usize::MAX);
        if row.leg == Leg::Forward {
            if seq <= MOST_PROBES {
                self.due.resize((seq + 1).max(self.due.len()), None);
                self.due[seq] = Some(message.due);
            }
            if cell == IDLE {
                let second = seconds(message.due);
                self.up.add_idle(second, message.received.is_none());
            }
            return;
        }
        if cell == IDLE {
            self.down.add_idle(seconds(message.due), message.received.is_none());
        }
        let (Some(Some(due)), Some(received)) = (self.due.get(seq).copied(), message.received) else {
            return;
        };
        // The echo is due when the far host has the message, so its own turn-round is not in its delay.
        let turn_round =
            message.sent.map_or(0, |sent| sent.as_nanos().saturating_sub(message.due.as_nanos()));
        let round_trip = received.as_nanos().saturating_sub(due.as_nanos()).saturating_sub(turn_round);
        let round_trip = Duration::from_nanos(round_trip);
        match cell {
            IDLE => {
                self.least_round_trip =
                    Some(self.least_round_trip.map_or(round_trip, |least| least.min(round_trip)));
                let half = Duration::from_nanos(round_trip.as_nanos() / 2);
                let second = at(&mut self.half_round_trips, seconds(due));
                *second = Some(second.map_or(half, |least| least.min(half)));
            }
            UPLOAD => self.up.loaded_round_trips.push(round_trip),
            _ => self.down.loaded_round_trips.push(round_trip),
        }
    }

    /// Returns what was measured, or why there is nothing to write.
    fn measured(self) -> Result<Measured, String> {
        let least =
            self.least_round_trip.ok_or("no echo of the probe came back, so the delay is not known")?;
        let delay = Duration::from_nanos(least.as_nanos() / 2);
        let up = self.up.measured("upload", least, &self.half_round_trips)?;
        let down = self.down.measured("download", least, &self.half_round_trips)?;
        Ok(Measured { delay, up, down })
    }
}

/// The largest number of a message of the probe: those of a day. Chosen.
const MOST_PROBES: usize = 50 * 86_400;

/// The second of the run in which `at` is.
fn seconds(at: Instant) -> usize {
    usize::try_from(at.as_nanos() / WINDOW.as_nanos()).unwrap_or(usize::MAX).min(MOST_SECONDS)
}

/// A measurement has at most the seconds of a day. Chosen.
const MOST_SECONDS: usize = 86_400;

/// Returns the entry at `index`, and makes the entries before it if they are missing.
fn at<T: Clone + Default>(entries: &mut Vec<T>, index: usize) -> &mut T {
    if entries.len() <= index {
        entries.resize(index + 1, T::default());
    }
    &mut entries[index]
}

impl Direction {
    /// Adds a message of the transfer. A message of a transfer is many packets, which came since the message
    /// before it, so its bytes are spread over that time.
    fn add_transfer(&mut self, row: &PacketRow) {
        let Some(received) = row.message.received.filter(|_| row.leg == Leg::Forward) else { return };
        let Some((first, last)) = self.arrivals else {
            self.arrivals = Some((received, received));
            return;
        };
        self.arrivals = Some((first, received.max(last)));
        let from = last.as_nanos().saturating_sub(first.as_nanos());
        let until = received.as_nanos().saturating_sub(first.as_nanos()).max(from);
        let (window, size) = (WINDOW.as_nanos(), row.message.size.get() as f64);
        let end = seconds(Instant::from_nanos(until));
        for second in seconds(Instant::from_nanos(from))..=end {
            let begin = window * second as u64;
            let within = until.min(begin + window).saturating_sub(from.max(begin));
            let share = if until > from { within as f64 / (until - from) as f64 } else { 1.0 };
            *at(&mut self.bytes, second) += size * share;
        }
    }

    fn add_idle(&mut self, second: usize, is_lost: bool) {
        let (due, lost) = at(&mut self.probes, second);
        *due += 1;
        *lost += u32::from(is_lost);
    }

    /// The rows of this direction. The first second of a transfer is left out, because TCP begins slowly, and
    /// the last one, because it is not whole.
    fn measured(
        mut self,
        noun: &str,
        least: Duration,
        half_round_trips: &[Option<Duration>],
    ) -> Result<MeasuredDirection, String> {
        let whole = self.bytes.len().saturating_sub(1);
        let mut rows = Vec::new();
        for second in 1..whole {
            let bits = self.bytes[second] * 8.0 * IP_PER_PAYLOAD;
            let delay = half_round_trips.get(second).copied().flatten();
            let loss = match self.probes.get(second) {
                Some((due @ 1.., lost)) => f64::from(*lost) / f64::from(*due),
                _ => 0.0,
            };
            rows.push(Row { rate_kbps: bits / WINDOW.as_secs_f64() / 1e3, delay, loss });
        }
        if rows.is_empty() {
            return Err(format!(
                "the {noun} lasted less than 3 s, too short for a rate over time; --duration says how long"
            ));
        }
        self.loaded_round_trips.sort_unstable();
        let p95 = self.loaded_round_trips.get(self.loaded_round_trips.len() * 95 / 100).copied();
        let queue = p95.map_or(LEAST_QUEUE, |p95| p95.saturating_sub(least).max(LEAST_QUEUE));
        Ok(MeasuredDirection { rows, queue })
    }
}

/// The line, as it is written.
struct Measured {
    /// Half of the smallest round trip.
    delay: Duration,
    up: MeasuredDirection,
    down: MeasuredDirection,
}

struct MeasuredDirection {
    /// A row for each second.
    rows: Vec<Row>,
    /// How much longer the round trip is beside a transfer, at the 95th percentile.
    queue: Duration,
}

struct Row {
    rate_kbps: f64,
    /// `None` if no echo came back in this second.
    delay: Option<Duration>,
    /// The share of the probe's messages that were lost.
    loss: f64,
}

impl MeasuredDirection {
    fn mean_kbps(&self) -> f64 {
        self.rows.iter().map(|row| row.rate_kbps).sum::<f64>() / self.rows.len() as f64
    }

    /// The table that `file` of a change reads.
    fn table(&self, path_delay: Duration) -> String {
        let mut text = "time_s,rate_bps,delay_ms,loss_percent\n".to_owned();
        let mut delay = path_delay;
        for (second, row) in self.rows.iter().enumerate() {
            delay = row.delay.unwrap_or(delay);
            let (rate, ms, percent) = (row.rate_kbps * 1e3, delay.as_millis_f64(), row.loss * 100.0);
            text += &format!("{second},{rate:.0},{ms:.3},{percent:.2}\n");
        }
        text
    }

    /// The keys of the link.
    fn link(&self, delay: Duration) -> String {
        // A rate of zero is an outage in a row, and no rate of a link.
        let rate = self.mean_kbps().round().max(1.0);
        let (delay, queue) = (delay.as_nanos() as f64 / 1e3, self.queue.as_nanos() / 1_000_000);
        format!(
            "rate = \"{rate} kbps\"\ndelay = \"{delay} us\"\nqueue = {{ kind = \"drop-tail\", limit = \"{queue} ms\" }}\n"
        )
    }

    fn text(&self) -> String {
        let rates = self.rows.iter().map(|row| row.rate_kbps / 1e3);
        let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
        let loss = self.rows.iter().map(|row| row.loss).sum::<f64>() / self.rows.len() as f64;
        format!(
            "{:.2} Mb/s in the mean, {least:.2} to {most:.2} within a second; {:.2} % of the probe lost; a queue of {} ms",
            self.mean_kbps() / 1e3,
            loss * 100.0,
            self.queue.as_millis()
        )
    }
}

impl Measured {
    /// The path file.
    fn path_file(&self, to: &str, files: &Files) -> String {
        let file = |path: &Path| quoted(&path.file_name().unwrap_or_default().to_string_lossy());
        let change = |link: &str, path: &Path, direction: &MeasuredDirection| {
            let every = direction.rows.len();
            format!("\n[[change]]\nlink = \"{link}\"\nfile = {}\nevery = \"{every} s\"\n", file(path))
        };
        format!(
            "# The line to {}, as `talkpath trace record` measured it: delay and loss without other traffic, then the\n\
             # upload, then the download. The queue is how much longer the round trip was beside the transfer, p95.\n\
             [up]\n{}\n[down]\n{}{}{}",
            talkpath_units::printable(to, 100),
            self.up.link(self.delay),
            self.down.link(self.delay),
            change("up", &files.up, &self.up),
            change("down", &files.down, &self.down)
        )
    }

    fn text(&self, files: &Files) -> String {
        format!(
            "up    {}\ndown  {}\ndelay {:.1} ms each way, half of the smallest round trip\nWritten: {}, {}, {}\n\
             Over it: talkpath compare --path {}\n",
            self.up.text(),
            self.down.text(),
            self.delay.as_millis_f64(),
            files.path.display(),
            files.up.display(),
            files.down.display(),
            crate::terminal::shell_path(&files.path)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use talkpath_measure::{Fate, MessageRecord};
    use talkpath_units::Bytes;

    use super::*;

    fn row(cell: u64, flow: &str, leg: Leg, message: MessageRecord) -> PacketRow {
        PacketRow { cell, repetition: 0, flow: Arc::from(flow), leg, message }
    }

    fn message(seq: u64, due_ms: u64, received_ms: Option<u64>, size: u64) -> MessageRecord {
        MessageRecord {
            seq,
            size: Bytes::new(size),
            due: Instant::from_millis(due_ms),
            sent: Some(Instant::from_millis(due_ms)),
            wire: None,
            received: received_ms.map(Instant::from_millis),
            fate: if received_ms.is_some() { Fate::Delivered } else { Fate::Missing },
            drop_cause: None,
            copies: 1,
            transmissions: 1,
        }
    }

    /// A probe every 20 ms for 5 s, whose echo is back after `round_trip` ms.
    fn probes(line: &mut Line, cell: u64, round_trip: u64, is_lost: fn(u64) -> bool) {
        let due = |seq: u64| 20 * seq;
        for seq in 0..250 {
            let there = (!is_lost(seq)).then(|| due(seq) + round_trip / 2);
            line.add(&row(cell, "probe", Leg::Forward, message(seq, due(seq), there, 172)));
        }
        for seq in (0..250).filter(|seq| !is_lost(*seq)) {
            let (echoed, back) = (due(seq) + round_trip / 2, due(seq) + round_trip);
            line.add(&row(cell, "probe", Leg::Return, message(seq, echoed, Some(back), 172)));
        }
    }

    fn transfer(line: &mut Line, cell: u64, flow: &str) {
        // 1448 B every 12 ms: 1 Mb/s with headers.
        for seq in 0..416 {
            line.add(&row(cell, flow, Leg::Forward, message(seq, 0, Some(100 + 12 * seq), 1448)));
        }
    }

    #[test]
    fn the_line_has_its_rates_its_delay_its_losses_and_its_queue() {
        let mut line = Line::default();
        // The second second loses a fifth.
        probes(&mut line, IDLE, 40, |seq| (50..100).contains(&seq) && seq % 5 == 0);
        probes(&mut line, UPLOAD, 340, |_| false);
        transfer(&mut line, UPLOAD, "up");
        probes(&mut line, DOWNLOAD, 60, |_| false);
        transfer(&mut line, DOWNLOAD, "down");
        let measured = line.measured().unwrap();
        assert_eq!(measured.delay, Duration::from_millis(20));
        assert_eq!(
            (measured.up.queue, measured.down.queue),
            (Duration::from_millis(300), Duration::from_millis(20))
        );
        assert_eq!(measured.up.rows.len(), 3);
        assert!((measured.up.mean_kbps() - 1000.0).abs() < 15.0, "{}", measured.up.mean_kbps());
        let table = measured.up.table(measured.delay);
        assert!(table.starts_with("time_s,rate_bps,delay_ms,loss_percent\n0,"), "{table}");
        assert!(table.lines().nth(1).unwrap().ends_with(",20.000,20.00"), "{table}");
        assert!(table.lines().nth(2).unwrap().ends_with(",20.000,0.00"), "{table}");
        assert!(table.parse::<talkpath_path::ChangeTable>().is_ok());

        let files = Files::new(Path::new("line.toml")).unwrap();
        let text = measured.path_file("host", &files);
        assert!(text.contains("file = \"line.up.csv\"\nevery = \"3 s\""), "{text}");
        assert!(text.contains("limit = \"300 ms\"") && text.contains("delay = \"20000 us\""), "{text}");
    }

    #[test]
    fn a_line_without_echoes_or_with_a_short_transfer_is_refused() {
        let mut line = Line::default();
        assert!(Line::default().measured().err().unwrap().contains("no echo"));
        probes(&mut line, IDLE, 40, |_| false);
        line.add(&row(UPLOAD, "up", Leg::Forward, message(0, 0, Some(100), 1448)));
        assert!(line.measured().err().unwrap().contains("--duration"));
        assert!(Files::new(Path::new("line.csv")).is_err());
    }
}
