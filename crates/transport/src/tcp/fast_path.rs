//! The contract of [`Transport`], and the shortcuts for the segments that nearly all traffic consists of
//! (header prediction: Jacobson, "4BSD header prediction", 1990; tcp_rcv_established in Linux).
//!
//! ```text
//!   Tcp { core, fast }     core: the connection, without shortcuts
//!                          fast: the proof, what is known of the core's present state
//!
//!   core_mut() ──► fast = None      the access to the core for all other code
//! ```
//!
//! A [`FastPath`] is a proof about the core. The core is *plain* if nothing is lost, repaired, probed, paced
//! or closing. It is *quiet* if no segment leaves before the next input. All code outside of this file
//! changes the core by `core_mut`, which clears the proof. The shortcuts of this file change the core without
//! clearing the proof. They do what the core would do, without the work that the proof makes needless, and
//! leave the proof true (a debug build checks that). There are four shortcuts:
//!
//! - data that is expected next, or that lies beyond a gap, at an end with nothing in flight;
//! - an acknowledgement of whole segments that were sent once;
//! - a write or a read, which only changes whether the next poll has something to send;
//! - full segments of new data, which differ in their sequence number alone.
//!
//! With the feature `no-fast-path` no proof is ever found, and every record must be the same: `cargo test -p
//! talkpath-sim --features no-fast-path --test digests`.

use talkpath_config::{Role, TcpConfig};
use talkpath_units::{Bytes, Ecn, Instant, Seed, SeqNum};
use talkpath_wire::{
    Counters, Delivery, Flags, Levels, Message, Observation, Outlet, Packet, Refused, Segment, Transmit,
    Transport,
};

use super::core::Core;
use super::outbox::Polled;
use super::receive::DataOutcome;
use super::recovery::{ArmedBy, RecoveryState, Transmission};
use super::send::{BlockedBy, BurstDecision, BurstKind, NewSegment};
use super::timers::TimerSlot;
use crate::cc::{Ack, RttSample};

/// One end of a TCP connection. The passive end listens from the beginning.
#[derive(Clone, Debug)]
pub struct Tcp {
    core: Core,
    fast: Option<FastPath>,
}

/// The proof about a core. False means that nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FastPath {
    /// True if the connection is established, and nothing is lost, repaired, probed, paced or closing.
    is_plain: bool,
    /// True if no segment leaves before the next input.
    is_quiet: bool,
}

impl Tcp {
    /// One end of a connection; see [`crate::AnyTransport::new`].
    ///
    /// The MSS is the config's, or the path's MTU less the two headers if that is smaller. With timestamps a
    /// full segment carries 12 bytes less than the MSS (RFC 6691 §2).
    pub fn new(
        config: &TcpConfig,
        role: Role,
        path_mtu: Bytes,
        seed: Seed,
        receive_buffer: Option<Bytes>,
    ) -> Self {
        Self { core: Core::new(config, role, path_mtu, seed, receive_buffer), fast: None }
    }

    /// Returns this end with the initial sequence number `iss`, in place of the number that the seed gives.
    #[must_use]
    pub const fn with_initial_sequence(mut self, iss: SeqNum) -> Self {
        self.core_mut().set_initial_sequence(iss);
        self
    }

    /// Returns the core, to be changed, and clears the proof.
    #[inline]
    const fn core_mut(&mut self) -> &mut Core {
        self.fast = None;
        &mut self.core
    }

    /// True if the core is plain, by the proof or by a look at the core.
    #[inline]
    fn is_plain(&self) -> bool {
        let is_plain = match self.fast {
            Some(FastPath { is_plain: true, .. }) => true,
            _ => FastPath::is_plain(&self.core),
        };
        debug_assert!(!is_plain || FastPath::is_plain(&self.core), "the proof is stale");
        is_plain
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        matches!(self.fast, Some(FastPath { is_quiet: true, .. }))
    }

