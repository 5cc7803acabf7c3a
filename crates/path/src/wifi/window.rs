//! The frames of a sender for one receiver in one category, from their first transmission until they are
//! settled: received, or given up after too many attempts.
//!
//! ```text
//!  queue ─► [ waiting ─► sent ─► received | waiting again | given up ] ─► released in order
//! ```
//!
//! The frames keep their order: the receiver holds a frame that came behind a gap until the gap is filled, or
//! until the sender has given the missing frame up (802.11-2016 §10.24.7). At most [`BLOCK_ACK_WINDOW`]
//! frames are between the first unsettled one and the last.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Duration, Instant, Rate};

use super::timing::{self, BLOCK_ACK_WINDOW, FRAME_HEADER, LONGEST_PPDU};

/// Frames in order, the first of them not settled.
#[derive(Debug)]
pub(crate) struct Window<P> {
    frames: VecDeque<Frame<P>>,
    /// When the last frame was released.
    released: Instant,
}

#[derive(Debug)]
struct Frame<P> {
    packet: P,
    /// Bytes of the frame (MPDU).
    size: u64,
    /// How often it was sent.
    attempts: u32,
    /// When it was first sent. While it waits for its first transmission, when it left the queue.
    began: Instant,
    state: FrameState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    /// To be sent, or sent again.
    Waiting,
    /// In the present PPDU, of which its last bit ends then.
    Sent { ends: Instant },
    /// Received then.
    Received { at: Instant },
    /// Given up then.
    GivenUp { at: Instant },
}

/// What a PPDU may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PpduLimits {
    /// Above zero.
    pub(crate) rate: Rate,
    /// Bytes of an aggregate; zero for one frame alone.
    pub(crate) aggregate: u64,
    /// For how long the sender may have the medium, acknowledgement included. `None` is without limit.
    pub(crate) time: Option<Duration>,
    /// Whether the first frame must end in `time` too.
    pub(crate) is_strict: bool,
}

/// A PPDU that is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ppdu {
    pub(crate) frames: usize,
    pub(crate) duration: Duration,
}

/// A frame that leaves the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released<P> {
    pub(crate) packet: P,
    /// When it was first sent.
    pub(crate) began: Instant,
    /// When the receiver passes it on, or would.
    pub(crate) at: Instant,
    /// False if it was given up.
    pub(crate) is_received: bool,
}

impl<P> Default for Window<P> {
    fn default() -> Self {
        Self { frames: VecDeque::new(), released: Instant::ZERO }
    }
}

impl<P> Window<P> {
    /// The frames inside.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Puts frames into a PPDU that begins at `now`: first those that are to be sent again, then what `next`
    /// gives from the queue. A packet that has no place waits here for the next PPDU. `None` if there is
    /// nothing to send.
    pub(crate) fn fill(
        &mut self,
        limits: &PpduLimits,
        now: Instant,
        mut next: impl FnMut() -> Option<(P, Bytes)>,
    ) -> Option<Ppdu> {
        let (mut frames, mut bytes, mut psdu, mut index) = (0, 0, 0, 0);
        loop {
            if index == self.frames.len() {
                if index == BLOCK_ACK_WINDOW || (frames > 0 && limits.aggregate == 0) {
                    break;
                }
                let Some((packet, size)) = next() else { break };
                let size = size.get().saturating_add(FRAME_HEADER);
                let state = FrameState::Waiting;
                self.frames.push_back(Frame { packet, size, attempts: 0, began: now, state });
            }
            let frame = &mut self.frames[index];
            index += 1;
            if frame.state != FrameState::Waiting {
                continue;
            }
            let with_this = bytes + timing::subframe(frame.size);
            let fits = match frames {
                0 => !limits.is_strict || limits.end_in_time(1, frame.size),
                _ => limits.hold(frames + 1, with_this),
            };
            if !fits {
                break;
            }
            // A frame alone is no aggregate.
            psdu = if frames == 0 { frame.size } else { with_this };
            bytes = with_this;
            frames += 1;
            if frame.attempts == 0 {
                frame.began = now;
            }
            let ends = now.saturating_add(timing::received_after(bytes, limits.rate));
            frame.state = FrameState::Sent { ends };
        }
        (frames > 0).then(|| Ppdu { frames, duration: timing::ppdu(psdu, limits.rate) })
    }

