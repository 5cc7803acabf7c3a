//! Loss recovery: which segments are lost, when they leave again, and how that changes `cwnd`.
//!
//! ```text
//!   scoreboard   the retransmission queue, with marks: sacked, lost, sent again
//!   sent_segment one segment of it
//!   episode      Open, Fast, Loss, and where the current recovery ends
//!   reno         without SACK: duplicate and partial acknowledgements (RFC 5681 §3.2, RFC 6582)
//!   sack         with SACK: RFC 6675, in the order of Linux's tcp_ack
//!   rack         losses found by time (RFC 8985 §6)
//!   probe        the tail loss probe, and the one timer for loss (RFC 8985 §7)
//!   timeout      after the retransmission timer: RFC 6298 §5.4 to §5.6, and F-RTO (RFC 5682)
//!   prr          cwnd during fast recovery (RFC 9937)
//!   undo         needless reductions (RFC 3522, RFC 3708)
//!   echo         reductions without a loss: ECN (RFC 3168 §6.1.2)
//! ```
//!
//! | stack | finds losses by | `cwnd` in recovery | undoes needless reductions |
//! | --- | --- | --- | --- |
//! | `linux` | RACK | PRR | by timestamps, duplicates, F-RTO |
//! | `rfc` | RFC 6675; RACK with `tlp` | `ssthresh` at once (RFC 6675 §5 step 4.2) | never |
//! | without SACK | three duplicates | inflated by each duplicate | never |

mod echo;
mod episode;
mod incoming_ack;
mod outcome;
mod probe;
mod prr;
mod rack;
mod reno;
mod sack;
mod scoreboard;
mod sent_segment;
mod tally;
mod timeout;
mod undo;

use talkpath_config::{Stack, TcpConfig};
use talkpath_units::{Duration, Instant};

use self::episode::Episode;
pub(super) use self::episode::RecoveryState;
pub(super) use self::incoming_ack::IncomingAck;
use self::probe::Probe;
use self::prr::Prr;
use self::rack::Rack;
use self::reno::DuplicateAcks;
use self::sack::Sack;
pub(super) use self::scoreboard::Scoreboard;
pub(super) use self::sent_segment::{NewSegment, SentSegment, Transmission};
use self::timeout::Frto;
use self::undo::Undo;
use super::congestion::Congestion;
use super::ecn::EcnState;
use super::rtt::RttEstimator;
use super::send::Sender;
use super::timers::Timers;
use crate::cc::Phase;

/// Loss recovery of one end.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    stack: Stack,
    episode: Episode,
    duplicates: DuplicateAcks,
    sack: Sack,
    rack: Rack,
    probe: Probe,
    frto: Frto,
    prr: Prr,
    undo: Undo,
    /// True while PRR reduces `cwnd` after an ECN echo, without a loss (Linux: TCP_CA_CWR).
    reduces_for_echo: bool,
}

/// The event that restarts the loss timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArmedBy {
    /// New data has left.
    NewData,
    /// Data that was in flight has arrived.
    Progress,
}

/// The other parts of the connection, which recovery reads and changes.
pub(super) struct Context<'a> {
    pub(super) scoreboard: &'a mut Scoreboard,
    pub(super) congestion: &'a mut Congestion,
    pub(super) rtt: &'a mut RttEstimator,
    pub(super) timers: &'a mut Timers,
    pub(super) ecn: &'a mut EcnState,
    pub(super) sender: &'a Sender,
    pub(super) now: Instant,
}

