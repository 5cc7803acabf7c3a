//! Gives the three arenas to the commands. Only this program is linked with all of them.

use std::io::{self, Write};
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value as Json;
use talkpath_arena::MonitorEvent;
use talkpath_commands::arenas::{Arenas, Monitored, failure};
use talkpath_commands::args::ExportArgs;
use talkpath_commands::failure::Failure;
use talkpath_commands::key_file::{exposure, read_key_file};
use talkpath_commands::terminal::Terminal;
use talkpath_emu::EmuArena;
use talkpath_emu::shell::{Nursery, RepeatedProgram};
use talkpath_experiment::Error;
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::place::{Connect, Place, Versions, Worker};
use talkpath_experiment::run_dir::RunDir;
use talkpath_kernel::spec::{FlowSpec, SessionSpec};
use talkpath_live::{EachVersion, Key, LiveArena, LiveOptions, Monitor, Notice};
use talkpath_measure::FlowInfo;
use talkpath_model::{Flow, Scenario};
use talkpath_sim::{SimArena, flow_info};
use talkpath_transport::new_machine;
use talkpath_units::{Instant, Seed};
use talkpath_wire::machine::Machines;

use crate::packets::export_packets;
use crate::watched::watched;

/// The state machines of our own protocols, which `emu` and `live` run over real sockets.
pub(crate) const MACHINES: Machines = Machines::made_by(new_machine);

/// The simulator, the emulator and live hosts.
pub(crate) struct Linked {
    /// Prints the warnings of a live run while it goes on.
    pub(crate) terminal: Terminal,
    /// Starts the programs of scenarios. `None` if no scenario may run one.
    pub(crate) nursery: Option<Arc<Nursery>>,
}

impl Connect for Linked {
    fn connect(&self, place: &Place, jobs: usize) -> Result<Vec<Worker>, Error> {
        match place.arena {
            ArenaKind::Sim => Ok((0..jobs.max(1)).map(|_| Box::new(SimArena::new()) as Worker).collect()),
            ArenaKind::Emu => {
                // Only the first arena tests whether this machine can emulate. The others need no test.
                let first = EmuArena::open()?;
                let others = (1..jobs).map(|_| EmuArena::default());
                let workers = iter::once(first).chain(others).map(|arena| -> Worker {
                    let arena = arena.with_machines(MACHINES).keeping_qlog(place.qlog);
                    let arena = match &self.nursery {
                        Some(nursery) => {
                            arena.with_program(Box::new(RepeatedProgram::new(Arc::clone(nursery))))
                        }
                        None => arena,
                    };
                    match place.capture {
                        Some(snaplen) => Box::new(arena.capturing(snaplen)),
                        None => Box::new(arena),
                    }
                });
                Ok(workers.collect())
            }
            ArenaKind::Live => {
                let key = place.key_file.as_deref().map(|path| read_key(path, self.terminal)).transpose();
                let key = key.map_err(|why| Error::Unusable(why.to_string()))?;
                let host = place.to.as_deref().unwrap_or_default();
                let terminal = self.terminal;
                let notice = Notice::to(move |line| terminal.warning(line));
                let clocks_synchronised = place.clocks_synchronised;
                let options = LiveOptions {
                    key,
                    clocks_synchronised,
                    notice,
                    machines: MACHINES,
                    ip: None,
                    explores_path: true,
                    keeps_qlog: place.qlog,
                    times_mapping: place.mapping_lifetime,
                };
                let arena: Worker = match place.ip {
                    Versions::First => Box::new(LiveArena::connect(host, options)?),
                    Versions::Only(version) => {
                        Box::new(LiveArena::connect(host, LiveOptions { ip: Some(version), ..options })?)
                    }
                    Versions::Each => Box::new(EachVersion::connect(host, &options)?),
                };
                Ok(vec![arena])
            }
        }
    }

    fn revision(&self) -> Option<String> {
        // The text is empty if the program was not built in a checkout of the repository (build.rs).
        Some(env!("TALKPATH_REVISION").to_owned()).filter(|revision| !revision.is_empty())
    }
}

impl Arenas for Linked {
    fn watched(&self, scenario: &Scenario, seed: Seed, stop: &AtomicBool) -> Option<Json> {
        watched(scenario, seed, stop)
    }

    fn read_key(&self, file: &Path) -> Result<Vec<u8>, Failure> {
        let bytes = read(file, self.terminal)?;
        parse_key(file, &bytes)?;
        Ok(bytes)
    }

    fn monitor(
        &self,
        monitored: &Monitored<'_>,
        handle: &mut dyn FnMut(MonitorEvent),
    ) -> Result<(), Failure> {
        let key = monitored.key.map(Key::new).transpose();
        let key = key.map_err(|why| Failure::Usage(format!("the key: {why}")))?;
        let terminal = self.terminal;
        let monitor = Monitor {
            host: monitored.host,
            options: LiveOptions {
                key,
                clocks_synchronised: monitored.clocks_synchronised,
                notice: Notice::to(move |line| terminal.warning(line)),
                machines: MACHINES,
                ip: monitored.ip,
                explores_path: true,
                keeps_qlog: false,
                times_mapping: false,
            },
            scenario: monitored.scenario,
            series: monitored.series,
            interrupt: monitored.interrupt,
            measured_until_ns: monitored.measured_until_ns,
        };
        monitor.run(handle).map_err(|why| failure(why).1)
    }

    fn flow_info(&self, flow: &Flow, clock_trusted: bool) -> FlowInfo {
        let (earliest, _) = flow.start;
        flow_info(flow, None, Instant::ZERO.saturating_add(earliest), clock_trusted)
    }

    fn constant_sizes(&self, scenario: &Scenario) -> Result<Vec<Option<u64>>, Failure> {
        let spec = SessionSpec::new(scenario, scenario.seed, None).map_err(Failure::Usage)?;
        Ok(spec.flows.iter().map(FlowSpec::constant_size).collect())
    }

    fn export_packets(
        &self,
        dir: &RunDir,
        args: &ExportArgs,
        writer: &mut dyn Write,
        unwritten: &dyn Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        export_packets(dir, args, writer, unwritten)
    }
}

/// Reads the key in the file `path`.
pub(crate) fn read_key(path: &Path, terminal: Terminal) -> Result<Key, Failure> {
    parse_key(path, &read(path, terminal)?)
}

/// Reads the file `path`, and warns if other users can read it, too.
fn read(path: &Path, terminal: Terminal) -> Result<Vec<u8>, Failure> {
    exposure(path).iter().for_each(|line| terminal.warning(line));
    read_key_file(path)
        .map_err(|why| Failure::Usage(format!("--key-file {}: cannot be read: {why}", path.display())))
}

/// Makes a key of `bytes`, the content of the file `path`.
fn parse_key(path: &Path, bytes: &[u8]) -> Result<Key, Failure> {
    Key::new(bytes).map_err(|why| Failure::Usage(format!("--key-file {}: {why}", path.display())))
}
