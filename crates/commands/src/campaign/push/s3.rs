//! A bucket of a storage that speaks S3, by the crate `object_store`.
//!
//! `object_store` signs, lists, retries and splits what is large. Its requests go out over [`ureq`], which
//! waits here, so that no more of an async runtime is built in than a timer on one thread. Certificates that
//! are trusted are the system's, or those of `AWS_CA_BUNDLE`.
//!
//! What is left out: the files in `~/.aws`, and the roles of EC2 instances. Credentials come from variables.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use http_body_util::BodyExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, BackoffConfig, GetOptions, ObjectStore, PutMultipartOptions, PutOptions,
    RetryConfig,
};
use talkpath_units::printable;
use tokio::runtime::{Builder, Runtime};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Timeout};

use super::Objects;
use crate::failure::Failure;

/// A bucket.
pub(super) struct S3 {
    store: AmazonS3,
    bucket: String,
    /// Where it is, in words for a person.
    place: String,
    /// Runs the timer of the retries.
    runtime: Runtime,
}

impl S3 {
    /// Nothing is sent yet. What an `endpoint` does not say comes from the environment.
    pub(super) fn new(bucket: &str, endpoint: Option<&str>) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if !CREDENTIALS.iter().any(|names| names.iter().all(|name| variable(name).is_some())) {
            return Err(Failure::Unavailable {
                what: format!("the environment has no credentials for the bucket {bucket}"),
                how:
                    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, if there is one)"
                        .to_owned(),
            });
        }
        let endpoint = endpoint
            .map(str::to_owned)
            .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
            .or_else(|| variable("AWS_ENDPOINT_URL"));
        let is_plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_allow_http(is_plain)
            .with_retry(retries())
            .with_http_connector(Connector(agent(is_plain)?));
        if let Some(endpoint) = &endpoint {
            builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
        }
        let wrong = |why: String| Failure::Usage(format!("the bucket {bucket}: {why}"));
        let store = builder.build().map_err(|why| wrong(why.to_string()))?;
        let runtime =
            Builder::new_current_thread().enable_time().build().map_err(|why| wrong(why.to_string()))?;
        let place = endpoint.unwrap_or_else(|| "Amazon S3".to_owned());
        Ok(Self { store, bucket: bucket.to_owned(), place, runtime })
    }

    /// What a person does about `error`.
    fn sentence(&self, error: &object_store::Error) -> String {
        let Self { bucket, place, .. } = self;
        let mut innermost = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(why) = inner.downcast_ref::<ureq::Error>() {
                return format!(
                    "{place} cannot be reached ({why}): check the network, and `store_endpoint` in the file"
                );
            }
            innermost = inner.to_string();
            cause = inner.source();
        }
        let code = innermost.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
        match code.map(|(code, _)| code) {
            Some("NoSuchBucket") => {
                format!("{place} has no bucket {bucket}: make it, or correct `store` in the file")
            }
            Some(
                code @ ("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken"),
            ) => {
                format!(
                    "{place} refuses the credentials ({code}): correct AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
                )
            }
            Some("AccessDenied") => format!(
                "{place} does not allow it: these credentials have to list, read and write the bucket {bucket}"
            ),
            Some(
                code @ ("AuthorizationHeaderMalformed"
                | "PermanentRedirect"
                | "IllegalLocationConstraintException"),
            ) => {
                format!("{place} has the bucket {bucket} in another region ({code}): set AWS_REGION to it")
            }
            _ if innermost.contains("incorrectly configured region") => {
                format!("{place} has the bucket {bucket} in another region: set AWS_REGION to it")
            }
            _ => {
                let words = innermost.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("{place}: {}", printable(&words, MAX_WORDS))
            }
        }
    }

    async fn put_parts(&self, key: &Key, file: &Path, attributes: Attributes) -> Result<(), String> {
        let failed = |why: object_store::Error| self.sentence(&why);
        let unread = |why: std::io::Error| super::unread(file, &why);
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let mut upload = self.store.put_multipart_opts(key, options).await.map_err(failed)?;
        let mut open = File::open(file).map_err(unread)?;
        let sent = loop {
            let mut part = Vec::new();
            match (&mut open).take(PART).read_to_end(&mut part) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(why) => break Err(unread(why)),
            }
            if let Err(why) = upload.put_part(part.into()).await {
                break Err(failed(why));
            }
        };
        if let Err(why) = sent {
            // Parts that stay because this fails, too, are no object; a rule of the bucket removes them.
            let _ = upload.abort().await;
            return Err(why);
        }
        upload.complete().await.map(drop).map_err(failed)
    }
}

