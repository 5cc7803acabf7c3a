//! The TCP settings that belong to a host: settings of its namespace or its routes, and not of a socket.
//!
//! | key | how it is set |
//! | --- | --- |
//! | `sack`, `timestamps`, `window_scaling`, `tlp` | sysctls, switched off if no TCP flow wants them |
//! | `ecn` | sysctl `tcp_ecn` = 1, if a TCP flow wants it |
//! | `min_rto` | sysctl `tcp_rto_min_us` (Linux 6.11), if all TCP flows agree |
//! | `initial_window`, `delayed_ack = false` | the route's `initcwnd` and `quickack`, if all agree |
//! | `timer_granularity` | not at all: it is the kernel's own, and a scenario may name it |
//! | `kernel` | not at all: a warning says what this kernel has instead |
//!
//! If the flows do not agree, the kernel's own value holds, and a warning names each flow that wanted another
//! value.

use std::borrow::Cow;

use talkpath_config::{CongestionControlKind, DelayedAck, Stack, TcpConfig};
use talkpath_kernel::host::netlink::Route;
use talkpath_kernel::this_kernel::{jiffy, profile_warning};
use talkpath_kernel::unsupported::ignored_keys;
use talkpath_model::{Flow, Scenario};
use talkpath_units::{Bytes, Duration, Packets};

use crate::world::Setting;

/// The TCP settings of a Linux kernel whose settings nobody has changed.
const KERNEL: TcpConfig = TcpConfig::preset(Stack::Linux, false);
/// The keys that this arena can set, or about which it has warnings of its own.
const SUPPORTED_KEYS: [&str; 13] = [
    "rwnd",
    "send_jitter",
    "receiver.service",
    "sack",
    "tlp",
    "timestamps",
    "window_scaling",
    "ecn",
    "min_rto",
    "initial_window",
    "timer_granularity",
    "delayed_ack",
    "pacing",
];

/// The settings of both hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostTcp {
    sack: bool,
    timestamps: bool,
    window_scaling: bool,
    ecn: bool,
    tlp: bool,
    min_rto: Duration,
    initial_window: Packets,
    /// True if each segment is acknowledged at once.
    quick_acks: bool,
}

