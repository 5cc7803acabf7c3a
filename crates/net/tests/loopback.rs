//! Live runs over loopback: every transport, both directions, both kinds of flow.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod support;

use support::{Serving, cbr, down, echo, run, scenario, voice};
use talkpath_measure::{Fate, RunRecord};
use talkpath_scenario::{EchoWrite, Flow};

/// Every message of every flow arrived, and its echo, in order, no earlier than it was sent and within 200 ms.
fn assert_whole(record: &RunRecord, expected: usize) {
    for flow in &record.flows {
        for row in flow.echo.iter().flat_map(|leg| &leg.messages) {
            let due = flow.forward.messages[usize::try_from(row.seq).unwrap()].due;
            assert!(row.received.unwrap() > due, "{}: a round trip takes time", flow.info.name);
        }
        let legs = [Some(&flow.forward), flow.echo.as_ref()];
        for leg in legs.into_iter().flatten() {
            let name = &flow.info.name;
            assert_eq!(leg.messages.len(), expected, "{name}");
            let odd: Vec<_> =
                leg.messages.iter().filter(|row| row.fate != Fate::Delivered || row.copies != 1).collect();
            assert!(odd.is_empty(), "{name}: {odd:?}; {:?}", record.warnings);
            assert!(leg.arrivals.is_sorted(), "{name}");
            for row in &leg.messages {
                let (sent, received) = (row.sent.unwrap(), row.received.unwrap());
                assert!(row.due <= sent, "{name}: due {} sent {sent}", row.due);
                // One machine, two anchors of one clock: the correction is good to its stated uncertainty.
                assert!(
                    received.as_nanos() + 1_000_000 > sent.as_nanos(),
                    "{name}: sent {sent}, received {received}"
                );
                assert!(
                    received.since(row.due).as_millis() < 200,
                    "{name}: due {}, received {received}",
                    row.due
                );
            }
        }
    }
}

/// 20 messages in 400 ms.
fn whole_runs(address: std::net::SocketAddr, flow: impl Fn(&str) -> Flow) {
    let flows = ["udp", "tcp", "tcp-nodelay"].map(flow).to_vec();
    let record = run(address, &scenario(400, flows)).unwrap();
    assert_whole(&record, 20);
    assert!(record.clock.trusted, "{}", record.clock.why);
    assert!(record.clock.uncertainty_ms.unwrap() < 50.0);
}

#[test]
fn an_echo_comes_back_whole_over_every_transport() {
    let server = Serving::loopback();
    whole_runs(server.address, |name| echo(voice(name, name), EchoWrite::PerMessage));
    whole_runs(server.address, |name| echo(voice(name, name), EchoWrite::PerRead));
}

#[test]
fn a_message_goes_up_and_down_over_every_transport() {
    let server = Serving::loopback();
    whole_runs(server.address, |name| voice(name, name));
    whole_runs(server.address, |name| down(voice(name, name)));
    whole_runs(server.address, |name| down(echo(voice(name, name), EchoWrite::PerRead)));
}

#[test]
fn small_messages_carry_what_fits() {
    let server = Serving::loopback();
    for size in [1, 2, 4, 7, 8] {
        // 20 messages in 200 ms.
        let flow = echo(
            cbr("small", "udp", size * 8 / 10 + u64::from(size * 8 % 10 != 0), size),
            EchoWrite::PerMessage,
        );
        let record = run(server.address, &scenario(200, vec![flow])).unwrap();
        let sent = record.flows[0].forward.messages.len();
        assert!(sent > 10, "{size} B: {sent}");
        assert_whole(&record, sent);
    }
}
