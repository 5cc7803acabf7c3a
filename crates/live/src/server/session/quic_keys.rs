//! What a QUIC flow of a session proves itself with.

use talkpath_kernel::end::{Fingerprint, HostKeys};
use talkpath_kernel::random::random;
use talkpath_kernel::spec::TransportSpec;

/// What a QUIC flow's end proves itself with; nothing of a flow over another transport.
#[derive(Clone, Copy, Default)]
pub(super) struct QuicKeys {
    /// The keys of the end.
    pub(super) host: Option<HostKeys>,
    /// The fingerprint by which its client knows the certificate.
    pub(super) certificate: Option<Fingerprint>,
}

/// The keys of a flow: fresh ones for each connection of each session.
pub(super) fn quic_keys(transport: &TransportSpec) -> std::io::Result<QuicKeys> {
    match transport {
        TransportSpec::Quic(_) => {
            let secret = random::<32>()?;
            let fingerprint = Fingerprint::of_secret(&secret).map_err(std::io::Error::other)?;
            Ok(QuicKeys { host: Some(HostKeys::Server(secret)), certificate: Some(fingerprint) })
        }
        TransportSpec::Udp { .. } | TransportSpec::Tcp { .. } | TransportSpec::Encapsulated(_) => {
            Ok(QuicKeys::default())
        }
    }
}
