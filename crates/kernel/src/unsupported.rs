//! Finds what a scenario asks for and the kernel's transports cannot do: the keys that they ignore, and the
//! congestion controls that this kernel does not have.

use talkpath_config::{CongestionControlKind, NagleKind, Stack, TcpConfig, TransportConfig, UdpConfig};
use talkpath_model::{Flow, KernelProfile};
use talkpath_units::Bytes;

use crate::this_kernel::jiffy;

/// The key that asks for another kernel than Linux.
const OTHER_STACK: &str = "stack (other than linux)";
/// A segment size that every kernel takes on a socket of TCP (RFC 9293 §3.7.1: the default with IPv4).
const ANY_MSS: u32 = 536;
/// The values of the keys that Linux has if nothing is set.
const KERNEL: TcpConfig = TcpConfig::preset(Stack::Linux, false);

/// Checks that this kernel has the congestion control `cc` and gives it to this user. `host` is the name of
/// this host in the message.
///
/// # Errors
/// Returns a text that names the congestion controls that the kernel has.
pub fn check_congestion_control(cc: &str, host: &str) -> Result<(), String> {
    let refusal = |error: std::io::Error| {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let known =
            known.map(|known| known.trim().replace(' ', ", ")).unwrap_or_else(|_| "unknown".to_owned());
        if error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) {
            return format!(
                "the kernel of {host} gives the congestion control {cc} to root alone; for others name it in its \
                 net.ipv4.tcp_allowed_congestion_control, or choose one of those there with `cc`"
            );
        }
        format!(
            "the kernel of {host} lacks the congestion control {cc} ({error}); available: {known}; \
             `modprobe tcp_{cc}` as root may load it"
        )
    };
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
        .or_else(|_| socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None))
        .map_err(refusal)?;
    socket.set_tcp_congestion(cc.as_bytes()).map_err(refusal)
}

/// Checks that this kernel has Multipath TCP. `host` is the name of this host in the message.
///
/// # Errors
/// Returns a text with the kernel's error, and how to get Multipath TCP.
pub fn check_multipath(host: &str) -> Result<(), String> {
    match multipath_socket() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "multipath = true: the kernel of {host} gives no Multipath TCP ({error}); `sysctl -w net.mptcp.enabled=1` as root \
             switches it on if the kernel was built with it (CONFIG_MPTCP, Linux 5.6)"
        )),
    }
}

/// Checks that this kernel takes a segment size on a socket of Multipath TCP. A kernel without Multipath TCP
/// passes the check. Kernels had Multipath TCP for years before they took TCP_MAXSEG on its sockets. `host`
/// is the name of this host in the message.
///
/// # Errors
/// Returns a text with the kernel's error, and how to run without a segment size.
pub fn check_multipath_mss(host: &str) -> Result<(), String> {
    let Ok(socket) = multipath_socket() else { return Ok(()) };
    socket.set_tcp_mss(ANY_MSS).map_err(|error| mss_refusal(host, &error))
}

/// The message that the kernel of `host` takes no segment size on a socket of Multipath TCP.
fn mss_refusal(host: &str, error: &std::io::Error) -> String {
    format!(
        "the kernel of {host} takes no segment size (TCP_MAXSEG) on a socket of Multipath TCP ({error}): leave `multipath` out, \
         or run a newer kernel, or leave `mss` out"
    )
}

fn multipath_socket() -> std::io::Result<socket2::Socket> {
    let of = |domain| socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::MPTCP));
    of(socket2::Domain::IPV4).or_else(|_| of(socket2::Domain::IPV6))
}

/// Lists the keys of `flow` that the kernel's transports cannot be set to, and the keys of the host that
/// nothing here does. `profile` is the scenario's kernel. A key with the value of that kernel asks for
/// nothing and is not listed.
pub fn ignored_keys(flow: &Flow, profile: Option<&KernelProfile>) -> Vec<&'static str> {
    let mut ignored = match &flow.transport {
        TransportConfig::Udp(config) if config.stack != Stack::Linux => vec![OTHER_STACK],
        TransportConfig::Udp(config) => {
            let usual = profile.map_or(UdpConfig::LINUX.socket_buffer, |profile| profile.socket_buffer);
            // The socket of a slow receiver has the buffer. A buffer that the receiver sets replaces the
            // transport's.
            let is_set = flow.receiver.socket_buffer.is_some() || !flow.receiver.service.is_zero();
            if is_set || config.socket_buffer == usual { Vec::new() } else { vec!["socket_buffer"] }
        }
        TransportConfig::Quic(config) if !config.encryption => {
            vec!["encryption = false (packets are encrypted)"]
        }
        TransportConfig::Quic(_) => Vec::new(),
        TransportConfig::Encapsulated(config) => config.options().ignored(),
        TransportConfig::Tcp(config) => ignored_of_tcp(config, flow.receiver.socket_buffer, profile),
    };
    ignored.extend(
        flow.asked_for
            .iter()
            .copied()
            .filter(|&key| key != "cc" && !ignored.contains(&key))
            .collect::<Vec<_>>(),
    );
    if !flow.send_jitter.is_zero() {
        ignored.push("send_jitter");
    }
    if !flow.receiver.service.is_zero() {
        ignored.push("receiver.service");
    }
    ignored
}

