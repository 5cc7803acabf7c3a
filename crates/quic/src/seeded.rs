//! Randomness and time for the engine and for TLS, from a seed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use curve25519_dalek::montgomery::MontgomeryPoint;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, TimeSource, TokenLog, TokenReuseError};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{Error, NamedGroup, PeerMisbehaved};
use talkpath_units::{Seed, Stream, to_hex};

/// A stream of random octets that several owners draw from in turn.
#[derive(Debug)]
pub(crate) struct Octets(Mutex<Stream>);

impl Octets {
    pub(crate) fn new(seed: Seed, name: &str) -> Self {
        Self(Mutex::new(seed.stream(name)))
    }

    pub(crate) fn fill(&self, buffer: &mut [u8]) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&stream.bits().to_le_bytes()[..chunk.len()]);
        }
    }

    pub(crate) fn array<const N: usize>(&self) -> [u8; N] {
        let mut octets = [0; N];
        self.fill(&mut octets);
        octets
    }
}

impl SecureRandom for Octets {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.fill(buffer);
        Ok(())
    }
}

/// X25519 (RFC 7748 §6.1) with secrets from a seed. *ring*'s own draws from the system and lets nobody else.
impl SupportedKxGroup for Octets {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let secret = self.array();
        let public = MontgomeryPoint::mul_base_clamped(secret).to_bytes();
        Ok(Box::new(X25519 { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct X25519 {
    secret: [u8; 32],
    public: [u8; 32],
}

impl ActiveKeyExchange for X25519 {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let refused = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
        let Ok(peer) = <[u8; 32]>::try_from(peer) else {
            return Err(refused);
        };
        let shared = MontgomeryPoint(peer).mul_clamped(self.secret).to_bytes();
        // RFC 8446 §7.4.2: an all-zero result ends the handshake.
        if shared == [0; 32] { Err(refused) } else { Ok(SharedSecret::from(&shared[..])) }
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// *ring*'s AES-128-GCM, and random numbers and keys from `stream`; a clock that never moves.
pub(crate) fn provider(stream: Stream) -> (Arc<CryptoProvider>, Arc<dyn TimeProvider>) {
    let lease = Lease::new(stream);
    let provider = CryptoProvider {
        // RFC 9001 §5.2: Initial packets have it anyway, so that all packets have one tag and one sample.
        cipher_suites: vec![rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![lease.0],
        secure_random: lease.0,
        ..rustls::crypto::ring::default_provider()
    };
    (Arc::new(provider), Arc::new(lease))
}

/// A source for one rustls configuration, which wants it `'static`. The configuration owns the lease as its
/// clock and drops it with itself. The next configuration uses the source again, so that a million runs
/// take no more memory than the configurations that there are at one time.
#[derive(Debug)]
struct Lease(&'static Octets);

/// Sources that no configuration has.
static IDLE: Mutex<Vec<&'static Octets>> = Mutex::new(Vec::new());

impl Lease {
    fn new(stream: Stream) -> Self {
        match IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(octets) => {
                *octets.0.lock().unwrap_or_else(PoisonError::into_inner) = stream;
                Self(octets)
            }
            None => Self(Box::leak(Box::new(Octets(Mutex::new(stream))))),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

impl TimeProvider for Lease {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(FIXED_TIME))
    }
}

/// The engine's clock, which never moves: address validation tokens are judged by it, and certificates and
/// session tickets by the same instant. None runs out during a run.
pub(crate) struct FixedTime;

impl TimeSource for FixedTime {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + FIXED_TIME
    }
}

/// 2026-01-01 00:00 UTC: chosen, within the certificate's validity.
const FIXED_TIME: Duration = Duration::from_secs(1_767_225_600);

/// Connection ids of 8 octets, the length that quinn-proto's own generators give (`cid_generator.rs`).
#[derive(Debug)]
pub(crate) struct ConnectionIds(pub(crate) Octets);

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.array::<8>())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The address validation tokens that were used. quinn-proto's own is a Bloom filter with random hashes.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens(Mutex<BTreeSet<u128>>);

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        _issued: SystemTime,
        _lifetime: Duration,
    ) -> Result<(), TokenReuseError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.insert(nonce) { Ok(()) } else { Err(TokenReuseError) }
    }
}

/// The secrets of connections, a line each (draft-ietf-tls-keylogfile).
#[derive(Clone, Debug, Default)]
pub struct KeyLog(Arc<Mutex<String>>);

impl KeyLog {
    /// A line a secret, as the NSS key log has them (draft-ietf-tls-keylogfile).
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = format!("{label} {} {}\n", to_hex(client_random), to_hex(secret));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line);
    }
}
