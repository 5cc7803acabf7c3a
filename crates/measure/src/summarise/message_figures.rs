//! The figures of a flow's messages.

use core::ops::Range;
use std::collections::BTreeMap;

use talkpath_units::Instant;

use crate::metrics::call::{CallCounter, Clocks};
use crate::metrics::delay_variation::Interarrivals;
use crate::metrics::histogram::{delay_ms, ipdv_ms, state_age_ms};
use crate::metrics::settling::Seconds;
use crate::metrics::trip::Trip;
use crate::metrics::waits::WaitCounters;
use crate::metrics::{TripCounters, delay, delay_variation, goodput, reordering, state_age, trip};
use crate::summary::{DelayMs, FlowSummary, IpdvMs, Settling, StateAgeMs};
use crate::{FlowRecord, FlowTally, RunRecord, judge};

/// The figures that the metrics compute from the messages of a flow.
pub(super) struct MessageFigures {
    /// What a run counts trip by trip, with rows and without.
    pub(super) trips: TripCounters,
    /// The rating of a call. `None` if the flow is not a call.
    pub(super) call: Option<CallCounter>,
    /// How old the newest state is at the receiver. `None` if the flow does not send states.
    pub(super) state_age_ms: Option<StateAgeMs>,
    pub(super) first_sent_to_last_received_ns: Option<i64>,
    pub(super) one_way_delay_ms: Option<DelayMs>,
    /// `None` if the flow has no echo.
    pub(super) round_trip_delay_ms: Option<DelayMs>,
    pub(super) ipdv_ms: Option<IpdvMs>,
    pub(super) interarrivals: Option<Interarrivals>,
    pub(super) reordered: u64,
    pub(super) goodput_bps: Option<f64>,
    pub(super) settling: Option<Settling>,
    /// How long the messages waited, on the way to the receiver.
    pub(super) waits: WaitCounters,
}

impl MessageFigures {
    /// Computes the figures from the rows of the messages that are due within `window`.
    pub(super) fn from_rows(flow: &FlowRecord, window: &Range<Instant>) -> Self {
        let trips = flow.trips(window);
        // The arrivals at the end of a trip, which is the sender if the receiver echoes.
        let arrivals = &flow.echo.as_ref().unwrap_or(&flow.forward).arrivals;
        let echo_ways_out = flow.echo.as_ref().map(|_| trip::one_way_trips(&flow.forward, window));
        let ways_out = echo_ways_out.as_deref().unwrap_or(&trips);
        let knows_ways_out = flow.info.clock_trusted && !flow.forward.arrivals_unknown;
        let terms = &flow.info.terms;
        let state_age_ms = if terms.is_state { state_age_from_rows(flow, window) } else { None };
        let counters = TripCounters::of(terms, &trips, knows_ways_out.then_some(ways_out));
        Self {
            call: call_from_rows(flow, window),
            state_age_ms,
            first_sent_to_last_received_ns: counters.stamps.first_sent_to_last_received_ns(),
            trips: counters,
            one_way_delay_ms: delay_statistics(ways_out),
            round_trip_delay_ms: flow.echo.as_ref().and_then(|_| delay_statistics(&trips)),
            ipdv_ms: delay_variation::statistics(&delay_variation::sorted_ipdv(&trips)),
            interarrivals: Some(Interarrivals::of(&trips, arrivals)),
            reordered: reordering::reordered(&trips, arrivals),
            goodput_bps: goodput::goodput_bps(flow, window),
            settling: flow.settling(window),
            waits: waits_from_rows(flow, window),
        }
    }

    /// Takes the figures from a tally, which was counted during the run.
    pub(super) fn from_tally(tally: &FlowTally) -> Self {
        Self {
            trips: tally.trips.clone(),
            call: tally.call.clone(),
            state_age_ms: tally.state_age.as_ref().and_then(|counter| state_age_ms(&counter.ages)),
            first_sent_to_last_received_ns: tally.trips.stamps.first_sent_to_last_received_ns(),
            one_way_delay_ms: delay_ms(&tally.one_way),
            round_trip_delay_ms: tally.round_trip.as_ref().and_then(delay_ms),
            ipdv_ms: ipdv_ms(&tally.ipdv.differences),
            interarrivals: Some(tally.interarrivals),
            reordered: tally.reordering.reordered,
            goodput_bps: tally.goodput.bps(),
            settling: tally.seconds.as_ref().and_then(Seconds::settling),
            waits: tally.waits.clone(),
        }
    }

