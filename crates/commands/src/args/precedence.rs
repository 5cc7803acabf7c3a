//! A flag on the command line wins over an environment variable, even over the variable of another option.
//!
//! Some options contradict each other, such as `--to` and `--arena sim`. If the user types one of them and
//! the other one comes from its variable, the variable is ignored. If both are typed, or both come from
//! variables, the commands refuse them.

use clap::ArgMatches;
use clap::parser::ValueSource;
use talkpath_experiment::place::Versions;
use talkpath_scenario::{ComparedWorkload, host_and_port};

use super::{
    ArenaKind, ChangeArgs, Cli, Command, CompareArgs, ExportArgs, ExportFormat, LinkArgs, Place, RunArgs,
    ServeArgs, StampArgs, flag_word,
};
use crate::failure::Failure;

/// Puts options back to their defaults if they come from variables and contradict a flag. `matches` say where
/// the options of the command in `cli` come from.
///
/// # Errors
/// Returns [`Failure::Usage`] if options contradict each other and no flag decides, or if `--to` is not a
/// host.
pub(super) fn apply_precedence(cli: &mut Cli, matches: &ArgMatches) -> Result<(), Failure> {
    let sources = Sources(matches);
    match &mut cli.command {
        Command::Compare(args) => apply_to_compare(args, &sources)?,
        Command::Run(args) => apply_to_run(args, &sources),
        Command::Shell(args) => apply_line(&mut args.links, &mut args.path, &sources)?,
        Command::Serve(args) => apply_to_serve(args, &sources)?,
        Command::Stamp(args) => apply_to_stamp(args, &sources)?,
        Command::Export(args) => refuse_flags_of_other_formats(args, &sources)?,
        _ => {}
    }
    check_host(&cli.command)
}

/// Where the values of a command's options come from. An option is named by its id in clap.
struct Sources<'a>(&'a ArgMatches);

impl Sources<'_> {
    /// Whether the user typed the option on the command line.
    fn is_typed(&self, id: &str) -> bool {
        self.0.value_source(id) == Some(ValueSource::CommandLine)
    }

    fn any_is_typed(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.is_typed(id))
    }

    fn is_from_variable(&self, id: &str) -> bool {
        self.0.value_source(id) == Some(ValueSource::EnvVariable)
    }

    /// Puts `option` back to its default if it comes from its variable.
    fn ignore_variable<T: Default>(&self, id: &str, option: &mut T) {
        if self.is_from_variable(id) {
            *option = T::default();
        }
    }
}

/// Writes `--line` as `--up` and `--down`.
fn apply_line(links: &mut LinkArgs, path: &mut Option<String>, sources: &Sources<'_>) -> Result<(), Failure> {
    let Some(line) = &links.line else { return Ok(()) };
    // The file may be a capture, which has no rates: those of the line are taken.
    let is_file = path.as_deref().is_some_and(|path| path.contains(['.', '/']));
    if sources.is_typed("path") && !is_file {
        return Err(Failure::Usage(
            "--line with --path: a line is a path of its own; give one of them".to_owned(),
        ));
    }
    sources.ignore_variable("path", path);
    (links.up, links.down) = (Some(line.up()), Some(line.down()));
    Ok(())
}

fn apply_to_compare(args: &mut CompareArgs, sources: &Sources<'_>) -> Result<(), Failure> {
    apply_line(&mut args.links, &mut args.path, sources)?;
    // A flag about the path asks for one of our paths, so variables that choose a network are ignored.
    let describes_path = sources.any_is_typed(&["path", "line", "up", "down", "queue", "loss", "alone"]);
    if describes_path && !sources.any_is_typed(&["arena", "to"]) {
        sources.ignore_variable("to", &mut args.place.to);
        if args.place.arena == Some(ArenaKind::Live) {
            args.place.arena = None;
        }
    }
    // A flag about concealment asks for a call.
    if sources.any_is_typed(&["plc", "no_plc"]) && sources.is_from_variable("workload") {
        args.workload = ComparedWorkload::Voice;
    }
    apply_to_place(&mut args.place, sources);
    sweep_versions(&args.place, &mut args.change);
    Ok(())
}

/// Sweeps the version of IP if the user asks for both.
fn sweep_versions(place: &Place, change: &mut ChangeArgs) {
    if place.family.versions() == Versions::Each {
        change.sweep.push(("ip".to_owned(), "ipv4,ipv6".to_owned()));
    }
}

fn apply_to_run(args: &mut RunArgs, sources: &Sources<'_>) {
    let is_part = sources.is_typed("shard");
    let is_resumed = sources.is_typed("resume");
    // A part is always simulated, and the directory of an earlier run says where that run happens.
    if is_part || is_resumed {
        sources.ignore_variable("arena", &mut args.place.arena);
        sources.ignore_variable("to", &mut args.place.to);
    }
    // A part has no figures to judge.
    if is_part {
        sources.ignore_variable("strict", &mut args.demand.strict);
        sources.ignore_variable("junit", &mut args.demand.junit);
        ignore_variables_of_other_arenas(&mut args.place, sources, ArenaKind::Sim);
    }
    // An earlier run goes on with its own seed and number of repetitions.
    if is_resumed && args.scenario.is_none() {
        sources.ignore_variable("seed", &mut args.place.seed);
        sources.ignore_variable("repeat", &mut args.place.repeat);
    }
    apply_to_place(&mut args.place, sources);
    // An earlier run without a scenario file goes on with its own sweep.
    if !is_resumed || args.scenario.is_some() {
        sweep_versions(&args.place, &mut args.change);
    }
}