impl Objects for S3 {
    fn list(&self, folder: &str) -> Result<BTreeMap<String, u64>, String> {
        let found = self.runtime.block_on(self.store.list(Some(&Key::from(folder))).try_collect::<Vec<_>>());
        let found = found.map_err(|why| self.sentence(&why))?;
        Ok(found.into_iter().map(|object| (object.location.to_string(), object.size)).collect())
    }

    fn sha256(&self, key: &str) -> Result<Option<String>, String> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = self.runtime.block_on(self.store.get_opts(&Key::from(key), options));
        let found = found.map_err(|why| self.sentence(&why))?;
        Ok(found.attributes.get(&Attribute::Metadata(SHA256.into())).map(|value| value.as_ref().to_owned()))
    }

    fn put(&self, key: &str, file: &Path, sha256: &str) -> Result<(), String> {
        let unread = |why: std::io::Error| super::unread(file, &why);
        let key = Key::from(key);
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(SHA256.into()), sha256.to_owned().into());
        if fs::metadata(file).map_err(unread)?.len() > PART {
            return self.runtime.block_on(self.put_parts(&key, file, attributes));
        }
        let content = fs::read(file).map_err(unread)?;
        let options = PutOptions { attributes, ..PutOptions::default() };
        let put = self.runtime.block_on(self.store.put_opts(&key, content.into(), options));
        put.map(drop).map_err(|why| self.sentence(&why))
    }
}

/// Hands out clients.
#[derive(Debug)]
struct Connector(Agent);

/// One HTTP client.
#[derive(Debug)]
struct Client(Agent);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Client(self.0.clone())))
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let answer = match parts.method.as_str() {
            "GET" | "HEAD" | "DELETE" if body.is_empty() => {
                self.0.run(ureq::http::Request::from_parts(parts, ()))
            }
            _ => self.0.run(ureq::http::Request::from_parts(parts, &body[..])),
        };
        let (parts, mut body) = answer.map_err(failed)?.into_parts();
        let body = body.with_config().limit(MAX_ANSWER).read_to_vec().map_err(failed)?;
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes::Bytes::from(body))))
    }
}

/// What may be tried again is of another kind than what may not.
fn failed(why: ureq::Error) -> HttpError {
    let kind = match &why {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => HttpErrorKind::Connect,
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::Io(why) if why.kind() == std::io::ErrorKind::ConnectionRefused => HttpErrorKind::Connect,
        ureq::Error::Io(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, why)
}

/// The client; over `http://` no certificate is needed.
fn agent(is_plain: bool) -> Result<Agent, Failure> {
    let roots = if is_plain { Vec::new() } else { certificates()? };
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&roots))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("talkpath/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(CONNECT_TIME))
        .timeout_connect(Some(CONNECT_TIME))
        .timeout_recv_response(Some(ANSWER_TIME))
        .timeout_recv_body(Some(ANSWER_TIME))
        .timeout_send_body(Some(SEND_TIME))
        .build();
    Ok(config.new_agent())
}

fn certificates() -> Result<Vec<ureq::tls::Certificate<'static>>, Failure> {
    let named = BUNDLE_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let file = match named {
        Some(file) => file,
        None => BUNDLES
            .iter()
            .find(|file| Path::new(file).exists())
            .map_or_else(String::new, |it| (*it).to_owned()),
    };
    let pem = fs::read(&file).unwrap_or_default();
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return Err(Failure::Unavailable {
            what: "found no certificates to trust, so https:// cannot be used".to_owned(),
            how: "install the package ca-certificates, or name a file of them in AWS_CA_BUNDLE".to_owned(),
        });
    }
    Ok(found)
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(200),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 4, retry_timeout: Duration::from_secs(30) }
}

/// Variables of AWS's tools that together are credentials: a key, the token of a pod's role, a container's.
const CREDENTIALS: [&[&str]; 4] = [
    &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"],
    &["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
    &["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"],
];
const BUNDLE_VARIABLES: [&str; 2] = ["AWS_CA_BUNDLE", "SSL_CERT_FILE"];
/// Where Debian, Fedora, SUSE and Alpine have the system's certificates.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The metadata of an object that has its SHA-256: an ETag is no checksum with every server and encryption.
const SHA256: &str = "sha256";
/// What is larger goes in parts of this size: 10,000 of them, S3's limit, are 320 GB. Chosen.
const PART: u64 = 32_000_000;
/// Chosen: far above the list of a thousand objects, which is S3's largest answer here.
const MAX_ANSWER: u64 = 16_000_000;
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Chosen: a busy server answers within.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// One part over 1 Mb/s.
const SEND_TIME: Duration = Duration::from_secs(300);
/// Characters of an answer that has no sentence of its own.
const MAX_WORDS: usize = 300;
