//! Stolen time: processor time that a hypervisor gave to other guests during a run.
//!
//! A virtual processor that does not run delays all its threads, real-time threads too. Nothing inside the
//! guest helps: no priority, no spin and no pinned core. If the hypervisor takes more than one part in a
//! hundred of the time, about one packet in a hundred is delayed. The hypervisor then decides the 99th
//! percentile of every lateness.
//!
//! Linux counts stolen time in clock ticks (proc_stat(5): the eighth figure of the line `cpu`, "steal").
//! Without a hypervisor, or with one that does not report it, the count stays at zero.

/// The count of stolen time from some moment on.
#[derive(Clone, Copy, Debug)]
pub struct StolenTime(Option<Ticks>);

/// The clock ticks of all processors together since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    stolen: u64,
    all: u64,
}

impl StolenTime {
    /// Starts the count now.
    pub fn start() -> Self {
        Self(Ticks::now())
    }

    /// The count from the machine's start on.
    pub const fn since_boot() -> Self {
        Self(Some(Ticks { stolen: 0, all: 0 }))
    }

    /// The stolen share of all processors' time since the start of the count, 0 to 1. `None` if the kernel
    /// does not report it, or if no tick has passed.
    pub fn share(self) -> Option<f64> {
        self.0?.share_until(Ticks::now()?)
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // The columns are user, nice, system, idle, iowait, irq, softirq and steal. The columns of guests
        // that follow are already counted in user.
        let mut all = 0_u64;
        let mut stolen = None;
        for (column, figure) in line.split_whitespace().take(STEAL + 1).enumerate() {
            let ticks = figure.parse().ok()?;
            all = all.checked_add(ticks)?;
            stolen = (column == STEAL).then_some(ticks);
        }
        Some(Self { stolen: stolen?, all })
    }

    fn share_until(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        Some(later.stolen.saturating_sub(self.stolen) as f64 / all as f64)
    }
}

/// The warning for a run during which this share was stolen, if the share is enough to decide the 99th
/// percentile.
pub fn warning(share: Option<f64>) -> Option<String> {
    share.filter(|share| *share >= talkpath_measure::STOLEN_SHARE_TOLD).map(|share| {
        format!(
            "the hypervisor gave {:.1} % of this machine's processor time to others meanwhile: no priority helps against that",
            share * 100.0
        )
    })
}

/// The column of the line `cpu` that holds it.
const STEAL: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    /// proc_stat(5).
    #[test]
    fn the_eighth_figure_is_stolen_and_the_first_eight_are_all() {
        let stat =
            |idle, steal| format!("cpu  10 0 20 {idle} 1 2 7 {steal} 99 98\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        let before = Ticks::read(&stat(100, 5)).unwrap();
        assert_eq!(before, Ticks { stolen: 5, all: 145 });
        assert_eq!(before.share_until(Ticks::read(&stat(190, 15)).unwrap()), Some(0.1));
        assert_eq!(before.share_until(before), None, "no tick has passed");
        assert_eq!(Ticks { stolen: 0, all: 200 }.share_until(before), None, "a count does not go back");
    }

    #[test]
    fn a_kernel_that_does_not_tell_is_no_figure() {
        for stat in ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu  1 2 3 4 5 6 7\n", "cpu  1 2 3 4 5 6 7 x\n"] {
            assert_eq!(Ticks::read(stat), None, "{stat:?}");
        }
    }

    #[test]
    fn from_one_part_in_a_hundred_on_it_is_told() {
        assert_eq!(warning(None), None);
        assert_eq!(warning(Some(0.0099)), None);
        assert!(warning(Some(0.056)).unwrap().contains("5.6 %"));
    }
}
