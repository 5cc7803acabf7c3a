//! The kernel's netem, tbf, act_police, prio, ets and drr beside ours: `cargo xtask kernel-disciplines`.
//!
//! Debian's 6.1 cloud kernel has all of them. `disciplines.c` is its only process: it sets one after the
//! other with `tc`, and sends packets through it. A test of `talkpath-path` then compares ours with what it
//! found:
//!
//! - *By decisions*, where a discipline draws nothing: what came in which order, what was dropped, what was
//!   taken out next, and of tbf the clock's value and the time at which it wants to be asked again. The same
//!   arrivals go through ours, and no decision may differ.
//! - *By shares*, where netem draws: of 100,000 packets, how many were lost, in how many runs, doubled,
//!   damaged and reordered. Ours draws for as many. The shares may differ by four standard errors.
//!
//! The rates are such that a byte takes a whole number of nanoseconds. At others the kernel rounds a packet's
//! time down to nanoseconds, and our bucket keeps the fraction.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::kernel_peer::{Guest, prepare};
use crate::kernel_queues::{NONE, Traced, boot_with_disk, event, field, judge};

/// A discipline of the kernel and what is ours.
struct Case {
    /// Calls of tc, without the program's name.
    tc: &'static [&'static str],
    /// What the guest does: `probe` and `load`, or `share`.
    steps: &'static [&'static str],
    /// What the test makes of ours; it begins with a name.
    ours: &'static str,
}

impl Case {
    /// Whether its name is one of `names`, or there are none.
    fn is_named(&self, names: &[String]) -> bool {
        let name = self.ours.split(' ').next().unwrap_or_default();
        names.is_empty() || names.iter().any(|wanted| wanted == name)
    }
}

const CASES: &[Case] = &[
    Case {
        tc: &["qdisc add dev talkpath0 root handle 1: tbf rate 1mbit burst 10000 limit 30000"],
        steps: &[TBF, "load 8 2000"],
        ours: "tbf 1000000 10000 30000",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root handle 1: tbf rate 10mbit burst 5000 limit 60000"],
        steps: &[TBF, "load 4 20000"],
        ours: "tbf 10000000 5000 60000",
    },
    Case {
        tc: &["qdisc add dev talkpath0 clsact", POLICE_1],
        steps: &[POLICE, "load 8 2000"],
        ours: "police 1000000 10000",
    },
    Case {
        tc: &["qdisc add dev talkpath0 clsact", POLICE_10],
        steps: &[POLICE, "load 4 20000"],
        ours: "police 10000000 20000",
    },
    Case {
        tc: &[SHAPER, "qdisc add dev talkpath0 parent 1:1 handle 2: prio bands 3", LIMIT_1, LIMIT_2, LIMIT_3],
        steps: &["probe prio_enqueue prio_dequeue -", "load 4 6000"],
        ours: "priority 20",
    },
    Case {
        tc: &[
            SHAPER,
            "qdisc add dev talkpath0 parent 1:1 handle 2: ets bands 3 strict 3",
            LIMIT_1,
            LIMIT_2,
            LIMIT_3,
        ],
        steps: &[ETS, "load 4 6000"],
        ours: "priority 20",
    },
    Case {
        tc: &[
            SHAPER,
            "qdisc add dev talkpath0 parent 1:1 handle 2: ets bands 3 quanta 3000 1500 500",
            LIMIT_1,
            LIMIT_2,
            LIMIT_3,
        ],
        steps: &[ETS, "load 4 6000"],
        ours: "drr 3000 1500 500 20",
    },
    Case {
        tc: &[
            SHAPER,
            "qdisc add dev talkpath0 parent 1:1 handle 2: drr",
            "class add dev talkpath0 parent 2: classid 2:1 drr quantum 4000",
            "class add dev talkpath0 parent 2: classid 2:2 drr quantum 1514",
            "class add dev talkpath0 parent 2: classid 2:3 drr quantum 300",
            LIMIT_1,
            LIMIT_2,
            LIMIT_3,
        ],
        steps: &["probe drr_enqueue drr_dequeue -", "load 4 6000"],
        ours: "drr 4000 1514 300 20",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 loss 5%"],
        steps: &[SHARE],
        ours: "loss 0.05",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 loss gemodel 1% 25%"],
        steps: &[SHARE],
        ours: "gemodel 0.01 0.25 1 0",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 loss gemodel 2% 20% 70% 1%"],
        steps: &[SHARE],
        ours: "gemodel 0.02 0.2 0.7 0.01",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 duplicate 10%"],
        steps: &[SHARE],
        ours: "duplicate 0.1",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 corrupt 10%"],
        steps: &[SHARE],
        ours: "damage 0.1",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 delay 2s reorder 90%"],
        steps: &[SHARE],
        ours: "reorder 0.1 2000",
    },
    Case {
        tc: &["qdisc add dev talkpath0 root netem limit 200000 loss 20% duplicate 30%"],
        steps: &[SHARE],
        ours: "loss-and-duplicate 0.2 0.3",
    },
];

