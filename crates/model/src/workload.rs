//! The workloads: the messages that an application sends.
//!
//! - A workload is *clocked* if its messages are due at fixed times, whatever the network does.
//! - A workload is *greedy* if it sends as fast as the transport accepts data.
//! - The *demand* is the largest load that a workload puts on its transport. Memory and admission are
//!   computed from it.
//!
//! Begin to read with [`WorkloadConfig`]. A new workload is a variant there and in
//! [`WorkloadConfig::demand`], from which most other methods follow.

use serde::{Deserialize, Serialize};
use talkpath_units::{Bytes, Duration, Rate};

use crate::message_size::MessageSize;
use crate::voice::VoiceConfig;

/// The messages that an application sends. Two real hosts exchange this type as JSON, in ns, B and bit/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadConfig {
    /// A packet of speech every `ptime`.
    Voice(VoiceConfig),
    /// Messages at a constant rate.
    Cbr {
        /// The mean payload rate.
        #[serde(rename = "rate_bps")]
        rate: Rate,
        /// The payload of a message.
        size: MessageSize,
    },
    /// As much data as the transport accepts, in messages of up to 64 KiB.
    Bulk {
        /// The size of the transfer. `None` sends until the duration ends.
        bytes: Option<Bytes>,
    },
    /// The bytes of a file, as fast as the transport accepts them.
    File {
        /// The whole path of the file. It is not sent to the other host.
        #[serde(skip)]
        source: String,
        /// The size of the file when the scenario was read. It is above zero.
        bytes: Bytes,
        /// The largest message.
        size: Bytes,
        /// The number of bytes in each message that do not belong to the file. Over UDP they hold the place
        /// of the bytes in the file.
        header: Bytes,
    },
    /// Bursts of messages, each as fast as the transport accepts the messages.
    Burst {
        /// The number of messages in a burst.
        count: u64,
        /// The payload of a message.
        size: Bytes,
        /// The number of bursts.
        repeat: u64,
        /// The time from the last message of a burst to the first message of the next burst.
        #[serde(rename = "gap_ns")]
        gap: Duration,
    },
}

/// The largest load that a workload puts on its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Messages at fixed times: `messages` messages in `nanos` ns, again and again.
    Clocked {
        /// The payload of the largest message.
        size: Bytes,
        /// The number of messages in `nanos`.
        messages: u64,
        /// The time for `messages`, ns.
        nanos: u128,
    },
    /// Bursts of messages, each as fast as the transport accepts the messages.
    Bursts {
        /// The payload of the largest message.
        size: Bytes,
        /// The number of messages in a burst.
        count: u64,
        /// The number of bursts.
        repeat: u64,
        /// The time from the last message of a burst to the first message of the next burst.
        gap: Duration,
    },
    /// As much data as the transport accepts, in messages as large as its room.
    Greedy {
        /// The payload of all messages together. `None` if the transfer has no end.
        bytes: Option<Bytes>,
        /// The largest message. `None` if only the room in the transport limits it.
        largest: Option<Bytes>,
    },
}

impl WorkloadConfig {
    /// A call without RTP: 160 B of G.711 every 20 ms (ITU-T G.711; RFC 3551 §4.2).
    pub const G711: Self = Self::Voice(VoiceConfig::G711);

