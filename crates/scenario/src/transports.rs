//! Transports in a scenario, a file each: its keys beside what they mean, and the messages that fit.
//!
//! A new one is a file here and its lines in [`TRANSPORT`] and [`resolve`].

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

/// A transport.
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
    number: None,
    quantity: None,
};

/// A flow's transport.
pub(crate) struct Transport {
    pub(crate) config: TransportConfig,
    pub(crate) name: &'static str,
    /// See [`talkpath_model::Flow::asked_for`].
    pub(crate) asked_for: Vec<&'static str>,
}

/// The transport of `flow`, whose routes carry packets of at most `mtu`.
pub(crate) fn resolve(flow: &Section<'_>, mtu: Option<Bytes>, log: &mut Log) -> Option<Transport> {
    let (name, section) = flow.tagged("transport")?;
    let of = |config| Some(Transport { config, name, asked_for: Vec::new() });
    if let Some(kind) = EncapsulatedKind::ALL.iter().find(|kind| kind.transport_names().contains(&name)) {
        let config = match kind {
            EncapsulatedKind::Dccp => EncapsulatedConfig::Dccp(dccp::resolve(name, &section)?),
        };
        return of(TransportConfig::Encapsulated(config));
    }
    if name == "udp" {
        return of(TransportConfig::Udp(udp::resolve(&section)?));
    }
    if name.starts_with("quic") {
        let config = quic::resolve(name, &section, mtu, log)?;
        let name = config.carry.transport_name();
        return Some(Transport { config: TransportConfig::Quic(config), name, asked_for: Vec::new() });
    }
    let mut asked_for = Vec::new();
    let config = tcp::resolve(name, &section, mtu, &mut asked_for, log)?;
    Some(Transport { config: TransportConfig::Tcp(config), name, asked_for })
}

/// The largest message that leaves in one packet on a path of this MTU; `None` if there is none such.
pub(crate) fn largest_message(transport: &TransportConfig, mtu: Bytes) -> Option<Bytes> {
    let largest = match transport {
        TransportConfig::Udp(_) => udp::largest_message(mtu),
        TransportConfig::Encapsulated(config) => config.options().largest_message(mtu),
        TransportConfig::Quic(config) => quic::largest_message(config, mtu)?,
        TransportConfig::Tcp(_) => return None,
    };
    Some(largest.min(udp::LARGEST_DATAGRAM))
}

/// Reports what the transport cannot carry of what the workload sends.
pub(crate) fn fit(transport: &TransportConfig, fit: &Fit<'_, '_>, log: &mut Log) {
    match transport {
        TransportConfig::Udp(config) => udp::fit(config, fit, log),
        TransportConfig::Encapsulated(config) => {
            let options = config.options();
            let room = fit.room.unwrap_or(options.socket_buffer());
            let limit = fit.mtu.map(|mtu| options.largest_message(mtu));
            let packet = format!("one {} packet", config.kind().name());
            if fit.at_most(limit, &packet, log)
                && let Some(size) = fit.demand.largest_message().filter(|size| *size > room)
            {
                fit.no_room(size, room, log);
            }
        }
        TransportConfig::Quic(config) => quic::fit(config, fit, log),
        // A stream takes a message of any size, part by part.
        TransportConfig::Tcp(_) => {}
    }
}

/// What the tagged table `filled` of this kind has for the keys that follow another, as TOML.
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

    /// The transport of a scenario that says nothing but its name.
    fn by_itself(name: &str) -> TransportConfig {
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
                _ => panic!("say here what {name} is by itself"),
            };
            assert_eq!(by_itself(name), expected, "{name}");
        }
    }

    #[test]
    fn every_word_of_a_protocol_has_its_keys() {
        for word in EncapsulatedKind::ALL.iter().flat_map(|kind| kind.transport_names()) {
            assert!(TRANSPORT.variant(word).is_some(), "{word}");
        }
    }
}
