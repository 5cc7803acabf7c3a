//! Client, two routers and server in network namespaces, and what the routers may do to packets.
//!
//! ```text
//!   client ──────── near router ──────── far router ──────── server
//!   10.66.1.2       10.66.1.1 .2.1       .2.2 10.66.3.1      10.66.3.2     IPv4, each net a /24
//!   fd66:1::2       fd66:1::1 2::1       2::2 fd66:3::1      fd66:3::2     IPv6, each net a /64
//! ```
//!
//! What a router does to packets that it forwards stands in its nftables, by rules that a test adds
//! ([`Lab::rule`]) and takes away ([`Lab::clear`]). Nothing leaves the machine: the namespaces have no other
//! device.

use std::cell::RefCell;
use std::fs::{self, File};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::{Bench, Seen, first_line};

/// The server's address over IPv4.
pub(super) const SERVER: &str = "10.66.3.2";
/// The server's address over IPv6, as `--to` takes it.
pub(super) const SERVER_V6: &str = "[fd66:3::2]";
/// The server's address at a client without IPv4 ([`Lab::translate_to_ipv4`]): 10.66.3.2 behind tayga's
/// prefix (RFC 6052 §2.2).
pub(super) const SERVER_BY_NAT64: &str = "[fd66:64::a42:302]";
/// The server's name at the client ([`Lab::client_to_name`]).
pub(super) const NAME: &str = "far.example";
/// The size of the file that curl fetches. At 100 kB/s it takes some seconds, so that what happens at the
/// second one is in them.
pub(super) const FILE_SIZE: usize = 800_000;
/// A second address that the near router may have, for a second line.
const SECOND_LINE: &str = "10.66.2.9";

/// The four hosts, with a server that serves everybody.
pub(super) struct Lab {
    pub(super) bench: Bench,
    hosts: [String; 4],
    server: Child,
    /// Programs that a test started at a router ([`Lab::translate_to_ipv4`], [`Lab::split_tcp`]).
    helpers: RefCell<Vec<Child>>,
}

/// A host of the lab.
#[derive(Clone, Copy)]
pub(super) enum Host {
    Client,
    NearRouter,
    FarRouter,
    Server,
}

/// Whether routers say that a packet was too big (ICMP of RFC 792 and RFC 1191, ICMPv6 of RFC 4443 §3.2).
#[derive(Clone, Copy, Debug)]
pub(super) enum TooBig {
    Reported,
    Silent,
}

/// Which packets are marked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Marked {
    All,
    /// Each with a chance of one half.
    Half,
}

impl Lab {
    /// `None` where this machine does not allow it, which is printed.
    pub(super) fn new() -> Option<Self> {
        Self::serving(&["--open"])
    }

