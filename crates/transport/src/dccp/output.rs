//! Which packet leaves next, and which options it carries.
//!
//! | order | packet | leaves |
//! | --- | --- | --- |
//! | 1 | Request, Response, Sync, Close, Reset | in the order in which the connection asked for it |
//! | 2 | Ack | if the handshake or the negotiation of features needs an answer now |
//! | 3 | Data, DataAck | if a message waits, and the CCID lets it leave |
//! | 4 | Ack | if the acknowledgement of data is due, and no data packet carried it |
//! | 5 | Close, CloseReq | if the connection closes and all data has left |

use talkpath_units::{Bytes, Ecn, Instant};
use talkpath_wire::dccp::{DccpOption, DccpPacket, Options, PacketKind, Seq};
use talkpath_wire::{HoldCause, IPV4_HEADER, Message, Packet, PayloadRange, Transmit, UDP_HEADER};

use super::ccid::{CcidReceiver, CcidSender, Clearance, Sent};
use super::connection::{Control, Dccp, State};
use super::features::{Carrier, Preference};
use super::{Feature, Location};

impl Dccp {
    /// Returns the next packet, in the order of the table above.
    pub(super) fn next_packet(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(control) = self.outbox.pop_front() {
            return Some(self.control_packet(control, now));
        }
        if !matches!(self.state, State::PartOpen | State::Open) {
            return None;
        }
        if self.owes_ack || self.features.needs_packet(now) {
            let options = self.ack_options(now);
            return Some(self.pure_ack(options, now));
        }
        if let Some(transmit) = self.next_data(now) {
            return Some(transmit);
        }
        if self.receiver.acknowledge_at().is_some_and(|at| at <= now) {
            let options = self.ack_options(now);
            return Some(self.pure_ack(options, now));
        }
        if self.is_closing {
            self.close_if_done(now);
            return self.outbox.pop_front().map(|control| self.control_packet(control, now));
        }
        None
    }

    /// Returns the packet of the first message that waits, unless the CCID holds it back. It may return the
    /// acknowledgement alone, if both do not fit one packet.
    fn next_data(&mut self, now: Instant) -> Option<Transmit> {
        self.paced_until = None;
        let Some(message) = self.queue.front().copied().filter(|_| self.may_carry_data()) else {
            self.held.note(None, now);
            return None;
        };
        if !self.is_cleared(&message, now) {
            return None;
        }
        // A client's data goes with an acknowledgement until the handshake is complete (RFC 4340 §8.1.5).
        let is_part_open = self.state == State::PartOpen;
        let mut options = Options::EMPTY;
        let mut kind = PacketKind::Data;
        if is_part_open || self.receiver.has_news() || self.sender.wants_to_acknowledge() {
            options = self.ack_options(now);
            kind = PacketKind::DataAck;
        } else {
            self.put_common(&mut options, now);
        }
        self.sender.put_options(&mut options, now);
        if self.config.data_checksum {
            // The codec has the data, so it computes the checksum.
            let _ = options.push(DccpOption::DataChecksum(0));
        }
        let packet = DccpPacket { options, ..DccpPacket::new(kind, Seq::new(0), Seq::new(0)) };
        let size = IPV4_HEADER + UDP_HEADER + packet.header_size() as u64 + message.size.get();
        // A message was admitted only if it fits a Data packet.
        let fits = size <= self.mtu || kind == PacketKind::Data;
        if fits {
            self.queue.pop();
            return Some(self.data_packet(message, kind, options, now));
        }
        if is_part_open {
            // Each packet has to carry the acknowledgement and the Init Cookie until the server has answered
            // (RFC 4340 §8.1.5), so the message waits for that answer.
            return None;
        }
        // RFC 4340 §11.2: the acknowledgement leaves alone, and the message in the next packet.
        Some(self.pure_ack(options, now))
    }

    /// True if the CCID lets a packet of `message` leave now. Otherwise notes when a rate will let it leave.
    fn is_cleared(&mut self, message: &Message, now: Instant) -> bool {
        let (paced_until, held_by) = match self.sender.clearance(message.size, now) {
            Clearance::Now => return true,
            Clearance::At(at) if at <= now => return true,
            Clearance::At(at) => (Some(at), HoldCause::Pacing),
            Clearance::Blocked => (None, HoldCause::CongestionWindow),
        };
        self.paced_until = paced_until;
        self.held.note(Some(held_by), now);
        false
    }

