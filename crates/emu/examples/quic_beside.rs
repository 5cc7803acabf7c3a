//! Our QUIC beside another implementation's, over an emulated path with 3 % loss each way:
//!
//! `quic_beside CASE CARRY SEED -- PROGRAM [ARGUMENT]...`
//!
//! One end is ours, with the engine and the channel of `emu` and `live`; the other is PROGRAM. It gets the
//! UDP socket of its end as standard input and its task as further arguments, `role=client carry=datagram
//! ...`. It says in its first line that it is ready, and in its last one what it counted (`beside: sent=1000
//! received=970 ...`). What both counted is held against the arrival log of the emulator. Exit code 1 if it
//! differs, 2 if a run failed and nothing was compared, 3 if there is no emulator here.
//!
//! | CASE | what happens |
//! | --- | --- |
//! | `server` | it is the server and sends each message back; both ends time out in the end |
//! | `client` | it is the client and closes; our server sends each message back |
//! | `words` | the same, closed with an error and a reason full of control characters |
//! | `server-refused` | it is a server with another certificate than our client wants |
//! | `client-refused` | it is a client that wants another certificate than our server has |

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena as _, ArenaError, RunPlan};
use talkpath_config::Carry;
use talkpath_emu::{DirectionPackets, EmuArena, OurEnd, Stranger, read_directions, replay};
use talkpath_flow::Side;
use talkpath_kernel::end::{Fingerprint, HostKeys, server_identity};
use talkpath_model::Scenario;
use talkpath_scenario::{Options, Source, load};
use talkpath_units::Seed;

fn main() -> ExitCode {
    match run() {
        Ok(differences) if differences.is_empty() => ExitCode::SUCCESS,
        Ok(differences) => {
            differences.iter().for_each(|what| println!("DIFFERS: {what}"));
            ExitCode::from(1)
        }
        Err(Failure::NoArena(why)) => {
            println!("SKIP: {why}");
            ExitCode::from(3)
        }
        Err(Failure::Other(why)) => {
            println!("FAILED: {why}");
            ExitCode::from(2)
        }
    }
}

