//! A flow's figures without its rows: what has come to its end is counted and forgotten during the run, so
//! that memory depends on what is under way and not on how long the run is.
//!
//! Now and then the arena hands the taps over. The settled rows at the front, those whose fate nothing can
//! change any more, go through the same metrics as rows that are kept (`metrics/`), in the same order; delays
//! go into a histogram, which is where the figures differ from those of kept rows, by a
//! stated error. What needs every row is left out: the record file, and the report's delays over time.

use core::ops::Range;

use talkpath_units::{Bytes, Histogram, Instant};

use crate::metrics::TripCounters;
use crate::metrics::call::{CallCounter, Clocks};
use crate::metrics::delay_variation::{Interarrivals, absolute_difference};
use crate::metrics::settling::Seconds;
use crate::metrics::state_age::NewestState;
use crate::metrics::trip::{Passage, Trip, TripOutcome, one_way_trip, round_trip};
use crate::{Ending, Fate, FlowInfo, LegTap, MessageRecord};

/// What one flow's messages came to.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowTally {
    window: Range<Instant>,
    bounded: bool,
    /// What was delivered is counted in bytes that were read, not in whole messages.
    is_stream: bool,
    /// Whether the delay to the receiver is known, because both ends read one clock.
    knows_ways_out: bool,
    /// Goodput counts from here.
    from: Instant,
    pub(crate) trips: TripCounters,
    /// If it sends states: the newest one, and how old it was at each tick.
    pub(crate) state: Option<(NewestState, Histogram)>,
    /// If it is one.
    pub(crate) call: Option<CallCounter>,
    /// Smallest and largest payload.
    pub(crate) sizes: Option<(u64, u64)>,
    /// Of the forward leg.
    pub(crate) one_way: Histogram,
    /// Of an echo flow.
    pub(crate) round_trip: Option<Histogram>,
    pub(crate) ipdv: Histogram,
    /// The latest trip by number.
    before: Option<Trip>,
    pub(crate) interarrivals: Interarrivals,
    next_expected: u64,
    pub(crate) reordered: u64,
    bytes: u128,
    last_delivery: Option<Instant>,
    /// Offered and delivered second by second, of a clocked flow.
    pub(crate) seconds: Option<Seconds>,
}

impl FlowTally {
    /// Nothing yet of the flow `info`, whose figures count in `window`. If the transport `keeps_messages`,
    /// goodput is of whole messages, otherwise of the bytes that were read.
    /// Both ends read one clock, if `info` trusts it.
    pub fn new(info: &FlowInfo, window: Range<Instant>, keeps_messages: bool, is_echo: bool) -> Self {
        let clocks = if info.clock_trusted { Clocks::One } else { Clocks::Untrusted };
        Self {
            bounded: info.bounded,
            is_stream: !keeps_messages,
            knows_ways_out: info.clock_trusted,
            from: window.start.max(info.start),
            trips: TripCounters::new(&info.terms),
            state: info.terms.is_state.then(|| (NewestState::default(), Histogram::new())),
            call: info.terms.call.map(|terms| CallCounter::new(terms, is_echo, clocks)),
            sizes: None,
            one_way: Histogram::new(),
            round_trip: is_echo.then(Histogram::new),
            ipdv: Histogram::new(),
            before: None,
            interarrivals: Interarrivals::default(),
            next_expected: 0,
            reordered: 0,
            bytes: 0,
            last_delivery: None,
            seconds: info.clocked.then(|| Seconds::new(window.clone())),
            window,
        }
    }

    /// Whether enough has happened that [`FlowTally::take`] is worth its while.
    #[inline]
    pub fn is_due(forward: &LegTap, echo: Option<&LegTap>) -> bool {
        forward.new_events() + echo.map_or(0, LegTap::new_events) >= EVENTS_AT_ONCE
    }

