//! Ranks candidates, such as transports, over repetitions, and says how sure the ranking is.
//!
//! # The rule
//!
//! Each candidate has one figure for each repetition, for example a mean opinion score. A larger figure is
//! better. Repetitions with the same number use the same random numbers for every candidate (common random
//! numbers; Law, *Simulation Modeling and Analysis*, 5th ed. 2015, §11.2). Candidates are therefore compared
//! pair by pair, so that an effect of chance on both candidates does not count as a difference.
//!
//! The candidate with the largest mean is the leader. Every other candidate is compared with the leader, by
//! an interval of the mean difference (`interval`):
//!
//! ```text
//!            -tolerance       0       tolerance     candidate minus leader
//!  distinct   [───]  ┊        ┊          ┊
//!  alike             ┊ [────] ┊          ┊          although it leaves out zero
//!  alike             ┊    [───┼────]     ┊
//!  undecided    [────┼───]    ┊          ┊
//! ```
//!
//! - The candidate is *alike* if the 95 % interval lies within the tolerance.
//! - The candidate is *distinct*, which means worse, if the interval lies below the tolerance.
//! - Otherwise an end of the tolerance lies in the interval, and the candidate is *undecided*. It may even do
//!   better than the leader in the repetitions that both have, because the two may lack different
//!   repetitions.
//!
//! A candidate that is alike, but below a floor that the leader reaches, is distinct: whoever asks for the
//! floor does not call the two equal. It is undecided as long as the interval of its mean contains the floor.
//!
//! Zero has no part in the rule. A difference that nobody notices is not made an answer by being sure, and
//! one repetition in twenty that went wrong can move an interval of tiny differences off zero: other seeds
//! would then give another answer. Trials of equivalence decide by such a margin, too (ICH E9, *Statistical
//! Principles for Clinical Trials*, 1998, §3.3.2).
//!
//! The outcome is undecided if one candidate is undecided. Otherwise it is alike if one candidate is alike,
//! and distinct if none is. If the leader's mean is below the floor, the outcome is that nothing is usable.
//!
//! # Barred repetitions
//!
//! A repetition can be barred by something else than its figure, for example by gaps in a call. A candidate
//! with half or more of its repetitions barred is not usable, whatever its mean is. A usable candidate leads
//! before it, and the barred candidate then counts as worse. We chose one half, because the median of the
//! repetitions changes there.
//!
//! # When to stop
//!
//! Whoever repeats until the answer suits is wrong in more than 1 of 20 cases. Repetitions therefore end
//! early only if the 99 % intervals lead to the same answer, for every candidate. The program tries this at
//! five numbers of repetitions: 20, 40, 80, 160 and 200. All early ends together are wrong in at most 4 % of
//! the cases (Bonferroni).

pub mod clusters;
pub mod interval;

use std::collections::BTreeMap;

use self::clusters::{Clusters, clusters};
use self::interval::{Method, Resampled, standard_deviation};
use crate::metrics::confidence::student_t_quantile;
use crate::summary::AnswerKind;

/// How figures of one kind are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Candidates whose means differ by no more than this count as equally good.
    pub tolerance: f64,
    /// A candidate with a mean below this is not usable.
    pub floor: f64,
    /// The least and the greatest possible figure.
    pub possible: (f64, f64),
    /// The least difference between two clusters of repetitions.
    pub cluster_gap: f64,
}

/// The result of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// What the comparison as a whole came to.
    pub outcome: AnswerKind,
    /// Index of the candidate with the largest mean. If several candidates have this mean, it is the first of
    /// them.
    pub leader: usize,
    /// One standing for each candidate, in the order of the candidates.
    pub standings: Vec<Standing>,
    /// Whether more repetitions would hardly change the outcome.
    pub is_settled: bool,
    /// About how many more repetitions would decide. `None` if the outcome is not undecided, or if there is
    /// one repetition alone.
    pub more: Option<u64>,
}

