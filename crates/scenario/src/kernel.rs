//! The key `kernel`: what a Linux host's build and its administrator decide, as defaults for its transports.
//!
//! ```text
//!   kernel = "debian-12" ─► written out ─► each `udp`, `tcp` and `tcp-nodelay` with `stack = "linux"`
//!                                          gets what its own keys leave open
//! ```
//!
//! `this` is the kernel of the machine that loads the scenario. A [`Files`](crate::Files) reads it, and its
//! values take the word's place in the resolved form, as `measured`.
//!
//! Left out: what a kernel's version changes in its TCP itself. The stack `linux` follows Linux 6.18 under
//! every profile.

use talkpath_transport::{Stack, TcpConfig};
use talkpath_units::{Bytes, Duration};

use crate::edit::expand_tagged;
use crate::fill;
use crate::keys::{KERNEL, Kind, TRANSPORT, is_same_word};
use crate::tree::{Node, Table, Value};

/// What of a Linux kernel its transports' defaults follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelProfile {
    /// Its version, for a reader.
    pub release: String,
    /// A jiffy: 1 s / CONFIG_HZ.
    pub timer_granularity: Duration,
    /// MAX_TCP_HEADER: see [`TcpConfig::header_room`].
    pub header_room: Bytes,
    /// See [`TcpConfig::small_head`].
    pub small_head: Option<Bytes>,
    /// Half of net.core.rmem_default.
    pub socket_buffer: Bytes,
    /// Half of net.ipv4.tcp_rmem\[2\].
    pub rwnd: Bytes,
    /// Half of net.ipv4.tcp_rmem\[1\].
    pub initial_rwnd: Bytes,
    /// net.ipv4.tcp_wmem\[2\].
    pub send_buffer_max: Bytes,
}

impl KernelProfile {
    /// The profile that the kind of the key `kernel` names. None for `this`, whose values the machine has.
    pub(crate) fn named(kind: &str) -> Option<Self> {
        match kind {
            "linux-6.18" | "measured" => Some(Self::linux_6_18()),
            "debian-12" => Some(Self::debian_12()),
            _ => None,
        }
    }

    /// Linux 6.18 as its Kconfig files leave it, on x86-64: HZ_250 (kernel/Kconfig.hz); WLAN and IPV6_SIT are
    /// built in, which makes 128 B and 96 B and 48 B of headers, in cache lines (MAX_TCP_HEADER,
    /// LL_MAX_HEADER, MAX_HEADER). A small head leaves room for GRO (GRO_MAX_HEAD_PAD): 384 B and a
    /// skb_shared_info of 320 B.
    fn linux_6_18() -> Self {
        let tcp = TcpConfig::preset(Stack::Linux, false);
        Self {
            release: "6.18".to_owned(),
            timer_granularity: Duration::from_millis(4),
            header_room: Bytes::new(320),
            small_head: Some(Bytes::new(704)),
            // SK_RMEM_MAX of 256 sk_buffs (sock_init_data: sysctl_rmem_default), 212,992 B.
            socket_buffer: Bytes::new(106_496),
            // tcp_init: at most 32 MiB and 4 MiB, which machines with a few GB of memory reach.
            rwnd: tcp.rwnd,
            initial_rwnd: tcp.initial_rwnd,
            send_buffer_max: tcp.send_buffer_max,
        }
    }

    /// Debian 12's linux-image-amd64, Linux 6.1: CONFIG_HZ = 250, CONFIG_WLAN, CONFIG_MAC80211_MESH and
    /// CONFIG_IPV6_SIT, which makes 128 B, 128 B and 48 B of headers. There are no small heads before 6.3,
    /// and tcp_rmem\[2\] is at most 6 MiB (tcp_init).
    fn debian_12() -> Self {
        Self { release: "6.1".to_owned(), small_head: None, rwnd: Bytes::new(3 << 20), ..Self::linux_6_18() }
    }

