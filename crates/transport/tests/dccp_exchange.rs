//! Exchange scripts: one end of our DCCP against a scripted far end, in timed text.
//!
//! A script first sets the scene, then tells a story, as those of TCP do (`exchange.rs`): `#` begins a
//! comment, times are milliseconds, a line that begins with blanks happens at the time of the line before.
//!
//! ```text
//! set initial_window 4              overrides one key of DccpConfig, see `Script::set`
//! role passive                      default: active
//! iss 100                           our initial sequence number, default 0; numbers are as on the wire
//! connect rtt 100 far 500           the handshake, the far end begins with 500; time 0 is its end
//!
//! 0      write 160                  the application writes one message; `write 160 refused`
//!        out data seq 1 size 160    the next packet that left, at exactly this time: its type must match, and what is given:
//!                                   seq, ack, size, code, `data 32,1,3` (a Reset's), ccval, cscov, `short`,
//!                                   `opt 38,3,0` (all options, in bytes, in any number of groups), `has 38` (an
//!                                   option of this type), `none` (no options)
//! 100    in ack seq 500 ack 1 opt 38,3,0
//!                                   a packet arrives, with what is given; `ce` marks it
//!        read 160                   the application reads a message of this size
//!        expect state open          also cwnd, ssthresh (or inf), srtt, rto, writable, send_buffer, timeouts, code,
//!                                   feature-local N V, feature-remote N V
//! 150    open | close | quiet       quiet: nothing has left since the last `out`
//! ```
//!
//! Before each input, and at the end, an `out` line must have named every packet that left.

use std::collections::VecDeque;
use std::str::SplitWhitespace;

