//! What the kernel shows of a connection of Multipath TCP (RFC 8684; linux/mptcp.h).
//!
//! ```text
//!  socket of the application ── MPTCP_INFO: fell back or not, how many subflows
//!     ├── subflow: a TCP connection ── MPTCP_TCPINFO: its TCP_INFO
//!     └── subflow: a TCP connection
//! ```
//!
//! Left out: which addresses a subflow has, and what the path manager is set to.

use std::io;
use std::os::fd::BorrowedFd;

use crate::log::Multipath;
use crate::sys::{ReadableOption, TcpInfo, option};

/// The offset of `mptcpi_flags` in `mptcp_info`, bytes.
const FLAGS: usize = 8;
/// The offset of `mptcpi_subflows_total` in `mptcp_info`, bytes.
const SUBFLOWS_TOTAL: usize = 80;
/// The flag that says that the connection fell back to TCP (MPTCP_INFO_FLAG_FALLBACK).
const FELL_BACK: u32 = 1;
/// The length of what comes before the entries of MPTCP_TCPINFO, in words of 32 bits.
const HEADER: usize = 4;
/// The length of an entry as far as it is read here, in words of 32 bits. `struct tcp_info` of Linux 6.18 has
/// 70 words.
const ENTRY: usize = 64;
/// The largest number of subflows that a connection of Linux has (MPTCP_SUBFLOWS_MAX of
/// net/mptcp/protocol.h).
const MAX_SUBFLOWS: usize = 8;

/// Reads whether an open connection fell back from Multipath TCP to TCP, and how many subflows it has now.
///
/// # Errors
/// Returns the system's error.
pub(crate) fn multipath(socket: BorrowedFd<'_>) -> io::Result<Multipath> {
    // 96 bytes in Linux 6.18, with room for more.
    let mut words = [0; 64];
    let length = match option(socket, ReadableOption::MultipathInfo, &mut words) {
        Ok(length) => length,
        // After a fallback the options of the socket are those of its one TCP connection (mptcp_getsockopt of
        // net/mptcp/sockopt.c), which has no such option. Which number says so depends on the kernel.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT)) => {
            return Ok(Multipath { fell_back: true, subflows: 1 });
        }
        Err(error) => return Err(error),
    };
    Ok(parse(&words, length))
}

/// Reads the first `length` bytes of `mptcp_info`. A newer kernel has more fields at its end, and never
/// fewer.
fn parse(words: &[u32; 64], length: usize) -> Multipath {
    let byte = |at: usize| words[at / size_of::<u32>()].to_ne_bytes()[at % size_of::<u32>()];
    let fell_back = words[FLAGS / size_of::<u32>()] & FELL_BACK != 0;
    // Until Linux 6.5 only the subflows beside the first were counted.
    let subflows =
        if length > SUBFLOWS_TOTAL { u32::from(byte(SUBFLOWS_TOTAL)) } else { u32::from(byte(0)) + 1 };
    Multipath { fell_back, subflows: if fell_back { 1 } else { subflows } }
}

/// Reads TCP_INFO of each subflow that the connection has now, at most [`MAX_SUBFLOWS`] (since Linux 5.16).
///
/// # Errors
/// Returns the system's error. A connection of plain TCP gives one.
pub(crate) fn subflows(socket: BorrowedFd<'_>) -> io::Result<Vec<TcpInfo>> {
    // `mptcp_subflow_data`: its own size, the number of subflows, the kernel's size of an entry, and ours.
    // The kernel cuts ours down to its own, and entries follow each other by what is left.
    let mut words = [0; HEADER + MAX_SUBFLOWS * ENTRY];
    (words[0], words[3]) = ((HEADER * size_of::<u32>()) as u32, (ENTRY * size_of::<u32>()) as u32);
    option(socket, ReadableOption::SubflowInfos, &mut words)?;
    Ok(each_subflow(&words).map(|(words, length)| TcpInfo::read(&words, length)).collect())
}

