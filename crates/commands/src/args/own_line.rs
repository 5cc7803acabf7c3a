//! `compare --up RATE/DELAY[/LIMIT][/QUEUE]`: one's own line without a file.

use talkpath_scenario::Setting;

/// One direction of a line, as `--up` and `--down` give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLink {
    rate: String,
    delay: String,
    limit: Option<String>,
    queue: Option<String>,
    /// As it was written.
    text: String,
}

impl OwnLink {
    /// The parts between the slashes. Whether each is a quantity is for the scenario's own reader to say.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<_> = text.split('/').map(|part| part.trim().to_owned()).collect();
        if !(2..=4).contains(&parts.len()) || parts.iter().any(String::is_empty) {
            return Err(FORM.to_owned());
        }
        let mut rest = parts.split_off(2);
        // A limit begins with a digit, the name of a queue does not.
        let is_limit = |part: &String| part.starts_with(|c: char| c.is_ascii_digit());
        let queue = rest.pop_if(|last| !is_limit(last));
        let limit = rest.pop();
        match (parts.pop(), parts.pop(), rest.is_empty()) {
            (Some(delay), Some(rate), true) if limit.as_ref().is_none_or(is_limit) => {
                Ok(Self { rate, delay, limit, queue, text: text.to_owned() })
            }
            _ => Err(FORM.to_owned()),
        }
    }

    /// The keys of the link `name`, which `option` sets.
    pub fn settings(&self, name: &str) -> Vec<Setting> {
        let option = format!("--{name} {}", self.text);
        let set = |key: &str, value: String| Setting::by(&option, &format!("path.{name}.{key}"), value);
        let mut settings = vec![set("rate", quoted(&self.rate)), set("delay", quoted(&self.delay))];
        let kind = self.queue.as_deref().unwrap_or("drop-tail");
        let limit = self.limit.as_ref().map_or(String::new(), |limit| {
            // FQ-CoDel's `limit` counts packets.
            let is_packets = limit.contains("packet");
            let key = if is_fq_codel(kind) && !is_packets { "memory_limit" } else { "limit" };
            format!(", {key} = {}", quoted(limit))
        });
        settings.push(set("queue", format!("{{ kind = {}{limit} }}", quoted(kind))));
        settings
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

/// `text` as a TOML string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const FORM: &str = "expected RATE/DELAY[/LIMIT][/QUEUE], as in 10Mbps/15ms/256kB or 10Mbps/15ms/fq_codel";

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let link = OwnLink::parse(text).unwrap();
        link.settings("up").into_iter().map(|it| format!("{}={}", it.key, it.value)).collect()
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
    fn what_is_no_line_says_what_one_is() {
        for text in
            ["", "10Mbps", "10Mbps/", "10Mbps/15ms/", "10Mbps/15ms/codel/64kB", "a/b/c/d/e", "a/b/1/2"]
        {
            assert_eq!(OwnLink::parse(text), Err(FORM.to_owned()), "{text}");
        }
    }
}
