//! QUIC as client and server describe it to each other.

use serde::{Deserialize, Serialize};
use talkpath_config::{Carry, QuicConfig, QuicCongestionControl, SMALLEST_QUIC_MTU, largest_quic_datagram};
use talkpath_quic::{FlowSetup, Setup};
use talkpath_units::{Bytes, Duration, Seed};

use super::bounds::{MAX_STREAM_MESSAGE, is_buffer};

/// A flow's QUIC connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuicSpec {
    carry: CarrySpec,
    is_newreno: bool,
    /// A message that has waited so long is not put into a packet any more, ns.
    expire_ns: Option<u64>,
    priority: u8,
    /// Bytes of datagrams that the receiver's application has not read, if the scenario says so.
    receive_buffer: Option<u64>,
    /// Bytes of the largest IP packet.
    mtu: u64,
}

/// What carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CarrySpec {
    Datagram,
    Stream,
    StreamPerMessage,
}

impl QuicSpec {
    /// What `config` says, on a path of this MTU; `receive_buffer` is the receiver's own.
    ///
    /// # Errors
    /// What of it only the simulator has.
    pub fn new(config: &QuicConfig, receive_buffer: Option<Bytes>, mtu: Bytes) -> Result<Self, String> {
        // All fields by name, so that a new one is not forgotten. A name that no other flow has is a
        // connection of its own: `SessionSpec::new`. Packets are always encrypted: `unsupported.rs`.
        let QuicConfig { carry, cc, expire, priority, zero_rtt, connection: _, encryption: _ } = config;
        if *zero_rtt {
            return Err("found `zero_rtt = true`, expected false over real sockets; \
                        the simulator has it (--arena sim)"
                .to_owned());
        }
        Ok(Self {
            carry: match carry {
                Carry::Datagram => CarrySpec::Datagram,
                Carry::Stream => CarrySpec::Stream,
                Carry::StreamPerMessage => CarrySpec::StreamPerMessage,
            },
            is_newreno: *cc == QuicCongestionControl::NewReno,
            expire_ns: expire.map(Duration::as_nanos),
            priority: *priority,
            receive_buffer: receive_buffer.map(Bytes::get),
            mtu: mtu.get(),
        })
    }

    /// What carries a message.
    pub const fn carry(&self) -> Carry {
        match self.carry {
            CarrySpec::Datagram => Carry::Datagram,
            CarrySpec::Stream => Carry::Stream,
            CarrySpec::StreamPerMessage => Carry::StreamPerMessage,
        }
    }

    /// The congestion control of both ends.
    pub const fn cc(&self) -> QuicCongestionControl {
        if self.is_newreno { QuicCongestionControl::NewReno } else { QuicCongestionControl::Cubic }
    }

    /// How long a message is of use.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.expire_ns.map(Duration::from_nanos)
    }

    /// What the machine of an end is made of; the sender's has no buffer of the receiver's.
    pub(crate) fn setup(&self, is_sender: bool, seed: Seed) -> Setup {
        let carry = self.carry();
        let receive_buffer = self.receive_buffer.map(Bytes::new).filter(|_| !is_sender);
        Setup {
            config: QuicConfig { cc: self.cc(), ..QuicConfig::new(carry) },
            flows: vec![FlowSetup { carry, priority: self.priority, receive_buffer }],
            path_mtu: Bytes::new(self.mtu),
            seed,
        }
    }

    /// The largest message.
    pub(crate) fn largest_message(&self) -> u64 {
        match self.carry {
            CarrySpec::Datagram => largest_quic_datagram(Bytes::new(self.mtu)).get(),
            CarrySpec::Stream | CarrySpec::StreamPerMessage => MAX_STREAM_MESSAGE,
        }
    }

    /// What no scenario's check would have let through, in words.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let can_expire = self.expire_ns.is_none() || self.carry != CarrySpec::Stream;
        let values = [
            ((SMALLEST_QUIC_MTU.get()..=65_535).contains(&self.mtu), "an MTU of 1228 to 65535 B"),
            (self.receive_buffer.is_none_or(is_buffer), "a socket_buffer of at least 1 B and at most 1 GiB"),
            (can_expire, "no `expire` on one stream for all messages"),
        ];
        match values.into_iter().find(|(is_right, _)| !is_right) {
            Some((_, needs)) => Err(format!("QUIC needs {needs}")),
            None => Ok(()),
        }
    }
}

/// Bytes on streams that a far end may have sent and the application has not read. The simulator has no
/// bound; a peer must not take all memory. Chosen: of a transfer 8 MiB, which is more than the 1.25 MB that
/// quinn lets each stream have; of messages on a clock 1 MiB, two minutes of a call.
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
                ..QuicConfig::new(carry)
            };
            let spec = QuicSpec::new(&config, Some(Bytes::new(4000)), Bytes::new(1400)).unwrap();
            let told: QuicSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
            let setup = told.setup(false, Seed::new(1));
            assert_eq!((told.carry(), told.cc()), (carry, QuicCongestionControl::NewReno));
            assert_eq!(told.lifetime(), config.expire);
            assert_eq!((setup.flows[0].priority, setup.flows[0].receive_buffer), (3, Some(Bytes::new(4000))));
            assert_eq!(setup.path_mtu, Bytes::new(1400));
            assert_eq!(told.setup(true, Seed::new(1)).flows[0].receive_buffer, None);
            assert_eq!(told.check().is_ok(), carry != Carry::Stream);
        }
    }

    #[test]
    fn values_that_no_scenario_can_have_are_refused() {
        let config = QuicConfig::new(Carry::Stream);
        let good = QuicSpec::new(&config, None, Bytes::new(1500)).unwrap();
        assert_eq!((good.check(), good.largest_message()), (Ok(()), 1 << 20));
        let spoilt: [fn(&mut QuicSpec); 5] = [
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
        let early = QuicSpec::new(&QuicConfig { zero_rtt: true, ..config }, None, Bytes::new(1500));
        assert!(early.is_err_and(|why| why.contains("zero_rtt") && why.contains("--arena sim")));
    }
}
