//! Captures that are made here, byte by byte.

use talkpath_config::{Codec, Coding};
use talkpath_measure::Fate;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::JudgedBy;

use super::*;

/// A capture in the format pcap, of packets of IPv4 without a link layer.
struct File(Vec<u8>);

/// A packet of RTP of one call.
#[derive(Clone, Copy)]
struct Packet {
    at_ms: u64,
    sequence: u16,
    timestamp: u32,
    payload_type: u8,
    is_marked: bool,
}

impl File {
    fn new() -> Self {
        let mut bytes = Vec::new();
        // The magic number for nanoseconds.
        bytes.extend(0xa1b2_3c4d_u32.to_le_bytes());
        bytes.extend([2, 0, 4, 0]);
        for word in [0_u32, 0, 65_535, 101] {
            bytes.extend(word.to_le_bytes());
        }
        Self(bytes)
    }

    /// A call of 20 ms of G.711 a packet, which arrives `late(n)` ms late if at all.
    fn call(count: u64, late: impl Fn(u64) -> Option<u64>) -> Self {
        let mut packets = Vec::new();
        for number in 0..count {
            if let Some(late) = late(number) {
                packets.push(packet_of(number, late));
            }
        }
        packets.sort_by_key(|packet| packet.at_ms);
        let mut file = Self::new();
        packets.into_iter().for_each(|packet| file.rtp(7, packet));
        file
    }

    fn rtp(&mut self, source: u32, packet: Packet) {
        self.rtp_with(source, packet, &[0xd5; 160]);
    }

    fn rtp_with(&mut self, source: u32, packet: Packet, speech: &[u8]) {
        let Packet { at_ms, sequence, timestamp, payload_type, is_marked } = packet;
        let mut payload = vec![0x80, payload_type | u8::from(is_marked) << 7];
        payload.extend(sequence.to_be_bytes());
        payload.extend(timestamp.to_be_bytes());
        payload.extend(source.to_be_bytes());
        payload.extend(speech);
        self.datagram(at_ms, 5004, &payload);
    }

