//! A program that runs once in each repetition of an experiment (`[program]`).
//!
//! ```text
//!  start ─► server waits for packets ─► command runs ─► command has ended ─► server has ended ─► over
//!               │ 5 s                       │ timeout
//!               └─► failed                  └─► asked to end, 5 s later killed: failed
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use talkpath_measure::ProgramOutcome;
use talkpath_model::Program as Described;

use super::addresses::END_ADDRESSES;
use super::entry::HostEntry;
use super::launcher::{CommandLine, Ended, Launcher, Streams};
use super::nursery::Nursery;
use super::way_out::WayOut;
use super::{NO_PASTA, PROXY, Program};

/// The program of an experiment.
#[derive(Debug)]
pub struct RepeatedProgram {
    nursery: Arc<Nursery>,
    running: Option<Running>,
}

/// The program in one repetition.
#[derive(Debug)]
struct Running {
    described: Described,
    stage: Stage,
    command: Child,
    /// The program at the far end.
    server: Option<Child>,
    _way_out: Option<WayOut>,
    /// What a reader has to know of the way out.
    note: String,
    /// The start of the command, or of the wait for the server.
    began: Instant,
    /// How long the command ran.
    ran_for: Duration,
    /// Why the repetition has failed, before the command was over.
    failure: Option<String>,
}

#[derive(Debug)]
enum Stage {
    /// The server does not wait for packets yet. The entry is for the command.
    AwaitsServer(HostEntry),
    Runs,
    /// The command has ended, and the server is asked to end.
    Ends,
    Over,
}

/// A launcher, and what its command has printed.
#[derive(Debug)]
struct Child {
    launcher: Launcher,
    output: Captured,
    errors: Captured,
}

/// The end of what a command has written to a stream.
#[derive(Debug)]
struct Captured {
    pipe: OwnedFd,
    text: Vec<u8>,
    /// The number of bytes that were left out before `text`.
    left_out: usize,
}

impl RepeatedProgram {
    /// Makes the program of the repetitions that one thread runs.
    pub const fn new(nursery: Arc<Nursery>) -> Self {
        Self { nursery, running: None }
    }
}

impl Program for RepeatedProgram {
    fn start(&mut self, described: &Described, [near, far]: [HostEntry; 2]) -> io::Result<()> {
        let [near_address, far_address] = [END_ADDRESSES.near[0], END_ADDRESSES.far[0]];
        let command = Child::new(&self.nursery, &described.command, far_address.to_string())?;
        let has_server = !described.server.is_empty();
        let (way_out, note) = if has_server { (None, String::new()) } else { self.way_out(&far)? };
        let server = match has_server {
            true => Some(Child::new(&self.nursery, &described.server, near_address.to_string())?),
            false => None,
        };
        let stage = match &server {
            Some(server) => {
                server.launcher.start_server(&far)?;
                Stage::AwaitsServer(near)
            }
            None => {
                command.launcher.start(&near, way_out.is_some())?;
                Stage::Runs
            }
        };
        self.running = Some(Running {
            described: described.clone(),
            stage,
            command,
            server,
            _way_out: way_out,
            note,
            began: Instant::now(),
            ran_for: Duration::ZERO,
            failure: None,
        });
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        self.running.as_mut().is_none_or(Running::is_over)
    }

    fn ask_to_end(&mut self) {
        if let Some(running) = &mut self.running {
            running.end("it was interrupted");
        }
    }

    fn notes(&self) -> Vec<String> {
        let note = self.running.as_ref().map(|running| running.note.clone());
        note.into_iter().filter(|note| !note.is_empty()).collect()
    }

    fn take_outcome(&mut self) -> Result<Option<ProgramOutcome>, String> {
        self.running.take().map(Running::outcome).transpose()
    }
}

