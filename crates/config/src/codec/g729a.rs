//! ITU-T G.729 Annex A with voice activity detection (Annex B): frames of 10 B every 10 ms (RFC 3551 §4.5.6).

use talkpath_units::{Bytes, Duration};

use super::{Codec, CodecConcealment, CodecRow, FrameShape, Frames, Impairment, Rated, Scale, SilenceShape};

impl Codec {
    /// ITU-T G.729 Annex A. Its decoder always conceals.
    pub const G729A: Self = Self(&CodecRow {
        name: "g729a",
        title: "G.729A",
        about: "ITU-T G.729 Annex A with voice activity detection, 8 kb/s",
        // RFC 3551 §6.
        payload_type: 18,
        clock_hz: 8000,
        // RFC 3551 §4.2: 20 ms in a packet, two frames.
        frames: Frames::OneSize(FrameShape {
            bytes: 10,
            time: Duration::from_millis(10),
            usual_time: Duration::from_millis(20),
        }),
        look_ahead: Duration::from_millis(5),
        concealment: CodecConcealment {
            name: "g729a",
            about: "is the concealment of its decoder (ITU-T G.729)",
            title: "its own",
            is_optional: false,
        },
        // RFC 3551 §4.5.6: a frame of comfort noise has 2 B. Annex B sends one when silence begins and when
        // the noise changes. We take one at the beginning of each silence.
        silence: SilenceShape { descriptor: Some(Bytes::new(2)), every: None },
        // ITU-T G.113 Appendix I, Table I.3.
        rate: |_, _| Some(Rated::of_table(Scale::Narrow, Impairment { ie: 11.0, bpl: 19.0 }, "ITU-T G.113")),
    });
}
