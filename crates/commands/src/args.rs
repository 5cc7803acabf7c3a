//! The command line, as docs/reference/interface.md promises it. Almost every flag has an environment
//! variable `TALKPATH_*`. If both are given, the flag wins (`precedence`).
//!
//! Each command has a type for its flags, and types such as [`Common`] or [`Place`] hold the flags that
//! several commands share. clap prints the comment on a field as the help of the flag.
#![expect(
    missing_docs,
    reason = "clap prints a comment as help, so a type of flags has none: `Command` holds its text"
)]

mod campaign;
mod check;
pub(crate) mod demand;
mod export;
mod family;
mod heading;
mod links;
mod listen;
mod monitor;
mod mos;
mod own_line;
mod own_link;
mod precedence;
mod progress;
mod rate;
mod reading;
mod serve;
mod shard;
mod shell;
mod stamp;
mod study;
mod trace;
mod transfer;
mod ui;
mod until;
mod usage_error;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{FalseyValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use talkpath_experiment::choice::{ArenaKind, Choice, Records};
use talkpath_measure::Codec;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::{ComparedWorkload, Setting, parse_duration, transport_names};
use talkpath_units::Duration;

use crate::failure::Failure;

pub use self::campaign::{
    CampaignArgs, CampaignCheckArgs, CampaignCommand, CampaignFileArgs, CampaignPushArgs, CampaignReportArgs,
    CampaignRunArgs,
};
pub use self::check::CheckArgs;
pub use self::demand::{DemandArgs, ThresholdArgs};
pub use self::export::{CaptureAt, ExportArgs, ExportFormat, ExportTable};
pub use self::family::FamilyArgs;
pub use self::links::LinkArgs;
pub use self::listen::{LawWord, ListenArgs};
pub use self::monitor::{Amount, MonitorArgs};
pub use self::mos::{MosArgs, Share};
pub use self::own_line::OwnLine;
pub use self::own_link::OwnLink;
use self::precedence::apply_precedence;
use self::progress::parse_json_detail;
pub use self::progress::{JsonDetail, ProgressForm};
pub use self::rate::RateArgs;
pub use self::reading::ReadingArgs;
pub use self::serve::ServeArgs;
pub use self::shard::{MergeArgs, PlanArgs, ShardArgs};
pub use self::shell::ShellArgs;
pub use self::stamp::{STAMP_SIZE, StampArgs};
pub use self::study::{
    StudyArena, StudyArgs, StudyCellArgs, StudyCommand, StudyDiffArgs, StudyFillArgs, StudyJudgeArgs,
    StudyKeepArgs, StudyRunArgs,
};
pub use self::trace::{DescribedTrace, RecordArgs, TimeUnit, TraceAction, TraceArgs, TraceKind};
pub use self::transfer::{BurstArgs, SendArgs, TransferArgs};
pub use self::ui::UiArgs;
pub use self::until::UntilArgs;
use self::usage_error::{json_refusal, usage_failure};

/// Find out which transport holds up on which path: simulated, emulated and live, from one scenario file.
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

const EXIT_CODES: &str = "Exit codes:
    0  done
    1  --strict did not hold, or results could not be written
    2  wrong usage, or a scenario that does not validate
    3  sim, emu or live is not available on this machine
    4  the far host failed or went away
    5  a threshold did not hold
    6  a threshold is undecided, and none fails
  130  interrupted
Repetitions that were measured before a command ended are kept.";

/// Flags that every command has.
#[derive(Debug, Args)]
pub struct Common {
    /// How many repetitions run at the same time in `sim` (default: one for each core; at most 4096). For a
    /// study in `emu`, how many cells
    #[arg(help_heading = heading::REPETITIONS, long, global = true, value_name = "N", env = "TALKPATH_JOBS", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Folder in which each run makes its own directory
    #[arg(help_heading = heading::FILES, long, global = true, value_name = "DIR", env = "TALKPATH_OUT", default_value = "talkpath-runs")]
    pub out: PathBuf,
    /// Which record files to write. summary.json is always written (default: all; for `compare` in sim none,
    /// because `export`, `play` and `report` can simulate the run again)
    #[arg(help_heading = heading::FILES, long, global = true, value_parser = choice_parser(about_records), env = "TALKPATH_RECORDS")]
    pub records: Option<Records>,
    /// How many points series.parquet keeps of each quantity over time
    #[arg(
        help_heading = heading::FILES,
        long,
        global = true,
        value_parser = choice_parser(about_series),
        env = "TALKPATH_SERIES",
        default_value = SeriesDetail::Sampled.word()
    )]
    pub series: SeriesDetail,
    /// Print only JSON on standard output. For a run this is summary.json without its repetitions; with
    /// `--json=runs` it is the whole summary.json. A command that has no JSON result refuses this flag
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
        value_parser = parse_json_detail
    )]
    pub json_detail: Option<JsonDetail>,
    /// How standard error shows what happens while a command runs
    #[arg(help_heading = heading::OUTPUT, long, global = true, env = "TALKPATH_PROGRESS", value_enum, default_value_t = ProgressForm::Bar)]
    pub progress: ProgressForm,
    /// Draw the delay, loss and rate of each transport over the whole terminal, if there is one, meanwhile
    #[arg(help_heading = heading::OUTPUT, long, global = true, env = "TALKPATH_TUI", value_parser = FalseyValueParser::new())]
    pub tui: bool,
    /// Print errors only
    #[arg(help_heading = heading::OUTPUT, long, short, global = true, env = "TALKPATH_QUIET", value_parser = FalseyValueParser::new())]
    pub quiet: bool,
    /// Say more about each repetition
    #[arg(help_heading = heading::OUTPUT, long, short, global = true, env = "TALKPATH_VERBOSE", action = ArgAction::Count)]
    pub verbose: u8,
    /// Print help. `--help` says more about some options than `-h`
    #[arg(help_heading = heading::OUTPUT, long, short, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