/// How one candidate did.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The mean of the candidate's figures.
    pub mean: f64,
    /// How the candidate compares with the leader.
    pub relation: Relation,
    /// The 95 % interval of the difference to the leader, over the repetitions that both have. `None` for the
    /// leader, and if both have one repetition in common only.
    pub difference: Option<(f64, f64)>,
    /// The method that computed the interval.
    pub method: Option<Method>,
    /// The share of the candidate's repetitions that are barred.
    pub barred: f64,
    /// Whether the candidate and the leader are both at the lower end of the scale. The scale cannot tell
    /// them apart there, so the difference says nothing.
    pub is_off_scale: bool,
    /// The two clusters of the candidate's repetitions. `None` if the repetitions do not fall into two
    /// clusters.
    pub clusters: Option<Clusters>,
}

/// How a candidate compares with the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The candidate is the leader.
    Leader,
    /// The candidate differs from the leader by no more than the tolerance.
    Alike,
    /// The candidate is worse than the leader by more than the tolerance.
    Distinct,
    /// The repetitions do not decide between alike and worse.
    Undecided,
}

/// Ranks `candidates`. Each candidate is a map from the number of a repetition to a finite figure. `barred`
/// is the share of barred repetitions of each candidate, and a share that is left out counts as 0.
///
/// Returns `None` if there are fewer than two candidates, or if a candidate has no figure.
pub fn rank(candidates: &[BTreeMap<u64, f64>], barred: &[f64], measure: &Measure) -> Option<Ranking> {
    if candidates.len() < 2 || candidates.iter().any(BTreeMap::is_empty) {
        return None;
    }
    let mut samples = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let barred_share = barred.get(index).copied().unwrap_or(0.0);
        samples.push(Sample::new(candidate, barred_share));
    }
    let leader = leader(&samples, measure.floor)?;
    let is_leader_usable = samples[leader].is_usable(measure.floor);

    // The differences to the leader. The leader itself has none.
    let mut differences = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let is_leader = index == leader;
        differences.push((!is_leader).then(|| Differences::new(candidate, &candidates[leader], measure)));
    }
    let relations_at = |level: f64| -> Vec<Relation> {
        let pairs = samples.iter().zip(&differences);
        let relation = |(sample, differences): (&Sample, &Option<Differences>)| match differences {
            None => Relation::Leader,
            Some(_) if is_leader_usable && is_barred(sample.barred) => Relation::Distinct,
            Some(differences) => match differences.relation(level, measure.tolerance) {
                Relation::Alike if is_leader_usable && sample.mean < measure.floor => {
                    sample.relation_below_floor(level, measure)
                }
                relation => relation,
            },
        };
        pairs.map(relation).collect()
    };
    let relations = relations_at(SHOWN);
    let outcome = if is_leader_usable { outcome(&relations) } else { AnswerKind::Unusable };

    // If nothing is usable, it does not matter who is best.
    let is_rank_sure =
        !is_leader_usable || (outcome != AnswerKind::Undecided && relations_at(EARLY) == relations);
    // If nothing is usable, the bars of a candidate below the floor do not matter either.
    let needs_bars = |sample: &&Sample| is_leader_usable || !sample.is_surely_below_floor(measure);
    let are_bars_sure = samples.iter().filter(needs_bars).all(Sample::is_bar_sure);
    let is_settled = is_rank_sure && are_bars_sure && samples[leader].is_side_of_floor_sure(measure);

    let needed =
        relations.iter().zip(&differences).zip(&samples).filter_map(|((relation, differences), sample)| {
            let differences = differences.as_ref().filter(|_| *relation == Relation::Undecided)?;
            sample.more_needed(differences, measure)
        });
    let more = if outcome == AnswerKind::Undecided { needed.max() } else { None };

    let mut standings = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let differences = differences[index].as_ref();
        let are_both_lowest = sample.is_at_lower_end(measure) && samples[leader].is_at_lower_end(measure);
        standings.push(Standing {
            mean: sample.mean,
            relation: relations[index],
            difference: differences.and_then(|differences| differences.interval(SHOWN)),
            method: differences.and_then(|differences| Some(differences.resampled.as_ref()?.method())),
            barred: sample.barred,
            is_off_scale: index != leader && are_both_lowest,
            clusters: clusters(&sample.figures, measure.cluster_gap),
        });
    }
    Some(Ranking { outcome, leader, standings, is_settled, more })
}

