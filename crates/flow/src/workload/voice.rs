//! Voice: a packet of speech each packetisation time, whatever the network does (RFC 3551 §4.2).
//!
//! Packet k is due at open + k ptime. A sender that suppresses silence leaves out the packets of silences:
//!
//! ```text
//!  slots of ptime  ┌─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┐
//!                  │T│T│T│T│D│ │ │ │ │ │T│T│T│     T speech, D the description of the silence
//!                  └─┴─┴─┴─┴─┴─┴─┴─┴─┴─┴─┴─┴─┘
//! ```
//!
//! Talkspurts and silences last as those of ITU-T P.59: exponentially distributed, 1.004 s and 1.587 s in the
//! mean, rounded up to whole packets. A call begins with a talkspurt. The two directions of a conversation
//! are drawn independently here, so people talk at the same time more often than in P.59.
//!
//! The message of a packet that is sent several times has a number for each copy. All are due together.

use std::collections::VecDeque;

use talkpath_model::{LAST_DRAW, SizeSpread, VoiceConfig, VoiceSender};
use talkpath_units::{Bytes, Duration, Instant, Seed, Stream};
use talkpath_wire::Message;

use super::source::{Awaits, Workload};

/// A codec's clock.
#[derive(Clone, Debug)]
pub struct Voice {
    ptime: Duration,
    size: Bytes,
    stop: Instant,
    /// Due time of the message `seq`; `None` before the connection opened.
    next: Option<Instant>,
    seq: u64,
    /// `None` if all packets have the same size and are sent once.
    sender: Option<Box<SenderState>>,
}

/// A sender whose packets differ, or that sends packets several times.
#[derive(Clone, Debug)]
struct SenderState {
    config: VoiceSender,
    /// The mean payload.
    mean: Bytes,
    /// Draws the sizes.
    sizes: Stream,
    /// Draws the talkspurts and silences.
    spurts: Stream,
    phase: Phase,
    /// The packet of the current slot, if it was begun.
    current: Option<Packet>,
    /// The payloads of the packets before the current one, the newest last. It begins anew after a silence.
    earlier: VecDeque<Bytes>,
}

/// A packet that has copies left to send.
#[derive(Clone, Copy, Debug)]
struct Packet {
    size: Bytes,
    copies_left: u8,
}

/// The part of a conversation that the current slot belongs to. The numbers count slots of one packet.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Speech, with this many slots left.
    Talkspurt { left: u64 },
    /// Silence that began `since` slots ago, with this many slots left.
    Silence { since: u64, left: u64 },
}

impl Voice {
    /// Makes the packets of `config`, none at or after `stop`. What is random is drawn from `seed`.
    pub fn new(config: &VoiceConfig, seed: Seed, stop: Instant) -> Self {
        let ptime = config.ptime.max(SHORTEST_PACKET);
        let sender = config.sender.map(|sender| {
            let mean = config.size.saturating_sub(sender.headers);
            Box::new(SenderState::new(sender, mean, ptime, seed))
        });
        Self { sender, ..Self::of_one_size(ptime, config.size, stop) }
    }

    /// Makes packets of `size` every `ptime`, none at or after `stop`.
    pub const fn of_one_size(ptime: Duration, size: Bytes, stop: Instant) -> Self {
        Self { ptime, size, stop, next: None, seq: 0, sender: None }
    }
}

impl Workload for Voice {
    #[inline]
    fn awaits(&self) -> Awaits {
        Awaits::Clock
    }

    fn open(&mut self, now: Instant) {
        self.next = Some(now);
    }

    fn poll_message(&mut self, _writable: Bytes, now: Instant) -> Option<Message> {
        let due = self.next.filter(|due| *due <= now && *due < self.stop)?;
        let (size, slots) = match &mut self.sender {
            None => (self.size, 1),
            Some(sender) => sender.next_message(self.ptime),
        };
        let message = Message { seq: self.seq, size, due };
        self.seq += 1;
        self.next = Some(due.saturating_add(self.ptime.saturating_mul(slots)));
        Some(message)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next.filter(|due| *due < self.stop)
    }

