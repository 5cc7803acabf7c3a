//! The nursery: a process that starts launchers while the program runs.
//!
//! ```text
//!  talkpath ── nursery ─┬─ launcher ── command of a repetition, first host
//!                       ├─ launcher ── server of the repetition, second host
//!                       └─ keeper ──── pasta (`way_out.rs`)
//! ```
//!
//! A launcher must come from a process with one thread (`launcher.rs`), and a run of several repetitions has
//! many threads when it needs its launchers. So it splits the nursery off first, and later asks it for each
//! launcher. The nursery is in a session of its own: the signals of the terminal are for talkpath alone,
//! which asks its commands to end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions};
use rustix::time::Timespec;
use talkpath_kernel::host::fork;

use super::launcher::{CommandLine, Launcher, Streams, check_one_thread, serve};
use super::way_out::{WayOut, keep};

/// The process that starts launchers.
#[derive(Debug)]
pub struct Nursery {
    channel: OwnedFd,
    process: Pid,
    has_pasta: bool,
}

impl Nursery {
    /// Splits the nursery off. `pasta` is the program that ways out need, if it is there. This process must
    /// have no second thread yet.
    ///
    /// # Errors
    /// Returns the system's error, and [`io::ErrorKind::Unsupported`] if this process has a second thread.
    pub fn split_off(pasta: Option<&Path>) -> io::Result<Self> {
        check_one_thread()?;
        let (channel, theirs) = pair()?;
        match fork::fork()? {
            fork::Forked::Parent(process) => Ok(Self { channel, process, has_pasta: pasta.is_some() }),
            fork::Forked::Child => {
                drop(channel);
                // A panic must not run the code of this process in the nursery, too.
                let _ = catch_unwind(AssertUnwindSafe(|| tend(theirs, pasta)));
                fork::exit_now()
            }
        }
    }

    /// True if there is a program for ways out.
    pub(super) const fn has_pasta(&self) -> bool {
        self.has_pasta
    }

    /// Makes the launcher of `command`, whose output goes to `streams`.
    ///
    /// # Errors
    /// Returns the system's error, for example if the command is longer than a message may be.
    pub(super) fn launcher(&self, command: &CommandLine, streams: Streams) -> io::Result<Launcher> {
        let (channel, theirs) = pair()?;
        let Streams { output, error } = streams;
        fork::send_descriptors(self.channel.as_fd(), &request(command), &[theirs, output, error])?;
        Ok(Launcher::of_nursery(channel))
    }

    /// Makes the keeper of a way out.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(super) fn way_out(&self) -> io::Result<WayOut> {
        let (channel, theirs) = pair()?;
        fork::send_descriptors(self.channel.as_fd(), &[KEEP], &[theirs])?;
        Ok(WayOut::of_nursery(channel))
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
        fork::reap(self.process);
    }
}

/// The life of the nursery. It ends when the process that split it off has ended.
fn tend(channel: OwnedFd, pasta: Option<&Path>) {
    let _ = rustix::process::setsid();
    let mut message = vec![0; LONGEST_MESSAGE];
    loop {
        // Launchers and keepers that have ended.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let mut fds = [PollFd::new(&channel, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&LOOK));
        if fds[0].revents().is_empty() {
            continue;
        }
        let mut descriptors = Vec::new();
        let Ok(length @ 1..) = fork::receive_descriptors(channel.as_fd(), &mut message, &mut descriptors)
        else {
            return;
        };
        // If there is no child, its descriptors are closed here, and who asked sees that.
        if let Ok(fork::Forked::Child) = fork::fork() {
            drop(channel);
            return become_child(&message[..length], descriptors, pasta);
        }
    }
}

/// The life of the child that a message asks for.
fn become_child(message: &[u8], descriptors: Vec<OwnedFd>, pasta: Option<&Path>) {
    let mut descriptors = descriptors.into_iter();
    let Some(theirs) = descriptors.next() else { return };
    match (message.split_first(), descriptors.next(), descriptors.next()) {
        (Some((&LAUNCH, words)), Some(output), Some(error)) => {
            if let Some(command) = command(words) {
                serve(&theirs, &command, Some(Streams { output, error }));
            }
        }
        (Some((&KEEP, _)), None, None) => {
            if let Some(pasta) = pasta {
                keep(&theirs, pasta);
            }
        }
        _ => {}
    }
}

/// The message that asks for a launcher: the number of variables, then names and values of variables, the
/// program and its arguments, with a NUL between them. No word that a program gets has this character
/// (execve(2)).
fn request(command: &CommandLine) -> Vec<u8> {
    let CommandLine { program, arguments, variables } = command;
    let mut words: Vec<&[u8]> = Vec::new();
    for (name, value) in variables {
        words.extend([name.as_bytes(), value.as_bytes()]);
    }
    words.push(program.as_bytes());
    words.extend(arguments.iter().map(|word| word.as_bytes()));
    let mut message = vec![LAUNCH, u8::try_from(variables.len()).unwrap_or(u8::MAX)];
    message.extend(words.join(&0));
    message
}

/// Reads the command of a request.
fn command(bytes: &[u8]) -> Option<CommandLine> {
    let (&variables, words) = bytes.split_first()?;
    let mut words = words.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let mut named = Vec::new();
    for _ in 0..variables {
        named.push((String::from_utf8(words.next()?).ok()?, String::from_utf8(words.next()?).ok()?));
    }
    let mut words = words.map(OsString::from_vec);
    Some(CommandLine { program: words.next()?, arguments: words.collect(), variables: named })
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The kinds of messages.
const LAUNCH: u8 = 1;
const KEEP: u8 = 2;
/// The size of the longest message in bytes: the kernel's usual buffer of a socket takes no longer one
/// (unix(7), net.core.wmem_default).
const LONGEST_MESSAGE: usize = 212_992;
/// The longest time between two looks at children that have ended.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_each_word_of_the_command() {
        let sent = CommandLine {
            program: "player".into(),
            arguments: vec!["".into(), "a b".into(), OsString::from_vec(vec![0xff])],
            variables: vec![("PEER".to_owned(), "192.0.2.2".to_owned())],
        };
        let message = request(&sent);
        assert_eq!((message[0], command(&message[1..])), (LAUNCH, Some(sent)));
        assert_eq!(command(&[]), None);
        assert_eq!(command(&[200, b'a']), None);
    }
}
