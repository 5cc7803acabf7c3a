//! Exchange scripts: one end of our TCP against a scripted far end, in timed text.
//!
//! A script first sets the scene, then tells a story. `#` begins a comment. Times are milliseconds, with a
//! fraction where needed; a line that begins with blanks happens at the time of the line before.
//!
//! ```text
//! stack rfc                      presets: rfc, linux, bsd-reno
//! set initial_window 2           overrides one key of TcpConfig, see `Script::set`
//! role passive                   default: active
//! iss 4294967000                 our initial sequence number; `far_iss` is the far end's; default 0
//! connect rtt 100 window 65535   the handshake, with options mss M and scale S; time 0 is its end
//!
//! 0      write 3000              the application writes one message
//!        out 1..1001 ack 1       the next packet that left, at exactly this time: data range, syn, fin, rst, again
//!                                (a retransmission), ece, cwr and ect must match; sack L..R, in order, too; seq, ack, window, mss,
//!                                scale, ts only if given
//! 100    in ack 1001             a packet arrives: range, syn, fin, rst, push, ack, window, mss, scale, ts V E;
//!                                what is not given is as in the last one; ece, cwr; ect and ce of the IP header
//!        read 500                the application reads so much; `read all`
//!        expect cwnd 3           also ssthresh (or inf), rto, srtt, writable, send_buffer, timeouts, open, closed
//! 150    open | close | shutdown | quiet    quiet: nothing has left since the last `out`
//! ```
//!
//! A host's clock ticks with the script's. Sequence numbers count from 0 at the SYN, so that data begins at
//! 1. Before each input, and at the end, every packet that left must have been told of.

use std::collections::VecDeque;
use std::str::SplitWhitespace;

use talkpath_config::{CongestionControlKind, DelayedAck, NagleKind, Role, Stack, TcpConfig, Ticks};
use talkpath_transport::tcp::Tcp;
use talkpath_units::{Bytes, Duration, Ecn, Instant, Packets, Seed, SeqNum};
use talkpath_wire::{Delivery, Flags, Message, Packet, Refused, SackBlock, Segment, Transmit, Transport};

struct Script {
    config: TcpConfig,
    role: Role,
    iss: u32,
    far_iss: u32,
    tcp: Option<Tcp>,
    /// Time 0 of the story.
    base: Instant,
    now: Instant,
    left: VecDeque<(Instant, Transmit)>,
    /// The far end's last acknowledgement and window field.
    far_ack: u32,
    far_window: u16,
    far_seq: u32,
    /// The last timestamp that we sent.
    last_timestamp: Option<u32>,
}

type Words<'a> = SplitWhitespace<'a>;

fn run(text: &str) {
    let mut script = Script {
        config: TcpConfig::preset(Stack::Rfc, false),
        role: Role::Active,
        iss: 0,
        far_iss: 0,
        tcp: None,
        base: Instant::ZERO,
        now: Instant::ZERO,
        left: VecDeque::new(),
        far_ack: 0,
        far_window: u16::MAX,
        far_seq: 0,
        last_timestamp: None,
    };
    for (number, line) in text.lines().enumerate() {
        let told = line.split('#').next().unwrap_or_default();
        if !told.trim().is_empty() {
            script.line(told).unwrap_or_else(|why| panic!("line {}: {line}\n  {why}", number + 1));
        }
    }
    script.nothing_untold().unwrap_or_else(|why| panic!("at the end: {why}"));
}

