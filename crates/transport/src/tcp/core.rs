//! One end of a connection: its parts, and the calls of the application. Arriving segments are processed in
//! `input`, and segments leave in `output`.

use talkpath_config::{Role, TcpConfig};
use talkpath_units::{Bytes, Instant, Seed, SeqNum};
use talkpath_wire::{Counters, HoldClock, Levels, Observation, Refused};

use super::clock::HostClock;
use super::congestion::Congestion;
use super::ecn::EcnState;
use super::handshake::Handshake;
use super::outbox::Outbox;
use super::receive::Receiver;
use super::recovery::{Context, Recovery, Scoreboard};
use super::rtt::RttEstimator;
use super::send::Sender;
use super::state::{ConnectionState, State};
use super::timers::{TimerKind, Timers};
use super::timestamps::Timestamps;
use crate::cc::Counting;

/// One end of a connection, without the shortcuts of `fast_path`.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) state: ConnectionState,
    pub(super) handshake: Handshake,
    pub(super) timestamps: Timestamps,
    pub(super) ecn: EcnState,
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    pub(super) scoreboard: Scoreboard,
    pub(super) recovery: Recovery,
    pub(super) congestion: Congestion,
    pub(super) rtt: RttEstimator,
    pub(super) timers: Timers,
    pub(super) outbox: Outbox,
    /// How long unsent data was held back.
    pub(super) held: HoldClock,
}

impl Core {
    pub(super) fn new(
        config: &TcpConfig,
        role: Role,
        path_mtu: Bytes,
        seed: Seed,
        receive_buffer: Option<Bytes>,
    ) -> Self {
        let clock = HostClock::new(config.ticks, seed, role);
        let handshake = Handshake::new(config, role, path_mtu, seed);
        let congestion = Congestion::new(config, handshake.mss(), seed);
        Self {
            state: ConnectionState::new(role),
            timestamps: Timestamps::new(config.timestamps),
            ecn: EcnState::new(config.ecn, config.stack),
            receiver: Receiver::new(config, receive_buffer.unwrap_or(config.rwnd), clock),
            sender: Sender::new(config, congestion.is_rate_based()),
            scoreboard: Scoreboard::new(),
            recovery: Recovery::new(config),
            rtt: RttEstimator::new(config.stack, config.timer_granularity, config.min_rto, clock),
            timers: Timers::new(),
            outbox: Outbox::default(),
            held: HoldClock::default(),
            handshake,
            congestion,
        }
    }

    pub(super) const fn set_initial_sequence(&mut self, iss: SeqNum) {
        self.handshake.set_initial_sequence(iss);
    }

    /// Returns recovery, and the other parts of the connection that recovery reads and changes.
    #[inline]
    pub(super) const fn recovery_context(&mut self, now: Instant) -> (&mut Recovery, Context<'_>) {
        let context = Context {
            scoreboard: &mut self.scoreboard,
            congestion: &mut self.congestion,
            rtt: &mut self.rtt,
            timers: &mut self.timers,
            ecn: &mut self.ecn,
            sender: &self.sender,
            now,
        };
        (&mut self.recovery, context)
    }

