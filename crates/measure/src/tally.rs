//! Counts the figures of a flow during the run, without its rows. So the memory depends on how many messages
//! are under way, and not on how long the run is.
//!
//! ```text
//!  taps ── settled rows, arrivals, reads ──► FlowTally ──► summary
//!    └─ messages under way stay
//! ```
//!
//! A row is *settled* if nothing can change the fate of its message any more. Now and then the arena passes
//! the taps of a flow to its tally. The tally takes the settled rows at the front, and counts them with the
//! same metrics as rows that are kept (`metrics/`), in the same order. Only delays go into a histogram, so
//! percentiles have a stated error. Whatever needs every row does not exist in such a run: the record file,
//! and the report's delays over time.
//!
//! Begin to read with [`FlowTally::take`].

use core::ops::Range;

use talkpath_units::{Bytes, Histogram, Instant};

use crate::metrics::TripCounters;
use crate::metrics::call::{CallCounter, Clocks};
use crate::metrics::delay_variation::{Interarrivals, IpdvCounter};
use crate::metrics::goodput_counter::GoodputCounter;
use crate::metrics::payload_sizes::PayloadSizes;
use crate::metrics::reordering::ReorderingCounter;
use crate::metrics::settling::Seconds;
use crate::metrics::state_age::StateAgeCounter;
use crate::metrics::trip::{Passage, Trip, TripOutcome, one_way_trip, round_trip};
use crate::metrics::waits::WaitCounters;
use crate::{Ending, Fate, FlowInfo, LegTap, MessageRecord};

/// How many events must have happened before a tally takes them. We chose 32. The cost of taking is then
/// small for each event, and the events still are in the processor's first-level cache.
const EVENTS_AT_ONCE: usize = 32;

/// The figures of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowTally {
    window: Range<Instant>,
    /// Whether the transport is a stream. Its goodput counts the bytes that were read, and not whole
    /// messages.
    is_stream: bool,
    /// Whether the delay to the receiver is known, because both ends read the same clock.
    knows_ways_out: bool,
    pub(crate) trips: TripCounters,
    /// `None` if the flow does not send states.
    pub(crate) state_age: Option<StateAgeCounter>,
    /// `None` if the flow is not a call.
    pub(crate) call: Option<CallCounter>,
    /// `None` before the first message.
    pub(crate) sizes: Option<PayloadSizes>,
    /// The delays of the forward leg.
    pub(crate) one_way: Histogram,
    /// The delays of the round trips. `None` if the flow has no echo.
    pub(crate) round_trip: Option<Histogram>,
    pub(crate) ipdv: IpdvCounter,
    pub(crate) interarrivals: Interarrivals,
    pub(crate) reordering: ReorderingCounter,
    pub(crate) goodput: GoodputCounter,
    /// What was offered and delivered in each second. `None` if the messages of the flow are not due on a
    /// clock.
    pub(crate) seconds: Option<Seconds>,
    pub(crate) waits: WaitCounters,
}

impl FlowTally {
    /// Makes an empty tally of the flow `info`, which counts the messages that are due in `window`.
    /// `keeps_messages` says whether the transport keeps messages whole.
    pub fn new(info: &FlowInfo, window: Range<Instant>, keeps_messages: bool, is_echo: bool) -> Self {
        let clocks = if info.clock_trusted { Clocks::One } else { Clocks::Untrusted };
        Self {
            is_stream: !keeps_messages,
            knows_ways_out: info.clock_trusted,
            trips: TripCounters::new(&info.terms),
            state_age: info.terms.is_state.then(StateAgeCounter::default),
            call: info.terms.call.map(|terms| CallCounter::new(terms, is_echo, clocks)),
            sizes: None,
            one_way: Histogram::new(),
            round_trip: is_echo.then(Histogram::new),
            ipdv: IpdvCounter::default(),
            interarrivals: Interarrivals::default(),
            reordering: ReorderingCounter::default(),
            goodput: GoodputCounter::new(info, &window),
            seconds: info.clocked.then(|| Seconds::new(window.clone())),
            waits: WaitCounters::default(),
            window,
        }
    }

