//! Rates how a call sounds. The playout decides which frames are heard, and the E-model rates what is heard.
//!
//! # Which direction is rated
//!
//! - A flow without an echo is one direction of a call.
//! - A flow with an echo is a call in both directions. Each message is a frame in one direction, and its echo
//!   is a frame in the other direction. The call is as good as its worse direction.
//! - Two flows without echoes, one in each direction, are a call in both directions, too.
//!
//! # Clocks that are not trusted
//!
//! With an echo, the delay of a frame is then half of its round trip. A frame counts as lost if it was lost
//! in one of the two directions.
//!
//! With two flows, the clocks add an offset to the delays of one flow, and take the same offset from the
//! delays of the other flow. The playout is not affected, because a receiver uses its own clock only. The
//! offset cancels in the sum of both delays, so half of this sum is taken as the delay of each direction
//! ([`CallCounter::halve`]).

use core::cmp::Ordering;
use std::borrow::Cow;

use talkpath_units::SignedDuration;

use super::frames::Frames;
use super::minimum_plus_wait::MinimumPlusWait;
use super::playout::{Heard, Playout, beyond_least_words};
use super::reassembly::{ArrivedFrame, Reassembly};
use super::trip::round_trip;
use super::{e_model, gaps};
use crate::summary::{Basis, CallSummary, Direction, MouthToEarMs, OtherReceiver, OutsideModel};
use crate::{CallTerms, Fate, MessageRecord, PlayoutRule};

/// Counts the frames of one call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallCounter {
    /// One direction, between clocks that are trusted.
    OneWay(Listener),
    /// One direction, between clocks that are not trusted.
    OneWayUntrusted(Listener),
    /// Both directions, between clocks that are trusted.
    BothWays(Box<BothListeners>),
    /// Both directions, between clocks that are not trusted. The listener hears frames after half of their
    /// round trip.
    HalfRoundTrips(Listener),
}

/// The listeners of both directions of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BothListeners {
    /// Hears the frames.
    forward: Listener,
    /// Hears the echoes.
    back: Listener,
}

/// How the clocks of the two ends agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clocks {
    /// Both ends read one clock, so no delay is below zero.
    One,
    /// The ends read two clocks that agree. A delay may be below zero, because the offset is uncertain.
    Trusted,
    /// The ends read two clocks that do not agree.
    Untrusted,
}

/// What one listener hears.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listener {
    terms: CallTerms,
    reassembly: Reassembly,
    playout: Playout,
    frames: Frames,
    /// The playout delays, one for each talkspurt.
    playout_delays: Vec<PlayoutDelay>,
    /// The second receiver. `None` if the scenario names the receiver.
    second_receiver: Option<MinimumPlusWait>,
}

/// A playout delay, and how many frames were played with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlayoutDelay {
    delay: SignedDuration,
    frames: u64,
}

/// How one direction of a call sounds with one receiver.
struct Reception {
    frames: Frames,
    /// `None` if half of the round trips were rated.
    direction: Option<Direction>,
    burst_ratio: f64,
    r: f64,
    mos: f64,
    longest_gap_ms: f64,
    gaps_in_a_minute: u64,
    /// Whether the score reaches the floor, and no gap bars the call.
    is_usable: bool,
    outside_model: Vec<OutsideModel>,
}

/// One direction of a call with its rating. `D` is the form in which the delay from mouth to ear is known.
struct RatedDirection<'a, D> {
    listener: &'a Listener,
    reception: Reception,
    mouth_to_ear_ms: Option<D>,
}

impl CallCounter {
    /// Begins to count a call.
    pub(crate) fn new(terms: CallTerms, is_echo: bool, clocks: Clocks) -> Self {
        let listener = || Listener::new(terms, clocks);
        match (is_echo, clocks) {
            (false, Clocks::One | Clocks::Trusted) => Self::OneWay(listener()),
            (false, Clocks::Untrusted) => Self::OneWayUntrusted(listener()),
            (true, Clocks::One | Clocks::Trusted) => {
                Self::BothWays(Box::new(BothListeners { forward: listener(), back: listener() }))
            }
            (true, Clocks::Untrusted) => Self::HalfRoundTrips(listener()),
        }
    }

    /// Adds the next frame in the order of the numbers. `echo` is the echo of the frame, if the far host sent
    /// one.
    pub(crate) fn add(&mut self, frame: &MessageRecord, echo: Option<&MessageRecord>) {
        match self {
            Self::OneWay(listener) | Self::OneWayUntrusted(listener) => {
                listener.add(frame, delay_of(frame));
            }
            Self::BothWays(both) => {
                both.forward.add(frame, delay_of(frame));
                if let Some(echo) = echo {
                    both.back.add(frame, delay_of(echo));
                }
            }
            Self::HalfRoundTrips(listener) => {
                let half = |delay: SignedDuration| SignedDuration::from_nanos(delay.as_nanos() / 2);
                listener.add(frame, round_trip(frame, echo).delay().map(half));
            }
        }
    }

