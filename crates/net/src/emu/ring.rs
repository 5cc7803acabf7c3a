//! The emulator's end of a host's cable: a packet socket whose arrivals the kernel leaves in shared memory (packet(7),
//! PACKET_RX_RING, TPACKET_V2).
//!
//! ```text
//!  block 0                        block 1
//!  ┌ frame 0 ┬ frame 1 ┬ ... ┬──┐ ┌ frame n ┬ ...
//!  frame:  tpacket2_hdr (whose it is, stamp, where) │ virtio_net_hdr │ Ethernet │ packet
//! ```
//!
//! A packet costs no system call: the sending host's own call copies it into the next frame, stamps it and gives the frame to us
//! (`TP_STATUS_USER`); we give it back. What finds no frame free is dropped and counted (PACKET_STATISTICS).
#![expect(unsafe_code, reason = "memory that is shared with the kernel; each block says why it is sound")]

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use super::link::socket;
use super::sys::{check, set_option};

/// How a ring's memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    frame: usize,
    block: usize,
    blocks: usize,
}

/// A ring as we read it.
pub(super) struct Ring {
    base: NonNull<u8>,
    layout: Layout,
    /// The frame that is read next.
    next: usize,
}

/// What lies in the next frame.
pub(super) struct Waiting<'a> {
    /// When the kernel took it from its host, ns of CLOCK_REALTIME.
    pub(super) stamp_ns: i64,
    /// The `virtio_net_hdr`.
    pub(super) header: &'a [u8],
    /// The IP packet.
    pub(super) packet: &'a [u8],
    /// Whether all of it found room in the frame.
    pub(super) is_whole: bool,
}

/// `struct tpacket2_hdr` of linux/if_packet.h.
#[repr(C)]
struct FrameHeader {
    status: AtomicU32,
    length: u32,
    captured: u32,
    mac: u16,
    net: u16,
    seconds: u32,
    nanoseconds: u32,
}

/// `struct tpacket_req` of the same.
#[repr(C)]
struct RingRequest {
    block_size: u32,
    block_count: u32,
    frame_size: u32,
    frame_count: u32,
}

