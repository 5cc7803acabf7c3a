//! What an application sends, and what bounds and estimates need to know about it.
//!
//! A new workload answers here what the rest of the workspace asks: [`WorkloadConfig::demand`] says
//! when and how much it sends, and most other methods follow from that.

use serde::{Deserialize, Serialize};
use talkpath_config::{Codec, G711_FRAMES};
use talkpath_units::{Bytes, Duration, Rate};

/// What the application sends, and when. As text it is what two real hosts say to each other, in ns, B and
/// bit/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadConfig {
    /// A frame of `size` bytes every `ptime`.
    Voice {
        /// Which codec set the size.
        #[serde(skip)]
        codec: Codec,
        /// Time between frames.
        #[serde(rename = "ptime_ns")]
        ptime: Duration,
        /// Bytes of a frame.
        size: Bytes,
    },
    /// Messages of `size` on one clock, whose mean payload rate is `rate`.
    Cbr {
        /// Payload rate.
        #[serde(rename = "rate_bps")]
        rate: Rate,
        /// Payload bytes of a message.
        size: MessageSize,
    },
    /// As much as the transport takes, in messages of up to 64 KiB.
    Bulk {
        /// Stop after this number of bytes; `None` sends until the duration ends.
        bytes: Option<Bytes>,
    },
    /// The bytes of a file, as bulk.
    File {
        /// Its whole path, which stays with its owner.
        #[serde(skip)]
        source: String,
        /// Its size when the scenario was read; above zero.
        bytes: Bytes,
        /// The largest message.
        size: Bytes,
        /// What of each message is not the file's: over UDP a number says where its bytes belong.
        header: Bytes,
    },
    /// `count` messages of `size` as fast as the transport takes them; `repeat` such bursts, with `gap`
    /// between them.
    Burst {
        /// Messages in a burst.
        count: u64,
        /// Payload bytes of a message.
        size: Bytes,
        /// Bursts.
        repeat: u64,
        /// From the last message of a burst to the first of the next.
        #[serde(rename = "gap_ns")]
        gap: Duration,
    },
}

/// Payload of the messages of a workload that has sizes of its own. As text a constant size is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageSize {
    /// Each message has this size.
    Constant(Bytes),
    /// The sender draws each size, uniform from `min` to `max`, both included. The receiver learns it from
    /// the message.
    Uniform {
        /// The least.
        min: Bytes,
        /// The most.
        max: Bytes,
    },
}

impl MessageSize {
    /// The least payload of a message.
    pub const fn smallest(self) -> Bytes {
        match self {
            Self::Constant(size) => size,
            Self::Uniform { min, .. } => min,
        }
    }

    /// The most payload of a message.
    pub const fn largest(self) -> Bytes {
        match self {
            Self::Constant(size) => size,
            Self::Uniform { max, .. } => max,
        }
    }

    /// Payload of every message; `None` if they differ.
    pub const fn constant(self) -> Option<Bytes> {
        match self {
            Self::Constant(size) => Some(size),
            Self::Uniform { .. } => None,
        }
    }

    /// Whether a message may have this payload.
    pub fn allows(self, size: Bytes) -> bool {
        (self.smallest()..=self.largest()).contains(&size)
    }

    /// Twice the mean payload, which is a whole number of bytes.
    pub const fn twice_mean(self) -> u64 {
        self.smallest().get().saturating_add(self.largest().get())
    }
}

impl From<Bytes> for MessageSize {
    fn from(size: Bytes) -> Self {
        Self::Constant(size)
    }
}

/// What a workload gives to its transport over time, at most: memory and admission are reckoned with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Messages on a clock, whatever the network does: `messages` messages every `nanos` ns.
    Clocked {
        /// Payload of the largest message.
        size: Bytes,
        /// How many in that time.
        messages: u64,
        /// That time, ns.
        nanos: u128,
    },
    /// Messages as fast as the transport takes them, in bursts.
    Bursts {
        /// Payload of the largest message.
        size: Bytes,
        /// Messages of a burst.
        count: u64,
        /// Bursts.
        repeat: u64,
        /// From the last message of a burst to the first of the next.
        gap: Duration,
    },
    /// As many bytes as the transport takes, in messages as large as there is room for.
    Greedy {
        /// Payload in all; `None` without an end.
        bytes: Option<Bytes>,
        /// The largest message, if the workload bounds it.
        largest: Option<Bytes>,
    },
}

