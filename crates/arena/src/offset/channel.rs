//! The bounds that the probes set to the far clock, and the straight line between the bounds.

use super::probe::{Probe, SKEW_LIMIT_PPM, clamped};

/// The bounds of all probes of a run, and the line along them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    /// The time of the first probe on our clock, where the line begins. Before it the offset is constant.
    pub(super) first: i64,
    /// The time of the last probe on our clock, where the line ends. After it the offset is constant.
    last: i64,
    /// The far clock minus ours at the first probe.
    at_first: i64,
    /// The far clock minus ours at the last probe.
    at_last: i64,
    smallest_round_trip: i64,
    /// The channel's width: the shortest trip there plus the shortest trip back, measured along the line
    /// whose channel is widest.
    width: i64,
    /// The most by which the smallest round trip may exceed the width, for the scatter of this path.
    scatter: i64,
    /// The most by which the far clock may have left the line for two probes or more, in each direction,
    /// beyond half the width.
    pub(super) change: i64,
    pub(super) chord: Chord,
}

/// The line from the best of the first probes to the best of the last probes. The messages about a clock that
/// follows no straight line describe the clock by this line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Chord {
    /// The rise of the line from its beginning to its end.
    pub(super) rise: i64,
    /// The uncertainty of the rise: the mean of the two probes' round trips.
    slack: i64,
    /// The time on our clock of the probe that lies furthest from the line, beyond what its round trip
    /// explains.
    pub(super) furthest_at: i64,
    /// The distance of this probe from the line.
    pub(super) furthest_off: i64,
}

/// A bound of one probe: the far clock minus ours at the time `at`. Both count from the first probe, ns.
#[derive(Clone, Copy)]
struct Bound {
    at: f64,
    value: f64,
}

/// The bounds of all probes. They count from the first probe's time and offset.
struct Bounds {
    /// The upper bounds of the far clock, from the trips there.
    upper: Vec<Bound>,
    /// The lower bounds of the far clock, from the trips back.
    lower: Vec<Bound>,
}

/// The highest and the lowest line of one slope that lie between the bounds, by their values at the first
/// probe's time.
struct Levels {
    top: f64,
    bottom: f64,
}

/// The slope of the correction, with the width of the widest channel.
struct BestSlope {
    slope: f64,
    width: f64,
}

/// The distance of a bound from the line: the room that the bound leaves to a movement of the far clock.
struct Room {
    at: f64,
    distance: f64,
}

impl Channel {
    /// Makes the channel of `probes`, which are in the order of their sending. Returns `None` without probes.
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
        let BestSlope { slope, width } = bounds.best_slope(scatter as f64, span as f64);
        let Levels { top, bottom } = bounds.levels(slope);
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

    /// Returns the far clock minus ours on the line, when our clock reads `ours`.
    pub(super) fn at(&self, ours: i64) -> i64 {
        let span = self.span();
        let along = i128::from(ours.saturating_sub(self.first).clamp(0, span));
        let drift = i128::from(self.drift());
        clamped(i128::from(self.at_first) + drift * along / i128::from(span.max(1)))
    }

    /// Returns half the smallest round trip, rounded up.
    pub(super) const fn bound(&self) -> i64 {
        self.smallest_round_trip / 2 + self.smallest_round_trip % 2
    }

    /// Returns the time from the first probe to the last.
    pub(super) const fn span(&self) -> i64 {
        self.last.saturating_sub(self.first)
    }

    /// Returns the rise of the line from the first probe to the last.
    pub(super) const fn drift(&self) -> i64 {
        self.at_last.saturating_sub(self.at_first)
    }

    /// Returns the slope of the line. Returns `None` if it is within the uncertainty of the probes.
    pub(super) fn skew_ppm(&self) -> Option<f64> {
        let is_seen = self.drift().abs() > self.change.saturating_mul(2).max(CLOCK_READING_NS);
        is_seen.then(|| self.drift() as f64 / self.span().max(1) as f64 * 1e6)
    }

    /// Returns true if the clock runs faster or slower than each clock that NTP disciplines.
    pub(super) fn is_fast(&self) -> bool {
        let allowed = SKEW_LIMIT * self.span() as f64 + 1.0;
        let chord = &self.chord;
        self.drift().abs() as f64 > allowed || chord.rise.abs().saturating_sub(chord.slack) as f64 > allowed
    }

