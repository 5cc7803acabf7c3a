//! Lines of Linux's `tc` as links: `tc qdisc ... netem ...`, `tc qdisc ... tbf ...`, `tc class ... htb ...`
//! and `tc filter ... police ...`.
//!
//! tc has units of its own (tc(8), "UNITS"): `mbit` is 10^6 bits a second and `mbps` is 10^6 bytes a second,
//! `k` of a size is 1024, and a time without a unit is in microseconds. What has no counterpart here is
//! listed, and left out.

use core::fmt::Write as _;

use talkpath_scenario::{as_percent, percentage};
use talkpath_units::{Bytes, Duration, Rate};

/// A link that a line of tc describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TcLink {
    /// The keys of the link, as TOML.
    pub(super) keys: Vec<String>,
    /// Notes about words of the line that were left out or became something else, with the reason.
    pub(super) notes: Vec<String>,
    /// Why values of the line are probably not meant, a sentence each.
    pub(super) doubts: Vec<String>,
}

/// Parses a line of tc that adds a netem, tbf or police discipline.
///
/// # Errors
/// Returns a message that says what was found and what was expected.
pub(super) fn parse_line(line: &str) -> Result<TcLink, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |kind: &str| words.iter().position(|word| *word == kind).map(|place| &words[place + 1..]);
    if let Some(rest) = after("netem") {
        return netem(&mut Words { rest });
    }
    if let Some(rest) = after("tbf") {
        return tbf(&mut Words { rest });
    }
    if let Some(rest) = after("htb") {
        return if words.contains(&"class") { htb_class(&mut Words { rest }) } else { Ok(htb_root()) };
    }
    if let Some(rest) = after("police") {
        return police(&mut Words { rest });
    }
    Err("expected a line with netem, tbf, htb or police; other disciplines of tc are not read".to_owned())
}

impl TcLink {
    /// Adds the keys of a discipline that hangs below this one. Where both have a key, that of the lower one
    /// stays, because packets wait there.
    pub(super) fn attach(&mut self, below: Self) {
        let name = |key: &str| key.split(" = ").next().unwrap_or_default().to_owned();
        for key in below.keys {
            self.keys.retain(|known| name(known) != name(&key));
            self.keys.push(key);
        }
        self.notes.extend(below.notes);
        self.doubts.extend(below.doubts);
    }

    /// Adds the header that Linux counts with each packet: the length of a packet on an Ethernet device
    /// (`qdisc_pkt_len`) has it, and tbf, htb and the rate of netem take tokens or time for that length. At
    /// the ingress, where act_police is, the header is gone already.
    pub(super) fn count_header(&mut self) {
        let has = |name: &str| self.keys.iter().any(|key| key.starts_with(&format!("{name} = ")));
        if has("rate") || has("shaper") {
            let in_bytes = self.keys.iter().any(|key| key.starts_with("queue = ") && key.ends_with(" B\" }"));
            self.keys.push(format!("framing = {{ kind = \"bytes\", overhead = \"{ETHERNET_HEADER}\" }}"));
            let limit =
                if in_bytes { "; its limit counts them too, and the queue here does not" } else { "" };
            self.notes.push(format!(
                "on an Ethernet device Linux counts {ETHERNET_HEADER} of header with each packet{limit}; without it, as on a tunnel, take \
                 framing out"
            ));
        }
    }

    /// Notes where the order of a shaper and a loss is another than that of Linux.
    pub(super) fn note_order(&mut self) {
        let has = |name: &str| self.keys.iter().any(|key| key.starts_with(&format!("{name} = ")));
        if has("loss") && has("shaper") {
            self.notes.push(
                "netem loses packets before they reach the bucket, above it or below it; here they are lost behind the shaper, so \
                 lost packets spend tokens, and a loss of 2 % takes 2 % of the rate"
                    .to_owned(),
            );
        }
        if has("delay") && has("shaper") {
            self.notes.push(
                "packets pass the delay of netem before the bucket; here they pass it behind the shaper, which is the same time"
                    .to_owned(),
            );
        }
    }
}

