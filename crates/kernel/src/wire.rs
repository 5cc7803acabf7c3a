//! The layout of a measured message, and the packets by which a client proves its address.
//!
//! The header is a part of the message and counts in the message's `size`:
//!
//! | size | layout |
//! | --- | --- |
//! | 16 B and more | flow token (4 B), sequence number (4 B), tag (8 B, if there is a key), filling |
//! | 8 to 15 B | flow token (4 B), sequence number (4 B), filling |
//! | 4 to 7 B | sequence number (4 B), filling |
//! | 2 and 3 B | sequence number modulo 2^16, filling |
//! | 1 B | sequence number modulo 2^8 |
//!
//! Messages of varying size have 8 B or more, so the first two rows hold for them. On a stream a message of
//! varying size begins with its size and its number ([`FRAME`]). A stream whose messages have one size
//! carries only filling or the bytes of a file.
//!
//! Numbers are big-endian. A header has only the low bits of a number. The reader completes them to the
//! number nearest to the expected one. That is right as long as messages are displaced by less than half the
//! range. For messages on a clock with numbers of one or two bytes, the time of arrival completes the number
//! ([`ShortNumbers`]), because 256 messages of a call pass in 5 s. The filling is a fixed pseudo-random
//! sequence, which no link can compress.

use std::sync::OnceLock;

use talkpath_measure::ReadMessages;
use talkpath_model::LEAST_DRAWN;
use talkpath_units::{Duration, Instant, SeqNum};
use talkpath_wire::WRITE;

use crate::tag::TAGGED_SIZE;

/// The size of a frame, bytes: the size and the sequence number at the beginning of each message of varying
/// size on a stream (`end/frames.rs`).
pub const FRAME: usize = LEAST_DRAWN.get() as usize;
/// The rule by which a reader finds the messages of such a stream.
pub(crate) const FRAMED: ReadMessages = ReadMessages::Framed(LEAST_DRAWN);

/// The size of the header before a piece of a file, bytes: token, sequence number and tag.
pub const FILE_HEADER: u64 = TAGGED_SIZE as u64;

/// The largest UDP payload over IPv4, bytes (65,535 - 20 - 8). IPv6 would take 20 B more.
pub const MAX_UDP_PAYLOAD: u64 = 65_507;
const REGISTRATION_SIZE: usize = 32;
const REGISTER: [u8; 4] = *b"TPR1";
const REGISTERED: [u8; 4] = *b"TPA1";

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

/// Reads the number of the message `payload`, completed to the number nearest to `expected`. `None` if the
/// message carries another token than `token`.
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

/// Completes the numbers of messages on a clock that carry only the low one or two bytes of their number.
///
/// Message k is due k intervals after the clock's beginning, and arrives a delay later. So the smallest delay
/// until now tells the largest number that can have arrived by a given time. The message is the latest one up
/// to that number with these low bytes. That is right while delays exceed the smallest delay by less than
/// three quarters of the range, however long nothing has come.
pub struct ShortNumbers {
    modulus: u64,
    /// The number of messages that are due every `nanos` ns.
    messages: u128,
    nanos: u128,
    /// When message 0 is due, ns since the run's beginning, if that is known.
    start: Option<i64>,
    /// When message 0 would have come with the smallest recent delay, ns since the run's beginning.
    base: Option<i64>,
    /// When the last message came, ns since the run's beginning.
    last: i64,
    /// The longest time in which nothing came, ns.
    silence: i64,
}

impl ShortNumbers {
    /// Makes the numbers for messages of `size` bytes, of which `messages` are due every `nanos` ns from
    /// `start` on. `None` if messages of this size have room for a longer number.
    pub fn new(size: u64, messages: u64, nanos: u128, start: Option<Instant>) -> Option<Self> {
        let modulus = match size {
            1 => 1 << 8,
            2 | 3 => 1 << 16,
            _ => return None,
        };
        let (messages, start) = (u128::from(messages.max(1)), start.map(nanos_of));
        Some(Self { modulus, messages, nanos: nanos.max(1), start, base: None, last: 0, silence: 0 })
    }

    /// The number of the message `payload`, which came at `at`.
    pub fn number_in(&mut self, payload: &[u8], at: Instant) -> Option<u64> {
        let low = match *payload {
            [low] => u64::from(low),
            [a, b] | [a, b, _] => u64::from(u16::from_be_bytes([a, b])),
            _ => return None,
        };
        let at = nanos_of(at);
        let passed = (at - self.last).max(0);
        let seq = match (self.base, self.start) {
            (Some(base), _) => self.latest(low, at - base - passed / LEAK),
            (None, Some(start)) if self.count(at - start) >= self.modulus => self.latest(low, at - start),
            (None, _) => low,
        };
        let base = at - i64::try_from(u128::from(seq) * self.nanos / self.messages).unwrap_or(i64::MAX);
        if let Some(before) = self.base {
            self.silence = self.silence.max(passed);
            self.base = Some(base.min(before + passed / LEAK));
        } else {
            self.base = Some(base);
        }
        self.last = self.last.max(at);
        Some(seq)
    }

    /// The longest time in which nothing came, if half of all possible numbers were due in it. Only the clock
    /// then decided the next number.
    pub fn gap(&self) -> Option<Duration> {
        let is_long = self.count(self.silence) >= self.modulus / 2;
        is_long.then(|| Duration::from_nanos(self.silence.unsigned_abs()))
    }

