//! Why the best transport is not usable, as far as the figures say.

use std::collections::BTreeMap;

use crate::display::discipline;
use crate::number::{ms, percent};
use crate::receiver::playout;
use crate::view::{CellView, DelayKind, Metric, Quantile};

/// What spoils a flow, the first that applies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause {
    /// Packets wait in the queue of a link: its name, its discipline, the median wait in ms.
    Queue(String, String, f64),
    /// The same somewhere on a network that talkpath does not own: the median delay in ms.
    QueueOnPath(f64),
    /// This share of the messages is lost; what took them, if it is known.
    Loss(f64, Option<Loser>),
    /// The path itself is long.
    Distance(Distance),
    /// No cause above applies, and hardly a frame of the call is late or missing. Has how the receiver waits.
    Whole(DelaySpread, String),
    /// No cause above applies: delays vary.
    Variation(Option<Variation>),
}

/// What took messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Loser {
    /// The link that alone took packets, and how.
    Link(String, &'static str),
    /// Nothing on the path: more than half of them were never sent, for this reason.
    Sender(&'static str),
}

/// A delay that is too long from the start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distance {
    kind: DelayKind,
    /// The least delay, in ms.
    min_ms: f64,
    limit: Limit,
}

/// What no delay may reach, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// A call's: beyond it no conversation is planned.
    Conversation(f64),
    /// The flow's own.
    Deadline(f64),
}

/// How far the delays lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DelaySpread {
    kind: DelayKind,
    median_ms: f64,
    p99_ms: f64,
}

/// Delays that vary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variation {
    spread: DelaySpread,
    /// How the receiver waits, if the flow is a call.
    playout: Option<String>,
}

impl Cause {
    /// Of the leader's cell: what no transport can cure is then the path's. `has_gaps`: gaps bar the call, so
    /// it is not heard whole although hardly a frame is late or missing.
    pub(super) fn new(cell: &CellView<'_>, flow: &str, has_gaps: bool) -> Self {
        let kind = cell.delay_kind(flow);
        let delay = |quantile| cell.value(flow, Metric::Delay(kind, quantile));
        let growth =
            delay(Quantile::P50).zip(delay(Quantile::Min)).map(|(median, min)| (median, median - min));
        let lost = cell.value(flow, Metric::LossRate).unwrap_or(1.0);
        let limit = Limit::new(cell, flow, kind);
        // No median of minima: one repetition with a shorter one is enough.
        let shortest = cell.values(flow, Metric::Delay(kind, Quantile::Min)).into_iter().reduce(f64::min);
        match (longest_wait(cell, flow, Quantile::P50), growth, shortest) {
            (Some((link, wait)), ..) if wait >= LONG_WAIT_MS => {
                let run = cell.run();
                let queue = run.and_then(|run| run.links.get(link)).map_or("", |link| &link.discipline);
                Self::Queue(link.to_owned(), discipline(queue).to_owned(), wait)
            }
            (_, Some((median, growth)), _) if growth >= LONG_WAIT_MS && waits(cell).is_empty() => {
                Self::QueueOnPath(median)
            }
            _ if lost >= MUCH_LOSS => Self::Loss(lost, loser(cell, flow)),
            (.., Some(min_ms)) if min_ms >= limit.ms() => Self::Distance(Distance { kind, min_ms, limit }),
            _ => {
                let playout = cell.flow(flow).and_then(|flow| flow.call.as_deref()).map(playout);
                let delays = delay(Quantile::P50).zip(delay(Quantile::P99));
                let spread = delays.map(|(median_ms, p99_ms)| DelaySpread { kind, median_ms, p99_ms });
                let not_played = cell.value(flow, Metric::NotPlayed).unwrap_or(1.0);
                match (spread, playout) {
                    (Some(spread), Some(playout)) if not_played < HARDLY_ANY && !has_gaps => {
                        Self::Whole(spread, playout)
                    }
                    (_, Some(_)) if lost > 0.5 * not_played => Self::Loss(lost, loser(cell, flow)),
                    (spread, playout) => Self::Variation(spread.map(|spread| Variation { spread, playout })),
                }
            }
        }
    }

    /// One sentence; `name` is the transport's whose figures they are.
    pub(super) fn sentence(&self, name: &str) -> String {
        match self {
            Self::Queue(link, queue, wait) => {
                format!("Packets wait {} in the queue of {} ({queue}).", ms(*wait), link_words(link))
            }
            Self::QueueOnPath(median) => format!(
                "Packets wait in a queue on the path: over {name} the median delay, {}, is far above the shortest.",
                ms(*median)
            ),
            Self::Loss(share, loser) => {
                let what = match loser {
                    None => String::new(),
                    Some(Loser::Link(link, how)) => {
                        format!(": packets were {how} {} alone", link_words(link))
                    }
                    Some(Loser::Sender(why)) => format!(", most of them never sent: {why}"),
                };
                format!("Over {name} {} % of the messages were lost{what}.", percent(Some(*share)))
            }
            Self::Distance(Distance { kind, min_ms, limit }) => {
                let limit = match limit {
                    Limit::Conversation(limit) => format!("a conversation bears {}", ms(*limit)),
                    Limit::Deadline(limit) => format!("this flow's deadline is {}", ms(*limit)),
                };
                let delay = match kind {
                    DelayKind::RoundTrip => "round trip",
                    DelayKind::OneWay => "delay",
                };
                format!(
                    "The path is too long: even the shortest {delay} over {name} is {}, and {limit}.",
                    ms(*min_ms)
                )
            }
            Self::Whole(spread, playout) => format!(
                "Of {name} hardly a frame is late or missing: delay ({}), codec and receiver ({playout}) allow this call no more.",
                spread.figures()
            ),
            Self::Variation(Some(Variation { spread, playout })) => {
                let much = match playout {
                    Some(playout) => format!("more than this receiver waits for ({playout})"),
                    None => "too much".to_owned(),
                };
                format!("{} vary {much}: {}.", spread.words(name), spread.figures())
            }
            Self::Variation(None) => "What arrives is not enough.".to_owned(),
        }
    }
}

