//! Opus (RFC 6716) in RTP (RFC 7587): 6 to 128 kb/s, frames of 2.5 to 60 ms.
//!
//! - The scenario chooses the bit rate, which the encoder holds in each frame (CBR) or on average (VBR).
//! - In-band FEC takes its bits from this rate: a frame also has the frame before it, at a lower quality.
//!   SILK alone has it, so frames of 2.5 and 5 ms, which are CELT's, do not (RFC 6716 §2.1.7 and Table 2).
//! - The ITU has no figures for Opus. Ie and Bpl are those that Alahmadi, Pocta and Melvin published (ACM
//!   TOMM 17, 2021, doi 10.1145/3458751, with a table under the MIT licence): frames of 20 ms without FEC and
//!   DTX, at some bit rates of three bandwidths. Between two rates of the table we take the straight line.
//!   Beyond the table there is no rating.

use talkpath_units::{Bytes, Duration, Rate};

use super::{
    Bandwidth, ChosenFrames, Codec, CodecConcealment, CodecRow, Coding, Frames, Impairment, Rated, Scale,
    SilenceShape,
};

impl Codec {
    /// Opus. Its decoder always conceals.
    pub const OPUS: Self = Self(&CodecRow {
        name: "opus",
        title: "Opus",
        about: "RFC 6716, 6 to 128 kb/s; rated by Alahmadi et al. 2021",
        // RFC 7587 §7 leaves the payload type to SDP. Browsers take 111.
        payload_type: 111,
        // RFC 7587 §4.1, whatever the bandwidth.
        clock_hz: 48_000,
        frames: Frames::Chosen(ChosenFrames {
            least_rate: Rate::from_bps(6_000),
            most_rate: Rate::from_bps(128_000),
            // The rate of a browser's voice (libwebrtc's default for one channel).
            usual_rate: Rate::from_bps(32_000),
            // RFC 6716 §2.1.4. RFC 7587 §4.2: up to 120 ms in a packet.
            times: &[
                Duration::from_micros(2_500),
                Duration::from_millis(5),
                Duration::from_millis(10),
                Duration::from_millis(20),
                Duration::from_millis(40),
                Duration::from_millis(60),
            ],
            longest_packet: Duration::from_millis(120),
            usual_bandwidth: Bandwidth::SuperWide,
        }),
        // RFC 6716 §2: 5 ms of look-ahead and 1.5 ms for a change of the sampling rate.
        look_ahead: Duration::from_micros(6_500),
        concealment: CodecConcealment {
            name: "opus",
            about: "is the concealment of its decoder (RFC 6716 §4.4)",
            title: "its own",
            is_optional: false,
        },
        // RFC 6716 §2.1.9: in silence one frame every 400 ms. It is an ordinary frame.
        silence: SilenceShape { descriptor: None, every: Some(Duration::from_millis(400)) },
        rate: |coding, _| rate(coding),
    });
    /// What the published figures of Opus are for.
    pub const OPUS_PUBLISHED: &str = "nb from 6 to 9 kb/s (CBR to 11), wb from 11 to 13 (CBR 12 to 15) and swb from 14 to 40 (CBR from 16), \
                                      in packets of 20 ms without FEC and DTX (Alahmadi et al. 2021)";
}

/// Returns the size of a packet of this time at a constant bit rate. libopus rounds to the nearest byte
/// (`opus_encoder.c`: (bits + 4) / 8); the test compares with packets of libopus 1.6.1.
pub(super) fn packet_size(bit_rate: Rate, time: Duration) -> Bytes {
    let bits = u128::from(bit_rate.as_bps()) * u128::from(time.as_nanos()) / 1_000_000_000;
    Bytes::new(u64::try_from((bits + 4) / 8).unwrap_or(u64::MAX))
}

/// Whether frames of this length are coded by SILK, alone or below CELT (RFC 6716, Table 2).
pub(super) fn has_silk(frame: Duration) -> bool {
    frame >= Duration::from_millis(10)
}

/// A row of the table: Ie, and Bpl for losses at random and in bursts, at a bit rate.
struct RatePoint {
    kbps: f64,
    ie: f64,
    random_bpl: f64,
    bursty_bpl: f64,
}

const fn point(kbps: f64, ie: f64, random_bpl: f64, bursty_bpl: f64) -> RatePoint {
    RatePoint { kbps, ie, random_bpl, bursty_bpl }
}

fn rate(coding: &Coding) -> Option<Rated> {
    if coding.frame != RATED_FRAME || coding.frames_in_packet != 1 || coding.has_fec || coding.has_dtx {
        return None;
    }
    let (scale, table) = match (coding.bandwidth, coding.is_vbr) {
        (Bandwidth::Narrow, true) => (Scale::Narrow, NARROW_VBR),
        (Bandwidth::Narrow, false) => (Scale::Narrow, NARROW_CBR),
        (Bandwidth::Wide, true) => (Scale::Wide, WIDE_VBR),
        (Bandwidth::Wide, false) => (Scale::Wide, WIDE_CBR),
        (Bandwidth::SuperWide, true) => (Scale::SuperWide, SUPER_WIDE_VBR),
        (Bandwidth::SuperWide, false) => (Scale::SuperWide, SUPER_WIDE_CBR),
        (Bandwidth::Medium | Bandwidth::Full, _) => return None,
    };
    let kbps = coding.bit_rate.as_bps() as f64 / 1000.0;
    let above = table.iter().position(|point| point.kbps >= kbps)?;
    let high = &table[above];
    // Below the first row there is none but at the row itself.
    let low = if high.kbps > kbps { table.get(above.checked_sub(1)?)? } else { high };
    let share = if high.kbps > low.kbps { (kbps - low.kbps) / (high.kbps - low.kbps) } else { 0.0 };
    let between = |low: f64, high: f64| low + share * (high - low);
    Some(Rated {
        scale,
        impairment: Impairment {
            ie: between(low.ie, high.ie),
            bpl: between(low.random_bpl, high.random_bpl),
        },
        bursty_bpl: Some(between(low.bursty_bpl, high.bursty_bpl)),
        source: "Alahmadi et al. 2021",
    })
}

