use proptest::prelude::*;

use super::*;

const MS: i64 = NANOS_PER_MS;

/// Packets of 20 ms at 8 kHz with these delays in ms. `None` is a lost packet.
fn arrivals(delays: &[Option<i64>]) -> Vec<Arrival> {
    let mut arrivals: Vec<Arrival> = (0..)
        .zip(delays)
        .filter_map(|(number, delay)| {
            let at_ns = (i64::try_from(number).unwrap() * 20 + (*delay)?) * MS;
            Some(Arrival { sequence: number, timestamp: 160 * number as i64, samples: 160, at_ns })
        })
        .collect();
    arrivals.sort_by_key(|arrival| (arrival.at_ns, arrival.sequence));
    arrivals
}

fn played(delays: &[Option<i64>]) -> Playback {
    play(8_000, &arrivals(delays))
}

/// The delay of each block in ms. A block without speech has none.
fn delays_ms(playback: &Playback) -> Vec<i64> {
    playback.blocks.iter().filter_map(|block| block.delay_ns).map(|ns| ns / MS).collect()
}

#[test]
fn an_even_path_is_played_whole_and_its_delay_grows_until_the_first_target() {
    let playback = played(&[Some(30); 1_000]);
    let counts = playback.counts;
    assert_eq!((counts.decoded_packets, counts.holes, counts.discarded, counts.concealed), (1_000, 0, 0, 0));
    assert_eq!((playback.targets_ms[0], playback.first_target_ms), (START_TARGET_MS, Some(20)));
    assert!(playback.targets_ms[2..].iter().all(|target| *target == 20));
    // The first packet is played after half a block. The target is 80 ms in the first half second, so speech
    // is repeated nine times. Then it is 20 ms, and speech is removed until the delay is below 20 + 20 ms.
    let delays = delays_ms(&playback);
    assert_eq!((delays[0], counts.inserted), (35, 9 * 5 * 8));
    assert!(delays[200..].iter().all(|delay| (30 + 20..30 + 20 + 20 + 5).contains(delay)), "{delays:?}");
}

#[test]
fn a_lost_packet_is_concealed_for_as_long_as_it_would_have_lasted() {
    let mut delays = [Some(30); 500];
    delays[250] = None;
    let playback = played(&delays);
    let even = played(&[Some(30); 500]);
    assert_eq!(
        (playback.counts.concealed, playback.counts.holes, playback.counts.concealments),
        (160, 160, 1)
    );
    // The join after the hole removes half a millisecond.
    let removed = playback.counts.removed - even.counts.removed;
    assert_eq!((removed, delays_ms(&playback).last()), (4, Some(&59)), "{:?}", delays_ms(&even).last());
}

#[test]
fn a_late_packet_is_played_and_the_delay_grows_by_what_was_concealed() {
    let mut delays = [Some(30); 500];
    // 200 ms of the path stand still, and ten packets come at once.
    for (behind, delay) in delays[250..260].iter_mut().enumerate() {
        *delay = Some(230 - 20 * behind as i64);
    }
    let playback = played(&delays);
    let counts = playback.counts;
    assert_eq!((counts.decoded_packets, counts.discarded, counts.holes), (500, 0, 0));
    assert!((140 * 8..=200 * 8).contains(&counts.concealed), "{counts:?}");
    assert!(counts.late_packets >= 7, "{counts:?}");
    let delays = delays_ms(&playback);
    let largest = *delays[200..].iter().max().unwrap();
    assert!((200..=260).contains(&largest), "{largest}");
    // The target covers the pause at first, because it is among the first half seconds.
    assert!(playback.targets_ms.iter().max() >= Some(&200), "{:?}", playback.targets_ms);
}

