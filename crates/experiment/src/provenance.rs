//! Which program made a run, and on which machine.

use rustix::system::uname;
use talkpath_measure::summary::Provenance;

/// The program, built from `revision` if that is known, and this machine.
pub fn provenance(revision: Option<String>) -> Provenance {
    let name = uname();
    let words = [name.sysname(), name.release(), name.machine()].map(|word| word.to_string_lossy());
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision,
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
        let found = provenance(None);
        assert!(found.kernel.starts_with("Linux ") && found.kernel.contains(release.trim()), "{found:?}");
    }
}
