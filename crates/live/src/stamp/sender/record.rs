//! The record of a STAMP session: one flow with an echo. The packets are the flow's forward messages, and the
//! answers are its echo.

use std::iter;
use std::os::fd::AsFd;

use talkpath_arena::offset::{Offset, withdraw_trust_in_impossible_delays};
use talkpath_measure::{Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, RunRecord};
use talkpath_units::{Bytes, Duration, Instant};

use super::packet_row::{Answer, PacketRow};
use super::{Sender, StampOptions};

/// The name of the flow.
const FLOW: &str = "stamp";
/// The p99 of the lateness above which the record has a warning, as in a live run.
const LATE_MS: f64 = 1.0;

impl Sender {
    pub(super) fn make_record(&self, options: &StampOptions, offset: Offset) -> RunRecord {
        let clock = offset.record();
        let drops = self.drops.finish(iter::once(self.route.socket.as_fd()));
        let info = FlowInfo { clock_trusted: clock.trusted, ..FlowInfo::on_a_clock(FLOW) };
        let (forward, echo) = self.make_legs(options.size, offset);
        let flow = FlowRecord { forward, echo: Some(echo), ..FlowRecord::new(info) };
        let mut record = RunRecord {
            window_end: self.window_end(options.interval),
            flows: vec![flow],
            drain: options.wait,
            clock,
            // Such an answer is no loss of the path.
            valid: drops.min_without_room().unwrap_or(0) == 0,
            warnings: [self.warnings(), drops.warnings("this host")].concat(),
            ..RunRecord::default()
        };
        withdraw_trust_in_impossible_delays(&mut record);
        record
    }

    /// Makes the forward leg, which has the packets, and the echo leg, which has the answers.
    fn make_legs(&self, size: Bytes, offset: Offset) -> (LegRecord, LegRecord) {
        let (mut forward, mut echo) = (LegRecord::default(), LegRecord::default());
        for (sequence, row) in (0_u64..).zip(&self.packets) {
            let packet = self.packet_record(sequence, size, row, offset);
            if let Some(answer) = row.answer {
                let t3 = self.on_our_clock(answer.t3_ns, offset);
                forward.arrivals.push(sequence);
                echo.messages.push(MessageRecord {
                    due: t3,
                    sent: Some(t3),
                    received: Some(answer.t4),
                    copies: row.copies,
                    ..packet
                });
            }
            forward.messages.push(packet);
        }
        // The order in which packets arrived at the reflector is the order of T2.
        let t2_ns = |sequence: &u64| self.packets[*sequence as usize].answer.map(|answer| answer.t2_ns);
        forward.arrivals.sort_by_key(t2_ns);
        echo.arrivals.clone_from(&self.arrivals);
        (forward, echo)
    }

    fn packet_record(&self, seq: u64, size: Bytes, row: &PacketRow, offset: Offset) -> MessageRecord {
        let fate = match (row.t1, row.answer) {
            (_, Some(_)) => Fate::Delivered,
            (Some(_), None) => Fate::Missing,
            (None, None) => Fate::Refused,
        };
        let t2 = |answer: Answer| self.on_our_clock(answer.t2_ns, offset);
        MessageRecord {
            seq,
            size,
            due: row.t1.unwrap_or(Instant::ZERO),
            sent: row.t1,
            wire: None,
            received: row.answer.map(t2),
            fate,
            drop_cause: None,
            copies: u32::from(row.answer.is_some()),
            transmissions: 0,
        }
    }

    /// Converts a time of the reflector's clock, ns since 1970, to the clock of the run.
    fn on_our_clock(&self, reflector_ns: i64, offset: Offset) -> Instant {
        offset.correct(0, reflector_ns, self.start_ns)
    }

    /// Returns the end of the window: one interval after the last packet was due, or later if the last packet
    /// was sent so late that it would be outside of the window.
    fn window_end(&self, interval: Duration) -> Instant {
        let last_t1 = self.packets.iter().filter_map(|row| row.t1).max().unwrap_or(Instant::ZERO);
        let planned_end = Instant::ZERO.saturating_add(interval.saturating_mul(self.packets.len() as u64));
        planned_end.max(last_t1.saturating_add(Duration::from_nanos(1)))
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some([p99]) = self.lateness.quantiles([0.99]) {
            let p99_ms = p99.as_millis_f64();
            if p99_ms > LATE_MS {
                warnings.push(format!("this host sent packets late: p99 {p99_ms:.3} ms"));
            }
        }
        warnings.extend(self.unreported.iter().map(|fact| format!("this host's kernel {fact}")));
        warnings
    }
}