use talkpath_config::{CcidKind, DccpConfig, QueuePolicy, Role};
use talkpath_transport::dccp::{Dccp, Feature, Location};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Packets, Seed};
use talkpath_wire::dccp::{DccpPacket, Options, PacketKind, Reset, ResetCode, Seq, ServiceCode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{Delivery, Message, Packet, Refused, Transmit, Transport};

struct Script {
    config: DccpConfig,
    role: Role,
    iss: u64,
    service: u32,
    dccp: Option<Dccp>,
    /// Time 0 of the story.
    base: Instant,
    now: Instant,
    left: VecDeque<(Instant, Transmit)>,
    messages: u64,
}

type Words<'a> = SplitWhitespace<'a>;

fn run(text: &str) {
    let mut script = Script {
        config: DccpConfig::new(CcidKind::Ccid2),
        role: Role::Active,
        iss: 0,
        service: 0,
        dccp: None,
        base: Instant::ZERO,
        now: Instant::ZERO,
        left: VecDeque::new(),
        messages: 0,
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
            "set" => self.set(words)?,
            "role" => self.role = Role::Passive,
            "iss" => self.iss = number(&mut words)?,
            "service" => self.service = number(&mut words)?,
            "connect" => self.connect(words)?,
            other => return Err(format!("no scene verb {other}")),
        }
        Ok(())
    }

    fn set(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let key = words.next().ok_or("set what?")?;
        let config = &mut self.config;
        match key {
            "initial_window" => config.initial_window = Some(Packets::new(number(&mut words)?)),
            "initial_ssthresh" => config.initial_ssthresh = Some(Packets::new(number(&mut words)?)),
            "ack_ratio" => config.ack_ratio = number(&mut words)?,
            "send_queue" => config.send_queue = Some(Packets::new(number(&mut words)?)),
            "drop_oldest" => config.send_queue_policy = QueuePolicy::DropOldest,
            "socket_buffer" => config.socket_buffer = Bytes::new(number(&mut words)?),
            "checksum_coverage" => config.checksum_coverage = number(&mut words)?,
            "init_cookie" => config.init_cookie = true,
            "short_seqnos" => config.short_seqnos = true,
            "ccid" => {
                config.ccid = match number(&mut words)? {
                    3 => CcidKind::Ccid3,
                    4 => CcidKind::Ccid4,
                    _ => CcidKind::Ccid2,
                }
            }
            "ecn" => config.ecn = true,
            "data_checksum" => config.data_checksum = true,
            other => return Err(format!("no key {other}")),
        }
        Ok(())
    }

    /// The whole handshake, an `rtt` long, with all features agreed; what it says is checked by scripts that
    /// tell it themselves. Our next packet is numbered iss + 2, the far end's next far + 2 (a client) or far
    /// + 3 (a server).
    fn connect(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let (mut rtt, mut far, mut more) = (100, 0, String::new());
        while let Some(key) = words.next() {
            match key {
                "rtt" => rtt = number(&mut words)?,
                "far" => far = number(&mut words)?,
                "with" => more = format!(",{}", words.next().ok_or("with what?")?),
                other => return Err(format!("connect with {other}?")),
            }
        }
        let (iss, next) = (self.iss, self.iss + 1);
        match self.role {
            Role::Active => {
                self.line("0 open")?;
                self.left.clear();
                // Confirms of our default requests, and the server's own Change R(Send Ack Vector, 1).
                self.line(&format!("{rtt} in response seq {far} ack {iss} opt {CONFIRMS},34,4,6,1{more}"))?;
                self.left.clear();
                self.line(&format!("{rtt} in ack seq {} ack {next}", far + 1))?;
            }
            Role::Passive => {
                self.line("0 open")?;
                self.line(&format!("0 in request seq {far} opt 34,4,6,1{more}"))?;
                self.left.clear();
                self.line(&format!("{rtt} in ack seq {} ack {iss} opt {CONFIRMS}", far + 1))?;
                self.left.clear();
                // A number is used up, so that both roles count alike.
                self.line(&format!("{rtt} in sync seq {} ack {iss}", far + 2))?;
            }
        }
        self.left.clear();
        self.base = self.now;
        Ok(())
    }

    fn event(&mut self, verb: &str, mut words: Words<'_>) -> Result<(), String> {
        let now = self.now;
        match verb {
            "open" => self.dccp().open(now),
            "close" => self.dccp().close(now),
            "quiet" => {}
            "write" => {
                let message = Message { seq: self.messages, size: Bytes::new(number(&mut words)?), due: now };
                self.messages += 1;
                let refused = words.next() == Some("refused");
                match self.dccp().handle_message(message, now) {
                    Ok(()) if !refused => {}
                    Err(Refused::QueueFull) if refused => {}
                    other => return Err(format!("write gave {other:?}")),
                }
            }
            "read" => {
                let wanted = Bytes::new(number(&mut words)?);
                match self.dccp().poll_delivery(Bytes::MAX, now) {
                    Some(Delivery::Message { size, .. }) if size == wanted => {}
                    other => return Err(format!("read gave {other:?}")),
                }
            }
            "in" => {
                let (packet, ecn) = self.arriving(words)?;
                self.dccp().handle_packet(&Packet::Encapsulated(packet.into()), ecn, now);
            }
            "out" => return self.out(words),
            "expect" => return self.expect(words),
            other => return Err(format!("no verb {other}")),
        }
        self.flush();
        Ok(())
    }

    fn arriving(&mut self, mut words: Words<'_>) -> Result<(DccpPacket, Ecn), String> {
        let kind = parse_kind(words.next().ok_or("which packet?")?)?;
        let mut packet = DccpPacket::new(kind, Seq::new(0), Seq::new(0));
        let (mut ecn, mut bytes) = (Ecn::NotEct, Vec::new());
        while let Some(word) = words.next() {
            match word {
                "seq" => packet.seq = Seq::new(number(&mut words)?),
                "ack" => packet.ack = Seq::new(number(&mut words)?),
                "size" => packet.payload = number(&mut words)?,
                "cscov" => packet.cscov = number(&mut words)?,
                "corrupt" => packet.corrupt = true,
                "short" => packet.short = true,
                "ce" => ecn = Ecn::Ce,
                "opt" => bytes.extend(parse_bytes(words.next().ok_or("which options?")?)?),
                "code" => set_code(&mut packet.kind, number(&mut words)?),
                "service" => set_service(&mut packet.kind, number(&mut words)?),
                other => return Err(format!("in with {other}?")),
            }
        }
        packet.options = Options::from_wire(&bytes);
        Ok((packet, ecn))
    }

    fn out(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let (time, transmit) = self.left.pop_front().ok_or("nothing left the endpoint")?;
        let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = transmit.packet else {
            return Err("not DCCP".into());
        };
        let at = time.since(self.base).as_millis_f64();
        let found = format!("found {} at {at} ms", describe(&packet));
        if time != self.now {
            return Err(found);
        }
        let kind = parse_kind(words.next().ok_or("which packet?")?)?;
        let mut same = kind.number() == packet.kind.number();
        let (mut bytes, mut are_given) = (Vec::new(), false);
        while let Some(word) = words.next() {
            match word {
                "seq" => same &= packet.seq == Seq::new(number(&mut words)?),
                "ack" => same &= packet.ack == Seq::new(number(&mut words)?),
                "size" => same &= packet.payload == number(&mut words)?,
                "ccval" => same &= packet.ccval == number(&mut words)?,
                "cscov" => same &= packet.cscov == number(&mut words)?,
                "short" => same &= packet.short,
                "ect" => same &= transmit.ecn == Ecn::Ect0,
                "none" => are_given = true,
                "opt" => {
                    are_given = true;
                    bytes.extend(parse_bytes(words.next().ok_or("which options?")?)?);
                }
                "has" => {
                    let wanted = number::<u8>(&mut words)?;
                    same &= types(&packet).contains(&wanted);
                }
                "code" => {
                    let code = ResetCode(number(&mut words)?);
                    same &= matches!(packet.kind, PacketKind::Reset(reset) if reset.code == code);
                }
                "data" => {
                    let data = parse_bytes(words.next().ok_or("which data?")?)?;
                    same &= matches!(packet.kind, PacketKind::Reset(reset) if reset.data[..] == data);
                }
                "service" => {
                    let wanted = ServiceCode(number(&mut words)?);
                    same &= matches!(
                        packet.kind,
                        PacketKind::Request { service } | PacketKind::Response { service } if service == wanted
                    );
                }
                other => return Err(format!("out with {other}?")),
            }
        }
        same &= !are_given || packet.options.as_bytes() == bytes;
        if same { Ok(()) } else { Err(found) }
    }

    fn expect(&mut self, mut words: Words<'_>) -> Result<(), String> {
        let seen = self.dccp().observe();
        let ms = |span: Option<Duration>| span.map_or(f64::NAN, Duration::as_millis_f64);
        while let Some(key) = words.next() {
            let found = match key {
                "state" => {
                    let wanted = words.next().ok_or("which state?")?;
                    let state = format!("{:?}", self.dccp().state()).to_lowercase();
                    if state != wanted {
                        return Err(format!("state is {state}"));
                    }
                    continue;
                }
                "feature-local" | "feature-remote" => {
                    let feature = parse_feature(number(&mut words)?)?;
                    let location = if key == "feature-local" { Location::Local } else { Location::Remote };
                    self.dccp().feature(feature, location) as f64
                }
                "code" => self.dccp().ended_by().map_or(f64::NAN, |code| f64::from(code.0)),
                "open" => f64::from(u8::from(self.dccp().is_open())),
                "cwnd" => seen.cwnd.unwrap_or(f64::NAN),
                "ssthresh" => seen.ssthresh.unwrap_or(f64::NAN),
                "rto" => ms(seen.rto),
                "srtt" => ms(seen.srtt),
                "send_buffer" => seen.send_buffer.get() as f64,
                "writable" => self.dccp().writable().get() as f64,
                "timeouts" => self.dccp().counters().timeouts.unwrap_or(0) as f64,
                "discarded" => self.dccp().poll_discarded().map_or(f64::NAN, |seq| seq as f64),
                other => return Err(format!("expect {other}?")),
            };
            let wanted: f64 = number(&mut words)?;
            if found != wanted && (found - wanted).abs() >= 5e-4 || found.is_nan() {
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
        while let Some(deadline) = self.dccp().poll_timeout().filter(|&deadline| deadline <= to) {
            if deadline < self.now {
                return Err(format!("a deadline in the past, {deadline}"));
            }
            self.now = deadline;
            self.dccp().handle_timeout(deadline);
            self.flush();
        }
        self.now = to;
        Ok(())
    }

    fn dccp(&mut self) -> &mut Dccp {
        let (config, role, iss, service) = (&self.config, self.role, self.iss, self.service);
        self.dccp.get_or_insert_with(|| {
            Dccp::new(config, role, Bytes::new(1500), Seed::new(1), None)
                .with_initial_sequence(Seq::new(iss))
                .with_service(ServiceCode(service))
        })
    }

    fn flush(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.dccp().poll_transmit(now) {
            self.left.push_back((now, transmit));
        }
    }

    fn nothing_untold(&self) -> Result<(), String> {
        match self.left.front() {
            Some((time, Transmit { packet: Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)), .. })) => {
                let at = time.since(self.base).as_millis_f64();
                Err(format!("untold: {} at {at} ms", describe(packet)))
            }
            _ => Ok(()),
        }
    }
}

