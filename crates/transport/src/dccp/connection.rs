//! A connection: its state, and the calling contract of a transport.

use std::collections::VecDeque;

use talkpath_config::{DccpConfig, Role, largest_dccp_message};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed, Stream};
use talkpath_wire::dccp::{Options, Reset, ResetCode, Seq, ServiceCode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{
    Counters, Delivery, EcnCounters, Message, Observation, Packet, Refused, Transmit, Transport,
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
    /// Packets without data that are to leave, in order.
    pub(super) outbox: VecDeque<Control>,
    /// Packets without data sent since the last one with data (RFC 4340 §7.7).
    pub(super) ndp: u64,
    pub(super) limiter: AnswerLimiter,
    pub(super) cookie_key: CookieKey,
    /// Init Cookie options that the client echoes while in PARTOPEN.
    pub(super) cookie: Options,
    /// A Timestamp to be echoed, and when it arrived.
    pub(super) timestamp: Option<(u32, Instant)>,
    /// The last Request or Response, to measure the handshake's round trip.
    pub(super) probe: Option<(Seq, Instant)>,
    pub(super) handshake_rtt: Option<Duration>,
    /// A packet is to be sent again, as the state says.
    pub(super) retransmit_at: Option<Instant>,
    pub(super) retransmissions: u32,
    pub(super) state_since: Instant,
    /// A rate lets the next data packet leave then.
    pub(super) paced_until: Option<Instant>,
    /// An acknowledgement is owed whatever the CCID says: the handshake's.
    pub(super) owes_ack: bool,
    /// The application has closed.
    pub(super) is_closing: bool,
    /// Why the connection ended.
    pub(super) ended_by: Option<ResetCode>,
    /// Bytes of an IP packet, and of the largest message.
    pub(super) mtu: u64,
    largest_message: Bytes,
    pub(super) data_packets: u64,
    /// Packets that came marked.
    marked: u64,
    pub(super) random: Stream,
}

/// RFC 4340 §8.4's states.
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
    /// Waits for the Reset that ends it.
    Closing,
    /// Answers stragglers for 2 MSL.
    TimeWait,
}

