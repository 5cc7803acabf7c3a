//! The departures: the path's decisions are carried out.
//!
//! | decision | what the emulator does |
//! | --- | --- |
//! | departs | writes the packet, or its piece, to the device of its destination |
//! | departs damaged | writes it with one bit changed, and records the damage, which the host will notice |
//! | repeated | waits for one decision more about the packet |
//! | dropped, lost | records the drop, because nothing else would report it |
//!
//! Datagrams of one flow whose departures have come leave as a train: one write, which the receiving host's
//! kernel cuts again.

use std::sync::atomic::Ordering;

use rustix::io::Errno;
use talkpath_arena::links::cause_of_drop;
use talkpath_config::TransportKind;
use talkpath_measure::DropCause;
use talkpath_model::IpVersion;
use talkpath_path::{Direction, FragmentRange};
use talkpath_units::{Duration, Ecn, Instant, Seed};

use super::slots::{Slot, weight};
use super::{EmuFlow, Emulator, TrainDatagram};
use crate::capture::Interface;
use crate::decision::{Decision, PacketOutcome};
use crate::device::{MAX_TRAIN, complete_checksum};
use crate::packet::{UDP_HEADER, set_ce, write_fragment};
use crate::stops::LATE;

/// The largest number of bytes in a train, with the headers of each datagram. We chose 65,000, which is below
/// the largest IP packet (RFC 791 §3.1).
const MAX_TRAIN_BYTES: usize = 65_000;

