//! The QUIC transport of a flow, as client and server describe it to each other.

use serde::{Deserialize, Serialize};
use talkpath_config::{Carry, QuicConfig, QuicCongestionControl, SMALLEST_QUIC_MTU, largest_quic_datagram};
use talkpath_quic::{FlowSetup, Setup};
use talkpath_units::{Bytes, Duration, Seed};

use super::bounds::{MAX_STREAM_MESSAGE, is_buffer};

/// The shortest timer of a connection, as in a scenario.
const SHORTEST_TIMER_NS: u64 = 10_000_000;
/// The size in bytes of the largest IP packet (RFC 791 §3.1).
const LARGEST_MTU: u64 = 65_535;

/// A flow over QUIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuicSpec {
    carry: Carry,
    is_newreno: bool,
    /// The time after which a message that still waits expires, ns.
    expire_ns: Option<u64>,
    priority: u8,
    /// The largest number of bytes in unread datagrams at the receiver, if the scenario sets it.
    receive_buffer: Option<u64>,
    /// The size in bytes of the largest IP packet that the search for the path's MTU tries.
    mtu: u64,
    /// True if messages leave in 0-RTT packets of the client's first flight.
    #[serde(default)]
    zero_rtt: bool,
    /// The time without a packet after which the connection is over, ns. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_timeout_ns: Option<u64>,
    /// The time without a packet after which the client sends a PING, ns. `None` if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_alive_ns: Option<u64>,
    /// The index of the first flow of this flow's connection. `None` if this flow is the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leader: Option<u32>,
}

impl QuicSpec {
    /// Makes the spec of a transport with `config` on a path with this MTU. `receive_buffer` is the buffer
    /// that the scenario sets for the receiver.
    pub fn new(config: &QuicConfig, receive_buffer: Option<Bytes>, mtu: Bytes) -> Self {
        // All fields are listed, so that a new field is not forgotten. `SessionSpec::share_connections` reads
        // `connection`. `encryption` is not read, because packets are always encrypted (`unsupported.rs`).
        let QuicConfig {
            carry,
            cc,
            expire,
            priority,
            zero_rtt,
            connection: _,
            idle_timeout,
            keep_alive,
            encryption: _,
        } = config;
        Self {
            carry: *carry,
            is_newreno: *cc == QuicCongestionControl::NewReno,
            expire_ns: expire.map(Duration::as_nanos),
            priority: *priority,
            receive_buffer: receive_buffer.map(Bytes::get),
            // A smaller MTU that this host's kernel has learned (RFC 1191) may be wrong, so it is not used.
            // QUIC needs a path that carries its smallest datagram, and tests this itself (RFC 9000 §14).
            mtu: mtu.max(SMALLEST_QUIC_MTU).get(),
            zero_rtt: *zero_rtt,
            idle_timeout_ns: idle_timeout.map(Duration::as_nanos),
            keep_alive_ns: keep_alive.map(Duration::as_nanos),
            leader: None,
        }
    }

    /// Returns the index of the first flow of this flow's connection. Returns `None` if this flow is the
    /// first one. An index that this machine cannot represent becomes one that no flow has, and the check of
    /// the session refuses it.
    pub(super) fn leader(&self) -> Option<usize> {
        self.leader.map(|leader| usize::try_from(leader).unwrap_or(usize::MAX))
    }

    /// Makes this flow share the connection of the flow with the index `leader`.
    pub(super) const fn set_leader(&mut self, leader: u32) {
        self.leader = Some(leader);
    }

    /// Returns true if this flow can share the connection of `leader`. The two flows must agree in each
    /// option that belongs to the connection.
    pub(super) fn fits_connection_of(&self, leader: &Self) -> bool {
        let of_connection = |spec: &Self| {
            (spec.is_newreno, spec.mtu, spec.zero_rtt, spec.idle_timeout_ns, spec.keep_alive_ns)
        };
        of_connection(self) == of_connection(leader)
    }

    /// Returns true if messages leave in 0-RTT packets of the client's first flight (RFC 9001 §4.6).
    pub const fn zero_rtt(&self) -> bool {
        self.zero_rtt
    }

    /// Returns the part of QUIC that carries a message.
    pub const fn carry(&self) -> Carry {
        self.carry
    }

    /// Returns the congestion control of both ends.
    pub const fn cc(&self) -> QuicCongestionControl {
        if self.is_newreno { QuicCongestionControl::NewReno } else { QuicCongestionControl::Cubic }
    }

