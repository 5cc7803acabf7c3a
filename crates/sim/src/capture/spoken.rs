//! The packets of a call whose sender suppresses silence, repeats earlier speech, or sends packets several
//! times. The number of a message is then not that of a packet of RTP, and does not say when it is due.
//!
//! A packet of the simulator has its number and its size alone. The rest follows from the workload, which is
//! run once more.

use talkpath_flow::Workload as _;
use talkpath_flow::workload::Voice;
use talkpath_model::VoiceConfig;
use talkpath_units::{Bytes, Duration, Instant, Seed};

use super::rtp::RtpFrame;

/// The packets of a call.
#[derive(Clone, Debug)]
pub(super) struct SpokenPackets {
    packets: Vec<SpokenPacket>,
    /// The number of times that each packet is sent.
    copies: u64,
    has_red: bool,
}

/// A packet of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpokenPacket {
    /// The number of the packet, which is its sequence number.
    pub(super) number: u64,
    /// When it is due, in packet times since the first packet.
    pub(super) slot: u64,
    /// Whether it begins a talkspurt.
    pub(super) is_first: bool,
    /// Whether it describes a silence.
    is_descriptor: bool,
    /// The size of its own speech in bytes.
    own: usize,
    /// The number of earlier packets whose speech it has.
    earlier: usize,
}

impl SpokenPackets {
    /// Makes the packets that a call has until `stop`. Returns `None` if each message is a packet of RTP, and
    /// if they follow each other without a silence.
    pub(super) fn of(voice: &VoiceConfig, seed: Seed, stop: Instant) -> Option<Self> {
        let sender =
            voice.sender.filter(|sender| sender.silence.is_some() || sender.red > 0 || sender.copies > 1)?;
        let copies = voice.copies();
        let mut workload = Voice::new(voice, seed, stop);
        workload.open(Instant::ZERO);
        let mut packets: Vec<SpokenPacket> = Vec::new();
        while let Some(message) = workload.poll_message(Bytes::new(u64::MAX), Instant::MAX) {
            if !message.seq.is_multiple_of(copies) {
                continue;
            }
            let slot = message.due.as_nanos() / voice.ptime.max(Duration::from_nanos(1)).as_nanos();
            let is_first = packets.last().is_none_or(|before| before.slot + 1 < slot);
            let follows = packets.iter().rev().zip(1..=u64::from(sender.red));
            let follows = follows.take_while(|(before, distance)| before.slot + distance == slot);
            let earlier = if is_first { 0 } else { follows.count() };
            let before: usize = packets.iter().rev().take(earlier).map(|it| it.own + BLOCK_HEADER).sum();
            let header = if sender.red > 0 { LAST_HEADER } else { 0 };
            let payload =
                usize::try_from(message.size.saturating_sub(sender.headers).get()).unwrap_or_default();
            let own = payload.saturating_sub(before + header);
            let descriptor = sender.silence.and_then(|silence| silence.descriptor);
            let is_descriptor = descriptor.is_some_and(|size| size.get() == own as u64);
            let number = message.seq / copies;
            packets.push(SpokenPacket { number, slot, is_first, is_descriptor, own, earlier });
        }
        Some(Self { packets, copies, has_red: sender.red > 0 })
    }

    /// The packet of the message with this number.
    pub(super) fn of_message(&self, seq: u64) -> Option<SpokenPacket> {
        self.packets.get(usize::try_from(seq / self.copies).ok()?).copied()
    }

    /// The payload type of a packet.
    pub(super) fn payload_type(&self, packet: SpokenPacket, rtp: RtpFrame) -> u8 {
        if self.has_red { RED } else { packet.payload_type(rtp) }
    }

    /// Appends the speech of a packet: what the codec puts first, and `filling`. With RED the speech of
    /// earlier packets stands before it (RFC 2198 §3).
    pub(super) fn encode(&self, packet: SpokenPacket, rtp: RtpFrame, filling: u8, message: &mut Vec<u8>) {
        let number = usize::try_from(packet.number).unwrap_or_default();
        let earlier = self.packets.get(number.saturating_sub(packet.earlier)..number).unwrap_or_default();
        if self.has_red {
            for before in earlier {
                let passed = (packet.slot - before.slot).saturating_mul(rtp.samples_per_packet.into());
                let header = 1 << 31
                    | u32::from(before.payload_type(rtp)) << 24
                    | (passed.min(MOST_PASSED) as u32) << 10
                    | before.own.min(LARGEST_BLOCK) as u32;
                message.extend(header.to_be_bytes());
            }
            message.push(packet.payload_type(rtp));
        }
        for part in earlier.iter().filter(|_| self.has_red).chain([&packet]) {
            let end = message.len() + part.own;
            message.extend(rtp.head.into_iter().flatten());
            message.truncate(end);
            message.resize(end, filling);
        }
    }
}

