//! Recognises streams of RTP (RFC 3550) and of SRTP (RFC 3711), whose headers are not encrypted.
//!
//! ```text
//! datagram ─► RtpHeader ─► RtpSources (one direction of a conversation) ─► RtpSource (one stream)
//!                                              clock rate, due times, frame length ◄──┘
//! ```
//!
//! The emulated path (`talkpath shell`) and the reader of captures (`talkpath rate`) both use this module.
//! The first knows when each packet entered the path, the second when each packet passed the place of the
//! capture.
//!
//! - *source*: the packets of one direction of a conversation with the same synchronisation source (SSRC).
//! - *stream*: a source that is RTP beyond reasonable doubt.
//! - *media time*: the time of a packet's RTP timestamp on the sender's media clock.
//! - *due*: the time at which a packet should have been seen if each packet had taken as long as the fastest.
//!
//! Nothing announces RTP, so any datagram may look like a packet of RTP. We count a source as a stream if it
//! has [`LEAST_PACKETS`] packets, and if most of them have the sequence number behind that of the packet
//! before.

mod clock;
mod header;
mod payload_type;
mod source;

pub use clock::DueTimes;
pub use header::RtpHeader;
pub use payload_type::{StaticType, call_terms, is_comfort_noise, static_type};
pub use source::{LEAST_PACKETS, RtpPacket, RtpSource, RtpSources};
