//! Quantities with their units, and the messages about texts that are no quantities.

use super::*;

const DURATION: &[DimensionRange] =
    &[DimensionRange { dimension: Dimension::Duration, least: 1, most: 1_000_000 * 1_000_000_000 }];
const BUFFER_SIZE: &[DimensionRange] = &[
    DimensionRange { dimension: Dimension::Packets, least: 1, most: 1_000_000 },
    DimensionRange { dimension: Dimension::Size, least: 1, most: 1 << 40 },
];

fn ns(text: &str) -> Option<u64> {
    parse(text, DURATION).ok().map(|amount| amount.count)
}

#[test]
fn decimals_are_exact_down_to_the_base_unit() {
    assert_eq!(ns("0.1 s"), Some(100_000_000));
    assert_eq!(ns("20ms"), Some(20_000_000));
    assert_eq!(ns("  1.000000001 s"), Some(1_000_000_001));
    assert_eq!(ns("1.5000000000000000000000000 min"), Some(90_000_000_000));
    assert_eq!(ns(".5 us"), Some(500));
    assert_eq!(ns("5. us"), Some(5_000));
    assert_eq!(ns("0.0000000001 s"), None, "finer than a nanosecond");
    assert_eq!(parse("0.125 KiB", BUFFER_SIZE).unwrap().count, 128);
    assert_eq!(parse("0.0009765625 KiB", BUFFER_SIZE).unwrap().count, 1);
    assert_eq!(parse("0.000000000931322574615478515625 GiB", BUFFER_SIZE).unwrap().count, 1);
    assert!(parse("0.00048828125 KiB", BUFFER_SIZE).unwrap_err().message.contains("finer than 1 B"));
}

#[test]
fn bounds_hold_and_name_themselves() {
    assert_eq!(ns("1000000 s"), Some(1_000_000_000_000_000));
    for text in ["1000000.000000001 s", "99999999999999999999999999999999 h", "18446744073709551616 ns"] {
        assert!(parse(text, DURATION).unwrap_err().message.ends_with("expected at most 1000000 s"), "{text}");
    }
    for text in ["0 s", "-0 s", "-5 ms", "-99999999999999999999999 s"] {
        assert!(parse(text, DURATION).unwrap_err().message.ends_with("expected at least 1 ns"), "{text}");
    }
}

#[test]
fn what_is_no_quantity_shows_the_form() {
    for text in ["", "s", "nan s", "inf s", ".", "1.2.3 s", "five s"] {
        let problem = parse(text, DURATION).unwrap_err();
        assert!(problem.message.contains("a duration such as \"20 ms\""), "{text}: {problem:?}");
    }
    let problem = parse("16", BUFFER_SIZE).unwrap_err();
    assert!(problem.message.contains("without a unit"), "{problem:?}");
    assert_eq!(problem.help.as_deref(), Some("units: packets, B, kB, MB, GB, KiB, MiB, GiB"));
}

#[test]
fn other_spellings_of_a_unit_lead_to_ours() {
    for (spelling, unit) in unit_help::OTHER_SPELLINGS {
        let all = Dimension::ALL;
        let dimension = all.into_iter().find(|d| d.units().iter().any(|(name, _)| name == unit)).unwrap();
        let range = [DimensionRange { dimension, least: 0, most: u64::MAX }];
        let problem = parse(&format!("2 {spelling}"), &range).unwrap_err();
        assert_eq!(problem.help.unwrap(), format!("did you mean \"2 {unit}\"?"), "{spelling}");
    }
    assert_eq!(parse("20 m", DURATION).unwrap_err().help.unwrap(), "did you mean \"20 ms\" or \"20 min\"?");
    assert_eq!(parse("2 MS", DURATION).unwrap_err().help.unwrap(), "did you mean \"2 ms\"?");
    assert!(parse("2 Mbps", DURATION).unwrap_err().message.contains("a rate; expected a duration"));
    let rate = [DimensionRange { dimension: Dimension::Rate, least: 1, most: u64::MAX }];
    assert_eq!(parse("2M", &rate).unwrap_err().help.unwrap(), "did you mean \"2 Mbps\"?");
    assert_eq!(parse("2M", BUFFER_SIZE).unwrap_err().help.unwrap(), "did you mean \"2 MB\"?");
    for (text, meant) in [
        ("1 MB/s", "8 Mbps"),
        ("1 MBps", "8 Mbps"),
        ("0.5 KB/s", "4 kbps"),
        ("3 B/s", "24 bps"),
        ("1 KiB/s", "8192 bps"),
    ] {
        let help = format!("a rate counts bits: did you mean \"{meant}\"?");
        assert_eq!(parse(text, &rate).unwrap_err().help.unwrap(), help, "{text}");
    }
    assert_eq!(parse("1 Mb/s", &rate).unwrap_err().help.unwrap(), "did you mean \"1 Mbps\"?");
    assert!(parse("1e3 s", DURATION).unwrap_err().help.unwrap().contains("exponent"));
}

#[test]
fn a_quantity_is_converted_to_the_unit_of_tables() {
    let si = |text: &str| si_amount(text).map(|amount| (amount.unit, amount.value));
    assert_eq!(si("1.5 Mbps"), Some(("bps", 1_500_000.0)));
    assert_eq!(si("20 ms"), Some(("s", 0.02)));
    assert_eq!(si("64 KiB"), Some(("bytes", 65_536.0)));
    assert_eq!(si("16 packets"), Some(("packets", 16.0)));
    assert_eq!(si("60 Hz"), Some(("hz", 60.0)));
    assert_eq!((si("tcp"), si("never"), si("16")), (None, None, None));
}

#[test]
fn a_printed_amount_reads_back() {
    for (text, ranges) in [("1500 us", DURATION), ("7 packets", BUFFER_SIZE), ("65536 B", BUFFER_SIZE)] {
        let amount = parse(text, ranges).unwrap();
        assert_eq!(parse(&amount.to_string(), ranges), Ok(amount));
    }
}

#[test]
fn an_exponent_or_a_sign_in_a_bare_number_proposes_nothing() {
    for number in ["1.5e-3", "1e3", "-5", "1_000", "nan", "inf", ""] {
        assert_eq!(proposal(number, DURATION, |_| Some((1, 1_000_000_000))), None, "{number}");
    }
}
