//! Kernels that refuse socket options which a run can do without, as old and trimmed ones and sandboxes do:
//! a library that is loaded before the C library refuses them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, Seen, Served, calls, first_line};
use crate::quiet::skip;

/// Refuses the options of sockets that stand in REFUSED, each as ` LEVEL/NAME `, and the messages that are
/// sent with an option in REFUSED_MESSAGES. Each refused message has a line in the file `refusals`.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*next_setsockopt)(int, int, int, const void *, socklen_t);
typedef ssize_t (*next_sendmsg)(int, const struct msghdr *, int);

static int is_in(const char *variable, int level, int name) {
    char option[32];
    const char *refused = getenv(variable);
    snprintf(option, sizeof option, " %d/%d ", level, name);
    return refused && strstr(refused, option);
}

int setsockopt(int socket, int level, int name, const void *value, socklen_t length) {
    if (is_in("REFUSED", level, name)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return ((next_setsockopt)dlsym(RTLD_NEXT, "setsockopt"))(socket, level, name, value, length);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    struct msghdr *header = (struct msghdr *)message;
    for (struct cmsghdr *data = CMSG_FIRSTHDR(header); data; data = CMSG_NXTHDR(header, data)) {
        if (is_in("REFUSED_MESSAGES", data->cmsg_level, data->cmsg_type)) {
            FILE *log = fopen("refusals", "a");
            if (log) {
                fprintf(log, "%d/%d\n", data->cmsg_level, data->cmsg_type);
                fclose(log);
            }
            errno = EIO;
            return -1;
        }
    }
    return ((next_sendmsg)dlsym(RTLD_NEXT, "sendmsg"))(socket, message, flags);
}
"#;

/// The file in which the library notes the messages that it refuses.
pub(crate) const REFUSALS: &str = "refusals";

/// UDP_SEGMENT of udp(7), by which a train of messages leaves at once.
const TRAINS: &str = " 17/103 ";

/// Options of socket(7), ip(7) and ipv6(7), by their numbers in Linux.
const OPTIONS: [(&str, &str); 7] = [
    ("SO_TIMESTAMPNS", "1/35"),
    ("IP_RECVTOS", "0/13"),
    ("IP_RECVTTL", "0/12"),
    ("IP_PKTINFO", "0/8"),
    ("IPV6_RECVTCLASS", "41/66"),
    ("IPV6_RECVHOPLIMIT", "41/51"),
    ("IPV6_RECVPKTINFO", "41/49"),
];

/// Makes the library that refuses in the folder of `bench`. `None` where there is no C compiler.
fn library(bench: &Bench) -> Option<PathBuf> {
    let source = bench.file("refuse.c", LIBRARY);
    let library = bench.path("refuse.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    if compile.output().is_ok_and(|output| output.status.success()) {
        return Some(library);
    }
    skip("no C compiler for the library that refuses socket options");
    None
}

/// Makes `command` run on a kernel that refuses every option which a run can do without. Without a C
/// compiler it stays as it is.
pub(crate) fn without_options(bench: &Bench, command: &mut Command) {
    if let Some(library) = library(bench) {
        command.env("LD_PRELOAD", library).env("REFUSED", numbers(OPTIONS.iter()));
    }
}

/// Makes `command` run on a kernel that refuses trains of messages. Each refusal has a line in the file
/// [`REFUSALS`].
pub(crate) fn without_trains(bench: &Bench, command: &mut Command) {
    if let Some(library) = library(bench) {
        command.env("LD_PRELOAD", library).env("REFUSED_MESSAGES", TRAINS);
    }
}

/// A bench with the library; `None` where there is no C compiler.
fn bench() -> Option<Bench> {
    let bench = Bench::new();
    library(&bench)?;
    let flows = [
        ("udp", "{ kind = \"udp\", ecn = true }\ndscp = \"EF\""),
        ("quic", "\"quic\""),
        ("dccp", "\"dccp-ccid2\""),
        ("tcp", "\"tcp-nodelay\""),
    ];
    bench.file("calls.toml", calls("1 s", &flows));
    Some(bench)
}

/// The program with these options refused.
fn refusing(bench: &Bench, refused: &str, arguments: &[&str]) -> Command {
    let mut command = bench.command(arguments);
    command.env("LD_PRELOAD", bench.path("refuse.so")).env("REFUSED", refused);
    command
}

fn numbers<'a>(options: impl Iterator<Item = &'a (&'a str, &'a str)>) -> String {
    options.map(|(_, numbers)| format!(" {numbers} ")).collect()
}

/// The flows of a run between two programs of such a kernel, with what it said.
fn run(bench: &Bench, refused: &str, bind: &str) -> (Value, Seen) {
    let served = Served::of(refusing(bench, refused, &["serve", "--open", "--bind", bind]));
    let arguments = ["run", "calls.toml", "--to", &served.address, "--json=runs", "--out", "runs"];
    let seen = Seen::of(refusing(bench, refused, &arguments).output().unwrap());
    let _ = fs::remove_dir_all(bench.path("runs"));
    (seen.succeeds().summary()["runs"][0]["flows"].take(), seen)
}

