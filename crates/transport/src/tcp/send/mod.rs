//! The send side: the data that the application writes, and which segment may leave next (RFC 9293 §3.7.4 and
//! §3.8.6).
//!
//! ```text
//!   buffer     the room for writes
//!   segments   the stream cut into segments, and which new segment may leave
//!   window     the window that the far end offers
//!   nagle      whether a small segment waits
//!   burst      how many segments leave together;  pacing: when the next burst may leave
//!   persist    probes of a closed window
//! ```
//!
//! The segments in flight are in [`super::recovery::Scoreboard`], which the methods here receive. Congestion
//! control decides after the send side.

mod buffer;
mod burst;
mod nagle;
mod pacing;
mod persist;
mod segments;
mod window;

use talkpath_config::{Stack, TcpConfig};
use talkpath_units::{Bytes, Instant};

use self::buffer::{Queue, SendBuffer};
pub(super) use self::burst::{BurstDecision, BurstInput};
use self::nagle::Nagle;
pub(super) use self::pacing::{BurstKind, Pace, Pacing};
use self::persist::Persist;
use self::segments::Stream;
pub(super) use self::segments::{BlockedBy, NextSegment};
pub(super) use self::window::MAX_SHIFT;
use self::window::SendWindow;
pub(super) use super::recovery::NewSegment;
use super::recovery::{Scoreboard, SentSegment};
use super::rtt::RttEstimator;
use super::timers::Timers;

/// The send side of one end.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    stream: Stream,
    window: SendWindow,
    nagle: Nagle,
    buffer: SendBuffer,
    pacing: Pacing,
    persist: Persist,
}

impl Sender {
    pub(super) fn new(config: &TcpConfig, is_rate_based: bool) -> Self {
        let is_linux = config.stack == Stack::Linux;
        let is_paced = config.pacing || is_rate_based;
        Self {
            stream: Stream::new(),
            window: SendWindow::default(),
            nagle: Nagle::new(config.nagle),
            buffer: SendBuffer::new(config, is_rate_based),
            pacing: Pacing::new(is_paced, is_linux),
            persist: Persist::new(is_linux),
        }
    }

    /// Takes the window field of the far end's SYN. `shift` applies from the next segment on.
    pub(super) const fn on_far_syn(&mut self, window: u16, shift: u8) {
        self.window.start(window, 0, 1, shift);
    }

    /// Takes note that our SYN is acknowledged. Full segments carry `smss` bytes.
    pub(super) fn on_established(&mut self, smss: u32) {
        self.stream.on_established(smss);
    }

    /// Takes the window of a segment at `seq` that acknowledges `ack`. Returns true if the window changed.
    #[inline]
    pub(super) fn update_window(&mut self, field: u16, seq: u64, ack: u64) -> bool {
        self.window.update(field, seq, ack)
    }

    /// True if a duplicate acknowledgement at `seq` would open the window.
    pub(super) fn would_open_window(&self, field: u16, seq: u64) -> bool {
        self.window.would_open(field, seq)
    }

    #[inline]
    pub(super) const fn smss(&self) -> u32 {
        self.stream.smss()
    }

    /// The payload of a full segment that leaves now, beside SACK blocks.
    #[inline]
    pub(super) const fn full_payload(&self) -> u32 {
        self.stream.full()
    }

    /// Makes full segments smaller by `options` bytes, which SACK blocks take beside timestamps.
    #[inline]
    pub(super) fn leave_room(&mut self, options: u32) {
        self.stream.leave_room(options);
    }

    /// The number of bytes that were written and never sent.
    #[inline]
    pub(super) fn unsent(&self, scoreboard: &Scoreboard) -> u64 {
        self.stream.unsent(scoreboard)
    }

    /// The number of bytes that were written and are not acknowledged.
    #[inline]
    pub(super) fn queued(&self, scoreboard: &Scoreboard) -> u64 {
        self.stream.queued(scoreboard)
    }

