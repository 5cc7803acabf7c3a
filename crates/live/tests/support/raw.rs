//! A client that speaks the control protocol by hand, and so may do what ours never does.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// A control connection to a server without a key, past its welcome.
pub struct RawClient {
    /// The control connection.
    pub stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl RawClient {
    /// Connects and says hello. Its socket's buffers do not grow, so that some answers fill them.
    pub fn welcomed(server: SocketAddr) -> Self {
        Self::welcomed_from(Ipv4Addr::LOCALHOST.into(), server)
    }

    /// The same from another address of this host.
    pub fn welcomed_from(address: IpAddr, server: SocketAddr) -> Self {
        let version = version_of(server);
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(128 * 1024).unwrap();
        socket.set_send_buffer_size(128 * 1024).unwrap();
        socket.bind(&SocketAddr::new(address, 0).into()).unwrap();
        socket.connect(&server.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        let mut client = Self { stream, lines };
        let hello = json!({ "version": version, "nonce": "0".repeat(32), "filling": ".".repeat(512) });
        client.say(&json!({ "hello": hello }));
        assert!(client.hear()["welcome"].is_object());
        client
    }

    /// Describes a session and gives what the server answers: `ready`, `refused` or `busy`.
    pub fn session(&mut self, flows: &[Value], duration_ms: u64) -> Value {
        let session =
            json!({ "flows": flows, "warm_up_ns": 0, "duration_ns": duration_ms * 1_000_000, "drain_ns": 0 });
        self.say(&json!({ "session": session }));
        self.hear()
    }

    /// The run begins now.
    pub fn go(&mut self) {
        self.say(&json!({ "go": { "start_ns": 0 } }));
        assert!(self.hear()["going"].is_object());
    }

    pub fn say(&mut self, request: &Value) {
        // At once: a stranger has two seconds for it, and each piece of a value would be a write of its own.
        self.stream.write_all(format!("{request}\n").as_bytes()).unwrap();
    }

    /// The next answer.
    pub fn hear(&mut self) -> Value {
        self.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
    }

    /// The answer to a probe; `None` if the server has closed the connection.
    pub fn probe(&mut self) -> Option<Value> {
        writeln!(self.stream, "{{\"probe\":{{\"number\":1}}}}").ok()?;
        let mut line = String::new();
        self.lines.read_line(&mut line).ok().filter(|count| *count > 0)?;
        serde_json::from_str(&line).ok()
    }

    /// Repeats `line` and reads nothing, until the server has taken nothing for `patience` or has taken
    /// `most` lines. Gives how many lines were sent; the last is whole.
    pub fn pipeline(&mut self, line: &str, most: usize, patience: Duration) -> usize {
        self.stream.set_nonblocking(true).unwrap();
        let lines = line.repeat(100);
        let (mut written, mut last) = (0, Instant::now());
        while written < most * line.len() && last.elapsed() < patience {
            match self.stream.write(&lines.as_bytes()[written % lines.len()..]) {
                Ok(count) => (written, last) = (written + count, Instant::now()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => panic!("{error} after {written} B"),
            }
        }
        // What is left of the line goes when the server reads again.
        self.stream.set_nonblocking(false).unwrap();
        let rest = (line.len() - written % line.len()) % line.len();
        let rest = line.as_bytes()[line.len() - rest..].to_vec();
        let mut stream = self.stream.try_clone().unwrap();
        std::thread::spawn(move || stream.write_all(&rest));
        written.div_ceil(line.len())
    }

    /// Whether the server closed the connection within `patience`; what it still says is read and dropped.
    pub fn is_closed_within(&mut self, patience: Duration) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let deadline = Instant::now() + patience;
        let mut buffer = [0; 4096];
        while Instant::now() < deadline {
            match self.lines.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return true,
            }
        }
        false
    }
}

/// The server's version of the protocol, which it says to who speaks another.
pub fn version_of(server: SocketAddr) -> u32 {
    let mut stream = TcpStream::connect(server).unwrap();
    let hello = json!({ "version": 0, "nonce": "0".repeat(32), "filling": ".".repeat(512) });
    writeln!(stream, "{}", json!({ "hello": hello })).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let number = answer.split("it speaks version ").nth(1).unwrap_or_else(|| panic!("{answer}"));
    number.split(' ').next().unwrap().parse().unwrap()
}

/// A flow as the protocol has it: `transport` is `udp` or `tcp`, and the client sends where it `is_up`.
pub fn flow(transport: &str, workload: &Value, is_up: bool) -> Value {
    let transport = match transport {
        "udp" => json!({ "udp": { "receive_buffer": null } }),
        _ => json!({ "tcp": {
            "nodelay": false, "cc": "reno", "mss": null, "send_buffer": null, "receive_buffer": null
        } }),
    };
    json!({
        "transport": transport, "workload": workload, "echo_per_read": null, "is_up": is_up, "start_ns": 0,
        "due": "start", "file": null
    })
}

/// A G.711 call's packets.
pub fn voice() -> Value {
    json!({ "voice": { "ptime_ns": 20_000_000, "size": 160 } })
}
