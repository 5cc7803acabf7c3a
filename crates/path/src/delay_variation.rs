//! What a pipe adds to its propagation delay, packet by packet.
//!
//! Every packet draws, lost or not, from the element's own stream (a trace: takes the next line). The whole
//! delay never goes below zero: the normal variation is cut there, which shifts its mean where the standard
//! deviation is not small against the delay. Draws are independent of each other, unless a normal variation
//! has a memory m: then a packet's deviation is m times that of the packet before it, plus √(1 - m²) times a
//! new draw (an autoregressive process of the first order). Its distribution stays the normal one, and the
//! correlation over k packets is m^k. A wireless channel's correlation over time is left out. Where packets
//! may not overtake (the default), a packet also waits for its predecessor, which makes close packets' delays
//! dependent and longer than the distribution says (`pipe.rs`).

use talkpath_units::{Duration, Stream};

use crate::config::DelayVariation;
use crate::packet_trace::DelayTrace;

/// A propagation delay and its variation.
#[derive(Debug)]
pub(crate) struct Variation {
    delay: Duration,
    addition: Addition,
    stream: Stream,
}

/// What is added, ready to draw; floats in nanoseconds.
#[derive(Debug)]
enum Addition {
    Nothing,
    Normal {
        sd_ns: f64,
        memory: f64,
        /// The last packet's deviation in standard deviations. `None` before the first packet.
        last: Option<f64>,
    },
    Uniform {
        max: Duration,
    },
    /// Lomax (1954), Pareto's second kind: survival (1 + x/λ)^-α with shape α and scale λ = mean (α - 1),
    /// drawn by inversion.
    Lomax {
        scale_ns: f64,
        exponent: f64,
    },
    Trace {
        additions: DelayTrace,
        /// The next packet's place.
        place: usize,
    },
}

impl Variation {
    /// `delay`, varied as `model` says.
    pub(crate) fn new(delay: Duration, model: &DelayVariation, stream: Stream) -> Self {
        let addition = match *model {
            DelayVariation::None => Addition::Nothing,
            DelayVariation::Normal { sd, memory, .. } => {
                Addition::Normal { sd_ns: sd.as_nanos() as f64, memory, last: None }
            }
            DelayVariation::Uniform { max, .. } => Addition::Uniform { max },
            DelayVariation::Pareto { mean, shape, .. } => {
                Addition::Lomax { scale_ns: mean.as_nanos() as f64 * (shape - 1.0), exponent: -1.0 / shape }
            }
            DelayVariation::Trace { ref additions, .. } => {
                Addition::Trace { additions: additions.clone(), place: 0 }
            }
        };
        Self { delay, addition, stream }
    }

