//! Voice echo over two ends of our TCP with Linux's presets: where the round trips come from.
//!
//! A 160 B frame each 20 ms goes to an echoing application. With Nagle's algorithm a batch waits at each end for up
//! to a round trip. Where the echo is one write for each read, it carries the acknowledgement and leaves at once;
//! where it is one write for each frame, the first is sent and the others wait for its acknowledgement.

mod pair_net;

use pair_net::{A, B, Event, Pair};
use talkpath_transport::{Stack, Transport, TransportConfig};
use talkpath_units::{Duration, Instant};

const FRAME: u64 = 160;
const PTIME: Duration = Duration::from_millis(20);
const FRAMES: u64 = 3000;

#[derive(Clone, Copy, PartialEq)]
enum EchoWrite {
    PerRead,
    PerFrame,
}

/// Delays of all frames, in round-trip times of the path.
fn echo_round_trips(nodelay: bool, rtt_ms: u64, echo: EchoWrite) -> Vec<f64> {
    let config = TransportConfig::tcp_preset(Stack::Linux, nodelay);
    let one_way = Duration::from_micros(rtt_ms * 500);
    let mut pair = Pair::new(&config, one_way, None);
    let mut due = Vec::new();
    let mut delays = Vec::new();
    let (mut echoed, mut returned) = (0, 0);
    while let Some(event) = pair.step() {
        match event {
            Event::App { .. } if (due.len() as u64) < FRAMES => {
                due.push(pair.now);
                assert!(pair.write(A, due.len() as u64, FRAME));
                pair.schedule(pair.now + PTIME, Event::App { at: A, tag: 0 });
            }
            Event::Arrival { to: A, .. } => {
                if due.is_empty() && pair.ends[A].is_open() {
                    pair.schedule(pair.now + PTIME, Event::App { at: A, tag: 0 });
                    due.reserve(FRAMES as usize);
                    if FRAMES > 0 && delays.capacity() == 0 {
                        delays.reserve(FRAMES as usize);
                    }
                }
                returned += pair.read(A);
                while (delays.len() as u64 + 1) * FRAME <= returned {
                    let sent: Instant = due[delays.len()];
                    delays.push(pair.now.since(sent).as_secs_f64() * 1e3 / rtt_ms as f64);
                }
            }
            Event::Arrival { to: B, .. } => {
                let read = pair.read(B);
                match echo {
                    EchoWrite::PerRead if read > 0 => assert!(pair.write(B, 0, read)),
                    EchoWrite::PerRead => {}
                    EchoWrite::PerFrame => {
                        let before = echoed / FRAME;
                        echoed += read;
                        for frame in before..echoed / FRAME {
                            assert!(pair.write(B, frame, FRAME));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(delays.len() as u64, FRAMES);
    delays
}

fn p90(mut delays: Vec<f64>) -> f64 {
    delays.sort_by(f64::total_cmp);
    delays[(delays.len() * 9).div_ceil(10) - 1]
}

#[test]
fn print_all() {
    for rtt in [10, 40, 60, 80, 100, 120, 150, 180, 230] {
        let cell = |nodelay, echo| p90(echo_round_trips(nodelay, rtt, echo));
        println!(
            "{rtt} ms: per read {:.3} per frame {:.3} nodelay {:.3} {:.3}",
            cell(false, EchoWrite::PerRead),
            cell(false, EchoWrite::PerFrame),
            cell(true, EchoWrite::PerRead),
            cell(true, EchoWrite::PerFrame)
        );
    }
}
