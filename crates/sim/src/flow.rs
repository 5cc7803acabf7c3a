//! One flow in the simulator: both ends, their taps, and the state of the sender over time.

use std::ops::Range;

use talkpath_config::Features;
use talkpath_flow::FlowTaps;
use talkpath_measure::breaks::Opening;
use talkpath_measure::series::{SeriesDetail, SeriesTap, TimeWeighted};
use talkpath_measure::{
    BreakRecord, EcnRecord, Ending, FlowCounters, FlowInfo, FlowRecord, FlowTally, HeldRecord, LegRecord,
    OpeningRecord, Series, SeriesKind,
};
use talkpath_path::{Dscp, Reassembly};
use talkpath_units::{Bytes, Duration, Instant, Rate};
use talkpath_wire::{HeldTimes, Levels, LossRecovery, Observation};

use crate::endpoint::Endpoint;
use crate::shared::SharedPlace;

/// Both ends of a flow, and all that is recorded of the flow. The fields that each step reads are side by
/// side.
#[repr(C, align(64))]
pub(crate) struct SimFlow {
    /// The IP identification of the last packet in each direction (RFC 791 §3.1).
    pub(crate) identifications: [u32; 2],
    /// Takes the settled messages out of `taps` while the run goes on. `None` if the run keeps its rows.
    pub(crate) tally: Option<Box<FlowTally>>,
    pub(crate) taps: FlowTaps,
    pub(crate) meter: FlowMeter,
    pub(crate) opened: bool,
    /// The DSCP of the flow's packets in both directions.
    pub(crate) dscp: Dscp,
    /// The flow's place in a connection that several flows share. `None` if the flow shares no connection.
    pub(crate) shared: Option<SharedPlace>,
    pub(crate) near: Endpoint,
    pub(crate) far: Endpoint,
    pub(crate) info: FlowInfo,
    pub(crate) features: Features,
    /// True if the scenario asks for ECN.
    pub(crate) wants_ecn: bool,
    /// The fragments that have arrived at each end and wait for the rest of their packet, by identification.
    pub(crate) near_reassembly: Reassembly<u32>,
    pub(crate) far_reassembly: Reassembly<u32>,
    /// When the flow opens its connection. Drawn from the range in the scenario.
    pub(crate) start: Instant,
    /// True if messages are due from `start` on, also while the connection is not open.
    pub(crate) starts_clock: bool,
}

/// The state of the sender over time.
#[repr(C)]
pub(crate) struct FlowMeter {
    series: Option<Box<FlowSeries>>,
    /// [`Endpoint::windows_key`] when `cwnd` and `window` were last read. They are read again only if it
    /// changes.
    seen: (u64, u64),
    send_buffer: TimeWeighted,
    cwnd: TimeWeighted,
    window: TimeWeighted,
}

struct FlowSeries {
    /// The state that was last written to the series.
    seen: Observation,
    cwnd: SeriesTap,
    ssthresh: SeriesTap,
    srtt: SeriesTap,
    rto: SeriesTap,
    send_buffer: SeriesTap,
    pacing_rate: SeriesTap,
    bottleneck_rate: SeriesTap,
    /// `None` for transports other than QUIC.
    loss_recovery: Option<Box<LossRecoverySeries>>,
}

struct LossRecoverySeries {
    pto: SeriesTap,
    bytes_in_flight: SeriesTap,
    lost_packets: SeriesTap,
}

impl FlowMeter {
    /// Takes means over `window`. If `series` is given, also keeps the time series of the flow `name` in this
    /// detail.
    pub(crate) fn new(
        name: &str,
        is_quic: bool,
        window: &Range<Instant>,
        series: Option<SeriesDetail>,
    ) -> Self {
        let series = series.map(|detail| {
            let tap = |kind| SeriesTap::new(name, kind, detail);
            let loss_recovery = || {
                Box::new(LossRecoverySeries {
                    pto: tap(SeriesKind::Pto),
                    bytes_in_flight: tap(SeriesKind::BytesInFlight),
                    lost_packets: tap(SeriesKind::LostPackets),
                })
            };
            Box::new(FlowSeries {
                seen: Observation { send_buffer: Bytes::MAX, ..Observation::default() },
                cwnd: tap(SeriesKind::Cwnd),
                ssthresh: tap(SeriesKind::Ssthresh),
                srtt: tap(SeriesKind::Srtt),
                rto: tap(SeriesKind::Rto),
                send_buffer: tap(SeriesKind::SendBuffer),
                pacing_rate: tap(SeriesKind::PacingRate),
                bottleneck_rate: tap(SeriesKind::BottleneckRate),
                loss_recovery: is_quic.then(loss_recovery),
            })
        });
        let weighted = TimeWeighted::new(window.start, window.end);
        Self { series, seen: (u64::MAX, u64::MAX), send_buffer: weighted, cwnd: weighted, window: weighted }
    }