/// The words of a line that are not read yet.
struct Words<'a> {
    rest: &'a [&'a str],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next word, which `name` needs.
    fn needed(&mut self, name: &str, form: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("`{name}` is the last word; expected {form} after it"))
    }

    /// The next word, if it is a number with or without a unit.
    fn number(&mut self) -> Option<&'a str> {
        let is_number = self.rest.first()?.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if is_number { self.next() } else { None }
    }

    fn share(&mut self, name: &str) -> Result<f64, String> {
        share(self.needed(name, "a share such as 1%")?)
    }
}

/// Jitter of netem.
struct Jitter {
    by: Duration,
    memory: f64,
}

fn netem(words: &mut Words<'_>) -> Result<TcLink, String> {
    let mut link = TcLink::default();
    let (mut delay, mut jitter, mut distribution, mut held_back) = (Duration::ZERO, None, "uniform", None);
    let mut limit = "1000";
    while let Some(name) = words.next() {
        match name {
            "delay" | "latency" => {
                delay = time(words.needed(name, "a time such as 100ms")?)?;
                if let Some(by) = words.number() {
                    let memory = words.number().map(share).transpose()?.unwrap_or(0.0);
                    jitter = Some(Jitter { by: time(by)?, memory });
                }
            }
            "distribution" => distribution = words.needed(name, "normal, uniform, pareto or paretonormal")?,
            "loss" | "drop" => loss(words, &mut link)?,
            "reorder" => {
                let share = words.share(name)?;
                let has_correlation = words.number().is_some();
                let has_gap = words.rest.first() == Some(&"gap");
                if has_correlation || has_gap {
                    if has_gap {
                        words.next();
                        words.next();
                    }
                    link.notes.push(
                        "reorder with a correlation or a gap is left out; reorder = { share, by } draws packet by packet"
                            .to_owned(),
                    );
                } else {
                    held_back = Some(1.0 - share);
                }
            }
            "duplicate" | "corrupt" => {
                let share = as_percent(words.share(name)?);
                let key = if name == "duplicate" { name } else { "damage" };
                link.keys.push(format!("{key} = \"{share}\""));
                if words.number().is_some() {
                    link.notes.push(format!("the correlation of {name} is left out"));
                }
            }
            "rate" => {
                let text = words.needed(name, "a rate such as 2mbit")?;
                let rate = rate(text)?;
                link.doubts.extend(slow_rate(text, rate));
                link.keys.push(format!("rate = \"{rate}\""));
                if words.number().is_some() {
                    link.notes.push("the overhead of rate is left out; write `framing`".to_owned());
                    while words.number().is_some() {}
                }
            }
            "limit" => limit = words.needed(name, "a number of packets")?,
            "ecn" => link.notes.push("ecn is left out: only queues mark here".to_owned()),
            "seed" => {
                words.needed(name, "a number")?;
                link.notes.push("seed is left out: a scenario has its own".to_owned());
            }
            other => return Err(format!("found {other:?}, which is no option of netem that is read here")),
        }
    }
    write_delay(&mut link, delay, jitter, distribution, held_back);
    let packets: u64 =
        limit.parse().map_err(|_| format!("found limit {limit}, expected a number of packets"))?;
    link.keys.push(format!("queue = {{ kind = \"drop-tail\", limit = \"{packets} packets\" }}"));
    link.notes.push(
        "limit of netem also counts the packets that its delay holds; here it counts those that wait"
            .to_owned(),
    );
    Ok(link)
}

