//! What a change does to a link and its packets.
//!
//! 1. A packet in service, or in the pipe, keeps what held when its service began: its rate, its delay, and
//!    whether the wire loses it.
//! 2. A service that begins at the instant of a change has the new values.
//! 3. A packet whose service begins after a change does not arrive before the packets that went before it,
//!    even if its delay is shorter. With `overtake` it may. Among each other the later packets keep their
//!    order.
//! 4. If more waits than a new limit allows, the discipline drops by the rule by which it makes room for a
//!    packet that comes.
//! 5. During an outage no service begins. What waits and what comes waits in the queue, within its limit. If
//!    the outage drops, the limit is zero for its length. A rate of zero holds packets in the same way.

use super::*;
use crate::change::{Change, ChangeStep, LinkState, LinkValues};
use crate::config::RateModel;
use crate::queue::QueueLimit;
use talkpath_units::Packets;

impl<T: Carried> Link<T> {
    /// Makes the link ready for `change`. `config`, `seed` and `name` are those of [`Link::new`]. The link
    /// must not have carried a packet yet.
    pub(crate) fn expect_change(&mut self, change: &Change, config: &LinkConfig, seed: Seed, name: &str) {
        let rare = self.rare.get_or_insert_with(Box::default);
        if change.to.loss.is_some() {
            rare.loss.get_or_insert_with(|| {
                Loss::new(&LossModel::None, seed.stream(&format!("link/{name}/loss")))
            });
        }
        rare.present.get_or_insert_with(|| Present {
            values: LinkValues::first(config),
            applied_limit: Some(config.queue.limit()),
            outages: 0,
            dropping: 0,
            held_from: None,
        });
        if change.may_overtake() {
            self.pipe.expect_overtaking(seed.stream(&format!("link/{name}/jitter")));
            self.wakes_for_service = true;
        }
        // A link whose rate is zero holds its packets from the beginning.
        self.hold_or_resume(Instant::ZERO);
    }

    /// The present values, from which a ramp begins.
    pub(crate) fn values(&self) -> LinkValues {
        self.rare.as_ref().and_then(|rare| Some(rare.present.as_ref()?.values.clone())).unwrap_or_default()
    }

    /// Makes one step of a change at `now`. Drops are reported by the next [`Link::poll_output`].
    pub(crate) fn change(&mut self, step: &ChangeStep, now: Instant) {
        // The services that began before the change have the values before it.
        if let Some(before) = now.as_nanos().checked_sub(1) {
            self.begin_services(Instant::from_nanos(before));
        }
        match step {
            ChangeStep::Set { values, overtake } => self.set_values(values, *overtake, now),
            ChangeStep::BeginOutage { drops } => self.count_outages(|present| present.begin_outage(*drops)),
            ChangeStep::EndOutage { drops } => self.count_outages(|present| present.end_outage(*drops)),
        }
        self.apply_limit(now);
        self.hold_or_resume(now);
        self.begin_services(now);
    }

    fn set_values(&mut self, to: &LinkValues, overtake: bool, now: Instant) {
        let LinkValues { rate, delay, loss, limit, state } = to;
        let Some(rare) = self.rare.as_mut() else { return };
        if let (Some(model), Some(state)) = (loss, &mut rare.loss) {
            state.set(model);
        }
        if let Some(delay) = *delay {
            self.pipe.set_delay(delay, overtake);
        }
        let Some(present) = &mut rare.present else { return };
        if let Some(model) = rate {
            self.serialiser.set_rate(model, now);
            present.values.rate = Some(model.clone());
        }
        present.values.delay = delay.or(present.values.delay);
        present.values.loss = loss.clone().or(present.values.loss.take());
        present.values.limit = limit.or(present.values.limit);
        present.values.state = state.or(present.values.state);
    }

    fn count_outages(&mut self, count: impl FnOnce(&mut Present)) {
        if let Some(present) = self.rare.as_mut().and_then(|rare| rare.present.as_mut()) {
            count(present);
        }
    }

    /// Gives the queue its present limit: zero if the link is down and drops.
    fn apply_limit(&mut self, now: Instant) {
        let Some(present) = self.rare.as_mut().and_then(|rare| rare.present.as_mut()) else { return };
        let has_no_room =
            present.dropping > 0 || present.values.state == Some(LinkState::Down { drops: true });
        let limit = if has_no_room { Some(QueueLimit::Packets(Packets::ZERO)) } else { present.values.limit };
        if present.applied_limit != limit {
            present.applied_limit = limit;
            if let Some(limit) = limit {
                self.waiting.set_limit(limit, self.in_service, now);
            }
        }
    }

    /// Holds the serialiser while the link is down, and lets it go on when the link is up again.
    fn hold_or_resume(&mut self, now: Instant) {
        let Some(present) = self.rare.as_mut().and_then(|rare| rare.present.as_mut()) else { return };
        let has_no_rate = matches!(&present.values.rate, Some(RateModel::Fixed(rate)) if rate.as_bps() == 0);
        let is_held = present.outages > 0 || present.values.state != Some(LinkState::Up) || has_no_rate;
        match (present.held_from, is_held) {
            (None, true) => {
                present.held_from = Some(self.serialiser.free_at());
                self.serialiser.hold();
            }
            (Some(idle_from), false) => {
                present.held_from = None;
                // A link that is down is idle, but for the rest of a service that began before.
                self.counts.idle_ns += self.counts.window.overlap(idle_from.min(now), now);
                self.serialiser.resume(idle_from.max(now));
            }
            _ => {}
        }
    }
}

impl Present {
    fn begin_outage(&mut self, drops: bool) {
        self.outages += 1;
        self.dropping += u32::from(drops);
    }

    fn end_outage(&mut self, drops: bool) {
        self.outages = self.outages.saturating_sub(1);
        self.dropping = self.dropping.saturating_sub(u32::from(drops));
    }
}