/// Returns the index of the candidate with the largest mean among the usable candidates, or among all
/// candidates if none is usable. If several candidates have this mean, the first of them leads.
fn leader(samples: &[Sample], floor: f64) -> Option<usize> {
    let is_better = |a: &Sample, b: &Sample| match (a.is_usable(floor), b.is_usable(floor)) {
        (true, false) => true,
        (false, true) => false,
        _ => a.mean.total_cmp(&b.mean).is_gt(),
    };
    let mut leader = 0;
    for index in 1..samples.len() {
        if is_better(&samples[index], &samples[leader]) {
            leader = index;
        }
    }
    (!samples.is_empty()).then_some(leader)
}

fn outcome(relations: &[Relation]) -> AnswerKind {
    if relations.contains(&Relation::Undecided) {
        AnswerKind::Undecided
    } else if relations.contains(&Relation::Alike) {
        AnswerKind::Alike
    } else {
        AnswerKind::Distinct
    }
}

impl Ranking {
    /// Indices of the candidates that the answer names: the leader, and every candidate that is not known to
    /// be worse.
    pub fn best(&self) -> Vec<usize> {
        let is_named = |index: &usize| self.standings[*index].relation != Relation::Distinct;
        (0..self.standings.len()).filter(is_named).collect()
    }
}

impl Standing {
    /// Whether the mean reaches `floor`, and the candidate is not barred.
    pub fn is_usable(&self, floor: f64) -> bool {
        is_usable(self.mean, self.barred, floor)
    }

    /// Whether half or more of the candidate's repetitions are barred.
    pub fn is_barred(&self) -> bool {
        is_barred(self.barred)
    }
}

fn is_usable(mean: f64, barred_share: f64, floor: f64) -> bool {
    mean >= floor && !is_barred(barred_share)
}

fn is_barred(barred_share: f64) -> bool {
    barred_share >= 0.5
}

/// The figures of one candidate.
struct Sample {
    /// One figure for each repetition.
    figures: Vec<f64>,
    mean: f64,
    /// The share of the repetitions that are barred.
    barred: f64,
}

impl Sample {
    fn new(candidate: &BTreeMap<u64, f64>, barred: f64) -> Self {
        let figures: Vec<f64> = candidate.values().copied().collect();
        Self { mean: mean(&figures), figures, barred }
    }

    fn is_usable(&self, floor: f64) -> bool {
        is_usable(self.mean, self.barred, floor)
    }

    /// Whether the mean is at the lower end of the scale, as nearly as it is printed.
    fn is_at_lower_end(&self, measure: &Measure) -> bool {
        let (lowest, _) = measure.possible;
        self.mean - lowest < AT_THE_END * measure.tolerance
    }

    /// Whether more repetitions would hardly move the mean to the other side of the floor.
    fn is_side_of_floor_sure(&self, measure: &Measure) -> bool {
        let Some(resampled) = Resampled::new(&self.figures, measure.possible) else { return false };
        let (low, high) = resampled.interval(EARLY);
        high < measure.floor || measure.floor <= low
    }

    /// How a candidate with a mean below the floor, and within the tolerance, compares with a usable leader.
    /// The floor sets the two apart as soon as the whole interval of the candidate's mean is below it.
    fn relation_below_floor(&self, level: f64, measure: &Measure) -> Relation {
        match Resampled::new(&self.figures, measure.possible).map(|resampled| resampled.interval(level)) {
            Some((_, high)) if high < measure.floor => Relation::Distinct,
            _ => Relation::Undecided,
        }
    }

    /// About how many more repetitions would decide how the candidate compares with the leader, from which it
    /// has `differences`. If it is within the tolerance, the side of the floor is what is undecided.
    fn more_needed(&self, differences: &Differences, measure: &Measure) -> Option<u64> {
        match differences.relation(SHOWN, measure.tolerance) {
            Relation::Alike => more_needed(&self.figures, (self.mean - measure.floor).abs()),
            _ => differences.more_pairs_needed(measure.tolerance),
        }
    }

