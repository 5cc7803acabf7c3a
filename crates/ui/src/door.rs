//! Who gets in: requests that name this server as their host, come from its own page, and hold the token.
//!
//! - A page of another site may send requests to loopback. Browsers name its origin (Fetch Standard §3.2),
//!   and a request that names a foreign one is refused.
//! - A foreign name may lead to 127.0.0.1 (DNS rebinding). Then `Host` has that name, and is refused
//!   (RFC 9110 §7.2).
//! - Other users of this host reach the port, too. They do not know the token.

use std::io;

use hyper::http::HeaderMap;
use hyper::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::uri::Uri;
use rustix::rand::{GetRandomFlags, getrandom};

/// The bytes of a secret: 128 bits, which nobody can try out.
const SECRET_BYTES: usize = 16;
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It names another host, or none.
    ForeignHost,
    /// A page of another site sent it.
    ForeignOrigin,
    /// It has no token, or a wrong one.
    NoToken,
}

/// Checks requests.
pub(crate) struct Door {
    token: String,
    /// The names of this server in `Host`.
    hosts: [String; 2],
}

impl Door {
    /// # Errors
    /// Returns the error of the system if it has no random numbers.
    pub(crate) fn new(port: u16) -> io::Result<Self> {
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        Ok(Self { token: secret()?, hosts })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Checks that a request is meant for this server, and comes from its own page if from any. This is asked
    /// of every request.
    ///
    /// # Errors
    /// Returns why the request is refused.
    pub(crate) fn check_sender(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut named = headers.get_all(HOST).iter();
        let (host, second) = (named.next().and_then(|host| host.to_str().ok()), named.next());
        let is_ours = |host: &str| self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        let authority = uri.authority().is_none_or(|authority| is_ours(authority.as_str()));
        if second.is_some() || !host.is_some_and(is_ours) || !authority {
            return Err(Refusal::ForeignHost);
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(is_ours) {
                return Err(Refusal::ForeignOrigin);
            }
        }
        Ok(())
    }

    /// Checks that a request has the token, and that a browser which says where it comes from says our page.
    ///
    /// # Errors
    /// Returns why the request is refused.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let site = headers.get(SEC_FETCH_SITE).and_then(|site| site.to_str().ok());
        if site.is_some_and(|site| site != "same-origin") {
            return Err(Refusal::ForeignOrigin);
        }
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if is_same(given, &self.token) { Ok(()) } else { Err(Refusal::NoToken) }
    }
}

/// Compares without an end at the first difference, so that no time says how much of a guess is right.
fn is_same(given: &str, secret: &str) -> bool {
    let differences = given.bytes().zip(secret.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    given.len() == secret.len() && differences == 0
}

/// Draws a secret, as hexadecimal digits.
///
/// # Errors
/// Returns the error of the system if it has no random numbers.
pub(crate) fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; SECRET_BYTES];
    let drawn = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if drawn != SECRET_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_foreign_host_name_is_refused_and_ours_are_not() {
        let door = Door::new(7161).unwrap();
        let uri = Uri::from_static("/");
        for host in ["127.0.0.1:7161", "localhost:7161", "LOCALHOST:7161"] {
            assert_eq!(door.check_sender(&uri, &headers(&[("host", host)])), Ok(()), "{host}");
        }
        for host in ["evil.example:7161", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:7161.evil.example", ""] {
            let refused = door.check_sender(&uri, &headers(&[("host", host)]));
            assert_eq!(refused, Err(Refusal::ForeignHost), "{host}");
        }
        assert_eq!(door.check_sender(&uri, &headers(&[])), Err(Refusal::ForeignHost));
        let two = headers(&[("host", "127.0.0.1:7161"), ("host", "evil.example")]);
        assert_eq!(door.check_sender(&uri, &two), Err(Refusal::ForeignHost));
        let absolute = Uri::from_static("http://evil.example/");
        let ours = headers(&[("host", "127.0.0.1:7161")]);
        assert_eq!(door.check_sender(&absolute, &ours), Err(Refusal::ForeignHost));
    }

    #[test]
    fn a_foreign_origin_is_refused() {
        let door = Door::new(7161).unwrap();
        let uri = Uri::from_static("/api/state");
        let with = |origin: &str| {
            door.check_sender(&uri, &headers(&[("host", "127.0.0.1:7161"), ("origin", origin)]))
        };
        assert_eq!(with("http://127.0.0.1:7161"), Ok(()));
        for origin in ["http://evil.example", "null", "https://127.0.0.1:7161", "http://127.0.0.1:7162"] {
            assert_eq!(with(origin), Err(Refusal::ForeignOrigin), "{origin}");
        }
    }

    #[test]
    fn a_request_without_the_token_or_from_another_site_is_refused() {
        let door = Door::new(7161).unwrap();
        let bearer = format!("Bearer {}", door.token());
        assert_eq!(door.token().len(), 2 * SECRET_BYTES);
        assert_eq!(door.check_token(&headers(&[("authorization", &bearer)])), Ok(()));
        let cut = &bearer[..bearer.len() - 1];
        for wrong in ["", "Bearer ", cut, "Bearer 00000000000000000000000000000000", door.token()] {
            assert_eq!(door.check_token(&headers(&[("authorization", wrong)])), Err(Refusal::NoToken));
        }
        assert_eq!(door.check_token(&headers(&[])), Err(Refusal::NoToken));
        let other_site = headers(&[("authorization", &bearer), ("sec-fetch-site", "cross-site")]);
        assert_eq!(door.check_token(&other_site), Err(Refusal::ForeignOrigin));
        assert_ne!(Door::new(7161).unwrap().token(), door.token());
    }
}
