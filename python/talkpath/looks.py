"""The appearance of each transport: the report's own colours, dashes and markers (crates/report, display.rs;
a test compares them)."""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """How one transport is drawn on a light ground."""

    name: str
    """For people."""
    colour: str
    """`#rrggbb`."""
    dash: str
    """SVG's `stroke-dasharray`, in pixels."""
    marker: str
    """matplotlib's letter."""


LOOKS = {
    "udp": Look("UDP", "#0072b2", "none", "o"),
    "tcp": Look("TCP", "#c65300", "7 3", "s"),
    "tcp-nodelay": Look("TCP_NODELAY", "#008a64", "2 2.5", "^"),
    "dccp-ccid2": Look("DCCP CCID 2", "#a8487f", "9 3 2 3", "D"),
    "dccp-ccid3": Look("DCCP CCID 3", "#8f6400", "12 3", "X"),
    "dccp-ccid4": Look("DCCP CCID 4", "#5a4fcf", "5 2 1 2", "o"),
    "quic-datagram": Look("QUIC datagrams", "#00788c", "1 3", "s"),
    "quic-stream": Look("QUIC stream", "#8a3f1d", "10 2 2 2", "^"),
    "quic-stream-per-message": Look("QUIC stream/msg", "#3d7a1f", "2 3 8 3", "o"),
    "sctp": Look("SCTP", "#6b6a00", "4 4", "D"),
    "webrtc": Look("WebRTC", "#b0203c", "3 1.5", "X"),
    "mptcp": Look("MPTCP", "#7b3fa0", "7 3 2 3", "s"),
    "mptcp-nodelay": Look("MPTCP_NODELAY", "#4d6600", "2 2.5 6 2.5", "^"),
    "icmp": Look("ICMP", "#a3157a", "1 2", "D"),
}

OTHER = Look("", "#5d6470", "6 2 2 2", "o")
"""A transport that is not in the table."""

ACCENT = "#0072b2"
INK = "#1b1f26"
SOFT = "#596270"
LINE = "#dfe3e8"
BAD = "#c01824"
"""The page's own colours, on a light ground."""


def look(transport: str, variant: int = 0) -> Look:
    """The look of a transport's line; of several lines of one transport, each has its own dash and marker."""
    own = LOOKS.get(transport, OTHER._replace(name=transport))
    if variant == 0:
        return own
    names = list(LOOKS)
    at = names.index(transport) if transport in LOOKS else 0
    varied = LOOKS[names[(at + variant) % len(names)]]
    return own._replace(dash=varied.dash, marker=varied.marker)
