//! The nodes between a scenario's links, and where a drawing puts them.
//!
//! A scenario has links and routes. The end of a link and the beginning of the next one on a route are one
//! node, and so are the far end of a flow's way out and the beginning of its way back. If both ways have as
//! many links they pass the same nodes. A way back that hosts of their own share begins or ends at the router
//! before them. Nodes are placed by how far along the ways they lie: the sender of
//! the first flow on the left.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::{Flow, LinkIndex, Scenario};

/// Nodes, and the links between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes on routes, from left to right and in each column from the top.
    pub nodes: Vec<Node>,
    /// For each link of the scenario the nodes at its beginning and its end; `None` if no flow uses it.
    pub links: Vec<Option<(usize, usize)>>,
}

/// A host or a router.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The flows whose senders it holds, by index; of a router none.
    pub senders: Vec<usize>,
    /// The flows whose receivers it holds.
    pub receivers: Vec<usize>,
    /// From 0, the left edge, to 1, the right one.
    pub x: f64,
    /// From 0, the upper edge, to 1, the lower one; 0.5 if the column has one node.
    pub y: f64,
}

impl Topology {
    /// That of `scenario`. The time for it is linear in the links and routes, but for the sorting of nodes.
    pub fn of(scenario: &Scenario) -> Self {
        let ways = ways(scenario);
        let ends = Ends::joined(scenario.links.len(), &ways);
        let mut topology = Self { nodes: Vec::new(), links: vec![None; scenario.links.len()] };
        // The number of each node, by its root.
        let mut numbers: Vec<Option<usize>> = vec![None; ends.0.len()];
        for (root, x) in places(&ways, &ends) {
            numbers[root] = Some(topology.nodes.len());
            topology.nodes.push(Node { x, y: 0.5, ..Node::default() });
        }
        for (index, link) in topology.links.iter_mut().enumerate() {
            *link = numbers[ends.root(2 * index)].zip(numbers[ends.root(2 * index + 1)]);
        }
        for (index, flow) in scenario.flows.iter().enumerate() {
            let Some((near, far)) = ends.hosts(flow) else { continue };
            if let Some((near, far)) = numbers[near].zip(numbers[far]) {
                topology.nodes[near].senders.push(index);
                topology.nodes[far].receivers.push(index);
            }
        }
        topology.spread();
        topology
    }

    /// Spreads the nodes of each column from the top, and puts all in the order that [`Topology::nodes`]
    /// promises.
    fn spread(&mut self) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| self.nodes[*a].x.total_cmp(&self.nodes[*b].x));
        let mut places = vec![0; order.len()];
        for (to, from) in order.iter().enumerate() {
            places[*from] = to;
        }
        self.nodes = order.iter().map(|index| core::mem::take(&mut self.nodes[*index])).collect();
        for (from, to) in self.links.iter_mut().flatten() {
            (*from, *to) = (places[*from], places[*to]);
        }
        // Nodes of a column follow each other now.
        let column = |node: &Node| (node.x * 1000.0).round() as i64;
        for nodes in self.nodes.chunk_by_mut(|a, b| column(a) == column(b)) {
            let last = nodes.len() - 1;
            for (rank, node) in nodes.iter_mut().enumerate() {
                node.y = if last == 0 { 0.5 } else { rank as f64 / last as f64 };
            }
        }
    }
}

/// Which ends of links are one node: 2n is the beginning of link n, 2n + 1 its end. Each points to another of
/// its node, the root to itself.
struct Ends(Vec<usize>);

impl Ends {
    /// The ends of this number of `links`, joined as the ways pass them.
    fn joined(links: usize, ways: &[&Flow]) -> Self {
        let mut ends = Self((0..2 * links).collect());
        let apart = Apart::of(ways);
        for flow in ways {
            join(&mut ends, &apart, flow);
        }
        ends
    }

    fn root(&self, mut end: usize) -> usize {
        while self.0[end] != end {
            end = self.0[end];
        }
        end
    }

    /// The root of `end`. Points all that it passes to the root, so that no end is ever far from its root.
    fn shorten(&mut self, end: usize) -> usize {
        let root = self.root(end);
        let mut passed = end;
        while self.0[passed] != root {
            passed = core::mem::replace(&mut self.0[passed], root);
        }
        root
    }

