//! The limit of file descriptors of this process, and the errors when no descriptor is left.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, which the administrator sets (setrlimit(2)). The
/// usual soft limit of 1024 is for programs that use select(2), which this program does not. If the call
/// fails, the old limit stays.
pub fn raise_descriptor_limit() {
    raise_to(u64::MAX);
}

/// Raises the soft limit of open files to `wanted`, or to the hard limit if that is less. It never lowers the
/// limit.
pub fn raise_to(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < wanted) {
        // If this fails, opening a descriptor past the limit reports the error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// The number of descriptors that this process may have.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns true if a call failed because no descriptor was left, or no memory for one. The same call fails
/// again until something else is closed (accept(2), open(2)).
pub fn are_exhausted(error: &io::Error) -> bool {
    shortage(error).is_some() || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

/// The limit that a call met when no descriptor was left, and how to raise it. `None` for other errors.
pub fn shortage(error: &io::Error) -> Option<(String, String)> {
    match error.raw_os_error() {
        Some(libc::EMFILE) => Some((
            format!("this process may have {} file descriptors, and that is too few", limit()),
            "raise the limit of open files: `ulimit -n 1024`, in limits.conf `nofile`, of a service `LimitNOFILE=`"
                .to_owned(),
        )),
        Some(libc::ENFILE) => Some((
            "this system has no file descriptor left".to_owned(),
            "close other programs, or raise the system's limit of open files: `sysctl fs.file-max`".to_owned(),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_names_the_limit_that_was_met_and_other_errors_name_none() {
        let (what, how) = shortage(&io::Error::from_raw_os_error(libc::EMFILE)).unwrap();
        assert!(what.contains(&limit().to_string()) && how.contains("ulimit -n"), "{what}; {how}");
        let (what, how) = shortage(&io::Error::from_raw_os_error(libc::ENFILE)).unwrap();
        assert!(what.contains("system") && how.contains("fs.file-max"), "{what}; {how}");
        let refused = io::Error::from_raw_os_error(libc::ECONNABORTED);
        assert!(shortage(&refused).is_none() && !are_exhausted(&refused));
        assert!(are_exhausted(&io::Error::from_raw_os_error(libc::ENOBUFS)));
    }

    #[test]
    fn the_limit_is_never_lowered() {
        let before = limit();
        raise_to(1);
        assert_eq!(limit(), before);
    }
}
