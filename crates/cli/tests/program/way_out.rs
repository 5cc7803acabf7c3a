//! The way out of `talkpath shell` to a machine's network. The machine is a network namespace of each test,
//! with a resolver that only the machine itself reaches.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::harness::{Bench, Seen, read_json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_talkpath");
/// The machine's addresses are 10.9.9.1 and fd09::1. Nobody answers for its routers.
const MACHINE: &str = r#"
set -e
ip link set lo up
ip link add outside type veth peer name router
ip address add 10.9.9.1/24 dev outside
ip address add fd09::1/64 dev outside nodad
ip link set outside up
ip link set router up
ip route add default via 10.9.9.2
ip -6 route add default via fd09::2
mount -t tmpfs none /mnt
echo 'nameserver 127.0.0.53' >/mnt/resolv.conf
mount --bind /mnt/resolv.conf /etc/resolv.conf
python3 stub.py &
sleep 0.5
"#;
/// A resolver at the address of the stub of systemd-resolved. Each name has the address 198.51.100.7.
const STUB: &str = r#"
import socket
stub = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stub.bind(("127.0.0.53", 53))
while True:
    query, asker = stub.recvfrom(512)
    end = query.index(b"\0", 12) + 5
    is_a = query[end - 4 : end] == b"\0\1\0\1"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x33\x64\x07" if is_a else b""
    head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
    stub.sendto(head + query[12:end] + answer, asker)
"#;

/// Runs `script` on a machine of its own; `None` where this one cannot make it, which is printed.
fn on_a_machine(bench: &Bench, script: &str) -> Option<Seen> {
    for (program, argument) in
        [("pasta", "--version"), ("ip", "-V"), ("python3", "--version"), ("unshare", "--version")]
    {
        let found = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err() {
            eprintln!("SKIP: {program} is not here");
            return None;
        }
    }
    bench.file("stub.py", STUB);
    bench.file("machine.sh", format!("{MACHINE}{script}"));
    fs::create_dir_all(bench.path("run")).unwrap();
    // With a process namespace nothing outlives the script.
    let namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut command = bench.prepared(Command::new("unshare"), &namespaces);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["sh", "machine.sh"]);
    command.env("XDG_RUNTIME_DIR", bench.path("run")).env("TALKPATH", PROGRAM).env_remove("TALKPATH_SEED");
    let seen = Seen::of(command.output().unwrap());
    if ["unshare: ", "/dev/net/tun"].iter().any(|what| seen.err.contains(what)) {
        eprintln!("SKIP: no machine can be made here: {}", seen.err);
        return None;
    }
    Some(seen)
}

#[test]
fn names_resolve_and_both_versions_of_ip_leave_by_the_path() {
    let bench = Bench::new();
    bench.file("file", vec![7; 200_000]);
    bench.file(
        "inside.sh",
        r#"
set -e
getent ahostsv4 call.example | head -1
"$TALKPATH" send file --to 10.9.9.1:7001 --out sent -q
"$TALKPATH" send file --to '[fd09::1]:7002' --out sent -q
"#,
    );
    let script = r#"
"$TALKPATH" serve --open --bind 10.9.9.1:7001 >/dev/null 2>&1 &
"$TALKPATH" serve --open --bind '[fd09::1]:7002' >/dev/null 2>&1 &
sleep 1
"$TALKPATH" shell --up 20Mbps/20ms --down 20Mbps/20ms -- sh inside.sh
"#;
    let Some(seen) = on_a_machine(&bench, script) else { return };
    assert!(seen.succeeds().out.starts_with("198.51.100.7 "), "{}", seen.out);
    let what_a_user_has_to_know = "TCP's round trips, ECN marks and packet sizes are pasta's";
    assert!(seen.err.contains(what_a_user_has_to_know), "{}", seen.err);
    let summary = read_json(&bench.only_run().join("summary.json"));
    assert!(summary["warnings"].to_string().contains(what_a_user_has_to_know), "{}", summary["warnings"]);
    let flows = summary["runs"][0]["flows"].as_object().unwrap();
    for service in ["udp-53-", "tcp-7001-", "tcp-7002-"] {
        for way in ["-up", "-down"] {
            let is_it = |name: &&String| name.starts_with(service) && name.ends_with(way);
            let name = flows.keys().find(is_it).unwrap_or_else(|| panic!("{service} in {flows:?}"));
            let flow = &flows[name];
            assert!(flow["one_way_delay_ms"]["min"].as_f64().unwrap() >= 20.0, "{name}: {flow}");
        }
    }
}