/// Why nothing was compared.
enum Failure {
    /// This machine has no emulator.
    NoArena(String),
    /// Anything else.
    Other(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// What one run is.
struct Case {
    name: String,
    carry: Carry,
    seed: u64,
    program: Vec<String>,
}

impl Case {
    fn read() -> Result<Self, String> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let [name, carry, seed, dashes, program @ ..] = words.as_slice() else {
            return Err(USAGE.to_owned());
        };
        let is_known = CASES.contains(&name.as_str()) && dashes == "--";
        let carry = Carry::named(carry);
        match (carry, seed.parse(), program.is_empty()) {
            (Some(carry), Ok(seed), false) if is_known => {
                Ok(Self { name: name.clone(), carry, seed, program: program.to_vec() })
            }
            _ => Err(USAGE.to_owned()),
        }
    }

    /// Whether the other program is the client.
    fn is_client(&self) -> bool {
        !self.name.starts_with("server")
    }

    fn is_refused(&self) -> bool {
        self.name.ends_with("refused")
    }

    fn scenario(&self) -> Result<Scenario, String> {
        // ms. Some messages more than are wanted, since the first wait for the handshake. What another client
        // sends after that still comes.
        let duration = if self.is_refused() { 1000 } else { 5500 };
        // A connection idles for three probe timeouts at least (RFC 9000 §10.1), which are long if the other
        // program is slow.
        let drain = if self.name == "server" { 10_000 } else { 5000 };
        let text = format!(
            "name = \"beside\"\nduration = \"{duration} ms\"\ndrain = \"{drain} ms\"\n[path]\n\
             up = {{ rate = \"10 Mbps\", delay = \"10 ms\", loss = 0.03 }}\n\
             down = {{ rate = \"10 Mbps\", delay = \"10 ms\", loss = 0.03 }}\n\
             [flow.beside]\ntransport = \"{}\"\n\
             workload = {{ kind = \"cbr\", rate = \"{} bps\", size = \"{SIZE} B\", echo = true }}\n",
            self.carry.transport_name(),
            SIZE * 8 * 1000 / GAP_MS
        );
        let plan = load(&Source::new("beside.toml", text), &Options::default());
        let cells = plan.map_err(|mistakes| format!("{mistakes:?}"))?.cells;
        Ok(cells.into_iter().next().ok_or("the scenario has no cell")?.scenario)
    }

    /// The keys of our end, and the task of the other one, whose files are in `folder`.
    fn agree(&self, folder: &Path) -> Result<(HostKeys, Vec<String>), String> {
        let file = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, content).map_err(|why| format!("{}: {why}", path.display()))?;
            Ok::<_, String>(path.display().to_string())
        };
        let wanted = if self.is_refused() { OTHER_SECRET } else { SECRET };
        let role = if self.is_client() { "client" } else { "server" };
        let mut task = vec![
            format!("role={role}"),
            format!("carry={}", self.carry.name()),
            format!("messages={MESSAGES}"),
            format!("size={SIZE}"),
            format!("gap_ms={GAP_MS}"),
            format!("idle_ms={IDLE_MS}"),
        ];
        if self.name == "words" {
            task.push("close=words".to_owned());
        }
        if self.is_client() {
            let (certificate, _) = server_identity(&wanted).map_err(|why| why.to_string())?;
            task.push(format!("certificate={}", file("certificate.der", &certificate)?));
            return Ok((HostKeys::Server(SECRET), task));
        }
        let (certificate, key) = server_identity(&SECRET).map_err(|why| why.to_string())?;
        task.push(format!("certificate={}", file("certificate.der", &certificate)?));
        task.push(format!("key={}", file("key.der", &key)?));
        let fingerprint = Fingerprint::of_secret(&wanted).map_err(|why| why.to_string())?;
        Ok((HostKeys::Client(fingerprint), task))
    }
}

