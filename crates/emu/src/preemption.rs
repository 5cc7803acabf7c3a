//! Finds out when this kernel takes the processor away from a thread in a system call, so that another thread
//! can run (kernel/Kconfig.preempt).
//!
//! A build names its model in `uname -v` as far as it has one; if the model can be changed (PREEMPT_DYNAMIC,
//! kernel-parameters.txt, `preempt=`), what was chosen is in debugfs or on the kernel's command line, and the
//! default in the kernel's configuration.

use std::fs;
use std::process::{Command, Stdio};

/// When a waiting thread takes the processor from a thread that is in a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// The waiting thread runs when the call is over.
    None,
    /// The waiting thread runs when the call comes to a place that checks for waiting threads.
    Voluntary,
    /// A real-time thread runs at once, and any other thread at the next tick.
    Lazy,
    /// The waiting thread runs at once.
    Full,
    /// The waiting thread runs at once, wherever the kernel is (PREEMPT_RT).
    RealTime,
}

/// The model of this kernel, and whether it can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptionModel {
    /// The model that the kernel uses now.
    pub kind: Preemption,
    /// True if another model can be chosen, at once or by a reboot.
    pub is_dynamic: bool,
}

/// Finds out the model of this kernel. `None` if no source says it.
pub(super) fn preemption() -> Option<PreemptionModel> {
    let uname = rustix::system::uname();
    model(
        &uname.version().to_string_lossy(),
        fs::read_to_string("/sys/kernel/debug/sched/preempt").ok().as_deref(),
        &fs::read_to_string("/proc/cmdline").unwrap_or_default(),
        || configuration(&uname.release().to_string_lossy()),
    )
}

/// Finds out the model from `uname -v`, the switch in debugfs, the kernel's command line and the kernel's
/// configuration.
fn model(
    version: &str,
    switch: Option<&str>,
    command_line: &str,
    configuration: impl FnOnce() -> Option<String>,
) -> Option<PreemptionModel> {
    let has = |word: &str| version.split_ascii_whitespace().any(|part| part == word);
    if has("PREEMPT_RT") {
        return Some(PreemptionModel { kind: Preemption::RealTime, is_dynamic: false });
    }
    let is_dynamic = has("PREEMPT_DYNAMIC");
    let chosen = switch
        .and_then(|text| text.split_once('(')?.1.split_once(')')?.0.into())
        .or_else(|| {
            command_line.split_ascii_whitespace().filter_map(|part| part.strip_prefix("preempt=")).next_back()
        })
        .filter(|_| is_dynamic)
        .and_then(|name| Some(BY_NAME.iter().find(|(known, _)| *known == name)?.1));
    let built = || {
        let configuration = configuration()?;
        let is_set = |option: &str| configuration.lines().any(|line| line.strip_suffix("=y") == Some(option));
        Some(BY_OPTION.iter().find(|(option, _)| is_set(option))?.1)
    };
    let kind = chosen.or_else(built).or_else(|| has("PREEMPT").then_some(Preemption::Full))?;
    Some(PreemptionModel { kind, is_dynamic })
}

/// Reads the configuration that the kernel was built with, from the file of the distribution or from the
/// kernel itself.
fn configuration(release: &str) -> Option<String> {
    let files = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    files.iter().find_map(|path| fs::read_to_string(path).ok()).or_else(|| {
        // The program zcat unpacks the file, because a library for this one file is not worth it.
        let child = Command::new("zcat").arg("/proc/config.gz").stderr(Stdio::null()).output().ok()?;
        child.status.success().then(|| String::from_utf8_lossy(&child.stdout).into_owned())
    })
}

/// The models by their names in `preempt=`.
const BY_NAME: [(&str, Preemption); 4] = [
    ("none", Preemption::None),
    ("voluntary", Preemption::Voluntary),
    ("lazy", Preemption::Lazy),
    ("full", Preemption::Full),
];
/// The models by their options in the configuration, of which one is set.
const BY_OPTION: [(&str, Preemption); 5] = [
    ("CONFIG_PREEMPT_RT", Preemption::RealTime),
    ("CONFIG_PREEMPT_NONE", Preemption::None),
    ("CONFIG_PREEMPT_VOLUNTARY", Preemption::Voluntary),
    ("CONFIG_PREEMPT_LAZY", Preemption::Lazy),
    ("CONFIG_PREEMPT", Preemption::Full),
];

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIC: &str = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)";

    fn kind(version: &str, switch: Option<&str>, command_line: &str, option: &str) -> Option<Preemption> {
        let configuration = format!("CONFIG_PREEMPT_BUILD=y\n{option}=y\n# CONFIG_PREEMPT_RT is not set\n");
        model(version, switch, command_line, || Some(configuration)).map(|model| model.kind)
    }

    #[test]
    fn what_was_chosen_at_run_time_counts_before_the_command_line_and_the_build() {
        let at = |switch, line| kind(DYNAMIC, switch, line, "CONFIG_PREEMPT_VOLUNTARY");
        assert_eq!(at(Some("none voluntary full (lazy)\n"), "preempt=none"), Some(Preemption::Lazy));
        assert_eq!(
            at(None, "quiet preempt=none preempt=full\n"),
            Some(Preemption::Full),
            "the last one holds"
        );
        assert_eq!(at(None, "quiet\n"), Some(Preemption::Voluntary));
        assert_eq!(at(None, "preempt=sometimes"), Some(Preemption::Voluntary));
    }

    #[test]
    fn a_kernel_that_cannot_be_told_is_what_it_was_built_as() {
        let debian = "#1 SMP Debian 5.10.1-1 (2020-12-14)";
        assert_eq!(kind(debian, None, "preempt=full", "CONFIG_PREEMPT_NONE"), Some(Preemption::None));
        assert_eq!(kind("#1 SMP PREEMPT_RT", None, "", "CONFIG_PREEMPT_RT"), Some(Preemption::RealTime));
        assert_eq!(kind("#1 SMP PREEMPT", None, "", "CONFIG_PREEMPT_LAZY"), Some(Preemption::Lazy));
    }

    #[test]
    fn without_a_configuration_only_what_the_version_says_is_known() {
        let known = |version| model(version, None, "", || None).map(|model| model.kind);
        assert_eq!(known("#1 SMP PREEMPT Tue"), Some(Preemption::Full));
        assert_eq!(known("#1 SMP Tue"), None);
        assert_eq!(known(DYNAMIC), None);
        let chosen = model(DYNAMIC, Some("(none) voluntary full"), "", || None);
        assert_eq!(chosen, Some(PreemptionModel { kind: Preemption::None, is_dynamic: true }));
    }
}