    /// The number of bytes that the far end's window allows beyond SND.MAX.
    #[inline]
    pub(super) const fn usable(&self, scoreboard: &Scoreboard) -> u64 {
        self.window.edge().saturating_sub(scoreboard.snd_max())
    }

    /// The far end's window (SND.WND).
    #[inline]
    pub(super) const fn offered_bytes(&self, scoreboard: &Scoreboard) -> u64 {
        self.window.edge().saturating_sub(scoreboard.snd_una())
    }

    /// The far end's window (SND.WND), in full segments.
    pub(super) fn offered_packets(&self, scoreboard: &Scoreboard) -> f64 {
        // A window is smaller than 2^63, which converts in one step.
        self.offered_bytes(scoreboard).cast_signed() as f64 / f64::from(self.smss())
    }

    /// True if there is new data and the far end's window has any room.
    pub(super) fn can_send_new(&self, scoreboard: &Scoreboard) -> bool {
        self.unsent(scoreboard) > 0 && self.window.edge() > scoreboard.snd_max()
    }

    /// Has a FIN follow the last byte, because the application closes.
    pub(super) const fn queue_fin(&mut self) {
        self.stream.queue_fin();
    }

    #[inline]
    pub(super) const fn is_closing(&self) -> bool {
        self.stream.is_closing()
    }

    /// True once our FIN and all data before it are acknowledged.
    #[inline]
    pub(super) const fn fin_is_acked(&self, scoreboard: &Scoreboard) -> bool {
        self.stream.fin_is_acked(scoreboard)
    }

    /// Decides by flow control and Nagle's algorithm which segment may leave next. With `new_data_first`
    /// retransmissions wait until new data was tried (RFC 5682 §2.1 step 2b). The error says why no segment
    /// may leave.
    #[inline]
    pub(super) fn plan(
        &self,
        scoreboard: &Scoreboard,
        new_data_first: bool,
    ) -> Result<NextSegment, BlockedBy> {
        self.stream.plan(scoreboard, &self.window, &self.nagle, new_data_first)
    }

    /// Returns the new payload of a tail loss probe: a full segment, or all unsent bytes. `None` if there is
    /// no new data, or if the far end's window has no room for the whole segment, because a probe does not
    /// justify a small segment (RFC 9293 §3.8.6.2.1; Linux: tcp_snd_wnd_test).
    pub(super) fn plan_loss_probe(&self, scoreboard: &Scoreboard) -> Option<u32> {
        let payload = self.unsent(scoreboard).min(u64::from(self.full_payload()));
        (payload > 0 && payload <= self.usable(scoreboard)).then_some(payload as u32)
    }

    /// Returns the payload that a probe of a closed window forces out: as much as the window allows, up to a
    /// full segment (RFC 9293 §3.8.6.2.1 (4)). `None` if the window allows nothing.
    pub(super) fn plan_forced(&self, scoreboard: &Scoreboard) -> Option<u32> {
        let payload =
            self.unsent(scoreboard).min(u64::from(self.full_payload())).min(self.usable(scoreboard));
        (payload > 0).then_some(payload as u32)
    }

    /// Puts a new segment, which leaves now, into the retransmission queue.
    #[inline]
    pub(super) fn send_new(
        &mut self,
        segment: NewSegment,
        scoreboard: &mut Scoreboard,
        now: Instant,
    ) -> SentSegment {
        let NewSegment { payload, fin, .. } = segment;
        let pushed = payload > 0 && u64::from(payload) == self.unsent(scoreboard);
        let sent = scoreboard.send_new(segment, pushed, now);
        if payload > 0 && payload < self.full_payload() {
            self.nagle.on_small_sent(sent.end());
        }
        if fin {
            self.stream.on_fin_sent();
        }
        sent
    }

    /// Takes `size` bytes from the application. The caller has checked that there is room.
    pub(super) fn write(&mut self, size: Bytes, scoreboard: &Scoreboard) {
        self.stream.write(size.get());
        self.buffer.on_write(self.queue(scoreboard));
    }

