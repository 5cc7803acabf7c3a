//! The values of a link in words, and their extremes over time.

use talkpath_path::{
    Change, ChangeEvent, LinkConfig, LinkState, LinkValues, LossModel, QueueLimit, RateModel,
};
use talkpath_units::{Duration, Instant, Rate, counted};

use crate::words::{percent, rate, time};

/// A value of a link that a change may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKey {
    Rate,
    Delay,
    Loss,
    Limit,
    State,
}

impl ValueKey {
    pub(super) const COUNT: usize = 5;
    pub(super) const ALL: [Self; Self::COUNT] =
        [Self::Rate, Self::Delay, Self::Loss, Self::Limit, Self::State];

    /// The key of `[[change]]`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Delay => "delay",
            Self::Loss => "loss",
            Self::Limit => "queue",
            Self::State => "up",
        }
    }

    /// The value in `values`, in words. `None` if there is none.
    pub(super) fn in_words(self, values: &LinkValues) -> Option<String> {
        Some(match self {
            Self::Rate => match values.rate.as_ref()? {
                RateModel::Fixed(fixed) => rate(*fixed),
                RateModel::Unlimited => "unlimited".to_owned(),
                RateModel::Trace(trace) => format!("a trace of {}", rate(trace.mean_rate())),
            },
            Self::Delay => time(values.delay?),
            Self::Loss => loss_in_words(values.loss.as_ref()?),
            Self::Limit => match values.limit? {
                QueueLimit::Packets(packets) => counted(packets.get(), "packet"),
                QueueLimit::Bytes(bytes) => format!("{} B", bytes.get()),
            },
            Self::State => match values.state? {
                LinkState::Up => "up".to_owned(),
                LinkState::Down { .. } => "down".to_owned(),
            },
        })
    }

    /// What a change to `to` does with this value: `delay from 20 ms to 38 ms`. `found` has the values that
    /// it finds, of which at most `most` are named. `None` if it does not set the value.
    pub(super) fn change_in_words(self, found: &[String], most: usize, to: &LinkValues) -> Option<String> {
        let to = self.in_words(to)?;
        let name = self.name();
        Some(match found {
            [] => format!("{name} to {to}"),
            [found] if *found == to => format!("{name} stays {to}"),
            found if found.len() > most => format!("{name} from several values to {to}"),
            found => format!("{name} from {} to {to}", found.join(" or ")),
        })
    }

    /// Whether a change to `to` sets this value.
    pub(super) fn is_in(self, to: &LinkValues) -> bool {
        match self {
            Self::Rate => to.rate.is_some(),
            Self::Delay => to.delay.is_some(),
            Self::Loss => to.loss.is_some(),
            Self::Limit => to.limit.is_some(),
            Self::State => to.state.is_some(),
        }
    }
}

fn loss_in_words(loss: &LossModel) -> String {
    match loss {
        LossModel::None | LossModel::Bernoulli { .. } => percent(loss.mean()),
        _ => format!("{} in the mean", percent(loss.mean())),
    }
}

/// The smallest and the largest number of a value, and when each first held.
#[derive(Clone, Copy, Debug)]
struct Span {
    least: f64,
    least_from: Instant,
    most: f64,
    most_from: Instant,
}

/// The extremes of a link's values.
#[derive(Clone, Debug, Default)]
pub(super) struct Extremes {
    /// In bit/s. An unlimited rate and that of a trace do not count.
    rate: Option<Span>,
    /// In ns.
    delay: Option<Span>,
    /// As a share.
    loss: Option<Span>,
    /// The smallest rate above zero, in bit/s.
    slowest: Option<u64>,
    outages: u64,
    outage_time: Duration,
    /// The values that hold at present, and since when. They do not count before they have held for a time.
    present: (Instant, LinkValues),
}

impl Extremes {
    /// Those of a link that begins with the values of `config`.
    pub(super) fn of_link(config: &LinkConfig) -> Self {
        Self { present: (Instant::ZERO, LinkValues::first(config)), ..Self::default() }
    }

    pub(super) fn add(&mut self, event: &ChangeEvent<'_>, change: &Change) {
        if self.present.0 < event.at {
            self.end();
        }
        self.present = (event.at, event.after.clone());
        if event.begins
            && let Some(outage) = change.outage
        {
            self.outages += 1;
            self.outage_time = self.outage_time.saturating_add(outage.length);
        }
    }

    /// Adds the values that hold at present, which the link has for a time.
    pub(super) fn end(&mut self) {
        let (since, values) = core::mem::take(&mut self.present);
        self.add_values(&values, since.since(Instant::ZERO));
    }

    pub(super) fn add_values(&mut self, values: &LinkValues, at: Duration) {
        let at = Instant::ZERO + at;
        if let Some(RateModel::Fixed(fixed)) = values.rate {
            add(&mut self.rate, fixed.as_bps() as f64, at);
            if fixed.as_bps() > 0 {
                self.slowest = Some(self.slowest.unwrap_or(u64::MAX).min(fixed.as_bps()));
            }
        }
        if let Some(delay) = values.delay {
            add(&mut self.delay, delay.as_nanos() as f64, at);
        }
        if let Some(loss) = &values.loss {
            add(&mut self.loss, loss.mean(), at);
        }
    }

    /// The smallest rate above zero. `None` if no rate is fixed.
    pub(super) fn slowest(&self) -> Option<Rate> {
        self.slowest.map(Rate::from_bps)
    }

    /// `rate 2 Mb/s (first at 390 s) to 15 Mb/s, delay 20 ms, 19 outages of 38 s together`. Outages are
    /// counted if a run is known.
    pub(super) fn in_words(&self, has_run: bool) -> String {
        let rate_of = |bps: f64| rate(Rate::from_bps(bps as u64));
        let delay_of = |nanos: f64| time(Duration::from_nanos(nanos as u64));
        let mut parts: Vec<String> = [
            self.rate.map(|span| format!("rate {}", span.in_words(rate_of, true))),
            self.delay.map(|span| format!("delay {}", span.in_words(delay_of, false))),
            self.loss
                .filter(|span| span.most > 0.0)
                .map(|span| format!("loss {}", span.in_words(percent, false))),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.outages > 0 && has_run {
            parts.push(format!("{} of {} together", counted(self.outages, "outage"), time(self.outage_time)));
        }
        parts.join(", ")
    }
}

fn add(span: &mut Option<Span>, value: f64, at: Instant) {
    let span = span.get_or_insert(Span { least: value, least_from: at, most: value, most_from: at });
    if value < span.least {
        (span.least, span.least_from) = (value, at);
    }
    if value > span.most {
        (span.most, span.most_from) = (value, at);
    }
}

impl Span {
    /// `2 Mb/s (first at 390 s) to 15 Mb/s`. The worse value has its time: the least if `least_is_worse`,
    /// else the largest.
    fn in_words(self, value_of: impl Fn(f64) -> String, least_is_worse: bool) -> String {
        let (least, most) = (value_of(self.least), value_of(self.most));
        let worse_from = if least_is_worse { self.least_from } else { self.most_from };
        let from = time(worse_from.since(Instant::ZERO));
        match (least == most, least_is_worse) {
            (true, _) => least,
            (_, true) => format!("{least} (first at {from}) to {most}"),
            (_, false) => format!("{least} to {most} (first at {from})"),
        }
    }
}
