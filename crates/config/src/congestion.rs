//! The congestion controls by name.

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControlKind {
    /// 4.3BSD-Tahoe: fast retransmit, then slow start.
    Tahoe,
    /// RFC 5681 with Reno's fast recovery: one fast retransmit a window.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// draft-cardwell-iccrg-bbr-congestion-control-00: BBR version 1, as Linux has it.
    Bbr,
}

impl CongestionControlKind {
    /// The name that scenarios and summaries use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}
