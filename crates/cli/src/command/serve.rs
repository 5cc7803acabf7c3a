//! `talkpath serve`: the far end of live runs.

use talkpath_kernel::descriptors::raise_descriptor_limit;
use talkpath_live::{Limits, ServeError, ServeOptions, Server};

use crate::arenas::read_key;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::terminal::Terminal;

/// Serves until Ctrl-C, which is how it is meant to end.
pub(crate) fn run(args: &ServeArgs, terminal: Terminal) -> Result<(), Failure> {
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    if key.is_none() && !args.open {
        terminal.warning(
            "everybody who can reach this port is served; --key-file FILE restricts it, --open means it",
        );
    }
    let stop = interrupt::install()?;
    raise_descriptor_limit();
    let options = ServeOptions {
        bind: args.bind.clone(),
        key,
        limits: Limits::default(),
        keep: args.keep.clone(),
        real_time: args.real_time,
    };
    let server = Server::bind(options).map_err(|why| unavailable(&why))?;
    terminal.result(&format!("listening on {}\n", server.local_addr()))?;
    server.run_logged(&stop, &|line| terminal.note(line));
    Ok(())
}

fn unavailable(why: &ServeError) -> Failure {
    let how = match why {
        ServeError::Bind { .. } => "--bind ADDR:PORT chooses another address or port",
        ServeError::RealTime { .. } => {
            "run as root, or allow it with `ulimit -r 2` (limits.conf: rtprio 2); or leave --real-time out"
        }
        ServeError::Keep { .. } => "--keep DIR needs a folder that this user may write to",
    };
    Failure::Unavailable { what: why.to_string(), how: how.to_owned() }
}
