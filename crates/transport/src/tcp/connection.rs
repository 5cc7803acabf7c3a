//! One end of a connection: its states (RFC 9293 §3.3.2) and its parts.

use core::mem::offset_of;
use core::ops::Range;
use std::collections::VecDeque;

use talkpath_units::{Bytes, Duration, Instant, Packets, Seed, SeqNum};

use super::ack::{AckContext, AckPolicy};
use super::buffer::SendBuffer;
use super::clock::HostClock;
use super::pacing::Pacing;
use super::receive::Receiver;
use super::recovery::Recovery;
use super::rtt::{RttEstimator, RttRule};
use super::selective::Selective;
use super::send::Sender;
use super::timer::Timers;
use super::undo::Undo;
use super::usage::{Sent, WindowUsage};
use super::window::{MAX_SHIFT, OfferRule};
use crate::cc::{CongestionControl, Controller, Counting, Growth, Window};
use crate::packet::{IPV4_HEADER, TCP_HEADER};
use crate::{CongestionControlKind, Counters, Role, Segment, Stack, TcpConfig, Transmit};

/// RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// A segment without data that has to leave first.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Syn,
    SynAck,
    /// Apart, since it is rare and large.
    Reset(Box<Segment>),
}

/// One end of a TCP connection. The passive end listens from the beginning.
///
/// The order of the fields is that of memory, here and in the largest parts: where there are thousands of connections, each arrival
/// waits for as many cache lines as what it looks at lies on. First what every segment needs, then what data and acknowledgements
/// do; what only repairs look at, and then what only a connection's beginning does, in one piece, from the end of `sender` to that of
/// `config`'s first fields; and what congestion control needs.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Tcp {
    pub(super) state: State,
    pub(super) role: Role,
    /// Whether both SYNs carried timestamps.
    pub(super) timestamps: bool,
    /// Nothing may leave before the next input: a poll need not look.
    pub(super) is_quiet: bool,
    /// Nothing may leave but an acknowledgement, which is to leave now.
    pub(super) owes_ack: bool,
    /// It was found that nothing is to leave or to be watched over but acknowledgements ([`Self::only_receives`]), and nothing has
    /// happened since but that data came.
    pub(super) is_receiver: bool,
    /// It was found that nothing is amiss and nothing special to leave ([`Self::find_plain`]), and nothing has happened since but
    /// plain segments, writes and reads.
    pub(super) is_plain: bool,
    /// The first unacknowledged segment has to be sent again whatever the window says.
    pub(super) resend_first: bool,
    /// The persist timer fired.
    pub(super) probe_due: bool,
    /// What was sent since `usage` was last told.
    pub(super) sent_since_drained: Sent,
    /// No data has arrived nor was any read since the last segment left: the next one tells the same ([`Self::acknowledge`]).
    pub(super) has_told: bool,
    /// The window field of the last segment that left.
    pub(super) told_window: u16,
    /// Our initial sequence number and the far end's.
    pub(super) iss: SeqNum,
    pub(super) irs: SeqNum,
    /// TS.Recent (RFC 7323 §4.3).
    pub(super) ts_recent: u32,
    pub(super) persist_backoff: u32,
    pub(super) timers: Timers,
    pub(super) control: Option<Control>,
    /// Repairs that left while the segment that asked for them was processed, and are not given out yet.
    pub(super) repairs: VecDeque<Transmit>,
    pub(super) receiver: Receiver,
    pub(super) acks: AckPolicy,
    pub(super) rtt: RttEstimator,
    pub(super) buffer: SendBuffer,
    pub(super) sender: Sender,
    pub(super) undo: Undo,
    pub(super) recovery: Recovery,
    /// SND.UNA when the retransmission timer last fired.
    pub(super) timed_out_at: Option<u64>,
    pub(super) config: Config,
    pub(super) selective: Selective,
    pub(super) controller: Controller,
    pub(super) usage: WindowUsage,
    pub(super) pacing: Pacing,
    pub(super) counters: Counters,
    /// The far end's MSS option.
    pub(super) far_mss: u32,
    pub(super) syn_transmissions: u32,
    pub(super) syn_sent_at: Instant,
}

/// What of [`TcpConfig`] is needed after construction: first what only a connection's beginning asks for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Config {
    pub(super) initial_window: Packets,
    pub(super) initial_ssthresh: Option<Packets>,
    /// The flow's own.
    seed: Seed,
    /// The MSS option's value.
    pub(super) mss: u32,
    pub(super) stack: Stack,
    pub(super) cc: CongestionControlKind,
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    pub(super) limited_transmit: bool,
    pub(super) cwnd_validation: bool,
    pub(super) growth: Growth,
    /// Congestion control sets `cwnd` by itself ([`CongestionControl::steers`]).
    pub(super) steers: bool,
}

