//! Why the best transport is not usable, as far as the figures say.

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
    /// This share of the messages is missing; on which link most packets were lost or dropped.
    Loss(f64, Option<(String, &'static str)>),
    /// The path itself is long: the least delay in ms.
    Distance,
    /// None of these: delays vary.
    Variation(Option<Variation>),
}

/// Delays that vary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variation {
    kind: DelayKind,
    median_ms: f64,
    p99_ms: f64,
    /// How the receiver waits, if the flow is a call.
    playout: Option<String>,
}

impl Cause {
    /// Of the leader's cell: what no transport can cure is then the path's.
    pub(super) fn of(cell: &CellView<'_>, flow: &str) -> Self {
        let kind = cell.delay_kind(flow);
        let delay = |quantile| cell.value(flow, Metric::Delay(kind, quantile));
        let growth =
            delay(Quantile::P50).zip(delay(Quantile::Min)).map(|(median, min)| (median, median - min));
        let lost = cell.value(flow, Metric::LossRate).unwrap_or(1.0);
        match (longest_wait(cell), growth) {
            (Some((link, wait)), _) if wait >= LONG_WAIT_MS => {
                let run = cell.run();
                let queue = run.and_then(|run| run.links.get(link)).map_or("", |link| &link.discipline);
                Self::Queue(link.to_owned(), discipline(queue).to_owned(), wait)
            }
            (None, Some((median, growth))) if growth >= LONG_WAIT_MS => Self::QueueOnPath(median),
            _ if lost >= MUCH_LOSS => Self::Loss(lost, most_lossy(cell)),
            _ if delay(Quantile::Min).is_some_and(|min| min >= kind.trips() * FAR_MS) => Self::Distance,
            _ => {
                let playout = cell.flow(flow).and_then(|flow| flow.call.as_ref()).map(playout);
                let delays = delay(Quantile::P50).zip(delay(Quantile::P99));
                let variation = |(median_ms, p99_ms)| Variation { kind, median_ms, p99_ms, playout };
                Self::Variation(delays.map(variation))
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
                "Packets wait in a queue on the path: the median delay, {}, is far above the shortest.",
                ms(*median)
            ),
            Self::Loss(share, place) => {
                let place = place.as_ref().map_or(String::new(), |(link, how)| {
                    format!(", most of them {how} {}", link_words(link))
                });
                format!("{} % of the messages are missing{place}.", percent(Some(*share)))
            }
            Self::Distance => {
                "The path is too long: even the shortest delays are past what a conversation bears."
                    .to_owned()
            }
            Self::Variation(Some(Variation { kind, median_ms, p99_ms, playout })) => {
                let delays = match kind {
                    DelayKind::RoundTrip => format!("The round trips of {name}"),
                    DelayKind::OneWay => format!("The delays of {name}"),
                };
                let much = match playout {
                    Some(playout) => format!("more than this receiver waits for ({playout})"),
                    None => "too much".to_owned(),
                };
                format!("{delays} vary {much}: p50 {}, p99 {}.", ms(*median_ms), ms(*p99_ms))
            }
            Self::Variation(None) => "What arrives is not enough.".to_owned(),
        }
    }
}

/// The link on which packets wait longest, and the median wait in ms, as the mean over the repetitions.
pub(super) fn longest_wait<'a>(cell: &CellView<'a>) -> Option<(&'a str, f64)> {
    let waits = cell.links(|link| link.queue_delay_ms.as_ref().map(|delay| delay.p50));
    waits.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The median wait in the queue of `link`, as the mean over the repetitions.
pub(crate) fn wait(cell: &CellView<'_>, link: &str) -> Option<f64> {
    cell.links(|link| link.queue_delay_ms.as_ref().map(|delay| delay.p50)).remove(link)
}

/// The link that took most packets, and how.
fn most_lossy(cell: &CellView<'_>) -> Option<(String, &'static str)> {
    let lost = cell.links(|link| Some(link.lost as f64)).into_iter().map(|it| (it, "lost on"));
    let dropped = cell.links(|link| Some(link.dropped as f64)).into_iter().map(|it| (it, "dropped by"));
    let most = lost.chain(dropped).max_by(|a, b| a.0.1.total_cmp(&b.0.1))?;
    (most.0.1 > 0.0).then(|| (most.0.0.to_owned(), most.1))
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
const LONG_WAIT_MS: f64 = 100.0;
/// Chosen: what a codec with concealment still hides.
const MUCH_LOSS: f64 = 0.01;
/// One way, chosen: ITU-T G.114 (05/2003) plans no network beyond 400 ms from mouth to ear, and MOS falls
/// well before.
const FAR_MS: f64 = 200.0;
