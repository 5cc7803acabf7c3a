use super::*;

const FRAME: Bytes = Bytes::new(160);

fn stream_of(messages: u64) -> LegTap {
    let mut tap = LegTap::new();
    for seq in 0..messages {
        tap.on_due(seq, FRAME, Instant::from_millis(20 * seq));
        tap.on_sent_stream(seq, Instant::from_millis(20 * seq));
    }
    tap
}

#[test]
fn a_stream_message_leaves_with_its_first_byte_and_arrives_with_its_last() {
    let mut tap = stream_of(3);
    tap.on_wire_stream(0, 200, Instant::from_millis(1));
    tap.on_wire_stream(200, 480, Instant::from_millis(2));
    tap.on_wire_stream(0, 200, Instant::from_millis(3));
    assert_eq!(tap.on_read(Bytes::new(200), Instant::from_millis(9)), 0..1);
    assert_eq!(tap.on_read(Bytes::new(280), Instant::from_millis(10)), 1..3);
    let leg = tap.finish(Ending::Reliable);
    let wire: Vec<_> =
        leg.messages.iter().map(|row| (row.wire.map(Instant::as_nanos), row.transmissions)).collect();
    assert_eq!(wire, [(Some(1_000_000), 2), (Some(1_000_000), 2), (Some(2_000_000), 1)]);
    assert_eq!(leg.messages[1].received, Some(Instant::from_millis(10)));
}

#[test]
fn a_duplicate_never_hides_a_loss() {
    let mut tap = LegTap::new();
    for seq in 0..2 {
        tap.on_due(seq, FRAME, Instant::ZERO);
        tap.on_sent(seq, Instant::ZERO);
    }
    tap.on_received(0, Instant::from_millis(1));
    tap.on_received(0, Instant::from_millis(2));
    let leg = tap.finish(Ending::Unreliable { every_drop_known: false, is_queued: false });
    assert_eq!(leg.messages[0].copies, 2);
    assert_eq!(leg.messages[0].received, Some(Instant::from_millis(1)));
    assert_eq!(leg.messages[1].fate, Fate::Missing);
}

#[test]
fn what_is_still_under_way_at_the_end_is_unfinished() {
    let mut tap = LegTap::new();
    tap.on_due(0, FRAME, Instant::ZERO);
    tap.on_sent(0, Instant::ZERO);
    assert_eq!(
        tap.finish(Ending::Unreliable { every_drop_known: true, is_queued: false }).messages[0].fate,
        Fate::Unfinished
    );
}

#[test]
fn halves_that_are_joined_afterwards_give_the_record_of_a_tap_that_both_ends_share() {
    let read = |tap: &mut LegTap| {
        for (bytes, at) in [(200, 30), (280, 50), (160, 70)] {
            let _ = tap.on_read(Bytes::new(bytes), Instant::from_millis(at));
        }
    };
    let mut shared = stream_of(5);
    read(&mut shared);
    let mut reader = LegTap::reading_end(ReadMessages::OfSize(FRAME));
    assert_eq!(reader.until_next_message(), FRAME);
    read(&mut reader);
    assert_eq!((reader.begun_messages(), shared.begun_messages()), (4, 4));
    assert_eq!(reader.stream_message(2), shared.stream_message(2));
    let joined = stream_of(5).join(&reader);
    assert_eq!(joined.pending(), shared.pending());
    let (joined, shared) = (joined.finish(Ending::Reliable), shared.finish(Ending::Reliable));
    assert_eq!(joined.messages, shared.messages);
    assert_eq!((joined.arrivals, joined.reads), (shared.arrivals, shared.reads));
}

