//! The coding of a stream of Opus, as its packets show it (RFC 6716 §3.1).
//!
//! The first byte of a packet, the TOC, says bandwidth, mode and length of its frames. The sizes of the
//! packets show whether the bit rate is constant, and which one it is on average. A frame of SILK says in its
//! first byte whether it also has the frame before it (LBRR, §4.2.3), which is in-band FEC. A lost packet
//! whose frame is in the packet behind it is repaired (`stream.rs`).
//!
//! The published figures go by the bit rate that the encoder was set to. With a constant bit rate that is the
//! rate of the packets. With a variable one it is what the receiver wants in SDP (`maxaveragebitrate`), and
//! the mean of the packets if SDP does not say it. The mean is lower where the speaker pauses.
//!
//! SRTP encrypts the bytes of Opus (RFC 3711 §3.1). The header of RTP and the sizes are still readable: they
//! show the time between packets, DTX, the bit rate, and whether it is constant. Everything else is assumed
//! ([`OpusCoding::of_encrypted`]).

use std::collections::BTreeMap;

use serde::Serialize;
use talkpath_config::{Bandwidth, Codec, Coding, Rated};
use talkpath_units::{Duration, Rate};

/// A packet of Opus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpusPacket {
    /// The TOC.
    pub(crate) toc: u8,
    /// The byte behind the TOC. `None` if it was not kept.
    pub(crate) second_byte: Option<u8>,
    /// The number of bytes of the packet.
    pub(crate) size: u16,
    /// Whether the timestamp is further from that of the packet before than a packet lasts, although no
    /// packet is missing.
    pub(crate) follows_silence: bool,
}

/// The coding of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpusCoding {
    pub(crate) coding: Coding,
    is_stereo: bool,
    /// Whether the encoder changes between bandwidths.
    has_several_bandwidths: bool,
    rate_by: RateSource,
    /// Whether the packets are encrypted, so that bandwidth, channels and FEC are assumed.
    is_assumed: bool,
}

/// Who says the bit rate of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// The receiver, in SDP.
    Sdp,
    /// The sizes of the packets.
    Packets,
}

/// The coding of a stream of Opus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodingSummary {
    /// The bandwidth of most packets.
    pub bandwidth: &'static str,
    /// Whether other packets have other bandwidths.
    pub mixed: bool,
    /// The bit rate of the speech, kb/s.
    pub kbps: f64,
    /// Who says the bit rate.
    pub kbps_by: RateSource,
    /// Whether the bit rate is variable.
    pub vbr: bool,
    /// The length of a frame.
    pub frame_ms: f64,
    /// The number of frames in a packet.
    pub frames_in_packet: u32,
    /// Whether packets have in-band FEC.
    pub fec: bool,
    /// Whether silence is suppressed.
    pub dtx: bool,
    /// Whether the speech has two channels.
    pub stereo: bool,
    /// Whether the packets are encrypted, so that bandwidth, channels and FEC are assumed.
    pub assumed: bool,
}

impl OpusCoding {
    /// Finds the coding of a stream. `stated` is the bit rate in SDP. Returns `None` if no TOC was kept.
    pub(crate) fn of(packets: impl Iterator<Item = OpusPacket>, stated: Option<Rate>) -> Option<Self> {
        let mut shapes: BTreeMap<Shape, u64> = BTreeMap::new();
        let mut bandwidths: BTreeMap<&'static str, u64> = BTreeMap::new();
        let (mut silent, mut with_fec, mut stereo, mut count) = (0_u64, 0_u64, 0_u64, 0_u64);
        let (mut bytes, mut sizes) = (0_u64, None::<(u16, u16)>);
        for packet in packets {
            silent += u64::from(packet.follows_silence || packet.size <= LARGEST_SILENT);
            if packet.size <= LARGEST_SILENT {
                continue;
            }
            let Some(shape) = Shape::of(packet) else { continue };
            count += 1;
            bytes += u64::from(packet.size);
            sizes = Some(sizes.map_or((packet.size, packet.size), |(least, most)| {
                (least.min(packet.size), most.max(packet.size))
            }));
            *shapes.entry(shape).or_default() += 1;
            *bandwidths.entry(shape.bandwidth().name()).or_default() += 1;
            with_fec += u64::from(has_earlier_frame(packet));
            stereo += u64::from(packet.toc & STEREO != 0);
        }
        let shape = *shapes.iter().max_by_key(|(_, count)| **count)?.0;
        let bandwidth = *bandwidths.iter().max_by_key(|(_, count)| **count)?.0;
        let is_vbr = sizes.is_some_and(|(least, most)| least != most);
        let time_ns = (shape.frame() * u64::from(shape.frames)).as_nanos().max(1) * count;
        let measured = u128::from(8 * bytes) * 1_000_000_000 / u128::from(time_ns);
        let measured = Rate::from_bps(u64::try_from(measured).unwrap_or(u64::MAX));
        let (bit_rate, rate_by) = match stated {
            Some(stated) if is_vbr => (stated, RateSource::Sdp),
            _ => (measured, RateSource::Packets),
        };
        let is_common = |part: u64| part as f64 >= LEAST_SHARE * count as f64;
        let of_bandwidth = bandwidths.get(bandwidth).copied().unwrap_or_default();
        Some(Self {
            coding: Coding {
                codec: Codec::OPUS,
                bandwidth: Bandwidth::named(bandwidth)?,
                bit_rate,
                is_vbr,
                frame: shape.frame(),
                frames_in_packet: shape.frames.into(),
                has_fec: is_common(with_fec),
                has_dtx: is_common(silent),
            },
            is_stereo: is_common(stereo),
            has_several_bandwidths: is_common(count - of_bandwidth),
            rate_by,
            is_assumed: false,
        })
    }

