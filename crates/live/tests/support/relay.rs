//! A relay between a client and a server on the loopback interface, which spoils what the path or a clock
//! would.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What a relay does besides relaying.
#[derive(Clone)]
pub struct Relay {
    /// Changes each line of the server on the control connection.
    pub edit: Arc<dyn Fn(String) -> String + Send + Sync>,
    /// Resets a flow's TCP connection this long after it opened.
    pub reset_data_after: Option<Duration>,
    /// How long a flow's opening line takes, as if the path had lost it again and again.
    pub opening_takes: Duration,
    /// Whether datagrams are dropped, both ways.
    pub drops_datagrams: Arc<AtomicBool>,
    /// Once this is true, every client has another port towards the server, as behind a translator that
    /// forgot it; then it is false again.
    pub forgets: Arc<AtomicBool>,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            edit: Arc::new(|line| line),
            reset_data_after: None,
            opening_takes: Duration::ZERO,
            drops_datagrams: Arc::default(),
            forgets: Arc::default(),
        }
    }
}

impl Relay {
    /// Relays to `server` until the test ends; returns the address for clients.
    pub fn start(self, server: SocketAddr) -> SocketAddr {
        let (listener, datagrams, address) = super::listen();
        let relay = self.clone();
        thread::spawn(move || relay.carry_datagrams(&datagrams, server));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let relay = self.clone();
                thread::spawn(move || relay.carry(&client, server));
            }
        });
        address
    }

    /// Gives each client's socket one of its own towards `server`.
    fn carry_datagrams(&self, clients: &UdpSocket, server: SocketAddr) {
        let mut sockets = BTreeMap::new();
        let mut buffer = [0; 2048];
        while let Ok((size, client)) = clients.recv_from(&mut buffer) {
            if self.forgets.swap(false, Ordering::Relaxed) {
                // What the server still sends to the old ones, nobody reads.
                for (_, (_, is_old)) in std::mem::take(&mut sockets) {
                    let is_old: Arc<AtomicBool> = is_old;
                    is_old.store(true, Ordering::Relaxed);
                }
            }
            let (socket, _) = sockets.entry(client).or_insert_with(|| {
                let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
                socket.connect(server).unwrap();
                let (back, clients) = (Arc::clone(&socket), clients.try_clone().unwrap());
                let drops = Arc::clone(&self.drops_datagrams);
                let is_old = Arc::new(AtomicBool::new(false));
                let is_forgotten = Arc::clone(&is_old);
                thread::spawn(move || {
                    let mut buffer = [0; 2048];
                    while let Ok(size) = back.recv(&mut buffer) {
                        if !drops.load(Ordering::Relaxed) && !is_forgotten.load(Ordering::Relaxed) {
                            let _ = clients.send_to(&buffer[..size], client);
                        }
                    }
                });
                (socket, is_old)
            });
            if !self.drops_datagrams.load(Ordering::Relaxed) {
                let _ = socket.send(&buffer[..size]);
            }
        }
    }

    /// One connection: the control connection, or a flow's.
    fn carry(&self, client: &TcpStream, server: SocketAddr) {
        let server = TcpStream::connect(server).unwrap();
        [client, &server].iter().for_each(|stream| stream.set_nodelay(true).unwrap());
        let mut from_client = BufReader::new(client.try_clone().unwrap());
        let mut first = String::new();
        if from_client.read_line(&mut first).is_err() {
            return;
        }
        let is_control = first.contains("\"hello\"");
        if !is_control {
            thread::sleep(self.opening_takes);
        }
        (&server).write_all(first.as_bytes()).unwrap();
        let to_server = server.try_clone().unwrap();
        thread::spawn(move || copy(from_client, &to_server));
        if is_control {
            return self.copy_lines(&server, client);
        }
        if let Some(after) = self.reset_data_after {
            let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
            thread::spawn(move || {
                thread::sleep(after);
                // Linux resets an established connection that is connected to nothing (connect(2),
                // AF_UNSPEC).
                ends.iter().for_each(|end| rustix::net::connect_unspec(end).unwrap());
            });
        }
        copy(BufReader::new(server), client);
    }

    /// Copies lines, changed by `edit`, until either side ends.
    fn copy_lines(&self, from: &TcpStream, mut to: &TcpStream) {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if to.write_all(((self.edit)(line) + "\n").as_bytes()).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Copies bytes until either side ends.
fn copy(mut from: impl BufRead, mut to: &TcpStream) {
    while let Ok(bytes) = from.fill_buf()
        && !bytes.is_empty()
        && to.write_all(bytes).is_ok()
    {
        let count = bytes.len();
        from.consume(count);
    }
    let _ = to.shutdown(Shutdown::Write);
}
