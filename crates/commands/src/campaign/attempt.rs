//! One attempt at a measurement of a campaign.
//!
//! ```text
//! this machine              far host                        near host
//!   start the server  ────►  talkpath serve
//!   start the client  ─────────────────────────────────────►  talkpath run
//!   tar -x            ◄─────────────────────────────────────  tar -c of the run directory
//!   check the records, and move them to their place
//! ```
//!
//! - The *near host* starts the measurement, and the *far host* answers it. *Here* is the machine of the
//!   coordinator, which is this program.
//! - The *records* are the run directory of the measurement. The *draft* is the folder in which they are
//!   unpacked.
//! - A *fault* says why an attempt failed, and at which host.
//!
//! The scenario and the key are written to the standard input of the scripts (`remote.rs`). So neither of
//! them stays on a host, and no list of processes shows the key. Begin to read with [`Attempt::run`].

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use talkpath_campaign::Fault;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::store::whole::{read_json, sync_folder};
use talkpath_measure::summary::Summary;
use talkpath_scenario::campaign::Host;
use talkpath_scenario::host_and_port;
use talkpath_units::counted;

use super::process::{POLL_INTERVAL, StderrTail, wait_with_timeout};
use super::remote::{RemoteCommand, SCRIPT_FAILED, SSH_FAILED, Script};
use crate::key_file::read_key_file;

/// The script on the near host.
const CLIENT_SCRIPT: &str = include_str!("scripts/client.sh");
/// The script on the far host.
const SERVER_SCRIPT: &str = include_str!("scripts/server.sh");
/// The beginning of the first line that `talkpath serve` prints.
const LISTENING: &str = "listening on ";
/// The time in which a server must listen. ssh takes up to 15 s to connect, and we chose 10 s more for the
/// start.
const SERVER_START_TIMEOUT: Duration = Duration::from_secs(25);
/// A server may run this much longer than the client that it serves. The client starts later, and writes its
/// records at the end. We chose 2 min, because a server that is stopped too early spoils a measurement, and
/// one that runs on is stopped by the coordinator.
const SERVER_MARGIN: Duration = Duration::from_secs(120);
/// The time in which tar must end after the client has ended. We chose 30 s, which is enough for a slow disk.
/// The limit also ends a stream that never ends.
const UNPACK_TIMEOUT: Duration = Duration::from_secs(30);

/// The exit codes of the client: those of `talkpath run` (docs/reference/interface.md), and those of a POSIX
/// shell for a program that it cannot start. Codes of ssh and of the script are in `remote.rs`.
const RECORDS_NOT_WRITTEN: i32 = 1;
const ARENA_NOT_AVAILABLE: i32 = 3;
const FAR_HOST_FAILED: i32 = 4;
const THRESHOLD_FAILED: i32 = 5;
const THRESHOLD_UNDECIDED: i32 = 6;
const PROGRAM_NOT_EXECUTABLE: i32 = 126;
const PROGRAM_NOT_FOUND: i32 = 127;

/// An attempt at a measurement.
pub(crate) struct Attempt {
    pub(crate) near: Host,
    pub(crate) far: Host,
    /// The text of the scenario.
    pub(crate) scenario: String,
    /// The file with the key of the far server. It is read again for each attempt.
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) seed: u64,
    /// The value of the client's flag `--records`.
    pub(crate) records_flag: String,
    /// The number of repetitions of all cells together.
    pub(crate) repetitions: u64,
    /// The time after which the attempt is stopped.
    pub(crate) limit: Duration,
    /// The folder into which the records are unpacked.
    pub(crate) draft: PathBuf,
    /// The folder to which the records are moved when they are complete.
    pub(crate) target: PathBuf,
}

impl Attempt {
    /// Measures, moves the records to their place, and waits until they are on the disk. The attempt ends
    /// early as soon as `is_cancelled` returns true.
    pub(crate) fn run(&self, is_cancelled: &dyn Fn() -> bool) -> Result<(), Fault> {
        let result = self.measure(is_cancelled).and_then(|()| self.install());
        // If the draft cannot be removed now, the next coordinator removes it.
        let _ = fs::remove_dir_all(&self.draft);
        result
    }

