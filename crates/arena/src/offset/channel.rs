//! The bounds that probes set to the far clock, and the straight line between them.

use super::probe::{Probe, SKEW_LIMIT_PPM, clamped};

/// The bounds of all probes of a run, and the line along them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    /// Our time of the line's two ends: of the first probe and of the last. The line goes on flat beyond
    /// them.
    pub(super) first: i64,
    last: i64,
    /// Far clock minus ours at the two ends.
    at_first: i64,
    at_last: i64,
    smallest_round_trip: i64,
    /// The smallest way there plus the smallest way back, seen along the line that makes them largest.
    width: i64,
    /// By how much the smallest round trip may be above the width on a path that scatters as this one does.
    scatter: i64,
    /// How far the far clock may have left the line for two probes or more, beyond half the width; either
    /// way.
    pub(super) change: i64,
    pub(super) chord: Chord,
}

/// The line from the best of the first probes to the best of the last ones: what a person is told of a clock
/// that keeps to no line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Chord {
    /// How far it rises, and half of what the two round trips leave open.
    pub(super) rise: i64,
    slack: i64,
    /// Our time of the probe that lies furthest off it, beyond what its round trip explains.
    pub(super) furthest_at: i64,
    /// How far that probe lies off it.
    pub(super) furthest_off: i64,
}

/// A bound of one probe: far clock minus ours at `at`, both ns from the first probe's.
#[derive(Clone, Copy)]
struct Bound {
    at: f64,
    value: f64,
}

/// What all probes say, from the first one's time and offset.
struct Bounds {
    /// The far clock is not above these: the ways there.
    upper: Vec<Bound>,
    /// Nor below these: the ways back.
    lower: Vec<Bound>,
}

impl Channel {
    /// Of `probes`, in the order of their sending; `None` without any.
    pub(super) fn new(probes: &[Probe]) -> Option<Self> {
        let (first, last) = (probes.first()?, probes.last()?);
        let base = first.offset();
        let bounds = Bounds::new(probes, first.sent, base);
        let span = (last.sent - first.sent).max(1);
        let mut round_trips: Vec<i64> = probes.iter().map(Probe::round_trip).collect();
        round_trips.sort_unstable();
        let smallest = *round_trips.first()?;
        let low = (round_trips.len() / 4).clamp(1, LOW_ROUND_TRIPS).min(round_trips.len() - 1);
        let scatter = (round_trips[low] - smallest).saturating_mul(2).max(CLOCK_READING_NS);
        let (slope, width) = bounds.best_slope(scatter as f64, span as f64);
        let (top, bottom) = bounds.touching(slope);
        let middle = f64::midpoint(top, bottom);
        let line = |at: f64| middle + slope * at;
        let at_line = |at: f64| clamped(i128::from(base) + line(at).round() as i128);
        Some(Self {
            first: first.sent,
            last: last.sent,
            at_first: at_line(0.0),
            at_last: at_line(span as f64),
            smallest_round_trip: smallest,
            width: width.floor() as i64,
            scatter,
            change: bounds.change(&line, (top - bottom) / 2.0).ceil() as i64,
            chord: Chord::new(probes, smallest),
        })
    }

    /// Far clock minus ours when ours reads `ours`, on the line.
    pub(super) fn at(&self, ours: i64) -> i64 {
        let span = self.span();
        let along = i128::from(ours.saturating_sub(self.first).clamp(0, span));
        let drift = i128::from(self.drift());
        clamped(i128::from(self.at_first) + drift * along / i128::from(span.max(1)))
    }

    /// Half the smallest round trip, rounded up.
    pub(super) const fn bound(&self) -> i64 {
        self.smallest_round_trip / 2 + self.smallest_round_trip % 2
    }

    /// From the first probe to the last.
    pub(super) const fn span(&self) -> i64 {
        self.last.saturating_sub(self.first)
    }

