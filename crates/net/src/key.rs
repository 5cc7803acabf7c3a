//! The shared key: HMAC-SHA-256 (RFC 2104, FIPS 180-4) over both ends' nonces, so that each end proves that it knows
//! the key and neither proof can be replayed or reflected.
//!
//! What the key does not do: the control connection and the measured packets are not encrypted, and who can change
//! packets on the way can still disturb a session.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A key that client and server share.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why bytes cannot be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key is {length} B long; at least {SHORTEST} B are needed (for one: head -c 32 /dev/urandom | base64)"
)]
pub struct ShortKey {
    length: usize,
}

impl Key {
    /// A key of these bytes, white space at both ends left out (a key file ends with a line feed).
    ///
    /// # Errors
    /// [`ShortKey`] where there are fewer than 16 B.
    pub fn new(bytes: &[u8]) -> Result<Self, ShortKey> {
        let bytes = bytes.trim_ascii();
        if bytes.len() < SHORTEST { Err(ShortKey { length: bytes.len() }) } else { Ok(Self(bytes.to_vec())) }
    }

    /// The proof that this key's holder, as `side`, has seen both nonces; 64 hexadecimal digits.
    pub(crate) fn proof(&self, side: Side, client_nonce: &str, server_nonce: &str) -> String {
        to_hex(&self.mac(side, client_nonce, server_nonce).finalize().into_bytes())
    }

    /// Whether `proof` is that of `side`; takes the same time whatever is wrong with it.
    pub(crate) fn accepts(&self, proof: &str, side: Side, client_nonce: &str, server_nonce: &str) -> bool {
        from_hex::<32>(proof)
            .is_some_and(|proof| self.mac(side, client_nonce, server_nonce).verify_slice(&proof).is_ok())
    }

    fn mac(&self, side: Side, client_nonce: &str, server_nonce: &str) -> Hmac<Sha256> {
        // HMAC takes keys of any length (RFC 2104 §2).
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in [side.label(), client_nonce, server_nonce] {
            mac.update(part.as_bytes());
            mac.update(b"\n");
        }
        mac
    }
}

impl std::fmt::Debug for Key {
    /// Never the key itself.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end that connects.
    Client,
    /// The end that serves.
    Server,
}

impl Side {
    /// Different labels, so that one side's proof is no use as the other's.
    const fn label(self) -> &'static str {
        match self {
            Self::Client => "talkpath client 1",
            Self::Server => "talkpath server 1",
        }
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|n| DIGITS[usize::from(n)] as char).collect()
}

/// The `N` bytes that `text` writes in hexadecimal.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let high = (pair[0] as char).to_digit(16)?;
        let low = (pair[1] as char).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    Some(bytes)
}

/// `N` bytes from the kernel's random source.
///
/// # Errors
/// The system's.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let count = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    // getrandom(2): requests of up to 256 B are never cut short.
    if count == N { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// 128 bits, the least that is called strong (RFC 4086 §8.2 asks for as many for high security).
const SHORTEST: usize = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_is_that_of_rfc_4231() {
        // RFC 4231 §4.3, test case 2: key "Jefe", data "what do ya want for nothing?".
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(to_hex(&mac.finalize().into_bytes()), expected);
    }

    #[test]
    fn a_proof_holds_for_its_key_side_and_nonces_only() {
        let key = Key::new(b"0123456789abcdef\n").unwrap();
        let proof = key.proof(Side::Client, "aa", "bb");
        assert!(key.accepts(&proof, Side::Client, "aa", "bb"));
        assert!(!key.accepts(&proof, Side::Server, "aa", "bb"));
        assert!(!key.accepts(&proof, Side::Client, "bb", "aa"));
        assert!(!key.accepts(&proof[2..], Side::Client, "aa", "bb"));
        assert!(!Key::new(b"another key of 16").unwrap().accepts(&proof, Side::Client, "aa", "bb"));
    }

    #[test]
    fn a_short_key_is_refused() {
        assert_eq!(Key::new(b"  short  ").unwrap_err(), ShortKey { length: 5 });
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(from_hex::<3>(&to_hex(&[0, 0x9f, 0xff])), Some([0, 0x9f, 0xff]));
        assert_eq!(from_hex::<2>("00zz"), None);
        assert_eq!(from_hex::<2>("00"), None);
    }
}
