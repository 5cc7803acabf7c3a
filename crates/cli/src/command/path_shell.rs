//! `talkpath shell`: a shell or a command of the user whose whole network is a path.
//!
//! ```text
//!  near end: plan ─► launcher split off ─► door ─► experiment (emulator, record) ─► what did not hold
//!  far end:  launcher split off ─► joins the door of the pair ─► until the command, or the path, has ended
//! ```

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;
use talkpath_commands::args::{Common, ShellArgs};
use talkpath_commands::command::program;
use talkpath_commands::failure::Failure;
use talkpath_commands::interrupt;
use talkpath_commands::terminal::{Terminal, program as our_name};
use talkpath_emu::shell::{
    CommandLine, Door, DoorError, END_ADDRESSES, Ended, Guest, HostEntry, Launcher, NO_PASTA, NearEnd,
    Nursery, PROXY, PairName, Program, WayOut,
};
use talkpath_emu::{EmuArena, FlowInterval};
use talkpath_experiment::Error;
use talkpath_experiment::place::{Connect, Place, Worker};
use talkpath_model::Program as Described;

use crate::linked::{Linked, MACHINES};

/// Runs a near end, or joins a far end.
pub(crate) fn run(
    args: &ShellArgs,
    common: &Common,
    linked: &Linked,
    terminal: Terminal,
) -> Result<(), Failure> {
    let pair = args.pair.as_deref().map(PairName::parse).transpose();
    let pair = pair.map_err(|why| not_run(Failure::Usage(format!("--pair: {why}"))))?;
    match pair {
        Some(pair) if !args.has_path() => run_far_end(args, &pair, terminal),
        pair => run_near_end(args, pair.as_ref(), common, linked, terminal),
    }
}

/// What kept the command from running.
fn not_run(why: Failure) -> Failure {
    Failure::NotRun(Box::new(why))
}

fn run_near_end(
    args: &ShellArgs,
    pair: Option<&PairName>,
    common: &Common,
    linked: &Linked,
    terminal: Terminal,
) -> Result<(), Failure> {
    let command = command_line(args, END_ADDRESSES.far[0].to_string());
    let plan = program::plan(args, &recorded_words(&command, args.names), terminal).map_err(not_run)?;
    // A shell without a name can be joined by the number of its process.
    let own = || PairName::parse(&format!("shell-{}", std::process::id())).ok();
    let name = pair.cloned().or_else(own);
    let launcher = split_off(&command)?;
    let way_out = WantedWayOut::of(args, pair.is_some()).map_err(|why| not_run(no_process(&why)))?;
    let door = name.as_ref().map(|name| Door::make(&directory(), name)).transpose();
    let door = door.map_err(|why| not_run(door_failure(&why)))?;
    let stop = interrupt::leave_to_program().map_err(not_run)?;
    let [near, near_v6] = END_ADDRESSES.near;
    let [far, far_v6] = END_ADDRESSES.far;
    terminal.note(&format!("near end {near} ({near_v6}) of {}; the far end is {far} ({far_v6})", plan.name));
    if let (None, Some(name)) = (pair, &name) {
        terminal.note(&format!("a program at the far end: {} shell --pair {name} -- COMMAND", our_name()));
    }
    let ended = Arc::new(Mutex::new(None));
    let (way_out, sentence) = way_out.into_parts();
    let near = NearEnd::new(launcher, door, way_out);
    let stream = args.json_stream.as_deref().map(|file| JsonStream::open(file, terminal)).transpose();
    let (reader, writer) = stream.map_err(not_run)?.unzip();
    let near = Watched {
        near,
        ended: Arc::clone(&ended),
        way_out: sentence,
        reader,
        keeps_names: args.names,
        is_pair: pair.is_some(),
        terminal,
    };
    let arenas = WithProgram { linked, program: Mutex::new(Some(Box::new(near))) };
    let measured = program::measure(args, &plan, common, &arenas, &stop, terminal);
    // The emulator has gone, and with it the other end of the writer's channel.
    drop(arenas);
    if let Some(writer) = writer {
        writer.join();
    }
    let ended = *ended.lock().unwrap_or_else(PoisonError::into_inner);
    conclude(measured, ended, &command, terminal)
}

