//! Arriving packets, in the steps of RFC 4340 §8.5. Step 1, malformed packets, is the codec's; step 2, ports,
//! the host's.

use talkpath_units::{Bytes, Ecn, Instant};
use talkpath_wire::dccp::{DccpOption, DccpPacket, Options, PacketKind, Reset, ResetCode, Seq};

use super::ccid::{Acknowledgement, Arrived, CcidReceiver, CcidSender, knows_option};
use super::connection::{Control, Dccp, State};
use super::features::{Carrier, Features};
use super::numbers::{Numbers, Validity};
use super::{DropCode, Feature, Location};

impl Dccp {
    pub(super) fn on_packet(&mut self, packet: DccpPacket, ecn: Ecn, now: Instant) {
        match self.state {
            State::Closed | State::TimeWait => {
                self.refuse(&packet, Reset::with_code(ResetCode::NO_CONNECTION), now);
            }
            State::Listen => self.on_packet_in_listen(packet, ecn, now),
            State::Request
            | State::Respond
            | State::PartOpen
            | State::Open
            | State::CloseReq
            | State::Closing => self.on_packet_in_connection(packet, ecn, now),
        }
    }

    /// Steps 2 and 3: `reset` leaves outside of a connection, with numbers from the packet (§8.3.1).
    fn refuse(&mut self, packet: &DccpPacket, reset: Reset, now: Instant) {
        if matches!(packet.kind, PacketKind::Reset(_)) || !self.limiter.admit(now) {
            return;
        }
        let seq = if packet.kind.has_ack() { packet.ack.next() } else { Seq::new(0) };
        self.outbox.push_back(Control::Reset { reset, numbers: Some((seq, packet.seq)), ack: packet.seq });
    }

    /// Step 3.
    fn on_packet_in_listen(&mut self, packet: DccpPacket, ecn: Ecn, now: Instant) {
        if let PacketKind::Request { service } = packet.kind {
            if service != self.service {
                return self.refuse(&packet, Reset::with_code(ResetCode::BAD_SERVICE_CODE), now);
            }
            if self.config.init_cookie {
                return self.answer_without_state(&packet, now);
            }
            self.numbers.begin_receiving(packet.seq);
            self.enter(State::Respond, now);
            return self.on_packet_in_connection(packet, ecn, now);
        }
        let Some(cookie) = find_cookie(&packet).filter(|_| self.config.init_cookie) else {
            return self.refuse(&packet, Reset::with_code(ResetCode::NO_CONNECTION), now);
        };
        let Some(values) = self.cookie_key.open(cookie, packet.ack, now) else {
            return self.refuse(&packet, Reset::with_code(ResetCode::BAD_INIT_COOKIE), now);
        };
        self.numbers = Numbers::restore(packet.ack, packet.seq);
        for (feature, location, value) in values {
            self.features.restore(feature, location, value);
        }
        Self::announce(&mut self.features, &self.config, &self.sender);
        let rtt = self.rtt();
        self.features.restore_changes(packet.ack, rtt, now);
        self.enter(State::Respond, now);
        // A client with the cookie on every packet may have no room for its data before it hears of the
        // server (§8.1.5).
        self.owes_ack = packet.payload == 0;
        self.on_packet_in_connection(packet, ecn, now);
    }

    /// A Response that carries all there is to know of the Request (§8.1.4).
    fn answer_without_state(&mut self, packet: &DccpPacket, now: Instant) {
        let seq = Seq::new(self.random.bits());
        let mut features = self.features.clone();
        // An error in the Request's options is answered by its Reset, outside of a connection.
        if let Err(reset) = read_features(&mut features, packet) {
            return self.refuse(packet, reset, now);
        }
        let mut options = Options::EMPTY;
        let cookie = self.cookie_key.seal(seq, features.agreed(), now);
        let fits = cookie.is_some_and(|cookie| options.push(DccpOption::InitCookie(cookie.as_slice())));
        if !fits {
            return self.refuse(packet, Reset::with_code(ResetCode::TOO_BUSY), now);
        }
        Self::announce(&mut features, &self.config, &self.sender);
        features.put(&mut options, Carrier { seq, has_ack: true, repeats_all: true }, self.rtt(), now);
        // One answer is held at most: a flood of Requests takes no room.
        self.outbox.clear();
        self.outbox.push_back(Control::StatelessResponse { seq, ack: packet.seq, options });
    }

    fn on_packet_in_connection(&mut self, mut packet: DccpPacket, ecn: Ecn, now: Instant) {
        if self.state == State::Request && !self.prepare_in_request(&packet, now) {
            return;
        }
        if packet.short {
            // Step 6: the peer may use short numbers if its feature says so.
            if self.features.value(Feature::AllowShortSeqnos, Location::Remote) == 0 {
                return;
            }
            self.numbers.extend(&mut packet);
        }
        match self.numbers.check(&packet, self.widths(), self.rtt(), now) {
            Validity::Valid => {}
            Validity::Ignored => return,
            Validity::NeedsSync(ack) => return self.send_sync(ack, now),
        }
        self.numbers.on_valid(&packet, now);
        if self.is_unexpected(&packet) {
            return self.send_sync(packet.seq, now);
        }
        let is_new = self.history.on_packet(packet.seq, ecn == Ecn::Ce);
        if let Err(reset) = self.process_options(&packet, ecn, now) {
            return self.fail(reset, packet.seq, now);
        }
        self.advance_state(&packet, is_new, now);
    }

