//! The state of a connection (RFC 9293 §3.3.2).
//!
//! ```text
//!   CLOSED ── open ──► SYN-SENT ──┐
//!   LISTEN ── SYN ──► SYN-RCVD ───┴─► ESTABLISHED
//!
//!   ESTABLISHED ── FIN sent ──► FIN-WAIT-1 ── acknowledged ──► FIN-WAIT-2 ── FIN ──► TIME-WAIT
//!        │                          └── FIN ──► CLOSING ── acknowledged ──► TIME-WAIT
//!        └── FIN ──► CLOSE-WAIT ── FIN sent ──► LAST-ACK ── acknowledged ──► CLOSED
//! ```
//!
//! Left out: the end of TIME-WAIT after two minutes.

use talkpath_config::Role;

/// The states of RFC 9293 §3.3.2.
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

/// The state of one end, and the events that change it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionState {
    state: State,
}

impl ConnectionState {
    /// The first state of an end. The passive end listens from the beginning.
    pub(super) const fn new(role: Role) -> Self {
        let state = match role {
            Role::Active => State::Closed,
            Role::Passive => State::Listen,
        };
        Self { state }
    }

    #[inline]
    pub(super) const fn get(self) -> State {
        self.state
    }

    #[inline]
    pub(super) const fn is_established(self) -> bool {
        matches!(self.state, State::Established)
    }

    /// True if the application may write. After a close it may not either, which the sender checks.
    #[inline]
    pub(super) const fn takes_writes(self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }

    /// True if data, a retransmission or a FIN may leave.
    #[inline]
    pub(super) const fn may_send(self) -> bool {
        matches!(
            self.state,
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck
        )
    }

    /// True until the far end's FIN has arrived.
    #[inline]
    pub(super) const fn may_receive(self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// True before both SYNs are acknowledged, and after the connection's end.
    #[inline]
    pub(super) const fn is_unsynchronized(self) -> bool {
        matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// The application opens the connection.
    pub(super) const fn on_open(&mut self) {
        self.state = State::SynSent;
    }

    /// The far end's SYN arrived, and ours is not acknowledged.
    pub(super) const fn on_syn_received(&mut self) {
        self.state = State::SynReceived;
    }

    /// Our SYN is acknowledged.
    pub(super) const fn on_established(&mut self) {
        self.state = State::Established;
    }

    /// All data of the far end and its FIN have arrived.
    pub(super) const fn on_fin_received(&mut self) {
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            state => state,
        };
    }

    /// Our FIN left.
    pub(super) const fn on_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            state => state,
        };
    }

    /// Our FIN is acknowledged.
    pub(super) const fn on_fin_acked(&mut self) {
        self.state = match self.state {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            state => state,
        };
    }

    /// A reset arrived, or the application closed before the connection was open.
    pub(super) const fn on_aborted(&mut self) {
        self.state = State::Closed;
    }
}
