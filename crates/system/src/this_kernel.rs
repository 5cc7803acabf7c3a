//! The values of the kernel that runs this process, for `kernel = "this"`.
//!
//! | value | how it is read |
//! | --- | --- |
//! | `release` | /proc/sys/kernel/osrelease |
//! | `timer_granularity` | the resolution of CLOCK_REALTIME_COARSE (clock_getres(2)), which is a jiffy |
//! | `header_room` | measured: SO_SNDBUF of new loopback connections (see `header_room` below) |
//! | `small_head` | measured: the memory of a datagram of 1 B that waits in a socket (SO_MEMINFO) |
//! | `socket_buffer` | half of a new UDP socket's SO_RCVBUF |
//! | `initial_rwnd` | half of a new TCP socket's SO_RCVBUF |
//! | `rwnd`, `send_buffer_max` | /proc/sys/net/ipv4/tcp_rmem and tcp_wmem |
//!
//! CONFIG_HZ and the options that MAX_TCP_HEADER follows from are also in the file of the kernel's
//! configuration, but many machines do not have that file.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration as Timeout;

use rustix::time::{ClockId, clock_getres};
use socket2::{Domain, SockRef, Socket, Type};
use talkpath_model::{KernelProfile, MIN_BULK_ROOM, Scenario};
use talkpath_units::{Bytes, Duration};

use crate::sys::{ReadableOption, option};

/// The size of `struct sk_buff` in whole cache lines, bytes (x86-64).
const SK_BUFF: u64 = 256;
/// The size of `struct skb_shared_info` in whole cache lines, bytes (x86-64).
const SHARED_INFO: u64 = 320;
/// The length of a cache line, bytes (L1_CACHE_BYTES).
const CACHE_LINE: u64 = 64;
/// The largest MAX_TCP_HEADER that is found, cache lines. We chose 1536 B, four times as much as any
/// configuration has.
const MAX_LINES: u64 = 24;
/// The sizes of a segment's memory to try, bytes. The loopback device takes segments up to 64 KiB.
const POWERS: [u64; 4] = [2048, 4096, 8192, 16_384];
/// The longest wait for the loopback device. We chose 1 s, because the device answers within microseconds.
const PATIENCE: Timeout = Timeout::from_secs(1);
/// The smallest window that the scenario's keys take, bytes (crates/scenario/src/transports/tcp.rs).
const MIN_WINDOW: u64 = 48;
/// The largest window that the scenario's keys take, bytes.
const MAX_WINDOW: u64 = 1 << 30;
/// The largest number of bytes of a release's name.
const MAX_RELEASE: usize = 64;

/// Reads the profile of the kernel that runs this process.
///
/// # Errors
/// Returns a phrase that names the value that cannot be read or measured.
pub fn this_kernel() -> Result<KernelProfile, String> {
    let [_, _, rmem_max] = sysctl("tcp_rmem")?;
    let [_, _, wmem_max] = sysctl("tcp_wmem")?;
    let because = |what: &'static str| move |why: io::Error| format!("{what}: {why}");
    let mut release = read("/proc/sys/kernel/osrelease")?;
    release.truncate(MAX_RELEASE);
    Ok(KernelProfile {
        release,
        timer_granularity: jiffy().ok_or("the clock does not report its tick")?,
        header_room: header_room().map_err(because("a TCP connection over the loopback device"))?,
        small_head: small_head().map_err(because("a UDP socket on the loopback device"))?,
        socket_buffer: half_buffer(Type::DGRAM).map_err(because("a UDP socket"))?,
        rwnd: Bytes::new((rmem_max / 2).clamp(MIN_WINDOW, MAX_WINDOW)),
        initial_rwnd: half_buffer(Type::STREAM).map_err(because("a TCP socket"))?,
        send_buffer_max: Bytes::new(wmem_max.clamp(MIN_BULK_ROOM.get(), MAX_WINDOW)),
    })
}

/// The warning about a kernel profile of `scenario` that differs from this kernel. `None` if they agree, or
/// if the scenario names no profile.
pub fn profile_warning(scenario: &Scenario) -> Option<String> {
    let profile = scenario.kernel.as_ref()?;
    match this_kernel() {
        Ok(own) => {
            let differences = own.differences(profile);
            (!differences.is_empty()).then(|| {
                format!(
                    "kernel: the scenario's is not this machine's (Linux {}), whose own holds: {}; `kernel = \"this\"` takes its values",
                    own.release,
                    differences.join(", ")
                )
            })
        }
        Err(why) => Some(format!("kernel: nothing says whether the scenario's is this machine's: {why}")),
    }
}

