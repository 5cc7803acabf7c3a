//! Lines of tc as the links of a path.
//!
//! A line with `parent` belongs to the link of the line that it names, in whatever order they are. The first
//! device is `up`, and the second device is `down`.

use super::tc::{TcLink, parse_line};
use super::tc_line::{self, Hangs, adds};

/// Lines of tc as the user wrote them, and the link that they describe.
#[derive(Debug)]
pub(crate) struct LinkOfLines {
    /// The lines. The first line is the root of the device.
    lines: Vec<String>,
    device: String,
    pub(super) link: TcLink,
}

/// Returns whether `text` is a call of tc.
pub(crate) fn is_tc_line(text: &str) -> bool {
    tc_line::is_tc_line(text)
}

/// A line of tc that was read.
struct Line<'a> {
    number: u32,
    text: &'a str,
    hangs: Hangs,
    link: TcLink,
}

/// The most lines of tc that are read. We chose 500: a path has a few, and the time to order them grows with
/// the cube of their number.
const MOST_LINES: usize = 500;

/// Reads every line of tc in `text`, and ignores all other lines. Returns at least one link, in the order of
/// the lines that have no parent.
///
/// # Errors
/// Returns the number of the first line that cannot be read, or whose parent no line has, and the reason.
/// Returns an error, too, if there is no line of tc, or if there are too many.
pub(crate) fn read_links(text: &str) -> Result<Vec<LinkOfLines>, String> {
    let mut read = Vec::new();
    for (number, text) in (1_u32..).zip(text.lines().map(str::trim)) {
        if is_tc_line(text) && adds(text) && !is_ingress(text) {
            let link = parse_line(text).map_err(|message| format!("line {number}: {message}"))?;
            read.push(Line { number, text, hangs: Hangs::of(text), link });
            if read.len() > MOST_LINES {
                return Err(format!(
                    "line {number}: found more than {MOST_LINES} lines of tc; a path has a few"
                ));
            }
        }
    }
    let (mut below, above): (Vec<Line<'_>>, Vec<Line<'_>>) =
        read.into_iter().partition(|line| line.hangs.parent.is_some());
    // Each link with the places at which further lines may hang.
    let mut links: Vec<(LinkOfLines, Vec<Hangs>)> = Vec::new();
    for Line { text, hangs, link, .. } in above {
        let device = hangs.device.clone();
        links.push((LinkOfLines { lines: vec![text.to_owned()], device, link }, vec![hangs]));
    }
    while !below.is_empty() {
        let has_place = |line: &Line<'_>| {
            // A class that is still to come is nearer than the discipline whose class it is.
            let comes = below.iter().any(|other| {
                other.hangs.device == line.hangs.device && other.hangs.handle == line.hangs.parent
            });
            let is_parent = |place: &Hangs| place.is_parent_of(&line.hangs);
            !comes && links.iter().any(|(_, places)| places.iter().any(is_parent))
        };
        let Some(next) = below.iter().position(has_place) else {
            return Err(no_parent(&below[0], links.iter().flat_map(|(_, places)| places)));
        };
        let Line { text, hangs, link, .. } = below.remove(next);
        if let Some((link_of_lines, places)) =
            links.iter_mut().find(|(_, places)| places.iter().any(|place| place.is_parent_of(&hangs)))
        {
            link_of_lines.lines.push(text.to_owned());
            link_of_lines.link.attach(link);
            places.push(hangs);
        }
    }
    let mut links: Vec<LinkOfLines> = links.into_iter().map(|(link, _)| link).collect();
    for link in &mut links {
        link.link.note_order();
        link.link.count_header();
    }
    if links.is_empty() { Err("found no line of tc".to_owned()) } else { Ok(links) }
}

/// Says that no line is the parent of `line`. `places` are those that lines have.
fn no_parent<'a>(Line { number, hangs, .. }: &Line<'_>, places: impl Iterator<Item = &'a Hangs>) -> String {
    let of_device = places.filter(|place| place.device == hangs.device);
    let handles: Vec<&str> = of_device.filter_map(|place| place.handle.as_deref()).collect();
    let known = if handles.is_empty() { "none".to_owned() } else { handles.join(", ") };
    format!(
        "line {number}: found parent {}, which no line of {} has as its handle or classid; there is {known}. Add that line, or take \
         `parent` out to read this one alone",
        hangs.parent.as_deref().unwrap_or_default(),
        if hangs.device.is_empty() { "this device" } else { &hangs.device }
    )
}

/// Whether a line only makes the ingress of a device, at which filters hang.
fn is_ingress(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "ingress" || word == "clsact") && !line.contains("police")
}

/// Says what is probably not meant in the lines, a sentence each.
pub(crate) fn doubts(links: &[LinkOfLines]) -> impl Iterator<Item = &str> {
    links.iter().flat_map(|link| link.link.doubts.iter().map(String::as_str))
}