    /// Finds the coding of an encrypted stream whose packets are `packet_time` apart.
    ///
    /// We assume the coding that the published figures are for: super-wideband of one channel, with one frame
    /// in each packet and without in-band FEC, so that a lost packet is concealed. Each packet ends in a tag
    /// of 10 bytes (RFC 3711 §5.2).
    ///
    /// `sizes` has, for each packet, the number of bytes behind the header of RTP, and whether the packet
    /// follows a silence. Returns `None` if there is no packet.
    pub(crate) fn of_encrypted(
        sizes: impl Iterator<Item = (u16, bool)>,
        packet_time: Duration,
        stated: Option<Rate>,
    ) -> Option<Self> {
        let toc = SUPER_WIDE_20_MS << 3;
        let packets = sizes.map(|(size, follows_silence)| OpusPacket {
            toc,
            second_byte: None,
            size: size.saturating_sub(SRTP_TAG),
            follows_silence,
        });
        let mut found = Self::of(packets, stated)?;
        // The measured rate is that of packets of 20 ms.
        if found.rate_by == RateSource::Packets {
            let bps = u128::from(found.coding.bit_rate.as_bps()) * 20_000_000
                / u128::from(packet_time.as_nanos().max(1));
            found.coding.bit_rate = Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
        }
        (found.coding.frame, found.is_assumed) = (packet_time, true);
        Some(found)
    }

    /// Returns the published figures of the coding. Returns `None` if nobody published them.
    pub(crate) fn rated(&self) -> Option<Rated> {
        if self.is_stereo || self.has_several_bandwidths {
            return None;
        }
        self.coding.rated(true)
    }

    pub(crate) fn summary(&self) -> CodingSummary {
        CodingSummary {
            bandwidth: self.coding.bandwidth.name(),
            mixed: self.has_several_bandwidths,
            kbps: self.coding.bit_rate.as_bps() as f64 / 1e3,
            kbps_by: self.rate_by,
            vbr: self.coding.is_vbr,
            frame_ms: self.coding.frame.as_millis_f64(),
            frames_in_packet: self.coding.frames_in_packet,
            fec: self.coding.has_fec,
            dtx: self.coding.has_dtx,
            stereo: self.is_stereo,
            assumed: self.is_assumed,
        }
    }
}

impl CodingSummary {
    /// Describes the coding, as in `swb, VBR of 31.8 kb/s on average, frames of 20 ms, with in-band FEC`.
    pub(crate) fn words(&self) -> String {
        let by = match self.kbps_by {
            RateSource::Sdp => "by SDP",
            RateSource::Packets if self.vbr => "on average",
            RateSource::Packets => "by its packets",
        };
        let mode = if self.vbr { "VBR" } else { "CBR" };
        let mixed = if self.mixed { " and other bandwidths" } else { "" };
        let mut text = format!("{}{mixed}, {mode} of {:.1} kb/s {by}", self.bandwidth, self.kbps);
        text += &format!(", frames of {} ms", self.frame_ms);
        if self.frames_in_packet > 1 {
            text += &format!(", {} a packet", self.frames_in_packet);
        }
        for (is_so, word) in
            [(self.fec, ", with in-band FEC"), (self.dtx, ", with DTX"), (self.stereo, ", stereo")]
        {
            text += if is_so { word } else { "" };
        }
        text
    }
}