/// What is known of the way out before the network is made.
enum WantedWayOut {
    Wanted(WayOut),
    /// The command reaches nothing beyond the path, for the reason in this sentence.
    None(&'static str),
}

impl WantedWayOut {
    fn of(args: &ShellArgs, is_pair: bool) -> std::io::Result<Self> {
        if is_pair {
            return Ok(Self::None("the command reaches nothing beyond the other end of the pair"));
        }
        if args.isolated {
            return Ok(Self::None("the command reaches nothing beyond the path (--isolated)"));
        }
        match find_program("pasta") {
            Some(pasta) => WayOut::split_off(&pasta).map(Self::Wanted),
            None => Ok(Self::None(NO_PASTA)),
        }
    }

    fn into_parts(self) -> (Option<WayOut>, String) {
        match self {
            Self::Wanted(way_out) => (Some(way_out), String::new()),
            Self::None(sentence) => (None, sentence.to_owned()),
        }
    }
}

/// Splits off the process that starts the programs of scenarios (`run --allow-program`).
pub(crate) fn nursery() -> Result<Arc<Nursery>, Failure> {
    Nursery::split_off(find_program("pasta").as_deref()).map(Arc::new).map_err(|why| no_process(&why))
}

/// Finds the program `name` as a shell does.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(is_executable)
}

/// The exit code of the command goes before ours.
fn conclude(
    measured: Result<(), Failure>,
    ended: Option<Ended>,
    command: &CommandLine,
    terminal: Terminal,
) -> Result<(), Failure> {
    let Some(ended) = ended else {
        return measured.map_err(not_run);
    };
    tell_not_started(ended, command, terminal);
    match (ended.code(), measured) {
        (0, measured) => measured,
        (code, Ok(())) => Err(Failure::Program(code)),
        (code, Err(failure)) => {
            terminal.error(&failure.to_string());
            Err(Failure::Program(code))
        }
    }
}

fn tell_not_started(ended: Ended, command: &CommandLine, terminal: Terminal) {
    if let Ended::NotStarted(number) = ended {
        let why = std::io::Error::from_raw_os_error(number);
        terminal.error(&format!("{} cannot be run: {why}", command.program.to_string_lossy()));
    }
}

/// Joins the far end of a path, waits for the path if it is not there yet, and runs the command there.
fn run_far_end(args: &ShellArgs, pair: &PairName, terminal: Terminal) -> Result<(), Failure> {
    if let Some(option) = args.option_of_near_end() {
        return Err(not_run(Failure::Usage(format!(
            "{option} belongs to the shell that makes the path: give it a path too (--path, --line, or --up and --down), or leave \
             it out to join the far end of the pair {pair}"
        ))));
    }
    let command = command_line(args, END_ADDRESSES.near[0].to_string());
    let mut launcher = split_off(&command)?;
    let stop = interrupt::leave_to_program().map_err(not_run)?;
    let guest = join(pair, &stop, terminal)?;
    let [near, near_v6] = END_ADDRESSES.near;
    let [far, far_v6] = END_ADDRESSES.far;
    terminal
        .note(&format!("far end {far} ({far_v6}) of the pair {pair}; the near end is {near} ({near_v6})"));
    // A command is taken for a server, which the near end waits for. Nobody waits for a person in a shell.
    let is_server = !args.command.is_empty();
    let entry = guest.entry();
    let started = if is_server { launcher.start_server(entry) } else { launcher.start(entry, false) };
    started.map_err(|why| not_run(no_process(&why)))?;
    let (mut is_told, mut is_settled) = (false, false);
    while !launcher.is_over() {
        if !is_settled && (!is_server || launcher.is_ready()) {
            guest.say_settled();
            is_settled = true;
        }
        if stop.load(Ordering::Relaxed) {
            launcher.end(Signal::TERM);
        } else if guest.is_path_over() {
            if !is_told {
                terminal.note("the path is over: the shell that made it has ended");
                is_told = true;
            }
            // As when a terminal goes away.
            launcher.end(Signal::HUP);
        }
        thread::sleep(LOOK);
    }
    conclude(Ok(()), launcher.ended(), &command, terminal)
}

