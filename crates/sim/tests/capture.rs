//! Captures of simulated runs, read by tshark: nothing malformed, nothing to complain of but what happened,
//! and the figures that tshark works out are ours.
//!
//! Where there is no tshark, each test says so and is skipped.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;

use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::RunSummary;
use talkpath_scenario::{Options, Plan, Source, load};
use talkpath_sim::SimArena;
use talkpath_sim::capture::{CaptureEnd, CaptureOptions, CapturePlace, capture};
use talkpath_wire::dccp::codec::{Carrier, Ports, decode};
use talkpath_wire::dccp::{DccpOption, PacketKind};

/// A scenario's only cell: its figures and what a capture of it holds.
struct Story {
    plan: Plan,
}

impl Story {
    fn new(text: &str) -> Self {
        let source = Source::new("test.toml", text);
        let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        Self { plan }
    }

    /// A call over `transport` on a lossy, marking path.
    fn call(transport: &str) -> Self {
        Self::new(&format!(
            r#"
            duration = "5 s"
            [path]
            up = {{ rate = "216 kbps", delay = "20 ms", loss = 0.02, queue = {{ kind = "drop-tail", mark_at = "2 packets" }} }}
            down = {{ rate = "1 Mbps", delay = "20 ms", loss = 0.01 }}
            [flow.call]
            transport = {transport}
            workload = {{ kind = "voice", codec = "g711" }}
            [flow.beside]
            transport = "udp"
            workload = {{ kind = "cbr", rate = "110 kbps", size = "900 B" }}
            "#
        ))
    }

