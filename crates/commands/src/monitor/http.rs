//! Serves the metrics over HTTP/1.1, for one scraper on the same host.
//!
//! The server has one page, understands GET and HEAD, answers one request for each connection, and serves 16
//! connections at a time. A request must come within a second and have at most 8 KiB. Its answer must be
//! taken within another second. Of the request only the method, the path and the header `Accept` matter. The
//! request is parsed by `httparse`, the parser of hyper.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::openmetrics::Format;

/// The path of the metrics: the default of Prometheus for `metrics_path`.
const PATH: &str = "/metrics";
const TEXT: &str = "text/plain; charset=utf-8";
/// The largest number of headers of a request. We chose 32 because Prometheus sends six.
const MAX_HEADERS: usize = 32;
/// The largest request, in bytes. We chose 8 KiB because Prometheus sends 300 B.
pub(crate) const MAX_HEAD: usize = 8 << 10;
/// The timeout of a request, and that of its answer. We chose 1 s because a scraper on this host needs a
/// millisecond.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest number of connections that are served at a time. We chose 16, so that a scraper beside ten
/// clients that send nothing does not wait, and a flood of them takes no more than 16 threads.
const MAX_CONNECTIONS: usize = 16;
/// The wait until one of these connections may have ended.
const BUSY_INTERVAL: Duration = Duration::from_millis(5);
/// How often the server checks whether it shall stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Why the metrics cannot be served at an address, in words for a person.
#[derive(Debug)]
pub(crate) enum BindError {
    /// The address is not a loopback one, and the user did not ask for that.
    NotLoopback(String),
    /// The system refuses the address.
    Unavailable(String),
}

/// Listens on `address`. An address that is not a loopback one is refused unless `is_open`.
pub(crate) fn bind(address: SocketAddr, is_open: bool) -> Result<TcpListener, BindError> {
    if !is_open && !address.ip().to_canonical().is_loopback() {
        return Err(BindError::NotLoopback(format!(
            "--metrics {address} can be read by whoever reaches it; use 127.0.0.1:{}, or add --metrics-open to mean it",
            address.port()
        )));
    }
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|why| BindError::Unavailable(format!("cannot listen on {address} for metrics: {why}")))
}

/// Answers requests until `stop` becomes true. `render` writes the current metrics.
pub(crate) fn serve(listener: &TcpListener, stop: &AtomicBool, render: &(dyn Fn(Format) -> String + Sync)) {
    let busy = AtomicUsize::new(0);
    let busy = &busy;
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            if busy.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                std::thread::sleep(BUSY_INTERVAL);
                continue;
            }
            // No scraper is waiting, or the process has no descriptor left at the moment.
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(CHECK_INTERVAL);
                continue;
            };
            busy.fetch_add(1, Ordering::Relaxed);
            let serve = move || {
                // If a scraper goes away or sends nothing, the server has no work left with it.
                drop(answer(stream, render));
                busy.fetch_sub(1, Ordering::Relaxed);
            };
            // Without a thread the connection is closed, and the scraper tries again.
            if std::thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                busy.fetch_sub(1, Ordering::Relaxed);
            }
        }
    });
}

/// Reads a request from `stream` and answers it.
fn answer(mut stream: TcpStream, render: &dyn Fn(Format) -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let mut head = Vec::new();
    let reply = loop {
        if let Some(reply) = reply(&head, render) {
            break reply;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break page("408 Request Timeout", TEXT, "the request did not come within a second\n", true);
        }
        stream.set_read_timeout(Some(left))?;
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => head.extend_from_slice(&buffer[..count]),
            Err(why) if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(why) => return Err(why),
        }
    };
    write_by(&mut stream, &reply, Instant::now() + REQUEST_TIMEOUT)
}

