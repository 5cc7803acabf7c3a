//! Writes the standard output of a monitor in a thread of its own. A slow reader gets every line. A reader
//! that stalls delays the records, the metrics and the end by at most [`STALL_TIMEOUT`], and loses lines.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::arenas::no_thread;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// At most this many bytes wait to be printed. We chose 1 MiB, which are some hundreds of intervals with 3 kB
/// for each flow.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// A reader that has read nothing for this time has stalled. We chose 2 s because a reader needs
/// milliseconds.
const STALL_TIMEOUT: Duration = Duration::from_secs(2);
/// The time between two checks whether the reader has read something.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A function that prints a whole line.
type Print = dyn FnMut(&[u8]) -> Result<(), Failure> + Send;

/// Lines on their way to standard output.
pub(crate) struct Printer {
    lines: Sender<Vec<u8>>,
    /// Receives the result of the last line when all lines have been printed.
    ended: Receiver<Result<(), Failure>>,
    /// The number of bytes that wait to be printed.
    waiting_bytes: Arc<AtomicUsize>,
    /// The number of lines that were left out since the last line that was sent.
    left_out: u64,
    /// Writes a line that says how many lines were left out.
    left_out_line: fn(u64) -> Vec<u8>,
}

impl Printer {
    /// Starts the thread, which prints by `print`. If the reader goes away, `stop` becomes true.
    pub(crate) fn start(
        print: Box<Print>,
        left_out_line: fn(u64) -> Vec<u8>,
        stop: Arc<AtomicBool>,
        terminal: Terminal,
    ) -> Result<Self, Failure> {
        let (lines, queue) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let unprinted_bytes = Arc::clone(&waiting_bytes);
        let work = move || {
            // If this fails, nobody waits for the end of the output any more.
            let _ = end.send(print_all(&queue, &unprinted_bytes, print, &stop, terminal));
        };
        // The thread is not joined, because a write that nobody reads ends only with the process.
        thread::Builder::new().name("output".to_owned()).spawn(work).map_err(|error| no_thread(&error))?;
        Ok(Self { lines, ended, waiting_bytes, left_out: 0, left_out_line })
    }

    /// Sends `lines` to the thread, or leaves them out if the reader stalls. A line on standard output says
    /// how many were left out. It does not go to standard error, which may be the same pipe.
    pub(crate) fn print(&mut self, lines: Vec<u8>) {
        // After a reader has stalled, the monitor does not wait for it again until it has taken some lines.
        let has_capacity = if self.left_out > 0 { self.has_capacity() } else { self.wait_for_capacity() };
        if !has_capacity {
            self.left_out += lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
            return;
        }
        if self.left_out > 0 {
            let line = (self.left_out_line)(self.left_out);
            self.left_out = 0;
            self.send(line);
        }
        self.send(lines);
    }

    fn has_capacity(&self) -> bool {
        self.waiting_bytes.load(Ordering::Relaxed) < MAX_WAITING_BYTES
    }

    /// Waits until fewer bytes are waiting, as long as the reader reads. Returns false if the reader stalls.
    fn wait_for_capacity(&self) -> bool {
        let mut fewest_bytes = usize::MAX;
        let mut last_read = Instant::now();
        while !self.has_capacity() {
            let waiting_bytes = self.waiting_bytes.load(Ordering::Relaxed);
            if waiting_bytes < fewest_bytes {
                fewest_bytes = waiting_bytes;
                last_read = Instant::now();
            } else if last_read.elapsed() > STALL_TIMEOUT {
                return false;
            }
            thread::sleep(CHECK_INTERVAL);
        }
        true
    }

    fn send(&self, line: Vec<u8>) {
        self.waiting_bytes.fetch_add(line.len(), Ordering::Relaxed);
        // Sending fails only if the reader has gone, and in that case the monitor is already ending.
        let _ = self.lines.send(line);
    }

    /// Waits until all lines are printed. If the reader stalls, it returns a failure instead.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        if self.left_out > 0 {
            self.send((self.left_out_line)(self.left_out));
            self.left_out = 0;
        }
        let Self { lines, ended, waiting_bytes, .. } = self;
        drop(lines);
        let mut fewest_bytes = usize::MAX;
        loop {
            match ended.recv_timeout(STALL_TIMEOUT) {
                Ok(result) => return result,
                // The reader still reads.
                Err(RecvTimeoutError::Timeout) if waiting_bytes.load(Ordering::Relaxed) < fewest_bytes => {
                    fewest_bytes = waiting_bytes.load(Ordering::Relaxed);
                }
                Err(_) => {
                    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, "nobody reads it");
                    return Err(Failure::write(Path::new("standard output"), error));
                }
            }
        }
    }
}

