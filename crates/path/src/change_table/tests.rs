use super::*;

fn mistake(text: &str) -> String {
    text.parse::<ChangeTable>().unwrap_err().to_string()
}

#[test]
fn columns_have_the_units_that_the_header_names_in_any_order() {
    let text = "rate_mbps, time_s, delay_ms, loss_percent\n48.2 0 25 0 # fine\n\n0\t1.5\t38.5\t2\n";
    let table: ChangeTable = text.parse().unwrap();
    let rate = |bps| Some(RateModel::Fixed(Rate::from_bps(bps)));
    let (up, None) = table.directions() else { panic!("{table:?}") };
    let [(first, calm), (second, busy)] = up else { panic!("{table:?}") };
    assert_eq!((*first, *second), (Duration::ZERO, Duration::from_millis(1500)));
    assert_eq!((&calm.rate, calm.delay), (&rate(48_200_000), Some(Duration::from_millis(25))));
    assert_eq!(calm.loss, Some(LossModel::None));
    assert_eq!((&busy.rate, busy.delay), (&rate(0), Some(Duration::from_micros(38_500))));
    assert_eq!(busy.loss, Some(LossModel::Bernoulli { rate: 0.02 }));
}

#[test]
fn a_column_of_one_direction_is_about_that_link_alone_and_others_about_both() {
    let table: ChangeTable =
        "time_s,up_mbps,down_rate_kbps,delay_ms\n0,2,50,20\n1,0,40,30\n".parse().unwrap();
    let rate = |link: &str, row: usize| table.rows_of(link).unwrap()[row].1.rate.clone();
    let bps = |bps| Some(RateModel::Fixed(Rate::from_bps(bps)));
    assert_eq!((rate("up", 0), rate("up", 1)), (bps(2_000_000), bps(0)));
    assert_eq!((rate("down", 0), rate("down", 1)), (bps(50_000), bps(40_000)));
    assert_eq!(table.rows_of("down").unwrap()[1].1.delay, Some(Duration::from_millis(30)));
    assert_eq!(table.rows_of("bottleneck"), None);
    let both: ChangeTable = "time_s rate_mbps\n0 1\n".parse().unwrap();
    assert_eq!(both.rows_of("bottleneck"), both.rows_of("up"));
    for twice in ["time_s up_mbps rate_kbps", "time_s down_loss loss_percent", "time_s up_mbps up_rate_bps"] {
        assert!(mistake(twice).contains("beside a column of the same kind"), "{twice}");
    }
    assert!(mistake("time_s up_time_s").contains("expected a header"));
}

#[test]
fn times_since_1970_count_from_the_first_row() {
    let text = "time_us rate_mbps\n1700000000123456 5\n1700000000223456 6\n1700000001123457 7\n";
    let table: ChangeTable = text.parse().unwrap();
    let at: Vec<u64> = table.directions().0.iter().map(|(at, _)| at.as_nanos()).collect();
    assert_eq!(at, [0, 100_000_000, 1_000_001_000]);
    assert_eq!(table.origin(), Some("1700000000.123456 s, 2023-11-14T22:13:20Z"));
    let seconds: ChangeTable = "time_s loss\n1700000000.5 0\n1700000000.75 1\n".parse().unwrap();
    assert_eq!(seconds.directions().0[1].0, Duration::from_millis(250));
    let from_five: ChangeTable = "time_s loss\n5 0\n".parse().unwrap();
    assert_eq!((from_five.directions().0[0].0, from_five.origin()), (Duration::from_secs(5), None));
    let back = mistake("time_s loss\n1700000000 0\n1600000000 0\n");
    assert!(back.starts_with("line 3: the time 1600000000 s comes after 1700000000 s"), "{back}");
    let years = mistake("time_s loss\n1700000000 0\n1800000000 0\n");
    assert!(years.starts_with("line 3: found \"1800000000\""), "{years}");
}

#[test]
fn a_table_without_a_header_is_refused_with_the_line_to_add() {
    // Megabytes a second are no megabits.
    assert!(mistake("time_s rate_MBps\n0 1\n").contains("multiply by 8, and call the column rate_mbps"));
    let found = mistake("0 48.2\n1 51.9\n");
    assert!(found.starts_with("line 1:") && found.contains("time_s rate_mbps"), "{found}");
}

