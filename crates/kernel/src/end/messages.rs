//! The messages of a datagram flow, as UDP, QUIC and protocols of ours carry them. [`Outgoing`] makes the
//! bytes of the messages that leave, and [`Incoming`] finds out which message arrived.

use std::sync::Arc;

use talkpath_config::TransportKind;
use talkpath_model::{Demand, Due};
use talkpath_units::{Duration, Instant};
use talkpath_wire::encapsulated::data_in;

use super::context::EndContext;
use super::place::EndPlace;
use crate::log::RowBudget;
use crate::spec::FlowSpec;
use crate::tag::Tagger;
use crate::wire::{FILE_HEADER, ShortNumbers, filling, read_header, write_header};

/// The message in a datagram of a flow over `transport`, with the message's header. `None` if the datagram
/// carries no message that can be read from outside.
pub fn message_in(transport: TransportKind, datagram: &[u8]) -> Option<&[u8]> {
    match transport {
        TransportKind::Udp => Some(datagram),
        TransportKind::Encapsulated(kind) => data_in(kind, datagram),
        TransportKind::Tcp | TransportKind::Quic(_) => None,
    }
}

/// Makes the bytes of messages that leave.
pub(super) struct Outgoing {
    token: u32,
    tagger: Option<Tagger>,
    bytes: Vec<u8>,
}

impl Outgoing {
    pub(super) fn new(place: &EndPlace) -> Self {
        let tagger = place.tag_key.map(|key| Tagger::new(key, place.is_client));
        Self { token: place.token, tagger, bytes: Vec::new() }
    }

    /// The token that this flow's messages carry.
    pub(super) const fn token(&self) -> u32 {
        self.token
    }

    /// Makes message `seq` of `size` bytes: a header, the piece of the file if the flow carries a file, and
    /// filling.
    pub(super) fn fill(&mut self, spec: &FlowSpec, size: u64, seq: u64) -> &[u8] {
        let size = usize::try_from(size).unwrap_or(0);
        if self.bytes.len() != size {
            self.bytes = filling(size);
        }
        if let (Some(file), Some(piece)) = (&spec.file, spec.file_piece()) {
            let begin = usize::try_from(seq.saturating_mul(piece)).unwrap_or(usize::MAX);
            let content = file.content.get(begin..).unwrap_or_default();
            let room = self.bytes.get_mut(FILE_HEADER as usize..).unwrap_or_default();
            room.iter_mut().zip(content).for_each(|(to, from)| *to = *from);
        }
        write_header(&mut self.bytes, self.token, seq);
        if let Some(tagger) = &self.tagger {
            tagger.seal(&mut self.bytes);
        }
        &self.bytes
    }

    /// Makes an echo of the other end's message. If messages are tagged, the echo gets this end's tag, so
    /// that a copy of the message itself is not taken for an echo.
    pub(super) fn echo<'a>(&self, message: &'a mut [u8]) -> &'a [u8] {
        if let Some(tagger) = &self.tagger {
            tagger.seal(message);
        }
        message
    }
}

/// Finds out which message a datagram carries, and counts each message once.
pub(super) struct Incoming {
    token: u32,
    /// Checks the tags of the other end's messages, if messages are tagged.
    tagger: Option<Tagger>,
    /// One more than the largest number that a message of the workload may have.
    bound: u64,
    /// One more than the largest number that has arrived. The low bits in a header are completed to a number
    /// near it.
    expected: u64,
    /// Completes the numbers of messages on a clock that are too short for a whole number. `None` for others.
    short: Option<ShortNumbers>,
    /// One bit for each message number that has arrived, 64 bits in each word.
    seen: Vec<u64>,
    /// The number of messages that have arrived, without duplicates.
    unique: u64,
    /// Pays for the rows of echoes. `None` at an end that sends no echoes.
    echoes: Option<EchoRows>,
}

/// Charges the memory budget for the rows of the echoes that an end sends. The rows lie in the order of the
/// message numbers, so an echo also makes the missing rows of all messages before it. The budget pays for all
/// these rows before the first of them is made.
pub(super) struct EchoRows {
    budget: Arc<RowBudget>,
    /// The budget has paid for the rows of all messages with a number below this.
    paid: u64,
}