    /// The same with these words for `serve`.
    pub(super) fn serving(words: &[&str]) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let hosts = ["c", "n", "f", "s"].map(|host| format!("tp-{host}-{id}"));
        if let Err(why) = shell(&add(&hosts)) {
            remove(&hosts);
            eprintln!("SKIP: no network namespaces with nftables here: {why}");
            return None;
        }
        shell(&join(&hosts)).unwrap();
        let bench = Bench::new();
        let server = serve(&bench, &hosts[Host::Server as usize], words);
        Some(Self { bench, hosts, server, helpers: RefCell::default() })
    }

    /// Runs the program at the client to its end, with the server's address behind `arguments`.
    pub(super) fn client(&self, arguments: &[&str]) -> Seen {
        self.client_to(SERVER, arguments)
    }

    /// The same to another address of the server.
    pub(super) fn client_to(&self, to: &str, arguments: &[&str]) -> Seen {
        Seen::of(self.client_command(to, arguments).output().unwrap())
    }

    /// The program at the client, not started yet.
    pub(super) fn client_command(&self, to: &str, arguments: &[&str]) -> Command {
        let words = [arguments, &["--to", to]].concat();
        self.program(Host::Client, &words)
    }

    /// The program at the client with the server's name, [`NAME`], which has an address of IPv6 and one of
    /// IPv4, in this order. The file with it is the client's alone.
    pub(super) fn client_to_name(&self, arguments: &[&str]) -> Command {
        let hosts = self.bench.file("hosts", format!("fd66:3::2 {NAME}\n{SERVER} {NAME}\n"));
        // `ip netns exec` gives the command a mount namespace of its own (ip-netns(8)).
        let script = format!("mount --bind {} /etc/hosts && exec \"$0\" \"$@\"", hosts.display());
        self.shell_at_client(&script, &[arguments, &["--to", NAME]].concat())
    }

    /// The program at the client, started by a shell's script in which it is `$0` with the arguments `$@`.
    pub(super) fn shell_at_client(&self, script: &str, arguments: &[&str]) -> Command {
        let (host, program) = (&self.hosts[Host::Client as usize], env!("CARGO_BIN_EXE_talkpath"));
        let words = ["netns", "exec", host, "sh", "-c", script, program];
        self.bench.prepared(Command::new("ip"), &[&words, arguments].concat())
    }

    /// Lets the server's process stand still (`STOP`), or go on (`CONT`).
    pub(super) fn signal_server(&self, name: &str) {
        shell(&format!("kill -{name} {}", self.server.id())).unwrap();
    }

    /// The program at `host`, not started yet.
    pub(super) fn program(&self, host: Host, arguments: &[&str]) -> Command {
        prepared(&self.bench, &self.hosts[host as usize], arguments)
    }

    /// Ends the server; what it logged.
    pub(super) fn server_log(&mut self) -> String {
        let _ = self.server.kill();
        let _ = self.server.wait();
        fs::read_to_string(self.bench.path("serve.log")).unwrap()
    }

    /// A rule of the near router for the packets that it forwards, as nft takes it: `meta l4proto udp drop`.
    /// Packets from the client have `iifname "toclient"`, those from the server `iifname "toserver"`.
    pub(super) fn rule(&self, rule: &str) {
        self.nft(&format!("add rule inet path forward {rule}"));
    }

    /// Takes the rules of [`Lab::rule`] away.
    pub(super) fn clear(&self) {
        self.nft("flush chain inet path forward");
    }

    /// Packets that the rules with a `counter` have met.
    pub(super) fn counted(&self) -> u64 {
        let rules = self.at(Host::NearRouter, "nft list chain inet path forward");
        let counts = rules.split("counter packets ").skip(1);
        counts.map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// No UDP passes, either way.
    pub(super) fn block_udp(&self) {
        self.rule("meta l4proto udp drop");
    }

    /// Packets are marked with CE (RFC 3168 §5), whether they are ECN-capable or not.
    pub(super) fn mark(&self, marked: Marked) {
        let chance = match marked {
            Marked::All => "",
            Marked::Half => "numgen random mod 2 == 0 ",
        };
        self.rule(&format!("{chance}ip ecn set ce"));
        self.rule(&format!("{chance}ip6 ecn set ce"));
    }

    /// The link between the routers has this MTU, as a tunnel's.
    pub(super) fn tunnel(&self, mtu: u32, too_big: TooBig) {
        for (host, device) in [(Host::NearRouter, "toserver"), (Host::FarRouter, "toclient")] {
            self.ip(host, &format!("link set {device} mtu {mtu}"));
            self.at(host, "nft flush chain inet path output");
            if matches!(too_big, TooBig::Silent) {
                for icmp in ["icmp type destination-unreachable", "icmpv6 type packet-too-big"] {
                    self.at(host, &format!("nft add rule inet path output {icmp} drop"));
                }
            }
        }
        // What the hosts learned of the path before.
        for host in [Host::Client, Host::Server] {
            self.ip(host, "route flush cache");
            self.ip(host, "-6 route flush cache");
        }
    }

    /// The near router translates addresses from now on: UDP by ports that it draws, TCP by the client's.
    pub(super) fn translate(&self) {
        let rules = [
            "meta l4proto udp masquerade fully-random",
            "ip saddr 10.66.1.0/24 meta l4proto tcp snat ip to 10.66.2.1",
        ];
        self.translate_by(&rules);
    }

    /// The near router has two lines: TCP leaves by one address, UDP by the other.
    pub(super) fn two_lines(&self) {
        self.ip(Host::NearRouter, &format!("addr add {SECOND_LINE}/24 dev toserver"));
        let udp = format!("ip saddr 10.66.1.0/24 meta l4proto udp snat ip to {SECOND_LINE}");
        self.translate_by(&[&udp, "ip saddr 10.66.1.0/24 meta l4proto tcp snat ip to 10.66.2.1"]);
    }

    /// The client has no IPv4, and the near router translates its IPv6 to the server's IPv4 (RFC 6146), by
    /// tayga. The client reaches the server at [`SERVER_BY_NAT64`].
    pub(super) fn translate_to_ipv4(&self) {
        let file =
            self.bench.file("tayga.conf", TAYGA.replace("FOLDER", self.bench.path("").to_str().unwrap()));
        let router = &self.hosts[Host::NearRouter as usize];
        self.ip(Host::Client, "addr flush dev toserver scope global");
        self.ip(Host::Client, "addr add fd66:1::2/64 dev toserver nodad");
        self.ip(Host::Client, "-6 route replace default via fd66:1::1");
        self.at(Host::NearRouter, &format!("tayga -c {} --mktun", file.display()));
        for words in [
            "link set nat64 up",
            "route add 192.168.255.0/24 dev nat64",
            "-6 route add fd66:64::/96 dev nat64",
        ] {
            self.ip(Host::NearRouter, words);
        }
        self.translate_by(&["ip saddr 192.168.255.0/24 masquerade"]);
        let words = ["netns", "exec", router, "tayga", "-d", "-c", file.to_str().unwrap()];
        self.help(Command::new("ip").args(words));
    }

    /// The near router opens the client's TCP connections itself, and hands on what comes 20 ms later each
    /// way, as a proxy of a distant network does. UDP has no proxy, and the same address.
    pub(super) fn split_tcp(&self) {
        let file = self.bench.file("proxy.py", PROXY);
        self.translate_by(&["ip saddr 10.66.1.0/24 meta l4proto udp snat ip to 10.66.2.1"]);
        self.nft("add chain inet translation entering { type nat hook prerouting priority -100 ; }");
        self.nft("add rule inet translation entering iifname \"toclient\" tcp dport 7160 redirect to :7160");
        let router = &self.hosts[Host::NearRouter as usize];
        let words = ["netns", "exec", router, "python3", file.to_str().unwrap(), SERVER];
        let mut proxy = Command::new("ip");
        let line = first_line(self.help(proxy.args(words)).as_mut().unwrap());
        assert_eq!(line, "ready");
    }

    /// Serves a file of [`FILE_SIZE`] over HTTP at the server, for a peer of ours ([`Lab::curl`]).
    pub(super) fn serve_file(&self) {
        let folder = self.bench.path("web");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), vec![7; FILE_SIZE]).unwrap();
        let server = &self.hosts[Host::Server as usize];
        let words = [
            "netns",
            "exec",
            server,
            "python3",
            "-u",
            "-m",
            "http.server",
            "8000",
            "--bind",
            "::",
            "--directory",
        ];
        let line = first_line(self.help(Command::new("ip").args(words).arg(&folder)).as_mut().unwrap());
        assert!(line.starts_with("Serving HTTP"), "{line}");
    }

    /// The command by which curl fetches the file at the client from `host`, at 100 kB/s.
    pub(super) fn curl(&self, host: &str) -> Command {
        let client = &self.hosts[Host::Client as usize];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", client, "curl", "-s", "-o", "/dev/null", "--limit-rate", "100k"]);
        command.args(["--connect-timeout", "10", "-w", "%{size_download} %{time_total} %{remote_ip}"]);
        // An interface that answers to both versions, as its name has both addresses.
        command.args(["--resolve", &format!("{NAME}:8000:{},{SERVER}", SERVER_V6)]);
        command.arg(format!("http://{host}:8000/file"));
        command
    }

    /// Starts a program that runs until the lab is gone. Returns its standard output.
    fn help(&self, command: &mut Command) -> Option<ChildStdout> {
        let mut helper = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = helper.stdout.take();
        self.helpers.borrow_mut().push(helper);
        output
    }

    /// The near router forgets its mappings of UDP, so that each flow has a new port at once. Linux forgets
    /// those of a device whose address goes (nf_nat_masquerade.c); the others it keeps.
    pub(super) fn forget_mappings(&self) {
        self.ip(Host::NearRouter, "link set toserver down");
        self.ip(Host::NearRouter, "link set toserver up");
        self.ip(Host::NearRouter, "route add 10.66.3.0/24 via 10.66.2.2");
    }

    /// The near router keeps a mapping of UDP for this many seconds after its last packet.
    pub(super) fn keep_mappings_for(&self, seconds: u32) {
        for timer in ["udp_timeout", "udp_timeout_stream"] {
            let key = format!("net.netfilter.nf_conntrack_{timer}={seconds}");
            self.at(Host::NearRouter, &format!("sysctl -q -w {key}"));
        }
    }

    /// The first `count` packets with more than 1000 B of UDP are lost, both ways together: of a QUIC
    /// connection its first flight, and none of a call's frames. Probes of the path are let through, which
    /// begin with "TPP1" and "TPP2".
    pub(super) fn lose_first_large_datagrams(&self, count: u32) {
        self.rule(&format!(
            "udp length > 1000 @th,64,32 != {{ 0x54505031, 0x54505032 }} \
             limit rate 1/day burst {count} packets drop"
        ));
    }

    /// The first `count` SYNs of connections are lost that carry a flow. The control connection, which has
    /// an MSS of 536 B, is let through.
    pub(super) fn lose_first_syns(&self, count: u32) {
        self.rule(&format!(
            "tcp flags & (syn | ack) == syn tcp option maxseg size > 536 \
             limit rate 1/day burst {count} packets drop"
        ));
    }

    /// Brings a device of `host` up or down, or whatever else `ip` does there.
    pub(super) fn ip(&self, host: Host, words: &str) {
        shell(&format!("ip -n {} {words}", self.hosts[host as usize])).unwrap();
    }

    /// Packets and bytes that the client's device has sent and received.
    pub(super) fn client_counts(&self) -> [u64; 4] {
        let text = self.at(Host::Client, "cat /proc/net/dev");
        let line = text.lines().find_map(|line| line.trim().strip_prefix("toserver:")).unwrap();
        let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
        // proc(5): received bytes, packets and six more; then the same of what was sent.
        [fields[9], fields[8], fields[1], fields[0]]
    }

    fn translate_by(&self, rules: &[&str]) {
        self.nft("add table inet translation");
        self.nft("add chain inet translation leaving { type nat hook postrouting priority 100 ; }");
        for rule in rules {
            self.nft(&format!("add rule inet translation leaving oifname \"toserver\" {rule}"));
        }
    }

    fn nft(&self, words: &str) {
        self.at(Host::NearRouter, &format!("nft '{words}'"));
    }

    /// Standard output of a command at `host`.
    fn at(&self, host: Host, command: &str) -> String {
        shell(&format!("ip netns exec {} {command}", self.hosts[host as usize])).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for helper in self.helpers.get_mut() {
            let _ = helper.kill();
            let _ = helper.wait();
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
        remove(&self.hosts);
    }
}