const TBF: &str = "probe tbf_enqueue tbf_dequeue tbf_dequeue";
const POLICE: &str = "probe tcf_police_act - tcf_police_act";
const POLICE_1: &str =
    "filter add dev talkpath0 egress matchall action police rate 1mbit burst 10000 conform-exceed drop/ok";
const POLICE_10: &str =
    "filter add dev talkpath0 egress matchall action police rate 10mbit burst 20000 conform-exceed drop/ok";
const ETS: &str = "probe ets_qdisc_enqueue ets_qdisc_dequeue -";
/// What makes packets wait in the discipline below it.
const SHAPER: &str = "qdisc add dev talkpath0 root handle 1: tbf rate 4mbit burst 1600 limit 1000000";
const LIMIT_1: &str = "qdisc add dev talkpath0 parent 2:1 pfifo limit 20";
const LIMIT_2: &str = "qdisc add dev talkpath0 parent 2:2 pfifo limit 20";
const LIMIT_3: &str = "qdisc add dev talkpath0 parent 2:3 pfifo limit 20";
const SHARE: &str = "share 100000";

const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "veth",
    "sch_tbf",
    "sch_prio",
    "sch_ets",
    "sch_drr",
    "sch_netem",
    "sch_ingress",
    "cls_matchall",
    "act_police",
];

/// Boots once, goes through all cases, or those whose discipline `names` has, and compares.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<String, String> {
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.is_named(names)).collect();
    if cases.is_empty() {
        return Err(format!("kernel-disciplines {}: no such discipline", names.join(" ")));
    }
    let folder = root.join("target").join("kernel-peer");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let guest = Guest {
        programs: &["ip", "tc"],
        files: vec![("cases", script(&cases))],
        ..Guest::new("disciplines.c", MODULES)
    };
    let kernel = match prepare(root, &folder, &guest) {
        Ok(kernel) => kernel,
        Err(why) => {
            println!("kernel-disciplines: skipped: {why}");
            return Ok(format!("kernel-disciplines: 0 passed, 0 failed, {} skipped", cases.len()));
        }
    };
    let began = Instant::now();
    let Traced { said, lines } = boot_with_disk(&folder, &kernel, "")?;
    println!("{said}");
    let log = log_of(&said, lines).map_err(|why| format!("{said}{why}"))?;
    let judged = judge(root, &folder.join("disciplines.log"), &log, TEST)?;
    let is_compared = |line: &&str| line.contains(": identical: ") || line.contains(": near: ");
    let compared: Vec<&str> = judged.lines().filter(is_compared).collect();
    println!("{}", compared.join("\n"));
    if compared.len() != cases.len() {
        return Err(format!("kernel-disciplines: {} of {} cases compared", compared.len(), cases.len()));
    }
    Ok(format!("kernel-disciplines: {} passed in {:.0} s", cases.len(), began.elapsed().as_secs_f64()))
}

/// What the guest does, in its language.
fn script(cases: &[&Case]) -> String {
    let mut text = String::new();
    for Case { tc, steps, ours } in cases {
        let _ = writeln!(text, "case {ours}");
        for line in *tc {
            let _ = writeln!(text, "tc {line}");
        }
        for line in *steps {
            let _ = writeln!(text, "{line}");
        }
        let which = if tc[0].ends_with("clsact") { "clsact" } else { "root" };
        let _ = writeln!(text, "tc qdisc del dev talkpath0 {which}");
    }
    text
}

/// The log of all cases, from what the guest said and traced.
fn log_of(said: &str, lines: impl Iterator<Item = String>) -> Result<String, String> {
    let mut logs: Vec<(String, Reading)> = Vec::new();
    for line in lines {
        if let Some(case) = line.strip_prefix("case ") {
            logs.push((case.to_owned(), Reading::default()));
        } else if let Some((_, reading)) = logs.last_mut() {
            reading.read(&line)?;
        }
    }
    let mut text = String::new();
    let mut said = said.lines().filter_map(|line| line.strip_prefix("guest: "));
    let mut shares = BTreeMap::new();
    let mut case = 0;
    for line in said.by_ref() {
        if line.starts_with("case ") {
            case += 1;
        } else if let Some(misses) = line.strip_prefix("missed: ").filter(|misses| *misses != "0") {
            return Err(format!("case {case}: {misses} calls of a probed function were not seen"));
        } else if let Some(share) = line.strip_prefix("share: ") {
            shares.insert(case, share);
        }
    }
    for (number, (case, reading)) in (1..).zip(&logs) {
        let _ = writeln!(text, "case {case}\n{}", reading.log.trim_end());
        if let Some(share) = shares.get(&number) {
            let _ = writeln!(text, "{share}");
        }
    }
    Ok(text)
}

/// What is known while the trace of a case is read.
#[derive(Default)]
struct Reading {
    /// A packet that is coming: its buffer and its length.
    coming: Option<(String, u64)>,
    /// The clock's last value in the probed functions, since the last decision.
    clock: Option<u64>,
    /// Until when a discipline wants to wait, since the last decision.
    wake: Option<u64>,
    /// The number of each packet that waits, by the address of its buffer.
    waiting: BTreeMap<String, u64>,
    packets: u64,
    log: String,
}

