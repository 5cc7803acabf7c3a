//! The command line, as docs/reference/interface.md promises it. Every flag has a `TALKPATH_*` variable; the
//! flag wins.
#![expect(missing_docs, reason = "clap prints a comment here as help, and `Command` has the commands' texts")]

mod campaign;
mod demand;
mod heading;
mod monitor;
mod mos;
mod own_line;
mod precedence;
mod serve;
mod shard;
mod stamp;
mod study;
mod transfer;
mod wrong;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{FalseyValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use talkpath_experiment::choice::{ArenaKind, Choice, Records};
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::{Compared, Setting, parse_duration, transport_names};
use talkpath_units::Duration;

use crate::failure::Failure;

pub use self::campaign::{
    CampaignArgs, CampaignCheckArgs, CampaignCommand, CampaignFileArgs, CampaignPushArgs, CampaignReportArgs,
    CampaignRunArgs,
};
pub use self::demand::DemandArgs;
pub use self::monitor::{Amount, MonitorArgs};
pub use self::mos::{MosArgs, Share};
pub use self::own_line::{OwnLink, quoted};
use self::precedence::settle;
pub use self::serve::ServeArgs;
pub use self::shard::{MergeArgs, PlanArgs, ShardArgs};
pub use self::stamp::{STAMP_SIZE, StampArgs};
pub use self::study::{
    StudyArena, StudyArgs, StudyCommand, StudyDiffArgs, StudyFillArgs, StudyJudgeArgs, StudyKeepArgs,
    StudyRunArgs,
};
pub use self::transfer::{BurstArgs, SendArgs, TransferArgs};
use self::wrong::{refused_json, wrong_usage};

/// Which transport holds up on which path: simulated, emulated and live, from one scenario file.
///
/// `talkpath compare` with no arguments runs one voice call over each transport on a home uplink beside a
/// bulk upload and says which is best. `talkpath run SCENARIO.toml` runs your own experiment.
#[derive(Debug, Parser)]
#[command(
    name = "talkpath",
    version,
    arg_required_else_help = true,
    after_help = EXIT_CODES,
    disable_help_flag = true,
    disable_version_flag = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub common: Common,
    /// Print the version
    #[arg(help_heading = heading::OUTPUT, long, short = 'V', action = ArgAction::Version)]
    version: Option<bool>,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 --strict did not hold, or the results could not be written; 2 wrong \
usage or a scenario that does not validate; 3 the arena is not available here; 4 the far end failed or went away; \
5 a threshold did not hold; 6 a threshold is undecided, and none fails; 130 interrupted. What was measured is always kept.";

/// Flags of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// Repetitions at the same time in `sim` (default: one for each core; at most 4096); for a study in
    /// `emu`, the maximum number of cells
    #[arg(help_heading = heading::REPETITIONS, long, global = true, value_name = "N", env = "TALKPATH_JOBS", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Folder in which each run gets a directory of its own
    #[arg(help_heading = heading::FILES, long, global = true, value_name = "DIR", env = "TALKPATH_OUT", default_value = "talkpath-runs")]
    pub out: PathBuf,
    /// Which record files to write; summary.json is complete in each case (default: all; of `compare` in sim
    /// none, and `export`, `play` and `report` make the rows again)
    #[arg(help_heading = heading::FILES, long, global = true, value_parser = choice(about_records), env = "TALKPATH_RECORDS")]
    pub records: Option<Records>,
    /// How many points of each line series.parquet keeps
    #[arg(
        help_heading = heading::FILES,
        long,
        global = true,
        value_parser = choice(about_series),
        env = "TALKPATH_SERIES",
        default_value = SeriesDetail::Sampled.word()
    )]
    pub series: SeriesDetail,
    /// Print the result as JSON on standard output, and nothing else there: of a run its summary.json without
    /// the repetitions, with `--json=runs` all of it. Commands without such a result refuse it
    #[arg(
        help_heading = heading::OUTPUT,
        id = "json",
        long = "json",
        global = true,
        env = "TALKPATH_JSON",
        value_name = "runs",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = json_detail
    )]
    pub json_detail: Option<JsonDetail>,
    /// Print errors only
    #[arg(help_heading = heading::OUTPUT, long, short, global = true, env = "TALKPATH_QUIET", value_parser = FalseyValueParser::new())]
    pub quiet: bool,
    /// Say more about each repetition
    #[arg(help_heading = heading::OUTPUT, long, short, global = true, env = "TALKPATH_VERBOSE", action = ArgAction::Count)]
    pub verbose: u8,
    /// Print help; `--help` says more about some options than `-h`
    #[arg(help_heading = heading::OUTPUT, long, short, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