/// Prints until there are no more lines or the reader has gone. If a line cannot be printed, the next lines
/// are tried all the same.
fn print_all(
    queue: &Receiver<Vec<u8>>,
    waiting_bytes: &AtomicUsize,
    mut print: Box<Print>,
    stop: &AtomicBool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let mut last_result = Ok(());
    for line in queue {
        if let Err(failure) = last_result {
            terminal.error(&format!("{failure}; the monitor continues"));
        }
        last_result = print(&line);
        waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        if matches!(last_result, Err(Failure::OutputClosed)) {
            stop.store(true, Ordering::Relaxed);
            waiting_bytes.store(0, Ordering::Relaxed);
            break;
        }
    }
    last_result
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    fn started(print: Box<Print>, stop: &Arc<AtomicBool>) -> Printer {
        let told = |count| format!("{count} left out\n").into_bytes();
        Printer::start(print, told, Arc::clone(stop), Terminal::plain()).unwrap()
    }

    #[test]
    fn a_reader_that_stalls_holds_nothing_up_and_is_told_what_it_missed() {
        let (go, gate) = mpsc::channel::<()>();
        let printed = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&printed);
        let print = move |line: &[u8]| {
            // Stalls until it is let go on, and then for nothing.
            let _ = gate.recv();
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_vec());
            Ok(())
        };
        let mut printer = started(Box::new(print), &Arc::default());
        let mut line = vec![b'x'; MAX_WAITING_BYTES / 4];
        line[MAX_WAITING_BYTES / 4 - 1] = b'\n';
        for _ in 0..7 {
            printer.print(line.clone());
        }
        assert_eq!(printer.left_out, 3, "four fill what may wait");
        drop(go);
        let since = Instant::now();
        while printer.waiting_bytes.load(Ordering::Relaxed) > 0 && since.elapsed() < STALL_TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
        printer.print(b"again\n".to_vec());
        printer.end().unwrap();
        let printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = [&line, &line, &line, &line, &b"3 left out\n".to_vec(), &b"again\n".to_vec()];
        assert!(printed.iter().eq(expected), "{} lines", printed.len());
    }

    #[test]
    fn a_reader_that_is_slow_misses_nothing() {
        let printed = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&printed);
        let print = move |_: &[u8]| {
            thread::sleep(Duration::from_millis(10));
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let mut printer = started(Box::new(print), &Arc::default());
        let line = vec![b'\n'; MAX_WAITING_BYTES / 4];
        for _ in 0..20 {
            printer.print(line.clone());
        }
        assert_eq!(printer.left_out, 0);
        printer.end().unwrap();
        assert_eq!(printed.load(Ordering::Relaxed), 20);
    }

    #[test]
    fn the_end_waits_for_no_reader_that_stalls_and_says_so() {
        let (_never, gate) = mpsc::channel::<()>();
        let print = move |_: &[u8]| {
            let _ = gate.recv();
            Ok(())
        };
        let mut printer = started(Box::new(print), &Arc::default());
        printer.print(b"a\n".to_vec());
        assert_eq!(printer.end().unwrap_err().exit_code(), 1);
    }

    #[test]
    fn a_reader_that_has_gone_stops_the_monitor_and_is_no_error() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut printer = started(Box::new(|_: &[u8]| Err(Failure::OutputClosed)), &stop);
        printer.print(b"a\n".to_vec());
        let since = Instant::now();
        while !stop.load(Ordering::Relaxed) && since.elapsed() < STALL_TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(stop.load(Ordering::Relaxed));
        printer.print(b"b\n".to_vec());
        assert!(matches!(printer.end(), Err(Failure::OutputClosed)));
    }

    #[test]
    fn a_line_that_cannot_be_written_is_one_line_unless_it_is_the_last() {
        for (failing, code) in [(0, None), (1, Some(1))] {
            let mut number = 0..;
            let print = move |_: &[u8]| match number.next() {
                Some(at) if at == failing => {
                    Err(Failure::write(Path::new("it"), std::io::Error::other("full")))
                }
                _ => Ok(()),
            };
            let mut printer = started(Box::new(print), &Arc::default());
            printer.print(b"a\n".to_vec());
            printer.print(b"b\n".to_vec());
            assert_eq!(printer.end().err().map(|why| why.exit_code()), code, "line {failing}");
        }
    }
}
