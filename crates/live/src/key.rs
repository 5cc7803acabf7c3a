//! The shared key: HMAC-SHA-256 (RFC 2104, FIPS 180-4) over both ends' nonces, so that each end proves that
//! it knows the key and neither proof can be replayed or reflected.
//!
//! What the key does not do: the control connection and the measured packets are not encrypted, and who can
//! change packets on the way can still disturb a session.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use talkpath_kernel::hex::{from_hex, to_hex};

/// A key that client and server share.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why bytes cannot be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key is {length} B long; at least {MIN_KEY_BYTES} B are needed (for one: head -c 32 /dev/urandom | base64)"
)]
pub struct ShortKey {
    length: usize,
}

impl Key {
    /// A key of these bytes, white space at both ends left out (a key file ends with a line feed).
    ///
    /// # Errors
    /// [`ShortKey`] if there are fewer than 16 B.
    pub fn new(bytes: &[u8]) -> Result<Self, ShortKey> {
        let bytes = bytes.trim_ascii();
        if bytes.len() < MIN_KEY_BYTES {
            Err(ShortKey { length: bytes.len() })
        } else {
            Ok(Self(bytes.to_vec()))
        }
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

/// 128 bits, the least that is called strong (RFC 4086 §8.2 names the same figure for high security).
const MIN_KEY_BYTES: usize = 16;

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
}