/// Joins the pair, and waits for its path if nobody has made it yet.
fn join(pair: &PairName, stop: &AtomicBool, terminal: Terminal) -> Result<Guest, Failure> {
    let directory = directory();
    let mut is_told = false;
    loop {
        if let Some(guest) = Guest::join(&directory, pair).map_err(|why| not_run(door_failure(&why)))? {
            return Ok(guest);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(not_run(Failure::interrupted("interrupted")));
        }
        if !is_told {
            terminal.note(&format!(
                "waiting for the path of the pair {pair}, which this makes, for example: {} shell --pair {pair} --path lte",
                our_name()
            ));
            is_told = true;
        }
        thread::sleep(LOOK);
    }
}

fn split_off(command: &CommandLine) -> Result<Launcher, Failure> {
    Launcher::split_off(command).map_err(|why| not_run(no_process(&why)))
}

fn no_process(why: &std::io::Error) -> Failure {
    Failure::unavailable(
        format!("no process can be made for the command: {why}"),
        "see the limits of processes and open files (ulimit -u, ulimit -n)",
    )
}

fn door_failure(why: &DoorError) -> Failure {
    match why {
        DoorError::Taken(name) => Failure::Usage(format!(
            "{why}\nhelp: leave the path out to join its far end: {} shell --pair {name}",
            our_name()
        )),
        DoorError::Unsafe { .. } | DoorError::OtherUser(_) => Failure::Usage(why.to_string()),
        DoorError::Io(error) => Failure::unavailable(
            format!("the socket of the pair cannot be used: {error}"),
            "$XDG_RUNTIME_DIR names the folder in which it is made",
        ),
    }
}

/// The user's own directory for sockets: in $XDG_RUNTIME_DIR, or else in /tmp with the number of the user.
fn directory() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(path) => path.join("talkpath"),
        None => PathBuf::from(format!("/tmp/talkpath-{}", rustix::process::geteuid().as_raw())),
    }
}

/// The command of the options, or the user's shell. `peer` is the address of the other end.
fn command_line(args: &ShellArgs, peer: String) -> CommandLine {
    let mut words = args.command.iter().cloned();
    let shell = || env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let program = words.next().or_else(shell).unwrap_or_else(|| OsString::from("/bin/sh"));
    CommandLine { program, arguments: words.collect(), variables: vec![("TALKPATH_PEER".to_owned(), peer)] }
}

/// The words of the command that the record keeps: the name of the program, or all if the user allows it.
fn recorded_words(command: &CommandLine, all: bool) -> Vec<String> {
    let printable = |word: &OsString| talkpath_units::printable(&word.to_string_lossy(), LONGEST_WORD);
    if all {
        return [&command.program].into_iter().chain(&command.arguments).map(printable).collect();
    }
    let name = PathBuf::from(&command.program).file_name().map(OsString::from);
    vec![printable(&name.unwrap_or_else(|| command.program.clone()))]
}

/// A near end, of which it is known from outside how its command ended.
struct Watched {
    near: NearEnd,
    ended: Arc<Mutex<Option<Ended>>>,
    /// What the user has to know of the way out. It is complete once the program was started.
    way_out: String,
    reader: Option<Sender<FlowInterval>>,
    /// Whether the record has the addresses of flows, and the names that were looked up.
    keeps_names: bool,
    /// Whether another shell may have waited for the path.
    is_pair: bool,
    terminal: Terminal,
}

