//! Carries out the path's decisions. Packets and pieces of packets are written one by one. Datagrams of one
//! flow whose departures have come are written as a train: one write, which the far host's kernel cuts again.
//! Drops are noted, because nothing else would report them.

use std::sync::atomic::Ordering;

use rustix::io::Errno;
use talkpath_arena::links::cause_of_drop;
use talkpath_config::TransportKind;
use talkpath_measure::DropCause;
use talkpath_model::IpVersion;
use talkpath_path::{Direction, FragmentRange};
use talkpath_units::{Duration, Ecn, Instant};

use super::{Emulator, Slot};
use crate::capture::Interface;
use crate::decision::{Decision, PacketOutcome};
use crate::device::{MAX_TRAIN, complete_checksum};
use crate::packet::{UDP_HEADER, set_ce, write_fragment};
use crate::stops::LATE;

impl Emulator<'_> {
    /// Carries out all decisions of the path.
    pub(super) fn carry_out(&mut self) {
        if self.decisions.is_empty() {
            return;
        }
        let mut decisions = core::mem::take(&mut self.decisions);
        for decision in decisions.drain(..) {
            let slot = &mut self.slots[decision.tag as usize];
            slot.undecided = slot.undecided.saturating_sub(decision.part.length);
            let is_done = slot.undecided == 0;
            let mut is_in_train = false;
            match decision.outcome {
                PacketOutcome::Departs { is_ce } => is_in_train = self.depart(&decision, is_ce),
                PacketOutcome::Dropped { cause, .. } => {
                    self.note_drop(decision.tag, decision.part, cause_of_drop(cause));
                }
                PacketOutcome::Lost { .. } => self.note_drop(decision.tag, decision.part, DropCause::Loss),
            }
            if is_done && !is_in_train {
                self.free.push(decision.tag);
            }
        }
        (self.decisions, self.logged) = (decisions, 0);
        self.send_train();
        self.written = self.clock.now();
    }

    /// Writes a packet, or a piece of a packet, to its destination, or adds the packet to the train. Returns
    /// true if the packet is in the train.
    fn depart(&mut self, decision: &Decision, is_ce: bool) -> bool {
        let slot = &mut self.slots[decision.tag as usize];
        let is_marked = is_ce && slot.parsed.ecn != Ecn::Ce;
        if let Some(flow) = self.flows.get_mut(slot.flow as usize) {
            flow.marked[slot.direction as usize] += u64::from(is_ce);
        }
        slot.has_left_marked = is_ce;
        if is_marked && decision.part == slot.parsed.part {
            set_ce(&mut slot.bytes, &slot.parsed);
        }
        let slot = &self.slots[decision.tag as usize];
        let is_whole = decision.part == slot.parsed.part;
        if is_whole && slot.parsed.fits_in_train() && self.devices[slot.to.index()].takes_trains {
            if !self.is_next_of_train(slot) {
                self.send_train();
            }
            self.train.push((decision.tag, decision.at));
            return true;
        }
        self.send_train();
        let slot = &mut self.slots[decision.tag as usize];
        let is_piece = !is_whole;
        if is_piece && slot.parsed.ip == IpVersion::V6 {
            // Routers do not cut packets of IPv6, and the hosts here send none that a link would have to cut.
            self.totals.refused += 1;
            return false;
        }
        if is_piece && slot.is_unsummed {
            // The host cannot complete the checksum from a piece of the packet.
            complete_checksum(&mut slot.bytes, &slot.parsed);
            slot.is_unsummed = false;
        }
        let packet = &slot.bytes[..slot.parsed.length];
        let bytes = if is_piece {
            write_fragment(packet, &slot.parsed, decision.part, &mut self.fragment);
            if is_marked {
                set_ce(&mut self.fragment, &slot.parsed);
            }
            &self.fragment
        } else {
            packet
        };
        let now = self.clock.now();
        let written = self.devices[slot.to.index()].write(bytes, &slot.parsed, slot.is_unsummed);
        self.note_lateness(decision.tag, now.since(decision.at));
        self.note_written(decision.tag, decision.part, written, now);
        false
    }

    /// Returns true if the datagram in `slot` can be written behind those of the train. It must have the same
    /// flow, direction and ECN field as the first datagram. It may be shorter than the first datagram, but
    /// only as the last one of the train.
    fn is_next_of_train(&self, slot: &Slot) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.train.first(), self.train.last()) else {
            return true;
        };
        let (first, last) = (&self.slots[*first as usize], &self.slots[*last as usize]);
        let length = |slot: &Slot| slot.parsed.length;
        let whole = length(first) * (self.train.len() + 1);
        self.train.len() < MAX_TRAIN
            && whole <= MAX_TRAIN_BYTES
            && (slot.flow, slot.to, slot.parsed.header) == (first.flow, first.to, first.parsed.header)
            && slot.bytes[1] == first.bytes[1]
            && length(last) == length(first)
            && length(slot) <= length(first)
            && length(slot) > slot.parsed.header + UDP_HEADER
    }

    /// Writes the train, if there is one.
    fn send_train(&mut self) {
        let Some(&(first, _)) = self.train.first() else { return };
        let now = self.clock.now();
        let first = &self.slots[first as usize];
        let payload = first.parsed.header + UDP_HEADER;
        let device = &mut self.devices[first.to.index()];
        let packet = &first.bytes[..first.parsed.length];
        let written = if self.train.len() == 1 {
            device.write(packet, &first.parsed, first.is_unsummed)
        } else {
            let rest = self.train[1..].iter().map(|(tag, _)| {
                let slot = &self.slots[*tag as usize];
                &slot.bytes[payload..slot.parsed.length]
            });
            device.write_train(packet, &first.parsed, rest, first.parsed.length - payload)
        };
        if written == Err(Errno::INVAL) && self.train.len() > 1 {
            self.break_train_up();
            return;
        }
        let mut train = core::mem::take(&mut self.train);
        for (tag, at) in train.drain(..) {
            self.note_lateness(tag, now.since(at));
            self.note_written(tag, self.slots[tag as usize].parsed.part, written, now);
            self.free.push(tag);
        }
        self.train = train;
    }

    /// Takes note that a packet is written `late` after its decided departure.
    fn note_lateness(&mut self, tag: u32, late: Duration) {
        self.totals.lateness.record_unsigned(late);
        if let Some(flow) = self.flows.get_mut(self.slots[tag as usize].flow as usize) {
            flow.late += u64::from(late > LATE);
        }
    }

    /// Takes note that a packet, or the piece of it that lies in `fragment`, was written. `written` is an
    /// error if the device did not take it.
    fn note_written(&mut self, tag: u32, part: FragmentRange, written: Result<(), Errno>, now: Instant) {
        if written.is_err() {
            self.totals.refused += 1;
            return;
        }
        let slot = &self.slots[tag as usize];
        let flow = self.flows.get_mut(slot.flow as usize);
        if let Some(capture) = &mut self.capture {
            let is_whole = part == slot.parsed.part;
            let bytes: &[u8] = if is_whole { &slot.bytes[..slot.parsed.length] } else { &self.fragment };
            let transport = flow.as_ref().map_or(TransportKind::Udp, |flow| flow.transport);
            let interface = Interface::of(slot.direction == Direction::Out, transport);
            capture.note(interface, bytes, &slot.parsed, slot.is_unsummed, now);
        }
        if let (Some(lanes), Some(row)) = (&mut self.lanes, slot.row) {
            lanes.on_departed(row, slot.has_left_marked, now);
        }
        if let (Some(seq), Some(flow)) = (slot.seq, flow) {
            flow.watches[slot.direction as usize].on_departed(seq, slot.parsed.transport_bytes(part).into());
        }
    }

    /// Writes the train's datagrams one by one and makes no more trains, because the kernel does not support
    /// trains.
    fn break_train_up(&mut self) {
        self.devices.iter_mut().for_each(|device| device.takes_trains = false);
        for coach in core::mem::take(&mut self.train) {
            self.train.push(coach);
            self.send_train();
        }
    }

    /// Takes note that the path dropped or lost a packet or a piece. A datagram that has lost a piece is lost
    /// whole. A TCP segment has no message number and is not noted, because TCP sends its bytes again.
    fn note_drop(&mut self, tag: u32, part: FragmentRange, cause: DropCause) {
        let slot = &self.slots[tag as usize];
        if let (Some(lanes), Some(row)) = (&mut self.lanes, slot.row) {
            lanes.on_dropped(row, cause);
        }
        let Some(seq) = slot.seq else { return };
        let cause = if part.is_whole() { cause } else { DropCause::Fragment };
        let Some(flow) = self.flows.get_mut(slot.flow as usize) else { return };
        let way = slot.direction as usize;
        let drops = &flow.drops;
        flow.watches[way].on_dropped(seq, cause, |member| {
            if let Some(of) = drops.get(member) {
                of[way].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// The largest number of bytes in a train, with the headers of each datagram (chosen: below the largest IP
/// packet, RFC 791 §3.1).
const MAX_TRAIN_BYTES: usize = 65_000;