    /// The latest number with the low bytes `low` among the messages that are due within `elapsed` ns, plus a
    /// quarter of the range.
    fn latest(&self, low: u64, elapsed: i64) -> u64 {
        let most = self.count(elapsed) + self.modulus / 4;
        most.checked_sub(low).map_or(low, |above| most - above % self.modulus)
    }

    /// The number of messages that are due within `elapsed` ns.
    fn count(&self, elapsed: i64) -> u64 {
        let elapsed = u128::try_from(elapsed).unwrap_or(0);
        u64::try_from(elapsed * self.messages / self.nanos).unwrap_or(u64::MAX / 2)
    }
}

fn nanos_of(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX / 2)
}

/// The smallest delay grows by one nanosecond in this many. We chose 1000, because hosts' clocks drift by
/// less.
const LEAK: i64 = 1000;

/// The number that is nearest to `expected` among the numbers that are `low` modulo `modulus` and not
/// negative.
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

/// Makes the packet by which a client shows the server the source address of a UDP flow's datagrams. The
/// packet consists of `REGISTER`, the flow's secret and zeroes. The server answers a known secret with
/// [`registered`], which is a quarter as long. It does not answer an unknown secret.
pub fn registration(secret: &Secret) -> [u8; REGISTRATION_SIZE] {
    let mut packet = [0; REGISTRATION_SIZE];
    packet[..4].copy_from_slice(&REGISTER);
    packet[4..20].copy_from_slice(&secret.0);
    packet
}

/// Reads the secret in `payload`. `None` if the payload is no registration.
pub fn read_registration(payload: &[u8]) -> Option<Secret> {
    let payload: &[u8; REGISTRATION_SIZE] = payload.try_into().ok()?;
    if payload[..4] != REGISTER || payload[20..] != [0; 12] {
        return None;
    }
    let mut secret = [0; 16];
    secret.copy_from_slice(&payload[4..20]);
    Some(Secret(secret))
}

/// Makes the answer to a registration.
pub fn registered(token: u32) -> [u8; 8] {
    let mut packet = [0; 8];
    packet[..4].copy_from_slice(&REGISTERED);
    packet[4..].copy_from_slice(&token.to_be_bytes());
    packet
}

/// Returns true if `token` cannot be mistaken for the beginning of a registration or of its answer.
pub fn is_usable_token(token: u32) -> bool {
    token.to_be_bytes() != REGISTER && token.to_be_bytes() != REGISTERED
}

/// The secret that a client must know to join a flow: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(pub [u8; 16]);

/// Makes the payload bytes of streams and the rest of datagrams: xorshift64 (Marsaglia, 2003) from a fixed
/// seed. They are no stream of [`Seed`](talkpath_units::Seed), because the peers in other languages
/// (xtask/judges/quic) write and compare the same bytes and need three lines for these.
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

/// The filling of a stream, as much as one write takes.
pub(crate) fn stream_filling() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| filling(WRITE as usize))
}

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

    /// A call of `size` bytes each 20 ms of which those of `gone` never come; the others take 30 to 630 ms.
    fn found(size: usize, gone: core::ops::Range<u64>, opens_late: u64) -> Vec<(u64, Option<u64>)> {
        let start = (opens_late == 0).then_some(Instant::ZERO);
        let mut numbers = ShortNumbers::new(size as u64, 1, 20_000_000, start);
        let mut next = 0;
        let number = |seq: u64| {
            let mut payload = filling(size);
            write_header(&mut payload, 7, seq);
            let at = Instant::from_millis(opens_late + 20 * seq + 30 + (seq * 7 % 31) * 20);
            let found = match &mut numbers {
                Some(numbers) => numbers.number_in(&payload, at),
                None => read_header(&payload, 7, next),
            };
            next = next.max(found.unwrap_or(0) + 1);
            (seq, found)
        };
        (0..3000).filter(|seq| !gone.contains(seq)).map(number).collect()
    }

    #[test]
    fn after_a_gap_of_any_length_one_byte_says_the_number_that_sixteen_say() {
        for gone in [0..0, 100..228, 100..356, 100..400, 700..1990, 0..200, 0..700, 0..2900] {
            let beside = found(16, gone.clone(), 0);
            assert!(beside.iter().all(|&(seq, found)| found == Some(seq)), "{gone:?}");
            for size in [1, 2, 3] {
                assert_eq!(found(size, gone.clone(), 0), beside, "{size} B, {gone:?} gone");
            }
        }
        // A clock that begins when nobody here knows: the first message that comes is one of the first 256.
        assert_eq!(found(1, 500..1400, 777), found(16, 500..1400, 777));
    }

    #[test]
    fn a_gap_in_which_half_of_the_numbers_were_due_is_told() {
        let gap_of = |gone: core::ops::Range<u64>| {
            let mut numbers = ShortNumbers::new(1, 1, 20_000_000, Some(Instant::ZERO)).unwrap();
            for seq in (0..600).filter(|seq| !gone.contains(seq)) {
                numbers.number_in(&[seq as u8], Instant::from_millis(20 * seq + 30));
            }
            numbers.gap().map(Duration::as_millis)
        };
        assert_eq!((gap_of(100..220), gap_of(100..300)), (None, Some(4020)));
        assert!(ShortNumbers::new(4, 1, 1, None).is_none());
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
