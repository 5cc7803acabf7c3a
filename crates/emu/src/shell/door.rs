//! The door to the far end of a path: a Unix socket in a directory that only this user can enter.
//!
//! ```text
//!  DIRECTORY (mode 0700)
//!   NAME.lock    locked by the shell that made the path, as long as it lives
//!   NAME.sock    its socket
//!
//! guest ── connect ──► door: is it the same user (SO_PEERCRED)? ── the descriptors of the second host ──►
//! guest
//! ```
//!
//! The connection stays open as long as both live, so that the guest learns of the end of the path. The
//! guest sends one byte on it once its command is *settled*: a server that waits for packets, or a shell,
//! which nobody waits for.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::geteuid;
use rustix::time::Timespec;
use talkpath_kernel::host::fork;

use super::entry::HostEntry;

/// The name of a pair: 1 to 64 letters, digits, `-`, `_` and `.`, of which the first is no point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairName(String);

/// The door of a path.
pub struct Door {
    directory: PathBuf,
    name: PairName,
    listener: UnixListener,
    /// Locked as long as this process lives.
    lock: File,
    stop: Arc<AtomicBool>,
    counts: Arc<GuestCounts>,
    serving: Option<JoinHandle<()>>,
}

/// The numbers of guests since the door was opened.
#[derive(Debug, Default)]
struct GuestCounts {
    joined: AtomicUsize,
    /// Those whose command is settled, or who have gone.
    settled: AtomicUsize,
}

/// A shell that has joined the far end of a path.
#[derive(Debug)]
pub struct Guest {
    entry: HostEntry,
    connection: UnixStream,
}

/// The reason why a door cannot be made or entered.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Another shell has made a path of this name, and is still there.
    #[error("another shell has made the path of the pair {0} already")]
    Taken(PairName),
    /// The directory is not only this user's.
    #[error("{} {what}", path.display())]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The path was made by another user, or the socket leads nowhere.
    #[error("the socket of the pair {0} belongs to another user")]
    OtherUser(PairName),
    /// The system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl PairName {
    /// Reads a name.
    ///
    /// # Errors
    /// Returns what a name is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=64).contains(&text.len()) && text.bytes().all(is_part) && !text.starts_with('.') {
            Ok(Self(text.to_owned()))
        } else {
            Err("expected a name of 1 to 64 letters, digits, -, _ and points, such as call".to_owned())
        }
    }

    fn file(&self, directory: &Path, ending: &str) -> PathBuf {
        directory.join(format!("{}.{ending}", self.0))
    }
}

impl fmt::Display for PairName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Door {
    /// Makes the door of the pair `name` in `directory`, which is made if it is not there. Nobody is let in
    /// yet.
    ///
    /// # Errors
    /// Returns [`DoorError`] if the name is taken, or if the directory cannot be used.
    pub fn make(directory: &Path, name: &PairName) -> Result<Self, DoorError> {
        make_private(directory)?;
        let lock = lock(directory, name)?;
        let path = name.file(directory, "sock");
        // What an earlier shell left that was killed. Nobody else makes it as long as the lock is ours.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            name: name.clone(),
            listener,
            lock,
            stop: Arc::default(),
            counts: Arc::default(),
            serving: None,
        })
    }

    /// Lets guests in to the host of `entry`, until the door is dropped.
    pub(super) fn open(&mut self, entry: HostEntry) -> io::Result<()> {
        let (listener, stop) = (self.listener.try_clone()?, Arc::clone(&self.stop));
        let counts = Arc::clone(&self.counts);
        let serving = thread::Builder::new().name("door".to_owned()).spawn(move || {
            serve(&listener, &entry, &counts, &stop);
        })?;
        self.serving = Some(serving);
        Ok(())
    }

    /// Waits for the guests that come as soon as the door is open, until their commands are settled. Returns
    /// false if one was not settled after [`LONGEST_SETTLING`].
    pub(super) fn await_guests(&self) -> bool {
        let begun = Instant::now();
        loop {
            let joined = self.counts.joined.load(Ordering::Acquire);
            let waits_for_guests = if joined == 0 {
                begun.elapsed() < LONGEST_JOINING
            } else {
                self.counts.settled.load(Ordering::Acquire) < joined
            };
            if !waits_for_guests {
                return true;
            }
            if begun.elapsed() > LONGEST_SETTLING {
                return false;
            }
            thread::sleep(SETTLING_LOOK);
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
        // The socket goes first: as long as the lock is there nobody makes another of this name.
        let _ = fs::remove_file(self.name.file(&self.directory, "sock"));
        let _ = fs::remove_file(self.name.file(&self.directory, "lock"));
        let _ = self.lock.unlock();
    }
}

