//! The user's own line by what a tariff says: `compare --line 50/10` or `50/10/20ms`.

use super::OwnLink;

const FORM: &str = "expected DOWNLOAD/UPLOAD[/DELAY] with rates in Mb/s and the delay of one direction, as in 50/10 or 50/10/20ms";

/// A line by its download and its upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLine {
    download: String,
    upload: String,
    /// `None` if the user gave no delay.
    delay: Option<String>,
    /// The text that the user wrote.
    text: String,
}

/// The one-way delay of a line without a delay, as in the preset `home-cable`.
const USUAL_DELAY: &str = "12ms";
/// How long a full queue takes to empty, in each direction, as in the preset `home-cable`.
const UPLOAD_QUEUE: &str = "250ms";
const DOWNLOAD_QUEUE: &str = "100ms";

impl OwnLine {
    /// Splits the text at its slashes. A rate without a unit is in Mb/s.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').map(str::trim).collect();
        let (download, upload, delay) = match parts[..] {
            [download, upload] => (download, upload, None),
            [download, upload, delay] if !delay.is_empty() => (download, upload, Some(delay)),
            _ => return Err(FORM.to_owned()),
        };
        let begins_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if ![Some(download), Some(upload), delay].into_iter().flatten().all(begins_with_digit) {
            return Err(FORM.to_owned());
        }
        Ok(Self {
            download: with_unit(download),
            upload: with_unit(upload),
            delay: delay.map(str::to_owned),
            text: text.to_owned(),
        })
    }

    /// The upload, as `--up` describes it.
    pub fn up(&self) -> OwnLink {
        OwnLink::of_line(self.flag(), &self.upload, self.delay(), UPLOAD_QUEUE)
    }

    /// The download, as `--down` describes it.
    pub fn down(&self) -> OwnLink {
        OwnLink::of_line(self.flag(), &self.download, self.delay(), DOWNLOAD_QUEUE)
    }

    /// Says what was assumed, and how to say it otherwise.
    pub fn assumptions(&self) -> String {
        let delay = match &self.delay {
            Some(_) => String::new(),
            None => format!("a delay of {USUAL_DELAY} each way and "),
        };
        format!(
            "{}: assumed {delay}queues of {UPLOAD_QUEUE} up and {DOWNLOAD_QUEUE} down, as in the preset home-cable; \
             --up {} --down {} says the same in full",
            self.flag(),
            self.up(),
            self.down()
        )
    }

    /// The flag as the user wrote it.
    fn flag(&self) -> String {
        format!("--line {}", self.text)
    }

    fn delay(&self) -> &str {
        self.delay.as_deref().unwrap_or(USUAL_DELAY)
    }
}

/// The rate with its unit: a number alone is in Mb/s.
fn with_unit(rate: &str) -> String {
    let is_number = rate.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_number { format!("{rate}Mbps") } else { rate.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_upload_and_a_download_with_what_is_assumed() {
        let links = |text: &str| {
            let line = OwnLine::parse(text).unwrap();
            (line.up().to_string(), line.down().to_string())
        };
        let (up, down) = links("50/10");
        assert_eq!((up.as_str(), down.as_str()), ("10Mbps/12ms/250ms", "50Mbps/12ms/100ms"));
        let (up, down) = links("1Gbps / 0.5/20 ms");
        assert_eq!((up.as_str(), down.as_str()), ("0.5Mbps/20 ms/250ms", "1Gbps/20 ms/100ms"));
        // What the note proposes is what `--up` reads.
        let values = |link: OwnLink| {
            link.settings("up").into_iter().map(|set| (set.key, set.value)).collect::<Vec<_>>()
        };
        let (proposed, line) = (OwnLink::parse(&links("50/10").0).unwrap(), OwnLine::parse("50/10").unwrap());
        assert_eq!(values(proposed), values(line.up()));
    }

    #[test]
    fn what_is_assumed_is_said() {
        let said = |text: &str| OwnLine::parse(text).unwrap().assumptions();
        assert!(
            said("50/10")
                .starts_with("--line 50/10: assumed a delay of 12ms each way and queues of 250ms up")
        );
        assert!(
            said("50/10/20ms").starts_with("--line 50/10/20ms: assumed queues of 250ms up and 100ms down")
        );
    }

    #[test]
    fn a_text_of_another_form_is_refused_with_the_right_form() {
        for text in ["", "50", "50/", "50/10/", "50/10/20ms/64kB", "fast/10", "50/10/slow"] {
            assert_eq!(OwnLine::parse(text), Err(FORM.to_owned()), "{text}");
        }
    }
}