    /// Rates the call, which is usable if its score reaches `floor`. Returns `None` if there was no frame,
    /// and for one direction between clocks that are not trusted.
    pub(crate) fn finish(&self, floor: f64) -> Option<CallSummary> {
        let call = self.with_waiting_frames();
        let forward = Some(Direction::Forward);
        let (basis, directions) = match &*call {
            Self::OneWayUntrusted(_) => return None,
            Self::OneWay(listener) => (Basis::OneWay, vec![(listener, forward)]),
            Self::BothWays(both) => {
                let back = (&both.back, Some(Direction::Return));
                (Basis::OneWay, vec![(&both.forward, forward), back])
            }
            Self::HalfRoundTrips(listener) => (Basis::HalfRoundTrip, vec![(listener, None)]),
        };
        // The worse direction is found for each receiver, because it need not be the same direction.
        let mut own = Vec::new();
        let mut second = Vec::new();
        for (listener, direction) in directions {
            own.extend(listener.rate_own_receiver(floor, direction));
            second.extend(listener.rate_second_receiver(floor, direction));
        }
        let own = worse_direction(own)?;
        let second = worse_direction(second);
        let second =
            second.and_then(|rated| rated.listener.other_receiver(rated.reception, rated.mouth_to_ear_ms));
        Some(own.listener.summary(own.reception, own.mouth_to_ear_ms, basis).with_other_receiver(second))
    }

    /// Rates one direction of a call whose `other` direction is a flow of its own, between clocks that are
    /// not trusted. The mean delay of each direction is half of the sum of both mean delays. If one direction
    /// played nothing, the delays are not known, and the loss alone decides. Returns `None` if there was no
    /// frame, and for a flow with an echo.
    pub(crate) fn halve(&self, other: &Self, floor: f64) -> Option<CallSummary> {
        let (this, other) = (self.with_waiting_frames(), other.with_waiting_frames());
        let (this, other) = (this.one_way_listener()?, other.one_way_listener()?);
        let direction = Some(Direction::Forward);

        let delays = this.mouth_to_ear_ms().zip(other.mouth_to_ear_ms());
        let halved = delays.map(|(this, other)| {
            let clock_offset = (other.mean - this.mean) / 2.0;
            MouthToEarMs {
                mean: this.mean + clock_offset,
                p50: this.p50 + clock_offset,
                p95: this.p95 + clock_offset,
            }
        });
        let mean_ms = halved.as_ref().map(|delay| delay.mean);
        let own = this.rate(this.frames.clone(), mean_ms, floor, direction)?;
        let call = this.summary(own, halved, Basis::HalfRoundTrip);

        let (Some(this_second), Some(other_second)) = (this.second_frames(), other.second_frames()) else {
            return Some(call.with_other_receiver(None));
        };
        let delays = this_second.mouth_to_ear_ms.zip(other_second.mouth_to_ear_ms);
        let halved = delays.map(|(this, other)| (this + other) / 2.0);
        let second = this.rate(this_second.frames, halved, floor, direction);
        Some(call.with_other_receiver(second.and_then(|second| this.other_receiver(second, halved))))
    }

    /// Returns the call after its last packet: frames that waited for later packets are heard as they are.
    fn with_waiting_frames(&self) -> Cow<'_, Self> {
        let is_waiting = match self {
            Self::OneWay(listener) | Self::OneWayUntrusted(listener) | Self::HalfRoundTrips(listener) => {
                listener.reassembly.is_waiting()
            }
            Self::BothWays(both) => both.forward.reassembly.is_waiting() || both.back.reassembly.is_waiting(),
        };
        if !is_waiting {
            return Cow::Borrowed(self);
        }
        let mut call = self.clone();
        match &mut call {
            Self::OneWay(listener) | Self::OneWayUntrusted(listener) | Self::HalfRoundTrips(listener) => {
                listener.add_waiting_frames();
            }
            Self::BothWays(both) => {
                both.forward.add_waiting_frames();
                both.back.add_waiting_frames();
            }
        }
        Cow::Owned(call)
    }

    /// The listener of a call in one direction. Returns `None` for a call in both directions.
    fn one_way_listener(&self) -> Option<&Listener> {
        match self {
            Self::OneWay(listener) | Self::OneWayUntrusted(listener) => Some(listener),
            Self::BothWays(_) | Self::HalfRoundTrips(_) => None,
        }
    }
}

