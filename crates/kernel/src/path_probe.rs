//! Packets that show what a path does to packets: which sizes pass, which address the far host sees, and
//! what becomes of DSCP, ECN field and TTL.
//!
//! ```text
//!  probe    "TPP1"  secret 16 B  number 2 B  answer's size 2 B  answer's TOS 1 B  again 2 B
//!           zeroes to the probe's size
//!  answer   "TPP2"  token 4 B  number 2 B  probe's size 2 B  known 1 B  TOS 1 B  TTL 1 B  again 1 B
//!           port 2 B  address 16 B  zeroes to the answer's size
//! ```
//!
//! - *TOS*: the byte of the IP header with DSCP and ECN field.
//! - *size*: bytes of UDP payload.
//! - `again` of a probe is the time in seconds after which it is answered a second time, or 0. That of an
//!   answer is 1 if it is the second one, 2 if the second one follows, and else 0.
//! - `known` has bit 0 if the far host could read the TOS, and bit 1 if it could read the TTL.
//!
//! Numbers are big-endian. An address of IPv4 is mapped (RFC 4291 §2.5.5.2). Neither packet may be
//! fragmented. An answer is never larger than its probe, and only who knows a flow's secret gets one.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::wire::Secret;

const PROBE: [u8; 4] = *b"TPP1";
const ANSWER: [u8; 4] = *b"TPP2";
/// The smallest probe, bytes. The smallest answer has as many.
pub const MIN_PROBE: usize = 40;
const HAS_TOS: u8 = 1;
const HAS_TTL: u8 = 2;

/// A probe of the path.
#[derive(Clone, Copy)]
pub struct PathProbe {
    /// The secret of a flow of the session.
    pub secret: Secret,
    /// The number that the answer repeats.
    pub number: u16,
    /// The size of the answer. It is cut to the size of the probe.
    pub answer_size: u16,
    /// The TOS that the answer leaves with.
    pub answer_tos: u8,
    /// The time after which the probe is answered a second time, s. 0 if it is not.
    pub again_after_s: u16,
}

/// What the far host saw of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathProbeAnswer {
    /// The token of the flow.
    pub token: u32,
    /// The number of the probe.
    pub number: u16,
    /// The size of the probe.
    pub probe_size: u16,
    /// The TOS of the probe as it arrived. `None` if the far host's kernel does not report it.
    pub tos: Option<u8>,
    /// The TTL of the probe as it arrived. `None` if the far host's kernel does not report it.
    pub ttl: Option<u8>,
    /// The address from which the probe came.
    pub from: SocketAddr,
    /// Whether the probe is answered a second time.
    pub second: Second,
}

/// Whether a probe is answered a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// It is not.
    None,
    /// This is the second answer.
    This,
    /// The second answer follows.
    Follows,
}

impl PathProbe {
    /// Writes the probe as a payload of `size` bytes, at least [`MIN_PROBE`].
    pub fn write(&self, size: usize) -> Vec<u8> {
        let mut packet = vec![0; size.max(MIN_PROBE)];
        packet[..4].copy_from_slice(&PROBE);
        packet[4..20].copy_from_slice(&self.secret.0);
        packet[20..22].copy_from_slice(&self.number.to_be_bytes());
        packet[22..24].copy_from_slice(&self.answer_size.to_be_bytes());
        packet[24] = self.answer_tos;
        packet[25..27].copy_from_slice(&self.again_after_s.to_be_bytes());
        packet
    }

    /// Reads a probe. Returns `None` if the payload is no probe.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if payload.len() < MIN_PROBE || payload[..4] != PROBE {
            return None;
        }
        let mut secret = [0; 16];
        secret.copy_from_slice(&payload[4..20]);
        Some(Self {
            secret: Secret(secret),
            number: u16_at(payload, 20),
            answer_size: u16_at(payload, 22),
            answer_tos: payload[24],
            again_after_s: u16_at(payload, 25),
        })
    }

    /// Returns the size of the answer to this probe, whose own size is `probe_size`.
    pub fn size_of_answer(&self, probe_size: usize) -> usize {
        usize::from(self.answer_size).clamp(MIN_PROBE, probe_size.max(MIN_PROBE))
    }
}