    /// Counts what the taps of the two legs hold and nothing can change any more, and takes it out of them.
    pub fn take(&mut self, forward: &mut LegTap, mut echo: Option<&mut LegTap>) {
        if let Some(seconds) = &mut self.seconds {
            seconds.begin(forward.rows().map(|row| row.due));
        }
        let (arrivals, reads) = forward.take_events();
        let back = echo.as_deref_mut().map(LegTap::take_events);
        let trips = back.as_ref().map_or(&arrivals, |(back, _)| back);
        let mut highest = None;
        for (position, &seq) in trips.iter().enumerate() {
            // Of two copies in one go the first counts; what came before was taken, or is counted in its
            // row's copies.
            if Some(seq) > highest || !trips[..position].contains(&seq) {
                self.on_arrival(seq, forward, echo.as_deref());
            }
            highest = highest.max(Some(seq));
        }
        self.on_reads(&reads);
        forward.reuse_memory(arrivals, reads);
        if let (Some(echo), Some((arrivals, reads))) = (&mut echo, back) {
            echo.reuse_memory(arrivals, reads);
        }
        while let Some((seq, row)) = forward.first_row() {
            let back = echo.as_deref().and_then(|echo| echo.row(seq));
            let Some(row) = row.filter(|row| is_settled(row, echo.is_some(), back)) else { break };
            if row.fate == Fate::Unfinished || back.is_some_and(|back| back.fate == Fate::Unfinished) {
                self.add(&decided(*row), back.copied().map(decided).as_ref());
            } else {
                self.add(row, back);
            }
            forward.remove_first_row();
            if let Some(echo) = &mut echo {
                echo.remove_first_row();
            }
        }
        forward.forget_old_messages();
        if let Some(echo) = echo {
            echo.forget_old_messages();
        }
    }

    /// The run has ended: counts the rest as `ending` says.
    pub fn finish(&mut self, mut forward: LegTap, mut echo: Option<LegTap>, ending: Ending) {
        self.take(&mut forward, echo.as_mut());
        let forward = forward.finish(ending);
        let echo = echo.map(|echo| echo.finish(ending).messages).unwrap_or_default();
        let mut echoes = echo.iter().peekable();
        for row in &forward.messages {
            while echoes.next_if(|back| back.seq < row.seq).is_some() {}
            self.add(row, echoes.next_if(|back| back.seq == row.seq));
        }
    }

    /// Payload bits a second, as [`crate::metrics::goodput`] has it.
    pub(crate) fn goodput_bps(&self) -> Option<f64> {
        let last = self.last_delivery.filter(|_| self.bounded);
        let span = last.unwrap_or(self.window.end).since(self.from);
        (!span.is_zero()).then(|| self.bytes as f64 * 8.0 / span.as_secs_f64())
    }

    /// The next message by number.
    fn add(&mut self, row: &MessageRecord, back: Option<&MessageRecord>) {
        if !self.is_stream
            && row.fate == Fate::Delivered
            && let Some(at) = row.received
        {
            self.on_delivery(at, row.size);
        }
        if let Some(seconds) = &mut self.seconds {
            seconds.offer(row.due, row.size);
        }
        let is_counted = self.window.contains(&row.due);
        if let Some((newest, ages)) = &mut self.state {
            let is_echo = self.round_trip.is_some();
            let trip = if is_echo { round_trip(row, back) } else { one_way_trip(row) };
            newest.tick(&trip).filter(|_| is_counted).iter().for_each(|&age| ages.record(age));
        }
        if !is_counted {
            return;
        }
        if let Some(call) = &mut self.call {
            call.add(row, back);
        }
        if self.round_trip.is_none()
            && let (Fate::Delivered, Some(at)) = (row.fate, row.received)
        {
            // The outcome is known already, and is set here so that no code below needs to compute it.
            let trip = &Trip { outcome: TripOutcome::Received(at), ..one_way_trip(row) };
            self.add_trip(trip, trip);
        } else {
            self.add_other(row, back);
        }
    }

    /// As `add`, for a message of the window that did not simply arrive.
    #[inline(never)]
    fn add_other(&mut self, row: &MessageRecord, back: Option<&MessageRecord>) {
        let out = one_way_trip(row);
        if self.round_trip.is_none() {
            return self.add_trip(&out, &out);
        }
        self.add_trip(&round_trip(row, back), &out);
    }

