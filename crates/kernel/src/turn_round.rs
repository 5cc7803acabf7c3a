//! The warning about an echoing host that held messages for too long.

use talkpath_flow::HELD_TOO_LONG;
use talkpath_measure::TurnRoundRecord;
use talkpath_units::{Duration, counted};

/// Judges the echoes of a flow, which `host` sent. Returns the warning, and false if the run is not valid.
/// `None` if the echoes were prompt.
pub fn judge(turns: &TurnRoundRecord, host: &str) -> Option<(String, bool)> {
    let is_valid = turns.p99 <= INVALID && turns.max <= INVALID_ONE;
    if is_valid && turns.p99 <= WARN && turns.max <= INVALID {
        return None;
    }
    let limit = if turns.p99 > INVALID {
        format!(", past the limit of {INVALID} at p99")
    } else if turns.max > INVALID_ONE {
        format!(", past the limit of {INVALID_ONE} for any of them")
    } else {
        String::new()
    };
    let [p50, p99, max] = [turns.p50, turns.p99, turns.max].map(Duration::as_millis_f64);
    let (flow, echoes) = (&turns.flow, counted(turns.count, "echo"));
    let line = format!(
        "flow {flow}: {host} held its {echoes} for p50 {p50:.3} ms, p99 {p99:.3} ms, at most {max:.3} ms{limit}; the round \
         trips leave that out as far as the kernel's stamps show it"
    );
    Some((line, is_valid))
}

/// The p99 above which there is a warning: the limit of a late sender (docs/models/live.md).
const WARN: Duration = Duration::from_millis(1);
/// The p99 above which the run is not valid: the limit of a late sender (docs/models/live.md). A single echo
/// above it is a warning.
const INVALID: Duration = HELD_TOO_LONG;
/// A single echo that is held for longer than this makes the run not valid. It is the delay that ITU-T G.114
/// lets go unnoticed. The time at the host alone would decide whether such a message is in time.
pub const INVALID_ONE: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use talkpath_flow::TurnRounds;
    use talkpath_units::Instant;

    use super::*;

    fn held(ms: impl IntoIterator<Item = u64>) -> TurnRoundRecord {
        let mut turns = TurnRounds::default();
        for (number, ms) in ms.into_iter().enumerate() {
            let arrived = Instant::from_millis(20 * number as u64);
            turns.add(arrived, arrived.saturating_add(Duration::from_millis(ms)));
        }
        turns.figures().unwrap().record("call")
    }

    #[test]
    fn a_host_that_holds_echoes_past_the_limit_makes_the_run_not_valid_and_is_named() {
        let rest = || std::iter::repeat_n(0, 980);
        assert_eq!(judge(&held(rest()), "the far host"), None);
        let judged = |late: &[u64]| judge(&held(rest().chain(late.iter().copied())), "the far host");
        // 20 of 1000 are the p99's.
        let (line, is_valid) = judged(&[2; 20]).unwrap();
        assert!(is_valid && line.contains("p99 2.0") && !line.contains("limit"), "{line}");
        let (line, is_valid) = judged(&[6; 20]).unwrap();
        assert!(!is_valid && line.contains("past the limit of 5") && line.contains("the far host"), "{line}");
        // A stop of the far host for a second in a long run: the p99 does not see it, the longest does.
        let (line, is_valid) = judged(&[990, 970, 950]).unwrap();
        assert!(!is_valid && line.contains("at most 990.000 ms, past the limit of 150"), "{line}");
        let (line, is_valid) = judged(&[100]).unwrap();
        assert!(is_valid && line.contains("at most 100.000 ms"), "one glitch is told: {line}");
    }
}
