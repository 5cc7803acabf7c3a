//! The program and the machine that make a run.

use rustix::system::uname;
use talkpath_measure::summary::Provenance;

/// Returns the version of this program and the names of this machine. `revision` is the Git revision that the
/// program was built from, if it is known.
pub fn provenance(revision: Option<String>) -> Provenance {
    let system = uname();
    let kernel = [system.sysname(), system.release(), system.machine()].map(|word| word.to_string_lossy());
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision,
        kernel: kernel.join(" "),
        host: system.nodename().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_release_in_proc() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let found = provenance(None);
        assert!(found.kernel.starts_with("Linux ") && found.kernel.contains(release.trim()), "{found:?}");
    }
}
