//! What nearly all arriving segments are, each in one short branch: data that is expected next at an end that sends nothing, and an
//! acknowledgement of whole segments while nothing is amiss. (In a repair most tell of a block that grew: `grown`. What leaves is
//! `lumps`' part.)
//!
//! It is header prediction (Jacobson, "4BSD header prediction", 1990; tcp_rcv_established in Linux) on both paths. Nothing here
//! decides anything: whatever is not certain to be the plain case is left to `input`, `selective` and `output`, which would do the
//! same for the plain one at more length.
//!
//! Code that stands on a path of every packet is put there whole (`inline`): a call saves and restores as many registers as some of
//! these functions have lines.

use talkpath_units::Instant;

use super::ack::AckContext;
use super::connection::{State, Tcp};
use super::input::relative;
use super::output::bare;
use super::probe::Pending;
use super::recovery::RecoveryState;
use super::send::Sender;
use super::timer::TimerKind;
use crate::cc::{Ack, CongestionControl, Counting, RttSample};
use crate::{Flags, Outlet, Segment};

impl Tcp {
    /// A segment that begins at `start` has arrived: whether it was a plain one, and so has been dealt with.
    #[inline(always)]
    pub(super) fn is_predicted(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).with(Flags::ACK);
        if self.state != State::Established || !segment.flags.are_just(Flags::ACK, control) {
            return false;
        }
        if segment.payload > 0 {
            segment.sack_count == 0
                && if start == self.receiver.rcv_nxt() {
                    self.takes_plain_data(segment, start, now)
                } else {
                    self.takes_data_beyond(segment, start, now)
                }
        } else if start != self.receiver.rcv_nxt() {
            false
        } else if segment.sack_count == 0 {
            self.takes_plain_ack(segment, start, now)
        } else {
            self.takes_grown_block(segment, start, now)
        }
    }

    /// Whether this is just the data expected next, at an end that has nothing in flight.
    #[inline(always)]
    fn is_plain_data(&self, segment: &Segment, start: u64) -> bool {
        self.receiver.takes_whole(start, segment.payload)
            && !self.sender.is_waiting()
            && segment.ack == self.iss.wrapping_add(self.sender.snd_una() as u32)
            && !self.is_old_duplicate(segment)
    }

    /// The data expected next: whether the end has nothing in flight, and so it has been dealt with.
    #[inline(never)]
    fn takes_plain_data(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        if !self.is_plain_data(segment, start) {
            return false;
        }
        self.note_timestamp(segment, start);
        self.sender.window.update(segment.window, start, self.sender.snd_una());
        self.receiver.take_whole(segment.payload);
        self.has_told = false;
        let context = self.arrival_context(now);
        self.acks.on_data(segment.payload, segment.flags.contains(Flags::PSH), false, &context);
        if self.receiver.window.tuning.is_growing() {
            self.grow_window(segment, now);
        }
        if self.only_receives() {
            let asks = self.acks.check_asks_window(self.receiver.rcv_nxt());
            let context =
                if asks { AckContext { selectable: self.selectable(), ..context } } else { context };
            self.owes_ack = self.acks.check(&context, &mut self.timers);
            self.is_quiet = !self.owes_ack;
        }
        true
    }

    /// Whether nothing is to leave, or to be watched over, but acknowledgements: what is found so stays so while nothing but data comes,
    /// of which no other code hears.
    #[inline(always)]
    pub(super) fn only_receives(&mut self) -> bool {
        debug_assert!(!self.is_receiver || (self.is_alone() && self.is_mute()), "it sends something");
        if !self.is_receiver {
            self.is_receiver = self.find_only_receives();
        }
        self.is_receiver
    }

    #[inline(never)]
    fn find_only_receives(&self) -> bool {
        self.is_alone() && self.is_mute()
    }

    /// Whether nothing was decided on that is still to leave or to be done after the last packet that leaves.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.control.is_none() && self.repairs.is_empty() && !self.buffer.is_due()
    }

    /// The acknowledgement that is owed leaves, and nothing behind it: what is left of [`Self::next_transmit`] then.
    #[inline(always)]
    pub(super) fn acknowledge_alone(&mut self, now: Instant, out: &mut impl Outlet) {
        (self.owes_ack, self.is_quiet) = (false, true);
        // Looked at in this order, since the latter lies further off.
        let tells = self.receiver.report.option_size() > 0 && self.selective.enabled;
        let segment = self.segment_here((self.sender.snd_max(), 0), Flags::ACK, tells, now);
        out.take(bare(segment));
    }

    /// An acknowledgement without data, of whole segments sent once, with no loss, reordering, probe or repair in sight:
    /// what is left of [`Self::on_ack_with_sack`] and [`Self::on_new_ack`] then.
    #[inline(never)]
    fn takes_plain_ack(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        debug_assert!(!self.is_plain || self.find_plain(), "something is amiss");
        if !self.is_plain {
            let is_calm = !self.config.steers
                && !self.selective.probe.is_out()
                && self.recovery.state() == RecoveryState::Open
                && self.sender.is_calm();
            if !is_calm {
                return false;
            }
            self.is_plain = self.find_plain();
        }
        let ack = relative(segment.ack, self.iss).extend(self.sender.snd_una());
        let Some(run) = self.sender.plain_run(ack) else { return false };
        self.note_timestamp(segment, start);
        self.sender.window.update(segment.window, start, ack);
        let bytes = self.sender.acknowledge_plainly(ack, &run);
        let snd_max = self.sender.snd_max();
        let rtt = self.rtt.measure(run.first_sent, now);
        self.rtt.on_sample(rtt, ack, snd_max);
        let sample = RttSample { now, snd_una: ack, snd_max };
        if self.selective.enabled {
            let latest = now.since(run.last_sent);
            self.selective.rack.on_rtt(latest, now);
            self.controller.on_rtt(latest, sample);
            self.selective.rack.advance((run.last_sent, ack), now);
        } else {
            self.controller.on_rtt(rtt, sample);
            self.recovery.on_new_ack(ack);
        }
        self.restart_timer(now);
        let acked = match self.controller.window().counting() {
            Counting::Bytes { .. } => bytes,
            Counting::Packets => run.segments,
        };
        let (flight_size, cwnd_limited) = (self.flight_size(), self.may_grow());
        self.controller.on_ack(Ack { acked, flight_size, cwnd_limited, now });
        self.buffer.on_ack();
        if self.sender.fin_is_acked() {
            self.on_fin_acked();
        }
        true
    }

    /// Whether neither a loss, a probe or a repair is known of, nor anything has to leave before new data or in another way than that,
    /// but for an acknowledgement: of this no plain segment changes anything, nor do a write or a read.
    #[inline(never)]
    pub(super) fn find_plain(&self) -> bool {
        self.may_send_plainly()
            && self.recovery.state() == RecoveryState::Open
            && !self.selective.probe.is_out()
            && self.sender.is_calm()
            && self.sender.sends_plainly()
    }

    /// RFC 6298 §5.2 and §5.3, after progress.
    #[inline]
    fn restart_timer(&mut self, now: Instant) {
        if !self.sender.is_waiting() {
            self.timers.clear(TimerKind::Retransmit);
            self.selective.probe.pending = Pending::Retransmission;
        } else if !self.selective.enabled {
            self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        } else {
            let later =
                self.timers.is_running(TimerKind::Retransmit) && self.selective.probe.progress_later();
            if !later {
                self.arm(now, true);
            }
        }
    }
}