impl Layout {
    /// For packets of up to `mtu` bytes.
    pub(super) const fn of(mtu: u16) -> Self {
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

    /// Where frame `number` begins; none crosses a block's end.
    const fn place(self, number: usize) -> usize {
        let in_block = self.block / self.frame;
        number / in_block * self.block + number % in_block * self.frame
    }
}

/// A packet socket of the namespace that the caller is in; it hears nothing yet. After fork.
///
/// # Errors
/// The system's.
pub(super) fn tap() -> io::Result<OwnedFd> {
    socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
}

/// Gives the packet socket `tap` its ring, and has it hear the IPv4 packets that the device `index` receives. After fork.
///
/// # Errors
/// The system's.
pub(super) fn listen(tap: &OwnedFd, index: i32, layout: Layout) -> io::Result<()> {
    for (option, value) in [
        (PACKET_VERSION, TPACKET_V2),
        // What a host leaves to its device (checksums) is told before each packet, and may be told of what we send.
        (PACKET_VNET_HDR, 1),
        // What we send goes to the device at once. It is none of what we hear: a socket that is bound to one protocol hears
        // what its device receives alone (packet(7)).
        (PACKET_QDISC_BYPASS, 1),
    ] {
        set_option(tap.as_raw_fd(), libc::SOL_PACKET, option, value)?;
    }
    let request = RingRequest {
        block_size: layout.block as u32,
        block_count: layout.blocks as u32,
        frame_size: layout.frame as u32,
        frame_count: layout.frames() as u32,
    };
    let size = size_of::<RingRequest>() as libc::socklen_t;
    // SAFETY: the option value is a live `tpacket_req` of the length given.
    check(unsafe {
        libc::setsockopt(tap.as_raw_fd(), libc::SOL_PACKET, PACKET_RX_RING, (&raw const request).cast(), size)
    })?;
    // SAFETY: `sockaddr_ll` is plain old data, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    address.sll_ifindex = index;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is a live `sockaddr_ll` of the length given.
    check(unsafe { libc::bind(tap.as_raw_fd(), (&raw const address).cast(), size) })
}

/// How many packets found no frame free since this was last asked (packet(7): the kernel forgets what it told).
///
/// # Errors
/// The system's.
pub(super) fn take_drops(tap: &OwnedFd) -> io::Result<u64> {
    // tpacket_stats: packets, drops.
    let mut counts = [0_u32; 2];
    let mut size = size_of::<[u32; 2]>() as libc::socklen_t;
    // SAFETY: the pointers are to a live buffer of the length given and to that length, exclusively borrowed.
    check(unsafe {
        libc::getsockopt(
            tap.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            counts.as_mut_ptr().cast(),
            &raw mut size,
        )
    })?;
    Ok(u64::from(counts[1]))
}

impl Ring {
    /// The ring of `tap`, which was given this layout.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn map(tap: &OwnedFd, layout: Layout) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping where the kernel likes; nothing of ours is replaced.
        let base = unsafe {
            libc::mmap(null_mut(), layout.size(), protection, libc::MAP_SHARED, tap.as_raw_fd(), 0)
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(start) if base != libc::MAP_FAILED => Ok(Self { base: start, layout, next: 0 }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What waits longest, if anything does.
    pub(super) fn peek(&self) -> Option<Waiting<'_>> {
        let frame = self.frame();
        // SAFETY: a frame begins with this header, is aligned to 16 bytes, and is inside the mapping; the kernel changes the
        // status alone while it is ours, and that is atomic.
        let status = unsafe { frame.cast::<AtomicU32>().as_ref() };
        if status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: as above; the frame is ours, so that the kernel writes none of it until `release`, which wants `&mut self`.
        let header = unsafe { frame.cast::<FrameHeader>().as_ref() };
        // SAFETY: the frame's bytes are inside the mapping and live as long as `self`; nobody writes them, as above.
        let bytes = unsafe { std::slice::from_raw_parts(frame.as_ptr(), self.layout.frame) };
        let (mac, net) = (usize::from(header.mac), usize::from(header.net));
        let end = mac.saturating_add(header.captured as usize).min(bytes.len());
        Some(Waiting {
            stamp_ns: i64::from(header.seconds) * 1_000_000_000 + i64::from(header.nanoseconds),
            header: mac.checked_sub(VIRTIO_HEADER).and_then(|at| bytes.get(at..mac)).unwrap_or(&[]),
            packet: bytes.get(net..end).unwrap_or(&[]),
            is_whole: header.captured == header.length,
        })
    }

    /// Gives the frame that was looked at back to the kernel.
    pub(super) fn release(&mut self) {
        // SAFETY: as in `peek`; nothing that was borrowed from the frame is left, since this borrows exclusively.
        let status = unsafe { self.frame().cast::<AtomicU32>().as_ref() };
        status.store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.layout.frames();
    }

    fn frame(&self) -> NonNull<u8> {
        // SAFETY: `next` is below the number of frames, each of which lies inside the mapping.
        unsafe { self.base.add(self.layout.place(self.next)) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this size, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.size()) };
    }
}

// SAFETY: the mapping belongs to this value alone, and memory that is shared with the kernel is no thread's in particular.
unsafe impl Send for Ring {}

const _: () = assert!(offset_of!(FrameHeader, nanoseconds) == 20 && Layout::of(u16::MAX).frames() > 0);

/// `struct virtio_net_hdr` of linux/virtio_net.h.
pub(super) const VIRTIO_HEADER: usize = 10;
/// Before the packet in a frame: TPACKET2_HDRLEN (52) and 16 bytes for the link's header, aligned to 80, then a
/// `virtio_net_hdr`.
const FRAME_OVERHEAD: usize = 80 + VIRTIO_HEADER;
const TPACKET_ALIGNMENT: usize = 16;
/// Contiguous memory is asked of the kernel in pieces of this size (chosen: 40 full packets of 1500 bytes).
const BLOCK: usize = 1 << 16;
/// The memory of a ring (chosen: 10,240 full packets, whose wire takes 12 ms at 10 Gbps).
const RING: usize = 16 << 20;
/// linux/if_packet.h.
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;

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