    fn datagram(&mut self, at_ms: u64, port: u16, payload: &[u8]) {
        let length = 28 + payload.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        packet.extend(port.to_be_bytes());
        packet.extend(port.to_be_bytes());
        packet.extend((length - 20).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        let (seconds, ns) = (at_ms / 1000, at_ms % 1000 * 1_000_000);
        for word in [seconds as u32, ns as u32, packet.len() as u32, packet.len() as u32] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(packet);
    }

    fn read(&self) -> Capture {
        self.read_with(&Options::default())
    }

    fn read_with(&self, options: &Options) -> Capture {
        read(&self.0[..], options).unwrap()
    }
}

/// The packet `number` of a call that begins at 10 s with sequence number 65,500.
fn packet_of(number: u64, late: u64) -> Packet {
    Packet {
        at_ms: 10_000 + 20 * number + late,
        sequence: 65_500_u16.wrapping_add(number as u16),
        timestamp: (160 * number as u32).wrapping_sub(8000),
        payload_type: 8,
        is_marked: number == 0,
    }
}

fn stated(one_way: Duration) -> Options {
    Options { one_way: Some(one_way), ..Options::default() }
}

#[test]
fn a_call_is_rated_with_its_losses_and_its_delays() {
    let file = File::call(500, |number| (number % 50 != 7).then_some(3 * (number % 2)));
    let capture = file.read_with(&stated(Duration::from_millis(30)));
    let [stream] = capture.streams.as_slice() else { panic!("{:?}", capture.streams) };
    assert_eq!((stream.packets, stream.lost, stream.gaps), (490, 10, 10));
    assert_eq!((stream.flow.as_str(), stream.frame_ms), ("call-1", Some(20.0)));
    assert_eq!((stream.longest_gap_ms, stream.one_way_by), (Some(20.0), OneWayBasis::Option));
    let messages = &capture.record.flows[0].forward.messages;
    assert_eq!((messages.len(), messages[7].fate), (500, Fate::Missing));
    // The fastest packets take 30 ms, the others 33 ms. The missing ones were due in between.
    for (number, message) in (0..).zip(messages) {
        assert_eq!(message.due, Instant::from_millis(20 * number), "{number}");
    }
    assert_eq!(messages[1].received, Some(Instant::from_millis(20 + 33)));
    let summary = summarise(&capture.record, &BTreeMap::new());
    let call = summary.flows["call-1"].call.as_ref().unwrap();
    assert_eq!(call.missing, 10);
    assert!(call.score().unwrap() > 3.0 && call.score().unwrap() < 4.4, "{}", call.score().unwrap());
}

#[test]
fn a_silence_of_the_sender_is_no_loss() {
    // Three talkspurts with silences of 2 s and comfort noise at the end of each.
    let mut file = File::new();
    let mut sequence = 0;
    for spurt in 0..3_u64 {
        for number in 0..40_u64 {
            let media = spurt * 2800 + 20 * number;
            file.rtp(
                7,
                Packet {
                    at_ms: 1000 + media,
                    sequence,
                    timestamp: 8 * media as u32,
                    payload_type: if number == 39 { 13 } else { 0 },
                    is_marked: number == 0,
                },
            );
            sequence += 1;
        }
    }
    let capture = file.read();
    let stream = &capture.streams[0];
    assert_eq!((stream.packets, stream.lost, stream.clock_restarts), (120, 0, 0));
    let summary = summarise(&capture.record, &BTreeMap::new());
    let call = summary.flows["call-1"].call.as_ref().unwrap();
    assert_eq!((call.missing, call.late), (0, 0));
    // The packets before the silence are not in the smallest and largest time between arrivals.
    let deltas = capture.figures["call-1"].delta_ms;
    assert!((deltas.min - 20.0).abs() < 1e-9 && (deltas.max - 20.0).abs() < 1e-9, "{deltas:?}");
}

#[test]
fn packets_that_come_late_or_twice_are_counted_once() {
    let mut file = File::call(100, |number| Some(if number == 50 { 45 } else { 0 }));
    file.rtp(7, packet_of(99, 1));
    let capture = file.read();
    let stream = &capture.streams[0];
    assert_eq!((stream.packets, stream.lost, stream.duplicates), (100, 0, 1));
    assert_eq!(capture.record.flows[0].forward.messages[99].copies, 2);
}

#[test]
fn a_new_beginning_of_numbers_and_timestamps_is_neither_loss_nor_delay() {
    let mut file = File::call(100, |_| Some(0));
    for number in 0..100_u64 {
        let packet = Packet {
            at_ms: 20_000 + 20 * number,
            sequence: 5000 + number as u16,
            timestamp: 160 * number as u32 + 900_000_000,
            payload_type: 8,
            is_marked: false,
        };
        file.rtp(7, packet);
    }
    let capture = file.read();
    let stream = &capture.streams[0];
    assert_eq!((stream.packets, stream.lost), (200, 0));
    assert_eq!((stream.number_restarts, stream.clock_restarts), (1, 1));
    let summary = summarise(&capture.record, &BTreeMap::new());
    let delay = summary.flows["call-1"].one_way_delay_ms.as_ref().unwrap();
    assert_eq!(delay.max, 50.0);
}

#[test]
fn the_one_way_delay_is_assumed_unless_somebody_says_it() {
    let capture = File::call(100, |_| Some(0)).read();
    assert_eq!(capture.streams[0].one_way_by, OneWayBasis::Assumed);
    assert!(capture.record.warnings.iter().any(|warning| warning.contains("50 ms is assumed")));
    assert!(capture.record.clock.why.contains("assumed"), "{}", capture.record.clock.why);
    let stated = File::call(100, |_| Some(0)).read_with(&stated(Duration::from_millis(7)));
    assert!(!stated.record.warnings.iter().any(|warning| warning.contains("assumed")));
}

#[test]
fn payload_types_are_named_by_the_option_then_by_sdp_then_by_the_table() {
    let invite = "INVITE sip:b@192.0.2.2 SIP/2.0\r\n\r\nv=0\r\nc=IN IP4 192.0.2.2\r\nm=audio 5004 RTP/AVP 97 8\r\n\
                  a=rtpmap:97 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n";
    let call = |payload_type| {
        let mut file = File::new();
        file.datagram(500, 5060, invite.as_bytes());
        (0..50).for_each(|number| file.rtp(7, Packet { payload_type, ..packet_of(number, 0) }));
        file
    };
    let described = call(97).read();
    assert_eq!(described.streams[0].encoding.as_deref(), Some("PCMU"));
    assert_eq!(described.streams[0].encoding_by, Some(EncodingSource::Sdp));
    let fixed = File::call(50, |_| Some(0)).read();
    assert_eq!(fixed.streams[0].encoding_by, Some(EncodingSource::Table));
    let payload_types = BTreeMap::from([(97, Encoding::parse("opus").unwrap())]);
    let chosen = call(97).read_with(&Options { payload_types, ..Options::default() });
    assert_eq!(chosen.streams[0].encoding.as_deref(), Some("opus"));
    assert_eq!(chosen.streams[0].flow, "call-1");
}

#[test]
fn addresses_appear_only_if_they_are_wanted() {
    let file = File::call(50, |_| Some(0));
    let text = |capture: &Capture| format!("{:?} {:?}", capture.streams, capture.record.warnings);
    assert!(!text(&file.read()).contains("192.0.2.1"));
    let named = file.read_with(&Options { names: true, ..Options::default() });
    assert!(text(&named).contains("192.0.2.1:5004 to 192.0.2.2:5004"));
}

#[test]
fn what_comes_before_the_damage_is_read_and_the_damage_has_a_place() {
    let file = File::call(100, |_| Some(0));
    let whole = file.0.len();
    let record = 16 + 28 + 172;
    for cut in [whole - 1, whole - record + 1] {
        let capture = read(&file.0[..cut], &Options::default()).unwrap();
        assert_eq!(capture.streams[0].packets, 99, "{cut}");
        let damage = capture.damage.unwrap();
        assert_eq!(damage.at, (whole - record) as u64, "{cut}");
    }
    assert!(file.read().damage.is_none());
    // A length of two gigabytes takes no memory.
    let mut broken = file.0.clone();
    let last = whole - record;
    broken[last + 8..last + 12].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    let capture = read(&broken[..], &Options::default()).unwrap();
    assert_eq!(capture.streams[0].packets, 99);
    assert!(capture.damage.is_some());
}

/// Three streams with SIP: a call with silence suppression and comfort noise, its other direction whose
/// sequence numbers wrap and in which packets change places, and Opus over IPv6 in a VLAN with a burst of
/// loss. The packets were made by a script, and cut to 92 bytes.
const THREE_STREAMS: &[u8] = include_bytes!("../tests/data/three-streams.pcapng");
/// What tshark 4.0.17 prints of them: `tshark -n -q -z rtp,streams`.
const OF_TSHARK: &str = include_str!("../tests/data/three-streams.tshark.txt");

#[test]
fn the_figures_of_a_capture_are_those_of_tshark_to_the_printed_digit() {
    let capture = read(THREE_STREAMS, &Options::default()).unwrap();
    assert_eq!(capture.streams.len(), 3);
    for stream in &capture.streams {
        let RtpStream { delta_ms, jitter_ms } = capture.figures[&stream.flow];
        let mut ours = vec![stream.packets.to_string(), stream.lost.to_string()];
        for spread in [delta_ms, jitter_ms] {
            ours.extend([spread.min, spread.mean, spread.max].map(|ms| format!("{ms:.3}")));
        }
        let line = OF_TSHARK.lines().find(|line| line.contains(&stream.ssrc)).unwrap();
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "X").collect();
        let [packets, lost, _share, figures @ ..] = &words[words.len() - 9..] else { panic!("{line}") };
        let theirs: Vec<&str> = [packets, lost].into_iter().chain(figures).copied().collect();
        assert_eq!(ours, theirs, "{}", stream.flow);
    }
}