impl Common {
    /// Whether the result is printed as JSON.
    pub fn json(&self) -> bool {
        self.json_detail.is_some_and(|detail| detail != JsonDetail::Nothing)
    }

    /// `--records`, or all.
    pub fn records(&self) -> Records {
        self.records.unwrap_or(Records::All)
    }
}

/// What of a run is printed as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonDetail {
    /// None of it: the variable says so.
    Nothing,
    /// All but the repetitions.
    Cells,
    /// All of summary.json.
    Runs,
}

/// `runs`, or what a variable says for yes and no.
fn json_detail(text: &str) -> Result<JsonDetail, String> {
    match text.to_ascii_lowercase().as_str() {
        "" | "0" | "n" | "no" | "f" | "false" | "off" => Ok(JsonDetail::Nothing),
        "1" | "y" | "yes" | "t" | "true" | "on" => Ok(JsonDetail::Cells),
        "runs" => Ok(JsonDetail::Runs),
        _ => Err("expected --json alone, or --json=runs for the repetitions too".to_owned()),
    }
}

/// Chosen: more processors than one machine has, and few enough threads for any.
const MOST_JOBS: usize = 4096;

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|number: &NonZeroUsize| number.get() <= MOST_JOBS);
    number.ok_or_else(|| format!("expected a whole number from 1 to {MOST_JOBS}"))
}

fn run_again(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::MAX)
}

/// A parser of the words of a choice, each with what its help is.
fn choice<T: Choice + Send + Sync>(about: fn(T) -> &'static str) -> impl TypedValueParser<Value = T> {
    let words = T::ALL.iter().map(|&choice| PossibleValue::new(choice.word()).help(about(choice)));
    PossibleValuesParser::new(words).try_map(|word| T::named(&word).ok_or("no such word"))
}

const fn about_records(records: Records) -> &'static str {
    match records {
        Records::None => "Neither packets.parquet nor series.parquet",
        Records::Summary => "series.parquet only",
        Records::All => "packets.parquet and series.parquet",
    }
}

const fn about_series(detail: SeriesDetail) -> &'static str {
    match detail {
        SeriesDetail::Sampled => "At most 1,024, minima and maxima among them",
        SeriesDetail::Full => "Every change (live hosts sample theirs in either case)",
    }
}

const fn about_arena(arena: ArenaKind) -> &'static str {
    match arena {
        ArenaKind::Sim => "Our protocol machines and our path model under a virtual clock",
        ArenaKind::Emu => "The kernel's protocols over our path model between two network namespaces",
        ArenaKind::Live => "The kernel's protocols over the network, to a host that runs `talkpath serve`",
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one voice call over each transport: which is best, why, and a table
    Compare(Box<CompareArgs>),
    /// Run a scenario file
    Run(RunArgs),
    /// Print what a scenario would run: cells, repetitions, seeds, about what each costs
    Plan(PlanArgs),
    /// Make one run of the parts that `run --shard` left on several machines
    Merge(MergeArgs),
    /// Send a file to a host that runs `talkpath serve`; it checks what arrived
    Send(SendArgs),
    /// Send a burst of messages to a host that runs `talkpath serve`
    Burst(BurstArgs),
    /// Validate a scenario file: every mistake at once, each at its line and column
    Check(CheckArgs),
    /// Be the far end for `--arena live` on another host
    Serve(ServeArgs),
    /// Measure one pair of hosts for ever: events, metrics, records that rotate
    Monitor(Box<MonitorArgs>),
    /// Measure with STAMP (RFC 8762), against any reflector, or be one
    Stamp(Box<StampArgs>),
    /// Measure many pairs of hosts again and again for days
    Campaign(CampaignArgs),
    /// Hold a publication's claims against runs of its own scenarios
    Study(StudyArgs),
    /// Write report.html again from run directories
    Report(ReportArgs),
    /// Write a run's records as csv, jsonl or log, or its packets as pcapng, qlog or nam
    Export(ExportArgs),
    /// Write a page that plays a simulated run: packets on links, queues, drops, windows
    Play(PlayArgs),
    /// Compute the emulator's decisions again from its own log: no difference is allowed
    Replay(ReplayArgs),
    /// Rate a call by hand: delay, loss and codec in, a mean opinion score (MOS) out
    Mos(MosArgs),
    /// Print what this machine can do, and how to get what is missing
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or that of a command
    Man {
        /// Which command
        command: Option<String>,
    },
}