    /// Step 4: whether to go on.
    fn prepare_in_request(&mut self, packet: &DccpPacket, now: Instant) -> bool {
        let answers = matches!(packet.kind, PacketKind::Response { .. } | PacketKind::Reset(_))
            && self.numbers.acknowledges(packet.ack, self.widths());
        if answers {
            self.numbers.begin_receiving(packet.seq);
        } else if !matches!(packet.kind, PacketKind::Reset(_)) && self.limiter.admit(now) {
            let reset = Reset { code: ResetCode::PACKET_ERROR, data: [packet.kind.number(), 0, 0] };
            self.outbox.push_back(Control::Reset { reset, numbers: None, ack: packet.seq });
        }
        answers
    }

    fn send_sync(&mut self, ack: Seq, now: Instant) {
        if self.limiter.admit(now) {
            self.outbox.push_back(Control::Sync(ack));
        }
    }

    /// Step 7.
    fn is_unexpected(&self, packet: &DccpPacket) -> bool {
        let is_late = || {
            matches!(self.state, State::Open | State::CloseReq | State::Closing)
                && !packet.seq.is_before(self.numbers.osr)
        };
        match packet.kind {
            PacketKind::Response { .. } => self.is_server || is_late(),
            PacketKind::Request { .. } => !self.is_server || is_late(),
            PacketKind::CloseReq => self.is_server,
            PacketKind::Data => self.state == State::Respond,
            _ => false,
        }
    }

    /// Step 8. Nothing on a Data packet resets a connection (§5.8, table 3). A Reset ends it whatever its
    /// options are: no Reset is answered with another (steps 2 to 4).
    fn process_options(&mut self, packet: &DccpPacket, ecn: Ecn, now: Instant) -> Result<(), Reset> {
        if !matches!(packet.kind, PacketKind::Data | PacketKind::Reset(_)) {
            read_features(&mut self.features, packet)?;
        }
        let mut ndp_count = None;
        for option in &packet.options {
            match option {
                DccpOption::NdpCount(count) => ndp_count = Some(count),
                DccpOption::Timestamp(value) => self.timestamp = Some((value, now)),
                _ => {}
            }
        }
        while let Some((feature, location, value)) = self.features.poll_changed() {
            // Ack Ratio lies with the sender of the data, the CCIDs' own features with its receiver.
            match (feature, location) {
                (Feature::AckRatio, Location::Local) => self.sender.on_feature(feature.number(), value),
                (Feature::AckRatio, Location::Remote) => self.receiver.on_feature(feature.number(), value),
                (Feature::SendLossEventRate, Location::Local) => {
                    self.receiver.on_feature(feature.number(), value);
                }
                (Feature::SendLossEventRate, Location::Remote) => {
                    self.sender.on_feature(feature.number(), value);
                }
                _ => {}
            }
        }
        let is_data = packet.payload > 0 && packet.kind.is_data();
        let payload = Bytes::new(u64::from(if is_data { packet.payload } else { 0 }));
        let arrived = Arrived { seq: packet.seq, is_data, payload, ccval: packet.ccval, ndp_count, ecn };
        self.receiver.on_packet(&arrived, now);
        if packet.kind.has_ack() {
            self.process_acknowledgement(packet, ecn, now);
        }
        Ok(())
    }

    fn process_acknowledgement(&mut self, packet: &DccpPacket, ecn: Ecn, now: Instant) {
        if packet.kind != PacketKind::Sync {
            self.history.on_acknowledged(packet.ack);
            if let Some(oldest) = self.history.oldest() {
                self.drops.forget_before(oldest);
            }
        }
        if self.handshake_rtt.is_none()
            && let Some((_, sent)) = self.probe.take_if(|&mut (seq, _)| seq == packet.ack)
        {
            let rtt = now.since(sent);
            self.handshake_rtt = Some(rtt);
            self.sender.on_handshake(rtt, now);
            self.receiver.on_handshake(rtt);
        }
        if matches!(packet.kind, PacketKind::Ack | PacketKind::DataAck) {
            // A mark on an acknowledgement alone is about the way back (RFC 4341 §6.1.2).
            let marked = u64::from(ecn == Ecn::Ce && packet.kind == PacketKind::Ack);
            let ack = Acknowledgement {
                seq: packet.seq,
                ack: packet.ack,
                is_data: packet.kind == PacketKind::DataAck,
                peer_lost: self.numbers.take_lost() + marked,
                options: &packet.options,
            };
            self.sender.on_ack(&ack, now);
        }
    }