impl RepeatedProgram {
    /// The way out of a command without a server of its own, and what a reader of the record has to know.
    fn way_out(&self, far: &HostEntry) -> io::Result<(Option<WayOut>, String)> {
        if !self.nursery.has_pasta() {
            return Ok((None, NO_PASTA.to_owned()));
        }
        let way_out = self.nursery.way_out()?;
        Ok(match way_out.open(far) {
            Ok(()) => (Some(way_out), PROXY.to_owned()),
            Err(why) => {
                (None, format!("the command reaches nothing beyond the path, because pasta failed: {why}"))
            }
        })
    }
}

impl Running {
    fn is_over(&mut self) -> bool {
        self.read();
        match self.stage {
            Stage::AwaitsServer(_) => self.await_server(),
            Stage::Runs => {
                if self.command.launcher.is_over() {
                    self.ran_for = self.began.elapsed();
                    self.stage = Stage::Ends;
                } else if self.began.elapsed() > std_duration(self.described.timeout) {
                    self.end(&format!("it took longer than its timeout of {}", self.described.timeout));
                }
            }
            Stage::Ends => {
                let has_ended = self.server.as_mut().is_none_or(|server| {
                    server.launcher.end(Signal::TERM);
                    server.launcher.is_over()
                });
                if has_ended {
                    self.read();
                    self.stage = Stage::Over;
                }
            }
            Stage::Over => return true,
        }
        false
    }

    /// Reads what the commands have printed.
    fn read(&mut self) {
        for child in [Some(&mut self.command), self.server.as_mut()].into_iter().flatten() {
            child.output.read();
            child.errors.read();
        }
    }

    /// Starts the command if the server waits for packets.
    fn await_server(&mut self) {
        let Some(server) = &mut self.server else { return };
        if server.launcher.is_over() {
            let how = how_it_ended(server.launcher.ended().unwrap_or(Ended::Unknown));
            self.fail(format!("the server has ended before the command began: {how}"));
        } else if server.launcher.is_ready() {
            let Stage::AwaitsServer(near) = core::mem::replace(&mut self.stage, Stage::Runs) else { return };
            self.began = Instant::now();
            if let Err(why) = self.command.launcher.start(&near, false) {
                self.fail(format!("it cannot be started: {why}"));
            }
        } else if self.began.elapsed() > LONGEST_WAIT {
            self.fail(format!(
                "the server has opened no socket that waits for packets within {} s",
                LONGEST_WAIT.as_secs()
            ));
        }
    }

    /// Ends a repetition whose command does not run.
    fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
        self.stage = Stage::Ends;
    }

    /// Ends the command, which has failed because of `why`.
    fn end(&mut self, why: &str) {
        match self.stage {
            Stage::AwaitsServer(_) => self.fail(why.to_owned()),
            Stage::Runs => {
                self.failure.get_or_insert_with(|| why.to_owned());
                self.command.launcher.end(Signal::TERM);
            }
            Stage::Ends | Stage::Over => {}
        }
    }

    /// What came of it. The error says why a command cannot be started at all.
    fn outcome(self) -> Result<ProgramOutcome, String> {
        let Self { described, command, server, ran_for, failure, .. } = self;
        for (child, words) in [(Some(&command), &described.command), (server.as_ref(), &described.server)] {
            if let Some(Ended::NotStarted(number)) = child.and_then(|child| child.launcher.ended()) {
                let name = words.first().map_or("", String::as_str);
                return Err(format!("{name} cannot be run: {}", io::Error::from_raw_os_error(number)));
            }
        }
        let by_exit = || match command.launcher.ended() {
            Some(Ended::Exited(0)) => None,
            ended => Some(how_it_ended(ended.unwrap_or(Ended::Unknown))),
        };
        let mut failure = failure.or_else(by_exit);
        let output = command.output.text();
        let mut figures: BTreeMap<String, Option<f64>> = BTreeMap::new();
        for figure in &described.figures {
            let found = figure.source.find(&output);
            if let Err(why) = &found {
                failure.get_or_insert_with(|| format!("its figure {} is not there: {why}", figure.name));
            }
            figures.insert(figure.name.clone(), found.ok());
        }
        if failure.is_some() {
            figures.values_mut().for_each(|value| *value = None);
        }
        let mut streams = vec![("standard output", &command.output), ("standard error", &command.errors)];
        if let Some(server) = &server {
            streams.push(("standard output of the server", &server.output));
            streams.push(("standard error of the server", &server.errors));
        }
        let output = streams.iter().map(|(name, captured)| captured.kept(name)).collect();
        Ok(ProgramOutcome { failure, seconds: ran_for.as_secs_f64(), figures, output })
    }
}