    /// The PPDU is over. Each frame in it was received if `is_received` says so. Frames that were sent
    /// `attempts` times are given up at `end`. Passes each settled frame to `release`, in order. Returns
    /// whether the receiver acknowledges: it could read a frame.
    pub(crate) fn settle(
        &mut self,
        attempts: u32,
        end: Instant,
        mut is_received: impl FnMut() -> bool,
        mut release: impl FnMut(Released<P>),
    ) -> bool {
        let mut is_acknowledged = false;
        for frame in &mut self.frames {
            let FrameState::Sent { ends } = frame.state else { continue };
            frame.attempts += 1;
            frame.state = if is_received() {
                is_acknowledged = true;
                FrameState::Received { at: ends }
            } else if frame.attempts >= attempts {
                FrameState::GivenUp { at: end }
            } else {
                FrameState::Waiting
            };
        }
        while let Some(frame) = self.frames.front() {
            let (at, is_received) = match frame.state {
                FrameState::Received { at } => (at, true),
                FrameState::GivenUp { at } => (at, false),
                FrameState::Waiting | FrameState::Sent { .. } => break,
            };
            self.released = self.released.max(at);
            let Some(Frame { packet, began, .. }) = self.frames.pop_front() else { break };
            release(Released { packet, began, at: self.released, is_received });
        }
        is_acknowledged
    }
}

impl PpduLimits {
    /// Whether an aggregate of `frames` frames and `bytes` bytes may be sent.
    fn hold(&self, frames: usize, bytes: u64) -> bool {
        let is_short = timing::ppdu(bytes, self.rate) <= LONGEST_PPDU;
        bytes <= self.aggregate && is_short && self.end_in_time(frames, bytes)
    }

    /// Whether a PPDU of `frames` frames and its acknowledgement end in time.
    fn end_in_time(&self, frames: usize, psdu: u64) -> bool {
        let exchange = timing::ppdu(psdu, self.rate)
            .saturating_add(timing::SIFS)
            .saturating_add(timing::acknowledgement(frames, self.rate));
        self.time.is_none_or(|time| exchange <= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PpduLimits =
        PpduLimits { rate: Rate::from_bps(65_000_000), aggregate: 65_535, time: None, is_strict: false };

    /// Packets of 1500 B, numbered from 0.
    fn packets(count: u32) -> impl FnMut() -> Option<(u32, Bytes)> {
        let mut numbers = 0..count;
        move || Some((numbers.next()?, Bytes::new(1500)))
    }

    #[test]
    fn an_aggregate_has_as_many_frames_as_its_bytes_and_the_block_ack_allow() {
        let mut window = Window::default();
        // 65,535 / 1544 = 42.4.
        let limits = PpduLimits { rate: Rate::from_bps(130_000_000), ..LIMITS };
        assert_eq!(window.fill(&limits, Instant::ZERO, packets(100)).unwrap().frames, 42);
        // 5.484 ms at 65 Mb/s are 1362 symbols of 260 bit after the preamble, or 44,262 B.
        let mut long = Window::default();
        assert_eq!(long.fill(&LIMITS, Instant::ZERO, packets(100)).unwrap().frames, 28);
        let mut small = Window::default();
        let mut next = || Some(((), Bytes::new(200)));
        assert_eq!(small.fill(&LIMITS, Instant::ZERO, &mut next).unwrap().frames, 64);
        let mut slow = Window::default();
        let limits = PpduLimits { rate: Rate::from_bps(6_500_000), ..LIMITS };
        // 1362 symbols of 26 bit are 4,423 B.
        assert_eq!(slow.fill(&limits, Instant::ZERO, packets(100)).unwrap().frames, 2);
        let mut alone = Window::default();
        let limits = PpduLimits { aggregate: 0, ..LIMITS };
        let ppdu = alone.fill(&limits, Instant::ZERO, packets(100)).unwrap();
        assert_eq!((ppdu.frames, ppdu.duration, alone.len()), (1, Duration::from_micros(228), 1));
    }

    #[test]
    fn a_frame_behind_a_gap_is_released_when_the_gap_is_filled_and_one_given_up_fills_it_too() {
        let mut window = Window::default();
        let mut out = Vec::new();
        let mut number = 0;
        let at = Instant::from_millis;
        window.fill(&LIMITS, at(0), packets(3)).unwrap();
        // The second of three is not received.
        window.settle(
            7,
            at(1),
            || {
                number += 1;
                number != 2
            },
            |it| out.push((it.packet, it.at)),
        );
        assert_eq!((out.len(), window.len()), (1, 2), "the first alone");
        let ppdu = window.fill(&LIMITS, at(10), || None).unwrap();
        assert_eq!(ppdu.frames, 1, "only what is missing");
        window.settle(7, at(11), || true, |it| out.push((it.packet, it.at)));
        assert_eq!(out.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(out[1].1, out[2].1);
        assert!(out[1].1 > at(10));
        window.fill(&LIMITS, at(20), packets(1)).unwrap();
        let mut lost = Vec::new();
        let is_acknowledged = window.settle(1, at(21), || false, |it| lost.push((it.at, it.is_received)));
        assert_eq!((lost, is_acknowledged, window.len()), (vec![(at(21), false)], false, 0));
    }
}
