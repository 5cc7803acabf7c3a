//! The secret and the certificate with which the server's end of a QUIC flow proves who it is.

use talkpath_kernel::end::{Fingerprint, HostKeys};
use talkpath_kernel::random::random;
use talkpath_kernel::spec::TransportSpec;

/// The keys of a QUIC flow. Both fields are `None` for a flow over another transport.
#[derive(Clone, Copy, Default)]
pub(super) struct QuicKeys {
    /// The secret of the server's end.
    pub(super) host: Option<HostKeys>,
    /// The fingerprint by which its client knows the certificate.
    pub(super) certificate: Option<Fingerprint>,
}

/// Makes new keys for a flow. Each connection of each session has keys of its own.
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