/// Whole segments at the front of the flight, each sent once, in order.
struct PlainRun {
    first_sent: Instant,
    last_sent: Instant,
    segments: u64,
    /// Of these, those that did not follow another one at once.
    lumps: u64,
}

impl Sender {
    /// Whether nothing in flight is known or taken to be lost, nor to have arrived beyond a gap.
    #[inline]
    fn is_calm(&self) -> bool {
        self.next == self.segments.len()
            && self.board.is_clean()
            && !self.board.hold_lost
            && self.board.highest <= self.snd_una
    }

    /// What `ack` acknowledges, where it does so to the last byte and everything in flight up to the segment behind was sent once, and
    /// in order, in a flight that [`Self::is_calm`].
    #[inline(always)]
    fn plain_run(&self, ack: u64) -> Option<PlainRun> {
        let first = self.segments.front()?;
        let mut run = PlainRun { first_sent: first.sent_at, last_sent: first.sent_at, segments: 0, lumps: 0 };
        let mut end = self.snd_una;
        // An iterator over a ring takes longer to set up than most runs are.
        while let Some(segment) = self.segments.get(run.segments as usize) {
            if !segment.marks.is_clean() {
                return None;
            }
            if segment.end > ack {
                break;
            }
            (run.last_sent, end) = (segment.sent_at, segment.end);
            run.segments += 1;
            run.lumps += u64::from(!segment.follows);
        }
        (run.segments > 0 && end == ack).then_some(run)
    }

    /// Everything before `ack`, a [`Self::plain_run`], has arrived; returns how many bytes that was.
    #[inline(always)]
    fn acknowledge_plainly(&mut self, ack: u64, run: &PlainRun) -> u64 {
        self.segments.drain(..run.segments as usize);
        self.lumps -= run.lumps;
        self.next = self.segments.len();
        self.board.popped += run.segments;
        let bytes = ack - self.snd_una;
        self.snd_una = ack;
        self.board.forget_resent(ack);
        bytes
    }
}