fn describe(packet: &DccpPacket) -> String {
    let bytes: Vec<_> = packet.options.as_bytes().iter().map(u8::to_string).collect();
    format!(
        "{:?} seq {} ack {} size {} ccval {} opt {}",
        packet.kind,
        packet.seq,
        packet.ack,
        packet.payload,
        packet.ccval,
        bytes.join(",")
    )
}

/// The types of a packet's options, by walking their lengths.
fn types(packet: &DccpPacket) -> Vec<u8> {
    let mut rest = packet.options.as_bytes();
    let mut types = Vec::new();
    while let Some(&kind) = rest.first() {
        types.push(kind);
        rest = &rest[if kind < 32 { 1 } else { usize::from(rest[1]) }..];
    }
    types
}

fn parse_kind(word: &str) -> Result<PacketKind, String> {
    let service = ServiceCode(0);
    Ok(match word {
        "request" => PacketKind::Request { service },
        "response" => PacketKind::Response { service },
        "data" => PacketKind::Data,
        "ack" => PacketKind::Ack,
        "dataack" => PacketKind::DataAck,
        "closereq" => PacketKind::CloseReq,
        "close" => PacketKind::Close,
        "reset" => PacketKind::Reset(Reset { code: ResetCode::UNSPECIFIED, data: [0; 3] }),
        "sync" => PacketKind::Sync,
        "syncack" => PacketKind::SyncAck,
        other => return Err(format!("no packet {other}")),
    })
}