impl Recovery {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            stack: config.stack,
            episode: Episode::new(),
            duplicates: DuplicateAcks::new(config.limited_transmit),
            sack: Sack::new(config.stack == Stack::Linux || config.tlp),
            rack: Rack::new(),
            probe: Probe::new(config),
            frto: Frto::default(),
            prr: Prr::default(),
            undo: Undo::default(),
            reduces_for_echo: false,
        }
    }

    /// Takes note of the far end's SYN. `sack_permitted` is true if both SYNs permit SACK (RFC 2018 §2).
    pub(super) const fn on_syn(&mut self, sack_permitted: bool) {
        self.sack.on_syn(sack_permitted);
    }

    /// Takes the round trip that the handshake measured.
    pub(super) fn on_handshake_rtt(&mut self, rtt: Duration, now: Instant) {
        self.probe.on_rtt();
        self.rack.on_rtt(rtt, now);
    }

    #[inline]
    pub(super) fn is_linux(&self) -> bool {
        self.stack == Stack::Linux
    }

    #[inline]
    pub(super) const fn has_sack(&self) -> bool {
        self.sack.is_enabled()
    }

    #[inline]
    pub(super) const fn state(&self) -> RecoveryState {
        self.episode.state()
    }

    /// The shortest round trip of the last minutes. Zero before the first sample.
    #[inline]
    pub(super) fn min_rtt(&self) -> Duration {
        self.rack.min_rtt()
    }

    /// True if a loss is being repaired, or if there is any sign of one: a sacked or lost segment, or a
    /// retransmission in front (Linux: a state other than TCP_CA_Open).
    #[inline]
    pub(super) fn is_disordered(&self, scoreboard: &Scoreboard) -> bool {
        self.state() != RecoveryState::Open
            || !scoreboard.has_no_marks()
            || scoreboard.first_was_retransmitted()
    }

    /// True if recovery has nothing to do: no segment is lost, sacked, sent again or probed, and none has to
    /// be.
    #[inline]
    pub(super) fn is_plain(&self, scoreboard: &Scoreboard) -> bool {
        self.state() == RecoveryState::Open
            && scoreboard.is_plain()
            && self.probe.is_idle()
            && !self.episode.wants_first_retransmission()
            && self.duplicates.is_none()
            && !self.reduces_for_echo
            && self.frto == Frto::Off
    }

    /// Takes note that segments were acknowledged while [`Self::is_plain`] holds. `newest` is the last of
    /// them, and `rtt` is its round trip.
    #[inline]
    pub(super) fn on_plain_progress(&mut self, rtt: Duration, newest: Transmission, now: Instant) {
        if self.has_sack() {
            self.probe.on_rtt();
            self.rack.on_rtt(rtt, now);
            self.rack.advance(newest, rtt);
        } else {
            self.duplicates.on_new_ack();
        }
    }

    /// Returns the numbers of retransmission timeouts and of entries into fast recovery.
    pub(super) const fn counts(&self) -> (u64, u64) {
        self.episode.counts()
    }

    /// True, once, if the first unacknowledged segment has to leave again, even if `cwnd` is full.
    #[inline]
    pub(super) const fn take_first_retransmission(&mut self) -> bool {
        self.episode.take_first_retransmission()
    }

    #[inline]
    pub(super) const fn wants_first_retransmission(&self) -> bool {
        self.episode.wants_first_retransmission()
    }

    /// Takes note that a new segment leaves.
    #[inline]
    pub(super) const fn on_new_data_sent(&mut self) {
        if self.sack.is_enabled() {
            self.prr.on_sent(1);
        }
    }

    /// Enters fast recovery.
    const fn enter_fast(&mut self, snd_max: u64) {
        self.episode.enter_fast(snd_max);
        self.duplicates.on_fast_recovery();
    }

    /// Enters recovery from a timeout.
    const fn enter_loss(&mut self, snd_max: u64) {
        self.episode.enter_loss(snd_max);
        self.duplicates.on_loss();
    }

    /// Leaves recovery.
    const fn leave(&mut self) {
        self.episode.leave();
        self.duplicates.on_recovered();
    }

    const fn phase(&self) -> Phase {
        match self.episode.state() {
            RecoveryState::Open => Phase::Open,
            RecoveryState::Fast => Phase::Recovery,
            RecoveryState::Loss => Phase::Loss,
        }
    }

    #[cfg(test)]
    pub(super) const fn begin_fast_for_test(&mut self, snd_max: u64) {
        self.enter_fast(snd_max);
    }
}

/// The number of duplicate acknowledgements, or of segments that overtake another, that shows a loss
/// (RFC 6675 §2: DupThresh).
const DUPLICATE_THRESHOLD: u32 = 3;
