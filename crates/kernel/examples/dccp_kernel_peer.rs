//! Our end of a DCCP connection with a booted kernel: Ethernet frames in UDP datagrams on loopback, as qemu's
//! `dgram` network has them, and on them ARP (RFC 826) as far as two hosts need it, IPv4 and protocol 33.
//! `cargo xtask kernel-peer` starts it beside the machine:
//!
//! `dccp_kernel_peer --port OURS --peer QEMUS --role client|server --ccid 2|3 --messages N`
//!
//! A message begins with its number in two bytes; each further byte is the number plus its place, so that the
//! other end can tell a message that came whole from one that did not.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use talkpath_config::{CcidKind, DccpConfig, Role};
use talkpath_transport::dccp::Dccp;
use talkpath_units::{Bytes, Ecn, Instant, Seed};
use talkpath_wire::dccp::codec::{Carrier, Ports, decode, encode};
use talkpath_wire::dccp::{DccpPacket, PacketKind, ResetCode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{Delivery, Message, Packet, Transmit, Transport};

/// The addresses that `guest.c` has for the two ends.
const OURS: Ipv4Addr = Ipv4Addr::new(10, 33, 0, 1);
const GUESTS: Ipv4Addr = Ipv4Addr::new(10, 33, 0, 2);
/// The server's port in `guest.c`, and one of the ephemeral range for a client.
const SERVER_PORT: u16 = 5001;
const CLIENT_PORT: u16 = 49_152;
/// Locally administered (IEEE 802, the second bit of the first byte).
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const BROADCAST: [u8; 6] = [0xff; 6];

/// G.711 at 20 ms, the message of the studies.
const MESSAGE: usize = 160;
const GAP: StdDuration = StdDuration::from_millis(20);
/// How long we still answer after the close, since a Reset can be lost; chosen.
const SETTLE: StdDuration = StdDuration::from_millis(700);
/// Nothing takes longer; a boot is 5 to 12 s of a free core.
const LIMIT: StdDuration = StdDuration::from_secs(590);

fn main() -> ExitCode {
    match Arguments::read().and_then(|arguments| Peer::new(&arguments)?.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("ours: failed: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    port: u16,
    peer: u16,
    is_client: bool,
    ccid: CcidKind,
    messages: u64,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let value = |name: &str| {
            let at = words.iter().position(|word| word == name);
            at.and_then(|at| words.get(at + 1)).ok_or(format!("{name} is missing"))
        };
        let number = |name: &str| value(name)?.parse().map_err(|_| format!("{name} is no number"));
        Ok(Self {
            port: number("--port")?,
            peer: number("--peer")?,
            is_client: value("--role")? == "client",
            ccid: match value("--ccid")?.as_str() {
                "2" => CcidKind::Ccid2,
                "3" => CcidKind::Ccid3,
                other => return Err(format!("CCID {other}: the kernel has 2 and 3")),
            },
            messages: u64::from(number("--messages")?),
        })
    }
}

/// The connection, and the wire below it.
struct Peer {
    socket: UdpSocket,
    began: StdInstant,
    end: Dccp,
    is_client: bool,
    ports: Ports,
    guest_mac: Option<[u8; 6]>,
    is_opened: bool,
    next_message: u64,
    messages: u64,
    next_due: StdInstant,
    received: u64,
    good: u64,
    last: Option<u64>,
    malformed: u64,
    closed: bool,
    ip_identification: u16,
}

impl Peer {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let say = |error: std::io::Error| error.to_string();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, arguments.port)).map_err(say)?;
        socket.connect((Ipv4Addr::LOCALHOST, arguments.peer)).map_err(say)?;
        socket.set_read_timeout(Some(StdDuration::from_millis(2))).map_err(say)?;
        let role = if arguments.is_client { Role::Active } else { Role::Passive };
        let config = DccpConfig::new(arguments.ccid);
        let (source, destination) =
            if arguments.is_client { (CLIENT_PORT, SERVER_PORT) } else { (SERVER_PORT, CLIENT_PORT) };
        let now = StdInstant::now();
        Ok(Self {
            socket,
            began: now,
            end: Dccp::new(&config, role, Bytes::new(1500), Seed::new(u64::from(arguments.port)), None),
            is_client: arguments.is_client,
            ports: Ports { source, destination },
            guest_mac: None,
            is_opened: false,
            next_message: 0,
            messages: arguments.messages,
            next_due: now,
            received: 0,
            good: 0,
            last: None,
            malformed: 0,
            closed: false,
            ip_identification: 0,
        })
    }

    /// Until the connection has ended, or the time is over.
    fn run(mut self) -> Result<(), String> {
        let mut asked_at = self.began;
        let mut closed_at = None;
        while closed_at.is_none_or(|at: StdInstant| at.elapsed() < SETTLE) {
            if self.began.elapsed() > LIMIT {
                return Err(format!("no end after {} s: {}", LIMIT.as_secs(), self.story()));
            }
            self.receive()?;
            if self.is_client
                && self.guest_mac.is_none()
                && asked_at.elapsed() > StdDuration::from_millis(200)
            {
                asked_at = StdInstant::now();
                self.send_frame(BROADCAST, ETHERTYPE_ARP, &arp(1, [0; 6]));
            }
            self.step();
            if self.closed && closed_at.is_none() {
                closed_at = Some(StdInstant::now());
            }
        }
        println!("ours: {}", self.story());
        println!("ours: closed");
        Ok(())
    }

    fn story(&self) -> String {
        match self.is_client {
            true => format!("sent {} messages, {} malformed packets came", self.next_message, self.malformed),
            false => format!(
                "received {} messages, {} good, {} malformed packets",
                self.received, self.good, self.malformed
            ),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// One turn of the connection: opens, offers messages, reads, and sends what is to be sent.
    fn step(&mut self) {
        let now = self.now();
        if self.end.poll_timeout().is_some_and(|at| at <= now) {
            self.end.handle_timeout(now);
        }
        if self.is_client {
            self.offer(now);
        }
        while let Some(Delivery::Message { .. }) = self.end.poll_delivery(Bytes::MAX, now) {}
        while let Some(transmit) = self.end.poll_transmit(now) {
            self.send_packet(&transmit);
        }
    }

    fn offer(&mut self, now: Instant) {
        // A guest that has an address listens.
        if self.guest_mac.is_some() && !self.is_opened {
            self.is_opened = true;
            self.end.open(now);
            self.next_due = StdInstant::now();
        }
        while self.end.is_open() && self.next_message < self.messages && self.next_due <= StdInstant::now() {
            let message = Message { seq: self.next_message, size: Bytes::new(MESSAGE as u64), due: now };
            if self.end.handle_message(message, now).is_err() {
                return;
            }
            self.next_message += 1;
            self.next_due += GAP;
            if self.next_message == self.messages {
                self.end.close(now);
            }
        }
    }

    fn send_packet(&mut self, transmit: &Transmit) {
        let (Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)), Some(mac)) =
            (&transmit.packet, self.guest_mac)
        else {
            return;
        };
        self.note_end(packet);
        let data = pattern(packet.message, packet.payload as usize);
        let mut bytes = Vec::new();
        let carrier = Carrier::Ipv4 { source: OURS.octets(), destination: GUESTS.octets() };
        encode(packet, self.ports, &data, carrier, &mut bytes);
        self.ip_identification = self.ip_identification.wrapping_add(1);
        let mut datagram = ipv4(bytes.len(), self.ip_identification, transmit.ecn);
        datagram.extend_from_slice(&bytes);
        self.send_frame(mac, ETHERTYPE_IPV4, &datagram);
    }

    fn note_end(&mut self, packet: &DccpPacket) {
        if let PacketKind::Reset(reset) = packet.kind {
            match reset.code {
                ResetCode::CLOSED => self.closed = true,
                other => println!("ours: a Reset passed with code {}", other.0),
            }
        }
    }

    fn receive(&mut self) -> Result<(), String> {
        let mut frame = [0; 2048];
        let size = match self.socket.recv(&mut frame) {
            Ok(size) => size,
            Err(error) if waits(error.kind()) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let Some((header, body)) = frame[..size].split_at_checked(14) else { return Ok(()) };
        match u16::from_be_bytes([header[12], header[13]]) {
            ETHERTYPE_ARP => self.on_arp(body),
            ETHERTYPE_IPV4 => self.on_ipv4(body),
            _ => {}
        }
        Ok(())
    }

    fn on_arp(&mut self, body: &[u8]) {
        let Some(body) = body.get(..28) else { return };
        let mut mac = [0; 6];
        mac.copy_from_slice(&body[8..14]);
        if body[14..18] == GUESTS.octets() {
            self.guest_mac = Some(mac);
        }
        if body[6..8] == [0, 1] && body[24..28] == OURS.octets() {
            self.send_frame(mac, ETHERTYPE_ARP, &arp(2, mac));
        }
    }

    fn on_ipv4(&mut self, body: &[u8]) {
        let header = usize::from(body.first().map_or(0, |first| first & 15)) * 4;
        let total = body.get(2..4).map_or(0, |it| usize::from(u16::from_be_bytes([it[0], it[1]])));
        let is_ours = body.get(9) == Some(&DCCP) && body.get(16..20) == Some(&OURS.octets());
        let Some(bytes) = body.get(header..total).filter(|_| is_ours && header >= 20) else { return };
        let carrier = Carrier::Ipv4 { source: GUESTS.octets(), destination: OURS.octets() };
        let Ok(decoded) = decode(bytes, carrier) else {
            self.malformed += 1;
            return;
        };
        let mut packet = decoded.packet;
        self.ports.destination = decoded.ports.source;
        self.note_end(&packet);
        if let [high, low, ..] = decoded.data {
            packet.message = u64::from(u16::from_be_bytes([*high, *low]));
            let is_good = decoded.data == pattern(packet.message, decoded.data.len())
                && self.last.is_none_or(|last| packet.message > last);
            self.received += 1;
            self.good += u64::from(is_good);
            self.last = Some(packet.message);
        }
        let now = self.now();
        self.end.handle_packet(&Packet::Encapsulated(packet.into()), ecn_of(body[1]), now);
    }

    fn send_frame(&self, to: [u8; 6], ethertype: u16, body: &[u8]) {
        let mut frame = Vec::with_capacity(14 + body.len());
        frame.extend_from_slice(&to);
        frame.extend_from_slice(&OUR_MAC);
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame.extend_from_slice(body);
        // Nobody listens before the machine is up. A lost frame is repeated, as on any wire.
        let _ = self.socket.send(&frame);
    }
}

