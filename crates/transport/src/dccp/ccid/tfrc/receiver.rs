//! The receiving half: feedback when TFRC wants it.

use talkpath_units::{Duration, Ecn, Instant};
use talkpath_wire::dccp::{DccpOption, Options, Seq};

use super::options::{ReportedInterval, ReportedIntervals, put_loss_event_rate, put_receive_rate};
use crate::dccp::ccid::{Arrived, CcidReceiver};
use crate::tfrc::{Arrival, Receiver, TfrcConfig, Variant};

/// A receiving half of CCID 3 or 4.
#[derive(Clone, Debug)]
pub struct TfrcReceiver {
    config: TfrcConfig,
    /// Once a packet has arrived.
    state: Option<State>,
    send_loss_event_rate: bool,
    /// The round trip, if the handshake measured it.
    handshake_rtt: Option<Duration>,
    due: Option<Instant>,
}

#[derive(Clone, Debug)]
struct State {
    receiver: Receiver,
    /// The greatest number received, as it is on the wire and without wrapping, and when it arrived.
    greatest: (Seq, u64),
    at: Instant,
}

impl TfrcReceiver {
    /// CCID 3 with TFRC, CCID 4 with TFRC-SP.
    pub const fn new(config: TfrcConfig) -> Self {
        Self { config, state: None, send_loss_event_rate: false, handshake_rtt: None, due: None }
    }

    /// RFC 4342 §8.6: intervals in sequence numbers, from the acknowledgement number backwards.
    fn intervals(state: &State) -> ReportedIntervals {
        let history = state.receiver.history();
        let mut reported = ReportedIntervals::new(state.greatest.1 - history.decided());
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        for interval in history.intervals() {
            reported.push(ReportedInterval {
                lossless: narrow(interval.length - interval.lossy),
                lossy: narrow(interval.lossy),
                data: interval.data,
                dropped: interval.dropped,
            });
        }
        reported
    }
}

impl CcidReceiver for TfrcReceiver {
    fn on_handshake(&mut self, rtt: Duration) {
        self.handshake_rtt = Some(rtt);
        if let Some(state) = &mut self.state {
            state.receiver.set_rtt(rtt);
        }
    }

    fn on_packet(&mut self, arrived: &Arrived, now: Instant) {
        let (config, rtt) = (self.config, self.handshake_rtt);
        let state = self.state.get_or_insert_with(|| {
            let mut receiver = Receiver::new(config, ORIGIN - 1);
            rtt.into_iter().for_each(|rtt| receiver.set_rtt(rtt));
            State { receiver, greatest: (arrived.seq, ORIGIN), at: now }
        });
        let ahead = arrived.seq.distance_from(state.greatest.0);
        let seq = state.greatest.1.saturating_add_signed(ahead);
        if ahead > 0 {
            state.greatest = (arrived.seq, seq);
            state.at = now;
        }
        let arrival = Arrival {
            seq,
            counter: arrived.is_data.then_some(arrived.ccval),
            ndp: arrived.ndp_count.unwrap_or(0),
            marked: arrived.ecn == Ecn::Ce && arrived.is_data,
        };
        if state.receiver.on_packet(arrival, arrived.payload, now) {
            self.due.get_or_insert(now);
        }
    }

    fn acknowledge_at(&self) -> Option<Instant> {
        self.due
    }

    fn has_news(&self) -> bool {
        self.due.is_some()
    }

    fn put_options(&mut self, options: &mut Options, now: Instant) {
        let Some(state) = &mut self.state else { return };
        if self.due.is_none() {
            return;
        }
        let report = state.receiver.report(now);
        let elapsed = u32::try_from(now.since(state.at).as_nanos() / ELAPSED_UNIT.as_nanos());
        let drop_counts = self.config.variant == Variant::SmallPackets;
        // A packet holds them all; were there no room, it would be no feedback, and the sender's timer would
        // expire.
        let _fits = options.push(DccpOption::ElapsedTime(elapsed.unwrap_or(u32::MAX)))
            && put_receive_rate(options, report.x_recv)
            && Self::intervals(state).put(options, drop_counts)
            && (!self.send_loss_event_rate || put_loss_event_rate(options, report.mean_interval));
    }

    fn on_acknowledged(&mut self, _now: Instant) {
        self.due = None;
    }

    fn on_feature(&mut self, number: u8, value: u64) {
        if number == SEND_LOSS_EVENT_RATE {
            self.send_loss_event_rate = value == 1;
        }
    }
}

/// The first of the numbers without wrapping: late packets from before the first lie below.
const ORIGIN: u64 = 1 << 48;
/// RFC 4340 §13.2.
const ELAPSED_UNIT: Duration = Duration::from_micros(10);
/// RFC 4342 §8.4.
pub(super) const SEND_LOSS_EVENT_RATE: u8 = 192;
