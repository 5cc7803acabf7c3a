//! Reno: RFC 5681, with the fast recovery of its §3.2 as 4.3BSD-Reno had it.
//!
//! Fast recovery ends with the first acknowledgement of new data, even if more was lost. Each further loss of
//! the same window waits for three more duplicate acknowledgements, which halve the window once more, or for
//! the timer.

use super::{Ack, RecoveryAck, Window, WindowBased};

/// Reno keeps no state besides the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reno;

impl WindowBased for Reno {
    /// Ends recovery with `cwnd` at `ssthresh`, at a partial acknowledgement too (RFC 5681 §3.2 step 6).
    fn on_recovery_ack(&mut self, window: &mut Window, ack: Ack, _is_full_ack: bool) -> RecoveryAck {
        window.deflate();
        window.grow_after_recovery(ack);
        RecoveryAck::Leave
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Instant, Packets};

    use super::*;
    use crate::cc::{Counting, Growth, WindowController};
    use talkpath_config::CongestionControlKind;

    fn over(window: Window) -> WindowController {
        WindowController::new(CongestionControlKind::Reno, window, false)
    }

    const SMSS: u64 = 1000;

    fn reno(initial: u64, ssthresh: Option<u64>) -> WindowController {
        let counting = Counting::Bytes { smss: SMSS as u32 };
        over(Window::new(counting, Packets::new(initial), ssthresh.map(Packets::new)))
    }

    fn ack(acked: u64) -> Ack {
        Ack { acked, flight_size: 0, cwnd_limited: true, now: Instant::ZERO }
    }

    /// RFC 5681 §3.1 eq. 2.
    #[test]
    fn slow_start_grows_by_at_most_one_segment_an_ack() {
        let mut reno = reno(2, None);
        reno.on_ack(ack(SMSS));
        reno.on_ack(ack(2 * SMSS));
        reno.on_ack(ack(100));
        assert_eq!(reno.window().cwnd(), 4 * SMSS + 100);
    }

    /// RFC 5681 §3.1.
    #[test]
    fn congestion_avoidance_grows_by_one_segment_a_window() {
        let mut reno = reno(10, Some(10));
        for _ in 0..9 {
            reno.on_ack(ack(SMSS));
        }
        assert_eq!(reno.window().cwnd(), 10 * SMSS);
        reno.on_ack(ack(SMSS));
        assert_eq!(reno.window().cwnd(), 11 * SMSS);
    }

    /// RFC 5681 §3.1 eq. 3.
    #[test]
    fn each_ack_may_open_the_window_by_its_share() {
        let counting = Counting::Bytes { smss: SMSS as u32 };
        let window = Window::new(counting, Packets::new(10), Some(Packets::new(10)));
        let mut reno = over(window.with_growth(Growth::EachAck));
        reno.on_ack(ack(SMSS));
        reno.on_ack(ack(SMSS));
        assert_eq!(reno.window().cwnd(), 10_000 + 100 + 99);
    }

    /// RFC 5681 §3.1, the implementation note on eq. 3: 10 * 10 / 200 is nothing.
    #[test]
    fn a_share_of_less_than_a_byte_is_a_byte() {
        let window = Window::new(Counting::Bytes { smss: 10 }, Packets::new(20), Some(Packets::new(20)));
        let mut reno = over(window.with_growth(Growth::EachAck));
        reno.on_ack(ack(10));
        assert_eq!(reno.window().cwnd(), 201);
    }

    /// tcp_input of 4.3BSD-Reno: slow start at equality, then an eighth of a segment beside eq. 3.
    #[test]
    fn bsd_adds_an_eighth_and_opens_the_window_as_recovery_ends() {
        let counting = Counting::Bytes { smss: SMSS as u32 };
        let window = Window::new(counting, Packets::new(10), Some(Packets::new(10)));
        let mut reno = over(window.with_growth(Growth::Bsd));
        reno.on_ack(ack(SMSS));
        assert_eq!(reno.window().cwnd(), 11_000);
        reno.on_ack(ack(SMSS));
        assert_eq!(reno.window().cwnd(), 11_000 + 90 + 125);
        reno.on_third_duplicate(Some(6 * SMSS));
        assert_eq!(reno.window().cwnd(), 6 * SMSS);
        reno.on_recovery_ack(ack(SMSS), false);
        assert_eq!(reno.window().cwnd(), 4 * SMSS);
    }

    #[test]
    fn a_window_that_held_nobody_back_does_not_grow() {
        let mut reno = reno(2, None);
        reno.on_ack(Ack { cwnd_limited: false, ..ack(SMSS) });
        assert_eq!(reno.window().cwnd(), 2 * SMSS);
    }

    /// RFC 5681 §3.2.
    #[test]
    fn recovery_inflates_and_ends_at_half_the_flight_size() {
        let mut reno = reno(10, None);
        reno.on_third_duplicate(Some(10 * SMSS));
        assert_eq!(reno.window().cwnd(), 8 * SMSS);
        reno.on_duplicate_ack();
        assert_eq!(reno.window().cwnd(), 9 * SMSS);
        assert_eq!(reno.on_recovery_ack(ack(SMSS), false), RecoveryAck::Leave);
        assert_eq!(reno.window().cwnd(), 5 * SMSS);
    }

    /// RFC 5681 §3.1 eq. 4 and the paragraph before it.
    #[test]
    fn a_repeated_timeout_keeps_ssthresh() {
        let mut reno = reno(10, None);
        reno.on_rto(10 * SMSS, true);
        reno.on_rto(SMSS, false);
        assert_eq!(reno.window().ssthresh_packets(), 5.0);
        assert_eq!(reno.window().cwnd(), SMSS);
    }

    #[test]
    fn ssthresh_never_falls_below_two_segments() {
        let mut reno = reno(1, None);
        reno.on_rto(SMSS, true);
        assert_eq!(reno.window().ssthresh_packets(), 2.0);
    }
}
