//! Finds out why the best transport is not usable, as far as the figures say.

use std::collections::BTreeMap;

use crate::display::discipline;
use crate::metric::{DelayKind, Metric, Quantile};
use crate::number::{ms, percent};
use crate::receiver::playout;
use crate::view::CellView;

/// A queue is the cause if packets wait in it for at least 100 ms. We chose 100 ms because ITU-T G.114 asks
/// for a delay of at most 150 ms, which leaves 100 ms for a queue if the path takes 50 ms.
pub(super) const LONG_WAIT_MS: f64 = 100.0;
/// A call with a smaller share of late or missing frames counts as heard whole. We chose a thousandth because
/// it takes two points of R from G.711 without concealment (ITU-T G.107 §7.5 with G.113's Bpl of 4.3).
const HARDLY_ANY: f64 = 0.001;
/// Loss is the cause if at least a hundredth of the messages is lost. We chose a hundredth because a codec
/// with concealment still hides as many losses.
const MUCH_LOSS: f64 = 0.01;
/// The longest delay of a conversation in ms, one way. We chose half of the 400 ms from mouth to ear beyond
/// which ITU-T G.114 (05/2003) plans no network, because the MOS falls well before.
const CONVERSATION_MS: f64 = 200.0;

/// The reason why a flow is not usable. If several reasons apply, the first one of this list is given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause {
    /// Packets wait in the queue of a link.
    Queue {
        link: String,
        /// The queueing discipline, as people write it.
        discipline: String,
        /// The median wait in ms.
        wait_ms: f64,
    },
    /// Packets wait in a queue somewhere on a network that talkpath does not own.
    QueueOnPath {
        /// The median delay in ms.
        median_ms: f64,
    },
    /// Messages are lost.
    Loss(Loss),
    /// The path itself is too long.
    Distance(Distance),
    /// Hardly a frame of the call is late or missing, and still the call is not usable.
    HeardWhole {
        delays: DelaySpread,
        /// How the receiver plays the call, in words.
        playout: String,
    },
    /// The delays vary too much. `None` if the delays are not known.
    Variation(Option<Variation>),
}

/// Lost messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    /// The share of the messages that are lost.
    share: f64,
    /// `None` if several links took packets, or if it is not known which link did.
    taken_by: Option<LossPlace>,
}

/// The place where messages were lost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LossPlace {
    /// The only link that took packets.
    Link {
        link: String,
        /// How the link took packets, for example `dropped by`. The name of the link follows.
        how: &'static str,
    },
    /// The sender. More than half of the messages were never sent, for this reason.
    Sender(&'static str),
}

/// A path whose shortest delay is already too long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distance {
    kind: DelayKind,
    shortest_ms: f64,
    limit: Limit,
}

/// The delay in ms from which on a flow is not usable.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// The limit of a call, beyond which people do not hold a conversation.
    Conversation(f64),
    /// The deadline of the flow.
    Deadline(f64),
}

/// Two quantiles that show how far the delays of a flow lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DelaySpread {
    kind: DelayKind,
    median_ms: f64,
    p99_ms: f64,
}

/// Delays that vary too much.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variation {
    spread: DelaySpread,
    /// How the receiver plays the call, in words. `None` if the flow is not a call.
    playout: Option<String>,
}

/// The link on which packets wait longest.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongestWait<'a> {
    pub(super) link: &'a str,
    /// The median wait in ms.
    wait_ms: f64,
}

impl Cause {
    /// Finds the cause in the figures of `flow` in `cell`, which is the cell of a best transport.
    ///
    /// `has_gaps` says that gaps in the speech bar the call. The listener then does not hear the whole call,
    /// even if hardly a frame is late or missing.
    pub(super) fn new(cell: &CellView<'_>, flow: &str, has_gaps: bool) -> Self {
        if let Some(queue) = Self::queue(cell, flow) {
            return queue;
        }
        let lost = cell.value(flow, Metric::LOSS_RATE).unwrap_or(1.0);
        if lost >= MUCH_LOSS {
            return Self::Loss(Loss::new(cell, flow, lost));
        }
        if let Some(distance) = Distance::new(cell, flow) {
            return Self::Distance(distance);
        }
        let spread = DelaySpread::new(cell, flow);
        let call = cell.flow(flow).and_then(|flow| flow.call.as_deref());
        let Some(call) = call else {
            return Self::Variation(spread.map(|spread| Variation { spread, playout: None }));
        };
        let playout = playout(call);
        let not_played = cell.value(flow, Metric::NOT_PLAYED).unwrap_or(1.0);
        match spread {
            Some(delays) if not_played < HARDLY_ANY && !has_gaps => Self::HeardWhole { delays, playout },
            // Most of the frames that were not played were lost, although they are few.
            _ if lost > 0.5 * not_played => Self::Loss(Loss::new(cell, flow, lost)),
            _ => Self::Variation(spread.map(|spread| Variation { spread, playout: Some(playout) })),
        }
    }

