//! Tests of the program that need network namespaces and take too long for CI: jobs of `cargo xtask nightly`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::command::{cargo, exit_code_until};
use crate::judges::Judged;

/// The tables of paths with every transport, and of them the nightly and the weekly one.
const TABLES: &str = "paths::table::";
const TABLE: &str = "paths::table::over_each_";
const LONG_TABLE: &str = "paths::table::over_paths_that_change_";

/// Live runs over paths that are not kind, whose routers are namespaces with nftables.
pub(crate) fn hostile_paths(root: &Path, deadline: Instant) -> Judged {
    if let Err(why) = has_nftables(deadline) {
        return Judged::Missing(why);
    }
    let agrees = "each path has the outcome and the sentence that it should";
    // The table alone: which address of a name answers first is a matter of 250 ms (RFC 8305 §5).
    let others = ignored_tests(root, &["paths::", "--skip", TABLES], deadline, agrees);
    if !matches!(others, Judged::Agrees(_)) {
        return others;
    }
    ignored_tests(root, &[TABLE], deadline, agrees)
}

/// Live runs over paths that change late, or for long.
pub(crate) fn long_paths(root: &Path, deadline: Instant) -> Judged {
    if let Err(why) = has_nftables(deadline) {
        return Judged::Missing(why);
    }
    ignored_tests(root, &[LONG_TABLE], deadline, "each path has the outcome and the sentence that it should")
}

/// Runs the ignored tests of the program that `choice` chooses, as the test's own arguments; `agrees` says
/// what it means if they pass.
pub(crate) fn ignored_tests(root: &Path, choice: &[&str], deadline: Instant, agrees: &str) -> Judged {
    // Such a test passes where there are none, and says on standard error that it was skipped.
    if let Err(why) = are_allowed() {
        return Judged::Missing(why);
    }
    let mut test =
        cargo(root, &["test", "-p", "talkpath", "--test", "program", "--", "--ignored", "--nocapture"]);
    match exit_code_until(test.args(choice), deadline) {
        Ok(Some(0)) => Judged::Agrees(agrees.to_owned()),
        Ok(Some(code)) => Judged::Differs(format!("exit code {code}")),
        Ok(None) => Judged::Differs("it did not end within its time".to_owned()),
        Err(why) => Judged::Differs(why),
    }
}

/// Whether this machine allows network namespaces.
///
/// # Errors
/// What is missing.
pub(crate) fn are_allowed() -> Result<(), String> {
    let name = format!("talkpath-nightly-{}", std::process::id());
    let netns = |what: &str| Command::new("ip").args(["netns", what, &name]).stderr(Stdio::null()).status();
    if !netns("add").is_ok_and(|status| status.success()) {
        return Err("no network namespaces here: it takes root and iproute2".to_owned());
    }
    // What stays behind is an empty namespace.
    let _ = netns("del");
    Ok(())
}

/// Whether nft is here, installed if that is allowed, and works.
///
/// # Errors
/// What is missing.
fn has_nftables(deadline: Instant) -> Result<(), String> {
    let works = || {
        let version =
            Command::new("nft").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    if works() {
        return Ok(());
    }
    let get = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-o", "Acquire::Retries=3", "-qq"])
            .args(words);
        exit_code_until(command.stdin(Stdio::null()).stdout(Stdio::null()), deadline)
    };
    // Without root, or elsewhere than on Debian, these fail, and the answer is below.
    let _ = get(&["update"]);
    let _ = get(&["install", "-y", "--no-install-recommends", "nftables"]);
    if works() { Ok(()) } else { Err("no nft: apt-get install nftables".to_owned()) }
}