impl HostTcp {
    /// Returns the settings on which the flows of `scenario` agree. If they do not agree on a setting, it has
    /// the kernel's own value.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let configs: Vec<&TcpConfig> = scenario.flows.iter().filter_map(tcp).collect();
        let is_wanted =
            |key: fn(&TcpConfig) -> bool| configs.is_empty() || configs.iter().any(|config| key(config));
        let min_rto = agreed(configs.iter().map(|config| config.min_rto));
        let initial_window = agreed(configs.iter().map(|config| config.initial_window));
        let delayed_ack = agreed(configs.iter().map(|config| config.delayed_ack));
        Self {
            sack: is_wanted(|config| config.sack),
            timestamps: is_wanted(|config| config.timestamps),
            window_scaling: is_wanted(|config| config.window_scaling),
            ecn: configs.iter().any(|config| config.ecn),
            tlp: is_wanted(|config| config.tlp),
            min_rto: min_rto.unwrap_or(KERNEL.min_rto),
            initial_window: initial_window.unwrap_or(KERNEL.initial_window),
            quick_acks: delayed_ack == Some(DelayedAck::Off),
        }
    }

    /// Returns the sysctls that differ from the kernel's own values (Documentation/networking/ip-sysctl.rst
    /// of the kernel).
    pub(super) fn sysctls(self) -> Vec<Setting> {
        let mut sysctls: Vec<Setting> = Vec::new();
        let switches = [
            (self.sack, c"/proc/sys/net/ipv4/tcp_sack"),
            (self.timestamps, c"/proc/sys/net/ipv4/tcp_timestamps"),
            (self.window_scaling, c"/proc/sys/net/ipv4/tcp_window_scaling"),
            (self.tlp, c"/proc/sys/net/ipv4/tcp_early_retrans"),
        ];
        for (is_on, path) in switches {
            if !is_on {
                sysctls.push((path, Cow::Borrowed(b"0")));
            }
        }
        if self.ecn {
            sysctls.push((c"/proc/sys/net/ipv4/tcp_ecn", Cow::Borrowed(b"1")));
        }
        if self.min_rto != KERNEL.min_rto {
            let microseconds = self.min_rto.as_micros().max(1).to_string().into_bytes();
            sysctls.push((c"/proc/sys/net/ipv4/tcp_rto_min_us", Cow::Owned(microseconds)));
        }
        sysctls
    }

    /// Returns the TCP settings of the routes. Returns `None` if all are the kernel's own.
    pub(super) fn route(self) -> Option<Route> {
        let has_kernel_window = self.initial_window == KERNEL.initial_window;
        if has_kernel_window && !self.quick_acks {
            return None;
        }
        // Zero leaves the kernel's own value.
        let initial_window =
            if has_kernel_window { 0 } else { u32::try_from(self.initial_window.get()).unwrap_or(u32::MAX) };
        Some(Route { initial_window, quick_acks: self.quick_acks, mtu: 0 })
    }

    /// Makes the warnings about the keys that the kernel's transports cannot be set to.
    pub(super) fn warnings(self, scenario: &Scenario) -> Vec<String> {
        let mut warnings = Vec::new();
        for flow in &scenario.flows {
            let mut keys = ignored_keys(flow, scenario.kernel.as_ref());
            keys.retain(|key| !SUPPORTED_KEYS.contains(key));
            if let Some(config) = tcp(flow).filter(|config| config.stack == Stack::Linux) {
                keys.extend(self.keys_not_set(config, flow));
            }
            if !keys.is_empty() {
                let keys = keys.join(", ");
                warnings.push(format!("flow {}: the kernel cannot be told {keys}; its own holds", flow.name));
            }
        }
        let usual_rwnd = usual_rwnd(scenario);
        warnings.extend(scenario.flows.iter().filter_map(|flow| rwnd_warning(flow, usual_rwnd)));
        warnings.extend(profile_warning(scenario));
        warnings
    }

    /// Lists the keys of a flow whose values differ from what the hosts are set to.
    fn keys_not_set(self, config: &TcpConfig, flow: &Flow) -> impl Iterator<Item = &'static str> {
        let wants_quick_acks = config.delayed_ack == DelayedAck::Off;
        let has_delayed_ack = wants_quick_acks == self.quick_acks
            && (wants_quick_acks || config.delayed_ack == KERNEL.delayed_ack);
        // BBR paces whatever the scenario sets.
        let has_pacing = config.pacing || config.cc != Some(CongestionControlKind::Bbr);
        // A socket of Multipath TCP is not paced here.
        let can_pace = !(config.pacing && config.multipath);
        let has_granularity = config.timer_granularity == KERNEL.timer_granularity
            || jiffy().is_none_or(|jiffy| config.timer_granularity == jiffy);
        let is_set = [
            ("sack", config.sack == self.sack),
            ("timestamps", config.timestamps == self.timestamps),
            ("window_scaling", config.window_scaling == self.window_scaling),
            ("ecn", config.ecn == self.ecn),
            ("tlp", config.tlp == self.tlp),
            ("min_rto", config.min_rto == self.min_rto),
            ("initial_window", config.initial_window == self.initial_window),
            ("delayed_ack", has_delayed_ack),
            ("timer_granularity", has_granularity),
            ("pacing", can_pace && (has_pacing || !flow.asked_for.contains(&"pacing"))),
        ];
        is_set.into_iter().filter(|(_, is_set)| !is_set).map(|(key, _)| key)
    }
}

/// Makes the warning about an `rwnd` that does not limit the window. Linux drops TCP_WINDOW_CLAMP when it has
/// measured how much memory a segment takes (tcp_measure_rcv_mss). From then on it tunes the buffer, unless
/// SO_RCVBUF is set.
fn rwnd_warning(flow: &Flow, usual_rwnd: Bytes) -> Option<String> {
    let config = tcp(flow)?;
    if config.rwnd == usual_rwnd || flow.receiver.socket_buffer.is_some() {
        return None;
    }
    Some(format!(
        "flow {}: rwnd = \"{} B\" does not bound the window in `emu`: the kernel lets it grow to 64 KiB and more, \
         so that goodput is not that of `sim`; receiver.socket_buffer bounds it",
        flow.name,
        config.rwnd.get()
    ))
}

/// Returns the `rwnd` of a flow that does not limit its window. It is that of the scenario's kernel, or of
/// the stack if the scenario names no kernel.
pub(super) fn usual_rwnd(scenario: &Scenario) -> Bytes {
    scenario.kernel.as_ref().map_or(KERNEL.rwnd, |profile| profile.rwnd)
}

/// Returns the value that all `values` have. Returns `None` if they differ, or if there are none.
fn agreed<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn tcp(flow: &Flow) -> Option<&TcpConfig> {
    flow.transport.as_tcp()
}

#[cfg(test)]
mod tests {
    use talkpath_config::TransportConfig;
    use talkpath_scenario::{Options, Source, load};

