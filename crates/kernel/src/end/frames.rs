//! Frames, which separate the messages of a stream whose messages have varying sizes.
//!
//! ```text
//!  a message of 300 B:   size (4 B) │ number (4 B) │ 292 B of filling
//! ```
//!
//! Both numbers are big-endian. The frame is a part of the message, and its 8 bytes count in the message's
//! size. The header of a datagram does the same ([`crate::wire`]). So a flow gives the same number of bytes
//! to every transport, in every arena.
//!
//! Only the frame tells the receiver the size and the number of the message. The receiver cannot count the
//! messages instead, because a message that was due before the connection opened has a number and is never
//! sent.
//!
//! An invalid frame ends the flow, because nobody knows where the next message would begin.

use std::collections::VecDeque;
use std::ops::Range;

use talkpath_flow::Write;
use talkpath_model::MessageSize;
use talkpath_units::{Bytes, Instant};

use super::context::EndContext;
use super::messages::EchoRows;
use super::place::EndPlace;
use crate::spec::FlowSpec;
use crate::wire::{FRAME, stream_filling};

/// The frames of one end of a flow.
pub(super) struct Frames {
    reader: FrameReader,
    writer: FrameWriter,
    /// True if this end writes back what each read returned. The messages that it writes are then the
    /// messages that it read.
    echoes_reads: bool,
}

impl Frames {
    /// Makes the frames of the end at `place` of the flow `spec`. The numbers of the flow's messages are
    /// below `bound`. `None` if the flow has no frames.
    pub(super) fn new(spec: &FlowSpec, place: &EndPlace, bound: u64, common: &EndContext) -> Option<Self> {
        let sizes = spec.workload.sizes().filter(|_| spec.is_framed())?;
        Some(Self {
            reader: FrameReader::new(sizes, bound, EchoRows::of(spec, place, common)),
            writer: FrameWriter::default(),
            echoes_reads: spec.echo_per_read == Some(true) && !place.is_sender,
        })
    }

    /// The next bytes of the message that the application wants to write.
    pub(super) fn next(&mut self, write: &Write) -> &[u8] {
        let size = write.message.size.get();
        if !self.echoes_reads && !write.is_begun {
            self.writer.begin(write.message.seq, size);
        }
        self.writer.next(size)
    }

    /// Takes note that the transport took the first `count` of the bytes that [`Frames::next`] returned.
    pub(super) fn on_taken(&mut self, count: u64) {
        self.writer.on_taken(count);
    }

    /// Takes `bytes` of the stream, which came at `now`. Returns the number of bytes that the application may
    /// read now. It may read the bytes of a frame when the whole frame has come. `None` if a frame is
    /// invalid.
    pub(super) fn take(&mut self, spec: &FlowSpec, bytes: &[u8], now: Instant) -> Option<u64> {
        let readable = self.reader.take(spec, bytes, now)?;
        if self.echoes_reads {
            self.writer.owed.extend(self.reader.begun.iter().map(|&(seq, size)| (seq, size.get())));
        }
        Some(readable)
    }

    /// The number and the size of each message whose frame ends in the bytes that were taken last.
    pub(super) fn begun(&self) -> &[(u64, Bytes)] {
        &self.reader.begun
    }

    /// The number of bytes of an incomplete frame. The application may not read them yet.
    pub(super) const fn held(&self) -> usize {
        self.reader.held
    }

    /// The same as [`super::messages::Incoming::paid_rows`].
    pub(super) fn paid_rows(&self) -> u64 {
        self.reader.echoes.as_ref().map_or(0, EchoRows::paid)
    }
}

/// Makes the bytes of the stream that an end writes.
#[derive(Default)]
struct FrameWriter {
    /// The number and the size of each message that is not yet written whole.
    owed: VecDeque<(u64, u64)>,
    /// The number of bytes of the first of these messages that were written.
    written: u64,
    /// The bytes that the last call of `next` returned.
    bytes: Vec<u8>,
}

impl FrameWriter {
    /// Begins message `seq` of `size` bytes, in place of all messages that were still to be written.
    fn begin(&mut self, seq: u64, size: u64) {
        self.owed.clear();
        self.owed.push_back((seq, size));
        self.written = 0;
    }

    /// The next bytes of the stream, at most `limit` and at most what one write takes.
    fn next(&mut self, limit: u64) -> &[u8] {
        let limit = limit.min(stream_filling().len() as u64);
        self.bytes.clear();
        let mut from = self.written;
        for &(seq, size) in &self.owed {
            let room = limit - self.bytes.len() as u64;
            if room == 0 {
                break;
            }
            let to = size.min(from.saturating_add(room));
            append(&mut self.bytes, frame(seq, size), from..to);
            from = 0;
        }
        &self.bytes
    }

    fn on_taken(&mut self, count: u64) {
        self.written += count;
        while let Some(&(_, size)) = self.owed.front()
            && size <= self.written
        {
            self.written -= size;
            self.owed.pop_front();
        }
    }
}

