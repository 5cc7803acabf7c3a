use talkpath_model::{Silence, VoiceHeaders};

use super::*;

const FRAME: Duration = Duration::from_millis(20);

fn call(sender: Option<VoiceSender>) -> VoiceConfig {
    VoiceConfig {
        coding: Default::default(),
        ptime: FRAME,
        size: Bytes::new(160),
        headers: VoiceHeaders::default(),
        sender,
    }
}

fn voice(sender: Option<VoiceSender>, stop: Instant) -> Voice {
    Voice::new(&call(sender), Seed::new(1), stop)
}

const SENDER: VoiceSender =
    VoiceSender { headers: Bytes::ZERO, spread: SizeSpread::Constant, silence: None, red: 0, copies: 1 };

/// All messages of a call that opens at zero.
fn messages(sender: VoiceSender, seconds: u64) -> Vec<Message> {
    let mut voice = voice(Some(sender), Instant::from_secs(seconds));
    voice.open(Instant::ZERO);
    let mut messages = Vec::new();
    while let Some(now) = voice.poll_timeout() {
        messages.extend(voice.poll_message(Bytes::ZERO, now));
    }
    assert!(messages.iter().zip(0..).all(|(message, seq)| message.seq == seq));
    messages
}

#[test]
fn a_call_of_one_second_has_fifty_frames_on_the_codecs_clock() {
    let open = Instant::from_millis(37);
    let mut voice = voice(None, Instant::from_millis(1037));
    assert_eq!(voice.poll_message(Bytes::MAX, open), None, "not open yet");
    assert!(!voice.is_finished());
    voice.open(open);
    let mut dues = Vec::new();
    while let Some(now) = voice.poll_timeout() {
        while let Some(message) = voice.poll_message(Bytes::ZERO, now) {
            assert_eq!(message.size, Bytes::new(160));
            assert_eq!(message.seq, dues.len() as u64);
            dues.push(message.due);
        }
    }
    let expected: Vec<_> = (0..50).map(|k| open + FRAME * k).collect();
    assert_eq!(dues, expected);
    assert!(voice.is_finished());
}

#[test]
fn a_late_poll_gets_every_overdue_frame_with_its_own_due_time() {
    let mut voice = voice(None, Instant::from_secs(1));
    voice.open(Instant::ZERO);
    let late = Instant::from_millis(45);
    let dues: Vec<_> = core::iter::from_fn(|| voice.poll_message(Bytes::ZERO, late)).map(|m| m.due).collect();
    assert_eq!(dues, [0, 20, 40].map(Instant::from_millis));
    assert_eq!(voice.poll_timeout(), Some(Instant::from_millis(60)));
}

#[test]
fn copies_are_due_together_and_have_numbers_of_their_own() {
    let messages = messages(VoiceSender { copies: 2, ..SENDER }, 1);
    assert_eq!(messages.len(), 100);
    for (number, message) in (0..).zip(&messages) {
        assert_eq!(message.due, Instant::ZERO + FRAME * (number / 2));
    }
}

/// RFC 2198: 4 B and the earlier payload, then 1 B and the payload.
#[test]
fn each_packet_with_red_repeats_the_speech_of_the_packets_before_it() {
    let sender = VoiceSender { red: 2, headers: Bytes::new(12), ..SENDER };
    let sizes: Vec<_> = messages(sender, 1).iter().map(|message| message.size.get()).collect();
    assert_eq!(sizes[..4], [161, 313, 465, 465]);
    let voice = VoiceConfig { size: Bytes::new(160), ..call(Some(sender)) };
    assert!(sizes.iter().all(|size| voice.sizes().allows(Bytes::new(*size))));
}

/// ITU-T P.59, Table 1: 1.004 s of talk and 1.587 s of pause, so 38.7 % of the time is talk. Rounding up to
/// whole packets adds half a packet to each.
#[test]
fn a_sender_that_suppresses_silence_sends_speech_for_two_fifths_of_the_time() {
    let silence = Silence { descriptor: Some(Bytes::new(2)), every: None };
    let messages = messages(VoiceSender { silence: Some(silence), ..SENDER }, 20_000);
    let speech = messages.iter().filter(|message| message.size == Bytes::new(160)).count();
    let descriptions = messages.len() - speech;
    let share = speech as f64 / (20_000.0 * 50.0);
    assert!((share - 1.014 / (1.014 + 1.597)).abs() < 0.01, "{share}");
    // One description for each talkspurt, and a talkspurt each 2.6 s.
    assert!((descriptions as f64 - 20_000.0 / 2.611).abs() < 300.0, "{descriptions}");
    for pair in messages.windows(2) {
        let step = pair[1].due.since(pair[0].due);
        assert_eq!(step.as_nanos() % FRAME.as_nanos(), 0);
        let begins_silence = pair[1].size == Bytes::new(2);
        assert!(!begins_silence || step == FRAME, "the description follows the talkspurt at once");
    }
}

/// RFC 6716 §2.1.9: in silence one frame every 400 ms.
#[test]
fn opus_sends_a_frame_each_400_ms_of_silence() {
    let silence = Silence { descriptor: None, every: Some(Duration::from_millis(400)) };
    let messages = messages(VoiceSender { silence: Some(silence), ..SENDER }, 2_000);
    let steps: Vec<_> = messages.windows(2).map(|pair| pair[1].due.since(pair[0].due).as_millis()).collect();
    // The first frame of a silence is left out, so the next one comes 420 ms after the last speech.
    assert!(steps.iter().all(|step| *step <= 420), "{:?}", steps.iter().max());
    assert!(steps.iter().filter(|step| **step == 400).count() > 500);
    assert!(messages.iter().all(|message| message.size == Bytes::new(160)));
}

#[test]
fn drawn_sizes_and_talkspurts_repeat_with_the_seed_and_lie_within_the_bounds() {
    let silence = Silence { descriptor: None, every: None };
    let sender =
        VoiceSender { spread: SizeSpread::OpusSpeech, silence: Some(silence), red: 1, copies: 2, ..SENDER };
    let of = |seed| {
        let mut voice = Voice::new(&call(Some(sender)), Seed::new(seed), Instant::from_secs(60));
        voice.open(Instant::ZERO);
        core::iter::from_fn(|| voice.poll_message(Bytes::ZERO, Instant::from_secs(60))).collect::<Vec<_>>()
    };
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
    let sizes = call(Some(sender)).sizes();
    assert!(of(7).iter().all(|message| sizes.allows(message.size)));
}