/// Describes each link by its lines of tc, its keys in a scenario, and notes about what is not converted.
pub(crate) fn describe_links(links: &[LinkOfLines]) -> String {
    let mut text = String::new();
    for LinkOfLines { lines, link, .. } in links {
        text.push_str(&format!("# {}\n{}\n", lines.join("; "), link.keys.join("\n")));
        for note in &link.notes {
            text.push_str(&format!("# note: {note}\n"));
        }
        text.push('\n');
    }
    text
}

/// Says which device is which direction: `eth0 is up and ifb0 is down, in the order of their lines`.
pub(crate) fn directions_in_words(links: &[LinkOfLines]) -> String {
    let name =
        |link: &LinkOfLines| if link.device.is_empty() { "the line".to_owned() } else { link.device.clone() };
    match links {
        [up, down, ..] => {
            format!(
                "{} is up and {} is down, in the order of the lines that have no parent",
                name(up),
                name(down)
            )
        }
        [up] => format!(
            "{} is up; nothing is known of the way back, so down is unlimited and takes no time",
            name(up)
        ),
        [] => String::new(),
    }
}

/// Writes a path file. The first link becomes the table `[up]`, and the second link the table `[down]`. If
/// there is one link, nothing is known of the download, so `[down]` gets an unlimited rate.
///
/// # Errors
/// Returns an error if there are not one or two links.
pub(crate) fn path_file(links: &[LinkOfLines]) -> Result<String, String> {
    let (up, down) = match links {
        [up] => (toml_table("up", up), "[down]\nrate = \"unlimited\"\n".to_owned()),
        [up, down] => (toml_table("up", up), toml_table("down", down)),
        _ => {
            return Err(format!(
                "found {} lines of tc without a parent; a path has two directions: give a file with the lines of `up` and those of \
                 `down`",
                links.len()
            ));
        }
    };
    Ok(format!("{up}\n{down}"))
}

/// Writes a link as a TOML table, with its lines of tc as comments.
fn toml_table(table_name: &str, LinkOfLines { lines, link, .. }: &LinkOfLines) -> String {
    let lines: String = lines.iter().map(|line| format!("# {line}\n")).collect();
    format!("{lines}[{table_name}]\n{}\n", link.keys.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_tc_is_the_upload_of_a_path_and_two_are_both_directions() {
        let line = "tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms";
        let one = path_file(&read_links(line).unwrap()).unwrap();
        assert!(one.contains("[up]\nshaper = ") && one.ends_with("[down]\nrate = \"unlimited\"\n"), "{one}");
        let two = path_file(&read_links(&format!("{line}\n{line}\n")).unwrap()).unwrap();
        assert_eq!(two.matches("shaper = ").count(), 2);
        assert!(two.contains("framing = { kind = \"bytes\", overhead = \"14 B\" }"), "{two}");
        let three = read_links(&[line; 3].join("\n")).unwrap();
        assert!(path_file(&three).unwrap_err().contains("found 3 lines"));
        assert!(read_links("echo").unwrap_err().contains("no line of tc"));
        let many = read_links(&[line; 501].join("\n")).unwrap_err();
        assert!(many.starts_with("line 501: found more than 500 lines of tc"), "{many}");
    }

    #[test]
    fn lines_with_parents_are_one_link_in_any_order() {
        let root = "tc qdisc add dev eth0 root handle 1: htb default 10";
        let class = "tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit";
        let leaf = "tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 40ms";
        for lines in [[root, class, leaf], [leaf, class, root], [class, root, leaf]] {
            let joined = path_file(&read_links(&lines.join("\n")).unwrap()).unwrap();
            assert!(joined.contains("[up]\nrate = \"2 Mbps\"\ndelay = \"40 ms\"\nqueue = "), "{joined}");
        }
        let tbf = "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 5mbit burst 15kb latency 50ms";
        let netem = "tc qdisc add dev eth0 root handle 1: netem delay 20ms loss 2%";
        for lines in [[netem, tbf], [tbf, netem]] {
            let links = read_links(&lines.join("\n")).unwrap();
            let described = describe_links(&links);
            assert!(links.len() == 1 && described.contains("limit = \"46610 B\""), "{described}");
            assert!(described.contains("lost packets spend tokens"), "{described}");
            assert_eq!(directions_in_words(&links).split(';').next(), Some("eth0 is up"));
        }
        let orphan = read_links(&format!("{netem}\n{}", tbf.replace("parent 1:1", "parent 9:"))).unwrap_err();
        assert!(orphan.starts_with("line 2: found parent 9:, which no line of eth0 has"), "{orphan}");
        let both =
            read_links(&format!("tc qdisc del dev eth0 root\n{netem}\n{}", netem.replace("eth0", "ifb0")));
        assert_eq!(both.unwrap().len(), 2);
    }
}
