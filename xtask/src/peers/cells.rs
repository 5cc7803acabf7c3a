//! The study's cells that are run in all simulators: the same set-up in each one's keys.

/// One set-up.
pub(super) struct Cell {
    pub(super) name: &'static str,
    /// The scenario beside the study.
    pub(super) scenario: &'static str,
    pub(super) ours: &'static [&'static str],
    /// Keys of dumbbell.tcl; `None` where ns-2 has no such mechanism.
    pub(super) ns2: Option<&'static str>,
    /// Keys of dumbbell.cc, likewise.
    pub(super) ns3: Option<&'static str>,
}

const ALONE: &str = "tcp-alone.toml";
const VOICE: &str = "with-voice.toml";
const OUT: &str = "link.rx{n}.delay={ from = \"1 ms\", step = \"2 ms\" }";
const BACK: &str = "link.rx-back{n}.delay={ from = \"1 ms\", step = \"2 ms\" }";
const NINE: &str = "flow.ftp.count=9";
const TWELVE: &str = "flow.ftp.count=12";
const SMALL: &str = "flow.voice.workload.size=80 B";
const MIDDLE: &str = "flow.voice.workload.size=160 B";
const NEWRENO: &str = "flow.ftp.transport.cc=newreno";
const TAHOE: &str = "flow.ftp.transport.cc=tahoe";
const FINE: &str = "flow.ftp.transport.timer_granularity=1 ms";
const JITTER: &str = "flow.ftp.send_jitter=3 ms";
const DELAYED: &str = "flow.ftp.transport.delayed_ack={ tick = \"200 ms\" }";

/// 4.3BSD-Reno, which ns-3 does not have.
const fn reno(
    name: &'static str,
    scenario: &'static str,
    ours: &'static [&'static str],
    ns2: &'static str,
) -> Cell {
    Cell { name, scenario, ours, ns2: Some(ns2), ns3: None }
}

/// The paper's cells with Reno; then, on its cell with the most synchronisation, one mechanism after the other.
pub(super) const CELLS: [Cell; 22] = [
    reno("tcp-het-6", ALONE, &[OUT, BACK], "tcps=6 rx_step=0.002"),
    reno("tcp-het-9", ALONE, &[OUT, BACK, NINE], "tcps=9 rx_step=0.002"),
    reno("tcp-het-12", ALONE, &[OUT, BACK, TWELVE], "tcps=12 rx_step=0.002"),
    reno("tcp-hom-6", ALONE, &[], "tcps=6"),
    reno("tcp-hom-9", ALONE, &[NINE], "tcps=9"),
    reno("tcp-hom-12", ALONE, &[TWELVE], "tcps=12"),
    reno("voice-het-6-80", VOICE, &[OUT, BACK, SMALL], "tcps=6 rx_step=0.002 voices=1 voice_size=80"),
    reno("voice-het-6-160", VOICE, &[OUT, BACK, MIDDLE], "tcps=6 rx_step=0.002 voices=1 voice_size=160"),
    reno("voice-het-6-320", VOICE, &[OUT, BACK], "tcps=6 rx_step=0.002 voices=1"),
    reno(
        "voice-het-12-80",
        VOICE,
        &[OUT, BACK, TWELVE, SMALL],
        "tcps=12 rx_step=0.002 voices=1 voice_size=80",
    ),
    reno("voice-het-12-320", VOICE, &[OUT, BACK, TWELVE], "tcps=12 rx_step=0.002 voices=1"),
    reno("voice-hom-6-80", VOICE, &[SMALL], "tcps=6 voices=1 voice_size=80"),
    reno("voice-hom-6-160", VOICE, &[MIDDLE], "tcps=6 voices=1 voice_size=160"),
    reno("voice-hom-6-320", VOICE, &[], "tcps=6 voices=1"),
    reno("voice-hom-12-80", VOICE, &[TWELVE, SMALL], "tcps=12 voices=1 voice_size=80"),
    reno("voice-hom-12-320", VOICE, &[TWELVE], "tcps=12 voices=1"),
    reno("tahoe", VOICE, &[TAHOE], "tcps=6 voices=1 cc=tahoe"),
    reno("fine-timer", VOICE, &[FINE], "tcps=6 voices=1 tick=0.001"),
    reno("host-jitter", VOICE, &[JITTER], "tcps=6 voices=1 overhead=0.003"),
    reno("delayed-ack", VOICE, &[DELAYED], "tcps=6 voices=1 delack=1"),
    Cell {
        name: "newreno",
        scenario: VOICE,
        ours: &[NEWRENO, FINE],
        ns2: Some("tcps=6 voices=1 cc=newreno tick=0.001 bugfix=1"),
        ns3: Some("tcps=6 voices=1 tick=0.001"),
    },
    Cell {
        name: "newreno-jitter",
        scenario: VOICE,
        ours: &[NEWRENO, FINE, JITTER],
        ns2: Some("tcps=6 voices=1 cc=newreno tick=0.001 bugfix=1 overhead=0.003"),
        ns3: None,
    },
];
