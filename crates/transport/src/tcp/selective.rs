//! Loss recovery with selective acknowledgements, by RFC 6675 or by RACK (RFC 8985), in the order of Linux's tcp_ack.
//!
//! ```text
//!            a segment is lost                     all sent before is acknowledged
//!   Open ───────────────────────► Fast {recover} ──────────────────────────────────► Open
//!     │ RTO                          │ RTO    ▲ a retransmission is lost
//!     └───────────► Loss {recover} ◄─┘────────┘    the same, or the timeout was needless ► Open
//! ```
//!
//! | | finds losses by | `cwnd` in recovery | takes needless reductions back |
//! | --- | --- | --- | --- |
//! | `linux` | RACK | PRR | by timestamps, duplicates, F-RTO |
//! | `rfc` | RFC 6675; RACK with `tlp` | `ssthresh` at once (RFC 6675 §5 step 4.2) | never |
//!
//! Retransmissions leave before new data, as far as `cwnd` lets them. Left out of RFC 6675: rules 3 and 4 of `NextSeg`, which
//! send again what nothing says was lost.

use talkpath_units::{Duration, Instant, SeqNum};

use super::connection::Tcp;
use super::feedback::Measured;
use super::grown::Told;
use super::input::relative;
use super::probe::{Pending, Probe};
use super::prr::{Progress, Prr};
use super::rack::Rack;
use super::recovery::RecoveryState;
use super::scoreboard::{DUPLICATE_THRESHOLD, News};
use super::timer::TimerKind;
use crate::cc::{Ack, CongestionControl, Counting, RttSample};
use crate::{Segment, Stack};

/// What selective recovery remembers beside the scoreboard and [`super::recovery::Recovery`].
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Selective {
    /// Both SYNs permitted SACK.
    pub(super) enabled: bool,
    /// Losses are told by time.
    pub(super) by_time: bool,
    /// A timeout happened, and whether it was needed is being found out (RFC 5682).
    frto: bool,
    /// RFC 6675: acknowledgements with news and no progress, in a row.
    duplicates: u32,
    pub(super) probe: Probe,
    pub(super) rack: Rack,
    pub(super) prr: Prr,
}

/// The acknowledgement being processed.
#[derive(Clone, Copy)]
struct Arrived<'a> {
    segment: &'a Segment,
    ack: u64,
    /// SND.UNA moved.
    advanced: bool,
    /// The window changed.
    is_update: bool,
    /// The first block told of a duplicate.
    duplicate: bool,
}

impl Selective {
    pub(super) fn new(stack: Stack, tlp: bool) -> Self {
        Self {
            enabled: false,
            by_time: stack == Stack::Linux || tlp,
            rack: Rack::new(),
            prr: Prr::default(),
            probe: Probe::new(tlp),
            frto: false,
            duplicates: 0,
        }
    }
}

impl Tcp {
    /// An acknowledgement of what was sent, `ack` not beyond it; one that tells nothing changes nothing.
    #[inline(never)]
    pub(super) fn on_ack_with_sack(&mut self, segment: &Segment, ack: u64, is_update: bool, now: Instant) {
        let before = self.sender.snd_una();
        let (losses, ack) = (self.sender.board.losses, ack.max(before));
        let prior_in_flight = self.sender.flight_segments();
        let mut news = News::new(now, self.selective.rack.min_rtt(), self.recovery.recover());
        let duplicate = segment.sack_count > 0 && self.on_blocks(segment, ack, &mut news);
        let advanced = ack > before;
        if advanced {
            let highest = self.sender.board.highest;
            self.sender.acknowledge(ack, &mut news);
            self.note_reordering(&news, highest);
        }
        let (rtt, sacked_later) = self.measure_with_sack(segment, ack, advanced, &news);
        let mut rearm = sacked_later || advanced;
        if let Some(newest) = news.newest {
            self.selective.rack.advance(newest, now);
        }
        let arrived = Arrived { segment, ack, advanced, is_update, duplicate };
        if self.selective.probe.is_out() {
            self.on_probe_ack(arrived, &news);
        }
        if self.is_dubious(arrived, &news) {
            rearm &= self.recover(arrived, &news);
        }
        if !self.sender.is_waiting() {
            self.timers.clear(TimerKind::Retransmit);
            self.selective.probe.pending = Pending::Retransmission;
        } else if rearm {
            self.arm(now, true);
        }
        let losses = self.sender.board.losses - losses;
        if self.config.steers {
            self.inform(&news, ack, Measured { rtt, losses, prior_in_flight });
        } else {
            self.steer(arrived, &news, losses);
        }
        self.buffer.on_ack();
        if advanced && self.sender.fin_is_acked() {
            self.on_fin_acked();
        }
    }

