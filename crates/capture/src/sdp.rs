//! The meaning of payload types by the descriptions of sessions (SDP, RFC 4566) that SIP carries.
//!
//! We read the lines `c=`, `m=`, `a=rtpmap:` and `a=fmtp:` ourselves. A library reads all of SDP strictly and
//! gives up at the first line that it does not know, but captures hold what telephones really send.

use core::net::IpAddr;
use std::collections::BTreeMap;

use talkpath_units::Rate;

use crate::encoding::Encoding;

/// The descriptions of a capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptions {
    by_receiver: BTreeMap<(IpAddr, u16), Media>,
}

/// What a receiver expects at one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Media {
    encodings: BTreeMap<u8, Encoding>,
    /// The bit rates that the receiver wants of Opus, by payload type (RFC 7587 §6.1, `maxaveragebitrate`).
    opus_rates: BTreeMap<u8, Rate>,
    /// Whether the profile is SAVP or SAVPF, so that the payload is encrypted (RFC 3711 §12).
    is_encrypted: bool,
}

impl Descriptions {
    /// Reads a message of SIP, or any other text that ends in a description. Anything else is left out.
    pub(crate) fn take(&mut self, message: &[u8]) {
        let Some(begin) = find_description(message) else { return };
        let text = String::from_utf8_lossy(&message[begin..]);
        let mut address: Option<IpAddr> = None;
        let mut current: Option<(IpAddr, u16)> = None;
        for line in text.lines() {
            let Some((kind, value)) = line.trim_end().split_once('=') else { continue };
            match kind {
                "c" => {
                    let stated = connection(value);
                    // Behind a media line the address is that of the medium alone.
                    match current.take() {
                        Some((_, port)) => current = self.moved(stated, address, port),
                        None => address = stated,
                    }
                }
                "m" => current = self.begin_medium(value, address),
                "a" => self.take_attribute(value, current),
                _ => {}
            }
        }
    }

    /// Returns the meaning of a payload type to the receiver at `to`.
    pub(crate) fn encoding(&self, to: (IpAddr, u16), payload_type: u8) -> Option<&Encoding> {
        self.stated(to, |media| media.encodings.get(&payload_type))
    }

    /// Returns the bit rate of Opus that the receiver at `to` wants under a payload type.
    pub(crate) fn opus_rate(&self, to: (IpAddr, u16), payload_type: u8) -> Option<Rate> {
        self.stated(to, |media| media.opus_rates.get(&payload_type)).copied()
    }

    /// Returns what is stated to the receiver at `to`. If no description names the receiver, for example
    /// behind a NAT, the descriptions count if they agree.
    fn stated<'a, T: PartialEq>(
        &'a self,
        to: (IpAddr, u16),
        stated: impl Fn(&'a Media) -> Option<&'a T>,
    ) -> Option<&'a T> {
        if let Some(media) = self.by_receiver.get(&to) {
            return stated(media);
        }
        let mut all = self.by_receiver.values().filter_map(stated);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    /// Returns whether the receiver at `to` expects encrypted payload.
    pub(crate) fn is_encrypted(&self, to: (IpAddr, u16)) -> bool {
        self.by_receiver.get(&to).is_some_and(|media| media.is_encrypted)
    }

    /// Begins the medium of a line `m=audio 49170 RTP/AVP 0 97`.
    fn begin_medium(&mut self, value: &str, address: Option<IpAddr>) -> Option<(IpAddr, u16)> {
        let mut words = value.split_ascii_whitespace();
        let _kind = words.next()?;
        let port = words.next()?.split('/').next()?.parse().ok()?;
        let profile = words.next()?;
        // Without an address the medium has none until its own line `c=`.
        let receiver = (address.unwrap_or(UNKNOWN), port);
        if !profile.starts_with("RTP/") && !profile.contains("/RTP/") || self.by_receiver.len() >= MOST_MEDIA
        {
            return None;
        }
        // A later description of the same port takes the place of the earlier one.
        let media = Media { is_encrypted: profile.contains("SAVP"), ..Media::default() };
        self.by_receiver.insert(receiver, media);
        Some(receiver)
    }

    /// Moves the medium that has begun to its own address.
    fn moved(&mut self, to: Option<IpAddr>, from: Option<IpAddr>, port: u16) -> Option<(IpAddr, u16)> {
        let old = (from.unwrap_or(UNKNOWN), port);
        let new = (to?, port);
        let media = self.by_receiver.remove(&old)?;
        self.by_receiver.insert(new, media);
        Some(new)
    }

    fn take_attribute(&mut self, value: &str, medium: Option<(IpAddr, u16)>) {
        let Some(media) = medium.and_then(|medium| self.by_receiver.get_mut(&medium)) else { return };
        let Some((attribute, value)) = value.split_once(':') else { return };
        let Some((payload_type, value)) = value.trim().split_once(' ') else { return };
        let Ok(payload_type @ 0..=127) = payload_type.parse() else { return };
        match attribute {
            "rtpmap" => {
                media.encodings.extend(Encoding::parse(value).map(|encoding| (payload_type, encoding)));
            }
            "fmtp" => media.opus_rates.extend(opus_rate(value).map(|rate| (payload_type, rate))),
            _ => {}
        }
    }
}

