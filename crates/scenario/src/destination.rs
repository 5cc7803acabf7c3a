//! Where the records of a campaign are copied to: `s3://BUCKET/PREFIX` of a storage that speaks S3, or
//! `file:///FOLDER`, such as a mounted share.
//!
//! It holds no credentials: they come from the environment.

use core::fmt;

use talkpath_model::host_and_port;

use crate::quantity::{Problem, quote};

/// Where records are copied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A bucket of a storage that speaks S3.
    S3 {
        /// The bucket's name.
        bucket: String,
        /// What all keys begin with, without a slash at its ends; may be empty.
        prefix: String,
        /// Its `http://` or `https://` address, if it is not Amazon's.
        endpoint: Option<String>,
    },
    /// A folder, absolute.
    Folder(String),
}

impl Destination {
    /// What the keys `store` and `store_endpoint` say; of a mistake also its key.
    pub(crate) fn new(store: &str, endpoint: Option<String>) -> Result<Self, (&'static str, Problem)> {
        if let Some(folder) = store.strip_prefix("file://") {
            if endpoint.is_some() {
                return Err(("store_endpoint", Problem::new("found it for a folder, which has none")));
            }
            return if folder.starts_with('/') {
                Ok(Self::Folder(folder.to_owned()))
            } else {
                Err(expected(store))
            };
        }
        let Some(rest) = store.strip_prefix("s3://") else { return Err(expected(store)) };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains(['@', ':']) {
            let problem = Problem::new("found more than a bucket's name before the first slash");
            let help = "credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), an address is `store_endpoint`";
            return Err(("store", problem.with_help(help)));
        }
        if !is_bucket(bucket) {
            let message = format!(
                "found the bucket {}, expected 3 to 63 of a to z, 0 to 9, dot and hyphen",
                quote(bucket)
            );
            return Err(("store", Problem::new(message)));
        }
        let prefix = prefix.trim_matches('/');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=/".contains(c);
        let is_path = |part: &str| !part.is_empty() && !part.starts_with('.');
        let is_fit = prefix.chars().all(is_plain) && prefix.split('/').all(is_path);
        if !prefix.is_empty() && !is_fit {
            let message = format!(
                "found the prefix {}, expected names of letters, digits, `-`, `_`, `.` and `=` between single slashes",
                quote(prefix)
            );
            return Err(("store", Problem::new(message)));
        }
        Ok(Self::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned(), endpoint })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3 { bucket, prefix, .. } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix, .. } => write!(f, "s3://{bucket}/{prefix}"),
            Self::Folder(folder) => write!(f, "file://{folder}"),
        }
    }
}

/// The address of a storage, without a slash at its end.
pub(crate) fn endpoint(text: &str) -> Result<String, Problem> {
    let address = text.trim_end_matches('/');
    let host = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    let wrong = || Problem::new(format!("found {}, expected `https://HOST[:PORT]`", quote(text)));
    let host = host.ok_or_else(wrong)?;
    if host.contains('@') {
        let problem = Problem::new("found credentials in an address");
        let help = "they come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY";
        return Err(problem.with_help(help));
    }
    let (name, _) = host_and_port(host).map_err(Problem::new)?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c));
    // A URL has an IPv6 address in brackets.
    let is_bracketed = host.starts_with('[') || !name.contains(':');
    if is_name && is_bracketed { Ok(address.to_owned()) } else { Err(wrong()) }
}

/// The rules that every storage keeps: Amazon S3's for general purpose buckets, without the rarer ones.
fn is_bucket(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.chars().all(|c| is_end(c) || c == '.' || c == '-')
        && name.starts_with(is_end)
        && name.ends_with(is_end)
}

fn expected(store: &str) -> (&'static str, Problem) {
    let message = format!("found {}, expected `s3://BUCKET/PREFIX` or `file:///FOLDER`", quote(store));
    ("store", Problem::new(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_a_prefix_or_none() {
        let s3 = |store: &str| Destination::new(store, None).unwrap().to_string();
        assert_eq!(s3("s3://records"), "s3://records");
        assert_eq!(s3("s3://records/"), "s3://records");
        assert_eq!(s3("s3://records/lab/2026/"), "s3://records/lab/2026");
        assert_eq!(Destination::new("file:///mnt/x", None).unwrap().to_string(), "file:///mnt/x");
    }

    #[test]
    fn an_address_is_a_scheme_a_host_and_perhaps_a_port() {
        assert_eq!(endpoint("https://s3.example/").unwrap(), "https://s3.example");
        for whole in ["http://127.0.0.1:9000", "https://[2001:db8::1]:9000", "https://[2001:db8::1]"] {
            assert_eq!(endpoint(whole).unwrap(), whole);
        }
        for wrong in [
            "s3.example",
            "https://",
            "https://:9000",
            "https://s3.example:port",
            "https://s3.example/records",
            "https://s3.example?x",
            "https://2001:db8::1",
            "https://a:b@s3.example",
        ] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
