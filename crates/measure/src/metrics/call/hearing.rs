//! What the receiver of a call did, step by step, so that somebody else can make the sound of it.
//!
//! The receiver is the one with which the call is rated (`listener.rs`), and it is given the same frames.

use core::ops::Range;

use talkpath_units::{Instant, SignedDuration};

use super::listener::{OwnReceiver, SAMPLE_RATE};
use super::{Clocks, delay_of};
use crate::metrics::adaptive::Step;
use crate::metrics::reassembly::{ArrivedFrame, Reassembly};
use crate::metrics::trip::round_trip;
use crate::summary::Direction;
use crate::{CallTerms, FlowRecord, MessageRecord};

/// What the receiver of one direction of a call did.
#[derive(Clone, Debug, PartialEq)]
pub struct Hearing {
    /// The terms of the call.
    pub terms: CallTerms,
    /// The number of samples in a second, by which all numbers of samples here count.
    pub sample_rate: u32,
    /// The number of samples in a frame. The frame with the number n begins at n times as many samples.
    pub frame: i64,
    /// For each frame that was due, whether it came in a packet of its own. A frame that did not may still
    /// have come in a later packet, by RED or in-band FEC.
    pub came_itself: Vec<bool>,
    /// The silences of the speaker that were not sent: the number of the frame after each, and its length in
    /// samples. The receiver's steps leave them out.
    pub silences: Vec<(usize, i64)>,
    /// What the receiver did, in the order of time.
    pub steps: Vec<Step>,
}

impl Hearing {
    /// Gives the frames of one direction of a call to its receiver. Only frames that are due within `window`
    /// count. `direction` is the direction to listen to: `None` means half of the round trip, if the clocks
    /// of the two ends do not agree. Returns `None` if the flow is not a call, if it has no such direction,
    /// or if it is not known which frames arrived.
    pub fn of(flow: &FlowRecord, window: &Range<Instant>, direction: Option<Direction>) -> Option<Self> {
        let terms = flow.info.terms.call?;
        if !flow.end_is_known() {
            return None;
        }
        let mut listener = Recorder::new(terms);
        match (direction, &flow.echo) {
            (Some(Direction::Forward), _) => {
                let frames = flow.forward.messages.iter().filter(|frame| window.contains(&frame.due));
                frames.for_each(|frame| {
                    let with_speech = flow.forward.with_speech(frame);
                    listener.add(frame, delay_of(&with_speech));
                    if with_speech.received != frame.received {
                        listener.came_in_another_packet();
                    }
                });
            }
            (Some(Direction::Return), None) => return None,
            (direction, echo) => {
                let mut echoes = echo.iter().flat_map(|echo| &echo.messages).peekable();
                for frame in flow.forward.messages.iter().filter(|frame| window.contains(&frame.due)) {
                    while echoes.next_if(|echo| echo.seq < frame.seq).is_some() {}
                    let echo = echoes.next_if(|echo| echo.seq == frame.seq);
                    match (direction, echo) {
                        (Some(_), Some(echo)) => listener.add(echo, delay_of(echo)),
                        // A frame that was not written back was never due on the way back.
                        (Some(_), None) => {}
                        (None, echo) => {
                            let half =
                                |delay: SignedDuration| SignedDuration::from_nanos(delay.as_nanos() / 2);
                            listener.add(frame, round_trip(frame, echo).delay().map(half));
                        }
                    }
                }
            }
        }
        Some(listener.finish())
    }
}

/// Gives frames to a receiver, and keeps what it does.
struct Recorder {
    terms: CallTerms,
    reassembly: Reassembly,
    receiver: OwnReceiver,
    came_itself: Vec<bool>,
    silences: Vec<(usize, i64)>,
    /// When the newest frame was due.
    newest_due: Option<Instant>,
    /// The number of packets that were added of the newest frame.
    copies: u8,
}