/// A packet without data that is to leave.
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
    /// One end; both ends are built from one `config`. `path_mtu` bounds the messages, `seed` draws the
    /// initial sequence number and a server's secret, `receive_buffer` takes the place of `config`'s
    /// `socket_buffer`.
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

    /// With this initial sequence number, for scripts that give each packet's number.
    #[must_use]
    pub fn with_initial_sequence(mut self, iss: Seq) -> Self {
        self.numbers = Numbers::new(iss);
        self.features = Features::new(self.is_server, iss);
        self.prefer();
        self
    }

    /// With this service code, which both ends must have (RFC 4340 §8.1.2).
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

    /// What we take of features that the peer may negotiate.
    fn prefer(&mut self) {
        let ccid = u64::from(self.config.ccid.number());
        let coverage = u64::from(self.config.checksum_coverage);
        for location in [Location::Local, Location::Remote] {
            self.features.prefer(Feature::Ccid, location, Preference::only(ccid));
            let coverages = Preference::rather(coverage, 0);
            self.features.prefer(Feature::MinimumChecksumCoverage, location, coverages);
        }
    }

    /// Opens the negotiations that this end wants, if the peer has not opened the same.
    pub(super) fn announce(features: &mut Features, config: &DccpConfig, sender: &HcSender) {
        let ccid = Preference::only(u64::from(config.ccid.number()));
        let (local, remote) = (Location::Local, Location::Remote);
        features.want(Feature::Ccid, local, ccid, true);
        features.want(Feature::Ccid, remote, ccid, true);
        features.want(Feature::SequenceWindow, local, Preference::only(FIRST_SEQUENCE_WINDOW), false);
        if let Some(ratio) = sender.wanted_ack_ratio() {
            features.want(Feature::AckRatio, local, Preference::only(u64::from(ratio)), false);
        }
        let yes = Preference::only(1);
        if config.ccid.needs_ack_vector() {
            features.want(Feature::SendAckVector, remote, yes, false);
        }
        if config.ccid.needs_ndp_count() {
            features.want(Feature::SendNdpCount, remote, yes, false);
        }
        if !config.ecn {
            features.want(Feature::EcnIncapable, local, yes, false);
        }
        if config.data_checksum {
            features.want(Feature::CheckDataChecksum, remote, yes, true);
        }
        if config.short_seqnos {
            features.want(Feature::AllowShortSeqnos, local, yes, false);
        }
        if config.checksum_coverage > 0 {
            let coverage = Preference::only(u64::from(config.checksum_coverage));
            features.want(Feature::MinimumChecksumCoverage, local, coverage, false);
        }
    }

    /// Whether both ends agree on what data needs: the CCIDs, and Ack Vectors if the CCID has them
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

    /// The round trip as far as it is known (RFC 4340 §3.4).
    pub(super) fn rtt(&self) -> Duration {
        self.sender.observe().srtt.or(self.handshake_rtt).unwrap_or(DEFAULT_RTT)
    }

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

    /// How long to wait before something is sent again: doubled each time.
    pub(super) fn interval(&self) -> Duration {
        let first = match self.state {
            State::Request => FIRST_REQUEST_INTERVAL,
            State::PartOpen => FIRST_PARTOPEN_INTERVAL,
            _ => (self.rtt() * 2).max(LEAST_INTERVAL),
        };
        let interval = first.saturating_mul(1 << self.retransmissions.min(MOST_DOUBLINGS));
        if interval > LONGEST_INTERVAL { LONGEST_INTERVAL } else { interval }
    }

    /// Ends the connection with a Reset of ours (RFC 4340 §8.3.1).
    pub(super) fn fail(&mut self, reset: Reset, ack: Seq, now: Instant) {
        self.outbox.push_back(Control::Reset { reset, numbers: None, ack });
        self.ended_by = Some(reset.code);
        self.enter(State::Closed, now);
    }

    /// Something has been sent again, or given up.
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

    /// Once all that was taken has left, the application's close takes effect (RFC 4340 §8.3).
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

    /// What waits in the queue is still sent. A server asks the client to close, so that TIMEWAIT is the
    /// client's.
    fn shutdown(&mut self, now: Instant) {
        self.is_closing = true;
        self.close_if_done(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.next_packet(now)
    }

    /// A message is read whole, however small `limit` is; a `limit` of zero reads nothing.
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

    /// The largest message, while the queue invites one.
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
            ecn: EcnCounters { capable: self.takes_marks(), marked: self.marked, echoed: None },
        }
    }
}

/// Chosen: a window that slow start does not outgrow at once; it follows what is in flight (RFC 4340 §7.5.2).
pub(super) const FIRST_SEQUENCE_WINDOW: u64 = 1000;
/// RFC 4340 §3.4.
pub(super) const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// RFC 4340 §8.1.1: at first a second, backing off to 64 s, for perhaps three minutes.
const FIRST_REQUEST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(64);
/// Chosen: if the round trip is (next to) nothing, twice the round trip is too short for an answer, and
/// doubling it gives nothing.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);
/// More doublings than any first interval needs to reach the longest.
const MOST_DOUBLINGS: u32 = 20;
const REQUEST_LIFETIME: Duration = Duration::from_secs(180);
/// RFC 4340 §8.1.5.
const FIRST_PARTOPEN_INTERVAL: Duration = Duration::from_millis(200);
/// RFC 4340 §8.1.3, §8.1.5: 4 MSL, with MSL = 2 minutes (§3.2).
const HANDSHAKE_LIFETIME: Duration = Duration::from_secs(8 * 60);
/// RFC 4340 §8.3: 2 MSL.
const TIMEWAIT: Duration = Duration::from_secs(4 * 60);
