//! The receive side: the data that arrived, the offered window, and when to acknowledge (RFC 9293 §3.10.7.4,
//! RFC 5681 §4.2).
//!
//! ```text
//!   reassembly   RCV.NXT, the data beyond a gap, and what the application has read
//!   window       the offered window;  tuning: how Linux grows it
//!   sack_report  the SACK option that leaves
//!   ack_policy   when an ACK leaves;  ack_policy/linux: Linux's quick and delayed ACKs
//! ```

mod ack_policy;
mod reassembly;
mod sack_report;
mod tuning;
mod window;

use talkpath_config::{Stack, TcpConfig};
use talkpath_units::{Bytes, Duration, Instant, SeqNum};
use talkpath_wire::{Flags, SackBlock, Segment};

use self::ack_policy::{AckContext, AckPolicy};
use self::reassembly::{Arrival, Reassembly};
use self::sack_report::SackReport;
use self::window::{OfferRule, OfferedWindow};
use super::clock::HostClock;
use super::offset_range::OffsetRange;
use super::rtt::RttEstimator;
use super::timers::Timers;
use super::timestamps::{self, Timestamps};

/// The receive side of one end.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    reassembly: Reassembly,
    window: OfferedWindow,
    report: SackReport,
    acks: AckPolicy,
    /// The payload of a full segment that we send, in bytes.
    smss: u32,
    /// True once the application reads no further.
    reader_has_closed: bool,
    /// When a segment without data that failed the checks was last answered. `None` before the first.
    last_answer: Option<Instant>,
    /// The shortest time between two such answers.
    answer_interval: Duration,
}

