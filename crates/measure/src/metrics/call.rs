//! Rates how a call sounds. The receiver decides what is heard (`adaptive/mod.rs`, `playout.rs`), and the
//! E-model rates it in windows (`windows.rs`).
//!
//! # What is rated
//!
//! All frames that were due, also those that were due before the connection was open. The *opening second*,
//! which begins with the first speech that arrives, does not count, because a receiver still looks for its
//! delay. It is shown apart. A call of less than two seconds is rated with its opening second.
//!
//! A call whose delay or loss lies beyond the ranges of the E-model has no score. It is not usable, and its
//! rating factor is 0. A call whose coding has no published impairment is not rated: it has neither a rating
//! factor nor a score, and all its other figures.
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

mod hearing;
mod listener;

use core::cmp::Ordering;
use std::borrow::Cow;

use talkpath_units::{Duration, SignedDuration};

pub use self::hearing::Hearing;
use self::listener::{OwnReceiver, Reception, other_receivers};
use super::minimum_plus_wait::MinimumPlusWait;
use super::playout::{OTHER_WAITS, beyond_least_words};
use super::reassembly::{ArrivedFrame, Reassembly};
use super::timeline::Timeline;
use super::trip::round_trip;
use super::windows::{self, WindowTerms, Windows};
use super::{e_model, gaps};
use crate::summary::{
    Basis, CallSummary, CallWindows, Direction, LEAST_MOS, MouthToEarMs, OpeningSecond, OtherReceiver,
    OutsideModel,
};
use crate::{CallTerms, Fate, MessageRecord};

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
    receiver: OwnReceiver,
    /// The receivers with the waits of [`OTHER_WAITS`], or none.
    others: Vec<MinimumPlusWait>,
}

/// How one direction of a call sounds with one receiver.
struct Rating {
    reception: Reception,
    /// `None` if half of the round trips were rated.
    direction: Option<Direction>,
    mouth_to_ear_ms: Option<MouthToEarMs>,
    lost_share: f64,
    burst_ratio: f64,
    /// `None` if the call is not rated.
    r: Option<f64>,
    /// `None` if the call is not rated, or lies outside of the model on its bad side.
    mos: Option<f64>,
    gaps: u64,
    longest_gap_ms: f64,
    gaps_in_a_minute: u64,
    /// Whether the score reaches the floor, and no gap bars the call. `None` if there is no score to reach
    /// it, and no gap bars the call.
    is_usable: Option<bool>,
    outside_model: Vec<OutsideModel>,
    windows: Option<Windows>,
    opening_second: Option<OpeningSecond>,
}

/// How the E-model rates one direction of a call.
struct ModelScore {
    r: f64,
    /// `None` if the call lies outside of the model on its bad side.
    mos: Option<f64>,
    windows: Option<Windows>,
    outside_model: Vec<OutsideModel>,
}

/// The delays from mouth to ear of a call whose clocks are not trusted: those of the timeline and this.
type ClockOffsetMs = f64;

/// The time after the first speech that does not count. We chose one second: the adaptive receiver has its
/// first target after half a second, and needs as long to reach it.
const OPENING: Duration = Duration::from_secs(1);
/// The shortest time that can be rated without the opening second. We chose as long a time.
const SHORTEST_REST: Duration = Duration::from_secs(1);

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
        let worse = |receiver: ReceiverNumber| {
            let ratings = directions
                .iter()
                .filter_map(|(listener, direction)| listener.rate(receiver, 0.0, floor, *direction));
            ratings.min_by(Rating::compare_quality)
        };
        let (listener, _) = directions.first()?;
        let others =
            ReceiverNumber::OTHERS.map(|receiver| listener.other_receiver(receiver, worse(receiver)));
        Some(listener.summary(worse(ReceiverNumber::Own)?, basis).with_other_receivers(others))
    }

    /// Rates one direction of a call whose `other` direction is a flow of its own, between clocks that are
    /// not trusted. The mean delay of each direction is half of the sum of both mean delays. If one direction
    /// played nothing, the delays are not known, and the loss alone decides. Returns `None` if there was no
    /// frame, and for a flow with an echo.
    pub(crate) fn halve(&self, other: &Self, floor: f64) -> Option<CallSummary> {
        let (this, other) = (self.with_waiting_frames(), other.with_waiting_frames());
        let (this, other) = (this.one_way_listener()?, other.one_way_listener()?);
        let rate = |receiver: ReceiverNumber| {
            let mean_ms = |listener: &Listener| Some(listener.mouth_to_ear_ms(receiver)?.mean);
            let offset_ms = match (mean_ms(this), mean_ms(other)) {
                (Some(this), Some(other)) => (other - this) / 2.0,
                _ => ClockOffsetMs::NAN,
            };
            this.rate(receiver, offset_ms, floor, Some(Direction::Forward))
        };
        let others = ReceiverNumber::OTHERS.map(|receiver| this.other_receiver(receiver, rate(receiver)));
        let own = rate(ReceiverNumber::Own)?;
        Some(this.summary(own, Basis::HalfRoundTrip).with_other_receivers(others))
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

/// The time from the moment when a frame was due until it arrived. Returns `None` if the frame did not
/// arrive.
fn delay_of(frame: &MessageRecord) -> Option<SignedDuration> {
    if frame.fate != Fate::Delivered {
        return None;
    }
    Some(frame.received?.signed_since(frame.due))
}

/// One of the receivers with which a call is rated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiverNumber {
    /// The receiver of the scenario.
    Own,
    /// The receiver with this wait of [`OTHER_WAITS`].
    Other(usize),
}