/// Lists the keys of TCP that differ from what Linux does and have no socket option.
fn ignored_of_tcp(
    config: &TcpConfig,
    receive_buffer: Option<Bytes>,
    profile: Option<&KernelProfile>,
) -> Vec<&'static str> {
    let overfill = config.overfill.then_some("overfill");
    if config.stack != Stack::Linux {
        return overfill.into_iter().chain([OTHER_STACK]).collect();
    }
    let (rwnd, initial_rwnd, send_buffer_max) = match profile {
        Some(profile) => (profile.rwnd, profile.initial_rwnd, profile.send_buffer_max),
        None => (KERNEL.rwnd, KERNEL.initial_rwnd, KERNEL.send_buffer_max),
    };
    // The granularity cannot be set, but a scenario may name this kernel's granularity.
    let has_granularity = [Some(KERNEL.timer_granularity), jiffy()].contains(&Some(config.timer_granularity));
    // A buffer of the receiving socket limits the window in the place of `rwnd`.
    let has_buffer = receive_buffer.is_some();
    let ignored = [
        (config.nagle == NagleKind::Classic, "nagle = classic"),
        (
            config.cc == Some(CongestionControlKind::NewReno),
            "cc = newreno (Linux's reno, which recovers so, ran)",
        ),
        (config.delayed_ack != KERNEL.delayed_ack, "delayed_ack"),
        (config.initial_window != KERNEL.initial_window, "initial_window"),
        (config.initial_ssthresh.is_some(), "initial_ssthresh"),
        (config.min_rto != KERNEL.min_rto, "min_rto"),
        (!has_granularity, "timer_granularity"),
        (config.ticks != KERNEL.ticks, "ticks"),
        (!config.limited_transmit, "limited_transmit"),
        (!config.timestamps, "timestamps"),
        (!config.window_scaling, "window_scaling"),
        (config.ecn, "ecn"),
        (!config.cwnd_validation, "cwnd_validation"),
        (!has_buffer && config.rwnd != rwnd, "rwnd"),
        (!has_buffer && config.initial_rwnd != initial_rwnd, "initial_rwnd"),
        (config.send_buffer.is_none() && config.send_buffer_max != send_buffer_max, "send_buffer_max"),
    ];
    let ignored = ignored.into_iter().filter(|(is_ignored, _)| *is_ignored).map(|(_, key)| key);
    overfill.into_iter().chain(ignored).collect()
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn a_congestion_control_that_the_kernel_lacks_is_named_with_those_it_has() {
        let why = check_congestion_control("no-such-cc", "this host").unwrap_err();
        assert!(why.contains("no-such-cc") && why.contains("available: ") && why.contains("reno"), "{why}");
        assert!(check_congestion_control("reno", "this host").is_ok());
    }

    #[test]
    fn a_buffer_that_no_socket_is_given_is_named() {
        let of = |transport: &str, rest: &str| {
            let (top, flow) = if rest.starts_with("kernel") { (rest, "") } else { ("", rest) };
            let text = format!(
                "duration = \"1 s\"\npath = \"lan\"\n{top}\n[flow.a]\nworkload = \"voice\"\n\
                 transport = {transport}\n{flow}\n"
            );
            let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
            let scenario = &plan.cells[0].scenario;
            ignored_keys(&scenario.flows[0], scenario.kernel.as_ref())
        };
        let udp = "{ kind = \"udp\", socket_buffer = \"9 kB\" }";
        assert_eq!(of(udp, ""), ["socket_buffer"]);
        let slow = "receiver = { service = \"1 ms\" }";
        assert_eq!(of(udp, slow), ["receiver.service"]);
        let tcp = "{ kind = \"tcp\", cwnd_validation = false, rwnd = \"64 kB\", initial_rwnd = \"9 kB\", \
                   send_buffer_max = \"64 kB\" }";
        assert_eq!(of(tcp, ""), ["cwnd_validation", "rwnd", "initial_rwnd", "send_buffer_max"]);
        let own = "receiver = { socket_buffer = \"32 kB\" }";
        let fixed =
            "{ kind = \"tcp\", send_buffer = \"32 kB\", send_buffer_max = \"64 kB\", rwnd = \"64 kB\" }";
        assert_eq!(of(fixed, own), Vec::<&str>::new());
        for kernel in ["kernel = \"linux-6.18\"", "kernel = \"debian-12\""] {
            for transport in ["\"udp\"", "\"tcp\""] {
                assert_eq!(of(transport, kernel), Vec::<&str>::new(), "{transport}, {kernel}");
            }
        }
    }

    #[test]
    fn a_kernel_without_segment_sizes_on_multipath_sockets_is_named_with_the_keys() {
        let error = std::io::Error::from_raw_os_error(rustix::io::Errno::OPNOTSUPP.raw_os_error());
        let why = mss_refusal("the far host", &error);
        for part in ["the far host", "TCP_MAXSEG", "`multipath`", "`mss`", "not supported"] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
}