impl Guest {
    /// Joins the pair `name` of `directory`. `None` if nobody has made its path yet.
    ///
    /// # Errors
    /// Returns [`DoorError`] if the directory or the socket belongs to somebody else.
    pub fn join(directory: &Path, name: &PairName) -> Result<Option<Self>, DoorError> {
        make_private(directory)?;
        let connection = match UnixStream::connect(name.file(directory, "sock")) {
            Ok(connection) => connection,
            Err(error) if is_nobody_there(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if socket_peercred(&connection).map_err(io::Error::from)?.uid != geteuid() {
            return Err(DoorError::OtherUser(name.clone()));
        }
        let (mut message, mut descriptors) = ([0], Vec::new());
        match fork::receive_descriptors(connection.as_fd(), &mut message, &mut descriptors) {
            Ok(1) if message == [WELCOME] => {
                Ok(HostEntry::from_descriptors(descriptors).map(|entry| Self { entry, connection }))
            }
            // The path has ended meanwhile.
            _ => Ok(None),
        }
    }

    /// The entry of the far host.
    pub const fn entry(&self) -> &HostEntry {
        &self.entry
    }

    /// Tells the door that the command is settled.
    pub fn say_settled(&self) {
        // A path that is over is noticed by `is_path_over`.
        let _ = rustix::net::send(&self.connection, &[SETTLED], SendFlags::NOSIGNAL);
    }

    /// Returns true once the path is over, because the shell that made it has ended.
    pub fn is_path_over(&self) -> bool {
        let mut byte = [0_u8; 1];
        !matches!(
            rustix::net::recv(&self.connection, &mut byte[..], RecvFlags::DONTWAIT),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
        )
    }
}

/// A guest with whom the connection is open.
struct JoinedGuest {
    connection: UnixStream,
    is_settled: bool,
}

/// Gives the descriptors of `entry` to each guest of this user, until `stop`.
fn serve(listener: &UnixListener, entry: &HostEntry, counts: &GuestCounts, stop: &AtomicBool) {
    let mut guests: Vec<JoinedGuest> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
        fds.extend(guests.iter().map(|guest| PollFd::new(&guest.connection, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&LOOK));
        guests.retain_mut(|guest| {
            let mut byte = [0_u8; 1];
            let (is_gone, is_settled) =
                match rustix::net::recv(&guest.connection, &mut byte[..], RecvFlags::DONTWAIT) {
                    Ok((0, _)) => (true, true),
                    Ok(_) => (false, true),
                    Err(_) => (false, false),
                };
            if is_settled && !guest.is_settled {
                guest.is_settled = true;
                counts.settled.fetch_add(1, Ordering::Release);
            }
            !is_gone
        });
        let Ok((guest, _)) = listener.accept() else { continue };
        let is_ours = socket_peercred(&guest).is_ok_and(|peer| peer.uid == geteuid());
        if !is_ours || guests.len() >= MOST_GUESTS {
            continue;
        }
        let sent = entry
            .descriptors()
            .and_then(|descriptors| fork::send_descriptors(guest.as_fd(), &[WELCOME], &descriptors));
        if sent.is_ok() {
            guests.push(JoinedGuest { connection: guest, is_settled: false });
            counts.joined.fetch_add(1, Ordering::Release);
        }
    }
}

/// Makes `directory` if it is not there, and checks that only this user can enter it.
fn make_private(directory: &Path) -> Result<(), DoorError> {
    let error = |what| Err(DoorError::Unsafe { path: directory.to_path_buf(), what });
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why.into()),
        _ => {}
    }
    // A link is not followed.
    let found = fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        return error("is no directory");
    }
    if found.uid() != geteuid().as_raw() {
        return error("belongs to another user");
    }
    if found.mode() & 0o077 != 0 {
        return error("can be entered by other users: `chmod 700` it");
    }
    Ok(())
}