fn run() -> Result<Vec<String>, Failure> {
    let case = Case::read()?;
    let scenario = case.scenario()?;
    let folder = std::env::temp_dir().join(format!("talkpath-beside-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let (keys, task) = case.agree(&folder)?;
    let mut child = None;
    let mut take_socket = |socket| {
        let mut program = Command::new(&case.program[0]);
        program.args(&case.program[1..]).args(&task).stdin(Stdio::from(socket)).stdout(Stdio::piped());
        let mut program = program.spawn().map_err(|why| {
            let name = &case.program[0];
            io::Error::new(why.kind(), format!("{name}: {why}"))
        })?;
        let lines = BufReader::new(program.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let (_, lines) = child.insert((program, lines));
        // What comes before it reads waits in its socket.
        match lines.read_line(&mut String::new())? {
            0 => Err(io::Error::other("the other program did not say that it is ready")),
            _ => Ok(()),
        }
    };
    let mut stranger = Stranger {
        flow: 0,
        side: if case.is_client() { Side::Near } else { Side::Far },
        quic_keys: Some(keys),
        take_socket: &mut take_socket,
    };
    let mut arena = EmuArena::default();
    let interrupt = AtomicBool::new(false);
    let plan = RunPlan {
        cell: 0,
        repetition: 0,
        seed: Seed::new(case.seed),
        series: None,
        rows: true,
        interrupt: &interrupt,
        progress: &|_| {},
    };
    let ended = arena.run_beside(&scenario, plan, &mut stranger);
    let theirs = child.take().map_or_else(|| Err("it was not started".to_owned()), last_line_of);
    let _ = fs::remove_dir_all(&folder);
    let (record, ours) = ended.map_err(|why| match why {
        ArenaError::Unavailable { .. } => Failure::NoArena(why.to_string()),
        why => Failure::Other(why.to_string()),
    })?;
    record.warnings.iter().for_each(|warning| println!("warning: {warning}"));
    if !record.valid {
        println!("the run is not valid");
    }
    let log = arena.take_arrival_log().ok_or_else(|| "there is no log".to_owned())?;
    replay(&log, &scenario).map_err(|why| why.to_string())?;
    let [out, back] = read_directions(&log).map_err(|why| why.to_string())?;
    let [from_them, to_them] = if case.is_client() { [out, back] } else { [back, out] };
    let theirs = match Counts::read(&theirs?) {
        Ok(theirs) => theirs,
        Err(why) => return Ok(vec![why]),
    };
    let found = Found { case, ours, theirs, from_them, to_them };
    found.print();
    Ok(found.differences())
}

/// Waits for the program, which ends by itself; its line of what it counted.
fn last_line_of((mut child, mut lines): (Child, BufReader<ChildStdout>)) -> Result<String, String> {
    let mut text = String::new();
    let ended = lines.read_to_string(&mut text).and_then(|_| child.wait());
    print!("{text}");
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("the other program: {status}")),
        Err(why) => return Err(format!("the other program: {why}")),
    }
    let last = text.lines().last().and_then(|line| line.strip_prefix("beside: "));
    Ok(last.ok_or("the other program did not say what it counted")?.to_owned())
}

/// What the other program counted.
struct Counts {
    /// Handshakes that it completed.
    opened: u64,
    /// How the connection ended.
    closed: String,
    sent: u64,
    received: u64,
    twice: u64,
    malformed: u64,
    bytes_sent: u64,
    bytes_received: u64,
    packets_out: u64,
    packets_in: u64,
}

impl Counts {
    /// Reads `line`, which has each of them; else says what is wrong.
    fn read(line: &str) -> Result<Self, String> {
        let words: BTreeMap<&str, &str> =
            line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let word = |name: &str| {
            words.get(name).copied().ok_or_else(|| format!("the other program did not count `{name}`"))
        };
        let number = |name: &str| {
            let text = word(name)?;
            text.parse().map_err(|_| format!("the other program's `{name}` is no number: {text:?}"))
        };
        Ok(Self {
            opened: number("opened")?,
            closed: word("closed")?.to_owned(),
            sent: number("sent")?,
            received: number("received")?,
            twice: number("twice")?,
            malformed: number("malformed")?,
            bytes_sent: number("bytes_sent")?,
            bytes_received: number("bytes_received")?,
            packets_out: number("packets_out")?,
            packets_in: number("packets_in")?,
        })
    }
}

/// What both ends and the emulator counted.
struct Found {
    case: Case,
    ours: OurEnd,
    theirs: Counts,
    from_them: DirectionPackets,
    to_them: DirectionPackets,
}

impl Found {
    fn print(&self) {
        let Self { ours, from_them, to_them, .. } = self;
        println!("ours: sent={} received={} failure={:?}", ours.sent, ours.received, ours.failure);
        for (what, way) in [("from it", from_them), ("to it", to_them)] {
            let (arrived, departed) = (way.arrived.len(), way.departed.len());
            let (lost, messages) = (way.lost.len(), messages_in(&way.lost));
            println!(
                "log: {what}: arrived={arrived} departed={departed} lost={lost}, of these messages={messages}{}",
                if way.is_last_lost { "; the last was lost" } else { "" }
            );
        }
    }

    fn differences(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                all.push(what);
            }
        };
        let Self { case, ours, theirs, from_them, to_them } = self;
        let mut equal = |what: &str, left: u64, right: u64| {
            check(left == right, format!("{what}: {left}, not {right}"));
        };
        equal("packets that it sent", theirs.packets_out, from_them.arrived.len() as u64);
        // Who closes may send its close once and leave (RFC 9000 §10.2.1). If the path lost it, our end
        // sends to nobody until it times out.
        let is_unheard = case.is_client() && !case.is_refused() && from_them.is_last_lost;
        if !is_unheard {
            equal("packets that came to it", theirs.packets_in, to_them.departed.len() as u64);
        }
        equal("handshakes that it completed", theirs.opened, u64::from(!case.is_refused()));
        if case.is_refused() {
            equal("messages sent", ours.sent + theirs.sent, 0);
            equal("messages received", ours.received + theirs.received, 0);
        } else {
            match case.carry {
                // A datagram is never sent again: what the path lost is missing, and nothing else.
                Carry::Datagram => {
                    let (lost_from, lost_to) = (messages_in(&from_them.lost), messages_in(&to_them.lost));
                    equal("messages from it, come or lost", ours.received + lost_from, theirs.sent);
                    equal("messages to it, come or lost", theirs.received + lost_to, ours.sent);
                }
                Carry::Stream => {
                    equal("bytes that came from it", ours.received, theirs.bytes_sent);
                    equal("bytes that came to it", theirs.bytes_received, ours.sent);
                }
                Carry::StreamPerMessage => {
                    equal("messages that came from it", ours.received, theirs.sent);
                    equal("messages that came to it", theirs.received, ours.sent);
                }
            }
            equal("messages that came to it twice", theirs.twice, 0);
            equal("messages that came to it in pieces or changed", theirs.malformed, 0);
            let unit = if case.carry == Carry::Stream { SIZE } else { 1 };
            let first = if case.is_client() { theirs.sent } else { ours.sent / unit };
            check(first >= MESSAGES, format!("only {first} messages were sent"));
            let has_losses = !from_them.lost.is_empty() && !to_them.lost.is_empty();
            check(has_losses, "the path lost nothing".to_owned());
        }
        let (says, closed) = match case.name.as_str() {
            "server" => (Some("timed out"), "idle"),
            // Nothing of what the far end wrote reaches a terminal.
            "words" => (Some(r"\u{1b}[2Jit is over\r\n"), "application"),
            "server-refused" => (Some("certificate"), "tls"),
            "client-refused" => (Some("aborted by peer"), "tls"),
            _ => (None, "application"),
        };
        let failure = ours.failure.as_deref();
        let is_right = match says {
            Some(says) => failure.is_some_and(|why| why.contains(says)),
            None => failure.is_none(),
        } || (is_unheard && failure.is_some_and(|why| why.contains("timed out")));
        check(is_right, format!("our end says {failure:?}, not {says:?}"));
        check(theirs.closed == closed, format!("it was closed by {}, not {closed}", theirs.closed));
        all
    }
}