    fn is_finished(&self) -> bool {
        self.next.is_some_and(|due| due >= self.stop)
    }
}

impl SenderState {
    fn new(config: VoiceSender, mean: Bytes, ptime: Duration, seed: Seed) -> Self {
        let mut spurts = seed.stream("talkspurt");
        let phase = Phase::Talkspurt { left: slots(&mut spurts, TALKSPURT, ptime) };
        let sizes = seed.stream("size");
        Self { config, mean, sizes, spurts, phase, current: None, earlier: VecDeque::new() }
    }

    /// Returns the size of the next message, and the number of slots until the message after it is due.
    fn next_message(&mut self, ptime: Duration) -> (Bytes, u64) {
        let mut packet = match self.current.take() {
            Some(packet) => packet,
            None => Packet { size: self.next_size(), copies_left: self.config.copies.max(1) },
        };
        packet.copies_left -= 1;
        if packet.copies_left > 0 {
            self.current = Some(packet);
            return (packet.size, 0);
        }
        let slots = self.advance(ptime);
        if slots > 1 {
            self.earlier.clear();
        }
        (packet.size, slots)
    }

    /// Returns the size of the packet of the current slot, with its headers.
    fn next_size(&mut self) -> Bytes {
        let descriptor = self.config.silence.and_then(|silence| silence.descriptor);
        let payload = match (self.phase, descriptor) {
            (Phase::Silence { .. }, Some(descriptor)) => descriptor,
            _ if self.config.spread == SizeSpread::Constant => self.mean,
            _ => self.config.spread.size(self.mean, self.sizes.below(LAST_DRAW + 1)),
        };
        let size = self.config.headers + self.config.payload(payload, self.earlier.iter().copied());
        if self.config.red > 0 {
            self.earlier.push_back(payload);
            if self.earlier.len() > usize::from(self.config.red) {
                self.earlier.pop_front();
            }
        }
        size
    }

    /// Goes to the next slot that has a packet. Returns how many slots later it is.
    fn advance(&mut self, ptime: Duration) -> u64 {
        let Some(silence) = self.config.silence else { return 1 };
        let every = silence.every.map(|every| (every.as_nanos() / ptime.as_nanos()).max(1));
        let mut skipped: u64 = 0;
        loop {
            match self.phase {
                Phase::Talkspurt { left } if left > 1 => {
                    self.phase = Phase::Talkspurt { left: left - 1 };
                    return skipped + 1;
                }
                Phase::Talkspurt { .. } => {
                    self.phase = Phase::Silence { since: 0, left: slots(&mut self.spurts, SILENCE, ptime) };
                    skipped += 1;
                    if silence.descriptor.is_some() {
                        return skipped;
                    }
                }
                Phase::Silence { since, left } => {
                    let step = every.map_or(left, |every| every - since % every);
                    skipped = skipped.saturating_add(step.min(left));
                    if step < left {
                        self.phase = Phase::Silence { since: since + step, left: left - step };
                    } else {
                        self.phase = Phase::Talkspurt { left: slots(&mut self.spurts, TALKSPURT, ptime) };
                    }
                    return skipped;
                }
            }
        }
    }
}

/// Draws how many packets a talkspurt or a silence lasts, at least one.
fn slots(spurts: &mut Stream, mean: Duration, ptime: Duration) -> u64 {
    let nanos = spurts.exponential() * mean.as_nanos() as f64;
    // The conversion saturates. Its argument is never negative.
    ((nanos / ptime.as_nanos() as f64).ceil() as u64).max(1)
}

/// The mean talkspurt and the mean pause (ITU-T P.59, Table 1).
const TALKSPURT: Duration = Duration::from_millis(1004);
const SILENCE: Duration = Duration::from_millis(1587);

/// A packet time of zero would never let the clock move on.
const SHORTEST_PACKET: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests;
