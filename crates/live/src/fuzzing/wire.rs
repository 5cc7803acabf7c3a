//! A connection between a fuzzer and a client or server.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;

use serde::Serialize;
use socket2::SockRef;

use crate::key::Key;

/// Makes a connection and returns its two ends. The first end is closed by a reset, so that no port stays in
/// TIME-WAIT.
pub(crate) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let far = TcpStream::connect(listener.local_addr()?)?;
    SockRef::from(&far).set_linger(Some(std::time::Duration::ZERO))?;
    let (near, _) = listener.accept()?;
    far.set_nonblocking(true)?;
    Ok((far, near))
}

/// Sends as much of `bytes` as the connection takes, and returns the number of bytes.
pub(crate) fn say(mut far: &TcpStream, mut bytes: &[u8]) -> usize {
    let all = bytes.len();
    while let Ok(count @ 1..) = far.write(bytes) {
        bytes = &bytes[count..];
    }
    all - bytes.len()
}

/// Reads the bytes that wait at `far`.
pub(crate) fn heard(mut far: &TcpStream) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = far.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    all
}

/// Returns `message` as a line of the protocol.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Returns a key. It is made only once, because Argon2id takes long.
pub(crate) fn key() -> &'static Key {
    static KEY: OnceLock<Key> = OnceLock::new();
    KEY.get_or_init(|| Key::new(&[b'k'; 32]).expect("32 letters are enough for a key"))
}
