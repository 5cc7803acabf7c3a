//! The kernel's CoDel and FQ-CoDel beside ours: `cargo xtask kernel-queues`.
//!
//! Debian's 6.1 cloud kernel, which the DCCP test boots too, has both. `codel.c` is its only process: it
//! fills a queue with flows of TCP and UDP and traces all that the queue does. Its trace becomes a log of
//! arrivals and decisions, and a test of `talkpath-path` feeds the log to our queue in the kernel's
//! arithmetic. No decision may differ.
//!
//! ```text
//!   codel.c ── probes ─► trace on a disk ─► log: + packet, - decision ─► the test
//! ```
//!
//! A probe that is at work is not entered again, so that a trace may lack what an interrupt does meanwhile. A
//! log then ends before that.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::command::cargo;
use crate::kernel_peer::{Guest, Kernel, create, guest_lines, machine, prepare, wait};

const GUEST: Guest = Guest::new("codel.c", &["virtio_pci", "virtio_blk", "veth", "sch_codel", "sch_tbf"]);

/// Logs both queues at each rate, and compares. Loads that have not begun by `deadline` are skipped.
pub(crate) fn run(root: &Path, deadline: Option<Instant>) -> Result<String, String> {
    let folder = root.join("target").join("kernel-peer");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let all = QUEUES.len() * MBPS.len();
    let kernel = match prepare(root, &folder, &GUEST) {
        Ok(kernel) => kernel,
        Err(why) => {
            println!("kernel-queues: skipped: {why}");
            return Ok(format!("kernel-queues: 0 passed, 0 failed, {all} skipped"));
        }
    };
    let (mut failed, mut skipped) = (0, 0);
    for (queue, mbps) in QUEUES.iter().flat_map(|queue| MBPS.map(|mbps| (*queue, mbps))) {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            println!("kernel-queues: {queue} at {mbps} Mb/s: skipped: the time is over");
            skipped += 1;
            continue;
        }
        match compare(root, &folder, &kernel, queue, mbps) {
            Ok(said) => println!("kernel-queues: {queue} at {mbps} Mb/s: ok\n{said}"),
            Err(why) => {
                failed += 1;
                println!("kernel-queues: {queue} at {mbps} Mb/s: FAILED\n{why}");
            }
        }
    }
    let closing =
        format!("kernel-queues: {} passed, {failed} failed, {skipped} skipped", all - failed - skipped);
    if failed == 0 { Ok(closing) } else { Err(closing) }
}

fn compare(root: &Path, folder: &Path, kernel: &Kernel, queue: &str, mbps: u32) -> Result<String, String> {
    let words = format!("qdisc={queue} mbps={mbps} seconds={SECONDS}");
    let Traced { said, lines } = boot_with_disk(folder, kernel, &words)?;
    let Log { text, packets, seconds, hole } = Log::of(queue, lines)?;
    let path = folder.join(format!("{queue}-{mbps}.log"));
    let words = judge(root, &path, &text, TEST).map_err(|why| format!("{said}{why}"))?;
    let words = words.lines().find(|line| line.contains("identical:"));
    let words = words.ok_or_else(|| format!("{said}{}: nothing was compared", path.display()))?;
    let carried = 8.0 * packets.1 as f64 / seconds / 1e6;
    let hole = hole.map_or(String::new(), |why| format!("; the log ends early: {why}"));
    Ok(format!("{said}{words}; {} packets in {seconds:.1} s, {carried:.2} Mb/s came{hole}\n", packets.0))
}

/// What a guest said, and the lines that it left on its disk.
pub(crate) struct Traced<L> {
    pub(crate) said: String,
    pub(crate) lines: L,
}