/// The frames of the published figures.
const RATED_FRAME: Duration = Duration::from_millis(20);

// The table of Alahmadi, Pocta and Melvin (2021), by bandwidth and mode of the encoder. Two decimals.

const SUPER_WIDE_VBR: &[RatePoint] = &[
    point(14.0, 38.06, 16.51, 9.13),
    point(15.0, 34.12, 15.0, 7.9),
    point(16.0, 30.16, 11.83, 10.06),
    point(19.0, 23.81, 10.67, 8.92),
    point(22.0, 20.22, 10.47, 8.57),
    point(25.0, 20.21, 11.28, 9.18),
    point(28.0, 18.48, 10.63, 8.91),
    point(31.0, 16.83, 10.44, 8.82),
    point(34.0, 14.76, 10.12, 8.54),
    point(37.0, 12.08, 10.38, 8.3),
    point(40.0, 10.67, 9.79, 8.04),
];
const SUPER_WIDE_CBR: &[RatePoint] = &[
    point(16.0, 36.88, 13.3, 10.8),
    point(19.0, 29.58, 10.74, 8.93),
    point(22.0, 23.38, 10.01, 8.46),
    point(25.0, 22.64, 10.57, 8.74),
    point(28.0, 23.65, 11.67, 9.98),
    point(31.0, 21.74, 11.51, 9.58),
    point(34.0, 20.62, 11.78, 9.69),
    point(37.0, 16.23, 10.62, 8.99),
    point(40.0, 15.9, 11.35, 9.37),
];
const WIDE_VBR: &[RatePoint] =
    &[point(11.0, 28.41, 23.94, 20.12), point(12.0, 23.3, 22.22, 18.9), point(13.0, 19.96, 19.5, 16.92)];
const WIDE_CBR: &[RatePoint] = &[
    point(12.0, 29.76, 24.81, 20.78),
    point(13.0, 26.16, 23.0, 19.37),
    point(14.0, 20.77, 17.56, 15.85),
    point(15.0, 18.06, 18.74, 16.1),
];
const NARROW_VBR: &[RatePoint] = &[
    point(6.0, 23.0, 24.56, 15.36),
    point(7.0, 21.26, 22.46, 14.43),
    point(8.0, 16.02, 20.26, 13.48),
    point(9.0, 11.74, 18.91, 12.44),
];
const NARROW_CBR: &[RatePoint] = &[
    point(6.0, 46.27, 8.94, 5.66),
    point(7.0, 31.73, 18.18, 11.76),
    point(8.0, 19.25, 15.13, 10.13),
    point(9.0, 13.21, 17.24, 11.36),
    point(10.0, 6.2, 15.33, 10.47),
    point(11.0, 2.03, 15.95, 10.73),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(kbps: u64) -> Coding {
        Coding { bit_rate: Rate::from_bps(1000 * kbps), ..Coding::usual(Codec::OPUS) }
    }

    #[test]
    fn published_rates_have_their_figures_and_a_rate_between_two_lies_on_the_line() {
        let rated = |kbps| coding(kbps).rated(true).map(|rated| rated.impairment);
        assert_eq!(rated(34), Some(Impairment { ie: 14.76, bpl: 10.12 }));
        assert_eq!(rated(40), Some(Impairment { ie: 10.67, bpl: 9.79 }));
        let between = rated(32).unwrap();
        assert!((between.ie - 16.14).abs() < 1e-9, "16.83 - 2.07 / 3: {between:?}");
        assert_eq!(rated(14).map(|rated| rated.ie), Some(38.06));
    }

    /// Published are 14 to 40 kb/s of super-wideband, 11 to 15 of wideband and 6 to 11 of narrowband, with
    /// frames of 20 ms.
    #[test]
    fn what_nobody_published_has_no_rating() {
        for other in [
            coding(13),
            coding(41),
            Coding { bandwidth: Bandwidth::Wide, ..coding(16) },
            Coding { bandwidth: Bandwidth::Full, ..coding(32) },
            Coding { bandwidth: Bandwidth::Medium, ..coding(12) },
            Coding { frame: Duration::from_millis(10), ..coding(32) },
            Coding { frames_in_packet: 2, ..coding(32) },
            Coding { has_fec: true, ..coding(32) },
            Coding { has_dtx: true, ..coding(32) },
        ] {
            assert_eq!(other.rated(true), None, "{other:?}");
        }
    }

    #[test]
    fn each_bandwidth_is_rated_on_its_own_scale() {
        for (bandwidth, kbps, scale) in [
            (Bandwidth::Narrow, 9, Scale::Narrow),
            (Bandwidth::Wide, 13, Scale::Wide),
            (Bandwidth::SuperWide, 32, Scale::SuperWide),
        ] {
            let rated = Coding { bandwidth, ..coding(kbps) }.rated(true).unwrap();
            assert_eq!((rated.scale, rated.source), (scale, "Alahmadi et al. 2021"));
        }
    }
}
