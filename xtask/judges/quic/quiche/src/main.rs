//! quiche as one end of a flow, on a UDP socket that is its standard input. Arguments and behaviour are those
//! of ../aioquic_peer.py; the last line that it prints is what it counted.
//!
//! quiche sends a close once and answers nothing after it. The path may lose that packet, so this program
//! sends it [`CLOSES`] times (RFC 9000 §10.2.1 lets an end send its last packet again).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use boring::pkey::PKey;
use boring::rand::rand_bytes;
use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm, SslVerifyMode};
use boring::x509::X509;
use quiche::{Config, Connection, ConnectionError, ConnectionId, RecvInfo};

fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::read()?;
    let socket = UdpSocket::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(false)?;
    let packets = packets_of(socket.try_clone()?);
    println!("ready");
    let mut peer = Peer::new(task, socket);
    let ended = peer.run(&packets)?;
    println!("quiche: closed with {ended}");
    println!("{}", peer.counted(&ended));
    Ok(())
}

/// Each packet that comes. A thread waits for them, so that the other one can wait until a moment to the
/// nanosecond.
fn packets_of(socket: UdpSocket) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 65536];
        loop {
            match socket.recv(&mut buffer) {
                Ok(size) if sender.send(buffer[..size].to_vec()).is_err() => return,
                Ok(_) => {}
                Err(why) if matches!(why.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => {}
                Err(_) => return,
            }
        }
    });
    receiver
}

/// What the command line says.
struct Task {
    is_client: bool,
    carry: Carry,
    messages: u64,
    /// Bytes of a message.
    size: usize,
    gap: Duration,
    idle_ms: u64,
    /// Its file, in DER: the server's own, or the one that a client wants.
    certificate: String,
    /// The file of the server's key, in DER.
    key: Option<String>,
    /// Whether the client closes with an error and a reason.
    has_words: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Carry {
    Datagram,
    Stream,
    StreamPerMessage,
}

impl Task {
    fn read() -> Result<Self, Box<dyn Error>> {
        let words: BTreeMap<String, String> = std::env::args()
            .skip(1)
            .filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        let word = |name: &str| words.get(name).cloned().ok_or_else(|| format!("{name}=... is missing"));
        let number = |name: &str| {
            let value = word(name)?;
            value.parse::<u64>().map_err(|_| format!("{name}={value}: expected a number"))
        };
        Ok(Self {
            is_client: word("role")? == "client",
            carry: match word("carry")?.as_str() {
                "datagram" => Carry::Datagram,
                "stream" => Carry::Stream,
                "stream-per-message" => Carry::StreamPerMessage,
                other => return Err(format!("carry={other}: there is no such carry").into()),
            },
            messages: number("messages")?,
            size: usize::try_from(number("size")?)?,
            gap: Duration::from_millis(number("gap_ms")?),
            idle_ms: number("idle_ms")?,
            certificate: word("certificate")?,
            key: words.get("key").cloned(),
            has_words: words.get("close").is_some_and(|how| how == "words"),
        })
    }

