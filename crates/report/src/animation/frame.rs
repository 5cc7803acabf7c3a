//! The still picture: nodes, links, and packets at the moment at which most are under way.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::{Animation, PlayFate, PlayHop, PlayNode, colour, too_many};
use crate::plot::panel::WIDTH;
use crate::plot::svg::{Anchor, Svg};

/// A node's place: distances from the left and from the top, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// Room for the names of hosts on both sides, and above and below the nodes.
const SIDE: f64 = 130.0;
const EDGE: f64 = 46.0;
/// Of each row of hosts, at least.
const ROW: f64 = 34.0;
/// By how much the two directions between two nodes lie apart.
const APART: f64 = 5.0;
/// Nodes in a column whose links are named. Chosen.
const MOST_BESIDE: usize = 6;
/// Nodes in a column that are named; the names of more would lie over each other.
const MOST_NAMED: usize = 16;

/// The topology with the packets at the busiest moment, or why there is none.
pub(crate) fn still(animation: &Animation) -> Markup {
    if let Some(why) = too_many(animation) {
        return html! { p { (why) } };
    }
    let mut svg = topology(animation);
    let at = busiest(&animation.hops);
    let height = height(animation);
    for hop in
        animation.hops.iter().filter(|hop| hop.began <= at && at < hop.left && hop.fate == PlayFate::Passed)
    {
        let Some((from, to)) = ends(animation, hop.link as usize, height) else { continue };
        let share = (at - hop.began) as f64 / (hop.left - hop.began).max(1) as f64;
        let (x, y) = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
        let style = format!("fill:{}", colour(hop.flow as usize));
        svg.rect("", &style, "", (x - 2.5, y - 2.5), (5.0, 5.0));
    }
    let about = "Hosts, routers and links, with the packets under way at one moment.";
    svg.finish("still-frame", &animation.name, about)
}

/// Nodes and links with their names.
pub(super) fn topology(animation: &Animation) -> Svg {
    let height = height(animation);
    let mut svg = Svg::new(WIDTH, height);
    let columns = columns(animation);
    let beside = |node: &PlayNode| columns.get(&column(node.place)).copied().unwrap_or(0);
    // The names of links that lead to one of many nodes in a column would lie over each other.
    let is_crowded = |(from, to): (usize, usize)| {
        let most = [from, to].iter().filter_map(|node| animation.nodes.get(*node)).map(beside).max();
        most.is_some_and(|most| most > MOST_BESIDE)
    };
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (index, link) in animation.links.iter().enumerate() {
        let Some((from, to)) = ends(animation, index, height) else { continue };
        svg.line("axis", from, to);
        arrow(&mut svg, from, to);
        // Links of the same making are described once.
        if link.ends.is_some_and(|ends| !is_crowded(ends)) && named.insert(&link.about) {
            let below = to.0 < from.0;
            let at =
                (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1) + if below { 16.0 } else { -8.0 });
            let name = match link.about.is_empty() {
                true => link.name.clone(),
                false => format!("{}: {}", link.name, link.about),
            };
            svg.text("halo", "", at, Anchor::Middle, &name);
        }
    }
    for node in &animation.nodes {
        let (x, y) = at(node.place, height);
        let is_host = !node.label.is_empty();
        let size = if is_host { 12.0 } else { 9.0 };
        let style = "fill:var(--page);stroke:var(--ink);stroke-width:1.5";
        svg.rect("", style, "", (x - size / 2.0, y - size / 2.0), (size, size));
        let (left, anchor) =
            if node.place.x < 0.5 { (x - 12.0, Anchor::End) } else { (x + 12.0, Anchor::Start) };
        if beside(node) <= MOST_NAMED {
            svg.text("", "", (left, y + 4.0), anchor, &node.label);
        }
    }
    svg
}

/// How many nodes each column has.
fn columns(animation: &Animation) -> BTreeMap<i64, usize> {
    let mut columns = BTreeMap::new();
    for node in &animation.nodes {
        *columns.entry(column(node.place)).or_default() += 1;
    }
    columns
}

/// The column of a place, in thousandths of the drawing's width.
fn column(place: Place) -> i64 {
    (place.x * 1000.0).round() as i64
}

fn height(animation: &Animation) -> f64 {
    let most = columns(animation).into_values().max().unwrap_or(1);
    2.0 * EDGE + (ROW * (most.min(MOST_NAMED) - 1) as f64).max(30.0)
}

fn at(place: Place, height: f64) -> (f64, f64) {
    (SIDE + place.x * (WIDTH - 2.0 * SIDE), EDGE + place.y * (height - 2.0 * EDGE))
}

/// Where a link begins and ends, a little to the right of the way it goes.
fn ends(animation: &Animation, link: usize, height: f64) -> Option<((f64, f64), (f64, f64))> {
    let (from, to) = animation.links.get(link)?.ends?;
    let place = |node: usize| animation.nodes.get(node).map(|node| at(node.place, height));
    let (from, to) = (place(from)?, place(to)?);
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).sqrt().max(1.0);
    let aside = (-dy / length * -APART, dx / length * -APART);
    Some(((from.0 + aside.0, from.1 + aside.1), (to.0 + aside.0, to.1 + aside.1)))
}

fn arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).sqrt().max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let tip = (to.0 - 9.0 * ux, to.1 - 9.0 * uy);
    for side in [-1.0, 1.0] {
        svg.line("axis", tip, (tip.0 - 6.0 * ux - side * 3.0 * uy, tip.1 - 6.0 * uy + side * 3.0 * ux));
    }
}

/// The entry at which most packets are under way.
fn busiest(hops: &[PlayHop]) -> i64 {
    let mut left: Vec<i64> = hops.iter().map(|hop| hop.left).collect();
    left.sort_unstable();
    let under_way = |(index, hop): (usize, &PlayHop)| {
        (index + 1 - left.partition_point(|left| *left <= hop.entered), hop.entered)
    };
    let most = hops.iter().enumerate().map(under_way).max_by_key(|it| it.0);
    most.map_or(0, |it| it.1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::two_hosts;
    use super::*;

    #[test]
    fn the_busiest_moment_is_the_entry_of_the_packet_beside_most_others() {
        assert_eq!(busiest(&two_hosts().hops), 50);
        assert_eq!(busiest(&[]), 0);
    }

    #[test]
    fn the_two_directions_between_two_nodes_lie_apart() {
        let mut animation = two_hosts();
        animation.links.push(super::super::PlayLink { ends: Some((1, 0)), ..Default::default() });
        let (there, back) = (ends(&animation, 0, 100.0).unwrap(), ends(&animation, 1, 100.0).unwrap());
        assert_eq!((there.0.1 - back.1.1).abs(), 2.0 * APART);
        assert_eq!(there.0.0, back.1.0);
    }
}
