//! A connection: its state, and the calling contract of a transport (RFC 4340 §8).
//!
//! ```text
//!   client   Closed ─ open ─► Request ─ Response ─► PartOpen ─ the server goes on ─┐
//!   server   Listen ─ Request ─► Respond ─ the client's acknowledgement ───────────┴─► Open
//!
//!   the client closes   Open ─ Close ─► Closing ─ Reset ─► TimeWait
//!   the server closes   Open ─ CloseReq ─► CloseReq ─ Close ─► Closed, and its Reset leaves
//! ```

use std::collections::VecDeque;

use talkpath_config::{DccpConfig, Role, largest_dccp_message};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed, Stream};
use talkpath_wire::dccp::{Options, Reset, ResetCode, Seq, ServiceCode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{
    Counters, Delivery, EcnCounters, HoldClock, Message, Observation, Packet, Refused, Transmit, Transport,
};

use super::ccid::{CcidReceiver, CcidSender, HcReceiver, HcSender};
use super::cookie::CookieKey;
use super::data_dropped::DropLog;
use super::features::{Features, Preference};
use super::limiter::AnswerLimiter;
use super::numbers::{Numbers, Widths};
use super::queues::{Inbox, SendQueue};
use super::{AckHistory, Feature, Location};

/// One end of a DCCP connection.
#[derive(Clone, Debug)]
pub struct Dccp {
    pub(super) config: DccpConfig,
    pub(super) is_server: bool,
    pub(super) service: ServiceCode,
    pub(super) state: State,
    pub(super) numbers: Numbers,
    pub(super) features: Features,
    pub(super) sender: HcSender,
    pub(super) receiver: HcReceiver,
    pub(super) history: AckHistory,
    pub(super) drops: DropLog,
    pub(super) queue: SendQueue,
    pub(super) inbox: Inbox,
    /// The packets without data that have to leave, in order.
    pub(super) outbox: VecDeque<Control>,
    /// The number of packets without data that were sent since the last packet with data (RFC 4340 §7.7).
    pub(super) ndp: u64,
    pub(super) limiter: AnswerLimiter,
    pub(super) cookie_key: CookieKey,
    /// The Init Cookie options that a client echoes while in PARTOPEN.
    pub(super) cookie: Options,
    /// The Timestamp option that the next packet has to echo, and when it arrived.
    pub(super) timestamp: Option<(u32, Instant)>,
    /// The last Request or Response, and when it left. Its answer measures the handshake's round trip.
    pub(super) probe: Option<(Seq, Instant)>,
    pub(super) handshake_rtt: Option<Duration>,
    /// When the packet of the present state is sent again, or the state ends ([`Dccp::enter`]).
    pub(super) retransmit_at: Option<Instant>,
    pub(super) retransmissions: u32,
    pub(super) state_since: Instant,
    /// When a rate-based CCID lets the next data packet leave. `None` if no rate holds it back.
    pub(super) paced_until: Option<Instant>,
    /// How long the CCID held the first message back.
    pub(super) held: HoldClock,
    /// True if the handshake needs an acknowledgement, which leaves whatever the CCID says.
    pub(super) owes_ack: bool,
    /// True if the application has closed. The data that it wrote before still leaves.
    pub(super) is_closing: bool,
    /// The Reset Code that ended the connection, sent or received. `None` if the connection has not ended.
    pub(super) ended_by: Option<ResetCode>,
    /// The largest IP packet of the path, in bytes.
    pub(super) mtu: u64,
    largest_message: Bytes,
    pub(super) data_packets: u64,
    /// The number of packets that arrived with a CE mark.
    marked: u64,
    pub(super) random: Stream,
}

/// The state of a connection (RFC 4340 §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// A server waits for Requests.
    Listen,
    /// A client waits for the Response.
    Request,
    /// A server waits for the client's acknowledgement.
    Respond,
    /// A client waits for a sign that the server has its acknowledgement.
    PartOpen,
    /// Data flows.
    Open,
    /// A server has asked the client to close.
    CloseReq,
    /// This end has sent a Close, and waits for the Reset that ends the connection.
    Closing,
    /// The connection has ended. Late packets are answered for 2 MSL.
    TimeWait,
}

/// A packet without data that has to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Request,
    Response,
    /// The Response of a server that keeps no state: to a Request of this number, with these options.
    StatelessResponse {
        seq: Seq,
        ack: Seq,
        options: Options,
    },
    Sync(Seq),
    SyncAck(Seq),
    Close,
    CloseReq,
    /// `numbers` is given if there is no connection with numbers of its own (RFC 4340 §8.3.1).
    Reset {
        reset: Reset,
        numbers: Option<(Seq, Seq)>,
        ack: Seq,
    },
}