impl Common {
    /// Returns whether the result is printed as JSON.
    pub fn json(&self) -> bool {
        self.json_detail.is_some_and(|detail| detail != JsonDetail::Off)
    }

    /// Returns the value of `--records`. If the flag was not given, all record files are written.
    pub fn records(&self) -> Records {
        self.records.unwrap_or(Records::All)
    }
}

/// The largest value of `--jobs`. We chose 4096 because no machine has more processors, and every machine can
/// start that many threads.
const MOST_JOBS: usize = 4096;

fn parse_jobs(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(number) if number.get() <= MOST_JOBS => Ok(number),
        _ => Err(format!("expected a whole number from 1 to {MOST_JOBS}")),
    }
}

fn parse_run_again(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::MAX)
}

/// Makes a parser for the words of a choice. `about` gives the help of each word.
fn choice_parser<T: Choice + Send + Sync>(about: fn(T) -> &'static str) -> impl TypedValueParser<Value = T> {
    let words = T::ALL.iter().map(|&value| PossibleValue::new(value.word()).help(about(value)));
    PossibleValuesParser::new(words).try_map(|word| T::find(&word).ok_or("no such word"))
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
        SeriesDetail::Sampled => "At most 1,024 points, with the minima and maxima",
        SeriesDetail::Full => "A point for each change (hosts of live runs take samples in either case)",
    }
}

const fn about_arena(arena: ArenaKind) -> &'static str {
    match arena {
        ArenaKind::Sim => "Our protocol machines and our path model under a virtual clock",
        ArenaKind::Emu => "The kernel's protocols over our path model, between two network namespaces",
        ArenaKind::Live => "The kernel's protocols over the network, to a host that runs `talkpath serve`",
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one voice call over each transport; print which is best, why, and a table
    Compare(Box<CompareArgs>),
    /// Run a scenario file
    Run(RunArgs),
    /// Run a shell or a command of your own whose network is a path, and record its packets
    Shell(Box<ShellArgs>),
    /// Print what a scenario would run: cells, repetitions, seeds and their approximate cost
    Plan(PlanArgs),
    /// Merge the parts that `run --shard` made on several machines into one run
    Merge(MergeArgs),
    /// Send a file to a host that runs `talkpath serve`, which checks what arrives
    Send(SendArgs),
    /// Send a burst of messages to a host that runs `talkpath serve`
    Burst(BurstArgs),
    /// Validate a scenario file, and report every mistake with its line and column
    Check(CheckArgs),
    /// Be the server for `--arena live` on another host
    Serve(ServeArgs),
    /// Measure one pair of hosts without end, with events, metrics and records that rotate
    Monitor(Box<MonitorArgs>),
    /// Measure against any STAMP reflector (RFC 8762), or be a reflector
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
    /// Compute the emulator's decisions again from its log, and fail at any difference
    Replay(ReplayArgs),
    /// Rate the calls in a capture (pcap, pcapng) as those of a run
    Rate(Box<RateArgs>),
    /// Write the sound of a call of a run or a capture as its listener heard it, and a page that plays it
    Listen(Box<ListenArgs>),
    /// Open a window: a page on this computer alone, to run and read all of this without a command line
    Ui(UiArgs),
    /// Compute the mean opinion score (MOS) of a call from a delay, a loss and a codec
    Mos(MosArgs),
    /// Say what a trace or a line of tc holds, and write it as a scenario reads it
    Trace(TraceArgs),
    /// Print what this machine can do, and how to get what is missing
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of talkpath or of one command
    Man {
        /// Which command
        command: Option<String>,
    },
}