fn set_code(kind: &mut PacketKind, code: u8) {
    *kind = PacketKind::Reset(Reset { code: ResetCode(code), data: [0; 3] });
}

fn set_service(kind: &mut PacketKind, code: u32) {
    *kind = PacketKind::Request { service: ServiceCode(code) };
}

fn parse_feature(number: u8) -> Result<Feature, String> {
    let all = [
        Feature::Ccid,
        Feature::AllowShortSeqnos,
        Feature::SequenceWindow,
        Feature::EcnIncapable,
        Feature::AckRatio,
        Feature::SendAckVector,
        Feature::CheckDataChecksum,
    ];
    all.into_iter().find(|feature| feature.number() == number).ok_or(format!("no feature {number}"))
}

fn parse_bytes(word: &str) -> Result<Vec<u8>, String> {
    word.split(',').map(|byte| byte.parse().map_err(|_| format!("{byte} is no byte"))).collect()
}

fn number<T: std::str::FromStr>(words: &mut Words<'_>) -> Result<T, String> {
    let word = words.next().ok_or("a number is missing")?;
    word.parse().map_err(|_| format!("{word} is no number"))
}

/// RFC 4341 §4: CCID 2 is acknowledged by Ack Vectors, however many drops there are to report (RFC 4340
/// §11.7). Here every other packet is corrupt. Once the peer has one of our acknowledgements, the drops are
/// forgotten.
#[test]
fn many_drops_leave_room_for_the_ack_vector() {
    let mut text = String::from("connect rtt 100 far 500\n0 quiet\n");
    for n in 0..70 {
        let seq = 502 + 2 * n;
        text += &format!("  in data seq {seq} size 1 corrupt\n  in data seq {} size 1\n", seq + 1);
        text += &format!("  out ack seq {} ack {} has 40 has 38\n", 2 + n, seq + 1);
    }
    text += "  in dataack seq 642 ack 71 size 1\n  in data seq 643 size 1\n  out ack seq 72 opt 38,3,1\n";
    run(&text);
}

/// Confirm R(Sequence Window, 1000), Confirm R(ECN Incapable, 1), Confirm L(Send Ack Vector, 1).
const CONFIRMS: &str = "35,9,3,0,0,0,0,3,232,35,6,4,1,0,1,33,6,6,1,0,1";

macro_rules! exchanges {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(include_str!(concat!("dccp_exchange/", stringify!($name), ".txt")));
            }
        )*

        #[test]
        fn every_script_is_run() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dccp_exchange");
            let scripts = std::fs::read_dir(folder).unwrap().count();
            assert_eq!(scripts, [$(stringify!($name)),*].len());
        }
    };
}

exchanges! {
    client_handshake_agrees_on_features
    server_answers_each_request_and_opens
    lost_request_is_sent_again
    silent_server_is_given_up
    partopen_client_repeats_its_ack
    client_data_carries_acks_until_open
    client_closes
    server_asks_the_client_to_close
    server_holds_what_close_brings
    burst_of_loss_is_recovered_by_syncs
    blind_data_draws_a_sync
    half_open_connection_is_cleaned_up
    reset_with_wrong_numbers_does_nothing
    syncs_are_limited_to_eight_a_second
    unexpected_types_draw_a_sync
    no_connection_is_answered_with_a_reset
    wrong_service_code_is_refused
    reset_ends_a_request
    bad_option_on_a_reset_is_ignored
    mandatory_ccid_option_must_be_known
    stateless_reset_tells_the_option
    mandatory_unknown_option_resets
    mandatory_on_data_is_ignored
    init_cookie_keeps_no_state
    tampered_cookie_is_refused
    client_echoes_the_cookie_until_open
    ack_vector_tells_of_gaps
    acks_come_for_every_second_packet_or_late
    acknowledged_acks_shorten_the_vector
    slow_start_and_a_halved_window
    timeout_leaves_one_packet
    full_receive_buffer_is_told
    copies_change_no_report_of_drops
    insufficient_coverage_is_told
    short_numbers_are_used_once_agreed
    timestamp_is_echoed
    queue_drops_the_oldest
    change_in_mid_connection_is_confirmed
    marks_are_told_and_halve_the_window
    data_checksum_is_required_of_the_peer
    ccid3_begins_at_the_initial_rate
}