impl Dccp {
    /// One end of a connection. Both ends are built from the same `config`. `path_mtu` bounds the messages.
    /// The initial sequence number and a server's secret are drawn from `seed`. `receive_buffer` takes the
    /// place of the `socket_buffer` of `config`.
    pub fn new(
        config: &DccpConfig,
        role: Role,
        path_mtu: Bytes,
        seed: Seed,
        receive_buffer: Option<Bytes>,
    ) -> Self {
        let is_server = role == Role::Passive;
        let mut random = seed.stream(if is_server { "dccp/server" } else { "dccp/client" });
        let iss = Seq::new(random.bits());
        let mut key = [0; 32];
        key.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.bits().to_be_bytes()));
        let mut end = Self {
            config: config.clone(),
            is_server,
            service: ServiceCode::NONE,
            state: if is_server { State::Listen } else { State::Closed },
            numbers: Numbers::new(iss),
            features: Features::new(is_server, iss),
            sender: HcSender::new(config, path_mtu),
            receiver: HcReceiver::new(config, path_mtu),
            history: AckHistory::default(),
            drops: DropLog::default(),
            queue: SendQueue::new(config.send_queue, config.send_queue_policy),
            inbox: Inbox::new(receive_buffer.unwrap_or(config.socket_buffer)),
            outbox: VecDeque::new(),
            ndp: 0,
            limiter: AnswerLimiter::default(),
            cookie_key: CookieKey::new(key),
            cookie: Options::EMPTY,
            timestamp: None,
            probe: None,
            handshake_rtt: None,
            retransmit_at: None,
            retransmissions: 0,
            state_since: Instant::ZERO,
            paced_until: None,
            held: HoldClock::default(),
            owes_ack: false,
            is_closing: false,
            ended_by: None,
            mtu: path_mtu.get(),
            largest_message: largest_dccp_message(path_mtu),
            data_packets: 0,
            marked: 0,
            random,
        };
        end.prefer();
        end
    }

    /// Returns this end with the initial sequence number `iss`, in place of the number that the seed gives.
    #[must_use]
    pub fn with_initial_sequence(mut self, iss: Seq) -> Self {
        self.numbers = Numbers::new(iss);
        self.features = Features::new(self.is_server, iss);
        self.prefer();
        self
    }

    /// Returns this end with this service code, which both ends must have (RFC 4340 §8.1.2).
    #[must_use]
    pub const fn with_service(mut self, service: ServiceCode) -> Self {
        self.service = service;
        self
    }

    /// The state of RFC 4340 §8.4.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The Reset Code that ended the connection, sent or received.
    pub const fn ended_by(&self) -> Option<ResetCode> {
        self.ended_by
    }

    /// The value of a feature as this end knows it.
    pub fn feature(&self, feature: Feature, location: Location) -> u64 {
        self.features.value(feature, location)
    }

    /// The largest message that this path takes.
    pub const fn largest_message(&self) -> Bytes {
        self.largest_message
    }

    /// True if packets leave ECN-capable: this end wants it, and the peer can read the field (RFC 4340
    /// §12.1).
    pub(super) fn takes_marks(&self) -> bool {
        self.config.ecn && self.features.value(Feature::EcnIncapable, Location::Remote) == 0
    }

    /// Sets the values that we take of the features which the peer may negotiate.
    fn prefer(&mut self) {
        let ccid = u64::from(self.config.ccid.number());
        let coverage = u64::from(self.config.checksum_coverage);
        for location in [Location::Local, Location::Remote] {
            self.features.prefer(Feature::Ccid, location, Preference::only(ccid));
            let coverages = Preference::rather(coverage, 0);
            self.features.prefer(Feature::MinimumChecksumCoverage, location, coverages);
        }
    }

    /// Asks for the feature values that this end wants and that are not agreed on.
    pub(super) fn announce(features: &mut Features, config: &DccpConfig, sender: &HcSender) {
        let ccid = Preference::only(u64::from(config.ccid.number()));
        let (local, remote) = (Location::Local, Location::Remote);
        features.demand(Feature::Ccid, local, ccid);
        features.demand(Feature::Ccid, remote, ccid);
        features.want(Feature::SequenceWindow, local, Preference::only(FIRST_SEQUENCE_WINDOW));
        if let Some(ratio) = sender.wanted_ack_ratio() {
            features.want(Feature::AckRatio, local, Preference::only(u64::from(ratio)));
        }
        let yes = Preference::only(1);
        if config.ccid.needs_ack_vector() {
            features.want(Feature::SendAckVector, remote, yes);
        }
        if config.ccid.needs_ndp_count() {
            features.want(Feature::SendNdpCount, remote, yes);
        }
        if !config.ecn {
            features.want(Feature::EcnIncapable, local, yes);
        }
        if config.data_checksum {
            features.demand(Feature::CheckDataChecksum, remote, yes);
        }
        if config.short_seqnos {
            features.want(Feature::AllowShortSeqnos, local, yes);
        }
        if config.checksum_coverage > 0 {
            let coverage = Preference::only(u64::from(config.checksum_coverage));
            features.want(Feature::MinimumChecksumCoverage, local, coverage);
        }
    }

    /// True if both ends agree on what data needs: the CCIDs, and Ack Vectors if the CCID has them
    /// (RFC 4341 §4).
    pub(super) fn may_carry_data(&self) -> bool {
        let ccid = u64::from(self.config.ccid.number());
        let agreed = |location| self.features.value(Feature::Ccid, location) == ccid;
        matches!(self.state, State::PartOpen | State::Open)
            && agreed(Location::Local)
            && agreed(Location::Remote)
            && (!self.config.ccid.needs_ack_vector()
                || self.features.value(Feature::SendAckVector, Location::Remote) == 1)
    }

    pub(super) fn widths(&self) -> Widths {
        Widths {
            remote: self.features.value(Feature::SequenceWindow, Location::Remote),
            local: self.features.value(Feature::SequenceWindow, Location::Local),
        }
    }

    /// Returns the smoothed round trip, or else that of the handshake, or else 0.2 s (RFC 4340 §3.4).
    pub(super) fn rtt(&self) -> Duration {
        self.sender.observe().srtt.or(self.handshake_rtt).unwrap_or(DEFAULT_RTT)
    }

    /// Enters `state`, and sets its timer: when the packet of the state is sent again, or when the state
    /// ends.
    pub(super) fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.state_since = now;
        self.retransmissions = 0;
        self.retransmit_at = match state {
            State::Request | State::PartOpen | State::CloseReq | State::Closing => {
                Some(now + self.interval())
            }
            State::Respond => Some(now + HANDSHAKE_LIFETIME),
            State::TimeWait => Some(now + TIMEWAIT),
            State::Closed | State::Listen | State::Open => None,
        };
    }

    /// Returns the time until the packet of the present state is sent again. It doubles each time.
    pub(super) fn interval(&self) -> Duration {
        let first = match self.state {
            State::Request => FIRST_REQUEST_INTERVAL,
            State::PartOpen => FIRST_PARTOPEN_INTERVAL,
            _ => (self.rtt() * 2).max(LEAST_INTERVAL),
        };
        let interval = first.saturating_mul(1 << self.retransmissions.min(MOST_DOUBLINGS));
        interval.min(LONGEST_INTERVAL)
    }

    /// Ends the connection with a Reset of ours (RFC 4340 §8.3.1).
    pub(super) fn fail(&mut self, reset: Reset, ack: Seq, now: Instant) {
        self.outbox.push_back(Control::Reset { reset, numbers: None, ack });
        self.ended_by = Some(reset.code);
        self.enter(State::Closed, now);
    }

    /// Sends the packet of the present state again, or gives up.
    fn on_retransmit(&mut self, now: Instant) {
        let waited = now.since(self.state_since);
        let aborted = Reset::with_code(ResetCode::ABORTED);
        match self.state {
            State::Request if waited >= REQUEST_LIFETIME => return self.fail(aborted, Seq::new(0), now),
            State::Respond => return self.fail(aborted, self.numbers.gsr, now),
            State::PartOpen if waited >= HANDSHAKE_LIFETIME => {
                return self.fail(aborted, self.numbers.gsr, now);
            }
            State::TimeWait => return self.enter(State::Closed, now),
            State::Request => self.outbox.push_back(Control::Request),
            State::Closing => self.outbox.push_back(Control::Close),
            State::CloseReq => self.outbox.push_back(Control::CloseReq),
            State::PartOpen => self.owes_ack = true,
            State::Open | State::Closed | State::Listen => {}
        }
        self.retransmissions += 1;
        self.retransmit_at = Some(now + self.interval());
    }

    /// Begins to close the connection, if the application has closed it and all data has left (RFC 4340
    /// §8.3).
    pub(super) fn close_if_done(&mut self, now: Instant) {
        if !self.is_closing || self.queue.len() > 0 {
            return;
        }
        match self.state {
            State::Listen | State::Request => self.enter(State::Closed, now),
            State::PartOpen | State::Open if self.is_server => {
                self.outbox.push_back(Control::CloseReq);
                self.enter(State::CloseReq, now);
            }
            State::PartOpen | State::Open => {
                self.outbox.push_back(Control::Close);
                self.enter(State::Closing, now);
            }
            State::Closed | State::Respond | State::CloseReq | State::Closing | State::TimeWait => {}
        }
    }
}

