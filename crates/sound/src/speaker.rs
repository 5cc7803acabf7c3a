//! Where the speech of a call comes from.

use crate::g711::Law;
use crate::wav::Recording;

/// Where the speech of a call comes from.
#[derive(Clone, Copy, Debug)]
pub enum Speaker<'a> {
    /// Somebody reads this recording aloud, again and again.
    Reads(&'a Recording),
    /// The packets are there. Each has the coded speech of a frame, or is empty if it has no speech.
    Sent(&'a [Box<[u8]>]),
}

/// What packets of G.711 have in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Speech, or another sound.
    Sound,
    /// The same sample again and again, which is no sound.
    Constant,
    /// Bytes without any order, as they are where speech is encrypted and where a measuring program fills its
    /// packets.
    Random,
    /// Nothing, because the capture cut the packets.
    Absent,
}

impl Payload {
    /// Looks what packets have in them, which are coded by `law`.
    ///
    /// Samples of speech that follow each other are alike, and random bytes are not. So the correlation of
    /// neighbours tells them apart: it is 0.8 for speech at 8 kHz, and 0 for random bytes.
    pub fn of(law: Law, packets: &[Box<[u8]>]) -> Self {
        let bytes = packets.iter().flat_map(|packet| packet.iter()).take(MOST_SAMPLES);
        let samples: Vec<f64> = bytes.map(|code| f64::from(law.decode(*code))).collect();
        if samples.is_empty() {
            return Self::Absent;
        }
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let energy: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        if energy <= 0.0 {
            return Self::Constant;
        }
        let neighbours = samples.iter().zip(samples.iter().skip(1));
        let product: f64 = neighbours.map(|(left, right)| (left - mean) * (right - mean)).sum();
        if product / energy < LEAST_CORRELATION { Self::Random } else { Self::Sound }
    }
}

/// The samples that are looked at. We chose a minute at 8 kHz.
const MOST_SAMPLES: usize = 480_000;
/// The correlation of neighbours from which on bytes are a sound. We chose 0.2: the mean of random samples is
/// within 0.02 of 0 from 10,000 samples on, which are 63 packets.
const LEAST_CORRELATION: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SPEECH;

    fn packets(codes: impl Iterator<Item = u8>) -> Vec<Box<[u8]>> {
        codes.collect::<Vec<_>>().chunks(160).map(Into::into).collect()
    }

    #[test]
    fn speech_silence_and_random_bytes_are_told_apart_under_each_law() {
        for law in [Law::Mu, Law::A] {
            let speech = Recording::read(SPEECH, 60).unwrap().at_rate(8_000).samples;
            let speech = packets(speech.iter().map(|sample| law.encode(*sample as i16)));
            assert_eq!(Payload::of(law, &speech), Payload::Sound);
            assert_eq!(Payload::of(law, &packets([0xd5; 16_000].into_iter())), Payload::Constant);
            let mut state = 1_u32;
            let random = core::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            });
            assert_eq!(Payload::of(law, &packets(random.take(16_000))), Payload::Random);
            assert_eq!(Payload::of(law, &vec![Box::default(); 9]), Payload::Absent);
        }
    }
}