impl Child {
    /// Makes the launcher of a command. $TALKPATH_PEER of the command is `peer`.
    fn new(nursery: &Nursery, words: &[String], peer: String) -> io::Result<Self> {
        let mut words = words.iter().map(OsString::from);
        let program = words.next().unwrap_or_default();
        let variables = vec![("TALKPATH_PEER".to_owned(), peer)];
        let command = CommandLine { program, arguments: words.collect(), variables };
        let (output, to_output) = Captured::new()?;
        let (errors, to_errors) = Captured::new()?;
        let streams = Streams { output: to_output, error: to_errors };
        Ok(Self { launcher: nursery.launcher(&command, streams)?, output, errors })
    }
}

impl Captured {
    /// Makes a pipe, and returns its end for the command.
    fn new() -> io::Result<(Self, OwnedFd)> {
        let (pipe, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        // A small pipe would slow a command down that prints much. The system may refuse a larger one.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_SIZE);
        Ok((Self { pipe, text: Vec::new(), left_out: 0 }, theirs))
    }

    /// Reads what is there.
    fn read(&mut self) {
        let mut bytes = [0; 65_536];
        while let Ok(length @ 1..) = rustix::io::read(&self.pipe, &mut bytes) {
            self.text.extend_from_slice(&bytes[..length]);
            if self.text.len() > 2 * MOST_BYTES {
                let too_many = self.text.len() - MOST_BYTES;
                self.text.drain(..too_many);
                self.left_out += too_many;
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// The end of the text, for the record. `name` is that of the stream. Empty if nothing was printed.
    fn kept(&self, name: &str) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let from = self.text.len().saturating_sub(MOST_KEPT);
        let text = String::from_utf8_lossy(&self.text[from..]);
        let left_out = match self.left_out + from {
            0 => String::new(),
            bytes => format!(", without the first {bytes} bytes"),
        };
        let line_feed = if text.ends_with('\n') { "" } else { "\n" };
        format!("--- {name}{left_out}\n{text}{line_feed}")
    }
}

fn how_it_ended(ended: Ended) -> String {
    match ended {
        Ended::Exited(code) => format!("it ended with exit code {code}"),
        Ended::Killed(signal) => format!("signal {signal} ended it"),
        Ended::NotStarted(_) | Ended::Unknown => "its process went away".to_owned(),
    }
}

const fn std_duration(duration: talkpath_units::Duration) -> Duration {
    Duration::from_nanos(duration.as_nanos())
}

/// The longest wait for a socket of the server: a little longer than its launcher looks for one.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The size of the pipes of a command in bytes. We chose 1 MiB because it is the largest for users without
/// privileges (pipe(7)), and 100 MB a second then fit between two reads.
const PIPE_SIZE: usize = 1 << 20;
/// The bytes of a stream in which figures are looked for, those at its end. We chose 16 MiB because the
/// longest reports of iperf3 have less.
const MOST_BYTES: usize = 16 << 20;
/// The bytes of a stream that the record keeps. We chose 32 KiB because a person reads no more.
const MOST_KEPT: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_output_is_kept_and_the_record_says_what_is_left_out() {
        let (mut captured, theirs) = Captured::new().unwrap();
        captured.text = vec![b'a'; MOST_KEPT];
        rustix::io::write(&theirs, b"end").unwrap();
        captured.read();
        let kept = captured.kept("standard output");
        assert!(kept.starts_with("--- standard output, without the first 3 bytes\naaa"), "{:.60}", kept);
        assert!(kept.ends_with("aend\n"));
        captured.text.clear();
        assert_eq!(captured.kept("standard output"), "");
    }
}