    fn data_packet(
        &mut self,
        message: Message,
        kind: PacketKind,
        options: Options,
        now: Instant,
    ) -> Transmit {
        let coverage = self.features.value(Feature::MinimumChecksumCoverage, Location::Remote);
        let wanted = self.config.checksum_coverage;
        let mut packet = DccpPacket {
            // A message fits a packet, so it has at most 65,535 bytes.
            payload: message.size.get() as u32,
            message: message.seq,
            options,
            cscov: if coverage > 0 && u64::from(wanted) >= coverage { wanted } else { 0 },
            ccval: self.sender.ccval(now),
            ..DccpPacket::new(kind, self.numbers.take_next(), Seq::new(0))
        };
        if kind == PacketKind::DataAck {
            packet.ack = self.numbers.gsr;
            self.on_acknowledged(packet.seq, &packet.options, now);
        }
        self.data_packets += 1;
        self.ndp = 0;
        self.finish(packet, now)
    }

    /// Returns an Ack packet with the options of the negotiation, and with as many of `options` as find room.
    /// The negotiation comes first, because a later packet acknowledges again.
    fn pure_ack(&mut self, mut options: Options, now: Instant) -> Transmit {
        let seq = self.numbers.take_next();
        let rtt = self.rtt();
        let mut with_features = Options::EMPTY;
        let carrier = Carrier { seq, has_ack: true, repeats_all: false };
        self.features.put(&mut with_features, carrier, rtt, now);
        if !with_features.is_empty() {
            for option in &options {
                if !with_features.push(option) {
                    break;
                }
            }
            options = with_features;
        }
        let packet = DccpPacket { options, ..DccpPacket::new(PacketKind::Ack, seq, self.numbers.gsr) };
        self.owes_ack = false;
        self.on_acknowledged(seq, &packet.options, now);
        self.finish(packet, now)
    }

    fn control_packet(&mut self, control: Control, now: Instant) -> Transmit {
        let gsr = self.numbers.gsr;
        let service = self.service;
        let (kind, ack) = match control {
            Control::Request => (PacketKind::Request { service }, Seq::new(0)),
            Control::Response => (PacketKind::Response { service }, gsr),
            Control::StatelessResponse { seq, ack, options } => {
                let packet =
                    DccpPacket { options, ..DccpPacket::new(PacketKind::Response { service }, seq, ack) };
                return transmit(packet, Ecn::NotEct);
            }
            Control::Sync(ack) => (PacketKind::Sync, ack),
            Control::SyncAck(ack) => (PacketKind::SyncAck, ack),
            Control::Close => (PacketKind::Close, gsr),
            Control::CloseReq => (PacketKind::CloseReq, gsr),
            // Without a connection, the Reset has the numbers that the packet it answers calls for.
            Control::Reset { reset, numbers: Some((seq, ack)), .. } => {
                return transmit(DccpPacket::new(PacketKind::Reset(reset), seq, ack), Ecn::NotEct);
            }
            Control::Reset { reset, ack, .. } => (PacketKind::Reset(reset), ack),
        };
        let mut packet = DccpPacket::new(kind, self.numbers.take_next(), ack);
        if matches!(control, Control::Request | Control::Response) {
            let rtt = self.rtt();
            let has_ack = control == Control::Response;
            let carrier = Carrier { seq: packet.seq, has_ack, repeats_all: true };
            self.features.put(&mut packet.options, carrier, rtt, now);
            self.probe = Some((packet.seq, now));
        }
        self.put_common(&mut packet.options, now);
        self.finish(packet, now)
    }

    /// Returns the options of an Ack or a DataAck, without those of the negotiation. The Ack Vector is last
    /// and takes the room that is left.
    fn ack_options(&mut self, now: Instant) -> Options {
        let mut options = Options::EMPTY;
        self.put_common(&mut options, now);
        self.receiver.put_options(&mut options, now);
        if self.inbox.is_slow() {
            let _ = options.push(DccpOption::SlowReceiver);
        }
        // If an Ack Vector follows, the report of drops takes at most half of the room. We chose a half: CCID
        // 2 needs the vector (RFC 4341 §4). The newest drops come first, and older drops were reported
        // before.
        let room = if self.sends_ack_vector() { options.room() / 2 } else { options.room() };
        self.drops.put(&mut options, self.numbers.gsr, room);
        if self.sends_ack_vector() {
            self.history.put(&mut options);
        }
        options
    }

