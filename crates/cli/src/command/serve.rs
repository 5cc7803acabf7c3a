//! `talkpath serve` is the far host of live runs.

use chrono::{SecondsFormat, Utc};
use talkpath_commands::args::ServeArgs;
use talkpath_commands::failure::Failure;
use talkpath_commands::interrupt;
use talkpath_commands::terminal::Terminal;
use talkpath_live::{Limits, ServeError, ServeOptions, Server};
use talkpath_system::descriptors::raise_descriptor_limit;

use crate::linked::{MACHINES, read_key};

/// Serves clients until Ctrl-C, which is the normal end of a server.
pub(crate) fn run(args: &ServeArgs, terminal: Terminal) -> Result<(), Failure> {
    if args.key_file.is_none() && !args.open {
        refuse_reachable_addresses(args)?;
        terminal.warning("every user of this host is served; --key-file FILE restricts it, --open means it");
    }
    let key = args.key_file.as_deref().map(|path| read_key(path, terminal)).transpose()?;
    let stop = interrupt::install()?;
    raise_descriptor_limit();
    let options = ServeOptions {
        bind: args.bind.clone(),
        also: args.also.clone(),
        key,
        limits: limits(args),
        keep: args.keep.clone(),
        log: args.log.clone(),
        real_time: args.real_time,
        machines: MACHINES,
    };
    let server = Server::bind(options).map_err(|why| unavailable(&why))?;
    let listens: String = server.local_addrs().map(|address| format!("listening on {address}\n")).collect();
    terminal.result(&listens)?;
    let served = server.run_logged(&stop, &|line| {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        terminal.note(&format!("{time} {line}"));
    });
    served.map_err(|why| unavailable(&why))
}

/// Refuses addresses that other hosts can reach, if there is neither a key nor `--open`. A server without
/// either serves only programs of this host.
fn refuse_reachable_addresses(args: &ServeArgs) -> Result<(), Failure> {
    let reachable = args.bind.iter().find(|address| !address.ip().to_canonical().is_loopback());
    let address = if let Some(address) = reachable {
        address.to_string()
    } else if args.bind.is_empty() {
        "every address of this host".to_owned()
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "who may be served on {address}? Add --key-file FILE for those who hold the key in FILE (to make one: \
         head -c 32 /dev/urandom | base64 > FILE), --open for everybody who can reach the port, or \
         --bind 127.0.0.1:7160 for this host alone"
    )))
}

fn limits(args: &ServeArgs) -> Limits {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Limits {
        sessions: number(args.max_sessions),
        flows: number(args.max_flows),
        rate_bps: args.max_rate.as_bps(),
        messages_per_s: args.max_packets,
        duration_s: args.max_duration.as_nanos() / 1_000_000_000,
        ..Limits::default()
    }
}

fn unavailable(why: &ServeError) -> Failure {
    let how = match why {
        ServeError::Bind { .. } => "--bind ADDR:PORT and --also PORT choose other addresses and ports",
        ServeError::RealTime { .. } => {
            "run as root, or allow it with `ulimit -r 2` (limits.conf: rtprio 2); or leave --real-time out"
        }
        ServeError::Keep { .. } => {
            "--keep DIR needs a folder that this user may write to, and so does --log DIR"
        }
        ServeError::Thread { .. } => talkpath_arena::NO_THREAD_HELP,
        ServeError::Watch { .. } => "see this host's memory, and `sysctl fs.epoll.max_user_watches`",
    };
    Failure::unavailable(why.to_string(), how)
}