/// Where a run happens, and with which seeds: what `compare` and `run` share.
#[derive(Debug, Args)]
pub struct Place {
    /// Where to run (default: sim, or live if --to is given)
    #[arg(help_heading = heading::WHERE, long, value_parser = choice(about_arena), env = "TALKPATH_ARENA")]
    pub arena: Option<ArenaKind>,
    /// The host that runs `talkpath serve`; port 7160 unless given
    #[arg(help_heading = heading::WHERE, long, value_name = "HOST[:PORT]", env = "TALKPATH_TO")]
    pub to: Option<String>,
    /// The key that `talkpath serve --key-file` was given
    #[arg(help_heading = heading::WHERE, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    /// live: both hosts' clocks are kept by GPS or PTP, so stamps are compared as they are
    #[arg(help_heading = heading::WHERE, long, env = "TALKPATH_CLOCKS_SYNCHRONISED", value_parser = FalseyValueParser::new())]
    pub clocks_synchronised: bool,
    /// Seed of the first repetition
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// How many repetitions (default: the scenario's; for `compare` in sim 20 to 200, until they decide, else
    /// 5 rounds)
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "N", env = "TALKPATH_REPEAT", allow_negative_numbers = true)]
    pub repeat: Option<u64>,
    /// emu: keep every packet, or its first SNAPLEN bytes, for `export --format pcapng`
    #[arg(
        help_heading = heading::FILES,
        long,
        value_name = "SNAPLEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "65535",
        value_parser = clap::value_parser!(u32).range(64..=65_535),
        env = "TALKPATH_CAPTURE"
    )]
    pub capture: Option<u32>,
    /// emu and live: let no processor sleep while something is measured. On a virtual machine one that sleeps
    /// comes back late
    #[arg(help_heading = heading::REPETITIONS, long, env = "TALKPATH_KEEP_AWAKE", value_parser = FalseyValueParser::new())]
    pub keep_awake: bool,
    /// emu and live: for how long repetitions that the machine disturbed past its stated limits run again;
    /// `0s` is never (default: as long as all take once, at least 1 min)
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "TIME", value_parser = run_again, env = "TALKPATH_RUN_AGAIN")]
    pub run_again: Option<Duration>,
    /// Exit with 1 if the machine disturbed the run past its stated limits
    #[arg(help_heading = heading::REPETITIONS, long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
    /// Figures of every copy of a flow in summary.json, also of one with more than 500
    #[arg(help_heading = heading::FILES, long, env = "TALKPATH_PER_FLOW", value_parser = FalseyValueParser::new())]
    pub per_flow: bool,
    #[command(flatten)]
    pub tables: TableArgs,
}

/// How much is said below tables.
#[derive(Clone, Copy, Debug, Args)]
pub struct TableArgs {
    /// Print what the columns of the tables mean; report.html says it in any case
    #[arg(help_heading = heading::OUTPUT, long, env = "TALKPATH_EXPLAIN", value_parser = FalseyValueParser::new())]
    pub explain: bool,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Transports to compare (default: udp,tcp,tcp-nodelay and the three of QUIC; for `bulk` tcp), or `all`,
    /// which adds DCCP
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "A,B,...", value_delimiter = ',', env = "TALKPATH_TRANSPORTS")]
    pub transports: Vec<String>,
    /// What is carried
    #[arg(help_heading = heading::TRAFFIC, long, value_parser = workload(), env = "TALKPATH_WORKLOAD", default_value = Compared::Voice.name())]
    pub workload: Compared,
    /// voice: the receiver plays silence where a frame is missing; else it conceals that by G.711 Appendix I
    #[arg(help_heading = heading::TRAFFIC, long)]
    pub no_plc: bool,
    /// voice: has no effect, because concealment is the default
    #[arg(help_heading = heading::TRAFFIC, long, hide = true, conflicts_with = "no_plc")]
    pub plc: bool,
    /// Congestion controls of TCP; each TCP transport is compared with each, the upload has the first
    /// (default: the kernel's CUBIC; for `bulk` cubic,reno, in sim bbr too)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "A,B,...", value_delimiter = ',')]
    pub cc: Vec<String>,
    /// How long each transport runs, as in `30s`
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Add a bulk upload beside the call in `live` too (`sim` and `emu` do unless --alone)
    #[arg(help_heading = heading::TRAFFIC, long, env = "TALKPATH_LOAD", value_parser = FalseyValueParser::new())]
    pub load: bool,
    /// sim and emu: without an upload beside it, whatever TALKPATH_LOAD says
    #[arg(help_heading = heading::TRAFFIC, long)]
    pub alone: bool,
    /// A file with `up` and `down` as those under scenarios/paths/, or a preset: lan,
    /// home-adsl, home-adsl-fq, home-cable, home-cable-fq, wifi-busy, lte, starlink, geo-satellite or
    /// transatlantic (default: home-adsl)
    #[arg(help_heading = heading::PATH, long, value_name = "PRESET|FILE.toml", env = "TALKPATH_PATH")]
    pub path: Option<String>,
    /// Your line away from you: rate, one-way delay, and what its queue holds, as in
    /// 10Mbps/15ms/256kB or 10Mbps/15ms/fq_codel (a drop-tail queue of 1000 packets unless given)
    #[arg(help_heading = heading::PATH, long, value_name = "RATE/DELAY[/LIMIT][/QUEUE]", value_parser = OwnLink::parse)]
    pub up: Option<OwnLink>,
    /// The same towards you
    #[arg(help_heading = heading::PATH, long, value_name = "RATE/DELAY[/LIMIT][/QUEUE]", value_parser = OwnLink::parse)]
    pub down: Option<OwnLink>,
    /// The queue discipline of both directions, such as fq_codel
    #[arg(help_heading = heading::PATH, long, value_name = "KIND")]
    pub queue: Option<String>,
    /// The share of the packets that each direction loses at random: `1%` or `0.01`
    #[arg(help_heading = heading::PATH, long, value_name = "SHARE", value_parser = mos::share)]
    pub loss: Option<Share>,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub demand: DemandArgs,
}

