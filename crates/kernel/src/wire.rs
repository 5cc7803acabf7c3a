//! What a measured UDP payload carries, and how a client proves its address.
//!
//! Everything travels inside the message's `size`:
//!
//! | size | layout |
//! | --- | --- |
//! | 16 B and more | flow token (4 B), sequence number (4 B), tag (8 B, if there is a key), filling |
//! | 8 to 15 B | flow token (4 B), sequence number (4 B), filling |
//! | 4 to 7 B | sequence number (4 B), filling |
//! | 2 and 3 B | sequence number modulo 2^16, filling |
//! | 1 B | sequence number modulo 2^8 |
//!
//! Big-endian. A short number is extended to the one nearest to what is expected next, so it is right while
//! messages are displaced by less than half its range. The filling is a fixed pseudo-random sequence, which
//! no link compresses.

use talkpath_units::SeqNum;

use crate::tag::TAGGED_SIZE;

/// Writes the header of message `seq` into `payload`, which is the whole message.
pub fn write_header(payload: &mut [u8], token: u32, seq: u64) {
    let low = seq as u32;
    match payload.len() {
        0 => {}
        1 => payload[0] = low as u8,
        2 | 3 => payload[..2].copy_from_slice(&(low as u16).to_be_bytes()),
        4..=7 => payload[..4].copy_from_slice(&low.to_be_bytes()),
        _ => {
            payload[..4].copy_from_slice(&token.to_be_bytes());
            payload[4..8].copy_from_slice(&low.to_be_bytes());
        }
    }
}

/// The sequence number of the message `payload`, nearest to `expected`; `None` if the token is not `token`.
pub fn read_header(payload: &[u8], token: u32, expected: u64) -> Option<u64> {
    match *payload {
        [] => None,
        [low] => Some(nearest(u64::from(low), 1 << 8, expected)),
        [a, b] | [a, b, _] => Some(nearest(u64::from(u16::from_be_bytes([a, b])), 1 << 16, expected)),
        [a, b, c, d] | [a, b, c, d, _] | [a, b, c, d, _, _] | [a, b, c, d, _, _, _] => {
            Some(SeqNum::new(u32::from_be_bytes([a, b, c, d])).extend(expected))
        }
        [t0, t1, t2, t3, a, b, c, d, ..] => (u32::from_be_bytes([t0, t1, t2, t3]) == token)
            .then(|| SeqNum::new(u32::from_be_bytes([a, b, c, d])).extend(expected)),
    }
}

/// The number nearest to `expected` that is `low` modulo `modulus`, and not negative.
fn nearest(low: u64, modulus: u64, expected: u64) -> u64 {
    let base = expected - expected % modulus + low;
    if base > expected + modulus / 2 && base >= modulus {
        base - modulus
    } else if base + modulus / 2 < expected {
        base + modulus
    } else {
        base
    }
}

/// The packet by which a client shows the server the source address of a UDP flow's datagrams: `REGISTER`,
/// the flow's secret, zeroes. The server answers [`registered`], a quarter as long, and only to a known
/// secret.
pub fn registration(secret: &Secret) -> [u8; REGISTRATION_SIZE] {
    let mut packet = [0; REGISTRATION_SIZE];
    packet[..4].copy_from_slice(&REGISTER);
    packet[4..20].copy_from_slice(&secret.0);
    packet
}

/// The secret in `payload`, if it is a registration.
pub fn read_registration(payload: &[u8]) -> Option<Secret> {
    let payload: &[u8; REGISTRATION_SIZE] = payload.try_into().ok()?;
    if payload[..4] != REGISTER || payload[20..] != [0; 12] {
        return None;
    }
    let mut secret = [0; 16];
    secret.copy_from_slice(&payload[4..20]);
    Some(Secret(secret))
}

/// The answer to a registration.
pub fn registered(token: u32) -> [u8; 8] {
    let mut packet = [0; 8];
    packet[..4].copy_from_slice(&REGISTERED);
    packet[4..].copy_from_slice(&token.to_be_bytes());
    packet
}

/// Whether `token` cannot be mistaken for the beginning of a registration or its answer.
pub fn is_usable_token(token: u32) -> bool {
    token.to_be_bytes() != REGISTER && token.to_be_bytes() != REGISTERED
}

/// What a client must know to join a flow: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(pub [u8; 16]);

/// Payload bytes for streams and the rest of datagrams: xorshift64 (Marsaglia, 2003) from a fixed seed. It is
/// no stream of [`Seed`](talkpath_units::Seed): the peers in other languages (xtask/judges/quic) write and
/// compare the same bytes, and this takes them three lines.
pub fn filling(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// What a datagram of a file carries besides: token, sequence number and tag.
pub const FILE_HEADER: u64 = TAGGED_SIZE as u64;

/// The largest UDP payload over IPv4 (65,535 - 20 - 8); IPv6 would take 20 B more.
pub const MAX_UDP_PAYLOAD: u64 = 65_507;
const REGISTRATION_SIZE: usize = 32;
const REGISTER: [u8; 4] = *b"TPR1";
const REGISTERED: [u8; 4] = *b"TPA1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_carries_its_sequence_number_past_the_wrap() {
        for size in [1_usize, 2, 3, 4, 7, 8, 160] {
            for seq in [0_u64, 1, 200, 255, 256, 300, 65_535, 65_536, 70_000] {
                let mut payload = filling(size);
                write_header(&mut payload, 7, seq);
                for expected in [seq.saturating_sub(100), seq, seq + 100] {
                    assert_eq!(read_header(&payload, 7, expected), Some(seq), "size {size}, near {expected}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_token_is_no_message() {
        let mut payload = filling(160);
        write_header(&mut payload, 7, 3);
        assert_eq!(read_header(&payload, 8, 3), None);
        assert_eq!(read_header(&[], 8, 3), None);
    }

    #[test]
    fn a_registration_is_told_from_everything_else_and_its_answer_is_shorter() {
        let secret = Secret([9; 16]);
        let packet = registration(&secret);
        assert!(read_registration(&packet) == Some(secret));
        assert!(read_registration(&packet[..31]).is_none());
        assert!(read_registration(&filling(32)).is_none());
        assert!(registered(1).len() < packet.len());
    }
}
