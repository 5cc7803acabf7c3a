//! Which program made a run, and on which machine.

use rustix::system::uname;
use talkpath_measure::summary::Provenance;

/// This program and this machine.
pub(crate) fn provenance() -> Provenance {
    let name = uname();
    let words = [name.sysname(), name.release(), name.machine()].map(|word| word.to_string_lossy());
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Empty outside a checkout: build.rs.
        revision: Some(env!("TALKPATH_REVISION").to_owned()).filter(|revision| !revision.is_empty()),
        kernel: words.join(" "),
        host: name.nodename().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_system_says() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let found = provenance();
        assert!(found.kernel.starts_with("Linux ") && found.kernel.contains(release.trim()), "{found:?}");
        assert!(found.revision.as_ref().is_none_or(|revision| revision.len() >= 12), "{found:?}");
    }
}
