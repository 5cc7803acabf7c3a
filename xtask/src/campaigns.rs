//! The campaign of scenarios/campaigns/columbia, with a coordinator that is killed again and again: a job of
//! `cargo xtask nightly` (its short form) and of `cargo xtask weekly`.
//!
//! What comes out is judged by `xtask/judges/campaign.py` from what the report prints and from the
//! journal.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::ci::{UNAVAILABLE, exit_code_until};

/// How it ended.
pub(crate) enum Ended {
    /// What the judge found.
    Agrees(String),
    /// What does not hold, or why it could not be run.
    Differs(String),
    /// What is missing here.
    Missing(String),
}

/// Runs `scenarios/campaigns/NAME.toml` in the release build, kills its coordinator `kills` times within
/// `within`, lets it end, and has it judged.
pub(crate) fn run(root: &Path, name: &str, kills: u32, within: Duration, deadline: Instant) -> Ended {
    let dir = root.join("target").join("campaigns").join(name);
    let _ = fs::remove_dir_all(&dir);
    let program = root.join("target").join("release").join("talkpath");
    let file = root.join("scenarios").join("campaigns").join(format!("{name}.toml"));
    let campaign = |what: &str| {
        let mut command = Command::new(&program);
        command.args(["campaign", what]).arg(&file).arg("--dir").arg(&dir).stdin(Stdio::null());
        command
    };
    // Intervals that differ, from a sequence that is the same each time: an LCG's high bits (Knuth, MMIX).
    let mut state = 2004_u64;
    for made in 0..kills {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (state >> 33) as f64 / f64::from(1_u32 << 31);
        // Between nothing and twice the mean.
        let until = Instant::now() + within.mul_f64(2.0 * share / f64::from(kills));
        match lives(campaign("run").stdout(Stdio::null()).spawn(), until) {
            Ok(None) => {}
            Ok(Some(0)) => {
                return Ended::Differs(format!("it ended after {made} of {kills} kills: more are to hit it"));
            }
            Ok(Some(code)) => return Ended::Differs(format!("campaign run: exit code {code}")),
            Err(why) => return Ended::Differs(format!("campaign run: {why}")),
        }
    }
    match exit_code_until(campaign("run").args(["--quiet", "--strict"]), deadline) {
        Ok(Some(0)) => {}
        Ok(Some(UNAVAILABLE)) => return Ended::Missing("the arena is not available here".to_owned()),
        Ok(Some(code)) => return Ended::Differs(format!("campaign run --strict: exit code {code}")),
        Ok(None) => return Ended::Differs("it did not end within its time".to_owned()),
        Err(why) => return Ended::Differs(why),
    }
    let findings = match campaign("report").arg("--json").output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => return Ended::Differs(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(why) => return Ended::Differs(why.to_string()),
    };
    let path = dir.join("findings.json");
    if let Err(why) = fs::write(&path, findings) {
        return Ended::Differs(format!("{}: {why}", path.display()));
    }
    let judge = root.join("xtask").join("judges").join("campaign.py");
    match Command::new("python3").arg(judge).arg(&path).arg(dir.join("journal.jsonl")).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            println!("{text}");
            let closing = text.lines().last().unwrap_or("the judge said nothing").to_owned();
            if output.status.success() { Ended::Agrees(closing) } else { Ended::Differs(closing) }
        }
        Err(why) => Ended::Missing(format!("python3: {why}")),
    }
}

/// Kills `child` at `until`; its exit code if it ended before.
fn lives(child: std::io::Result<Child>, until: Instant) -> std::io::Result<Option<i32>> {
    let mut child = child?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(-1)));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}
