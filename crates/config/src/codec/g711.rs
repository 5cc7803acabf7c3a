//! ITU-T G.711: 8000 samples of one byte per second (RFC 3551 §4.5.14).

use talkpath_units::{Bytes, Duration};

use super::{Codec, CodecConcealment, CodecRow, FrameShape, Frames, Impairment, Rated, Scale, SilenceShape};

impl Codec {
    /// ITU-T G.711.
    pub const G711: Self = Self(&CodecRow {
        name: "g711",
        title: "G.711",
        about: "ITU-T G.711, 64 kb/s",
        // PCMU (RFC 3551 §6).
        payload_type: 0,
        clock_hz: 8000,
        frames: Frames::OneSize(G711_FRAMES),
        look_ahead: Duration::ZERO,
        concealment: CodecConcealment {
            name: "g711-appendix-i",
            about: "repeats and fades what was last heard (ITU-T G.711 Appendix I), as phones do",
            title: "Appendix I",
            is_optional: true,
        },
        // RFC 3389 §3.1: a packet of comfort noise has the level of the noise, 1 B, and its spectrum if the
        // sender knows it. §4: it is sent when the noise changes. We take one packet with the level alone at
        // the beginning of each silence.
        silence: SilenceShape { descriptor: Some(Bytes::new(1)), every: None },
        // ITU-T G.113 Appendix I, Table I.3.
        rate: |_, is_concealed| {
            let bpl = if is_concealed { 25.1 } else { 4.3 };
            Some(Rated::of_table(Scale::Narrow, Impairment { ie: 0.0, bpl }, "ITU-T G.113"))
        },
    });
}

/// 8 B per millisecond. RFC 3551 §4.2: 20 ms in a packet.
pub const G711_FRAMES: FrameShape =
    FrameShape { bytes: 8, time: Duration::from_millis(1), usual_time: Duration::from_millis(20) };