/// Where a run happens and with which seeds. `compare` and `run` share these flags.
#[derive(Debug, Args)]
pub struct Place {
    /// Where to run (default: sim, or live if --to is given)
    #[arg(help_heading = heading::WHERE, long, value_parser = choice_parser(about_arena), env = "TALKPATH_ARENA")]
    pub arena: Option<ArenaKind>,
    /// The host that runs `talkpath serve`; port 7160 unless given
    #[arg(help_heading = heading::WHERE, long, value_name = "HOST[:PORT]", env = "TALKPATH_TO")]
    pub to: Option<String>,
    /// The file with the key, the same as for `talkpath serve --key-file`
    #[arg(help_heading = heading::WHERE, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    pub family: FamilyArgs,
    /// live: take the clocks of both hosts as equal, because GPS or PTP keeps them
    #[arg(help_heading = heading::WHERE, long, env = "TALKPATH_CLOCKS_SYNCHRONISED", value_parser = FalseyValueParser::new())]
    pub clocks_synchronised: bool,
    /// Seed of the first repetition
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// How many repetitions (default: the number in the scenario; for `compare` in sim from 20 up to 200,
    /// until they decide, in emu and live 5 rounds)
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "N", env = "TALKPATH_REPEAT", allow_negative_numbers = true)]
    pub repeat: Option<u64>,
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// emu and live: keep what this host's end of every QUIC connection sent, received and measured, for
    /// `export --format qlog`: the first 200,000 events of a connection
    #[arg(help_heading = heading::FILES, long, env = "TALKPATH_QLOG", value_parser = FalseyValueParser::new())]
    pub qlog: bool,
    /// live: find out how long the path keeps a silent UDP flow's mapping, by pauses up to a run's length
    #[arg(help_heading = heading::WHERE, long)]
    pub mapping_lifetime: bool,
    /// emu and live: let no processor sleep during a measurement. On a virtual machine a processor that
    /// sleeps wakes up late
    #[arg(help_heading = heading::REPETITIONS, long, env = "TALKPATH_KEEP_AWAKE", value_parser = FalseyValueParser::new())]
    pub keep_awake: bool,
    /// emu and live: the time for running repetitions again that the machine disturbed past the stated
    /// limits. `0s` runs none again (default: as long as all repetitions take once, at least 1 min)
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "TIME", value_parser = parse_run_again, env = "TALKPATH_RUN_AGAIN")]
    pub run_again: Option<Duration>,
    /// Write the figures of every copy of a flow to summary.json, even if the flow has more than 500 copies
    #[arg(help_heading = heading::FILES, long, env = "TALKPATH_PER_FLOW", value_parser = FalseyValueParser::new())]
    pub per_flow: bool,
    #[command(flatten)]
    pub tables: TableArgs,
}

/// The flag about keeping packets.
#[derive(Clone, Copy, Debug, Args)]
pub struct CaptureArgs {
    /// emu: keep every packet, or its first SNAPLEN bytes, for `export --format pcapng`
    #[arg(
        id = "capture",
        help_heading = heading::FILES,
        long = "capture",
        value_name = "SNAPLEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "65535",
        value_parser = clap::value_parser!(u32).range(64..=65_535),
        env = "TALKPATH_CAPTURE"
    )]
    pub snaplen: Option<u32>,
}