    /// Takes the SACK blocks in; returns whether the first told of a duplicate (RFC 2883 §4).
    fn on_blocks(&mut self, segment: &Segment, ack: u64, news: &mut News) -> bool {
        let (una, max) = (self.sender.snd_una(), self.sender.snd_max());
        let count = usize::from(segment.sack_count.min(3));
        let mut blocks = [(0, 0); 3];
        for (range, block) in blocks.iter_mut().zip(&segment.sack[..count]) {
            let offset = |seq: SeqNum| relative(seq, self.iss).extend(una);
            *range = (offset(block.left), offset(block.right));
        }
        let (first, second) = (blocks[0], blocks[1]);
        let within_second =
            segment.sack_count > 1 && second.0 <= first.0 && first.1 <= second.1 && first != second;
        let duplicate = first.0 < ack || within_second;
        if duplicate && first.1 <= max {
            self.undo.on_duplicate(first.1);
            self.selective.rack.on_duplicate(una, max);
        }
        // What was never sent, or is no range, tells nothing.
        for range in &mut blocks[..count] {
            if range.1 > max || range.0 >= range.1 || range.1 <= ack {
                *range = (0, 0);
            }
        }
        let highest = self.sender.board.highest;
        self.sender.board.told = Told::new(segment, !duplicate && blocks[0].0 < blocks[0].1);
        self.sender.sack(blocks, news);
        self.note_reordering(news, highest);
        duplicate
    }

    fn note_reordering(&mut self, news: &News, highest: u64) {
        if let Some(low) = news.reordered {
            self.selective.rack.on_reordering(low, highest, self.sender.smss());
        }
    }