impl Script {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        if !line.starts_with(char::is_whitespace) {
            let first = words.next().ok_or("empty")?;
            match first.parse::<f64>() {
                Ok(ms) => self.advance(self.base + Duration::from_secs_f64(ms / 1e3))?,
                Err(_) => return self.scene(first, words),
            }
        }
        let verb = words.next().ok_or("a time and no verb")?;
        if !matches!(verb, "out" | "expect") {
            self.nothing_untold()?;
        }
        self.event(verb, words)
    }

    fn scene(&mut self, verb: &str, mut words: Words<'_>) -> Result<(), String> {
        match verb {
            "stack" => {
                let word = words.next().unwrap_or_default();
                let stack = Stack::named(word).ok_or_else(|| format!("no stack {word:?}"))?;
                self.config = TcpConfig { ticks: Ticks::Common, ..TcpConfig::preset(stack, false) };
            }
            "set" => self.set(words)?,
            "role" => self.role = Role::Passive,
            "iss" => self.iss = number(&mut words)?,
            "far_iss" => self.far_iss = number(&mut words)?,
            "connect" => self.connect(words)?,
            other => return Err(format!("no scene verb {other}")),
        }
        Ok(())
    }

    fn set(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let key = words.next().ok_or("set what?")?;
        let config = &mut self.config;
        match key {
            "mss" => config.mss = Some(Bytes::new(number(&mut words)?)),
            "initial_window" => config.initial_window = Packets::new(number(&mut words)?),
            "initial_ssthresh" => config.initial_ssthresh = Some(Packets::new(number(&mut words)?)),
            "rwnd" => config.rwnd = Bytes::new(number(&mut words)?),
            "send_buffer" => config.send_buffer = Some(Bytes::new(number(&mut words)?)),
            "min_rto" => config.min_rto = Duration::from_millis(number(&mut words)?),
            "timestamps" => config.timestamps = on(&mut words),
            "ecn" => config.ecn = on(&mut words),
            "window_scaling" => config.window_scaling = on(&mut words),
            "limited_transmit" => config.limited_transmit = on(&mut words),
            "sack" => config.sack = on(&mut words),
            "tlp" => config.tlp = on(&mut words),
            "pacing" => config.pacing = on(&mut words),
            "cc" => {
                let word = words.next().unwrap_or_default();
                let cc = CongestionControlKind::named(word);
                config.cc = Some(cc.ok_or_else(|| format!("no congestion control {word:?}"))?);
            }
            "nagle" => {
                let word = words.next().unwrap_or_default();
                config.nagle =
                    NagleKind::named(word).ok_or_else(|| format!("no form of Nagle's {word:?}"))?;
            }
            "delayed_ack" => {
                config.delayed_ack = match words.next() {
                    Some("off") => DelayedAck::Off,
                    Some("after") => {
                        DelayedAck::After { timeout: Duration::from_millis(number(&mut words)?) }
                    }
                    Some("tick") => DelayedAck::Tick { period: Duration::from_millis(number(&mut words)?) },
                    _ => DelayedAck::Linux,
                }
            }
            other => return Err(format!("no key {other}")),
        }
        Ok(())
    }

    /// The whole handshake, an `rtt` long; what it says is checked by the scripts that tell it themselves.
    fn connect(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let (mut rtt, mut mss, mut scale) = (100, self.config.mss.map_or(1460, Bytes::get), 7);
        while let Some(key) = words.next() {
            match key {
                "rtt" => rtt = number(&mut words)?,
                "window" => self.far_window = number(&mut words)?,
                "mss" => mss = number(&mut words)?,
                "scale" => scale = number(&mut words)?,
                other => return Err(format!("connect with {other}?")),
            }
        }
        let ecn = match self.role {
            Role::Active if self.config.ecn => "ece",
            Role::Passive if self.config.ecn => "ece cwr",
            _ => "",
        };
        let options = format!("mss {mss} scale {scale} {ecn}");
        let window = self.far_window;
        let say = |script: &mut Self, what: &str| script.line(what);
        match self.role {
            Role::Active => {
                say(self, "0 open")?;
                self.left.clear();
                say(self, &format!("{rtt} in syn ack 1 {options} window {window}"))?;
            }
            Role::Passive => {
                say(self, "0 open")?;
                say(self, &format!("0 in syn {options} window {window}"))?;
                self.left.clear();
                say(self, &format!("{rtt} in ack 1 window {window}"))?;
            }
        }
        self.left.clear();
        self.base = self.now;
        Ok(())
    }

    fn event(&mut self, verb: &str, mut words: Words<'_>) -> Result<(), String> {
        let now = self.now;
        match verb {
            "open" => self.tcp().open(now),
            "shutdown" => self.tcp().shutdown(now),
            "close" => self.tcp().close(now),
            "quiet" => {}
            "write" => {
                let message = Message { seq: 0, size: Bytes::new(number(&mut words)?), due: now };
                let refused = words.next() == Some("refused");
                match self.tcp().handle_message(message, now) {
                    Ok(()) if !refused => {}
                    Err(Refused::NoRoom) if refused => {}
                    other => return Err(format!("write gave {other:?}")),
                }
            }
            "read" => self.read(words)?,
            "in" => {
                let (segment, ecn) = self.arriving(words)?;
                self.tcp().handle_packet(&Packet::Tcp(segment), ecn, now);
            }
            "out" => return self.out(words),
            "expect" => return self.expect(words),
            other => return Err(format!("no verb {other}")),
        }
        self.flush();
        Ok(())
    }

    fn read(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let now = self.now;
        let (limit, all) = match words.next() {
            Some("all") => (u64::MAX, true),
            Some(word) => (word.parse().map_err(|_| "read how much?")?, false),
            None => return Err("read how much?".into()),
        };
        match self.tcp().poll_delivery(Bytes::new(limit), now) {
            Some(Delivery::Stream { bytes }) if all || bytes.get() == limit => Ok(()),
            other => Err(format!("read gave {other:?}")),
        }
    }

    fn arriving(&mut self, mut words: Words<'_>) -> Result<(Segment, Ecn), String> {
        let mut ecn = Ecn::NotEct;
        let mut segment = Segment { flags: Flags::default(), ..Segment::default() };
        let mut seq = self.far_seq;
        let mut timestamps = self.config.timestamps.then(|| ((self.now.as_nanos() / 1_000_000) as u32, 0));
        if let (Some(stamps), Some(echo)) = (&mut timestamps, self.last_timestamp) {
            stamps.1 = echo;
        }
        let mut has_ack = true;
        while let Some(word) = words.next() {
            match word {
                "syn" => {
                    segment.flags = segment.flags.with(Flags::SYN);
                    segment.options = segment.options.with_sack_permitted(self.config.sack);
                    has_ack = false;
                    seq = 0;
                }
                "fin" => segment.flags = segment.flags.with(Flags::FIN),
                "rst" => segment.flags = segment.flags.with(Flags::RST),
                "push" => segment.flags = segment.flags.with(Flags::PSH),
                "ece" => segment.flags = segment.flags.with(Flags::ECE),
                "cwr" => segment.flags = segment.flags.with(Flags::CWR),
                "ect" => ecn = Ecn::Ect0,
                "ce" => ecn = Ecn::Ce,
                "seq" => seq = number(&mut words)?,
                "ack" => {
                    self.far_ack = number(&mut words)?;
                    has_ack = true;
                }
                "window" => self.far_window = number(&mut words)?,
                "mss" => segment.options = segment.options.with_mss(number(&mut words)?),
                "scale" => {
                    let shift = number(&mut words)?;
                    let shift = self.config.window_scaling.then_some(shift);
                    segment.options = segment.options.with_window_scale(shift);
                }
                "ts" => timestamps = Some((number(&mut words)?, number(&mut words)?)),
                "sack" => {
                    let (left, right) = parse_range(words.next().ok_or("sack what?")?)?;
                    let number = |offset| SeqNum::new(self.iss).wrapping_add(offset);
                    let block = SackBlock { left: number(left), right: number(right) };
                    segment.sack[usize::from(segment.sack_count)] = block;
                    segment.sack_count += 1;
                }
                range => {
                    let (start, end) = parse_range(range)?;
                    seq = start;
                    segment.payload = end - start;
                }
            }
        }
        if has_ack {
            segment.flags = segment.flags.with(Flags::ACK);
            segment.ack = SeqNum::new(self.iss).wrapping_add(self.far_ack);
        }
        let syn_fin =
            u32::from(segment.flags.contains(Flags::SYN)) + u32::from(segment.flags.contains(Flags::FIN));
        self.far_seq = self.far_seq.max(seq + segment.payload + syn_fin);
        segment.seq = SeqNum::new(self.far_iss).wrapping_add(seq);
        segment.window = self.far_window;
        segment.options = segment.options.with_timestamps(timestamps);
        Ok((segment, ecn))
    }

    fn out(&mut self, mut words: Words<'_>) -> Result<(), String> {
        if self.left.is_empty() {
            // What waits for a read leaves at the end of the instant.
            self.advance(self.now)?;
        }
        let (time, transmit) = self.left.pop_front().ok_or("nothing left the endpoint")?;
        let Packet::Tcp(segment) = transmit.packet else { return Err("not TCP".into()) };
        let found =
            format!("found {} at {} ms", self.describe(&transmit), (time.since(self.base)).as_millis_f64());
        if time != self.now {
            return Err(found);
        }
        let seq = segment.seq.get().wrapping_sub(self.iss);
        let ack = segment.ack.get().wrapping_sub(self.far_iss);
        let (mut flags, mut payload, mut again) = (Flags::default(), 0, false);
        let mut ecn = Ecn::NotEct;
        let mut sack = Vec::new();
        let mut same = true;
        while let Some(word) = words.next() {
            match word {
                "syn" => flags = flags.with(Flags::SYN),
                "fin" => flags = flags.with(Flags::FIN),
                "rst" => flags = flags.with(Flags::RST),
                "push" => same &= segment.flags.contains(Flags::PSH),
                "again" => again = true,
                "ece" => flags = flags.with(Flags::ECE),
                "cwr" => flags = flags.with(Flags::CWR),
                "ect" => ecn = Ecn::Ect0,
                "seq" => same &= seq == number(&mut words)?,
                "ack" => same &= segment.flags.contains(Flags::ACK) && ack == number(&mut words)?,
                "window" => same &= segment.window == number(&mut words)?,
                "mss" => same &= segment.mss() == Some(number(&mut words)?),
                "scale" => same &= segment.window_scale() == Some(number(&mut words)?),
                "sackok" => same &= segment.sack_permitted(),
                "ts" => same &= segment.timestamps() == Some((number(&mut words)?, number(&mut words)?)),
                "sack" => sack.push(parse_range(words.next().ok_or("sack what?")?)?),
                range => {
                    let (start, end) = parse_range(range)?;
                    same &= seq == start;
                    payload = end - start;
                }
            }
        }
        same &= sack == self.blocks(&segment);
        same &= segment.payload == payload && transmit.retransmission == again;
        same &= ecn == transmit.ecn;
        for flag in [Flags::SYN, Flags::FIN, Flags::RST, Flags::ECE, Flags::CWR] {
            same &= flags.contains(flag) == segment.flags.contains(flag);
        }
        if same { Ok(()) } else { Err(found) }
    }

    fn blocks(&self, segment: &Segment) -> Vec<(u32, u32)> {
        let offset = |seq: SeqNum| seq.get().wrapping_sub(self.far_iss);
        let blocks = &segment.sack[..usize::from(segment.sack_count)];
        blocks.iter().map(|block| (offset(block.left), offset(block.right))).collect()
    }

    fn expect(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let seen = self.tcp().observe();
        let counters = self.tcp().counters();
        let ms = |span: Option<Duration>| span.map_or(f64::NAN, Duration::as_millis_f64);
        while let Some(key) = words.next() {
            let found = match key {
                "open" => f64::from(u8::from(self.tcp().is_open())),
                "closed" => f64::from(u8::from(!self.tcp().is_open())),
                "cwnd" => seen.cwnd.unwrap_or(f64::NAN),
                "ssthresh" => seen.ssthresh.unwrap_or(f64::NAN),
                "rto" => ms(seen.rto),
                "srtt" => ms(seen.srtt),
                "send_buffer" => seen.send_buffer.get() as f64,
                "writable" => self.tcp().writable().get() as f64,
                "timeouts" => counters.timeouts.unwrap_or(0) as f64,
                "fast_retransmits" => counters.fast_retransmits as f64,
                other => return Err(format!("expect {other}?")),
            };
            let wanted = if matches!(key, "open" | "closed") { 1.0 } else { number::<f64>(&mut words)? };
            let close = found == wanted || (found - wanted).abs() < 5e-4;
            if !close {
                return Err(format!("{key} is {found}"));
            }
        }
        Ok(())
    }

    /// Lets timers fire until `to`.
    fn advance(&mut self, to: Instant) -> Result<(), String> {
        if to < self.now {
            return Err("time goes back".into());
        }
        while let Some(deadline) = self.tcp().poll_timeout().filter(|&deadline| deadline <= to) {
            self.now = self.now.max(deadline);
            let now = self.now;
            self.tcp().handle_timeout(now);
            self.flush();
        }
        self.now = to;
        Ok(())
    }

    fn tcp(&mut self) -> &mut Tcp {
        let (config, role, iss) = (&self.config, self.role, self.iss);
        self.tcp.get_or_insert_with(|| {
            Tcp::new(config, role, Bytes::new(1500), Seed::new(1), None)
                .with_initial_sequence(SeqNum::new(iss))
        })
    }

    fn flush(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.tcp().poll_transmit(now) {
            if let Packet::Tcp(segment) = transmit.packet
                && let Some((value, _)) = segment.timestamps()
            {
                self.last_timestamp = Some(value);
            }
            self.left.push_back((now, transmit));
        }
    }

    fn nothing_untold(&self) -> Result<(), String> {
        match self.left.front() {
            None => Ok(()),
            Some((time, transmit)) => {
                let at = time.since(self.base).as_millis_f64();
                Err(format!("untold: {} at {at} ms", self.describe(transmit)))
            }
        }
    }

    fn describe(&self, transmit: &Transmit) -> String {
        let Packet::Tcp(segment) = transmit.packet else { return "not TCP".into() };
        let mut text = String::new();
        let names = [
            (Flags::SYN, "syn "),
            (Flags::FIN, "fin "),
            (Flags::RST, "rst "),
            (Flags::PSH, "push "),
            (Flags::ECE, "ece "),
            (Flags::CWR, "cwr "),
        ];
        for (flag, name) in names {
            if segment.flags.contains(flag) {
                text += name;
            }
        }
        let seq = segment.seq.get().wrapping_sub(self.iss);
        let ack = segment.ack.get().wrapping_sub(self.far_iss);
        let end = seq.wrapping_add(segment.payload);
        text += &format!("{seq}..{end} ack {ack} window {}", segment.window);
        if let Some((value, echo)) = segment.timestamps() {
            text += &format!(" ts {value} {echo}");
        }
        for (left, right) in self.blocks(&segment) {
            text += &format!(" sack {left}..{right}");
        }
        if transmit.ecn == Ecn::Ect0 {
            text += " ect";
        }
        text + if transmit.retransmission { " again" } else { "" }
    }
}

