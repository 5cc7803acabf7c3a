//! Negotiations between two ends, after RFC 4340 §6.

use super::*;

const RTT: Duration = Duration::from_millis(200);

fn pair() -> (Features, Features) {
    (Features::new(false, Seq::new(0)), Features::new(true, Seq::new(0)))
}

/// A packet after the handshake.
fn carrier(seq: u64, has_ack: bool) -> Carrier {
    Carrier { seq: Seq::new(seq), has_ack, repeats_all: false }
}

/// The next packet of `from`, numbered `seq`, as bytes; `to` takes it in.
fn pass(from: &mut Features, to: &mut Features, seq: u64, ack: Option<u64>) -> Result<Vec<u8>, Reset> {
    let mut options = Options::EMPTY;
    from.put(&mut options, carrier(seq, ack.is_some()), RTT, Instant::ZERO);
    receive(to, &options, seq, ack).map(|()| options.as_bytes().to_vec())
}

fn receive(to: &mut Features, options: &Options, seq: u64, ack: Option<u64>) -> Result<(), Reset> {
    let mut mandatory = false;
    for option in options {
        if let DccpOption::Feature(feature) = option {
            to.on_option(feature, mandatory, Seq::new(seq), ack.map(Seq::new))?;
        }
        mandatory = option == DccpOption::Mandatory;
    }
    to.on_packet_end(Seq::new(seq));
    Ok(())
}

fn told(kind: FeatureKind, number: u8, values: &[u8]) -> Options {
    let mut options = Options::EMPTY;
    assert!(options.push(DccpOption::Feature(FeatureOption { kind, number, values })));
    options
}

/// RFC 4340 §6.5, first example with the lists that we can hold: the server's preference wins.
#[test]
fn the_servers_first_shared_value_is_agreed() {
    let (mut client, mut server) = pair();
    server.prefer(Feature::Ccid, Location::Local, Preference::rather(3, 2));
    client.want(Feature::Ccid, Location::Remote, Preference::rather(3, 2));
    client.entry_mut(Feature::Ccid, Location::Remote).state =
        State::ToBeChanged(Change { wanted: Preference::rather(2, 3), is_mandatory: false });
    assert_eq!(pass(&mut client, &mut server, 1, None), Ok(vec![34, 5, 1, 2, 3]));
    assert_eq!(server.value(Feature::Ccid, Location::Local), 3);
    assert_eq!(client.value(Feature::Ccid, Location::Remote), 2);
    assert_eq!(pass(&mut server, &mut client, 1, Some(1)), Ok(vec![33, 6, 1, 3, 3, 2]));
    assert_eq!(client.value(Feature::Ccid, Location::Remote), 3);
    assert_eq!(client.poll_changed(), Some((Feature::Ccid, Location::Remote, 3)));
    assert_eq!(client.poll_changed(), None);
}

/// RFC 4340 §6.5, third example and the encodings below it: a non-negotiable feature.
#[test]
fn a_number_is_told_and_confirmed() {
    let (mut client, mut server) = pair();
    server.want(Feature::AckRatio, Location::Local, Preference::only(3));
    server.want(Feature::SequenceWindow, Location::Local, Preference::only(1024));
    assert_eq!(
        pass(&mut server, &mut client, 1, Some(1)),
        Ok(vec![32, 9, 3, 0, 0, 0, 0, 4, 0, 32, 5, 5, 0, 3])
    );
    assert_eq!(client.value(Feature::AckRatio, Location::Remote), 3);
    assert_eq!(
        pass(&mut client, &mut server, 2, Some(1)),
        Ok(vec![35, 9, 3, 0, 0, 0, 0, 4, 0, 35, 5, 5, 0, 3])
    );
    assert_eq!(server.value(Feature::SequenceWindow, Location::Local), 1024);
    assert!(server.is_stable(Feature::SequenceWindow, Location::Local));
}

/// RFC 4340 §6.5, the simultaneous example; §6.6.6.
#[test]
fn two_changes_that_cross_agree() {
    let (mut client, mut server) = pair();
    for (end, location) in [(&mut client, Location::Remote), (&mut server, Location::Local)] {
        end.prefer(Feature::Ccid, location, Preference::rather(3, 2));
        end.want(Feature::Ccid, location, Preference::rather(3, 2));
    }
    let mut crossing = Options::EMPTY;
    client.put(&mut crossing, carrier(5, true), RTT, Instant::ZERO);
    assert!(pass(&mut server, &mut client, 7, Some(4)).is_ok());
    receive(&mut server, &crossing, 5, Some(6)).unwrap();
    for (end, location) in [(&client, Location::Remote), (&server, Location::Local)] {
        assert_eq!(end.value(Feature::Ccid, location), 3);
        assert!(end.is_stable(Feature::Ccid, location));
    }
}

