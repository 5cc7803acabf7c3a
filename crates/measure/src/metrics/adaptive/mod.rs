//! The adaptive receiver of a call: a jitter buffer as browsers have it. It follows NetEq of libwebrtc
//! (commit 3710345e of January 2026), whose behaviour is described here in our own words.
//!
//! ```text
//!  arrivals ─► history ─► histogram of delays ─┐ larger
//!     │        (2 s)  └─► reordered packets ───┴► target ─┐
//!     ▼                                                   ▼
//!   packets ─────────────────────────────────► decision for each block of 10 ms
//!                                              play │ conceal │ remove 5 ms │ repeat 5 ms
//! ```
//!
//! Every 10 ms the sound card asks for a *block* of samples. The receiver plays decoded speech if it has
//! enough. If it has not, it *conceals*: it makes up speech from what it played before.
//!
//! - **Target.** The delay that the buffer should have beyond the fastest packet (`delay_histogram.rs`,
//!   `reorder_target.rs`). It is 80 ms at the start.
//! - **Stretching.** If the delay is below the target, speech is repeated. If the delay is well above the
//!   target, speech is removed (`stretching.rs`). This happens within speech, not in pauses only.
//! - **A late packet**: when its speech is due, no later packet is there either. The receiver conceals until
//!   the packet comes, and then plays it. The delay has grown by the time of the concealment.
//! - **A lost packet**: a later packet is there already. The receiver conceals for as long as the missing
//!   speech would have lasted, and plays the later packet. If the missing packet comes after that, it is
//!   *discarded*. If the speech that waits is longer than the target plus 50 ms, the rest of the hole is
//!   *skipped*: nothing is played in its place.
//!
//! # The law in samples
//!
//! ```text
//!  output = decoded - removed + inserted + concealed
//!  due    = decoded + lost + discarded
//! ```
//!
//! [`SampleCounts::holes`] is lost + discarded. *Due* are the samples from the first packet that arrived to
//! the end of the call. Our calls send no comfort noise, which would be a further term of the output.
//!
//! # Departures from NetEq
//!
//! - Speech is stretched without its signal, by a rule (`stretching.rs`).
//! - The join after a hole removes 0.5 ms. In NetEq a join removes or adds up to 15 ms, by the signal.
//! - Concealed speech lasts as long as its hole. NetEq makes it up in pitch periods.
//! - Once made-up speech has faded to half, NetEq continues to conceal until half of the target has arrived.
//!   When it has faded depends on the signal. Here it has faded after 100 ms.
//! - The sound card first asks for a block 5 ms after the first arrival. In NetEq this is any time within
//!   10 ms.
//! - A timestamp that jumps backwards by more than 5 s begins a new stream in NetEq. Here it is an old
//!   packet.
//!
//! Begin to read with [`JitterBuffer::arrive`], or use [`play`] for a recorded sequence of arrivals.

mod arrival_history;
mod decision;
mod delay_histogram;
mod playback;
mod reorder_target;
mod steps;
mod stretching;

use std::collections::BTreeMap;

use self::arrival_history::{ArrivalHistory, Order};
use self::decision::Decision;
use self::delay_histogram::DelayTarget;
pub use self::playback::{Playback, play};
use self::reorder_target::ReorderTarget;
pub use self::steps::Step;
use self::stretching::{CHANGE_MS, Change, NEEDED_MS, Pause};

/// The length of a block in ms: what the sound card asks for at once (NetEq, `kOutputSizeMs`).
pub const BLOCK_MS: i64 = 10;
/// The target before the first half second is over, in ms (NetEq, `delay_manager.cc`).
pub const START_TARGET_MS: u32 = 80;