impl WorkloadConfig {
    /// A call as `voice` has it by default: 160 B every 20 ms (ITU-T G.711; RFC 3551 §4.2).
    pub const G711: Self = Self::Voice {
        codec: Codec::G711,
        ptime: G711_FRAMES.usual_time,
        size: G711_FRAMES.size(G711_FRAMES.usual_time),
    };

    /// What it gives to its transport over time.
    pub fn demand(&self) -> Demand {
        match *self {
            Self::Voice { ptime, size, .. } => {
                Demand::Clocked { size, messages: 1, nanos: u128::from(ptime.as_nanos()) }
            }
            Self::Cbr { rate, size } => {
                let nanos = u128::from(size.twice_mean().max(2)) * (BIT_NANOS_OF_A_BYTE / 2);
                Demand::Clocked { size: size.largest(), messages: rate.as_bps(), nanos }
            }
            Self::Bulk { bytes } => Demand::Greedy { bytes, largest: None },
            Self::File { bytes, size, header, .. } => {
                let messages = bytes.get().div_ceil(size.saturating_sub(header).get().max(1));
                let headers = messages.saturating_mul(header.get());
                let bytes = Some(Bytes::new(bytes.get().saturating_add(headers)));
                Demand::Greedy { bytes, largest: Some(size) }
            }
            Self::Burst { count, size, repeat, gap } => Demand::Bursts { size, count, repeat, gap },
        }
    }

    /// Payload of its messages; `None` if it depends on how much room the transport has.
    pub const fn sizes(&self) -> Option<MessageSize> {
        match self {
            Self::Voice { size, .. } | Self::Burst { size, .. } => Some(MessageSize::Constant(*size)),
            Self::Cbr { size, .. } => Some(*size),
            Self::Bulk { .. } | Self::File { .. } => None,
        }
    }

    /// Payload of every message; `None` if they differ, or if it depends on room.
    pub const fn constant_size(&self) -> Option<Bytes> {
        match self.sizes() {
            Some(sizes) => sizes.constant(),
            None => None,
        }
    }

    /// Whether the sender alone knows how large each message is until the message says it.
    pub const fn has_drawn_sizes(&self) -> bool {
        matches!(self.sizes(), Some(MessageSize::Uniform { .. }))
    }

    /// Bytes of a G.711 frame, one sample each; `None` if the workload is no voice, or has another codec.
    pub fn voice_frame(&self) -> Option<Bytes> {
        match self {
            Self::Voice { codec, size, .. } => Some(*size).filter(|_| *codec == Codec::G711),
            Self::Cbr { .. } | Self::Bulk { .. } | Self::File { .. } | Self::Burst { .. } => None,
        }
    }

    /// The codec of a call, and the time between its frames; `None` if the workload is no voice.
    pub const fn voice(&self) -> Option<(Codec, Duration)> {
        match self {
            Self::Voice { codec, ptime, .. } => Some((*codec, *ptime)),
            Self::Cbr { .. } | Self::Bulk { .. } | Self::File { .. } | Self::Burst { .. } => None,
        }
    }

    /// Whether messages come on a clock (voice, cbr), not as room allows.
    pub fn is_clocked(&self) -> bool {
        match self.demand() {
            Demand::Clocked { .. } => true,
            Demand::Bursts { .. } | Demand::Greedy { .. } => false,
        }
    }

    /// Whether it sends bursts.
    pub fn sends_bursts(&self) -> bool {
        match self.demand() {
            Demand::Bursts { .. } => true,
            Demand::Clocked { .. } | Demand::Greedy { .. } => false,
        }
    }

    /// Whether it has an end of its own, besides the run's.
    pub fn is_bounded(&self) -> bool {
        match self.demand() {
            Demand::Clocked { .. } => false,
            Demand::Bursts { .. } => true,
            Demand::Greedy { bytes, .. } => bytes.is_some(),
        }
    }