/// Boots a guest with a disk for its trace, and words for its first process, and waits for its end.
pub(crate) fn boot_with_disk(
    folder: &Path,
    kernel: &Kernel,
    words: &str,
) -> Result<Traced<impl Iterator<Item = String> + use<>>, String> {
    let (disk, console) = (folder.join("trace.img"), folder.join("queue.txt"));
    // A file of zeroes; what the guest does not write stays zero.
    create(&disk)?.set_len(DISK).map_err(|error| format!("{}: {error}", disk.display()))?;
    let words = format!("no_timer_check {words}");
    let drive = format!("file={},format=raw,if=none,id=trace", disk.display());
    let devices = ["-drive", &drive, "-device", "virtio-blk-pci,drive=trace"];
    let mut machine = machine(kernel, ("512", &words), &devices, &console)?;
    let ended = wait(&mut machine, Instant::now(), LIMIT);
    let _ = machine.kill();
    let _ = machine.wait();
    let said = guest_lines(&console)?;
    ended.map_err(|why| format!("{said}{why}"))?;
    if !said.contains("guest: done") {
        return Err(format!("{said}the guest did not come to its end"));
    }
    let trace = fs::File::open(&disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    let lines =
        BufReader::new(trace).lines().map_while(Result::ok).take_while(|line| !line.starts_with('\0'));
    Ok(Traced { said, lines })
}

/// Keeps `log` at `path`, gives it to `test` of `talkpath-path`, and returns what that printed.
pub(crate) fn judge(root: &Path, path: &Path, log: &str, test: &str) -> Result<String, String> {
    fs::write(path, log).map_err(|error| format!("{}: {error}", path.display()))?;
    let test = ["test", "-q", "-p", "talkpath-path", "--lib", "--", "--ignored", "--nocapture", test];
    let log = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let judged = cargo(root, &test).stdin(log).output().map_err(|error| format!("cargo: {error}"))?;
    let words = String::from_utf8_lossy(&judged.stdout).into_owned();
    if !judged.status.success() {
        return Err(format!("{}\n{words}", path.display()));
    }
    Ok(words)
}

/// Arrivals and decisions of a queue.
struct Log {
    text: String,
    /// How many came, and their bytes.
    packets: (u64, u64),
    /// From the first to the last.
    seconds: f64,
    /// Why it ends before the trace does.
    hole: Option<&'static str>,
}

/// What is known while a trace is read.
#[derive(Default)]
struct Reading {
    /// By socket, in order of appearance.
    buckets: BTreeMap<String, u64>,
    /// By the address of its buffer: packet and bucket of what waits.
    waiting: BTreeMap<String, (u64, u64)>,
    /// What waits in each bucket, by number, and when it came.
    queues: BTreeMap<u64, BTreeMap<u64, u64>>,
    /// Lines of the log, each with its tick.
    events: Vec<(u64, String)>,
    packets: (u64, u64),
    last: u64,
}

/// The fields of a packet that is coming: buffer, length, socket; and when it came.
type Coming = (String, u64, String, Option<u64>);

impl Log {
    /// From the lines of a trace.
    fn of(queue: &str, lines: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut reading = Reading::default();
        let mut coming: Option<Coming> = None;
        let mut leaving: Option<(Option<u64>, Vec<String>)> = None;
        let mut hole = None;
        for line in lines {
            let Some((event, rest)) = event(&line, &EVENTS) else { continue };
            let field = |name: &str| field(rest, name);
            let number = |name: &str| field(name)?.parse::<u64>().map_err(|why| format!("{line}: {why}"));
            let stamp = || field("et").ok()?.parse().ok();
            let done = match event {
                "enter" => {
                    coming = Some((field("skb")?, number("len")?, field("sk")?, None));
                    Ok(())
                }
                "entering" => {
                    let tick = number("ns")? >> SHIFT;
                    coming = coming.map(|it| (it.0, it.1, it.2, Some(tick)));
                    Ok(())
                }
                "entered" if rest.ends_with("ret=0") => reading.comes(coming.take()),
                "entered" => {
                    coming = None;
                    Ok(())
                }
                "leave" => {
                    leaving = Some((None, Vec::new()));
                    Ok(())
                }
                "leaving" => {
                    // A turn in which a whole flow is dropped reads the clock again for the next. The last
                    // reading counts for what is sent and for the state that stays.
                    let tick = number("ns")? >> SHIFT;
                    leaving = leaving.map(|it| (Some(tick), it.1));
                    Ok(())
                }
                "drop" => match &mut leaving {
                    None => Ok(()),
                    Some((_, dropped)) => reading.goes(&field("skb")?, stamp()).map(|it| dropped.push(it)),
                },
                _ => reading.leaves(leaving.take(), &field("skb")?, stamp()),
            };
            if let Err((since, why)) = done {
                reading.events.retain(|(tick, _)| *tick < since.unwrap_or(u64::MAX));
                hole = Some(why);
                break;
            }
        }
        let first = reading.events.first().map_or(0, |it| it.0);
        let last = reading.events.last().map_or(0, |it| it.0);
        let lines: Vec<_> = reading.events.iter().map(|(_, line)| line.as_str()).collect();
        Ok(Self {
            text: format!("queue {queue}\n{}\n", lines.join("\n")),
            packets: reading.packets,
            seconds: ((last - first) << SHIFT).max(1) as f64 / 1e9,
            hole,
        })
    }
}

/// Since which tick a trace lacks something (`None`: from now on), and what.
type Hole = (Option<u64>, &'static str);

impl Reading {
    fn comes(&mut self, coming: Option<Coming>) -> Result<(), Hole> {
        let Some((buffer, length, socket, Some(tick))) = coming else {
            return Err((None, "an arrival was half seen"));
        };
        if let Some((number, bucket)) = self.waiting.get(&buffer) {
            // Its buffer is in use again, so that it went in a turn that was not seen.
            return Err((self.queues[bucket].get(number).copied(), "a turn was not seen"));
        }
        let next = self.buckets.len() as u64 + 1;
        let bucket = *self.buckets.entry(socket).or_insert(next);
        let number = self.packets.0;
        self.packets = (number + 1, self.packets.1 + length);
        self.waiting.insert(buffer, (number, bucket));
        self.queues.entry(bucket).or_default().insert(number, tick);
        self.note(tick, format!("+ {number} {bucket} {length} {tick}"));
        Ok(())
    }

    /// A packet with this stamp goes out of the queue: its number.
    fn goes(&mut self, buffer: &str, stamp: Option<u64>) -> Result<String, Hole> {
        let Some((number, bucket)) = self.waiting.remove(buffer) else {
            return Err((stamp, "an arrival was not seen"));
        };
        let queue = self.queues.entry(bucket).or_default();
        let first = queue.first_key_value().map(|(number, tick)| (*number, *tick));
        queue.remove(&number);
        // A flow's packets go in order.
        match first {
            Some((first, tick)) if first != number => Err((Some(tick), "a turn was not seen")),
            _ => Ok(number.to_string()),
        }
    }

    fn leaves(
        &mut self,
        leaving: Option<(Option<u64>, Vec<String>)>,
        buffer: &str,
        stamp: Option<u64>,
    ) -> Result<(), Hole> {
        let Some((tick, dropped)) = leaving else { return Err((None, "a turn was half seen")) };
        let sent = if buffer == NONE { ".".to_owned() } else { self.goes(buffer, stamp)? };
        // An empty queue does not read the clock.
        let tick = tick.unwrap_or(self.last);
        self.note(tick, format!("- {tick} {sent} {}", dropped.join(",")));
        Ok(())
    }

    fn note(&mut self, tick: u64, line: String) {
        self.last = tick;
        self.events.push((tick, line));
    }
}

/// The name of a line's event, which is one of `known`, and what follows; `None` of a comment.
pub(crate) fn event<'a>(line: &'a str, known: &[&str]) -> Option<(&'a str, &'a str)> {
    let (_, rest) = line.split_once("] ")?;
    let (_, rest) = rest.split_once(": ")?;
    let (event, rest) = rest.split_once(": ")?;
    known.contains(&event).then_some((event, rest))
}

/// The field `name` of an event.
pub(crate) fn field(rest: &str, name: &str) -> Result<String, String> {
    let (_, text) = rest.split_once(&format!(" {name}=")).ok_or(format!("no {name} in: {rest}"))?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

const EVENTS: [&str; 7] = ["enter", "entering", "entered", "leave", "leaving", "left", "drop"];
const QUEUES: [&str; 2] = ["codel", "fq_codel"];
const MBPS: [u32; 3] = [1, 10, 100];
/// For how long the flows send, on the guest's clock.
const SECONDS: u32 = 20;
/// A boot takes 10 s of a free core, and a run 20 s and more; the limit is for a machine that does much
/// besides.
const LIMIT: Duration = Duration::from_secs(900);
/// Room for a trace: 20 s at 100 Mb/s leave some 20 MB.
const DISK: u64 = 256 << 20;
/// The address of no buffer.
pub(crate) const NONE: &str = "0x0";
/// A tick of CoDel's clock is 2^10 ns (include/net/codel.h of the Linux kernel).
const SHIFT: u32 = 10;
const TEST: &str = "our_queue_decides_as_the_kernel_of_this_log_did";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, rest: &str) -> String {
        format!("  init-1  [000] b..1.  1.5: {event}: ({event}_function+0x1/0x2) {rest}")
    }

    fn arrival(skb: &str, ns: u64) -> Vec<String> {
        vec![
            line("enter", &format!("skb={skb} len=100 sk=0x5")),
            line("entering", &format!("ns={ns}")),
            line("entered", "ret=0"),
        ]
    }

    #[test]
    fn a_trace_becomes_arrivals_and_decisions() {
        let mut trace = [arrival("0xa", 1024), arrival("0xb", 2048)].concat();
        trace.push(line("drop", "skb=0xc et=1"));
        trace.extend([line("leave", ""), line("leaving", "ns=4096"), line("drop", "skb=0xa et=1")]);
        trace.extend([line("left", "skb=0xb et=2"), line("leave", ""), line("left", "skb=0x0 et=(fault)")]);
        let log = Log::of("codel", trace.into_iter()).unwrap();
        assert_eq!(log.text, "queue codel\n+ 0 1 100 1\n+ 1 1 100 2\n- 4 1 0\n- 4 . \n");
        assert_eq!((log.packets, log.hole), ((2, 200), None));
    }

    #[test]
    fn a_log_ends_before_what_its_trace_lacks() {
        // The turn that took 0xa is not there.
        let mut trace = [arrival("0xa", 1024), arrival("0xb", 2048), arrival("0xc", 3072)].concat();
        trace.extend([line("leave", ""), line("leaving", "ns=4096"), line("left", "skb=0xc et=2")]);
        let log = Log::of("codel", trace.into_iter()).unwrap();
        assert_eq!((log.text.lines().count(), log.hole), (1 + 1, Some("a turn was not seen")));
    }
}