#[test]
fn a_wrong_row_is_named() {
    for (text, expected) in [
        ("time_s rate_mbps\n0 x\n", "line 2: found \"x\", expected a number from 0 to 100000000"),
        ("time_s rate_mbps\n0 -1\n", "line 2: found \"-1\""),
        ("time_s loss\n0 1.5\n", "line 2: found \"1.5\" under `loss`, which has shares from 0 to 1"),
        ("time_s rate_mbps\n0 NaN\n", "line 2: found \"NaN\""),
        ("time_s rate_mbps\n0 1 2\n", "line 2: found 3 columns, expected 2"),
        ("time_s,rate_mbps\n0,1,2\n", "line 2: found 3 columns, expected 2 as in the header; a comma"),
        ("time_s rate_mbps\n1 1\n0 1\n", "line 3: the time 0 s comes after 1 s"),
        ("time_s rate_mbps\n", "line 1: no row follows the header"),
        ("time_s time_ms\n", "line 1: the header names \"time_ms\" beside a column of the same kind"),
        ("time_s\n0\n", "line 1: found \"time_s\" alone"),
        ("", "line 1: the trace is empty"),
    ] {
        assert!(mistake(text).starts_with(expected), "{text:?}: {}", mistake(text));
    }
}

/// The doubts and notes of a table.
fn remarks(text: &str) -> (Vec<String>, Vec<String>) {
    let table: ChangeTable = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
    (table.doubts().to_vec(), table.notes().to_vec())
}

#[test]
fn dates_are_times_and_a_date_without_a_zone_is_utc() {
    let text = "time;rate_mbps\n2026-11-29 14:00:00;5\n2026-11-29 14:00:01,5;6\n";
    for text in [text.to_owned(), text.replace(';', " "), text.replace(" 14", "T14").replace(",5", ".5")] {
        let table: ChangeTable = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(table.directions().0[1].0, Duration::from_millis(1500), "{text}");
        let origin = table.origin().unwrap();
        assert_eq!(origin, "2026-11-29T14:00:00Z (no zone is stated: taken as UTC)");
    }
    let zones = "time,rate_mbps\n2026-10-25T02:59:59+02:00,5\n2026-10-25T02:00:01+01:00,6\n";
    let table: ChangeTable = zones.parse().unwrap();
    assert_eq!(table.directions().0[1].0, Duration::from_secs(2));
    let twice = mistake("time,rate_mbps\n2026-10-25 02:59:59,5\n2026-10-25 02:00:01,6\n");
    assert!(twice.contains("when summer time ends"), "{twice}");
    assert!(mistake("time,rate_mbps\n0,5\n").contains("expected a date such as"));
    assert!(mistake("time_s,rate_mbps\n2026-10-25,5\n").contains("a column of dates is called `time`"));
}

#[test]
fn half_of_a_round_trip_is_the_delay_of_each_direction() {
    let text = "time_s;up_kbps;down_kbps;rtt_ms\n0;500;5000;40,5\n1;600;6000;\n2;600;6000;80\n";
    let table: ChangeTable = text.parse().unwrap();
    for link in ["up", "down"] {
        let delays: Vec<u64> =
            table.rows_of(link).unwrap().iter().map(|(_, to)| to.delay.unwrap().as_micros()).collect();
        assert_eq!(delays, [20_250, 20_250, 40_000], "{link}");
    }
    let notes = remarks(text).1;
    assert_eq!(
        notes,
        [
            "half of rtt_ms is the delay of each direction",
            "rtt_ms is empty in 1 row, where the value before holds"
        ]
    );
    assert!(mistake("time_s rtt_ms delay_ms").contains("beside a column of the same kind"));
    assert!(mistake("time_s up_rtt_ms").contains("expected a header"));
    assert!(mistake("time_s,rate_mbps\n0,1\n1,\n").starts_with("line 3: rate_mbps is empty"));
}

#[test]
fn a_comma_that_does_not_separate_is_a_decimal_comma() {
    let rate = |text: &str| {
        let table: ChangeTable = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
        table.directions().0[0].1.rate.clone()
    };
    let expected = Some(RateModel::Fixed(Rate::from_bps(48_200_000)));
    for text in ["time_s;rate_mbps\n0,5;48,2\n", "time_s\trate_mbps\n0\t48,2\n", "time_s rate_mbps\n0 48,2\n"]
    {
        assert_eq!(rate(text), expected, "{text}");
    }
    assert_eq!(rate("time_s;rate_mbps;\n0;48.2;\n"), expected, "a line may end with a separator");
}

#[test]
fn rows_that_are_missing_are_counted_and_the_longest_gap_is_named() {
    let second = |at: &u64| ![20, 21, 22, 40].contains(at);
    let rows: String = (0..60).filter(second).map(|at| format!("{at} 5\n")).collect();
    let doubts = remarks(&format!("time_s rate_mbps\n{rows}")).0;
    assert!(doubts[0].starts_with(
        "4 rows are missing in 2 gaps (a row comes every 1 s); the longest is 4 s from 19 s on"
    ));
    // A table of changes has rows where something changes.
    assert!(remarks("time_s rate_mbps\n0 1\n1 2\n30 3\n31 3\n70 1\n80 2\n81 3\n99 1\n").0.is_empty());
}