    /// True if a message of `size` is accepted as a whole now.
    pub(super) fn fits(&self, size: Bytes, scoreboard: &Scoreboard) -> bool {
        self.buffer.has_room_for(self.queue(scoreboard), size.get())
    }

    /// Takes note that a write did not fit.
    pub(super) const fn on_refused(&mut self) {
        self.buffer.on_refused();
    }

    /// Returns how much of a write that does not fit as a whole is accepted now ([`SendBuffer::next_part`]).
    pub(super) fn part(&self, burst: u64, written: Bytes, scoreboard: &Scoreboard) -> Bytes {
        self.buffer.next_part(self.queue(scoreboard), burst, written)
    }

    /// The room to report to the application.
    #[inline]
    pub(super) fn writable(&self, scoreboard: &Scoreboard) -> Bytes {
        self.buffer.reported_room(self.queue(scoreboard))
    }

    /// True if the buffer would accept a message of `size` as a whole if it were empty.
    pub(super) fn holds(&self, size: Bytes, scoreboard: &Scoreboard) -> bool {
        self.buffer.fits_when_empty(self.queue(scoreboard), size.get())
    }

    /// Gives an autotuned buffer room for `cwnd` segments of `mss` bytes.
    pub(super) fn expand_buffer(&mut self, cwnd: u64, mss: u32) {
        self.buffer.expand(cwnd, mss);
    }

    /// Takes note that an acknowledgement arrived.
    #[inline]
    pub(super) const fn on_ack(&mut self) {
        self.buffer.on_ack();
    }

    /// True if an acknowledgement arrived while the application waited for room.
    #[inline]
    pub(super) const fn awaits_buffer_check(&self) -> bool {
        self.buffer.awaits_check()
    }

    /// Lets the buffer grow if it `may_grow`, and then wakes the application if there is room (Linux:
    /// tcp_check_space). The caller has sent the segments that the acknowledgement allows.
    pub(super) fn check_buffer(&mut self, may_grow: bool, cwnd: u64, mss: u32, scoreboard: &Scoreboard) {
        self.buffer.check(self.queue(scoreboard), may_grow, cwnd, mss);
    }

    #[inline]
    fn queue(&self, scoreboard: &Scoreboard) -> Queue {
        Queue {
            bytes: self.queued(scoreboard),
            unsent: self.unsent(scoreboard),
            skbs: scoreboard.bursts(),
            smss: u64::from(self.smss()),
            max_window: self.window.max_offered(),
        }
    }

    #[inline]
    pub(super) const fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    #[inline]
    pub(super) const fn pacing_mut(&mut self) -> &mut Pacing {
        &mut self.pacing
    }

    /// True if the far end's window is being probed, or was probed and the count of probes is not reset.
    #[inline]
    pub(super) fn is_persisting(&self, timers: &Timers) -> bool {
        self.persist.is_active(timers)
    }

    /// Takes note that an acknowledgement arrived while nothing was in flight that it could acknowledge.
    pub(super) fn on_ack_of_nothing(&self, rtt: &RttEstimator, timers: &mut Timers, now: Instant) {
        self.persist.on_ack(rtt, timers, now);
    }

    /// Has a probe of the closed window leave, because the persist timer expired.
    pub(super) const fn on_persist_timeout(&mut self) {
        self.persist.on_timeout();
    }

    /// True, once, if a probe of the closed window has to leave.
    #[inline]
    pub(super) const fn take_window_probe(&mut self) -> bool {
        self.persist.take_due()
    }

    /// Starts or stops the persist timer. `is_blocked` is true if data waits for the far end's window while
    /// nothing is in flight.
    #[inline]
    pub(super) fn update_persist(
        &mut self,
        is_blocked: bool,
        rtt: &RttEstimator,
        timers: &mut Timers,
        now: Instant,
    ) {
        self.persist.update(is_blocked, rtt, timers, now);
    }
}
