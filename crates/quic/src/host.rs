//! An end of a connection over real sockets. It is the state machine that the simulator runs, too ([`End`]).
//! Its packets carry the bytes of the messages, and they are encrypted.
//!
//! The server makes a certificate for each connection. Client and server agree on the connection beforehand,
//! over a protected channel (`live` has a TCP connection with a key). Over this channel the client learns the
//! SHA-256 of the certificate. It refuses any other certificate.
//!
//! [`HostKeys`] says where randomness, connection IDs and keys come from: from the system, or from a seed
//! where one process plays both ends and the run has to be repeatable.

use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as of_ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerIncompatible, SignatureScheme};
use talkpath_units::{Bytes, Instant};
use talkpath_wire::{Message, Refused};

use crate::End;
use crate::arriving::Arriving;
use crate::certificate::Certificate;
use crate::configs::{ALPN, ConfigError, Protection, watched};
use crate::content::Content;
use crate::earlier::{EarlierEnd, Tickets, fetch_ticket};
use crate::ids::IdOwner;
use crate::inbound::Inbound;
use crate::recovery::SharedRecovery;
use crate::setup::{Setup, client_config, engine_config};
use crate::stream::StreamFailure;
use crate::watch::{PacketWatch, Watch};

/// SHA-256 of a certificate as it is sent (DER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of the certificate whose Ed25519 key is made from `secret` (RFC 8032 §5.1.5).
    ///
    /// # Errors
    /// No Ed25519 key can be made from the secret.
    pub fn of_secret(secret: &[u8; 32]) -> Result<Self, ConfigError> {
        let certificate = Certificate::from_secret(secret).map_err(ConfigError::CertificateKey)?;
        Ok(Self::of(&certificate.certificate))
    }

    fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut octets = [0; 32];
        octets.copy_from_slice(digest.as_ref());
        Self(octets)
    }
}

/// Makes the server's certificate and its private key from `secret`. Both are in DER, which other programs
/// read (RFC 5280 §4.1; RFC 5958 §2, PKCS #8).
///
/// # Errors
/// No Ed25519 key can be made from the secret.
pub fn server_identity(secret: &[u8; 32]) -> Result<(Vec<u8>, Vec<u8>), ConfigError> {
    let Certificate { certificate, key } =
        Certificate::from_secret(secret).map_err(ConfigError::CertificateKey)?;
    Ok((certificate.to_vec(), key.secret_der().to_vec()))
}

/// Which of the two ends it is, and where its keys come from.
#[derive(Clone, Copy)]
pub enum HostKeys {
    /// The client or the server of a process that plays both. Keys and connection IDs are drawn from
    /// [`Setup::seed`], so that the run can be repeated.
    Seeded {
        /// Whether it is the client.
        is_client: bool,
    },
    /// The client. It accepts only the certificate with this fingerprint.
    Client(Fingerprint),
    /// The server, with the secret of its certificate's key.
    Server([u8; 32]),
}

impl core::fmt::Debug for HostKeys {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Seeded { .. } => "Seeded",
            Self::Client(_) => "Client",
            Self::Server(_) => "Server",
        })
    }
}

impl End {
    /// Makes an end that carries the flows of `setup` between hosts. Its packets are always encrypted.
    ///
    /// On streams the far end may send `window` bytes more than the applications have read, so the engine
    /// holds at most so much. Messages of which a part came may take twice as much beside it, unless
    /// [`End::keep_half_messages`] sets another bound.
    ///
    /// # Errors
    /// Returns what `setup` lacks, or why no keys can be made.
    pub fn on_host(setup: &Setup, keys: HostKeys, window: u32) -> Result<Self, ConfigError> {
        if setup.flows.is_empty() {
            return Err(ConfigError::NoFlow);
        }
        match keys {
            HostKeys::Seeded { is_client } => {
                let watch = Watch::default();
                let configs = watched(setup.seed.get(), Protection::Encrypted, &watch)?;
                let client = || {
                    let endpoint = configs.endpoint_client.clone();
                    Self::client_of(endpoint, configs.client.clone(), setup, window, &watch)
                };
                let server = || {
                    let endpoint = configs.endpoint_server.clone();
                    Self::server_of(endpoint, configs.server.clone(), setup, window, &watch)
                };
                // Both ends draw the same: each plays the earlier connection by itself, and so the ticket
                // of the client is one that the server gave out.
                if setup.config.zero_rtt {
                    fetch_ticket(client(), server());
                }
                Ok(if is_client { client() } else { server() })
            }
            HostKeys::Client(_) | HostKeys::Server(_) => {
                Ok(Self::after_another(setup, keys, window, &IdOwner::default())?.0)
            }
        }
    }

