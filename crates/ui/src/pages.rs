//! The files of the window's own page, and secret paths of the pages of runs.
//!
//! A report has scripts of its own, and its text may be somebody else's. So it is served under a path that
//! nobody can guess, for one file of one run, in a sandbox of its own: its scripts see neither the token nor
//! this page, and reach no address.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::door::secret;

/// The policy of the window's own page: its own scripts, styles and requests, and nothing inline.
pub(crate) const OWN_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The policy of a page of a run: what it has in itself, and nothing from anywhere.
pub(crate) const RUN_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src data: blob:; media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; \
     sandbox allow-scripts allow-downloads";

/// The most secret paths at a time. We chose 64: a person has fewer tabs open.
const MAX_PATHS: usize = 64;

/// A file of the window's own page.
pub(crate) struct OwnFile {
    path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All of the page: it loads nothing else.
pub(crate) const OWN_FILES: &[OwnFile] = &[
    OwnFile { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("page/index.html") },
    OwnFile {
        path: "/style.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("page/style.css"),
    },
    OwnFile { path: "/window.js", content_type: SCRIPT, text: include_str!("page/window.js") },
    OwnFile { path: "/server.js", content_type: SCRIPT, text: include_str!("page/server.js") },
    OwnFile { path: "/elements.js", content_type: SCRIPT, text: include_str!("page/elements.js") },
    OwnFile { path: "/forms.js", content_type: SCRIPT, text: include_str!("page/forms.js") },
    OwnFile { path: "/jobs.js", content_type: SCRIPT, text: include_str!("page/jobs.js") },
    OwnFile { path: "/runs.js", content_type: SCRIPT, text: include_str!("page/runs.js") },
    OwnFile { path: "/scenario.js", content_type: SCRIPT, text: include_str!("page/scenario.js") },
];

/// Finds a file of the window's own page.
pub(crate) fn own_file(path: &str) -> Option<&'static OwnFile> {
    OWN_FILES.iter().find(|file| file.path == path)
}

/// A page that a secret path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunPage {
    /// The run directory, or `None` for a page beside the runs that compares two of them.
    pub(crate) run: Option<String>,
    pub(crate) file: String,
}

/// The secret paths.
#[derive(Default)]
pub(crate) struct SecretPaths(Mutex<VecDeque<(String, RunPage)>>);

impl SecretPaths {
    /// Returns the secret path of `page`. The oldest path is forgotten beyond a bound.
    ///
    /// # Errors
    /// Returns the error of the system if it has no random numbers.
    pub(crate) fn path_of(&self, page: RunPage) -> io::Result<String> {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let secret = match paths.iter().find(|(_, known)| *known == page) {
            Some((secret, _)) => secret.clone(),
            None => {
                let secret = secret()?;
                paths.push_back((secret.clone(), page));
                if paths.len() > MAX_PATHS {
                    paths.pop_front();
                }
                secret
            }
        };
        Ok(format!("/page/{secret}"))
    }

    pub(crate) fn find(&self, secret: &str) -> Option<RunPage> {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().find(|(known, _)| known == secret).map(|(_, page)| page.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_has_neither_inline_scripts_nor_foreign_addresses() {
        let whole: usize = OWN_FILES.iter().map(|file| file.text.len()).sum();
        assert!(whole < 300_000, "{whole} B");
        for file in OWN_FILES {
            let text = file.text;
            assert!(!text.contains("https://") && !text.contains("<style"), "{}", file.path);
            assert!(!text.contains("style=\"") && !text.contains("onclick="), "{}", file.path);
            assert!(!text.contains("innerHTML") && !text.contains("eval("), "{}", file.path);
        }
        assert!(!OWN_POLICY.contains("unsafe"));
        assert!(RUN_POLICY.contains("sandbox") && !RUN_POLICY.contains("allow-same-origin"));
    }

    #[test]
    fn a_secret_path_leads_to_one_file_and_the_oldest_is_forgotten() {
        let paths = SecretPaths::default();
        let page =
            |number: usize| RunPage { run: Some(format!("run-{number}")), file: "report.html".to_owned() };
        let first = paths.path_of(page(0)).unwrap();
        assert_eq!(paths.path_of(page(0)).unwrap(), first);
        let secret = first.strip_prefix("/page/").unwrap().to_owned();
        assert_eq!(paths.find(&secret), Some(page(0)));
        assert_eq!(paths.find("0"), None);
        for number in 1..=MAX_PATHS {
            paths.path_of(page(number)).unwrap();
        }
        assert_eq!(paths.find(&secret), None);
    }
}