    /// Counts the next trip, there and back if the flow has an echo. `out` is the way to the receiver.
    #[inline(always)]
    fn add_trip(&mut self, trip: &Trip, out: &Trip) {
        let passage = Passage { trip, out: self.knows_ways_out.then_some(out) };
        self.trips.add(passage);
        if self.round_trip.is_some()
            && let Some(delay) = passage.out.and_then(Trip::delay)
        {
            self.one_way.record(delay);
        }
        let size = trip.size.get();
        match &mut self.sizes {
            Some((least, most)) if *least <= size && size <= *most => {}
            sizes => {
                let (least, most) = sizes.unwrap_or((size, size));
                *sizes = Some((least.min(size), most.max(size)));
            }
        }
        if let Some(delay) = trip.delay() {
            self.round_trip.as_mut().unwrap_or(&mut self.one_way).record(delay);
            if let Some(before) = &self.before
                && before.seq.checked_add(1) == Some(trip.seq)
                && let Some(earlier) = before.delay()
            {
                self.ipdv.record(absolute_difference(delay, earlier));
            }
        }
        self.before = Some(*trip);
    }

    /// A message came to the end of its way, in the order of arrival.
    fn on_arrival(&mut self, seq: u64, forward: &LegTap, echo: Option<&LegTap>) {
        let Some(row) = forward.row(seq).filter(|row| self.window.contains(&row.due)) else { return };
        let end = if self.round_trip.is_some() { echo.and_then(|echo| echo.row(seq)) } else { Some(row) };
        let Some(received) = end.and_then(|end| end.received) else { return };
        self.interarrivals.add(received, received.signed_since(row.due));
        if seq >= self.next_expected {
            self.next_expected = seq.saturating_add(1);
        } else {
            self.reordered += 1;
        }
    }

    /// A message came that no stream carried.
    #[inline]
    fn on_delivery(&mut self, at: Instant, bytes: Bytes) {
        if self.from <= at && (self.bounded || at <= self.window.end) {
            self.bytes += u128::from(bytes.get());
        }
        self.last_delivery = self.last_delivery.max(Some(at));
        if let Some(seconds) = &mut self.seconds {
            seconds.deliver(at, bytes);
        }
    }

    /// What was read of a stream.
    #[inline]
    fn on_reads(&mut self, reads: &[(Instant, Bytes)]) {
        let (Some(&(first, _)), Some(&(last, _))) = (reads.first(), reads.last()) else { return };
        debug_assert!(reads.is_sorted_by_key(|read| read.0), "time goes on");
        let counted = self.from..=if self.bounded { Instant::MAX } else { self.window.end };
        let sum: u64 = match counted.contains(&first) && counted.contains(&last) {
            true => reads.iter().map(|read| read.1.get()).sum(),
            false => reads.iter().filter(|read| counted.contains(&read.0)).map(|read| read.1.get()).sum(),
        };
        self.bytes += u128::from(sum);
        self.last_delivery = self.last_delivery.max(Some(last));
        if let Some(seconds) = &mut self.seconds {
            reads.iter().for_each(|&(at, bytes)| seconds.deliver(at, bytes));
        }
    }
}

/// Whether nothing can change a message's fate any more, there and back.
fn is_settled(row: &MessageRecord, is_echo: bool, back: Option<&MessageRecord>) -> bool {
    let is_over = |row: &MessageRecord| row.fate != Fate::Unfinished || row.drop_cause.is_some();
    is_over(row) && (!is_echo || row.fate != Fate::Delivered || back.is_some_and(is_over))
}

/// A settled row with the fate that the end of the run would give it.
fn decided(row: MessageRecord) -> MessageRecord {
    let is_missing = row.fate == Fate::Unfinished && row.drop_cause.is_some() && row.sent.is_some();
    MessageRecord { fate: if is_missing { Fate::Missing } else { row.fate }, ..row }
}

/// Chosen: enough that the cost of taking them is small per event, and few enough to stay in the processor's
/// first-level cache.
const EVENTS_AT_ONCE: usize = 32;
