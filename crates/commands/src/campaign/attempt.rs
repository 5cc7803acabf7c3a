//! One attempt at a measurement. It starts `talkpath serve` on the far host, if the campaign asks for that,
//! and `talkpath run` on the near host. The run directory comes back as a tar stream.
//!
//! The scenario and the key are written to the standard input of the command. So neither of them stays on a
//! host, and no list of processes shows the key.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use talkpath_campaign::Fault;
use talkpath_measure::summary::Summary;
use talkpath_scenario::campaign::Host;
use talkpath_scenario::host_and_port;

use super::child::{Script, StandardError, Started, wait_at_most};
use crate::key_file::read_key_file;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::store::whole::{read_json, sync_folder};
use talkpath_units::counted;

/// An attempt at a measurement.
pub(crate) struct Attempt {
    pub(crate) near: Host,
    pub(crate) far: Host,
    /// The text of the scenario.
    pub(crate) scenario: String,
    /// The file with the key of the far server. It is read again for each attempt.
    pub(crate) key_file: Option<std::path::PathBuf>,
    pub(crate) seed: u64,
    /// The value of `--records`.
    pub(crate) records: String,
    /// How many repetitions all cells have together.
    pub(crate) repetitions: u64,
    /// How long the attempt may take. After this time it is stopped.
    pub(crate) limit: Duration,
    /// The folder into which the records are unpacked.
    pub(crate) draft: std::path::PathBuf,
    /// The folder to which the draft is renamed when it is complete.
    pub(crate) target: std::path::PathBuf,
}

impl Attempt {
    /// Runs the measurement. When this returns, the records are in their place and written to the disk. The
    /// attempt ends early as soon as `is_over` returns true.
    pub(crate) fn run(&self, is_over: &dyn Fn() -> bool) -> Result<(), Fault> {
        let result = self.measure(is_over).and_then(|()| self.install());
        // If the draft cannot be removed now, the next coordinator removes it.
        let _ = fs::remove_dir_all(&self.draft);
        result
    }

