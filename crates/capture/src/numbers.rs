//! The sequence numbers of a stream without wrapping (RFC 3550 appendix A.1).

use talkpath_measure::rtp::RtpPacket;

/// The numbers of the packets of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The number of each packet in the order in which the packets were seen. `None` for a packet whose
    /// sequence number fits nowhere.
    pub(crate) numbers: Vec<Option<i64>>,
    /// How often the sender began its numbers anew. No packet counts as lost there.
    pub(crate) restarts: u64,
    /// The number of packets that fit nowhere.
    pub(crate) strays: u64,
}

impl Numbers {
    /// Numbers the packets of a stream.
    pub(crate) fn of(packets: &[RtpPacket]) -> Self {
        let mut found = Self::default();
        let mut latest: Option<i64> = None;
        for (index, packet) in packets.iter().enumerate() {
            let next = packets.get(index + 1);
            let number = match latest {
                None => Some(i64::from(packet.sequence)),
                Some(latest) => found.number(latest, *packet, next),
            };
            if let Some(number) = number {
                latest = Some(latest.map_or(number, |latest| latest.max(number)));
            }
            found.strays += u64::from(number.is_none());
            found.numbers.push(number);
        }
        found
    }

    /// The number of a packet behind the packet with the number `latest`.
    fn number(&mut self, latest: i64, packet: RtpPacket, next: Option<&RtpPacket>) -> Option<i64> {
        // The low 16 bits of the number are the sequence number. The cast keeps them.
        let ahead = packet.sequence.wrapping_sub(latest as u16);
        if (1..MAX_DROPOUT).contains(&ahead) {
            return Some(latest + i64::from(ahead));
        }
        let behind = ahead.wrapping_neg();
        if behind <= MAX_MISORDER {
            return Some(latest - i64::from(behind));
        }
        // Two packets in a row say that the sender has begun anew (RFC 3550 appendix A.1).
        let goes_on = next.is_some_and(|next| next.sequence == packet.sequence.wrapping_add(1));
        if !goes_on {
            return None;
        }
        self.restarts += 1;
        // The next number that has the low 16 bits of the sequence number. The numbers in between are
        // nobody's.
        let base = (latest | 0xffff) + 1;
        Some(base + i64::from(packet.sequence))
    }
}

/// The gap from which on a jump of the numbers is no loss (RFC 3550 appendix A.1).
pub(crate) const MAX_DROPOUT: u16 = 3000;
/// By how much a packet may come late (RFC 3550 appendix A.1).
const MAX_MISORDER: u16 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sequences: &[u16]) -> Numbers {
        let packet = |&sequence| RtpPacket {
            row: 0,
            sequence,
            timestamp: 0,
            payload: 160,
            payload_type: 0,
            is_marked: false,
            first_byte: None,
        };
        Numbers::of(&sequences.iter().map(packet).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_go_on_where_sequence_numbers_wrap_and_late_packets_keep_theirs() {
        let found = numbers(&[65_534, 65_535, 1, 0, 2, 2]);
        let expected = [65_534, 65_535, 65_537, 65_536, 65_538, 65_538].map(Some);
        assert_eq!((found.numbers.as_slice(), found.restarts), (&expected[..], 0));
    }

    #[test]
    fn a_jump_is_a_new_beginning_if_the_next_packet_goes_on_from_it_and_a_stray_packet_otherwise() {
        let found = numbers(&[10, 11, 40_000, 12, 30_000, 30_001]);
        assert_eq!(found.numbers[2], None);
        assert_eq!((found.strays, found.restarts), (1, 1));
        assert_eq!(found.numbers[4..], [Some(65_536 + 30_000), Some(65_536 + 30_001)]);
    }
}
