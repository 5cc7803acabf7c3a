//! The HTTP server: hyper on one thread of tokio, with bounds on connections, sizes and times.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::routes::Routes;

/// The most connections at a time, and so the most requests. A browser opens six.
pub(crate) const MAX_CONNECTIONS: usize = 64;
/// How long the head of a request may take, and how long a connection may rest.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a connection lives. A browser opens another one. It bounds a slow upload and a slow reader.
const CONNECTION_TIME: Duration = Duration::from_secs(600);
/// The largest head of a request, B. A browser sends 1 kB. hyper wants 8 KiB at least.
const MAX_HEAD: usize = 16 << 10;
/// How long the server rests when the system gives it no connection.
const REST: Duration = Duration::from_millis(100);
/// How long the server goes on after its end, so that the page that ended it has its answer.
const LAST_ANSWERS: Duration = Duration::from_millis(250);
/// The answer to one connection too many.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Prints a line for the user.
pub type Say = Box<dyn Fn(&str) + Send>;

/// Serves until the user ends the window.
///
/// # Errors
/// Returns the error of the system if the server cannot begin.
pub(crate) fn serve(listener: TcpListener, routes: &Arc<Routes>, say: Say) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(16).build()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let interrupts = signal(SignalKind::interrupt())?;
        let terminations = signal(SignalKind::terminate())?;
        tokio::spawn(accept(listener, Arc::clone(routes)));
        tokio::spawn(end_on_interrupt(interrupts, Arc::clone(routes), say));
        tokio::spawn(end_on_termination(terminations, Arc::clone(routes)));
        routes.ended().await;
        sleep(LAST_ANSWERS).await;
        Ok(())
    });
    // A request that waits for a child is not waited for.
    runtime.shutdown_background();
    served
}

/// Takes connections for ever.
async fn accept(listener: tokio::net::TcpListener, routes: Arc<Routes>) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => begin(stream, &routes, &connections),
            Err(_) => sleep(REST).await,
        }
    }
}

/// The first Ctrl-C says what runs. The second one, or the first if nothing runs, ends the window.
async fn end_on_interrupt(mut interrupts: Signal, routes: Arc<Routes>, say: Say) {
    let mut was_asked = false;
    while interrupts.recv().await.is_some() {
        let running = routes.jobs().running();
        if running.is_empty() || was_asked {
            routes.end();
            continue;
        }
        was_asked = true;
        say(&format!(
            "still running:\n  {}\nCtrl-C again ends this window and leaves runs running (a far end ends with it); the page can \
             cancel them",
            running.join("\n  ")
        ));
    }
}

async fn end_on_termination(mut terminations: Signal, routes: Arc<Routes>) {
    if terminations.recv().await.is_some() {
        routes.end();
    }
}

/// Serves one connection, if there is room for it.
fn begin(stream: TcpStream, routes: &Arc<Routes>, connections: &Arc<Semaphore>) {
    let Ok(permit) = Arc::clone(connections).try_acquire_owned() else {
        let _ = stream.try_write(BUSY);
        return;
    };
    let routes = Arc::clone(routes);
    tokio::spawn(async move {
        let service = service_fn(move |request| {
            let routes = Arc::clone(&routes);
            async move { Ok::<_, Infallible>(routes.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        // Whoever goes away, or sends what is no HTTP, has no answer.
        let _ = timeout(CONNECTION_TIME, connection).await;
        drop(permit);
    });
}
