//! A judge for tests in real time, for the real arenas' tests and the program's.

#![allow(unreachable_pub, reason = "a module of several test programs")]

use std::any::Any;
use std::fmt::Display;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a test in real time is tried on a machine that does not let it run.
const ATTEMPTS: u32 = 5;

/// What a run says where the kernel has no right to a congestion control but for root
/// (net.ipv4.tcp_allowed_congestion_control): nothing that a test without root can change.
const FOR_ROOT: &str = "to root alone";

/// Judges `test` by an attempt in which the machine let it run.
///
/// A test in real time shares its machine. Where it fails although a thread beside it always woke in time, it
/// has failed. Where it fails and that thread woke late, the attempt says nothing, and the next one judges,
/// once the machine has been calm for a moment. After [`ATTEMPTS`] of those it is skipped, with the reason.
pub fn undisturbed(test: impl Fn()) {
    let mut last = String::new();
    for attempt in 1..=ATTEMPTS {
        let (result, beats) = with_heartbeat(&test);
        let Err(failure) = result else { return };
        last = message(&*failure);
        if last.contains(FOR_ROOT) {
            skip(format_args!("without root: {last}"));
            return;
        }
        if beats.are_in_time() {
            resume_unwind(failure);
        }
        eprintln!("attempt {attempt} says nothing, the machine did not let it run: {beats:?}");
        if attempt < ATTEMPTS {
            wait_for_calm();
        }
    }
    skip(format_args!(
        "this machine did not let it run in {ATTEMPTS} attempts, of which the last said: {last}"
    ));
}

/// Says that the running test judged nothing, and why. It is written past the test program's capture, which
/// swallows what a test that passes prints.
pub fn skip(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {why}\n", thread.name().unwrap_or("a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The beginning of what a test that failed said.
fn message(failure: &(dyn Any + Send)) -> String {
    let text = failure.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or("nothing");
    text.chars().take(200).collect()
}

/// The wake-ups of a thread that slept two milliseconds at a time beside a test.
#[derive(Debug, Default)]
struct Beats {
    all: u32,
    /// Those that came more than half a millisecond late.
    late: u32,
    latest: Duration,
}

impl Beats {
    const PERIOD: Duration = Duration::from_millis(2);

    fn add(&mut self, lateness: Duration) {
        self.all += 1;
        self.late += u32::from(lateness > Duration::from_micros(500));
        self.latest = self.latest.max(lateness);
    }

    /// None came later than half of the 5 ms at which a run itself says that a host was late, and 99 of 100
    /// came within half a millisecond.
    fn are_in_time(&self) -> bool {
        self.latest <= Duration::from_micros(2500) && self.late <= self.all / 100
    }
}

/// Waits until a thread that sleeps has woken in time for as long as a test may take, or for [`PATIENCE`].
fn wait_for_calm() {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let (_, beats) = with_heartbeat(&|| std::thread::sleep(CALM));
        if beats.are_in_time() {
            return;
        }
    }
}

/// Chosen: most tests in real time take a second or two.
const CALM: Duration = Duration::from_secs(1);
/// Chosen: a compiler's burst is over by then, and a machine that is always loaded is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of `test`, and the wake-ups beside it.
fn with_heartbeat(test: &impl Fn()) -> (std::thread::Result<()>, Beats) {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let heart = scope.spawn(|| {
            let mut beats = Beats::default();
            while !ended.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(Beats::PERIOD);
                beats.add(before.elapsed().saturating_sub(Beats::PERIOD));
            }
            beats
        });
        let result = catch_unwind(AssertUnwindSafe(test));
        ended.store(true, Ordering::Relaxed);
        (result, heart.join().unwrap())
    })
}