    /// True if time series are kept.
    pub(crate) fn draws(&self) -> bool {
        self.series.is_some()
    }

    /// Reads the state of the sender at `now`.
    #[inline(always)]
    pub(crate) fn read(&mut self, sender: &Endpoint, now: Instant) {
        // A signed number converts in one step. A buffer is smaller than 2^63 B.
        self.send_buffer.set(sender.send_buffer().get().cast_signed() as f64, now);
        let key = sender.windows_key();
        if key != self.seen {
            self.seen = key;
            self.change(sender.levels(), now);
        }
        if let Some(series) = &mut self.series {
            series.read(&sender.observe(), now);
        }
    }

    #[inline(never)]
    fn change(&mut self, levels: Levels, now: Instant) {
        if let Some(cwnd) = levels.cwnd {
            self.cwnd.set(cwnd, now);
        }
        if let Some(window) = levels.window {
            self.window.set(window, now);
        }
    }
}

impl FlowSeries {
    /// Writes the values of `now_seen` that differ from those that were last written.
    fn read(&mut self, now_seen: &Observation, now: Instant) {
        let seen = core::mem::replace(&mut self.seen, *now_seen);
        if now_seen.send_buffer != seen.send_buffer {
            self.send_buffer.push(now_seen.send_buffer.get() as f64, now);
        }
        let float = |value: f64| value;
        change(&mut self.cwnd, (seen.cwnd, now_seen.cwnd), float, now);
        change(&mut self.ssthresh, (seen.ssthresh, now_seen.ssthresh), float, now);
        change(&mut self.srtt, (seen.srtt, now_seen.srtt), Duration::as_millis_f64, now);
        change(&mut self.rto, (seen.rto, now_seen.rto), Duration::as_millis_f64, now);
        let bps = |rate: Rate| rate.as_bps() as f64;
        change(&mut self.pacing_rate, (seen.pacing_rate, now_seen.pacing_rate), bps, now);
        change(&mut self.bottleneck_rate, (seen.bottleneck_rate, now_seen.bottleneck_rate), bps, now);
        if let (Some(series), Some(state)) = (&mut self.loss_recovery, now_seen.loss_recovery)
            && now_seen.loss_recovery != seen.loss_recovery
        {
            series.read(state, now);
        }
    }

    fn finish(self) -> impl Iterator<Item = Series> {
        let lines = [
            self.cwnd,
            self.ssthresh,
            self.srtt,
            self.rto,
            self.send_buffer,
            self.pacing_rate,
            self.bottleneck_rate,
        ];
        let recovery = self.loss_recovery.map(|it| [it.pto, it.bytes_in_flight, it.lost_packets]);
        let lines = lines.into_iter().chain(recovery.into_iter().flatten());
        lines.map(SeriesTap::finish).filter(|line| !line.points.is_empty())
    }
}

impl LossRecoverySeries {
    fn read(&mut self, seen: LossRecovery, now: Instant) {
        if let Some(pto) = seen.pto {
            self.pto.push(pto.as_millis_f64(), now);
        }
        self.bytes_in_flight.push(seen.bytes_in_flight.get() as f64, now);
        self.lost_packets.push(seen.lost_packets as f64, now);
    }
}

/// Writes the value `after` to a series, if there is one and it differs from the value `before`.
#[inline(always)]
fn change<T: PartialEq + Copy>(
    line: &mut SeriesTap,
    (before, after): (Option<T>, Option<T>),
    figure: impl Fn(T) -> f64,
    now: Instant,
) {
    if let Some(value) = after.filter(|_| after != before) {
        line.push(figure(value), now);
    }
}