/// Returns the direction that sounds worse. If both sound alike, it is the first of them.
fn worse_direction<D>(directions: Vec<RatedDirection<'_, D>>) -> Option<RatedDirection<'_, D>> {
    directions.into_iter().min_by(|a, b| a.reception.compare_quality(&b.reception))
}

/// The time from the moment when a frame was due until it arrived. Returns `None` if the frame did not
/// arrive.
fn delay_of(frame: &MessageRecord) -> Option<SignedDuration> {
    if frame.fate != Fate::Delivered {
        return None;
    }
    Some(frame.received?.signed_since(frame.due))
}

/// The frames that the second receiver plays.
struct SecondFrames {
    frames: Frames,
    /// `None` if no frame arrived.
    mouth_to_ear_ms: Option<f64>,
}

impl Listener {
    fn new(terms: CallTerms, clocks: Clocks) -> Self {
        let least_delay_ns = match clocks {
            Clocks::One => 0,
            Clocks::Trusted | Clocks::Untrusted => i64::MIN,
        };
        let second_receiver = |wait| MinimumPlusWait::new(terms.frame, wait, least_delay_ns);
        Self {
            terms,
            reassembly: Reassembly::new(terms.carriage, terms.frame),
            playout: Playout::new(terms.frame, terms.playout),
            frames: Frames::new(terms.frame),
            playout_delays: Vec::new(),
            second_receiver: terms.other_wait.map(second_receiver),
        }
    }

    /// Adds a packet of the call with its delay, which is `None` if the packet did not arrive.
    fn add(&mut self, packet: &MessageRecord, delay: Option<SignedDuration>) {
        if let Some(frame) = self.reassembly.add(packet.seq, packet.due, delay) {
            self.add_frame(frame);
        }
    }

    fn add_frame(&mut self, frame: ArrivedFrame) {
        let ArrivedFrame { number: seq, delay, .. } = frame;
        if let Some(second_receiver) = &mut self.second_receiver {
            second_receiver.add(delay.map(SignedDuration::as_nanos));
        }
        let heard = self.playout.take(seq, delay);
        self.frames.add(heard);
        if let (Heard::Played, Some(delay)) = (heard, self.playout.delay()) {
            match self.playout_delays.last_mut() {
                Some(last) if last.delay == delay => last.frames += 1,
                _ => self.playout_delays.push(PlayoutDelay { delay, frames: 1 }),
            }
        }
    }

    /// Adds the frames that waited for later packets.
    fn add_waiting_frames(&mut self) {
        let frames: Vec<ArrivedFrame> = self.reassembly.finish().collect();
        for frame in frames {
            self.add_frame(frame);
        }
    }

    /// Rates this direction with the receiver of the scenario. Returns `None` if there was no frame.
    fn rate_own_receiver(
        &self,
        floor: f64,
        direction: Option<Direction>,
    ) -> Option<RatedDirection<'_, MouthToEarMs>> {
        let mouth_to_ear_ms = self.mouth_to_ear_ms();
        let mean_ms = mouth_to_ear_ms.as_ref().map(|delay| delay.mean);
        let reception = self.rate(self.frames.clone(), mean_ms, floor, direction)?;
        Some(RatedDirection { listener: self, reception, mouth_to_ear_ms })
    }

    /// Rates this direction with the second receiver. Returns `None` if there was no frame, or if there is no
    /// second receiver.
    fn rate_second_receiver(
        &self,
        floor: f64,
        direction: Option<Direction>,
    ) -> Option<RatedDirection<'_, f64>> {
        let SecondFrames { frames, mouth_to_ear_ms } = self.second_frames()?;
        let reception = self.rate(frames, mouth_to_ear_ms, floor, direction)?;
        Some(RatedDirection { listener: self, reception, mouth_to_ear_ms })
    }

    /// Rates `frames` of this direction. `mean_ms` is the mean delay from mouth to ear. If it is not known,
    /// the loss alone decides. Returns `None` if there was no frame.
    fn rate(
        &self,
        frames: Frames,
        mean_ms: Option<f64>,
        floor: f64,
        direction: Option<Direction>,
    ) -> Option<Reception> {
        let call = e_model::Call {
            // A clock that is a little off can make a delay negative.
            mouth_to_ear_ms: mean_ms.unwrap_or(0.0).max(0.0),
            loss: frames.loss()?,
            burst_ratio: frames.burst_ratio(),
            codec: self.terms.rated?,
        };
        let e_model::Rating { r, mos, .. } = call.rate();
        let (longest_gap_ms, gaps_in_a_minute) = (frames.gaps.longest_ms(), frames.gaps.most_in_a_minute());
        Some(Reception {
            frames,
            direction,
            burst_ratio: call.burst_ratio,
            r,
            mos,
            longest_gap_ms,
            gaps_in_a_minute,
            is_usable: mos >= floor && !gaps::make_unusable(longest_gap_ms, gaps_in_a_minute),
            outside_model: call.outside(),
        })
    }

    /// The figures of the call with the receiver of the scenario.
    fn summary(&self, own: Reception, mouth_to_ear_ms: Option<MouthToEarMs>, basis: Basis) -> CallSummary {
        CallSummary {
            mos: own.mos,
            r: own.r,
            played: own.frames.played,
            late: own.frames.late,
            missing: own.frames.missing,
            mouth_to_ear_ms,
            burst_ratio: own.burst_ratio,
            longest_gap_ms: Some(own.longest_gap_ms),
            gaps_in_a_minute: Some(own.gaps_in_a_minute),
            usable: Some(own.is_usable),
            outside_model: own.outside_model,
            codec: self.terms.codec.name().to_owned(),
            scale: self.terms.rated.map_or("", |rated| rated.scale.name()).to_owned(),
            playout: match self.terms.playout {
                PlayoutRule::Adaptive => "adaptive".to_owned(),
                PlayoutRule::Ramjee => "ramjee".to_owned(),
                PlayoutRule::Fixed(wait) => format!("fixed {wait}"),
            },
            concealment: self.terms.codec.concealment(self.terms.is_concealed).to_owned(),
            basis,
            direction: own.direction,
            other_receiver: None,
            receiver_matters: None,
        }
    }

    /// The figures of the call with the second receiver. Returns `None` if there is no such receiver.
    fn other_receiver(&self, other: Reception, mouth_to_ear_ms: Option<f64>) -> Option<OtherReceiver> {
        Some(OtherReceiver {
            playout: beyond_least_words(self.terms.other_wait?),
            mos: other.mos,
            r: other.r,
            played: other.frames.played,
            late: other.frames.late,
            mouth_to_ear_ms,
            burst_ratio: other.burst_ratio,
            longest_gap_ms: other.longest_gap_ms,
            gaps_in_a_minute: other.gaps_in_a_minute,
            usable: other.is_usable,
            direction: other.direction,
            outside_model: other.outside_model,
        })
    }

    /// The frames that the second receiver plays. Returns `None` if there is no such receiver.
    fn second_frames(&self) -> Option<SecondFrames> {
        let (frames, playout_ns) = self.second_receiver.as_ref()?.finish();
        let mouth_to_ear_ms = playout_ns.map(|playout_ns| self.coder_delay_ms() + playout_ns as f64 / 1e6);
        Some(SecondFrames { frames, mouth_to_ear_ms })
    }

    /// The time in ms from the first sample of a frame until the frame is due. The coder waits for the whole
    /// frame, and for the samples that it looks ahead.
    fn coder_delay_ms(&self) -> f64 {
        (self.terms.frame + self.terms.codec.row().look_ahead).as_millis_f64()
    }

    /// The delay from mouth to ear of the frames that were played. Returns `None` if no frame was played.
    fn mouth_to_ear_ms(&self) -> Option<MouthToEarMs> {
        let mut delays = self.playout_delays.clone();
        delays.sort_unstable();
        let mut total_ns = 0_i128;
        for PlayoutDelay { delay, frames } in &delays {
            total_ns += i128::from(delay.as_nanos()) * i128::from(*frames);
        }
        let coder_delay_ms = self.coder_delay_ms();
        // The nearest rank.
        let quantile = |percent: u64| {
            let rank = (self.frames.played * percent).div_ceil(100).max(1);
            let mut frames_so_far = 0;
            for PlayoutDelay { delay, frames } in &delays {
                frames_so_far += frames;
                if frames_so_far >= rank {
                    return Some(coder_delay_ms + delay.as_nanos() as f64 / 1e6);
                }
            }
            None
        };
        let mean = coder_delay_ms + total_ns as f64 / self.frames.played.max(1) as f64 / 1e6;
        Some(MouthToEarMs { mean, p50: quantile(50)?, p95: quantile(95)? })
    }
}

impl Reception {
    /// Compares how two directions sound. The worse one is less. A direction in which nothing is heard is the
    /// worst. A direction that is not usable is worse than a usable one, whatever their scores are.
    fn compare_quality(&self, other: &Self) -> Ordering {
        let hears_something = |reception: &Self| reception.frames.played > 0;
        hears_something(self)
            .cmp(&hears_something(other))
            .then(self.is_usable.cmp(&other.is_usable))
            .then(self.r.total_cmp(&other.r))
    }
}

#[cfg(test)]
mod tests;
