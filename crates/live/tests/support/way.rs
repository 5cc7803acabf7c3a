//! A way to a server that looks at, delays and changes what passes, on TCP and UDP.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is on the way.
pub struct Passing<'a> {
    /// Towards the server.
    pub is_up: bool,
    /// The piece's number on its connection, or the datagram's in its direction.
    pub number: u32,
    pub bytes: &'a mut [u8],
}

/// What passes, as a function sees it; a client's datagram for which it says false goes back to it, too.
pub type Passes = dyn Fn(Passing<'_>) -> bool + Send + Sync;

/// A way to `server`, for UDP of one client at a time.
pub fn way(server: SocketAddr, stream: Box<Passes>, datagram: Box<Passes>) -> SocketAddr {
    let (listener, near, address) = super::listen();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(server).unwrap();
    thread::spawn(move || carry_datagrams(&near, &far, &*datagram));
    let passes: Arc<Passes> = Arc::from(stream);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(server).unwrap();
            let next = Arc::new(AtomicU32::new(0));
            for (is_up, from, to) in [(true, &client, &server), (false, &server, &client)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (passes, next) = (Arc::clone(&passes), Arc::clone(&next));
                thread::spawn(move || carry(is_up, from, to, &*passes, &next));
            }
        }
    });
    address
}

fn carry(is_up: bool, mut from: TcpStream, mut to: TcpStream, passes: &Passes, next: &AtomicU32) {
    let mut buffer = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..count];
        let number = next.fetch_add(1, Ordering::Relaxed);
        if !passes(Passing { is_up, number, bytes }) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The client is whoever was heard last.
fn carry_datagrams(near: &UdpSocket, far: &UdpSocket, passes: &Passes) {
    let last = Mutex::new(None);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2048];
            for number in 0.. {
                let Ok(size) = far.recv(&mut buffer) else { break };
                let bytes = &mut buffer[..size];
                if passes(Passing { is_up: false, number, bytes })
                    && let Some(client) = *last.lock().unwrap()
                {
                    let _ = near.send_to(&buffer[..size], client);
                }
            }
        });
        let mut buffer = [0; 2048];
        for number in 0.. {
            let Ok((size, client)) = near.recv_from(&mut buffer) else { break };
            *last.lock().unwrap() = Some(client);
            let bytes = &mut buffer[..size];
            if !passes(Passing { is_up: true, number, bytes }) {
                let _ = near.send_to(&buffer[..size], client);
            }
            let _ = far.send(&buffer[..size]);
        }
    });
}
