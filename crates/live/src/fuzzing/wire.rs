//! A connection between a fuzzer and an end of ours.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;

use serde::Serialize;
use socket2::SockRef;

use crate::key::Key;

/// The two ends of a connection; the first is closed without a trace, so that ports are not used up.
pub(crate) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let far = TcpStream::connect(listener.local_addr()?)?;
    SockRef::from(&far).set_linger(Some(std::time::Duration::ZERO))?;
    let (near, _) = listener.accept()?;
    far.set_nonblocking(true)?;
    Ok((far, near))
}

/// Says as much of `bytes` as the connection takes; returns how much that was.
pub(crate) fn say(mut far: &TcpStream, mut bytes: &[u8]) -> usize {
    let all = bytes.len();
    while let Ok(count @ 1..) = far.write(bytes) {
        bytes = &bytes[count..];
    }
    all - bytes.len()
}

/// What waits at `far`.
pub(crate) fn heard(mut far: &TcpStream) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = far.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    all
}

/// `message` as a line.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A key; it is made once, since that takes long on purpose.
pub(crate) fn key() -> &'static Key {
    static KEY: OnceLock<Key> = OnceLock::new();
    KEY.get_or_init(|| Key::new(&[b'k'; 32]).expect("32 letters are enough for a key"))
}