    /// How far the line rises from the first probe to the last.
    pub(super) const fn drift(&self) -> i64 {
        self.at_last.saturating_sub(self.at_first)
    }

    /// The line's slope, if it is more than what the probes leave open.
    pub(super) fn skew_ppm(&self) -> Option<f64> {
        let is_seen = self.drift().abs() > self.change.saturating_mul(2).max(CLOCK_READING_NS);
        is_seen.then(|| self.drift() as f64 / self.span().max(1) as f64 * 1e6)
    }

    /// Whether no line fits that a clock disciplined by NTP can keep to.
    pub(super) fn is_fast(&self) -> bool {
        let allowed = SKEW_LIMIT * self.span() as f64 + 1.0;
        let chord = &self.chord;
        self.drift().abs() as f64 > allowed || chord.rise.abs().saturating_sub(chord.slack) as f64 > allowed
    }

    /// Whether no straight line fits: along any, the smallest way there and the smallest way back are less
    /// than the smallest round trip, by more than the round trips scatter.
    pub(super) const fn is_bent(&self) -> bool {
        self.smallest_round_trip.saturating_sub(self.width) > self.scatter
    }
}

impl Bounds {
    fn new(probes: &[Probe], begun: i64, base: i64) -> Self {
        let bound = |ours: i64, middle: i64, far: i64| Bound {
            at: (i128::from(middle) - i128::from(begun)) as f64,
            value: clamped(i128::from(far) - i128::from(ours) - i128::from(base)) as f64,
        };
        // When the probe was at the far host is known to half a round trip.
        let half = |probe: &Probe| probe.round_trip() / 2;
        let upper = |it: &Probe| bound(it.sent, it.sent.saturating_add(half(it)), it.far_received);
        let lower = |it: &Probe| bound(it.received, it.received.saturating_sub(half(it)), it.far_sent);
        Self { upper: probes.iter().map(upper).collect(), lower: probes.iter().map(lower).collect() }
    }

    /// Where lines of this slope touch the bounds from between them, at the first probe's time.
    fn touching(&self, slope: f64) -> (f64, f64) {
        let level = |bound: &Bound| bound.value - slope * bound.at;
        let top = self.upper.iter().map(level).fold(f64::INFINITY, f64::min);
        let bottom = self.lower.iter().map(level).fold(f64::NEG_INFINITY, f64::max);
        (top, bottom)
    }

    /// The channel's width along this slope. It is a concave function of the slope.
    fn width(&self, slope: f64) -> f64 {
        let (top, bottom) = self.touching(slope);
        top - bottom
    }

    /// The middle of the slopes whose channel is as wide as the widest one but for `scatter`, and the widest
    /// one's width.
    fn best_slope(&self, scatter: f64, span: f64) -> (f64, f64) {
        if span < SHORT_NS {
            return (0.0, self.width(0.0));
        }
        let (mut low, mut high) = (-MAX_SLOPE, MAX_SLOPE);
        for _ in 0..HALVINGS {
            let third = (high - low) / 3.0;
            match self.width(low + third) < self.width(high - third) {
                true => low += third,
                false => high -= third,
            }
        }
        let best = f64::midpoint(low, high);
        let width = self.width(best);
        let edge = |mut outside: f64| {
            let mut inside = best;
            for _ in 0..HALVINGS {
                let between = f64::midpoint(inside, outside);
                match self.width(between) >= width - scatter {
                    true => inside = between,
                    false => outside = between,
                }
            }
            inside
        };
        // Among the slopes that fit, those of clocks that NTP disciplines come first.
        let (low, high) = (edge(-MAX_SLOPE), edge(MAX_SLOPE));
        let is_usual = low <= SKEW_LIMIT && high >= -SKEW_LIMIT;
        let (low, high) = if is_usual { (low.max(-SKEW_LIMIT), high.min(SKEW_LIMIT)) } else { (low, high) };
        (f64::midpoint(low, high), width)
    }

