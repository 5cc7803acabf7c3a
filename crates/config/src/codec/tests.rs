use super::*;

#[test]
fn each_codec_has_a_word_of_its_own_and_is_found_by_it() {
    for &codec in Codec::ALL {
        assert_eq!(Codec::named(codec.name()), Some(codec));
        assert!(!Codec::LATER.contains(&codec.name()), "{codec:?} is here");
    }
    assert_eq!(Codec::named("evs"), None);
    assert_ne!(Codec::G711, Codec::G729A);
}

#[test]
fn the_texts_have_the_frames_and_the_concealment_of_each_codec() {
    assert_eq!(Codec::NAMES, ["g711", "g729a", "opus"]);
    assert_eq!(
        Codec::FRAMES_DOC,
        "`g711`: 64 kbps, 160 B every 20 ms; `g729a`: 8 kbps, 20 B every 20 ms; `opus`: 6 to 128 kbps by \
         `bitrate`, frames of 2.5 to 60 ms"
    );
    assert_eq!(Codec::CONCEALMENTS, ["none", "g711-appendix-i", "g729a", "opus"]);
    assert_eq!(
        Codec::CONCEALMENTS_DOC,
        "what is played where a frame is missing: `g711-appendix-i` repeats and fades what was last heard (ITU-T \
         G.711 Appendix I), as phones do, `g729a` is the concealment of its decoder (ITU-T G.729), `opus` is the \
         concealment of its decoder (RFC 6716 §4.4), `none` is silence, which only `g711` can have"
    );
}

#[test]
fn a_frame_may_be_no_whole_number_of_bytes_a_millisecond() {
    // GSM full rate (RFC 3551 §4.5.8).
    let time = Duration::from_millis(20);
    let gsm = FrameShape { bytes: 33, time, usual_time: time };
    assert_eq!(gsm.size(Duration::from_millis(60)), Bytes::new(99));
    assert_eq!([20, 30, 60].map(|ms| gsm.can_be(Duration::from_millis(ms))), [true, false, true]);
    assert_eq!((gsm.kbps_tenths(), G711_FRAMES.kbps_tenths()), (132, 640));
}

/// RFC 6716 §2.1.4: a packet of up to 120 ms has whole frames of one length.
#[test]
fn a_packet_has_the_fewest_frames_that_fill_it() {
    let fewest = |codec: Codec, micros| codec.row().frames.fewest_in(Duration::from_micros(micros));
    assert_eq!(
        [2_500, 20_000, 60_000, 80_000, 100_000, 120_000].map(|us| fewest(Codec::OPUS, us)),
        [Some(1), Some(1), Some(1), Some(2), Some(5), Some(2)]
    );
    assert_eq!([1_000, 140_000].map(|us| fewest(Codec::OPUS, us)), [None, None]);
    assert_eq!([20_000, 25_000].map(|us| fewest(Codec::G729A, us)), [Some(2), None]);
    assert_eq!([20_000, 30_000, 1_500].map(|us| fewest(Codec::G711, us)), [Some(1), Some(1), None]);
}

#[test]
fn the_usual_packet_of_each_codec_has_its_standards_size() {
    let sizes = Codec::ALL.iter().map(|&codec| Coding::usual(codec).packet_size().get());
    assert_eq!(Vec::from_iter(sizes), [160, 20, 80]);
    let rates = Codec::ALL.iter().map(|&codec| Coding::usual(codec).bit_rate.as_bps());
    assert_eq!(Vec::from_iter(rates), [64_000, 8_000, 32_000]);
}

/// Payloads of packets, as libopus 1.6.1 made them at constant bit rates of 24.7 s of speech (LibriVox, read
/// by PyAV 18.1.0), by bit rate and frames of 2.5, 5, 10, 20, 40 and 60 ms. All packets of a row and column
/// had this size.
const LIBOPUS_SIZES: [(u64, [u64; 6]); 7] = [
    (6_000, [2, 4, 8, 15, 30, 45]),
    (9_000, [3, 6, 11, 23, 45, 68]),
    (16_000, [5, 10, 20, 40, 80, 120]),
    (24_000, [8, 15, 30, 60, 120, 180]),
    (32_000, [10, 20, 40, 80, 160, 240]),
    (64_000, [20, 40, 80, 160, 320, 480]),
    (128_000, [40, 80, 160, 320, 640, 960]),
];

#[test]
fn packets_of_opus_at_a_constant_rate_are_as_large_as_those_of_libopus() {
    let Frames::Chosen(chosen) = Codec::OPUS.row().frames else { panic!("opus has a chosen rate") };
    for (bps, sizes) in LIBOPUS_SIZES {
        for (&frame, size) in chosen.times.iter().zip(sizes) {
            let coding = Coding { bit_rate: Rate::from_bps(bps), frame, ..Coding::usual(Codec::OPUS) };
            assert_eq!(coding.packet_size().get(), size, "{bps} bit/s, {frame}");
        }
    }
}

#[test]
fn fec_is_for_frames_with_silk_alone() {
    let coding = |codec, micros| Coding { frame: Duration::from_micros(micros), ..Coding::usual(codec) };
    let has = [2_500, 5_000, 10_000, 20_000].map(|us| coding(Codec::OPUS, us).can_have_fec());
    assert_eq!(has, [false, false, true, true]);
    assert!(!coding(Codec::G711, 20_000).can_have_fec());
}

#[test]
fn the_python_package_has_the_default_codec_and_says_which_always_conceal() {
    let calls = include_str!("../../../../python/talkpath/_calls.py");
    let parameter = format!("codec: Codec = \"{}\",", Codec::default().name());
    assert!(calls.contains(&parameter), "python/talkpath/_calls.py: `mos` takes {parameter}");
    for codec in Codec::ALL.iter().filter(|codec| codec.always_conceals()) {
        let says = format!("`{}` always conceals it", codec.name());
        assert!(calls.contains(&says), "python/talkpath/_calls.py: {says}");
    }
}

/// Ie and Bpl of ITU-T G.113 Appendix I, Table I.3.
#[test]
fn a_codec_that_always_conceals_has_one_impairment() {
    let bpl =
        |codec: Codec| [false, true].map(|is_concealed| codec.rated(is_concealed).unwrap().impairment.bpl);
    assert_eq!(bpl(Codec::G711), [4.3, 25.1]);
    assert_eq!(bpl(Codec::G729A), [19.0; 2]);
    let words = |codec: Codec| [false, true].map(|is_concealed| codec.concealment(is_concealed));
    assert_eq!(words(Codec::G711), ["none", "g711-appendix-i"]);
    assert_eq!(words(Codec::G729A), ["g729a"; 2]);
    assert_eq!(words(Codec::OPUS), ["opus"; 2]);
}