    /// Replaces the propagation delay.
    pub(crate) const fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// The next packet's whole delay.
    #[inline]
    pub(crate) fn delay(&mut self) -> Duration {
        match &mut self.addition {
            Addition::Nothing => self.delay,
            Addition::Normal { sd_ns, memory, last } => {
                let new = self.stream.normal();
                let deviation = match *last {
                    Some(last) if *memory > 0.0 => *memory * last + libm::sqrt(1.0 - *memory * *memory) * new,
                    _ => new,
                };
                *last = Some(deviation);
                let shift = libm::round(deviation * *sd_ns) as i64;
                Duration::from_nanos(self.delay.as_nanos().saturating_add_signed(shift))
            }
            Addition::Uniform { max } => self.delay.saturating_add(self.stream.span(Duration::ZERO, *max)),
            Addition::Lomax { scale_ns, exponent } => {
                let survival = 1.0 - self.stream.unit();
                let addition_ns = libm::round(*scale_ns * (libm::pow(survival, *exponent) - 1.0));
                // A float-to-integer `as` stops at the ends of the range and maps NaN to zero.
                self.delay.saturating_add(Duration::from_nanos(addition_ns as u64))
            }
            Addition::Trace { additions, place } => {
                let additions = additions.additions();
                let addition = additions.get(*place).copied().unwrap_or(Duration::ZERO);
                *place = if *place + 1 >= additions.len() { 0 } else { *place + 1 };
                self.delay.saturating_add(addition)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;

    const N: u32 = 200_000;

    fn delays(delay: Duration, model: &DelayVariation) -> Vec<f64> {
        let mut variation = Variation::new(delay, model, Seed::new(11).stream("link/x/jitter"));
        (0..N).map(|_| variation.delay().as_millis_f64()).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / f64::from(N)
    }

    #[test]
    fn a_normal_variation_keeps_the_mean_and_has_its_standard_deviation() {
        let sd = Duration::from_millis(2);
        let values =
            delays(Duration::from_millis(20), &DelayVariation::Normal { sd, memory: 0.0, reorder: false });
        let squares: Vec<f64> = values.iter().map(|value| (value - 20.0).powi(2)).collect();
        // Four standard errors: sd/sqrt(n) of the mean, sd²·sqrt(2/n) of the variance.
        let n = f64::from(N);
        assert!((mean(&values) - 20.0).abs() < 4.0 * 2.0 / n.sqrt(), "{}", mean(&values));
        assert!((mean(&squares) - 4.0).abs() < 4.0 * 4.0 * (2.0 / n).sqrt(), "{}", mean(&squares));
    }

    #[test]
    fn a_memory_keeps_the_distribution_and_correlates_each_packet_with_the_one_before() {
        let (sd, memory) = (Duration::from_millis(2), 0.8);
        let model = DelayVariation::Normal { sd, memory, reorder: false };
        let values = delays(Duration::from_millis(20), &model);
        let deviations: Vec<f64> = values.iter().map(|value| value - 20.0).collect();
        let products = |lag: usize| {
            let sum: f64 = deviations.iter().zip(&deviations[lag..]).map(|(a, b)| a * b).sum();
            sum / f64::from(N)
        };
        // As many independent packets as one in each (1 + m) / (1 - m) = 9; four standard errors.
        let n = f64::from(N) / 9.0;
        assert!((mean(&values) - 20.0).abs() < 4.0 * 2.0 / n.sqrt(), "{}", mean(&values));
        for (lag, expected) in [(0, 4.0), (1, 4.0 * 0.8), (3, 4.0 * 0.512)] {
            assert!(
                (products(lag) - expected).abs() < 4.0 * 4.0 * (2.0 / n).sqrt(),
                "{lag}: {}",
                products(lag)
            );
        }
    }

    #[test]
    fn a_normal_variation_larger_than_the_delay_is_cut_at_zero() {
        let sd = Duration::from_millis(10);
        let values =
            delays(Duration::from_millis(10), &DelayVariation::Normal { sd, memory: 0.0, reorder: false });
        // P(Z <= -1) = 0.158655 of the packets take no time at all; binomial, four standard errors.
        let zero = values.iter().filter(|&&value| value == 0.0).count() as f64 / f64::from(N);
        assert!((zero - 0.158_655).abs() < 4.0 * (0.158_655 * 0.841_345 / f64::from(N)).sqrt(), "{zero}");
    }

    #[test]
    fn a_uniform_variation_stays_below_its_maximum() {
        let max = Duration::from_millis(6);
        let values = delays(Duration::from_millis(1), &DelayVariation::Uniform { max, reorder: false });
        assert!(values.iter().all(|value| (1.0..7.0).contains(value)));
        // Mean 1 + 6/2, four standard errors of 6/sqrt(12 n).
        assert!((mean(&values) - 4.0).abs() < 4.0 * 6.0 / (12.0 * f64::from(N)).sqrt(), "{}", mean(&values));
    }

    #[test]
    fn a_trace_adds_what_it_says_and_repeats() {
        let additions = "0\n2.5\n7\n".parse().expect("a good trace");
        let model = DelayVariation::Trace { additions, reorder: false };
        let values = delays(Duration::from_millis(1), &model);
        assert_eq!(values[..5], [1.0, 3.5, 8.0, 1.0, 3.5]);
    }

    #[test]
    fn a_pareto_variation_has_its_mean_and_its_tail() {
        let (average, shape) = (Duration::from_millis(5), 3.0);
        let values = delays(Duration::ZERO, &DelayVariation::Pareto { mean: average, shape, reorder: false });
        // λ = 10 ms; variance λ²α/((α-1)²(α-2)) = 75 ms²; P(x > 10 ms) = 2^-3.
        assert!((mean(&values) - 5.0).abs() < 4.0 * (75.0 / f64::from(N)).sqrt(), "{}", mean(&values));
        let tail = values.iter().filter(|&&value| value > 10.0).count() as f64 / f64::from(N);
        assert!((tail - 0.125).abs() < 4.0 * (0.125 * 0.875 / f64::from(N)).sqrt(), "{tail}");
    }
}