    /// As [`End::on_host`]. With `zero_rtt` and the keys of two hosts also this host's end of the connection
    /// that gives the ticket. The IDs of a server with keys of its own are noted with `ids`.
    ///
    /// # Errors
    /// Why there is no such connection.
    pub fn after_another(
        setup: &Setup,
        keys: HostKeys,
        window: u32,
        ids: &IdOwner,
    ) -> Result<(Self, Option<EarlierEnd>), ConfigError> {
        let (watch, tickets) = (Watch::default(), Tickets::new());
        let has_tickets = setup.config.zero_rtt.then_some(&tickets);
        let ends = match keys {
            HostKeys::Seeded { .. } => return Ok((Self::on_host(setup, keys, window)?, None)),
            HostKeys::Client(fingerprint) => {
                let config = client(fingerprint, &watch, has_tickets)?;
                let endpoint = EndpointConfig::default;
                [(); 2].map(|()| Self::client_of(endpoint(), config.clone(), setup, window, &watch))
            }
            HostKeys::Server(secret) => {
                let config = server(&secret, &watch, has_tickets.is_some())?;
                let endpoint = || {
                    let (mut endpoint, ids) = (EndpointConfig::default(), ids.clone());
                    endpoint.cid_generator(move || ids.generator());
                    endpoint
                };
                [(); 2].map(|()| Self::server_of(endpoint(), config.clone(), setup, window, &watch))
            }
        };
        let [end, earlier] = ends;
        Ok((end, setup.config.zero_rtt.then(|| EarlierEnd::new(earlier, tickets, setup.flows.len()))))
    }

    fn client_of(
        endpoint: EndpointConfig,
        mut config: ClientConfig,
        setup: &Setup,
        window: u32,
        watch: &Watch,
    ) -> Self {
        let recovery = SharedRecovery::new(&watch.client);
        let engine = client_config(setup, host_config(setup, &recovery, window));
        config.transport_config(Arc::new(engine));
        let endpoint = Endpoint::new(Arc::new(endpoint), None, true, None);
        let mut end = Self::carrying(endpoint, watch.client.clone(), recovery, setup, window);
        end.client_config = Some(config);
        end
    }

    fn server_of(
        endpoint: EndpointConfig,
        mut config: ServerConfig,
        setup: &Setup,
        window: u32,
        watch: &Watch,
    ) -> Self {
        let recovery = SharedRecovery::new(&watch.server);
        config.transport_config(Arc::new(host_config(setup, &recovery, window)));
        let endpoint = Endpoint::new(Arc::new(endpoint), Some(Arc::new(config)), true, None);
        Self::carrying(endpoint, watch.server.clone(), recovery, setup, window)
    }

    fn carrying(
        endpoint: Endpoint,
        watch: PacketWatch,
        recovery: SharedRecovery,
        setup: &Setup,
        window: u32,
    ) -> Self {
        let inbound = Inbound::Real(Arriving::new(&setup.flows, window));
        let mut end = Self::new(endpoint, watch, recovery, inbound, setup);
        if setup.flows.len() > 1 {
            end.sending.open_in_flow_order();
        }
        end
    }

    /// Keeps at most `room` bytes of messages that came in part, each on a stream of its own. If that is too
    /// little, the largest message is given up, and its stream stopped (RFC 9000 §3.5).
    pub fn keep_half_messages(&mut self, room: u64) {
        self.inbound.keep_half_messages(room);
    }