impl Recorder {
    fn new(terms: CallTerms) -> Self {
        let mut receiver = OwnReceiver::new(&terms, Clocks::Trusted);
        receiver.keep_steps();
        let reassembly = Reassembly::new(terms.carriage, terms.frame);
        Self {
            terms,
            reassembly,
            receiver,
            came_itself: Vec::new(),
            silences: Vec::new(),
            newest_due: None,
            copies: 0,
        }
    }

    fn add(&mut self, packet: &MessageRecord, delay: Option<SignedDuration>) {
        if self.copies == 0 {
            self.note_silence(packet.due);
            self.came_itself.push(false);
        }
        self.copies = (self.copies + 1) % self.terms.carriage.copies.max(1);
        if let Some(newest) = self.came_itself.last_mut() {
            *newest |= delay.is_some();
        }
        if let Some(frame) = self.reassembly.add(packet.seq, packet.due, delay) {
            self.hear(frame);
        }
    }

    /// The newest frame came in another packet than its own.
    fn came_in_another_packet(&mut self) {
        if let Some(newest) = self.came_itself.last_mut() {
            *newest = false;
        }
    }

    /// Keeps the silence before a frame, if there is one. Timestamps are rounded, and a clock may be a little
    /// off, so less than half a frame is none.
    fn note_silence(&mut self, due: Instant) {
        let Some(before) = self.newest_due.replace(due) else { return };
        let silence = due.since(before).saturating_sub(self.terms.frame);
        if silence * 2 > self.terms.frame {
            self.silences.push((self.came_itself.len(), OwnReceiver::samples(silence)));
        }
    }

    fn hear(&mut self, frame: ArrivedFrame) {
        self.receiver.add(frame.number, frame.delay);
    }

