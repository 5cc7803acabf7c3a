//! The direction in which packets were lost, as far as the sequence numbers of the answers show it.
//!
//! ```text
//!  packets sent               0    1    2    3    4
//!  arrived at the reflector   0    -    2    3    4      packet 1 was lost on its way to the reflector
//!  numbers of the answers     0         1    2    3      a stateful reflector counts what arrived
//!  answers received           0         1    -    3      the answer to packet 3 was lost on its way back
//! ```
//!
//! The highest number of an answer, 3, shows that four packets arrived at the reflector. So one of five
//! packets was lost on its way to the reflector. Three answers came back, so one answer was lost.
//!
//! A stateless reflector copies the numbers of the packets. Its answers show only the sum of the losses.

use super::packet_row::PacketRow;

/// The packets that were lost in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionLosses {
    /// The packets that did not arrive at the reflector.
    pub forward: u64,
    /// The packets that arrived at the reflector, but whose answers did not arrive at this host.
    pub back: u64,
}

/// What the answers show about the reflector and the losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LossAnalysis {
    /// See [`super::StampRun::is_stateful`].
    pub(super) is_stateful: bool,
    /// See [`super::StampRun::losses`].
    pub(super) losses: Option<DirectionLosses>,
}

impl LossAnalysis {
    /// Analyses the packets of a session. `is_stated_stateful` is true if the user states that the reflector
    /// is stateful. Without this statement, an answer whose number differs from its packet's number shows it.
    pub(super) fn new(packets: &[PacketRow], is_stated_stateful: bool) -> Self {
        let sent = packets.iter().filter(|row| row.t1.is_some()).count() as u64;
        let received = packets.iter().filter(|row| row.answer.is_some()).count() as u64;
        let is_stateful = is_stated_stateful || has_renumbered_answer(packets);
        let losses = if received == sent {
            Some(DirectionLosses { forward: 0, back: 0 })
        } else if is_stateful && counts_arrivals(packets) {
            highest_number(packets).map(|highest| {
                // Packets after the last answer may have been lost in either direction. They count as lost on
                // their way to the reflector. The bounds keep a false number from making more losses than
                // there are.
                let arrived = (u64::from(highest) + 1).clamp(received, sent);
                DirectionLosses { forward: sent - arrived, back: arrived - received }
            })
        } else {
            None
        };
        Self { is_stateful, losses }
    }
}

/// Returns true if an answer has another number than its packet.
fn has_renumbered_answer(packets: &[PacketRow]) -> bool {
    (0_u32..)
        .zip(packets)
        .any(|(sequence, row)| row.answer.is_some_and(|answer| answer.reflector_sequence != sequence))
}

fn highest_number(packets: &[PacketRow]) -> Option<u32> {
    answer_numbers(packets).max()
}

/// Returns true if the numbers of a stateful reflector count the packets that arrived there.
///
/// The numbers do not if a packet has two answers. If the packet was duplicated, the reflector has counted it
/// twice. If the answer was duplicated, the reflector has counted it once. The numbers do not show either if
/// the reflector has restarted the session at 0, which it does if it has too many sessions, or if no packet
/// arrived for long.
fn counts_arrivals(packets: &[PacketRow]) -> bool {
    packets.iter().all(|row| row.copies < 2) && !has_restarted(packets)
}

/// Returns true if the reflector has restarted the session: a later answer has the number 0, or two answers
/// have the same number.
fn has_restarted(packets: &[PacketRow]) -> bool {
    let mut numbers: Vec<u32> = answer_numbers(packets).collect();
    let has_later_zero = numbers.iter().skip(1).any(|number| *number == 0);
    numbers.sort_unstable();
    has_later_zero || numbers.windows(2).any(|pair| pair[0] == pair[1])
}

fn answer_numbers(packets: &[PacketRow]) -> impl Iterator<Item = u32> {
    packets.iter().filter_map(|row| Some(row.answer?.reflector_sequence))
}

#[cfg(test)]
mod tests {
    use talkpath_units::Instant;

    use super::super::packet_row::Answer;
    use super::*;

    /// Makes the rows of packets whose answers have these numbers. `None` is a packet without an answer.
    fn rows(numbers: &[Option<u32>]) -> Vec<PacketRow> {
        let answer = |number| Answer { reflector_sequence: number, t2_ns: 0, t3_ns: 0, t4: Instant::ZERO };
        numbers
            .iter()
            .map(|number| PacketRow { t1: Some(Instant::ZERO), answer: number.map(answer), copies: 1 })
            .collect()
    }

    /// Returns whether the reflector is known to be stateful, and the losses (forward, back).
    fn analyse(packets: &[PacketRow], is_stated_stateful: bool) -> (bool, Option<(u64, u64)>) {
        let LossAnalysis { is_stateful, losses } = LossAnalysis::new(packets, is_stated_stateful);
        (is_stateful, losses.map(|losses| (losses.forward, losses.back)))
    }

    #[test]
    fn the_numbers_of_a_stateful_reflector_show_in_which_direction_a_packet_was_lost() {
        // Packet 1 did not arrive. The answer to packet 3, whose number is 2, did not come back.
        let in_both = rows(&[Some(0), None, Some(1), None, Some(3)]);
        assert_eq!(analyse(&in_both, false), (true, Some((1, 1))));
        // If only an answer was lost, the numbers are those of a stateless reflector too.
        let back = rows(&[Some(0), None, Some(2)]);
        assert_eq!(analyse(&back, false), (false, None));
        assert_eq!(analyse(&back, true), (true, Some((0, 1))));
        assert_eq!(analyse(&rows(&[Some(0), Some(1)]), false), (false, Some((0, 0))));
        // Packets after the last answer count as lost on their way to the reflector.
        assert_eq!(analyse(&rows(&[Some(0), None, None]), true), (true, Some((2, 0))));
        // A false number does not make more losses than there are.
        assert_eq!(analyse(&rows(&[Some(9_000), None]), false), (true, Some((0, 1))));
    }

    #[test]
    fn the_numbers_of_a_restarted_session_do_not_show_the_direction() {
        let restarted = rows(&[Some(0), Some(1), None, Some(0), Some(1)]);
        assert_eq!(analyse(&restarted, true), (true, None));
        let restarted = rows(&[None, Some(1), None, Some(0)]);
        assert_eq!(analyse(&restarted, true), (true, None));
    }

    #[test]
    fn with_duplicates_the_numbers_of_a_stateful_reflector_do_not_show_the_direction() {
        // Packet 0 arrived twice at the reflector, and packet 1 did not arrive.
        let mut duplicated = rows(&[Some(0), None, Some(2)]);
        duplicated[0].copies = 2;
        assert_eq!(analyse(&duplicated, true), (true, None));
        assert_eq!(analyse(&duplicated[..1], true), (true, Some((0, 0))), "nothing is lost");
    }
}