/// How many of these packets carry a message in a datagram: they are larger than acknowledgements, and no
/// other packet is as small, since those of the handshake are filled up (RFC 9000 §14.1). Two messages fit
/// into none.
fn messages_in(lengths: &[u32]) -> u64 {
    let least = UDP_HEADER + SIZE;
    lengths.iter().filter(|length| (least..least + MAX_OTHER).contains(&u64::from(**length))).count() as u64
}

const USAGE: &str = "usage: quic_beside server|client|words|server-refused|client-refused \
                     datagram|stream|stream-per-message SEED -- PROGRAM [ARGUMENT]...";
const CASES: [&str; 5] = ["server", "client", "words", "server-refused", "client-refused"];
/// Messages that are sent, at least.
const MESSAGES: u64 = 1000;
/// Bytes of a message. Chosen: a packet of 1452 B or less holds one.
const SIZE: u64 = 800;
const GAP_MS: u64 = 5;
/// Bytes of a UDP header.
const UDP_HEADER: u64 = 8;
/// Bytes of what else may be in a packet with a message: headers, a tag, an ACK frame of 64 ranges.
const MAX_OTHER: u64 = 250;
/// The other end's idle timeout, which is the connection's, as ours has none (RFC 9000 §10.1).
const IDLE_MS: u64 = 2000;
/// Keys of two certificates (RFC 8032 §5.1.5).
const SECRET: [u8; 32] = [17; 32];
const OTHER_SECRET: [u8; 32] = [18; 32];
