//! The keyed tag of a datagram. Without the flow's key nobody can make a valid datagram or change one.
//!
//! A message of 16 B or more has a tag of 8 B of HMAC-SHA-256 (RFC 2104, FIPS 180-4) behind its token and
//! number. The tag covers the direction and all other bytes of the message. A shorter message has no room for
//! a tag and is not protected. An attacker who repeats a datagram makes a duplicate, as a network does.
//!
//! A tag of 64 bits is enough, because each guess takes a datagram. 10^6 guesses a second for an hour are
//! 2^32 guesses, and one of them is right with a probability of 2^-32. RFC 2104 §5 recommends 80 bits against
//! attacks without such a limit.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The place of the tag in a message: behind token and number.
const TAG: core::ops::Range<usize> = 8..8 + TAG_SIZE;
/// The length of a tag, bytes.
const TAG_SIZE: usize = 8;
/// The shortest message that has a tag.
pub(crate) const TAGGED_SIZE: usize = TAG.end;

/// The key for the tags of a flow's datagrams. The server draws it, and both ends have it.
#[derive(Clone, Copy)]
pub struct TagKey(pub [u8; 32]);

impl core::fmt::Debug for TagKey {
    /// Writes the type's name, and never the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TagKey(..)")
    }
}

/// Tags the messages that one end sends, or checks the messages that it receives.
#[derive(Clone)]
pub(crate) struct Tagger {
    /// The HMAC after it has taken in the direction.
    begun: Hmac<Sha256>,
}

impl Tagger {
    /// Makes the tagger for datagrams from the client, or from the server if `is_from_client` is false.
    pub(crate) fn new(key: TagKey, is_from_client: bool) -> Self {
        let mut begun = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
        begun.update(if is_from_client { b"talkpath client" } else { b"talkpath server" });
        Self { begun }
    }

    /// Writes the tag of `message` into the message. A message without room for a tag stays as it is.
    pub(crate) fn seal(&self, message: &mut [u8]) {
        if message.len() >= TAGGED_SIZE {
            let tag = self.mac(message).finalize().into_bytes();
            message[TAG].copy_from_slice(&tag[..TAG_SIZE]);
        }
    }

    /// Returns true if `message` has its tag, or is too short for a tag. The time that it takes does not
    /// depend on which byte of the tag is wrong.
    pub(crate) fn accepts(&self, message: &[u8]) -> bool {
        message.len() < TAGGED_SIZE || self.mac(message).verify_truncated_left(&message[TAG]).is_ok()
    }

    fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.begun.clone();
        mac.update(&message[..TAG.start]);
        mac.update(&message[TAG.end..]);
        mac
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::to_hex;

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
    fn no_bit_of_a_message_can_be_changed_nor_its_direction_nor_its_key() {
        let (ours, theirs) = (Tagger::new(TagKey([7; 32]), true), Tagger::new(TagKey([7; 32]), false));
        for size in [TAGGED_SIZE, 20, 160, 1464] {
            let mut message = crate::wire::filling(size);
            assert!(!ours.accepts(&message), "filling is no tag");
            ours.seal(&mut message);
            assert!(ours.accepts(&message) && !theirs.accepts(&message));
            assert!(!Tagger::new(TagKey([8; 32]), true).accepts(&message));
            for bit in 0..size * 8 {
                message[bit / 8] ^= 1 << (bit % 8);
                assert!(!ours.accepts(&message), "bit {bit} of {size} B");
                message[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn what_has_no_room_for_a_tag_has_none() {
        let ours = Tagger::new(TagKey([7; 32]), true);
        let mut message = crate::wire::filling(TAGGED_SIZE - 1);
        let before = message.clone();
        ours.seal(&mut message);
        assert!(message == before && ours.accepts(&message));
    }
}