/// Appends the bytes `span` of a message that begins with `frame`. The span is at most what one write takes.
fn append(bytes: &mut Vec<u8>, frame: [u8; FRAME], span: Range<u64>) {
    let in_frame = |at: u64| usize::try_from(at).unwrap_or(FRAME).min(FRAME);
    bytes.extend_from_slice(&frame[in_frame(span.start)..in_frame(span.end)]);
    let filling = span.end.saturating_sub(span.start.max(FRAME as u64));
    bytes.extend_from_slice(&stream_filling()[..usize::try_from(filling).unwrap_or(0)]);
}

/// The frame of message `seq` of `size` bytes.
fn frame(seq: u64, size: u64) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[..4].copy_from_slice(&(size as u32).to_be_bytes());
    frame[4..].copy_from_slice(&(seq as u32).to_be_bytes());
    frame
}

/// Finds the messages in the bytes of a stream.
struct FrameReader {
    sizes: MessageSize,
    /// One more than the largest number that a message may have.
    bound: u64,
    /// The smallest number that the next message may have.
    expected: u64,
    /// The number of bytes of the current message that have not come yet.
    rest: u64,
    /// The first `held` bytes of the next frame.
    frame: [u8; FRAME],
    /// The number of bytes of the next frame that have come.
    held: usize,
    /// The number and the size of each message whose frame ends in the bytes that were taken last.
    begun: Vec<(u64, Bytes)>,
    /// Pays for the rows of echoes. `None` at an end that sends no echoes.
    echoes: Option<EchoRows>,
    /// True after an invalid frame. The rest of the stream cannot be read.
    is_lost: bool,
}

impl FrameReader {
    const fn new(sizes: MessageSize, bound: u64, echoes: Option<EchoRows>) -> Self {
        Self {
            sizes,
            bound,
            expected: 0,
            rest: 0,
            frame: [0; FRAME],
            held: 0,
            begun: Vec::new(),
            echoes,
            is_lost: false,
        }
    }

    /// Takes bytes of the stream, as [`Frames::take`] says.
    fn take(&mut self, spec: &FlowSpec, mut bytes: &[u8], now: Instant) -> Option<u64> {
        self.begun.clear();
        if self.is_lost {
            return None;
        }
        let mut readable = 0;
        while !bytes.is_empty() {
            let wanted = if self.rest > 0 { self.rest } else { (FRAME - self.held) as u64 };
            let count = usize::try_from(wanted).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, later) = bytes.split_at(count);
            bytes = later;
            if self.rest > 0 {
                self.rest -= count as u64;
                readable += count as u64;
                continue;
            }
            self.frame[self.held..self.held + count].copy_from_slice(piece);
            self.held += count;
            if self.held == FRAME {
                self.held = 0;
                let (seq, size) = self.read_frame(spec, now)?;
                self.begun.push((seq, size));
                self.rest = size.get() - FRAME as u64;
                readable += FRAME as u64;
            }
        }
        Some(readable)
    }

    /// Reads the number and the size of the message whose frame is complete. `None` if the flow has no such
    /// message, or if the memory budget has no row for the message's echo.
    fn read_frame(&mut self, spec: &FlowSpec, now: Instant) -> Option<(u64, Bytes)> {
        let [s0, s1, s2, s3, n0, n1, n2, n3] = self.frame;
        let size = Bytes::new(u32::from_be_bytes([s0, s1, s2, s3]).into());
        let low = u32::from_be_bytes([n0, n1, n2, n3]);
        // The frame has the low 32 bits of the number. On a stream the numbers only grow.
        let seq = self.expected.checked_add(low.wrapping_sub(self.expected as u32).into())?;
        let is_payable = |echoes: &mut EchoRows| echoes.pay_for(seq, spec, now);
        let is_message = size.get() >= FRAME as u64
            && self.sizes.allows(size)
            && seq < self.bound
            && self.echoes.as_mut().is_none_or(is_payable);
        self.is_lost = !is_message;
        self.expected = seq.saturating_add(1);
        is_message.then_some((seq, size))
    }
}

/// The reason why a flow with an invalid frame ends.
pub(super) const NO_MESSAGE: &str = "what came on the stream is no message of this flow";

#[cfg(test)]
mod tests {
    use talkpath_model::WorkloadConfig;
    use talkpath_units::Rate;

    use super::*;
    use crate::end::fixtures::{context, echoing, flow, place, tcp};

    const SIZES: MessageSize = MessageSize::Uniform { min: Bytes::new(8), max: Bytes::new(100_000) };

    /// 100 messages a second in the mean.
    fn workload() -> WorkloadConfig {
        WorkloadConfig::Cbr { rate: Rate::from_bps(40_003_200), size: SIZES }
    }

    fn write(seq: u64, size: u64, is_begun: bool) -> Write {
        let message = talkpath_wire::Message { seq, size: Bytes::new(size), due: Instant::ZERO };
        let flow = talkpath_flow::FlowId::default();
        Write { flow, message, is_begun, written: Bytes::ZERO, expires: None }
    }

