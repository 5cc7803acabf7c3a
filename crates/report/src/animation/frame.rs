//! One moment of a network as an SVG drawing: nodes, links, and the packets on the links.
//!
//! The nodes of a network are in columns: hosts on the left and on the right, routers between them.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::{Animation, PlayFate, PlayHop, PlayLink, check_size, colour};
use crate::plot::panel::WIDTH;
use crate::plot::svg::{Point, Svg, SvgName, SvgRect, SvgText};

/// The room left and right of the nodes for the names of hosts.
const SIDE_MARGIN: f64 = 130.0;
/// The room above and below the nodes.
const EDGE_MARGIN: f64 = 46.0;
/// The least distance of two hosts in a column.
const ROW_HEIGHT: f64 = 34.0;
/// The least height of the room for the nodes.
const MIN_HEIGHT: f64 = 30.0;
/// The distance of a link from the straight line between its nodes. The two directions between two nodes are
/// on two sides of this line.
const LINK_OFFSET: f64 = 5.0;
const PACKET_SIZE: f64 = 5.0;
const HOST_SIZE: f64 = 12.0;
const ROUTER_SIZE: f64 = 9.0;
/// A link has no name if one of its nodes is in a column with more nodes than this, because the names of its
/// links would lie over each other.
const MAX_NODES_FOR_LINK_NAMES: usize = 6;
/// The nodes of a column with more nodes than this have no names, because the names would lie over each
/// other.
const MAX_NODES_FOR_NODE_NAMES: usize = 16;

/// A place in a drawing of any size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// The distance from the left side, from 0 to 1.
    pub x: f64,
    /// The distance from the top, from 0 to 1.
    pub y: f64,
}

/// Draws the network with its packets at the moment at which most packets are on a link. If the network has
/// too many nodes, the result is a sentence.
pub(crate) fn still(animation: &Animation) -> Markup {
    if let Err(reason) = check_size(animation) {
        return html! { p { (reason) } };
    }
    let layout = Layout::new(animation);
    let mut svg = layout.draw();
    let time = busiest_time(&animation.hops);
    let is_on_link = |hop: &&PlayHop| hop.fate == PlayFate::Passed && hop.began <= time && time < hop.left;
    for hop in animation.hops.iter().filter(is_on_link) {
        let link = animation.links.get(hop.link as usize);
        let Some(line) = link.and_then(|link| layout.line_of(link)) else { continue };
        let share = (time - hop.began) as f64 / (hop.left - hop.began).max(1) as f64;
        draw_square(
            &mut svg,
            line.point_at(share),
            PACKET_SIZE,
            &format!("fill:{}", colour(hop.flow as usize)),
        );
    }
    let description = "Hosts, routers and links, with the packets under way at one moment.";
    svg.finish(SvgName { id: "still-frame", title: &animation.name, description })
}

/// Draws the nodes and the links with their names.
pub(super) fn topology(animation: &Animation) -> Svg {
    Layout::new(animation).draw()
}

/// The places of a network's nodes and links.
struct Layout<'a> {
    animation: &'a Animation,
    /// SVG units.
    height: f64,
    column_sizes: BTreeMap<i64, usize>,
}

/// A straight line from the beginning of a link to its end.
#[derive(Clone, Copy)]
struct Line {
    start: Point,
    end: Point,
}

impl<'a> Layout<'a> {
    fn new(animation: &'a Animation) -> Self {
        let mut column_sizes: BTreeMap<i64, usize> = BTreeMap::new();
        for node in &animation.nodes {
            *column_sizes.entry(column(node.place)).or_default() += 1;
        }
        let largest_column = column_sizes.values().max().copied().unwrap_or(1);
        let gaps = (largest_column.min(MAX_NODES_FOR_NODE_NAMES) - 1) as f64;
        let height = 2.0 * EDGE_MARGIN + (ROW_HEIGHT * gaps).max(MIN_HEIGHT);
        Self { animation, height, column_sizes }
    }

    fn point(&self, place: Place) -> Point {
        let x = SIDE_MARGIN + place.x * (WIDTH - 2.0 * SIDE_MARGIN);
        (x, EDGE_MARGIN + place.y * (self.height - 2.0 * EDGE_MARGIN))
    }

    fn column_size(&self, place: Place) -> usize {
        self.column_sizes.get(&column(place)).copied().unwrap_or(0)
    }

    /// The line of a link, a little to the right of its direction. Returns `None` if no flow uses the link.
    fn line_of(&self, link: &PlayLink) -> Option<Line> {
        let (start, end) = link.ends?;
        let point = |node: usize| self.animation.nodes.get(node).map(|node| self.point(node.place));
        let line = Line { start: point(start)?, end: point(end)? };
        let (dx, dy) = line.direction();
        let shift = |(x, y): Point| (x + dy * LINK_OFFSET, y - dx * LINK_OFFSET);
        Some(Line { start: shift(line.start), end: shift(line.end) })
    }