    /// Takes note that the next poll may have something to send, because a shortcut changed the core.
    #[inline]
    const fn wake(&mut self) {
        if let Some(fast) = &mut self.fast {
            fast.is_quiet = false;
        }
    }
}

impl FastPath {
    /// The proof that no segment leaves before the next input.
    const QUIET: Option<Self> = if IS_OFF { None } else { Some(Self { is_plain: false, is_quiet: true }) };

    fn is_plain(core: &Core) -> bool {
        !IS_OFF
            && core.recovery.is_plain(&core.scoreboard)
            && core.state.is_established()
            && !core.sender.is_closing()
            && !core.sender.is_persisting(&core.timers)
            && !core.sender.pacing().is_enabled()
            && !core.congestion.is_rate_based()
            && !core.handshake.has_pending()
            && core.outbox.is_empty()
            && !core.receiver.has_fin()
    }
}

/// The shortcuts. Each shortcut takes a plain core and leaves it plain. If it returns false, the caller gives
/// the rest of the work to the core.
impl FastPath {
    /// Processes a segment that has arrived.
    #[inline]
    fn receive(core: &mut Core, segment: &Segment, codepoint: Ecn, now: Instant) -> bool {
        let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).with(Flags::ACK);
        let control = control.with(Flags::ECE).with(Flags::CWR);
        let start = core.handshake.far_offset(segment.seq, core.receiver.rcv_nxt());
        if !segment.flags.are_just(Flags::ACK, control) || segment.sack_count > 0 {
            return false;
        }
        if segment.payload > 0 {
            core.ecn.is_ordinary(codepoint) && Self::receive_data(core, segment, start, now)
        } else {
            start == core.receiver.rcv_nxt() && Self::receive_ack(core, segment, start, now)
        }
    }

    /// Takes data that is expected next, or that lies beyond a gap, with nothing in flight that the segment
    /// could acknowledge.
    fn receive_data(core: &mut Core, segment: &Segment, start: u64, now: Instant) -> bool {
        let snd_una = core.scoreboard.snd_una();
        let is_applicable = core.scoreboard.is_empty()
            && start >= core.receiver.rcv_nxt()
            && !core.receiver.is_outside(start, u64::from(segment.payload))
            && segment.ack == core.handshake.seq(snd_una)
            && !core.timestamps.is_old_duplicate(segment);
        if is_applicable {
            core.timestamps.note(segment, start, core.receiver.acked_to());
            core.sender.update_window(segment.window, start, snd_una);
            let has_sack = core.recovery.has_sack();
            let outcome = core.receiver.on_data(segment, start, has_sack, &core.timestamps, &core.rtt, now);
            debug_assert_eq!(outcome, DataOutcome::Nothing, "a plain receiver knows of no FIN");
        }
        is_applicable
    }

    /// Processes an acknowledgement of whole segments that were sent once: it measures round trips, restarts
    /// the timer (RFC 6298 §5.2 and §5.3), and moves `cwnd`.
    fn receive_ack(core: &mut Core, segment: &Segment, start: u64, now: Instant) -> bool {
        if core.timestamps.is_old_duplicate(segment) {
            return false;
        }
        let ack = core.handshake.own_offset(segment.ack, core.scoreboard.snd_una());
        let has_sack = core.recovery.has_sack();
        let was_limited = core.congestion.may_grow(core.sender.smss());
        let Some(run) = core.scoreboard.take_plain_run(ack) else { return false };
        core.timestamps.note(segment, start, core.receiver.acked_to());
        core.sender.update_window(segment.window, start, ack);
        let snd_max = core.scoreboard.snd_max();
        let rtt = core.rtt.measure(run.first_sent, now);
        core.rtt.on_sample(rtt, ack, snd_max);
        let latest = if has_sack { now.since(run.last_sent) } else { rtt };
        core.congestion.control_mut().on_rtt(latest, RttSample { now, snd_una: ack, snd_max });
        let newest = Transmission { sent_at: run.last_sent, end: ack };
        core.recovery.on_plain_progress(latest, newest, now);
        if core.scoreboard.is_empty() {
            core.timers.clear(TimerSlot::Loss);
        } else if has_sack {
            let (recovery, mut context) = core.recovery_context(now);
            recovery.arm_loss_timer(ArmedBy::Progress, &mut context);
        } else {
            core.arm_retransmission(now);
        }
        // With SACK congestion control learns of the round trip before it is asked whether the window may
        // grow.
        let cwnd_limited = if has_sack { core.congestion.may_grow(core.sender.smss()) } else { was_limited };
        let acked = core.congestion.amount(run.bytes, run.segments);
        let flight_size = core.congestion.in_flight(&core.scoreboard);
        core.congestion.control_mut().on_ack(Ack { acked, flight_size, cwnd_limited, now });
        core.sender.on_ack();
        true
    }

    /// Sends everything that may leave. Returns false if the core has to decide on the remaining segments.
    #[inline]
    fn transmit(core: &mut Core, now: Instant, out: &mut impl Outlet) -> bool {
        debug_assert!(core.recovery.state() == RecoveryState::Open, "nothing is repaired");
        if core.scoreboard.is_empty() {
            if core.sender.unsent(&core.scoreboard) > 0 {
                return false;
            }
            core.leave_room_for_options();
        } else if core.receiver.acknowledges_first() || !Self::transmit_segments(core, now, out) {
            return false;
        }
        let is_ack_due = core.receiver.decide_acknowledgement(&core.rtt, &mut core.timers, now);
        if is_ack_due {
            out.take(core.pure_ack(now));
        }
        core.check_buffer();
        true
    }

    /// Sends full segments one after the other. They differ in their sequence number. The last segment of
    /// the written data also has PSH. Returns false if less than a full segment is left, or if SACK blocks
    /// have to be reported.
    fn transmit_segments(core: &mut Core, now: Instant, out: &mut impl Outlet) -> bool {
        if core.has_sack_option() {
            return false;
        }
        core.leave_room_for_options();
        let full = core.sender.full_payload();
        let mut header = None;
        loop {
            let unsent = core.sender.unsent(&core.scoreboard);
            if unsent == 0 {
                core.end_burst(BlockedBy::NoData, now);
                return true;
            }
            if unsent.min(core.sender.usable(&core.scoreboard)) < u64::from(full) {
                return false;
            }
            let in_burst = core.sender.pacing().continues_burst(BurstKind::NewData);
            if !in_burst && let BurstDecision::Wait(blocked) = core.begin_burst(full, false, now) {
                core.end_burst(blocked, now);
                return true;
            }
            let sent = core.send_decided(NewSegment { payload: full, fin: false, in_burst }, now);
            core.sender.pacing_mut().on_sent();
            match &mut header {
                None => {
                    let first = core.transmit_data(sent, now);
                    if let Packet::Tcp(segment) = &first.packet {
                        header = Some(*segment);
                    }
                    out.take(first);
                }
                Some(segment) => out.take(core.transmit_next(segment, &sent)),
            }
        }
    }
}