    /// Returns true if no straight line fits. Along each line, the shortest trip there plus the shortest trip
    /// back is then less than the smallest round trip, by more than the round trips scatter.
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
        // The probe was at the far host about half a round trip after it was sent.
        let half = |probe: &Probe| probe.round_trip() / 2;
        let upper =
            |probe: &Probe| bound(probe.sent, probe.sent.saturating_add(half(probe)), probe.far_received);
        let lower =
            |probe: &Probe| bound(probe.received, probe.received.saturating_sub(half(probe)), probe.far_sent);
        Self { upper: probes.iter().map(upper).collect(), lower: probes.iter().map(lower).collect() }
    }

    /// Returns the highest and the lowest line of this slope that lie between the upper and the lower bounds.
    fn levels(&self, slope: f64) -> Levels {
        let level = |bound: &Bound| bound.value - slope * bound.at;
        let top = self.upper.iter().map(level).fold(f64::INFINITY, f64::min);
        let bottom = self.lower.iter().map(level).fold(f64::NEG_INFINITY, f64::max);
        Levels { top, bottom }
    }

    /// Returns the width of the channel along this slope. The width is a concave function of the slope.
    fn width(&self, slope: f64) -> f64 {
        let Levels { top, bottom } = self.levels(slope);
        top - bottom
    }

    /// Finds the slopes whose channel is narrower than the widest channel by at most `scatter`. Returns the
    /// middle of these slopes, and the width of the widest channel.
    fn best_slope(&self, scatter: f64, span: f64) -> BestSlope {
        // Over a short time a slope cannot be measured, so the line is flat.
        if span < SHORT_NS {
            return BestSlope { slope: 0.0, width: self.width(0.0) };
        }
        let (mut low, mut high) = (-MAX_SLOPE, MAX_SLOPE);
        for _ in 0..HALVINGS {
            let third = (high - low) / 3.0;
            if self.width(low + third) < self.width(high - third) {
                low += third;
            } else {
                high -= third;
            }
        }
        let best = f64::midpoint(low, high);
        let width = self.width(best);
        let edge = |outside: f64| self.edge(best, outside, width - scatter);
        // If some of the slopes are possible for a clock that NTP disciplines, only these slopes count.
        let (low, high) = (edge(-MAX_SLOPE), edge(MAX_SLOPE));
        let is_usual = low <= SKEW_LIMIT && high >= -SKEW_LIMIT;
        let (low, high) = if is_usual { (low.max(-SKEW_LIMIT), high.min(SKEW_LIMIT)) } else { (low, high) };
        BestSlope { slope: f64::midpoint(low, high), width }
    }

    /// Searches from the slope `inside` towards `outside`, and returns the last slope whose channel has at
    /// least the width `least`.
    fn edge(&self, mut inside: f64, mut outside: f64, least: f64) -> f64 {
        for _ in 0..HALVINGS {
            let between = f64::midpoint(inside, outside);
            if self.width(between) >= least {
                inside = between;
            } else {
                outside = between;
            }
        }
        inside
    }

    /// Returns the most by which the far clock may leave `line` in each direction, beyond `half` a width. A
    /// movement must stay within the bounds of all probes in [`MOVEMENT_NS`], and of at least two probes. So
    /// the smallest distance of these bounds limits the movement.
    fn change(&self, line: &dyn Fn(f64) -> f64, half: f64) -> f64 {
        let room_above = |bound: &Bound| Room { at: bound.at, distance: bound.value - line(bound.at) - half };
        let room_below = |bound: &Bound| Room { at: bound.at, distance: line(bound.at) - bound.value - half };
        let above = largest_movement(&self.upper.iter().map(room_above).collect::<Vec<_>>());
        let below = largest_movement(&self.lower.iter().map(room_below).collect::<Vec<_>>());
        // A slew may turn between two probes, where no probe sees it. It can then go further than the bounds
        // of these probes, by at most half the distance that it went between them. A slew of NTP goes further
        // by at most its fastest slope times the time between the probes.
        above.max(below) + ((above + below) / 4.0).min(MOVEMENT_NS * SKEW_LIMIT)
    }
}

/// Returns the largest movement that the bounds allow if it lasts for at least two probes. `rooms` is in
/// order of time.
fn largest_movement(rooms: &[Room]) -> f64 {
    // A movement that begins at the last probe is left out, because only one probe would see it.
    let begins = rooms.len().saturating_sub(1).max(1).min(rooms.len());
    let mut largest = 0.0_f64;
    for (index, begin) in rooms[..begins].iter().enumerate() {
        // The movement must fit in the room of the next probe, and of each further probe within its duration.
        let mut movement = begin.distance;
        for (number, later) in rooms[index + 1..].iter().enumerate() {
            if number > 0 && later.at - begin.at > MOVEMENT_NS {
                break;
            }
            movement = movement.min(later.distance);
        }
        largest = largest.max(movement);
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

/// The largest slope that is considered. adjtimex(2) changes the rate of a clock by a tenth at most (`tick`).
const MAX_SLOPE: f64 = 0.1;
/// The largest slope of a clock that NTP disciplines.
const SKEW_LIMIT: f64 = SKEW_LIMIT_PPM as f64 / 1e6;
/// The number of steps of a search for a slope. Each step leaves two thirds or a half of the interval, so 80
/// steps leave less than 1 ns of an hour.
const HALVINGS: u32 = 80;
/// The shortest time over which a slope is measured. We chose 1 s, because a shorter time gives no useful
/// slope.
const SHORT_NS: f64 = 1e9;
/// The least duration of a movement of the clock that the probes must see. It is the 500 ms between two
/// progress messages of a live run, and a fifth more, because the messages do not come to the millisecond.
const MOVEMENT_NS: f64 = 0.6e9;
/// The scatter of the round trips is measured on the lowest quarter of them, and on at most this many. We
/// chose 16, which is the number of probes before and after a run.
const LOW_ROUND_TRIPS: usize = 16;
/// The number of probes from which the best is taken, at the beginning and at the end (as many as the live
/// arena makes before and after a run).
const FEW: usize = 8;
/// The error of a reading of a clock. We chose 20 us, which includes the delay of the thread that reads it.
const CLOCK_READING_NS: i64 = 20_000;
