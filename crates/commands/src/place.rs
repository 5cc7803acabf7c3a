//! Where a run happens: from the flags of a command line, and back to flags for the command that runs it
//! again.

use talkpath_experiment::choice::{ArenaKind, Choice};
use talkpath_experiment::place::Place;

use crate::args;
use crate::failure::Failure;
use crate::terminal::{shell_path, shell_word};

/// What the command line says to run something there: nothing for the simulator.
pub(crate) fn flags(place: &Place) -> String {
    let arena = match (place.arena, &place.to) {
        (ArenaKind::Sim, _) => String::new(),
        (ArenaKind::Live, Some(to)) => format!(" --to {}", shell_word(to)),
        (arena, _) => format!(" --arena {}", arena.word()),
    };
    let key =
        place.key_file.as_ref().map_or(String::new(), |file| format!(" --key-file {}", shell_path(file)));
    let clocks = if place.clocks_synchronised { " --clocks-synchronised" } else { "" };
    let awake = if place.keep_awake { " --keep-awake" } else { "" };
    let again =
        place.run_again.map_or_else(String::new, |time| format!(" --run-again {}s", time.as_secs_f64()));
    let per_flow = if place.per_flow { " --per-flow" } else { "" };
    format!("{arena}{key}{clocks}{awake}{again}{per_flow}")
}

/// As the command line says: `--to` alone means `live`.
pub(crate) fn named(place: &args::Place) -> Result<Place, Failure> {
    let arena = match (place.arena, &place.to) {
        (Some(arena), _) => arena,
        (None, Some(_)) => ArenaKind::Live,
        (None, None) => ArenaKind::Sim,
    };
    let capture = place.capture;
    if capture.is_some() && arena != ArenaKind::Emu {
        return Err(Failure::Usage(format!(
            "--capture belongs to --arena emu: {}",
            match arena {
                ArenaKind::Sim => "a simulated run is made again when it is exported",
                ArenaKind::Emu | ArenaKind::Live => "over a real network tcpdump sees the packets",
            }
        )));
    }
    let clocks_synchronised = place.clocks_synchronised;
    if clocks_synchronised && arena != ArenaKind::Live {
        return Err(Failure::Usage(
            "--clocks-synchronised belongs to --arena live: elsewhere both ends read one clock".to_owned(),
        ));
    }
    if place.keep_awake && arena == ArenaKind::Sim {
        return Err(Failure::Usage(
            "--keep-awake belongs to --arena emu and live: virtual time waits for every processor".to_owned(),
        ));
    }
    if place.run_again.is_some() && arena == ArenaKind::Sim {
        return Err(Failure::Usage(
            "--run-again belongs to --arena emu and live: in virtual time no machine disturbs a run"
                .to_owned(),
        ));
    }
    let here = Place {
        clocks_synchronised,
        capture,
        keep_awake: place.keep_awake,
        run_again: place.run_again,
        per_flow: place.per_flow,
        ..Place::of(arena, None)
    };
    match (arena, &place.to) {
        (ArenaKind::Live, None) => {
            Err(Failure::Usage("--arena live needs --to HOST, a host that runs `talkpath serve`".to_owned()))
        }
        (ArenaKind::Live, Some(_)) => {
            Ok(Place { to: place.to.clone(), key_file: place.key_file.clone(), ..here })
        }
        (ArenaKind::Sim | ArenaKind::Emu, Some(_)) => {
            Err(Failure::Usage(format!("--to belongs to --arena live, not to --arena {}", arena.word())))
        }
        (ArenaKind::Sim | ArenaKind::Emu, None) => Ok(here),
    }
}