/// What the first bytes of a packet say of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    /// The configuration, 0 to 31 (RFC 6716, Table 2).
    configuration: u8,
    /// The number of frames, at least 1.
    frames: u8,
}

impl Shape {
    /// Reads the shape. Returns `None` if the number of frames was not kept, or is 0.
    fn of(packet: OpusPacket) -> Option<Self> {
        let frames = match packet.toc & 3 {
            0 => 1,
            1 | 2 => 2,
            // §3.2.5: the second byte has the number.
            _ => packet.second_byte? & 0x3f,
        };
        (frames > 0).then_some(Self { configuration: packet.toc >> 3, frames })
    }

    /// RFC 6716, Table 2.
    fn bandwidth(self) -> Bandwidth {
        match self.configuration {
            0..=3 | 16..=19 => Bandwidth::Narrow,
            4..=7 => Bandwidth::Medium,
            8..=11 | 20..=23 => Bandwidth::Wide,
            12 | 13 | 24..=27 => Bandwidth::SuperWide,
            _ => Bandwidth::Full,
        }
    }

    /// RFC 6716, Table 2.
    fn frame(self) -> Duration {
        let number = usize::from(self.configuration);
        let micros = match self.configuration {
            0..=11 => [10_000, 20_000, 40_000, 60_000][number % 4],
            12..=15 => [10_000, 20_000][number % 2],
            _ => [2_500, 5_000, 10_000, 20_000][number % 4],
        };
        Duration::from_micros(micros)
    }
}

/// Whether the first frame of a packet also has the frame before it. The frames of CELT never do. We do not
/// look behind the padding of packets with a code of 3.
pub(crate) fn has_earlier_frame(packet: OpusPacket) -> bool {
    let Some(shape) = Shape::of(packet) else { return false };
    if shape.configuration >= FIRST_OF_CELT || packet.toc & 3 != 0 {
        return false;
    }
    // RFC 6716 §4.2.3: a flag of voice activity for each 20 ms, and then the flag of LBRR. Of two channels
    // the second follows with as many.
    let activities = shape.frame().as_nanos().div_ceil(SILK_FRAME.as_nanos());
    let channels = if packet.toc & STEREO != 0 { 2 } else { 1 };
    let flag = |channel: u64| 0x80_u8 >> (channel * (activities + 1) + activities);
    packet.second_byte.is_some_and(|byte| (0..channels).any(|channel| byte & flag(channel) != 0))
}

