"""aioquic as one end of a flow, on a UDP socket that is its standard input.

    aioquic_peer.py role=client carry=datagram messages=1000 size=800 gap_ms=5 idle_ms=2000 \
        certificate=FILE [key=FILE] [close=words]

`crates/emu/examples/quic_beside.rs` starts it and has the other end. A client sends `messages`, each `size`
bytes, and closes; a server sends each back. A message in a datagram or on a stream of its own is a token (4 B,
zero), its number (4 B) and a filling; one stream for all carries bytes alone (`crates/kernel/src/wire.rs`).
The first line that it prints says that it has its task and its socket, the last one what it counted.
"""

import select
import socket
import sys
import time

from aioquic.buffer import Buffer
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import pull_quic_header
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key

# Bytes of token and number.
HEADER = 8
# Seconds. After its handshake a client waits, until the server has its last flight for certain; after its last
# message it waits for what is under way. A peer that was closed still counts what comes. Chosen.
SETTLE, LINGER, COUNT = 1.0, 1.5, 1.0
# No case takes longer, s.
LIMIT = 40.0


def filling(size):
    """xorshift64 (Marsaglia, 2003), as `wire::filling` has it."""
    state, mask, out = 0x9E37_79B9_7F4A_7C15, (1 << 64) - 1, b""
    while len(out) < size:
        state ^= state << 13 & mask
        state ^= state >> 7
        state ^= state << 17 & mask
        out += state.to_bytes(8, "little")
    return out[:size]


