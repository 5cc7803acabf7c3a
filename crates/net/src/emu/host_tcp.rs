//! What of the flows' TCP is the host's: settings of a namespace, not of a socket.
//!
//! SACK, timestamps and the tail loss probe are sysctls. Where all TCP flows of a scenario agree on one it is set on both
//! hosts; where they do not, the kernel's own value holds and the flows that wanted another are told of.

use talkpath_scenario::{Flow, Scenario};
use talkpath_transport::{TcpConfig, TransportConfig};

use super::world::Setting;
use crate::live::ignored;

/// The settings of both hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostTcp {
    sack: bool,
    timestamps: bool,
    tlp: bool,
}

impl HostTcp {
    /// What the flows agree on; on, as in the kernel, where they do not.
    pub(super) fn of(scenario: &Scenario) -> Self {
        let configs = || scenario.flows.iter().filter_map(tcp);
        let agreed = |of: fn(&TcpConfig) -> bool| configs().next().is_none() || configs().any(of);
        Self {
            sack: agreed(|config| config.sack),
            timestamps: agreed(|config| config.timestamps),
            tlp: agreed(|config| config.tlp),
        }
    }

    /// What is to be written (Documentation/networking/ip-sysctl.rst of the kernel); what is on already is left alone.
    pub(super) fn settings(self) -> impl Iterator<Item = Setting> {
        let off: [(bool, Setting); 3] = [
            (self.sack, (c"/proc/sys/net/ipv4/tcp_sack", b"0")),
            (self.timestamps, (c"/proc/sys/net/ipv4/tcp_timestamps", b"0")),
            (self.tlp, (c"/proc/sys/net/ipv4/tcp_early_retrans", b"0")),
        ];
        off.into_iter().filter(|(is_on, _)| !is_on).map(|(_, setting)| setting)
    }

    /// What the kernel's transports cannot be told. The hosts here do keep `send_jitter` and slow receivers.
    pub(super) fn warnings(self, scenario: &Scenario) -> Vec<String> {
        let unset = |flow: &Flow| -> Vec<&'static str> {
            let ours = ["send_jitter", "receiver.service", "sack", "tlp", "timestamps"];
            let mut keys: Vec<_> = ignored(flow).into_iter().filter(|key| !ours.contains(key)).collect();
            if let Some(config) = tcp(flow) {
                let switches = [
                    ("sack", config.sack, self.sack),
                    ("timestamps", config.timestamps, self.timestamps),
                    ("tlp", config.tlp, self.tlp),
                ];
                keys.extend(switches.into_iter().filter(|(_, wanted, is)| wanted != is).map(|(key, ..)| key));
            }
            keys
        };
        scenario
            .flows
            .iter()
            .map(|flow| (flow, unset(flow)))
            .filter(|(_, keys)| !keys.is_empty())
            .map(|(flow, keys)| {
                format!("flow {}: the kernel cannot be told {}; its own holds", flow.name, keys.join(", "))
            })
            .collect()
    }
}

fn tcp(flow: &Flow) -> Option<&TcpConfig> {
    match &flow.transport {
        TransportConfig::Tcp(config) => Some(config),
        TransportConfig::Udp(_) | TransportConfig::Dccp(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    fn scenario(first: &str, second: &str) -> Scenario {
        let text = format!(
            r#"
            name = "test"
            duration = "1 s"
            path = "lan"
            [flow.a]
            transport = {{ kind = "tcp"{first} }}
            workload = {{ kind = "bulk" }}
            [flow.b]
            transport = {{ kind = "tcp"{second} }}
            workload = {{ kind = "bulk" }}
            "#
        );
        let plan = load(&Source { name: "test.toml".to_owned(), text }, &Options::default()).unwrap();
        plan.cells.into_iter().next().unwrap().scenario
    }

    fn files(scenario: &Scenario) -> Vec<&'static str> {
        HostTcp::of(scenario)
            .settings()
            .map(|(path, _)| path.to_str().unwrap().rsplit('/').next().unwrap())
            .collect()
    }

    #[test]
    fn a_switch_that_all_flows_turn_off_is_off_on_the_hosts() {
        let both = scenario(", sack = false", ", sack = false, timestamps = false");
        assert_eq!(files(&both), ["tcp_sack"]);
        let warnings = HostTcp::of(&both).warnings(&both);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("flow b") && warnings[0].contains("timestamps"), "{warnings:?}");
    }

    #[test]
    fn what_is_as_the_kernel_has_it_needs_no_word() {
        let plain = scenario("", ", sack = true");
        assert_eq!(files(&plain), [""; 0]);
        assert_eq!(HostTcp::of(&plain).warnings(&plain), [""; 0]);
    }
}