/// The configuration of SILK and CELT in super-wideband with frames of 20 ms (RFC 6716, Table 2).
const SUPER_WIDE_20_MS: u8 = 13;
/// The size of the tag behind an encrypted packet, bytes (RFC 3711 §5.2, HMAC-SHA1-80). Other tags have 4 or
/// 16 bytes: the bit rate of 50 packets a second is then wrong by 2.4 kb/s.
const SRTP_TAG: u16 = 10;
/// The bit of the TOC for two channels (RFC 6716 §3.1).
const STEREO: u8 = 4;
/// The first configuration without SILK (RFC 6716, Table 2).
const FIRST_OF_CELT: u8 = 16;
/// The frame inside of longer frames of SILK (RFC 6716 §4.2.2).
const SILK_FRAME: Duration = Duration::from_millis(20);
/// The largest packet that only says that there is silence. libopus sends 2 bytes or less then (`DTX` in
/// opus_encode, opus.h).
const LARGEST_SILENT: u16 = 2;
/// The share of packets from which on something belongs to the coding. We chose 1 %, so that the first
/// packets of an encoder, and a damaged packet, do not decide.
const LEAST_SHARE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of one frame. SILK's first bits are voice activity, and FEC.
    fn packet(configuration: u8, size: u16, second_byte: u8) -> OpusPacket {
        OpusPacket { toc: configuration << 3, second_byte: Some(second_byte), size, follows_silence: false }
    }

    fn of(packets: &[OpusPacket], stated: Option<u64>) -> OpusCoding {
        OpusCoding::of(packets.iter().copied(), stated.map(Rate::from_bps)).unwrap()
    }

    #[test]
    fn bandwidth_rate_and_mode_are_those_of_the_packets() {
        let constant = of(&[packet(13, 80, 0x80); 100], Some(20_000));
        assert_eq!(constant.summary().words(), "swb, CBR of 32.0 kb/s by its packets, frames of 20 ms");
        let published = Coding { is_vbr: false, ..Coding::usual(Codec::OPUS) }.rated(true);
        assert_eq!((constant.rated(), published.is_some()), (published, true));
        let variable: Vec<OpusPacket> = (0..100).map(|at| packet(13, 60 + at % 2 * 20, 0x80)).collect();
        assert_eq!(
            of(&variable, None).summary().words(),
            "swb, VBR of 28.0 kb/s on average, frames of 20 ms"
        );
        let stated = of(&variable, Some(32_000));
        assert_eq!(stated.summary().words(), "swb, VBR of 32.0 kb/s by SDP, frames of 20 ms");
        assert!(stated.rated().is_some());
        // Frames of 60 ms of wideband, two of them in a packet: 300 bytes in 120 ms.
        let long = OpusPacket { toc: 11 << 3 | 1, ..packet(11, 300, 0) };
        let long = of(&[long; 20], None);
        assert_eq!(
            long.summary().words(),
            "wb, CBR of 20.0 kb/s by its packets, frames of 60 ms, 2 a packet"
        );
        assert_eq!(long.rated(), None);
    }

    #[test]
    fn fec_dtx_stereo_and_a_change_of_bandwidth_are_found_and_have_no_published_figures() {
        let plain = packet(13, 80, 0x80);
        let with = |other: OpusPacket| of(&[[plain; 9].as_slice(), &[other]].concat(), Some(32_000));
        let fec = with(packet(13, 85, 0xc0));
        assert_eq!((fec.coding.has_fec, fec.rated()), (true, None));
        // The same bit of a frame of CELT is no flag.
        assert!(!of(&[packet(31, 80, 0xc0); 10], None).coding.has_fec);
        // Of 60 ms of SILK it is the flag of the second 20 ms.
        assert!(!of(&[packet(11, 80, 0x40); 10], None).coding.has_fec);
        assert!(of(&[packet(11, 80, 0x10); 10], None).coding.has_fec);
        // The second channel of 20 ms has its flag behind its own voice activity.
        let second = |byte| OpusPacket { toc: 9 << 3 | STEREO, ..packet(9, 80, byte) };
        assert!(has_earlier_frame(second(0x10)) && !has_earlier_frame(second(0x20)));
        let silent = with(OpusPacket { follows_silence: true, ..plain });
        assert_eq!((silent.coding.has_dtx, silent.rated()), (true, None));
        assert!(with(packet(13, 1, 0)).coding.has_dtx);
        let stereo = with(OpusPacket { toc: plain.toc | STEREO, ..plain });
        assert_eq!((stereo.is_stereo, stereo.rated()), (true, None));
        let mixed = with(packet(9, 80, 0x80));
        assert_eq!((mixed.coding.bandwidth, mixed.rated()), (Bandwidth::SuperWide, None));
        assert!(of(&[plain; 10], None).rated().is_some());
    }

    #[test]
    fn of_encrypted_packets_rate_mode_and_pauses_are_known_and_the_rest_is_assumed() {
        let frame = Duration::from_millis(20);
        let coding = OpusCoding::of_encrypted([(90, false); 100].into_iter(), frame, None).unwrap();
        assert_eq!(coding.summary().words(), "swb, CBR of 32.0 kb/s by its packets, frames of 20 ms");
        assert_eq!(
            (coding.rated(), coding.summary().assumed),
            (of(&[packet(13, 80, 0x80); 100], None).rated(), true)
        );
        let variable = |number: u16| (70 + number % 2 * 40, false);
        let variable = OpusCoding::of_encrypted((0..100).map(variable), frame, None).unwrap();
        assert!(variable.coding.is_vbr && variable.rated().is_some());
        let long = OpusCoding::of_encrypted([(90, false); 100].into_iter(), frame * 2, None).unwrap();
        assert_eq!((long.summary().kbps, long.rated()), (16.0, None), "nobody published frames of 40 ms");
        let silent = (0..100).map(|number| (90, number % 20 == 0));
        assert_eq!(OpusCoding::of_encrypted(silent, frame, None).unwrap().rated(), None, "DTX");
        assert_eq!(OpusCoding::of_encrypted(core::iter::empty(), frame, None), None);
    }

    #[test]
    fn packets_without_a_toc_or_without_frames_have_no_coding() {
        assert_eq!(OpusCoding::of(core::iter::empty(), None), None);
        let none = OpusPacket { toc: 13 << 3 | 3, ..packet(13, 80, 0) };
        assert_eq!(OpusCoding::of([none].into_iter(), None), None);
    }
}
