//! The arrivals: packets come from the devices into slots, and enter the network.

use talkpath_config::TransportKind;
use talkpath_kernel::clock::WallStamps;
use talkpath_path::{Direction, Dscp};
use talkpath_units::{Duration, Instant};

use super::owner::{FlowPacket, Owner, find_owner};
use super::slots::Slot;
use super::{BURST, EmuFlow, Emulator};
use crate::capture::Interface;
use crate::decision::Arrival;
use crate::device::Received;
use crate::lanes::Entered;
use crate::packet::{Host, Protocol, UDP_HEADER, segment_range};
use crate::stops::LATE;

/// A packet that waits in a device.
#[derive(Clone, Copy)]
struct WaitingPacket {
    host: Host,
    /// CLOCK_REALTIME, ns.
    stamp_ns: i64,
}

/// A packet in a slot that enters the path.
#[derive(Clone, Copy)]
struct EnteringPacket {
    /// The host that has sent the packet.
    host: Host,
    slot: u32,
    arrival: Instant,
    backlog: Duration,
}

impl Emulator<'_> {
    /// Receives the packets that wait in both devices, at most [`BURST`], in the order of their stamps.
    /// Returns the number of packets.
    pub(super) fn receive_burst(&mut self) -> usize {
        // A reading of the clocks, which converts stamps to the run's clock.
        let mut reading: Option<WallStamps> = None;
        for received in 0..BURST {
            let Some(WaitingPacket { host, stamp_ns }) = self.next_waiting() else { return received };
            // If the packet came after the clocks were read, the clocks are read again.
            let valid = reading.filter(|reading| reading.follows(stamp_ns));
            let valid = valid.unwrap_or_else(|| self.clock.beside_wall());
            reading = Some(valid);
            let stamp = valid.at(stamp_ns);
            let arrival = stamp.max(self.network.now());
            self.receive(host, arrival, arrival.since(stamp));
        }
        BURST
    }

    /// Returns the waiting packet with the earliest stamp.
    fn next_waiting(&self) -> Option<WaitingPacket> {
        let oldest = |host: Host| {
            let stamp_ns = self.devices[host.index()].oldest_stamp_ns()?;
            Some(WaitingPacket { host, stamp_ns })
        };
        match (oldest(Host::First), oldest(Host::Second)) {
            (Some(first), Some(second)) if second.stamp_ns < first.stamp_ns => Some(second),
            (Some(first), _) => Some(first),
            (None, second) => second,
        }
    }

    /// Receives the oldest packet from the device of `host` into a slot, and lets it enter the path.
    fn receive(&mut self, host: Host, arrival: Instant, backlog: Duration) {
        let device = &mut self.devices[host.index()];
        let Some(slot) = self.slots.allocate() else {
            self.totals.overruns += 1;
            device.discard();
            return;
        };
        let entry = &mut self.slots[slot];
        match device.receive(&mut entry.bytes) {
            Received::Packet { parsed, needs_checksum } => {
                (entry.parsed, entry.needs_checksum) = (parsed, needs_checksum);
                self.totals.backlog.record_unsigned(backlog);
                self.handle_packet(EnteringPacket { host, slot, arrival, backlog });
            }
            // Packets that stay on their link do not cross the path.
            Received::Stray => self.slots.release(slot),
            Received::TooLarge => {
                self.totals.refused += 1;
                self.slots.release(slot);
            }
        }
    }

    fn handle_packet(&mut self, packet: EnteringPacket) {
        let Slot { bytes, parsed, .. } = &self.slots[packet.slot];
        match find_owner(bytes, parsed, packet.host, &self.flows, &self.fragment_owners) {
            Owner::Flow(flow_packet) => self.handle_flow_packet(packet, flow_packet),
            Owner::Program { conversation } => self.handle_program_packet(packet, conversation),
        }
    }

    /// Lets a packet of a flow enter the path.
    fn handle_flow_packet(&mut self, packet: EnteringPacket, flow_packet: FlowPacket) {
        let EnteringPacket { host, slot, arrival, backlog } = packet;
        let entry = &mut self.slots[slot];
        let flow = &mut self.flows[flow_packet.flow as usize];
        flow.late += u64::from(backlog > LATE);
        let direction = host.direction(flow.sender);
        let parsed = entry.parsed;
        let datagram = match parsed.ports {
            Some(_) => watch_packet(flow, direction, entry, arrival),
            // A later fragment has no header of TCP or UDP. The number of its datagram is that of the first
            // fragment.
            None => flow_packet.datagram,
        };
        let is_first_fragment = parsed.part.more && parsed.ports.is_some();
        if is_first_fragment {
            let owner = Owner::Flow(FlowPacket { datagram, ..flow_packet });
            self.fragment_owners.record(host, parsed.identification, owner);
        }
        (entry.flow, entry.row) = (Some(flow_packet.flow), None);
        (entry.direction, entry.datagram) = (direction, datagram);
        entry.enter_path(host.other());
        let transport = flow.transport;
        self.capture_arrival(slot, transport, arrival);
        self.enter(slot, flow_packet.path, arrival);
    }

    /// Lets a packet of one of the user's programs enter the path. A later fragment belongs to
    /// `conversation`.
    fn handle_program_packet(&mut self, packet: EnteringPacket, conversation: Option<u32>) {
        let EnteringPacket { host, slot, arrival, .. } = packet;
        let entry = &mut self.slots[slot];
        let parsed = entry.parsed;
        let bytes = &entry.bytes[..parsed.length];
        let entered = match &mut self.lanes {
            Some(lanes) => lanes.on_arrival(host, bytes, &parsed, conversation, arrival),
            None => None,
        };
        let Some(Entered { lane, conversation, row }) = entered else {
            self.totals.strays += u64::from(!matches!(parsed.protocol, Protocol::Other(_)));
            self.slots.release(slot);
            return;
        };
        let is_first_fragment = parsed.part.more && parsed.part.offset == 0;
        if is_first_fragment {
            let owner = Owner::Program { conversation: Some(conversation) };
            self.fragment_owners.record(host, parsed.identification, owner);
        }
        (entry.flow, entry.row) = (None, Some(row));
        // The first host's packets take the outward direction of each lane.
        (entry.direction, entry.datagram) = (host.direction(Host::First), None);
        entry.enter_path(host.other());
        self.capture_arrival(slot, TransportKind::Udp, arrival);
        self.enter(slot, lane, arrival);
    }

    fn capture_arrival(&mut self, slot: u32, transport: TransportKind, arrival: Instant) {
        let Some(capture) = &mut self.capture else { return };
        let Slot { bytes, parsed, needs_checksum, direction, .. } = &self.slots[slot];
        // A packet on its way back arrives at the path from the far end.
        let interface = Interface::of(*direction == Direction::Back, transport);
        capture.record(interface, &bytes[..parsed.length], parsed, *needs_checksum, arrival);
    }

    /// Lets the packet in `slot` enter the network at `arrival`, on the path with this number.
    fn enter(&mut self, slot: u32, path: u32, arrival: Instant) {
        let Slot { parsed, direction, ref bytes, .. } = self.slots[slot];
        let dscp = Dscp::numbered(parsed.dscp(bytes)).unwrap_or_default();
        self.totals.packets += 1;
        // The earlier decisions are logged before this arrival, so that the log is in the order of time.
        self.decide_until(arrival);
        let packet = Arrival { flow: path, direction, part: parsed.part, ecn: parsed.ecn, dscp };
        self.log.arrival(&packet, parsed.identification, arrival);
        self.network.handle_arrival(packet, slot, arrival, &mut self.decisions);
        self.record_services();
        self.log_decisions();
    }
}

/// Shows a packet with a transport header to the watch of its flow. Returns the number under which the watch
/// knows the datagram.
fn watch_packet(flow: &mut EmuFlow, direction: Direction, entry: &Slot, arrival: Instant) -> Option<u64> {
    let watch = &mut flow.watches[direction as usize];
    match entry.parsed.protocol {
        Protocol::Udp => {
            let payload = entry.bytes.get(entry.parsed.header + UDP_HEADER..entry.parsed.length);
            watch.on_datagram(payload.unwrap_or(&[]), arrival)
        }
        Protocol::Tcp => {
            if !flow.is_multipath
                && let Some(range) = segment_range(&entry.bytes, &entry.parsed)
            {
                watch.on_segment(&range, arrival);
            }
            None
        }
        // Only protocols with ports have flows.
        Protocol::Other(_) => None,
    }
}
