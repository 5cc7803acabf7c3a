//! The data sender (RFC 5348 §4): the allowed rate, its timer, and when the next packet may leave.

use talkpath_units::{Bytes, Duration, Instant, Rate};

use super::limited::DataLimited;
use super::receiver::mean_size;
use super::{Revision, TfrcConfig, Variant, throughput};

/// A feedback packet as the sender understands it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// R_sample: the time since the acknowledged packet left, less what it waited at the receiver; `None` if
    /// that packet is not known any more.
    pub rtt: Option<Duration>,
    /// When the acknowledged packet left.
    pub sent: Instant,
    /// X_recv in bytes per second.
    pub x_recv: f64,
    /// The loss event rate; zero before the first loss event.
    pub p: f64,
    /// Whether it reports a loss event that was not reported before.
    pub new_loss: bool,
    /// Whether the receiver could not keep up, and `x_recv` has been lowered for that (RFC 4342 §5.2).
    pub receiver_limited: bool,
}

/// The sender of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    config: TfrcConfig,
    mean_size: f64,
    rtt: Option<RoundTrip>,
    allowed: Allowed,
    p: f64,
    /// X_Bps, once a loss event was reported.
    equation_rate: Option<f64>,
    received: ReceivedRates,
    /// Time last doubled; `None` before the first.
    tld: Option<Instant>,
    nofeedback: Timer,
    /// Whether nothing was sent since the timer was set.
    idle: bool,
    limited: DataLimited,
    /// t_i, the nominal time of the last packet, and when it left.
    last: Option<(Instant, Instant)>,
    /// The time between the last packet and the one before it, if the application and not the rate made it so
    /// long.
    own_interval: Duration,
    timeouts: u64,
}

/// X.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Allowed {
    /// No round trip was measured: packets per second.
    Blind(f64),
    /// `W_init / R`, for the size that packets turn out to have.
    Initial,
    /// Bytes per second.
    Bytes(f64),
}

/// The nofeedback timer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Timer {
    /// Nothing was sent yet.
    Off,
    Until(Instant),
    /// It expired `at` and would expire `every` so often while the sender stays idle, each time with nothing
    /// to do (§4.4): it wakes nobody, and runs on in its old beat when a packet leaves.
    Resting {
        at: Instant,
        every: Duration,
    },
}

/// R, R_sqmean and the last sample, in seconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    mean: f64,
    sqrt_mean: f64,
    sample: f64,
}

