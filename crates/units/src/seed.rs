//! Seeds and the independent random streams derived from them.
//!
//! Every random element of a run draws from its own stream, named after its place in the scenario
//! (`"link/up/loss"`), so that adding an element changes no other element's draws.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, *Scrambled linear pseudorandom number generators*,
//! 2021); transcendental functions come from `libm`, so that a stream is the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Duration, fnv1a};

/// The seed of a run; everything random in it follows from this number and from names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// The seed `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number, for the record.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The seed of repetition `number`, counted from 0; repetition 0 has the scenario's own seed.
    pub const fn repetition(self, number: u64) -> Self {
        if number == 0 { self } else { Self(mix(self.0 ^ mix(number))) }
    }

    /// The stream of the element called `name`.
    pub fn stream(self, name: &str) -> Stream {
        // FNV-1a folds the name into 64 bits; `mix` spreads them.
        let folded = fnv1a(name.bytes());
        Stream { generator: Xoshiro256PlusPlus::seed_from_u64(mix(self.0) ^ folded), spare_normal: None }
    }
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014): a bijection that spreads nearby numbers.
const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One element's own source of randomness.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Xoshiro256PlusPlus,
    /// Box and Muller's method yields normal numbers in pairs; this is the second.
    spare_normal: Option<f64>,
}

impl Stream {
    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number uniform in [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability; draws once whatever the probability is.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A span uniform in [`from`, `to`), to the nanosecond; `from` if the range is empty.
    pub fn span(&mut self, from: Duration, to: Duration) -> Duration {
        from + Duration::from_nanos(self.below(to.saturating_sub(from).as_nanos()))
    }

    /// A whole number uniform in [0, `width`); 0 if that is empty.
    pub fn below(&mut self, width: u64) -> u64 {
        // The high half of the product maps 64 uniform bits onto the width with a bias under width / 2^64.
        ((u128::from(self.bits()) * u128::from(width)) >> 64) as u64
    }

    /// A standard normal number (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        // 1 - u lies in (0, 1], where the logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let angle = core::f64::consts::TAU * self.unit();
        self.spare_normal = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }

    /// An exponential number of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_two_names_differ_and_one_name_repeats() {
        let seed = Seed::new(1);
        let draw = |name: &str| {
            (0..4)
                .map({
                    let mut stream = seed.stream(name);
                    move |_| stream.bits()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(draw("link/up/loss"), draw("link/up/loss"));
        assert_ne!(draw("link/up/loss"), draw("link/down/loss"));
    }

    #[test]
    fn the_generator_never_changes_under_recorded_runs() {
        // A change here changes every recorded run: it needs a new record version and a word in the
        // changelog.
        let mut stream = Seed::new(1).stream("pinned");
        assert_eq!([stream.bits(), stream.bits()], PINNED);
    }

    const PINNED: [u64; 2] = [8_894_199_013_123_876_538, 3_732_680_988_957_024_364];

    #[test]
    fn normal_and_exponential_numbers_have_their_moments() {
        let mut stream = Seed::new(7).stream("moments");
        let n = 100_000;
        let (mut sum, mut squares, mut exponential) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = stream.normal();
            sum += x;
            squares += x * x;
            exponential += stream.exponential();
        }
        let n = f64::from(n);
        // Four standard errors: 4/sqrt(n) for the means, 4 sqrt(2/n) for the variance.
        assert!((sum / n).abs() < 0.0127, "mean {}", sum / n);
        assert!((squares / n - 1.0).abs() < 0.0179, "variance {}", squares / n);
        assert!((exponential / n - 1.0).abs() < 0.0127, "mean {}", exponential / n);
    }

    #[test]
    fn a_uniform_span_stays_inside_its_range() {
        let mut stream = Seed::new(3).stream("span");
        let (from, to) = (Duration::from_millis(5), Duration::from_millis(8));
        assert!((0..10_000).map(|_| stream.span(from, to)).all(|span| from <= span && span < to));
        assert_eq!(stream.span(to, from), to);
    }

    #[test]
    fn repetitions_have_their_own_seeds_and_the_first_keeps_the_scenarios() {
        let seed = Seed::new(42);
        assert_eq!(seed.repetition(0), seed);
        assert_ne!(seed.repetition(1), seed.repetition(2));
    }
}
