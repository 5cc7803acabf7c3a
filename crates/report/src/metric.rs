//! The figures of a flow that tables and sentences show.
//!
//! - A *metric* says where a figure comes from: its path in summary.json, or how it is computed here.
//! - The value of a metric in a cell is the mean or the median over the repetitions (`crate::view`).
//!
//! Begin to read with [`Metric`], then [`Metric::of_run`].

use talkpath_measure::figures::{FLOW, GROUP, statistic_of};
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{FlowSummary, GroupSummary, JudgedBy, RunSummary};

use crate::term::Term;

/// A figure that tables and sentences show.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Metric {
    /// A figure of a flow, by its path in summary.json below the flow.
    Flow(&'static str),
    /// A figure of all copies of a flow together, by its path in summary.json below the group. The copies are
    /// found by the name of their group.
    Group(&'static str),
    /// A share that is computed here from other figures of a flow, because summary.json does not have it.
    Share(fn(&FlowSummary) -> Option<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DelayKind {
    RoundTrip,
    OneWay,
}

/// A point of the distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantile {
    Min,
    P50,
    P90,
    P99,
}

impl Metric {
    /// The 99th percentile of the time that the echoing host took to answer.
    pub(crate) const TURN_ROUND_P99: Self = Self::Flow("turn_round_ms.p99");
    /// The 90th percentile of the unsigned IPDV (RFC 3393), which the tables call "jitter".
    pub(crate) const IPDV_P90: Self = Self::Flow("ipdv_ms.p90");
    pub(crate) const SENT: Self = Self::Flow("sent");
    pub(crate) const LOST: Self = Self::Flow("lost");
    pub(crate) const LOSS_RATE: Self = Self::Flow("loss_rate");
    /// The share of the sent messages that were still queued or in flight at the end.
    pub(crate) const UNFINISHED: Self = Self::Share(|flow| share(flow.unfinished, flow.sent));
    pub(crate) const IN_TIME: Self = Self::Flow("in_time");
    /// The opinion score of a call.
    pub(crate) const MOS: Self = Self::Flow("call.mos");
    /// The opinion score of a call with the second receiver.
    pub(crate) const OTHER_MOS: Self = Self::Flow("call.other_receiver.mos");
    /// The median delay from the speaker's mouth to the listener's ear.
    pub(crate) const MOUTH_TO_EAR_P50: Self = Self::Flow("call.mouth_to_ear_ms.p50");
    /// The share of what is heard of a call that was made up.
    pub(crate) const CONCEALED: Self = Self::Flow("call.concealed");
    /// The mean length of the gaps of a call over that of gaps at random.
    pub(crate) const BURST_RATIO: Self = Self::Flow("call.burst_ratio");
    /// The length of the longest gap of a call.
    pub(crate) const LONGEST_GAP: Self = Self::Flow("call.longest_gap_ms");
    /// The share of a call's frames that were late or missing at their playout.
    pub(crate) const NOT_PLAYED: Self = Self::Share(|flow| {
        let call = flow.call.as_ref()?;
        // The adaptive receiver plays late frames, so only what it made up says what was not heard. Without a
        // frame it makes nothing up.
        if call.stretched.is_some() && call.played > 0 {
            return call.concealed;
        }
        let not_played = call.late + call.missing;
        share(not_played, call.played + not_played)
    });
    pub(crate) const GOODPUT: Self = Self::Flow("goodput_bps");
    pub(crate) const RETRANSMIT_RATE: Self = Self::Flow("retransmit_rate");
    /// The time from the start of the flow until the first message could leave.
    pub(crate) const OPENING: Self = Self::Flow("opening_ms");
    /// The time that the resolver took for the far host's name.
    pub(crate) const NAME: Self = Self::Flow("opening.name_ms");
    /// The time that the kernel took for the socket.
    pub(crate) const SOCKET: Self = Self::Flow("opening.socket_ms");
    /// The time of the handshake, which with 0-RTT goes on after the first message could leave.
    pub(crate) const HANDSHAKE: Self = Self::Flow("opening.handshake_ms");
    /// The time from the start of the flow until the first message came to its end.
    pub(crate) const FIRST_DELIVERED: Self = Self::Flow("opening.first_delivered_ms");

    pub(crate) const fn delay(kind: DelayKind, quantile: Quantile) -> Self {
        Self::Flow(match (kind, quantile) {
            (DelayKind::RoundTrip, Quantile::Min) => "round_trip_delay_ms.min",
            (DelayKind::RoundTrip, Quantile::P50) => "round_trip_delay_ms.p50",
            (DelayKind::RoundTrip, Quantile::P90) => "round_trip_delay_ms.p90",
            (DelayKind::RoundTrip, Quantile::P99) => "round_trip_delay_ms.p99",
            (DelayKind::OneWay, Quantile::Min) => "one_way_delay_ms.min",
            (DelayKind::OneWay, Quantile::P50) => "one_way_delay_ms.p50",
            (DelayKind::OneWay, Quantile::P90) => "one_way_delay_ms.p90",
            (DelayKind::OneWay, Quantile::P99) => "one_way_delay_ms.p99",
        })
    }

    /// The path of the figure in summary.json, below its flow or group. Returns `None` if the figure is
    /// computed here.
    pub(crate) const fn path(self) -> Option<&'static str> {
        match self {
            Self::Flow(path) | Self::Group(path) => Some(path),
            Self::Share(_) => None,
        }
    }

    /// The word `name` of a legend, with the definition that the figure has in the table of figures.
    ///
    /// # Panics
    /// The figure is computed here, or the table of figures does not have it.
    pub(crate) fn term(self, name: &'static str) -> Term {
        match self {
            Self::Flow(path) => Term::defined(name, &FLOW, path),
            Self::Group(path) => Term::defined(name, &GROUP, path),
            Self::Share(_) => panic!("no definition of {name}"),
        }
    }

    /// The statistic over repetitions that represents a cell. A share that is computed here is represented by
    /// its mean, as all shares are.
    pub(crate) fn statistic(self) -> Statistic {
        self.path().map_or(Statistic::Mean, statistic_of)
    }

    fn of_flow(self, flow: &FlowSummary) -> Option<f64> {
        match self {
            Self::Flow(path) => FLOW.find(path)?.number(flow),
            Self::Share(share) => share(flow),
            Self::Group(_) => None,
        }
    }

    /// The value in `run`. `flow` is the name of a flow, or of copies that are summed up.
    pub(crate) fn of_run(self, run: &RunSummary, flow: &str) -> Option<f64> {
        if let Self::Group(path) = self {
            return GROUP.find(path)?.number(run.groups.get(flow)?);
        }
        if let Some(flow) = run.flows.get(flow) {
            return self.of_flow(flow);
        }
        let group = run.groups.get(flow)?;
        if !group.summed_up {
            return None;
        }
        GROUP.find(self.in_group(group)?.path()?)?.number(group)
    }

    /// The figure of a group that stands for this figure of a flow, for copies that are summed up. Counts and
    /// goodput are sums over the copies. A delay is the mean of the copies' medians. The judged figure is the
    /// median of the copies. Returns `None` if such copies do not have the figure.
    pub(crate) fn in_group(self, group: &GroupSummary) -> Option<Self> {
        let judged_by = group.judged.as_ref().map(|judged| judged.by);
        let path = match self.path()? {
            "in_time" if judged_by == Some(JudgedBy::InTime) => "judged.median",
            "call.mos" if judged_by == Some(JudgedBy::Mos) => "judged.median",
            "call.other_receiver.mos" => "judged_with_other_receiver.median",
            "round_trip_delay_ms.p50" => "round_trip_delay_ms_p50_mean",
            "one_way_delay_ms.p50" => "one_way_delay_ms_p50_mean",
            path => GROUP.find(path)?.path,
        };
        Some(Self::Group(path))
    }
}

/// The share of `part` in `whole`. Returns `None` if `whole` is zero.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl DelayKind {
    /// The name for column heads and sentences: `round trip`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trip",
            Self::OneWay => "one way",
        }
    }

    /// How often a message crosses the path during such a delay.
    pub(crate) const fn trips(self) -> f64 {
        match self {
            Self::RoundTrip => 2.0,
            Self::OneWay => 1.0,
        }
    }

    /// The name for narrow columns: `rtt` or `owd`.
    pub(crate) const fn abbreviation(self) -> &'static str {
        match self {
            Self::RoundTrip => "rtt",
            Self::OneWay => "owd",
        }
    }
}