impl Transport for Dccp {
    fn open(&mut self, now: Instant) {
        if self.is_server || self.state != State::Closed || self.ended_by.is_some() {
            return;
        }
        Self::announce(&mut self.features, &self.config, &self.sender);
        self.outbox.push_back(Control::Request);
        self.enter(State::Request, now);
    }

    fn is_open(&self) -> bool {
        !self.is_closing && self.may_carry_data()
    }

    fn handle_message(&mut self, message: Message, _now: Instant) -> Result<(), Refused> {
        if message.size > self.largest_message {
            return Err(Refused::TooLarge { limit: self.largest_message });
        }
        if !self.is_open() {
            return Err(Refused::NotOpen);
        }
        self.queue.push(message)
    }

    fn handle_packet(&mut self, packet: &Packet, ecn: Ecn, now: Instant) {
        if let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = packet {
            self.marked += u64::from(ecn == Ecn::Ce);
            self.on_packet(**packet, ecn, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.retransmit_at.is_some_and(|at| at <= now) {
            self.on_retransmit(now);
        }
        if self.sender.deadline().is_some_and(|at| at <= now) {
            self.sender.on_timeout(now);
        }
    }

    /// The messages that wait in the queue still leave. A server asks the client to close, so that the client
    /// is the end that stays in TIMEWAIT.
    fn shutdown(&mut self, now: Instant) {
        self.is_closing = true;
        self.close_if_done(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.next_packet(now)
    }

    /// Reads a whole message, however small `limit` is. A `limit` of zero reads nothing.
    fn poll_delivery(&mut self, limit: Bytes, _now: Instant) -> Option<Delivery> {
        if limit == Bytes::ZERO {
            return None;
        }
        self.inbox.pop().map(|(seq, size)| Delivery::Message { seq, size })
    }

    fn poll_dropped(&mut self) -> Option<u64> {
        self.inbox.poll_dropped()
    }

    fn poll_discarded(&mut self) -> Option<u64> {
        self.queue.poll_discarded()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let flows = matches!(self.state, State::PartOpen | State::Open);
        let when_flowing = [
            self.receiver.acknowledge_at(),
            self.features.deadline(),
            self.sender.deadline(),
            self.paced_until.filter(|_| self.queue.len() > 0),
        ];
        let deadlines = when_flowing.into_iter().filter(|_| flows);
        deadlines.chain([self.retransmit_at]).flatten().min()
    }

    /// Returns the largest message while the queue invites one, and zero otherwise.
    fn writable(&self) -> Bytes {
        if self.is_open() && self.queue.invites() { self.largest_message } else { Bytes::ZERO }
    }

    fn observe(&self) -> Observation {
        Observation { send_buffer: self.queue.size(), ..self.sender.observe() }
    }

    fn counters(&self) -> Counters {
        let counted = self.sender.counters();
        Counters {
            data_packets: self.data_packets,
            retransmissions: 0,
            timeouts: Some(counted.timeouts),
            fast_retransmits: 0,
            socket_buffer_drops: self.inbox.drops,
            send_queue_drops: self.queue.drops,
            held: self.held.times(),
            ecn: EcnCounters { capable: self.takes_marks(), marked: self.marked, echoed: None },
        }
    }
}

/// The first sequence window that is negotiated, in packets. We chose one that slow start does not outgrow at
/// once. Later it follows the number of packets in flight (RFC 4340 §7.5.2).
pub(super) const FIRST_SEQUENCE_WINDOW: u64 = 1000;
/// The round trip before the first sample (RFC 4340 §3.4).
pub(super) const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// The time after which the first Request is sent again (RFC 4340 §8.1.1).
const FIRST_REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// The upper bound of the doubled interval (RFC 4340 §8.1.1).
const LONGEST_INTERVAL: Duration = Duration::from_secs(64);
/// The shortest first interval of a Close or CloseReq. We chose it because twice a round trip of nearly
/// nothing is too short for an answer, and stays so when it is doubled.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);
/// The largest number of doublings. It is larger than any first interval needs to reach the longest.
const MOST_DOUBLINGS: u32 = 20;
/// The time for which a client sends Requests: "perhaps three minutes" (RFC 4340 §8.1.1).
const REQUEST_LIFETIME: Duration = Duration::from_secs(180);
/// The time after which a client in PARTOPEN first acknowledges again (RFC 4340 §8.1.5).
const FIRST_PARTOPEN_INTERVAL: Duration = Duration::from_millis(200);
/// The time for which an end stays in RESPOND or PARTOPEN (RFC 4340 §8.1.3, §8.1.5): 4 MSL, where MSL is
/// 2 minutes (§3.2).
const HANDSHAKE_LIFETIME: Duration = Duration::from_secs(8 * 60);
/// The time for which an end stays in TIMEWAIT: 2 MSL (RFC 4340 §8.3).
const TIMEWAIT: Duration = Duration::from_secs(4 * 60);