fn write_delay(
    link: &mut TcLink,
    delay: Duration,
    jitter: Option<Jitter>,
    distribution: &str,
    held_back: Option<f64>,
) {
    if let Some(share) = held_back {
        // The stated share of the packets skips the whole delay.
        link.keys.push("delay = \"0 s\"".to_owned());
        link.keys.push(format!("reorder = {{ share = \"{}\", by = \"{delay}\" }}", as_percent(share)));
        if jitter.is_some() {
            link.notes.push("jitter beside reorder is left out".to_owned());
        }
        return;
    }
    let Some(Jitter { by, memory }) = jitter.filter(|jitter| !jitter.by.is_zero()) else {
        link.keys.push(format!("delay = \"{delay}\""));
        return;
    };
    let mut model = String::new();
    if distribution == "normal" {
        link.keys.push(format!("delay = \"{delay}\""));
        let _ = write!(model, "kind = \"normal\", sd = \"{by}\"");
        if memory > 0.0 {
            let _ = write!(model, ", memory = \"{}\"", as_percent(memory));
        }
    } else {
        // From `by` below the delay to `by` above it.
        let least = delay.saturating_sub(by);
        link.keys.push(format!("delay = \"{least}\""));
        let _ = write!(model, "kind = \"uniform\", max = \"{}\"", by.saturating_add(by));
        if memory > 0.0 {
            link.notes.push(
                "the correlation of a uniform jitter is left out; a normal one has `memory`".to_owned(),
            );
        }
        if distribution != "uniform" {
            link.notes.push(format!("distribution {distribution} is a table of netem; taken as uniform"));
        }
    }
    // netem sends each packet at its own time, so packets overtake each other.
    link.keys.push(format!("jitter = {{ {model}, reorder = true }}"));
}

fn loss(words: &mut Words<'_>, link: &mut TcLink) -> Result<(), String> {
    let mut word = words.needed("loss", "a share such as 1%, gemodel or state")?;
    if word == "random" {
        word = words.needed("random", "a share such as 1%")?;
    }
    match word {
        "gemodel" => {
            let p = words.share("gemodel")?;
            // Defaults of tc-netem(8): r = 1 - p, 1-h = 100 %, 1-k = 0.
            let r = words.number().map(share).transpose()?.unwrap_or(1.0 - p);
            let loss_bad = words.number().map(share).transpose()?.unwrap_or(1.0);
            let loss_good = words.number().map(share).transpose()?.unwrap_or(0.0);
            let [p, r, loss_bad, loss_good] = [p, r, loss_bad, loss_good].map(as_percent);
            link.keys.push(format!(
                "loss = {{ kind = \"gilbert-elliott\", p = \"{p}\", r = \"{r}\", loss_bad = \"{loss_bad}\", loss_good = \"{loss_good}\" }}"
            ));
        }
        "state" => {
            let p13 = words.share("state")?;
            // p31, p32, p23 and p14, with the defaults of tc (iproute2, q_netem.c).
            let mut others = [1.0 - p13, 0.0, 1.0, 0.0];
            for other in &mut others {
                match words.number() {
                    Some(given) => *other = share(given)?,
                    None => break,
                }
            }
            let [p31, p32, _, p14] = others;
            if p32 > 0.0 || p14 > 0.0 {
                return Err("found loss state with p32 or p14, a chain of three or four states; read are the two states of p13 and p31, \
                            and gemodel"
                    .to_owned());
            }
            let [p, r] = [p13, p31].map(as_percent);
            link.keys.push(format!("loss = {{ kind = \"gilbert-elliott\", p = \"{p}\", r = \"{r}\" }}"));
        }
        rate => {
            link.keys.push(format!("loss = \"{}\"", as_percent(share(rate)?)));
            if words.number().is_some() {
                link.notes
                    .push("the correlation of loss is left out; write loss = { mean, burst }".to_owned());
            }
        }
    }
    Ok(())
}

fn tbf(words: &mut Words<'_>) -> Result<TcLink, String> {
    let (mut bucket, mut latency, mut limit, mut link) = (Bucket::default(), None, None, TcLink::default());
    while let Some(name) = words.next() {
        match name {
            "latency" => latency = Some(time(words.needed(name, "a time such as 400ms")?)?),
            "limit" => limit = Some(size(words.needed(name, "a size such as 30kb")?)?),
            "peakrate" => link.keys.push(format!("rate = \"{}\"", rate(words.needed(name, "a rate")?)?)),
            "mpu" | "overhead" | "mtu" | "minburst" | "linklayer" => {
                words.needed(name, "a value")?;
                link.notes.push(format!("{name} is left out"));
            }
            other if bucket.takes(other, words)? => {}
            other => return Err(format!("found {other:?}, which is no option of tbf that is read here")),
        }
    }
    link.keys.push(bucket.write("shaper", LARGEST_FRAME)?);
    link.doubts.extend(bucket.doubt.take());
    let of_latency = || latency.map(|latency| bucket.limit(latency)).transpose();
    let limit = match limit {
        Some(limit) => limit,
        None => of_latency()?.ok_or("tbf without latency or limit; expected one of them")?,
    };
    link.keys.push(format!("queue = {{ kind = \"drop-tail\", limit = \"{limit}\" }}"));
    Ok(link)
}

