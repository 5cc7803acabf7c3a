//! Which of several served best, over repetitions, and how sure that is.
//!
//! Each candidate (a transport) has one figure a repetition: a mean opinion score, or a share of messages in
//! time. Repetitions of one number share their random numbers across the candidates (common random numbers;
//! Law, *Simulation Modeling and Analysis*, 5th ed. 2015, §11.2), so they are compared pair by pair: what
//! chance did to both is no difference. The leader has the largest mean; every other is held against it by
//! the interval of the mean difference (`interval`):
//!
//! - *alike*: the 95 % interval lies within the tolerance;
//! - else *distinct*: it lies below zero;
//! - else *undecided*. So is one that does better than the leader in their common repetitions, which can be
//!   where the two lack different ones.
//!
//! The answer is undecided if one candidate is, else alike if one is, else distinct. If the leader's mean is
//! below the floor, none of this matters: nothing is usable.
//!
//! **Barred.** Something beside the figure can bar a repetition: the gaps of a call. A candidate with half of
//! its repetitions barred, or more, is not usable, whatever its mean is. One that is usable leads before it,
//! and it is then worse than the leader. Half is chosen: it is what the median of the repetitions does.
//!
//! **When to stop.** Whoever repeats until the answer suits is wrong more often than in 1 of 20 cases. So an
//! answer ends the repetitions early only if the 99 % intervals give it too, for every candidate: with the
//! five sizes 20, 40, 80, 160 and 200, at which it is tried, all the early ones together err in at most 4 %
//! (Bonferroni).

pub mod clusters;
pub mod interval;

use std::collections::BTreeMap;

use self::clusters::{Clusters, clusters};
use self::interval::{Method, Resampled, standard_deviation};
use crate::metrics::confidence::student_t_quantile;
use crate::summary::AnswerKind;

/// What a figure means: larger is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Candidates whose means differ by no more than this serve alike.
    pub tolerance: f64,
    /// Below this nothing is usable.
    pub floor: f64,
    /// The least and the most that is possible.
    pub possible: (f64, f64),
    /// The least difference between two clusters of repetitions.
    pub cluster_gap: f64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// How the answer is called.
    pub outcome: AnswerKind,
    /// Index of the candidate with the largest mean; of several the first.
    pub leader: usize,
    /// One entry a candidate, in their order.
    pub standings: Vec<Standing>,
    /// Whether more repetitions are not needed.
    pub is_settled: bool,
    /// About how many more repetitions would decide, if it is undecided and there are two or more.
    pub more: Option<u64>,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Over its repetitions.
    pub mean: f64,
    /// How it compares with the leader.
    pub relation: Relation,
    /// 95 % interval of its difference to the leader, over pairs of repetitions; `None` for the leader, and
    /// with one pair.
    pub difference: Option<(f64, f64)>,
    /// How the ends of that interval were found.
    pub method: Option<Method>,
    /// The share of its repetitions that something beside the figure bars from being usable.
    pub barred: f64,
    /// Whether it and the leader are both at the scale's lower end, where the scale cannot distinguish them.
    /// The difference then says nothing.
    pub is_off_scale: bool,
    /// If its repetitions fall into two clusters.
    pub clusters: Option<Clusters>,
}

/// How a candidate compares with the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It is the leader.
    Leader,
    /// It differs by no more than the tolerance.
    Alike,
    /// It is worse.
    Distinct,
    /// Neither is known.
    Undecided,
}

impl Ranking {
    /// Indices of the candidates that the answer names: the leader, and who is not known to be worse.
    pub fn best(&self) -> Vec<usize> {
        let is_named = |at: &usize| self.standings[*at].relation != Relation::Distinct;
        (0..self.standings.len()).filter(is_named).collect()
    }
}

impl Standing {
    /// Whether it reaches `floor`, and is not barred.
    pub fn is_usable(&self, floor: f64) -> bool {
        is_usable(self.mean, self.barred, floor)
    }