    /// Returns the queue in which packets wait long. On a network that talkpath does not own, the waits are
    /// not known, so there a median delay far above the shortest delay stands for a queue.
    fn queue(cell: &CellView<'_>, flow: &str) -> Option<Self> {
        if let Some(LongestWait { link, wait_ms }) = longest_wait(cell, flow, Quantile::P50)
            && wait_ms >= LONG_WAIT_MS
        {
            let figures = cell.run().and_then(|run| run.links.get(link));
            let queue = figures.map_or("", |figures| &figures.discipline);
            return Some(Self::Queue {
                link: link.to_owned(),
                discipline: discipline(queue).to_owned(),
                wait_ms,
            });
        }
        let kind = cell.delay_kind(flow);
        let median_ms = cell.value(flow, Metric::delay(kind, Quantile::P50))?;
        let shortest_ms = cell.value(flow, Metric::delay(kind, Quantile::Min))?;
        let waits_on_path = median_ms - shortest_ms >= LONG_WAIT_MS;
        (waits_on_path && waits_ms(cell).is_empty()).then_some(Self::QueueOnPath { median_ms })
    }

    /// Writes the cause as one sentence. `name` is the transport that the figures belong to.
    pub(super) fn sentence(&self, name: &str) -> String {
        match self {
            Self::Queue { link, discipline, wait_ms } => {
                format!("Packets wait {} in the queue of {} ({discipline}).", ms(*wait_ms), link_words(link))
            }
            Self::QueueOnPath { median_ms } => format!(
                "Packets wait in a queue on the path: over {name} the median delay, {}, is far above the shortest.",
                ms(*median_ms)
            ),
            Self::Loss(loss) => loss.sentence(name),
            Self::Distance(distance) => distance.sentence(name),
            Self::HeardWhole { delays, playout } => format!(
                "Of {name} hardly a frame is late or missing: delay ({}), codec and receiver ({playout}) allow this call no more.",
                delays.figures()
            ),
            Self::Variation(Some(variation)) => variation.sentence(name),
            Self::Variation(None) => "What arrives is not enough.".to_owned(),
        }
    }
}

impl Loss {
    fn new(cell: &CellView<'_>, flow: &str, share: f64) -> Self {
        Self { share, taken_by: LossPlace::find(cell, flow) }
    }

    fn sentence(&self, name: &str) -> String {
        let place = match &self.taken_by {
            Some(LossPlace::Link { link, how }) => format!(": packets were {how} {} alone", link_words(link)),
            Some(LossPlace::Sender(reason)) => format!(", most of them never sent: {reason}"),
            None => String::new(),
        };
        format!("Over {name} {} % of the messages were lost{place}.", percent(Some(self.share)))
    }
}

impl LossPlace {
    /// Finds the place where most of the lost messages of `flow` were lost, over all repetitions.
    fn find(cell: &CellView<'_>, flow: &str) -> Option<Self> {
        let (mut lost, mut not_open, mut no_network) = (0, 0, 0);
        for ledger in cell.runs.iter().filter_map(|run| run.flows.get(flow)?.ledger) {
            lost += ledger.missing + ledger.expired + ledger.not_open + ledger.no_network;
            not_open += ledger.not_open;
            no_network += ledger.no_network;
        }
        let is_mostly_unsent = 2 * (not_open + no_network) > lost;
        if !is_mostly_unsent {
            return Self::only_link(cell);
        }
        if not_open >= no_network {
            Some(Self::Sender("the connection was not open when they were due"))
        } else {
            Some(Self::Sender("the host had no network for them"))
        }
    }

    /// The link that took packets, if no other link did. With several such links it is not known which of
    /// them took the packets of the flow.
    fn only_link(cell: &CellView<'_>) -> Option<Self> {
        #[derive(Default)]
        struct Taken {
            lost: u64,
            dropped: u64,
        }
        let mut links: BTreeMap<&str, Taken> = BTreeMap::new();
        for (name, link) in cell.runs.iter().flat_map(|run| &run.links) {
            let taken = links.entry(name).or_default();
            taken.lost += link.lost;
            taken.dropped += link.dropped;
        }
        links.retain(|_, taken| taken.lost + taken.dropped > 0);
        let (link, taken) = links.pop_first()?;
        if !links.is_empty() {
            return None;
        }
        let how = match taken {
            Taken { dropped: 0, .. } => "lost on",
            Taken { lost: 0, .. } => "dropped by",
            Taken { .. } => "lost on or dropped by",
        };
        Some(Self::Link { link: link.to_owned(), how })
    }
}

