//! The transports of scenarios.
//!
//! Each transport has a file below `transports/`, with its keys, the function that makes its configuration,
//! and the check that it can carry what the workload sends (*fit*). A new transport is a file there, a line
//! in [`TRANSPORT`], and a line in [`resolve`].
//!
//! Begin to read with [`resolve`], then [`fit`].

mod dccp;
mod fit;
mod quic;
pub(crate) mod tcp;
mod udp;

use talkpath_config::{EncapsulatedConfig, EncapsulatedKind, TransportConfig};
use talkpath_model::KernelProfile;
use talkpath_units::Bytes;

pub(crate) use self::fit::{Fit, SMALL_HEAD, flood};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::Tagged;
use crate::tree::Table;

/// The value of a flow's key `transport`.
pub(crate) static TRANSPORT: Tagged = Tagged {
    noun: "a transport",
    variants: &[
        udp::UDP,
        tcp::TCP,
        tcp::NODELAY,
        dccp::CCID2,
        dccp::CCID3,
        dccp::CCID4,
        quic::QUIC,
        quic::DATAGRAM,
        quic::STREAM,
        quic::STREAM_PER_MESSAGE,
    ],
    later: &["sctp", "webrtc"],
    ..Tagged::PLAIN
};

/// The transport of a flow.
pub(crate) struct Transport {
    pub(crate) config: TransportConfig,
    /// The name for tables. `quic` becomes the name of what carries a message: `quic-datagram`.
    pub(crate) name: &'static str,
    /// See [`talkpath_model::Flow::asked_for`].
    pub(crate) asked_for: Vec<&'static str>,
}

/// Reads the transport of `flow`. `mtu` is the smallest MTU of the flow's routes.
pub(crate) fn resolve(flow: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<Transport> {
    let (name, section) = flow.tagged("transport")?;
    let mut asked_for = Vec::new();
    let encapsulated = EncapsulatedKind::ALL.iter().find(|kind| kind.transport_names().contains(&name));
    if let Some(kind) = encapsulated {
        let config = match kind {
            EncapsulatedKind::Dccp => EncapsulatedConfig::Dccp(dccp::resolve(name, &section)?),
        };
        return Some(Transport { config: TransportConfig::Encapsulated(config), name, asked_for });
    }
    if name == "udp" {
        let config = udp::resolve(&section)?;
        return Some(Transport { config: TransportConfig::Udp(config), name, asked_for });
    }
    if name.starts_with("quic") {
        let config = quic::resolve(name, &section, mtu, log)?;
        let name = config.carry.transport_name();
        return Some(Transport { config: TransportConfig::Quic(config), name, asked_for });
    }
    let config = tcp::resolve(name, &section, mtu, &mut asked_for, log)?;
    Some(Transport { config: TransportConfig::Tcp(config), name, asked_for })
}

/// Returns the largest message that leaves in one packet on a path with this MTU. Returns `None` if the
/// transport has no such limit.
pub(crate) fn largest_message(transport: &TransportConfig, mtu: Bytes) -> Option<Bytes> {
    let largest = match transport {
        TransportConfig::Udp(_) => udp::largest_message(mtu),
        TransportConfig::Encapsulated(config) => config.options().largest_message(mtu),
        TransportConfig::Quic(config) => quic::largest_message(config, mtu)?,
        TransportConfig::Tcp(_) => return None,
    };
    Some(largest.min(udp::LARGEST_DATAGRAM))
}

/// Reports a workload that the transport cannot carry.
pub(crate) fn fit(transport: &TransportConfig, fit: &Fit<'_, '_>, log: &mut Log) {
    match transport {
        TransportConfig::Udp(config) => udp::fit(config, fit, log),
        TransportConfig::Encapsulated(config) => {
            let options = config.options();
            let room = fit.room.unwrap_or(options.socket_buffer());
            let limit = fit.mtu.map(|mtu| options.largest_message(mtu));
            let packet = format!("one {} packet", config.kind().name());
            if fit.check_largest(limit, &packet, log)
                && let Some(size) = fit.demand.largest_message().filter(|size| *size > room)
            {
                fit.report_no_room(size, room, log);
            }
        }
        TransportConfig::Quic(config) => quic::fit(config, fit, log),
        // A stream takes a message of any size, part by part.
        TransportConfig::Tcp(_) => {}
    }
}

/// Returns the defaults of the keys that follow another key, as TOML. `filled` is a transport or a kernel of
/// this kind.
pub(crate) fn defaults(kind: &str, filled: &Table) -> Vec<(&'static str, String)> {
    match KernelProfile::named(kind) {
        Some(profile) => profile.values().into(),
        None => tcp::defaults(kind, filled),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_config::{Carry, CcidKind, DccpConfig, QuicConfig, Stack, TcpConfig, UdpConfig};

    use super::*;

    /// Loads a scenario that has nothing but the name of a transport.
    fn without_keys(name: &str) -> TransportConfig {
        let text = format!(
            "duration = \"1 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"{name}\"\nworkload = \"voice\"\n"
        );
        let plan = crate::load(&crate::Source::new("a.toml", text), &crate::Options::default());
        let mut plan = plan.unwrap_or_else(|mistakes| panic!("{name}: {mistakes}"));
        plan.cells.remove(0).scenario.flows.remove(0).transport
    }

    /// The defaults are written twice: in the keys, where users read them, and in the options, which tests
    /// and examples begin with.
    #[test]
    fn the_default_of_each_key_is_that_of_the_options() {
        let quic = |carry| TransportConfig::Quic(QuicConfig::new(carry));
        for name in TRANSPORT.variants.iter().map(|variant| variant.name) {
            let ccid = CcidKind::ALL.into_iter().find(|ccid| ccid.transport_name() == name);
            let carry = Carry::ALL.into_iter().find(|carry| carry.transport_name() == name);
            let expected = match (name, ccid, carry) {
                (_, Some(ccid), _) => {
                    TransportConfig::Encapsulated(EncapsulatedConfig::Dccp(DccpConfig::new(ccid)))
                }
                (_, _, Some(carry)) => quic(carry),
                ("quic", ..) => quic(Carry::Datagram),
                ("udp", ..) => TransportConfig::Udp(UdpConfig::LINUX),
                ("tcp" | "tcp-nodelay", ..) => {
                    TransportConfig::Tcp(TcpConfig::preset(Stack::Linux, name == "tcp-nodelay"))
                }
                _ => panic!("add the options of {name} here"),
            };
            assert_eq!(without_keys(name), expected, "{name}");
        }
    }

    #[test]
    fn every_word_of_a_protocol_has_its_keys() {
        for word in EncapsulatedKind::ALL.iter().flat_map(|kind| kind.transport_names()) {
            assert!(TRANSPORT.variant(word).is_some(), "{word}");
        }
    }
}