    /// Returns the largest load that the workload puts on its transport.
    pub fn demand(&self) -> Demand {
        match *self {
            Self::Voice(ref voice) => Demand::Clocked {
                size: voice.sizes().largest(),
                messages: voice.copies(),
                nanos: u128::from(voice.ptime.as_nanos()),
            },
            Self::Cbr { rate, size } => {
                // At 1 bit/s one message of mean size takes this long, and so do `rate` messages at `rate`
                // bit/s.
                let nanos = u128::from(size.twice_mean().max(2)) * (NANOS_PER_BYTE_AT_1_BPS / 2);
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

    /// Returns the payload of the messages, or `None` if it depends on the room in the transport.
    pub fn sizes(&self) -> Option<MessageSize> {
        match self {
            Self::Voice(voice) => Some(voice.sizes()),
            Self::Burst { size, .. } => Some(MessageSize::Constant(*size)),
            Self::Cbr { size, .. } => Some(*size),
            Self::Bulk { .. } | Self::File { .. } => None,
        }
    }

    /// Returns the payload of all messages, or `None` if the sizes differ or depend on the room in the
    /// transport.
    pub fn constant_size(&self) -> Option<Bytes> {
        match self.sizes() {
            Some(sizes) => sizes.constant(),
            None => None,
        }
    }

    /// Whether the sender chooses the size of each message at random.
    pub fn has_drawn_sizes(&self) -> bool {
        matches!(self.sizes(), Some(MessageSize::Uniform { .. }))
    }

    /// Returns the call, or `None` if the workload is not a call.
    pub const fn voice(&self) -> Option<&VoiceConfig> {
        match self {
            Self::Voice(voice) => Some(voice),
            Self::Cbr { .. } | Self::Bulk { .. } | Self::File { .. } | Self::Burst { .. } => None,
        }
    }

    /// Whether messages are due at fixed times (`voice`, `cbr`).
    pub fn is_clocked(&self) -> bool {
        match self.demand() {
            Demand::Clocked { .. } => true,
            Demand::Bursts { .. } | Demand::Greedy { .. } => false,
        }
    }

    /// Whether the workload sends bursts.
    pub fn sends_bursts(&self) -> bool {
        match self.demand() {
            Demand::Bursts { .. } => true,
            Demand::Clocked { .. } | Demand::Greedy { .. } => false,
        }
    }

    /// Whether the workload can end before the duration ends.
    pub fn is_bounded(&self) -> bool {
        match self.demand() {
            Demand::Clocked { .. } => false,
            Demand::Bursts { .. } => true,
            Demand::Greedy { bytes, .. } => bytes.is_some(),
        }
    }

    /// Returns the payload of a `bulk` or `file` transfer, headers included. Returns `None` for a transfer
    /// without an end, and for other workloads.
    pub fn transfer_size(&self) -> Option<Bytes> {
        match self.demand() {
            Demand::Greedy { bytes, .. } => bytes,
            Demand::Clocked { .. } | Demand::Bursts { .. } => None,
        }
    }
}

impl Demand {
    /// Returns the largest message, or `None` if only the room in the transport limits it.
    pub const fn largest_message(self) -> Option<Bytes> {
        match self {
            Self::Clocked { size, .. } | Self::Bursts { size, .. } => Some(size),
            Self::Greedy { largest, .. } => largest,
        }
    }

    /// Returns the largest number of messages within `duration`, rounded down, or `None` if the room in the
    /// transport decides.
    pub fn messages_within(self, duration: Duration) -> Option<u128> {
        let duration = u128::from(duration.as_nanos());
        match self {
            Self::Clocked { messages, nanos, .. } => Some(duration * u128::from(messages) / nanos.max(1)),
            Self::Bursts { count, repeat, gap, .. } => {
                // A burst begins only if the gaps before it end within the duration.
                let bursts = match u128::from(gap.as_nanos()) {
                    0 => u128::from(repeat),
                    gap => u128::from(repeat).min(duration / gap + 1),
                };
                Some(u128::from(count).saturating_mul(bursts))
            }
            Self::Greedy { .. } => None,
        }
    }
}

/// The smallest payload of a message of random size. On a stream such a message begins with its size and its
/// number, which have 4 B each.
pub const LEAST_DRAWN: Bytes = Bytes::new(8);

/// The time that a byte takes at 1 bit/s, ns.
const NANOS_PER_BYTE_AT_1_BPS: u128 = 8 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of version 14 of the live arena's protocol; those of constant sizes are as in
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
