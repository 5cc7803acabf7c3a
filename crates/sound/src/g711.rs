//! G.711: each sample is coded as a sign, one of eight segments, and one of 16 steps in the segment (ITU-T
//! G.711 §2, Tables 1a to 2b).
//!
//! Linear samples have 16 bits here. The tables have 13 bits for the A-law and 14 bits for the mu-law, so a
//! sample is 8 times a value of Table 1a, or 4 times a value of Table 2a.

/// The law by which samples are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// The law of North America and Japan: payload type 0, PCMU.
    #[default]
    Mu,
    /// The law of other countries: payload type 8, PCMA.
    A,
}

/// The mu-law begins its segments 33 steps below zero (Table 2a), in 16 bits.
const BIAS: i32 = 33 << 2;
/// The largest magnitude that the mu-law codes: 8158 of 14 bits (Table 2a, decision value 127).
const MU_CLIP: i32 = (8158 << 2) + 3;
/// The A-law inverts the even bits on the line (§3.2, Table 1a).
const A_INVERTED: u8 = 0x55;

impl Law {
    /// Codes a sample.
    pub fn encode(self, sample: i16) -> u8 {
        let sample = i32::from(sample);
        match self {
            Self::Mu => {
                let magnitude = sample.abs().min(MU_CLIP) + BIAS;
                let segment = magnitude.ilog2() - 7;
                let step = (magnitude >> (segment + 3)) & 15;
                let sign = if sample < 0 { 0x80 } else { 0 };
                !byte(sign | (segment as i32) << 4 | step)
            }
            Self::A => {
                // The A-law has no zero: -1 is the first value below it.
                let magnitude = (if sample < 0 { !sample } else { sample }) >> 4;
                // The first two segments have steps of one size.
                let segment = if magnitude < 16 { 0 } else { magnitude.ilog2() - 3 };
                let step = (magnitude >> segment.saturating_sub(1)) & 15;
                let sign = if sample < 0 { 0 } else { 0x80 };
                byte(sign | (segment as i32) << 4 | step) ^ A_INVERTED
            }
        }
    }

    /// Decodes a sample: the middle of the interval that was coded.
    pub fn decode(self, code: u8) -> i16 {
        match self {
            Self::Mu => {
                let code = !code;
                let (segment, step) = (u32::from(code >> 4 & 7), i32::from(code & 15));
                let magnitude = (((2 * step + 33) << segment) - 33) << 2;
                signed(magnitude, code & 0x80 != 0)
            }
            Self::A => {
                let code = code ^ A_INVERTED;
                let (segment, step) = (u32::from(code >> 4 & 7), i32::from(code & 15));
                let magnitude = match segment {
                    0 => (2 * step + 1) << 3,
                    _ => (2 * step + 33) << (segment + 2),
                };
                signed(magnitude, code & 0x80 == 0)
            }
        }
    }
}

/// The low eight bits.
fn byte(value: i32) -> u8 {
    value.to_le_bytes()[0]
}

fn signed(magnitude: i32, is_negative: bool) -> i16 {
    let value = if is_negative { -magnitude } else { magnitude };
    i16::try_from(value).unwrap_or(if is_negative { i16::MIN } else { i16::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 2a, the values at the decoder output: 0, 2, 4 and so on to 30, 33, 37 and so on, 8031.
    #[test]
    fn the_mu_law_has_the_values_of_table_2a() {
        let of = |code: u8| Law::Mu.decode(code);
        assert_eq!([0xff, 0xfe, 0xfd, 0xf0, 0xef, 0xee].map(of), [0, 8, 16, 120, 132, 148]);
        assert_eq!([0x80, 0x8f, 0x00, 0x7f].map(of), [32_124, 16_764, -32_124, 0]);
    }

    /// Table 1a, the values at the decoder output: 1, 3, 5 and so on to 31 and 33, 66, 4032.
    #[test]
    fn the_a_law_has_the_values_of_table_1a() {
        let of = |code: u8| Law::A.decode(code ^ 0x55);
        assert_eq!([0x80, 0x81, 0x8f, 0x90, 0x9f, 0xa0].map(of), [8, 24, 248, 264, 504, 528]);
        assert_eq!([0xff, 0x7f, 0x00].map(of), [32_256, -32_256, -8]);
    }

    #[test]
    fn each_value_of_the_decoder_is_coded_as_itself() {
        for law in [Law::Mu, Law::A] {
            for code in 0..=u8::MAX {
                let value = law.decode(code);
                // The mu-law has a positive and a negative zero.
                let expected = if law == Law::Mu && code == 0x7f { 0xff } else { code };
                assert_eq!(law.encode(value), expected, "{law:?}, {code:#x}, {value}");
            }
        }
    }

    /// The nearest value is at most half a step away, and a step is at most a sixteenth of the magnitude.
    #[test]
    fn a_coded_sample_is_as_near_as_the_step_of_its_segment() {
        for law in [Law::Mu, Law::A] {
            for sample in i16::MIN..=i16::MAX {
                let error = (i32::from(law.decode(law.encode(sample))) - i32::from(sample)).abs();
                let allowed = (i32::from(sample).abs() + 132) / 32 + 8;
                assert!(error <= allowed.max(644), "{law:?}: {sample} is {error} off");
                assert!(sample.unsigned_abs() > 32_000 || error <= allowed, "{law:?}: {sample}, {error}");
            }
        }
    }
}
