//! Where a run happens: the arena, and for a live run the far host. A place is read from the flags of a
//! command line, and written back as flags for the command that runs the same again.

use talkpath_experiment::choice::{ArenaKind, Choice};
use talkpath_experiment::place::{Place, Versions};

use crate::args;
use crate::failure::Failure;
use crate::terminal::{shell_path, shell_word};

/// Reads the place from the flags. The arena is `sim` if the flags do not say it.
pub(crate) fn from_flags(flags: &args::Place) -> Result<Place, Failure> {
    with_usual_arena(flags, ArenaKind::Sim)
}

/// Reads the place from the flags. `--to` without `--arena` means `live`. Without both the arena is `usual`.
/// A flag that the arena has no use for is refused.
pub(crate) fn with_usual_arena(flags: &args::Place, usual: ArenaKind) -> Result<Place, Failure> {
    let arena = match (flags.arena, &flags.to) {
        (Some(arena), _) => arena,
        (None, Some(_)) => ArenaKind::Live,
        (None, None) => usual,
    };
    refuse_flags_of_other_arenas(flags, arena)?;
    let place = Place {
        clocks_synchronised: flags.clocks_synchronised,
        capture: flags.capture.snaplen,
        qlog: flags.qlog,
        mapping_lifetime: flags.mapping_lifetime,
        keep_awake: flags.keep_awake,
        run_again: flags.run_again,
        per_flow: flags.per_flow,
        ..Place::new(arena, None)
    };
    match (arena, &flags.to) {
        (ArenaKind::Live, Some(to)) => {
            let ip = flags.family.versions();
            Ok(Place { to: Some(to.clone()), ip, key_file: flags.key_file.clone(), ..place })
        }
        (ArenaKind::Live, None) => {
            Err(Failure::Usage("--arena live needs --to HOST, a host that runs `talkpath serve`".to_owned()))
        }
        (ArenaKind::Sim | ArenaKind::Emu, Some(_)) => {
            Err(Failure::Usage(format!("--to belongs to --arena live, not to --arena {}", arena.word())))
        }
        (ArenaKind::Sim | ArenaKind::Emu, None) => Ok(place),
    }
}

fn refuse_flags_of_other_arenas(flags: &args::Place, arena: ArenaKind) -> Result<(), Failure> {
    if flags.capture.snaplen.is_some() && arena != ArenaKind::Emu {
        let reason = match arena {
            ArenaKind::Sim => "a simulated run is made again when it is exported",
            ArenaKind::Emu | ArenaKind::Live => "over a real network tcpdump sees the packets",
        };
        return Err(Failure::Usage(format!("--capture belongs to --arena emu: {reason}")));
    }
    if flags.qlog && arena == ArenaKind::Sim {
        return Err(Failure::Usage(
            "--qlog belongs to --arena emu and live: a simulated run is made again when it is exported"
                .to_owned(),
        ));
    }
    if flags.mapping_lifetime && arena != ArenaKind::Live {
        return Err(Failure::Usage(
            "--mapping-lifetime belongs to --arena live: elsewhere nothing translates addresses".to_owned(),
        ));
    }
    let versions = flags.family.versions();
    if versions != Versions::First && arena != ArenaKind::Live {
        return Err(Failure::Usage(format!(
            "{} belongs to --arena live: elsewhere the scenario's `ip` says it",
            versions.flags().trim_start()
        )));
    }
    if flags.clocks_synchronised && arena != ArenaKind::Live {
        return Err(Failure::Usage(
            "--clocks-synchronised belongs to --arena live: elsewhere both ends read one clock".to_owned(),
        ));
    }
    if flags.keep_awake && arena == ArenaKind::Sim {
        return Err(Failure::Usage(
            "--keep-awake belongs to --arena emu and live: virtual time waits for every processor".to_owned(),
        ));
    }
    if flags.run_again.is_some() && arena == ArenaKind::Sim {
        return Err(Failure::Usage(
            "--run-again belongs to --arena emu and live: in virtual time no machine disturbs a run"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Writes `place` as flags, each with a space before it. The simulator needs no flag.
pub(crate) fn as_flags(place: &Place) -> String {
    let mut flags = match (place.arena, &place.to) {
        (ArenaKind::Sim, _) => String::new(),
        (ArenaKind::Live, Some(to)) => format!(" --to {}", shell_word(to)),
        (arena, _) => format!(" --arena {}", arena.word()),
    };
    flags += place.ip.flags();
    if let Some(file) = &place.key_file {
        flags += &format!(" --key-file {}", shell_path(file));
    }
    if place.clocks_synchronised {
        flags += " --clocks-synchronised";
    }
    if place.qlog {
        flags += " --qlog";
    }
    if place.mapping_lifetime {
        flags += " --mapping-lifetime";
    }
    if place.keep_awake {
        flags += " --keep-awake";
    }
    if let Some(time) = place.run_again {
        flags += &format!(" --run-again {}s", time.as_secs_f64());
    }
    if place.per_flow {
        flags += " --per-flow";
    }
    flags
}
