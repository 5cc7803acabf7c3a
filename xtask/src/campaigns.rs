//! Campaigns whose coordinator is killed again and again: one over namespaces, a job of `cargo xtask
//! nightly`, and that of scenarios/campaigns/columbia, a job of `cargo xtask weekly`.
//!
//! What comes out of columbia is judged by `xtask/judges/campaign.py` from what the report prints and from
//! the campaign's directory, and by the claims of the paper's study.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{UNAVAILABLE, exit_code_until};
use crate::judges::Judged;
use crate::namespaces;

/// Runs `scenarios/campaigns/columbia.toml` in the release build, kills its coordinator [`KILLS`] times
/// within the first [`KILLS_WITHIN`], lets it end, and has it judged.
pub(crate) fn columbia(root: &Path, deadline: Instant) -> Judged {
    let dir = root.join("target").join("campaigns").join("columbia");
    let _ = fs::remove_dir_all(&dir);
    let program = root.join("target").join("release").join("talkpath");
    let file = root.join("scenarios").join("campaigns").join("columbia.toml");
    let campaign = |what: &str| {
        let mut command = Command::new(&program);
        command.args(["campaign", what]).arg(&file).arg("--dir").arg(&dir).stdin(Stdio::null());
        command
    };
    // The times between kills differ, and are the same in each run of this job: the high bits of a linear
    // congruential generator (Knuth, MMIX).
    let mut state = 2004_u64;
    for made in 0..KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (state >> 33) as f64 / f64::from(1_u32 << 31);
        // From 0 to twice the mean time between kills.
        let until = Instant::now() + KILLS_WITHIN.mul_f64(2.0 * share / f64::from(KILLS));
        match exit_code_until(campaign("run").arg("--quiet").stdout(Stdio::null()), until) {
            Ok(None) => {}
            Ok(Some(0)) => {
                return Judged::Differs(format!(
                    "it ended after {made} of {KILLS} kills: they are to come while it measures"
                ));
            }
            Ok(Some(UNAVAILABLE)) => return Judged::Missing("the arena is not available here".to_owned()),
            Ok(Some(code)) => return Judged::Differs(format!("campaign run: exit code {code}")),
            Err(why) => return Judged::Differs(format!("campaign run: {why}")),
        }
    }
    match exit_code_until(campaign("run").args(["--quiet", "--strict"]), deadline) {
        Ok(Some(0)) => {}
        Ok(Some(UNAVAILABLE)) => return Judged::Missing("the arena is not available here".to_owned()),
        Ok(Some(code)) => return Judged::Differs(format!("campaign run --strict: exit code {code}")),
        Ok(None) => return Judged::Differs("it did not end within its time".to_owned()),
        Err(why) => return Judged::Differs(why),
    }
    let findings = match campaign("report").arg("--json").output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => return Judged::Differs(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(why) => return Judged::Differs(why.to_string()),
    };
    let path = dir.join("findings.json");
    if let Err(why) = fs::write(&path, findings) {
        return Judged::Differs(format!("{}: {why}", path.display()));
    }
    let judge = root.join("xtask").join("judges").join("campaign.py");
    match Command::new("python3").arg(judge).arg(&path).arg(&dir).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            println!("{text}");
            let closing = text.lines().last().unwrap_or("the judge said nothing").to_owned();
            if output.status.success() {
                by_claims(&program, &dir, &closing, deadline)
            } else {
                Judged::Differs(closing)
            }
        }
        Err(why) => Judged::Missing(format!("python3: {why}")),
    }
}

/// Chosen: one each 55 s on average.
const KILLS: u32 = 20;
/// Chosen: the campaign's five days of four minutes have not ended then.
const KILLS_WITHIN: Duration = Duration::from_secs(1_100);

/// Holds the claims of the paper's study against it as well.
fn by_claims(program: &Path, dir: &Path, closing: &str, deadline: Instant) -> Judged {
    let mut judge = Command::new(program);
    judge.args(["study", "judge", "zhang-schulzrinne-2004", "--campaign"]).arg(dir);
    match exit_code_until(&mut judge, deadline) {
        Ok(Some(0)) => Judged::Agrees(format!("{closing}; every verdict as expected")),
        Ok(Some(code)) => Judged::Differs(format!("study judge: exit code {code}: see the verdicts above")),
        Ok(None) => Judged::Differs("study judge did not end within its time".to_owned()),
        Err(why) => Judged::Differs(why),
    }
}

/// Kills the coordinator of a short campaign over namespaces, and what it measures: a test of the program
/// that takes too long for CI.
pub(crate) fn kills(root: &Path, deadline: Instant) -> Judged {
    namespaces::ignored_tests(
        root,
        &["campaign_kills::"],
        deadline,
        "everything planned is there once, or has its reason",
    )
}