impl Tcp {
    /// One end of a connection; see [`crate::AnyTransport::new`].
    ///
    /// The MSS is the config's, or the path's MTU less the two headers if that is smaller. With timestamps a full
    /// segment carries 12 bytes less than the MSS (RFC 6691 §2).
    pub fn new(
        config: &TcpConfig,
        role: Role,
        path_mtu: Bytes,
        seed: Seed,
        receive_buffer: Option<Bytes>,
    ) -> Self {
        let name = match role {
            Role::Active => "tcp/iss/active",
            Role::Passive => "tcp/iss/passive",
        };
        let path_mss = path_mtu.get().saturating_sub(IPV4_HEADER + TCP_HEADER);
        let mss =
            config.mss.map_or(path_mss, |mss| mss.get().min(path_mss)).clamp(1, u64::from(u16::MAX)) as u32;
        let offer_rule = if config.stack == Stack::Linux { OfferRule::Linux } else { OfferRule::Rfc9293 };
        let cc = match config.cc.unwrap_or(CongestionControlKind::Cubic) {
            // The kernel's "reno" is a window's growth and reduction; it repairs losses as RFC 6582 does.
            CongestionControlKind::Reno if config.stack == Stack::Linux => CongestionControlKind::NewReno,
            kind => kind,
        };
        let clock = HostClock::new(config.ticks, seed, role);
        let kept = Config {
            stack: config.stack,
            cc,
            mss,
            timestamps: config.timestamps,
            sack: config.sack,
            limited_transmit: config.limited_transmit,
            cwnd_validation: config.cwnd_validation,
            growth: config.growth,
            initial_window: config.initial_window,
            initial_ssthresh: config.initial_ssthresh,
            steers: cc == CongestionControlKind::Bbr,
            seed,
        };
        Self {
            role,
            state: match role {
                Role::Active => State::Closed,
                Role::Passive => State::Listen,
            },
            config: kept,
            iss: SeqNum::new(seed.stream(name).bits() as u32),
            irs: SeqNum::default(),
            far_mss: mss,
            timestamps: false,
            ts_recent: 0,
            syn_sent_at: Instant::ZERO,
            syn_transmissions: 0,
            control: None,
            sender: Sender::new(config.nagle),
            receiver: Receiver::new(offer_rule, receive_buffer.unwrap_or(config.rwnd)),
            acks: AckPolicy::new(config.delayed_ack, config.timer_granularity, clock),
            rtt: RttEstimator::new(rtt_rule(config.stack), config.timer_granularity, config.min_rto)
                .with_clock(clock),
            recovery: Recovery::new(),
            undo: Undo::default(),
            selective: Selective::new(config.stack, config.tlp),
            controller: kept.controller(mss, kept.initial_window),
            usage: WindowUsage::default(),
            pacing: Pacing::new(config.pacing || kept.steers, config.stack == Stack::Linux),
            buffer: SendBuffer::new(config, kept.steers),
            timers: Timers::new(),
            resend_first: false,
            repairs: VecDeque::new(),
            sent_since_drained: Sent::Nothing,
            has_told: false,
            told_window: 0,
            is_quiet: false,
            is_receiver: false,
            is_plain: false,
            owes_ack: false,
            probe_due: false,
            persist_backoff: 0,
            timed_out_at: None,
            counters: Counters::default(),
        }
    }

    /// Begins at the sequence number `iss` and not at the seed's.
    #[must_use]
    pub const fn with_initial_sequence(mut self, iss: SeqNum) -> Self {
        self.iss = iss;
        self
    }

    /// The bytes that most data in order and the acknowledgement of it look at, for who wants to ask memory for them beforehand.
    pub const AT_RECEIVING: Range<usize> = 0..offset_of!(Self, sender) + Sender::AT_RECEIVING;
    /// The same of an acknowledgement while nothing is amiss, and of what it lets go.
    pub const AT_SENDING: [Range<usize>; 3] = [
        0..offset_of!(Self, receiver) + 1,
        offset_of!(Self, acks)..offset_of!(Self, sender) + Sender::AT_PLAIN_SENDING,
        offset_of!(Self, config) + offset_of!(Config, mss)..offset_of!(Self, counters) + 1,
    ];
    /// What an acknowledgement looks at besides while something [`Self::is_amiss`].
    pub const AT_REPAIR: Range<usize> =
        offset_of!(Self, sender) + Sender::AT_PLAIN_SENDING..offset_of!(Self, config);

    /// Whether it is not known that nothing is lost, due, closing or to be repaired.
    #[inline]
    pub const fn is_amiss(&self) -> bool {
        !self.is_plain
    }

    /// Where in memory lies what a step looks at and is not in here, for who wants to ask for it beforehand.
    #[inline]
    pub fn places(&self) -> [*const u8; 2] {
        self.sender.places()
    }

