//! The messages of a datagram flow, as UDP, QUIC and protocols of ours carry them: filling what leaves,
//! identifying what arrives.

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

/// The message that a datagram of a flow over `transport` carries, header and all; `None` if it carries none,
/// or if the transport does not keep messages whole.
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

    /// What this flow's messages carry.
    pub(super) const fn token(&self) -> u32 {
        self.token
    }

    /// Message `seq` of `size` bytes: its header, then the file's piece if the message has one, and filling.
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

    /// The other end's message, made this end's: what comes back is no copy of what was sent.
    pub(super) fn echo<'a>(&self, message: &'a mut [u8]) -> &'a [u8] {
        if let Some(tagger) = &self.tagger {
            tagger.seal(message);
        }
        message
    }
}

/// Identifies the messages that arrive, and counts each once.
pub(super) struct Incoming {
    token: u32,
    /// Checks the other end's.
    tagger: Option<Tagger>,
    /// One more than the largest sequence number that the workload can reach: what claims more is no message.
    bound: u64,
    expected: u64,
    /// If its numbers are short and on a clock.
    short: Option<ShortNumbers>,
    /// Which sequence numbers arrived, 64 a word.
    seen: Vec<u64>,
    unique: u64,
    /// Rows for echoes; `None` at an end that sends none.
    echoes: Option<EchoRows>,
}

/// Rows of the echoes that an end owes. They are kept by number, so a message costs a row for each before it
/// that has none yet: the budget pays for all of them before the first is made.
pub(super) struct EchoRows {
    budget: Arc<RowBudget>,
    /// Numbers below this have their rows, or the budget has paid for them.
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

    /// The number of the message that `payload` is, which came at `now`; `None` if it is none of this flow's,
    /// or if there is no row for its echo.
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

    /// The number of echoes whose rows the memory budget has already paid for, when their messages came.
    pub(super) fn paid_rows(&self) -> u64 {
        self.echoes.as_ref().map_or(0, EchoRows::paid)
    }

    /// Message `seq` came: short numbers are extended to one near the next.
    pub(super) fn expect_after(&mut self, seq: u64) {
        self.expected = self.expected.max(seq + 1);
    }

    /// Message `seq`, a number that [`Incoming::number_in`] gave, has been read.
    pub(super) fn note(&mut self, seq: u64) {
        self.expect_after(seq);
        // `bound` limits seq, and the session's budget limits `bound`.
        let (word, bit) = (usize::try_from(seq / 64).unwrap_or(0), 1 << (seq % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit == 0 {
            self.seen[word] |= bit;
            self.unique += 1;
        }
    }

    /// The longest time in which nothing came, if it makes numbers rest on the clock alone.
    pub(super) fn gap(&self) -> Option<Duration> {
        self.short.as_ref().and_then(ShortNumbers::gap)
    }

    /// Messages that arrived, duplicates left out.
    pub(super) const fn unique(&self) -> u64 {
        self.unique
    }
}

impl EchoRows {
    /// Those of an end of the flow `spec`; `None` if it echoes nothing.
    pub(super) fn of(spec: &FlowSpec, place: &EndPlace, common: &EndContext) -> Option<Self> {
        let echoes = spec.echo_per_read.is_some() && !place.is_sender;
        echoes.then(|| Self { budget: Arc::clone(&common.budget), paid: 0 })
    }

    /// Numbers below this have their rows, or the budget has paid for them.
    pub(super) const fn paid(&self) -> u64 {
        self.paid
    }

    /// Whether the echo of message `seq` has its row. It has none if the message cannot be due yet: a single
    /// message costs no more than all that may have come before it.
    pub(super) fn pay_for(&mut self, seq: u64, spec: &FlowSpec, now: Instant) -> bool {
        if seq < self.paid {
            return true;
        }
        let due = spec.message_bound(now.as_nanos().saturating_add(MAX_AHEAD_NS));
        if seq >= due || !self.budget.take(seq + 1 - self.paid) {
            return false;
        }
        self.paid = seq + 1;
        true
    }
}

/// How far the sender's clock may be ahead of this end's (chosen: both are set by round trips of at most a
/// few seconds, and a message of the first seconds costs little).
const MAX_AHEAD_NS: u64 = 5_000_000_000;