impl SpokenPacket {
    fn payload_type(self, rtp: RtpFrame) -> u8 {
        if self.is_descriptor && rtp.payload_type == PCMU { COMFORT_NOISE } else { rtp.payload_type }
    }
}

/// The payload type of RED: that of the example in RFC 2198 §5.
const RED: u8 = 121;
/// The payload types of G.711 with the mu-law and of comfort noise (RFC 3551 §6).
const PCMU: u8 = 0;
const COMFORT_NOISE: u8 = 13;
/// The sizes of the headers of an earlier block and of the last block (RFC 2198 §3).
const BLOCK_HEADER: usize = 4;
const LAST_HEADER: usize = 1;
/// The largest offset of a timestamp and the largest block that a header can say (14 and 10 bits).
const MOST_PASSED: u64 = 0x3fff;
const LARGEST_BLOCK: usize = 0x3ff;

#[cfg(test)]
mod tests {
    use talkpath_config::Coding;
    use talkpath_model::{Silence, SizeSpread, VoiceHeaders, VoiceSender};

    use super::*;

    const RTP: RtpFrame = RtpFrame { payload_type: 0, samples_per_packet: 160, extensions: 0, head: None };

    fn voice(sender: VoiceSender) -> VoiceConfig {
        VoiceConfig {
            coding: Coding::G711,
            ptime: Duration::from_millis(20),
            size: Bytes::new(172),
            headers: VoiceHeaders { rtp: Bytes::new(12), ..VoiceHeaders::default() },
            sender: Some(sender),
        }
    }

    const SENDER: VoiceSender = VoiceSender {
        headers: Bytes::new(12),
        spread: SizeSpread::Constant,
        silence: None,
        red: 0,
        copies: 1,
    };

    fn spoken(sender: VoiceSender) -> Option<SpokenPackets> {
        SpokenPackets::of(&voice(sender), Seed::new(1), Instant::from_secs(60))
    }

    #[test]
    fn each_copy_has_the_number_of_its_packet() {
        assert!(spoken(SENDER).is_none());
        let packets = spoken(VoiceSender { copies: 3, ..SENDER }).unwrap();
        let of = |seq| packets.of_message(seq).map(|packet| (packet.number, packet.slot, packet.is_first));
        assert_eq!([0, 1, 2, 3].map(of), [(0, 0, true), (0, 0, true), (0, 0, true), (1, 1, false)].map(Some));
    }

    /// RFC 2198 §3: F, 7 bits of payload type, 14 bits of offset, 10 bits of length.
    #[test]
    fn red_has_the_speech_of_the_packets_before() {
        let packets = spoken(VoiceSender { red: 2, ..SENDER }).unwrap();
        let payload = |seq| {
            let mut bytes = Vec::new();
            let packet = packets.of_message(seq).unwrap();
            packets.encode(packet, RTP, 0xff, &mut bytes);
            bytes
        };
        assert_eq!(payload(0).len(), 161);
        let third = payload(2);
        assert_eq!(third.len(), 4 + 4 + 1 + 3 * 160);
        assert_eq!(third[..9], [0x80, 0x05, 0x00, 0xa0, 0x80, 0x02, 0x80, 0xa0, 0]);
        let third = packets.of_message(2).unwrap();
        assert_eq!(packets.payload_type(third, RTP), 121);
    }

    #[test]
    fn after_a_silence_a_packet_is_the_first_one_and_has_no_earlier_speech() {
        let silence = Some(Silence { descriptor: Some(Bytes::new(1)), every: None });
        let packets = spoken(VoiceSender { silence, red: 1, ..SENDER }).unwrap();
        let jumps: Vec<_> =
            packets.packets.windows(2).filter(|pair| pair[1].slot > pair[0].slot + 1).collect();
        assert!(jumps.len() > 10);
        for pair in jumps {
            let mut bytes = Vec::new();
            packets.encode(pair[1], RTP, 0xff, &mut bytes);
            assert!(pair[0].is_descriptor && pair[1].is_first && !pair[1].is_descriptor, "{pair:?}");
            assert_eq!(bytes.len(), 161, "{pair:?}");
        }
    }
}
