//! How an application reads: at once or slowly, and what it owes back for what it read.

use talkpath_model::EchoWrite;
use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::{Delivery, Message};

use super::{Application, HostMeter};
use crate::channel::Channel;
use crate::taps::{FlowTaps, Side};

/// When a message counts as received, and since when its host may have held it.
#[derive(Clone, Copy)]
struct Arrival {
    at: Instant,
    held_since: Instant,
}

impl Application {
    /// Reads what the application is ready for; returns whether anything was read.
    #[inline(always)]
    pub(super) fn read<C: Channel>(
        &mut self,
        channel: &mut C,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
    ) -> bool {
        // Only the far end's application does.
        if side == Side::Near || !self.reads_plainly || now < self.reading_again_at {
            return self.read_slow(channel, taps, now);
        }
        self.reading_again_at = Instant::ZERO;
        let Some(read) = channel.read(self.flow, Bytes::MAX, now) else { return false };
        let Delivery::Stream { bytes } = read.delivery else { return false };
        let completed = taps.forward.on_read(bytes, now);
        if self.first_read.is_none() && !completed.is_empty() {
            self.first_read = Some(now);
        }
        true
    }

    fn read_slow<C: Channel>(&mut self, channel: &mut C, taps: &mut FlowTaps, now: Instant) -> bool {
        let Some(tap) = taps.read_by(self.side) else { return false };
        while let Some((seq, cause)) = channel.poll_dropped(self.flow) {
            tap.on_dropped(seq, cause);
        }
        let slow = !self.receiver.service.is_zero();
        if now < self.reading_again_at {
            return false;
        }
        self.reading_again_at = Instant::ZERO;
        let mut any = false;
        while let Some(tap) = taps.read_by(self.side) {
            let limit = if slow && !self.keeps_messages && !self.receiver.per_read {
                tap.until_next_message()
            } else {
                Bytes::MAX
            };
            let Some(read) = channel.read(self.flow, limit, now) else {
                self.worked_until = None;
                break;
            };
            any = true;
            let (delivery, came_at, held_since) = (read.delivery, read.came_at, read.held_since);
            for &(seq, size) in read.begun {
                tap.on_frame(seq, size);
            }
            if let Some(sink) = &mut self.sink {
                match delivery {
                    Delivery::Message { seq, .. } => sink.on_piece(seq, read.data),
                    Delivery::Stream { .. } => sink.on_read(read.data),
                }
            }
            let now = channel.now(now);
            // A slow application's message counts when it is read, a prompt one's when it came.
            let at = came_at.filter(|_| !slow).unwrap_or(now);
            let arrival = Arrival { at, held_since: held_since.filter(|_| !slow).unwrap_or(at) };
            let whole_messages = self.take_delivery(taps, delivery, arrival, now);
            if slow && (whole_messages > 0 || self.receiver.per_read) {
                let until = self.worked_until.unwrap_or(now) + self.receiver.service;
                self.worked_until = Some(until);
                self.reading_again_at = until;
                break;
            }
            if !self.keeps_messages && !slow {
                // One read without a limit takes all that there is, or what the channel gives at once.
                break;
            }
        }
        // What is read while an answer is coming is answered with it.
        if any
            && self.echo.is_some()
            && self.answering_at == Instant::ZERO
            && let Some(wake_up) = &mut self.wake_up
        {
            let (max, stream) = &mut **wake_up;
            self.answering_at = now + stream.span(Duration::ZERO, *max);
        }
        any
    }

    /// Notes what a read at `now` returned, and what is owed back for it: an echo is due now, not when its
    /// message came, so that the time between is no part of the round trip. Returns how many messages it
    /// completed.
    fn take_delivery(
        &mut self,
        taps: &mut FlowTaps,
        delivery: Delivery,
        arrival: Arrival,
        now: Instant,
    ) -> usize {
        if let Some(host) = &mut self.host {
            host.last_arrival = host.last_arrival.max(arrival.at);
        }
        let Some(tap) = taps.read_by(self.side) else { return 0 };
        match delivery {
            Delivery::Message { seq, size } => {
                tap.on_received(seq, arrival.at);
                self.first_read.get_or_insert(arrival.at);
                self.write_back(taps, seq, size, arrival, now);
                1
            }
            Delivery::Stream { bytes } => {
                let completed = tap.on_read(bytes, arrival.at);
                if !completed.is_empty() {
                    self.first_read.get_or_insert(arrival.at);
                }
                match self.echo {
                    Some(EchoWrite::PerRead) => self.write_back_bytes(taps, bytes, arrival, now),
                    Some(EchoWrite::PerMessage) => {
                        for position in completed.clone() {
                            if let Some((seq, size)) = taps.forward.stream_message(position) {
                                self.write_back(taps, seq, size, arrival, now);
                            }
                        }
                    }
                    None => {}
                }
                completed.len()
            }
        }
    }

    fn write_back(&mut self, taps: &mut FlowTaps, seq: u64, size: Bytes, arrival: Arrival, now: Instant) {
        if self.echo.is_some()
            && let Some(tap) = &mut taps.echo
        {
            tap.on_due(seq, size, now);
            self.backlog.push_back(Message { seq, size, due: now });
            note_turn(&mut self.host, arrival, now);
        }
    }

    /// What one read returned is to be written back in one write, whole messages or not.
    fn write_back_bytes(&mut self, taps: &mut FlowTaps, bytes: Bytes, arrival: Arrival, now: Instant) {
        let FlowTaps { forward, echo: Some(echo) } = taps else { return };
        let unread = self.stream_echo.begun..forward.begun_messages();
        self.stream_echo.begun = unread.end;
        for (seq, size) in unread.filter_map(|position| forward.stream_message(position)) {
            echo.on_due(seq, size, now);
            self.stream_echo.unsent.push_back((seq, self.stream_echo.begun_end));
            self.stream_echo.begun_end += size.get();
            note_turn(&mut self.host, arrival, now);
        }
        self.stream_echo.unwritten += bytes;
    }
}

/// The echo of what came by `arrival` is offered to the channel at `now`.
fn note_turn(host: &mut Option<Box<HostMeter>>, arrival: Arrival, now: Instant) {
    if let Some(host) = host {
        host.turn_rounds.add(arrival.held_since, now);
    }
}
