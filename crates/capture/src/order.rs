//! Whether the packets of a capture are in order of time.
//!
//! They are not if the files of several interfaces were put one behind the other, or if the clock was set
//! back during the capture. The losses and delays of a stream then mean nothing.

/// How the times of packets go back from one packet to the next in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketOrder {
    /// The number of packets that are more than 10 ms earlier than the packet before them in the file.
    pub steps_back: u64,
    /// The longest of these steps, ns. 0 if there is none.
    pub longest_ns: u64,
    /// The time of the last packet, ns since 1970. `None` before the first packet.
    latest_ns: Option<i64>,
}

/// We chose 10 ms: the queues of a network card, and its driver, reorder packets by less.
const TOLERATED_NS: u64 = 10_000_000;

impl PacketOrder {
    pub(crate) fn take(&mut self, at_ns: i64) {
        if let Some(before) = self.latest_ns.replace(at_ns) {
            let back = u64::try_from(i128::from(before) - i128::from(at_ns)).unwrap_or(0);
            if back > TOLERATED_NS {
                self.steps_back += 1;
                self.longest_ns = self.longest_ns.max(back);
            }
        }
    }

    /// Says that the packets are out of order. `None` if they are not.
    pub fn warning(&self) -> Option<String> {
        let Self { steps_back, longest_ns, .. } = *self;
        (steps_back > 0).then(|| {
            format!(
                "the time goes back {} from one packet to the next, by {:.1} s at most: files were put one behind the other \
                 (`reordercap IN OUT` of Wireshark puts their packets in order), or the clock was set; losses and delays are wrong",
                talkpath_units::times(steps_back),
                longest_ns as f64 / 1e9
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_goes_back_is_counted_with_its_longest_step() {
        let order = |times_ms: &[i64]| {
            let mut order = PacketOrder::default();
            times_ms.iter().for_each(|ms| order.take(ms.saturating_mul(1_000_000)));
            order
        };
        assert_eq!(order(&[0, 20, 15, 40]).warning(), None);
        let merged = order(&[0, 20, 2040, 40, 60, 30, 80]);
        assert_eq!((merged.steps_back, merged.longest_ns), (2, 2_000_000_000));
        assert!(merged.warning().unwrap().starts_with("the time goes back 2 times"));
        assert_eq!(order(&[i64::MIN, i64::MAX, i64::MIN]).longest_ns, u64::MAX);
    }
}