impl Emulator<'_> {
    /// Carries out all decisions of the path.
    pub(super) fn carry_out_decisions(&mut self) {
        if self.decisions.is_empty() {
            return;
        }
        let mut decisions = core::mem::take(&mut self.decisions);
        for decision in decisions.drain(..) {
            let slot = &mut self.slots[decision.tag];
            if let PacketOutcome::Repeated { .. } = decision.outcome {
                slot.undecided += weight(decision.part);
                slot.is_repeated = true;
                continue;
            }
            slot.undecided = slot.undecided.saturating_sub(weight(decision.part));
            let is_last_piece = slot.undecided == 0;
            // A repeated packet is lost if all copies are.
            let has_other_copy = slot.is_repeated && (slot.has_departed || !is_last_piece);
            let mut is_in_train = false;
            match decision.outcome {
                PacketOutcome::Departs { is_ce, is_damaged } => {
                    is_in_train = self.depart(&decision, is_ce, is_damaged);
                }
                PacketOutcome::Dropped { .. } | PacketOutcome::Lost { .. } if has_other_copy => {}
                PacketOutcome::Dropped { cause, .. } => {
                    self.record_drop(decision.tag, decision.part, cause_of_drop(cause));
                }
                PacketOutcome::Lost { .. } => self.record_drop(decision.tag, decision.part, DropCause::Loss),
                PacketOutcome::Repeated { .. } => {}
            }
            if is_last_piece && !is_in_train {
                self.slots.release(decision.tag);
            }
        }
        (self.decisions, self.logged) = (decisions, 0);
        self.send_train();
        self.last_write = self.clock.now();
    }

    /// Writes a packet, or a piece of a packet, to its destination, or adds the packet to the train. Returns
    /// true if the packet is in the train.
    fn depart(&mut self, decision: &Decision, is_ce: bool, is_damaged: bool) -> bool {
        let slot = &mut self.slots[decision.tag];
        slot.has_departed |= !is_damaged;
        if let Some(flow) = flow_of(&mut self.flows, slot) {
            flow.marked[slot.direction as usize] += u64::from(is_ce);
        }
        slot.has_left_marked = is_ce;
        let is_newly_marked = is_ce && slot.parsed.ecn != Ecn::Ce;
        let is_as_it_came = decision.part == slot.parsed.part && !is_damaged && !slot.is_repeated;
        if !is_as_it_came {
            self.write_altered(decision, is_newly_marked, is_damaged);
            return false;
        }
        if is_newly_marked {
            set_ce(&mut slot.bytes, &slot.parsed);
        }
        let slot = &self.slots[decision.tag];
        if slot.parsed.fits_in_train() && self.devices[slot.to.index()].supports_trains {
            if !self.fits_behind_train(slot) {
                self.send_train();
            }
            self.train.push(TrainDatagram { slot: decision.tag, departure: decision.at });
            return true;
        }
        self.send_train();
        let slot = &self.slots[decision.tag];
        let packet = &slot.bytes[..slot.parsed.length];
        let now = self.clock.now();
        let written = self.devices[slot.to.index()].write(packet, &slot.parsed, slot.needs_checksum);
        self.record_lateness(decision.tag, now.since(decision.at));
        self.record_write(decision.tag, decision.part, written, now);
        false
    }

    /// Writes what is not a packet as it came to its destination: a piece of a packet, one of several copies,
    /// or a damaged packet. It is made in `self.piece`, so that the bytes in the slot stay as they are.
    fn write_altered(&mut self, decision: &Decision, is_newly_marked: bool, is_damaged: bool) {
        self.send_train();
        let slot = &mut self.slots[decision.tag];
        let is_whole = decision.part == slot.parsed.part;
        if slot.parsed.ip == IpVersion::V6 && !is_whole {
            // Routers do not cut packets of IPv6, and the hosts here send none that a link would have to cut.
            self.totals.refused += 1;
            return;
        }
        if slot.needs_checksum {
            // The host cannot complete the checksum from a piece of the packet, and would hide the damage.
            complete_checksum(&mut slot.bytes, &slot.parsed);
            slot.needs_checksum = false;
        }
        if is_whole {
            self.piece.clear();
            self.piece.extend_from_slice(&slot.bytes[..slot.parsed.length]);
        } else {
            write_fragment(&slot.bytes[..slot.parsed.length], &slot.parsed, decision.part, &mut self.piece);
        }
        if is_newly_marked {
            set_ce(&mut self.piece, &slot.parsed);
        }
        if is_damaged {
            change_bit(&mut self.piece[slot.parsed.header..], decision.number);
        }
        let now = self.clock.now();
        let written = self.devices[slot.to.index()].write(&self.piece, &slot.parsed, false);
        self.record_lateness(decision.tag, now.since(decision.at));
        if !is_damaged {
            return self.record_write(decision.tag, decision.part, written, now);
        }
        self.capture_departure(decision.tag, true, now);
        let slot = &self.slots[decision.tag];
        let has_other_copy = slot.is_repeated && (slot.has_departed || slot.undecided > 0);
        if !has_other_copy {
            self.record_drop(decision.tag, decision.part, DropCause::Damage);
        }
    }

    /// Returns true if the datagram in `slot` can be written behind those of the train. It must have the same
    /// flow, direction and ECN field as the first datagram. It may be shorter than the first datagram, but
    /// only as the last one of the train.
    fn fits_behind_train(&self, slot: &Slot) -> bool {
        let (Some(first), Some(last)) = (self.train.first(), self.train.last()) else { return true };
        let (first, last) = (&self.slots[first.slot], &self.slots[last.slot]);
        let length = |slot: &Slot| slot.parsed.length;
        let train_bytes = length(first) * (self.train.len() + 1);
        self.train.len() < MAX_TRAIN
            && train_bytes <= MAX_TRAIN_BYTES
            && (slot.flow, slot.to, slot.parsed.header) == (first.flow, first.to, first.parsed.header)
            && slot.bytes[1] == first.bytes[1]
            && length(last) == length(first)
            && length(slot) <= length(first)
            && length(slot) > slot.parsed.header + UDP_HEADER
    }

    /// Writes the train, if there is one.
    fn send_train(&mut self) {
        let Some(first) = self.train.first() else { return };
        let now = self.clock.now();
        let first = &self.slots[first.slot];
        let device = &mut self.devices[first.to.index()];
        let packet = &first.bytes[..first.parsed.length];
        let written = if self.train.len() == 1 {
            device.write(packet, &first.parsed, first.needs_checksum)
        } else {
            let headers = first.parsed.header + UDP_HEADER;
            let later_payloads = self.train[1..].iter().map(|datagram| {
                let slot = &self.slots[datagram.slot];
                &slot.bytes[headers..slot.parsed.length]
            });
            device.write_train(packet, &first.parsed, later_payloads, first.parsed.length - headers)
        };
        if written == Err(Errno::INVAL) && self.train.len() > 1 {
            self.break_up_train();
            return;
        }
        let mut train = core::mem::take(&mut self.train);
        for TrainDatagram { slot, departure } in train.drain(..) {
            self.record_lateness(slot, now.since(departure));
            self.record_write(slot, self.slots[slot].parsed.part, written, now);
            self.slots.release(slot);
        }
        self.train = train;
    }

    /// Writes the train's datagrams one by one. The kernel does not support trains, so no more trains are
    /// made.
    fn break_up_train(&mut self) {
        for device in &mut self.devices {
            device.supports_trains = false;
        }
        for datagram in core::mem::take(&mut self.train) {
            self.train.push(datagram);
            self.send_train();
        }
    }

    fn record_lateness(&mut self, slot: u32, lateness: Duration) {
        self.totals.lateness.record_unsigned(lateness);
        if let Some(flow) = flow_of(&mut self.flows, &self.slots[slot]) {
            flow.late += u64::from(lateness > LATE);
        }
    }

    /// Records the write of a packet, or of the piece of it that lies in `self.piece`. `written` is an error
    /// if the device refused it.
    fn record_write(&mut self, slot: u32, part: FragmentRange, written: Result<(), Errno>, now: Instant) {
        if written.is_err() {
            self.totals.refused += 1;
            return;
        }
        let is_altered = part != self.slots[slot].parsed.part || self.slots[slot].is_repeated;
        self.capture_departure(slot, is_altered, now);
        let slot = &self.slots[slot];
        let flow = flow_of(&mut self.flows, slot);
        if let (Some(lanes), Some(row)) = (&mut self.lanes, slot.row) {
            lanes.on_departed(row, slot.has_left_marked, now);
        }
        if let (Some(datagram), Some(flow)) = (slot.datagram, flow) {
            let bytes = slot.parsed.transport_bytes(part);
            flow.watches[slot.direction as usize].on_departed(datagram, bytes.into());
        }
    }

    /// Captures what was written to the host of the packet in `slot`: the bytes of `self.piece` if they are
    /// not the packet as it came.
    fn capture_departure(&mut self, slot: u32, is_altered: bool, now: Instant) {
        let slot = &self.slots[slot];
        let flow = flow_of(&mut self.flows, slot);
        let Some(capture) = &mut self.capture else { return };
        let bytes: &[u8] = if is_altered { &self.piece } else { &slot.bytes[..slot.parsed.length] };
        let transport = flow.map_or(TransportKind::Udp, |flow| flow.transport);
        // A packet on its way out leaves the path at the far end.
        let interface = Interface::of(slot.direction == Direction::Out, transport);
        capture.record(interface, bytes, &slot.parsed, slot.needs_checksum, now);
    }

    /// Records that the path has dropped or lost a packet or a piece. A datagram that has lost a piece is
    /// lost as a whole. A TCP segment is not recorded, because TCP sends its bytes again.
    fn record_drop(&mut self, slot: u32, part: FragmentRange, cause: DropCause) {
        let slot = &self.slots[slot];
        if let (Some(lanes), Some(row)) = (&mut self.lanes, slot.row) {
            lanes.on_dropped(row, cause);
        }
        let Some(datagram) = slot.datagram else { return };
        let Some(flow) = flow_of(&mut self.flows, slot) else { return };
        let cause = if part.is_whole() { cause } else { DropCause::Fragment };
        let direction = slot.direction as usize;
        let drops = &flow.drops;
        flow.watches[direction].on_dropped(datagram, cause, |member| {
            if let Some(drops) = drops.get(member) {
                drops[direction].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// Changes one bit of `bytes`, drawn with equal probability. The draw depends on the `number` of the packet
/// alone, so that a copy of a damaged packet has the same damage.
fn change_bit(bytes: &mut [u8], number: u64) {
    let bits = bytes.len() as u64 * 8;
    if bits > 0 {
        let bit = Seed::new(number).stream("damage").below(bits);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

/// Returns the flow of the packet in `slot`. Returns `None` if it is a packet of one of the user's programs.
fn flow_of<'a>(flows: &'a mut [EmuFlow], slot: &Slot) -> Option<&'a mut EmuFlow> {
    flows.get_mut(slot.flow? as usize)
}
