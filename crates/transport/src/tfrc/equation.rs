//! The TCP throughput equation (RFC 5348 §3.1), with `t_RTO` = 4 R and `b` = 1 as recommended there, and its
//! inverse.

/// TCP's sending rate in bytes per second: segments of `s` bytes, round trips of `rtt` seconds, loss event
/// rate `p` > 0.
pub fn throughput(s: f64, rtt: f64, p: f64) -> f64 {
    s / (rtt * loss_cost(p))
}

/// The loss event rate at which the equation gives `rate` bytes per second: at least 2^-24, as an interval is
/// reported in 24 bits (RFC 4342 §8.6.1), and at most 1. RFC 5348 §6.3.1 requires 5 %; this is as near as
/// floats come.
pub fn loss_event_rate(rate: f64, s: f64, rtt: f64) -> f64 {
    let target = s / (rtt * rate);
    // An unknown rate counts as none at all.
    if target.is_nan() || target >= loss_cost(1.0) {
        return 1.0;
    }
    let (mut low, mut high) = (LEAST, 1.0);
    // The cost rises with p; 64 halvings use up a float's digits.
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if loss_cost(middle) < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// f(p) of RFC 5348 §8.1: segments a round trip, inverted.
fn loss_cost(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

/// One loss event in as many packets as 24 bits count.
const LEAST: f64 = 1.0 / (1 << 24) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5348 §3.1 by hand, p = 1 %, s = 1460 B, R = 100 ms: sqrt(2 x 0.01 / 3) = 0.0816497; sqrt(3 x 0.01
    /// / 8) = 0.0612372, x 12 x 0.01 x (1 + 32 x 0.0001) = 0.0073720; 1460 / (0.1 x 0.0890217) = 164,005 B/s.
    #[test]
    fn the_equation_gives_the_rate_worked_out_by_hand() {
        assert!((throughput(1460.0, 0.1, 0.01) - 164_005.0).abs() < 1.0);
    }

    /// RFC 4828 §4.1 table 1, in kB/s at R = 100 ms. Its segments of 14, 536 and 1460 B count with 40 B of
    /// headers: the columns stand as 54 : 576 : 1500. It is printed with two digits, and off by up to 0.12 %
    /// at 1 to 20 % of loss.
    #[test]
    fn the_equation_gives_the_table_of_the_small_packet_variant() {
        let table = [
            (0.00001, [209.25, 2232.00, 5812.49]),
            (0.0001, [66.12, 705.25, 1836.58]),
            (0.001, [20.74, 221.23, 576.12]),
            (0.01, [6.07, 64.75, 168.61]),
            (0.1, [0.96, 10.21, 26.58]),
            (0.4, [0.05, 0.48, 1.26]),
        ];
        for (p, row) in table {
            for (s, printed) in [54.0, 576.0, 1500.0].into_iter().zip(row) {
                let rate = throughput(s, 0.1, p) / 1000.0;
                assert!((rate - printed).abs() <= 0.006 + 0.0012 * printed, "{p} {s}: {rate} for {printed}");
            }
        }
    }

    #[test]
    fn the_inverse_undoes_the_equation_and_stays_within_its_bounds() {
        for p in [1e-6, 0.003, 0.05, 0.7] {
            let back = loss_event_rate(throughput(160.0, 0.6, p), 160.0, 0.6);
            assert!((back / p - 1.0).abs() < 1e-9, "{p}: {back}");
        }
        assert_eq!(loss_event_rate(0.0, 160.0, 0.6), 1.0);
        assert_eq!(loss_event_rate(f64::NAN, 160.0, 0.6), 1.0);
        assert!(loss_event_rate(1e12, 160.0, 0.6) <= LEAST * 1.01);
    }
}
