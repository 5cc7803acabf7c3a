//! One attempt at a measurement: `talkpath run` on the near host, whose run directory comes back as a tar
//! stream; before it, if the far host is to be given a server, `talkpath serve` there.
//!
//! Scenario and key travel on the command's standard input, so that neither is left on a host, and the key is
//! seen in no list of processes.

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

/// What to do.
pub(crate) struct Attempt {
    pub(crate) near: Host,
    pub(crate) far: Host,
    /// The scenario's text.
    pub(crate) scenario: String,
    /// The far server's key: read for each attempt.
    pub(crate) key_file: Option<std::path::PathBuf>,
    pub(crate) seed: u64,
    /// `--records`.
    pub(crate) records: String,
    /// Repetitions of all cells.
    pub(crate) repetitions: u64,
    /// After this it is ended.
    pub(crate) limit: Duration,
    /// Where records are put together, and where they then are.
    pub(crate) draft: std::path::PathBuf,
    pub(crate) target: std::path::PathBuf,
}

impl Attempt {
    /// Measures; at the end the records are in their place and synced. It ends early once `is_over`.
    pub(crate) fn run(&self, is_over: &dyn Fn() -> bool) -> Result<(), Fault> {
        let fetched = self.measure(is_over).and_then(|()| self.install());
        // A draft that cannot be removed is removed by the next process.
        let _ = fs::remove_dir_all(&self.draft);
        fetched
    }

    fn measure(&self, is_over: &dyn Fn() -> bool) -> Result<(), Fault> {
        let key = self.key()?;
        let _server = self.far.starts_server.then(|| self.serve(&key, is_over)).transpose()?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&self.draft)
            .map_err(|why| self.here("the records cannot be kept", &why))?;
        let arguments = self.client_arguments(&key);
        let script = Script {
            text: CLIENT,
            arguments: &arguments,
            input: vec![self.scenario.clone().into_bytes(), key],
            output: Stdio::piped(),
            limit: self.limit,
        };
        let since = Instant::now();
        let mut client = Started::start(&self.near, script).map_err(|why| at(&self.near, &why))?;
        let Some(stream) = client.output() else {
            return Err(at(&self.near, "no standard output"));
        };
        let mut tar = unpack(&self.draft)
            .stdin(stream)
            .spawn()
            .map_err(|why| self.here("tar cannot be started", &why))?;
        let tar_says = match StandardError::of(tar.stderr.take()) {
            Ok(tar_says) => tar_says,
            Err(why) => {
                client.stop();
                let _ = wait_at_most(&mut tar, UNPACK_TIME);
                return Err(self.here("no thread for what tar says", &why));
            }
        };
        let status = loop {
            if let Some(status) = client.ended() {
                break status;
            }
            if since.elapsed() > self.limit || is_over() {
                client.stop();
                let _ = wait_at_most(&mut tar, UNPACK_TIME);
                let why = format!("it had not ended after {} s", since.elapsed().as_secs());
                return Err(at(if self.near.local { &self.far } else { &self.near }, &why));
            }
            thread::sleep(POLL);
        };
        // The watcher of the shell may hold the stream until its own input ends.
        let words = client.last_words();
        drop(client);
        let fetched = wait_at_most(&mut tar, UNPACK_TIME).map_err(|why| self.here("tar failed", &why))?;
        let Some(fetched) = fetched else {
            return Err(at(&self.near, "its records did not end"));
        };
        match status.code() {
            // 5: a threshold of the scenario did not hold; it was measured all the same.
            Some(0 | 5) if fetched.success() => Ok(()),
            Some(0 | 5) => {
                // On a full disk tar may report only a short write. A write of our own has the cause.
                fs::write(self.draft.join(SPACE_PROBE), vec![0_u8; SPACE_PROBE_BYTES])
                    .map_err(|why| self.here(NOT_UNPACKED, &why))?;
                // Its first line has the cause, its last one that there was one.
                let text = tar_says.text();
                let cause = text.lines().next().unwrap_or("tar said nothing");
                Err(Fault { why: format!("{NOT_UNPACKED}: {cause}"), host: None })
            }
            Some(4) => Err(at(&self.far, &words)),
            Some(255) if self.near.ssh.is_some() => Err(at(&self.near, &format!("ssh: {words}"))),
            Some(1 | 3 | 9 | 126 | 127) => Err(at(&self.near, &words)),
            _ => Err(Fault { why: words, host: None }),
        }
    }

    /// Empty without a file. One that cannot be read just now is no reason to end a campaign.
    fn key(&self) -> Result<Vec<u8>, Fault> {
        let Some(path) = &self.key_file else { return Ok(Vec::new()) };
        read_key_file(path).map_err(|why| at(&self.far, &format!("its key_file {}: {why}", path.display())))
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
            // The near host plays the path, too: as for a study, none of its processors is to come back late.
            (_, Some(_)) => arguments.extend(["--arena", "emu", "--keep-awake"].map(str::to_owned)),
            (Some(address), None) => arguments.extend(["--to".to_owned(), address.clone()]),
            (None, None) => {}
        }
        arguments
    }

    /// Starts a server on the far host; it is there when this returns.
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
        let mut server = Started::start(&self.far, script).map_err(|why| at(&self.far, &why))?;
        let (listens, listening) = mpsc::channel();
        if let Some(output) = server.output() {
            // Lines after the first are read, too, so that the server never waits for its reader.
            let read = move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if line.starts_with(LISTENING) {
                        let _ = listens.send(());
                    }
                }
            };
            thread::Builder::new().spawn(read).map_err(|why| self.here("no thread for a server", &why))?;
        }
        let since = Instant::now();
        loop {
            if listening.try_recv().is_ok() {
                return Ok(server);
            }
            if server.ended().is_some() {
                let words = server.last_words();
                return Err(at(&self.far, &format!("the server did not start: {words}")));
            }
            if since.elapsed() > SERVER_START || is_over() {
                return Err(at(&self.far, "the server did not start in time"));
            }
            thread::sleep(POLL);
        }
    }

    /// Checks what was fetched and puts it in its place.
    fn install(&self) -> Result<(), Fault> {
        let folders =
            fs::read_dir(&self.draft).map_err(|why| self.here("the records cannot be read", &why))?;
        let runs: Vec<_> =
            folders.flatten().map(|it| it.path()).filter(|it| it.join(SUMMARY).is_file()).collect();
        let [run] = runs.as_slice() else {
            return Err(at(
                &self.near,
                &format!("found {} in what came, expected 1", counted(runs.len(), "run directory")),
            ));
        };
        let summary: Summary =
            read_json(&run.join(SUMMARY)).map_err(|why| at(&self.near, &why.to_string()))?;
        if (summary.runs.len() as u64) < self.repetitions {
            let (found, expected) = (summary.runs.len(), self.repetitions);
            return Err(at(&self.far, &format!("measured {found} of {}", counted(expected, "repetition"))));
        }
        self.keep(run).map_err(|why| self.here("the records cannot be kept", &why))
    }

    fn keep(&self, run: &Path) -> std::io::Result<()> {
        sync_tree(run)?;
        fs::rename(run, &self.target)?;
        let folder = self.target.parent().unwrap_or(Path::new("."));
        sync_folder(folder).map_err(|why| std::io::Error::other(why.to_string()))
    }

    /// A failure of this machine.
    fn here(&self, what: &str, why: &std::io::Error) -> Fault {
        Fault { why: format!("{what}: {why}"), host: None }
    }
}