/// Locks the pair `name`. The file may be removed between its opening and its locking by the shell that held
/// the lock before, so the lock counts only if the file is still there.
fn lock(directory: &Path, name: &PairName) -> Result<File, DoorError> {
    let path = name.file(directory, "lock");
    for _ in 0..MOST_TRIES {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DoorError::Taken(name.clone())),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let (ours, there) = (file.metadata()?, fs::metadata(&path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
    Err(DoorError::Taken(name.clone()))
}

fn is_nobody_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The byte that comes with the descriptors.
const WELCOME: u8 = b'W';
/// The byte by which a guest says that its command is settled.
const SETTLED: u8 = b'S';
/// How long a near end waits for guests. We chose 100 ms because a shell that waits for a path looks for it
/// each 20 ms.
const LONGEST_JOINING: Duration = Duration::from_millis(100);
/// How long a near end waits for the commands of its guests: a little longer than a launcher looks for the
/// socket of a server.
const LONGEST_SETTLING: Duration = Duration::from_millis(5500);
/// The time between two looks whether guests are settled.
const SETTLING_LOOK: Duration = Duration::from_millis(2);
/// The largest number of guests at a time (chosen).
const MOST_GUESTS: usize = 16;
/// The largest number of tries to lock a file that others remove meanwhile (chosen).
const MOST_TRIES: u32 = 10;
/// The longest time between two looks whether the door shall close, and whether guests have gone.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory of its own, which is removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("talkpath-door-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn name(text: &str) -> PairName {
        PairName::parse(text).unwrap()
    }

    #[test]
    fn a_name_is_no_path() {
        for text in ["", ".", "..", "a/b", "a b", ".a", &"a".repeat(65)] {
            assert!(PairName::parse(text).is_err(), "{text}");
        }
        assert_eq!(name("call-1.x_y").to_string(), "call-1.x_y");
    }

    #[test]
    fn a_pair_is_made_once_and_again_when_its_first_shell_has_gone() {
        let scratch = Scratch::new("once");
        let door = Door::make(&scratch.0, &name("a")).unwrap();
        assert!(matches!(Door::make(&scratch.0, &name("a")), Err(DoorError::Taken(_))));
        Door::make(&scratch.0, &name("b")).unwrap();
        drop(door);
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left");
        Door::make(&scratch.0, &name("a")).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_enter_or_that_is_a_link_is_refused() {
        let scratch = Scratch::new("open");
        make_private(&scratch.0).unwrap();
        assert_eq!(fs::metadata(&scratch.0).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(Door::make(&scratch.0, &name("a")), Err(DoorError::Unsafe { .. })));
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o700)).unwrap();
        let link = Scratch::new("link");
        std::os::unix::fs::symlink(&scratch.0, &link.0).unwrap();
        assert!(matches!(Guest::join(&link.0, &name("a")), Err(DoorError::Unsafe { .. })));
        fs::remove_file(&link.0).unwrap();
    }

    #[test]
    fn who_comes_before_the_path_is_made_finds_nobody() {
        let scratch = Scratch::new("early");
        assert!(Guest::join(&scratch.0, &name("a")).unwrap().is_none());
    }
}
