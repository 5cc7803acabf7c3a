//! Metrics over HTTP/1.1: one page, GET and HEAD, one request a connection, one connection at a time.
//!
//! It is meant for one scraper on the same host. A request has a second to come whole and 8 KiB at most, and
//! its answer a second to go;
//! nothing that it says but method, path and `Accept` is looked at. The head is read by `httparse`, the
//! parser of hyper: what is not our field is not written here.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::openmetrics::Format;

/// Binds `address`; only a loopback one unless `open`.
///
/// # Errors
/// In words for a person, and whether the command line is wrong.
pub(crate) fn bind(address: SocketAddr, open: bool) -> Result<TcpListener, (String, bool)> {
    if !open && !address.ip().to_canonical().is_loopback() {
        let why = format!(
            "--metrics {address} can be read by whoever reaches it; use 127.0.0.1:{}, or add --metrics-open to mean it",
            address.port()
        );
        return Err((why, true));
    }
    let listener = TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|why| (format!("cannot listen on {address} for metrics: {why}"), false))?;
    Ok(listener)
}

/// Answers until `stop`; `render` gives the metrics of now.
pub(crate) fn serve(listener: &TcpListener, stop: &AtomicBool, render: &dyn Fn(Format) -> String) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // A scraper that goes away, or says nothing, is its own affair.
            Ok((stream, _)) => drop(answer(stream, render)),
            // Also if there is no descriptor left for now.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

fn answer(mut stream: TcpStream, render: &dyn Fn(Format) -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let deadline = Instant::now() + PATIENCE;
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
    write_by(&mut stream, &reply, Instant::now() + PATIENCE)
}

/// Writes all until `deadline`. With a time limit for each write alone, a reader that takes a little now and
/// then would hold up everybody else.
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

/// The answer to the request that `head` begins with; `None` if it is not whole yet.
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

fn page(status: &str, content_type: &str, body: &str, has_body: bool) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nAllow: GET, HEAD\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    let body = if has_body { body } else { "" };
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Where scrapers look (Prometheus' default `metrics_path`).
const PATH: &str = "/metrics";
const TEXT: &str = "text/plain; charset=utf-8";
/// Chosen: Prometheus sends six headers of 300 B together.
const MAX_HEADERS: usize = 32;
pub(crate) const MAX_HEAD: usize = 8 << 10;
/// How long a request may take to come, and an answer to go (chosen: a scraper on this host takes a
/// millisecond).
const PATIENCE: Duration = Duration::from_secs(1);
/// How often is looked whether it shall stop.
const LOOK: Duration = Duration::from_millis(50);

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
    fn whatever_else_comes_is_refused_without_the_metrics() {
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
    fn who_reads_slowly_is_left_after_a_second() {
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
        assert!(took < PATIENCE * 5, "{took:?}");
    }

    #[test]
    fn only_loopback_is_listened_on_unless_it_is_meant() {
        let (why, is_usage) = bind("0.0.0.0:0".parse().unwrap(), false).unwrap_err();
        assert!(is_usage && why.contains("--metrics-open"), "{why}");
        assert!(bind("127.0.0.1:0".parse().unwrap(), false).is_ok());
        assert!(bind("[::ffff:127.0.0.1]:0".parse().unwrap(), false).is_ok());
    }
}
