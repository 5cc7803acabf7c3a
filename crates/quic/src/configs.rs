//! A client's and a server's configurations, in which everything random follows from a seed.

use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, ConnectionId, EndpointConfig, ServerConfig, ValidationTokenConfig};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::server::ServerSessionMemoryCache;
use talkpath_units::Seed;

use crate::certificate::Certificate;
pub use crate::certificate::SERVER_NAME;
use crate::seeded::{ConnectionIds, FixedTime, KeyLog, Octets, UsedTokens, provider};
use crate::sizes_only::SizesOnly;
use crate::watch::Watch;

/// What protects the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// TLS 1.3 and AES-128-GCM (RFC 9001).
    Encrypted,
    /// The sizes and flights of [`Protection::Encrypted`]; packets are neither encrypted nor authenticated.
    /// For simulations alone: it is cheaper.
    SizesOnly,
}

/// The configurations of both ends. Each holds quinn-proto's default [`TransportConfig`], which the caller
/// replaces by `transport_config`.
///
/// [`TransportConfig`]: quinn_proto::TransportConfig
pub struct Configs {
    /// Of the client's endpoint.
    pub endpoint_client: EndpointConfig,
    /// Of the server's endpoint.
    pub endpoint_server: EndpointConfig,
    /// For the client's connections. It keeps session tickets: a second connection to [`SERVER_NAME`] with a
    /// clone of this configuration can send 0-RTT data.
    pub client: ClientConfig,
    /// For the server's connections.
    pub server: ServerConfig,
    /// The secrets of the client's connections.
    pub(crate) key_log: KeyLog,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is nothing to carry.
    #[error("a connection between hosts carries at least one flow, found none")]
    NoFlow,
    /// The secret is no Ed25519 key.
    #[error("the secret of the server's certificate is no Ed25519 key: {0}")]
    CertificateKey(ring::error::KeyRejected),
    /// TLS refused the configuration.
    #[error("TLS refused the configuration: {0}")]
    Tls(#[from] rustls::Error),
    /// AES-128-GCM, which protects Initial packets, is missing.
    #[error("the cipher suite of Initial packets is missing: {0}")]
    InitialSuite(#[from] quinn_proto::crypto::rustls::NoInitialCipherSuite),
}

/// The configurations that follow from `seed`.
pub fn configs(seed: u64, protection: Protection) -> Result<Configs, ConfigError> {
    watched(seed, protection, &Watch::default())
}

/// The same, whose packets `watch` sees.
pub(crate) fn watched(seed: u64, protection: Protection, watch: &Watch) -> Result<Configs, ConfigError> {
    let seed = Seed::new(seed);
    let keys = Octets::new(seed, "quic/keys");
    let certificate = Certificate::from_secret(&keys.array()).map_err(ConfigError::CertificateKey)?;
    let key_log = KeyLog::default();
    Ok(Configs {
        endpoint_client: endpoint(seed, "quic/client"),
        endpoint_server: endpoint(seed, "quic/server"),
        client: client(seed, protection, &certificate, watch, &key_log)?,
        server: server(seed, protection, &keys, certificate, watch)?,
        key_log,
    })
}

fn endpoint(seed: Seed, name: &str) -> EndpointConfig {
    let octets = Octets::new(seed, name);
    let reset_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &octets.array::<64>());
    let mut config = EndpointConfig::new(Arc::new(reset_key));
    config.rng_seed(Some(octets.array()));
    let ids = format!("{name}/ids");
    config.cid_generator(move || Box::new(ConnectionIds(Octets::new(seed, &ids))));
    config
}

fn client(
    seed: Seed,
    protection: Protection,
    certificate: &Certificate,
    watch: &Watch,
    key_log: &KeyLog,
) -> Result<ClientConfig, ConfigError> {
    let (provider, time) = provider(seed.stream("quic/client/tls"));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.certificate.clone())?;
    let mut tls = rustls::ClientConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.enable_early_data = true;
    tls.key_log = Arc::new(key_log.clone());
    tls.resumption = Resumption::in_memory_sessions(SESSIONS);
    let tls = Arc::new(QuicClientConfig::try_from(tls)?);
    let mut config = ClientConfig::new(watch.of_client(match protection {
        Protection::Encrypted => tls,
        Protection::SizesOnly => Arc::new(SizesOnly(tls)),
    }));
    let ids = Octets::new(seed, "quic/client/initial ids");
    // 20 octets, as quinn-proto's default (`config/mod.rs`): RFC 9000 §7.2 asks for 8 at least.
    config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&ids.array::<20>())));
    Ok(config)
}

fn server(
    seed: Seed,
    protection: Protection,
    keys: &Octets,
    certificate: Certificate,
    watch: &Watch,
) -> Result<ServerConfig, ConfigError> {
    let (provider, time) = provider(seed.stream("quic/server/tls"));
    let mut tls = rustls::ServerConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.certificate], certificate.key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // RFC 9001 §4.6.1: any other value than this one or 0 is an error.
    tls.max_early_data_size = u32::MAX;
    tls.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    let salt = ring::hkdf::Salt::new(ring::hkdf::HKDF_SHA256, &[]);
    let token_key = salt.extract(&keys.array::<64>());
    let tls: Arc<dyn quinn_proto::crypto::ServerConfig> = match (protection, QuicServerConfig::try_from(tls)?)
    {
        (Protection::Encrypted, tls) => Arc::new(tls),
        (Protection::SizesOnly, tls) => Arc::new(SizesOnly(Arc::new(tls))),
    };
    let mut config = ServerConfig::new(watch.of_server(tls), Arc::new(token_key));
    let mut tokens = ValidationTokenConfig::default();
    // 2 as quinn-proto sends with its default features (`config/mod.rs`).
    tokens.log(Arc::new(UsedTokens::default())).sent(2);
    config.validation_token_config(tokens).time_source(Arc::new(FixedTime));
    Ok(config)
}

/// RFC 9001 §8.1 wants a protocol's name; this one is ours.
pub(crate) const ALPN: &[u8] = b"talkpath";

/// How many sessions each end remembers: rustls's default for both.
const SESSIONS: usize = 256;
