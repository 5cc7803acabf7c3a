//! Init Cookies (RFC 4340 §8.1.4): what a server would remember of a handshake, kept by the client and
//! proved.
//!
//! ```text
//!   seconds, 4 B | feature, location, 1 B; value, 1, 2 or 6 B | ... | HMAC-SHA256, 12 B,
//!                                                               of all that and the Response's number
//! ```
//!
//! The client's first packet acknowledges the Response, so that its number need not be stored. A cookie is
//! good for 4 MSL, as long as RESPOND's state would be kept (§8.1.3). The key is the listener's own; a
//! listener that serves several peers separately gives each a key of its own.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use talkpath_units::{Duration, Instant};
use talkpath_wire::dccp::Seq;

use super::{Feature, Location};

/// A server's secret.
#[derive(Clone, Debug)]
pub(super) struct CookieKey([u8; 32]);

/// The bytes of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    bytes: [u8; MOST_BYTES],
    size: usize,
}

impl CookieKey {
    pub(super) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A cookie for the Response numbered `response`, sent at `now`, that holds these values; `None` if they
    /// are too many.
    pub(super) fn seal(
        &self,
        response: Seq,
        values: impl Iterator<Item = (Feature, Location, u64)>,
        now: Instant,
    ) -> Option<Cookie> {
        let mut cookie = Cookie { bytes: [0; MOST_BYTES], size: 0 };
        cookie.push(&seconds(now).to_be_bytes())?;
        for (feature, location, value) in values {
            cookie.push(&[(feature as u8) << 1 | location as u8])?;
            cookie.push(&value.to_be_bytes()[8 - feature.value_size()..])?;
        }
        let tag = self.tag(response, cookie.as_slice());
        cookie.push(&tag)?;
        Some(cookie)
    }

    /// The values in a cookie that came back at `now` with an acknowledgement of `response`; `None` if it is
    /// not ours, or too old.
    pub(super) fn open(&self, cookie: &[u8], response: Seq, now: Instant) -> Option<CookieValues> {
        let (content, tag) = cookie.split_at_checked(cookie.len().checked_sub(TAG_BYTES)?)?;
        let mac = self.mac(response, content)?;
        mac.verify_truncated_left(tag).ok()?;
        let (stamp, values) = content.split_first_chunk::<4>()?;
        let age = seconds(now).checked_sub(u32::from_be_bytes(*stamp))?;
        if u64::from(age) > LIFETIME_SECONDS {
            return None;
        }
        let mut bytes = [0; MOST_BYTES];
        bytes.get_mut(..values.len())?.copy_from_slice(values);
        Some(CookieValues { bytes, place: 0, size: values.len() })
    }

    fn tag(&self, response: Seq, content: &[u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        if let Some(mac) = self.mac(response, content) {
            tag.copy_from_slice(&mac.finalize().into_bytes()[..TAG_BYTES]);
        }
        tag
    }

    fn mac(&self, response: Seq, content: &[u8]) -> Option<Hmac<Sha256>> {
        // HMAC takes keys of any length: this never fails.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(&response.get().to_be_bytes());
        mac.update(content);
        Some(mac)
    }
}

impl Cookie {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let place = self.bytes.get_mut(self.size..self.size + bytes.len())?;
        place.copy_from_slice(bytes);
        self.size += bytes.len();
        Some(())
    }
}

/// The values of an opened cookie.
#[derive(Clone, Debug)]
pub(super) struct CookieValues {
    bytes: [u8; MOST_BYTES],
    place: usize,
    size: usize,
}

impl Iterator for CookieValues {
    type Item = (Feature, Location, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.bytes.get(self.place..self.size)?;
        let (&head, rest) = left.split_first()?;
        let feature = Feature::indexed(head >> 1)?;
        let location = if head & 1 == 0 { Location::Local } else { Location::Remote };
        let value = rest.get(..feature.value_size())?;
        self.place += 1 + value.len();
        Some((feature, location, value.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))))
    }
}

fn seconds(now: Instant) -> u32 {
    u32::try_from(now.as_nanos() / Duration::from_secs(1).as_nanos()).unwrap_or(u32::MAX)
}

/// Chosen: time, tag, and what fits beside all Confirms in a Response.
const MOST_BYTES: usize = 48;
/// HMAC-SHA256 truncated to 96 bits (RFC 2104 §5 recommends at least 80).
const TAG_BYTES: usize = 12;
/// RFC 4340 §8.1.3: 4 MSL, 8 minutes.
const LIFETIME_SECONDS: u64 = 8 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_once_unchanged_in_time_and_for_its_response() {
        let key = CookieKey::new([7; 32]);
        let values = [
            (Feature::SequenceWindow, Location::Remote, 1024),
            (Feature::AckRatio, Location::Remote, 4),
            (Feature::SendAckVector, Location::Local, 1),
        ];
        let (response, now) = (Seq::new(77), Instant::from_secs(100));
        let cookie = key.seal(response, values.into_iter(), now).unwrap();
        let found: Vec<_> = key.open(cookie.as_slice(), response, now).unwrap().collect();
        assert_eq!(found, values);
        assert!(key.open(cookie.as_slice(), response, now + Duration::from_secs(480)).is_some());
        assert!(key.open(cookie.as_slice(), response, now + Duration::from_secs(481)).is_none());
        assert!(key.open(cookie.as_slice(), Seq::new(78), now).is_none());
        assert!(CookieKey::new([8; 32]).open(cookie.as_slice(), response, now).is_none());
        for place in 0..cookie.size {
            let mut bad = cookie;
            bad.bytes[place] ^= 1;
            assert!(key.open(bad.as_slice(), response, now).is_none());
            assert!(key.open(&cookie.as_slice()[..place], response, now).is_none());
        }
    }
}