    fn config(&self) -> Result<Config, Box<dyn Error>> {
        let mut tls = SslContextBuilder::new(SslMethod::tls())?;
        let certificate = X509::from_der(&fs::read(&self.certificate)?)?;
        if let Some(key) = &self.key {
            tls.set_certificate(&certificate)?;
            let key = PKey::private_key_from_der(&fs::read(key)?)?;
            tls.set_private_key(&key)?;
        }
        if self.is_client {
            tls.cert_store_mut().add_cert(&certificate)?;
            tls.set_verify(SslVerifyMode::PEER);
            // The keys are Ed25519's. BoringSSL takes no such signature unless it is named.
            tls.set_verify_algorithm_prefs(&[SslSignatureAlgorithm::ED25519])?;
        }
        let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
        config.set_application_protos(&[b"talkpath"])?;
        config.set_max_idle_timeout(self.idle_ms);
        config.set_initial_max_data(CONNECTION_WINDOW);
        config.set_initial_max_stream_data_uni(STREAM_WINDOW);
        config.set_initial_max_streams_uni(STREAMS);
        config.enable_dgram(true, DATAGRAMS, DATAGRAMS);
        // What it writes is paced already, and it sends each packet at once.
        config.enable_pacing(false);
        Ok(config)
    }
}

/// The application, and what it counts.
struct Peer {
    task: Task,
    socket: UdpSocket,
    filling: Vec<u8>,
    now: Instant,
    opened: Option<Instant>,
    /// When the last message was written.
    finished: Option<Instant>,
    has_closed: bool,
    /// Streams that this end has opened.
    streams: u64,
    /// What the connection has not taken yet, in order.
    writes: VecDeque<Write>,
    /// Messages on streams, as far as they have come.
    parts: BTreeMap<u64, Vec<u8>>,
    seen: BTreeSet<u32>,
    sent: u64,
    received: u64,
    twice: u64,
    malformed: u64,
    bytes_sent: u64,
    bytes_received: u64,
    packets_out: u64,
    packets_in: u64,
}

/// A part of a stream.
struct Write {
    stream: u64,
    data: Vec<u8>,
    taken: usize,
    is_last: bool,
}

/// Why the connection ended.
enum Ended {
    Closed(ConnectionError),
    TimedOut,
    Nothing,
}

impl Ended {
    fn of(connection: Option<&Connection>) -> Self {
        let Some(connection) = connection else { return Self::Nothing };
        match connection.peer_error().or(connection.local_error()) {
            Some(why) => Self::Closed(why.clone()),
            None if connection.is_timed_out() => Self::TimedOut,
            None => Self::Nothing,
        }
    }

    /// In the words of aioquic_peer.py.
    fn kind(&self) -> &'static str {
        match self {
            Self::Closed(why) if why.is_app => "application",
            // RFC 9000 §20.1: an alert of TLS.
            Self::Closed(why) if (0x100..0x200).contains(&why.error_code) => "tls",
            Self::Closed(_) => "transport",
            Self::TimedOut => "idle",
            Self::Nothing => "nothing",
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(ConnectionError { error_code, reason, .. }) => {
                write!(f, "{} error {error_code:#x}, \"{}\"", self.kind(), reason.escape_ascii())
            }
            Self::TimedOut | Self::Nothing => f.write_str(self.kind()),
        }
    }
}

impl Peer {
    fn new(task: Task, socket: UdpSocket) -> Self {
        Self {
            filling: filling(task.size),
            task,
            socket,
            now: Instant::now(),
            opened: None,
            finished: None,
            has_closed: false,
            streams: 0,
            writes: VecDeque::new(),
            parts: BTreeMap::new(),
            seen: BTreeSet::new(),
            sent: 0,
            received: 0,
            twice: 0,
            malformed: 0,
            bytes_sent: 0,
            bytes_received: 0,
            packets_out: 0,
            packets_in: 0,
        }
    }

    /// The line of what it counted.
    fn counted(&self, ended: &Ended) -> String {
        let Self { sent, received, twice, malformed, .. } = self;
        let Self { bytes_sent, bytes_received, packets_out, packets_in, .. } = self;
        format!(
            "beside: opened={} closed={} sent={sent} received={received} twice={twice} malformed={malformed} \
             bytes_sent={bytes_sent} bytes_received={bytes_received} packets_out={packets_out} \
             packets_in={packets_in}",
            u8::from(self.opened.is_some()),
            ended.kind(),
        )
    }