/// Flags about the text below tables.
#[derive(Clone, Copy, Debug, Args)]
pub struct TableArgs {
    /// Print what the columns of the tables mean. report.html always says it
    #[arg(help_heading = heading::OUTPUT, long, env = "TALKPATH_EXPLAIN", value_parser = FalseyValueParser::new())]
    pub explain: bool,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Transports to compare (default: udp,tcp,tcp-nodelay and the three of QUIC; for `bulk` tcp), or `all`,
    /// which adds DCCP
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "A,B,...", value_delimiter = ',', env = "TALKPATH_TRANSPORTS")]
    pub transports: Vec<String>,
    /// The kind of traffic that is compared
    #[arg(help_heading = heading::TRAFFIC, long, value_parser = workload_parser(), env = "TALKPATH_WORKLOAD", default_value = ComparedWorkload::Voice.name())]
    pub workload: ComparedWorkload,
    /// voice: the receiver plays silence where a frame is missing. Without this flag it conceals missing
    /// frames by G.711 Appendix I
    #[arg(help_heading = heading::TRAFFIC, long)]
    pub no_plc: bool,
    /// voice: has no effect, because concealment is the default
    #[arg(help_heading = heading::TRAFFIC, long, hide = true, conflicts_with = "no_plc")]
    pub plc: bool,
    /// voice: the codec of the call (default: g711)
    #[arg(help_heading = heading::TRAFFIC, long, value_parser = mos::codec_parser())]
    pub codec: Option<Codec>,
    /// voice: the time between two packets, as in `30ms` (default: 20 ms)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME")]
    pub ptime: Option<String>,
    /// Congestion controls of TCP. Each TCP transport runs once with each of them, and the upload has the
    /// first (default: CUBIC as in the kernel; for `bulk` cubic,reno and in sim also bbr)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "A,B,...", value_delimiter = ',')]
    pub cc: Vec<String>,
    /// How long each transport runs, as in `30s`
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME")]
    pub duration: Option<String>,
    /// live: run a bulk upload beside the compared flow. `sim` and `emu` do so without this flag
    #[arg(help_heading = heading::TRAFFIC, long, env = "TALKPATH_LOAD", value_parser = FalseyValueParser::new())]
    pub load: bool,
    /// sim and emu: run no upload beside the compared flow, even if TALKPATH_LOAD is set
    #[arg(help_heading = heading::TRAFFIC, long)]
    pub alone: bool,
    /// A preset, or a file: one with the tables `up` and `down` like those in scenarios/paths/, a table of
    /// rates over time, whose first line names its columns, such as time_s,rate_mbps,delay_ms, or what
    /// `talkpath trace` reads: mahimahi's trace, JSON of netem-trace, lines of tc, a capture (with --line).
    /// Presets: lan, home-adsl, home-adsl-fq, home-cable, home-cable-fq, wifi-busy, lte, starlink,
    /// geo-satellite and transatlantic (default: home-adsl)
    #[arg(help_heading = heading::PATH, long, value_name = "PRESET|FILE", env = "TALKPATH_PATH")]
    pub path: Option<String>,
    #[command(flatten)]
    pub links: LinkArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub demand: DemandArgs,
    #[command(flatten)]
    pub until: UntilArgs,
}

/// The preset that `compare` uses if the user names no path.
pub const HOME: &str = "home-adsl";

/// The transports that `compare` compares if the user names none.
const DEPLOYED: [&str; 6] =
    ["udp", "tcp", "tcp-nodelay", "quic-datagram", "quic-stream", "quic-stream-per-message"];

/// Makes a parser for the names of the workloads of `compare` and `monitor`.
fn workload_parser() -> impl TypedValueParser<Value = ComparedWorkload> {
    PossibleValuesParser::new(
        ComparedWorkload::ALL.map(|workload| PossibleValue::new(workload.name()).help(workload.about())),
    )
    .map(|word| ComparedWorkload::named(&word).unwrap_or(ComparedWorkload::Voice))
}

impl CompareArgs {
    /// Returns the transports that the user chose, or the default ones, which anybody can deploy.
    pub fn transports(&self) -> Vec<String> {
        if self.transports.is_empty() {
            let defaults: &[&str] = match self.workload {
                ComparedWorkload::Bulk => &["tcp"],
                ComparedWorkload::Voice | ComparedWorkload::Game => &DEPLOYED,
            };
            return defaults.iter().map(|&name| name.to_owned()).collect();
        }
        if self.transports == ["all"] {
            // `quic` is a short name for one of the three ways to use QUIC, which are all in the list.
            let names = transport_names().into_iter().filter(|&name| name != "quic");
            return names.map(str::to_owned).collect();
        }
        self.transports.iter().map(|name| name.trim().to_owned()).collect()
    }
}

