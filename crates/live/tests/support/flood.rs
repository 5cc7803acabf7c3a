//! Connections from many addresses of this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Range;

use socket2::{Domain, Socket, Type};

/// Connects from `address` of this host.
pub fn connect_from(address: IpAddr, server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(address, 0).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

/// Address `number` of the attackers: all of 127/8 is this host.
pub fn attacker(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x7f01_0000 + number))
}

/// Connections of these `numbers`, from as many as `addresses`.
pub fn flood(server: SocketAddr, numbers: Range<u32>, addresses: u32) -> Vec<TcpStream> {
    numbers.map(|number| connect_from(attacker(number % addresses), server)).collect()
}
