//! Messages whose sender draws their sizes, over every transport: no end knows a size or a number before the
//! message says it.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use crate::support::quiet::undisturbed;
use crate::support::shared::assert_as_drawn;
use crate::support::{Serving, TRANSPORTS, down, drawn, echo, run, scenario};
use talkpath_model::{EchoWrite, Flow, Receiver};
use talkpath_units::Duration;

/// Runs a flow of each transport, and judges each.
fn whole(flow: impl Fn(&str) -> Flow) {
    undisturbed(|| {
        let server = Serving::loopback();
        let scenario = scenario(600, TRANSPORTS.map(&flow).to_vec());
        let record = run(server.address, &scenario).unwrap();
        for (record, flow) in record.flows.iter().zip(&scenario.flows) {
            assert_as_drawn(record, flow);
        }
    });
}

#[test]
fn messages_of_drawn_sizes_arrive_whole_upwards() {
    whole(|transport| drawn(transport, transport));
}

/// The server draws them, and this host learns them.
#[test]
fn messages_of_drawn_sizes_arrive_whole_downwards() {
    whole(|transport| down(drawn(transport, transport)));
}

#[test]
fn messages_of_drawn_sizes_come_back_one_by_one() {
    whole(|transport| echo(drawn(transport, transport), EchoWrite::PerMessage));
}

#[test]
fn messages_of_drawn_sizes_come_back_read_by_read_downwards() {
    whole(|transport| down(echo(drawn(transport, transport), EchoWrite::PerRead)));
}

/// It takes one message after the other out of a stream, frame first.
#[test]
fn a_slow_receiver_reads_messages_of_drawn_sizes_one_by_one() {
    let receiver = Receiver { service: Duration::from_millis(1), ..Receiver::default() };
    whole(|transport| Flow { receiver, ..drawn(transport, transport) });
}