    /// Each message of `flow` begins with `token` (4 B, big-endian), by which it is known among those of the
    /// connection's other flows. One flow at most has no name.
    pub fn name_flow(&mut self, flow: usize, token: u32) {
        self.inbound.name_flow(flow, token);
    }

    /// As [`End::write`], with the bytes of the message.
    ///
    /// # Errors
    /// Why it takes nothing.
    pub fn write_bytes(
        &mut self,
        flow: usize,
        message: Message,
        data: bytes::Bytes,
        expires: Option<Instant>,
    ) -> Result<Bytes, Refused> {
        self.take(flow, message, Content::Real(data), expires)
    }

    /// One read of `flow`: a whole message, or at most `limit` bytes of the stream.
    pub fn read_bytes(&mut self, flow: usize, limit: Bytes) -> Option<bytes::Bytes> {
        self.read_stamped(flow, limit).map(|(data, _)| data)
    }

    /// The same, with the time at which the newest packet with its data came before the read
    /// ([`End::handle_arrival`]).
    pub fn read_stamped(&mut self, flow: usize, limit: Bytes) -> Option<(bytes::Bytes, Instant)> {
        let (_, connection) = self.connection.as_mut()?;
        self.inbound.read_bytes(connection, flow, limit)
    }

    /// Why the stream of all messages of `flow`, in one of its directions, carries nothing more. The flow
    /// takes nothing from then on; the connection may go on.
    pub fn stream_failure(&self, flow: usize) -> Option<StreamFailure> {
        let stopped = self.sending.stop_code(flow).map(StreamFailure::Stopped);
        stopped.or_else(|| self.inbound.reset(flow).map(StreamFailure::Reset))
    }

    /// A message of `flow` that came and found no room to wait, one a call.
    pub fn poll_dropped_bytes(&mut self, flow: usize) -> Option<bytes::Bytes> {
        self.inbound.poll_dropped_bytes(flow)
    }
}

/// The engine's options between hosts.
fn host_config(setup: &Setup, recovery: &SharedRecovery, window: u32) -> TransportConfig {
    let mut engine = engine_config(setup, recovery);
    engine
        .receive_window(VarInt::from_u32(window))
        // All streams of flows are unidirectional. RFC 9000 §4.6: a far end that opens a bidirectional one
        // all the same ends the connection, by STREAM_LIMIT_ERROR.
        .max_concurrent_bidi_streams(VarInt::from_u32(0));
    engine
}

/// *ring*'s, with the cipher and the key exchange of the simulator's connections, so that sizes are theirs.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![of_ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![of_ring::kx_group::X25519],
        ..of_ring::default_provider()
    })
}

/// A client's configuration, which keeps `tickets` if there are to be any.
fn client(
    fingerprint: Fingerprint,
    watch: &Watch,
    tickets: Option<&Tickets>,
) -> Result<ClientConfig, ConfigError> {
    let provider = provider();
    let pinned = Pinned { fingerprint, provider: Arc::clone(&provider) };
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    if let Some(tickets) = tickets {
        tls.enable_early_data = true;
        tls.resumption = tickets.resumption();
    }
    let tls = Arc::new(QuicClientConfig::try_from(tls)?);
    Ok(ClientConfig::new(watch.of_client(tls)))
}

/// A server's configuration, which gives tickets if it `has_tickets`.
fn server(secret: &[u8; 32], watch: &Watch, has_tickets: bool) -> Result<ServerConfig, ConfigError> {
    let certificate = Certificate::from_secret(secret).map_err(ConfigError::CertificateKey)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.certificate], certificate.key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    if has_tickets {
        // RFC 9001 §4.6.1: any other value than this one or 0 is an error.
        tls.max_early_data_size = u32::MAX;
    } else {
        // Nobody comes back: a certificate is one connection's.
        tls.send_tls13_tickets = 0;
    }
    let tls = Arc::new(QuicServerConfig::try_from(tls)?);
    Ok(ServerConfig::with_crypto(watch.of_server(tls)))
}

/// Takes one certificate. Its owner signs the handshake (RFC 8446 §4.4.3), so a copy is of no use.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Fingerprint::of(end_entity) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // RFC 9001 §4.2: QUIC has TLS 1.3 or later.
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
