//! The packets of a call, as the keys of its workload say, and combinations that do not exist.

use talkpath_scenario::{Demand, MessageSize, Options, Source, WorkloadConfig, load};

fn read(transport: &str, keys: &str) -> Result<WorkloadConfig, String> {
    let text = format!(
        "duration = \"10 s\"\npath = \"lan\"\n[flow.a]\ntransport = \"{transport}\"\nworkload = {{ kind = \"voice\", {keys} }}\n"
    );
    let plan =
        load(&Source::new("a.toml", text.as_str()), &Options::default()).map_err(|it| it.to_string())?;
    let resolved = Source::new("scenario.toml", plan.resolved.as_str());
    let again = load(&resolved, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(again.cells, plan.cells, "{}", plan.resolved);
    Ok(plan.cells[0].scenario.flows[0].workload.clone())
}

/// The payload of each message of a call over UDP whose messages have one size, B.
fn size(keys: &str) -> u64 {
    let workload = read("udp", keys).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    workload.constant_size().unwrap_or_else(|| panic!("{keys}: sizes differ")).get()
}

/// RFC 3550 §5.1: 12 B. RFC 3711 §5.2: 10 B. RFC 4571 §2: 2 B on a stream.
#[test]
fn a_packet_of_speech_has_the_headers_of_rtp() {
    assert_eq!(size("codec = \"g711\""), 172);
    assert_eq!(size("rtp = false"), 160);
    assert_eq!(size("srtp = true"), 182);
    assert_eq!(size("srtp = true, extensions = \"8 B\""), 190);
    assert_eq!(size("ptime = \"30 ms\""), 252);
    let over = |transport, keys| read(transport, keys).unwrap().constant_size().unwrap().get();
    assert_eq!(over("tcp", "ptime = \"20 ms\""), 174);
    assert_eq!(over("quic-datagram", "ptime = \"20 ms\""), 172);
    assert_eq!(over("tcp", "rtp = false"), 160, "the length belongs to RTP");
}

/// RFC 3551 §4.5.6; and packets of libopus at a constant rate.
#[test]
fn each_codec_has_packets_of_its_own() {
    assert_eq!(size("codec = \"g729a\""), 32);
    assert_eq!(size("codec = \"g729a\", ptime = \"10 ms\""), 22);
    assert_eq!(size("codec = \"opus\", vbr = false"), 92);
    assert_eq!(size("codec = \"opus\", vbr = false, bitrate = \"6 kbps\", ptime = \"2.5 ms\""), 14);
    assert_eq!(
        size("codec = \"opus\", vbr = false, bitrate = \"24 kbps\", ptime = \"60 ms\", frames = 3"),
        192
    );
    let drawn = read("udp", "codec = \"opus\"").unwrap().sizes();
    assert!(matches!(drawn, Some(MessageSize::Uniform { .. })), "{drawn:?}");
}

#[test]
fn copies_multiply_the_packets_and_red_grows_them() {
    let demand = read("udp", "copies = 2").unwrap().demand();
    assert!(matches!(demand, Demand::Clocked { messages: 2, nanos: 20_000_000, .. }), "{demand:?}");
    let demand = read("udp", "red = 1").unwrap().demand();
    assert_eq!(demand.largest_message().unwrap().get(), 12 + 4 + 160 + 1 + 160);
}

#[test]
fn combinations_that_do_not_exist_are_refused_with_what_is_right() {
    for (keys, expected) in [
        ("bitrate = \"32 kbps\"", "bitrate: found it beside `codec = \"g711\"`, which has one bit rate"),
        ("codec = \"g729a\", vbr = true", "vbr: found it beside `codec = \"g729a\"`"),
        ("fec = true", "fec: found it beside `codec = \"g711\"`, which has no in-band FEC"),
        (
            "codec = \"opus\", fec = true, ptime = \"5 ms\"",
            "fec: found it with frames of 5 ms, expected frames of 10 ms",
        ),
        (
            "codec = \"opus\", fec = true, bitrate = \"24 kbps\"",
            "fec: found it with 24 kb/s in swb, where libopus sends no in-band FEC",
        ),
        (
            "codec = \"opus\", fec = true, bitrate = \"17 kbps\", bandwidth = \"nb\"",
            "libopus sends it in nb from 18 kb/s on",
        ),
        (
            "codec = \"opus\", fec = true, ptime = \"60 ms\", frames = 12",
            "fec: found it with frames of 5 ms, expected frames of 10 ms",
        ),
        ("codec = \"opus\", ptime = \"3 ms\"", "ptime: found 3 ms, expected whole frames of 2500 us, 5 ms"),
        ("codec = \"opus\", ptime = \"140 ms\"", "at most 120 ms in a packet of opus"),
        (
            "codec = \"opus\", ptime = \"60 ms\", frames = 2",
            "frames: found 2 in a packet of 60 ms, expected frames of",
        ),
        (
            "codec = \"g729a\", ptime = \"25 ms\"",
            "ptime: found 25 ms, expected a multiple of 10 ms, the shortest frame of g729a",
        ),
        (
            "ptime = \"2.5 ms\"",
            "ptime: found 2500 us, expected a multiple of 1 ms, the shortest frame of g711",
        ),
        ("codec = \"opus\", concealment = \"none\"", "but opus conceals by itself"),
        ("codec = \"opus\", concealment = \"g711-appendix-i\"", "but opus has another concealment"),
        ("srtp = true, rtp = false", "srtp: found it beside `rtp = false`"),
        ("extensions = \"7 B\"", "extensions: found 7 B, expected a multiple of 4 B"),
        ("dtx = true, rtp = false", "dtx: found it beside `rtp = false`"),
        ("red = 1, rtp = false", "red: found it beside `rtp = false`"),
        ("copies = 2, rtp = false", "copies: found it beside `rtp = false`"),
        ("codec = \"opus\", rtp = false", "rtp: found `false` with packets of varying size"),
        (
            "codec = \"opus\", red = 9, ptime = \"60 ms\"",
            "red: found 9, expected at most 5: RED reaches back",
        ),
        (
            "red = 1, ptime = \"200 ms\"",
            "red: found it with packets of up to 1600 B of speech, expected at most 1023 B",
        ),
    ] {
        let refused = read("udp", keys).expect_err(keys);
        assert!(refused.contains(expected), "{keys}: {refused}");
    }
}

/// Packets of programs, as captured on 2026-11-29: keys of the profile, UDP payload in B, and the mean time
/// between two packets in ms.
///
/// - Chromium 156.0.8078.108 to itself over loopback, its fake microphone, PCMU by `setCodecPreferences`: 661
///   of 669 packets had 198 B (header 12 B, extensions 16 B, 160 B, SRTP's tag 10 B), 19.76 ms apart. The
///   other 8 were padding with the timestamp of the packet before.
/// - sip-tester's own call (`g711a.pcap`, of Debian's sip-tester 3.6.1): 236 of 236 packets had 252 B, 30.00
///   ms apart.
const CAPTURED: [(&str, u64, f64); 2] = [
    ("codec = \"g711\", srtp = true, extensions = \"16 B\"", 198, 19.76),
    ("codec = \"g711\", ptime = \"30 ms\"", 252, 30.0),
];

/// Opus of the same Chromium has 12 B, mostly 16 B of extensions and a packet each 960 ticks of 48 kHz, too.
#[test]
fn a_call_has_the_packets_that_were_captured_of_real_programs() {
    for (keys, payload, spacing_ms) in CAPTURED {
        assert_eq!(size(keys), payload, "{keys}");
        let Some(Demand::Clocked { messages: 1, nanos, .. }) = read("udp", keys).ok().map(|it| it.demand())
        else {
            panic!("{keys}: not one packet at a time");
        };
        assert!((nanos as f64 / 1e6 / spacing_ms - 1.0).abs() < 0.02, "{keys}: {nanos} ns");
    }
}

#[test]
fn a_call_without_a_score_is_warned_of_with_what_has_one() {
    let warnings = |keys: &str| {
        let text = format!(
            "duration = \"2 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\", codec = \"opus\", {keys} }}\n"
        );
        let plan = load(&Source::new("f.toml", text), &Options::default()).unwrap();
        plan.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warnings("bitrate = \"32 kbps\""), Vec::<String>::new());
    for keys in ["fec = true", "bitrate = \"64 kbps\"", "bandwidth = \"fb\""] {
        let found = warnings(keys);
        assert_eq!(found.len(), 1, "{keys}: {found:?}");
        assert!(found[0].contains("flow.call.workload.codec: the call has no score"), "{found:?}");
        assert!(found[0].contains("swb from 14 to 40"), "{found:?}");
    }
}