    fn with_run<T>(&self, look: impl FnOnce(&RunPlan<'_>) -> T) -> T {
        look(&RunPlan {
            cell: 0,
            repetition: 0,
            seed: self.plan.seed,
            series: None,
            rows: true,
            interrupt: &AtomicBool::new(false),
            progress: &|_| {},
        })
    }

    fn record(&self) -> RunRecord {
        let scenario = &self.plan.cells[0].scenario;
        self.with_run(|run| SimArena::new().run(scenario, *run)).expect("the simulator can run it")
    }

    fn summary(&self) -> RunSummary {
        summarise(&self.record(), &BTreeMap::new())
    }

    fn capture(&self, end: CaptureEnd, encapsulated: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let options = CaptureOptions { at: CapturePlace::End(end), encapsulated };
        self.with_run(|run| capture(&self.plan.cells[0].scenario, run, options, &mut out)).unwrap();
        out
    }
}

/// What tshark prints of `capture`; `None`, and why on standard error, where there is none.
fn tshark(capture: &[u8], arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    // Numbers as they are on the wire, and RTP on its own port (RFC 3551 §8).
    command.args(["-n", "-r", "-", "-o", "dccp.relative_sequence_numbers:FALSE", "-d", "udp.port==5004,rtp"]);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        // Written past the test program's capture, which swallows what a test that passes prints.
        let _ = std::io::stderr().write_all(b"SKIPPED: no tshark here; Debian's package tshark has it\n");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        // It may stop reading before the end; what it says shows that.
        scope.spawn(move || drop(stdin.write_all(capture)));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Lines of what tshark prints for each packet that `filter` lets through.
fn packets(capture: &[u8], filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "occurrence=f"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    Some(tshark(capture, &arguments)?.lines().map(str::to_owned).collect())
}

/// Neither malformed packets nor errors; `None` where tshark is missing.
fn assert_clean(capture: &[u8]) -> Option<()> {
    let bad = packets(capture, "_ws.malformed || _ws.expert.severity == error", &["frame.number"])?;
    assert_eq!(bad, [""; 0], "frames that tshark finds wrong");
    Some(())
}

/// Every QUIC packet is decrypted by the secrets in the file itself, with encryption in the scenario and
/// without, and carries what the run says.
#[test]
fn tshark_decrypts_quic_and_finds_its_frames() {
    for (carry, keys, end) in [
        ("datagram", ", zero_rtt = true", CaptureEnd::Near),
        ("stream", ", encryption = false", CaptureEnd::Far),
        ("stream-per-message", "", CaptureEnd::Near),
    ] {
        let story = Story::call(&format!("{{ kind = \"quic\", carry = \"{carry}\"{keys} }}"));
        let sent = story.record().flows[0].counters.data_packets.unwrap();
        let capture = story.capture(end, false);
        if assert_clean(&capture).is_none() {
            return;
        }
        // What has a short header and no frame that tshark sees was not decrypted.
        let closed = "quic.decryption_failed || (quic.header_form == 0 && !quic.frame)";
        assert_eq!(packets(&capture, closed, &["frame.number"]).unwrap(), [""; 0], "{carry}{keys}");
        let is_data = match carry {
            "datagram" => "quic.frame_type == 48 || quic.frame_type == 49",
            _ => "quic.stream.stream_id",
        };
        let data = format!("ip.src == 10.0.0.1 && ({is_data})");
        let seen = packets(&capture, &data, &["frame.number"]).unwrap().len() as u64;
        match end {
            CaptureEnd::Near => assert_eq!(seen, sent, "{carry}{keys}"),
            CaptureEnd::Far => assert!(seen < sent && seen * 10 > sent * 9, "{carry}{keys}: {seen}"),
        }
    }
}

/// tshark's table of RTP streams: packets, lost, then deltas and jitters as printed.
#[test]
fn a_call_over_udp_has_tsharks_rtp_figures() {
    let story = Story::call("\"udp\"");
    let far = story.capture(CaptureEnd::Far, false);
    if assert_clean(&far).is_none() {
        return;
    }
    let table = tshark(&far, &["-q", "-z", "rtp,streams"]).unwrap();
    let row: Vec<_> =
        table.lines().find(|line| line.contains("g711U")).expect("one stream").split_whitespace().collect();
    // Start, end, addresses and ports, SSRC and payload come first; then packets, lost and its share.
    let flow = &story.summary().flows["call"];
    let stream = flow.rtp_stream.unwrap();
    let printed = |figures: talkpath_measure::summary::MinMeanMax| {
        [figures.min, figures.mean, figures.max].map(|figure| format!("{figure:.3}"))
    };
    assert!(flow.lost > 0, "a loss to be reported");
    assert_eq!(row[8..10], [flow.received.to_string(), flow.lost.to_string()]);
    assert_eq!(row[11..14], printed(stream.delta_ms), "time between arrivals, ms");
    assert_eq!(row[14..17], printed(stream.jitter_ms), "jitter, ms");
}

/// At the sender tshark sees each retransmission as one, whatever it calls it, and no hole.
#[test]
fn tcps_retransmissions_are_all_that_tshark_remarks() {
    let story = Story::new(
        r#"
        duration = "10 s"
        [path]
        up = { rate = "2 Mbps", delay = "20 ms", loss = 0.01, queue = { kind = "drop-tail", limit = "20 packets" } }
        down = { rate = "8 Mbps", delay = "20 ms" }
        [flow.upload]
        transport = "tcp"
        workload = "bulk"
        "#,
    );
    let near = story.capture(CaptureEnd::Near, false);
    if assert_clean(&near).is_none() {
        return;
    }
    let again =
        "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order";
    let resent = packets(&near, &format!("ip.src == 10.0.0.1 && ({again})"), &["frame.number"]).unwrap();
    let told = story.summary().flows["upload"].retransmissions.unwrap();
    assert!(told > 0, "something is sent again");
    assert_eq!(resent.len() as u64, told);
    assert_eq!(packets(&near, "tcp.analysis.lost_segment", &["frame.number"]).unwrap(), [""; 0]);
    assert!(assert_clean(&story.capture(CaptureEnd::Far, false)).is_some());
}

/// RFC 3168 §6.1.1: the SYN's bits, the answer's, ECN-capable data, marks, their echo, and CWR.
#[test]
fn tshark_reads_ecn_as_it_was_negotiated_and_used() {
    let story = Story::new(
        r#"
        duration = "5 s"
        [path]
        up = { rate = "2 Mbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "200 packets", mark_at = "10 packets" } }
        down = { rate = "2 Mbps", delay = "20 ms" }
        [flow.upload]
        transport = { kind = "tcp", ecn = true }
        workload = "bulk"
        "#,
    );
    let far = story.capture(CaptureEnd::Far, false);
    if assert_clean(&far).is_none() {
        return;
    }
    let count = |filter: &str| packets(&far, filter, &["frame.number"]).unwrap().len();
    assert_eq!(
        count("tcp.flags.syn == 1 && tcp.flags.ack == 0 && tcp.flags.ece == 1 && tcp.flags.cwr == 1"),
        1
    );
    assert_eq!(
        count("tcp.flags.syn == 1 && tcp.flags.ack == 1 && tcp.flags.ece == 1 && tcp.flags.cwr == 0"),
        1
    );
    let (data, marked) = (count("tcp.len > 0"), count("ip.dsfield.ecn == 3"));
    assert_eq!(
        (count("tcp.len > 0 && ip.dsfield.ecn == 2"), count("ip.dsfield.ecn == 1")),
        (data - marked, 0)
    );
    assert_eq!(count("tcp.len == 0 && ip.dsfield.ecn != 0"), 0, "acknowledgements are not ECN-capable");
    let echoes = count("ip.src == 10.128.0.1 && tcp.flags.ece == 1 && tcp.flags.syn == 0");
    let reductions = count("ip.src == 10.0.0.1 && tcp.flags.cwr == 1 && tcp.flags.syn == 0");
    assert!(
        marked > 10 && echoes >= marked && reductions > 1 && reductions < marked,
        "{marked} {echoes} {reductions}"
    );
}

/// RFC 4340 §5: each field of each packet is what our codec, whose packets are those of the run, says.
#[test]
fn tshark_reads_dccps_fields_as_they_were_meant() {
    let calls = [
        r#""dccp-ccid2""#,
        r#"{ kind = "dccp-ccid2", ecn = true, short_seqnos = true, init_cookie = true }"#,
        r#"{ kind = "dccp-ccid3", data_checksum = true }"#,
        r#"{ kind = "dccp-ccid3", checksum_coverage = 1 }"#,
        r#"{ kind = "dccp-ccid4", ecn = true }"#,
    ];
    for call in calls {
        let story = Story::call(call);
        for end in [CaptureEnd::Near, CaptureEnd::Far] {
            let native = story.capture(end, false);
            if assert_clean(&native).is_none() {
                return;
            }
            let fields = [
                "dccp.type",
                "dccp.x",
                "dccp.seq_raw",
                "dccp.ack_raw",
                "dccp.ccval",
                "dccp.cscov",
                "dccp.srcport",
                "dccp.checksum.status",
                "ip.dsfield.ecn",
                "dccp.data_offset",
            ];
            let found = packets(&native, "dccp", &fields).unwrap();
            let meant: Vec<_> = frames(&native).filter(|bytes| bytes[9] == 33).map(meant).collect();
            assert!(meant.len() > 150, "{} packets", meant.len());
            assert_eq!(found.len(), meant.len(), "{call}");
            for (found, meant) in found.iter().zip(&meant) {
                assert_eq!(found, meant, "{call}");
            }
        }
        // Inside UDP (RFC 6773) it is a datagram with a good checksum to tshark, which does not know the
        // port.
        let inside = story.capture(CaptureEnd::Near, true);
        assert_clean(&inside).unwrap();
        let bad = "udp.port == 6511 && udp.checksum.status == 0";
        assert_eq!(packets(&inside, bad, &["frame.number"]).unwrap(), [""; 0]);
    }
}

/// The IP packets of a capture (pcapng: section, interface, then blocks of type 6).
fn frames(capture: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = capture;
    core::iter::from_fn(move || {
        loop {
            let word = |at: usize| {
                rest.get(at..at + 4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]) as usize)
            };
            let (kind, length) = (word(0)?, word(4)?);
            let block = &rest[..length];
            let size = word(20);
            rest = &rest[length..];
            if kind == 6 {
                return Some(&block[28..28 + size?]);
            }
        }
    })
}

/// The line that tshark is to print of an IP packet with DCCP in it.
fn meant(bytes: &[u8]) -> String {
    let address = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let carrier = Carrier::Ipv4 { source: address(12), destination: address(16) };
    let decoded = decode(&bytes[20..], carrier).expect("our own packet");
    let (packet, Ports { source, .. }) = (decoded.packet, decoded.ports);
    assert!(!packet.corrupt);
    let has_checksum = packet.options.iter().any(|option| matches!(option, DccpOption::DataChecksum(_)));
    assert!(!has_checksum || packet.payload > 0);
    let ack = if packet.kind.has_ack() { packet.ack.get().to_string() } else { String::new() };
    assert!(packet.kind != PacketKind::Data || ack.is_empty());
    // tshark 4.0 has no raw form of a sequence number of 24 bits.
    let seq = if packet.short { String::new() } else { packet.seq.get().to_string() };
    format!(
        "{}\t{}\t{seq}\t{ack}\t{}\t{}\t{source}\t1\t{}\t{}",
        packet.kind.number(),
        if packet.short { "0" } else { "1" },
        packet.ccval,
        packet.cscov,
        bytes[1] & 3,
        packet.header_size() / 4,
    )
}
