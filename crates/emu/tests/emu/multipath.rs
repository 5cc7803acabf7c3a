//! Multipath TCP of this machine's kernel over two emulated paths (RFC 8684).

use talkpath_emu::replay;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::{FlowSummary, MultipathSummary};
use talkpath_model::Scenario;

use super::support::quiet::{skip, undisturbed};
use super::support::{Ran, run, scenario};

/// A transfer over Wi-Fi of 4 Mbps, and over LTE of 4 Mbps if it has a `second` path.
fn transfer(ip: &str, second: &str) -> String {
    format!(
        r#"
        name = "two paths"
        ip = "{ip}"
        duration = "4 s"
        drain = "2 s"
        [link.wifi-up]
        rate = "4 Mbps"
        delay = "10 ms"
        [link.wifi-down]
        rate = "4 Mbps"
        delay = "10 ms"
        [link.lte-up]
        rate = "4 Mbps"
        delay = "20 ms"
        [link.lte-down]
        rate = "4 Mbps"
        delay = "20 ms"
        [flow.upload]
        transport = {{ kind = "tcp", multipath = true }}
        workload = {{ kind = "bulk" }}
        route = ["wifi-up"]
        return_route = ["wifi-down"]
        {second}
        "#
    )
}

const SECOND: &str = "second_route = [\"lte-up\"]\nsecond_return_route = [\"lte-down\"]\n";

fn summary(ran: &Ran) -> FlowSummary {
    (*summarise(&ran.record, &Default::default()).flows["upload"]).clone()
}

/// Whether this kernel has Multipath TCP; if not, the arena says so.
fn is_there(scenario: &Scenario) -> bool {
    let socket =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, Some(socket2::Protocol::MPTCP));
    if let Err(why) = &socket {
        skip(format!("no Multipath TCP for {}: {why}", scenario.name));
    }
    socket.is_ok()
}

#[test]
fn a_transfer_over_two_paths_takes_both() {
    for ip in ["ipv4", "ipv6"] {
        let text = transfer(ip, SECOND);
        if !is_there(&scenario(&text)) {
            return;
        }
        undisturbed(|| {
            let (Some(one), Some(two)) = (run(&transfer(ip, "")), run(&text)) else { return };
            let [alone, both] = [&one, &two].map(summary);
            eprintln!("{ip}: {:?} and {:?} b/s; {:?}", alone.goodput_bps, both.goodput_bps, both.multipath);
            let seen =
                |subflows| Some(MultipathSummary { fell_back: Some(false), subflows_max: Some(subflows) });
            assert_eq!((alone.multipath, both.multipath), (seen(1), seen(2)));
            // What either link carries at most is 4 Mbps with headers.
            assert!(alone.goodput_bps.unwrap() < 4e6);
            assert!(both.goodput_bps.unwrap() > 5e6, "{:?}", both.goodput_bps);
            for link in ["wifi-up", "wifi-down", "lte-up", "lte-down"] {
                assert!(two.link(link).forwarded > 100, "{:?}", two.link(link));
            }
            assert_eq!((one.link("lte-up").forwarded, one.link("lte-down").forwarded), (0, 0));
            assert!(
                one.record.warnings.iter().any(|it| it.contains("had one path")),
                "{:?}",
                one.record.warnings
            );
            let replayed = replay(&two.log, &two.scenario).unwrap();
            assert_eq!(replayed.arrivals, two.report.packets);
        });
    }
}

/// Its messages come whole and in order, whichever path each takes.
#[test]
fn a_call_over_two_paths_arrives_whole() {
    let text = transfer("ipv4", SECOND)
        .replace("{ kind = \"tcp\", ", "{ kind = \"tcp-nodelay\", ")
        .replace("{ kind = \"bulk\" }", "{ kind = \"voice\", echo = true }")
        .replace("[flow.upload]", "[flow.call]\ndirection = \"down\"\ndue = \"opening\"");
    if !is_there(&scenario(&text)) {
        return;
    }
    undisturbed(|| {
        let Some(ran) = run(&text) else { return };
        let summary = summarise(&ran.record, &Default::default());
        let call = &summary.flows["call"];
        eprintln!("{:?}; {:?}", call.round_trip_delay_ms, call.multipath);
        // A frame every 20 ms from when the connection is open.
        assert!((190..=200).contains(&call.sent), "{}", call.sent);
        assert_eq!((call.received, call.lost), (call.sent, 0));
        // The shorter path takes 20 ms.
        assert!(call.round_trip_delay_ms.as_ref().unwrap().min >= 20.0);
        assert_eq!(call.multipath.unwrap().fell_back, Some(false));
    });
}