/// The number of packets for which the buffer has room. A packet more empties it (NetEq's default).
const ROOM: usize = 200;
/// The time in ms after which made-up speech has faded to half. We chose it: NetEq fades by 0.1 % a sample at
/// 8 kHz, which is half after 62 ms, and it begins to fade some 40 ms after the last speech.
const FADED_MS: i64 = 100;
/// The speech that a join after a hole removes, in microseconds, because the made-up speech and the speech
/// after it overlap. We measured it: with recorded speech NetEq's joins removed 0 to 1.5 ms
/// (`tests/neteq.rs`).
const JOIN_US: i64 = 500;
const NANOS_PER_MS: i64 = 1_000_000;
const BLOCK_NS: i64 = BLOCK_MS * NANOS_PER_MS;

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The sequence number of the packet, without wrapping. It only tells packets apart for the caller.
    pub sequence: u64,
    /// The timestamp of its first sample, without wrapping, in samples.
    pub timestamp: i64,
    /// The number of samples in the packet.
    pub samples: i64,
    /// The time of the arrival in ns, by any clock.
    pub at_ns: i64,
}

/// What the listener hears in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of samples that come from packets, repeated ones included. They follow each other. The rest
    /// of the block is concealed.
    pub decoded: i64,
    /// The number of samples that were concealed.
    pub concealed: i64,
    /// The number of them at the beginning of the block. The others are at its end.
    pub concealed_first: i64,
    /// The number of samples that were due before this block and that were skipped: neither decoded nor
    /// concealed.
    pub skipped: i64,
    /// The time in ns from the timestamp of the first decoded sample to the beginning of the block. It is the
    /// delay from mouth to ear, but for the coder, if the clocks of both ends agree. `None` if nothing was
    /// decoded.
    pub delay_ns: Option<i64>,
}

/// What became of samples and packets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Samples that were handed to the sound card.
    pub output: i64,
    /// Samples of the packets that were decoded.
    pub decoded: i64,
    /// Samples that were removed to shorten the delay, or by a join after a hole.
    pub removed: i64,
    /// Samples that were repeated to lengthen the delay.
    pub inserted: i64,
    /// Samples that were made up.
    pub concealed: i64,
    /// Samples of packets that were not played: those that came too late, and those that a full buffer
    /// dropped.
    pub discarded: i64,
    /// Samples that were due and are not decoded, whether their packets came or not. Discarded and skipped
    /// samples are among them.
    pub holes: i64,
    /// Samples of holes for which nothing was concealed.
    pub skipped: i64,
    /// Packets that were decoded.
    pub decoded_packets: u64,
    /// Packets that were decoded and came after their time.
    pub late_packets: u64,
    /// Packets that were not played, although they came.
    pub discarded_packets: u64,
    /// Times at which concealment began.
    pub concealments: u64,
    /// The time that decoded samples waited in the buffer, in ms times samples.
    pub waited: i64,
}

/// The receiver. It does not know the time: [`JitterBuffer::arrive`] plays all blocks before an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitterBuffer {
    samples_per_ms: i64,
    /// The time of the first block in ns. `None` before the first packet.
    first_block_ns: Option<i64>,
    /// The number of blocks that were played.
    block: i64,
    packets: BTreeMap<i64, Packet>,
    history: ArrivalHistory,
    delay_target: DelayTarget,
    reorder_target: ReorderTarget,
    target_ms: u32,
    /// The first target after the start. `None` in the first half second.
    first_target_ms: Option<u32>,
    /// Whether the next packet begins a stream: at the start, and after the buffer was emptied.
    begins_stream: bool,
    /// The timestamp of the first sample that is not decoded.
    next_timestamp: i64,
    /// The number of samples that are not played yet: made-up samples first, and then decoded samples.
    ahead: i64,
    /// The number of made-up samples among them.
    made_up_ahead: i64,
    /// The number of samples in the last packet.
    packet_samples: i64,
    /// Whether the last block was concealed.
    is_concealing: bool,
    /// The number of blocks with concealed samples since the last packet was decoded.
    concealed_blocks: i64,
    /// The number of samples concealed since the last packet was decoded.
    concealed_since: i64,
    pause: Pause,
    counts: SampleCounts,
    /// What was done to the samples so far. `None` if nobody wants to know.
    steps: Option<Vec<Step>>,
}

