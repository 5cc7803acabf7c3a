//! What nearly all segments are while a loss is being repaired: at the receiver, data beyond a gap; at the sender, an acknowledgement
//! that tells of one segment more at the end of the block that the one before told of first.
//!
//! ```text
//!   before   SACK 5001-9001                    the same segment number, the same other blocks
//!   now      SACK 5001-10001                   one segment more, sent once, that nothing was known of
//! ```
//!
//! Nothing else is known anew from such an acknowledgement, so that of [`Tcp::on_ack_with_sack`] this is left: the segment's mark, its round trip, RACK's
//! newest segment and what that makes late (RFC 8985 §6.2), and PRR. The test below takes the same repair both ways; what is not
//! certain to be this case goes the long one.

use talkpath_units::Instant;

use super::connection::Tcp;
use super::input::relative;
use super::rack::Rack;
use super::recovery::RecoveryState;
use super::scoreboard::Marks;
use super::send::Sender;
use crate::cc::{CongestionControl, RttSample};
use crate::{Flags, SackBlock, Segment};

/// The SACK option that was told last, as it stood in the segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    blocks: [SackBlock; 3],
    count: u8,
    /// It told of no duplicate, and its first block of what was sent.
    is_plain: bool,
}

impl Told {
    pub(super) const fn new(segment: &Segment, is_plain: bool) -> Self {
        Self { blocks: segment.sack, count: segment.sack_count, is_plain }
    }

    /// By how much the first block of `segment`'s option is longer, where that is all that has changed.
    #[inline]
    fn growth(&self, segment: &Segment) -> Option<u64> {
        let ([then, others @ ..], [now, same @ ..]) = (&self.blocks, &segment.sack);
        let grew = now.right.distance_from(then.right);
        let is_grown = self.is_plain
            && self.count == segment.sack_count
            && then.left == now.left
            && others == same
            && grew > 0;
        is_grown.then_some(u64::from(grew.unsigned_abs()))
    }
}

impl Tcp {
    /// Data that is not expected next: whether it lies beyond a gap and inside the window, at an end that sends nothing, and so has
    /// been dealt with. It is acknowledged at once (RFC 5681 §4.2).
    #[inline(never)]
    pub(super) fn takes_data_beyond(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let is_beyond = start > self.receiver.rcv_nxt()
            && start + u64::from(segment.payload) <= self.receiver.window.edge()
            && segment.ack == self.iss.wrapping_add(self.sender.snd_una() as u32)
            && !self.is_old_duplicate(segment)
            && (self.is_receiver || self.is_mute());
        if !is_beyond {
            return false;
        }
        (self.is_plain, self.has_told) = (false, false);
        self.note_timestamp(segment, start);
        self.sender.window.update(segment.window, start, self.sender.snd_una());
        // Were all of it here already, its acknowledgement would leave all the same.
        self.receiver.take_beyond(start, segment.payload);
        self.acks.on_gap(segment.payload, segment.flags.contains(Flags::PSH));
        if self.receiver.window.tuning.is_growing() {
            self.grow_window(segment, now);
        }
        self.owes_ack = self.is_receiver || self.is_alone();
        true
    }

    /// An acknowledgement with SACK blocks, without data: whether it was as the module says, and so has been dealt with.
    #[inline(never)]
    pub(super) fn takes_grown_block(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let is_repair = self.recovery.state() == RecoveryState::Fast
            && self.selective.by_time
            && !self.config.steers
            && !self.selective.probe.is_out()
            && !self.undo.is_proved_by_duplicates();
        let ack = relative(segment.ack, self.iss).extend(self.sender.snd_una());
        if !is_repair || ack != self.sender.snd_una() || self.recovery.covers(ack) {
            return false;
        }
        let Some(sent_at) = self.sender.sack_one_more(segment) else { return false };
        self.sender.board.hold_lost = false;
        self.note_timestamp(segment, start);
        self.sender.window.update(segment.window, start, ack);
        let (losses, snd_max) = (self.sender.board.losses, self.sender.snd_max());
        let rtt = self.rtt.measure(sent_at, now);
        self.rtt.on_sample(rtt, ack, snd_max);
        let latest = now.since(sent_at);
        self.selective.rack.on_rtt(latest, now);
        self.controller.on_rtt(latest, RttSample { now, snd_una: ack, snd_max });
        self.selective.rack.advance((sent_at, self.sender.board.highest), now);
        let waits = self.selective.rack.take_advanced()
            && !self.sender.settles(&self.selective.rack)
            && self.mark_by_time(now);
        if !waits && self.sender.first_sent_at().is_some_and(|head| sent_at > head) {
            self.arm(now, true);
        }
        // Only Linux reduces in proportion, and counts packets.
        self.reduce(1, false, self.sender.board.losses - losses);
        self.buffer.on_ack();
        true
    }
}

impl Sender {
    /// Marks the segment that `option` tells of, where it is one alone, sent once and later than all that is sacked; returns when it
    /// was sent.
    #[inline]
    fn sack_one_more(&mut self, option: &Segment) -> Option<Instant> {
        let board = &mut self.board;
        let growth = board.told.growth(option)?;
        let [(left, from), others @ ..] = board.seen;
        let to = from + growth;
        let is_apart = others.iter().all(|&(left, right)| right <= from || to <= left);
        if left < self.snd_una || from < board.highest || !is_apart {
            return None;
        }
        let index = board.sack_hint.checked_sub(board.popped)?;
        let segment = self.segments.get_mut(usize::try_from(index).ok()?)?;
        if segment.start() != from || segment.end != to || !segment.marks.is_clean() {
            return None;
        }
        segment.marks.set(Marks::SACKED);
        board.sacked.add(segment);
        (board.highest, board.sack_hint) = (to, board.popped + index + 1);
        (board.seen[0].1, board.told.blocks[0]) = (to, option.sack[0]);
        Some(segment.sent_at)
    }