    /// Steps 9 to 16; `is_new` is false for a copy of a packet that had arrived.
    fn advance_state(&mut self, packet: &DccpPacket, is_new: bool, now: Instant) {
        match packet.kind {
            PacketKind::Reset(reset) => {
                self.ended_by = Some(reset.code);
                self.outbox.clear();
                return self.enter(State::TimeWait, now);
            }
            PacketKind::Close => {
                let closed = Reset::with_code(ResetCode::CLOSED);
                return self.fail(closed, packet.seq, now);
            }
            _ => {}
        }
        match (self.state, packet.kind) {
            // Steps 10 and 12: a PARTOPEN client acknowledges, data or not.
            (State::Request, _) => {
                self.keep_cookie(packet);
                self.enter(State::PartOpen, now);
                self.owes_ack = true;
            }
            (State::Respond, PacketKind::Request { .. }) => {
                Self::announce(&mut self.features, &self.config, &self.sender);
                // At most one Response is queued, however often the Request is repeated.
                if !self.outbox.contains(&Control::Response) {
                    self.outbox.push_back(Control::Response);
                }
            }
            (State::PartOpen, PacketKind::Response { .. }) => self.owes_ack = true,
            (State::PartOpen, PacketKind::Sync) => {}
            (State::Respond | State::PartOpen, _) => {
                self.numbers.osr = packet.seq;
                self.cookie = Options::EMPTY;
                self.enter(State::Open, now);
            }
            _ => {}
        }
        match packet.kind {
            PacketKind::CloseReq if matches!(self.state, State::PartOpen | State::Open) => {
                self.outbox.push_back(Control::Close);
                self.enter(State::Closing, now);
            }
            PacketKind::Sync => self.outbox.push_back(Control::SyncAck(packet.seq)),
            PacketKind::Data
            | PacketKind::DataAck
            | PacketKind::Request { .. }
            | PacketKind::Response { .. }
                if packet.payload > 0 =>
            {
                self.accept_data(packet, is_new);
            }
            _ => {}
        }
    }

    fn keep_cookie(&mut self, packet: &DccpPacket) {
        self.cookie = Options::EMPTY;
        for option in &packet.options {
            if matches!(option, DccpOption::InitCookie(_)) && !self.cookie.push(option) {
                break;
            }
        }
    }

    /// Step 16, with what keeps data from the application (§9.2.1, §9.3, §11.7). Requests and Responses have
    /// none that we take. A copy changes nothing in what is reported of its packet, which may have been
    /// delivered.
    fn accept_data(&mut self, packet: &DccpPacket, is_new: bool) {
        let least = self.features.value(Feature::MinimumChecksumCoverage, Location::Local);
        let coverage = u64::from(packet.cscov);
        let is_covered = coverage == 0 || (least > 0 && coverage >= least);
        let is_handshake = matches!(packet.kind, PacketKind::Request { .. } | PacketKind::Response { .. });
        let code = if is_handshake || !is_covered {
            DropCode::PROTOCOL_CONSTRAINTS
        } else if packet.corrupt {
            DropCode::CORRUPT
        } else if self.inbox.push(packet.message, Bytes::new(u64::from(packet.payload))) {
            return;
        } else {
            DropCode::RECEIVE_BUFFER
        };
        if is_new {
            self.drops.on_drop(packet.seq, code);
        }
    }
}

/// Step 8's feature negotiation; Mandatory speaks of the next option, which must then be one that we know
/// (§5.8.2).
fn read_features(features: &mut Features, packet: &DccpPacket) -> Result<(), Reset> {
    let ack = packet.kind.has_ack().then_some(packet.ack);
    let option_error = Reset { code: ResetCode::OPTION_ERROR, data: [MANDATORY, 0, 0] };
    let (mut is_mandatory, mut any) = (false, false);
    for option in &packet.options {
        match option {
            DccpOption::Mandatory if is_mandatory => return Err(option_error),
            DccpOption::Mandatory => {
                is_mandatory = true;
                continue;
            }
            DccpOption::Feature(option) => {
                features.on_option(option, is_mandatory, packet.seq, ack)?;
                any = true;
            }
            DccpOption::Unknown { kind, data } if is_mandatory => return Err(mandatory_error(kind, data)),
            DccpOption::Ccid { kind, data }
                if is_mandatory && !knows_option(features.value(Feature::Ccid, Location::Local), kind) =>
            {
                return Err(mandatory_error(kind, data));
            }
            _ => {}
        }
        is_mandatory = false;
    }
    if any {
        features.on_packet_end(packet.seq);
    }
    if is_mandatory { Err(option_error) } else { Ok(()) }
}

/// §5.6: data 1 to 3 are the option's type and the first two bytes of its data.
fn mandatory_error(kind: u8, data: &[u8]) -> Reset {
    let byte = |index| data.get(index).copied().unwrap_or(0);
    Reset { code: ResetCode::MANDATORY_ERROR, data: [kind, byte(0), byte(1)] }
}

/// §8.1.4: not on Request or Data.
fn find_cookie(packet: &DccpPacket) -> Option<&[u8]> {
    packet.options.iter().filter(|_| packet.kind.has_ack()).find_map(|option| match option {
        DccpOption::InitCookie(cookie) => Some(cookie),
        _ => None,
    })
}

/// The option's type (RFC 4340 §5.8, table 3).
const MANDATORY: u8 = 1;