/// The changes that the command line makes to a scenario.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Set a key of the scenario, such as `path.up.rate=2 Mbps`. The flag may be given several times. `*`
    /// stands for both directions of the path, or for every link or flow, as in `path.*.loss=1%`
    #[arg(help_heading = heading::KEYS, long = "set", value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub set: Vec<(String, String)>,
    /// Run once with each of these values of a key, as in `path.up.queue.limit=16kB,64kB`. If the flag is
    /// given several times, every combination runs. The report of a sweep over two keys has heat maps. `*`
    /// works as in --set: `path.*.loss=0,1%`, or `path.*.delay=50ms` for a round trip of 100 ms
    #[arg(help_heading = heading::KEYS, long = "sweep", value_name = "KEY=A,B,...", value_parser = parse_key_values)]
    pub sweep: Vec<(String, String)>,
}

impl ChangeArgs {
    /// Returns the settings in the order in which they are applied. Sweeps come last, so a sweep wins over
    /// --set.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        let set = self.set.iter().cloned().map(Setting::from);
        set.chain(self.sweep.iter().map(|(key, values)| Setting::sweep(key, values)))
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The scenario file. With --resume it may be left out; then it is the one in the run directory
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "resume")]
    pub scenario: Option<PathBuf>,
    /// Another path than the scenario's: a preset or a file, as for `compare`
    #[arg(help_heading = heading::PATH, long, value_name = "PRESET|FILE", conflicts_with = "resume")]
    pub path: Option<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub place: Place,
    /// emu and live: run all cells once before any cell runs again, in a random order, as `compare` does
    #[arg(help_heading = heading::REPETITIONS, long)]
    pub rounds: bool,
    /// Continue a run that was killed or interrupted. Finished repetitions are kept and do not run again
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "RUN_DIR", conflicts_with = "until_decided")]
    pub resume: Option<PathBuf>,
    /// Run the program of a scenario with `[program]`, on this machine and with all rights of your user. The
    /// arena is then emu
    #[arg(help_heading = heading::WHERE, long)]
    pub allow_program: bool,
    #[command(flatten)]
    pub shard: ShardArgs,
    #[command(flatten)]
    pub demand: DemandArgs,
    #[command(flatten)]
    pub until: UntilArgs,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run directories
    #[arg(value_name = "RUN_DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Where to write the page (default: report.html in the run directory). With several directories one page
    /// holds them all
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
    /// Where to write the page (default: play.html in the run directory)
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
}

/// Reads the command line and the environment variables. A request for help ends the process here.
pub fn parse() -> Result<Cli, Failure> {
    let matches = Cli::command().try_get_matches().map_err(|error| usage_failure(&error))?;
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Commands without a JSON result refuse the flag `--json`, but ignore its environment variable, which the
    // user may have set for the other commands.
    if let Some(failure) = json_refusal(&cli.command)
        && matches.value_source("json") == Some(ValueSource::CommandLine)
    {
        return Err(failure);
    }
    if let Some((_, command_matches)) = matches.subcommand() {
        apply_precedence(&mut cli, command_matches)?;
    }
    Ok(cli)
}

/// Returns the word that the user types for a value of a flag.
pub fn flag_word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
}

/// Reads `ADDR[:PORT]`. If the text has no port, the port is `default_port`.
fn parse_socket_address(text: &str, default_port: u16) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let without_brackets = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = without_brackets.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, default_port));
    }
    Err(format!("expected ADDR[:PORT], as in 0.0.0.0, 127.0.0.1:{default_port} or [::]:{default_port}"))
}

/// Writes `text` as a TOML string, in quotes.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Splits `KEY=VALUE` at the first `=`.
pub fn parse_key_value(text: &str) -> Result<(String, String), String> {
    split_key(text, "KEY=VALUE, as in path.up.rate=2 Mbps")
}

/// Splits `KEY=A,B,...` at the first `=`.
fn parse_key_values(text: &str) -> Result<(String, String), String> {
    split_key(text, "KEY=A,B,..., as in path.up.loss=0,1%")
}

/// Splits `text` at the first `=`. If there is none, the error says that `form` is expected.
fn split_key(text: &str, form: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("expected {form}"))?;
    if key.trim().is_empty() {
        return Err("the key before `=` is empty".to_owned());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