    /// Starts the server and the client, and unpacks the run directory of the client into the draft.
    fn measure(&self, is_over: &dyn Fn() -> bool) -> Result<(), Fault> {
        let key = self.key()?;
        let _server = self.far.starts_server.then(|| self.serve(&key, is_over)).transpose()?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&self.draft)
            .map_err(|why| fault_here("the records cannot be kept", &why))?;
        let arguments = self.client_arguments(&key);
        let script = Script {
            text: CLIENT,
            arguments: &arguments,
            input: vec![self.scenario.clone().into_bytes(), key],
            output: Stdio::piped(),
            limit: self.limit,
        };
        let start = Instant::now();
        let mut client = Started::start(&self.near, script).map_err(|why| fault_at(&self.near, &why))?;
        let Some(stream) = client.output() else {
            return Err(fault_at(&self.near, "no standard output"));
        };
        let mut tar =
            unpack(&self.draft).stdin(stream).spawn().map_err(|why| fault_here("cannot start tar", &why))?;
        let tar_errors = match StandardError::of(tar.stderr.take()) {
            Ok(tar_errors) => tar_errors,
            Err(why) => {
                client.stop();
                let _ = wait_at_most(&mut tar, UNPACK_TIME);
                return Err(fault_here("cannot start a thread for the messages of tar", &why));
            }
        };
        let status = loop {
            if let Some(status) = client.ended() {
                break status;
            }
            if start.elapsed() > self.limit || is_over() {
                client.stop();
                let _ = wait_at_most(&mut tar, UNPACK_TIME);
                let why = format!("it had not ended after {} s", start.elapsed().as_secs());
                // If the client runs on this machine, the far host is the one that did not answer.
                let slow_host = if self.near.local { &self.far } else { &self.near };
                return Err(fault_at(slow_host, &why));
            }
            thread::sleep(POLL);
        };
        let message = client.last_message();
        // A process of the client's shell may hold the tar stream open until the input of the shell ends.
        // Dropping the client ends that input.
        drop(client);
        let unpacked = wait_at_most(&mut tar, UNPACK_TIME).map_err(|why| fault_here("tar failed", &why))?;
        let Some(unpacked) = unpacked else {
            return Err(fault_at(&self.near, "its records did not end"));
        };
        match status.code() {
            // Exit code 5: a threshold of the scenario did not hold, but the measurement is complete.
            Some(0 | 5) if unpacked.success() => Ok(()),
            Some(0 | 5) => Err(self.unpack_fault(&tar_errors)),
            // Exit code 4 of `run`: the far host failed.
            Some(4) => Err(fault_at(&self.far, &message)),
            // Exit code 255 of ssh: the host was not reached.
            Some(255) if self.near.ssh.is_some() => Err(fault_at(&self.near, &format!("ssh: {message}"))),
            // Results could not be written, the arena is not available, the shell failed, or there is no
            // program.
            Some(1 | 3 | 9 | 126 | 127) => Err(fault_at(&self.near, &message)),
            _ => Err(Fault { why: message, host: None }),
        }
    }

    /// Finds out why tar could not unpack the records.
    fn unpack_fault(&self, tar_errors: &StandardError) -> Fault {
        // If the disk is full, tar may report only a short write. A write of our own gets the error of the
        // system.
        let probe = self.draft.join(SPACE_PROBE);
        if let Err(why) = fs::write(probe, vec![0_u8; SPACE_PROBE_BYTES]) {
            return fault_here(NOT_UNPACKED, &why);
        }
        // The first line of tar has the cause. Its last line says only that there was an error.
        let text = tar_errors.text();
        let cause = text.lines().next().unwrap_or("tar said nothing");
        Fault { why: format!("{NOT_UNPACKED}: {cause}"), host: None }
    }

    /// Reads the key of the far server. It is empty if the campaign names no key file. A file that cannot be
    /// read fails this attempt and not the campaign.
    fn key(&self) -> Result<Vec<u8>, Fault> {
        let Some(path) = &self.key_file else { return Ok(Vec::new()) };
        read_key_file(path)
            .map_err(|why| fault_at(&self.far, &format!("its key_file {}: {why}", path.display())))
    }

    fn client_arguments(&self, key: &[u8]) -> Vec<String> {
        let mut arguments = vec![
            self.scenario.len().to_string(),
            key.len().to_string(),
            program(&self.near),
            "--seed".to_owned(),
            self.seed.to_string(),
            "--records".to_owned(),
            self.records.clone(),
        ];
        match (&self.far.address, &self.far.emulated) {
            // The near host emulates the path, so its processors must not wake up late.
            (_, Some(_)) => arguments.extend(["--arena", "emu", "--keep-awake"].map(str::to_owned)),
            (Some(address), None) => arguments.extend(["--to".to_owned(), address.clone()]),
            (None, None) => {}
        }
        arguments
    }

    /// Starts a server on the far host, and waits until the server listens.
    fn serve(&self, key: &[u8], is_over: &dyn Fn() -> bool) -> Result<Started, Fault> {
        let bind =
            self.far.bind.clone().unwrap_or_else(|| bind(self.far.address.as_deref().unwrap_or_default()));
        let arguments = [key.len().to_string(), program(&self.far), bind];
        let script = Script {
            text: SERVER,
            arguments: &arguments,
            input: vec![key.to_vec()],
            output: Stdio::piped(),
            limit: self.limit + SERVER_MARGIN,
        };
        let mut server = Started::start(&self.far, script).map_err(|why| fault_at(&self.far, &why))?;
        let (report, listening) = mpsc::channel();
        if let Some(output) = server.output() {
            // The thread reads until the end of the output, so that the server can always write.
            let read = move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if line.starts_with(LISTENING) {
                        let _ = report.send(());
                    }
                }
            };
            thread::Builder::new()
                .spawn(read)
                .map_err(|why| fault_here("cannot start a thread for a server", &why))?;
        }
        let start = Instant::now();
        loop {
            if listening.try_recv().is_ok() {
                return Ok(server);
            }
            if server.ended().is_some() {
                let message = server.last_message();
                return Err(fault_at(&self.far, &format!("the server did not start: {message}")));
            }
            if start.elapsed() > SERVER_START || is_over() {
                return Err(fault_at(&self.far, "the server did not start in time"));
            }
            thread::sleep(POLL);
        }
    }

    /// Checks that the draft holds one whole run, and moves that run to its place.
    fn install(&self) -> Result<(), Fault> {
        let folders =
            fs::read_dir(&self.draft).map_err(|why| fault_here("the records cannot be read", &why))?;
        let runs: Vec<_> =
            folders.flatten().map(|entry| entry.path()).filter(|path| path.join(SUMMARY).is_file()).collect();
        let [run] = runs.as_slice() else {
            return Err(fault_at(
                &self.near,
                &format!("found {} in what came, expected 1", counted(runs.len(), "run directory")),
            ));
        };
        let summary: Summary =
            read_json(&run.join(SUMMARY)).map_err(|why| fault_at(&self.near, &why.to_string()))?;
        if (summary.runs.len() as u64) < self.repetitions {
            let (found, expected) = (summary.runs.len(), self.repetitions);
            return Err(fault_at(
                &self.far,
                &format!("measured {found} of {}", counted(expected, "repetition")),
            ));
        }
        self.move_to_target(run).map_err(|why| fault_here("the records cannot be kept", &why))
    }

    fn move_to_target(&self, run: &Path) -> std::io::Result<()> {
        sync_tree(run)?;
        fs::rename(run, &self.target)?;
        let folder = self.target.parent().unwrap_or(Path::new("."));
        sync_folder(folder).map_err(|why| std::io::Error::other(why.to_string()))
    }
}

