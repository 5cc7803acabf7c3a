//! The seal of a control connection: encryption and mutual authentication by a shared key. It is Noise NNpsk0
//! with X25519, ChaCha20-Poly1305 and SHA-256 (the Noise Protocol Framework, revision 34), by the crate
//! `snow`.
//!
//! ```text
//!  client                                   server
//!  hello {version, opening: psk, e}  ─►     refuses who does not hold the key; a word that is repeated gets an
//!                                           answer, and can do nothing with it
//!                                    ◄─     welcome {answer: e, ee}      shows that the server holds the key
//!  length (2 B), sealed bytes        ─►  ◄─ from here on, both ways: the lines of protocol.rs
//! ```
//!
//! Each session has keys of its own. Somebody who learns the shared key later cannot decrypt earlier
//! sessions. The order of the sealed pieces is part of their seal. So no piece can be left out, repeated, or
//! sent back to its sender.

use snow::{Builder, HandshakeState, TransportState};
use talkpath_units::{from_hex, to_hex};

use crate::key::Key;

/// A client's handshake that has begun.
pub(crate) struct Opening {
    state: HandshakeState,
    word: String,
}

/// The keys of both directions after the handshake. It seals what is sent, and opens what is received.
pub(crate) struct Seal {
    state: TransportState,
    buffer: Vec<u8>,
}

impl Opening {
    /// Begins a handshake, and makes the client's message of the handshake.
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub(crate) fn new(key: &Key) -> Result<Self, snow::Error> {
        let mut state = builder(key)?.build_initiator()?;
        let mut word = [0; WORD_SIZE];
        state.write_message(&[], &mut word)?;
        Ok(Self { state, word: to_hex(&word) })
    }

    /// Returns the client's message of the handshake in hexadecimal.
    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    /// Ends the handshake with the server's `answer`. Returns the seal, or `None` if the answer does not show
    /// that the server holds the key.
    pub(crate) fn finish(mut self, answer: &str) -> Option<Seal> {
        self.state.read_message(&from_hex::<WORD_SIZE>(answer)?, &mut []).ok()?;
        Seal::new(self.state)
    }
}

/// Answers a client's message of the handshake. Returns the server's message and the seal, or `None` if the
/// client does not hold the key.
pub(crate) fn answer(key: &Key, word: &str) -> Option<(String, Seal)> {
    let mut state = builder(key).ok()?.build_responder().ok()?;
    state.read_message(&from_hex::<WORD_SIZE>(word)?, &mut []).ok()?;
    let mut answer = [0; WORD_SIZE];
    state.write_message(&[], &mut answer).ok()?;
    Some((to_hex(&answer), Seal::new(state)?))
}

impl Seal {
    fn new(state: HandshakeState) -> Option<Self> {
        Some(Self { state: state.into_transport_mode().ok()?, buffer: vec![0; MAX_PIECE] })
    }

    /// Appends `plain`, sealed in pieces, to `sealed`.
    ///
    /// # Errors
    /// Returns an error after 2^64 pieces, because a piece needs a number of its own.
    pub(crate) fn seal(&mut self, plain: &[u8], sealed: &mut impl Extend<u8>) -> Result<(), snow::Error> {
        for piece in plain.chunks(MAX_PIECE - AUTHENTICATION_SIZE) {
            let size = self.state.write_message(piece, &mut self.buffer)?;
            // A piece has 16 bits of length by definition (Noise §3).
            sealed.extend((size as u16).to_be_bytes());
            sealed.extend(self.buffer[..size].iter().copied());
        }
        Ok(())
    }

    /// Opens each whole piece in `sealed`, and gives its bytes to `take`. Returns how many bytes of `sealed`
    /// the whole pieces had.
    ///
    /// # Errors
    /// Returns an error if a piece is not the one that the other side sealed next. Also returns an error if a
    /// piece is empty. [`Seal::seal`] makes no empty pieces, and a peer that sends only empty pieces would
    /// keep the reader busy for ever.
    pub(crate) fn open(&mut self, sealed: &[u8], mut take: impl FnMut(&[u8])) -> Result<usize, snow::Error> {
        let mut rest = sealed;
        while let Some((&length, behind)) = rest.split_first_chunk::<2>()
            && let Some((piece, behind)) = behind.split_at_checked(u16::from_be_bytes(length).into())
        {
            let size = self.state.read_message(piece, &mut self.buffer)?;
            if size == 0 {
                return Err(snow::Error::Decrypt);
            }
            take(&self.buffer[..size]);
            rest = behind;
        }
        Ok(sealed.len() - rest.len())
    }
}