    /// Whether half of its repetitions or more are barred.
    pub fn is_barred(&self) -> bool {
        is_barred(self.barred)
    }
}

fn is_usable(mean: f64, barred: f64, floor: f64) -> bool {
    mean >= floor && !is_barred(barred)
}

fn is_barred(share: f64) -> bool {
    share >= 0.5
}

/// Whether more repetitions will hardly move a share to the other side of one half, by the normal
/// approximation at the level of [`EARLY`].
fn is_share_sure(share: f64, repetitions: usize) -> bool {
    let is_all_or_none = share <= 0.0 || share >= 1.0;
    is_all_or_none || (share - 0.5).abs() > NORMAL_EARLY * 0.5 / (repetitions as f64).sqrt()
}

/// Ranks `candidates`, each with its figures by repetition, which must be finite, and the share `barred` of
/// each one's repetitions. `None` if there are not two candidates with figures for each.
pub fn rank(candidates: &[BTreeMap<u64, f64>], barred: &[f64], measure: &Measure) -> Option<Ranking> {
    if candidates.len() < 2 || candidates.iter().any(BTreeMap::is_empty) {
        return None;
    }
    let barred = |at: usize| barred.get(at).copied().unwrap_or(0.0);
    let figures: Vec<Vec<f64>> =
        candidates.iter().map(|candidate| candidate.values().copied().collect()).collect();
    let means: Vec<f64> = figures.iter().map(|figures| mean(figures)).collect();
    let serves = |at: usize| is_usable(means[at], barred(at), measure.floor);
    let better = |a: &usize, b: &usize| serves(*a).cmp(&serves(*b)).then(means[*a].total_cmp(&means[*b]));
    let leader = (0..means.len()).rev().max_by(better)?;
    let is_usable = serves(leader);
    let pairs: Vec<Option<Pairs>> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| (at != leader).then(|| Pairs::new(candidate, &candidates[leader], measure)))
        .collect();
    let relation = |at: usize, level| match &pairs[at] {
        None => Relation::Leader,
        Some(_) if is_usable && is_barred(barred(at)) => Relation::Distinct,
        Some(pairs) => pairs.relation(level, measure.tolerance),
    };
    let relations = |level| (0..pairs.len()).map(|at| relation(at, level)).collect::<Vec<_>>();
    let shown = relations(SHOWN);
    let outcome = if is_usable { outcome(&shown) } else { AnswerKind::Unusable };
    let floor = Resampled::new(&figures[leader], measure.possible).map(|it| it.interval(EARLY));
    let is_floor_sure = floor.is_some_and(|(low, high)| high < measure.floor || measure.floor <= low);
    let are_bars_sure = (0..figures.len()).all(|at| is_share_sure(barred(at), figures[at].len()));
    let is_rank_sure = !is_usable || outcome != AnswerKind::Undecided && relations(EARLY) == shown;
    let more = pairs.iter().flatten().zip(shown.iter().filter(|it| **it != Relation::Leader));
    let more = more.filter(|(_, relation)| **relation == Relation::Undecided);
    let more = more.filter_map(|(pairs, _)| pairs.more(measure.tolerance)).max();
    let (lowest, _) = measure.possible;
    let is_lowest = |at: usize| means[at] - lowest < AT_THE_END * measure.tolerance;
    let standing = |at: usize| Standing {
        mean: means[at],
        relation: shown[at],
        difference: pairs[at].as_ref().and_then(|pairs| pairs.interval(SHOWN)),
        barred: barred(at),
        method: pairs[at].as_ref().and_then(|pairs| Some(pairs.resampled.as_ref()?.method())),
        is_off_scale: at != leader && is_lowest(at) && is_lowest(leader),
        clusters: clusters(&figures[at], measure.cluster_gap),
    };
    Some(Ranking {
        outcome,
        leader,
        standings: (0..candidates.len()).map(standing).collect(),
        is_settled: is_floor_sure && are_bars_sure && is_rank_sure,
        more: more.filter(|_| outcome == AnswerKind::Undecided),
    })
}

