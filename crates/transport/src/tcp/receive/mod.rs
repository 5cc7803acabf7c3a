//! The receive side: what arrived, the window offered, and when to acknowledge (RFC 9293 §3.10.7.4,
//! RFC 5681 §4.2).
//!
//! ```text
//!   reassembly   RCV.NXT, what arrived beyond a gap, what was read
//!   window       the window offered;  tuning: how Linux grows it
//!   sack_report  the SACK option that leaves
//!   ack_policy   when an acknowledgement leaves;  ack_policy/linux: Linux's quick and delayed ones
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
    /// Payload of a full segment that we send.
    smss: u32,
    /// The application reads no further.
    reader_gone: bool,
    /// When a segment without data that failed the checks was last answered.
    answered: Option<Instant>,
    /// The shortest time between two such answers.
    answer_interval: Duration,
}

/// What data that arrived changes for the rest of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataOutcome {
    Nothing,
    /// All data of the far end and its FIN are here.
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
            reader_gone: false,
            answered: None,
            answer_interval,
        }
    }

    /// The far end's SYN arrived. `scaled` if both ends offered window scaling.
    pub(super) const fn on_syn(&mut self, scaled: bool) {
        self.reassembly.on_syn();
        if scaled {
            self.window.enable_scaling();
        }
    }

    /// The handshake is done, and full segments carry `smss` bytes.
    pub(super) fn on_established(&mut self, smss: u32, now: Instant) {
        self.smss = smss;
        self.acks.on_established(smss, self.window.full(), now);
        self.window.tuning_mut().on_established(smss, now);
    }

    #[inline]
    pub(super) const fn rcv_nxt(&self) -> u64 {
        self.reassembly.rcv_nxt()
    }

    /// RCV.NXT as last sent.
    #[inline]
    pub(super) const fn acked_to(&self) -> u64 {
        self.acks.acked_to()
    }

    /// True if a segment of `length` offsets from `start` on begins beyond the window or ends before RCV.NXT.
    /// A segment at the edge of a closed window may still acknowledge (tcp_sequence).
    pub(super) const fn is_outside(&self, start: u64, length: u64) -> bool {
        start.saturating_add(length) < self.reassembly.rcv_nxt() || start > self.window.edge()
    }

    /// An acknowledgement leaves with the next poll: the protocol demands it.
    pub(super) const fn demand_acknowledgement(&mut self) {
        self.acks.demand();
    }

    /// A segment failed the checks (RFC 9293 §3.10.7.4, first). If it carries anything, that was here before,
    /// or does not fit.
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
        self.report.on_duplicate(start, data_end);
        let context = self.context(rtt, now);
        self.acks.on_repeat(&context);
    }

    /// True if the application has not read everything that is in order.
    pub(super) fn has_unread(&self) -> bool {
        self.reassembly.unread() > 0
    }

    /// The application reads no further.
    pub(super) const fn on_reader_gone(&mut self) {
        self.reader_gone = true;
    }

    /// True if `segment` brings new data, and nobody reads it.
    pub(super) fn is_lost_to_reader(&self, segment: &Segment, start: u64) -> bool {
        self.reader_gone && segment.payload > 0 && start + u64::from(segment.payload) > self.rcv_nxt()
    }

    /// Arriving data was marked, and the sender's window may become very small.
    pub(super) fn on_mark(&mut self) {
        self.acks.on_mark();
    }

    /// Answers a segment without data that failed the checks, unless Linux did so a short time ago
    /// (tcp_oow_rate_limited).
    fn answer(&mut self, now: Instant) {
        if self.answered.is_none_or(|last| now.since(last) >= self.answer_interval) {
            self.answered = Some(now);
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
        let arrival = self.reassembly.on_segment(start, segment.payload, fin, edge, &mut self.report);
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
        // Without SACK the window stays while there is a gap. An acknowledgement that changes the window is
        // no duplicate (RFC 5681 §2) and does not count for fast retransmit (tcp_data_queue_ofo).
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

    /// Data arrived. The offered window grows if it `may_grow` and has room, which the far end is to know at
    /// once. A full segment measures the round trip as this end sees it.
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
        if may_grow && tuning.on_data(segment.payload, self.smss, unread) {
            self.acks.on_window_growth();
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

    /// The application reads at most `limit` bytes. Returns how many there were. If the far end `may_send`
    /// more, the read may open the window or send an acknowledgement.
    #[inline]
    pub(super) fn read(&mut self, limit: u64, may_send: bool, rtt: &RttEstimator, now: Instant) -> u64 {
        let bytes = self.reassembly.read(limit);
        if bytes > 0 && may_send {
            if self.window.tuning_mut().is_growing() {
                let (read, beyond) = (self.reassembly.read_to(), self.reassembly.span_beyond_gap());
                self.window.tuning_mut().on_read(read, beyond, now);
            }
            let context = self.context(rtt, now);
            let (rcv_nxt, read, mss) = (self.rcv_nxt(), self.reassembly.read_to(), self.acks.window_mss());
            self.acks.on_read(&context, || self.window.select(rcv_nxt, read, mss));
        }
        bytes
    }

    /// True if an acknowledgement leaves before data: the application has read what is to be acknowledged,
    /// and its answer comes later.
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
        let (rcv_nxt, read, mss) = (self.rcv_nxt(), self.reassembly.read_to(), self.acks.window_mss());
        self.acks.check(&context, || self.window.select(rcv_nxt, read, mss), timers)
    }

    /// The delayed-ACK timer expired.
    pub(super) fn on_delayed_ack_timeout(&mut self, rto: Duration) {
        self.acks.on_timeout(rto);
    }

    /// Our data leaves, and acknowledges all that has arrived.
    #[inline]
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.acks.on_data_sent(now);
    }

    /// A segment with the ACK bit leaves: it acknowledges all that has arrived. Returns its window field.
    #[inline]
    pub(super) fn acknowledge(&mut self, timers: &mut Timers) -> u16 {
        let (rcv_nxt, read) = (self.reassembly.rcv_nxt(), self.reassembly.read_to());
        let field = self.window.offer(rcv_nxt, read, self.acks.window_mss());
        self.acks.on_window_selected(self.window.is_half_full(rcv_nxt, read));
        self.acks.on_ack_sent(rcv_nxt, self.window.offered(rcv_nxt), timers);
        field
    }

    /// A SYN leaves. Returns its window field.
    pub(super) fn offer_on_syn(&mut self) -> u16 {
        self.window.offer_on_syn(self.reassembly.rcv_nxt().max(1))
    }

    /// A SYN-ACK left, which acknowledges the far end's SYN.
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

    /// Bytes that a SACK option takes now. Zero if there is nothing to report.
    #[inline]
    pub(super) fn sack_option_size(&self) -> u32 {
        self.report.option_size()
    }

    /// The SACK blocks of a segment that leaves, from the far end's initial sequence number `irs` on, in at
    /// most `room` bytes.
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

/// net.ipv4.tcp_invalid_ratelimit.
const INVALID_RATELIMIT: Duration = Duration::from_millis(500);