/// The command that unpacks a tar stream from its standard input into `folder`. Without its options, tar
/// would keep owners and setuid bits if it ran as root.
fn unpack(folder: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--no-same-owner", "--no-same-permissions", "-xf", "-", "-C"]).arg(folder);
    tar.stdout(Stdio::null()).stderr(Stdio::piped());
    tar
}

/// Makes the system write a folder and everything below it to the disk, so that a power cut does not lose it.
fn sync_tree(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    fs::File::open(folder)?.sync_all()
}

/// A fault of this machine.
fn fault_here(what: &str, why: &std::io::Error) -> Fault {
    Fault { why: format!("{what}: {why}"), host: None }
}

/// A fault of `host`.
fn fault_at(host: &Host, why: &str) -> Fault {
    Fault { why: format!("{}: {why}", host.name), host: Some(host.name.clone()) }
}

/// The program to start on `host`. On this machine it is this program, unless the campaign names another one.
pub(super) fn program(host: &Host) -> String {
    if host.local
        && host.program == "talkpath"
        && let Ok(own_path) = std::env::current_exe()
    {
        return own_path.to_string_lossy().into_owned();
    }
    host.program.clone()
}

/// The address at which the server of a host listens, given the `address` by which clients reach the host. If
/// that is a name, the server listens at every address of the host.
fn bind(address: &str) -> String {
    let is_name = |host: &str| host.parse::<IpAddr>().is_err() && !host.contains('%');
    match host_and_port(address) {
        Ok((host, Some(port))) if is_name(host) => format!("0.0.0.0:{port}"),
        Ok((host, None)) if is_name(host) => "0.0.0.0".to_owned(),
        _ => address.to_owned(),
    }
}

/// The script of the client, which follows [`SHELL`](super::child::SHELL). Its arguments are the sizes of the
/// scenario and of the key in bytes, the program, and flags of `run`. The script writes the run directory to
/// standard output as a tar stream.
const CLIENT: &str = r#"
read_file "$1" "$d/scenario.toml"
read_file "$2" "$d/key"
k=$2 p=$3
shift 3
test "$k" -gt 0 && set -- "$@" --key-file "$d/key"
mkdir "$d/out" || exit 9
export TALKPATH_RUN_AGAIN=0s
run "$p" run "$d/scenario.toml" --out "$d/out" --rounds --quiet "$@" >/dev/null
e=$?
tar -C "$d/out" -cf - . &
wait_for "$!"
exit "$e"
"#;

/// The script of the server, which follows [`SHELL`](super::child::SHELL). Its arguments are the size of the
/// key in bytes, the program, and the address at which to listen.
const SERVER: &str = r#"
read_file "$1" "$d/key"
k=$1 p=$2 b=$3
set --
test "$k" -gt 0 && set -- --key-file "$d/key"
run "$p" serve --bind "$b" "$@"
"#;

/// The beginning of the first line that `serve` prints.
const LISTENING: &str = "listening on ";
/// How long a server may take to start (chosen: a little more than ssh may take to connect).
const SERVER_START: Duration = Duration::from_secs(25);
/// How much longer a server may run than the client that it serves (chosen). The client starts later, and
/// writes its records at the end.
const SERVER_MARGIN: Duration = Duration::from_secs(120);
/// How long tar may take after the client has ended (chosen: enough for a slow disk). The limit also ends a
/// stream that never ends.
const UNPACK_TIME: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
const NOT_UNPACKED: &str = "the records could not be unpacked here";
/// The name of a file that is written to learn whether the disk is full. It is removed together with the
/// draft.
const SPACE_PROBE: &str = ".space";
/// The size of that file (chosen: several blocks of a file system, so that it does not fit on a full disk).
const SPACE_PROBE_BYTES: usize = 65_536;

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
        assert!(unpack(&to).stdin(pack.stdout.take().unwrap()).status().unwrap().success());
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
            records: String::new(),
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
        assert_eq!(bind("192.0.2.1"), "192.0.2.1");
        assert_eq!(bind("192.0.2.1:7000"), "192.0.2.1:7000");
        assert_eq!(bind("2001:db8::1"), "2001:db8::1");
        assert_eq!(bind("[2001:db8::1]:7000"), "[2001:db8::1]:7000");
        assert_eq!(bind("host.example:7000"), "0.0.0.0:7000");
        assert_eq!(bind("host.example"), "0.0.0.0");
    }
}
