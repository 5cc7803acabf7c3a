//! Makes the kernel report stamps and headers of the datagrams that arrive, and names what it does not
//! report.

use std::os::fd::BorrowedFd;

use super::{SocketSwitch, switch_on};

/// A property of received datagrams that the kernel does not report, and what follows from that. Old and
/// trimmed kernels and sandboxes lack some of the options. A run works without all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreported {
    /// The socket option, and the system's error.
    pub option: String,
    /// The property that is not known, or known less well.
    pub means: &'static str,
}

impl core::fmt::Display for Unreported {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { option, means } = self;
        write!(f, "does not take the socket option {option}: {means}")
    }
}

/// Makes the kernel report the arrival time, DSCP, ECN field and TTL of each datagram that `socket` receives.
/// Returns the properties that it does not report.
pub fn report_arrivals(socket: BorrowedFd<'_>, is_v6: bool) -> Vec<Unreported> {
    let switches: &[SocketSwitch] = match is_v6 {
        true => &[
            SocketSwitch::KernelStamps,
            SocketSwitch::MarksV4,
            SocketSwitch::TtlV4,
            SocketSwitch::MarksV6,
            SocketSwitch::TtlV6,
        ],
        false => &[SocketSwitch::KernelStamps, SocketSwitch::MarksV4, SocketSwitch::TtlV4],
    };
    let refused = |&switch: &SocketSwitch| {
        let error = switch_on(socket, switch).err()?;
        Some(Unreported { option: format!("{} ({error})", switch.name()), means: switch.means() })
    };
    switches.iter().filter_map(refused).collect()
}

impl SocketSwitch {
    /// The name of the option in socket(7), ip(7) and ipv6(7).
    pub const fn name(self) -> &'static str {
        match self {
            Self::KernelStamps => "SO_TIMESTAMPNS",
            Self::PacketInfoV4 => "IP_PKTINFO",
            Self::PacketInfoV6 => "IPV6_RECVPKTINFO",
            Self::MarksV4 => "IP_RECVTOS",
            Self::MarksV6 => "IPV6_RECVTCLASS",
            Self::TtlV4 => "IP_RECVTTL",
            Self::TtlV6 => "IPV6_RECVHOPLIMIT",
        }
    }

    /// The text that says what follows for the figures if the option cannot be switched on.
    const fn means(self) -> &'static str {
        match self {
            Self::KernelStamps => "arrivals are timed when they are read, which is late on a busy machine",
            Self::PacketInfoV4 | Self::PacketInfoV6 => "the address that a datagram came to is not known",
            Self::MarksV4 => "DSCP and ECN field of datagrams over IPv4 are not known",
            Self::MarksV6 => "DSCP and ECN field of datagrams over IPv6 are not known",
            Self::TtlV4 => "how many hops datagrams over IPv4 had left is not known",
            Self::TtlV6 => "how many hops datagrams over IPv6 had left is not known",
        }
    }
}
