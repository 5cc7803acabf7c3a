//! The server's certificate: Ed25519, signed by its own key (RFC 5280, RFC 8410).
//!
//! It is written here, field by field, and not taken from a file, so that its key can follow from a run's
//! seed. Its size does not depend on the key: 238 B. A chain that a public server sends is larger, 1 to 4 kB.

use ring::error::KeyRejected;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The server's name in certificates and in the client's TLS extension.
pub const SERVER_NAME: &str = "talkpath";

/// A certificate for [`SERVER_NAME`] and the private key to it.
pub(crate) struct Certificate {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Certificate {
    /// The certificate of the key that is made from `secret` (RFC 8032 §5.1.5).
    pub(crate) fn from_secret(secret: &[u8; 32]) -> Result<Self, KeyRejected> {
        let pair = Ed25519KeyPair::from_seed_unchecked(secret)?;
        let content = to_be_signed(pair.public_key().as_ref());
        let signature = pair.sign(&content);
        let certificate = sequence(&[&content, &algorithm(), &bit_string(signature.as_ref())]);
        // RFC 5208 §5, RFC 8410 §7: version 0, the algorithm, and the secret as an octet string in another.
        let key = sequence(&[&der(INTEGER, &[0]), &algorithm(), &der(OCTETS, &der(OCTETS, secret))]);
        Ok(Self {
            certificate: CertificateDer::from(certificate),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)),
        })
    }
}

/// RFC 5280 §4.1: what the signature covers.
fn to_be_signed(public_key: &[u8]) -> Vec<u8> {
    let version_3 = der(0xa0, &der(INTEGER, &[2]));
    let serial_number = der(INTEGER, &[1]);
    let common_name = sequence(&[&der(OBJECT, &[0x55, 4, 3]), &der(UTF8, SERVER_NAME.as_bytes())]);
    let name = sequence(&[&der(SET, &common_name)]);
    let validity = sequence(&[&der(UTC_TIME, VALID_FROM), &der(UTC_TIME, VALID_UNTIL)]);
    let key = sequence(&[&algorithm(), &bit_string(public_key)]);
    // RFC 5280 §4.2.1.6: dNSName is the context's tag 2 of the alternative names.
    let alternative = sequence(&[&der(0x82, SERVER_NAME.as_bytes())]);
    let extension = sequence(&[&der(OBJECT, &[0x55, 29, 17]), &der(OCTETS, &alternative)]);
    let extensions = der(0xa3, &sequence(&[&extension]));
    sequence(&[&version_3, &serial_number, &algorithm(), &name, &validity, &name, &key, &extensions])
}

/// RFC 8410 §3: id-Ed25519, 1.3.101.112, without parameters.
fn algorithm() -> Vec<u8> {
    sequence(&[&der(OBJECT, &[0x2b, 0x65, 0x70])])
}

/// A bit string that leaves no bit of its last octet unused.
fn bit_string(octets: &[u8]) -> Vec<u8> {
    der(0x03, &[&[0], octets].concat())
}

fn sequence(fields: &[&[u8]]) -> Vec<u8> {
    der(0x30, &fields.concat())
}

/// A tag, a length and the content (X.690 §8.1.3). No field here has 256 octets or more.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap_or_else(|_| unreachable!("a field of 256 octets"));
    let header: &[u8] = if length < 0x80 { &[tag, length] } else { &[tag, 0x81, length] };
    [header, content].concat()
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const SET: u8 = 0x31;

/// 2020 to 2049, the last year that a UTCTime holds (RFC 5280 §4.1.2.5.1): chosen, so that no run is outside.
const VALID_FROM: &[u8] = b"200101000000Z";
const VALID_UNTIL: &[u8] = b"491231235959Z";