impl Distance {
    /// Returns `None` if the shortest delay is below the limit, or not known.
    fn new(cell: &CellView<'_>, flow: &str) -> Option<Self> {
        let kind = cell.delay_kind(flow);
        // The least of all repetitions, because one short delay shows that the path is not too long.
        let shortest_delays = cell.values(flow, Metric::delay(kind, Quantile::Min));
        let shortest_ms = shortest_delays.into_iter().reduce(f64::min)?;
        let limit = Limit::new(cell, flow, kind);
        (shortest_ms >= limit.ms()).then_some(Self { kind, shortest_ms, limit })
    }

    fn sentence(&self, name: &str) -> String {
        let delay = match self.kind {
            DelayKind::RoundTrip => "round trip",
            DelayKind::OneWay => "delay",
        };
        let limit = match self.limit {
            Limit::Conversation(limit) => format!("a conversation bears {}", ms(limit)),
            Limit::Deadline(limit) => format!("this flow's deadline is {}", ms(limit)),
        };
        let shortest = ms(self.shortest_ms);
        format!("The path is too long: even the shortest {delay} over {name} is {shortest}, and {limit}.")
    }
}

impl Limit {
    fn new(cell: &CellView<'_>, flow: &str, kind: DelayKind) -> Self {
        // A call has a deadline, too, but a call is judged by how it sounds.
        let flow = cell.flow(flow).filter(|flow| flow.call.is_none());
        match flow.and_then(|flow| flow.deadline_ms) {
            Some(deadline_ms) => Self::Deadline(deadline_ms),
            None => Self::Conversation(kind.trips() * CONVERSATION_MS),
        }
    }

    const fn ms(self) -> f64 {
        match self {
            Self::Conversation(ms) | Self::Deadline(ms) => ms,
        }
    }
}

impl DelaySpread {
    fn new(cell: &CellView<'_>, flow: &str) -> Option<Self> {
        let kind = cell.delay_kind(flow);
        let median_ms = cell.value(flow, Metric::delay(kind, Quantile::P50))?;
        let p99_ms = cell.value(flow, Metric::delay(kind, Quantile::P99))?;
        Some(Self { kind, median_ms, p99_ms })
    }

    fn figures(&self) -> String {
        format!("p50 {}, p99 {}", ms(self.median_ms), ms(self.p99_ms))
    }
}

impl Variation {
    fn sentence(&self, name: &str) -> String {
        let delays = match self.spread.kind {
            DelayKind::RoundTrip => "round trips",
            DelayKind::OneWay => "delays",
        };
        let how_much = match &self.playout {
            Some(playout) => format!("more than this receiver waits for ({playout})"),
            None => "too much".to_owned(),
        };
        format!("The {delays} of {name} vary {how_much}: {}.", self.spread.figures())
    }
}

/// Finds the link on which packets wait longest, among the links on which the packets of `flow` can have
/// waited.
///
/// A summary does not say which links a flow crosses. The delay of a flow is at least as long as every wait
/// on its way, so a link with a longer median wait than the `quantile` of the delays is left out.
pub(super) fn longest_wait<'a>(
    cell: &CellView<'a>,
    flow: &str,
    quantile: Quantile,
) -> Option<LongestWait<'a>> {
    let mut waits_ms = waits_ms(cell);
    // Copies that are summed up have a median delay only. If the delay is not known, no link is left out.
    if let Some(delay_ms) = cell.value(flow, Metric::delay(cell.delay_kind(flow), quantile)) {
        waits_ms.retain(|_, wait_ms| *wait_ms <= delay_ms);
    }
    let waits = waits_ms.into_iter().map(|(link, wait_ms)| LongestWait { link, wait_ms });
    waits.max_by(|a, b| a.wait_ms.total_cmp(&b.wait_ms))
}

/// The median wait in the queue of `link`, in ms.
pub(crate) fn wait(cell: &CellView<'_>, link: &str) -> Option<f64> {
    waits_ms(cell).remove(link)
}

/// The median wait in the queue of each link, in ms. A link whose waits are not known is left out.
fn waits_ms<'a>(cell: &CellView<'a>) -> BTreeMap<&'a str, f64> {
    cell.links(|link| link.queue_delay_ms.as_ref().map(|delay| delay.p50))
}

/// The link in words: `the uplink`, `the link access`. Only the links of a `path` have the names `up` and
/// `down`.
pub(super) fn link_words(link: &str) -> String {
    match link {
        "up" => "the uplink".to_owned(),
        "down" => "the downlink".to_owned(),
        other => format!("the link {other}"),
    }
}