    /// Its keys and their values, as TOML.
    pub(crate) fn values(&self) -> [(&'static str, String); 8] {
        let quoted = |text: &dyn core::fmt::Display| format!("\"{text}\"");
        let small_head = self.small_head.map_or_else(|| "\"none\"".to_owned(), |size| quoted(&size));
        [
            ("release", toml_edit::Value::from(self.release.as_str()).to_string()),
            ("timer_granularity", quoted(&self.timer_granularity)),
            ("header_room", quoted(&self.header_room)),
            ("small_head", small_head),
            ("socket_buffer", quoted(&self.socket_buffer)),
            ("rwnd", quoted(&self.rwnd)),
            ("initial_rwnd", quoted(&self.initial_rwnd)),
            ("send_buffer_max", quoted(&self.send_buffer_max)),
        ]
    }

    /// Its keys and their values in one line, as a scenario has them.
    pub fn values_text(&self) -> String {
        self.values().map(|(key, value)| format!("{key} = {value}")).join(", ")
    }

    /// What differs from `other`, as `KEY is VALUE, not VALUE`.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let pairs = self.values().into_iter().zip(other.values());
        pairs
            .filter(|((key, ours), (_, theirs))| *key != "release" && ours != theirs)
            .map(|((key, ours), (_, theirs))| format!("{key} is {ours}, not {theirs}"))
            .collect()
    }
}

/// True if `node`, the value of `kernel`, is the machine's own kernel.
pub(crate) fn is_this(node: &Node) -> bool {
    let kind = node.as_table().map_or(Some(node), |table| table.get("kind"));
    kind.and_then(Node::as_text).is_some_and(|kind| is_same_word(kind, "this"))
}

/// Puts the values of `profile` in the place of `this`. Keys that stand beside it win.
pub(crate) fn replace_this(node: &mut Node, profile: &KernelProfile) {
    let mut table = Table::default();
    table.set("kind", Node::text("measured", node.place.clone()));
    for (key, text) in profile.values() {
        if let Some(value) = crate::tree::parse_value(&text, &node.place) {
            table.set(key, value);
        }
    }
    for entry in node.as_table().into_iter().flat_map(|written| &written.entries) {
        if entry.name != "kind" {
            table.set(&entry.name, entry.node.clone());
        }
    }
    node.value = Value::Table(table);
}

/// Gives the Linux transports of `cell` the profile's values for the keys that they leave open.
pub(crate) fn apply(cell: &mut Table) {
    let Some(kernel) = cell.get("kernel") else { return };
    let kernel = fill::value(kernel, &Kind::Tagged(&KERNEL));
    let Some(profile) = kernel.as_table() else { return };
    let Some(Node { value: Value::Table(flows), .. }) = cell.get_mut("flow") else { return };
    for entry in &mut flows.entries {
        if let Value::Table(flow) = &mut entry.node.value
            && let Some(transport) = flow.get_mut("transport")
        {
            apply_to_transport(transport, profile);
        }
    }
}

fn apply_to_transport(transport: &mut Node, profile: &Table) {
    expand_tagged(transport, &TRANSPORT);
    let Value::Table(table) = &mut transport.value else { return };
    let kind = table.get("kind").and_then(Node::as_text).and_then(|kind| TRANSPORT.variant(kind));
    let stack = table.get("stack").map_or(Some("linux"), Node::as_text);
    let Some(variant) = kind.filter(|variant| variant.key("stack").is_some() && stack == Some("linux"))
    else {
        return;
    };
    for entry in &profile.entries {
        if table.get(&entry.name).is_none() && variant.key(&entry.name).is_some() {
            table.set(&entry.name, entry.node.clone());
        }
    }
}

/// The names of the profiles that need no machine, for messages.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KERNEL.variants.iter().map(|variant| variant.name).filter(|name| !matches!(*name, "this" | "measured"))
}