/// The length of a jiffy, if the kernel reports it.
pub fn jiffy() -> Option<Duration> {
    let tick = clock_getres(ClockId::RealtimeCoarse);
    let nanoseconds = u64::try_from(tick.tv_sec * 1_000_000_000 + tick.tv_nsec).ok()?;
    (nanoseconds > 0).then_some(Duration::from_nanos(nanoseconds))
}

/// Measures MAX_TCP_HEADER. When a connection is established, its send buffer has room for about ten
/// segments. The kernel counts each segment as the next power of two above MSS + MAX_TCP_HEADER +
/// sizeof(skb_shared_info) (tcp_sndbuf_expand). The largest MSS before the buffer doubles shows
/// MAX_TCP_HEADER, which is a whole number of cache lines.
fn header_room() -> io::Result<Bytes> {
    for power in POWERS {
        let with_room = |lines: u64| send_buffer(power - SHARED_INFO - lines * CACHE_LINE);
        // Without room for a header the segment takes twice `power`.
        let doubled = with_room(0)?;
        // The buffer shows nothing if tcp_wmem[1] makes both sizes larger or tcp_wmem[2] keeps both smaller.
        if with_room(MAX_LINES)? < doubled {
            let (mut too_few, mut enough) = (0, MAX_LINES);
            while enough - too_few > 1 {
                let middle = too_few.midpoint(enough);
                if with_room(middle)? < doubled {
                    enough = middle;
                } else {
                    too_few = middle;
                }
            }
            return Ok(Bytes::new(enough * CACHE_LINE));
        }
    }
    Err(io::Error::other("its send buffer does not show how much is kept free for headers"))
}

/// Reads SO_SNDBUF of a new connection whose segments carry at most `mss` bytes.
fn send_buffer(mss: u64) -> io::Result<usize> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_mss(u32::try_from(mss).unwrap_or(u32::MAX))?;
    socket.connect_timeout(&listener.local_addr()?.into(), PATIENCE)?;
    socket.send_buffer_size()
}

/// Measures the memory of a small packet's head: the memory that a datagram of 1 B is charged, without its
/// sk_buff. If it is a power of two, the kernel has no own object for small heads
/// (SKB_SMALL_HEAD_CACHE_SIZE), and the answer is `None`.
fn small_head() -> io::Result<Option<Bytes>> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    sender.connect(receiver.local_addr()?)?;
    receiver.connect(sender.local_addr()?)?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    sender.send(&[0])?;
    receiver.peek(&mut [0])?;
    // SK_MEMINFO_RMEM_ALLOC is the first figure.
    let mut figures = [0; 32];
    option(receiver.as_fd(), ReadableOption::MemoryInfo, &mut figures)?;
    let head = u64::from(figures[0]).checked_sub(SK_BUFF).filter(|head| *head > SHARED_INFO);
    let head = head.ok_or_else(|| io::Error::other("SO_MEMINFO does not show a datagram's memory"))?;
    Ok((!head.is_power_of_two()).then(|| Bytes::new(head)))
}

/// Reads half of the receive buffer of a new socket.
fn half_buffer(kind: Type) -> io::Result<Bytes> {
    let socket = Socket::new(Domain::IPV4, kind, None)?;
    let size = SockRef::from(&socket).recv_buffer_size()? as u64;
    Ok(Bytes::new((size / 2).clamp(MIN_WINDOW, MAX_WINDOW)))
}

/// Reads the least, default and largest size of TCP's buffers.
fn sysctl(name: &str) -> Result<[u64; 3], String> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    let text = read(&path)?;
    let numbers: Vec<u64> = text.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("{path}: found {text:?}, expected three numbers"))
}

fn read(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a value of the kernel's own configuration, if the machine has the file.
    fn configured(option: &str) -> Option<String> {
        let release = read("/proc/sys/kernel/osrelease").ok()?;
        let text = fs::read_to_string(format!("/boot/config-{release}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(option)?.strip_prefix('='))?;
        Some(line.to_owned())
    }

    #[test]
    fn this_kernel_is_read_and_its_values_are_plausible() {
        let own = this_kernel().unwrap();
        assert!(!own.release.is_empty());
        let hz = 1_000_000_000 / own.timer_granularity.as_nanos();
        assert!((24..=1200).contains(&hz), "HZ = {hz}");
        if let Some(configured) = configured("CONFIG_HZ") {
            assert_eq!(hz.to_string(), configured);
        }
        // LL_MAX_HEADER is at least 32 B, MAX_HEADER at most 48 B more than 128 B (linux/netdevice.h).
        assert!([192, 256, 320].contains(&own.header_room.get()), "{own:?}");
        if let Some(small) = own.small_head {
            assert!(small.get() >= own.header_room.get() + SHARED_INFO, "{own:?}");
        }
        assert!(own.rwnd >= own.initial_rwnd && own.socket_buffer.get() > 0);
        assert_eq!(own.differences(&own), [""; 0]);
    }
}
