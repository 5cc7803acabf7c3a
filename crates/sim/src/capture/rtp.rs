//! The fields of RTP that a call has in a capture.

use talkpath_model::VoiceConfig;

use super::opus_head::opus_head;

/// The fields of RTP that all packets of a call share.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtpFrame {
    pub(super) payload_type: u8,
    /// The step of the timestamp from one packet to the next.
    pub(super) samples_per_packet: u32,
    /// The size of the header extensions in bytes, with the 4 B that precede them.
    pub(super) extensions: u32,
    /// The first bytes of the speech, if they say how it is coded.
    pub(super) head: Option<[u8; 2]>,
}

impl RtpFrame {
    /// Returns the fields of a call.
    pub(super) fn of(voice: &VoiceConfig) -> Option<Self> {
        let row = voice.codec().row();
        let ticks = u128::from(voice.ptime.as_nanos()) * u128::from(row.clock_hz) / 1_000_000_000;
        let samples_per_packet = u32::try_from(ticks).ok()?;
        let extensions = u32::try_from(voice.headers.extensions.get()).ok()?;
        Some(Self {
            payload_type: row.payload_type,
            samples_per_packet,
            extensions,
            head: opus_head(&voice.coding),
        })
    }
}
