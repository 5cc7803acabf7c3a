//! Reads the frames of each QUIC packet, just before the packet is encrypted and just after it is decrypted.
//!
//! ```text
//!   quinn-proto ── plain packet ──► Watched ──► packet key ──► encrypted packet ──► network
//!                                     └─ frames ─► PacketWatch ─► records, qlog
//! ```
//!
//! The engine, quinn-proto, does not report what its packets carry. The records need this: when a message
//! left, which data a lost packet carried, and how many bytes are in flight. A qlog needs all frames of both
//! directions.
//!
//! [`Watched`] wraps the crypto session of the engine and its keys. So it works with every cipher.

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
use crate::qlog::{LoggedPacket, LoggedParameters, PacketDirection};

/// Application data in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFrame {
    /// Bytes `start..end` of a stream.
    Stream {
        /// The ID of the stream.
        id: u64,
        /// The offset of the first byte.
        start: u64,
        /// The offset one past the last byte.
        end: u64,
    },
    /// A datagram.
    Datagram {
        /// The data, in bytes.
        size: u64,
    },
}

/// What the packets of one end carried, kept until a caller takes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketWatch(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// The data frames of the packets that this end has sent.
    sent_data: Vec<DataFrame>,
    /// The bytes of the sent packets that count as in flight (RFC 9002 §2).
    sent_in_flight: u64,
    /// All packets of both directions, or `None` if no qlog is written.
    packets: Option<Vec<LoggedPacket>>,
    /// The transport parameters of this end and of the far end, once each is known, if a qlog is written.
    parameters: Vec<LoggedParameters>,
    /// Whether the far end's are among these.
    has_remote_parameters: bool,
    /// Whether this end has decrypted packets that may carry application data.
    read: ReadPackets,
    /// The space of the packet that this end decrypted last.
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
    /// Returns the space of a packet of type `packet_type`.
    fn of(packet_type: PacketType) -> Self {
        match packet_type {
            PacketType::OneRtt | PacketType::ZeroRtt => Self::Data,
            PacketType::Handshake => Self::Handshake,
            PacketType::Initial => Self::Initial,
        }
    }
}

/// The type of an encrypted packet (RFC 9000 §17.2, §17.3.1).
#[derive(Clone, Copy)]
enum PacketType {
    Initial,
    ZeroRtt,
    Handshake,
    OneRtt,
}

impl PacketType {
    /// Reads the type from the first byte of the header. Its highest bit is 0 in a short header, which only
    /// 1-RTT packets have. In a long header, the bits 0x30 are the type. The type 0x30 is a Retry packet,
    /// which has no encrypted payload and never comes here.
    fn read(first_byte: u8) -> Self {
        match (first_byte & 0x80, first_byte & 0x30) {
            (0, _) => Self::OneRtt,
            (_, 0x10) => Self::ZeroRtt,
            (_, 0x20) => Self::Handshake,
            _ => Self::Initial,
        }
    }
}

/// Whether packets that may carry application data were decrypted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadPackets {
    /// True if a 0-RTT packet was decrypted.
    pub(crate) early: bool,
    /// True if a 1-RTT packet was decrypted.
    pub(crate) one_rtt: bool,
}

impl PacketWatch {
    /// Moves the data frames that were sent since the last call into `frames`, which is empty. Returns how
    /// many bytes of their packets count as in flight.
    pub(crate) fn take_sent(&self, frames: &mut Vec<DataFrame>) -> u64 {
        let mut seen = self.lock();
        core::mem::swap(&mut seen.sent_data, frames);
        core::mem::take(&mut seen.sent_in_flight)
    }

    /// Returns which kinds of packets were decrypted since the last call.
    pub(crate) fn take_read(&self) -> ReadPackets {
        core::mem::take(&mut self.lock().read)
    }

    /// Returns the space of the packet that was decrypted last. While the engine handles a packet, this is
    /// the space of that packet, because the engine decrypts one packet at a time.
    pub(crate) fn read_space(&self) -> Space {
        self.lock().read_space
    }

    /// Keeps all packets from now on, for a qlog.
    pub(crate) fn keep_packets(&self) {
        self.lock().packets.get_or_insert_default();
    }

    /// Takes the packets that were kept since the last call.
    pub(crate) fn take_packets(&self) -> Vec<LoggedPacket> {
        self.lock().packets.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Takes the transport parameters that became known since the last call.
    pub(crate) fn take_parameters(&self) -> Vec<LoggedParameters> {
        core::mem::take(&mut self.lock().parameters)
    }

    /// Keeps transport parameters, for a qlog.
    fn on_parameters(&self, is_local: bool, parameters: &TransportParameters) {
        let mut seen = self.lock();
        if seen.packets.is_none() || (!is_local && core::mem::replace(&mut seen.has_remote_parameters, true))
        {
            return;
        }
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        seen.parameters.push(LoggedParameters { is_local, encoded });
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a packet of `length` bytes that leaves.
    fn on_sent(&self, number: u64, header: &[u8], payload: &[u8], length: usize) {
        let mut seen = self.lock();
        let mut is_in_flight = false;
        for frame in Frames::new(payload) {
            is_in_flight |= !frame.is_out_of_flight();
            match frame {
                Frame::Stream { id, start, end, .. } => {
                    seen.sent_data.push(DataFrame::Stream { id, start, end });
                }
                Frame::Datagram { size } => seen.sent_data.push(DataFrame::Datagram { size }),
                _ => {}
            }
        }
        if is_in_flight {
            seen.sent_in_flight += length as u64;
        }
        if let Some(packets) = &mut seen.packets {
            packets.push(LoggedPacket::new(PacketDirection::Sent, number, header, payload, length));
        }
    }

    /// Records a packet of `length` bytes that was decrypted.
    fn on_received(&self, number: u64, header: &[u8], payload: &[u8], length: usize) {
        let mut seen = self.lock();
        if let Some(first_byte) = header.first() {
            let packet_type = PacketType::read(*first_byte);
            seen.read_space = Space::of(packet_type);
            match packet_type {
                PacketType::OneRtt => seen.read.one_rtt = true,
                PacketType::ZeroRtt => seen.read.early = true,
                PacketType::Initial | PacketType::Handshake => {}
            }
        }
        if let Some(packets) = &mut seen.packets {
            packets.push(LoggedPacket::new(PacketDirection::Received, number, header, payload, length));
        }
    }
}

/// The watches of both ends of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) client: PacketWatch,
    pub(crate) server: PacketWatch,
}

impl Watch {
    /// Returns `inner` with a watch on the packets of the client.
    pub(crate) fn of_client(&self, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
        Arc::new(Watched { inner, watch: self.client.clone() })
    }

    /// Returns `inner` with a watch on the packets of the server.
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
        self.watch.on_parameters(true, params);
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
        self.watch.on_parameters(true, params);
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
        let parameters = self.inner.transport_parameters()?;
        if let Some(parameters) = &parameters {
            self.watch.on_parameters(false, parameters);
        }
        Ok(parameters)
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
