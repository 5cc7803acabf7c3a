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

/// The end at which a feature is located.
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
    /// The Confirms that have to leave, in order.
    confirms: Vec<Confirm>,
    /// The features of the peer's Changes that we do not know. Each is answered with an empty Confirm.
    unknown: Vec<UnknownFeature>,
    /// The greatest sequence number of a packet with a feature option that has arrived (FGSR). `None` before
    /// the first one.
    fgsr: Option<Seq>,
    /// The greatest sequence number of a packet that left with a new Change (FGSS).
    fgss: Seq,
    /// When the Changes are sent again. `None` if none is under way.
    retransmit_at: Option<Instant>,
    /// The number of times that the Changes were sent.
    backoff: u32,
}

/// A feature at one location.
#[derive(Clone, Copy, Debug)]
struct Entry {
    value: u64,
    state: State,
    /// The values that we take if the peer asks for a server-priority feature.
    preference: Preference,
    /// True until [`Features::poll_changed`] has reported the value.
    has_changed: bool,
}

/// The state of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stable,
    /// The Change has not left yet.
    ToBeChanged(Change),
    /// The Change has left, and is not confirmed.
    Changing(Change),
}

/// A Change that this end asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    wanted: Preference,
    /// True if the peer has to reset the connection if it refuses (RFC 4340 §6.6.9).
    is_mandatory: bool,
}

/// The answer to a Change of the peer's.
#[derive(Clone, Copy, Debug)]
struct Confirm {
    feature: Feature,
    location: Location,
    /// True if the peer's Change was refused. The Confirm then has no value.
    is_empty: bool,
}

/// A feature that we do not know.
#[derive(Clone, Copy, Debug)]
struct UnknownFeature {
    number: u8,
    location: Location,
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
    /// Takes this value and no other.
    pub(super) const fn only(value: u64) -> Self {
        Self { values: [value; 2], count: 1 }
    }

    /// Takes either value, and prefers the first.
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

    /// Returns the value as this end knows it.
    pub(super) fn value(&self, feature: Feature, location: Location) -> u64 {
        self.entry(feature, location).value
    }

    /// True if no negotiation of this feature is under way.
    #[cfg(test)]
    fn is_stable(&self, feature: Feature, location: Location) -> bool {
        self.entry(feature, location).state == State::Stable
    }