#[test]
fn a_target_that_falls_shrinks_the_delay_by_83_ms_in_a_second() {
    // For 20 s the path stands still for 190 ms in every half second, and then no more.
    let delay = |number: i64| if number < 1_000 { (220 - 20 * (number % 25)).max(30) } else { 30 };
    let playback = played(&(0..8_000).map(|number| Some(delay(number))).collect::<Vec<_>>());
    assert_eq!(playback.counts.decoded_packets, 8_000);
    assert_eq!((playback.targets_ms[20], playback.targets_ms.last()), (200, Some(&20)));
    let delays = delays_ms(&playback);
    assert!((200..=290).contains(&delays[1_500]), "{}", delays[1_500]);
    assert!(*delays.last().unwrap() < 30 + 40);
    // From one second to the next, once the delay is below four times the upper limit of 40 ms.
    for pair in delays[2_000..].windows(101).filter(|pair| pair[0] < 30 + 4 * 40) {
        assert!(pair[0] - pair[100] <= 5 * 17, "{} {}", pair[0], pair[100]);
    }
}

#[test]
fn a_reordered_packet_within_the_target_is_played_in_order() {
    let mut delays = [Some(30); 500];
    for number in (100..500).step_by(10) {
        delays[number] = Some(55);
    }
    let playback = played(&delays);
    assert_eq!((playback.counts.decoded_packets, playback.counts.discarded), (500, 0));
}

#[test]
fn a_full_buffer_drops_what_it_has_and_begins_anew() {
    // Nothing comes for 6 s, and then 300 packets at once.
    let mut delays = [Some(30); 600];
    for (behind, delay) in delays[100..400].iter_mut().enumerate() {
        *delay = Some(6_030 - 20 * behind as i64);
    }
    let counts = played(&delays).counts;
    assert_eq!(counts.discarded_packets, 200);
    assert_eq!((counts.holes, counts.decoded), (200 * 160, 400 * 160));
    assert_eq!(counts.skipped, 0, "all of it was concealed while nothing came");
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    #[test]
    fn the_law_in_samples_holds(
        delays in proptest::collection::vec(proptest::option::weighted(0.9, 0_i64..400), 1..600),
        stall in (0_usize..600, 0_i64..5_000),
    ) {
        let mut delays = delays;
        // The first packet is the first of the stream.
        delays[0] = Some(0);
        let (stall_at, stall_ms) = stall;
        for (number, delay) in delays.iter_mut().enumerate().skip(1) {
            let behind = (number as i64 - stall_at as i64) * 20;
            if let Some(delay) = delay && (0..stall_ms).contains(&behind) {
                *delay = (*delay).max(stall_ms - behind);
            }
        }
        let arrivals = arrivals(&delays);
        let last = arrivals.iter().map(|arrival| arrival.sequence).max().unwrap();
        let playback = play(8_000, &arrivals);
        let counts = playback.counts;
        prop_assert_eq!(counts.output, counts.decoded - counts.removed + counts.inserted + counts.concealed);
        let lost = delays[..=usize::try_from(last).unwrap()].iter().filter(|delay| delay.is_none()).count() as i64;
        let due = 160 * (i64::try_from(last).unwrap() + 1);
        prop_assert_eq!(due, counts.decoded + 160 * lost + counts.discarded);
        prop_assert_eq!(counts.holes, 160 * lost + counts.discarded);
        prop_assert_eq!(counts.decoded_packets + counts.discarded_packets, arrivals.len() as u64);
        // The blocks say the same.
        let sum = |part: fn(&Block) -> i64| playback.blocks.iter().map(part).sum::<i64>();
        prop_assert_eq!(sum(|block| block.concealed), counts.concealed);
        prop_assert_eq!(sum(|block| block.decoded + block.concealed), counts.output);
        prop_assert_eq!(sum(|block| block.skipped), counts.skipped);
        prop_assert!(playback.blocks.iter().rev().skip(4).all(|block| block.decoded + block.concealed == 80));
        prop_assert!(counts.skipped <= counts.holes && counts.late_packets <= counts.decoded_packets);
    }

    #[test]
    fn no_sample_is_played_before_its_packet_came(
        delays in proptest::collection::vec(0_i64..400, 1..300),
    ) {
        let playback = played(&delays.iter().copied().map(Some).collect::<Vec<_>>());
        let least = *delays.iter().min().unwrap();
        prop_assert!(delays_ms(&playback).iter().all(|delay| *delay >= least));
    }
}
