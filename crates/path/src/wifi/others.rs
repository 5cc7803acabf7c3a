//! The traffic of stations that are no link: packets without content.

use talkpath_units::{Bytes, Duration, Instant, Stream};

use super::config::Offered;
use super::window::{Ppdu, PpduLimits, Window};

/// The packets from such a station, or to it.
#[derive(Debug)]
pub(super) struct OtherQueue {
    /// The frames that were sent and are not settled.
    pub(super) window: Window<()>,
    offered: Offered,
    packet: Bytes,
    /// The packets that wait, of an offered rate.
    waiting: u32,
    /// When the next packet comes. [`Instant::MAX`] if no rate is offered.
    next_arrival: Instant,
    arrivals: Stream,
    /// The packets that were received.
    pub(super) delivered: u64,
}

impl OtherQueue {
    /// An empty queue, or one that never empties. Arrivals are drawn from the stream.
    pub(super) fn new(offered: Offered, packet: Bytes, arrivals: Stream) -> Self {
        let mut queue = Self {
            window: Window::default(),
            offered,
            packet,
            waiting: 0,
            next_arrival: Instant::MAX,
            arrivals,
            delivered: 0,
        };
        if matches!(offered, Offered::Rate(_)) {
            queue.next_arrival = Instant::ZERO.saturating_add(queue.gap());
        }
        queue
    }

    /// When the next packet comes; [`Instant::MAX`] is never.
    pub(super) const fn next_arrival(&self) -> Instant {
        self.next_arrival
    }

    /// Lets all packets come that are due by `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.next_arrival <= now {
            // What finds no room is dropped.
            self.waiting = (self.waiting + 1).min(MOST_WAITING);
            self.next_arrival = self.next_arrival.saturating_add(self.gap());
        }
    }

    /// Whether a packet waits.
    pub(super) const fn has_packets(&self) -> bool {
        matches!(self.offered, Offered::Saturated) || self.waiting > 0
    }

    /// Puts packets into a PPDU that begins at `now` (see [`Window::fill`]).
    pub(super) fn fill(&mut self, limits: &PpduLimits, now: Instant) -> Option<Ppdu> {
        let Self { window, offered, waiting, packet, .. } = self;
        let is_saturated = matches!(offered, Offered::Saturated);
        window.fill(limits, now, || {
            if !is_saturated {
                *waiting = waiting.checked_sub(1)?;
            }
            Some(((), *packet))
        })
    }

    /// Draws the time between two packets of a Poisson process, at least 1 ns.
    fn gap(&mut self) -> Duration {
        let Offered::Rate(rate) = self.offered else { return Duration::from_nanos(u64::MAX) };
        let mean = 8.0 * self.packet.get() as f64 / rate.as_bps().max(1) as f64;
        Duration::from_secs_f64(mean * self.arrivals.exponential()).max(Duration::from_nanos(1))
    }
}

/// Linux's default txqueuelen (DEFAULT_TX_QUEUE_LEN in net/sch_generic.h).
const MOST_WAITING: u32 = 1000;