/// Returns the entries of an answer, each in [`ENTRY`] words, and the number of bytes of each that the kernel
/// filled.
fn each_subflow(answer: &[u32]) -> impl Iterator<Item = ([u32; ENTRY], usize)> {
    let field = |at: usize| answer.get(at).map_or(0, |&field| field as usize);
    let (count, entry_bytes) = (field(1), field(2).min(field(3)));
    let apart = (field(3) / size_of::<u32>()).clamp(1, ENTRY);
    let entries = answer.get(HEADER..).unwrap_or_default().chunks_exact(apart).take(count);
    entries.map(move |words| {
        let mut entry = [0; ENTRY];
        entry[..words.len()].copy_from_slice(words);
        (entry, entry_bytes)
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;

    #[test]
    fn subflows_are_the_total_if_the_kernel_gives_one_and_else_one_more_than_it_added() {
        let mut words = [0; 64];
        words[0] = u32::from_ne_bytes([2, 0, 0, 0]);
        words[SUBFLOWS_TOTAL / 4] = u32::from_ne_bytes([4, 0, 0, 0]);
        assert_eq!(parse(&words, 96), Multipath { fell_back: false, subflows: 4 });
        assert_eq!(parse(&words, 80), Multipath { fell_back: false, subflows: 3 });
        words[FLAGS / 4] = FELL_BACK;
        assert_eq!(parse(&words, 96), Multipath { fell_back: true, subflows: 1 });
    }

    #[test]
    fn entries_follow_each_other_by_the_size_that_the_kernel_left() {
        // A kernel whose `tcp_info` has 248 bytes, and one with more than is read.
        for (kernel, ours) in [(248_u32, 248_u32), (280, 256)] {
            let apart = ours as usize / 4;
            let mut answer = vec![0; HEADER + MAX_SUBFLOWS * ENTRY];
            (answer[0], answer[1], answer[2], answer[3]) = (16, 2, kernel, ours);
            (answer[HEADER], answer[HEADER + apart]) = (7, 9);
            let first_words: Vec<_> =
                each_subflow(&answer).map(|(words, length)| (words[0], length)).collect();
            assert_eq!(first_words, [(7, ours as usize), (9, ours as usize)]);
        }
    }

    /// What both ends see, the client's first, of a connection over loopback.
    fn seen(listener: Protocol, client: Protocol) -> io::Result<[Multipath; 2]> {
        let socket = |protocol| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
        let listening = socket(listener)?;
        listening.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into())?;
        listening.listen(1)?;
        let listening = TcpListener::from(listening);
        let client = socket(client)?;
        client.connect(&listening.local_addr()?.into())?;
        let (served, _) = listening.accept()?;
        Ok([multipath(client.as_fd())?, multipath(served.as_fd())?])
    }

    #[test]
    fn a_connection_is_multipath_if_both_ends_speak_it_and_else_plain_tcp() {
        let fallen_back = Multipath { fell_back: true, subflows: 1 };
        match seen(Protocol::MPTCP, Protocol::MPTCP) {
            Err(why) => return eprintln!("SKIP: no Multipath TCP here: {why}"),
            Ok(ends) => assert_eq!(ends, [Multipath { fell_back: false, subflows: 1 }; 2]),
        }
        for (listener, client) in [(Protocol::TCP, Protocol::MPTCP), (Protocol::MPTCP, Protocol::TCP)] {
            assert_eq!(seen(listener, client).unwrap(), [fallen_back; 2], "{listener:?}, {client:?}");
        }
    }

    #[test]
    fn each_subflow_has_its_own_figures() {
        let listening = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP));
        let Ok(listening) = listening else { return eprintln!("SKIP: no Multipath TCP here") };
        listening.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
        listening.listen(1).unwrap();
        let client = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap();
        client.connect(&listening.local_addr().unwrap()).unwrap();
        let (served, _) = listening.accept().unwrap();
        assert_eq!(client.send(b"data").unwrap(), 4);
        let [own] = subflows(client.as_fd()).unwrap().try_into().unwrap();
        assert_eq!((own.data_segs_out, own.total_retrans), (1, 0));
        assert!(own.mss > 500, "{own:?}");
        drop(served);
    }
}
