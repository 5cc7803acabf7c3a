//! Sees what each packet carries, in the moment before the packet is encrypted and after it was decrypted.
//! The engine does not say it, and the records need it: when a message left, what a lost packet took with it,
//! and what counts in flight. A qlog needs all frames of both directions.
//!
//! The watch wraps the engine's crypto session, so that it works whatever protects the packets.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

use crate::frames::{Frame, Frames};
use crate::qlog::LoggedPacket;

/// Application data in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFrame {
    /// Bytes `start..end` of a stream.
    Stream {
        /// The stream's ID.
        id: u64,
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// A datagram.
    Datagram {
        /// Bytes of data.
        size: u64,
    },
}

/// What was seen of an end's packets and nobody has taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketWatch(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// Of the packets that were sent.
    data: Vec<DataFrame>,
    /// Their bytes, as far as these count in flight (RFC 9002 §2).
    in_flight: u64,
    /// Packets of both directions, if a qlog is made.
    packets: Option<Vec<LoggedPacket>>,
    /// What was decrypted.
    read: ReadPackets,
    /// The space of the packet that was decrypted last.
    read_space: Space,
}

/// A packet number space (RFC 9000 §12.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Space {
    /// Initial packets.
    #[default]
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

impl Space {
    /// That of a packet whose header begins with `first` (RFC 9000 §17.2, §17.3.1): the form, and of a long
    /// header the type.
    fn of(first: u8) -> Self {
        match (first & 0x80, first & 0x30) {
            (0, _) | (_, 0x10) => Self::Data,
            (_, 0x20) => Self::Handshake,
            _ => Self::Initial,
        }
    }
}

/// Which packets that may carry application data were decrypted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadPackets {
    /// A 0-RTT packet.
    pub(crate) early: bool,
    /// A 1-RTT packet.
    pub(crate) one_rtt: bool,
}

impl PacketWatch {
    /// Takes the data frames that were sent, in their order, into the empty `frames`; returns how many bytes
    /// of their packets count in flight.
    pub(crate) fn take_sent(&self, frames: &mut Vec<DataFrame>) -> u64 {
        let mut seen = self.lock();
        core::mem::swap(&mut seen.data, frames);
        core::mem::take(&mut seen.in_flight)
    }

    /// Which packets were decrypted since the last call.
    pub(crate) fn take_read(&self) -> ReadPackets {
        core::mem::take(&mut self.lock().read)
    }

    /// The space of the packet that was decrypted last: the engine reads each packet before it decrypts the
    /// next.
    pub(crate) fn read_space(&self) -> Space {
        self.lock().read_space
    }

    /// Keeps all packets from now on.
    pub(crate) fn keep_packets(&self) {
        self.lock().packets.get_or_insert_default();
    }

    /// Takes the packets that were kept.
    pub(crate) fn take_packets(&self) -> Vec<LoggedPacket> {
        self.lock().packets.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet of `length` bytes leaves.
    fn on_sent(&self, number: u64, header: &[u8], payload: &[u8], length: usize) {
        let mut seen = self.lock();
        let mut is_in_flight = false;
        for frame in Frames::new(payload) {
            is_in_flight |= !frame.is_out_of_flight();
            match frame {
                Frame::Stream { id, start, end, .. } => seen.data.push(DataFrame::Stream { id, start, end }),
                Frame::Datagram { size } => seen.data.push(DataFrame::Datagram { size }),
                _ => {}
            }
        }
        seen.in_flight += if is_in_flight { length as u64 } else { 0 };
        if let Some(packets) = &mut seen.packets {
            packets.push(LoggedPacket::new(true, number, header, payload, length));
        }
    }

    /// A packet of `length` bytes came.
    fn on_received(&self, number: u64, header: &[u8], payload: &[u8], length: usize) {
        let mut seen = self.lock();
        seen.read_space = header.first().map_or(seen.read_space, |first| Space::of(*first));
        // RFC 9000 §17.2, §17.3.1: the form, and of a long header the type.
        match header.first() {
            Some(first) if first & 0x80 == 0 => seen.read.one_rtt = true,
            Some(first) if first & 0x30 == 0x10 => seen.read.early = true,
            _ => {}
        }
        if let Some(packets) = &mut seen.packets {
            packets.push(LoggedPacket::new(false, number, header, payload, length));
        }
    }
}

/// What a client's and a server's packets carry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) client: PacketWatch,
    pub(crate) server: PacketWatch,
}

impl Watch {
    /// `inner`, watched.
    pub(crate) fn of_client(&self, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
        Arc::new(Watched { inner, watch: self.client.clone() })
    }

    /// `inner`, watched.
    pub(crate) fn of_server(&self, inner: Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig> {
        Arc::new(Watched { inner, watch: self.server.clone() })
    }
}

/// A configuration, a session or a key whose packets are watched.
struct Watched<T> {
    inner: T,
    watch: PacketWatch,
}

impl ClientConfig for Watched<Arc<dyn ClientConfig>> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = Arc::clone(&self.inner).start_session(version, server_name, params)?;
        Ok(Box::new(Watched { inner, watch: self.watch.clone() }))
    }
}

impl ServerConfig for Watched<Arc<dyn ServerConfig>> {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(self.watch.keys(self.inner.initial_keys(version, dst_cid)?))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let inner = Arc::clone(&self.inner).start_session(version, params);
        Box::new(Watched { inner, watch: self.watch.clone() })
    }
}

impl PacketWatch {
    fn key(&self, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(Watched { inner, watch: self.clone() })
    }

    fn pair(&self, pair: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: self.key(pair.local), remote: self.key(pair.remote) }
    }

    fn keys(&self, Keys { header, packet }: Keys) -> Keys {
        Keys { header, packet: self.pair(packet) }
    }
}

impl Session for Watched<Box<dyn Session>> {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.watch.keys(self.inner.initial_keys(dst_cid, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.inner.early_crypto()?;
        Some((header, self.watch.key(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        Some(self.watch.keys(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let pair = self.inner.next_1rtt_keys()?;
        Some(self.watch.pair(pair))
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

impl PacketKey for Watched<Box<dyn PacketKey>> {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len().saturating_sub(self.inner.tag_len());
        let (header, payload) = buf[..end].split_at(header_len.min(end));
        self.watch.on_sent(packet, header, payload, buf.len());
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        self.inner.decrypt(packet, header, payload)?;
        self.watch.on_received(packet, header, payload, length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