    /// Whether more repetitions would hardly move the mean up to the floor.
    fn is_surely_below_floor(&self, measure: &Measure) -> bool {
        self.mean < measure.floor && self.is_side_of_floor_sure(measure)
    }

    /// Whether more repetitions would hardly move the barred share to the other side of one half. The share
    /// is approximated by a normal distribution, at the level [`EARLY`].
    fn is_bar_sure(&self) -> bool {
        let is_none_or_all = self.barred <= 0.0 || self.barred >= 1.0;
        let half_width = NORMAL_EARLY * 0.5 / (self.figures.len() as f64).sqrt();
        is_none_or_all || (self.barred - 0.5).abs() > half_width
    }
}

/// The differences of a candidate to the leader, one for each repetition that both have.
struct Differences {
    values: Vec<f64>,
    resampled: Option<Resampled>,
}

impl Differences {
    fn new(candidate: &BTreeMap<u64, f64>, leader: &BTreeMap<u64, f64>, measure: &Measure) -> Self {
        let mut values = Vec::new();
        for (repetition, figure) in candidate {
            if let Some(leader_figure) = leader.get(repetition) {
                values.push(figure - leader_figure);
            }
        }
        let (low, high) = measure.possible;
        let resampled = Resampled::new(&values, (low - high, high - low));
        Self { values, resampled }
    }

    fn interval(&self, level: f64) -> Option<(f64, f64)> {
        self.resampled.as_ref().map(|resampled| resampled.interval(level))
    }

    fn relation(&self, level: f64, tolerance: f64) -> Relation {
        match self.interval(level) {
            Some((low, high)) if -tolerance <= low && high <= tolerance => Relation::Alike,
            Some((_, high)) if high < -tolerance => Relation::Distinct,
            _ => Relation::Undecided,
        }
    }

    /// About how many more repetitions would decide, if the mean and the standard deviation stay as they are.
    /// The interval is then so narrow that no end of the tolerance lies in it.
    fn more_pairs_needed(&self, tolerance: f64) -> Option<u64> {
        more_needed(&self.values, (mean(&self.values).abs() - tolerance).abs())
    }
}

/// About how many more values are needed until the interval of their mean is narrower than `half_width` on
/// either side, if the standard deviation stays as it is.
fn more_needed(values: &[f64], half_width: f64) -> Option<u64> {
    if values.len() < 2 {
        return None;
    }
    let quantile = student_t_quantile(0.5 + SHOWN / 2.0, (values.len() - 1) as f64);
    let ratio = quantile * standard_deviation(values) / half_width;
    let needed = (ratio * ratio).ceil().clamp(0.0, MAX_NEEDED) as u64;
    // The estimate promises nothing, so it is never zero.
    Some(needed.saturating_sub(values.len() as u64).max(1))
}

