//! A flag wins over a variable, also over that of another option: what the two say together.
//!
//! Where two options do not go together, a typed one makes the other's variable mean nothing. What is left is
//! refused by the commands: two flags, or two variables.

use clap::ArgMatches;
use clap::parser::ValueSource;
use talkpath_scenario::{Compared, host_and_port};

use super::{
    ArenaKind, Cli, Command, CompareArgs, ExportArgs, ExportFormat, Place, RunArgs, ServeArgs, flag_word,
};
use crate::failure::Failure;

/// Settles contradictions between flags and variables of `cli`'s command; `matches` are the command's.
///
/// # Errors
/// [`Failure::Usage`] if options that were given do not go together, or name no host.
pub(super) fn settle(cli: &mut Cli, matches: &ArgMatches) -> Result<(), Failure> {
    let given = Given(matches);
    match &mut cli.command {
        Command::Compare(args) => compare(args, &given),
        Command::Run(args) => run(args, &given),
        Command::Serve(args) => serve(args, &given)?,
        Command::Stamp(args) if args.reflect && args.clocks_synchronised => {
            if given.is_typed("clocks_synchronised") {
                return Err(together("--clocks-synchronised", "--reflect"));
            }
            args.clocks_synchronised = false;
        }
        Command::Export(args) => export(args, &given)?,
        _ => {}
    }
    to_a_host(&cli.command)
}

/// Where the values of a command's options come from.
struct Given<'a>(&'a ArgMatches);

impl Given<'_> {
    fn is_typed(&self, id: &str) -> bool {
        self.0.value_source(id) == Some(ValueSource::CommandLine)
    }

    fn any_is_typed(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.is_typed(id))
    }

    fn is_variable(&self, id: &str) -> bool {
        self.0.value_source(id) == Some(ValueSource::EnvVariable)
    }

    /// If `option` comes from its variable, puts it back to its default.
    fn ignore_variable<T: Default>(&self, id: &str, option: &mut T) {
        if self.is_variable(id) {
            *option = T::default();
        }
    }
}

fn compare(args: &mut CompareArgs, given: &Given<'_>) {
    // These need a path of ours.
    if given.any_is_typed(&["path", "up", "down", "queue", "loss", "alone"])
        && !given.any_is_typed(&["arena", "to"])
    {
        given.ignore_variable("to", &mut args.place.to);
        if args.place.arena == Some(ArenaKind::Live) {
            args.place.arena = None;
        }
    }
    if given.any_is_typed(&["plc", "no_plc"]) && given.is_variable("workload") {
        args.workload = Compared::Voice;
    }
    place(&mut args.place, given);
}

fn run(args: &mut RunArgs, given: &Given<'_>) {
    // A part is simulated, and is not judged. A run that goes on knows where it runs.
    let (is_part, goes_on) = (given.is_typed("shard"), given.is_typed("resume"));
    if is_part || goes_on {
        given.ignore_variable("arena", &mut args.place.arena);
        given.ignore_variable("to", &mut args.place.to);
    }
    if is_part {
        given.ignore_variable("strict", &mut args.place.strict);
        given.ignore_variable("junit", &mut args.demand.junit);
        real_time(&mut args.place, given, ArenaKind::Sim);
    }
    if goes_on && args.scenario.is_none() {
        given.ignore_variable("seed", &mut args.place.seed);
        given.ignore_variable("repeat", &mut args.place.repeat);
    }
    place(&mut args.place, given);
}

fn place(place: &mut Place, given: &Given<'_>) {
    if given.is_typed("arena") && place.arena != Some(ArenaKind::Live) {
        given.ignore_variable("to", &mut place.to);
    }
    if given.is_typed("to") {
        given.ignore_variable("arena", &mut place.arena);
    }
    match place.arena {
        Some(arena) if given.is_typed("arena") => real_time(place, given, arena),
        _ if given.is_typed("to") => real_time(place, given, ArenaKind::Live),
        _ => {}
    }
}

/// Ignores variables of options that mean nothing in `arena`, which a flag chose.
fn real_time(place: &mut Place, given: &Given<'_>, arena: ArenaKind) {
    if arena != ArenaKind::Emu {
        given.ignore_variable("capture", &mut place.capture);
    }
    if arena != ArenaKind::Live {
        given.ignore_variable("clocks_synchronised", &mut place.clocks_synchronised);
    }
    if arena == ArenaKind::Sim {
        given.ignore_variable("keep_awake", &mut place.keep_awake);
        given.ignore_variable("run_again", &mut place.run_again);
    }
}

fn serve(args: &mut ServeArgs, given: &Given<'_>) -> Result<(), Failure> {
    if args.key_file.is_none() || !args.open {
        return Ok(());
    }
    match (given.is_typed("key_file"), given.is_typed("open")) {
        (true, false) => args.open = false,
        (false, true) => args.key_file = None,
        _ => return Err(together("--key-file", "--open")),
    }
    Ok(())
}

fn together(one: &str, other: &str) -> Failure {
    Failure::Usage(format!("{one} cannot be used with {other}: leave one of them out"))
}

/// Refuses options that belong to other formats: what they ask for would be missing in the file.
fn export(args: &ExportArgs, given: &Given<'_>) -> Result<(), Failure> {
    for (id, option, formats) in OF_FORMATS {
        if given.is_typed(id) && !formats.contains(&args.format) {
            let words: Vec<String> = formats.iter().map(flag_word).collect();
            let belongs = match words.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
                _ => words.concat(),
            };
            let found = flag_word(&args.format);
            return Err(Failure::Usage(format!("{option} belongs to --format {belongs}, not to {found}")));
        }
    }
    Ok(())
}

/// By its id and its word: which formats an option of `export` belongs to.
const OF_FORMATS: [(&str, &str, &[ExportFormat]); 7] = {
    use ExportFormat::{Csv, Jsonl, Nam, Parquet, Pcapng, Qlog};
    [
        ("table", "--table", &[Csv, Jsonl, Parquet]),
        ("cell", "--cell", &[Pcapng, Qlog, Nam]),
        ("repetition", "--repetition", &[Pcapng, Qlog, Nam]),
        ("at", "--at", &[Pcapng, Qlog]),
        ("encapsulated", "--encapsulated", &[Pcapng]),
        ("from", "--from", &[Nam]),
        ("length", "--for", &[Nam]),
    ]
};

/// Refuses a far end that is no host, in any command.
fn to_a_host(command: &Command) -> Result<(), Failure> {
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