/// Reads the bit rate of `maxplaybackrate=16000; maxaveragebitrate=24000`.
fn opus_rate(parameters: &str) -> Option<Rate> {
    let parameters = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
    let mut rates = parameters.filter(|(name, _)| name.eq_ignore_ascii_case("maxaveragebitrate"));
    let bps = rates.next()?.1.trim().parse().ok()?;
    OPUS_RATES.contains(&bps).then(|| Rate::from_bps(bps))
}

/// Returns where the description in a message begins: at a line `v=0`.
fn find_description(message: &[u8]) -> Option<usize> {
    let is_sip = message.windows(SIP.len()).take(MAX_FIRST_LINE).any(|bytes| bytes == SIP);
    if !is_sip {
        return None;
    }
    let begin = message.windows(BEGIN.len()).position(|bytes| bytes == BEGIN)?;
    // Behind the line feed.
    Some(begin + 1)
}

/// Reads `IN IP4 192.0.2.1` or `IN IP6 2001:db8::1`.
fn connection(value: &str) -> Option<IpAddr> {
    let address = value.split_ascii_whitespace().nth(2)?;
    // A multicast address has a time to live behind it.
    address.split('/').next()?.parse().ok()
}

/// What the first line of every message of SIP has (RFC 3261 §7).
const SIP: &[u8] = b"SIP/2.0";
/// The first line of a description, behind a line feed (RFC 4566 §5.1).
const BEGIN: &[u8] = b"\nv=0";
/// The bytes in which the first line is looked for. We chose 2048: a request's address stands before it.
const MAX_FIRST_LINE: usize = 2048;
/// The bit rates that `maxaveragebitrate` may have (RFC 7587 §6.1).
const OPUS_RATES: core::ops::RangeInclusive<u64> = 6_000..=510_000;
/// The largest number of media that are kept. We chose 16,384, which takes a few megabytes of memory.
const MOST_MEDIA: usize = 16_384;
/// Stands for an address that is not known.
const UNKNOWN: IpAddr = IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED);

#[cfg(test)]
mod tests {
    use super::*;

    const INVITE: &str = "INVITE sip:b@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1\r\n\
        Content-Type: application/sdp\r\n\r\nv=0\r\no=a 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
        m=audio 6000 RTP/SAVP 0 97\r\na=rtpmap:97 opus/48000/2\r\na=ptime:20\r\n\
        m=video 6002 RTP/AVP 97\r\nc=IN IP6 2001:db8::1\r\na=rtpmap:97 H264/90000\r\n";

    #[test]
    fn the_payload_types_of_a_description_hold_for_its_receiver() {
        let mut all = Descriptions::default();
        all.take(INVITE.as_bytes());
        let audio = ("192.0.2.1".parse().unwrap(), 6000);
        let video = ("2001:db8::1".parse().unwrap(), 6002);
        let name = |to| all.encoding(to, 97).map(|encoding| encoding.name.as_str());
        assert_eq!((name(audio), name(video)), (Some("opus"), Some("H264")));
        assert_eq!((all.is_encrypted(audio), all.is_encrypted(video)), (true, false));
        // The two media do not agree, so another receiver's payload type 97 has no meaning.
        assert_eq!(name(("198.51.100.1".parse().unwrap(), 6000)), None);
        assert_eq!(all.encoding(audio, 0), None);
    }

    #[test]
    fn a_receiver_behind_a_nat_has_the_meaning_that_all_descriptions_share() {
        let mut all = Descriptions::default();
        all.take(INVITE.split("m=video").next().unwrap().as_bytes());
        assert_eq!(all.encoding(("198.51.100.1".parse().unwrap(), 1), 97).unwrap().name, "opus");
    }

    #[test]
    fn the_bit_rate_that_a_receiver_wants_of_opus_is_read() {
        let rate = |parameters: &str| {
            let mut all = Descriptions::default();
            let line = format!("a=rtpmap:97 opus/48000/2\r\na=fmtp:97 {parameters}\r\n");
            all.take(INVITE.replace("a=rtpmap:97 opus/48000/2\r\n", &line).as_bytes());
            all.opus_rate(("192.0.2.1".parse().unwrap(), 6000), 97)
        };
        assert_eq!(rate("useinbandfec=1; maxaveragebitrate=24000"), Some(Rate::from_bps(24_000)));
        for none in ["useinbandfec=1", "maxaveragebitrate=1", "maxaveragebitrate", "maxaveragebitrate=x"] {
            assert_eq!(rate(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_no_description_is_left_out() {
        let mut all = Descriptions::default();
        for message in
            ["", "v=0", "GET / HTTP/1.1\r\n\r\nv=0\r\nm=audio 1 RTP/AVP 0\r\n", "SIP/2.0 200 OK\r\n\r\n"]
        {
            all.take(message.as_bytes());
        }
        for cut in 0..INVITE.len() {
            all.take(&INVITE.as_bytes()[..cut]);
        }
        assert!(all.by_receiver.len() <= 4);
    }
}