    /// Returns whether enough events have happened that [`FlowTally::take`] should be called.
    #[inline]
    pub fn is_due(forward: &LegTap, echo: Option<&LegTap>) -> bool {
        forward.new_events() + echo.map_or(0, LegTap::new_events) >= EVENTS_AT_ONCE
    }

    /// Counts the events and the settled rows of the two taps, and removes them from the taps.
    pub fn take(&mut self, forward: &mut LegTap, mut echo: Option<&mut LegTap>) {
        if let Some(seconds) = &mut self.seconds {
            seconds.begin(forward.rows().map(|row| row.due));
        }
        self.take_events(forward, echo.as_deref_mut());
        self.take_settled_rows(forward, echo.as_deref_mut());
        forward.forget_old_messages();
        if let Some(echo) = echo {
            echo.forget_old_messages();
        }
    }

    /// Counts the rest after the end of the run. `ending` says what becomes of messages that did not arrive.
    pub fn finish(&mut self, mut forward: LegTap, mut echo: Option<LegTap>, ending: Ending) {
        self.take(&mut forward, echo.as_mut());
        let forward = forward.finish(ending);
        let echo = echo.map(|echo| echo.finish(ending).messages).unwrap_or_default();
        // Both legs are in the order of `seq`, so one pass over the echoes finds the echo of every message.
        let mut echoes = echo.iter().peekable();
        for row in &forward.messages {
            while echoes.next_if(|back| back.seq < row.seq).is_some() {}
            self.add(row, echoes.next_if(|back| back.seq == row.seq));
        }
    }

    /// Counts the arrivals and reads since the last call.
    fn take_events(&mut self, forward: &mut LegTap, mut echo: Option<&mut LegTap>) {
        let (arrivals, reads) = forward.take_events();
        let echo_events = echo.as_deref_mut().map(LegTap::take_events);
        // The trip of an echo flow ends with the arrival of the echo.
        let trip_ends = echo_events.as_ref().map_or(&arrivals, |(echo_arrivals, _)| echo_arrivals);
        let mut highest = None;
        for (index, &seq) in trip_ends.iter().enumerate() {
            // Only the first copy of a message counts. If an earlier copy was taken in an earlier call, the
            // row of the message is gone. An earlier copy in the same call is among the arrivals before this
            // one.
            let is_first_copy = Some(seq) > highest || !trip_ends[..index].contains(&seq);
            if is_first_copy {
                self.add_arrival(seq, forward, echo.as_deref());
            }
            highest = highest.max(Some(seq));
        }
        self.goodput.add_reads(&reads);
        if let Some(seconds) = &mut self.seconds {
            for &(at, bytes) in &reads {
                seconds.deliver(at, bytes);
            }
        }
        forward.reuse_memory(arrivals, reads);
        if let (Some(echo), Some((arrivals, reads))) = (echo, echo_events) {
            echo.reuse_memory(arrivals, reads);
        }
    }

    /// Counts the settled rows at the front, up to the first row that is not settled.
    fn take_settled_rows(&mut self, forward: &mut LegTap, mut echo: Option<&mut LegTap>) {
        while let Some((seq, row)) = forward.first_row() {
            let back = echo.as_deref().and_then(|echo| echo.row(seq));
            let Some(row) = row.filter(|row| is_settled(row, echo.is_some(), back)) else { break };
            if row.fate == Fate::Unfinished || back.is_some_and(|back| back.fate == Fate::Unfinished) {
                self.add(&with_final_fate(*row), back.copied().map(with_final_fate).as_ref());
            } else {
                self.add(row, back);
            }
            forward.remove_first_row();
            if let Some(echo) = &mut echo {
                echo.remove_first_row();
            }
        }
    }