    fn draw(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, self.height);
        self.draw_links(&mut svg);
        self.draw_nodes(&mut svg);
        svg
    }

    fn draw_links(&self, svg: &mut Svg) {
        let mut described: BTreeSet<&str> = BTreeSet::new();
        for link in &self.animation.links {
            let Some(line) = self.line_of(link) else { continue };
            svg.line("axis", line.start, line.end);
            draw_arrow_head(svg, line);
            // If several links have one description, only the first of them is named.
            if !self.is_crowded(link) && described.insert(&link.about) {
                draw_link_name(svg, line, link);
            }
        }
    }

    /// Whether a node of the link has so many neighbours in its column that names would lie over each other.
    fn is_crowded(&self, link: &PlayLink) -> bool {
        let Some((start, end)) = link.ends else { return false };
        let nodes = [start, end].into_iter().filter_map(|node| self.animation.nodes.get(node));
        let largest_column = nodes.map(|node| self.column_size(node.place)).max();
        largest_column.is_some_and(|size| size > MAX_NODES_FOR_LINK_NAMES)
    }

    fn draw_nodes(&self, svg: &mut Svg) {
        for node in &self.animation.nodes {
            let (x, y) = self.point(node.place);
            let size = if node.label.is_empty() { ROUTER_SIZE } else { HOST_SIZE };
            draw_square(svg, (x, y), size, "fill:var(--page);stroke:var(--ink);stroke-width:1.5");
            if self.column_size(node.place) <= MAX_NODES_FOR_NODE_NAMES {
                let name = if node.place.x < 0.5 {
                    SvgText::ending_at((x - 12.0, y + 4.0), "", &node.label)
                } else {
                    SvgText::starting_at((x + 12.0, y + 4.0), "", &node.label)
                };
                svg.text(name);
            }
        }
    }
}

impl Line {
    /// The vector from the start to the end, of length 1.
    fn direction(self) -> (f64, f64) {
        let (dx, dy) = (self.end.0 - self.start.0, self.end.1 - self.start.1);
        let length = (dx * dx + dy * dy).sqrt().max(1.0);
        (dx / length, dy / length)
    }

    /// The point that has `share` of the line behind it.
    fn point_at(self, share: f64) -> Point {
        let x = self.start.0 + share * (self.end.0 - self.start.0);
        (x, self.start.1 + share * (self.end.1 - self.start.1))
    }
}

/// The column of a place, in thousandths of the drawing's width.
fn column(place: Place) -> i64 {
    (place.x * 1000.0).round() as i64
}

fn draw_square(svg: &mut Svg, (x, y): Point, size: f64, style: &str) {
    let (left, top) = (x - size / 2.0, y - size / 2.0);
    svg.rect(&SvgRect { style, left, top, width: size, height: size, ..SvgRect::default() });
}

/// Draws the name of a link at its middle. The name of a link to the left is below the link, so that the
/// names of two directions do not meet.
fn draw_link_name(svg: &mut Svg, line: Line, link: &PlayLink) {
    let offset = if line.end.0 < line.start.0 { 16.0 } else { -8.0 };
    let point = (f64::midpoint(line.start.0, line.end.0), f64::midpoint(line.start.1, line.end.1) + offset);
    let name = match link.about.as_str() {
        "" => link.name.clone(),
        about => format!("{}: {about}", link.name),
    };
    svg.text(SvgText::centred_at(point, "halo", &name));
}

fn draw_arrow_head(svg: &mut Svg, line: Line) {
    let (dx, dy) = line.direction();
    // The tip is in front of the node.
    let tip = (line.end.0 - 9.0 * dx, line.end.1 - 9.0 * dy);
    for side in [-1.0, 1.0] {
        svg.line("axis", tip, (tip.0 - 6.0 * dx - side * 3.0 * dy, tip.1 - 6.0 * dy + side * 3.0 * dx));
    }
}

/// The time at which a packet enters a link and most packets are on a link or in its queue. `hops` is in the
/// order of entry. Zero if there is no hop.
fn busiest_time(hops: &[PlayHop]) -> i64 {
    let mut exits: Vec<i64> = hops.iter().map(|hop| hop.left).collect();
    exits.sort_unstable();
    let mut busiest = (0, 0);
    for (index, hop) in hops.iter().enumerate() {
        let entered_count = index + 1;
        let left_count = exits.partition_point(|left| *left <= hop.entered);
        let under_way = entered_count - left_count;
        if under_way >= busiest.0 {
            busiest = (under_way, hop.entered);
        }
    }
    busiest.1
}

#[cfg(test)]
mod tests {
    use super::super::tests::two_hosts;
    use super::*;

    #[test]
    fn the_busiest_time_is_the_entry_of_a_packet_beside_most_others() {
        assert_eq!(busiest_time(&two_hosts().hops), 50);
        assert_eq!(busiest_time(&[]), 0);
    }

    #[test]
    fn the_two_directions_between_two_nodes_lie_apart() {
        let mut animation = two_hosts();
        animation.links.push(PlayLink { ends: Some((1, 0)), ..Default::default() });
        let layout = Layout::new(&animation);
        let [there, back] = [0, 1].map(|link: usize| layout.line_of(&animation.links[link]).unwrap());
        assert_eq!((there.start.1 - back.end.1).abs(), 2.0 * LINK_OFFSET);
        assert_eq!(there.start.0, back.end.0);
    }
}