/// RFC 4340 §6.6.3 and §6.6.4: a Change is repeated until the latest is confirmed; what comes out of order is
/// ignored.
#[test]
fn a_change_is_repeated_until_its_confirm_and_old_options_are_ignored() {
    let (mut client, mut server) = pair();
    client.want(Feature::SendAckVector, Location::Remote, Preference::only(1));
    let mut lost = Options::EMPTY;
    client.put(&mut lost, carrier(1, true), RTT, Instant::ZERO);
    assert_eq!(client.deadline(), Some(Instant::ZERO + RTT));
    let mut again = Options::EMPTY;
    client.put(&mut again, carrier(2, true), RTT, Instant::ZERO + RTT);
    assert_eq!(again, lost);
    assert_eq!(client.deadline(), Some(Instant::ZERO + RTT * 3));
    receive(&mut server, &again, 2, Some(1)).unwrap();
    receive(&mut server, &told(FeatureKind::ChangeR, 6, &[0]), 1, Some(1)).unwrap();
    assert_eq!(server.value(Feature::SendAckVector, Location::Local), 1);
    // A Confirm that acknowledges less than the first new Change is not for it.
    receive(&mut client, &told(FeatureKind::ConfirmL, 6, &[1, 1]), 1, Some(0)).unwrap();
    assert_eq!(client.value(Feature::SendAckVector, Location::Remote), 0);
    assert_eq!(pass(&mut server, &mut client, 2, Some(2)), Ok(vec![33, 6, 6, 1, 0, 1]));
    assert_eq!(client.value(Feature::SendAckVector, Location::Remote), 1);
    assert_eq!(client.deadline(), None);
}

/// RFC 4340 §6.6.7 and §6.5: "Empty Confirm L(126) = 33,3,126".
#[test]
fn an_unknown_feature_is_confirmed_empty() {
    let (mut client, mut server) = pair();
    receive(&mut server, &told(FeatureKind::ChangeR, 126, &[1]), 1, None).unwrap();
    receive(&mut server, &told(FeatureKind::ChangeL, 126, &[1]), 2, None).unwrap();
    assert_eq!(pass(&mut server, &mut client, 1, Some(2)), Ok(vec![33, 3, 126, 35, 3, 126]));
}

/// RFC 4340 §6.6.8: lengths, and values of non-negotiable features.
#[test]
fn an_invalid_change_is_confirmed_empty() {
    for (kind, number, values, answer) in [
        (FeatureKind::ChangeL, 3, &[0, 0, 0, 0, 0, 31][..], [35, 3, 3]),
        (FeatureKind::ChangeL, 3, &[1, 0], [35, 3, 3]),
        (FeatureKind::ChangeL, 5, &[0, 0], [35, 3, 5]),
        (FeatureKind::ChangeR, 5, &[0, 4], [33, 3, 5]),
        (FeatureKind::ChangeR, 6, &[], [33, 3, 6]),
    ] {
        let (mut client, mut server) = pair();
        receive(&mut server, &told(kind, number, values), 1, None).unwrap();
        assert_eq!(pass(&mut server, &mut client, 1, Some(1)), Ok(answer.to_vec()));
    }
}

/// RFC 4340 §6.6.9: unknown, invalid, or without a shared value.
#[test]
fn a_mandatory_change_that_fails_resets() {
    for (number, values) in [(126, &[1][..]), (5, &[0, 4]), (1, &[7])] {
        let (_, mut server) = pair();
        let change = FeatureOption { kind: FeatureKind::ChangeR, number, values };
        let reset = server.on_option(change, true, Seq::new(1), None).unwrap_err();
        assert_eq!((reset.code, reset.data[..2].to_vec()), (ResetCode::MANDATORY_ERROR, vec![34, number]));
    }
}

/// RFC 4340 §6.6.8: a Confirm that selects the wrong value; §6.6.7: an empty one for a feature that must be
/// known.
#[test]
fn a_wrong_confirm_resets() {
    for values in [&[3, 2][..], &[]] {
        let (mut client, _) = pair();
        client.want(Feature::Ccid, Location::Remote, Preference::rather(3, 2));
        let mut options = Options::EMPTY;
        client.put(&mut options, carrier(1, false), RTT, Instant::ZERO);
        let reset = receive(&mut client, &told(FeatureKind::ConfirmL, 1, values), 1, Some(1)).unwrap_err();
        assert_eq!(reset.code, ResetCode::OPTION_ERROR);
    }
}