#[test]
fn times_and_rates_in_another_unit_than_their_column_are_doubted_or_refused() {
    let years = mistake("time_ms rate_mbps\n1700000000000000 5\n");
    assert!(years.contains("in the year 55839; in time_us it is 2023-11-14T22:13:20Z"), "{years}");
    let never = mistake(&format!("time_s rate_mbps\n1{} 5\n", "0".repeat(300)));
    assert!(never.starts_with("line 2: found 1000") && never.len() < 200, "{never}");
    let early = mistake("time_ns rate_mbps\n1700000000000000 5\n");
    assert!(early.contains("in the year 1970; in time_us"), "{early}");
    assert!(remarks("time_us rate_mbps\n1700000000 5\n").0[0].contains("in time_s is a time since 1970"));
    let fast = remarks("time_s rate_mbps\n0 59900\n").0;
    assert!(
        fast[0].contains("59.9 Gb/s, above") && fast[0].ends_with("In that of rate_kbps it is 59.9 Mb/s"),
        "{fast:?}"
    );
    let slow = remarks("time_s up_bps down_bps\n0 48 9000\n").0;
    assert_eq!(slow.len(), 1, "{slow:?}");
    assert!(slow[0].ends_with("In that of rate_mbps it is 48 Mb/s"), "{slow:?}");
    assert!(mistake("time_s rate_mbps\n0 1\n1000001 1\n").contains("finer unit"));
}

#[test]
fn values_that_only_another_unit_explains_are_doubted() {
    let table = |header: &str, row: &dyn Fn(u64) -> String| -> Vec<String> {
        let rows: String = (0..60).map(|at| row(at) + "\n").collect();
        remarks(&format!("{header}\n{rows}")).0
    };
    let only = |doubts: Vec<String>| -> String {
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        doubts[0].clone()
    };
    let slow = only(table("time_s rate_kbps", &|at| format!("{at} {}", 40 + at % 20)));
    assert!(slow.contains("49.5 kb/s") && slow.ends_with("In that of rate_mbps it is 49.5 Mb/s"), "{slow}");
    assert!(table("time_s rate_kbps", &|at| format!("{at} 2000")).is_empty());
    let mixed = only(table("time_s up_kbps down_mbps", &|at| format!("{at} 10 75")));
    assert!(mixed.starts_with("the mean rate is 10 kb/s up and 75 Mb/s down"), "{mixed}");
    assert!(table("time_s up_mbps down_mbps", &|at| format!("{at} 20 1000")).is_empty());
    let seconds = only(table("time_s delay_ms", &|at| format!("{at} 0.047")));
    assert!(seconds.contains("47 us") && seconds.ends_with("In that of delay_s it is 47 ms"), "{seconds}");
    let short = only(table("time_ms rate_mbps", &|at| format!("{at} 5")));
    assert!(short.ends_with("In time_s that is 1 s and 59 s"), "{short}");
    assert!(table("time_ms rate_mbps", &|at| format!("{} 5", 100 * at)).is_empty());
    let loss = only(table("time_s loss", &|at| format!("{at} {}", if at % 9 == 0 { "0.5" } else { "0" })));
    assert!(loss.ends_with("`loss_percent` per cent"), "{loss}");
    assert!(table("time_s loss", &|at| format!("{at} {}", if at % 9 == 0 { "0.1" } else { "0" })).is_empty());
    assert!(mistake("time_s loss\n0 2\n").contains("a column of per cent is called `loss_percent`"));
    assert_eq!(
        remarks("time_s rate_mbps\n0 5\n1 6\n1 7\n2 5\n").0,
        ["1 row has the time of the row before, first at 1 s: of two rows the later one holds"]
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_header() {
    let (with, without) = ("\u{feff}time_s,rate_mbps\n0,5\n", "time_s,rate_mbps\n0,5\n");
    assert_eq!(with.parse::<ChangeTable>(), without.parse());
}

#[test]
fn a_table_from_zero_has_the_same_values() {
    for text in [
        "time_s rate_mbps delay_ms\n30 5 20\n31 0 20.5\n",
        "time_s;up_mbps;down_mbps;up_delay_ms;loss\n30;5;50;;0.25\n31;0;60;20.123456;0\n",
    ] {
        let (table, written): (ChangeTable, ChangeTable) = (text.parse().unwrap(), {
            let table: ChangeTable = text.parse().unwrap();
            table.written_from_zero().parse().unwrap()
        });
        for link in ["up", "down"] {
            let (rows, from_zero) = (table.rows_of(link).unwrap(), written.rows_of(link).unwrap());
            let values =
                |rows: &ChangeRows| rows.iter().map(|(_, values)| values.clone()).collect::<Vec<_>>();
            assert_eq!(values(rows), values(from_zero), "{text}");
            let times: Vec<u64> = from_zero.iter().map(|(at, _)| at.as_millis()).collect();
            assert_eq!(times, [0, 1000]);
        }
        assert_eq!(written.period(), Duration::from_secs(2));
    }
}
