//! Features and their negotiation (RFC 4340 §6).
//!
//! Each feature has a value at each end, its location. [`Features`] holds both ends' as one end knows them:
//! `Local` is ours, which we speak of with L options, `Remote` the peer's, R options.
//!
//! ```text
//!   STABLE ── want: Change ──► CHANGING ── Confirm, or the peer's own Change ──► STABLE
//!                                 └── timeout: Change again (§6.6.3)
//! ```
//!
//! UNSTABLE (§6.6.2) does not occur: a preference that changes while CHANGING waits until the feature is
//! stable. FGSR and FGSS are kept for the connection, not for each feature (§6.6.4).

use talkpath_units::{Duration, Instant};
use talkpath_wire::dccp::{DccpOption, FeatureKind, FeatureOption, Options, Reset, ResetCode, Seq};

use super::Feature;
use super::feature::{FEATURES, Rule};

/// Which end a feature is located at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Ours.
    Local,
    /// The peer's.
    Remote,
}

/// A feature's values that one end takes, the preferred first; a single value if the feature is
/// non-negotiable (RFC 4340 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preference {
    values: [u64; 2],
    count: u8,
}

/// All features of a connection.
#[derive(Clone, Debug)]
pub(super) struct Features {
    is_server: bool,
    entries: [[Entry; 2]; FEATURES.len()],
    /// Confirms to be sent, in order.
    confirms: Vec<(Feature, Location, Answer)>,
    /// Unknown features to be answered with empty Confirms: their numbers, and whether a Confirm L.
    unknown: Vec<(u8, bool)>,
    /// Greatest number received with a feature option; `None` before the first.
    fgsr: Option<Seq>,
    /// Greatest number sent with a new Change.
    fgss: Seq,
    /// When Changes are sent again, and how often they were.
    retransmit_at: Option<Instant>,
    backoff: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    value: u64,
    state: State,
    /// What we take, of a server-priority feature.
    preference: Preference,
    /// Whether the connection has yet to hear of the new value.
    has_changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stable,
    /// A Change is to be sent for the first time.
    ToBeChanged {
        wanted: Preference,
        mandatory: bool,
    },
    Changing {
        wanted: Preference,
        mandatory: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Value,
    Empty,
}

/// The packet in which options of the negotiation leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier {
    /// The sequence number of the packet.
    pub(super) seq: Seq,
    /// True if the packet has an acknowledgement number. Only such a packet may confirm (RFC 4340 §6.6.1).
    pub(super) has_ack: bool,
    /// True if the packet repeats every Change that is not yet confirmed. A packet of the handshake does.
    pub(super) repeats_all: bool,
}

impl Preference {
    /// This value and no other.
    pub(super) const fn only(value: u64) -> Self {
        Self { values: [value; 2], count: 1 }
    }

    /// Either, the first rather.
    pub(super) const fn rather(first: u64, second: u64) -> Self {
        Self { values: [first, second], count: if first == second { 1 } else { 2 } }
    }

    fn as_slice(&self) -> &[u64] {
        &self.values[..usize::from(self.count)]
    }
}

impl Features {
    /// All features at their initial values (RFC 4340 §6.4, table 4). Our first packet will be `iss`.
    pub(super) fn new(is_server: bool, iss: Seq) -> Self {
        let entry = |feature: Feature| Entry {
            value: feature.initial(),
            state: State::Stable,
            preference: match feature {
                Feature::Ccid => Preference::only(feature.initial()),
                _ => Preference::rather(feature.initial(), 1),
            },
            has_changed: false,
        };
        Self {
            is_server,
            entries: FEATURES.map(|feature| [entry(feature); 2]),
            confirms: Vec::new(),
            unknown: Vec::new(),
            fgsr: None,
            fgss: iss,
            retransmit_at: None,
            backoff: 0,
        }
    }

    /// The value as this end knows it.
    pub(super) fn value(&self, feature: Feature, location: Location) -> u64 {
        self.entry(feature, location).value
    }

    /// Whether no negotiation of this feature is under way.
    #[cfg(test)]
    fn is_stable(&self, feature: Feature, location: Location) -> bool {
        self.entry(feature, location).state == State::Stable
    }