/// True if no proof is ever found.
const IS_OFF: bool = cfg!(feature = "no-fast-path");

impl Transport for Tcp {
    fn open(&mut self, _now: Instant) {
        self.core_mut().open();
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.core.is_open()
    }

    fn handle_message(&mut self, message: Message, _now: Instant) -> Result<(), Refused> {
        // A write changes nothing that the proof says of the core, but there may be something to send.
        self.wake();
        self.core.write(message.size)
    }

    fn handle_part(&mut self, remaining: Bytes, written: Bytes) -> Bytes {
        self.wake();
        self.core.write_part(remaining, written)
    }

    fn handle_packet(&mut self, packet: &Packet, ecn: Ecn, now: Instant) {
        let Packet::Tcp(segment) = packet else { return };
        if self.is_plain() && FastPath::receive(&mut self.core, segment, ecn, now) {
            self.fast = Some(FastPath { is_plain: true, is_quiet: false });
        } else {
            self.core_mut().on_segment(segment, ecn, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.core_mut().handle_timeout(now);
    }

    fn shutdown(&mut self, _now: Instant) {
        self.core_mut().shutdown();
    }

    fn close(&mut self, now: Instant) {
        self.core_mut().close(now);
    }

    #[inline]
    fn may_transmit(&self) -> bool {
        !self.is_quiet()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.is_quiet() {
            return None;
        }
        match self.core_mut().next_transmit(now) {
            Polled::Next(transmit) => Some(transmit),
            Polled::Last(transmit) => {
                self.fast = FastPath::QUIET;
                Some(transmit)
            }
            Polled::Nothing => {
                self.fast = FastPath::QUIET;
                None
            }
        }
    }

    #[inline]
    fn transmit_all(&mut self, now: Instant, out: &mut impl Outlet) {
        if self.is_quiet() {
            return;
        }
        if let Some(fast) = &mut self.fast
            && fast.is_plain
            && FastPath::transmit(&mut self.core, now, out)
        {
            fast.is_quiet = true;
            return;
        }
        let core = self.core_mut();
        loop {
            match core.next_transmit(now) {
                Polled::Next(transmit) => out.take(transmit),
                Polled::Last(transmit) => break out.take(transmit),
                Polled::Nothing => break,
            }
        }
        self.fast = FastPath::QUIET;
    }

    fn poll_delivery(&mut self, limit: Bytes, now: Instant) -> Option<Delivery> {
        // A read changes nothing that the proof says of the core, but an acknowledgement may be due.
        let bytes = self.core.read(limit, now);
        if self.core.receiver.has_acknowledgement_due() {
            self.wake();
        }
        (bytes > Bytes::ZERO).then_some(Delivery::Stream { bytes })
    }

    /// Always `None`. Data that does not fit into the window is not acknowledged, so the far end sends it
    /// again.
    fn poll_dropped(&mut self) -> Option<u64> {
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.core.timers.next()
    }

    #[inline]
    fn writable(&self) -> Bytes {
        self.core.writable()
    }

    fn takes(&self, size: Bytes) -> bool {
        self.core.takes(size)
    }

    fn observe(&self) -> Observation {
        self.core.observe()
    }

    fn levels(&self) -> Levels {
        self.core.levels()
    }

    #[inline]
    fn windows_key(&self) -> (u64, u64) {
        self.core.windows_key()
    }

    #[inline]
    fn send_buffer(&self) -> Bytes {
        self.core.send_buffer()
    }

    fn counters(&self) -> Counters {
        self.core.counters()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talkpath_units::Duration;

    use super::*;
    use talkpath_config::Stack;

    /// Two ends, and what is on its way between them: 20 ms each way, each 61st packet is lost, each 47th is
    /// marked if it is ECN-capable.
    struct Pair {
        ends: [Tcp; 2],
        now: Instant,
        in_flight: BTreeMap<(Instant, u64), (usize, Packet, Ecn)>,
        sent: u64,
        shortcuts: u64,
    }

    #[derive(Debug)]
    enum Input {
        Packet(Packet, Ecn),
        Timeout,
        Read,
        Write(Bytes),
    }

    impl Input {
        fn give(&self, tcp: &mut Tcp, now: Instant) {
            match self {
                Self::Packet(packet, ecn) => tcp.handle_packet(packet, *ecn, now),
                Self::Timeout => tcp.handle_timeout(now),
                Self::Read => {
                    tcp.poll_delivery(READ, now);
                }
                &Self::Write(size) => {
                    tcp.handle_message(Message { seq: 0, size, due: now }, now).expect("there is room");
                }
            }
        }

        fn give_core(&self, core: &mut Core, now: Instant) {
            match self {
                Self::Packet(Packet::Tcp(segment), ecn) => core.on_segment(segment, *ecn, now),
                Self::Packet(..) => {}
                Self::Timeout => core.handle_timeout(now),
                Self::Read => {
                    core.read(READ, now);
                }
                &Self::Write(size) => core.write(size).expect("there is room"),
            }
        }
    }

    /// Less than the receive window, so that data waits.
    const READ: Bytes = Bytes::new(3000);

    impl Pair {
        fn new(stack: Stack, ecn: bool) -> Self {
            let config = TcpConfig { ecn, ..TcpConfig::preset(stack, false) };
            let end = |role| Tcp::new(&config, role, Bytes::new(1500), Seed::new(5), None);
            let mut ends = [end(Role::Active), end(Role::Passive)];
            ends[0].open(Instant::ZERO);
            Self { ends, now: Instant::ZERO, in_flight: BTreeMap::new(), sent: 0, shortcuts: 0 }
        }

        /// Gives an input to an end, and to a copy of its core, which knows no shortcuts.
        fn input(&mut self, at: usize, input: &Input) {
            let now = self.now;
            let mut core = self.ends[at].core.clone();
            input.give(&mut self.ends[at], now);
            self.shortcuts += u64::from(self.ends[at].fast.is_some());
            let mut left = Vec::new();
            self.ends[at].transmit_all(now, &mut |transmit: Transmit| left.push(transmit));
            input.give_core(&mut core, now);
            let mut expected = Vec::new();
            loop {
                match core.next_transmit(now) {
                    Polled::Next(transmit) => expected.push(transmit),
                    Polled::Last(transmit) => break expected.push(transmit),
                    Polled::Nothing => break,
                }
            }
            assert_eq!(left, expected, "{input:?} at {now:?}");
            // What a full segment carries beside SACK blocks is worked out anew before one leaves.
            let mut fast = self.ends[at].core.clone();
            fast.leave_room_for_options();
            core.leave_room_for_options();
            assert_eq!(format!("{fast:?}"), format!("{core:?}"), "{input:?} at {now:?}");
            for transmit in left {
                self.sent += 1;
                if !self.sent.is_multiple_of(61) {
                    let arrival = (now + Duration::from_millis(20), self.sent);
                    let is_marked = transmit.ecn == Ecn::Ect0 && self.sent.is_multiple_of(47);
                    let ecn = if is_marked { Ecn::Ce } else { transmit.ecn };
                    self.in_flight.insert(arrival, (1 - at, transmit.packet, ecn));
                }
            }
        }

        fn step(&mut self) {
            let timer = |at: usize| self.ends[at].poll_timeout().map(|deadline| (deadline, at));
            let timeout = [0, 1].into_iter().filter_map(timer).min();
            let arrival = self.in_flight.first_key_value().map(|(&(at, _), _)| at);
            match (arrival, timeout) {
                (Some(arrival), timeout) if timeout.is_none_or(|(deadline, _)| arrival < deadline) => {
                    self.now = arrival;
                    let (_, (to, packet, ecn)) = self.in_flight.pop_first().expect("it is there");
                    self.input(to, &Input::Packet(packet, ecn));
                    self.input(to, &Input::Read);
                }
                (_, Some((deadline, at))) => {
                    self.now = self.now.max(deadline);
                    self.input(at, &Input::Timeout);
                }
                _ => {}
            }
            let size = self.ends[0].writable().min(Bytes::new(20_000));
            if size > Bytes::ZERO {
                self.input(0, &Input::Write(size));
            }
        }
    }

    /// In everything that is known of the connection, and in each segment that leaves.
    #[test]
    fn the_shortcuts_do_what_the_core_would_do() {
        let stacks = [Stack::Linux, Stack::Rfc, Stack::BsdReno];
        for (stack, ecn) in stacks.into_iter().flat_map(|stack| [(stack, false), (stack, true)]) {
            let mut pair = Pair::new(stack, ecn);
            pair.input(0, &Input::Read);
            for _ in 0..3000 {
                pair.step();
            }
            let counters = pair.ends[0].counters();
            assert!(counters.data_packets > 1000 && counters.retransmissions > 5, "{counters:?}");
            assert!(IS_OFF || pair.shortcuts > 1000, "{stack:?}: {}", pair.shortcuts);
        }
    }
}
