use talkpath_measure::{Fate, MessageRecord};
use talkpath_model::WorkloadConfig;
use talkpath_units::Duration;

use std::os::fd::AsFd as _;

use super::pair::datagram;
use super::*;
use crate::spec::TransportSpec;

/// One end of a call over `transport`, and its clock, which began 300 ms ago.
fn end_of_a_call(
    transport: TransportSpec,
    (start_ns, duration_ns): (u64, u64),
    is_sender: bool,
) -> (SharedEnd, RunClock) {
    let flow = if is_sender {
        fixtures::flow(transport, WorkloadConfig::G711)
    } else {
        fixtures::echoing(transport, WorkloadConfig::G711)
    };
    let flow = FlowSpec { start_ns, ..flow };
    let session = fixtures::session(&flow, duration_ns);
    let common = fixtures::context(-300_000_000, 100);
    let end = SharedEnd::new(&session, &flow, &fixtures::place(is_sender), Receiver::default(), &common);
    (end, common.clock)
}

/// The sending end of a call that stops at 100 ms, handled when 300 ms have passed.
fn late_end(start_ns: u64) -> SharedEnd {
    let udp = fixtures::UDP;
    end_of_a_call(udp, (start_ns, 100_000_000), true).0
}

#[test]
fn a_late_pacer_is_not_done_before_it_has_handed_over_what_was_due() {
    let end = late_end(0);
    let mut end = end.lock();
    assert!(!end.progress().is_done, "five messages are due, none was offered");
    // Opened in time, and run again when all is due.
    end.handle_timeout(Instant::ZERO);
    assert!(end.progress().is_done);
    assert_eq!(end.log.taps.forward.rows().count(), 5);
}

#[test]
fn a_first_message_is_due_at_the_flows_start_however_late_its_host_wakes_up() {
    let end = late_end(30_000_000);
    let mut end = end.lock();
    // The clock says 300 ms by now, and the stop was at 100.
    end.handle_timeout(Instant::from_millis(75));
    let dues: Vec<_> = end.log.taps.forward.rows().map(|row| row.due).collect();
    assert_eq!(dues, [30, 50, 70, 90].map(Instant::from_millis));
}

#[test]
fn a_flow_that_starts_after_the_stop_is_done() {
    let end = late_end(100_000_000);
    assert!(end.lock().progress().is_done);
}

/// The echoing end of a call of 10 s over `transport`, and its clock, which began 300 ms ago.
fn echoing_end(transport: TransportSpec) -> (SharedEnd, RunClock) {
    end_of_a_call(transport, (0, 10_000_000_000), false)
}

/// The longest that `end` held a message.
fn longest_turn(end: &SharedEnd) -> Duration {
    let mut end = end.lock();
    end.finish();
    Duration::from_nanos(end.log.totals.turn_round.unwrap().max_ns)
}

#[test]
fn a_datagram_that_waited_in_the_socket_was_held_by_this_host() {
    let (end, _) = echoing_end(fixtures::UDP);
    let sockets = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets[0].connect(sockets[1].local_addr().unwrap()).unwrap();
    let [socket, peer] = sockets.map(Arc::new);
    end.lock().set_route(UdpRoute { socket, unconnected: None });
    let mut message = vec![0; 160];
    crate::wire::write_header(&mut message, 7, 0);
    let stamp = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let stamp_ns = stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec;
    std::thread::sleep(std::time::Duration::from_millis(30));
    end.handle_datagram(&Received { stamp_ns: Some(stamp_ns), ..datagram(&message) });
    assert_eq!(peer.recv(&mut [0; 200]).unwrap(), 160, "it is echoed");
    let held = longest_turn(&end);
    assert!(held >= Duration::from_millis(29), "{held}");
}

/// A socket that has receive stamps on. The kernel begins to stamp a while after the first socket of all
/// wants stamps (net_enable_timestamp leaves it to a worker); a segment before that has the time of its
/// read.
fn once_the_kernel_stamps() -> [TcpStream; 2] {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = listener.accept().unwrap().0;
    crate::sys::switch_on(socket.as_fd(), crate::sys::SocketSwitch::KernelStamps).unwrap();
    loop {
        std::io::Write::write_all(&mut peer, &[0]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let stamp_ns = crate::sys::receive_one(socket.as_fd(), &mut [0; 8]).unwrap().stamp_ns;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let now_ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        if stamp_ns.is_some_and(|stamp_ns| now_ns - stamp_ns >= 4_000_000) {
            return [socket, peer];
        }
    }
}

#[test]
fn bytes_that_waited_in_a_streams_socket_were_held_by_this_host() {
    let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
    let _stamped = once_the_kernel_stamps();
    let held = |wait_ms: u64, late_ms: u64| {
        let (end, clock) = echoing_end(fixtures::tcp("reno"));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        socket.set_nonblocking(true).unwrap();
        end.work(|end| end.adopt(socket, &[], &epoll, 0)).unwrap();
        std::io::Write::write_all(&mut peer, &[0; 160]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        end.handle_ready(clock.now().saturating_sub(Duration::from_millis(late_ms)));
        std::io::Read::read_exact(&mut peer, &mut [0; 160]).unwrap();
        longest_turn(&end)
    };
    // The kernel's stamp says so ...
    let waited = held(30, 0);
    assert!(waited >= Duration::from_millis(29), "{waited}");
    // ... and the lateness of the thread, which counts if waiting segments were merged.
    let late = held(1, 500);
    assert!(late >= Duration::from_millis(300), "since the run began: {late}");
}

#[test]
fn an_end_whose_rows_are_spent_takes_nothing_in() {
    let (end, _) = echoing_end(TransportSpec::Udp { receive_buffer: None, ecn: true });
    let come = |seq: u64| {
        let mut message = vec![0; 160];
        crate::wire::write_header(&mut message, 7, seq);
        end.handle_datagram(&Received { tos: Some(0b11), ..datagram(&message) });
        let mut end = end.lock();
        end.finish();
        end.log.totals.marked
    };
    assert_eq!(come(0), Some(1));
    end.lock().budget.take(u64::MAX);
    assert_eq!(come(1), Some(1), "it is not even counted");
}

#[test]
fn a_datagram_makes_no_row_before_the_budget_has_paid_for_it() {
    // A message every 20 ms: after 0.3 s, and 5 s for the far clock, no number is above 265.
    for (seq, rows, is_spent) in
        [(501, 0, false), (400, 0, false), (266, 0, false), (265, 0, true), (98, 100, true)]
    {
        let (end, _) = echoing_end(fixtures::UDP);
        let mut message = vec![0; 160];
        crate::wire::write_header(&mut message, 7, seq);
        end.handle_datagram(&datagram(&message));
        let end = end.lock();
        // The budget has 100 rows. Message 98 takes 99 for the echoes up to its own, and one to arrive.
        assert_eq!(end.log.held(), rows, "{seq}");
        assert_eq!(end.budget.is_spent(), is_spent, "{seq}");
    }
}

#[test]
fn a_message_without_a_way_is_never_sent_and_the_flow_has_not_opened() {
    let end = late_end(0);
    let mut end = end.lock();
    // Opened in time, and handled when all is due.
    end.handle_timeout(Instant::ZERO);
    let is_unsent = |row: &MessageRecord| row.fate == Fate::NotOpen && row.sent.is_none();
    assert!(end.log.taps.forward.rows().all(is_unsent));
    end.finish();
    assert_eq!((end.log.totals.opening_ns, end.log.taps.forward.rows().count()), (None, 5));
}
