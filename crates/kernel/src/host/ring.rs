//! The emulator's end of a host's cable: a packet socket whose arrivals the kernel leaves in shared memory
//! (packet(7), PACKET_RX_RING, TPACKET_V2).
//!
//! ```text
//!  block 0                        block 1
//!  ┌ frame 0 ┬ frame 1 ┬ ... ┬──┐ ┌ frame n ┬ ...
//!  frame:  tpacket2_hdr (whose it is, stamp, where) │ virtio_net_hdr │ Ethernet │ packet
//! ```
//!
//! A packet costs no system call. The sending host's own system call copies the packet into the next frame,
//! stamps it and gives the frame to this process (`TP_STATUS_USER`). This process gives the frame back. A
//! packet that finds no free frame is dropped and counted (PACKET_STATISTICS).
#![expect(unsafe_code, reason = "memory that is shared with the kernel; each block says why it is sound")]

use std::ffi::c_int;
use std::io;
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::sys::{ReadableOption, option, set_option};

/// `struct virtio_net_hdr` of linux/virtio_net.h.
pub const VIRTIO_HEADER: usize = 10;
/// The bytes before the packet in a frame: TPACKET2_HDRLEN (52) and 16 bytes for the link's header, aligned
/// to 80, and then a `virtio_net_hdr`.
const FRAME_OVERHEAD: usize = 80 + VIRTIO_HEADER;
const TPACKET_ALIGNMENT: usize = 16;
/// The size of a block, bytes. The memory of a block is contiguous. We chose 64 KiB, which hold 40 full
/// packets of 1500 bytes.
const BLOCK: usize = 1 << 16;
/// The memory of a ring, bytes. We chose 16 MiB, which hold 10,240 full packets. At 10 Gbps they arrive
/// within 12 ms.
const RING: usize = 16 << 20;
/// linux/if_packet.h.
const PACKET_RX_RING: c_int = 5;
const PACKET_VERSION: c_int = 10;
const PACKET_VNET_HDR: c_int = 15;
const PACKET_QDISC_BYPASS: c_int = 20;
const TPACKET_V2: c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;

/// The division of a ring's memory into frames and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    frame: usize,
    block: usize,
    blocks: usize,
}

/// A ring that this process reads.
pub struct Ring {
    base: NonNull<u8>,
    layout: Layout,
    /// The frame that is read next.
    next: usize,
}

/// The packet in the next frame.
pub struct WaitingFrame<'a> {
    /// When the kernel took the packet from its host, ns of CLOCK_REALTIME.
    pub stamp_ns: i64,
    /// The `virtio_net_hdr`.
    pub header: &'a [u8],
    /// The IP packet.
    pub packet: &'a [u8],
    /// True if the frame had room for the whole packet.
    pub is_whole: bool,
}

/// `struct tpacket2_hdr` of linux/if_packet.h. The kernel writes it while the frame is its own, so that each
/// field is atomic: a reference to the header is then sound at all times.
#[repr(C)]
struct FrameHeader {
    status: AtomicU32,
    length: AtomicU32,
    captured: AtomicU32,
    mac: AtomicU16,
    net: AtomicU16,
    seconds: AtomicU32,
    nanoseconds: AtomicU32,
}

impl Layout {
    /// The layout for packets of at most `mtu` bytes.
    pub const fn of(mtu: u16) -> Self {
        let frame = (FRAME_OVERHEAD + mtu as usize).next_multiple_of(TPACKET_ALIGNMENT);
        let block = if frame > BLOCK { frame.next_power_of_two() } else { BLOCK };
        Self { frame, block, blocks: RING / block }
    }

    const fn frames(self) -> usize {
        self.block / self.frame * self.blocks
    }

    const fn size(self) -> usize {
        self.block * self.blocks
    }

    /// The place of frame `number` in the memory. No frame crosses the end of a block.
    const fn place(self, number: usize) -> usize {
        let in_block = self.block / self.frame;
        number / in_block * self.block + number % in_block * self.frame
    }
}

/// Makes a packet socket in the caller's namespace. It receives nothing yet. Fork-safe (`fork.rs`).
///
/// # Errors
/// Returns the system's error.
pub fn tap() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

