//! The congestion controls of TCP and DCCP by name.

use crate::words;

words! {
    /// A congestion control.
    pub enum CongestionControlKind {
        /// 4.3BSD-Tahoe: fast retransmit, then slow start.
        Tahoe = "tahoe",
        /// RFC 5681 with Reno's fast recovery: one fast retransmit a window.
        Reno = "reno",
        /// RFC 6582.
        NewReno = "newreno",
        /// RFC 9438.
        Cubic = "cubic",
        /// draft-cardwell-iccrg-bbr-congestion-control-00: BBR version 1, as Linux has it.
        Bbr = "bbr",
    }
}
