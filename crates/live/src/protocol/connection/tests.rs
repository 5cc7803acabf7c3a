//! Tests of the control connection over a real TCP connection of this host.

use std::net::TcpListener;

use talkpath_kernel::progress::EndProgress;

use super::*;
use crate::protocol::{ANSWER_LIMIT, Answer, MAX_SHOWN, Request};

#[test]
fn a_line_that_comes_in_two_pieces_is_read_wherever_it_is_cut() {
    let probe = Answer::Probe { number: 7, received_ns: 1, sent_ns: 2 };
    for answer in [Answer::End, probe] {
        let mut line = serde_json::to_vec(&answer).unwrap();
        line.push(b'\n');
        for cut in 1..line.len() {
            let (mut far, mut near) = pair::<Answer>();
            far.write_all(&line[..cut]).unwrap();
            while near.input.bytes().len() < cut {
                assert!(near.receive().unwrap().is_none(), "{cut} bytes are no line");
            }
            far.write_all(&line[cut..]).unwrap();
            let read = near.wait_for_message(SILENCE_S).unwrap();
            assert_eq!(serde_json::to_vec(&read).unwrap(), line[..line.len() - 1]);
        }
    }
}

#[test]
fn who_sends_without_end_holds_no_thread() {
    let (mut far, mut near) = pair::<Request>();
    near.set_line_limit(usize::MAX);
    let sender = std::thread::spawn(move || {
        far.write_all(&vec![b'{'; 8 << 20]).unwrap();
        far
    });
    let mut came = 0;
    while came < 8 << 20 {
        assert!(near.receive().unwrap().is_none());
        let all = near.input.bytes().len();
        assert!(all - came < READ_AT_ONCE + (16 << 10), "{} B at once", all - came);
        came = all;
    }
    drop(sender.join().unwrap());
}

#[test]
fn what_is_shown_of_another_host_moves_no_cursor() {
    assert_eq!(words("a\u{1b}[2J\r\nb\u{9b}c"), r"a\u{1b}[2J\r\nb\u{9b}c");
    assert_eq!(words(&"x".repeat(1000)).len(), MAX_SHOWN);
}

#[test]
fn another_protocol_is_told_by_its_first_byte() {
    let (mut far, mut near) = pair::<Answer>();
    far.write_all(b"SSH-2.0").unwrap();
    let error = near.wait_for_message(SILENCE_S).unwrap_err();
    assert!(matches!(error, ControlError::Garbage(what) if what.starts_with('S')));
}

#[test]
fn who_reads_no_answers_is_read_no_further_and_goes_on_when_it_reads() {
    let (mut far, mut near) = pair::<Request>();
    far.set_nonblocking(true).unwrap();
    for socket in [socket2::SockRef::from(&far), socket2::SockRef::from(near.stream())] {
        socket.set_recv_buffer_size(128 * 1024).unwrap();
        socket.set_send_buffer_size(128 * 1024).unwrap();
    }
    let flows = vec![EndProgress { is_done: false, sent: 1 << 40, received: 1 << 40 }; 64];
    let answer = Answer::Progress { flows, received_ns: i64::MIN, sent_ns: i64::MIN, trouble: None };
    // Blanks, so that the kernel's buffers hold fewer of them.
    let question = format!("\"ask\"{}\n", " ".repeat(94));
    let questions = question.repeat(1000).into_bytes();
    let (mut asked, mut answered, mut max_kept) = (0, 0, 0);
    let mut turn = |far: &mut TcpStream, near: &mut Control<Request>| {
        let asked_before = asked;
        while let Ok(count) = far.write(&questions[asked % questions.len()..]) {
            asked += count;
            if asked - asked_before > 100_000 {
                break;
            }
        }
        let mut is_stuck = asked == asked_before;
        while near.receive().unwrap().is_some() {
            is_stuck = false;
            near.send(&answer).unwrap();
            answered += 1;
            max_kept = max_kept.max(near.unsent_bytes() + near.input.stored());
            assert!(max_kept <= 1 << 20, "{max_kept} B kept after {answered} answers");
        }
        (is_stuck, asked / question.len(), answered)
    };
    while !turn(&mut far, &mut near).0 {}
    assert!(near.is_held_back());
    let (_, asked, answered) = turn(&mut far, &mut near);
    assert!(answered < asked, "{asked} questions wait, {answered} were answered");
    near.last_sign_ns -= 1_000_000_000 * (SILENCE_S as i64 + 1);
    assert!(matches!(near.check_alive(), Err(ControlError::Unread(SILENCE_S))));
    // It reads again: all is answered, and more.
    let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
    while read < asked + 100 {
        while let Ok(count @ 1..) = far.read(&mut buffer) {
            read += buffer[..count].iter().filter(|&&byte| byte == b'\n').count();
        }
        turn(&mut far, &mut near);
    }
    assert!(near.check_alive().is_ok());
}

#[test]
fn lines_are_read_one_by_one_from_what_came_at_once() {
    let (mut far, mut near) = pair::<Request>();
    far.write_all(b"\"ask\"\n{\"probe\":{\"number\":7}}\n\"stop\"\n\"b").unwrap();
    assert!(matches!(near.wait_for_message(SILENCE_S), Ok(Request::Ask)));
    assert!(matches!(near.wait_for_message(SILENCE_S), Ok(Request::Probe { number: 7 })));
    assert!(matches!(near.wait_for_message(SILENCE_S), Ok(Request::Stop)));
    assert!(near.receive().unwrap().is_none());
    assert_eq!(near.input.bytes(), b"\"b");
    far.write_all(b"ye\"\n").unwrap();
    assert!(matches!(near.wait_for_message(SILENCE_S), Ok(Request::Bye)));
}

fn pair<In: DeserializeOwned>() -> (TcpStream, Control<In>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (far, Control::new(listener.accept().unwrap().0, ANSWER_LIMIT).unwrap())
}