/// The commands that make the four hosts, with the tables of nftables: a machine may refuse these. IPv6
/// works without the second or two of duplicate address detection (RFC 4862 §5.4).
fn add(hosts: &[String; 4]) -> String {
    let add = |host: &String| {
        format!(
            "ip netns add {host} && ip -n {host} link set lo up && \
             ip netns exec {host} sh -c 'echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad' && \
             ip netns exec {host} nft 'add table inet path; \
             add chain inet path forward {{ type filter hook forward priority 0 ; }}; \
             add chain inet path output {{ type filter hook output priority 0 ; }}'"
        )
    };
    hosts.each_ref().map(add).join(" && ")
}

/// The commands that join them. Each host's device towards the server is called `toserver`, that
/// towards the client `toclient`. They end when each device has its link-local address: the
/// kernel notes that a device is connected up to a second later, and IPv6 sends nothing before.
fn join(hosts: &[String; 4]) -> String {
    let mut script = String::from("set -e\n");
    for (at, pair) in hosts.windows(2).enumerate() {
        let (left, right, net) = (&pair[0], &pair[1], at + 1);
        // The client and the server are host 2 of their nets.
        let (left_end, right_end) = if at == 0 { (2, 1) } else { (1, 2) };
        script += &format!("ip -n {left} link add toserver type veth peer name toclient netns {right}\n");
        for (host, device, end) in [(left, "toserver", left_end), (right, "toclient", right_end)] {
            script += &format!(
                "ip -n {host} addr add 10.66.{net}.{end}/24 dev {device}\n\
                 ip -n {host} addr add fd66:{net}::{end}/64 dev {device} nodad\n\
                 ip -n {host} link set {device} up\n"
            );
        }
    }
    let [client, near, far, server] = hosts;
    for (host, to, via) in [
        (client, "default", "10.66.1.1"),
        (client, "-6 default", "fd66:1::1"),
        (near, "10.66.3.0/24", "10.66.2.2"),
        (near, "-6 fd66:3::/64", "fd66:2::2"),
        (far, "10.66.1.0/24", "10.66.2.1"),
        (far, "-6 fd66:1::/64", "fd66:2::1"),
        (server, "default", "10.66.3.1"),
        (server, "-6 default", "fd66:3::1"),
    ] {
        let (family, to) = to.strip_prefix("-6 ").map_or(("", to), |to| ("-6", to));
        script += &format!("ip -n {host} {family} route add {to} via {via}\n");
    }
    for router in [near, far] {
        script += &format!(
            "ip netns exec {router} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; \
             echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'\n"
        );
    }
    for pair in hosts.windows(2) {
        for (host, device) in [(&pair[0], "toserver"), (&pair[1], "toclient")] {
            script += &format!(
                "until ip -n {host} -6 addr show dev {device} scope link | grep -q fe80; do sleep 0.02; done\n"
            );
        }
    }
    script
}