/// What arrived data changes for the rest of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataOutcome {
    Nothing,
    /// All data of the far end and its FIN have arrived.
    FinReceived,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig, buffer: Bytes, clock: HostClock) -> Self {
        let (rule, answer_interval) = match config.stack {
            Stack::Linux => (OfferRule::Linux, INVALID_RATELIMIT),
            Stack::Rfc | Stack::BsdReno => (OfferRule::Rfc9293, Duration::ZERO),
        };
        Self {
            reassembly: Reassembly::new(),
            window: OfferedWindow::new(rule, buffer, config.initial_rwnd),
            report: SackReport::default(),
            acks: AckPolicy::new(config.delayed_ack, config.timer_granularity, config.min_rto, clock),
            smss: 1,
            reader_has_closed: false,
            last_answer: None,
            answer_interval,
        }
    }

    /// Takes note of the far end's SYN. `is_scaled` is true if both ends offer window scaling.
    pub(super) const fn on_syn(&mut self, is_scaled: bool) {
        self.reassembly.on_syn();
        if is_scaled {
            self.window.enable_scaling();
        }
    }

    /// Takes note that the handshake is done. Full segments carry `smss` bytes.
    pub(super) fn on_established(&mut self, smss: u32, now: Instant) {
        self.smss = smss;
        self.acks.on_established(smss, self.window.full(), now);
        self.window.tuning_mut().on_established(smss, now);
    }

    #[inline]
    pub(super) const fn rcv_nxt(&self) -> u64 {
        self.reassembly.rcv_nxt()
    }

    /// RCV.NXT as the last ACK said it.
    #[inline]
    pub(super) const fn acked_to(&self) -> u64 {
        self.acks.acked_to()
    }

    /// True if a segment of `length` offsets from `start` on begins beyond the window or ends before RCV.NXT.
    /// A segment at the very edge of the window is inside, so that it may acknowledge while the window is
    /// closed (Linux: tcp_sequence).
    pub(super) const fn is_outside(&self, start: u64, length: u64) -> bool {
        start.saturating_add(length) < self.reassembly.rcv_nxt() || start > self.window.edge()
    }

    /// Has an ACK leave with the next poll, because the protocol demands it.
    pub(super) const fn demand_acknowledgement(&mut self) {
        self.acks.demand();
    }

    /// Answers a segment that failed the checks (RFC 9293 §3.10.7.4, first). If it carries data, the data has
    /// arrived before or does not fit into the window.
    pub(super) fn on_unacceptable(
        &mut self,
        segment: &Segment,
        start: u64,
        rtt: &RttEstimator,
        now: Instant,
    ) {
        if segment.payload == 0 && !segment.flags.contains(Flags::FIN) {
            self.answer(now);
            return;
        }
        let data_end = (start + u64::from(segment.payload)).min(self.reassembly.rcv_nxt());
        self.report.on_duplicate(OffsetRange::new(start, data_end));
        let context = self.context(rtt, now);
        self.acks.on_repeat(&context);
    }

    /// True if in-order data waits for the application to read it.
    pub(super) fn has_unread(&self) -> bool {
        self.reassembly.unread() > 0
    }

    /// Takes note that the application reads no further.
    pub(super) const fn on_reader_closed(&mut self) {
        self.reader_has_closed = true;
    }

    /// True if `segment` brings new data that no application will read.
    pub(super) fn is_lost_to_reader(&self, segment: &Segment, start: u64) -> bool {
        let has_new_data = segment.payload > 0 && start + u64::from(segment.payload) > self.rcv_nxt();
        self.reader_has_closed && has_new_data
    }

    /// Takes note of data that may have met congestion. The sender's window may become very small, so ACKs
    /// must not wait.
    pub(super) fn on_mark(&mut self) {
        self.acks.on_mark();
    }

    /// Answers a segment without data that failed the checks, unless the last such answer left less than
    /// `answer_interval` ago (Linux: tcp_oow_rate_limited).
    fn answer(&mut self, now: Instant) {
        if self.last_answer.is_none_or(|last| now.since(last) >= self.answer_interval) {
            self.last_answer = Some(now);
            self.acks.demand();
        }
    }

    /// Takes a segment's data, which begins at `start`, and its FIN. `has_sack` is true if both ends agreed
    /// on SACK.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        segment: &Segment,
        start: u64,
        has_sack: bool,
        timestamps: &Timestamps,
        rtt: &RttEstimator,
        now: Instant,
    ) -> DataOutcome {
        let fin = segment.flags.contains(Flags::FIN);
        let edge = self.window.edge();
        let data = OffsetRange::new(start, start.saturating_add(u64::from(segment.payload)));
        let arrival = self.reassembly.on_segment(data, fin, edge, &mut self.report);
        let context = self.context(rtt, now);
        let pushed = segment.flags.contains(Flags::PSH);
        match arrival {
            Arrival::InOrder { filled_gap } => {
                self.acks.on_data(segment.payload, pushed, filled_gap, &context);
            }
            Arrival::OutOfOrder => self.acks.on_gap(segment.payload, pushed),
            Arrival::Nothing if start > self.rcv_nxt() => self.acks.on_gap(segment.payload, pushed),
            Arrival::Nothing => self.acks.on_repeat(&context),
        }
        // Without SACK the window stays while there is a gap. An ACK that changes the window is no duplicate
        // (RFC 5681 §2), so it would not count for fast retransmit (Linux: tcp_data_queue_ofo).
        let may_grow = match arrival {
            Arrival::InOrder { .. } => true,
            Arrival::OutOfOrder => has_sack,
            Arrival::Nothing => false,
        };
        self.tune_window(segment, may_grow, timestamps, rtt, now);
        if self.reassembly.fin_received() {
            self.acks.demand();
            return DataOutcome::FinReceived;
        }
        DataOutcome::Nothing
    }

    /// Grows the offered window after data arrived, if it `may_grow` and is below its bounds. Then the next
    /// ACK leaves at once. A full segment also measures the round trip, as the receiver sees it.
    #[inline]
    fn tune_window(
        &mut self,
        segment: &Segment,
        may_grow: bool,
        timestamps: &Timestamps,
        rtt: &RttEstimator,
        now: Instant,
    ) {
        let (unread, full_segment) = (self.reassembly.unread(), self.acks.window_mss());
        let tuning = self.window.tuning_mut();
        if !tuning.is_growing() {
            return;
        }
        if may_grow {
            let has_grown = tuning.on_data(segment.payload, self.smss, unread);
            if has_grown {
                self.acks.on_window_growth();
            }
        }
        if segment.payload < full_segment {
            return;
        }
        match timestamps.echo(segment) {
            Some(echo) => tuning.on_echo(echo, || timestamps::since(echo, now)),
            None => {
                if let Some(srtt) = rtt.srtt() {
                    tuning.on_rtt(srtt);
                }
            }
        }
    }

    /// Gives the application at most `limit` bytes, and returns their number. If the far end `may_send` more,
    /// the read may open the window or send an ACK.
    #[inline]
    pub(super) fn read(&mut self, limit: u64, may_send: bool, rtt: &RttEstimator, now: Instant) -> u64 {
        let bytes = self.reassembly.read(limit);
        if bytes > 0 && may_send {
            if self.window.tuning_mut().is_growing() {
                let (read_to, beyond) = (self.reassembly.read_to(), self.reassembly.span_beyond_gap());
                self.window.tuning_mut().on_read(read_to, beyond, now);
            }
            let context = self.context(rtt, now);
            let (rcv_nxt, read_to, mss) = (self.rcv_nxt(), self.reassembly.read_to(), self.acks.window_mss());
            self.acks.on_read(&context, || self.window.select(rcv_nxt, read_to, mss));
        }
        bytes
    }

    /// True if a pure ACK leaves before the data that the application writes next
    /// ([`AckPolicy::acknowledges_first`]).
    #[inline]
    pub(super) const fn acknowledges_first(&self) -> bool {
        self.acks.acknowledges_first()
    }

    /// True if [`Self::decide_acknowledgement`] has something to decide.
    #[inline]
    pub(super) const fn has_acknowledgement_due(&self) -> bool {
        self.acks.is_pending()
    }

    /// True if the far end's FIN has arrived, in order or not.
    #[inline]
    pub(super) const fn has_fin(&self) -> bool {
        self.reassembly.has_fin()
    }

    /// Decides whether a pure ACK leaves now, and returns true if so. Otherwise starts the delayed-ACK timer
    /// if data waits for its acknowledgement.
    #[inline]
    pub(super) fn decide_acknowledgement(
        &mut self,
        rtt: &RttEstimator,
        timers: &mut Timers,
        now: Instant,
    ) -> bool {
        if !self.acks.is_pending() {
            return false;
        }
        let context = self.context(rtt, now);
        let (rcv_nxt, read_to, mss) = (self.rcv_nxt(), self.reassembly.read_to(), self.acks.window_mss());
        self.acks.check(&context, || self.window.select(rcv_nxt, read_to, mss), timers)
    }

    /// Acknowledges, because the delayed-ACK timer has expired.
    pub(super) fn on_delayed_ack_timeout(&mut self, rto: Duration) {
        self.acks.on_timeout(rto);
    }

    /// Takes note that data of ours leaves.
    #[inline]
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.acks.on_data_sent(now);
    }

    /// Takes note that a segment with the ACK bit leaves, which acknowledges all in-order data. Returns its
    /// window field.
    #[inline]
    pub(super) fn acknowledge(&mut self, timers: &mut Timers) -> u16 {
        let (rcv_nxt, read_to) = (self.reassembly.rcv_nxt(), self.reassembly.read_to());
        let field = self.window.offer(rcv_nxt, read_to, self.acks.window_mss());
        self.acks.on_window_selected(self.window.is_half_full(rcv_nxt, read_to));
        self.acks.on_ack_sent(rcv_nxt, self.window.offered(rcv_nxt), timers);
        field
    }

    /// Returns the window field of a SYN that leaves.
    pub(super) fn offer_on_syn(&mut self) -> u16 {
        self.window.offer_on_syn(self.reassembly.rcv_nxt().max(1))
    }

    /// Takes note that a SYN-ACK left, which acknowledges the far end's SYN.
    pub(super) fn on_syn_ack_sent(&mut self, timers: &mut Timers) {
        let rcv_nxt = self.reassembly.rcv_nxt();
        self.acks.on_ack_sent(rcv_nxt, self.window.offered(rcv_nxt), timers);
    }

    pub(super) const fn window_shift(&self) -> u8 {
        self.window.shift()
    }

    pub(super) const fn is_scaled(&self) -> bool {
        self.window.is_scaled()
    }

    /// The number of bytes that a SACK option takes now. Zero if there is nothing to report.
    #[inline]
    pub(super) fn sack_option_size(&self) -> u32 {
        self.report.option_size()
    }

    /// Returns the SACK blocks of a segment that leaves, and their number. They fit into `room` bytes, and
    /// count from the far end's initial sequence number `irs`.
    pub(super) fn take_sack_blocks(&mut self, irs: SeqNum, room: u32) -> ([SackBlock; 3], u8) {
        self.report.take(irs, room)
    }

    #[inline]
    fn context(&self, rtt: &RttEstimator, now: Instant) -> AckContext {
        let rcv_nxt = self.reassembly.rcv_nxt();
        AckContext {
            now,
            rcv_nxt,
            unread: self.reassembly.unread(),
            is_half_full: self.window.is_half_full(rcv_nxt, self.reassembly.read_to()),
            offered: self.window.offered(rcv_nxt),
            buffer: self.window.full(),
            rto: rtt.rto(),
            srtt: rtt.srtt(),
        }
    }
}

/// The shortest time between two answers to segments that failed the checks (Linux:
/// net.ipv4.tcp_invalid_ratelimit).
const INVALID_RATELIMIT: Duration = Duration::from_millis(500);
