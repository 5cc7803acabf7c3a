//! Kernel profiles: the values of a Linux kernel that are the defaults of its transports.

use talkpath_config::{Stack, TcpConfig};
use talkpath_units::{Bytes, Duration};

/// The values of a Linux kernel that are the defaults of its transports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelProfile {
    /// The version of the kernel, for a reader.
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
    /// Returns the profile for a word of the key `kernel`. Returns `None` for `this`, whose values come from
    /// the machine.
    pub fn named(kind: &str) -> Option<Self> {
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

    /// Returns the keys of the profile with their values, as TOML.
    pub fn values(&self) -> [(&'static str, String); 8] {
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

    /// Writes the keys and values on one line, as in a scenario.
    pub fn values_text(&self) -> String {
        self.values().map(|(key, value)| format!("{key} = {value}")).join(", ")
    }

    /// Returns the differences from `other`, each as `KEY is VALUE, not VALUE`. The version is not compared.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let pairs = self.values().into_iter().zip(other.values());
        pairs
            .filter(|((key, ours), (_, theirs))| *key != "release" && ours != theirs)
            .map(|((key, ours), (_, theirs))| format!("{key} is {ours}, not {theirs}"))
            .collect()
    }
}