/// X_recv_set: receive rates with the times they are from; RFC 3448 keeps the last one alone.
#[derive(Clone, Debug)]
struct ReceivedRates(Vec<(Instant, f64)>);

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(config: TfrcConfig) -> Self {
        Self {
            config,
            mean_size: 0.0,
            rtt: None,
            // RFC 5348 §4.2: s bytes per second.
            allowed: Allowed::Blind(1.0),
            p: 0.0,
            equation_rate: None,
            received: ReceivedRates(vec![(Instant::ZERO, f64::INFINITY)]),
            tld: None,
            nofeedback: Timer::Off,
            idle: true,
            limited: DataLimited::default(),
            last: None,
            own_interval: Duration::ZERO,
            timeouts: 0,
        }
    }

    /// The handshake measured the round-trip time: RFC 5348 §4.2 begins with the initial rate. RFC 3448 does
    /// not.
    pub fn set_rtt(&mut self, rtt: Duration, now: Instant) {
        if self.config.revision == Revision::Rfc5348 && self.rtt.is_none() {
            self.sample(rtt);
            self.begin(now);
        }
    }

    /// When the next packet may leave (§4.6); not later than `now` if it may at once.
    pub fn next_send(&self, now: Instant) -> Instant {
        let Some((_, left)) = self.last else { return now };
        let by_rate = self.nominal(now);
        match self.config.variant {
            Variant::Standard => by_rate,
            Variant::SmallPackets => by_rate.max(left.saturating_add(MIN_INTERVAL)),
        }
    }

    /// A data packet of `size` bytes of payload leaves.
    pub fn on_sent(&mut self, size: Bytes, now: Instant) {
        self.mean_size = mean_size(self.mean_size, size);
        self.own_interval = self.last.map_or(Duration::ZERO, |(_, left)| {
            if left.saturating_add(self.gap()) < now { now.since(left) } else { Duration::ZERO }
        });
        self.last = Some((self.nominal(now).min(now), now));
        self.idle = false;
        match self.nofeedback {
            Timer::Off => {
                let timeout = if self.rtt.is_some() { self.timeout() } else { FIRST_TIMEOUT };
                self.nofeedback = Timer::Until(now.saturating_add(timeout));
            }
            Timer::Resting { at, every } => {
                let every = every.max(self.timeout());
                let passed = now.since(at).as_nanos() / every.as_nanos().max(1);
                self.nofeedback = Timer::Until(at.saturating_add(every.saturating_mul(passed + 1)));
            }
            Timer::Until(_) => {}
        }
        if self.next_send(now) > now {
            self.limited.on_used_up(now);
        }
    }

    /// Feedback arrived (§4.3).
    pub fn on_feedback(&mut self, feedback: Feedback, now: Instant) {
        let first = self.rtt.is_none();
        if let Some(sample) = feedback.rtt {
            self.sample(sample);
        }
        let Some(rtt) = self.rtt else { return };
        let new_loss = feedback.new_loss || feedback.p > self.p;
        self.p = feedback.p;
        match self.config.revision {
            Revision::Rfc5348 => {
                // Step 3 takes the rate from before step 4.
                let timeout = self.timeout();
                let span = Duration::from_secs_f64(rtt.mean);
                let limited = self.limited.on_feedback(feedback.sent, span, now) && feedback.x_recv > 0.0;
                if first {
                    // §4.2, in place of step 4.
                    self.begin(now);
                } else {
                    let limit = self.receive_limit(feedback.x_recv, limited, new_loss, now);
                    let limit = self.bound_by_receiver(limit, &feedback);
                    self.follow(limit, now);
                }
                self.restart_timer(timeout, now);
            }
            Revision::Rfc3448 => {
                self.received = ReceivedRates(vec![(now, feedback.x_recv)]);
                self.follow(2.0 * feedback.x_recv, now);
                self.restart_timer(self.timeout(), now);
            }
        }
    }

    /// The deadline of the nofeedback timer; none while it could change nothing.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.nofeedback {
            Timer::Until(deadline) => Some(deadline),
            Timer::Off | Timer::Resting { .. } => None,
        }
    }

    /// The nofeedback timer expired (§4.4).
    pub fn on_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|deadline| deadline > now) {
            return;
        }
        let cut = match (self.allowed, self.rtt, self.config.revision) {
            (Allowed::Blind(packets), ..) => {
                if !self.idle {
                    self.allowed = Allowed::Blind((packets / 2.0).max(1.0 / MAX_BACKOFF));
                }
                !self.idle
            }
            (_, None, _) => false,
            (_, Some(_), Revision::Rfc5348) => self.halve(now),
            (_, Some(_), Revision::Rfc3448) => self.halve_by_3448(now),
        };
        self.timeouts += u64::from(cut);
        if cut {
            self.restart_timer(self.timeout(), now);
        } else {
            self.nofeedback = Timer::Resting { at: now, every: self.timeout() };
        }
    }

    /// The instantaneous rate X_inst (§4.5), of payload.
    pub fn rate(&self) -> Rate {
        Rate::from_bps((self.instantaneous_rate() * 8.0) as u64)
    }

    /// R.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.map(|rtt| Duration::from_secs_f64(rtt.mean))
    }

    /// How often the nofeedback timer took the rate down.
    pub const fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// The loss event rate last worked with.
    pub const fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// Steps 1 and 2 of §4.3, and §4.5.
    fn sample(&mut self, sample: Duration) {
        let sample = sample.as_secs_f64().max(LEAST_RTT);
        let before = self.rtt.unwrap_or(RoundTrip { mean: sample, sqrt_mean: sample.sqrt(), sample });
        self.rtt = Some(RoundTrip {
            mean: Q * before.mean + (1.0 - Q) * sample,
            sqrt_mean: Q * before.sqrt_mean + (1.0 - Q) * sample.sqrt(),
            sample,
        });
    }

    /// The first round trip was measured (RFC 5348 §4.2).
    fn begin(&mut self, now: Instant) {
        self.allowed = Allowed::Initial;
        self.tld = Some(now);
        self.received = ReceivedRates(vec![(now, f64::INFINITY)]);
    }

    /// recv_limit (§4.3 step 4).
    fn receive_limit(&mut self, x_recv: f64, limited: bool, new_loss: bool, now: Instant) -> f64 {
        match (limited, new_loss) {
            (true, true) => {
                self.received.halve();
                self.received.maximise(0.85 * x_recv, now);
                self.received.largest()
            }
            (true, false) => {
                self.received.maximise(x_recv, now);
                2.0 * self.received.largest()
            }
            (false, _) => {
                self.received.update(x_recv, Duration::from_secs_f64(2.0 * self.mean_rtt()), now);
                2.0 * self.received.largest()
            }
        }
    }

    /// `limit`, if the receiver keeps up. If it does not, at most twice its X_recv: a higher rate from an
    /// earlier feedback would undo the response to Data Dropped and Slow Receiver (RFC 4342 §5.2, RFC 4340
    /// §11.6). The bound lasts until the next feedback, about a round trip. The first report, zero (§6.3), is
    /// no bound.
    fn bound_by_receiver(&mut self, limit: f64, feedback: &Feedback) -> f64 {
        if !feedback.receiver_limited || feedback.x_recv <= 0.0 {
            return limit;
        }
        self.received.cap(feedback.x_recv);
        limit.min(2.0 * feedback.x_recv)
    }

    /// The end of §4.3 step 4: X from the equation, or doubled, under `limit`.
    fn follow(&mut self, limit: f64, now: Instant) {
        if self.p > 0.0 {
            let size = self.config.equation_size(self.size());
            let rate = throughput(size, self.mean_rtt(), self.p) * self.config.payload_share(self.size());
            self.equation_rate = Some(rate);
            self.allowed = Allowed::Bytes(rate.min(limit).max(self.least_rate()));
        } else if self.tld.is_none_or(|tld| now.since(tld).as_secs_f64() >= self.mean_rtt()) {
            let doubled = (2.0 * self.allowed_rate()).min(limit);
            self.allowed = Allowed::Bytes(doubled.max(self.slow_start_floor()));
            self.tld = Some(now);
        }
    }

    /// §4.4 step 1, with a round trip measured. Returns whether it was not spared.
    fn halve(&mut self, now: Instant) -> bool {
        let received = self.received.largest();
        let recover_rate = self.slow_start_floor();
        let spared =
            if self.p > 0.0 { received < recover_rate } else { self.allowed_rate() < 2.0 * recover_rate };
        if spared && self.idle {
            return false;
        }
        match self.equation_rate.filter(|_| self.p > 0.0) {
            None => self.allowed = Allowed::Bytes((self.allowed_rate() / 2.0).max(self.least_rate())),
            Some(rate) if rate > 2.0 * received => self.update_limits(received, now),
            Some(rate) => self.update_limits(rate / 2.0, now),
        }
        true
    }

    /// Update_Limits of §4.4.
    fn update_limits(&mut self, timer_limit: f64, now: Instant) {
        let limit = timer_limit.max(self.least_rate());
        self.received = ReceivedRates(vec![(now, limit / 2.0)]);
        self.follow(limit, now);
    }

    /// RFC 3448 §4.4. Returns whether it was not spared.
    fn halve_by_3448(&mut self, now: Instant) -> bool {
        let received = self.received.largest();
        // Four packets a round trip.
        if self.idle && received < 4.0 * self.slow_start_floor() {
            return false;
        }
        let half = match self.equation_rate {
            Some(rate) if rate <= 2.0 * received => rate / 4.0,
            _ => (received / 2.0).max(self.least_rate() / 2.0),
        };
        self.received = ReceivedRates(vec![(now, half)]);
        self.follow(2.0 * half, now);
        true
    }

    /// t_(i+1), no earlier than the credit for unused times allows.
    fn nominal(&self, now: Instant) -> Instant {
        let Some((nominal, _)) = self.last else { return now };
        let credit = match self.config.revision {
            // §4.6: at most a round trip's worth.
            Revision::Rfc5348 => self.rtt().unwrap_or(Duration::ZERO),
            Revision::Rfc3448 => Duration::ZERO,
        };
        nominal.saturating_add(self.gap()).max(now.saturating_sub(credit))
    }

    /// t_ipi.
    fn gap(&self) -> Duration {
        Duration::from_secs_f64(self.size() / self.instantaneous_rate())
    }

    /// §4.5.
    fn instantaneous_rate(&self) -> f64 {
        let rtt = self.rtt.filter(|_| self.config.oscillation_prevention);
        let slowed = rtt.map_or(1.0, |rtt| rtt.sqrt_mean / rtt.sample.sqrt());
        (self.allowed_rate() * slowed).max(self.least_rate())
    }

    fn allowed_rate(&self) -> f64 {
        match self.allowed {
            Allowed::Blind(packets) => packets * self.size(),
            Allowed::Initial => self.slow_start_floor(),
            Allowed::Bytes(rate) => rate,
        }
    }

    /// The initial rate: RFC 5348 §4.2's `W_init / R`, RFC 3448 §4.3's `s / R`.
    fn slow_start_floor(&self) -> f64 {
        let s = self.size();
        let window = match self.config.revision {
            Revision::Rfc5348 => (4.0 * s).min((2.0 * s).max(INITIAL_WINDOW)),
            Revision::Rfc3448 => s,
        };
        window / self.mean_rtt()
    }

    /// One packet in t_mbi.
    fn least_rate(&self) -> f64 {
        self.size() / MAX_BACKOFF
    }

    fn size(&self) -> f64 {
        self.config.packet_size(self.mean_size).max(1.0)
    }

    fn mean_rtt(&self) -> f64 {
        self.rtt.map_or(1.0, |rtt| rtt.mean)
    }

    /// max(4 R, 2 s / X), and twice the interval between data packets (RFC 4342 §5) if the application sets
    /// that interval: feedback answers packets, and a timer that ran out between two packets would mean
    /// nothing (RFC 4342 §10.3).
    fn timeout(&self) -> Duration {
        let between = 2.0 * self.size() / self.allowed_rate();
        let by_rate = Duration::from_secs_f64(self.rtt.map_or(between, |rtt| between.max(4.0 * rtt.mean)));
        by_rate.max(self.own_interval.saturating_mul(2).min(FIRST_TIMEOUT))
    }

    fn restart_timer(&mut self, timeout: Duration, now: Instant) {
        self.nofeedback = Timer::Until(now.saturating_add(timeout));
        self.idle = true;
    }
}