impl PathProbeAnswer {
    /// Writes the answer as a payload of `size` bytes, at least [`MIN_PROBE`].
    pub fn write(&self, size: usize) -> Vec<u8> {
        let mut packet = vec![0; size.max(MIN_PROBE)];
        packet[..4].copy_from_slice(&ANSWER);
        packet[4..8].copy_from_slice(&self.token.to_be_bytes());
        packet[8..10].copy_from_slice(&self.number.to_be_bytes());
        packet[10..12].copy_from_slice(&self.probe_size.to_be_bytes());
        packet[12] =
            if self.tos.is_some() { HAS_TOS } else { 0 } | if self.ttl.is_some() { HAS_TTL } else { 0 };
        packet[13] = self.tos.unwrap_or(0);
        packet[14] = self.ttl.unwrap_or(0);
        packet[15] = match self.second {
            Second::None => 0,
            Second::This => 1,
            Second::Follows => 2,
        };
        packet[16..18].copy_from_slice(&self.from.port().to_be_bytes());
        let ip = match self.from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        packet[18..34].copy_from_slice(&ip.octets());
        packet
    }

    /// Reads an answer. Returns `None` if the payload is no answer.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if payload.len() < MIN_PROBE || payload[..4] != ANSWER {
            return None;
        }
        let mut octets = [0; 16];
        octets.copy_from_slice(&payload[18..34]);
        let ip = IpAddr::V6(Ipv6Addr::from(octets)).to_canonical();
        let known = |bit: u8, value: u8| (payload[12] & bit != 0).then_some(value);
        Some(Self {
            token: u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]),
            number: u16_at(payload, 8),
            probe_size: u16_at(payload, 10),
            tos: known(HAS_TOS, payload[13]),
            ttl: known(HAS_TTL, payload[14]),
            from: SocketAddr::new(ip, u16_at(payload, 16)),
            second: match payload[15] {
                1 => Second::This,
                2 => Second::Follows,
                _ => Second::None,
            },
        })
    }
}

/// Returns true if `token` cannot be mistaken for the beginning of a probe or of its answer.
pub fn is_usable_token(token: u32) -> bool {
    token.to_be_bytes() != PROBE && token.to_be_bytes() != ANSWER
}

fn u16_at(payload: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([payload[at], payload[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret([9; 16]);

    #[test]
    fn a_probe_and_its_answer_are_read_as_they_were_written() {
        let probe =
            PathProbe { secret: SECRET, number: 7, answer_size: 1400, answer_tos: 0xba, again_after_s: 300 };
        let read = PathProbe::read(&probe.write(1472)).unwrap();
        assert!(read.secret == SECRET);
        assert_eq!((read.number, read.answer_size, read.answer_tos), (7, 1400, 0xba));
        assert_eq!(read.again_after_s, 300);
        for (tos, ttl) in [(Some(0xb8), Some(57)), (None, None), (Some(0), None)] {
            let from = "192.0.2.7:40000".parse().unwrap();
            let second = if tos.is_none() { Second::This } else { Second::Follows };
            let answer = PathProbeAnswer { token: 5, number: 7, probe_size: 1472, tos, ttl, from, second };
            assert_eq!(PathProbeAnswer::read(&answer.write(MIN_PROBE)), Some(answer));
        }
    }

    #[test]
    fn an_answer_is_never_larger_than_its_probe() {
        for (answer_size, probe_size, expected) in
            [(0, 40, 40), (0, 1472, 40), (1472, 1472, 1472), (65_535, 1472, 1472), (1472, 100, 100)]
        {
            let probe = PathProbe { secret: SECRET, number: 0, answer_size, answer_tos: 0, again_after_s: 0 };
            assert_eq!(probe.size_of_answer(probe_size), expected);
        }
    }

    #[test]
    fn what_is_short_or_begins_otherwise_is_no_probe() {
        let probe = PathProbe { secret: SECRET, number: 7, answer_size: 0, answer_tos: 0, again_after_s: 0 };
        let probe = probe.write(MIN_PROBE);
        assert!(PathProbe::read(&probe[..MIN_PROBE - 1]).is_none());
        assert!(PathProbe::read(&crate::wire::registration(&SECRET)).is_none());
        assert!(PathProbeAnswer::read(&probe).is_none());
        assert!(!is_usable_token(u32::from_be_bytes(PROBE)) && is_usable_token(7));
    }
}