/// Starts a server at `host`, and waits until it listens. Its log is in `serve.log`.
fn serve(bench: &Bench, host: &str, words: &[&str]) -> Child {
    let log = File::create(bench.path("serve.log")).unwrap();
    let mut command = prepared(bench, host, &[&["serve"], words].concat());
    let mut server = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let line = first_line(server.stdout.as_mut().unwrap());
    assert!(line.starts_with("listening on "), "{line}");
    server
}

fn prepared(bench: &Bench, host: &str, arguments: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_talkpath");
    bench.prepared(Command::new("ip"), &[&["netns", "exec", host, program], arguments].concat())
}

fn remove(hosts: &[String; 4]) {
    for host in hosts {
        let _ = Command::new("ip").args(["netns", "del", host]).output();
    }
}

/// Runs a script; its standard output, or what it said when it failed.
fn shell(script: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-c", script]).output().map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// The configuration of tayga (tayga.conf(5)). A prefix of its own lets it translate private addresses.
const TAYGA: &str = "tun-device nat64
ipv4-addr 192.168.255.1
prefix fd66:64::/96
dynamic-pool 192.168.255.0/24
data-dir FOLDER
";

/// A proxy that opens a connection to its first argument for each that it accepts, and holds each piece 20
/// ms.
const PROXY: &str = r#"
import asyncio, sys

async def hand_on(reader, writer):
    try:
        while piece := await reader.read(65536):
            await asyncio.sleep(0.02)
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    writer.close()

async def serve(reader, writer):
    far_reader, far_writer = await asyncio.open_connection(sys.argv[1], 7160)
    await asyncio.gather(hand_on(reader, far_writer), hand_on(far_reader, writer))

async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 7160)
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(main())
"#;
