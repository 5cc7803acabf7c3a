//! Runs in which chance decides what befalls each transport, so that every form of sentence comes up.

use serde_json::Value;

use super::*;
use crate::view::transport_key;

/// A run of some transports, which random loss, delay, queues and neighbours befall; where nothing is usable
/// sometimes again with `fq_codel`.
pub(super) fn random_summary(random: &mut Stream, mut summary: Summary) -> (Summary, JudgedBy) {
    let by = [JudgedBy::Mos, JudgedBy::InTime, JudgedBy::Goodput][below(random, 3)];
    // Intervals of many repetitions take long.
    let repetitions = if below(random, 6) == 0 { 20 } else { 1 + below(random, 5) as u64 };
    let transports = 2 + below(random, 5);
    let (quality, links) = (below(random, 5), below(random, 3));
    let neighbours = below(random, 3);
    let is_silent = below(random, 8) == 0;
    let is_unopened = below(random, 8) == 0;
    let is_too_late = below(random, 8) == 0;
    summary.runs.clear();
    let cures = if quality > 2 && below(random, 2) == 0 { 2 } else { 1 };
    for cured in 0..cures {
        let quality = if cured == 1 { below(random, 5) } else { quality };
        // What befalls all transports alike, now and then.
        let common = below(random, 2) == 0;
        let all = Fortune::draw(random, quality);
        for (at, (kind, _)) in TRANSPORTS.iter().take(transports).enumerate() {
            let own = if below(random, 2) == 0 { quality } else { below(random, 5) };
            let fortune = if common { all } else { Fortune::draw(random, own) };
            for repetition in 0..repetitions {
                let mut flows = BTreeMap::new();
                let mut flow = fortune.flow(random, by, kind);
                flow.in_time = flow.in_time.map(|share| if is_too_late { 0.0 } else { share });
                if (is_silent && at == 0) || is_unopened && at == 1 {
                    flow.received = 0;
                }
                flow.opening_ms = (!is_unopened || at != 1).then_some(1.0);
                flow.ledger = Some(Ledger { not_open: flow.sent, ..Ledger::default() });
                flows.insert(FLOW.to_owned(), Box::new(flow));
                for neighbour in 0..neighbours {
                    let by =
                        [JudgedBy::Goodput, JudgedBy::InTime, JudgedBy::Mos][(neighbour + transports) % 3];
                    let flow = Fortune::draw(random, 1).flow(random, by, "udp");
                    flows.insert(["events", "upload"][neighbour].to_owned(), Box::new(flow));
                }
                let mut sweep: BTreeMap<String, Value> = [(transport_key(FLOW), Value::from(*kind))].into();
                if cures == 2 {
                    let queue = ["drop-tail", "fq_codel"][cured];
                    sweep.insert("path.up.queue".to_owned(), queue.into());
                }
                summary.runs.push(RunSummary {
                    cell: (cured * transports + at) as u64,
                    sweep: sweep.into(),
                    repetition,
                    seed: repetition,
                    flows,
                    groups: BTreeMap::new(),
                    links: if links == 0 { BTreeMap::new() } else { fortune.links(random) },
                    machine: None,
                    path: None,
                    program: None,
                    changes: None,
                });
            }
        }
    }
    if below(random, 2) == 0 {
        summary.understood.assumed_queues = vec!["up".to_owned()];
    }
    fixture::refresh(&mut summary);
    (summary, by)
}

/// What befalls a transport.
#[derive(Clone, Copy)]
struct Fortune {
    quality: usize,
    loss: f64,
    delay: f64,
    spread: f64,
    wait: f64,
    two: bool,
}

impl Fortune {
    /// 0 is a clean path, 4 a bad one.
    fn draw(random: &mut Stream, quality: usize) -> Self {
        let bad = quality as f64 / 4.0;
        Self {
            quality,
            loss: if below(random, 2) == 0 { 0.0 } else { 0.1 * bad * random.unit() },
            delay: if below(random, 3) == 0 { 350.0 * bad } else { 20.0 + 30.0 * random.unit() },
            spread: if below(random, 2) == 0 { 1.0 } else { 10.0 + 600.0 * bad * random.unit() },
            wait: if below(random, 3) == 0 { 0.0 } else { 900.0 * bad * random.unit() },
            two: below(random, 6) == 0,
        }
    }