/// RFC 826 and RFC 894.
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV4: u16 = 0x0800;
/// IP protocol number (RFC 4340 §19.1).
const DCCP: u8 = 33;

fn waits(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused | ErrorKind::Interrupted
    )
}

/// The bytes of message `number`.
fn pattern(number: u64, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..size as u64).map(|at| (number + at) as u8).collect();
    if let [high, low, ..] = bytes.as_mut_slice() {
        [*high, *low] = (number as u16).to_be_bytes();
    }
    bytes
}

/// An ARP packet from us: operation 1 asks, 2 answers.
fn arp(operation: u16, to: [u8; 6]) -> Vec<u8> {
    let mut bytes = vec![0, 1, 8, 0, 6, 4];
    bytes.extend_from_slice(&operation.to_be_bytes());
    bytes.extend_from_slice(&OUR_MAC);
    bytes.extend_from_slice(&OURS.octets());
    bytes.extend_from_slice(&to);
    bytes.extend_from_slice(&GUESTS.octets());
    bytes
}

/// An IPv4 header (RFC 791) before `payload` bytes of protocol 33.
fn ipv4(payload: usize, identification: u16, ecn: Ecn) -> Vec<u8> {
    let ecn = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let mut header = vec![0x45, ecn];
    header.extend_from_slice(&((20 + payload) as u16).to_be_bytes());
    header.extend_from_slice(&identification.to_be_bytes());
    header.extend_from_slice(&[0x40, 0, 64, DCCP, 0, 0]);
    header.extend_from_slice(&OURS.octets());
    header.extend_from_slice(&GUESTS.octets());
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    header
}

fn ecn_of(tos: u8) -> Ecn {
    match tos & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