    /// Payload bytes in all: what `bulk` or `file` sends, headers included; `None` without an end, or for
    /// other workloads.
    pub fn transfer_size(&self) -> Option<Bytes> {
        match self.demand() {
            Demand::Greedy { bytes, .. } => bytes,
            Demand::Clocked { .. } | Demand::Bursts { .. } => None,
        }
    }
}

impl Demand {
    /// The largest message, unless room alone bounds it.
    pub const fn largest_message(self) -> Option<Bytes> {
        match self {
            Self::Clocked { size, .. } | Self::Bursts { size, .. } => Some(size),
            Self::Greedy { largest, .. } => largest,
        }
    }

    /// How many messages come within `duration`, at most and rounded down; `None` if room decides.
    pub fn messages_within(self, duration: Duration) -> Option<u128> {
        let duration = u128::from(duration.as_nanos());
        match self {
            Self::Clocked { messages, nanos, .. } => Some(duration * u128::from(messages) / nanos.max(1)),
            Self::Bursts { count, repeat, gap, .. } => {
                // Bursts that the gaps push past the end never begin.
                let begun = match u128::from(gap.as_nanos()) {
                    0 => u128::from(repeat),
                    gap => u128::from(repeat).min(duration / gap + 1),
                };
                Some(u128::from(count).saturating_mul(begun))
            }
            Self::Greedy { .. } => None,
        }
    }
}

/// The least payload that a message of drawn size may have: on a stream it begins with its size and its
/// number, 4 B each.
pub const LEAST_DRAWN: Bytes = Bytes::new(8);

/// A byte at 1 bit/s takes this many ns.
const BIT_NANOS_OF_A_BYTE: u128 = 8 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of version 13 of the live arena's protocol; those of constant sizes are as in
    /// version 9.
    #[test]
    fn every_workload_comes_back_from_its_text_and_a_file_without_its_path() {
        let size = Bytes::new(100);
        let file = |source: &str| WorkloadConfig::File {
            source: source.to_owned(),
            bytes: Bytes::new(3000),
            size,
            header: Bytes::new(8),
        };
        let burst = WorkloadConfig::Burst { count: 5, size, repeat: 2, gap: Duration::from_nanos(7) };
        let cbr = WorkloadConfig::Cbr { rate: Rate::from_bps(9), size: size.into() };
        let sizes = MessageSize::Uniform { min: Bytes::new(8), max: size };
        let drawn = WorkloadConfig::Cbr { rate: Rate::from_bps(9), size: sizes };
        for (config, text, comes_back) in [
            (WorkloadConfig::G711, r#"{"voice":{"ptime_ns":20000000,"size":160}}"#, None),
            (cbr, r#"{"cbr":{"rate_bps":9,"size":100}}"#, None),
            (drawn, r#"{"cbr":{"rate_bps":9,"size":{"min":8,"max":100}}}"#, None),
            (WorkloadConfig::Bulk { bytes: None }, r#"{"bulk":{"bytes":null}}"#, None),
            (burst, r#"{"burst":{"count":5,"size":100,"repeat":2,"gap_ns":7}}"#, None),
            (file("/a"), r#"{"file":{"bytes":3000,"size":100,"header":8}}"#, Some(file(""))),
        ] {
            assert_eq!(serde_json::to_string(&config).unwrap(), text);
            let back: WorkloadConfig = serde_json::from_str(text).unwrap();
            assert_eq!(back, comes_back.unwrap_or(config));
        }
    }

    /// 100 to 301 B at 8 kb/s: a message of 200.5 B in the mean takes 200.5 ms.
    #[test]
    fn demand_has_the_largest_of_drawn_sizes_on_the_clock_of_their_mean() {
        let size = MessageSize::Uniform { min: Bytes::new(100), max: Bytes::new(301) };
        let demand = WorkloadConfig::Cbr { rate: Rate::from_bps(8000), size }.demand();
        assert_eq!(demand.largest_message(), Some(Bytes::new(301)));
        assert_eq!(demand.messages_within(Duration::from_millis(2004)), Some(9));
        assert_eq!(demand.messages_within(Duration::from_millis(2005)), Some(10));
        assert!(
            size.allows(Bytes::new(301)) && !size.allows(Bytes::new(302)) && !size.allows(Bytes::new(99))
        );
    }
}