impl Reading {
    /// Reads a line of the trace.
    fn read(&mut self, line: &str) -> Result<(), String> {
        if let Some((kept, written)) =
            line.split_once("entries-in-buffer/entries-written: ").and_then(|(_, rest)| rest.split_once('/'))
            && !written.starts_with(&format!("{kept} "))
        {
            return Err(format!("the kernel kept {kept} of {written} events"));
        }
        let Some((event, rest)) = event(line, &EVENTS) else { return Ok(()) };
        let number = |name: &str| field(rest, name)?.parse::<u64>().map_err(|why| format!("{line}: {why}"));
        match event {
            "enter" => self.coming = Some((field(rest, "skb")?, number("len")?)),
            "clock" => self.clock = Some(number("ns")?),
            "entered" => self.came(&field(rest, "ret")?)?,
            "leave" => (self.clock, self.wake) = (None, None),
            "wake" => self.wake = Some(number("at")?),
            _ => self.left(&field(rest, "skb")?)?,
        }
        Ok(())
    }

    /// The function that takes a packet returned `verdict`: 0 is that of a packet that was taken, for an
    /// enqueue and for an action (NET_XMIT_SUCCESS, TC_ACT_OK).
    fn came(&mut self, verdict: &str) -> Result<(), String> {
        let (buffer, length) = self.coming.take().ok_or("an arrival was half seen")?;
        let number = self.packets;
        self.packets += 1;
        let is_taken = verdict == "0";
        let clock = written(self.clock.take());
        let _ = writeln!(
            self.log,
            "{} {number} {} {length} {clock}",
            if is_taken { '+' } else { 'x' },
            length % 10
        );
        // A policer keeps nothing.
        if is_taken && clock == "." && self.waiting.insert(buffer, number).is_some() {
            return Err(format!("packet {number}: its buffer waits already"));
        }
        Ok(())
    }

    fn left(&mut self, buffer: &str) -> Result<(), String> {
        let sent = match buffer {
            NONE => None,
            buffer => Some(self.waiting.remove(buffer).ok_or(format!("{buffer} left and never came"))?),
        };
        let (clock, wake) = (self.clock.take(), self.wake.take());
        // An empty queue decides nothing.
        if sent.is_some() || clock.is_some() || !self.waiting.is_empty() {
            let _ = writeln!(self.log, "- {} {} {}", written(clock), written(sent), written(wake));
        }
        Ok(())
    }
}

fn written(value: Option<u64>) -> String {
    value.map_or(".".to_owned(), |value| value.to_string())
}

const EVENTS: [&str; 6] = ["enter", "clock", "entered", "leave", "left", "wake"];
const TEST: &str = "our_disciplines_do_as_the_kernels_of_this_log_did";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, rest: &str) -> String {
        format!("  init-1  [000] b..1.  1.5: {event}: ({event}_function+0x1/0x2) {rest}")
    }

    #[test]
    fn a_trace_becomes_arrivals_and_decisions_and_a_share_stays_what_was_said() {
        let mut trace = vec!["case tbf 8000 100 200".to_owned()];
        trace.extend([line("enter", "skb=0xa len=101"), line("entered", "ret=0")]);
        trace.extend([line("enter", "skb=0xb len=62"), line("entered", "ret=1")]);
        trace.extend([line("leave", ""), line("clock", "ns=5"), line("wake", "at=9")]);
        trace.extend([line("left", "skb=0x0"), line("leave", ""), line("clock", "ns=9")]);
        trace.extend([line("left", "skb=0xa"), line("leave", ""), line("left", "skb=0x0")]);
        trace.push("case loss 0.05".to_owned());
        let said =
            "guest: case tbf 8000 100 200\nguest: missed: 0\nguest: case loss 0.05\nguest: share: sent 9\n";
        let log = log_of(said, trace.clone().into_iter()).unwrap();
        let expected =
            "case tbf 8000 100 200\n+ 0 1 101 .\nx 1 2 62 .\n- 5 . 9\n- 9 0 .\ncase loss 0.05\n\nsent 9\n";
        assert_eq!(log, expected);
        let missed = log_of(&said.replace("missed: 0", "missed: 3"), trace.into_iter()).unwrap_err();
        assert!(missed.contains("3 calls"), "{missed}");
    }

    #[test]
    fn a_packet_that_leaves_and_never_came_and_a_trace_that_overflowed_are_refused() {
        let refused = |lines: &[String]| Reading::default().read(&lines[0]).unwrap_err();
        assert!(refused(&[line("left", "skb=0xa")]).contains("never came"));
        let header = "# entries-in-buffer/entries-written: 10/12   #P:1".to_owned();
        assert!(refused(&[header]).contains("kept 10 of 12"));
        let whole = "# entries-in-buffer/entries-written: 12/12   #P:1";
        assert!(Reading::default().read(whole).is_ok());
    }
}
