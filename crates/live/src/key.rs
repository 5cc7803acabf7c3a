//! The shared key, which is made from the file that both hosts have.
//!
//! Argon2id (RFC 9106) makes 256 bits from the content of the file. A key of random bits would not need that,
//! but a passphrase does. Somebody who has recorded a handshake can try passphrases against it offline, and
//! with Argon2id each try takes 19 MiB and some tens of milliseconds. A program cannot tell a passphrase from
//! a random key with certainty, so Argon2id is used for both. It runs once, when a program starts.
//!
//! The salt is the same everywhere, because both hosts must make the same key before they talk to each other.
//! So an attacker can try a passphrase against all servers of the world at once. Random bits are better.

use argon2::Argon2;

/// A key that client and server share.
#[derive(Clone)]
pub struct Key([u8; 32]);

/// The error for bytes that are too short for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key has {bits} bits at most; at least {MIN_BITS} are needed. To make one: head -c 32 /dev/urandom | \
     base64 > FILE. Letters and digits without a space are read as a key in hexadecimal (4 bits each) or base64 \
     (6 bits each); a passphrase is several words with spaces, of 16 B or more"
)]
pub struct ShortKey {
    bits: usize,
}

impl Key {
    /// Makes a key from `bytes`. White space at both ends is ignored, because a key file ends with a line
    /// feed.
    ///
    /// # Errors
    /// Returns [`ShortKey`] if `bytes` cannot hold 128 random bits.
    pub fn new(bytes: &[u8]) -> Result<Self, ShortKey> {
        let bytes = bytes.trim_ascii();
        let bits = max_bits(bytes);
        if bits < MIN_BITS {
            return Err(ShortKey { bits });
        }
        let mut key = [0; 32];
        // The defaults of the crate are parameters that OWASP recommends: 19 MiB, two passes, one lane.
        Argon2::default().hash_password_into(bytes, SALT, &mut key).expect("its lengths are within Argon2's");
        Ok(Self(key))
    }

    /// The pre-shared key of a handshake.
    pub(crate) const fn psk(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Key {
    /// Hides the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Returns the largest number of random bits that `bytes` can hold. A byte of a hexadecimal text holds 4
/// bits, a byte of a base64 text 6 bits, and each other byte 8 bits.
fn max_bits(bytes: &[u8]) -> usize {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    if bytes.iter().all(u8::is_ascii_hexdigit) {
        bytes.len() * 4
    } else if bytes.iter().all(is_base64) {
        bytes.iter().filter(|byte| **byte != b'=').count() * 6
    } else {
        bytes.len() * 8
    }
}

/// The least number of bits of a strong key (RFC 4086 §8.2 names the same figure for high security).
const MIN_BITS: usize = 128;
/// The salt, which makes the keys differ from the keys that other programs make from the same words.
const SALT: &[u8] = b"talkpath key of serve, 8";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_key_is_refused_with_its_bits() {
        for (bytes, bits) in [
            (&b"  short  "[..], 30),
            (b"0123456789abcdef", 64),
            (b"0123456789abcdef0123456789abcde", 124),
            (b"MTIzNDU2Nzg5MDEyMzQ1", 120),
            (b"four word s", 88),
            (b"", 0),
        ] {
            assert_eq!(Key::new(bytes).unwrap_err(), ShortKey { bits }, "{}", String::from_utf8_lossy(bytes));
        }
        let why = Key::new(b"abc").unwrap_err().to_string();
        assert!(why.contains("12 bits") && why.contains("/dev/urandom") && why.contains("spaces"), "{why}");
    }

    #[test]
    fn keys_in_hexadecimal_base64_and_bytes_and_passphrases_are_taken_and_differ() {
        let keys = [
            &b"0123456789abcdef0123456789abcdef\n"[..],
            b"MDEyMzQ1Njc4OWFiY2RlZg==",
            b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x90\xa0\xb0\xc0\xd0\xe0\xf0",
            b"correct horse battery staple",
        ];
        let made = keys.map(|key| *Key::new(key).unwrap().psk());
        for (index, key) in made.iter().enumerate() {
            assert!(made[..index].iter().all(|other| other != key));
        }
        assert_eq!(made[0], *Key::new(b" 0123456789abcdef0123456789abcdef").unwrap().psk());
    }

    /// Argon2id with 19 MiB, two passes and one lane, by the reference implementation in C (argon2-cffi 25.1,
    /// `hash_secret_raw`).
    #[test]
    fn a_passphrase_is_hashed_as_the_reference_implementation_does() {
        let key = Key::new(b"correct horse battery staple").unwrap();
        assert_eq!(talkpath_units::to_hex(key.psk()), REFERENCE);
    }

    const REFERENCE: &str = "84b49d2886b7ef8fec00ef7c4121da9e62542f0878d9b6748a126c4801fb6a5b";
}