fn held(times: HeldTimes) -> HeldRecord {
    let HeldTimes { congestion_window, receiver_window, nagle, pacing } = times;
    HeldRecord { congestion_window, receiver_window, nagle, pacing }
}

impl SimFlow {
    /// Takes the settled messages out of the taps, if no rows are kept and enough messages are settled.
    #[inline]
    pub(crate) fn tally(&mut self) {
        if let Some(tally) = &mut self.tally
            && FlowTally::is_due(&self.taps.forward, self.taps.echo.as_deref())
        {
            tally.take(&mut self.taps.forward, self.taps.echo.as_deref_mut());
        }
    }

    /// Returns what both ends have counted of ECN marks. `None` if the scenario does not ask for ECN.
    fn ecn(&self) -> Option<EcnRecord> {
        let (near, far) = (self.near.counters().ecn, self.far.counters().ecn);
        let is_echo = self.taps.echo.is_some();
        self.wants_ecn.then(|| EcnRecord {
            capable: Some(near.capable),
            marked_forward: Some(far.marked),
            marked_return: is_echo.then_some(near.marked),
            echoed_forward: near.echoed,
            echoed_return: far.echoed.filter(|_| is_echo),
        })
    }

    /// Makes the record of the flow's opening, whose sender could send from `opened` on. The end of a
    /// message's way is the sender if the flow has an echo, and otherwise the receiver.
    fn opening(&self, opened: Option<Instant>) -> OpeningRecord {
        let last = if self.taps.echo.is_some() { &self.near } else { &self.far };
        let since_start = |at: Option<Instant>| at.map(|at| at.since(self.start));
        OpeningRecord {
            open: since_start(opened),
            handshake: self.near.handshake(since_start(opened)),
            first_delivered: since_start(last.first_read()),
            ..OpeningRecord::default()
        }
    }

    /// Makes the flow's record at `now`, and adds its time series to `series`. Messages were due until
    /// `stop`.
    pub(crate) fn finish(mut self, now: Instant, stop: Instant, series: &mut Vec<Series>) -> FlowRecord {
        self.near.finish(&mut self.taps, now.min(stop));
        let opened = self.near.opened();
        let opening = Opening { start: self.start, opened, stop: now.min(stop) };
        let break_before = if self.starts_clock { opening.as_break() } else { None };
        let break_after = self.near.lost().map(|(from, why)| BreakRecord { from, to: None, why });
        let mut counted = self.near.counters();
        if self.taps.echo.is_some() {
            // The echoing end sends messages too.
            let echoing = self.far.counters();
            counted.data_packets += echoing.data_packets;
            counted.retransmissions += echoing.retransmissions;
            counted.timeouts = counted.timeouts.zip(echoing.timeouts).map(|(near, far)| near + far);
        }
        let ecn = self.ecn();
        let send_buffer = self.meter.send_buffer.finish(now);
        let counters = FlowCounters {
            data_packets: Some(counted.data_packets),
            retransmissions: self.features.is_reliable.then_some(counted.retransmissions),
            timeouts: counted.timeouts.filter(|_| self.features.is_acknowledged),
            cwnd_packets_mean: self.meter.cwnd.finish(now).mean,
            window_packets_mean: self.meter.window.finish(now).mean,
            send_buffer_mean: send_buffer.mean,
            send_buffer_max: send_buffer.max.map(|max| max as u64),
            blocked: Some(self.near.blocked(now)),
            breaks: break_before.into_iter().chain(break_after).collect(),
            legs: None,
            ip: None,
            multipath: None,
            opening: self.opening(opened),
            early_echoes: 0,
            held: held(counted.held),
        };
        if let Some(lines) = self.meter.series {
            series.extend(lines.finish());
        }
        let ending = if self.features.is_reliable {
            Ending::Reliable
        } else {
            Ending::Unreliable { every_drop_known: true, is_queued: false }
        };
        let FlowTaps { forward, echo } = self.taps;
        let (forward, echo) = match &mut self.tally {
            Some(tally) => {
                let no_rows = echo.is_some().then(LegRecord::default);
                tally.finish(forward, echo.map(|tap| *tap), ending);
                (LegRecord::default(), no_rows)
            }
            None => (forward.finish(ending), echo.map(|tap| tap.finish(ending))),
        };
        FlowRecord { info: self.info, forward, echo, counters, ecn, file: None, tally: self.tally }
    }
}
