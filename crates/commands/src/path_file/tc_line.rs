//! The words of a line of tc before the options of its discipline: the device, the handle, and the parent.
//!
//! ```text
//! tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 40ms
//! tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit
//! ```

/// Returns whether `line` is a call of tc. It may begin with `sudo` or with a prompt.
pub(super) fn is_tc_line(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| ["sudo", "#", "$"].contains(word));
    words.next().is_some_and(|word| word == "tc" || word.ends_with("/tc"))
}

/// Whether a line of tc adds something. Lines that delete or show say nothing of a path.
pub(super) fn adds(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    !words.iter().take(5).any(|word| ["del", "delete", "show", "list", "ls"].contains(word))
}

/// Where a line of tc hangs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hangs {
    /// The device. Empty if the line has none.
    pub(super) device: String,
    /// The handle of the discipline (`1:`), or the number of the class (`1:10`).
    pub(super) handle: Option<String>,
    /// The discipline or class above. `None` at the root of the device, and at its ingress.
    pub(super) parent: Option<String>,
}

/// The words at which the options of a discipline begin.
const OPTIONS_BEGIN: [&str; 4] = ["netem", "tbf", "htb", "police"];
/// The handle of the ingress of a device (tc(8)).
const INGRESS: &str = "ffff:";

impl Hangs {
    /// Reads the words of a line up to the options of its discipline.
    pub(super) fn of(line: &str) -> Self {
        let words: Vec<&str> =
            line.split_whitespace().take_while(|word| !OPTIONS_BEGIN.contains(word)).collect();
        let after = |name: &str| {
            let place = words.iter().position(|word| *word == name)?;
            words.get(place + 1).map(|word| (*word).to_owned())
        };
        let is_filter = words.contains(&"filter");
        Self {
            device: after("dev").unwrap_or_default(),
            // The handle of a filter is its own.
            handle: after("classid").or_else(|| after("handle")).filter(|_| !is_filter),
            parent: after("parent").filter(|parent| parent != INGRESS),
        }
    }

    /// Whether `below` names this line as its parent: by its handle, or by a class of its discipline. Tbf and
    /// netem have such a class, `1:1`, without a line of its own.
    pub(super) fn is_parent_of(&self, below: &Self) -> bool {
        let (Some(handle), Some(parent)) = (&self.handle, &below.parent) else { return false };
        let is_class_of = handle.ends_with(':') && parent.strip_prefix(handle.as_str()).is_some();
        self.device == below.device && (handle == parent || is_class_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_hangs_below_its_parent_by_handle_or_class() {
        let root = Hangs::of("tc qdisc add dev eth0 root handle 1: htb default 10");
        let class = Hangs::of("tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit");
        let leaf = Hangs::of("tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 40ms");
        assert!(root.is_parent_of(&class) && class.is_parent_of(&leaf) && !leaf.is_parent_of(&class));
        assert!(!Hangs { device: "eth1".to_owned(), ..root.clone() }.is_parent_of(&class));
        assert_eq!((root.parent, class.handle.as_deref()), (None, Some("1:10")));
        let ingress =
            Hangs::of("tc filter add dev eth0 parent ffff: protocol ip police rate 1mbit burst 15k");
        assert_eq!((ingress.parent, ingress.handle), (None, None));
        assert!(is_tc_line("sudo tc qdisc add") && is_tc_line("# /sbin/tc qdisc") && !is_tc_line("tcpdump"));
        assert!(adds("tc qdisc replace dev lo root netem") && !adds("tc qdisc del dev lo root"));
    }
}