/// Gives the packet socket `tap` its ring, and makes it receive the packets of this ethertype that the device
/// `index` receives. Fork-safe.
///
/// # Errors
/// Returns the system's error.
pub fn listen(tap: &OwnedFd, index: u32, ethertype: u16, layout: Layout) -> io::Result<()> {
    for (option, value) in [
        (PACKET_VERSION, TPACKET_V2),
        // Each received packet begins with a header that says what its host left to the device (checksums).
        // Each sent packet begins with such a header too.
        (PACKET_VNET_HDR, 1),
        // A sent packet goes to the device at once. This socket does not receive it, because a socket that is
        // bound to one protocol receives only what its device receives (packet(7)).
        (PACKET_QDISC_BYPASS, 1),
    ] {
        set_option(tap.as_fd(), libc::SOL_PACKET, option, [value])?;
    }
    widen_send_buffer(tap);
    // tpacket_req of linux/if_packet.h: size and number of blocks, size and number of frames.
    let request = [layout.block, layout.blocks, layout.frame, layout.frames()].map(|size| size as c_int);
    set_option(tap.as_fd(), libc::SOL_PACKET, PACKET_RX_RING, request)?;
    // On libc because rustix and socket2 have no such address. SAFETY: `sockaddr_ll` is plain old data, for
    // which all zeroes is a valid value. The call reads a live one of the length given.
    let result = unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ethertype.to_be();
        address.sll_ifindex = index as c_int;
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        libc::bind(tap.as_raw_fd(), (&raw const address).cast(), size)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives the packet socket a send buffer as large as a ring, or the largest that this process may have.
///
/// A packet that we send counts in this buffer until the host's softirq takes it (Linux:
/// `__dev_forward_skb` keeps the socket). With receive packet steering that softirq runs on another
/// processor, and a hypervisor may stop that one for a millisecond or two. The kernel's default of 212,992 B
/// holds 92 full packets, 1.1 ms at 1 Gbps. A write that finds no room fails with EAGAIN. With more room the
/// packets come late, and fewer or none are lost.
fn widen_send_buffer(tap: &OwnedFd) {
    // The kernel doubles what it is given (socket(7)).
    let size = (RING / 2) as c_int;
    let set = |option| set_option(tap.as_fd(), libc::SOL_SOCKET, option, [size]);
    if set(libc::SO_SNDBUFFORCE).is_err() {
        // Without privilege the kernel cuts the value down to net.core.wmem_max. Less room is no error.
        let _ = set(libc::SO_SNDBUF);
    }
}

/// Takes the number of packets that found no free frame since the last call. The kernel then counts from zero
/// again (packet(7)).
///
/// # Errors
/// Returns the system's error.
pub fn take_drops(tap: &OwnedFd) -> io::Result<u64> {
    // tpacket_stats: packets, drops.
    let mut counts = [0; 2];
    option(tap.as_fd(), ReadableOption::PacketStatistics, &mut counts)?;
    Ok(u64::from(counts[1]))
}

impl Ring {
    /// Maps the ring of `tap`, which was made with this layout.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn map(tap: &OwnedFd, layout: Layout) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; nothing of ours is replaced.
        let base = unsafe { mmap(null_mut(), layout.size(), protection, MapFlags::SHARED, tap, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, layout, next: 0 })
    }

    /// The packet that waits longest. `None` if no packet waits.
    pub fn peek(&self) -> Option<WaitingFrame<'_>> {
        let (start, header) = self.frame();
        if header.status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the frame is inside the mapping, which lives as long as `self`. It is ours: the
        // kernel does not write to the frame until `release`, which needs `&mut self`.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), self.layout.frame) };
        let number = |field: &AtomicU32| field.load(Ordering::Relaxed);
        let place = |field: &AtomicU16| usize::from(field.load(Ordering::Relaxed));
        let (mac, net) = (place(&header.mac), place(&header.net));
        let captured = number(&header.captured);
        let end = mac.saturating_add(captured as usize).min(bytes.len());
        Some(WaitingFrame {
            stamp_ns: i64::from(number(&header.seconds)) * 1_000_000_000
                + i64::from(number(&header.nanoseconds)),
            header: mac.checked_sub(VIRTIO_HEADER).and_then(|at| bytes.get(at..mac)).unwrap_or(&[]),
            packet: bytes.get(net..end).unwrap_or(&[]),
            is_whole: captured == number(&header.length),
        })
    }

    /// Gives the frame that `peek` returned back to the kernel. No borrow of the frame is left, because this
    /// call borrows the ring exclusively.
    pub fn release(&mut self) {
        let (_, header) = self.frame();
        header.status.store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.layout.frames();
    }

    /// Returns the address of the next frame, and the frame's header.
    fn frame(&self) -> (NonNull<u8>, &FrameHeader) {
        // SAFETY: `next` is below the number of frames, each of which lies inside the mapping, is aligned to
        // 16 bytes and begins with this header. The kernel may write it at any time, but its fields are
        // atomic.
        unsafe {
            let start = self.base.add(self.layout.place(self.next));
            (start, start.cast::<FrameHeader>().as_ref())
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this size, and nothing borrowed from it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.layout.size()) };
    }
}

// SAFETY: the mapping belongs to this value alone, and memory that is shared with the kernel is no thread's
// in particular.
unsafe impl Send for Ring {}

const _: () = assert!(offset_of!(FrameHeader, nanoseconds) == 20 && Layout::of(u16::MAX).frames() > 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_hold_a_whole_packet_and_cross_no_block() {
        for mtu in [68, 576, 1500, 9000, u16::MAX] {
            let layout = Layout::of(mtu);
            assert!(layout.frame >= FRAME_OVERHEAD + usize::from(mtu) && layout.frame.is_multiple_of(16));
            assert!(layout.block.is_multiple_of(4096) && layout.size() <= RING, "{layout:?}");
            let frames = layout.frames();
            assert!(frames >= 100, "{layout:?}");
            for number in 0..frames {
                let (from, to) = (layout.place(number), layout.place(number) + layout.frame);
                assert_eq!(from / layout.block, (to - 1) / layout.block, "frame {number} of {layout:?}");
                assert!(number == 0 || from >= layout.place(number - 1) + layout.frame);
            }
        }
        assert_eq!(Layout::of(1500).frames(), 10_240);
    }
}
