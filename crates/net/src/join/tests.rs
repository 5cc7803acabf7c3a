use talkpath_scenario::{Codec, Direction, EchoWrite, Receiver, WorkloadConfig};
use talkpath_transport::{Stack, TransportConfig, UdpConfig};

use super::*;
use crate::log::RowBudget;
use crate::spec::{TransportSpec, WorkloadSpec};

fn flow() -> Flow {
    Flow {
        name: "call".to_owned(),
        group: "call".to_owned(),
        transport: TransportConfig::Udp(UdpConfig { stack: Stack::Linux, socket_buffer: Bytes::new(1) }),
        transport_name: "udp".to_owned(),
        asked_for: Vec::new(),
        workload: WorkloadConfig::Voice {
            codec: Codec::G711,
            ptime: Duration::from_millis(20),
            size: Bytes::new(160),
        },
        echo: Some(EchoWrite::PerMessage),
        direction: Direction::Up,
        start: (Duration::ZERO, Duration::ZERO),
        route: Vec::new(),
        return_route: Vec::new(),
        send_jitter: Duration::ZERO,
        wake_up: Duration::ZERO,
        clock_jitter: Duration::ZERO,
        receiver: Receiver::default(),
    }
}

fn spec() -> FlowSpec {
    FlowSpec {
        transport: TransportSpec::Udp { receive_buffer: None },
        workload: WorkloadSpec::Voice { ptime_ns: 20_000_000, size: 160 },
        echo_per_read: Some(false),
        is_up: true,
        start_ns: 0,
        file: None,
    }
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Five messages, the echoes of 0, 1 and 3 back after 50 ms.
fn sender() -> FlowLog {
    let mut log = FlowLog::new(RowBudget::new(1000));
    for seq in 0..5 {
        let row = log.on_due(seq, 160, ms(20 * seq)).unwrap();
        log.on_sent(row, ms(20 * seq));
    }
    for seq in [0, 1, 3] {
        log.on_arrival(seq, ms(20 * seq + 50));
    }
    log
}

fn join(sender: &FlowLog, receiver: Option<&FlowLog>, end: RunEnd) -> FlowRecord {
    let ours = |at: u64| Instant::from_nanos(at);
    let theirs = |at: u64| Instant::from_nanos(at + 1_000_000);
    let receiver = receiver.map(|log| Timed { log, to_ours: &theirs });
    let sender = Timed { log: sender, to_ours: &ours };
    flow_record(&flow(), &spec(), Some(&sender), receiver.as_ref(), (ms(0), ms(100)), end, true)
}

#[test]
fn both_logs_give_both_legs_on_the_senders_clock() {
    let mut receiver = FlowLog::new(RowBudget::new(1000));
    for seq in [0, 1, 3, 3] {
        receiver.on_arrival(seq, ms(20 * seq + 20));
        let row = receiver.on_due(seq, 160, ms(20 * seq + 20)).unwrap();
        receiver.on_sent(row, ms(20 * seq + 21));
    }
    let record = join(&sender(), Some(&receiver), RunEnd::Drained);
    let fates: Vec<_> = record.forward.messages.iter().map(|row| row.fate).collect();
    use Fate::{Delivered, Missing};
    assert_eq!(fates, [Delivered, Delivered, Missing, Delivered, Missing]);
    assert_eq!(record.forward.messages[0].received, Some(ms(21)), "20 ms on a clock 1 ms behind");
    assert_eq!(record.forward.messages[3].copies, 2);
    let echo = record.echo.unwrap();
    assert_eq!(echo.messages.iter().map(|row| row.seq).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(echo.messages[2].received, Some(ms(110)));
}

#[test]
fn without_the_far_log_an_echo_still_knows_its_round_trips() {
    let record = join(&sender(), None, RunEnd::Cut);
    let fates: Vec<_> = record.forward.messages.iter().map(|row| row.fate).collect();
    use Fate::{Delivered, Missing, Unfinished};
    assert_eq!(
        fates,
        [Delivered, Delivered, Missing, Delivered, Unfinished],
        "the last may still be on its way"
    );
    assert_eq!(record.forward.messages[0].received, None, "nobody knows when");
    let echo = record.echo.unwrap();
    assert_eq!(echo.messages.len(), 3);
    assert_eq!(echo.messages[2].received, Some(ms(110)));
}

#[test]
fn a_far_log_that_makes_no_sense_does_no_harm() {
    let mut sender = sender();
    let refused = sender.on_due(5, 160, ms(100)).unwrap();
    sender.on_refused(refused, &std::io::ErrorKind::WouldBlock);
    let mut receiver = FlowLog::new(RowBudget::new(1000));
    for seq in [u64::MAX, 1 << 40, 7, 5, 2] {
        receiver.on_arrival(seq, Instant::from_nanos(u64::MAX - 2_000_000));
        let row = receiver.on_due(seq, u64::MAX, Instant::ZERO).unwrap();
        receiver.on_sent(row, Instant::ZERO);
    }
    let record = join(&sender, Some(&receiver), RunEnd::Drained);
    assert_eq!(record.forward.arrivals, [2]);
    assert_eq!(record.forward.messages[5].fate, Fate::Refused);
    assert_eq!(record.forward.messages.len(), 6);
}

#[test]
fn a_mean_over_time_weighs_each_value_by_how_long_it_held() {
    let points = [(ms(0), 10.0), (ms(50), 20.0), (ms(90), 1000.0)];
    let mean = time_weighted_mean(&points, (ms(30), ms(70))).unwrap();
    assert!((mean - 15.0).abs() < 1e-9, "{mean}");
    assert_eq!(time_weighted_mean(&[], (ms(0), ms(1))), None);
}