    /// Removes the figures that need clocks which agree, if the clocks of the two hosts are not trusted.
    ///
    /// A trip ends at the receiver, or at the sender if the receiver echoes. One clock measures the trip with
    /// an echo, so that all figures of a trip stay. One-way delays need the clocks of both hosts in any case.
    pub(super) fn remove_untrusted(&mut self, flow: &FlowRecord) {
        if !flow.info.clock_trusted {
            self.one_way_delay_ms = None;
        }
        let is_one_clock = flow.echo.is_some();
        if !is_one_clock && !flow.info.clock_trusted {
            self.state_age_ms = None;
            self.ipdv_ms = None;
            self.interarrivals = None;
            self.first_sent_to_last_received_ns = None;
            self.trips.remove_times();
        }
        if !flow.end_is_known() {
            self.trips.remove_times();
        }
    }
}

fn waits_from_rows(flow: &FlowRecord, window: &Range<Instant>) -> WaitCounters {
    let is_stream = !flow.forward.reads.is_empty();
    let mut waits = WaitCounters::default();
    for row in flow.forward.messages.iter().filter(|row| window.contains(&row.due)) {
        waits.add(row, is_stream);
    }
    waits
}

fn delay_statistics(trips: &[Trip]) -> Option<DelayMs> {
    delay::statistics(&delay::sorted_delays(trips))
}

/// How old the newest state is at the receiver within `window`. The trips of the whole run are read, because
/// a state from before the window is still the newest one when the window begins.
fn state_age_from_rows(flow: &FlowRecord, window: &Range<Instant>) -> Option<StateAgeMs> {
    let all_trips = flow.trips(&(Instant::ZERO..Instant::MAX));
    state_age::statistics(&all_trips, |trip| window.contains(&trip.due))
}

/// Counts the frames of a call within `window`. Returns `None` if the flow is not a call, or if it is not
/// known which frames arrived. Without the delay of each direction, the call is rated by half of its round
/// trips.
fn call_from_rows(flow: &FlowRecord, window: &Range<Instant>) -> Option<CallCounter> {
    let terms = flow.info.terms.call?;
    if !flow.end_is_known() {
        return None;
    }
    let knows_one_way_delay = flow.info.clock_trusted && !flow.forward.arrivals_unknown;
    let clocks = if knows_one_way_delay { Clocks::Trusted } else { Clocks::Untrusted };
    let mut call = CallCounter::new(terms, flow.echo.is_some(), clocks);
    // Frames and echoes are both in the order of their sequence numbers.
    let mut echoes = flow.echo.iter().flat_map(|echo| &echo.messages).peekable();
    for frame in &flow.forward.messages {
        if !window.contains(&frame.due) {
            continue;
        }
        while echoes.next_if(|echo| echo.seq < frame.seq).is_some() {}
        let echo = echoes.next_if(|echo| echo.seq == frame.seq);
        call.add(&flow.forward.with_speech(frame), echo);
    }
    Some(call)
}

/// Rates each call that consists of two flows, one for each direction, between clocks that are not trusted.
/// Each direction is rated by half of the round trip, which is the sum of both directions' delays. Only
/// arenas that keep rows have such clocks.
pub(super) fn rate_calls_by_half_round_trips(
    record: &RunRecord,
    window: &Range<Instant>,
    flows: &mut BTreeMap<String, Box<FlowSummary>>,
) {
    /// One direction of a call.
    struct Direction<'a> {
        name: &'a str,
        call: CallCounter,
    }
    let mut calls: BTreeMap<(&str, &str), Vec<Direction<'_>>> = BTreeMap::new();
    for flow in &record.flows {
        if flow.info.clock_trusted || flow.echo.is_some() || flow.tally.is_some() {
            continue;
        }
        if let Some(call) = call_from_rows(flow, window) {
            let (group, name) = (flow.info.group.as_str(), flow.info.name.as_str());
            let conversation = judge::conversation(group, name);
            calls.entry((group, conversation)).or_default().push(Direction { name, call });
        }
    }
    for directions in calls.values() {
        // A call with one direction alone has no round trip.
        let [first, second] = directions.as_slice() else { continue };
        for (this, other) in [(first, second), (second, first)] {
            if let Some(flow) = flows.get_mut(this.name) {
                let floor = flow.floor.unwrap_or(judge::CALL_FLOOR);
                flow.call = this.call.halve(&other.call, floor).map(Box::new);
            }
        }
    }
}