    /// Whether, as of the segment that [`Self::sack_one_more`] marked, nothing before it waits for its time, and nothing behind it was
    /// sent before what has arrived: then [`Self::mark_by_time`] would mark nothing and set no timer.
    #[inline]
    fn settles(&mut self, rack: &Rack) -> bool {
        let board = &mut self.board;
        let next = self.segments.get((board.sack_hint - board.popped) as usize);
        let is_settled = board.settled + 1 == board.sack_hint
            && next.is_none_or(|next| next.marks.is_clean() && !rack.is_after(next))
            && board.resent.front().is_none_or(|&(_, sent_at)| rack.is_before(sent_at));
        if is_settled {
            board.settled = board.sack_hint;
        }
        is_settled
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Seed, SeqNum};

    use super::*;
    use crate::tcp::connection::State;
    use crate::{Ecn, Packet, Role, Stack, TcpConfig, Transport};

    const SMSS: u32 = 1448;

    /// When the segment number `number` leaves, each a millisecond after the one before.
    fn leaves_at(number: u64) -> Instant {
        Instant::from_millis(1000 + number)
    }

    /// An acknowledgement of what comes before segment `gap`, that has `blocks` of segments beyond it.
    fn ack(tcp: &Tcp, gap: u32, blocks: &[(u32, u32)]) -> Segment {
        let number = |segment: u32| tcp.iss.wrapping_add(1 + segment * SMSS);
        let mut ack = Segment {
            seq: tcp.irs.wrapping_add(1),
            ack: number(gap),
            flags: Flags::ACK,
            window: u16::MAX,
            ..Segment::default()
        };
        for (place, &(left, right)) in ack.sack.iter_mut().zip(blocks) {
            *place = SackBlock { left: number(left), right: number(right) };
            ack.sack_count += 1;
        }
        ack
    }

    fn arrive(tcp: &mut Tcp, segment: Segment, now: Instant) {
        tcp.handle_packet(&Packet::Tcp(segment), Ecn::NotEct, now);
    }

    /// A sender with 60 segments in flight and more to send, which lost the first and the 10th and repairs them.
    fn in_repair() -> Tcp {
        let config = TcpConfig::preset(Stack::Linux, false);
        let mut tcp = Tcp::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        (tcp.state, tcp.selective.enabled) = (State::Established, true);
        tcp.irs = SeqNum::new(7);
        tcp.receiver.on_syn();
        tcp.receiver.window.offer_on_syn(1);
        tcp.sender.on_syn_sent();
        tcp.sender.on_established(SMSS);
        tcp.sender.window.start(u16::MAX, 0, 0, 7);
        tcp.sender.write(200 * u64::from(SMSS));
        tcp.controller.window_mut().set_cwnd(60);
        for number in 0..60 {
            tcp.sender.send_new(SMSS, false, false, leaves_at(number));
        }
        for (number, blocks) in [
            (1, [(1, 2)].as_slice()),
            (2, &[(1, 3)]),
            (3, &[(1, 4)]),
            (8, &[(1, 9)]),
            (9, &[(10, 11), (1, 9)]),
        ] {
            let segment = ack(&tcp, 0, blocks);
            arrive(&mut tcp, segment, leaves_at(number + 60));
            while tcp.poll_transmit(leaves_at(number + 60)).is_some() {}
        }
        assert_eq!(tcp.recovery.state(), RecoveryState::Fast);
        tcp
    }

    /// RFC 8985 §6.2, RFC 9937 §3: in all that is known of the connection.
    #[test]
    fn a_block_that_grows_is_dealt_with_as_at_length() {
        let mut tcp = in_repair();
        let losses = tcp.sender.board.losses;
        for reached in 12..40 {
            let now = leaves_at(u64::from(reached) + 60);
            // Segments 20 to 24 come together, and 30 never does.
            let right = if (20..24).contains(&reached) { continue } else { reached };
            let blocks =
                if right > 30 { [(31, right + 1), (10, 30), (1, 9)] } else { [(10, right), (1, 9), (0, 0)] };
            let segment = ack(&tcp, 0, &blocks[..2 + usize::from(right > 30)]);
            let grows = !matches!(right, 24 | 31);
            let mut long = tcp.clone();
            long.sender.board.told = Told::default();
            assert_eq!(tcp.clone().takes_grown_block(&segment, 1, now), grows, "{reached}");
            assert!(!long.clone().takes_grown_block(&segment, 1, now));
            arrive(&mut tcp, segment, now);
            arrive(&mut long, segment, now);
            // The long way forgets what was told whatever comes, and finds the same again.
            long.has_told = tcp.has_told;
            assert_eq!(format!("{tcp:?}"), format!("{long:?}"), "{reached}");
            while tcp.poll_transmit(now).is_some() {}
        }
        assert_eq!(tcp.sender.board.losses, losses + 1);
    }
}