impl DelaySpread {
    fn words(&self, name: &str) -> String {
        match self.kind {
            DelayKind::RoundTrip => format!("The round trips of {name}"),
            DelayKind::OneWay => format!("The delays of {name}"),
        }
    }

    fn figures(&self) -> String {
        format!("p50 {}, p99 {}", ms(self.median_ms), ms(self.p99_ms))
    }
}

impl Limit {
    fn new(cell: &CellView<'_>, flow: &str, kind: DelayKind) -> Self {
        // A call has a deadline, too, but is judged by how it sounds.
        let own = cell.flow(flow).filter(|flow| flow.call.is_none()).and_then(|flow| flow.deadline_ms);
        own.map_or(Self::Conversation(kind.trips() * FAR_MS), Self::Deadline)
    }

    const fn ms(self) -> f64 {
        match self {
            Self::Conversation(ms) | Self::Deadline(ms) => ms,
        }
    }
}

/// The link on which packets wait longest, and the median wait in ms, of those on which `quantile` of the
/// delays of `flow` can hold such a wait. A summary has no routes, and what waits elsewhere, or in another
/// flow's queue of a fair one, is no part of this flow's delay, which is no shorter than any wait on its way.
pub(super) fn longest_wait<'a>(
    cell: &CellView<'a>,
    flow: &str,
    quantile: Quantile,
) -> Option<(&'a str, f64)> {
    // A delay that is not known rules no link out: copies that are summed up have a p50 alone.
    let delay = cell.value(flow, Metric::Delay(cell.delay_kind(flow), quantile));
    let waits = waits(cell).into_iter().filter(|(_, wait)| delay.is_none_or(|delay| *wait <= delay));
    waits.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The median wait in the queue of `link`, in ms.
pub(crate) fn wait(cell: &CellView<'_>, link: &str) -> Option<f64> {
    waits(cell).remove(link)
}

/// The median wait in the queue of each link, in ms.
fn waits<'a>(cell: &CellView<'a>) -> BTreeMap<&'a str, f64> {
    cell.links(|link| link.queue_delay_ms.as_ref().map(|delay| delay.p50))
}

/// What took the lost messages of `flow`.
fn loser(cell: &CellView<'_>, flow: &str) -> Option<Loser> {
    let ledgers = cell.runs.iter().filter_map(|run| run.flows.get(flow)?.ledger);
    let (mut lost, mut not_open, mut no_network) = (0, 0, 0);
    for ledger in ledgers {
        lost += ledger.missing + ledger.expired + ledger.not_open + ledger.no_network;
        not_open += ledger.not_open;
        no_network += ledger.no_network;
    }
    match 2 * (not_open + no_network) > lost {
        true if not_open >= no_network => {
            Some(Loser::Sender("the connection was not open when they were due"))
        }
        true => Some(Loser::Sender("the host had no network for them")),
        false => only_lossy(cell).map(|(link, how)| Loser::Link(link, how)),
    }
}

/// The link that took packets, and how, if no other did: what it took is not known flow by flow.
fn only_lossy(cell: &CellView<'_>) -> Option<(String, &'static str)> {
    let mut took: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for (name, link) in cell.runs.iter().flat_map(|run| &run.links) {
        let (lost, dropped) = took.entry(name).or_default();
        (*lost, *dropped) = (*lost || link.lost > 0, *dropped || link.dropped > 0);
    }
    let mut took = took.into_iter().filter_map(|(name, took)| {
        let how = match took {
            (false, false) => return None,
            (true, false) => "lost on",
            (false, true) => "dropped by",
            (true, true) => "lost on or dropped by",
        };
        Some((name.to_owned(), how))
    });
    took.next().filter(|_| took.next().is_none())
}

/// `the uplink`; only the links of a `path` are called up and down.
pub(super) fn link_words(link: &str) -> String {
    match link {
        "up" => "the uplink".to_owned(),
        "down" => "the downlink".to_owned(),
        other => format!("the link {other}"),
    }
}

/// Chosen: beyond it a queue takes a conversation's whole reserve (G.114's 150 ms, less 50 ms for the path).
pub(super) const LONG_WAIT_MS: f64 = 100.0;
/// Chosen: a thousandth of the frames takes two points of R from G.711 without concealment (ITU-T G.107 §7.5
/// with G.113's Bpl of 4.3).
const HARDLY_ANY: f64 = 0.001;
/// Chosen: what a codec with concealment still hides.
const MUCH_LOSS: f64 = 0.01;
/// One way, chosen: ITU-T G.114 (05/2003) plans no network beyond 400 ms from mouth to ear, and MOS falls
/// well before.
const FAR_MS: f64 = 200.0;