class Peer:
    def __init__(self, words):
        self.carry, self.is_client = words["carry"], words["role"] == "client"
        self.messages, self.size = int(words["messages"]), int(words["size"])
        self.gap, self.words = int(words["gap_ms"]) / 1000, words
        self.socket = socket.socket(fileno=0)
        self.socket.setblocking(False)
        self.filling = filling(self.size)
        self.quic = None
        self.now = time.monotonic()
        self.opened = self.closed = self.why = self.finished = None
        self.stream, self.parts, self.seen = None, {}, set()
        self.count = dict.fromkeys(
            ["sent", "received", "twice", "malformed", "bytes_sent", "bytes_received", "packets_out", "packets_in"], 0
        )

    def configuration(self):
        configuration = QuicConfiguration(
            alpn_protocols=["talkpath"],
            is_client=self.is_client,
            idle_timeout=int(self.words["idle_ms"]) / 1000,
            max_datagram_frame_size=65535,
            server_name="talkpath",
        )
        with open(self.words["certificate"], "rb") as file:
            certificate = x509.load_der_x509_certificate(file.read())
        if self.is_client:
            configuration.load_verify_locations(cadata=certificate.public_bytes(Encoding.PEM))
        else:
            with open(self.words["key"], "rb") as file:
                configuration.private_key = load_der_private_key(file.read(), None)
            configuration.certificate = certificate
        return configuration

    def run(self):
        began = self.now
        if self.is_client:
            self.quic = QuicConnection(configuration=self.configuration())
            self.quic.connect(self.socket.getpeername(), now=self.now)
        while self.now < began + LIMIT and (self.closed is None or self.now < self.closed + COUNT):
            self.transmit()
            readable, _, _ = select.select([self.socket], [], [], max(0.0, self.next() - time.monotonic()))
            self.now = time.monotonic()
            if readable:
                self.receive()
            if self.quic:
                timer = self.quic.get_timer()
                if timer is not None and timer <= self.now:
                    self.quic.handle_timer(self.now)
                self.take_events()
                self.write_due()

    def next(self):
        """When something is due."""
        timers = [self.now + 0.1, self.quic and self.quic.get_timer(), self.next_message()]
        return min(timer for timer in timers if timer is not None)

    def next_message(self):
        if not self.is_client or self.opened is None or self.count["sent"] == self.messages:
            return None
        return self.opened + SETTLE + self.count["sent"] * self.gap

    def receive(self):
        while True:
            try:
                data = self.socket.recv(65536)
            except (BlockingIOError, ConnectionRefusedError):
                return
            self.count["packets_in"] += 1
            if self.quic is None:
                header = pull_quic_header(Buffer(data=data), host_cid_length=8)
                self.quic = QuicConnection(
                    configuration=self.configuration(), original_destination_connection_id=header.destination_cid
                )
            if self.closed is None:
                self.quic.receive_datagram(data, self.socket.getpeername(), now=self.now)

    def transmit(self):
        if self.quic is None or self.closed is not None:
            return
        for data, _ in self.quic.datagrams_to_send(now=self.now):
            self.socket.send(data)
            self.count["packets_out"] += 1

    def take_events(self):
        while (event := self.quic.next_event()) is not None:
            if isinstance(event, events.HandshakeCompleted):
                self.opened = self.now
            elif isinstance(event, events.DatagramFrameReceived):
                self.take_message(event.data)
            elif isinstance(event, events.StreamDataReceived):
                self.take_stream(event)
            elif isinstance(event, events.ConnectionTerminated):
                # What it says last leaves before that.
                self.transmit()
                self.closed, self.why = self.now, event

    def take_stream(self, event):
        self.count["bytes_received"] += len(event.data)
        if self.carry == "stream":
            if not self.is_client:
                self.write_stream(event.data)
            return
        data = self.parts.pop(event.stream_id, b"") + event.data
        if event.end_stream:
            self.take_message(data)
        else:
            self.parts[event.stream_id] = data

    def take_message(self, data):
        number = int.from_bytes(data[4:HEADER], "big")
        if len(data) != self.size or data[:4] != bytes(4) or data[HEADER:] != self.filling[HEADER:]:
            self.count["malformed"] += 1
        elif number in self.seen:
            self.count["twice"] += 1
        else:
            self.seen.add(number)
            self.count["received"] += 1
            if not self.is_client:
                self.write_message(number)

    def write_message(self, number):
        data = bytes(4) + number.to_bytes(4, "big") + self.filling[HEADER:]
        if self.carry == "datagram":
            self.quic.send_datagram_frame(data)
        else:
            stream = self.quic.get_next_available_stream_id(is_unidirectional=True)
            self.quic.send_stream_data(stream, data, end_stream=True)
        self.count["sent"] += 1

    def write_stream(self, data):
        if self.stream is None:
            self.stream = self.quic.get_next_available_stream_id(is_unidirectional=True)
        self.quic.send_stream_data(self.stream, data)
        self.count["bytes_sent"] += len(data)

    def write_due(self):
        while (due := self.next_message()) is not None and due <= self.now and self.closed is None:
            if self.carry == "stream":
                self.write_stream(self.filling)
                self.count["sent"] += 1
            else:
                self.write_message(self.count["sent"])
            self.finished = self.now
            # Each message leaves as soon as it may.
            self.transmit()
        if self.is_client and self.finished and self.count["sent"] == self.messages and self.is_answered():
            if self.words.get("close") == "words":
                self.quic.close(error_code=7, reason_phrase="\x1b[2Jit is over\r\n")
            else:
                self.quic.close(error_code=0)
            self.finished = None

    def is_answered(self):
        """Nothing is waited for. On streams all comes back, however long that takes."""
        if self.carry == "datagram":
            return self.now >= self.finished + LINGER
        if self.carry == "stream":
            return self.count["bytes_received"] == self.count["bytes_sent"]
        return self.count["received"] == self.messages


def kind(event):
    """How the connection ended: an application's close has no frame type (RFC 9000 §19.19)."""
    if event is None:
        return "nothing"
    if event.frame_type is None:
        return "application"
    if event.reason_phrase == "Idle timeout":
        return "idle"
    return "tls" if 0x100 <= event.error_code < 0x200 else "transport"


def main():
    peer = Peer(dict(word.split("=", 1) for word in sys.argv[1:]))
    print("ready", flush=True)
    peer.run()
    print(f"aioquic: closed with {peer.why!r}")
    counts = " ".join(f"{name}={value}" for name, value in peer.count.items())
    print(f"beside: opened={int(peer.opened is not None)} closed={kind(peer.why)} {counts}")


main()
