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
use talkpath_kernel::unsupported::ignored;
use talkpath_model::{Flow, KernelProfile, Scenario};
use talkpath_units::{Bytes, Duration, Packets};

use crate::world::Setting;

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
    /// True if every segment is acknowledged at once.
    quick_acks: bool,
}

impl HostTcp {
    /// The settings on which the flows agree. If they do not agree on a setting, it has the kernel's own
    /// value.
    pub(super) fn of(scenario: &Scenario) -> Self {
        let configs = || scenario.flows.iter().filter_map(tcp);
        let wanted = |of: fn(&TcpConfig) -> bool| configs().next().is_none() || configs().any(of);
        Self {
            sack: wanted(|config| config.sack),
            timestamps: wanted(|config| config.timestamps),
            window_scaling: wanted(|config| config.window_scaling),
            ecn: configs().any(|config| config.ecn),
            tlp: wanted(|config| config.tlp),
            min_rto: agreed(configs().map(|config| config.min_rto)).unwrap_or(KERNEL.min_rto),
            initial_window: agreed(configs().map(|config| config.initial_window))
                .unwrap_or(KERNEL.initial_window),
            quick_acks: agreed(configs().map(|config| config.delayed_ack)) == Some(DelayedAck::Off),
        }
    }

    /// The settings that differ from the kernel's own (Documentation/networking/ip-sysctl.rst of the kernel).
    pub(super) fn settings(self) -> impl Iterator<Item = Setting> {
        let off = Cow::Borrowed(&b"0"[..]);
        let microseconds = (self.min_rto.as_micros()).max(1).to_string().into_bytes();
        let changed: [(bool, Setting); 6] = [
            (!self.sack, (c"/proc/sys/net/ipv4/tcp_sack", off.clone())),
            (!self.timestamps, (c"/proc/sys/net/ipv4/tcp_timestamps", off.clone())),
            (!self.window_scaling, (c"/proc/sys/net/ipv4/tcp_window_scaling", off.clone())),
            (!self.tlp, (c"/proc/sys/net/ipv4/tcp_early_retrans", off)),
            (self.ecn, (c"/proc/sys/net/ipv4/tcp_ecn", Cow::Borrowed(&b"1"[..]))),
            (
                self.min_rto != KERNEL.min_rto,
                (c"/proc/sys/net/ipv4/tcp_rto_min_us", Cow::Owned(microseconds)),
            ),
        ];
        changed.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, setting)| setting)
    }

    /// The TCP settings of the routes. `None` if all are the kernel's own.
    pub(super) fn route(self) -> Option<Route> {
        let is_usual = self.initial_window == KERNEL.initial_window;
        let initial_window =
            if is_usual { 0 } else { u32::try_from(self.initial_window.get()).unwrap_or(u32::MAX) };
        (!is_usual || self.quick_acks).then_some(Route {
            initial_window,
            quick_acks: self.quick_acks,
            mtu: 0,
        })
    }

    /// The warnings about the keys that the kernel's transports cannot be set to. The hosts of this arena do
    /// keep `send_jitter` and slow receivers, and they pace if the scenario says so.
    pub(super) fn warnings(self, scenario: &Scenario) -> Vec<String> {
        scenario
            .flows
            .iter()
            .map(|flow| (flow, self.unset(flow, scenario.kernel.as_ref())))
            .filter(|(_, keys)| !keys.is_empty())
            .map(|(flow, keys)| {
                format!("flow {}: the kernel cannot be told {}; its own holds", flow.name, keys.join(", "))
            })
            .chain(scenario.flows.iter().filter_map(|flow| loose_window(flow, usual_rwnd(scenario))))
            .chain(profile_warning(scenario))
            .collect()
    }

    fn unset(self, flow: &Flow, profile: Option<&KernelProfile>) -> Vec<&'static str> {
        let mut keys = ignored(flow, profile);
        keys.retain(|key| !OURS.contains(key));
        if let Some(config) = tcp(flow).filter(|config| config.stack == Stack::Linux) {
            let is_quick = config.delayed_ack == DelayedAck::Off;
            let delays =
                is_quick == self.quick_acks && (is_quick || config.delayed_ack == KERNEL.delayed_ack);
            // BBR paces whatever the scenario sets.
            let paces = config.pacing || config.cc != Some(CongestionControlKind::Bbr);
            // A socket of Multipath TCP is not paced here.
            let can_pace = !(config.pacing && config.multipath);
            let ticks = config.timer_granularity == KERNEL.timer_granularity
                || jiffy().is_none_or(|jiffy| config.timer_granularity == jiffy);
            let is_set = [
                ("sack", config.sack == self.sack),
                ("timestamps", config.timestamps == self.timestamps),
                ("window_scaling", config.window_scaling == self.window_scaling),
                ("ecn", config.ecn == self.ecn),
                ("tlp", config.tlp == self.tlp),
                ("min_rto", config.min_rto == self.min_rto),
                ("initial_window", config.initial_window == self.initial_window),
                ("delayed_ack", delays),
                ("timer_granularity", ticks),
                ("pacing", can_pace && (paces || !flow.asked_for.contains(&"pacing"))),
            ];
            keys.extend(is_set.into_iter().filter(|(_, is_set)| !is_set).map(|(key, _)| key));
        }
        keys
    }
}