/// Writes all of `bytes` before `deadline`. A time limit for each write would not be enough: a reader that
/// takes a few bytes from time to time could keep the server busy for ever.
fn write_by(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Makes the answer to the request at the beginning of `head`, or returns `None` if the request is not
/// complete yet.
pub(crate) fn reply(head: &[u8], render: &dyn Fn(Format) -> String) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < MAX_HEAD => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let long = "the request is longer than any scraper's\n";
            return Some(page("431 Request Header Fields Too Large", TEXT, long, true));
        }
        Err(_) => return Some(page("400 Bad Request", TEXT, "this is not HTTP\n", true)),
    }
    let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Some(page("405 Method Not Allowed", TEXT, "only GET and HEAD\n", true)),
    };
    if path.split('?').next() != Some(PATH) {
        return Some(page("404 Not Found", TEXT, "the metrics are at /metrics\n", has_body));
    }
    let accepts = |header: &httparse::Header<'_>| {
        header.name.eq_ignore_ascii_case("accept")
            && String::from_utf8_lossy(header.value).contains("application/openmetrics-text")
    };
    let format = if request.headers.iter().any(accepts) { Format::OpenMetrics } else { Format::Text };
    Some(page("200 OK", format.content_type(), &render(format), has_body))
}

/// Writes an HTTP answer. The answer to HEAD has no body, but the length of the body.
fn page(status: &str, content_type: &str, body: &str, has_body: bool) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nAllow: GET, HEAD\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    let body = if has_body { body } else { "" };
    [head.as_bytes(), body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(head: &str) -> Option<String> {
        let render = |format: Format| format!("{format:?}\n");
        reply(head.as_bytes(), &render).map(|reply| String::from_utf8(reply).unwrap())
    }

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        let plain = answered("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(plain.starts_with("HTTP/1.1 200 OK\r\n") && plain.ends_with("\r\n\r\nText\n"), "{plain}");
        let open = "GET /metrics?x=1 HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
        let open = answered(open).unwrap();
        assert!(
            open.contains("Content-Type: application/openmetrics-text;") && open.ends_with("OpenMetrics\n")
        );
        let head = answered("HEAD /metrics HTTP/1.1\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn any_other_request_is_refused_without_the_metrics() {
        assert_eq!(answered("GET /metrics HTTP/1.1\r\nHost: a\r\n"), None, "not whole yet");
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "x".repeat(MAX_HEAD));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("GET /metrics/../x HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("\0\0\r\n\r\n", "400"),
            (long.as_str(), "431"),
            (many.as_str(), "431"),
        ] {
            let answer = answered(request).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
            assert!(!answer.ends_with("Text\n"));
        }
    }

    #[test]
    fn a_slow_reader_is_cut_off_after_a_second() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut scraper = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        scraper.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let (stream, _) = listener.accept().unwrap();
        let is_over = AtomicBool::new(false);
        let took = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Reads 256 KiB every 50 ms, so that each write makes progress: the whole takes 13 s.
                let mut some = vec![0; 256 << 10];
                while !is_over.load(Ordering::Relaxed) {
                    let _ = scraper.read(&mut some);
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let begun = Instant::now();
            assert!(answer(stream, &|_| "x".repeat(64 << 20)).is_err());
            is_over.store(true, Ordering::Relaxed);
            begun.elapsed()
        });
        assert!(took < REQUEST_TIMEOUT * 5, "{took:?}");
    }

    #[test]
    fn a_scraper_is_answered_at_once_beside_clients_that_send_nothing() {
        let listener = bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &stop, &|_| "figures\n".to_owned()));
            let _silent: Vec<_> =
                (0..MAX_CONNECTIONS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
            let begun = Instant::now();
            let mut scraper = TcpStream::connect(address).unwrap();
            scraper.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            scraper.read_to_string(&mut text).unwrap();
            stop.store(true, Ordering::Relaxed);
            assert!(text.ends_with("figures\n"), "{text}");
            // One after the other, the others would take a second each.
            assert!(begun.elapsed() < REQUEST_TIMEOUT * 5, "{:?}", begun.elapsed());
        });
    }

    #[test]
    fn only_loopback_is_listened_on_unless_it_is_meant() {
        let refused = bind("0.0.0.0:0".parse().unwrap(), false);
        assert!(matches!(refused, Err(BindError::NotLoopback(why)) if why.contains("--metrics-open")));
        assert!(bind("127.0.0.1:0".parse().unwrap(), false).is_ok());
        assert!(bind("[::ffff:127.0.0.1]:0".parse().unwrap(), false).is_ok());
    }
}