    /// Adds the options that any packet may carry: the Init Cookie while it must be echoed, NDP Count and
    /// Timestamp Echo.
    fn put_common(&mut self, options: &mut Options, now: Instant) {
        if self.state == State::PartOpen {
            for option in &self.cookie {
                let _ = options.push(option);
            }
        }
        if self.ndp > 0 && self.features.value(Feature::SendNdpCount, Location::Local) == 1 {
            let _ = options.push(DccpOption::NdpCount(self.ndp));
        }
        if let Some((value, since)) = self.timestamp.take() {
            let elapsed = u32::try_from(now.since(since).as_nanos() / TICK_NANOS).unwrap_or(u32::MAX);
            let _ = options.push(DccpOption::TimestampEcho { value, elapsed });
        }
    }

    fn sends_ack_vector(&self) -> bool {
        self.features.value(Feature::SendAckVector, Location::Local) == 1
    }

    /// Takes note that the packet `seq` leaves with an acknowledgement. The packet may have had no room for
    /// an Ack Vector. The history may later forget only what an Ack Vector has reported (RFC 4340 §11.4.2).
    fn on_acknowledged(&mut self, seq: Seq, options: &Options, now: Instant) {
        if options.into_iter().any(|option| matches!(option, DccpOption::AckVector { .. })) {
            self.history.on_reported(seq);
        }
        self.receiver.on_acknowledged(now);
        self.sender.on_acknowledged();
    }

    /// Completes a packet of the connection that leaves now, and updates what depends on the packets sent.
    fn finish(&mut self, mut packet: DccpPacket, now: Instant) -> Transmit {
        let is_data = packet.payload > 0;
        if !packet.kind.is_data() {
            self.ndp += 1;
        }
        let sent = Sent {
            seq: packet.seq,
            is_data,
            payload: Bytes::new(u64::from(packet.payload)),
            queued: self.queue.len(),
        };
        self.sender.on_sent(&sent, now);
        if self.state == State::PartOpen {
            self.retransmit_at = Some(now + self.interval());
        }
        self.widen_sequence_window();
        self.adjust_ack_ratio();
        if self.state == State::Open
            && packet.kind.may_be_short()
            && self.features.value(Feature::AllowShortSeqnos, Location::Local) == 1
        {
            packet.short = true;
            packet.seq = packet.seq.short();
            packet.ack = packet.ack.short();
        }
        let is_capable = self.takes_marks();
        transmit(packet, if is_capable { Ecn::Ect0 } else { Ecn::NotEct })
    }

    /// Negotiates a wider sequence window if it is less than five times the packets that a round trip sends
    /// (RFC 4340 §7.5.2).
    fn widen_sequence_window(&mut self) {
        let window = self.features.value(Feature::SequenceWindow, Location::Local);
        let wanted = self.numbers.in_flight().saturating_mul(5);
        if wanted > window && window < LARGEST_SEQUENCE_WINDOW {
            let wider = Preference::only(wanted.saturating_mul(2).min(LARGEST_SEQUENCE_WINDOW));
            self.features.want(Feature::SequenceWindow, Location::Local, wider);
        }
    }

    /// Negotiates the Ack Ratio that the CCID of our sender asks for.
    fn adjust_ack_ratio(&mut self) {
        if self.state == State::Open
            && let Some(ratio) = self.sender.wanted_ack_ratio()
        {
            let ratio = Preference::only(u64::from(ratio));
            self.features.want(Feature::AckRatio, Location::Local, ratio);
        }
    }
}

fn transmit(packet: DccpPacket, ecn: Ecn) -> Transmit {
    let payload = (packet.payload > 0).then_some(PayloadRange::Message { seq: packet.message });
    let packet = Packet::Encapsulated(packet.into());
    Transmit { wire_size: packet.wire_size().get() as u32, packet, ecn, payload, retransmission: false }
}

/// The unit of timestamps and elapsed times: 10 us (RFC 4340 §13.1).
const TICK_NANOS: u64 = 10_000;
/// The largest sequence window, Wmax (RFC 4340 §7.5.2).
const LARGEST_SEQUENCE_WINDOW: u64 = (1 << 46) - 1;
