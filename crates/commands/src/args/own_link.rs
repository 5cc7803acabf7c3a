//! A link of the user's own line, as `compare --up RATE/DELAY[/LIMIT][/QUEUE]` describes it.

use talkpath_scenario::Setting;

use super::quoted;

const FORM: &str = "expected RATE/DELAY[/LIMIT][/QUEUE], as in 10Mbps/15ms/256kB or 10Mbps/15ms/fq_codel";

/// One direction of a line, as `--up` or `--down` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLink {
    rate: String,
    delay: String,
    limit: Option<String>,
    queue: Option<String>,
    /// The direction in the form of `--up` and `--down`.
    text: String,
    /// The flag that the user wrote, with its text, if it was another one: `--line 50/10`.
    line: Option<String>,
}

impl OwnLink {
    /// Splits the text at its slashes. Whether each part is a quantity is checked later, when the scenario is
    /// read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').map(str::trim).collect();
        if parts.contains(&"") {
            return Err(FORM.to_owned());
        }
        // A limit begins with a digit, and the name of a queue does not.
        let is_limit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let (rate, delay, limit, queue) = match parts[..] {
            [rate, delay] => (rate, delay, None, None),
            [rate, delay, limit] if is_limit(limit) => (rate, delay, Some(limit), None),
            [rate, delay, queue] => (rate, delay, None, Some(queue)),
            [rate, delay, limit, queue] if is_limit(limit) && !is_limit(queue) => {
                (rate, delay, Some(limit), Some(queue))
            }
            _ => return Err(FORM.to_owned()),
        };
        Ok(Self {
            rate: rate.to_owned(),
            delay: delay.to_owned(),
            limit: limit.map(str::to_owned),
            queue: queue.map(str::to_owned),
            text: text.to_owned(),
            line: None,
        })
    }

    /// A direction of the line that the flag `line` describes, with a drop-tail queue of this limit.
    pub(super) fn of_line(line: String, rate: &str, delay: &str, limit: &str) -> Self {
        Self {
            rate: rate.to_owned(),
            delay: delay.to_owned(),
            limit: Some(limit.to_owned()),
            queue: None,
            text: format!("{rate}/{delay}/{limit}"),
            line: Some(line),
        }
    }

    /// The settings of the link `up` or `down` in the scenario. Without `--line`, the flag of this
    /// description has the same name as the link.
    pub fn settings(&self, link: &str) -> Vec<Setting> {
        let option = self.line.clone().unwrap_or_else(|| format!("--{link} {}", self.text));
        let set = |key: &str, value: String| Setting::by(&option, &format!("path.{link}.{key}"), value);
        vec![
            set("rate", quoted(&self.rate)),
            set("delay", quoted(&self.delay)),
            set("queue", self.queue_table()),
        ]
    }

    /// The queue as a TOML table.
    fn queue_table(&self) -> String {
        let kind = self.queue.as_deref().unwrap_or("drop-tail");
        let Some(limit) = &self.limit else {
            return format!("{{ kind = {} }}", quoted(kind));
        };
        // The key `limit` of FQ-CoDel counts packets. For bytes FQ-CoDel has a key of its own.
        let is_in_packets = limit.contains("packet");
        let limit_key = if is_fq_codel(kind) && !is_in_packets { "memory_limit" } else { "limit" };
        format!("{{ kind = {}, {limit_key} = {} }}", quoted(kind), quoted(limit))
    }
}

impl std::fmt::Display for OwnLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_fq_codel(kind: &str) -> bool {
    kind.replace('-', "_").eq_ignore_ascii_case("fq_codel")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let link = OwnLink::parse(text).unwrap();
        link.settings("up").into_iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect()
    }

    #[test]
    fn a_limit_and_a_queue_may_be_left_out() {
        let queue = |text| keys(text).pop().unwrap();
        assert_eq!(
            keys("10Mbps/15ms/256kB"),
            [
                "path.up.rate=\"10Mbps\"",
                "path.up.delay=\"15ms\"",
                "path.up.queue={ kind = \"drop-tail\", limit = \"256kB\" }"
            ]
        );
        assert_eq!(queue("10Mbps/15ms"), "path.up.queue={ kind = \"drop-tail\" }");
        assert_eq!(queue("10Mbps/15ms/fq_codel"), "path.up.queue={ kind = \"fq_codel\" }");
        assert_eq!(
            queue("10Mbps/15ms/64 packets/codel"),
            "path.up.queue={ kind = \"codel\", limit = \"64 packets\" }"
        );
    }

    #[test]
    fn bytes_of_fq_codel_are_its_memory() {
        let queue = |text| keys(text).pop().unwrap();
        assert_eq!(
            queue("10Mbps/15ms/256kB/fq-codel"),
            "path.up.queue={ kind = \"fq-codel\", memory_limit = \"256kB\" }"
        );
        assert_eq!(
            queue("10Mbps/15ms/500packets/fq-codel"),
            "path.up.queue={ kind = \"fq-codel\", limit = \"500packets\" }"
        );
    }

    #[test]
    fn a_text_of_another_form_is_refused_with_the_right_form() {
        for text in
            ["", "10Mbps", "10Mbps/", "10Mbps/15ms/", "10Mbps/15ms/codel/64kB", "a/b/c/d/e", "a/b/1/2"]
        {
            assert_eq!(OwnLink::parse(text), Err(FORM.to_owned()), "{text}");
        }
    }
}