/// The preset that `compare` takes by itself.
pub const HOME: &str = "home-adsl";

/// What `compare` compares by itself.
const DEPLOYED: [&str; 6] =
    ["udp", "tcp", "tcp-nodelay", "quic-datagram", "quic-stream", "quic-stream-per-message"];

/// The workloads that `compare` and `monitor` know by a word.
fn workload() -> impl TypedValueParser<Value = Compared> {
    PossibleValuesParser::new(
        Compared::ALL.map(|workload| PossibleValue::new(workload.name()).help(workload.about())),
    )
    .map(|word| Compared::named(&word).unwrap_or(Compared::Voice))
}

impl CompareArgs {
    /// The transports that the user chose, or those that anybody can deploy.
    pub fn transports(&self) -> Vec<String> {
        let chosen: &[&str] = match (self.transports.as_slice(), self.workload) {
            ([], Compared::Bulk) => &["tcp"],
            ([], Compared::Voice | Compared::Game) => &DEPLOYED,
            // `quic` is one of those that name what carries a message.
            ([all], _) if all == "all" => {
                &transport_names().into_iter().filter(|&name| name != "quic").collect::<Vec<_>>()
            }
            (chosen, _) => return chosen.iter().map(|name| name.trim().to_owned()).collect(),
        };
        chosen.iter().copied().map(str::to_owned).collect()
    }
}

/// What the command line changes in a scenario.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Set a key of the scenario, such as `path.up.rate=2 Mbps`; may be given again. `*` stands for both
    /// directions of the path, or for each link or flow, as in `path.*.loss=1%`
    #[arg(help_heading = heading::KEYS, long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Run with each of these values of a key, as in `path.up.queue.limit=16kB,64kB`, and with each
    /// combination if given again: the report of a run over two keys has heat maps. `*` is as in --set:
    /// `path.*.loss=0,1%`. For a round trip of 100 ms: `path.*.delay=50ms`
    #[arg(help_heading = heading::KEYS, long = "sweep", value_name = "KEY=A,B,...", value_parser = key_values)]
    pub sweep: Vec<(String, String)>,
}