fn number<T: std::str::FromStr>(words: &mut Words<'_>) -> Result<T, String> {
    let word = words.next().ok_or("a number is missing")?;
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn on(words: &mut Words<'_>) -> bool {
    words.next() != Some("off")
}

fn parse_range(word: &str) -> Result<(u32, u32), String> {
    let parse = || {
        let (start, end) = word.split_once("..")?;
        Some((start.parse().ok()?, end.parse().ok()?))
    };
    parse().filter(|(start, end)| start <= end).ok_or_else(|| format!("{word} is no range"))
}

macro_rules! exchanges {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(include_str!(concat!("exchange/", stringify!($name), ".txt")));
            }
        )*

        #[test]
        fn every_script_is_run() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exchange");
            let scripts = std::fs::read_dir(folder).unwrap().count();
            assert_eq!(scripts, [$(stringify!($name)),*].len());
        }
    };
}

exchanges! {
    handshake_agrees_on_options
    window_scaling_needs_no_timestamps
    timestamps_need_no_window_scaling
    passive_end_answers_and_opens
    lost_syn_is_sent_again_after_a_second
    slow_start_doubles_each_round_trip
    congestion_avoidance_adds_one_segment_a_round_trip
    third_duplicate_ack_retransmits_once
    newreno_repairs_two_losses_in_one_recovery
    reno_leaves_recovery_at_the_first_new_ack
    no_second_fast_retransmit_for_what_was_recovered
    limited_transmit_sends_new_data_on_two_duplicates
    linux_counts_what_duplicates_reported_once
    timeouts_back_off_and_go_back
    retransmitted_segments_give_no_sample
    timestamps_give_samples_of_retransmissions
    classic_nagle_holds_a_small_segment
    minshall_lets_a_tail_follow_a_full_segment
    second_segment_is_acknowledged_at_once
    delayed_ack_waits_for_its_timeout
    bsd_acknowledges_at_its_tick
    bsd_adds_an_eighth_of_a_segment
    bsd_halves_its_window_in_whole_segments
    bsd_halves_its_window_at_the_third_duplicate
    bsd_halves_its_window_with_limited_transmit_too
    acknowledgements_wait_for_the_read
    linux_acknowledges_quickly_then_with_answers
    out_of_order_data_is_acknowledged_at_once
    closed_window_is_probed
    slow_reader_reopens_the_window
    fin_closes_both_ways
    close_with_unread_data_resets
    data_after_close_resets
    both_ends_close_at_once
    sequence_numbers_wrap
    timestamps_tell_old_duplicates
    linux_takes_a_duplicate_that_was_overtaken
    reset_ends_the_connection
    send_buffer_refuses_what_does_not_fit
    idle_connection_restarts_with_the_initial_window
    sack_tells_of_the_latest_block_first
    rfc6675_repairs_two_losses_in_one_round_trip
    rack_finds_a_loss_by_time_and_prr_leads_the_window
    rack_waits_for_a_quarter_round_trip
    sack_blocks_are_taken_in_ascending_order
    a_late_original_shows_that_the_rest_is_not_lost
    tail_loss_is_probed_after_two_round_trips
    probe_of_the_last_segment_costs_a_reduction
    needless_timeout_is_taken_back
    frto_tries_new_data_before_repeating_more
    linux_repairs_before_it_takes_the_data_that_came_along
    duplicates_reported_take_a_reduction_back
    unused_window_decays
    unused_window_of_bsd_grows
    tahoe_goes_back_at_the_third_duplicate_ack
    pacing_spreads_a_window_over_the_round_trip
    cubic_leaves_seven_tenths_after_a_loss
    ecn_is_agreed_on_in_the_handshake
    ecn_is_not_offered_again
    marks_are_echoed_until_cwr
    echo_halves_the_window_once_a_window
    linux_brings_the_window_down_over_a_round_trip
    loss_after_an_echo_reduces_no_further
    echo_without_sack_halves_at_once
    bbr_answers_an_echo_and_keeps_its_window
    a_lost_repair_halves_the_window_once_more
    a_reset_is_not_an_old_duplicate
    a_reset_may_carry_data_and_meet_a_closed_window
    a_shift_above_fourteen_counts_as_fourteen
    a_window_that_shrinks_stops_new_data_only
    both_ends_open_at_once
    marks_outside_of_the_window_count_for_nothing
    a_block_that_grows_within_a_segment_marks_it
    a_block_that_grows_to_the_left_marks_its_segment
    sacked_data_is_kept_until_it_is_acknowledged
    timestamps_echo_what_is_acknowledged
    timestamps_that_were_not_agreed_on_are_ignored
    window_probes_are_not_ecn_capable
    without_an_mss_option_segments_have_536_bytes
    a_duplicate_that_reports_nothing_new_releases_nothing
    a_probe_is_new_data_if_there_is_any
    a_reset_that_is_questioned_leaves_the_echo_as_it_was
    a_syn_in_an_open_connection_is_questioned
    a_timeout_with_sack_halves_what_is_outstanding
    an_echo_without_acknowledgement_is_no_sample
    scaling_is_answered_with_the_shift_that_shows_the_buffer
    what_is_known_beyond_a_recovery_is_kept
    without_a_round_trip_a_probe_waits_for_a_second
    without_sack_no_probe_leaves
    two_duplicates_before_progress_and_two_after_are_no_loss
    an_end_that_has_also_not_offered_ecn_does_not_use_it
    an_offer_that_is_taken_back_is_not_used
    a_reset_before_the_handshake_ends_is_checked_too
    resets_carry_timestamps
    no_second_probe_leaves_before_a_round_trip_is_measured
    a_repair_that_rack_finds_lost_reduces_the_window_again
    duplicates_after_a_timeout_begin_no_recovery
    rack_waits_after_reordering_though_three_are_sacked
    only_the_first_partial_acknowledgement_restarts_the_timer
    a_segment_that_fills_a_part_of_a_gap_is_acknowledged_at_once
    sacked_data_does_not_postpone_the_timeout
    linux_restarts_the_timer_for_what_left_before_the_repair
    a_probe_of_a_single_segment_waits_for_a_delayed_ack
    a_probe_that_repaired_a_loss_halves_the_flight
    cubic_on_an_rfc_host_restarts_at_once
    cubic_on_an_rfc_host_keeps_an_unused_window
    linux_keeps_the_initial_window_as_floor_after_lost_syns
    linux_repeats_its_syn_each_second_at_first
    linux_doubles_the_time_between_its_syn_acks
    linux_keeps_its_window_if_only_answers_to_its_syn_were_lost
    linux_begins_with_one_segment_after_two_lost_syns
    without_sack_the_window_stays_while_there_is_a_gap
    with_sack_new_data_beyond_a_gap_opens_the_window
    linux_leaves_quick_mode_while_its_buffer_is_half_full
    a_probe_is_no_part_of_a_segment
    linux_counts_the_time_to_a_window_probe_from_the_last_answer
    rack_widens_its_window_for_a_dsack_once_reordering_was_seen
    rack_keeps_its_window_for_a_dsack_before_reordering
    rack_keeps_its_window_for_the_dsack_of_a_probe
    rack_on_an_rfc_host_widens_its_window_for_any_dsack
    a_dsack_of_another_segment_answers_no_probe
    cubic_counts_more_than_a_window_before_renos_estimate_grows
    a_timeout_sends_the_first_segment_though_rack_holds_another_for_in_flight
}