/// 50 messages as a writing end has them, of which each fourth is not sent, and one in four is large, as in a
/// video's groups of pictures.
fn of_varying_size() -> (LegTap, Vec<(u64, Bytes)>) {
    let size = |seq: u64| Bytes::new(if seq.is_multiple_of(4) { 1000 } else { 100 + seq });
    let mut writer = LegTap::new();
    let mut sent = Vec::new();
    for seq in 0..50 {
        writer.on_due(seq, size(seq), Instant::from_millis(seq));
        if seq % 4 == 3 {
            writer.on_not_open(seq);
        } else {
            writer.on_sent_stream(seq, Instant::from_millis(seq));
            sent.push((seq, size(seq)));
        }
    }
    (writer, sent)
}

#[test]
fn halves_of_a_stream_with_frames_are_joined_by_the_numbers_of_its_messages() {
    let (writer, sent) = of_varying_size();
    let mut shared = writer.clone();
    let mut reader = LegTap::reading_end(ReadMessages::Framed(Bytes::new(8)));
    let mut frames = sent.iter().copied().peekable();
    let (mut at, mut read, mut begins) = (Instant::from_millis(100), 0, 0);
    for bytes in [8, 992, 8, 1, 1300, 202, 5000, 700, 10, 1].into_iter().cycle().take(19) {
        at += talkpath_units::Duration::from_millis(1);
        read += bytes;
        // The channel tells of a frame with the read that has its last byte.
        while let Some((seq, size)) = frames.next_if(|_| begins + 8 <= read) {
            reader.on_frame(seq, size);
            begins += size.get();
        }
        let completed = reader.on_read(Bytes::new(bytes), at);
        assert_eq!(completed, shared.on_read(Bytes::new(bytes), at));
        for position in completed {
            assert_eq!(reader.stream_message(position), shared.stream_message(position), "{position}");
        }
    }
    assert!(reader.stream.len() < 12, "it keeps what the last read touched: {}", reader.stream.len());
    let numbers: Vec<u64> = reader.arrival_times().map(|(seq, _)| seq).collect();
    assert_eq!(numbers[..4], [0, 1, 2, 4]);
    let (joined, shared) = (writer.join(&reader).finish(Ending::Reliable), shared.finish(Ending::Reliable));
    assert_eq!(joined.messages, shared.messages);
    assert_eq!((joined.arrivals, joined.reads), (shared.arrivals, shared.reads));
    assert!(joined.messages.iter().filter(|row| row.fate == Fate::Delivered).count() > 20);
}

/// A slow receiver takes one message after the other out of the stream.
#[test]
fn a_reader_of_frames_asks_for_a_frame_and_then_for_the_rest_of_its_message() {
    let mut reader = LegTap::reading_end(ReadMessages::Framed(Bytes::new(8)));
    assert_eq!(reader.until_next_message(), Bytes::new(8));
    reader.on_frame(5, Bytes::new(100));
    assert_eq!(reader.on_read(Bytes::new(8), Instant::ZERO), 0..0);
    assert_eq!((reader.begun_messages(), reader.until_next_message()), (1, Bytes::new(92)));
    assert_eq!(reader.on_read(Bytes::new(92), Instant::ZERO), 0..1);
    assert_eq!(
        (reader.stream_message(0), reader.until_next_message()),
        (Some((5, Bytes::new(100))), Bytes::new(8))
    );
}

#[test]
fn a_reliable_message_that_a_later_one_overtook_is_not_missing() {
    let run = |ending, comes: &[u64]| {
        let mut tap = LegTap::new();
        for seq in 0..4 {
            tap.on_due(seq, FRAME, Instant::ZERO);
            tap.on_sent(seq, Instant::ZERO);
        }
        comes.iter().for_each(|&seq| tap.on_received(seq, Instant::from_millis(9)));
        let leg = tap.finish(ending);
        (leg.messages.iter().map(|row| row.fate).collect::<Vec<_>>(), leg.arrivals)
    };
    use Fate::{Delivered, Missing, Unfinished};
    let (fates, arrivals) = run(Ending::Reliable, &[3, 1]);
    assert_eq!((fates, arrivals), (vec![Unfinished, Delivered, Unfinished, Delivered], vec![3, 1]));
    let (fates, _) = run(Ending::Reliable, &[3, 1, 0, 2]);
    assert_eq!(fates, [Delivered; 4]);
    let nobody_knows = Ending::Unreliable { every_drop_known: false, is_queued: false };
    assert_eq!(run(nobody_knows, &[3, 1]).0, [Missing, Delivered, Missing, Delivered]);
}

