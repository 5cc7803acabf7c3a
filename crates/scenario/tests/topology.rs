//! Where the nodes between a scenario's links are drawn.

use talkpath_model::{LinkNodes, Scenario, Topology};
use talkpath_scenario::{Options, Source, load};

fn topology(text: &str) -> (Scenario, Topology) {
    let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap_or_else(|it| panic!("{it}"));
    let scenario = plan.cells[0].scenario.clone();
    let topology = Topology::new(&scenario);
    (scenario, topology)
}

#[test]
fn two_hosts_on_a_path_are_two_nodes_with_a_link_each_way() {
    let (scenario, topology) = topology(
        "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\ndirection = \"both\"\n",
    );
    assert_eq!(scenario.flows.len(), 2);
    let [near, far] = topology.nodes.as_slice() else { panic!("{topology:?}") };
    assert_eq!((near.x, near.y, far.x), (0.0, 0.5, 1.0));
    assert_eq!((&near.senders, &near.receivers), (&vec![0], &vec![1]));
    assert_eq!(topology.links, [Some(LinkNodes { from: 0, to: 1 }), Some(LinkNodes { from: 1, to: 0 })]);
}

fn dumbbell(back: &str) -> (Scenario, Topology) {
    topology(&format!(
        r#"duration = "1 s"
[link."tx{{n}}"]
[link.wan]
rate = "1 Mbps"
[link."rx{{n}}"]
[link.naw]
[link."back-tx{{n}}"]
[flow.ftp]
count = 3
transport = "tcp"
workload = "bulk"
route = ["tx{{n}}", "wan", "rx{{n}}"]
{back}
"#
    ))
}

#[test]
fn a_dumbbell_has_two_routers_and_a_host_at_each_end_of_each_flow() {
    let (scenario, topology) =
        dumbbell("return_route = [\"back-rx{n}\", \"naw\", \"back-tx{n}\"]\n[link.\"back-rx{n}\"]");
    assert_eq!(topology.nodes.len(), 3 + 1 + 1 + 3);
    let xs: Vec<_> = topology.nodes.iter().map(|node| (3.0 * node.x).round()).collect();
    assert_eq!(xs, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 3.0]);
    let link = |name: &str| {
        let index = scenario.links.iter().position(|link| link.name == name).unwrap();
        topology.links[index].unwrap()
    };
    assert_eq!((link("wan"), link("naw")), (LinkNodes { from: 3, to: 4 }, LinkNodes { from: 4, to: 3 }));
    assert_eq!(link("tx2").from, link("back-tx2").to);
    // The same with one link back for all from the receivers' router, and one for each to its sender.
    let (_, shared) = dumbbell("return_route = [\"naw\", \"back-tx{n}\"]");
    assert_eq!(shared.nodes.len(), 8);
    let ys: Vec<_> = topology.nodes[..3].iter().map(|node| node.y).collect();
    assert_eq!(ys, [0.0, 0.5, 1.0]);
}

#[test]
fn the_hosts_of_thousands_of_flows_stand_in_two_columns_from_top_to_bottom() {
    let (scenario, topology) = topology(
        "duration = \"1 s\"\n[link.\"tx{n}\"]\n[link.wan]\nrate = \"1 Mbps\"\n[link.\"back{n}\"]\n\
         [flow.call]\ncount = 5000\ntransport = \"udp\"\nworkload = \"voice\"\n\
         route = [\"tx{n}\", \"wan\"]\nreturn_route = [\"back{n}\"]\n",
    );
    assert_eq!((scenario.flows.len(), topology.nodes.len()), (5000, 5002));
    let (hosts, rest) = topology.nodes.split_at(5000);
    assert!(hosts.iter().enumerate().all(|(at, node)| node.senders == [at] && node.x == 0.0));
    assert!(hosts.is_sorted_by(|a, b| a.y < b.y));
    assert_eq!((hosts[0].y, hosts[4999].y, rest[0].x, rest[1].x), (0.0, 1.0, 0.5, 1.0));
    assert_eq!(rest[1].receivers.len(), 5000);
}