/// The line of htb itself, which has no rate: its classes have.
fn htb_root() -> TcLink {
    let note = "the rate of htb is in the line of its class: tc class ... htb rate ...";
    TcLink { notes: vec![note.to_owned()], ..TcLink::default() }
}

/// A class of htb that has the link to itself: it borrows up to its ceiling (tc-htb(8)).
fn htb_class(words: &mut Words<'_>) -> Result<TcLink, String> {
    let (mut assured, mut ceiling, mut burst, mut link) = (None, None, None, TcLink::default());
    while let Some(name) = words.next() {
        match name {
            "rate" | "ceil" => {
                let text = words.needed(name, "a rate such as 1mbit")?;
                let rate = rate(text)?;
                link.doubts.extend(slow_rate(text, rate));
                let place = if name == "rate" { &mut assured } else { &mut ceiling };
                *place = Some(rate);
            }
            "burst" | "cburst" | "buffer" | "cbuffer" => {
                let text = words.needed(name, "a size such as 15k")?;
                let size = size(text.split('/').next().unwrap_or(text))?;
                // The bucket of the ceiling counts, if there is one.
                if burst.is_none() || name.starts_with('c') {
                    burst = Some(size);
                }
            }
            "prio" | "quantum" | "mpu" | "overhead" | "mtu" | "r2q" | "linklayer" => {
                words.needed(name, "a value")?;
                link.notes.push(format!("{name} is left out"));
            }
            other => return Err(format!("found {other:?}, which is no option of htb that is read here")),
        }
    }
    let assured = assured.ok_or("a class of htb without `rate`; expected it, as in rate 1mbit")?;
    if ceiling.is_some_and(|ceiling| ceiling > assured) {
        link.notes.push(format!("a class alone borrows up to its ceil; its rate {assured} is left out"));
    }
    let rate = ceiling.unwrap_or(assured);
    link.keys.push(match burst {
        Some(burst) => format!("shaper = {{ rate = \"{rate}\", burst = \"{burst}\" }}"),
        None => format!("rate = \"{rate}\""),
    });
    Ok(link)
}

fn police(words: &mut Words<'_>) -> Result<TcLink, String> {
    let (mut bucket, mut link) = (Bucket::default(), TcLink::default());
    while let Some(name) = words.next() {
        match name {
            "drop" | "drop/pass" | "drop/ok" | "conform-exceed" | "flowid" | "action" => {
                if name == "flowid" || name == "action" {
                    words.next();
                }
            }
            "mtu" | "mpu" | "overhead" => {
                words.needed(name, "a value")?;
                link.notes.push(format!("{name} is left out"));
            }
            "peakrate" | "avrate" => return Err(format!("found {name}; a policer here has one rate")),
            "pass" | "ok" | "continue" | "reclassify" | "pipe" => {
                return Err(format!("found {name}: what exceeds the rate passes, so the line drops nothing"));
            }
            other if bucket.takes(other, words)? => {}
            other if other.starts_with(':') || other.contains(':') => {}
            other => return Err(format!("found {other:?}, which is no option of police that is read here")),
        }
    }
    link.keys.push(bucket.write("policer", LARGEST_PACKET)?);
    link.doubts.extend(bucket.doubt.take());
    Ok(link)
}

/// The header of Ethernet (IEEE 802.3): two addresses and a type.
const ETHERNET_HEADER: Bytes = Bytes::new(14);
/// A packet of the usual MTU, at a policer.
const LARGEST_PACKET: Bytes = Bytes::new(1500);
/// The same with its header, at a shaper.
const LARGEST_FRAME: Bytes = Bytes::new(1514);

/// A token bucket of tc.
#[derive(Default)]
struct Bucket {
    rate: Option<Rate>,
    burst: Option<Bytes>,
    /// Why the rate is probably not meant. `None` if it is plausible.
    doubt: Option<String>,
}

