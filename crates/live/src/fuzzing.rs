//! What the fuzz targets of `fuzz/` call: bytes as one host says them to the other. Each function asserts what
//! must hold. The tests here run the committed corpora through them.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;

use serde::Serialize;
use socket2::SockRef;
use talkpath_kernel::spec::SessionSpec;

use crate::key::Key;

/// Bytes on a control connection, before and after the handshake. The first byte says who hears them: bit 0 a
/// client, else a server.
pub fn control(bytes: &[u8]) {
    let Some((&first, said)) = bytes.split_first() else { return };
    if first & 1 == 0 {
        crate::server::fuzzing::hear(first >> 1, said);
    } else {
        crate::client::fuzzing::hear(first >> 1, said);
    }
}

/// Bytes as the description of a session, which a server with its limits takes or refuses.
pub fn session_plan(bytes: &[u8]) {
    if let Ok(spec) = serde_json::from_slice::<SessionSpec>(bytes) {
        crate::server::fuzzing::take(&spec);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// What `fuzz/corpus` has for `target`.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    #[test]
    fn what_the_corpora_say_breaks_neither_end() {
        let (control, plans) = (corpus("live_control"), corpus("session_plan"));
        assert!(control.len() >= 8 && plans.len() >= 3, "{} and {}", control.len(), plans.len());
        control.iter().for_each(|bytes| super::control(bytes));
        plans.iter().for_each(|bytes| session_plan(bytes));
        assert!(plans.iter().any(|bytes| serde_json::from_slice::<SessionSpec>(bytes).is_ok()));
    }

    #[test]
    fn a_guest_of_the_corpus_is_let_in_and_a_stranger_is_not() {
        let session = line(&crate::protocol::Request::Session(SessionSpec {
            flows: Vec::new(),
            warm_up_ns: 0,
            duration_ns: 1,
            drain_ns: 0,
        }));
        use crate::server::fuzzing::{GUEST, INTRODUCED, KEYED, hear};
        assert!(hear(INTRODUCED | GUEST, &session) && hear(INTRODUCED | GUEST | KEYED, &session));
        assert!(!hear(INTRODUCED | KEYED, &session), "it is not sealed");
        assert!(!hear(GUEST, &session) && !hear(GUEST | KEYED, &session), "there was no hello");
    }
}