    pub(super) fn open(&mut self) {
        if self.state.get() == State::Closed && self.handshake.may_open() {
            self.state.on_open();
            self.handshake.request_syn();
        }
    }

    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        self.state.takes_writes() && !self.sender.is_closing()
    }

    /// Takes a message as a whole (see `send/buffer.rs`). No message is too large for a stream.
    ///
    /// # Errors
    /// [`Refused::NotOpen`] if the application may not write, [`Refused::NoRoom`] if the message does not fit
    /// into the send buffer now.
    pub(super) fn write(&mut self, size: Bytes) -> Result<(), Refused> {
        if !self.is_open() {
            return Err(Refused::NotOpen);
        }
        if !self.sender.fits(size, &self.scoreboard) {
            self.sender.on_refused();
            return Err(Refused::NoRoom);
        }
        self.take(size);
        Ok(())
    }

    /// Takes as much of the `remaining` bytes of a message as there is room for, and returns the amount.
    /// `written` bytes of the message were taken before.
    pub(super) fn write_part(&mut self, remaining: Bytes, written: Bytes) -> Bytes {
        if !self.is_open() {
            return Bytes::ZERO;
        }
        let burst = u64::from(self.pace().max_burst()) * u64::from(self.sender.full_payload());
        let size = remaining.min(self.sender.part(burst, written, &self.scoreboard));
        if size > Bytes::ZERO {
            self.take(size);
        }
        size
    }

    fn take(&mut self, size: Bytes) {
        if self.congestion.is_rate_based() {
            let repairs_wait = self.scoreboard.has_retransmission() && !self.recovery.tries_new_data_first();
            let unsent = self.sender.unsent(&self.scoreboard);
            self.congestion.note_app_limit(unsent, self.sender.smss(), repairs_wait, &self.scoreboard);
        }
        self.sender.write(size, &self.scoreboard);
    }

    /// Gives the application at most `limit` bytes, and returns their number.
    #[inline]
    pub(super) fn read(&mut self, limit: Bytes, now: Instant) -> Bytes {
        Bytes::new(self.receiver.read(limit.get(), self.state.may_receive(), &self.rtt, now))
    }

    /// Closes both directions, because the application reads and writes no further. If data was not read, or
    /// arrives later, a RST tells the far end (RFC 9293 §3.6.1; Linux: tcp_close). Otherwise a FIN follows
    /// the data that was written.
    pub(super) fn close(&mut self, now: Instant) {
        if !self.state.is_unsynchronized() && self.receiver.has_unread() {
            let timestamps = self.timestamps.option(now);
            let (snd_max, rcv_nxt) = (self.scoreboard.snd_max(), self.receiver.rcv_nxt());
            self.handshake.request_active_reset(snd_max, rcv_nxt, timestamps);
            self.abort();
            return;
        }
        self.receiver.on_reader_closed();
        self.shutdown();
    }

    /// Has a FIN follow the data that was written, because the application writes no further.
    pub(super) fn shutdown(&mut self) {
        match self.state.get() {
            State::Listen | State::SynSent => {
                self.handshake.cancel();
                self.abort();
            }
            State::SynReceived | State::Established | State::CloseWait => self.sender.queue_fin(),
            State::Closed
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
    }

    /// Ends the connection at once. No timer runs any longer.
    pub(super) fn abort(&mut self) {
        self.state.on_aborted();
        self.timers.clear_all();
        self.outbox.clear();
    }

    /// Takes note that our FIN is acknowledged.
    pub(super) fn on_fin_acked(&mut self) {
        self.state.on_fin_acked();
        if self.state.get() == State::Closed {
            self.timers.clear_all();
        }
    }

    /// Processes all timers that have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(kind) = self.timers.take_expired(now) {
            self.on_timer(kind, now);
        }
    }

    fn on_timer(&mut self, kind: TimerKind, now: Instant) {
        match kind {
            TimerKind::Retransmission => self.on_retransmission_timeout(now),
            TimerKind::LossProbe => {
                let (recovery, mut context) = self.recovery_context(now);
                recovery.on_probe_timeout(&mut context);
            }
            TimerKind::Reordering => {
                let (recovery, mut context) = self.recovery_context(now);
                recovery.on_reordering_timeout(&mut context);
            }
            TimerKind::Persist => self.sender.on_persist_timeout(),
            TimerKind::DelayedAck => self.receiver.on_delayed_ack_timeout(self.rtt.rto()),
            // The next poll sends the segment that waited.
            TimerKind::Pacing => {}
        }
    }

    /// Has the SYN, the SYN-ACK or the first unacknowledged data sent again, and doubles the RTO (RFC 6298
    /// §5.4 to §5.6).
    fn on_retransmission_timeout(&mut self, now: Instant) {
        let backs_off = match self.state.get() {
            State::SynSent => {
                self.handshake.request_syn();
                self.handshake.syn_timeout_backs_off()
            }
            State::SynReceived => {
                self.handshake.request_syn_ack();
                true
            }
            _ if self.scoreboard.is_empty() => return,
            _ => {
                let (recovery, mut context) = self.recovery_context(now);
                return recovery.on_retransmission_timeout(&mut context);
            }
        };
        self.recovery.on_handshake_timeout();
        if backs_off {
            self.rtt.back_off();
        }
    }

    /// Starts the retransmission timer. It expires after an RTO.
    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        self.timers.set(TimerKind::Retransmission, self.rtt.deadline(now));
    }

    #[inline]
    pub(super) fn writable(&self) -> Bytes {
        if self.is_open() { self.sender.writable(&self.scoreboard) } else { Bytes::ZERO }
    }

    pub(super) fn takes(&self, size: Bytes) -> bool {
        let writable = self.writable();
        writable >= size || (writable > Bytes::ZERO && !self.sender.holds(size, &self.scoreboard))
    }

    pub(super) fn observe(&self) -> Observation {
        let Levels { cwnd, window, send_buffer } = self.levels();
        Observation {
            cwnd,
            window,
            ssthresh: Some(self.congestion.window().ssthresh_packets()),
            srtt: self.rtt.srtt(),
            rto: Some(self.rtt.rto()),
            pacing_rate: self.congestion.pacing_rate(),
            bottleneck_rate: self.congestion.control().bottleneck_rate(),
            send_buffer,
            loss_recovery: None,
        }
    }

    pub(super) fn levels(&self) -> Levels {
        let cwnd = self.congestion.window().cwnd_packets();
        Levels {
            cwnd: Some(cwnd),
            window: Some(cwnd.min(self.sender.offered_packets(&self.scoreboard))),
            send_buffer: self.send_buffer(),
        }
    }

    /// Returns `cwnd` in the window's unit, and the smaller of `cwnd` and the offered window in bytes. The
    /// two values change whenever [`Levels::cwnd`] or [`Levels::window`] does.
    #[inline]
    pub(super) fn windows_key(&self) -> (u64, u64) {
        let window = self.congestion.window();
        let cwnd = match window.counting() {
            Counting::Bytes { .. } => window.cwnd(),
            Counting::Packets => window.cwnd().saturating_mul(u64::from(self.sender.smss())),
        };
        (window.cwnd(), self.sender.offered_bytes(&self.scoreboard).min(cwnd))
    }

    #[inline]
    pub(super) fn send_buffer(&self) -> Bytes {
        Bytes::new(self.sender.queued(&self.scoreboard))
    }

    pub(super) const fn counters(&self) -> Counters {
        let (timeouts, fast_retransmits) = self.recovery.counts();
        let (data_packets, retransmissions) = self.outbox.counts();
        Counters {
            data_packets,
            retransmissions,
            timeouts: Some(timeouts),
            fast_retransmits,
            socket_buffer_drops: 0,
            send_queue_drops: 0,
            held: self.held.times(),
            ecn: self.ecn.counters(),
        }
    }
}