    /// The values that are not as they are at the beginning of a connection.
    pub(super) fn agreed(&self) -> impl Iterator<Item = (Feature, Location, u64)> + '_ {
        FEATURES.into_iter().flat_map(move |feature| {
            [Location::Local, Location::Remote].into_iter().filter_map(move |location| {
                let value = self.value(feature, location);
                (value != feature.initial()).then_some((feature, location, value))
            })
        })
    }

    /// Sets a value that was agreed before there was state (an Init Cookie).
    pub(super) fn restore(&mut self, feature: Feature, location: Location, value: u64) {
        let entry = self.entry_mut(feature, location);
        entry.value = value;
        entry.has_changed = true;
    }

    /// What we take of a server-priority feature when the peer asks.
    pub(super) fn prefer(&mut self, feature: Feature, location: Location, preference: Preference) {
        self.entry_mut(feature, location).preference = preference;
    }

    /// Opens a negotiation if the value is another and none is under way. `mandatory` has the peer reset the
    /// connection rather than refuse (§6.6.9).
    pub(super) fn want(&mut self, feature: Feature, location: Location, wanted: Preference, mandatory: bool) {
        let entry = self.entry_mut(feature, location);
        if entry.state == State::Stable && entry.value != wanted.values[0] {
            entry.preference = wanted;
            entry.state = State::ToBeChanged { wanted, mandatory };
        }
    }

    /// Takes all wished changes as announced in packet `seq` (an Init Cookie's Response), to be repeated
    /// after `rtt`.
    pub(super) fn restore_changes(&mut self, seq: Seq, rtt: Duration, now: Instant) {
        let mut scratch = Options::EMPTY;
        self.put(&mut scratch, Carrier { seq, has_ack: true, repeats_all: true }, rtt, now);
        self.fgss = seq;
    }

    /// Returns whether a packet should leave for the negotiation alone: for a Confirm, for a new Change, or
    /// for a Change whose retransmission is due.
    pub(super) fn needs_packet(&self, now: Instant) -> bool {
        !self.confirms.is_empty()
            || !self.unknown.is_empty()
            || self.retransmit_at.is_some_and(|at| at <= now)
            || self.entries.iter().flatten().any(|entry| matches!(entry.state, State::ToBeChanged { .. }))
    }

    /// When Changes want to be sent again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.retransmit_at
    }

    /// Adds the options of the negotiation to `options`, which leave in the packet `carrier`: the Confirms,
    /// the new Changes, and the Changes whose retransmission is due. `rtt` is the first interval of
    /// retransmissions.
    pub(super) fn put(&mut self, options: &mut Options, carrier: Carrier, rtt: Duration, now: Instant) {
        if carrier.has_ack {
            self.put_confirms(options);
        }
        let again = carrier.repeats_all || self.retransmit_at.is_some_and(|at| at <= now);
        let (mut sent, mut is_new) = (false, false);
        for feature in FEATURES {
            for location in [Location::Local, Location::Remote] {
                let (wanted, mandatory, new) = match self.entry(feature, location).state {
                    State::ToBeChanged { wanted, mandatory } => (wanted, mandatory, true),
                    State::Changing { wanted, mandatory } if again => (wanted, mandatory, false),
                    State::Changing { .. } | State::Stable => continue,
                };
                if push_change(options, feature, location, wanted, mandatory) {
                    self.entry_mut(feature, location).state = State::Changing { wanted, mandatory };
                    sent = true;
                    is_new |= new;
                }
            }
        }
        if is_new {
            self.fgss = carrier.seq;
            self.backoff = 0;
        }
        if sent {
            self.retransmit_at = Some(now + backed_off(rtt, self.backoff));
            self.backoff += 1;
        }
    }

    /// A feature option of a valid packet that is not Data; `mandatory` if a Mandatory option came just
    /// before.
    ///
    /// # Errors
    /// What the connection is to be reset with.
    pub(super) fn on_option(
        &mut self,
        option: FeatureOption<'_>,
        mandatory: bool,
        seq: Seq,
        ack: Option<Seq>,
    ) -> Result<(), Reset> {
        let location = match option.kind {
            FeatureKind::ChangeR | FeatureKind::ConfirmR => Location::Local,
            FeatureKind::ChangeL | FeatureKind::ConfirmL => Location::Remote,
        };
        let is_change = matches!(option.kind, FeatureKind::ChangeL | FeatureKind::ChangeR);
        if is_change && self.fgsr.is_some_and(|fgsr| !seq.is_after(fgsr)) {
            return Ok(());
        }
        let Some(feature) = Feature::numbered(option.number) else {
            if mandatory {
                return Err(failure(ResetCode::MANDATORY_ERROR, option));
            }
            if is_change && self.unknown.len() < MOST_ANSWERS {
                self.unknown.push((option.number, location == Location::Local));
            }
            return Ok(());
        };
        if is_change {
            return self.on_change(feature, location, option, mandatory);
        }
        let answers = ack.is_some_and(|ack| !ack.is_before(self.fgss));
        if !answers || self.fgsr.is_some_and(|fgsr| !seq.is_after(fgsr)) {
            return Ok(());
        }
        self.on_confirm(feature, location, option)
    }

    /// All feature options of packet `seq` have been seen.
    pub(super) fn on_packet_end(&mut self, seq: Seq) {
        self.fgsr = Some(self.fgsr.map_or(seq, |fgsr| fgsr.max(seq)));
    }

    /// A feature whose value has changed since the last call.
    pub(super) fn poll_changed(&mut self) -> Option<(Feature, Location, u64)> {
        for feature in FEATURES {
            for location in [Location::Local, Location::Remote] {
                let entry = self.entry_mut(feature, location);
                if core::mem::take(&mut entry.has_changed) {
                    return Some((feature, location, entry.value));
                }
            }
        }
        None
    }

    /// RFC 4340 §6.6.2, third.
    fn on_change(
        &mut self,
        feature: Feature,
        location: Location,
        option: FeatureOption<'_>,
        mandatory: bool,
    ) -> Result<(), Reset> {
        let is_server = self.is_server;
        let entry = self.entry_mut(feature, location);
        let new_value = match feature.rule() {
            Rule::ServerPriority if option.values.is_empty() => None,
            Rule::ServerPriority => {
                let shared = reconcile(is_server, entry.preference, option.values);
                if shared.is_none() && mandatory { None } else { Some(shared.unwrap_or(entry.value)) }
            }
            // Only the location may change a non-negotiable feature (§6.3.2).
            Rule::NonNegotiable { size, least, most } => number(option.values, size)
                .filter(|value| location == Location::Remote && (least..=most).contains(value)),
        };
        if let Some(value) = new_value {
            entry.set(value);
            entry.state = State::Stable;
        } else if mandatory {
            return Err(failure(ResetCode::MANDATORY_ERROR, option));
        }
        let answer = if new_value.is_some() { Answer::Value } else { Answer::Empty };
        self.confirms.retain(|&(other, place, _)| (other, place) != (feature, location));
        self.confirms.push((feature, location, answer));
        self.settle();
        Ok(())
    }

    /// RFC 4340 §6.6.2, fourth.
    fn on_confirm(
        &mut self,
        feature: Feature,
        location: Location,
        option: FeatureOption<'_>,
    ) -> Result<(), Reset> {
        let is_server = self.is_server;
        let entry = self.entry_mut(feature, location);
        let State::Changing { wanted, .. } = entry.state else { return Ok(()) };
        let error = failure(ResetCode::OPTION_ERROR, option);
        if option.values.is_empty() {
            // §6.6.7: features that every end must know.
            if feature.is_required() {
                return Err(error);
            }
        } else {
            let value = match feature.rule() {
                Rule::ServerPriority => {
                    let [chosen, list @ ..] = option.values else { return Err(error) };
                    let right = reconcile(is_server, wanted, list).unwrap_or(entry.value);
                    (right == u64::from(*chosen)).then_some(right)
                }
                Rule::NonNegotiable { size, .. } => {
                    number(option.values, size).filter(|&value| value == wanted.values[0])
                }
            };
            entry.set(value.ok_or(error)?);
        }
        entry.state = State::Stable;
        self.settle();
        Ok(())
    }

    /// Nothing is sent again once nothing is under way.
    fn settle(&mut self) {
        if !self.entries.iter().flatten().any(|entry| matches!(entry.state, State::Changing { .. })) {
            self.retransmit_at = None;
            self.backoff = 0;
        }
    }

    fn put_confirms(&mut self, options: &mut Options) {
        self.unknown.retain(|&(number, is_local)| {
            let kind = if is_local { FeatureKind::ConfirmL } else { FeatureKind::ConfirmR };
            !options.push(DccpOption::Feature(FeatureOption { kind, number, values: &[] }))
        });
        let confirms = core::mem::take(&mut self.confirms);
        for (feature, location, answer) in confirms {
            let entry = self.entry(feature, location);
            let kind = match location {
                Location::Local => FeatureKind::ConfirmL,
                Location::Remote => FeatureKind::ConfirmR,
            };
            let mut values = Values::default();
            if answer == Answer::Value {
                values.push(feature, entry.value);
                if feature.rule() == Rule::ServerPriority {
                    entry.preference.as_slice().iter().for_each(|&value| values.push(feature, value));
                }
            }
            let option = FeatureOption { kind, number: feature.number(), values: values.as_slice() };
            if !options.push(DccpOption::Feature(option)) {
                self.confirms.push((feature, location, answer));
            }
        }
    }

    fn entry(&self, feature: Feature, location: Location) -> &Entry {
        &self.entries[feature as usize][location as usize]
    }

    fn entry_mut(&mut self, feature: Feature, location: Location) -> &mut Entry {
        &mut self.entries[feature as usize][location as usize]
    }
}