    /// Runs until a while after the connection's end.
    fn run(&mut self, packets: &Receiver<Vec<u8>>) -> Result<Ended, Box<dyn Error>> {
        let began = self.now;
        let mut config = self.task.config()?;
        let mut id = [0; 8];
        rand_bytes(&mut id)?;
        let id = ConnectionId::from_ref(&id);
        let (local, remote) = (self.socket.local_addr()?, self.socket.peer_addr()?);
        let mut connection = match self.task.is_client {
            true => Some(quiche::connect(Some("talkpath"), &id, local, remote, &mut config)?),
            false => None,
        };
        let mut closed = None;
        while self.now < began + LIMIT && closed.is_none_or(|closed| self.now < closed + COUNT) {
            self.transmit(connection.as_mut());
            let next = self.next(connection.as_ref());
            let first = packets.recv_timeout(next.saturating_duration_since(Instant::now()));
            self.now = Instant::now();
            if first == Err(RecvTimeoutError::Disconnected) {
                return Err("the socket cannot be read".into());
            }
            for mut packet in first.into_iter().chain(packets.try_iter()) {
                self.packets_in += 1;
                if connection.is_none() {
                    connection = Some(quiche::accept(&id, None, local, remote, &mut config)?);
                }
                if let Some(connection) = &mut connection {
                    // If it is wrong, the connection closes itself and keeps the reason.
                    let _ = connection.recv(&mut packet, RecvInfo { from: remote, to: local });
                }
            }
            if let Some(connection) = &mut connection {
                self.advance(connection);
                if closed.is_none() && connection.is_closed() {
                    closed = Some(self.now);
                }
            }
        }
        Ok(Ended::of(connection.as_ref()))
    }

    /// When something is due.
    fn next(&self, connection: Option<&Connection>) -> Instant {
        let timer = connection.and_then(Connection::timeout_instant);
        let due = [timer, self.next_message()].into_iter().flatten();
        due.fold(self.now + Duration::from_millis(100), Ord::min)
    }

    fn next_message(&self) -> Option<Instant> {
        let opened = self.opened.filter(|_| self.task.is_client && self.sent < self.task.messages)?;
        Some(opened + SETTLE + self.task.gap * u32::try_from(self.sent).ok()?)
    }

    fn transmit(&mut self, connection: Option<&mut Connection>) {
        let Some(connection) = connection else { return };
        let mut packet = [0; 1500];
        while let Ok((size, _)) = connection.send(&mut packet) {
            let copies = if connection.is_draining() { CLOSES } else { 1 };
            for _ in 0..copies {
                self.packets_out += u64::from(self.socket.send(&packet[..size]).is_ok());
            }
        }
    }

    /// Reads what has come, and writes what is due.
    fn advance(&mut self, connection: &mut Connection) {
        if connection.timeout_instant().is_some_and(|timer| timer <= self.now) {
            connection.on_timeout();
        }
        if self.opened.is_none() && connection.is_established() {
            self.opened = Some(self.now);
        }
        let mut buffer = vec![0; 65536];
        while let Ok(size) = connection.dgram_recv(&mut buffer) {
            self.take_message(connection, &buffer[..size]);
        }
        for stream in connection.readable() {
            while let Ok((size, is_last)) = connection.stream_recv(stream, &mut buffer) {
                self.take_stream(connection, stream, &buffer[..size], is_last);
            }
        }
        self.write_due(connection);
        self.flush(connection);
    }

    fn take_stream(&mut self, connection: &mut Connection, stream: u64, data: &[u8], is_last: bool) {
        self.bytes_received += data.len() as u64;
        if self.task.carry == Carry::Stream {
            if !self.task.is_client {
                self.write_stream(data);
            }
            return;
        }
        let message = self.parts.entry(stream).or_default();
        message.extend_from_slice(data);
        if is_last && let Some(message) = self.parts.remove(&stream) {
            self.take_message(connection, &message);
        }
    }

    fn take_message(&mut self, connection: &mut Connection, data: &[u8]) {
        let is_whole = data.len() == self.task.size
            && data.starts_with(&TOKEN)
            && data.get(HEADER..) == self.filling.get(HEADER..);
        let number = data.get(TOKEN.len()..).and_then(<[u8]>::first_chunk).map(|it| u32::from_be_bytes(*it));
        let Some(number) = number.filter(|_| is_whole) else {
            self.malformed += 1;
            return;
        };
        if !self.seen.insert(number) {
            self.twice += 1;
            return;
        }
        self.received += 1;
        if !self.task.is_client {
            self.write_message(connection, number);
        }
    }

