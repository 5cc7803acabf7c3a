//! What changes from copy to copy, `{ from, step }`, and is wrong.

use crate::mistakes::check;

#[test]
fn a_step_needs_copies_to_step_over() {
    let text = r#"duration = "1 s"
[link.wan]
delay = { from = "1 ms", step = "2 ms" }
[flow.a]
transport = "tcp"
workload = "bulk"
route = ["wan"]
return_route = ["wan"]
send_jitter = { from = "1 ms", step = "2 kB" }
start = { from = "1 s", step = "x" }
"#;
    check(
        text,
        &[
            "3:9: link.wan: found a step | [link.\"wan{n}\"]",
            "9:39: flow.a.send_jitter.step: found \"2 kB\", a size; expected a duration",
            "10:32: flow.a.start.step: found \"x\", expected a duration",
        ],
    );
}

#[test]
fn a_step_past_the_bound_is_told() {
    let text = r#"duration = "1 s"
[link."l{n}"]
mtu = { from = "1500 B", step = "64100 B" }
[flow.a]
count = 2
transport = "udp"
workload = "voice"
route = ["l{n}"]
return_route = ["l{n}"]
"#;
    check(text, &["3:7: link.l{n}.mtu: found \"65600 B\", expected at most 65535 B"]);
}

#[test]
fn a_wrong_step_is_told_once_and_not_again_for_each_copy() {
    let text = r#"duration = "1 s"
[link."l{n}"]
mtu = { from = "1 ms", step = "2 ms" }
[flow.a]
count = 3
transport = "udp"
workload = "voice"
route = ["l{n}"]
return_route = ["l{n}"]
"#;
    check(
        text,
        &[
            "3:16: link.l{n}.mtu.from: found \"1 ms\", a duration; expected a size",
            "3:31: link.l{n}.mtu.step: found \"2 ms\", a duration; expected a size",
        ],
    );
}