#[test]
fn nothing_of_the_machine_changes_and_a_kill_leaves_no_pasta() {
    let bench = Bench::new();
    let script = r#"
state() {
    cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | awk '{print $2, $4}'
    ip -o link | cut -d: -f2; ip -o -4 address; ip route; ip -6 route; ip rule
    nft list ruleset 2>/dev/null || true
}
pastas() {
    count=0
    here=$(readlink /proc/self/ns/net)
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$here" ]; then
            case "$(cat "$process/comm" 2>/dev/null)" in pasta* | passt*) count=$((count + 1)) ;; esac
        fi
    done
    echo $count
}
# Until the addresses of the links are checked (RFC 4862).
sleep 2
state >before
"$TALKPATH" shell --path lan -- sh -c ': >ready; exec sleep 1000' &
shell=$!
until [ -e ready ]; do kill -0 $shell; sleep 0.05; done
state >during
echo "pasta: $(pastas)"
kill -9 $shell
for look in $(seq 200); do
    if [ "$(pastas)" = 0 ]; then break; fi
    sleep 0.05
done
echo "pasta: $(pastas)"
state >after
diff before during && diff before after && echo unchanged
"#;
    let Some(seen) = on_a_machine(&bench, script) else { return };
    assert_eq!(seen.out, "pasta: 1\npasta: 0\nunchanged\n", "{}", seen.err);
}

#[test]
fn without_root_there_is_a_way_out_too() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIP: only root can become another user");
    }
    let bench = Bench::new();
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(bench.path("nobody")).unwrap();
    fs::set_permissions(bench.path("nobody"), fs::Permissions::from_mode(0o777)).unwrap();
    // The program may lie where only root can go.
    fs::copy(PROGRAM, bench.path("talkpath")).unwrap();
    // Distributions let every user open /dev/net/tun.
    let script = r#"
mknod /mnt/tun c 10 200
chmod 666 /mnt/tun
mount --bind /mnt/tun /dev/net/tun
program=$PWD/talkpath
cd nobody
export XDG_RUNTIME_DIR=$PWD
setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \
    "$program" shell --path lan -- sh -c 'id -u; getent ahostsv4 call.example | head -1'
"#;
    let Some(seen) = on_a_machine(&bench, script) else { return };
    if seen.err.contains("user namespaces") {
        return eprintln!("SKIP: user namespaces are not allowed here: {}", seen.err);
    }
    assert!(seen.succeeds().out.starts_with("65534\n198.51.100.7 "), "{}{}", seen.out, seen.err);
}

#[test]
fn without_pasta_a_sentence_says_what_to_install_and_isolated_asks_for_none() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("run")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = bench.command(&[&["shell", "--path", "lan"], arguments].concat());
        command.env("XDG_RUNTIME_DIR", bench.path("run")).env("PATH", bench.path("run"));
        Seen::of(command.output().unwrap())
    };
    let seen = run(&["--", PROGRAM, "--version"]);
    if seen.code == Some(125) && seen.err.contains("help:") {
        return eprintln!("SKIP: no network namespaces here: {}", seen.err);
    }
    assert!(seen.succeeds().err.contains("apt install passt"), "{}", seen.err);
    let seen = run(&["--isolated", "--", PROGRAM, "--version"]);
    assert!(seen.succeeds().err.contains("nothing beyond the path (--isolated)"), "{}", seen.err);
}
