//! The first bytes of a packet of Opus (RFC 6716 §3.1): they say the bandwidth, the frames and whether there
//! is in-band FEC. The rest of a simulated packet is zeros, as the simulator has no speech.

use talkpath_config::{Bandwidth, Codec, Coding};

/// The first two bytes of each packet of a coding: the TOC, and the number of frames if the TOC leaves it to
/// the second byte, or else the flags of SILK's first frame. Returns `None` of another codec than Opus.
pub(super) fn opus_head(coding: &Coding) -> Option<[u8; 2]> {
    if coding.codec != Codec::OPUS {
        return None;
    }
    let micros = coding.frame.as_nanos() / 1_000;
    let is_hybrid = matches!(coding.bandwidth, Bandwidth::SuperWide | Bandwidth::Full);
    // Hybrid frames have 20 ms at most, so libopus codes longer ones as several of them (opus_encoder.c).
    let (micros, parts) = if is_hybrid && micros > HYBRID { (HYBRID, micros / HYBRID) } else { (micros, 1) };
    let at = |lengths: &[u64]| lengths.iter().position(|length| *length == micros).unwrap_or_default() as u8;
    let configuration = match (coding.bandwidth, micros) {
        (bandwidth, ..10_000) => {
            let first = match bandwidth {
                Bandwidth::Narrow => 16,
                Bandwidth::Medium | Bandwidth::Wide => 20,
                Bandwidth::SuperWide => 24,
                Bandwidth::Full => 28,
            };
            first + at(&[2_500, 5_000])
        }
        (Bandwidth::Narrow, _) => at(&SILK),
        (Bandwidth::Medium, _) => 4 + at(&SILK),
        (Bandwidth::Wide, _) => 8 + at(&SILK),
        (Bandwidth::SuperWide, _) => 12 + at(&SILK),
        (Bandwidth::Full, _) => 14 + at(&SILK),
    };
    let frames = u8::try_from(u64::from(coding.frames_in_packet) * parts).unwrap_or(u8::MAX);
    let (code, second) = match frames {
        0 | 1 => (0, flags(configuration, micros, coding.has_fec)),
        2 => (1, flags(configuration, micros, coding.has_fec)),
        frames => (3, frames),
    };
    Some([configuration << 3 | code, second])
}

/// The flags of SILK's first frame (§4.2.3): voice activity for each 20 ms, and then whether the frame before
/// follows (LBRR). CELT has none.
fn flags(configuration: u8, micros: u64, has_fec: bool) -> u8 {
    if configuration >= FIRST_OF_CELT {
        return 0;
    }
    let activities = micros.div_ceil(HYBRID) as u32;
    let active = !(u8::MAX >> activities);
    if has_fec { active | 0x80 >> activities } else { active }
}

/// The lengths of SILK's frames in microseconds (Table 2).
const SILK: [u64; 4] = [10_000, 20_000, 40_000, 60_000];
/// The longest hybrid frame, and the length that SILK's flag of voice activity is for, in microseconds.
const HYBRID: u64 = 20_000;
/// The first configuration without SILK (Table 2).
const FIRST_OF_CELT: u8 = 16;

#[cfg(test)]
mod tests {
    use talkpath_units::Duration;

    use super::*;

    #[test]
    fn the_first_bytes_say_bandwidth_frames_and_fec_as_table_2_has_them() {
        let head = |bandwidth, millis_tenths: u64, frames_in_packet, has_fec| {
            let frame = Duration::from_micros(100 * millis_tenths);
            let usual = Coding::usual(Codec::OPUS);
            opus_head(&Coding { bandwidth, frame, frames_in_packet, has_fec, ..usual }).unwrap()
        };
        assert_eq!(head(Bandwidth::SuperWide, 200, 1, false), [13 << 3, 0x80]);
        assert_eq!(head(Bandwidth::SuperWide, 200, 1, true), [13 << 3, 0xc0]);
        assert_eq!(head(Bandwidth::Full, 600, 1, false), [15 << 3 | 3, 3], "three frames of 20 ms");
        assert_eq!(head(Bandwidth::Narrow, 600, 1, true), [3 << 3, 0xf0]);
        assert_eq!(head(Bandwidth::Wide, 100, 2, false), [8 << 3 | 1, 0x80]);
        assert_eq!(head(Bandwidth::Full, 25, 1, false), [28 << 3, 0]);
        assert_eq!(opus_head(&Coding::G711), None);
    }
}
