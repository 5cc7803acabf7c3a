//! Plays a recorded sequence of arrivals, to compare the receiver with another one.

use super::{Arrival, BLOCK_MS, Block, JitterBuffer, SampleCounts};

/// What the receiver made of a sequence of arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Playback {
    /// The target in ms at the end of each 500 ms of output.
    pub targets_ms: Vec<u32>,
    /// The first target after the start. `None` if the sequence is shorter than half a second.
    pub first_target_ms: Option<u32>,
    /// Each block of 10 ms that was played.
    pub blocks: Vec<Block>,
    /// What became of all samples and packets.
    pub counts: SampleCounts,
    /// The mean time in ms from the arrival of the fastest packet to the beginning of the block in which its
    /// speech is played, over all decoded samples. It does not depend on the clock of the sender. `None` if
    /// nothing was played.
    pub mean_delay_ms: Option<f64>,
}

impl Playback {
    /// Returns the share of concealed samples in the output. Returns `None` if there was no output.
    pub fn concealed_share(&self) -> Option<f64> {
        let SampleCounts { concealed, output, .. } = self.counts;
        (output > 0).then(|| concealed as f64 / output as f64)
    }
}

/// Plays `arrivals`, which are in the order of their times. The speech ends with the last of their samples.
pub fn play(sample_rate: u32, arrivals: &[Arrival]) -> Playback {
    let mut buffer = JitterBuffer::new(sample_rate);
    let mut blocks = Vec::new();
    let mut targets_ms = Vec::new();
    for arrival in arrivals {
        let mut new = Vec::new();
        let target_before = buffer.target_ms();
        buffer.arrive(*arrival, &mut |block| new.push(block));
        for block in new {
            blocks.push(block);
            if blocks.len() as i64 % (500 / BLOCK_MS) == 0 {
                targets_ms.push(target_before);
            }
        }
    }
    let end = arrivals.iter().map(|arrival| arrival.timestamp + arrival.samples).max().unwrap_or(0);
    let counts = buffer.finish(end, &mut |block| blocks.push(block));
    let mean_delay_ms = mean_delay_ms(sample_rate, arrivals, &blocks);
    Playback { targets_ms, first_target_ms: buffer.first_target_ms(), blocks, counts, mean_delay_ms }
}

fn mean_delay_ms(sample_rate: u32, arrivals: &[Arrival], blocks: &[Block]) -> Option<f64> {
    let ns_per_sample = 1e9 / f64::from(sample_rate);
    let delay_ns = |arrival: &Arrival| arrival.at_ns as f64 - arrival.timestamp as f64 * ns_per_sample;
    let least_ns = arrivals.iter().map(delay_ns).reduce(f64::min)?;
    let (mut sum, mut samples) = (0.0, 0);
    for block in blocks {
        let Some(delay_ns) = block.delay_ns else { continue };
        sum += (delay_ns as f64 - least_ns) * block.decoded as f64;
        samples += block.decoded;
    }
    (samples > 0).then(|| sum / samples as f64 / 1e6)
}
