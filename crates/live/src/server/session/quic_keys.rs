//! What a QUIC flow of a session proves itself with.

use talkpath_kernel::end::{Fingerprint, HostKeys};
use talkpath_kernel::random::random;
use talkpath_kernel::spec::TransportSpec;

/// The keys of a QUIC flow's end, and the fingerprint by which its client knows the certificate. `None` of
/// another transport.
pub(super) type QuicKeys = (Option<HostKeys>, Option<Fingerprint>);

/// The keys of a flow: fresh ones for each connection of each session.
pub(super) fn quic_keys(transport: &TransportSpec) -> std::io::Result<QuicKeys> {
    match transport {
        TransportSpec::Quic(_) => {
            let secret = random::<32>()?;
            let fingerprint = Fingerprint::of_secret(&secret).map_err(std::io::Error::other)?;
            Ok((Some(HostKeys::Server(secret)), Some(fingerprint)))
        }
        TransportSpec::Udp { .. } | TransportSpec::Tcp { .. } | TransportSpec::Encapsulated(_) => {
            Ok((None, None))
        }
    }
}