    fn flow(&self, random: &mut Stream, by: JudgedBy, kind: &str) -> FlowSummary {
        let sent = 100 + below(random, 900) as u64;
        let lost = ((sent as f64 * self.loss * random.unit()) as u64).min(sent);
        let min = self.delay * (0.95 + 0.1 * random.unit());
        let p50 = min + self.wait * random.unit() + 1.0;
        let p99 = p50 + self.spread * random.unit();
        let delay = DelayMs { min, mean: p50, p50, p90: p50, p95: p99, p99, p999: p99, max: p99 };
        let bad = if self.two && random.unit() < 0.5 { 1.0 } else { 0.0 };
        let good = (1.0 - self.quality as f64 * 0.24 - 0.05 * random.unit() - 0.4 * bad).clamp(0.0, 1.0);
        // Now and then nothing came, and no delay is known.
        let delay = (below(random, 40) > 0).then_some(delay);
        let late = if self.spread > 1.0 { (sent - lost) / 10 } else { 0 };
        let share = (lost + late) as f64 / sent as f64;
        let unfinished =
            if below(random, 6) == 0 { (sent - lost) / 10 * below(random, 10) as u64 } else { 0 };
        let call = CallSummary {
            mos: Some(1.0 + 3.4 * good),
            r: Some(93.0 * good),
            played: sent - lost - late,
            late,
            missing: lost,
            mouth_to_ear_ms: delay.as_ref().map(|delay| MouthToEarMs {
                mean: p50,
                p50: delay.p50 + 40.0,
                p95: p99,
            }),
            codec: "g711".to_owned(),
            playout: "adaptive".to_owned(),
            outside_model: [
                (ModelInput::MouthToEarMs, p50, (0.0, 500.0)),
                (ModelInput::Loss, share, (0.0, 0.2)),
            ]
            .into_iter()
            .filter(|(_, value, range)| *value > range.1)
            .map(|(input, value, range)| OutsideModel { input, value, range })
            .collect(),
            ..CallSummary::default()
        };
        FlowSummary {
            transport: kind.to_owned(),
            sent,
            received: sent - lost - unfinished,
            lost,
            unfinished,
            loss_rate: Some(lost as f64 / (sent - unfinished) as f64),
            one_way_delay_ms: delay,
            goodput_bps: Some(1e6 * good + 1.0),
            retransmit_rate: (kind != "udp").then(|| self.loss * random.unit()),
            in_time: (by == JudgedBy::InTime).then_some(good),
            deadline_ms: (by != JudgedBy::Goodput).then_some(if by == JudgedBy::Mos {
                150.0
            } else {
                2000.0
            }),
            call: (by == JudgedBy::Mos).then(|| Box::new(call)),
            first_sent_to_last_received_ms: Some(1000.0),
            waits: (kind != "udp").then(|| Box::new(self.waits(random, by, kind))),
            ..FlowSummary::default()
        }
    }

    fn waits(&self, random: &mut Stream, by: JudgedBy, kind: &str) -> WaitsSummary {
        let p90 = if below(random, 2) == 0 { 0.0 } else { self.delay * random.unit() };
        let p99 = p90 + self.spread * random.unit();
        let wait = Some(WaitMs { p50: 0.0, p90, p99, max: p99 });
        let held = HeldMs {
            congestion_window: Some(100.0 + p99),
            receiver_window: (by == JudgedBy::Goodput).then(|| 200.0 * random.unit()),
            ..HeldMs::default()
        };
        WaitsSummary {
            for_room_ms: None,
            in_transport_ms: wait.filter(|_| kind == "quic-datagram"),
            for_lost_ms: wait.filter(|_| kind != "quic-datagram"),
            held_ms: Some(held),
        }
    }

    fn links(&self, random: &mut Stream) -> BTreeMap<String, Box<LinkSummary>> {
        let wait = self.wait * random.unit();
        let up = LinkSummary {
            discipline: "drop-tail".to_owned(),
            queue_packets: QueuePackets { mean: 1.0, p99: 2, max: 3 },
            queue_delay_ms: Some(QueueDelayMs { mean: wait, p50: wait, p95: wait, p99: wait }),
            forwarded: 100,
            dropped: below(random, 2) as u64,
            dropped_by: DropsByCause::default(),
            marked: 0,
            lost: below(random, 2) as u64,
            repeated: 0,
            damaged: 0,
            utilisation: 0.5,
        };
        [("up".to_owned(), Box::new(up))].into()
    }
}

fn below(random: &mut Stream, end: usize) -> usize {
    ((random.unit() * end as f64) as usize).min(end - 1)
}
