use talkpath_measure::summary::Direction;
use talkpath_measure::{
    CallTerms, Carriage, Codec, Coding, Fate, FlowInfo, FlowRecord, MessageRecord, PlayoutRule,
};
use talkpath_units::{Bytes, Duration, Instant};

use super::*;

const FRAME: Duration = Duration::from_millis(20);
const FIXED: PlayoutRule = PlayoutRule::Fixed(Duration::from_millis(60));
const LIMITS: Limits = Limits { seconds: 600, law: Law::Mu };

fn terms(playout: PlayoutRule) -> CallTerms {
    CallTerms {
        codec: Codec::G711,
        rated: None,
        frame: FRAME,
        carriage: Carriage { copies: 1, earlier: 0 },
        playout,
        is_concealed: true,
        others: false,
    }
}

/// What the receiver makes of frames with these delays in ms.
fn hearing(terms: CallTerms, delays: impl IntoIterator<Item = Option<u64>>) -> Hearing {
    let mut flow = FlowRecord::new(FlowInfo::on_a_clock("call"));
    flow.info.terms.call = Some(terms);
    flow.forward.messages = (0..).zip(delays).map(|(seq, delay)| message(seq, delay)).collect();
    Hearing::of(&flow, &(Instant::ZERO..Instant::MAX), Some(Direction::Forward)).unwrap()
}

fn message(seq: u64, delay: Option<u64>) -> MessageRecord {
    let due = Instant::ZERO + FRAME * seq;
    MessageRecord {
        seq,
        size: Bytes::new(160),
        due,
        sent: Some(due),
        wire: Some(due),
        received: delay.map(|ms| due + Duration::from_millis(ms)),
        fate: if delay.is_some() { Fate::Delivered } else { Fate::Missing },
        drop_cause: None,
        copies: u32::from(delay.is_some()),
        transmissions: 1,
    }
}

fn speech() -> Recording {
    Recording::read(SPEECH, 600).unwrap()
}

fn sound(hearing: &Hearing) -> Sound {
    render(hearing, &Coding::usual(Codec::G711), Speaker::Reads(&speech()), LIMITS).unwrap()
}

/// The recording through the coder and the decoder, as often as it is needed.
fn decoded(samples: usize) -> Vec<i16> {
    let speech = speech().at_rate(8_000).samples;
    let coded = speech.iter().map(|sample| Law::Mu.decode(Law::Mu.encode(sample.round() as i16)));
    coded.collect::<Vec<_>>().into_iter().cycle().take(samples).collect()
}

/// Delays of 30 ms and up to 60 ms more, with one frame in twenty lost.
fn uneven(count: u64) -> Vec<Option<u64>> {
    let mut state = 7_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..count).map(|_| (draw() % 20 != 0).then(|| 30 + draw() % 60)).collect()
}

#[test]
fn the_recording_that_ships_has_six_seconds_at_16_khz() {
    let speech = speech();
    assert_eq!((speech.rate, speech.samples.len()), (16_000, 96_800));
    assert!(SPEECH.len() < 200_000);
}

#[test]
fn without_loss_the_sound_is_the_decoders_output_to_the_sample() {
    let sound = sound(&hearing(terms(FIXED), vec![Some(30); 500]));
    assert_eq!(sound.rate, 8_000);
    assert_eq!(sound.samples, decoded(80_000));
    assert_eq!(sound.spans, [Span { heard: Heard::Decoded, from: 0, to: 80_000 }]);
    assert_eq!(sound.concealed_share(), Some(0.0));
}