    /// Counts the next message by number. `back` is its echo.
    fn add(&mut self, row: &MessageRecord, back: Option<&MessageRecord>) {
        if !self.is_stream
            && row.fate == Fate::Delivered
            && let Some(at) = row.received
        {
            self.add_delivery(at, row.size);
        }
        if let Some(seconds) = &mut self.seconds {
            seconds.offer(row.due, row.size);
        }
        let is_counted = self.window.contains(&row.due);
        if let Some(state_age) = &mut self.state_age {
            let trip = if self.round_trip.is_some() { round_trip(row, back) } else { one_way_trip(row) };
            state_age.tick(&trip, is_counted);
        }
        if !is_counted {
            return;
        }
        self.waits.add(row, self.is_stream);
        if let Some(call) = &mut self.call {
            call.add(row, back);
        }
        if self.round_trip.is_none()
            && let (Fate::Delivered, Some(at)) = (row.fate, row.received)
        {
            // The outcome is known here, so it is set without computing it.
            let trip = &Trip { outcome: TripOutcome::Received(at), ..one_way_trip(row) };
            self.add_trip(trip, trip);
        } else {
            self.add_unusual_trip(row, back);
        }
    }

    /// Counts the delivery of a whole message.
    #[inline]
    fn add_delivery(&mut self, at: Instant, size: Bytes) {
        self.goodput.add_message(at, size);
        if let Some(seconds) = &mut self.seconds {
            seconds.deliver(at, size);
        }
    }

    /// Counts the trip of a message that has an echo, or that did not arrive.
    #[inline(never)]
    fn add_unusual_trip(&mut self, row: &MessageRecord, back: Option<&MessageRecord>) {
        let out = one_way_trip(row);
        if self.round_trip.is_none() {
            return self.add_trip(&out, &out);
        }
        self.add_trip(&round_trip(row, back), &out);
    }

    /// Counts the next trip by number. `out` is the one-way trip to the receiver, which is the same trip if
    /// there is no echo.
    #[inline(always)]
    fn add_trip(&mut self, trip: &Trip, out: &Trip) {
        let passage = Passage { trip, out: self.knows_ways_out.then_some(out) };
        self.trips.add(passage);
        if self.round_trip.is_some()
            && let Some(delay) = passage.out.and_then(Trip::delay)
        {
            self.one_way.record(delay);
        }
        PayloadSizes::add(&mut self.sizes, trip.size);
        let delay = trip.delay();
        if let Some(delay) = delay {
            self.round_trip.as_mut().unwrap_or(&mut self.one_way).record(delay);
        }
        self.ipdv.add(trip.seq, delay);
    }

    /// Counts the next trip in the order of arrival.
    fn add_arrival(&mut self, seq: u64, forward: &LegTap, echo: Option<&LegTap>) {
        let Some(row) = forward.row(seq).filter(|row| self.window.contains(&row.due)) else { return };
        let last_row =
            if self.round_trip.is_some() { echo.and_then(|echo| echo.row(seq)) } else { Some(row) };
        let Some(received) = last_row.and_then(|row| row.received) else { return };
        self.interarrivals.add(received, received.signed_since(row.due));
        self.reordering.add(seq);
    }
}

/// Returns whether nothing can change the fate of a message any more, and of its echo if there is one.
fn is_settled(row: &MessageRecord, is_echo: bool, back: Option<&MessageRecord>) -> bool {
    let is_decided = |row: &MessageRecord| row.fate != Fate::Unfinished || row.drop_cause.is_some();
    is_decided(row) && (!is_echo || row.fate != Fate::Delivered || back.is_some_and(is_decided))
}

/// Returns a settled row with the fate that the end of the run would give it.
fn with_final_fate(row: MessageRecord) -> MessageRecord {
    let is_missing = row.fate == Fate::Unfinished && row.drop_cause.is_some() && row.sent.is_some();
    MessageRecord { fate: if is_missing { Fate::Missing } else { row.fate }, ..row }
}
