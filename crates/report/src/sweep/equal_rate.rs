//! Which combination of a sender's options serves best at about the same rate on the line.
//!
//! RED and in-band FEC cost bits, and so does a higher rate of the codec. At a given rate the sender can
//! spend the bits on the speech or on its protection. So the combinations of the flow's swept keys that send
//! at about the same rate are ranked among each other, at each combination of the other keys.

use talkpath_measure::summary::JudgedBy;

use super::choice::ChoiceAnswer;
use super::{Combination, Sweep};

/// Rates are about the same if the highest is at most a tenth above the lowest. We chose a tenth: it is less
/// than one step of a codec's rate, and more than the rate of a header.
const SAME_RATE: f64 = 1.1;
/// At most 6 rates have an answer, and at most 8 combinations are ranked at a rate. We chose both, so that a
/// paragraph stays readable.
const MAX_RATES: usize = 6;
const MAX_CANDIDATES: usize = 8;
/// The most answers at a rate that are written in full. More are put together along a key. We chose 2,
/// because there are several rates.
const MAX_IN_FULL: usize = 2;

/// A combination of the flow's keys.
struct Candidate<'a> {
    /// The values of the flow's keys: `bitrate 16 kbps + red 1`.
    name: String,
    /// What the flow sends with the headers of UDP and IPv4, the mean over the combinations of other keys.
    bps: f64,
    /// The combinations of all keys.
    combinations: Vec<&'a Combination<'a>>,
}