#[test]
fn a_kernel_without_an_option_serves_and_measures_and_each_host_names_the_option() {
    let Some(bench) = bench() else { return };
    for (name, number) in OPTIONS {
        let bind = if number.starts_with("41/") { "[::1]:0" } else { "127.0.0.1:0" };
        let (flows, seen) = run(&bench, &format!(" {number} "), bind);
        for flow in ["udp", "quic", "dccp", "tcp"] {
            assert!(flows[flow]["received"].as_u64().unwrap() >= 40, "{name}, {flow}: {}", flows[flow]);
        }
        // Without the address that a datagram came to, nothing is lost here.
        for host in ["this host's", "the far host's"] {
            let line =
                format!("{host} kernel does not take the socket option {name} (Protocol not available");
            assert_eq!(seen.err.contains(&line), !name.contains("PKTINFO"), "{line} in {}", seen.err);
        }
    }
}

#[test]
fn what_a_kernel_does_not_report_is_null_and_never_zero() {
    let Some(bench) = bench() else { return };
    let (flows, _) = run(&bench, &numbers(OPTIONS.iter()), "127.0.0.1:0");
    let udp = &flows["udp"];
    for pointer in [
        "/ip/forward/dscp",
        "/ip/forward/ecn",
        "/ip/forward/ttl_min",
        "/ip/return/dscp",
        "/ip/return/ttl_max",
        "/ecn/marked_forward",
        "/ecn/marked_return",
    ] {
        assert!(udp.pointer(pointer).unwrap().is_null(), "{pointer}: {udp}");
    }
    assert_eq!((&udp["received"], &udp["ip"]["dscp"]), (&50.into(), &"EF".into()));
    // A kernel that has them all says what it saw.
    let (flows, seen) = run(&bench, "", "127.0.0.1:0");
    assert_eq!(flows["udp"]["ip"]["forward"]["dscp"]["EF"], 50, "{}", flows["udp"]);
    assert!(!seen.err.contains("socket option"), "{}", seen.err);
}

#[test]
fn a_kernel_that_refuses_trains_of_messages_sends_each_of_them_alone() {
    let Some(bench) = bench() else { return };
    let served = Served::start(&bench, &["--open"]);
    let burst = ["burst", "--to", &served.address, "--count", "2000", "--size", "500", "--json=runs"];
    let mut burst = refusing(&bench, "", &burst);
    let seen = Seen::of(burst.env("REFUSED_MESSAGES", TRAINS).output().unwrap());
    let flow = seen.succeeds().summary()["runs"][0]["flows"]["transfer"].take();
    assert_eq!((&flow["sent"], &flow["refused"]), (&2000.into(), &0.into()), "{flow}");
    assert!(flow["received"].as_u64().unwrap() > 1500, "{flow}");
    // After the first refusal it tries no other train.
    assert_eq!(fs::read_to_string(bench.path(REFUSALS)).unwrap(), "17/103\n");
}

#[test]
fn stamp_and_its_reflector_name_the_options_that_their_kernel_refuses() {
    let Some(bench) = bench() else { return };
    let mut reflector =
        refusing(&bench, &numbers(OPTIONS.iter()), &["stamp", "--reflect", "--bind", "127.0.0.1:0"]);
    let mut reflector = reflector.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let line = first_line(reflector.stdout.as_mut().unwrap());
    let to = line.strip_prefix("reflecting on ").unwrap();
    let send = ["stamp", "--to", to, "--count", "5", "--interval", "5ms"];
    let seen = Seen::of(refusing(&bench, &numbers(OPTIONS.iter()), &send).output().unwrap());
    kill_process(Pid::from_child(&reflector), Signal::INT).unwrap();
    let far = Seen::of_child(reflector);
    for seen in [&seen, &far] {
        let line = "warning: this host's kernel does not take the socket option SO_TIMESTAMPNS";
        assert!(seen.err.contains(line), "{}", seen.err);
    }
    assert!(seen.succeeds().out.contains("5 sent, 5 received"), "{}", seen.out);
}

#[test]
fn an_emulated_run_and_doctor_say_what_the_kernel_does_not_report() {
    let Some(bench) = bench() else { return };
    let refused = numbers(OPTIONS.iter());
    let doctor = Seen::of(refusing(&bench, &refused, &["doctor"]).output().unwrap());
    for line in [
        "kernel stamps    not here: SO_TIMESTAMPNS: Protocol not available",
        "IP headers       not here: IP_RECVTOS",
    ] {
        assert!(doctor.succeeds().out.contains(line), "{}", doctor.out);
    }
    let arguments = ["run", "calls.toml", "--arena", "emu", "--json=runs"];
    let mut emulated = refusing(&bench, &refused, &arguments);
    let seen = Seen::of(emulated.stderr(Stdio::piped()).output().unwrap());
    if seen.code == Some(3) {
        return skip(format_args!("the emulated arena is not available here: {}", seen.err));
    }
    let flows = seen.succeeds().summary()["runs"][0]["flows"].take();
    assert!(flows["udp"]["received"].as_u64().unwrap() >= 40, "{}", flows["udp"]);
    assert!(
        seen.err.contains("emu: this host's kernel does not take the socket option IP_RECVTOS"),
        "{}",
        seen.err
    );
}