#[test]
fn the_same_call_makes_the_same_sound() {
    let hearing = hearing(terms(PlayoutRule::Adaptive), uneven(1_000));
    let bytes = || {
        let sound = sound(&hearing);
        wav::write(sound.rate, &sound.samples).unwrap()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn lost_frames_are_made_up_where_they_are_missing_and_the_rest_is_as_it_was() {
    let delays = (0..500).map(|seq| (!matches!(seq, 100 | 200..=202)).then_some(30));
    let sound = sound(&hearing(terms(FIXED), delays));
    let concealed: Vec<Span> =
        sound.spans.iter().filter(|span| span.heard == Heard::Concealed).copied().collect();
    let span = |from: usize, to: usize| Span { heard: Heard::Concealed, from: from * 160, to: to * 160 };
    assert_eq!(concealed, [span(100, 101), span(200, 203)]);
    let expected = decoded(80_000);
    // Concealment changes a quarter of a period before a gap, and overlaps with 10 ms after it.
    for range in [0..15_970, 16_240..31_970, 32_560..80_000] {
        assert!(sound.samples[range.clone()] == expected[range.clone()], "{range:?}");
    }
    let loudest = |range: core::ops::Range<usize>| sound.samples[range].iter().map(|it| it.abs()).max();
    assert!(loudest(16_000..16_160) > Some(200), "speech is made up");
    assert_eq!(sound.concealed_share(), Some(4.0 / 500.0));
}

/// The packets of a speaker who reads the recording once.
fn packets() -> Vec<Box<[u8]>> {
    let speech = speech().at_rate(8_000).samples;
    let codes: Vec<u8> = speech.iter().map(|sample| Law::Mu.encode(sample.round() as i16)).collect();
    codes.chunks_exact(160).map(Into::into).collect()
}

#[test]
fn packets_that_came_are_heard_as_they_came_and_one_without_speech_is_silent() {
    let delays = (0..302).map(|seq| (seq != 100).then_some(30));
    let hearing = hearing(terms(FIXED), delays);
    let of_packets = |packets: &[Box<[u8]>]| {
        render(&hearing, &Coding::usual(Codec::G711), Speaker::Sent(packets), LIMITS).unwrap()
    };
    let mut packets = packets();
    let heard = of_packets(&packets);
    assert_eq!(heard, sound(&hearing), "the recording is the same speech");
    packets[50] = Box::default();
    packets[51] = packets[51][..80].into();
    let other = of_packets(&packets);
    assert!(other.samples[8_000..8_160].iter().chain(&other.samples[8_240..8_320]).all(|it| *it == 0));
    assert_eq!(other.samples[8_320..15_000], heard.samples[8_320..15_000]);
    assert_eq!(other.samples.len(), heard.samples.len());
}

#[test]
fn a_column_of_a_drawing_has_the_worst_of_what_is_heard_in_it() {
    let delays = (0..500).map(|seq| (!matches!(seq, 100 | 200..=202)).then_some(30));
    let sound = sound(&hearing(terms(FIXED), delays));
    let columns = sound.columns(100);
    let made_up = (0..).zip(&columns).filter(|(_, column)| column.heard == Heard::Concealed);
    assert_eq!(columns.len(), 100);
    assert_eq!(made_up.map(|(at, _)| at).collect::<Vec<i32>>(), [20, 40]);
    assert_eq!(columns.iter().map(|column| column.high).max(), sound.samples.iter().max().copied());
}

#[test]
fn a_receiver_without_concealment_plays_silence() {
    let silent = CallTerms { is_concealed: false, ..terms(FIXED) };
    let sound = sound(&hearing(silent, (0..100).map(|seq| (seq != 50).then_some(30))));
    assert!(sound.samples[8_000..8_160].iter().all(|sample| *sample == 0));
    assert_eq!(sound.samples[8_160..], decoded(16_000)[8_160..]);
}

/// The receiver of browsers starts with a target of 80 ms, so its first delay grows; the fastest frames come
/// after 30 ms.
#[test]
fn the_sound_is_as_long_as_the_receiver_plays_and_conceals_as_much() {
    use talkpath_measure::metrics::adaptive::Step;
    let hearing = hearing(terms(PlayoutRule::Adaptive), uneven(3_000));
    let sound = sound(&hearing);
    let sum = |of: fn(&Step) -> i64| hearing.steps.iter().map(of).sum::<i64>() / 6;
    let played = sum(|step| match *step {
        Step::Output { samples } | Step::Silence { samples } => samples,
        _ => 0,
    });
    let concealed = sum(|step| if let Step::Conceal { samples } = *step { samples } else { 0 });
    assert!(concealed > 8_000, "{concealed}: the test has much to conceal");
    assert_eq!(sound.samples.len() as i64, played);
    assert_eq!(sound.count(Heard::Concealed) as i64, concealed);
    assert!(sound.count(Heard::Stretched) > 0);
}

#[test]
fn a_silence_that_was_not_sent_is_heard_as_long_as_it_was() {
    for playout in [FIXED, PlayoutRule::Adaptive] {
        let mut flow = FlowRecord::new(FlowInfo::on_a_clock("call"));
        flow.info.terms.call = Some(terms(playout));
        flow.forward.messages = (0..300)
            .map(|seq| {
                let frame = message(seq, (seq != 200).then_some(30));
                let later = |at: Instant| if seq < 100 { at } else { at + Duration::from_secs(3) };
                MessageRecord { due: later(frame.due), received: frame.received.map(later), ..frame }
            })
            .collect();
        let heard = Hearing::of(&flow, &(Instant::ZERO..Instant::MAX), Some(Direction::Forward)).unwrap();
        let with_silence = sound(&heard);
        let without = sound(&Hearing { silences: Vec::new(), ..heard });
        let pause = with_silence.spans.iter().find(|span| span.heard == Heard::Pause).unwrap();
        assert_eq!(pause.to - pause.from, 24_000);
        assert!((16_000..16_800).contains(&pause.from), "{playout:?}: {pause:?}");
        assert!(with_silence.samples[pause.from..pause.to].iter().all(|sample| *sample == 0));
        let mut samples = with_silence.samples.clone();
        samples.drain(pause.from..pause.to);
        assert_eq!(samples.len(), without.samples.len());
        assert_eq!(samples[..16_000], without.samples[..16_000]);
        // It is as if it were not there, for the receiver and for its figures.
        assert_eq!(with_silence.concealed_share(), without.concealed_share());
        assert_eq!(with_silence.count(Heard::Concealed), without.count(Heard::Concealed));
    }
}

#[test]
fn a_long_call_is_cut_where_the_limit_is() {
    let hearing = hearing(terms(FIXED), vec![Some(30); 500]);
    let limits = Limits { seconds: 3, ..LIMITS };
    let speaker = Speaker::Reads(&speech());
    let sound = render(&hearing, &Coding::usual(Codec::G711), speaker, limits).unwrap();
    assert_eq!((sound.samples.len(), sound.is_cut), (24_000, true));
}

#[test]
fn a_codec_without_a_coder_is_refused_by_name() {
    let hearing = hearing(terms(FIXED), vec![Some(30); 5]);
    let g729a = Coding::usual(Codec::G729A);
    let why = render(&hearing, &g729a, Speaker::Reads(&speech()), LIMITS).unwrap_err().to_string();
    assert!(why.starts_with("it is in g729a, and this program has a coder for g711"), "{why}");
}

#[cfg(feature = "opus")]
mod opus {
    use talkpath_measure::Bandwidth;

    use super::*;

    fn coding(bandwidth: Bandwidth, has_fec: bool) -> Coding {
        Coding { bandwidth, has_fec, ..Coding::usual(Codec::OPUS) }
    }

    fn sound(hearing: &Hearing, coding: &Coding) -> Sound {
        render(hearing, coding, Speaker::Reads(&speech()), LIMITS).unwrap()
    }

    fn opus(carriage: Carriage) -> CallTerms {
        CallTerms { codec: Codec::OPUS, carriage, ..terms(FIXED) }
    }

    const ONCE: Carriage = Carriage { copies: 1, earlier: 0 };

    /// The share of the energy of `left` that differs from `right`.
    fn difference(left: &[i16], right: &[i16]) -> f64 {
        let energy = |samples: &mut dyn Iterator<Item = f64>| samples.map(|it| it * it).sum::<f64>();
        let differences = left.iter().zip(right).map(|(a, b)| f64::from(*a) - f64::from(*b));
        energy(&mut { differences }) / energy(&mut left.iter().map(|it| f64::from(*it))).max(1.0)
    }

    #[test]
    fn speech_through_opus_is_speech_at_each_bandwidth() {
        for (bandwidth, rate) in [
            (Bandwidth::Narrow, 8_000),
            (Bandwidth::Medium, 12_000),
            (Bandwidth::Wide, 16_000),
            (Bandwidth::SuperWide, 24_000),
            (Bandwidth::Full, 48_000),
        ] {
            let heard = hearing(opus(ONCE), vec![Some(30); 300]);
            let sound = sound(&heard, &coding(bandwidth, false));
            assert_eq!((sound.rate, sound.samples.len()), (rate, 6 * rate as usize));
            let original = speech().at_rate(rate).samples;
            // The coder delays speech by 6.5 ms.
            let delay = rate as usize * 65 / 10_000;
            let original: Vec<i16> = original.iter().map(|sample| sample.round() as i16).collect();
            let length = original.len().min(sound.samples.len()) - delay;
            // SILK codes how speech sounds and not its waveform, and removes the lowest frequencies. Speech
            // of another moment differs by twice the energy.
            let found = difference(&original[..length], &sound.samples[delay..]);
            assert!(found < 0.5, "{bandwidth:?}: {found}");
            assert!(difference(&original[4_000..length], &sound.samples[delay..]) > 1.5, "{bandwidth:?}");
        }
    }

    #[test]
    fn the_same_call_in_opus_makes_the_same_sound() {
        let heard = hearing(CallTerms { playout: PlayoutRule::Adaptive, ..opus(ONCE) }, uneven(500));
        let coding = coding(Bandwidth::Wide, false);
        assert_eq!(sound(&heard, &coding), sound(&heard, &coding));
    }

    #[test]
    fn packets_that_came_are_decoded_as_those_of_the_recording() {
        let (coding, speech) = (coding(Bandwidth::SuperWide, false), speech().at_rate(24_000));
        let packets = crate::opus::encode(&coding, &speech, 480, 300).unwrap();
        let packets: Vec<Box<[u8]>> = packets.into_iter().map(Into::into).collect();
        let heard = hearing(opus(ONCE), (0..300).map(|seq| (seq % 10 != 5).then_some(30)));
        let of_packets = render(&heard, &coding, Speaker::Sent(&packets), LIMITS).unwrap();
        assert_eq!(of_packets, sound(&heard, &coding));
    }

    #[test]
    fn a_frame_that_came_by_fec_is_nearer_to_the_speech_than_one_that_is_made_up() {
        let delays = || (0..300).map(|seq| (seq % 10 != 5).then_some(30));
        let with_fec = hearing(opus(Carriage { copies: 1, earlier: 1 }), delays());
        assert_eq!(
            with_fec.steps.iter().filter(|step| format!("{step:?}").starts_with("Conceal")).count(),
            0
        );
        let coding = coding(Bandwidth::Wide, true);
        let whole = sound(&hearing(opus(ONCE), vec![Some(30); 300]), &coding);
        let (fec, concealed) = (sound(&with_fec, &coding), sound(&hearing(opus(ONCE), delays()), &coding));
        let (fec, concealed) =
            (difference(&whole.samples, &fec.samples), difference(&whole.samples, &concealed.samples));
        assert!(fec < concealed / 2.0, "{fec} and {concealed}");
    }

    #[test]
    fn a_captured_packet_that_was_lost_is_decoded_from_the_packet_behind_it() {
        let (coding, speech) = (coding(Bandwidth::Wide, true), speech().at_rate(16_000));
        let packets = crate::opus::encode(&coding, &speech, 320, 300).unwrap();
        let packets: Vec<Box<[u8]>> = packets.into_iter().map(Into::into).collect();
        let mut flow = FlowRecord::new(FlowInfo::on_a_clock("call"));
        flow.info.terms.call = Some(opus(ONCE));
        let is_lost = |seq: u64| seq % 10 == 5;
        flow.forward.messages = (0..300).map(|seq| message(seq, (!is_lost(seq)).then_some(30))).collect();
        let render = |flow: &FlowRecord| {
            let heard = Hearing::of(flow, &(Instant::ZERO..Instant::MAX), Some(Direction::Forward)).unwrap();
            render(&heard, &coding, Speaker::Sent(&packets), LIMITS).unwrap()
        };
        let concealed = render(&flow);
        let later = |seq: u64| (seq, message(seq + 1, Some(30)).received.unwrap());
        flow.forward.brought_later = (0..300).filter(|seq| is_lost(*seq)).map(later).collect();
        let repaired = render(&flow);
        assert!((concealed.concealed_share(), repaired.concealed_share()) == (Some(0.1), Some(0.0)));
        let whole = sound(&hearing(opus(ONCE), vec![Some(30); 300]), &coding);
        let (repaired, concealed) =
            (difference(&whole.samples, &repaired.samples), difference(&whole.samples, &concealed.samples));
        assert!(repaired < concealed / 2.0, "{repaired} and {concealed}");
    }
}