impl ReceivedRates {
    fn largest(&self) -> f64 {
        self.0.iter().fold(0.0, |largest, &(_, rate)| f64::max(largest, rate))
    }

    /// Maximize X_recv_set().
    fn maximise(&mut self, x_recv: f64, now: Instant) {
        self.0.retain(|(_, rate)| rate.is_finite());
        let largest = self.largest().max(x_recv);
        self.0.clear();
        self.0.push((now, largest));
    }

    /// Update X_recv_set().
    fn update(&mut self, x_recv: f64, two_round_trips: Duration, now: Instant) {
        self.0.push((now, x_recv));
        self.0.retain(|(time, _)| now.since(*time) <= two_round_trips);
        if self.0.len() > KEPT_RATES {
            self.0.remove(0);
        }
    }

    fn halve(&mut self) {
        for (_, rate) in &mut self.0 {
            *rate /= 2.0;
        }
    }

    /// No rate above `x_recv` is kept.
    fn cap(&mut self, x_recv: f64) {
        for (_, rate) in &mut self.0 {
            *rate = rate.min(x_recv);
        }
    }
}

/// RFC 5348 §4.3: the filter constant q, and q2 of §4.5.
const Q: f64 = 0.9;
/// t_mbi, in seconds (RFC 5348 §4.3).
const MAX_BACKOFF: f64 = 64.0;
/// RFC 5348 §4.2, after RFC 3390.
const INITIAL_WINDOW: f64 = 4380.0;
/// RFC 5348 §4.2: the nofeedback timer before the first round-trip sample. A pause of the application's makes
/// it no longer than that either (chosen): a pause is not an interval between packets.
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);
/// RFC 4828 §3.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// 100 µs, Linux's bound on a sample (DCCP_SANE_RTT_MIN, net/dccp/dccp.h): ten of the 10 µs units in which a
/// peer reports its elapsed time (RFC 4340 §13.2), and more than the error of clocks and wake-ups. So no rate
/// is infinite, and no timer shorter than four times this.
const LEAST_RTT: f64 = 1e-4;
/// Chosen: feedback comes once a round trip and with each new loss event, so two round trips hold four.
const KEPT_RATES: usize = 16;