    /// Starts the server and the client, and unpacks the run directory of the client into the draft.
    fn measure(&self, is_cancelled: &dyn Fn() -> bool) -> Result<(), Fault> {
        let key = self.key()?;
        let _server =
            if self.far.starts_server { Some(self.start_server(&key, is_cancelled)?) } else { None };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&self.draft)
            .map_err(|error| fault_here("cannot make a folder for the records", &error))?;
        let start = Instant::now();
        let mut client = self.start_client(key)?;
        let Some(stream) = client.take_stdout() else {
            return Err(fault_at(&self.near, "no standard output"));
        };
        let mut unpacking = match Unpacking::start(stream, &self.draft) {
            Ok(unpacking) => unpacking,
            Err(error) => return Err(fault_here("cannot start tar", &error)),
        };
        let Some(client_status) = self.wait_for_client(&mut client, start, is_cancelled) else {
            client.stop();
            unpacking.stop();
            if is_cancelled() {
                return Err(cancelled());
            }
            let message = format!("timeout: it had not ended after {} s", start.elapsed().as_secs());
            // If the client runs on this machine, the far host is the one that did not answer.
            let slow_host = if self.near.local { &self.far } else { &self.near };
            return Err(fault_at(slow_host, &message));
        };
        let message = client.last_message();
        // The client must be dropped before tar is waited for. A background process of the near host may hold
        // the tar stream open until its standard input is closed, and the drop closes it.
        drop(client);
        let unpacked = unpacking.finish().map_err(|error| fault_here("tar failed", &error))?;
        let Some(tar_status) = unpacked else {
            return Err(fault_at(&self.near, "timeout: its records did not end"));
        };
        self.check_client_status(client_status, message)?;
        if tar_status.success() { Ok(()) } else { Err(self.unpack_fault(&unpacking.stderr)) }
    }

    /// Waits until the client ends. Returns `None` if the client has not ended within the limit, or if the
    /// attempt is cancelled.
    fn wait_for_client(
        &self,
        client: &mut RemoteCommand,
        start: Instant,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Option<ExitStatus> {
        loop {
            if let Some(status) = client.exit_status() {
                return Some(status);
            }
            if start.elapsed() > self.limit || is_cancelled() {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns the fault if the client did not measure. `message` is the last line of its standard error.
    fn check_client_status(&self, status: ExitStatus, message: String) -> Result<(), Fault> {
        match status.code() {
            // If only a threshold does not hold, or is undecided, the measurement is complete.
            Some(0 | THRESHOLD_FAILED | THRESHOLD_UNDECIDED) => Ok(()),
            Some(FAR_HOST_FAILED) => Err(fault_at(&self.far, &message)),
            Some(SSH_FAILED) if self.near.ssh.is_some() => {
                Err(fault_at(&self.near, &format!("ssh: {message}")))
            }
            Some(
                RECORDS_NOT_WRITTEN
                | ARENA_NOT_AVAILABLE
                | PROGRAM_NOT_EXECUTABLE
                | PROGRAM_NOT_FOUND
                | SCRIPT_FAILED,
            ) => Err(fault_at(&self.near, &message)),
            _ => Err(Fault { why: message, host: None }),
        }
    }

    /// Finds out why tar could not unpack the records.
    fn unpack_fault(&self, tar_stderr: &StderrTail) -> Fault {
        const NOT_UNPACKED: &str = "cannot unpack the records here";
        // If the disk is full, tar may report only a short write. So we try to write 64 KiB here: on a full
        // disk this fails with an error that names the cause. The file is removed together with the draft.
        if let Err(error) = fs::write(self.draft.join(".space"), vec![0_u8; 65_536]) {
            return fault_here(NOT_UNPACKED, &error);
        }
        // The first line of tar has the cause. Its last line says only that there was an error.
        let text = tar_stderr.text();
        let cause = text.lines().next().unwrap_or("no error message of tar");
        Fault { why: format!("{NOT_UNPACKED}: {cause}"), host: None }
    }

    /// Reads the key of the far server. It is empty if the campaign names no key file. A file that cannot be
    /// read fails this attempt and not the campaign.
    fn key(&self) -> Result<Vec<u8>, Fault> {
        let Some(path) = &self.key_file else { return Ok(Vec::new()) };
        read_key_file(path)
            .map_err(|error| fault_at(&self.far, &format!("its key_file {}: {error}", path.display())))
    }

    /// Starts the client on the near host.
    fn start_client(&self, key: Vec<u8>) -> Result<RemoteCommand, Fault> {
        let mut arguments = vec![
            self.scenario.len().to_string(),
            key.len().to_string(),
            program(&self.near),
            "--seed".to_owned(),
            self.seed.to_string(),
            "--records".to_owned(),
            self.records_flag.clone(),
        ];
        if self.far.emulated.is_some() {
            // The near host emulates the path in real time. A processor that sleeps wakes up late, and the
            // emulated delays would be too long.
            arguments.extend(["--arena", "emu", "--keep-awake"].map(str::to_owned));
        } else if let Some(address) = &self.far.address {
            arguments.extend(["--to".to_owned(), address.clone()]);
        }
        let script = Script {
            text: CLIENT_SCRIPT,
            arguments: &arguments,
            input: vec![self.scenario.clone().into_bytes(), key],
            stdout: Stdio::piped(),
            limit: self.limit,
        };
        RemoteCommand::start(&self.near, script).map_err(|message| fault_at(&self.near, &message))
    }

    /// Starts a server on the far host, and waits until the server listens.
    fn start_server(&self, key: &[u8], is_cancelled: &dyn Fn() -> bool) -> Result<RemoteCommand, Fault> {
        let far_address = self.far.address.as_deref().unwrap_or_default();
        let address = self.far.bind.clone().unwrap_or_else(|| listen_address(far_address));
        let arguments = [key.len().to_string(), program(&self.far), address];
        let script = Script {
            text: SERVER_SCRIPT,
            arguments: &arguments,
            input: vec![key.to_vec()],
            stdout: Stdio::piped(),
            limit: self.limit + SERVER_MARGIN,
        };
        let mut server =
            RemoteCommand::start(&self.far, script).map_err(|message| fault_at(&self.far, &message))?;
        let (report_listening, listening) = mpsc::channel();
        if let Some(stdout) = server.take_stdout() {
            // The thread reads until the end of the output, so that the server can always write.
            let read_output = move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if line.starts_with(LISTENING) {
                        let _ = report_listening.send(());
                    }
                }
            };
            thread::Builder::new()
                .spawn(read_output)
                .map_err(|error| fault_here("cannot start a thread", &error))?;
        }
        let start = Instant::now();
        while listening.try_recv().is_err() {
            if server.exit_status().is_some() {
                let message = server.last_message();
                return Err(fault_at(&self.far, &format!("the server did not start: {message}")));
            }
            if is_cancelled() {
                return Err(cancelled());
            }
            if start.elapsed() > SERVER_START_TIMEOUT {
                return Err(fault_at(&self.far, "timeout: the server did not start in time"));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(server)
    }

    /// Checks that the draft holds one whole run, and moves that run to its place.
    fn install(&self) -> Result<(), Fault> {
        let entries =
            fs::read_dir(&self.draft).map_err(|error| fault_here("cannot read the records", &error))?;
        let folders = entries.flatten().map(|entry| entry.path());
        let runs: Vec<PathBuf> = folders.filter(|path| path.join(SUMMARY).is_file()).collect();
        let [run] = runs.as_slice() else {
            let found = counted(runs.len(), "run directory");
            return Err(fault_at(&self.near, &format!("found {found} in its records, expected 1")));
        };
        let summary: Summary =
            read_json(&run.join(SUMMARY)).map_err(|error| fault_at(&self.near, &error.to_string()))?;
        let measured = summary.runs.len() as u64;
        if measured < self.repetitions {
            let expected = counted(self.repetitions, "repetition");
            return Err(fault_at(&self.far, &format!("measured {measured} of {expected}")));
        }
        self.move_to_target(run).map_err(|error| fault_here("cannot keep the records", &error))
    }

    fn move_to_target(&self, run: &Path) -> io::Result<()> {
        sync_tree(run)?;
        fs::rename(run, &self.target)?;
        let folder = self.target.parent().unwrap_or(Path::new("."));
        sync_folder(folder).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A process that unpacks a tar stream.
struct Unpacking {
    tar: Child,
    stderr: StderrTail,
}

impl Unpacking {
    /// Starts to unpack `stream` into `folder`. If this fails, the stream is closed.
    fn start(stream: ChildStdout, folder: &Path) -> io::Result<Self> {
        let tar = tar_command(folder).stdin(stream).spawn()?;
        let mut unpacking = Self { tar, stderr: StderrTail::default() };
        match StderrTail::new(unpacking.tar.stderr.take()) {
            Ok(stderr) => unpacking.stderr = stderr,
            Err(error) => {
                unpacking.tar.kill()?;
                unpacking.tar.wait()?;
                return Err(error);
            }
        }
        Ok(unpacking)
    }

    /// Waits until tar ends. Returns `None` if it was killed, because the stream did not end in time.
    fn finish(&mut self) -> io::Result<Option<ExitStatus>> {
        wait_with_timeout(&mut self.tar, UNPACK_TIMEOUT)
    }

    /// Waits until tar ends, without regard to its result.
    fn stop(&mut self) {
        let _ = self.finish();
    }
}

/// Returns the command that unpacks a tar stream from its standard input into `folder`. Without its options,
/// tar would keep owners and setuid bits if it ran as root.
fn tar_command(folder: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--no-same-owner", "--no-same-permissions", "-xf", "-", "-C"]).arg(folder);
    tar.stdout(Stdio::null()).stderr(Stdio::piped());
    tar
}

/// Flushes a folder and everything below it to the disk, so that a power cut does not lose it.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file_type = entry.file_type()?;
        if file_type.is_dir() {
            sync_tree(&entry.path())?;
        } else if file_type.is_file() {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    fs::File::open(folder)?.sync_all()
}

/// Returns the fault of an attempt that the user or the coordinator has stopped.
fn cancelled() -> Fault {
    Fault { why: "the attempt was cancelled".to_owned(), host: None }
}

/// Returns a fault of this machine.
fn fault_here(what: &str, error: &io::Error) -> Fault {
    Fault { why: format!("{what}: {error}"), host: None }
}

fn fault_at(host: &Host, message: &str) -> Fault {
    Fault { why: format!("{}: {message}", host.name), host: Some(host.name.clone()) }
}

/// Returns the program to start on `host`. On this machine it is this program, unless the campaign names
/// another one.
pub(super) fn program(host: &Host) -> String {
    if host.local
        && host.program == "talkpath"
        && let Ok(own_path) = std::env::current_exe()
    {
        return own_path.to_string_lossy().into_owned();
    }
    host.program.clone()
}

/// Returns the address at which the server of a host listens. `address` is the address by which clients reach
/// the host. If that is a name, the server listens at every address of the host.
fn listen_address(address: &str) -> String {
    let is_name = |host: &str| host.parse::<IpAddr>().is_err() && !host.contains('%');
    match host_and_port(address) {
        Ok((host, Some(port))) if is_name(host) => format!("0.0.0.0:{port}"),
        Ok((host, None)) if is_name(host) => "0.0.0.0".to_owned(),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use talkpath_scenario::Source;
    use talkpath_scenario::campaign::Campaign;

    use super::*;

    #[test]
    fn an_unpacked_file_keeps_no_setuid_bit() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for path in [&from, &to] {
            fs::create_dir(path).unwrap();
        }
        fs::write(from.join("file"), "").unwrap();
        fs::set_permissions(from.join("file"), fs::Permissions::from_mode(0o6755)).unwrap();
        let mut pack = Command::new("tar");
        pack.arg("-C").arg(&from).args(["-cf", "-", "."]).stdout(Stdio::piped());
        let mut pack = pack.spawn().unwrap();
        assert!(tar_command(&to).stdin(pack.stdout.take().unwrap()).status().unwrap().success());
        assert!(pack.wait().unwrap().success());
        assert_eq!(fs::metadata(to.join("file")).unwrap().permissions().mode() & 0o7000, 0);
    }

    #[test]
    fn a_key_that_cannot_be_read_is_a_fault_of_the_far_host() {
        let text = "[host.a]\nlocal = true\n[host.b]\naddress = \"192.0.2.1\"\n[measure.m]\n\
                    [schedule]\nevery = \"1 s\"\ndays = 1\n";
        let [near, far] = Campaign::load(&Source::new("c.toml", text)).unwrap().hosts.try_into().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let attempt = Attempt {
            near,
            far,
            scenario: String::new(),
            key_file: Some(folder.path().join("key")),
            seed: 1,
            records_flag: String::new(),
            repetitions: 1,
            limit: Duration::from_secs(1),
            draft: folder.path().join("draft"),
            target: folder.path().join("target"),
        };
        let fault = attempt.run(&|| false).unwrap_err();
        assert_eq!(fault.host.as_deref(), Some("b"));
        assert!(fault.why.contains("key_file") && fault.why.contains("No such file"), "{}", fault.why);
    }

    #[test]
    fn a_server_listens_where_it_is_reached() {
        assert_eq!(listen_address("192.0.2.1"), "192.0.2.1");
        assert_eq!(listen_address("192.0.2.1:7000"), "192.0.2.1:7000");
        assert_eq!(listen_address("2001:db8::1"), "2001:db8::1");
        assert_eq!(listen_address("[2001:db8::1]:7000"), "[2001:db8::1]:7000");
        assert_eq!(listen_address("host.example:7000"), "0.0.0.0:7000");
        assert_eq!(listen_address("host.example"), "0.0.0.0");
    }
}
