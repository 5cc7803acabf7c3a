//! How a run ends before its time, whom it needs for its hosts, and that it leaves nothing behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, ArenaError};
use talkpath_emu::{EmuArena, probe, replay};
use talkpath_measure::Fate;
use talkpath_units::{Duration, Instant, Seed};

use super::support::quiet::{skip, undisturbed};
use super::support::shared::plan;
use super::support::{alone, beside, count, run, scenario};

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    undisturbed(|| {
        let _beside = beside();
        let Ok(mut arena) = EmuArena::open() else {
            skip(format_args!("{:?}", probe().emulation));
            return;
        };
        let scenario = scenario(VICTIM);
        let interrupt = AtomicBool::new(false);
        let progress = |now: Instant| {
            if now >= Instant::from_millis(700) {
                interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let plan = plan(&interrupt, &progress);
        let Err(ArenaError::Interrupted { partial: Some(record) }) = arena.run(&scenario, plan) else {
            panic!("the run goes on");
        };
        assert!(!record.valid && record.window_end < Instant::from_secs(2));
        let delivered = count(&record.flows[0].forward, Fate::Delivered, None);
        assert!((25..60).contains(&delivered), "{delivered}");
        assert!(record.flows[0].forward.messages.iter().all(|row| row.fate != Fate::Missing));
        replay(&arena.take_arrival_log().unwrap(), &scenario).unwrap();
    });
}

/// The run waits for its threads, so what ends it has to end them.
#[test]
fn a_panic_of_the_caller_ends_the_run() {
    let _beside = beside();
    let Ok(mut arena) = EmuArena::open() else {
        skip(format_args!("{:?}", probe().emulation));
        return;
    };
    let scenario = scenario(VICTIM);
    let interrupt = AtomicBool::new(false);
    let run = || arena.run(&scenario, plan(&interrupt, &|_| panic!("the caller's"))).is_ok();
    let why = catch_unwind(AssertUnwindSafe(run)).expect_err("the panic goes on");
    assert_eq!(why.downcast_ref::<&str>(), Some(&"the caller's"));
}

#[test]
fn a_killed_run_leaves_no_process_device_or_namespace() {
    // Other runs' devices would be among the machine's.
    let _alone = alone();
    if let Err(why) = EmuArena::open() {
        skip(why);
        return;
    }
    let before = devices();
    let ours = format!("killed-by-{}", std::process::id());
    let mut moments = Seed::new(KILLS).stream("kill");
    for _ in 0..KILLS {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "life::a_victim", &ours, "--ignored", "--nocapture", "--test-threads", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before the namespaces to the middle of the run; a run begins some 20 ms after its process.
        let after = moments.span(Duration::from_millis(1), Duration::from_millis(160));
        std::thread::sleep(std::time::Duration::from_nanos(after.as_nanos()));
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    // A helper dies with its parent's thread, and the kernel takes namespaces away in its own time.
    for _ in 0..300 {
        if processes(&ours).is_empty() && devices() == before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let left = processes(&ours);
    assert!(left.is_empty(), "processes are left: {left:?}");
    assert_eq!(devices(), before, "devices are left");
    let named: Vec<_> = list("/run/netns").into_iter().filter(|name| name.contains("talkpath")).collect();
    assert!(named.is_empty(), "{named:?}");
}

/// What the kill test kills.
#[test]
#[ignore = "runs until it is killed"]
fn a_victim() {
    let interrupt = AtomicBool::new(false);
    EmuArena::default().run(&scenario(VICTIM), plan(&interrupt, &|_| {})).unwrap();
}

#[test]
fn without_root_a_user_namespace_does() {
    let _beside = beside();
    if !rustix::process::geteuid().is_root() {
        skip("the tests run without root already");
        return;
    }
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "life::a_guest", "--ignored", "--nocapture"])
        .output();
    let Ok(output) = status else {
        skip("no setpriv here to give up root with");
        return;
    };
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    eprintln!("{text}");
    if text.contains("SKIPPED") || !text.contains("running 1 test") {
        skip("as above");
        return;
    }
    assert!(output.status.success());
}

/// What [`without_root_a_user_namespace_does`] runs as nobody.
#[test]
#[ignore = "run by another test, as nobody"]
fn a_guest() {
    let Some(ran) = run(VICTIM_SHORT) else { return };
    assert!(!rustix::process::geteuid().is_root());
    assert_eq!(probe().emulation, Ok(talkpath_emu::Means::UserNamespace));
    assert!(
        ran.record.flows.iter().all(|flow| flow
            .forward
            .messages
            .iter()
            .all(|row| row.fate == Fate::Delivered))
    );
}

#[test]
fn what_the_machine_can_do_is_told() {
    let found = probe();
    eprintln!("{found:?}");
    assert!(!found.congestion_controls.is_empty() && !found.kernel.is_empty());
    assert_eq!(found.emulation.is_ok(), EmuArena::open().is_ok());
}

fn devices() -> Vec<String> {
    list("/sys/class/net")
}

fn list(directory: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// The processes with `word` in their command line.
fn processes(word: &str) -> Vec<String> {
    list("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|&byte| byte == 0).any(|argument| argument == word.as_bytes())
        })
        .collect()
}

const KILLS: u64 = 50;
const VICTIM: &str = r#"
    name = "victim"
    duration = "60 s"
    [path]
    up = { rate = "10 Mbps", delay = "5 ms" }
    down = { rate = "10 Mbps", delay = "5 ms" }
    [flow.call]
    transport = "udp"
    workload = { kind = "voice", codec = "g711", echo = true }
    due = "opening"
    [flow.upload]
    transport = "tcp"
    workload = { kind = "bulk" }
    "#;
const VICTIM_SHORT: &str = r#"
    name = "guest"
    duration = "1 s"
    [path]
    up = { rate = "10 Mbps", delay = "5 ms" }
    down = { rate = "10 Mbps", delay = "5 ms" }
    [flow.call]
    transport = "udp"
    workload = { kind = "voice", codec = "g711", echo = true }
    due = "opening"
    [flow.line]
    transport = { kind = "tcp-nodelay", cc = "cubic" }
    workload = { kind = "voice", codec = "g711", echo = true }
    due = "opening"
    "#;