/// The warning about an `rwnd` that does not limit the window. Linux takes TCP_WINDOW_CLAMP back when it has
/// measured how much memory a segment takes (tcp_measure_rcv_mss). From then on it tunes the buffer, unless
/// SO_RCVBUF is set.
fn loose_window(flow: &Flow, usual: Bytes) -> Option<String> {
    let config = tcp(flow).filter(|config| config.rwnd != usual)?;
    flow.receiver.socket_buffer.is_none().then(|| {
        format!(
            "flow {}: rwnd = \"{} B\" does not bound the window in `emu`: the kernel lets it grow to 64 KiB and more, \
             so that goodput is not that of `sim`; receiver.socket_buffer bounds it",
            flow.name,
            config.rwnd.get()
        )
    })
}

/// The `rwnd` of a flow that does not limit its window. It is that of the scenario's kernel, or of the stack
/// if the scenario names no kernel.
pub(super) fn usual_rwnd(scenario: &Scenario) -> Bytes {
    scenario.kernel.as_ref().map_or(KERNEL.rwnd, |profile| profile.rwnd)
}

/// The value that all `values` have. `None` if they differ, or if there are none.
fn agreed<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn tcp(flow: &Flow) -> Option<&TcpConfig> {
    flow.transport.as_tcp()
}

/// The keys that this arena can set, or has warnings of its own about.
const OURS: [&str; 13] = [
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
/// The TCP settings of a Linux kernel whose settings nobody has changed.
const KERNEL: TcpConfig = TcpConfig::preset(Stack::Linux, false);

#[cfg(test)]
mod tests {
    use talkpath_config::TransportConfig;
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
        let plan = load(&Source::new("test.toml", text), &Options::default()).unwrap();
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
    fn hosts_offer_ecn_if_one_flow_wants_it() {
        let one = scenario(", ecn = true", "");
        assert_eq!(files(&one), ["tcp_ecn"]);
        let warnings = HostTcp::of(&one).warnings(&one);
        assert!(
            warnings.len() == 1 && warnings[0].contains("flow b") && warnings[0].contains("ecn"),
            "{warnings:?}"
        );
    }

    #[test]
    fn what_all_flows_agree_on_is_set_on_the_hosts_and_their_routes() {
        let keys = ", initial_window = \"4 packets\", delayed_ack = false, min_rto = \"50 ms\"";
        let both = scenario(keys, keys);
        let hosts = HostTcp::of(&both);
        assert_eq!(hosts.route(), Some(Route { initial_window: 4, quick_acks: true, mtu: 0 }));
        let settings: Vec<_> = hosts.settings().map(|(_, text)| text.into_owned()).collect();
        assert_eq!(settings, [b"50000"]);
        assert_eq!(hosts.warnings(&both), [""; 0]);
        let one = scenario(keys, "");
        let hosts = HostTcp::of(&one);
        assert_eq!((hosts.route(), hosts.settings().count()), (None, 0));
        let warnings = hosts.warnings(&one);
        let told = ["flow a", "initial_window", "delayed_ack", "min_rto"];
        assert!(warnings.len() == 1 && told.iter().all(|key| warnings[0].contains(key)), "{warnings:?}");
    }

    #[test]
    fn a_delay_in_milliseconds_cannot_be_set() {
        let both = scenario(", delayed_ack = \"100 ms\"", ", pacing = true");
        let warnings = HostTcp::of(&both).warnings(&both);
        assert!(warnings.len() == 1 && warnings[0].contains("delayed_ack"), "{warnings:?}");
    }

    #[test]
    fn a_window_that_the_kernel_does_not_keep_to_is_warned_of() {
        let first = scenario(", rwnd = \"16 kB\"", "");
        let warnings = HostTcp::of(&first).warnings(&first);
        let said = ["flow a", "rwnd = \"16000 B\"", "does not bound", "socket_buffer"];
        assert!(warnings.len() == 1 && said.iter().all(|words| warnings[0].contains(words)), "{warnings:?}");
    }

    /// The two hosts are this machine's, whatever a profile says.
    #[test]
    fn a_profile_that_is_not_this_kernel_s_is_warned_of_once() {
        let plain = scenario("", "");
        let own = talkpath_kernel::this_kernel::this_kernel().unwrap();
        let with = |profile| Scenario { kernel: Some(profile), ..plain.clone() };
        assert_eq!(HostTcp::of(&plain).warnings(&with(own.clone())), [""; 0]);
        let other = KernelProfile { header_room: Bytes::new(448), small_head: None, ..own };
        let warnings = HostTcp::of(&plain).warnings(&with(other));
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
        let warnings = HostTcp::of(&plain).warnings(&plain);
        assert!(!warnings.iter().any(|warning| warning.contains("does not bound")), "{warnings:?}");
    }

    #[test]
    fn what_is_as_the_kernel_has_it_needs_no_word() {
        let plain = scenario("", ", sack = true");
        assert_eq!(files(&plain), [""; 0]);
        assert_eq!(HostTcp::of(&plain).warnings(&plain), [""; 0]);
    }
}