impl ChangeArgs {
    /// The keys in the order in which they are set: a sweep comes after what it changes.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        let set = self.set.iter().cloned().map(Setting::from);
        set.chain(self.sweep.iter().map(|(key, values)| Setting::sweep(key, values)))
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The scenario file; with --resume, the run directory's own unless given
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "resume")]
    pub scenario: Option<PathBuf>,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub place: Place,
    /// emu and live: in each repetition every cell has its turn, in an order drawn anew, as in `compare`
    #[arg(help_heading = heading::REPETITIONS, long)]
    pub rounds: bool,
    /// Continue a run that was killed or interrupted: finished repetitions are kept
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "RUN_DIR")]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub shard: ShardArgs,
    #[command(flatten)]
    pub demand: DemandArgs,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml", required_unless_present_any = ["schema", "keys"])]
    pub scenario: Option<PathBuf>,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Print the JSON Schema of scenario files, for an editor
    #[arg(long, conflicts_with_all = ["scenario", "set", "sweep"])]
    pub schema: bool,
    /// Print every key of scenario files as Markdown tables: values, default, meaning
    #[arg(long, conflicts_with_all = ["scenario", "schema", "set", "sweep"])]
    pub keys: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run directories
    #[arg(value_name = "RUN_DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Where to write it (default: report.html in the run directory); with several directories, one page with
    /// all of them
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// Also write each figure of the page into DIR, as SVG. Two swept keys also give heat maps:
    /// `heat-winner-FLOW.svg` and `heat-figure-FLOW.svg`
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The run directory of an emulated run
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,
    /// csv, jsonl and parquet hold a table; log is for a person
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// csv, jsonl and parquet: which table (default: messages)
    #[arg(long, value_enum)]
    pub table: Option<ExportTable>,
    /// pcapng, qlog and nam: which repetition
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repetition: u64,
    /// pcapng, qlog and nam: which cell of the sweep
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub cell: u64,
    /// pcapng and qlog: at which end of the flows
    #[arg(long, value_enum, default_value_t = CaptureAt::Near)]
    pub at: CaptureAt,
    /// pcapng: leave DCCP within UDP (RFC 6773), instead of unwrapping it to IP protocol 33
    #[arg(long)]
    pub encapsulated: bool,
    /// nam: the run time at which it begins
    #[arg(long, value_name = "TIME", default_value = "0 s")]
    pub from: String,
    /// nam: how long it is (default: to the end of sending)
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<String>,
    /// Where to write it (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlayArgs {
    /// The run directory of a simulated run
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,
    /// Which repetition
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repetition: u64,
    /// Which cell of the sweep
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub cell: u64,
    /// The run time at which the page begins
    #[arg(long, value_name = "TIME", default_value = "0 s")]
    pub from: String,
    /// How much of the run the page plays
    #[arg(long = "for", value_name = "TIME", default_value = "10 s")]
    pub length: String,
    /// Where to write it (default: play.html in the run directory)
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CaptureAt {
    /// Where messages are sent
    Near,
    /// Where they arrive
    Far,
}

/// A table with one value in a field; what is swept stands in columns of its own, in SI units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportTable {
    /// One row a message and leg: packets.parquet with the swept keys
    Messages,
    /// One row a point of a line: series.parquet with the swept keys
    Series,
    /// One row for each flow in each repetition, a column a figure
    Repetitions,
    /// One row for each figure of a flow in each cell: its median, mean and 95 % interval
    Cells,
    /// One row for each link in each repetition, a column a figure
    Links,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A header, then a line a row, comma-separated
    Csv,
    /// One JSON object a row and line
    Jsonl,
    /// A Parquet file, each column with its type
    Parquet,
    /// Every packet as one end saw it, for tshark; a simulation is run again, an emulated run kept its
    /// packets
    Pcapng,
    /// What one end of every QUIC connection sent, received and knew of the path, as qlog
    /// (draft-ietf-quic-qlog-quic-events); a simulation is run again
    Qlog,
    /// Nodes, links and every packet's way over them, for the network animator nam; a simulation is run again
    Nam,
    /// Start, end, transfer time, packet size, received, expected, protocol
    Log,
}

/// The command line and the environment. Help, and wrong usage in clap's words, end the process.
pub fn parse() -> Result<Cli, Failure> {
    let matches = Cli::command().try_get_matches().map_err(|error| wrong_usage(&error))?;
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // The variable is a setting for all commands, and means nothing to these.
    if let Some(failure) = refused_json(&cli.command)
        && matches.value_source("json") == Some(ValueSource::CommandLine)
    {
        return Err(failure);
    }
    if let Some((_, of_command)) = matches.subcommand() {
        settle(&mut cli, of_command)?;
    }
    Ok(cli)
}

/// A flag's value as its word on the command line.
pub fn flag_word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
}

/// `ADDR[:PORT]` as a socket has it, at `port` unless another is given.
fn socket_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let alone = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let address = text.parse().or_else(|_| alone.map(|address| SocketAddr::new(address, port)));
    address.map_err(|_| format!("expected ADDR[:PORT], as in 0.0.0.0, 127.0.0.1:{port} or [::]:{port}"))
}

/// `KEY=VALUE`, split at the first `=`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    split_key(text, "KEY=VALUE, as in path.up.rate=2 Mbps")
}

/// `KEY=A,B,...`, split at the first `=`.
fn key_values(text: &str) -> Result<(String, String), String> {
    split_key(text, "KEY=A,B,..., as in path.up.loss=0,1%")
}

fn split_key(text: &str, form: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("expected {form}"))?;
    if key.trim().is_empty() {
        return Err("the key before `=` is empty".to_owned());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