    /// Returns the time after which a message that still waits expires.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.expire_ns.map(Duration::from_nanos)
    }

    /// Makes the setup of an end of this flow's connection. The connection carries `flows`.
    pub(crate) fn setup(&self, flows: Vec<FlowSetup>, seed: Seed) -> Setup {
        let config = QuicConfig {
            cc: self.cc(),
            zero_rtt: self.zero_rtt,
            idle_timeout: self.idle_timeout_ns.map(Duration::from_nanos),
            keep_alive: self.keep_alive_ns.map(Duration::from_nanos),
            ..QuicConfig::new(self.carry())
        };
        Setup { config, flows, path_mtu: Bytes::new(self.mtu), seed }
    }

    /// Makes the setup of this flow in a connection. Only the receiver's end has the receive buffer.
    pub(crate) fn flow_setup(&self, is_sender: bool) -> FlowSetup {
        let receive_buffer = self.receive_buffer.map(Bytes::new).filter(|_| !is_sender);
        FlowSetup { carry: self.carry(), priority: self.priority, receive_buffer }
    }

    /// Returns the size of the largest message in bytes.
    pub(crate) fn largest_message(&self) -> u64 {
        match self.carry {
            Carry::Datagram => largest_quic_datagram(Bytes::new(self.mtu)).get(),
            Carry::Stream | Carry::StreamPerMessage => MAX_STREAM_MESSAGE,
        }
    }

    /// Checks the values of a spec, which may come from a far end. The rules are those of a scenario's check.
    ///
    /// # Errors
    /// Returns a text that says what QUIC needs.
    pub(super) fn check(&self) -> Result<(), String> {
        let can_expire = self.expire_ns.is_none() || self.carry != Carry::Stream;
        let smallest_mtu = SMALLEST_QUIC_MTU.get();
        if !(smallest_mtu..=LARGEST_MTU).contains(&self.mtu) {
            return Err(format!("QUIC needs an MTU of {smallest_mtu} to {LARGEST_MTU} B"));
        }
        if !self.receive_buffer.is_none_or(is_buffer) {
            return Err("QUIC needs a socket_buffer of at least 1 B and at most 1 GiB".to_owned());
        }
        // A PING each few nanoseconds would be a flood of packets.
        if [self.idle_timeout_ns, self.keep_alive_ns].into_iter().flatten().any(|ns| ns < SHORTEST_TIMER_NS) {
            return Err("QUIC needs an idle_timeout and a keep_alive of at least 10 ms".to_owned());
        }
        if !can_expire {
            return Err("QUIC needs no `expire` on one stream for all messages".to_owned());
        }
        Ok(())
    }
}

/// Returns the limit of QUIC's flow control in bytes. The limit holds for the bytes on streams that a far end
/// has sent and this host's application has not read yet.
///
/// The simulator has no such limit, but a peer over a network must not take all memory. For messages on a
/// clock we chose 1 MiB, which is two minutes of a call. For a transfer we chose 8 MiB. That is more than the
/// 1.25 MB that quinn allows each stream.
pub(crate) const fn receive_window(is_clocked: bool) -> u32 {
    if is_clocked { 1 << 20 } else { 8 << 20 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_the_other_end_is_configured_with() {
        for carry in Carry::ALL {
            let config = QuicConfig {
                cc: QuicCongestionControl::NewReno,
                expire: Some(Duration::from_millis(150)),
                priority: 3,
                zero_rtt: true,
                idle_timeout: Some(Duration::from_secs(30)),
                keep_alive: Some(Duration::from_secs(10)),
                ..QuicConfig::new(carry)
            };
            let spec = QuicSpec::new(&config, Some(Bytes::new(4000)), Bytes::new(1400));
            let told: QuicSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
            let setup = told.setup(vec![told.flow_setup(false)], Seed::new(1));
            assert_eq!((told.carry(), told.cc()), (carry, QuicCongestionControl::NewReno));
            assert_eq!(told.lifetime(), config.expire);
            assert_eq!((setup.flows[0].priority, setup.flows[0].receive_buffer), (3, Some(Bytes::new(4000))));
            assert_eq!((setup.path_mtu, setup.config.zero_rtt), (Bytes::new(1400), true));
            let timers = |config: &QuicConfig| (config.idle_timeout, config.keep_alive);
            assert_eq!(timers(&setup.config), timers(&config));
            assert_eq!(told.flow_setup(true).receive_buffer, None);
            assert_eq!(told.check().is_ok(), carry != Carry::Stream);
        }
    }

    #[test]
    fn values_that_no_scenario_can_have_are_refused() {
        let config = QuicConfig::new(Carry::Stream);
        let good = QuicSpec::new(&config, None, Bytes::new(1500));
        assert_eq!((good.check(), good.largest_message()), (Ok(()), 1 << 20));
        let spoilt: [fn(&mut QuicSpec); 7] = [
            |spec| spec.idle_timeout_ns = Some(1),
            |spec| spec.keep_alive_ns = Some(0),
            |spec| spec.mtu = 1227,
            |spec| spec.mtu = u64::MAX,
            |spec| spec.receive_buffer = Some(0),
            |spec| spec.receive_buffer = Some(u64::MAX),
            |spec| spec.expire_ns = Some(1),
        ];
        for spoil in spoilt {
            let mut spec = good.clone();
            spoil(&mut spec);
            assert!(spec.check().is_err(), "{spec:?}");
        }
    }
}