    /// Whether an acknowledgement may open the congestion window. Without validation each does, as long as the window is below
    /// the largest that a window field could offer (RFC 9293 §3.1, RFC 7323 §2.3; BSD's TCP_MAXWIN << snd_scale).
    pub(super) fn may_grow(&self) -> bool {
        let window = self.controller.window();
        if self.config.cwnd_validation {
            return self.usage.is_limited(window);
        }
        let smss = match window.counting() {
            Counting::Bytes { .. } => 1,
            Counting::Packets => u64::from(self.sender.smss()),
        };
        let scale = if self.config.timestamps { MAX_SHIFT } else { 0 };
        window.cwnd().saturating_mul(smss) < u64::from(u16::MAX) << scale
    }

    /// In flight, in the controller's unit.
    #[inline(always)]
    pub(super) fn flight_size(&self) -> u64 {
        match self.controller.window().counting() {
            Counting::Bytes { .. } => self.sender.flight_bytes(),
            Counting::Packets => self.sender.flight_segments(),
        }
    }

    /// What a loss halves. RFC 5681 §3.1 eq. 4: FlightSize, without the `limited` that limited transmit sent (§3.2
    /// step 2). BSD (tcp_input, tcp_timers): the smaller of `cwnd` and the offered window, in whole pairs of
    /// segments. Limited transmit goes beyond `cwnd`, so BSD's base never contains it.
    pub(super) fn loss_base(&self, limited: u64) -> u64 {
        let window = self.controller.window();
        let flight = self.flight_size().saturating_sub(limited);
        if self.config.stack != Stack::BsdReno {
            return flight;
        }
        let pair = 2 * window.counting().smss();
        match window.counting() {
            Counting::Bytes { .. } => window.cwnd().min(self.sender.offered_bytes()) / pair * pair,
            Counting::Packets => flight,
        }
    }

    #[inline]
    pub(super) fn ack_context(&mut self, now: Instant) -> AckContext {
        AckContext { selectable: self.selectable(), ..self.arrival_context(now) }
    }

    /// The window that would be offered now.
    #[inline]
    pub(super) fn selectable(&mut self) -> u64 {
        let (rcv_nxt, read) = (self.receiver.rcv_nxt(), self.receiver.read_to());
        self.receiver.window.select(rcv_nxt, read, self.acks.window_mss())
    }

    /// As [`Self::ack_context`] where nobody looks at `selectable`, which takes the longest to find: at an arrival, and
    /// while everything is read.
    #[inline]
    pub(super) fn arrival_context(&self, now: Instant) -> AckContext {
        let (rcv_nxt, window) = (self.receiver.rcv_nxt(), &self.receiver.window);
        AckContext {
            now,
            rcv_nxt,
            unread: self.receiver.unread(),
            offered: window.offered(rcv_nxt),
            selectable: 0,
            buffer: window.full(),
            rto: self.rtt.rto(),
            srtt: self.rtt.srtt(),
        }
    }

    /// Something comes from outside: a poll has to look, and what was found of the send buffer may no longer hold.
    #[inline]
    pub(super) const fn stir(&mut self) {
        self.is_receiver = false;
        self.stir_by_packet();
    }

    /// As [`Self::stir`]; whether there is something to send is decided by what the packet is.
    #[inline]
    pub(super) const fn stir_by_packet(&mut self) {
        self.is_quiet = false;
        self.owes_ack = false;
        self.buffer.forget_full();
    }

    /// Takes `size` bytes of the application, for which there is room.
    #[inline]
    pub(super) fn take(&mut self, size: Bytes) {
        if self.config.steers {
            self.note_app_limit();
        }
        self.stir();
        self.sender.write(size.get());
        self.buffer.on_write(self.sender.queue());
    }

    /// The connection is gone: nothing more will happen.
    pub(super) fn shut(&mut self) {
        self.state = State::Closed;
        self.timers.clear_all();
    }
}

impl Config {
    /// A fresh controller for segments of `smss` bytes.
    pub(super) fn controller(&self, smss: u32, initial: Packets) -> Controller {
        let counting = match (self.stack, self.cc) {
            (Stack::Linux, _) | (_, CongestionControlKind::Cubic | CongestionControlKind::Bbr) => {
                Counting::Packets
            }
            (Stack::Rfc | Stack::BsdReno, _) => Counting::Bytes { smss },
        };
        let window = Window::new(counting, initial, self.initial_ssthresh).with_growth(self.growth);
        Controller::new(self.cc, window, self.seed)
    }
}

const fn rtt_rule(stack: Stack) -> RttRule {
    match stack {
        Stack::Linux => RttRule::Linux,
        Stack::Rfc => RttRule::Rfc6298,
        Stack::BsdReno => RttRule::Ticks,
    }
}

/// The value of the timestamp clock: milliseconds, as Linux has it (RFC 7323 §5.4 allows 1 ms to 1 s).
pub(super) const fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / TIMESTAMP_TICK.as_nanos()) as u32
}

pub(super) const TIMESTAMP_TICK: Duration = Duration::from_millis(1);