impl ReceiverNumber {
    const OTHERS: [Self; 2] = [Self::Other(0), Self::Other(1)];
}

impl Listener {
    fn new(terms: CallTerms, clocks: Clocks) -> Self {
        Self {
            terms,
            reassembly: Reassembly::new(terms.carriage, terms.frame),
            receiver: OwnReceiver::new(&terms, clocks),
            others: other_receivers(&terms, clocks),
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
        for receiver in &mut self.others {
            receiver.add(delay.map(SignedDuration::as_nanos));
        }
        self.receiver.add(seq, delay);
    }

    /// Adds the frames that waited for later packets.
    fn add_waiting_frames(&mut self) {
        let frames: Vec<ArrivedFrame> = self.reassembly.finish().collect();
        for frame in frames {
            self.add_frame(frame);
        }
    }

    /// What a receiver makes of the frames. Returns `None` if there is no such receiver.
    fn reception(&self, receiver: ReceiverNumber) -> Option<Reception> {
        Some(match receiver {
            ReceiverNumber::Own => self.receiver.reception(),
            ReceiverNumber::Other(number) => {
                let (timeline, _) = self.others.get(number)?.finish();
                Reception::of_frames(timeline)
            }
        })
    }

    /// The delay from mouth to ear with a receiver. Returns `None` if nothing was played, and if there is no
    /// such receiver.
    fn mouth_to_ear_ms(&self, receiver: ReceiverNumber) -> Option<MouthToEarMs> {
        let (rated, _) = self.split(&self.reception(receiver)?.timeline);
        rated.mouth_to_ear_ms(self.coder_delay_ms())
    }

    /// Rates this direction with a receiver. `offset_ms` is added to the delays; if it is no number, the
    /// delays are not known, and the loss alone decides. Returns `None` if there was no frame, and if there
    /// is no such receiver.
    fn rate(
        &self,
        receiver: ReceiverNumber,
        offset_ms: ClockOffsetMs,
        floor: f64,
        direction: Option<Direction>,
    ) -> Option<Rating> {
        let reception = self.reception(receiver)?;
        let (rated, opening) = self.split(&reception.timeline);
        let frames = rated.frames();
        let knows_delay = offset_ms.is_finite();
        let offset_ms = if knows_delay { offset_ms } else { 0.0 };
        let delay_ms = rated.mouth_to_ear_ms(self.coder_delay_ms()).filter(|_| knows_delay);
        let delay_ms = delay_ms.map(|delay| MouthToEarMs {
            // The delays with another receiver are all the same, so their median is their mean without
            // rounding.
            mean: if receiver == ReceiverNumber::Own { delay.mean } else { delay.p50 } + offset_ms,
            p50: delay.p50 + offset_ms,
            p95: delay.p95 + offset_ms,
        });
        let (lost_share, burst_ratio) = (frames.loss()?, frames.burst_ratio());
        let scored = self.terms.rated.map(|codec| {
            let call = e_model::Call {
                // A clock that is a little off can make a delay negative.
                mouth_to_ear_ms: delay_ms.as_ref().map_or(0.0, |delay| delay.mean.max(0.0)),
                loss: lost_share,
                burst_ratio,
                codec,
            };
            let least_delay_ms = if knows_delay { Some(self.coder_delay_ms() + offset_ms) } else { None };
            self.score(&rated, &call, least_delay_ms)
        });
        let (longest_gap_ms, gaps_in_a_minute) = (frames.gaps.longest_ms(), frames.gaps.most_in_a_minute());
        let is_barred = gaps::make_unusable(longest_gap_ms, gaps_in_a_minute);
        let reaches_floor = scored.as_ref().map(|scored| scored.mos.is_some_and(|mos| mos >= floor));
        let opening_second = opening.map(|opening| OpeningSecond {
            lost: opening.frames().loss().unwrap_or(0.0),
            first_target_ms: reception.stretching.as_ref().and_then(|stretching| stretching.first_target_ms),
        });
        Some(Rating {
            reception,
            direction,
            mouth_to_ear_ms: delay_ms,
            lost_share,
            burst_ratio,
            r: scored.as_ref().map(|scored| scored.r),
            mos: scored.as_ref().and_then(|scored| scored.mos),
            gaps: frames.gaps.count,
            longest_gap_ms,
            gaps_in_a_minute,
            is_usable: if is_barred { Some(false) } else { reaches_floor },
            windows: scored.as_ref().and_then(|scored| scored.windows),
            outside_model: scored.map_or_else(Vec::new, |scored| scored.outside_model),
            opening_second,
        })
    }

    /// Rates `call` by the E-model, as a whole or in the windows of `rated`.
    fn score(&self, rated: &Timeline, call: &e_model::Call, least_delay_ms: Option<f64>) -> ModelScore {
        let codec = call.codec;
        let has_windows = self.terms.playout.has_windows();
        let is_beyond = has_windows && call.is_beyond();
        let windows =
            if has_windows { windows::rate(rated, &WindowTerms { least_delay_ms, codec }) } else { None };
        let r = match &windows {
            _ if is_beyond => 0.0,
            Some(windows) => windows.r,
            None => call.rate().r,
        };
        let mos = if is_beyond { None } else { Some(e_model::mos_on(codec.scale, r)) };
        ModelScore { r, mos, windows, outside_model: call.outside() }
    }

    /// Splits what is heard into what is rated, and the opening second if it does not count.
    fn split(&self, heard: &Timeline) -> (Timeline, Option<Timeline>) {
        if !self.terms.playout.has_windows() {
            return (heard.clone(), None);
        }
        let Some(begin) = heard.units_before_speech() else { return (heard.clone(), None) };
        let end = begin + heard.units_in(OPENING);
        if end + heard.units_in(SHORTEST_REST) > heard.units() {
            return (heard.clone(), None);
        }
        let rest = heard.part(end..heard.units());
        (heard.part(0..begin).followed_by(&rest), Some(heard.part(begin..end)))
    }

    /// The figures of the call with the receiver of the scenario.
    fn summary(&self, own: Rating, basis: Basis) -> CallSummary {
        let Rating { reception, .. } = own;
        let stretching = reception.stretching;
        CallSummary {
            mos: own.mos,
            r: own.r,
            played: reception.played,
            late: reception.late,
            missing: reception.missing,
            concealed: Some(stretching.as_ref().map_or(own.lost_share, |stretching| stretching.concealed)),
            stretched: stretching.as_ref().map(|stretching| stretching.stretched),
            late_played: stretching.as_ref().map(|stretching| stretching.late_played),
            discarded: Some(reception.late),
            mouth_to_ear_ms: own.mouth_to_ear_ms,
            burst_ratio: own.burst_ratio,
            gaps: Some(own.gaps),
            longest_gap_ms: Some(own.longest_gap_ms),
            gaps_in_a_minute: Some(own.gaps_in_a_minute),
            usable: own.is_usable,
            outside_model: own.outside_model,
            windows: own.windows.map(|Windows { count, seconds, .. }| CallWindows { count, seconds }),
            opening_second: own.opening_second,
            codec: self.terms.codec.name().to_owned(),
            scale: self.terms.rated.map_or("", |rated| rated.scale.name()).to_owned(),
            playout: self.terms.playout.words(),
            concealment: self.terms.codec.concealment(self.terms.is_concealed).to_owned(),
            basis,
            direction: own.direction,
            other_receiver: None,
            patient_receiver: None,
            receiver_matters: None,
        }
    }

    /// The figures of the call with another receiver, which `rating` is of.
    fn other_receiver(&self, receiver: ReceiverNumber, rating: Option<Rating>) -> Option<OtherReceiver> {
        let other = rating?;
        let ReceiverNumber::Other(number) = receiver else { return None };
        Some(OtherReceiver {
            playout: beyond_least_words(*OTHER_WAITS.get(number)?),
            mos: other.r.map(|_| other.mos.unwrap_or(LEAST_MOS)),
            r: other.r,
            played: other.reception.played,
            late: other.reception.late,
            mouth_to_ear_ms: other.mouth_to_ear_ms.map(|delay| delay.mean),
            burst_ratio: other.burst_ratio,
            longest_gap_ms: other.longest_gap_ms,
            gaps_in_a_minute: other.gaps_in_a_minute,
            usable: other.is_usable,
            direction: other.direction,
            outside_model: other.outside_model,
        })
    }

    /// The time in ms from the first sample of a frame until the frame is due. The coder waits for the whole
    /// frame, and for the samples that it looks ahead.
    fn coder_delay_ms(&self) -> f64 {
        (self.terms.frame + self.terms.codec.row().look_ahead).as_millis_f64()
    }
}

impl Rating {
    /// Compares how two directions sound. The worse one is less. A direction in which nothing is heard is the
    /// worst. A direction that is not usable is worse than a usable one, whatever their scores are. Of two
    /// directions without a score, the one that lost more is worse.
    fn compare_quality(&self, other: &Self) -> Ordering {
        let hears_something = |rating: &Self| rating.reception.played > 0;
        let is_usable = |rating: &Self| rating.is_usable != Some(false);
        let r = |rating: &Self| rating.r.unwrap_or(0.0);
        hears_something(self)
            .cmp(&hears_something(other))
            .then(is_usable(self).cmp(&is_usable(other)))
            .then(self.mos.is_some().cmp(&other.mos.is_some()))
            .then(r(self).total_cmp(&r(other)))
            .then(if self.mos.is_none() {
                other.lost_share.total_cmp(&self.lost_share)
            } else {
                Ordering::Equal
            })
    }
}

#[cfg(test)]
mod tests;
