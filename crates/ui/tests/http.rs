//! Attacks on the window over its socket: who is refused, and what is bounded.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use talkpath_ui::{OpenError, Options, Window};
use tempfile::TempDir;

/// A window on an empty folder, whose program does nothing.
struct Open {
    folder: TempDir,
    port: u16,
    token: String,
    server: Option<JoinHandle<()>>,
}

fn options(folder: &Path) -> Options {
    let program = PathBuf::from("/bin/true");
    Options { port: None, out: folder.join("runs"), program, version: "0", quote: str::to_owned }
}

impl Open {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let window = Window::open(&options(folder.path())).unwrap();
        let (host, token) = window.address().strip_prefix("http://").unwrap().split_once("/#").unwrap();
        let port = host.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
        let token = token.to_owned();
        let server = std::thread::spawn(move || {
            window.serve(Box::new(|_| ())).unwrap();
        });
        Self { folder, port, token, server: Some(server) }
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends `head` and `body`, and returns the status and the whole answer.
    fn send(&self, head: &str, body: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        let length = body.len();
        let text = format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        // Whoever is refused early may not read the body.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("no status: {answer:?}")), answer)
    }

    /// Asks as the page does.
    fn ask(&self, path: &str, body: &str) -> (u16, String) {
        let Self { port, token, .. } = self;
        let head = format!(
            "POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin"
        );
        self.send(&head, body.as_bytes())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (status, _) = self.ask("end", r#"{ "cancel": true }"#);
        if status == 200 {
            let _ = self.server.take().unwrap().join();
        }
    }
}

#[test]
fn a_request_without_the_token_learns_nothing_and_starts_nothing() {
    let open = Open::new();
    let port = open.port;
    for path in ["state", "tasks", "files", "studies", "unknown"] {
        let (status, answer) = open.send(&format!("GET /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}"), b"");
        assert_eq!(status, 401, "{answer}");
        assert!(!answer.contains("runs"), "{answer}");
    }
    let wrong = "0".repeat(32);
    let head = format!("POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {wrong}");
    assert_eq!(open.send(&head, br#"{"task":"compare","values":{}}"#).0, 401);
    // The page itself holds no secret.
    let (status, page) = open.send(&format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}"), b"");
    assert!(status == 200 && !page.contains(&open.token), "{page}");
    assert_eq!(open.ask("runs", "{}").0, 200);
}

#[test]
fn a_foreign_host_name_and_a_foreign_origin_are_refused_even_with_the_token() {
    let open = Open::new();
    let (port, token) = (open.port, &open.token);
    let with = |lines: &str| {
        open.send(&format!("GET /api/state HTTP/1.1\r\nAuthorization: Bearer {token}\r\n{lines}"), b"").0
    };
    assert_eq!(with(&format!("Host: localhost:{port}")), 200);
    assert_eq!(with(&format!("Host: evil.example:{port}")), 421);
    assert_eq!(with("Host: 127.0.0.1"), 421);
    assert_eq!(with(&format!("Host: 127.0.0.1:{port}\r\nOrigin: http://evil.example")), 403);
    assert_eq!(with(&format!("Host: 127.0.0.1:{port}\r\nOrigin: null")), 403);
    assert_eq!(with(&format!("Host: 127.0.0.1:{port}\r\nSec-Fetch-Site: cross-site")), 403);
    // A rebound name does not get the page either.
    assert_eq!(open.send(&format!("GET / HTTP/1.1\r\nHost: evil.example:{port}"), b"").0, 421);
}

#[test]
fn no_answer_may_be_read_by_other_origins_and_no_inline_script_runs() {
    let open = Open::new();
    for path in ["/", "/window.js", "/page/0", "/api/state"] {
        let answer = open.send(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}", open.port), b"").1;
        let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
        assert!(!head.contains("access-control"), "{head}");
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(line), "{path}: {line}: {head}");
        }
        assert!(!head.contains("unsafe"), "{head}");
    }
}

#[test]
fn the_log_of_what_came_is_empty_at_first_and_the_page_learns_the_hosts_addresses() {
    let open = Open::new();
    let get = |path: &str| {
        let Open { port, token, .. } = &open;
        let host = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}");
        open.send(&format!("GET /api/{path} HTTP/1.1\r\n{host}"), b"")
    };
    let (status, answer) = get("received");
    assert!(status == 200 && answer.ends_with(r#"{"text":""}"#), "{answer}");
    let folder = open.runs().join("received");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("receive-log.txt"), "Protocol: UDP\n").unwrap();
    assert!(get("received").1.ends_with(r#"{"text":"Protocol: UDP\n"}"#));
    let (status, answer) = get("state");
    assert!(status == 200 && answer.contains(r#""addresses":["#), "{answer}");
}

#[test]
fn a_path_out_of_the_folder_is_refused_in_every_request() {
    let open = Open::new();
    let victim = open.folder.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    for file in ["scenario.toml", "summary.json", "report.html"] {
        std::fs::write(victim.join(file), "secret").unwrap();
    }
    std::os::unix::fs::symlink(&victim, open.runs().join("link")).unwrap();
    for name in ["../victim", "link", "..", victim.to_str().unwrap()] {
        for (path, body) in [
            ("run", format!(r#"{{"name":{name:?}}}"#)),
            ("text", format!(r#"{{"name":{name:?},"which":"scenario"}}"#)),
            ("play", format!(r#"{{"name":{name:?}}}"#)),
            ("resume", format!(r#"{{"name":{name:?}}}"#)),
            ("delete", format!(r#"{{"name":{name:?}}}"#)),
            ("beside", format!(r#"{{"names":[{name:?},{name:?}]}}"#)),
            ("given", format!(r#"{{"name":{name:?}}}"#)),
            ("scenario", format!(r#"{{"name":"../{name}","text":"x"}}"#)),
            ("key", format!(r#"{{"name":"../{name}"}}"#)),
            ("jobs", format!(r#"{{"task":"send","values":{{"to":"h","file":{name:?}}}}}"#)),
        ] {
            let (status, answer) = open.ask(path, &body);
            assert_eq!(status, 422, "{path} {body}: {answer}");
            assert!(!answer.contains("secret"), "{answer}");
        }
    }
    let (port, token) = (open.port, &open.token);
    let head = format!(
        "POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nX-File-Name: ../../x"
    );
    assert_eq!(open.send(&head, b"x").0, 422);
    assert!(victim.join("report.html").exists() && !open.folder.path().join("x").exists());
}

#[test]
fn only_a_run_that_a_window_on_the_folder_started_goes_on() {
    let open = Open::new();
    let foreign = open.runs().join("foreign");
    std::fs::create_dir_all(foreign.join("parts")).unwrap();
    std::fs::write(foreign.join("scenario.toml"), "").unwrap();
    std::fs::write(foreign.join("parts").join("plan.json"), r#"{"to":"evil.example"}"#).unwrap();
    let (status, answer) = open.ask("resume", r#"{"name":"foreign"}"#);
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("somebody else's") && answer.contains("run --resume"), "{answer}");
    std::fs::write(open.runs().join(".talkpath-ui/started.jsonl"), "{\"name\":\"foreign\",\"to\":null}\n")
        .unwrap();
    assert_eq!(open.ask("resume", r#"{"name":"foreign"}"#).0, 200);
}

#[test]
fn a_request_is_bounded_in_size_and_connections_in_number() {
    let open = Open::new();
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(open.ask("check", &long).0, 413);
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nA: {}", open.port, "x".repeat(32 << 10));
    assert_eq!(open.send(&head, b"").0, 431);
    let mut held: Vec<TcpStream> = (0..64).map(|_| open.connect()).collect();
    // Each connection that is held has begun a head, so the server has taken it.
    for stream in &mut held {
        stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let (status, _) = open.send(&format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}", open.port), b"");
    assert_eq!(status, 503);
    drop(held);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(open.ask("runs", "{}").0, 200);
}

#[test]
fn a_head_that_does_not_come_in_ten_seconds_is_not_waited_for() {
    let open = Open::new();
    let mut slow = open.connect();
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let begun = std::time::Instant::now();
    let _ = slow.read_to_end(&mut Vec::new());
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(5) && took < Duration::from_secs(19), "{took:?}");
}

#[test]
fn a_second_window_on_the_folder_is_told_of_the_first_and_a_taken_port_is_named() {
    let open = Open::new();
    let second = Window::open(&options(open.folder.path()));
    let Err(OpenError::Second { address, .. }) = second else { panic!("a second window is open") };
    assert!(address.contains(&format!(":{}/#", open.port)), "{address}");
    let other = tempfile::tempdir().unwrap();
    let taken = Window::open(&Options { port: Some(open.port), ..options(other.path()) });
    assert!(matches!(taken, Err(OpenError::Port { port, .. }) if port == open.port));
}

#[test]
fn the_address_is_in_files_that_its_owner_alone_reads() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let window = Window::open(&options(folder.path())).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(window.entry()), 0o600);
    assert_eq!(mode(window.entry().parent().unwrap()), 0o700);
    assert!(std::fs::read_to_string(window.entry()).unwrap().contains(window.address()));
}