    /// The bytes of these messages, written in parts of at most `part` bytes.
    fn written(messages: &[(u64, u64)], part: usize) -> Vec<u8> {
        let spec = flow(tcp("reno"), workload());
        let mut frames = Frames::new(&spec, &place(true), 1000, &context(0, 100)).unwrap();
        let mut stream = Vec::new();
        for &(seq, size) in messages {
            let mut left = size;
            while left > 0 {
                let bytes = frames.next(&write(seq, left, left < size));
                let taken = bytes.len().min(part);
                stream.extend_from_slice(&bytes[..taken]);
                frames.on_taken(taken as u64);
                left -= taken as u64;
            }
        }
        stream
    }

    const MESSAGES: [(u64, u64); 5] = [(0, 8), (3, 300), (4, 100_000), (5, 9), (200, 16)];

    #[test]
    fn messages_are_found_by_their_frames_however_the_stream_is_cut() {
        for part in [1, 3, 7, 8, 1000, 70_000, usize::MAX] {
            let stream = written(&MESSAGES, part);
            assert_eq!(stream.len() as u64, MESSAGES.iter().map(|(_, size)| size).sum::<u64>());
            let spec = flow(tcp("reno"), workload());
            let mut reader = Frames::new(&spec, &place(false), 1000, &context(0, 100)).unwrap();
            let (mut found, mut readable) = (Vec::new(), 0);
            for bytes in stream.chunks(part) {
                readable += reader.take(&spec, bytes, Instant::ZERO).unwrap();
                found.extend(reader.begun().iter().map(|&(seq, size)| (seq, size.get())));
                assert!(reader.held() < FRAME);
            }
            assert_eq!(
                (found.as_slice(), readable),
                (&MESSAGES[..], stream.len() as u64),
                "in parts of {part} B"
            );
        }
    }

    #[test]
    fn an_echo_read_by_read_gives_the_same_bytes_back() {
        let stream = written(&MESSAGES[..4], usize::MAX);
        let spec = FlowSpec { echo_per_read: Some(true), ..flow(tcp("reno"), workload()) };
        let mut echo = Frames::new(&spec, &place(false), 1000, &context(0, 1000)).unwrap();
        let mut back = Vec::new();
        for bytes in stream.chunks(1001) {
            let mut left = echo.take(&spec, bytes, Instant::from_secs(1)).unwrap();
            while left > 0 {
                let bytes = echo.next(&write(0, left, false));
                back.extend_from_slice(bytes);
                let taken = bytes.len() as u64;
                echo.on_taken(taken);
                left -= taken;
            }
        }
        let mut reader = FrameReader::new(SIZES, 1000, None);
        assert_eq!(reader.take(&spec, &back, Instant::ZERO), Some(stream.len() as u64));
        let found: Vec<_> = reader.begun.iter().map(|&(seq, size)| (seq, size.get())).collect();
        assert_eq!(found, MESSAGES[..4]);
    }

    #[test]
    fn a_message_that_found_no_room_is_written_from_its_frame_on_when_there_is_some() {
        let spec = flow(tcp("reno"), workload());
        let mut frames = Frames::new(&spec, &place(true), 1000, &context(0, 100)).unwrap();
        for _ in 0..3 {
            assert_eq!(frames.next(&write(7, 20, false))[..FRAME], frame(7, 20));
        }
        frames.on_taken(20);
        assert_eq!(frames.next(&write(8, 30, false))[..FRAME], frame(8, 30));
    }

    /// The other host may send anything. 100 messages a second: after 1 s, and 5 s for the far clock, no
    /// number is above 600, and the budget pays for the rows of all before it.
    #[test]
    fn a_frame_of_another_size_or_number_is_no_message() {
        let spec = echoing(tcp("reno"), workload());
        let taken = |bytes: &[u8]| {
            let mut echo = Frames::new(&spec, &place(false), 1000, &context(0, 650)).unwrap();
            (echo.take(&spec, bytes, Instant::from_secs(1)), echo.paid_rows())
        };
        assert_eq!(taken(&frame(599, 8)), (Some(8), 600));
        for (seq, size) in [(0, 7), (0, 0), (0, 100_001), (0, u64::from(u32::MAX)), (602, 8), (1000, 8)] {
            assert_eq!(taken(&frame(seq, size)), (None, 0), "{seq}, {size} B");
        }
        // A number that was there before would be 4 billion ahead.
        assert_eq!(taken(&[frame(5, 8), frame(5, 8)].concat()), (None, 6));
    }

    #[test]
    fn after_a_frame_that_makes_no_sense_nothing_is_a_message() {
        let spec = flow(tcp("reno"), workload());
        let mut frames = Frames::new(&spec, &place(true), 1000, &context(0, 100)).unwrap();
        assert_eq!(frames.take(&spec, &frame(0, 7), Instant::ZERO), None);
        assert_eq!(frames.take(&spec, &frame(0, 8), Instant::ZERO), None);
        assert!(frames.begun().is_empty());
    }
}