#[test]
fn the_streams_of_a_call_with_sip_have_their_names_and_codecs() {
    let capture = read(THREE_STREAMS, &Options::default()).unwrap();
    let of = |stream: &StreamSummary| (stream.flow.clone(), stream.encoding.clone(), stream.frame_ms);
    let expected = [("call-1-up", "PCMA"), ("call-1-down", "PCMA"), ("call-2", "opus")]
        .map(|(flow, encoding)| (flow.to_owned(), Some(encoding.to_owned()), Some(20.0)));
    assert_eq!(capture.streams.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(capture.streams.iter().all(|stream| stream.encoding_by == Some(EncodingSource::Sdp)));
    assert_eq!(capture.streams[2].longest_gap_ms, Some(100.0));
    // This Opus has no score, because nobody published the impairment of full band, and all else of a call.
    let summary = summarise(&capture.record, &BTreeMap::new());
    assert_eq!(summary.groups["call-1"].judged.as_ref().unwrap().by, JudgedBy::Mos);
    let opus = summary.flows["call-2"].call.as_deref().unwrap();
    assert!(
        !opus.is_rated() && opus.longest_gap_ms > Some(0.0) && opus.mouth_to_ear_ms.is_some(),
        "{opus:?}"
    );
    let why = capture.streams[2].not_rated.as_deref().unwrap();
    assert!(why.contains("as it is here (fb, CBR of 32.0 kb/s by its packets, frames of 20 ms)"), "{why}");
}

/// A capture of Opus in super-wideband, of which SDP says the payload type and `parameters`. Every other
/// packet has 80 bytes, and the others `other` bytes, the second of which is `second`.
fn opus(parameters: &str, other: usize, second: u8) -> Capture {
    opus_in("RTP/AVP", parameters, other, second)
}

/// As [`opus`], with this profile of RTP.
fn opus_in(profile: &str, parameters: &str, other: usize, second: u8) -> Capture {
    let invite = format!(
        "INVITE sip:b@192.0.2.2 SIP/2.0\r\n\r\nv=0\r\nc=IN IP4 192.0.2.2\r\nm=audio 5004 {profile} 97\r\n\
         a=rtpmap:97 opus/48000/2\r\na=fmtp:97 {parameters}\r\n"
    );
    let mut file = File::new();
    file.datagram(500, 5060, invite.as_bytes());
    for number in 0..200_u64 {
        let mut speech = vec![0x55; if number % 2 == 0 { 80 } else { other }];
        speech[..2].copy_from_slice(&[13 << 3, second]);
        let timestamp = 960 * number as u32;
        file.rtp_with(7, Packet { payload_type: 97, timestamp, ..packet_of(number, 0) }, &speech);
    }
    file.read()
}

#[test]
fn opus_is_rated_by_the_published_figures_where_its_packets_show_a_published_coding() {
    let score = |capture: &Capture| {
        let summary = summarise(&capture.record, &BTreeMap::new());
        summary.flows["call-1"].call.as_deref().unwrap().mos
    };
    let constant = opus("useinbandfec=1", 80, 0x80);
    assert_eq!(constant.streams[0].not_rated, None);
    let coding = constant.streams[0].coding.clone().unwrap();
    assert_eq!((coding.bandwidth, coding.kbps, coding.kbps_by), ("swb", 32.0, RateSource::Packets));
    let expected = talkpath_measure::metrics::e_model::Call {
        mouth_to_ear_ms: 0.0,
        loss: 0.0,
        burst_ratio: 1.0,
        codec: Coding { is_vbr: false, ..Coding::usual(Codec::OPUS) }.rated(true).unwrap(),
    };
    assert!((score(&constant).unwrap() - expected.rate().mos).abs() < 0.05, "{:?}", score(&constant));
    // The speaker's pauses take from the mean, but not from the rate that SDP has.
    let variable = opus("maxaveragebitrate=40000", 60, 0x80);
    let coding = variable.streams[0].coding.clone().unwrap();
    assert_eq!((coding.kbps, coding.kbps_by, coding.vbr), (40.0, RateSource::Sdp, true));
    assert!(score(&variable) > score(&constant));
    let with_fec = opus("useinbandfec=1", 80, 0xc0);
    assert_eq!(score(&with_fec), None);
    let why = with_fec.streams[0].not_rated.clone().unwrap();
    assert!(why.contains("with in-band FEC") && why.contains("published are nb from 6"), "{why}");
}

#[test]
fn encrypted_opus_has_the_score_of_an_assumed_coding_and_says_so() {
    let hidden = opus_in("RTP/SAVPF", "useinbandfec=1", 90, 0xc0);
    let stream = &hidden.streams[0];
    assert!(stream.encrypted && stream.not_rated.is_none(), "{stream:?}");
    let coding = stream.coding.clone().unwrap();
    // 80 and 90 bytes, of which 10 are the tag.
    assert_eq!((coding.assumed, coding.bandwidth, coding.kbps, coding.vbr), (true, "swb", 30.0, true));
    let says = "call-1: SRTP hides the bandwidth, the channels and the in-band FEC of its packets: its score is for \
                super-wideband of one channel without FEC, which is assumed";
    assert!(hidden.record.warnings.iter().any(|text| text == says), "{:?}", hidden.record.warnings);
    let summary = summarise(&hidden.record, &BTreeMap::new());
    let call = summary.flows["call-1"].call.as_deref().unwrap();
    assert_eq!((call.scale.as_str(), call.mos.is_some()), ("swb", true));
    assert_eq!(stream.repaired, 0, "nothing shows FEC");
}

#[test]
fn the_speech_of_a_call_is_kept_for_those_who_want_it() {
    let mut file = File::new();
    for number in (0..40_u64).filter(|number| *number != 5) {
        let payload_type = if number == 7 { 101 } else { 8 };
        file.rtp_with(7, Packet { payload_type, ..packet_of(number, 0) }, &[number as u8; 160]);
    }
    assert!(file.read().speech.is_empty());
    let heard = file.read_with(&Options { speech: true, ..Options::default() });
    let speech = &heard.speech["call-1"];
    assert_eq!((speech.encoding.as_deref(), speech.is_encrypted), (Some("PCMA"), false));
    assert_eq!((speech.packets.len(), speech.coding.frame), (40, Duration::from_millis(20)));
    for (number, packet) in speech.packets.iter().enumerate() {
        let is_missing = [5, 7].contains(&number);
        assert_eq!(&packet[..], if is_missing { vec![] } else { vec![number as u8; 160] }, "{number}");
    }
    // Two bytes of the padding are the last ones of the payload.
    let padded = [0xa0, 8, 0, 0, 1, 2, 2];
    assert_eq!(observed::without_padding(&padded, &padded[2..]), [0, 0, 1]);
    // Packets that were cut have no speech.
    let cut = read(THREE_STREAMS, &Options { speech: true, ..Options::default() }).unwrap();
    assert!(cut.speech["call-1-up"].packets.iter().all(|packet| packet.is_empty()));
}

/// Packets of 20 ms that `speech` makes, of which one in ten is lost, and two together at 50.
fn repeated(payload_type: u8, ticks: u32, speech: impl Fn(u64) -> Vec<u8>) -> File {
    let mut file = File::new();
    for number in (0..200_u64).filter(|number| number % 10 != 7 && !matches!(number, 50 | 51)) {
        let packet = Packet { payload_type, timestamp: ticks * number as u32, ..packet_of(number, 0) };
        file.rtp_with(7, packet, &speech(number));
    }
    file
}

#[test]
fn a_lost_packet_is_heard_from_the_packet_behind_it_by_red_and_by_in_band_fec() {
    // RFC 2198 §3: A-law, 160 units earlier, 160 bytes; then the packet's own.
    let red = |number: u64| {
        let own = [number as u8; 160];
        let earlier = [number.wrapping_sub(1) as u8; 160];
        match number {
            0 => [&[8][..], &own].concat(),
            _ => [&[0x88, 2, 0x80, 160, 8][..], &earlier, &own].concat(),
        }
    };
    // SWB of SILK and CELT, 20 ms, with voice and LBRR.
    let fec = |number: u64| [&[13 << 3, 0xc0][..], &[number as u8; 60]].concat();
    let named = |number, name: &str| (number, Encoding::parse(name).unwrap());
    let options = Options {
        payload_types: [named(121, "red/8000"), named(111, "opus")].into(),
        speech: true,
        ..Options::default()
    };
    let (red, fec) = (repeated(121, 160, red), repeated(111, 960, fec));
    for (file, earlier, name) in [(&red, Some(1), "PCMA"), (&fec, None, "opus")] {
        let capture = file.read_with(&options);
        let [stream] = capture.streams.as_slice() else { panic!("{:?}", capture.streams) };
        assert_eq!((stream.lost, stream.repaired, stream.red), (22, 21, earlier), "{name}");
        assert_eq!(stream.encoding.as_deref(), Some(name));
        let speech = &capture.speech["call-1"].packets;
        assert_eq!(speech[17].first().copied(), earlier.map(|_| 17), "{name}: RED has the speech itself");
        assert!(speech[50].is_empty() && speech[20].len() > 50, "{name}");
        // It came with the next packet, and the message itself stays lost.
        let leg = &capture.record.flows[0].forward;
        assert_eq!(leg.brought_later.get(&17), leg.messages[18].received.as_ref(), "{name}");
        assert_eq!((leg.messages[17].fate, leg.brought_later.get(&50)), (Fate::Missing, None), "{name}");
        let summary = summarise(&capture.record, &BTreeMap::new());
        let flow = &summary.flows["call-1"];
        assert_eq!((flow.lost, flow.call.as_ref().unwrap().missing), (22, 1), "{name}");
    }
    assert_eq!(red.read_with(&options).speech["call-1"].coding.codec, Codec::G711);
    // Without the meaning of what is inside there is no call, and the reason names it.
    let inside = repeated(121, 160, |number| [&[97][..], &[number as u8; 160]].concat());
    let unknown = &inside.read_with(&options).streams[0];
    assert!(unknown.not_rated.as_ref().unwrap().contains("what payload type 97 means"), "{unknown:?}");
    let mut state = 1_u8;
    let random = core::iter::repeat_with(|| {
        state = state.wrapping_mul(157).wrapping_add(101);
        state | 0x80
    });
    let random: Vec<u8> = random.take(160).collect();
    let encrypted = &repeated(121, 160, |_| random.clone()).read_with(&options).streams[0];
    assert_eq!((encrypted.encrypted, encrypted.red), (true, None), "{encrypted:?}");
}
