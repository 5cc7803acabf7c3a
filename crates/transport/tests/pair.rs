//! Voice echo over two ends of our TCP with Linux's presets: where the round trips come from.
//!
//! A 160 B frame each 20 ms goes to an echoing application. With Nagle's algorithm frames gather at the
//! sender until the last batch is acknowledged, which costs up to a round trip on top of the path's own.
//! Where the echo is one write for each read, it carries the acknowledgement and leaves at once: at most two
//! round trips. Where it is one write for each frame, the first frame of the batch leaves and the others wait
//! for its acknowledgement: at most three. Once a round trip's frames fill segments, those leave at once and
//! the delay falls again.

use talkpath_config::{Stack, TransportConfig};
use talkpath_units::{Duration, Instant};
use talkpath_wire::Transport;

use crate::pair_net::{A, B, Event, Pair};

const FRAME: u64 = 160;
const PTIME: Duration = Duration::from_millis(20);
const FRAMES: usize = 3000;

#[derive(Clone, Copy, PartialEq)]
enum EchoWrite {
    PerRead,
    PerFrame,
}

struct Call {
    pair: Pair,
    echo: EchoWrite,
    due: Vec<Instant>,
    /// Delay of each frame that came back.
    delays: Vec<Duration>,
    echoed: u64,
    returned: u64,
}

impl Call {
    fn new(nodelay: bool, rtt: Duration, echo: EchoWrite) -> Self {
        let config = TransportConfig::tcp_preset(Stack::Linux, nodelay);
        let pair = Pair::new(&config, rtt / 2);
        Self { pair, echo, due: Vec::new(), delays: Vec::new(), echoed: 0, returned: 0 }
    }

    fn run(mut self) -> Vec<Duration> {
        let mut speaking = false;
        while let Some(event) = self.pair.step() {
            match event {
                Event::App { .. } if self.due.len() < FRAMES => self.speak(),
                Event::Arrival { to: B, .. } => self.echo(),
                Event::Arrival { .. } => {
                    if !speaking && self.pair.ends[A].is_open() {
                        speaking = true;
                        self.speak();
                    }
                    self.listen();
                }
                _ => {}
            }
        }
        assert_eq!(self.delays.len(), FRAMES);
        self.delays
    }

    fn speak(&mut self) {
        self.due.push(self.pair.now);
        assert!(self.pair.write(A, FRAME));
        self.pair.schedule(self.pair.now + PTIME, Event::App { at: A });
    }

    fn echo(&mut self) {
        let read = self.pair.read(B, u64::MAX);
        let before = self.echoed / FRAME;
        self.echoed += read;
        match self.echo {
            EchoWrite::PerRead if read > 0 => assert!(self.pair.write(B, read)),
            EchoWrite::PerRead => {}
            EchoWrite::PerFrame => {
                for _ in before..self.echoed / FRAME {
                    assert!(self.pair.write(B, FRAME));
                }
            }
        }
    }

    fn listen(&mut self) {
        self.returned += self.pair.read(A, u64::MAX);
        while (self.delays.len() as u64 + 1) * FRAME <= self.returned {
            self.delays.push(self.pair.now.since(self.due[self.delays.len()]));
        }
    }
}

/// The 90th percentile of the frames' delays, in round trips of the path.
fn p90(nodelay: bool, rtt_us: u64, echo: EchoWrite) -> f64 {
    let rtt = Duration::from_micros(rtt_us);
    let mut delays = Call::new(nodelay, rtt, echo).run();
    delays.sort_unstable();
    delays[(FRAMES * 9).div_ceil(10) - 1].as_secs_f64() / rtt.as_secs_f64()
}

/// Round trips that are no multiple of the frame interval, so that no frame meets an acknowledgement by
/// phase.
const SEVERAL_FRAMES_UNDER_A_SEGMENT_US: [u64; 4] = [51_300, 77_700, 103_100, 127_900];

#[test]
fn one_write_a_read_costs_nearly_two_round_trips() {
    for rtt in SEVERAL_FRAMES_UNDER_A_SEGMENT_US {
        let p90 = p90(false, rtt, EchoWrite::PerRead);
        assert!((1.8..=2.0).contains(&p90), "{p90} at {rtt} us");
    }
}

#[test]
fn one_write_a_frame_costs_nearly_three_round_trips() {
    for rtt in SEVERAL_FRAMES_UNDER_A_SEGMENT_US {
        let p90 = p90(false, rtt, EchoWrite::PerFrame);
        assert!((2.8..=3.0).contains(&p90), "{p90} at {rtt} us");
    }
}

#[test]
fn without_nagle_the_echo_costs_one_round_trip() {
    for rtt in SEVERAL_FRAMES_UNDER_A_SEGMENT_US {
        for echo in [EchoWrite::PerRead, EchoWrite::PerFrame] {
            assert_eq!(p90(true, rtt, echo), 1.0);
        }
    }
}

/// At 230 ms a round trip holds eleven frames, which fill a segment: a kernel measured 1.70 and 1.96.
#[test]
fn full_segments_leave_at_once() {
    let (read, frame) = (p90(false, 230_000, EchoWrite::PerRead), p90(false, 230_000, EchoWrite::PerFrame));
    assert!((read - 1.70).abs() < 0.05, "{read}");
    assert!((frame - 1.96).abs() < 0.06, "{frame}");
}

/// At 10 ms every frame is acknowledged before the next is due: nothing waits.
#[test]
fn a_round_trip_under_the_frame_interval_holds_nothing_back() {
    for echo in [EchoWrite::PerRead, EchoWrite::PerFrame] {
        assert_eq!(p90(false, 10_000, echo), 1.0);
    }
}
