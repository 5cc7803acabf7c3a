//! Packets without encryption, of the sizes and in the flights of AES-128-GCM, for simulations.
//!
//! The handshake is the real one, once a connection: rustls writes and reads the messages of RFC 8446. So
//! flights, session tickets, 0-RTT and refusals are those of [`Protection::Encrypted`]. Only the keys of
//! packets are other ones: their tag has AES-128-GCM's 16 octets (RFC 5116 §5.1) and a fixed content, and
//! headers stay readable. What depends on a key's limits, the key updates, stays as well (RFC 9001 §6.6).
//!
//! It protects nothing, and it finds no error: a path that damages packets is not for it.
//!
//! [`Protection::Encrypted`]: crate::Protection::Encrypted

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// A client's or a server's TLS configuration whose sessions protect no packet.
pub(crate) struct SizesOnly<T>(pub(crate) Arc<T>);

impl<T: ClientConfig + 'static> ClientConfig for SizesOnly<T> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = Arc::clone(&self.0).start_session(version, server_name, params)?;
        Ok(Box::new(SizesOnlySession(session)))
    }
}

impl<T: ServerConfig + 'static> ServerConfig for SizesOnly<T> {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        // For its answer to the version alone.
        self.0.initial_keys(version, dst_cid)?;
        Ok(keys())
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(SizesOnlySession(Arc::clone(&self.0).start_session(version, params)))
    }
}

/// A TLS session whose keys are taken away.
struct SizesOnlySession(Box<dyn Session>);

impl Session for SizesOnlySession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.0.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.0.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.0.early_crypto()?;
        Some((Box::new(NoKey), Box::new(NoKey)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.0.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.0.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.0.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.0.write_handshake(buf).map(|_| keys())
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.0.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.0.export_keying_material(output, label, context)
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
        packet: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
    }
}

/// AES-128-GCM's sizes and limits, and no key.
struct NoKey;

impl PacketKey for NoKey {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let start = buf.len() - TAG.len();
        buf[start..].copy_from_slice(TAG);
    }

    fn decrypt(&self, _packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        // An encrypting peer's packet is refused, as that peer refuses ours.
        if !payload.ends_with(TAG) {
            return Err(CryptoError);
        }
        payload.truncate(payload.len() - TAG.len());
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG.len()
    }

    /// RFC 9001 §B.1.1.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    /// RFC 9001 §B.1.2.
    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

impl HeaderKey for NoKey {
    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    /// RFC 9001 §5.4.3.
    fn sample_size(&self) -> usize {
        16
    }
}

const TAG: &[u8; 16] = b"talkpath: no key";