    /// Returns the features whose values differ from the initial ones.
    pub(super) fn agreed(&self) -> impl Iterator<Item = (Feature, Location, u64)> + '_ {
        FEATURES.into_iter().flat_map(move |feature| {
            [Location::Local, Location::Remote].into_iter().filter_map(move |location| {
                let value = self.value(feature, location);
                (value != feature.initial()).then_some((feature, location, value))
            })
        })
    }

    /// Sets a value that an Init Cookie carries: it was agreed before this end had state.
    pub(super) fn restore(&mut self, feature: Feature, location: Location, value: u64) {
        let entry = self.entry_mut(feature, location);
        entry.value = value;
        entry.has_changed = true;
    }

    /// Sets the values that we take if the peer asks for a server-priority feature.
    pub(super) fn prefer(&mut self, feature: Feature, location: Location, preference: Preference) {
        self.entry_mut(feature, location).preference = preference;
    }

    /// Asks for the `wanted` value, if the present value is another and no negotiation is under way.
    pub(super) fn want(&mut self, feature: Feature, location: Location, wanted: Preference) {
        self.change(feature, location, Change { wanted, is_mandatory: false });
    }

    /// As [`Self::want`]. If the peer refuses, it has to reset the connection (RFC 4340 §6.6.9).
    pub(super) fn demand(&mut self, feature: Feature, location: Location, wanted: Preference) {
        self.change(feature, location, Change { wanted, is_mandatory: true });
    }

    fn change(&mut self, feature: Feature, location: Location, change: Change) {
        let entry = self.entry_mut(feature, location);
        if entry.state == State::Stable && entry.value != change.wanted.values[0] {
            entry.preference = change.wanted;
            entry.state = State::ToBeChanged(change);
        }
    }

    /// Treats all wanted Changes as sent in the packet `seq`, which was the Response with an Init Cookie.
    /// They are sent again after `rtt`.
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
            || self.entries.iter().flatten().any(|entry| matches!(entry.state, State::ToBeChanged(_)))
    }

    /// When the Changes are sent again. `None` if none is under way.
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
        let repeats = carrier.repeats_all || self.retransmit_at.is_some_and(|at| at <= now);
        let (mut has_change, mut has_new_change) = (false, false);
        for feature in FEATURES {
            for location in [Location::Local, Location::Remote] {
                let (change, is_new) = match self.entry(feature, location).state {
                    State::ToBeChanged(change) => (change, true),
                    State::Changing(change) if repeats => (change, false),
                    State::Changing(_) | State::Stable => continue,
                };
                let has_room = push_change(options, feature, location, change);
                if has_room {
                    self.entry_mut(feature, location).state = State::Changing(change);
                    has_change = true;
                    has_new_change |= is_new;
                }
            }
        }
        if has_new_change {
            self.fgss = carrier.seq;
            self.backoff = 0;
        }
        if has_change {
            self.retransmit_at = Some(now + backed_off(rtt, self.backoff));
            self.backoff += 1;
        }
    }

    /// Takes a feature option of a valid packet `seq` that is not Data. `is_mandatory` is true if a Mandatory
    /// option came just before it. `ack` is the packet's acknowledgement number.
    ///
    /// # Errors
    /// Returns the Reset that has to end the connection.
    pub(super) fn on_option(
        &mut self,
        option: FeatureOption<'_>,
        is_mandatory: bool,
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
            if is_mandatory {
                return Err(failure(ResetCode::MANDATORY_ERROR, option));
            }
            if is_change && self.unknown.len() < MOST_ANSWERS {
                self.unknown.push(UnknownFeature { number: option.number, location });
            }
            return Ok(());
        };
        if is_change {
            return self.on_change(feature, location, option, is_mandatory);
        }
        let answers = ack.is_some_and(|ack| !ack.is_before(self.fgss));
        if !answers || self.fgsr.is_some_and(|fgsr| !seq.is_after(fgsr)) {
            return Ok(());
        }
        self.on_confirm(feature, location, option)
    }

    /// Takes note that all feature options of the packet `seq` are processed.
    pub(super) fn on_packet_end(&mut self, seq: Seq) {
        self.fgsr = Some(self.fgsr.map_or(seq, |fgsr| fgsr.max(seq)));
    }

    /// Returns a feature whose value has changed and was not returned before. `None` if there is none.
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

    /// Processes a Change (RFC 4340 §6.6.2, third).
    fn on_change(
        &mut self,
        feature: Feature,
        location: Location,
        option: FeatureOption<'_>,
        is_mandatory: bool,
    ) -> Result<(), Reset> {
        let is_server = self.is_server;
        let entry = self.entry_mut(feature, location);
        let new_value = match feature.rule() {
            Rule::ServerPriority if option.values.is_empty() => None,
            Rule::ServerPriority => {
                let shared = reconcile(is_server, entry.preference, option.values);
                if shared.is_none() && is_mandatory { None } else { Some(shared.unwrap_or(entry.value)) }
            }
            // Only the location may change a non-negotiable feature (§6.3.2).
            Rule::NonNegotiable { size, least, most } => number(option.values, size)
                .filter(|value| location == Location::Remote && (least..=most).contains(value)),
        };
        if let Some(value) = new_value {
            entry.set(value);
            entry.state = State::Stable;
        } else if is_mandatory {
            return Err(failure(ResetCode::MANDATORY_ERROR, option));
        }
        self.confirms.retain(|other| (other.feature, other.location) != (feature, location));
        self.confirms.push(Confirm { feature, location, is_empty: new_value.is_none() });
        self.settle();
        Ok(())
    }

    /// Processes a Confirm (RFC 4340 §6.6.2, fourth).
    fn on_confirm(
        &mut self,
        feature: Feature,
        location: Location,
        option: FeatureOption<'_>,
    ) -> Result<(), Reset> {
        let is_server = self.is_server;
        let entry = self.entry_mut(feature, location);
        let State::Changing(Change { wanted, .. }) = entry.state else { return Ok(()) };
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

    /// Stops the timer if no Change is under way.
    fn settle(&mut self) {
        if !self.entries.iter().flatten().any(|entry| matches!(entry.state, State::Changing(_))) {
            self.retransmit_at = None;
            self.backoff = 0;
        }
    }

    fn put_confirms(&mut self, options: &mut Options) {
        self.unknown.retain(|&UnknownFeature { number, location }| {
            let kind = confirm_of(location);
            let has_room = options.push(DccpOption::Feature(FeatureOption { kind, number, values: &[] }));
            !has_room
        });
        for confirm in core::mem::take(&mut self.confirms) {
            let Confirm { feature, location, is_empty } = confirm;
            let entry = self.entry(feature, location);
            let mut values = Values::default();
            if !is_empty {
                values.push(feature, entry.value);
                if feature.rule() == Rule::ServerPriority {
                    entry.preference.as_slice().iter().for_each(|&value| values.push(feature, value));
                }
            }
            let (kind, number) = (confirm_of(location), feature.number());
            let option = FeatureOption { kind, number, values: values.as_slice() };
            let has_room = options.push(DccpOption::Feature(option));
            if !has_room {
                self.confirms.push(confirm);
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

/// The kind of a Confirm for a feature at `location`.
const fn confirm_of(location: Location) -> FeatureKind {
    match location {
        Location::Local => FeatureKind::ConfirmL,
        Location::Remote => FeatureKind::ConfirmR,
    }
}

/// Adds a Change to `options`. Returns false, and adds nothing, if there is no room.
fn push_change(options: &mut Options, feature: Feature, location: Location, change: Change) -> bool {
    let kind = match location {
        Location::Local => FeatureKind::ChangeL,
        Location::Remote => FeatureKind::ChangeR,
    };
    let mut values = Values::default();
    change.wanted.as_slice().iter().for_each(|&value| values.push(feature, value));
    let option = FeatureOption { kind, number: feature.number(), values: values.as_slice() };
    let before = *options;
    let has_room = (!change.is_mandatory || options.push(DccpOption::Mandatory))
        && options.push(DccpOption::Feature(option));
    if !has_room {
        *options = before;
    }
    has_room
}

/// Returns the first of the server's values that the client has too (RFC 4340 §6.3.1).
fn reconcile(is_server: bool, ours: Preference, theirs: &[u8]) -> Option<u64> {
    let ours = ours.as_slice();
    let mut theirs = theirs.iter().map(|&value| u64::from(value));
    if is_server {
        ours.iter().copied().find(|value| theirs.clone().any(|other| other == *value))
    } else {
        theirs.find(|value| ours.contains(value))
    }
}

/// Reads a number of exactly `size` bytes. `None` if there are more or fewer.
fn number(bytes: &[u8], size: usize) -> Option<u64> {
    (bytes.len() == size).then(|| bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// The Reset for a feature option. Its data are the option's type and the first two bytes of the option's
/// data (RFC 4340 §5.6).
fn failure(code: ResetCode, option: FeatureOption<'_>) -> Reset {
    let first = option.values.first().copied().unwrap_or(0);
    Reset { code, data: [option.kind.option_type(), option.number, first] }
}

/// Returns the time until the Changes are sent again: a round trip, doubled each time up to 64 s (RFC 4340
/// §6.6.3).
fn backed_off(rtt: Duration, backoff: u32) -> Duration {
    let interval = rtt.saturating_mul(1_u64 << backoff.min(20));
    interval.min(LONGEST_INTERVAL)
}

/// The bound of the time between two Changes. The RFC wants "not less than 64 seconds" (RFC 4340 §6.6.3).
const LONGEST_INTERVAL: Duration = Duration::from_secs(64);
/// The largest number of unknown features that are answered. We chose the number of Changes that the options
/// of one packet hold.
const MOST_ANSWERS: usize = Options::ROOM / 3;

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
