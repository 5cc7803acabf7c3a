//! WAV files: one or two channels of whole numbers or floats come in, and one channel of 16 bits goes out.

use std::io::{Cursor, Read};

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use thiserror::Error;

/// A recording with one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The number of samples in a second.
    pub rate: u32,
    /// The samples, from -32768 to 32767.
    pub samples: Vec<f32>,
}

/// Why a WAV file cannot be used.
#[derive(Debug, Error)]
pub enum WavError {
    /// The file is not a WAV file of PCM, or it is damaged.
    #[error("it cannot be read as a WAV file: {0}; expected PCM of 8 to 32 bits, or floats of 32 bits")]
    Unreadable(#[from] hound::Error),
    /// The sample rate is outside of what is accepted.
    #[error("it has {found} Hz, expected {} to {} Hz", LEAST_RATE, MOST_RATE)]
    Rate {
        /// The rate of the file.
        found: u32,
    },
    /// The file has too many channels.
    #[error("it has {found} channels, expected 1 or 2")]
    Channels {
        /// The channels of the file.
        found: u16,
    },
    /// The file has no samples.
    #[error("it has no samples")]
    Empty,
    /// A sample is no number.
    #[error("sample {at} is no number")]
    NoNumber {
        /// The number of the sample, from 0.
        at: usize,
    },
}

/// The smallest sample rate in Hz: that of a telephone.
pub const LEAST_RATE: u32 = 8_000;
/// The largest sample rate in Hz: that of Opus.
pub const MOST_RATE: u32 = 48_000;

impl Recording {
    /// Reads at most `seconds` of a WAV file. Two channels become their mean.
    ///
    /// # Errors
    /// Returns [`WavError`] if the file cannot be read, or has another form than is accepted.
    pub fn read(file: impl Read, seconds: u32) -> Result<Self, WavError> {
        let mut reader = WavReader::new(file)?;
        let WavSpec { channels, sample_rate: rate, bits_per_sample, sample_format } = reader.spec();
        if !(LEAST_RATE..=MOST_RATE).contains(&rate) {
            return Err(WavError::Rate { found: rate });
        }
        if !(1..=2).contains(&channels) {
            return Err(WavError::Channels { found: channels });
        }
        let count = rate as usize * seconds as usize * usize::from(channels);
        let values: Vec<f32> = match sample_format {
            SampleFormat::Float => {
                let samples = reader.samples::<f32>().take(count);
                samples.map(|sample| sample.map(|value| value * 32_768.0)).collect::<Result<_, _>>()?
            }
            SampleFormat::Int => {
                // The largest magnitude of the file becomes that of 16 bits.
                let scale = 32_768.0 / (1_i64 << (bits_per_sample.clamp(1, 32) - 1)) as f32;
                let samples = reader.samples::<i32>().take(count);
                samples.map(|sample| sample.map(|value| value as f32 * scale)).collect::<Result<_, _>>()?
            }
        };
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(WavError::NoNumber { at });
        }
        let samples: Vec<f32> = values
            .chunks_exact(usize::from(channels))
            .map(|frame| (frame.iter().sum::<f32>() / f32::from(channels)).clamp(-32_768.0, 32_767.0))
            .collect();
        if samples.is_empty() {
            return Err(WavError::Empty);
        }
        Ok(Self { rate, samples })
    }

    /// Returns the length in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }
}

/// Writes a WAV file with one channel of 16 bits.
///
/// # Errors
/// Returns [`WavError`] if the file would be larger than 4 GiB.
pub fn write(rate: u32, samples: &[i16]) -> Result<Vec<u8>, WavError> {
    let spec =
        WavSpec { channels: 1, sample_rate: rate, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec)?;
    for sample in samples {
        writer.write_sample(*sample)?;
    }
    writer.finalize()?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(spec: WavSpec, samples: &[i32]) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let mut writer = WavWriter::new(&mut bytes, spec).unwrap();
        for sample in samples {
            match spec.sample_format {
                SampleFormat::Int => writer.write_sample(*sample).unwrap(),
                SampleFormat::Float => writer.write_sample(*sample as f32 / 32_768.0).unwrap(),
            }
        }
        writer.finalize().unwrap();
        bytes.into_inner()
    }

    fn spec(channels: u16, sample_rate: u32, bits_per_sample: u16) -> WavSpec {
        WavSpec { channels, sample_rate, bits_per_sample, sample_format: SampleFormat::Int }
    }

    #[test]
    fn samples_of_16_bits_come_back_as_they_were_written() {
        let samples = [0, 1, -1, 32_767, -32_768, 1234];
        let recording = Recording::read(&write(8_000, &samples).unwrap()[..], 10).unwrap();
        assert_eq!(recording.rate, 8_000);
        assert_eq!(recording.samples, samples.map(f32::from));
    }

    #[test]
    fn other_sizes_and_two_channels_become_one_channel_of_16_bits() {
        let read = |spec, samples: &[i32]| Recording::read(&file(spec, samples)[..], 10).unwrap().samples;
        assert_eq!(read(spec(2, 44_100, 16), &[100, 300, -50, 50]), [200.0, 0.0]);
        assert_eq!(read(spec(1, 16_000, 24), &[256, -512]), [1.0, -2.0]);
        let float =
            WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(1, 48_000, 32) };
        assert_eq!(read(float, &[16_384, -32_768]), [16_384.0, -32_768.0]);
    }

    #[test]
    fn only_as_much_is_read_as_is_needed() {
        let long = file(spec(1, 8_000, 16), &vec![7; 30_000]);
        assert_eq!(Recording::read(&long[..], 2).unwrap().samples.len(), 16_000);
    }

    #[test]
    fn what_cannot_be_used_is_named_with_what_was_found() {
        let why = |bytes: &[u8]| Recording::read(bytes, 10).unwrap_err().to_string();
        assert_eq!(why(&file(spec(1, 4_000, 16), &[0])), "it has 4000 Hz, expected 8000 to 48000 Hz");
        assert_eq!(why(&file(spec(6, 48_000, 16), &[0; 6])), "it has 6 channels, expected 1 or 2");
        assert_eq!(why(&file(spec(1, 8_000, 16), &[])), "it has no samples");
        assert!(why(b"OggS and so on").starts_with("it cannot be read as a WAV file: "));
        let cut = file(spec(1, 8_000, 16), &[1; 100]);
        assert!(why(&cut[..150]).starts_with("it cannot be read as a WAV file: "), "a file that was cut");
        assert!(why(&[]).starts_with("it cannot be read"));
    }
}