    /// The smaller root stays, so that the order of links decides.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.shorten(a), self.shorten(b));
        self.0[a.max(b)] = a.min(b);
    }

    /// The roots of the nodes that a route passes, the hosts at its ends among them.
    fn along(&self, route: &[LinkIndex]) -> Vec<usize> {
        let first = route.first().map(|link| self.root(2 * link.0 as usize));
        first.into_iter().chain(route.iter().map(|link| self.root(2 * link.0 as usize + 1))).collect()
    }

    /// The roots of a flow's hosts: the sender's, the receiver's.
    fn hosts(&self, flow: &Flow) -> Option<(usize, usize)> {
        let (first, last) = (flow.route.first()?, flow.route.last()?);
        Some((self.root(2 * first.0 as usize), self.root(2 * last.0 as usize + 1)))
    }
}

/// The links that hosts of their own share: ways back that begin with one link though the ways out end with
/// several, and ways back that end with one link though the ways out begin with several. For each such link
/// the link of the first way out, and whether another way out has another one.
struct Apart {
    begins: BTreeMap<LinkIndex, (Option<LinkIndex>, bool)>,
    ends: BTreeMap<LinkIndex, (Option<LinkIndex>, bool)>,
}

impl Apart {
    fn of(ways: &[&Flow]) -> Self {
        let mut apart = Self { begins: BTreeMap::new(), ends: BTreeMap::new() };
        for flow in ways {
            let note = |seen: &mut BTreeMap<_, _>, shared: Option<&LinkIndex>, own: Option<&LinkIndex>| {
                let Some(shared) = shared else { return };
                let (first, differs) = seen.entry(*shared).or_insert((own.copied(), false));
                *differs |= *first != own.copied();
            };
            note(&mut apart.begins, flow.return_route.first(), flow.route.last());
            note(&mut apart.ends, flow.return_route.last(), flow.route.first());
        }
        apart
    }

    /// Whether the way back of `flow` begins with the link of another one whose way out ends elsewhere.
    fn begins(&self, flow: &Flow) -> bool {
        flow.return_route.first().and_then(|link| self.begins.get(link)).is_some_and(|seen| seen.1)
    }

    /// Whether the way back of `flow` ends with the link of another one whose way out begins elsewhere.
    fn ends(&self, flow: &Flow) -> bool {
        flow.return_route.last().and_then(|link| self.ends.get(link)).is_some_and(|seen| seen.1)
    }
}

/// The first flow of each route and way back, in the order of the flows. Thousands of flows may share one.
fn ways(scenario: &Scenario) -> Vec<&Flow> {
    let mut known = BTreeSet::new();
    scenario.flows.iter().filter(|flow| known.insert((&flow.route, &flow.return_route))).collect()
}

fn join(ends: &mut Ends, apart: &Apart, flow: &Flow) {
    for route in [&flow.route, &flow.return_route] {
        for pair in route.windows(2) {
            ends.join(2 * pair[0].0 as usize + 1, 2 * pair[1].0 as usize);
        }
    }
    let (mut out, back) = (ends.along(&flow.route), ends.along(&flow.return_route));
    // Hosts of their own whose ways back share a link: it begins, or ends, at the router before them.
    if apart.begins(flow) && out.len() > 2 {
        out.pop();
    }
    if apart.ends(flow) && out.len() > 2 {
        out.remove(0);
    }
    if out.len() == back.len() {
        for (a, b) in out.iter().zip(back.iter().rev()) {
            ends.join(*a, *b);
        }
    } else if let ([first, .., last], [back_first, .., back_last]) = (out.as_slice(), back.as_slice()) {
        ends.join(*first, *back_last);
        ends.join(*last, *back_first);
    }
}

/// The root and the place from 0 to 1 of each node, in the order in which routes reach them. What the first
/// flows have placed stays.
fn places(ways: &[&Flow], ends: &Ends) -> Vec<(usize, f64)> {
    let mut order = Vec::new();
    let mut placed: Vec<Option<f64>> = vec![None; ends.0.len()];
    let routes = ways.iter().flat_map(|flow| [(&flow.route, (0.0, 1.0)), (&flow.return_route, (1.0, 0.0))]);
    for (route, (from, to)) in routes {
        let along = ends.along(route);
        let (Some(first), Some(last)) = (along.first(), along.last()) else { continue };
        let from = placed[*first].unwrap_or(from);
        let to = placed[*last].unwrap_or(to);
        let steps = (along.len() - 1).max(1) as f64;
        for (at, root) in along.iter().enumerate() {
            if placed[*root].is_none() {
                let x = from + (to - from) * at as f64 / steps;
                placed[*root] = Some(x);
                order.push((*root, x));
            }
        }
    }
    order
}