fn apply_to_place(place: &mut Place, sources: &Sources<'_>) {
    let is_arena_typed = sources.is_typed("arena");
    let is_host_typed = sources.is_typed("to");
    if is_arena_typed && place.arena != Some(ArenaKind::Live) {
        sources.ignore_variable("to", &mut place.to);
    }
    if is_host_typed {
        sources.ignore_variable("arena", &mut place.arena);
    }
    if let Some(arena) = place.arena
        && is_arena_typed
    {
        ignore_variables_of_other_arenas(place, sources, arena);
    } else if is_host_typed {
        ignore_variables_of_other_arenas(place, sources, ArenaKind::Live);
    }
}

/// Ignores the variables of options that `arena`, which a flag chose, has no use for.
fn ignore_variables_of_other_arenas(place: &mut Place, sources: &Sources<'_>, arena: ArenaKind) {
    if arena != ArenaKind::Emu {
        sources.ignore_variable("capture", &mut place.capture.snaplen);
    }
    if arena != ArenaKind::Live {
        sources.ignore_variable("clocks_synchronised", &mut place.clocks_synchronised);
    }
    if arena == ArenaKind::Sim {
        sources.ignore_variable("keep_awake", &mut place.keep_awake);
        sources.ignore_variable("qlog", &mut place.qlog);
        sources.ignore_variable("run_again", &mut place.run_again);
    }
}

fn apply_to_serve(args: &mut ServeArgs, sources: &Sources<'_>) -> Result<(), Failure> {
    if args.key_file.is_none() || !args.open {
        return Ok(());
    }
    match (sources.is_typed("key_file"), sources.is_typed("open")) {
        (true, false) => args.open = false,
        (false, true) => args.key_file = None,
        (true, true) | (false, false) => return Err(contradiction("--key-file", "--open")),
    }
    Ok(())
}

fn apply_to_stamp(args: &mut StampArgs, sources: &Sources<'_>) -> Result<(), Failure> {
    if args.reflect && sources.is_typed("clocks_synchronised") {
        return Err(contradiction("--clocks-synchronised", "--reflect"));
    }
    if args.reflect {
        args.clocks_synchronised = false;
    }
    Ok(())
}

fn contradiction(option: &str, other: &str) -> Failure {
    Failure::Usage(format!("{option} cannot be used with {other}: leave one of them out"))
}

/// Refuses flags of `export` that belong to another format than the chosen one. The file would lack what such
/// a flag asks for.
fn refuse_flags_of_other_formats(args: &ExportArgs, sources: &Sources<'_>) -> Result<(), Failure> {
    for FormatFlag { id, flag, formats } in FORMAT_FLAGS {
        if !sources.is_typed(id) || formats.contains(&args.format) {
            continue;
        }
        let words: Vec<String> = formats.iter().map(flag_word).collect();
        let belongs_to = match words.as_slice() {
            [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => words.concat(),
        };
        let found = flag_word(&args.format);
        return Err(Failure::Usage(format!("{flag} belongs to --format {belongs_to}, not to {found}")));
    }
    Ok(())
}

/// A flag of `export` that only some formats have.
struct FormatFlag {
    /// The id of the flag in clap.
    id: &'static str,
    flag: &'static str,
    formats: &'static [ExportFormat],
}

const FORMAT_FLAGS: [FormatFlag; 7] = {
    use ExportFormat::{Csv, Jsonl, Nam, Parquet, Pcapng, Qlog};
    [
        FormatFlag { id: "table", flag: "--table", formats: &[Csv, Jsonl, Parquet] },
        FormatFlag { id: "cell", flag: "--cell", formats: &[Pcapng, Qlog, Nam] },
        FormatFlag { id: "repetition", flag: "--repetition", formats: &[Pcapng, Qlog, Nam] },
        FormatFlag { id: "at", flag: "--at", formats: &[Pcapng, Qlog] },
        FormatFlag { id: "encapsulated", flag: "--encapsulated", formats: &[Pcapng] },
        FormatFlag { id: "from", flag: "--from", formats: &[Nam] },
        FormatFlag { id: "length", flag: "--for", formats: &[Nam] },
    ]
};

/// Refuses a `--to` that does not name a host, in any command.
fn check_host(command: &Command) -> Result<(), Failure> {
    let to = match command {
        Command::Compare(args) => args.place.to.as_deref(),
        Command::Run(args) => args.place.to.as_deref(),
        Command::Send(args) => Some(args.transfer.to.as_str()),
        Command::Burst(args) => Some(args.transfer.to.as_str()),
        Command::Monitor(args) => Some(args.to.as_str()),
        Command::Stamp(args) => args.to.as_deref(),
        _ => None,
    };
    let Some(to) = to else { return Ok(()) };
    let why = match host_and_port(to.trim()) {
        Ok((name, _)) if !name.is_empty() => return Ok(()),
        Ok(_) => "found no host, expected a name or an address, as HOST or HOST:PORT".to_owned(),
        Err(why) => why,
    };
    Err(Failure::Usage(format!("--to {to:?}: {why}")))
}