impl Bucket {
    /// Reads the value of the option `name`, if it is one of a bucket.
    fn takes(&mut self, name: &str, words: &mut Words<'_>) -> Result<bool, String> {
        match name {
            "rate" => {
                let text = words.needed(name, "a rate such as 1mbit")?;
                let rate = rate(text)?;
                self.doubt = slow_rate(text, rate);
                self.rate = Some(rate);
            }
            // tc writes the size of a cell after a slash.
            "burst" | "buffer" | "maxburst" => {
                let text = words.needed(name, "a size such as 32kbit")?;
                self.burst = Some(size(text.split('/').next().unwrap_or(text))?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The queue of tbf whose packets wait for `latency` at most: what leaves at the rate in that time, and
    /// the burst, for which tokens are there (iproute2, `q_tbf.c`).
    fn limit(&self, latency: Duration) -> Result<Bytes, String> {
        let (rate, burst) = self.values()?;
        let leaves = u128::from(rate.as_bps()) * u128::from(latency.as_nanos()) / 8_000_000_000;
        Ok(Bytes::new(u64::try_from(leaves).unwrap_or(u64::MAX).saturating_add(burst.get())))
    }

    fn write(&self, key: &str, largest: Bytes) -> Result<String, String> {
        let (rate, burst) = self.values()?;
        if burst < largest {
            return Err(format!(
                "found burst {burst}, expected at least {largest}: a packet of that size never finds its tokens, so it would \
                 never leave"
            ));
        }
        Ok(format!("{key} = {{ rate = \"{rate}\", burst = \"{burst}\" }}"))
    }

    fn values(&self) -> Result<(Rate, Bytes), String> {
        let rate = self.rate.ok_or("expected `rate`, as in rate 1mbit")?;
        let burst = self.burst.ok_or("expected `burst`, as in burst 15k")?;
        Ok((rate, burst))
    }
}

/// A number and its unit in lower case.
fn split(text: &str) -> Result<(f64, String), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number =
        text[..end].parse::<f64>().map_err(|_| format!("found {text:?}, expected a number with a unit"))?;
    Ok((number, text[end..].to_ascii_lowercase()))
}

/// A rate of tc: `2mbit`; `mbps` is in bytes, and a number alone in bits.
fn rate(text: &str) -> Result<Rate, String> {
    let (number, unit) = split(text)?;
    let (prefix, bits) = match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, 8.0),
        _ if unit.is_empty() => ("", 1.0),
        _ => return Err(format!("found {text:?}, expected a rate of tc such as 2mbit")),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("found {text:?}, expected a rate of tc such as 2mbit")),
    };
    match (number * factor * bits).round() as u64 {
        0 => Err(format!("found {text:?}, expected a rate above 0")),
        bps => Ok(Rate::from_bps(bps)),
    }
}

/// Says that a rate is so low that its unit is probably wrong or missing. `None` if it is not.
fn slow_rate(text: &str, rate: Rate) -> Option<String> {
    let (number, _) = split(text).ok().filter(|_| rate < SLOWEST)?;
    Some(format!(
        "rate {text} is {} bit/s, slower than any modem: is the unit right? tc takes a number alone in bits a second, and \
         {number}mbit in 10^6 bits a second",
        rate.as_bps()
    ))
}

/// We chose 1 kb/s, below which no modem is.
const SLOWEST: Rate = Rate::from_bps(1_000);

/// A size of tc: `15k` is 15 times 1024 bytes, and `32kbit` 32 times 1024 bits.
fn size(text: &str) -> Result<Bytes, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024.0 * 1024.0 / 8.0,
        "gbit" => 1024.0 * 1024.0 * 1024.0 / 8.0,
        _ => return Err(format!("found {text:?}, expected a size of tc such as 15k")),
    };
    Ok(Bytes::new((number * factor).round() as u64))
}

/// A time of tc: a number alone is in microseconds.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let nanos = match unit.as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return Err(format!("found {text:?}, expected a time of tc such as 100ms")),
    };
    Ok(Duration::from_nanos((number * nanos).round() as u64))
}

