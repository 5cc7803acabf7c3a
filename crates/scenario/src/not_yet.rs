//! Words that users look for and that talkpath does not have yet. The message about such a word names the
//! page that says what to do instead.

const PAGE: &str = "docs/reference/not-yet.md";

/// Returns a hint if docs/reference/not-yet.md has something called `word`.
pub fn not_yet_help(word: &str) -> Option<String> {
    let word = word.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    let is_known = WORDS.iter().flat_map(|group| group.split(' ')).any(|known| known == word);
    is_known.then(|| format!("{PAGE} says what is not there yet, and what to do instead"))
}

/// The words in groups, each with `_` for a hyphen.
const WORDS: &[&str] = &[
    // Transports and media.
    "sctp webrtc srt rist rtp moq websocket tls mptcp hls dash video stream call_with_video",
    // Codecs.
    "g729 g726 g722 amr amr_wb evs silk lyra speex ilbc",
    // Congestion controls.
    "gcc scream prague dctcp bbr2 bbr3 l4s vegas westwood htcp copa ledbat",
    // Queues.
    "red pie fq_pie cake dualpi2 sfq hfsc pfifo_fast",
    // Keys of links, flows and the whole.
    "gap_model media_cc fps",
    "keyframe_interval red_level nack",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_looked_for_leads_to_the_page_and_any_other_does_not() {
        for word in ["evs", "WebRTC", "srt", "fq-pie", "dualpi2", "video", "media_cc"] {
            assert!(
                not_yet_help(word).is_some_and(|help| help.contains("docs/reference/not-yet.md")),
                "{word}"
            );
        }
        for word in ["udp", "tcp", "voice", "smoke-signals", ""] {
            assert_eq!(not_yet_help(word), None, "{word}");
        }
    }
}