/// A packet in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    samples: i64,
    /// The number of blocks that were played before it came.
    block: i64,
    is_late: bool,
}

impl JitterBuffer {
    /// Makes a receiver of a stream with this sample rate, a multiple of 1000 Hz.
    pub fn new(sample_rate: u32) -> Self {
        let samples_per_ms = i64::from(sample_rate / 1_000).max(1);
        Self {
            samples_per_ms,
            first_block_ns: None,
            block: 0,
            packets: BTreeMap::new(),
            history: ArrivalHistory::new(samples_per_ms),
            delay_target: DelayTarget::new(),
            reorder_target: ReorderTarget::new(),
            target_ms: START_TARGET_MS,
            first_target_ms: None,
            begins_stream: true,
            next_timestamp: 0,
            ahead: 0,
            made_up_ahead: 0,
            packet_samples: 0,
            is_concealing: false,
            concealed_blocks: 0,
            concealed_since: 0,
            pause: Pause::default(),
            counts: SampleCounts::default(),
            steps: None,
        }
    }

    /// Keeps each step from now on, for somebody who makes the sound.
    pub fn keep_steps(&mut self) {
        self.steps.get_or_insert_default();
    }

    /// Takes the steps that were kept.
    pub fn take_steps(&mut self) -> Vec<Step> {
        self.steps.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn step(&mut self, step: Step) {
        if let Some(steps) = &mut self.steps {
            steps.push(step);
        }
    }

    /// Plays all blocks before the arrival, and then takes the packet. Arrivals come in the order of their
    /// times; a packet with an earlier time counts as coming now. `heard` gets each block.
    pub fn arrive(&mut self, arrival: Arrival, heard: &mut impl FnMut(Block)) {
        let half_a_block = BLOCK_NS / 2;
        self.first_block_ns.get_or_insert(arrival.at_ns.saturating_add(half_a_block));
        self.play_until(arrival.at_ns, heard);
        if self.packets.len() >= ROOM {
            self.empty();
        }
        let Arrival { timestamp, samples, .. } = arrival;
        if self.packets.contains_key(&timestamp) {
            return;
        }
        if !self.begins_stream {
            self.observe(timestamp, samples);
        }
        let concealed_until = self.next_timestamp + self.concealed_since;
        let is_late = self.concealed_since > 0 && timestamp < concealed_until;
        self.packets.insert(timestamp, Packet { samples, block: self.block, is_late });
    }

    /// Plays all blocks before a time, if a packet has come. `heard` gets each block.
    pub fn play_until(&mut self, at_ns: i64, heard: &mut impl FnMut(Block)) {
        let Some(first_block_ns) = self.first_block_ns else { return };
        // A packet that comes at the time of a block is there for the block.
        while first_block_ns.saturating_add(self.block.saturating_mul(BLOCK_NS)) < at_ns {
            heard(self.play_block());
        }
    }

    /// Plays the rest of a stream whose speech ends at the timestamp `end`. Returns what became of all
    /// samples.
    pub fn finish(&mut self, end: i64, heard: &mut impl FnMut(Block)) -> SampleCounts {
        if self.first_block_ns.is_none() {
            return self.counts;
        }
        while !self.packets.is_empty() || self.next_timestamp + self.concealed_since < end {
            heard(self.play_block());
        }
        // The last block may be shorter.
        while self.ahead > 0 {
            self.block += 1;
            heard(self.output(0, 0));
        }
        self.counts.holes += (end - self.next_timestamp).max(0);
        self.next_timestamp = self.next_timestamp.max(end);
        self.counts
    }

    /// Returns the target in ms.
    pub const fn target_ms(&self) -> u32 {
        self.target_ms
    }

    /// Returns the first target after [`START_TARGET_MS`]. Returns `None` in the first half second.
    pub const fn first_target_ms(&self) -> Option<u32> {
        self.first_target_ms
    }

    /// Returns what became of samples and packets so far.
    pub const fn counts(&self) -> SampleCounts {
        self.counts
    }

    const fn block_samples(&self) -> i64 {
        BLOCK_MS * self.samples_per_ms
    }

    /// The time by the blocks, in ms. Arrivals are known to this step only, as in NetEq.
    const fn now_ms(&self) -> i64 {
        self.block * BLOCK_MS
    }

    /// Sets the target anew after an arrival.
    fn observe(&mut self, timestamp: i64, samples: i64) {
        let now_ms = self.now_ms();
        let Some(order) = self.history.insert(timestamp, samples, now_ms) else { return };
        // One packet has no relative delay.
        if self.history.len() < 2 {
            return;
        }
        let delay_ms = self.history.relative_delay_ms(timestamp, now_ms);
        let is_reordered = order == Order::Reordered;
        if !is_reordered {
            self.delay_target.update(now_ms, delay_ms);
        }
        let in_order_ms = self.delay_target.target_ms();
        let target_ms = in_order_ms.unwrap_or(START_TARGET_MS);
        let reorder_ms = self.reorder_target.update(delay_ms, is_reordered, target_ms);
        // The target is at most three quarters of the buffer.
        let most_ms = 3 * ROOM as i64 * samples / self.samples_per_ms / 4;
        self.target_ms = target_ms.max(reorder_ms).min(u32::try_from(most_ms).unwrap_or(u32::MAX));
        if in_order_ms.is_some() {
            self.first_target_ms.get_or_insert(self.target_ms);
        }
    }

    /// Drops all packets because the buffer is full. The next packet begins a stream.
    fn empty(&mut self) {
        for packet in core::mem::take(&mut self.packets).into_values() {
            self.discard(packet);
        }
        self.begins_stream = true;
    }

    const fn discard(&mut self, packet: Packet) {
        self.counts.discarded += packet.samples;
        self.counts.discarded_packets += 1;
    }

    fn play_block(&mut self) -> Block {
        self.block += 1;
        let skipped_before = self.counts.skipped;
        if !self.begins_stream {
            while let Some(oldest) = self.packets.first_entry().filter(|it| *it.key() < self.next_timestamp) {
                let packet = oldest.remove();
                self.discard(packet);
            }
        }
        match self.decide() {
            Decision::Conceal => {}
            Decision::Play if self.ahead >= self.block_samples() => {}
            Decision::Play | Decision::Merge => self.decode(self.block_samples()),
            Decision::Stretch(change) => self.stretch(change),
        }
        let concealed = if self.ahead < self.block_samples() { self.conceal() } else { 0 };
        self.output(concealed, self.counts.skipped - skipped_before)
    }

    /// Makes up what is missing of a block. Returns the number of samples.
    fn conceal(&mut self) -> i64 {
        let concealed = self.block_samples() - self.ahead;
        self.step(Step::Conceal { samples: concealed });
        if !self.is_concealing {
            self.counts.concealments += 1;
        }
        self.is_concealing = true;
        self.concealed_blocks += 1;
        self.concealed_since += concealed;
        self.counts.concealed += concealed;
        concealed
    }

    /// Hands a block to the sound card, of which the last `concealed` samples are made up.
    fn output(&mut self, concealed: i64, skipped: i64) -> Block {
        let played = self.ahead.min(self.block_samples() - concealed);
        let made_up = played.min(self.made_up_ahead);
        let decoded = played - made_up;
        // The decoded samples begin after the made-up samples.
        let first_sample = self.next_timestamp - self.ahead;
        self.ahead -= played;
        self.made_up_ahead -= made_up;
        self.counts.output += played + concealed;
        self.counts.concealed += made_up;
        self.step(Step::Output { samples: played + concealed });
        let concealed = concealed + made_up;
        let began_ns = self.first_block_ns.unwrap_or(0) + (self.block - 1) * BLOCK_NS;
        // A wide number, and one division, so that the delay stays the same from block to block.
        let delay = i128::from(began_ns) * i128::from(self.samples_per_ms)
            - i128::from(first_sample) * i128::from(NANOS_PER_MS);
        let delay_ns = i64::try_from(delay / i128::from(self.samples_per_ms)).unwrap_or(i64::MAX);
        let delay_ns = (decoded > 0).then_some(delay_ns);
        Block { decoded, concealed, concealed_first: made_up, skipped, delay_ns }
    }

    /// Decodes packets that follow each other, until there are `needed` new samples.
    fn decode(&mut self, needed: i64) {
        let mut new = 0;
        while new < needed {
            let follows = |timestamp: &i64| new == 0 || *timestamp == self.next_timestamp;
            let Some(first) = self.packets.first_entry().filter(|first| follows(first.key())) else { break };
            let (timestamp, packet) = first.remove_entry();
            let is_first_ever = self.counts.decoded_packets == 0;
            let mut joined = 0;
            if !is_first_ever {
                let hole = (timestamp - self.next_timestamp).max(0);
                self.counts.holes += hole;
                let missing = (hole - self.concealed_since).max(0);
                // A hole may begin and end within blocks. Then the speech after it moves the end of the
                // made-up speech into the next block.
                if self.is_concealing && missing < self.block_samples() {
                    self.made_up_ahead += missing;
                    self.ahead += missing;
                    self.step(Step::Conceal { samples: missing });
                } else {
                    self.counts.skipped += missing;
                }
                if self.is_concealing && hole > 0 {
                    joined = JOIN_US * self.samples_per_ms / 1_000;
                    self.ahead -= joined;
                    self.counts.removed += joined;
                }
            }
            self.step(Step::Decode { timestamp, samples: packet.samples, joined });
            if self.begins_stream {
                self.begin_stream();
            }
            (self.concealed_blocks, self.concealed_since, self.is_concealing) = (0, 0, false);
            self.next_timestamp = timestamp + packet.samples;
            self.packet_samples = packet.samples;
            self.ahead += packet.samples;
            new += packet.samples;
            self.counts.decoded += packet.samples;
            self.counts.waited += packet.samples * (self.block - packet.block) * BLOCK_MS;
            self.counts.decoded_packets += 1;
            self.counts.late_packets += u64::from(packet.is_late);
        }
    }

    /// Forgets what was known of the stream before.
    fn begin_stream(&mut self) {
        self.begins_stream = false;
        self.history = ArrivalHistory::new(self.samples_per_ms);
        self.delay_target = DelayTarget::new();
        self.reorder_target = ReorderTarget::new();
        self.target_ms = START_TARGET_MS;
        self.pause.begin(self.block - 1);
    }

    /// Removes or repeats speech, if enough of it is decoded. Otherwise more is decoded first, so that the
    /// next block finds enough (NetEq, `neteq_impl.cc`).
    fn stretch(&mut self, change: Change) {
        let ms = |ms: i64| ms * self.samples_per_ms;
        let (needed, change_samples) = (ms(NEEDED_MS), ms(CHANGE_MS));
        let is_long = self.packet_samples >= needed;
        if self.ahead < needed {
            if is_long && self.ahead >= ms(10) {
                // More speech would not fit.
            } else if !is_long && self.ahead < ms(20) {
                self.decode(ms(20));
                // NetEq waits here even if there is enough now.
                if change == Change::Shrink {
                    return;
                }
            } else {
                self.decode(ms(10));
            }
            // A repetition needs less new speech, because it takes the rest from what was played.
            if change == Change::Shrink && self.ahead < needed {
                return;
            }
        }
        match change {
            Change::Shrink => {
                self.ahead -= change_samples;
                self.counts.removed += change_samples;
                self.step(Step::Remove { samples: change_samples });
            }
            Change::Grow => {
                self.ahead += change_samples;
                self.counts.inserted += change_samples;
                self.step(Step::Repeat { samples: change_samples });
            }
        }
        self.pause.begin(self.block);
    }
}

#[cfg(test)]
mod tests;