/// A share of tc, which is per cent with or without the sign.
fn share(text: &str) -> Result<f64, String> {
    let share = percentage(text).or_else(|| percentage(&format!("{text}%")));
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("found {text:?}, expected from 0% to 100%"))
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    fn keys(line: &str) -> Vec<String> {
        parse_line(line).unwrap().keys
    }

    #[test]
    fn a_netem_line_is_a_link_and_what_is_left_out_is_listed() {
        let line = "tc qdisc add dev eth0 root netem delay 100ms 20ms 25% distribution normal loss gemodel 1% 20% 70% 0.1% \
                    duplicate 1% corrupt 0.2% rate 2mbit limit 100";
        let link = parse_line(line).unwrap();
        assert_eq!(
            link.keys,
            [
                "loss = { kind = \"gilbert-elliott\", p = \"1%\", r = \"20%\", loss_bad = \"70%\", loss_good = \"0.1%\" }",
                "duplicate = \"1%\"",
                "damage = \"0.2%\"",
                "rate = \"2 Mbps\"",
                "delay = \"100 ms\"",
                "jitter = { kind = \"normal\", sd = \"20 ms\", memory = \"25%\", reorder = true }",
                "queue = { kind = \"drop-tail\", limit = \"100 packets\" }",
            ]
        );
        assert_eq!(link.notes.len(), 1, "{:?}", link.notes);
        let correlated = parse_line("tc qdisc add dev eth0 root netem duplicate 1% 50%").unwrap();
        assert_eq!(correlated.notes[0], "the correlation of duplicate is left out");
        let uniform = keys("tc qdisc add dev lo root netem delay 50ms 10ms loss 2%");
        assert_eq!(
            uniform[..3],
            [
                "loss = \"2%\"",
                "delay = \"40 ms\"",
                "jitter = { kind = \"uniform\", max = \"20 ms\", reorder = true }"
            ]
        );
    }

    #[test]
    fn two_states_of_loss_are_a_gilbert_model_and_more_are_refused() {
        let state = keys("tc qdisc add dev eth0 root netem loss state 1% 25%");
        assert_eq!(state[0], "loss = { kind = \"gilbert-elliott\", p = \"1%\", r = \"25%\" }");
        let four = parse_line("tc qdisc add dev eth0 root netem loss state 1% 25% 5% 30% 0.1%").unwrap_err();
        assert!(four.contains("p32 or p14"), "{four}");
    }

    #[test]
    fn a_rate_without_its_unit_is_doubted() {
        let doubts = |line: &str| parse_line(line).unwrap().doubts;
        let tbf = doubts("tc qdisc add dev eth0 root tbf rate 5 burst 16kb latency 50ms");
        assert!(tbf[0].starts_with("rate 5 is 5 bit/s"), "{tbf:?}");
        let bit = doubts("tc qdisc add dev eth0 root netem rate 500bit").remove(0);
        assert!(
            bit.starts_with("rate 500bit is 500 bit/s") && bit.contains(" 500mbit in 10^6 bits"),
            "{bit}"
        );
        assert!(doubts("tc qdisc add dev eth0 root tbf rate 5mbit burst 16kb latency 50ms").is_empty());
    }

    #[test]
    fn the_share_that_netem_lets_overtake_is_the_rest_that_is_held_back() {
        let link = keys("tc qdisc add dev eth0 root netem delay 10ms reorder 25%");
        assert_eq!(link[..2], ["delay = \"0 s\"", "reorder = { share = \"75%\", by = \"10 ms\" }"]);
        let with_gap =
            parse_line("tc qdisc add dev eth0 root netem delay 10ms reorder 25% 50% gap 5").unwrap();
        assert!(with_gap.notes[0].contains("reorder with a correlation or a gap is left out"));
        assert_eq!(with_gap.keys[0], "delay = \"10 ms\"");
    }

    #[test]
    fn tbf_is_a_shaper_and_police_a_policer_with_the_units_of_tc() {
        assert_eq!(
            keys("tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms"),
            [
                "shaper = { rate = \"1 Mbps\", burst = \"4096 B\" }",
                "queue = { kind = \"drop-tail\", limit = \"54096 B\" }",
            ]
        );
        // As `tc -d qdisc show` prints the limit on Linux.
        assert!(
            keys("tc qdisc add dev eth0 root tbf rate 5mbit burst 15kb latency 50ms")[1]
                .contains("\"46610 B\"")
        );
        let police = "tc filter add dev eth0 ingress protocol all u32 match u32 0 0 police rate 1mbit burst 15k drop flowid :1";
        assert_eq!(keys(police), ["policer = { rate = \"1 Mbps\", burst = \"15360 B\" }"]);
        assert_eq!(rate("1mbps").unwrap(), Rate::from_bps(8_000_000));
        assert_eq!(
            (time("100").unwrap(), size("1mb").unwrap()),
            (Duration::from_micros(100), Bytes::new(1_048_576))
        );
    }

    #[test]
    fn a_class_of_htb_has_its_ceiling_and_its_bucket() {
        let line = "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit ceil 2mbit burst 15k cburst 20k prio 1";
        assert_eq!(keys(line), ["shaper = { rate = \"2 Mbps\", burst = \"20480 B\" }"]);
        assert_eq!(
            keys("tc class add dev eth0 parent 1: classid 1:10 htb rate 512kbit"),
            ["rate = \"512 kbps\""]
        );
        let root = parse_line("tc qdisc add dev eth0 root handle 1: htb default 10").unwrap();
        assert!(root.keys.is_empty() && root.notes[0].contains("the line of its class"));
    }

    #[test]
    fn a_discipline_below_another_adds_its_keys_and_replaces_the_queue() {
        let mut upper =
            parse_line("tc qdisc add dev lo root handle 1: tbf rate 1mbit burst 32kbit latency 400ms")
                .unwrap();
        upper.attach(
            parse_line("tc qdisc add dev lo parent 1: handle 10: netem delay 50ms limit 30").unwrap(),
        );
        assert_eq!(
            upper.keys,
            [
                "shaper = { rate = \"1 Mbps\", burst = \"4096 B\" }",
                "delay = \"50 ms\"",
                "queue = { kind = \"drop-tail\", limit = \"30 packets\" }",
            ]
        );
    }

    #[test]
    fn every_link_of_a_line_is_a_path_that_a_scenario_takes() {
        for line in [
            "tc qdisc add dev eth0 root netem delay 100ms 20ms 25% distribution normal loss gemodel 1% 20% 70% 0.1% rate 2mbit limit 100",
            "tc qdisc add dev eth0 root netem delay 10ms reorder 25%",
            "tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms",
            "tc filter add dev eth0 ingress police rate 1mbit burst 15k drop",
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit ceil 2mbit burst 15k",
            "tc qdisc add dev eth0 root netem delay 5ms duplicate 1% corrupt 0.2%",
        ] {
            let path = format!(
                "duration = \"9 s\"\n[flow.a]\ntransport = \"udp\"\nworkload = \"voice\"\n[path.down]\n[path.up]\n{}\n",
                keys(line).join("\n")
            );
            load(&Source::new("f.toml", path), &Options::default())
                .unwrap_or_else(|why| panic!("{line}: {why}"));
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_refused_with_what_was_found() {
        for (line, why) in [
            ("tc qdisc add dev eth0 root fq_codel", "expected a line with netem, tbf, htb or police"),
            ("tc qdisc add dev eth0 root netem delay", "`delay` is the last word"),
            ("tc qdisc add dev eth0 root netem delay fast", "found \"fast\", expected a number with a unit"),
            ("tc qdisc add dev eth0 root netem loss 101%", "expected from 0% to 100%"),
            ("tc qdisc add dev eth0 root netem slot 5ms", "found \"slot\""),
            ("tc qdisc add dev eth0 root tbf rate 1mbit latency 5ms", "expected `burst`"),
            ("tc qdisc add dev eth0 root tbf rate 1mbit burst 5k", "tbf without latency or limit"),
            ("tc qdisc add dev eth0 root tbf rate 1mbit burst 1000 latency 5ms", "expected at least 1514 B"),
        ] {
            let refused = parse_line(line).unwrap_err();
            assert!(refused.contains(why), "{line}: {refused}");
        }
    }
}