fn outcome(relations: &[Relation]) -> AnswerKind {
    let has = |relation| relations.contains(&relation);
    match (has(Relation::Undecided), has(Relation::Alike)) {
        (true, _) => AnswerKind::Undecided,
        (false, true) => AnswerKind::Alike,
        (false, false) => AnswerKind::Distinct,
    }
}

/// A candidate's differences to the leader, one a repetition that both have.
struct Pairs {
    differences: Vec<f64>,
    resampled: Option<Resampled>,
}

impl Pairs {
    fn new(candidate: &BTreeMap<u64, f64>, leader: &BTreeMap<u64, f64>, measure: &Measure) -> Self {
        let pair = |(number, figure): (&u64, &f64)| Some(figure - leader.get(number)?);
        let differences: Vec<f64> = candidate.iter().filter_map(pair).collect();
        let (low, high) = measure.possible;
        let resampled = Resampled::new(&differences, (low - high, high - low));
        Self { differences, resampled }
    }

    fn interval(&self, level: f64) -> Option<(f64, f64)> {
        self.resampled.as_ref().map(|resampled| resampled.interval(level))
    }

    fn relation(&self, level: f64, tolerance: f64) -> Relation {
        match self.interval(level) {
            Some((low, high)) if -tolerance <= low && high <= tolerance => Relation::Alike,
            Some((_, high)) if high < 0.0 => Relation::Distinct,
            _ => Relation::Undecided,
        }
    }

    /// About how many more pairs would decide, if mean and standard deviation stay: the interval is then
    /// either narrow enough to leave out zero, or to lie within the tolerance.
    fn more(&self, tolerance: f64) -> Option<u64> {
        let n = self.differences.len();
        if n < 2 {
            return None;
        }
        let (mean, deviation) = (mean(&self.differences).abs(), standard_deviation(&self.differences));
        let enough = |half: f64| {
            let ratio = student_t_quantile(0.5 + SHOWN / 2.0, (n - 1) as f64) * deviation / half;
            ratio * ratio
        };
        let needed = enough(mean.max(tolerance - mean)).ceil();
        // Not a promise, so it is never zero; what nobody would run is cut.
        Some((needed.clamp(0.0, MAX_NEEDED) as u64).saturating_sub(n as u64).max(1))
    }
}

fn mean(values: &[f64]) -> f64 {
    let first = values.first().copied().unwrap_or_default();
    // Rounding must not make a difference between candidates whose repetitions are all the same.
    if values.iter().all(|value| value.to_bits() == first.to_bits()) {
        return first;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// The level of the intervals that decide the outcome, and are shown.
const SHOWN: f64 = 0.95;
/// The level at which repetitions end early.
const EARLY: f64 = 0.99;
/// The standard normal distribution's quantile for it, on both sides.
const NORMAL_EARLY: f64 = 2.576;
/// Chosen: nearer than this share of the tolerance a mean is at the scale's end. Of MOS that is 0.005, and
/// the mean is printed as the end.
const AT_THE_END: f64 = 0.05;
/// Chosen: beyond it "how many more" only means that it is hopeless.
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
    fn what_is_neither_is_undecided_and_says_how_many_more_would_do() {
        let ranking = ranked(&[twenty(4.0, 0.0, "a"), twenty(3.95, 0.4, "b")]);
        assert_eq!((ranking.outcome, ranking.best().len()), (AnswerKind::Undecided, 2));
        assert!(!ranking.is_settled);
        // (2.09 × 0.4 / 0.05)² is 280; the sample's own mean and deviation differ from those.
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
    fn below_the_floor_nothing_is_usable_however_sure_the_ranks_are() {
        let ranking = ranked(&[twenty(2.0, 0.01, "a"), twenty(1.5, 0.01, "b")]);
        assert_eq!((ranking.outcome, ranking.best()), (AnswerKind::Unusable, vec![0]));
        assert!(ranking.is_settled);
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