    /// Writes a message, or returns false if there is no room for it.
    fn write_message(&mut self, connection: &mut Connection, number: u32) -> bool {
        let mut data = self.filling.clone();
        data[..TOKEN.len()].copy_from_slice(&TOKEN);
        data[TOKEN.len()..HEADER].copy_from_slice(&number.to_be_bytes());
        if self.task.carry == Carry::Datagram {
            if connection.dgram_send(&data).is_err() {
                return false;
            }
        } else {
            let stream = self.open();
            self.writes.push_back(Write { stream, data, taken: 0, is_last: true });
        }
        self.sent += 1;
        true
    }

    fn write_stream(&mut self, data: &[u8]) {
        if self.streams == 0 {
            self.open();
        }
        let write = Write { stream: self.stream(0), data: data.to_vec(), taken: 0, is_last: false };
        self.writes.push_back(write);
        self.bytes_sent += data.len() as u64;
    }

    /// Opens a unidirectional stream.
    fn open(&mut self) -> u64 {
        self.streams += 1;
        self.stream(self.streams - 1)
    }

    /// The id of this end's unidirectional stream of this number (RFC 9000 §2.1).
    fn stream(&self, number: u64) -> u64 {
        4 * number + 2 + u64::from(!self.task.is_client)
    }

    /// Hands over what the connection takes: it keeps no more than it may send.
    fn flush(&mut self, connection: &mut Connection) {
        while let Some(write) = self.writes.front_mut() {
            match connection.stream_send(write.stream, &write.data[write.taken..], write.is_last) {
                Ok(taken) if write.taken + taken < write.data.len() => {
                    write.taken += taken;
                    return;
                }
                // It has room later, or leave to open another stream.
                Err(quiche::Error::Done | quiche::Error::StreamLimit) => return,
                Ok(_) | Err(_) => drop(self.writes.pop_front()),
            }
        }
    }

    fn write_due(&mut self, connection: &mut Connection) {
        while self.next_message().is_some_and(|due| due <= self.now) {
            if self.task.carry == Carry::Stream {
                let filling = self.filling.clone();
                self.write_stream(&filling);
                self.sent += 1;
            } else if !u32::try_from(self.sent).is_ok_and(|number| self.write_message(connection, number)) {
                return;
            }
            self.finished = Some(self.now);
            // Each message leaves as soon as it may.
            self.flush(connection);
            self.transmit(Some(connection));
        }
        let is_written = self.task.is_client && self.sent == self.task.messages;
        if is_written && !self.has_closed && self.is_answered() {
            let (error, reason) = if self.task.has_words { (7, WORDS) } else { (0, &b""[..]) };
            // It says no if the connection is closed already.
            let _ = connection.close(true, error, reason);
            self.has_closed = true;
        }
    }

    /// Nothing is waited for. On streams all comes back, however long that takes.
    fn is_answered(&self) -> bool {
        match self.task.carry {
            Carry::Datagram => self.finished.is_some_and(|finished| self.now >= finished + LINGER),
            Carry::Stream => self.bytes_received == self.bytes_sent,
            Carry::StreamPerMessage => self.received == self.task.messages,
        }
    }
}

/// xorshift64 (Marsaglia, 2003), as `wire::filling` has it.
fn filling(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

const TOKEN: [u8; 4] = [0; 4];
/// Bytes of token and number.
const HEADER: usize = 8;
const WORDS: &[u8] = b"\x1b[2Jit is over\r\n";
/// As in aioquic_peer.py.
const SETTLE: Duration = Duration::from_secs(1);
const LINGER: Duration = Duration::from_millis(1500);
const COUNT: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(40);
/// Copies of a close. Chosen: a path that loses 3 % loses all three once in 37,000 times.
const CLOSES: usize = 3;
/// What the other end may send before it is read, B, and how many streams it may open at once: messages do
/// not wait for each other. Chosen.
const CONNECTION_WINDOW: u64 = 10_000_000;
const STREAM_WINDOW: u64 = 1_000_000;
const STREAMS: u64 = 1000;
/// Datagrams that may wait in either direction, more than any run has. Chosen.
const DATAGRAMS: usize = 10_000;