    use talkpath_model::KernelProfile;

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
        let plan = load(&Source::new("test.toml", text), &Options::default()).unwrap();
        plan.cells.into_iter().next().unwrap().scenario
    }

    fn files(scenario: &Scenario) -> Vec<&'static str> {
        HostTcp::new(scenario)
            .sysctls()
            .into_iter()
            .map(|(path, _)| path.to_str().unwrap().rsplit('/').next().unwrap())
            .collect()
    }

    #[test]
    fn a_switch_that_all_flows_turn_off_is_off_on_the_hosts() {
        let both = scenario(", sack = false", ", sack = false, timestamps = false");
        assert_eq!(files(&both), ["tcp_sack"]);
        let warnings = HostTcp::new(&both).warnings(&both);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("flow b") && warnings[0].contains("timestamps"), "{warnings:?}");
    }

    #[test]
    fn hosts_offer_ecn_if_one_flow_wants_it() {
        let one = scenario(", ecn = true", "");
        assert_eq!(files(&one), ["tcp_ecn"]);
        let warnings = HostTcp::new(&one).warnings(&one);
        assert!(
            warnings.len() == 1 && warnings[0].contains("flow b") && warnings[0].contains("ecn"),
            "{warnings:?}"
        );
    }

    #[test]
    fn what_all_flows_agree_on_is_set_on_the_hosts_and_their_routes() {
        let keys = ", initial_window = \"4 packets\", delayed_ack = false, min_rto = \"50 ms\"";
        let both = scenario(keys, keys);
        let hosts = HostTcp::new(&both);
        assert_eq!(hosts.route(), Some(Route { initial_window: 4, quick_acks: true, mtu: 0 }));
        let settings: Vec<_> = hosts.sysctls().into_iter().map(|(_, text)| text.into_owned()).collect();
        assert_eq!(settings, [b"50000"]);
        assert_eq!(hosts.warnings(&both), [""; 0]);
        let one = scenario(keys, "");
        let hosts = HostTcp::new(&one);
        assert_eq!((hosts.route(), hosts.sysctls().len()), (None, 0));
        let warnings = hosts.warnings(&one);
        let told = ["flow a", "initial_window", "delayed_ack", "min_rto"];
        assert!(warnings.len() == 1 && told.iter().all(|key| warnings[0].contains(key)), "{warnings:?}");
    }

    #[test]
    fn a_delay_in_milliseconds_cannot_be_set() {
        let both = scenario(", delayed_ack = \"100 ms\"", ", pacing = true");
        let warnings = HostTcp::new(&both).warnings(&both);
        assert!(warnings.len() == 1 && warnings[0].contains("delayed_ack"), "{warnings:?}");
    }

    #[test]
    fn a_window_that_the_kernel_does_not_keep_to_is_warned_of() {
        let first = scenario(", rwnd = \"16 kB\"", "");
        let warnings = HostTcp::new(&first).warnings(&first);
        let said = ["flow a", "rwnd = \"16000 B\"", "does not bound", "socket_buffer"];
        assert!(warnings.len() == 1 && said.iter().all(|words| warnings[0].contains(words)), "{warnings:?}");
    }

    /// The two hosts are this machine's, whatever a profile says.
    #[test]
    fn a_profile_that_is_not_this_kernel_s_is_warned_of_once() {
        let plain = scenario("", "");
        let own = talkpath_kernel::this_kernel::this_kernel().unwrap();
        let with = |profile| Scenario { kernel: Some(profile), ..plain.clone() };
        assert_eq!(HostTcp::new(&plain).warnings(&with(own.clone())), [""; 0]);
        let other = KernelProfile { header_room: Bytes::new(448), small_head: None, ..own };
        let warnings = HostTcp::new(&plain).warnings(&with(other));
        let said = ["not this machine's", "header_room is", "not \"448 B\"", "kernel = \"this\""];
        assert!(warnings.len() == 1 && said.iter().all(|words| warnings[0].contains(words)), "{warnings:?}");
    }

    /// Its `rwnd` bounds no window: it is where the kernel's own buffer ends.
    #[test]
    fn the_rwnd_of_a_profile_clamps_no_window() {
        let mut plain = scenario("", "");
        let profile = KernelProfile {
            rwnd: Bytes::new(3 << 20),
            ..talkpath_kernel::this_kernel::this_kernel().unwrap()
        };
        for flow in &mut plain.flows {
            let TransportConfig::Tcp(config) = &mut flow.transport else { panic!("a TCP flow") };
            config.rwnd = profile.rwnd;
        }
        plain.kernel = Some(profile);
        let warnings = HostTcp::new(&plain).warnings(&plain);
        assert!(!warnings.iter().any(|warning| warning.contains("does not bound")), "{warnings:?}");
    }

    #[test]
    fn what_is_as_the_kernel_has_it_needs_no_word() {
        let plain = scenario("", ", sack = true");
        assert_eq!(files(&plain), [""; 0]);
        assert_eq!(HostTcp::new(&plain).warnings(&plain), [""; 0]);
    }
}