impl Incoming {
    pub(super) fn new(spec: &FlowSpec, place: &EndPlace, bound: u64, common: &EndContext) -> Self {
        let tagger = place.tag_key.map(|key| Tagger::new(key, !place.is_client));
        let short = match spec.workload.demand() {
            Demand::Clocked { size, messages, nanos } => {
                let start = (spec.due == Due::Start).then(|| Instant::from_nanos(spec.start_ns));
                ShortNumbers::new(size.get(), messages, nanos, start)
            }
            Demand::Bursts { .. } | Demand::Greedy { .. } => None,
        };
        let echoes = EchoRows::of(spec, place, common);
        Self { token: place.token, tagger, bound, expected: 0, short, seen: Vec::new(), unique: 0, echoes }
    }

    /// The number of the message `payload`, which came at `now`. `None` if it is no message of this flow, or
    /// if the memory budget has no row for its echo.
    pub(super) fn number_in(&mut self, spec: &FlowSpec, payload: &[u8], now: Instant) -> Option<u64> {
        if self.tagger.as_ref().is_some_and(|tagger| !tagger.accepts(payload)) {
            return None;
        }
        let seq = match &mut self.short {
            Some(short) => short.number_in(payload, now)?,
            None => read_header(payload, self.token, self.expected)?,
        };
        let is_whole = spec.allows_datagram(seq, payload.len() as u64);
        let is_payable = |echoes: &mut EchoRows| echoes.pay_for(seq, spec, now);
        (is_whole && seq < self.bound && self.echoes.as_mut().is_none_or(is_payable)).then_some(seq)
    }

    /// The number of echoes whose rows the memory budget paid for when their messages came.
    pub(super) fn paid_rows(&self) -> u64 {
        self.echoes.as_ref().map_or(0, EchoRows::paid)
    }

    /// Records that message `seq` came. The low bits in later headers are completed to numbers near it.
    pub(super) fn expect_after(&mut self, seq: u64) {
        self.expected = self.expected.max(seq + 1);
    }

    /// Records that the application has read message `seq`. [`Incoming::number_in`] returned this number.
    pub(super) fn note(&mut self, seq: u64) {
        self.expect_after(seq);
        // `bound` limits the number, and the session's budget limits `bound`, so `seen` stays small.
        let (word, bit) = (usize::try_from(seq / 64).unwrap_or(0), 1 << (seq % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit == 0 {
            self.seen[word] |= bit;
            self.unique += 1;
        }
    }

    /// The longest time in which nothing came, if it was so long that only the clock decided the next number.
    pub(super) fn gap(&self) -> Option<Duration> {
        self.short.as_ref().and_then(ShortNumbers::gap)
    }

    /// The number of messages that have arrived, without duplicates.
    pub(super) const fn unique(&self) -> u64 {
        self.unique
    }
}

impl EchoRows {
    /// Makes the payer of the end at `place` of the flow `spec`. `None` if the end sends no echoes.
    pub(super) fn of(spec: &FlowSpec, place: &EndPlace, common: &EndContext) -> Option<Self> {
        let echoes = spec.has_echo() && !place.is_sender;
        echoes.then(|| Self { budget: Arc::clone(&common.budget), paid: 0 })
    }

    /// The budget has paid for the rows of all messages with a number below this.
    pub(super) const fn paid(&self) -> u64 {
        self.paid
    }

    /// Returns true if the budget has paid, or pays now, for the row of the echo of message `seq`. It does
    /// not pay for a message that cannot be due at `now`. Otherwise one message with a large number could use
    /// up the whole budget.
    pub(super) fn pay_for(&mut self, seq: u64, spec: &FlowSpec, now: Instant) -> bool {
        if seq < self.paid {
            return true;
        }
        let due = spec.message_bound(now.as_nanos().saturating_add(MAX_AHEAD_NS)).unwrap_or(0);
        if seq >= due || !self.budget.take(seq + 1 - self.paid) {
            return false;
        }
        self.paid = seq + 1;
        true
    }
}

/// The most by which the sender's clock may be ahead of this end's clock, ns. We chose 5 s, because round
/// trips of at most a few seconds set both clocks, and the messages of a few seconds cost little.
const MAX_AHEAD_NS: u64 = 5_000_000_000;
