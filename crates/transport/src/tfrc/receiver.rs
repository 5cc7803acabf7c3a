//! The data receiver (RFC 5348 §6): when feedback is due, and what it says.

use talkpath_units::{Bytes, Duration, Instant};

use super::counter::CounterClock;
use super::history::{Arrival, LossHistory};
use super::intervals::mean_interval;
use super::receive_rate::ReceiveRate;
use super::{DEFAULT_RTT, Interval, Revision, TfrcConfig, loss_event_rate};

/// What a feedback says besides the loss intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// X_recv in bytes of payload per second.
    pub x_recv: f64,
    /// The average loss interval in packets, the inverse of the loss event rate; `None` before the first loss
    /// event.
    pub mean_interval: Option<f64>,
}

/// The receiver of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: TfrcConfig,
    history: LossHistory,
    clock: CounterClock,
    rate: ReceiveRate,
    /// The greatest number of a data packet.
    newest: Option<u64>,
    /// How far the window counter went on since the last feedback.
    quarters: u32,
    /// The largest X_recv reported.
    largest_rate: f64,
    /// Payload of a data packet, a mean as the sender takes it.
    mean_size: f64,
    mean_interval: Option<f64>,
}

impl Receiver {
    /// A receiver of the packets numbered above `before`.
    pub fn new(config: TfrcConfig, before: u64) -> Self {
        Self {
            config,
            history: LossHistory::new(before),
            clock: CounterClock::default(),
            rate: ReceiveRate::default(),
            newest: None,
            quarters: 0,
            largest_rate: 0.0,
            mean_size: 0.0,
            mean_interval: None,
        }
    }

    /// The handshake measured the round-trip time.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.clock.set_rtt(rtt);
    }

    /// Takes note of a packet with `size` bytes of payload. Returns whether feedback is due now: for the
    /// first data packet (RFC 5348 §6.3), for a loss event rate that rose (§6.1), and each round trip
    /// (RFC 4342 §10.3).
    pub fn on_packet(&mut self, arrival: Arrival, size: Bytes, now: Instant) -> bool {
        let first = self.newest.is_none() && arrival.counter.is_some();
        if let Some(counter) = arrival.counter {
            self.rate.on_received(size);
            self.mean_size = mean_size(self.mean_size, size);
            if self.newest < Some(arrival.seq) {
                self.newest = Some(arrival.seq);
                self.quarters += u32::from(self.clock.on_arrival(counter, now));
            }
        }
        let change = self.history.on_arrival(arrival);
        if change.first {
            self.seed(change.from_the_start, now);
        }
        let worse = change.lost && self.average();
        first || worse || self.quarters >= ROUND_TRIP
    }

    /// What the feedback that leaves now says.
    pub fn report(&mut self, now: Instant) -> Report {
        self.quarters = 0;
        self.average();
        let x_recv = self.rate.report(self.rtt(), now);
        self.largest_rate = self.largest_rate.max(x_recv);
        Report { x_recv, mean_interval: self.mean_interval }
    }

    /// The loss intervals to report.
    pub const fn history(&self) -> &LossHistory {
        &self.history
    }

    /// The round-trip time as far as the receiver knows it.
    pub fn rtt(&self) -> Duration {
        self.clock.rtt().unwrap_or(DEFAULT_RTT)
    }

    /// Works out the average interval anew. Returns whether the loss event rate rose.
    fn average(&mut self) -> bool {
        let mut intervals = [Interval::EMPTY; super::INTERVALS + 1];
        let count = self.history.intervals().len();
        for (slot, interval) in intervals.iter_mut().zip(self.history.intervals()) {
            *slot = interval.for_average();
        }
        let before = self.mean_interval;
        self.mean_interval = mean_interval(&intervals[..count], self.config.variant, 1.0);
        match (before, self.mean_interval) {
            (Some(before), Some(after)) => after < before,
            (None, after) => after.is_some(),
            (Some(_), None) => false,
        }
    }

    /// The first loss event: the interval before it is made up from the rate that was reached
    /// (RFC 5348 §6.3.1).
    fn seed(&mut self, from_the_start: bool, now: Instant) {
        let rtt = self.rtt().as_secs_f64();
        let recent = self.rate.measure(self.rtt(), now);
        // Half a packet a round trip.
        let least = 0.5 * self.config.packet_size(self.mean_size) / rtt;
        let target = match self.config.revision {
            Revision::Rfc5348 if from_the_start => least,
            Revision::Rfc5348 => recent.max(self.largest_rate).max(least),
            Revision::Rfc3448 => recent,
        };
        let equation_rate = target / self.config.payload_share(self.mean_size);
        let p = loss_event_rate(equation_rate, self.config.equation_size(self.mean_size), rtt);
        self.history.seed((1.0 / p).round() as u32);
    }
}

/// A running mean of payload sizes: RFC 5348 §4.1 suggests a mean over four loss intervals, RFC 4342 §5.3 one
/// over several round trips and leaves the way open; a tenth for the newest is Linux's weight
/// (ccid3_hc_tx_update_s).
pub(super) fn mean_size(mean: f64, size: Bytes) -> f64 {
    let size = size.get().max(1) as f64;
    if mean == 0.0 { size } else { mean + (size - mean) / 10.0 }
}

/// RFC 4342 §10.3: four quarters of a round trip.
const ROUND_TRIP: u32 = 4;
