//! The study's cells that are run in all simulators: the same set-up in each one's keys.
//!
//! Ours opens the window as ns-2 does ([`EACH_ACK`]); everything else of the paper's cells is the study's.
//! The cells at the end switch one mechanism each.

/// One set-up.
pub(super) struct Cell {
    pub(super) name: String,
    /// The scenario beside the study.
    pub(super) scenario: &'static str,
    pub(super) ours: Vec<String>,
    /// Keys of dumbbell.tcl.
    pub(super) ns2: String,
    /// Keys of dumbbell.cc; `None` if ns-3 has no such mechanism: it has no Reno before RFC 6582.
    pub(super) ns3: Option<String>,
}

/// Every cell: the paper's, each with NewReno too if ns-3 can run it, and one mechanism after the other.
pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for delays in ["het", "hom"] {
        for tcps in [3, 6, 9, 12] {
            cells.push(cell(delays, tcps, None, None));
        }
        for tcps in [6, 9, 12] {
            for size in [80, 160, 320] {
                cells.push(cell(delays, tcps, Some(size), None));
            }
        }
    }
    for (tcps, size) in [(6, None), (12, None), (6, Some(320)), (12, Some(80))] {
        for delays in ["het", "hom"] {
            cells.push(cell(delays, tcps, size, Some(&NEWRENO)));
        }
    }
    for switch in &SWITCHES {
        cells.push(cell("hom", 6, Some(320), Some(switch)));
    }
    cells.push(cell("hom", 12, Some(320), Some(&LIMITED_TRANSMIT)));
    cells
}

/// One mechanism other than the base's.
struct Switch {
    name: &'static str,
    ours: &'static [&'static str],
    ns2: &'static str,
    ns3: Option<&'static str>,
}

fn cell(delays: &str, tcps: u32, size: Option<u32>, switch: Option<&Switch>) -> Cell {
    let mut ours = vec![EACH_ACK.to_owned(), format!("flow.ftp.count={tcps}")];
    let mut keys = format!("tcps={tcps}");
    if delays == "het" {
        ours.extend([OUT.to_owned(), BACK.to_owned()]);
        keys.push_str(" rx_step=0.002");
    }
    let load = size.map_or_else(
        || "tcp".to_owned(),
        |size| {
            ours.push(format!("flow.voice.workload.size={size} B"));
            keys.push_str(&format!(" voices=1 voice_size={size}"));
            format!("voice-{size}")
        },
    );
    let mut name = format!("{load}-{delays}-{tcps}");
    let mut ns2 = keys.clone();
    let mut ns3 = None;
    if let Some(switch) = switch {
        name = format!("{}-{name}", switch.name);
        ours.extend(switch.ours.iter().map(|word| (*word).to_owned()));
        ns2 = format!("{ns2} {}", switch.ns2);
        ns3 = switch.ns3.map(|more| format!("{keys} {more}"));
    }
    let scenario = if size.is_some() { "with-voice.toml" } else { "tcp-alone.toml" };
    Cell { name, scenario, ours, ns2, ns3 }
}

/// RFC 5681 §3.1 eq. 3, as ns-2 has it.
const EACH_ACK: &str = "flow.ftp.transport.growth=each-ack";
const OUT: &str = "link.rx{n}.delay={ from = \"1 ms\", step = \"2 ms\" }";
const BACK: &str = "link.rx-back{n}.delay={ from = \"1 ms\", step = \"2 ms\" }";

const NEWRENO: Switch = Switch {
    name: "newreno",
    ours: &["flow.ftp.transport.cc=newreno", "flow.ftp.transport.timer_granularity=1 ms"],
    ns2: "cc=newreno tick=0.001 bugfix=1 impatient=1 deflate=1 exit_fix=1",
    ns3: Some("tick=0.001"),
};

/// Its effect is largest where windows are small: the most connections, beside voice.
const LIMITED_TRANSMIT: Switch = Switch {
    name: "limited-transmit",
    ours: &["flow.ftp.transport.limited_transmit=true"],
    ns2: "limited_transmit=1",
    ns3: None,
};

const SWITCHES: [Switch; 4] = [
    Switch { name: "tahoe", ours: &["flow.ftp.transport.cc=tahoe"], ns2: "cc=tahoe", ns3: None },
    Switch {
        name: "fine-timer",
        ours: &["flow.ftp.transport.timer_granularity=1 ms"],
        ns2: "tick=0.001",
        ns3: None,
    },
    Switch { name: "host-jitter", ours: &["flow.ftp.send_jitter=3 ms"], ns2: "overhead=0.003", ns3: None },
    Switch {
        name: "delayed-ack",
        // ns-2 has a timer for each segment, and no clock that its receivers share.
        ours: &["flow.ftp.transport.delayed_ack=200 ms"],
        ns2: "delack=1",
        ns3: None,
    },
];