    /// How far the far clock may leave `line`, beyond `half` a width, either way: for each probe, the
    /// smallest distance of a bound within what follows it in [`MOVEMENT_NS`], and at least of the next two.
    fn change(&self, line: &dyn Fn(f64) -> f64, half: f64) -> f64 {
        let above = |it: &Bound| (it.at, it.value - line(it.at) - half);
        let below = |it: &Bound| (it.at, line(it.at) - it.value - half);
        let above = longest_room(&self.upper.iter().map(above).collect::<Vec<_>>());
        let below = longest_room(&self.lower.iter().map(below).collect::<Vec<_>>());
        // A slew may turn between two probes: beyond them it goes on for half the way that it went between
        // them, and NTP's for no longer than they are apart.
        above.max(below) + ((above + below) / 4.0).min(MOVEMENT_NS * SKEW_LIMIT)
    }
}

/// The largest room that bounds leave to a movement which lasts; `(at, room)` in order of time.
fn longest_room(rooms: &[(f64, f64)]) -> f64 {
    // A movement after the last probe but one would be seen by one probe alone.
    let begins = rooms.len().saturating_sub(1).max(1).min(rooms.len());
    let mut largest = 0.0_f64;
    for (index, &(at, room)) in rooms[..begins].iter().enumerate() {
        let later = rooms[index + 1..].iter().enumerate();
        let lasting = later.take_while(|(more, (then, _))| *more < 1 || *then - at <= MOVEMENT_NS);
        largest = largest.max(lasting.fold(room, |least, (_, &(_, room))| least.min(room)));
    }
    largest
}

impl Chord {
    fn new(probes: &[Probe], smallest: i64) -> Self {
        let few = probes.len().div_ceil(4).min(FEW);
        let best = |probes: &[Probe]| probes.iter().copied().min_by_key(Probe::round_trip);
        let (Some(begin), Some(end)) = (best(&probes[..few]), best(&probes[probes.len() - few..])) else {
            return Self::default();
        };
        let span = i128::from(end.sent.saturating_sub(begin.sent).max(1));
        let rise = end.offset().saturating_sub(begin.offset());
        let off = |probe: &Probe| {
            let along = i128::from(probe.sent.saturating_sub(begin.sent)).clamp(0, span);
            let line = i128::from(begin.offset()) + i128::from(rise) * along / span;
            clamped(i128::from(probe.offset()) - line)
        };
        let beyond = |probe: &Probe| off(probe).abs().saturating_sub((probe.round_trip() - smallest) / 2);
        let furthest = probes.iter().copied().max_by_key(beyond).unwrap_or(begin);
        let slack = (begin.round_trip() + end.round_trip()) / 2;
        Self { rise, slack, furthest_at: furthest.sent, furthest_off: off(&furthest) }
    }
}

/// The slopes that are looked at: adjtimex(2) bends a clock by a tenth at most (`tick`).
const MAX_SLOPE: f64 = 0.1;
/// The largest slope of a clock that NTP disciplines.
const SKEW_LIMIT: f64 = SKEW_LIMIT_PPM as f64 / 1e6;
/// Steps of a search in slopes: a third or a half each leaves less than 1 ns of an hour.
const HALVINGS: u32 = 80;
/// Over less than this a slope says nothing (chosen).
const SHORT_NS: f64 = 1e9;
/// Probes within this count as one look at the clock, beside the next one: the 500 ms between two progress
/// messages of a live run, and a fifth more, because none comes to the millisecond.
const MOVEMENT_NS: f64 = 0.6e9;
/// The scatter of round trips is seen on the lowest quarter of them, and of these on so many (chosen: as many
/// as a quiet path gives before and after a run).
const LOW_ROUND_TRIPS: usize = 16;
/// Probes of which the best one counts as the first, and as the last (as many as the live arena makes before
/// and after a run).
const FEW: usize = 8;
/// What a reading of a clock and the thread that reads it may be off by (chosen).
const CLOCK_READING_NS: i64 = 20_000;