impl Sweep<'_> {
    /// Says at each rate of several combinations of the flow's keys which of these serves best. Returns
    /// `None` if no two combinations send at about the same rate, if a call has no score, or if one key alone
    /// is swept: its own sentence has the answer.
    pub(super) fn choices_at_equal_rates(&self) -> Option<String> {
        let of_flow = format!("flow.{}.", self.flow);
        let (own, others): (Vec<usize>, Vec<usize>) =
            (0..self.axes.len()).partition(|axis| self.axes[*axis].key.starts_with(&of_flow));
        // The share that is heard is the same at each rate of the codec, although the speech sounds
        // different.
        if own.len() < 2 || self.judged_by == JudgedBy::Heard {
            return None;
        }
        let groups = self.group_by_values(&own);
        let mut candidates: Vec<Candidate<'_>> =
            groups.into_iter().filter_map(|group| self.candidate(&own, group)).collect();
        candidates.sort_by(|a, b| a.bps.total_cmp(&b.bps));
        let mut rates: Vec<&[Candidate<'_>]> = Vec::new();
        let mut rest = &candidates[..];
        while let Some(lowest) = rest.first() {
            let count = rest.iter().take_while(|candidate| candidate.bps <= SAME_RATE * lowest.bps).count();
            let (rate, higher) = rest.split_at(count);
            rates.extend((2..=MAX_CANDIDATES).contains(&count).then_some(rate));
            rest = higher;
        }
        let parts: Vec<String> = rates
            .into_iter()
            .take(MAX_RATES)
            .filter_map(|rate| {
                let answers = self.answers_at_rate(&others, rate);
                let kbps = |candidate: &Candidate<'_>| format!("{:.0}", candidate.bps / 1e3);
                let (low, high) = (kbps(rate.first()?), kbps(rate.last()?));
                let range = if low == high { low } else { format!("{low} to {high}") };
                let ranges =
                    if answers.len() > MAX_IN_FULL { self.choices_along(&others, &answers) } else { None };
                let words = ranges.or_else(|| self.answers_in_words(&others, &answers))?;
                Some(format!("{range} kb/s: {words}"))
            })
            .collect();
        (!parts.is_empty()).then(|| format!("At about the same rate on IPv4, {}.", parts.join("; ")))
    }

    /// Returns `None` if a combination does not know what it sends.
    fn candidate<'a>(&self, own: &[usize], combinations: Vec<&'a Combination<'a>>) -> Option<Candidate<'a>> {
        let rates: Option<Vec<f64>> =
            combinations.iter().map(|combination| combination.best_result()?.sent_bps).collect();
        let rates = rates?;
        let value_indices = &combinations.first()?.value_indices;
        // The end of a key is its name in the flow's table.
        let parts = own.iter().map(|axis| {
            let key = self.axes[*axis].key.as_str();
            let name = key.rsplit('.').next().unwrap_or(key);
            format!("{name} {}", self.axes[*axis].label(value_indices[*axis]))
        });
        let name = parts.collect::<Vec<_>>().join(" + ");
        Some(Candidate { name, bps: rates.iter().sum::<f64>() / rates.len() as f64, combinations })
    }

    /// The answer among the candidates of a rate, at each combination of the `others` keys.
    fn answers_at_rate<'a>(&self, others: &[usize], rate: &[Candidate<'a>]) -> Vec<ChoiceAnswer<'a>> {
        let places = rate.iter().flat_map(|candidate| &candidate.combinations);
        let mut known: Vec<Vec<usize>> = Vec::new();
        let mut answers = Vec::new();
        for place in places {
            let values = place.values_on(others);
            if known.contains(&values) {
                continue;
            }
            let candidates = rate.iter().filter_map(|candidate| {
                let here = candidate.combinations.iter().find(|it| it.values_on(others) == values)?;
                Some((candidate.name.clone(), here.best_result()?))
            });
            answers.extend(self.ranked_choice(others, place, candidates.collect()));
            known.push(values);
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::fixture;
    use crate::sweep::Sweep;
    use crate::verdict::FlowCells;

    /// Calls at two rates of the codec, without and with RED, over four losses. RED doubles what is sent, and
    /// pays from 2 % on.
    fn sentences(rates_kbps: [u64; 2], first_to_last_ms: f64) -> Vec<String> {
        let mut summary = fixture::summary(5);
        let runs: Vec<_> =
            core::mem::take(&mut summary.runs).into_iter().filter(|run| run.cell == 0).collect();
        let mut cell = 0;
        for percent in [0_u64, 1, 2, 3, 4, 5, 8] {
            for (rate, red) in [(0, 0_u64), (0, 1), (1, 0), (1, 1)] {
                for run in &runs {
                    let mut run = run.clone();
                    run.cell = cell;
                    run.sweep = [
                        ("path.up.loss".to_owned(), Value::from(percent as f64 / 100.0)),
                        (
                            "flow.call.workload.bitrate".to_owned(),
                            format!("{} kbps", rates_kbps[rate]).into(),
                        ),
                        ("flow.call.workload.red".to_owned(), red.into()),
                    ]
                    .into();
                    let flow = run.flows.get_mut("call").unwrap();
                    flow.transport = "udp".to_owned();
                    (flow.sent, flow.received) = (3000, 3000);
                    flow.first_sent_to_last_received_ms = Some(first_to_last_ms);
                    // 11.2 kb/s of headers besides.
                    flow.goodput_bps = Some(1e3 * rates_kbps[rate] as f64 * (1.0 + red as f64));
                    let lost = percent as f64 * if red == 1 { 0.1 } else { 0.4 };
                    let call = flow.call.as_mut().unwrap();
                    call.mos = Some([3.8, 4.4][rate] - lost);
                    summary.runs.push(run);
                }
                cell += 1;
            }
        }
        fixture::refresh(&mut summary);
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        Sweep::new(&judged).unwrap().choices()
    }

    #[test]
    fn at_one_rate_speech_and_protection_are_compared_and_where_it_turns_is_said() {
        let sentences = sentences([16, 32], 60_000.0);
        let at_equal_rate = sentences.last().unwrap();
        // 16 kb/s with RED sends 43.2 kb/s, and 32 kb/s without it does, too.
        let expected = "At about the same rate on IPv4, 43 kb/s: by path.up.loss: bitrate 32 kbps + red 0 is best from \
                        0% to 1%, bitrate 16 kbps + red 1 and bitrate 32 kbps + red 0 serve alike at 2%, bitrate 16 kbps + \
                        red 1 is best from 3% to 5%, none is usable at 8%.";
        assert_eq!(at_equal_rate, expected, "{sentences:?}");
    }

    #[test]
    fn combinations_that_send_at_different_rates_are_not_compared() {
        assert!(sentences([16, 64], 60_000.0).iter().all(|text| !text.contains("same rate")));
    }

    #[test]
    fn flows_that_took_no_time_have_no_rate_to_compare() {
        let sentences = sentences([16, 32], 0.0);
        assert!(
            sentences.iter().all(|text| !text.contains("inf") && !text.contains("same rate")),
            "{sentences:?}"
        );
    }
}
