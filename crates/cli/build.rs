//! Tells the program which Git revision it is built from, for `provenance` in summary.json.

use std::process::Command;

fn main() {
    // Asked when it runs: a checkout that was moved is where it is now.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&here).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    // A package that was unpacked in somebody else's repository has nothing to do with its revisions.
    let is_ours = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let revision =
        is_ours.then(|| git(&["describe", "--always", "--dirty", "--abbrev=12", "--match="])).flatten();
    println!("cargo::rustc-env=TALKPATH_REVISION={}", revision.unwrap_or_default());
    // Every change of the sources, and every commit.
    println!("cargo::rerun-if-changed=..");
    if let Some(log) =
        is_ours.then(|| git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])).flatten()
    {
        println!("cargo::rerun-if-changed={log}");
    }
}
