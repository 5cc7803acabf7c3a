//! A Wi-Fi in an emulated run: what the medium decides in real time, it decides in the replay.

use talkpath_emu::{ReplayError, replay};
use talkpath_path::{Medium, WifiAir};

use crate::round_trip;
use crate::support::judge_run;

#[test]
fn stations_delay_an_emulated_call_over_wifi_and_the_replay_agrees() {
    let scenario = r#"
        name = "wifi"
        duration = "4 s"
        [path.up]
        rate = "65 Mbps"
        delay = "5 ms"
        queue = "fq_codel"
        [path.up.wifi]
        sender = "station"
        frame_error = "2%"
        others = [{ count = 3, rate = "65 Mbps", up = "saturated" }]
        [path.down]
        rate = "65 Mbps"
        delay = "5 ms"
        wifi = { sender = "access-point", with = "up" }
        [flow.call]
        transport = "udp"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
        due = "opening"
        [flow.upload]
        transport = { kind = "tcp", cc = "cubic" }
        workload = "bulk"
        "#;
    // The run is replayed, and would fail at the first decision that differs.
    judge_run(scenario, |ran| {
        let (min, p50, _) = round_trip(ran, "call");
        assert!(min >= 10.0, "the delay of the path is the least: {min} ms");
        assert!(p50 > 15.0, "the others take the medium: {p50} ms");
        let shares = (ran.link("up").utilisation, ran.link("down").utilisation);
        eprintln!("round trip {p50} ms, {shares:?} of the time");
        assert!(shares.0 > 0.05 && shares.0 + shares.1 < 0.6, "{shares:?} of the time");
        // With more frames that cannot be read, the replay decides differently.
        let mut other = ran.scenario.clone();
        if let Medium::Wifi(wifi) = &mut other.links[0].config.medium
            && let WifiAir::Own(air) = &mut wifi.air
        {
            air.frame_error = 0.5;
        }
        assert!(matches!(replay(&ran.log, &other), Err(ReplayError::Differs { .. })));
    });
}