    fn finish(mut self) -> Hearing {
        let waiting: Vec<ArrivedFrame> = self.reassembly.finish().collect();
        for frame in waiting {
            self.hear(frame);
        }
        let frame = OwnReceiver::samples(self.terms.frame);
        let steps = self.receiver.into_steps();
        let Self { terms, came_itself, silences, .. } = self;
        Hearing { terms, sample_rate: SAMPLE_RATE, frame, came_itself, silences, steps }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talkpath_units::Duration;

    use super::super::CallCounter;
    use super::super::tests::{ADAPTIVE, FLOOR, TERMS};
    use super::*;
    use crate::testing::message;
    use crate::{FlowInfo, PlayoutRule, RunRecord};

    /// A call whose frames have these delays in ms.
    fn call(terms: CallTerms, delays: &[Option<u64>]) -> FlowRecord {
        let mut flow = FlowRecord::new(FlowInfo::on_a_clock("call"));
        flow.info.terms.call = Some(terms);
        flow.forward.messages = (0..).zip(delays).map(|(seq, delay)| message(seq, *delay)).collect();
        flow
    }

    fn hear(terms: CallTerms, delays: &[Option<u64>]) -> Hearing {
        let window = Instant::ZERO..Instant::MAX;
        Hearing::of(&call(terms, delays), &window, Some(Direction::Forward)).unwrap()
    }

    /// The samples of each kind of step: output, decoded without what was joined, concealed, removed,
    /// repeated and silent.
    fn sums(steps: &[Step]) -> [i64; 6] {
        let mut sums = [0; 6];
        for step in steps {
            match *step {
                Step::Silence { samples } => sums[5] += samples,
                Step::Output { samples } => sums[0] += samples,
                Step::Decode { samples, joined, .. } => sums[1] += samples - joined,
                Step::Conceal { samples } => sums[2] += samples,
                Step::Remove { samples } => sums[3] += samples,
                Step::Repeat { samples } => sums[4] += samples,
            }
        }
        sums
    }

    #[test]
    fn a_receiver_that_decides_frame_by_frame_decodes_or_conceals_each_frame() {
        let fixed = CallTerms { playout: PlayoutRule::Fixed(Duration::from_millis(60)), ..TERMS };
        let heard = hear(fixed, &[Some(30), None, Some(91), Some(90)]);
        let decode = |number: i64| Step::Decode { timestamp: number * 960, samples: 960, joined: 0 };
        let (conceal, output) = (Step::Conceal { samples: 960 }, Step::Output { samples: 960 });
        assert_eq!(heard.steps, [decode(0), output, conceal, output, conceal, output, decode(3), output]);
        assert_eq!(heard.came_itself, [true, false, true, true]);
    }

    #[test]
    fn a_lost_frame_that_a_later_packet_brought_is_decoded_and_did_not_come_itself() {
        let fixed = CallTerms { playout: PlayoutRule::Fixed(Duration::from_millis(60)), ..TERMS };
        let mut flow = call(fixed, &[Some(30), None, Some(30), None, Some(30)]);
        // The packet behind the first lost one has its frame, and came 50 ms after that frame was due.
        flow.forward.brought_later.insert(1, Instant::ZERO + Duration::from_millis(20 + 50));
        let window = Instant::ZERO..Instant::MAX;
        let heard = Hearing::of(&flow, &window, Some(Direction::Forward)).unwrap();
        let concealed = heard.steps.iter().filter(|step| matches!(step, Step::Conceal { .. }));
        assert_eq!((concealed.count(), &heard.came_itself[..]), (1, &[true, false, true, false, true][..]));
        // One that came itself before that is its own.
        flow.forward.brought_later.insert(0, Instant::ZERO + Duration::from_millis(50));
        let again = Hearing::of(&flow, &window, Some(Direction::Forward)).unwrap();
        assert_eq!(again, heard);
        let mut run = RunRecord { window_end: Instant::from_secs(1), ..RunRecord::default() };
        run.flows.push(flow);
        let rated = crate::summarise::summarise(&run, &Default::default());
        let call = rated.flows["call"].call.clone().unwrap();
        assert_eq!((call.played, call.missing, rated.flows["call"].lost), (4, 1, 2));
    }

    #[test]
    fn a_silence_that_was_not_sent_stands_before_the_frame_after_it() {
        let mut flow = call(ADAPTIVE, &[Some(30); 10]);
        for message in &mut flow.forward.messages[4..] {
            message.due += Duration::from_millis(400);
            message.received = Some(message.due + Duration::from_millis(30));
        }
        let window = Instant::ZERO..Instant::MAX;
        let heard = Hearing::of(&flow, &window, Some(Direction::Forward)).unwrap();
        assert_eq!(heard.silences, [(4, 400 * 48)]);
    }

    #[test]
    fn before_the_first_frame_that_arrives_nothing_is_heard() {
        let heard = hear(ADAPTIVE, &[None, None, Some(30), Some(30), Some(30)]);
        assert_eq!(heard.steps.first(), Some(&Step::Silence { samples: 1920 }));
        assert!(hear(ADAPTIVE, &[None; 3]).steps.iter().all(|step| matches!(step, Step::Silence { .. })));
    }

    #[test]
    fn a_flow_without_an_echo_has_no_way_back_to_listen_to() {
        let flow = call(ADAPTIVE, &[Some(30); 10]);
        let window = Instant::ZERO..Instant::MAX;
        assert_eq!(Hearing::of(&flow, &window, Some(Direction::Return)), None);
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(256))]

        #[test]
        fn the_steps_add_up_to_the_output_and_to_the_figures_of_the_call(
            delays in proptest::collection::vec(proptest::option::weighted(0.9, 0_u64..400), 1..400),
        ) {
            let heard = hear(ADAPTIVE, &delays);
            let [output, decoded, concealed, removed, repeated, silent] = sums(&heard.steps);
            prop_assert_eq!(output, decoded + concealed - removed + repeated);
            let mut counter = CallCounter::new(ADAPTIVE, false, Clocks::Trusted);
            for (seq, delay) in (0..).zip(&delays) {
                counter.add(&message(seq, *delay), None);
            }
            let figures = counter.finish(FLOOR).unwrap();
            let share = (concealed + silent) as f64 / (output + silent).max(1) as f64;
            prop_assert_eq!(figures.concealed, Some(share));
        }
    }
}
