//! The window of talkpath: a page on this host's loopback that starts the program, shows what it does, and
//! shows the runs of a folder.
//!
//! ```text
//! browser ─► server (bounds) ─► door (host, origin, token) ─► routes ─┬► tasks ─► words of a command line
//!    ▲                                                                ├► jobs ─► the program as a child
//!    └─ page/*.html, *.js, *.css                                      └► runs, files: the folder
//! ```
//!
//! - *task*: what a user can start on the page, with its fields (`tasks.rs`). The page makes its forms of
//!   the same table from which the command line is made.
//! - *job*: a child process: the program itself, with the command line that the page shows. A run that it
//!   makes is a run like any other.
//! - *ours*: a run directory that a window on this folder started. Only these are continued from the page.
//!
//! No figure is computed here: the page shows what the program prints and what summary.json holds.
//!
//! Begin to read with [`Window::open`] and `routes.rs`.

mod addresses;
mod door;
mod files;
mod jobs;
mod pages;
mod routes;
mod runs;
mod server;
mod tasks;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use talkpath_experiment::Error;
use talkpath_experiment::store::lock::{Lock, LockError};

use self::door::Door;
use self::files::{PRIVATE, write_private};
use self::jobs::Jobs;
use self::routes::Routes;
pub use self::server::Say;

/// The port of the page unless another is given: talkpath's default port and one. If it is taken, the system
/// chooses another.
pub const DEFAULT_PORT: u16 = 7161;
/// The file in the folder that leads a browser to the page. It holds the token: only its owner may read it.
const ENTRY: &str = "open-the-window.html";
/// The lock of the window, in the private folder.
const LOCK: &str = "lock";
/// The file with the address of the window that holds the lock.
const ADDRESS: &str = "address";

/// How a window is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on loopback. `None` takes [`DEFAULT_PORT`], or any if that is taken.
    pub port: Option<u16>,
    /// The folder of run directories.
    pub out: PathBuf,
    /// The program that is started as a child.
    pub program: PathBuf,
    /// The version of the program.
    pub version: &'static str,
    /// Quotes a word for a shell, for the commands that the page shows.
    pub quote: fn(&str) -> String,
}

/// Why a window cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The port is taken, or the system refuses it.
    #[error("cannot listen on 127.0.0.1:{port}: {why}")]
    Port {
        /// The port.
        port: u16,
        /// The error of the system.
        why: io::Error,
    },
    /// Another window is open on the same folder.
    #[error("a window is open on {} already: {address}", folder.display())]
    Second {
        /// The folder.
        folder: PathBuf,
        /// The address of the other window, or what is known of it.
        address: String,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] Error),
    /// The system has no random numbers or no thread for the window.
    #[error("cannot start the window: {0}")]
    System(io::Error),
}

/// An open window: it listens, and serves when [`Self::serve`] is called.
pub struct Window {
    listener: TcpListener,
    routes: Arc<Routes>,
    address: String,
    entry: PathBuf,
    /// Held until the window ends.
    _lock: Lock,
}

/// How a window ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// The commands that go on without the window.
    pub left: Vec<String>,
}

impl Window {
    /// Makes the folder if needed, takes its lock, and listens on loopback.
    ///
    /// # Errors
    /// Returns an error if another window holds the folder, the port is taken, or the folder cannot be
    /// written.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let out = prepare_folder(&options.out)?;
        let private = out.join(PRIVATE);
        let lock = match Lock::take(&private.join(LOCK)) {
            Ok(lock) => lock,
            Err(LockError::Busy) => {
                let address = std::fs::read_to_string(private.join(ADDRESS)).unwrap_or_default();
                return Err(OpenError::Second { folder: options.out.clone(), address });
            }
            Err(LockError::Io(why)) => return Err(Error::write(&private.join(LOCK), why).into()),
        };
        let listener = listen(options.port)?;
        let port = listener.local_addr().map_err(OpenError::System)?.port();
        let door = Door::new(port).map_err(OpenError::System)?;
        // The token is behind `#`: a browser sends it to no server, and the page's script takes it out of the
        // address.
        let address = format!("http://127.0.0.1:{port}/#{}", door.token());
        let entry = private.join(ENTRY);
        write_private(&private.join(ADDRESS), address.as_bytes())?;
        write_private(&entry, entry_page(&address).as_bytes())?;
        let jobs = Jobs::new(options.program.clone(), &out, options.quote);
        let routes = Arc::new(Routes::new(door, jobs, out, options.version));
        Ok(Self { listener, routes, address, entry, _lock: lock })
    }

    /// The address of the page, with the token.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A file that leads a browser to the page. The token is in no command line, which every user of this
    /// host could read.
    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// Serves until the user ends the window: on the page, by Ctrl-C or by SIGTERM. `say` prints a line for
    /// the user.
    ///
    /// The first Ctrl-C, while something runs, says what runs. The second one ends the window, and leaves
    /// what runs.
    ///
    /// # Errors
    /// Returns the error of the system if the server cannot begin.
    pub fn serve(self, say: Say) -> io::Result<Ended> {
        server::serve(self.listener, &self.routes, say)?;
        let left = self.routes.jobs().end_what_is_not_left();
        let _ = std::fs::remove_file(&self.entry);
        Ok(Ended { left })
    }
}

/// Makes the folder of runs and the private folder in it. Returns the folder without links in its path.
fn prepare_folder(out: &Path) -> Result<PathBuf, Error> {
    std::fs::create_dir_all(out).map_err(|why| Error::write(out, why))?;
    let out = out.canonicalize().map_err(|why| Error::write(out, why))?;
    files::make_private_folder(&out.join(PRIVATE))?;
    Ok(out)
}

fn listen(port: Option<u16>) -> Result<TcpListener, OpenError> {
    let on = |port: u16| {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let wanted = port.unwrap_or(DEFAULT_PORT);
    match (on(wanted), port) {
        (Ok(listener), _) => Ok(listener),
        (Err(why), Some(port)) => Err(OpenError::Port { port, why }),
        (Err(_), None) => on(0).map_err(|why| OpenError::Port { port: 0, why }),
    }
}

/// The file that a browser opens: it goes on to `address` at once.
fn entry_page(address: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>talkpath</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<a href=\"{address}\">talkpath</a>\n"
    )
}