impl Entry {
    fn set(&mut self, value: u64) {
        self.has_changed |= self.value != value;
        self.value = value;
    }
}

/// The bytes of a feature option's values.
#[derive(Default)]
struct Values {
    bytes: [u8; 8],
    size: usize,
}

impl Values {
    fn push(&mut self, feature: Feature, value: u64) {
        let size = feature.value_size();
        if let Some(place) = self.bytes.get_mut(self.size..self.size + size) {
            place.copy_from_slice(&value.to_be_bytes()[8 - size..]);
            self.size += size;
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

fn push_change(
    options: &mut Options,
    feature: Feature,
    location: Location,
    wanted: Preference,
    mandatory: bool,
) -> bool {
    let kind = match location {
        Location::Local => FeatureKind::ChangeL,
        Location::Remote => FeatureKind::ChangeR,
    };
    let mut values = Values::default();
    wanted.as_slice().iter().for_each(|&value| values.push(feature, value));
    let before = *options;
    let done = (!mandatory || options.push(DccpOption::Mandatory))
        && options.push(DccpOption::Feature(FeatureOption {
            kind,
            number: feature.number(),
            values: values.as_slice(),
        }));
    if !done {
        *options = before;
    }
    done
}

/// RFC 4340 §6.3.1: the first of the server's values that the client has too.
fn reconcile(is_server: bool, ours: Preference, theirs: &[u8]) -> Option<u64> {
    let ours = ours.as_slice();
    let mut theirs = theirs.iter().map(|&value| u64::from(value));
    if is_server {
        ours.iter().copied().find(|value| theirs.clone().any(|other| other == *value))
    } else {
        theirs.find(|value| ours.contains(value))
    }
}

/// A number of exactly `size` bytes.
fn number(bytes: &[u8], size: usize) -> Option<u64> {
    (bytes.len() == size).then(|| bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// RFC 4340 §5.6: data 1 to 3 are the option's type and its first two bytes of data.
fn failure(code: ResetCode, option: FeatureOption<'_>) -> Reset {
    let first = option.values.first().copied().unwrap_or(0);
    Reset { code, data: [option.kind.option_type(), option.number, first] }
}

/// RFC 4340 §6.6.3: at least a round trip, doubled up to 64 s.
fn backed_off(rtt: Duration, backoff: u32) -> Duration {
    let interval = rtt.saturating_mul(1_u64 << backoff.min(20));
    if interval > LONGEST_INTERVAL { LONGEST_INTERVAL } else { interval }
}

/// RFC 4340 §6.6.3: "not less than 64 seconds".
const LONGEST_INTERVAL: Duration = Duration::from_secs(64);
/// Chosen: a packet's options hold no more Changes of unknown features than this.
const MOST_ANSWERS: usize = Options::ROOM / 3;

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
