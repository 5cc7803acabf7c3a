//! A flood of connections at a server's door, between the steps of those who come to measure.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use socket2::{Domain, Socket, Type};

/// Connects from `address` of this host.
pub fn connect_from(address: IpAddr, server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(address, 0).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

/// Address `number` of the attackers: all of 127/8 is this host.
pub fn attacker(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x7f01_0000 + number))
}

/// Connections of these `numbers`, from as many as `addresses`.
pub fn flood(server: SocketAddr, numbers: Range<u32>, addresses: u32) -> Vec<TcpStream> {
    numbers.map(|number| connect_from(attacker(number % addresses), server)).collect()
}

/// A way to `server` on which `before` is called ahead of everything that either end says on TCP, `times` at
/// most for each connection. UDP passes, of one client at a time.
pub fn interrupted_way(
    server: SocketAddr,
    times: u32,
    before: impl Fn() + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (near, far) = (UdpSocket::bind(address).unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    far.connect(server).unwrap();
    thread::spawn(move || carry_datagrams(&near, &far));
    let before: Arc<dyn Fn() + Send + Sync> = Arc::new(before);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(server).unwrap();
            let left = Arc::new(AtomicU32::new(times));
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (before, left) = (Arc::clone(&before), Arc::clone(&left));
                thread::spawn(move || carry(from, to, &*before, &left));
            }
        }
    });
    address
}

fn carry(mut from: TcpStream, mut to: TcpStream, before: &dyn Fn(), left: &AtomicU32) {
    let mut buffer = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            before();
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The client is whoever was heard last.
fn carry_datagrams(near: &UdpSocket, far: &UdpSocket) {
    let last = Mutex::new(None);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2048];
            while let Ok(size) = far.recv(&mut buffer) {
                if let Some(client) = *last.lock().unwrap() {
                    let _ = near.send_to(&buffer[..size], client);
                }
            }
        });
        let mut buffer = [0; 2048];
        while let Ok((size, client)) = near.recv_from(&mut buffer) {
            *last.lock().unwrap() = Some(client);
            let _ = far.send(&buffer[..size]);
        }
    });
}