#[test]
fn a_reading_end_may_report_anything_and_only_what_was_sent_arrives() {
    let mut writer = LegTap::new();
    for seq in 0..3 {
        writer.on_due(seq, FRAME, Instant::ZERO);
    }
    writer.on_sent(0, Instant::ZERO);
    writer.on_sent(1, Instant::ZERO);
    writer.on_refused(2);
    let mut reader = LegTap::reading_end(ReadMessages::Whole);
    for seq in [u64::MAX, 2, 7, 0] {
        reader.on_received(seq, Instant::from_millis(9));
    }
    reader.on_dropped(1, DropCause::SocketBuffer);
    let leg = writer.join(&reader).finish(Ending::Unreliable { every_drop_known: true, is_queued: false });
    assert_eq!(leg.arrivals, [0]);
    assert_eq!(leg.messages[0].received, Some(Instant::from_millis(9)));
    assert_eq!(leg.messages[1].drop_cause, Some(DropCause::SocketBuffer));
    assert_eq!(leg.messages[2].fate, Fate::Refused);
}

#[test]
fn what_never_left_its_senders_queue_is_unfinished_and_what_the_kernel_refused_is_missing() {
    let mut tap = LegTap::new();
    for seq in 0..4 {
        tap.on_due(seq, FRAME, Instant::ZERO);
        tap.on_sent(seq, Instant::ZERO);
    }
    tap.on_wire(0, Instant::ZERO);
    tap.on_unsent(1);
    tap.on_expired(2);
    let leg = tap.finish(Ending::Unreliable { every_drop_known: false, is_queued: true });
    let fates: Vec<_> = leg.messages.iter().map(|row| (row.fate, row.drop_cause)).collect();
    use Fate::{Expired, Missing, Unfinished};
    assert_eq!(fates, [(Missing, None), (Missing, None), (Expired, None), (Unfinished, None)]);
}

#[test]
fn a_message_that_is_given_back_was_refused_and_never_sent() {
    let mut tap = LegTap::new();
    tap.on_due(0, FRAME, Instant::ZERO);
    tap.on_sent(0, Instant::ZERO);
    tap.on_given_back(0, Fate::Refused);
    assert_eq!(tap.pending(), 0);
    let row = tap.finish(Ending::Unreliable { every_drop_known: false, is_queued: false }).messages[0];
    assert_eq!((row.fate, row.sent), (Fate::Refused, None));
}

#[test]
fn a_message_is_settled_once_whatever_comes_after() {
    let mut tap = LegTap::new();
    for seq in 0..3 {
        tap.on_due(seq, FRAME, Instant::ZERO);
        tap.on_sent(seq, Instant::ZERO);
    }
    assert_eq!(tap.pending(), 3);
    // A copy of 0 is dropped and another comes through; 1 is refused, and a stranger answers it all the
    // same.
    tap.on_dropped(0, DropCause::Queue);
    tap.on_received(0, Instant::from_millis(1));
    tap.on_dropped(0, DropCause::Loss);
    tap.on_refused(1);
    tap.on_refused(1);
    tap.on_dropped(1, DropCause::Loss);
    assert_eq!(tap.pending(), 1);
    tap.on_received(1, Instant::from_millis(2));
    assert_eq!(tap.pending(), 1);
    let leg = tap.finish(Ending::Unreliable { every_drop_known: true, is_queued: false });
    assert_eq!((leg.messages[0].fate, leg.messages[0].drop_cause), (Fate::Delivered, None));
    assert_eq!(leg.messages[2].fate, Fate::Unfinished);
}