fn builder(key: &Key) -> Result<Builder<'_>, snow::Error> {
    Builder::new(PATTERN.parse()?).prologue(PROLOGUE)?.psk(0, key.psk())
}

/// The name of the protocol, which both sides must use. The hello has settled the version before.
const PROLOGUE: &[u8] = b"talkpath control";
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// The size of each side's message of the handshake, bytes: a public key and the tag of an empty text.
const WORD_SIZE: usize = 32 + AUTHENTICATION_SIZE;
/// The size of the tag of ChaCha20-Poly1305, bytes (RFC 8439 §2.8).
const AUTHENTICATION_SIZE: usize = 16;
/// The largest size of a sealed piece, bytes (Noise §3).
const MAX_PIECE: usize = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text.repeat(32).as_bytes()).unwrap()
    }

    fn pair() -> (Seal, Seal) {
        let opening = Opening::new(&key("a")).unwrap();
        let (word, server) = answer(&key("a"), opening.word()).unwrap();
        (opening.finish(&word).unwrap(), server)
    }

    #[test]
    fn who_does_not_hold_the_key_is_refused_by_either_end() {
        let opening = Opening::new(&key("a")).unwrap();
        assert!(answer(&key("b"), opening.word()).is_none(), "the server refuses the client");
        // A false server that answers all the same.
        let stranger = Opening::new(&key("b")).unwrap();
        let (word, _) = answer(&key("b"), stranger.word()).unwrap();
        assert!(opening.finish(&word).is_none(), "the client refuses the server");
        for word in ["", "00", &"0".repeat(96), &"f".repeat(96), &"x".repeat(96)] {
            assert!(answer(&key("a"), word).is_none(), "{word}");
        }
    }

    #[test]
    fn who_repeats_a_client_s_word_has_no_seal_that_fits() {
        let opening = Opening::new(&key("a")).unwrap();
        let (word, _) = answer(&key("a"), opening.word()).unwrap();
        let mut client = opening.finish(&word).unwrap();
        let again = Opening::new(&key("a")).unwrap();
        let (_, mut server) = answer(&key("a"), again.word()).unwrap();
        let mut sealed = Vec::new();
        client.seal(b"\"stop\"\n", &mut sealed).unwrap();
        assert!(server.open(&sealed, |_| panic!("it opened")).is_err());
    }

    #[test]
    fn what_is_sealed_is_opened_in_any_cut_and_shows_nothing() {
        let (mut client, mut server) = pair();
        let plain: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let mut sealed = Vec::new();
        client.seal(&plain, &mut sealed).unwrap();
        assert!(!sealed.windows(8).any(|part| part == &plain[..8]));
        let (mut opened, mut waiting) = (Vec::new(), Vec::new());
        for part in sealed.chunks(999) {
            waiting.extend_from_slice(part);
            let count = server.open(&waiting, |piece| opened.extend_from_slice(piece)).unwrap();
            waiting.drain(..count);
        }
        assert!(opened == plain && waiting.is_empty());
    }

    #[test]
    fn a_piece_that_holds_nothing_is_not_opened() {
        let (mut client, mut server) = pair();
        let size = client.state.write_message(b"", &mut client.buffer).unwrap();
        let sealed = [&(size as u16).to_be_bytes()[..], &client.buffer[..size]].concat();
        assert_eq!(sealed.len(), 2 + AUTHENTICATION_SIZE);
        assert!(server.open(&sealed, |_| {}).is_err());
    }

    #[test]
    fn a_piece_that_is_changed_left_out_repeated_or_turned_back_is_not_opened() {
        let piece = |seal: &mut Seal| {
            let mut sealed = Vec::new();
            seal.seal(b"\"ask\"\n", &mut sealed).unwrap();
            sealed
        };
        let opens = |seal: &mut Seal, sealed: &[u8]| seal.open(sealed, |_| {}).is_ok();
        let (mut client, mut server) = pair();
        let (first, second) = (piece(&mut client), piece(&mut client));
        let mut changed = first.clone();
        changed[5] ^= 1;
        assert!(!opens(&mut server, &changed) && !opens(&mut server, &second), "changed, left out");
        assert!(!opens(&mut client, &first), "turned back");
        assert!(opens(&mut server, &first) && !opens(&mut server, &first), "repeated");
    }
}