/// Unpacks its standard input to `folder`. For root, tar would keep owners and setuid bits.
fn unpack(folder: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--no-same-owner", "--no-same-permissions", "-xf", "-", "-C"]).arg(folder);
    tar.stdout(Stdio::null()).stderr(Stdio::piped());
    tar
}

/// Writes a folder and everything below it through to the disk, so that a power cut does not lose it.
fn sync_tree(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        match kind.is_dir() {
            true => sync_tree(&entry.path())?,
            false if kind.is_file() => fs::File::open(entry.path())?.sync_all()?,
            false => {}
        }
    }
    fs::File::open(folder)?.sync_all()
}

fn at(host: &Host, why: &str) -> Fault {
    Fault { why: format!("{}: {why}", host.name), host: Some(host.name.clone()) }
}

/// What `talkpath` is called on `host`.
pub(super) fn program(host: &Host) -> String {
    let own = || std::env::current_exe().ok().map(|path| path.to_string_lossy().into_owned());
    match host.local && host.program == "talkpath" {
        true => own().unwrap_or_else(|| host.program.clone()),
        false => host.program.clone(),
    }
}

/// Where the server of an `address` listens: there, or at its port on every address.
fn bind(address: &str) -> String {
    let is_name = |host: &str| host.parse::<IpAddr>().is_err() && !host.contains('%');
    match host_and_port(address) {
        Ok((host, Some(port))) if is_name(host) => format!("0.0.0.0:{port}"),
        Ok((host, None)) if is_name(host) => "0.0.0.0".to_owned(),
        _ => address.to_owned(),
    }
}

/// After [`SHELL`](super::child::SHELL). Arguments: bytes of the scenario, bytes of the key, the program,
/// then flags of `run`. The run directory goes to standard output as a tar stream.
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

/// After [`SHELL`](super::child::SHELL). Arguments: bytes of the key, the program, where to listen.
const SERVER: &str = r#"
read_file "$1" "$d/key"
k=$1 p=$2 b=$3
set --
test "$k" -gt 0 && set -- --key-file "$d/key"
run "$p" serve --bind "$b" "$@"
"#;

/// What `serve` prints first.
const LISTENING: &str = "listening on ";
/// Chosen: ssh's own time to connect, and some.
const SERVER_START: Duration = Duration::from_secs(25);
/// How much longer a server may run than the client that it serves: until the client has started, and until
/// it has written its records. Chosen.
const SERVER_MARGIN: Duration = Duration::from_secs(120);
/// How long tar may go on once the command that feeds it has ended. Chosen: enough for a slow disk, and an
/// end to a stream that has none.
const UNPACK_TIME: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
const NOT_UNPACKED: &str = "the records could not be unpacked here";
/// A file that is written to learn whether the disk is full; it is removed with its draft.
const SPACE_PROBE: &str = ".space";
/// Its size. Chosen: some blocks of a file system, so that it does not fit on a disk that tar has filled.
const SPACE_PROBE_BYTES: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use talkpath_scenario::Source;
    use talkpath_scenario::campaign::Campaign;

    use super::*;

    #[test]
    fn what_a_host_sends_keeps_no_setuid_bit() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for it in [&from, &to] {
            fs::create_dir(it).unwrap();
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