fn mean(values: &[f64]) -> f64 {
    let first = values.first().copied().unwrap_or_default();
    // If all values are the same, the sum would be rounded differently for different numbers of repetitions,
    // and equal candidates would differ.
    if values.iter().all(|value| value.to_bits() == first.to_bits()) {
        return first;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// The level of the intervals that decide the outcome, and that tables show.
const SHOWN: f64 = 0.95;
/// The level of the intervals that end the repetitions early.
const EARLY: f64 = 0.99;
/// The quantile of the standard normal distribution for [`EARLY`], on both sides.
const NORMAL_EARLY: f64 = 2.576;
/// A mean that is nearer to the end of the scale than this share of the tolerance counts as at the end.
/// We chose 5 %. For MOS this is 0.005, so the mean is printed as the end of the scale.
const AT_THE_END: f64 = 0.05;
/// The largest number of repetitions that is computed. We chose a million. A larger number only means that
/// more repetitions are hopeless.
const MAX_NEEDED: f64 = 1e6;

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;

    const MOS: Measure = Measure { tolerance: 0.1, floor: 3.1, possible: (1.0, 4.5), cluster_gap: 0.5 };

    fn of(values: impl IntoIterator<Item = f64>) -> BTreeMap<u64, f64> {
        (0..).zip(values).collect()
    }

    /// Twenty repetitions around `mean`; `by` is what chance does to all candidates alike.
    fn twenty(mean: f64, own: f64, name: &str) -> BTreeMap<u64, f64> {
        let (mut both, mut alone) = (Seed::new(1).stream("both"), Seed::new(1).stream(name));
        of((0..20).map(|_| mean + 0.4 * (both.unit() - 0.5) + own * alone.normal()))
    }

    fn ranked(candidates: &[BTreeMap<u64, f64>]) -> Ranking {
        rank(candidates, &[], &MOS).unwrap()
    }

    #[test]
    fn what_chance_does_to_both_hides_no_difference() {
        let ranking = ranked(&[twenty(3.8, 0.02, "a"), twenty(4.0, 0.02, "b")]);
        assert_eq!((ranking.outcome, ranking.leader, ranking.best()), (AnswerKind::Distinct, 1, vec![1]));
        let (low, high) = ranking.standings[0].difference.unwrap();
        assert!(-0.23 < low && high < -0.17, "{low} to {high}");
        assert!(ranking.is_settled && ranking.more.is_none());
    }

    #[test]
    fn a_difference_within_the_tolerance_is_alike_even_if_it_is_sure() {
        let ranking = ranked(&[twenty(4.0, 0.0, "a"), twenty(3.95, 0.01, "b"), twenty(2.0, 0.1, "c")]);
        assert_eq!((ranking.outcome, ranking.best()), (AnswerKind::Alike, vec![0, 1]));
        assert!(ranking.standings[1].difference.unwrap().1 < 0.0, "it leaves out zero");
        assert_eq!(ranking.standings[2].relation, Relation::Distinct);
        assert!(ranking.is_settled);
    }

    #[test]
    fn one_repetition_that_went_wrong_names_no_winner_among_candidates_that_are_alike() {
        // Each repetition has a difference that nobody notices, and one of them went wrong.
        let with_wrong = |count: u64| {
            let figures = (0..count).map(|repetition| if repetition == 3 { 2.3 } else { 4.295 });
            ranked(&[of(vec![4.3; count as usize]), of(figures)])
        };
        let ranking = with_wrong(20);
        let (low, high) = ranking.standings[1].difference.unwrap();
        assert!(low < -0.1 && high < 0.0, "{low} to {high} leaves out zero");
        assert_eq!((ranking.outcome, ranking.is_settled), (AnswerKind::Undecided, false));
        assert_eq!((with_wrong(200).outcome, with_wrong(200).is_settled), (AnswerKind::Alike, true));
    }

    #[test]
    fn an_answer_of_one_seed_is_the_answer_of_other_seeds_or_undecided() {
        // Differences in the mean from none to three times the tolerance, with one repetition in 50 that went
        // wrong by a whole MOS.
        for difference in [0.0, 0.05, 0.1, 0.15, 0.25] {
            let mut answers: BTreeMap<String, u32> = BTreeMap::new();
            for seed in 0..12 {
                let mut stream = Seed::new(seed).stream("seeds");
                let figure = |stream: &mut talkpath_units::Stream| {
                    let wrong = if stream.unit() < 0.02 { 1.0 } else { 0.0 };
                    4.3 - difference + 0.02 * stream.normal() - wrong
                };
                let other: Vec<f64> = (0..80).map(|_| figure(&mut stream)).collect();
                let rank_first = |count: usize| ranked(&[of(vec![4.3; count]), of(other[..count].to_vec())]);
                let settled = [20, 40].map(rank_first).into_iter().find(|ranking| ranking.is_settled);
                let outcome = settled.unwrap_or_else(|| rank_first(80)).outcome;
                *answers.entry(format!("{outcome:?}")).or_insert(0) += 1;
            }
            let decided = answers.keys().filter(|outcome| *outcome != "Undecided").count();
            assert!(decided <= 1, "{difference}: {answers:?}");
        }
    }

    #[test]
    fn what_is_neither_is_undecided_and_says_how_many_more_would_do() {
        let ranking = ranked(&[twenty(4.0, 0.0, "a"), twenty(4.0, 0.4, "b")]);
        assert_eq!((ranking.outcome, ranking.best().len()), (AnswerKind::Undecided, 2));
        assert!(!ranking.is_settled);
        // (2.09 × 0.4 / 0.1)² is 70; the sample's own mean and deviation differ from those.
        let more = ranking.more.unwrap();
        assert!((20..=2_000).contains(&more), "{more}");
    }

    #[test]
    fn an_answer_that_the_wider_interval_does_not_give_ends_no_repetitions() {
        // Worse for certain, and within the tolerance by 95 % alone.
        let close = |count: u32| {
            let of_repetition = |at: u32| if at.is_multiple_of(2) { -0.012 } else { -0.113 };
            ranked(&[of(vec![4.0; count as usize]), of((0..count).map(|at| 4.0 + of_repetition(at)))])
        };
        let found = |count: u32| (close(count).outcome, close(count).is_settled);
        assert!((4..40).any(|count| found(count) == (AnswerKind::Alike, false)), "{:?}", found(8));
        assert_eq!(found(200), (AnswerKind::Alike, true));
    }

    #[test]
    fn as_many_more_as_it_says_decide() {
        let mut stream = Seed::new(4).stream("more");
        let draw = |stream: &mut talkpath_units::Stream| 4.0 - 0.25 + 0.5 * stream.normal();
        let mut values: Vec<f64> = (0..12).map(|_| draw(&mut stream)).collect();
        let ranking = ranked(&[of(vec![4.0; 12]), of(values.clone())]);
        assert_eq!(ranking.outcome, AnswerKind::Undecided);
        let more = ranking.more.unwrap();
        values.extend((0..2 * more).map(|_| draw(&mut stream)));
        let n = values.len();
        assert_eq!(ranked(&[of(vec![4.0; n]), of(values)]).outcome, AnswerKind::Distinct);
    }

    #[test]
    fn one_that_is_barred_is_behind_one_that_is_usable_and_two_of_them_serve_nobody() {
        let candidates = [twenty(4.3, 0.02, "a"), twenty(3.6, 0.02, "b")];
        let ranked = |barred: &[f64]| rank(&candidates, barred, &MOS).unwrap();
        assert_eq!((ranked(&[0.45, 0.0]).leader, ranked(&[0.5, 0.0]).leader), (0, 1));
        let ranking = ranked(&[1.0, 0.0]);
        assert_eq!((ranking.outcome, ranking.best()), (AnswerKind::Distinct, vec![1]));
        assert!(ranking.is_settled && !ranking.standings[0].is_usable(3.1));
        let ranking = ranked(&[1.0, 0.6]);
        assert_eq!((ranking.outcome, ranking.leader), (AnswerKind::Unusable, 0));
        // 12 of 20 may be fewer than half of 200.
        assert!(!ranking.is_settled && ranked(&[1.0, 1.0]).is_settled);
    }

    #[test]
    fn a_candidate_below_the_floor_is_not_alike_to_a_leader_that_reaches_it() {
        let asked = Measure { tolerance: 0.01, floor: 0.999, possible: (0.0, 1.0), cluster_gap: 0.1 };
        let found = |below: BTreeMap<u64, f64>| rank(&[of([0.9999; 20]), below], &[], &asked).unwrap();
        let draw = |mean: f64, own: f64| {
            let mut stream = Seed::new(1).stream("floor");
            of((0..20).map(|_| mean + own * (stream.unit() - 0.5)))
        };
        let below = found(draw(0.9917, 0.0005));
        assert_eq!((below.outcome, below.best(), below.is_settled), (AnswerKind::Distinct, vec![0], true));
        // The mean is 0.9985, and the interval reaches beyond 0.999.
        let near = found(of((0..20_u32).map(|at| if at.is_multiple_of(2) { 0.997 } else { 1.0 })));
        assert_eq!((near.outcome, near.best()), (AnswerKind::Undecided, vec![0, 1]));
        assert!(near.more.unwrap() > 1 && !near.is_settled, "{near:?}");
    }

    #[test]
    fn below_the_floor_nothing_is_usable_however_sure_the_ranks_are() {
        let ranking = ranked(&[twenty(2.0, 0.01, "a"), twenty(1.5, 0.01, "b")]);
        assert_eq!((ranking.outcome, ranking.best()), (AnswerKind::Unusable, vec![0]));
        assert!(ranking.is_settled);
        // Whether a call below the floor is barred as well does not matter.
        let barred = rank(&[twenty(2.0, 0.01, "a"), twenty(1.5, 0.01, "b")], &[0.5, 0.45], &MOS).unwrap();
        assert!(barred.is_settled);
        // On the floor chance decides, and more repetitions are wanted.
        assert!(!ranked(&[twenty(3.1, 0.4, "a"), twenty(1.5, 0.01, "b")]).is_settled);
    }

    #[test]
    fn one_repetition_decides_nothing_and_equal_ones_need_no_more() {
        let one = ranked(&[of([4.0]), of([1.0])]);
        assert_eq!((one.outcome, one.more, one.is_settled), (AnswerKind::Undecided, None, false));
        let same = ranked(&[of([4.0; 20]), of([1.0; 20]), of([4.0; 20])]);
        assert_eq!((same.outcome, same.best(), same.is_settled), (AnswerKind::Alike, vec![0, 2], true));
    }

    #[test]
    fn repetitions_that_one_of_a_pair_lacks_are_left_out() {
        let (all, mut some) = (of([4.0, 3.0, 4.0, 3.0, 4.0, 3.0, 4.0]), BTreeMap::new());
        for repetition in [1, 3, 5] {
            some.insert(repetition, 2.5);
        }
        let ranking = ranked(&[all, some]);
        assert_eq!(ranking.standings[1].difference, Some((-0.5, -0.5)));
        // It leads by its mean alone: where both have a figure the other has the larger one, each time.
        let (one_bad, lacks_it) = (of([4.2, 4.2, 4.2, 4.2, 4.2, 1.2]), of([4.0; 5]));
        let ranking = ranked(&[one_bad, lacks_it]);
        assert_eq!((ranking.leader, ranking.outcome), (1, AnswerKind::Undecided));
        assert!(!ranking.is_settled && ranking.best() == [0, 1], "{ranking:?}");
        assert!(rank(&[of([1.0])], &[], &MOS).is_none() && rank(&[of([1.0]), of([])], &[], &MOS).is_none());
    }

    #[test]
    fn what_is_at_the_scales_lower_end_is_off_it_together_with_the_leader_alone() {
        let off = |candidates: &[BTreeMap<u64, f64>]| -> Vec<bool> {
            ranked(candidates).standings.iter().map(|standing| standing.is_off_scale).collect()
        };
        assert_eq!(off(&[of([1.0; 20]), of([1.0; 20]), of([1.0; 20])]), [false, true, true]);
        assert_eq!(off(&[of([1.0; 20]), of([1.2; 20]), of([1.0; 20])]), [false; 3]);
        assert_eq!(off(&[of([4.3; 20]), of([4.3; 20])]), [false; 2]);
    }

    #[test]
    fn no_interval_leaves_what_is_possible() {
        let ranking = ranked(&[of([4.5, 1.0]), of([1.0, 1.0])]);
        assert_eq!(ranking.standings[1].difference, Some((-3.5, 3.5)));
        assert_eq!(ranking.standings[1].method, Some(Method::Student));
        let method = |candidate| ranked(&[twenty(4.0, 0.0, "a"), candidate]).standings[1].method;
        assert_eq!(method(twenty(3.0, 0.1, "b")), Some(Method::Bootstrap));
        assert_eq!(ranked(&[of([4.0; 3]), of([1.0; 3])]).standings[1].method, Some(Method::Same));
    }
}