    /// RFC 6298 §3, RFC 7323 §4.1 (tcp_ack_update_rtt). Returns the round trip that congestion control may use, and whether a
    /// sacked segment alone starts the timer anew: it was sent after the first one in flight last was.
    fn measure_with_sack(
        &mut self,
        segment: &Segment,
        ack: u64,
        advanced: bool,
        news: &News,
    ) -> (Option<Duration>, bool) {
        let now = news.now;
        let acked_span = news.acked_span.filter(|_| !news.ambiguous);
        let (sample, latest) = match (acked_span, news.sacked_span) {
            (None, None) => (None, None),
            (Some((first, last)), None) => (Some(first), Some(last)),
            (acked, Some((first, last))) => (Some(acked.map_or(first, |(first, _)| first)), Some(last)),
        };
        let rtt = match sample {
            Some(sent) => Some(self.rtt.measure(sent, now)),
            None if advanced => self.timestamp_sample(segment, now),
            None => None,
        };
        let snd_max = self.sender.snd_max();
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt, ack, snd_max);
        }
        let latest = latest.map(|latest| now.since(latest));
        if let Some(rtt) = latest {
            self.selective.rack.on_rtt(rtt, now);
            self.controller.on_rtt(rtt, RttSample { now, snd_una: ack, snd_max });
        }
        let sacked_later = match (news.sacked_span, self.sender.first_sent_at()) {
            (Some((first, _)), Some(head)) => first > head,
            _ => false,
        };
        (latest.or(rtt), sacked_later)
    }

    /// tcp_ack_is_dubious: whether this is more than progress on a path without trouble.
    fn is_dubious(&self, arrived: Arrived<'_>, news: &News) -> bool {
        let nothing = !arrived.advanced && !arrived.is_update && arrived.segment.payload == 0;
        nothing || news.sacked || arrived.duplicate || self.is_disordered()
    }

    /// Whether something is being repaired or looks as if it had to be (beyond tcp_ca_state TCP_CA_Open).
    #[inline]
    pub(super) fn is_disordered(&self) -> bool {
        self.recovery.state() != RecoveryState::Open
            || !self.sender.board.is_clean()
            || self.sender.first_is_again()
    }

    /// tcp_fastretrans_alert. Returns whether the timer may start anew: not where RACK has set its own.
    fn recover(&mut self, arrived: Arrived<'_>, news: &News) -> bool {
        self.sender.board.hold_lost = false;
        match self.recovery.state() {
            RecoveryState::Open => {
                if self.sender.board.again.segments == 0 && !self.sender.first_is_again() {
                    self.undo.forget_retransmissions();
                }
            }
            RecoveryState::Fast if self.recovery.covers(arrived.ack) => self.leave_fast(arrived),
            RecoveryState::Fast | RecoveryState::Loss => {}
        }
        match self.recovery.state() {
            RecoveryState::Open => {
                self.undo_by_duplicates();
                let rearm = self.find_losses(arrived, news);
                if self.sender.board.lost.segments > 0 {
                    self.enter_fast();
                }
                rearm
            }
            RecoveryState::Fast => {
                if arrived.advanced && self.undo_partially(arrived.segment) {
                    return true;
                }
                if self.undo_by_duplicates() {
                    self.recovery.leave();
                }
                let rearm = self.find_losses(arrived, news);
                if self.recovery.state() == RecoveryState::Open && self.sender.board.lost.segments > 0 {
                    self.enter_fast();
                }
                rearm
            }
            RecoveryState::Loss => self.recover_from_timeout(arrived, news),
        }
    }

    /// tcp_process_loss, with RFC 5682 §3.1: a timeout was needless if what was sent before it still arrives.
    fn recover_from_timeout(&mut self, arrived: Arrived<'_>, news: &News) -> bool {
        if arrived.advanced && self.may_undo(arrived.segment) {
            self.undo_timeout();
        } else if self.selective.frto && news.original {
            // Step 3.b.
            self.undo_timeout();
        } else {
            self.try_new_data(arrived, news);
            if self.recovery.covers(arrived.ack) && !self.sender.board.hold_lost {
                self.leave_loss(arrived);
            }
        }
        let again = self.sender.board.again.segments;
        let rearm = self.find_losses(arrived, news);
        let lost_again = self.sender.board.again.segments < again;
        let may_begin = self.recovery.state() == RecoveryState::Open || lost_again;
        if may_begin && self.sender.board.lost.segments > 0 {
            self.enter_fast();
        }
        rearm
    }

    /// RFC 5682 §3.1 steps 2.b and 3.a: after the first progress new data is sent before anything else is sent again.
    fn try_new_data(&mut self, arrived: Arrived<'_>, news: &News) {
        if !self.selective.frto {
            return;
        }
        let tried = self.sender.snd_max() > self.recovery.recover();
        if tried {
            let duplicate = !arrived.advanced && !arrived.is_update && arrived.segment.payload == 0;
            self.selective.frto = !(news.sacked || duplicate);
        } else if arrived.advanced && !self.recovery.covers(arrived.ack) {
            self.sender.board.hold_lost = self.sender.can_send_new();
            self.selective.frto = self.sender.board.hold_lost;
        }
    }

    /// New data was to be tried first and none could leave.
    pub(super) const fn stop_holding_lost(&mut self) {
        self.sender.board.hold_lost = false;
        self.selective.frto = false;
    }

    /// Marks what is lost; returns false where a timer runs for what may be soon.
    fn find_losses(&mut self, arrived: Arrived<'_>, news: &News) -> bool {
        if self.selective.by_time {
            return !self.selective.rack.take_advanced() || !self.mark_by_time(news.now);
        }
        self.selective.duplicates = match (arrived.advanced, news.sacked) {
            (true, _) => 0,
            (false, true) => self.selective.duplicates + 1,
            (false, false) => self.selective.duplicates,
        };
        if self.recovery.state() == RecoveryState::Open && self.selective.duplicates >= DUPLICATE_THRESHOLD {
            self.sender.mark_first_lost();
        }
        if self.recovery.state() != RecoveryState::Loss {
            self.sender.mark_by_count();
        }
        true
    }

    /// RFC 8985 §6.2 step 5; returns whether a timer was set for what may be late soon.
    #[inline]
    pub(super) fn mark_by_time(&mut self, now: Instant) -> bool {
        let in_recovery = self.recovery.state() != RecoveryState::Open;
        let rack = &self.selective.rack;
        let window = rack.window(in_recovery, self.sender.board.sacked.segments, self.rtt.srtt());
        let Some(wait) = self.sender.mark_by_time(rack, window, now) else { return false };
        self.selective.probe.pending = Pending::Reordering;
        self.timers.set(TimerKind::Retransmit, self.rtt.after(wait + TIMER_SLACK, now));
        true
    }

    /// The reordering window of something has passed (tcp_rack_reo_timeout).
    pub(super) fn on_reordering_timeout(&mut self, now: Instant) {
        let losses = self.sender.board.losses;
        let waits = self.mark_by_time(now);
        if self.sender.board.losses > losses && self.recovery.state() != RecoveryState::Fast {
            self.enter_fast();
            self.reduce(1, false, 0);
        }
        if !waits {
            let deadline = self.deadline_of_first(now);
            self.selective.probe.pending = Pending::Retransmission;
            self.timers.set(TimerKind::Retransmit, deadline);
        }
    }

    /// tcp_enter_recovery, RFC 6675 §5 step 4.
    fn enter_fast(&mut self) {
        self.counters.fast_retransmits += 1;
        self.remember();
        let window = self.controller.window();
        let flight = match window.counting() {
            // RFC 5681 §3.2 step 2: limited transmit does not count.
            Counting::Bytes { .. } => self.sender.outstanding_bytes().min(window.cwnd()),
            Counting::Packets => window.cwnd(),
        };
        self.selective.prr = Prr::begin(window.cwnd());
        self.controller.reduce(flight);
        if self.config.stack != Stack::Linux && !self.config.steers {
            let ssthresh = self.controller.window().ssthresh();
            self.controller.window_mut().set_cwnd(ssthresh);
            // RFC 6675 §5 step 4.3: the first retransmission does not wait for room.
            self.resend_first = true;
        }
        self.selective.probe.forget();
        self.recovery.enter_fast(self.sender.snd_max());
    }

    fn remember(&mut self) {
        let window = self.controller.window();
        let prior = (window.cwnd(), window.remembered_ssthresh());
        let again = self.sender.board.again.segments + self.selective.probe.retransmissions();
        self.undo.begin(self.sender.snd_una(), again, prior);
    }

    /// All that was sent when the loss was noticed has arrived (tcp_try_undo_recovery, tcp_end_cwnd_reduction).
    fn leave_fast(&mut self, arrived: Arrived<'_>) {
        if self.may_undo(arrived.segment) {
            self.take_back();
        } else {
            self.selective.rack.on_recovered();
        }
        self.recovery.leave();
        if self.config.stack == Stack::Linux && self.undo.stands() && !self.config.steers {
            let ssthresh = self.controller.window().ssthresh();
            self.controller.window_mut().set_cwnd(ssthresh);
        }
    }

    fn leave_loss(&mut self, arrived: Arrived<'_>) {
        if self.may_undo(arrived.segment) {
            self.take_back();
        } else {
            self.selective.rack.on_recovered();
        }
        self.selective.frto = false;
        self.recovery.leave();
    }

    /// tcp_try_undo_loss.
    fn undo_timeout(&mut self) {
        self.sender.unmark_lost();
        self.take_back();
        self.selective.frto = false;
        self.timed_out_at = None;
        self.recovery.leave();
    }

    /// The retransmission timer fired (tcp_enter_loss, RFC 6675 §5.1).
    pub(super) fn enter_loss_with_sack(&mut self, first: bool, now: Instant) {
        let linux = self.config.stack == Stack::Linux;
        let fresh = match self.recovery.state() {
            RecoveryState::Open => true,
            RecoveryState::Fast if linux => self.recovery.covers(self.sender.snd_una()),
            RecoveryState::Fast | RecoveryState::Loss => first,
        };
        self.selective.frto = linux && (self.recovery.state() == RecoveryState::Open || !first);
        if fresh {
            self.remember();
        }
        self.controller.on_rto(self.flight_size(), fresh);
        let rack = self.selective.by_time.then_some(&self.selective.rack);
        self.sender.mark_all_lost(rack, now);
        if linux {
            let cwnd = self.flight_size() + 1;
            self.controller.window_mut().set_cwnd(cwnd);
        }
        self.selective.probe.forget();
        self.selective.duplicates = 0;
        self.recovery.enter_loss(self.sender.snd_max());
    }

    /// tcp_cong_control.
    fn steer(&mut self, arrived: Arrived<'_>, news: &News, losses: u64) {
        let delivered = match self.controller.window().counting() {
            Counting::Bytes { .. } => news.delivered.bytes,
            Counting::Packets => news.delivered.segments,
        };
        if self.recovery.state() == RecoveryState::Fast {
            self.reduce(delivered, arrived.advanced, losses);
        } else if delivered > 0 && (arrived.advanced || (news.sacked && self.selective.rack.reorders_much()))
        {
            let (flight_size, cwnd_limited) = (self.flight_size(), self.may_grow());
            self.controller.on_ack(Ack { acked: delivered, flight_size, cwnd_limited, now: news.now });
        }
    }

    /// Leads `cwnd` towards `ssthresh` as PRR does.
    pub(super) fn reduce(&mut self, delivered: u64, advanced: bool, losses: u64) {
        if self.config.stack != Stack::Linux || self.config.steers {
            return;
        }
        let in_flight = self.flight_size();
        let progress = Progress { delivered, in_flight, safe: advanced && losses == 0 };
        let ssthresh = self.controller.window().ssthresh();
        if let Some(cwnd) = self.selective.prr.advance(ssthresh, progress) {
            self.controller.window_mut().set_cwnd(cwnd);
        }
    }

    /// RFC 8985 §7.4.2 (tcp_process_tlp_ack): the probe was answered, and where it repaired a loss that costs a reduction.
    fn on_probe_ack(&mut self, arrived: Arrived<'_>, news: &News) {
        let probe = &mut self.selective.probe;
        if arrived.ack < probe.end() {
            return;
        }
        if probe.retransmissions() == 0 || arrived.duplicate {
            probe.forget();
        } else if arrived.ack > probe.end() {
            probe.forget();
            let flight = self.flight_size();
            self.controller.reduce(flight);
            if !self.config.steers {
                let ssthresh = self.controller.window().ssthresh();
                self.controller.window_mut().set_cwnd(ssthresh);
            }
        } else if !arrived.advanced && !arrived.is_update && arrived.segment.payload == 0 && !news.sacked {
            probe.forget();
        }
    }
}

/// TCP_TIMEOUT_MIN_US: two jiffies.
pub(super) const TIMER_SLACK: Duration = Duration::from_millis(2);