impl Program for Watched {
    fn start(&mut self, _: &Described, [near, far]: [HostEntry; 2]) -> std::io::Result<()> {
        match self.near.open(far)? {
            None => self.terminal.note(&self.way_out),
            Some(Ok(())) => {
                self.way_out = PROXY.to_owned();
                self.terminal.note(PROXY);
            }
            Some(Err(why)) => {
                self.way_out =
                    format!("the command reaches nothing beyond the path, because pasta failed: {why}");
                self.terminal.warning(&self.way_out);
            }
        }
        if self.is_pair && !self.near.await_far_end() {
            self.terminal.note(
                "the command at the far end has opened no socket that waits for packets within 5 s; the command here \
                 starts without it",
            );
        }
        self.near.start(&near)
    }

    fn is_over(&mut self) -> bool {
        let launcher = self.near.launcher();
        let is_over = launcher.is_over();
        if is_over {
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = launcher.ended();
        }
        if let Some(trouble) = launcher.take_trouble() {
            self.terminal.warning(&trouble);
            self.way_out = format!("{}; {trouble}", self.way_out);
        }
        is_over
    }

    fn ask_to_end(&mut self) {
        self.near.launcher().end(Signal::TERM);
    }

    fn take_reader(&mut self) -> Option<Sender<FlowInterval>> {
        self.reader.take()
    }

    fn notes(&self) -> Vec<String> {
        vec![self.way_out.clone()]
    }

    fn keeps_names(&self) -> bool {
        self.keeps_names
    }

    fn counts_if_stopped(&self) -> bool {
        true
    }
}

/// The thread that writes the lines of `--json-stream`.
struct JsonStream(JoinHandle<()>);

impl JsonStream {
    /// Opens `file`, and begins to write what is sent.
    fn open(file: &Path, terminal: Terminal) -> Result<(Sender<FlowInterval>, Self), Failure> {
        let failed = |why| Failure::write(file, why);
        let mut output = File::create(file).map_err(failed)?;
        let (sender, intervals) = mpsc::channel::<FlowInterval>();
        let name = file.display().to_string();
        let write = move || {
            for interval in intervals {
                if let Err(why) = writeln!(output, "{}", json_line(&interval)) {
                    terminal.warning(&format!("--json-stream ends here: {name}: {why}"));
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("json-stream".to_owned()).spawn(write).map_err(failed)?;
        Ok((sender, Self(thread)))
    }

    /// Waits until everything is written.
    fn join(self) {
        let _ = self.0.join();
    }
}

fn json_line(interval: &FlowInterval) -> serde_json::Value {
    let FlowInterval { flow, from, to, sent, bytes, received, lost, mean_wait, longest_wait } = interval;
    serde_json::json!({
        "flow": flow,
        "from_s": from.as_secs_f64(),
        "to_s": to.as_secs_f64(),
        "sent": sent,
        "bytes": bytes,
        "received": received,
        "lost": lost,
        "queue_delay_ms": {
            "mean": mean_wait.map(talkpath_units::Duration::as_millis_f64),
            "max": longest_wait.map(talkpath_units::Duration::as_millis_f64),
        },
    })
}

/// The emulator with one program in it.
struct WithProgram<'a> {
    linked: &'a Linked,
    program: Mutex<Option<Box<dyn Program>>>,
}

impl Connect for WithProgram<'_> {
    fn connect(&self, place: &Place, _: usize) -> Result<Vec<Worker>, Error> {
        let arena = EmuArena::open()?.with_machines(MACHINES);
        let arena = match place.capture {
            Some(snaplen) => arena.capturing(snaplen),
            None => arena,
        };
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(vec![Box::new(match program {
            Some(program) => arena.with_program(program),
            None => arena,
        })])
    }

    fn revision(&self) -> Option<String> {
        self.linked.revision()
    }
}

/// The time between two looks at what has changed.
const LOOK: Duration = Duration::from_millis(20);
/// The longest word of a command in the record (chosen).
const LONGEST_WORD: usize = 200;
