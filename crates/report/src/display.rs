//! The appearance of each transport in every output: name, colours, dash and marker.
//!
//! The colours start from Okabe and Ito's set ("Color Universal Design", 2002), whose colours stay distinct
//! under the common forms of colour blindness; each hue is darkened for the light page and lightened for the
//! dark one until it has WCAG 2.2 §1.4.11's contrast of 3:1 with both backgrounds (a test computes it). Dash
//! and marker repeat what the colour says, for print and for those who see none.

/// The page's background in the light theme, to which [`Display::light`] must have contrast.
pub(crate) const LIGHT_BACKGROUND: &str = "#ffffff";
/// The page's background in the dark theme, to which [`Display::dark`] must have contrast.
pub(crate) const DARK_BACKGROUND: &str = "#15181d";

/// One transport's appearance.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Display {
    /// The transport's name in scenarios and summaries; of Multipath TCP one of our own.
    pub kind: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// What a reader who does not know it should know; empty if the name says it.
    pub about: &'static str,
    /// Colour on the light page, `#rrggbb`.
    pub light: &'static str,
    /// Colour on the dark page, `#rrggbb`.
    pub dark: &'static str,
    /// The nearest of the terminal's 256 colours that reads on black and on white.
    pub ansi: u8,
    /// SVG `stroke-dasharray`.
    pub dash: &'static str,
    /// Shape of its points in a legend.
    pub marker: Marker,
}

/// Shape of a legend's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// The appearance of the transport `kind`, which users write with hyphens or underscores; unknown ones share
/// the last entry.
pub(crate) fn display(kind: &str) -> &'static Display {
    let kind = kind.replace('_', "-");
    TRANSPORTS.iter().find(|display| display.kind == kind).unwrap_or(&FALLBACK)
}

/// The appearance of the transport `kind` over Multipath TCP (RFC 8684), which is an option of that transport
/// in scenarios and summaries; `None` if it has no such form.
pub(crate) fn multipath(kind: &str) -> Option<&'static Display> {
    match kind.replace('_', "-").as_str() {
        "tcp" => Some(display("mptcp")),
        "tcp-nodelay" => Some(display("mptcp-nodelay")),
        _ => None,
    }
}

/// The appearance of the transport that people call `name`.
pub(crate) fn named(name: &str) -> Option<&'static Display> {
    TRANSPORTS.iter().find(|display| display.name == name)
}

/// The name of a queue's discipline for people; an unknown one keeps its word.
pub(crate) fn discipline(word: &str) -> &str {
    DISCIPLINES.iter().find(|(known, _)| *known == word).map_or(word, |(_, name)| name)
}

/// The disciplines of queues: the word in scenarios and summaries, and the name for people.
static DISCIPLINES: [(&str, &str); 4] =
    [("drop-tail", "drop-tail"), ("codel", "CoDel"), ("fq_codel", "FQ-CoDel"), ("fq", "fair queueing")];

/// How one line of a figure looks: the transport's colour always, and of several lines of one transport each
/// its own dash and marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub display: &'static Display,
    /// Which of the lines with this transport it is, from 0.
    pub variant: usize,
}

impl Look {
    /// SVG `stroke-dasharray`.
    pub(crate) fn dash(self) -> &'static str {
        self.varied().dash
    }

    /// Shape of its points.
    pub(crate) fn marker(self) -> Marker {
        self.varied().marker
    }

    /// Whose dash and marker it has.
    fn varied(self) -> &'static Display {
        if self.variant == 0 {
            return self.display;
        }
        let own = TRANSPORTS.iter().position(|it| it.kind == self.display.kind).unwrap_or(0);
        &TRANSPORTS[(own + self.variant) % TRANSPORTS.len()]
    }
}

impl From<&'static Display> for Look {
    fn from(display: &'static Display) -> Self {
        Self { display, variant: 0 }
    }
}

/// Every appearance, for the page's style sheet.
pub(crate) fn all() -> impl Iterator<Item = &'static Display> {
    TRANSPORTS.iter().chain([&FALLBACK])
}

/// Known transports, in the order in which variants take their dashes and markers.
static TRANSPORTS: [Display; 13] = [
    Display {
        kind: "udp",
        name: "UDP",
        about: "",
        light: "#0072b2",
        dark: "#56b4e9",
        ansi: 32,
        dash: "none",
        marker: Marker::Circle,
    },
    Display {
        kind: "tcp",
        name: "TCP",
        about: "Nagle's algorithm on",
        light: "#c65300",
        dark: "#f0813a",
        ansi: 166,
        dash: "7 3",
        marker: Marker::Square,
    },
    Display {
        kind: "tcp-nodelay",
        name: "TCP_NODELAY",
        about: "TCP with Nagle's algorithm off",
        light: "#008a64",
        dark: "#2fc79b",
        ansi: 36,
        dash: "2 2.5",
        marker: Marker::Triangle,
    },
    Display {
        kind: "dccp-ccid2",
        name: "DCCP CCID 2",
        about: "TCP-like congestion control, no retransmission",
        light: "#a8487f",
        dark: "#e39ac4",
        ansi: 169,
        dash: "9 3 2 3",
        marker: Marker::Diamond,
    },
    Display {
        kind: "dccp-ccid3",
        name: "DCCP CCID 3",
        about: "TFRC, no retransmission",
        light: "#8f6400",
        dark: "#e6a816",
        ansi: 136,
        dash: "12 3",
        marker: Marker::Cross,
    },
    Display {
        kind: "dccp-ccid4",
        name: "DCCP CCID 4",
        about: "TFRC for small packets, no retransmission",
        light: "#5a4fcf",
        dark: "#aaa0ff",
        ansi: 99,
        dash: "5 2 1 2",
        marker: Marker::Circle,
    },
    Display {
        kind: "quic-datagram",
        name: "QUIC datagrams",
        about: "no retransmission",
        light: "#00788c",
        dark: "#55d3e6",
        ansi: 37,
        dash: "1 3",
        marker: Marker::Square,
    },
    Display {
        kind: "quic-stream",
        name: "QUIC stream",
        about: "one stream for all messages",
        light: "#8a3f1d",
        dark: "#d9a383",
        ansi: 137,
        dash: "10 2 2 2",
        marker: Marker::Triangle,
    },
    Display {
        kind: "quic-stream-per-message",
        name: "QUIC stream/msg",
        about: "a stream for each message",
        light: "#3d7a1f",
        dark: "#8fd06a",
        ansi: 70,
        dash: "2 3 8 3",
        marker: Marker::Circle,
    },
    Display {
        kind: "sctp",
        name: "SCTP",
        about: "",
        light: "#6b6a00",
        dark: "#f0e442",
        ansi: 142,
        dash: "4 4",
        marker: Marker::Diamond,
    },
    Display {
        kind: "webrtc",
        name: "WebRTC",
        about: "",
        light: "#b0203c",
        dark: "#ff8f9b",
        ansi: 168,
        dash: "3 1.5",
        marker: Marker::Cross,
    },
    Display {
        kind: "mptcp",
        name: "MPTCP",
        about: "Multipath TCP, Nagle's algorithm on",
        light: "#7b3fa0",
        dark: "#c792ea",
        ansi: 97,
        dash: "7 3 2 3",
        marker: Marker::Square,
    },
    Display {
        kind: "mptcp-nodelay",
        name: "MPTCP_NODELAY",
        about: "Multipath TCP with Nagle's algorithm off",
        light: "#4d6600",
        dark: "#b5cc5a",
        ansi: 64,
        dash: "2 2.5 6 2.5",
        marker: Marker::Triangle,
    },
];

/// A transport that this table does not know yet; its name is shown unchanged.
static FALLBACK: Display = Display {
    kind: "other",
    name: "",
    about: "",
    light: "#5d6470",
    dark: "#a9b1bd",
    ansi: 245,
    dash: "6 2 2 2",
    marker: Marker::Circle,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_stands_out_three_to_one_on_its_background() {
        for display in all() {
            for (colour, background) in [(display.light, LIGHT_BACKGROUND), (display.dark, DARK_BACKGROUND)] {
                let contrast = contrast(colour, background);
                assert!(contrast >= 3.0, "{} {colour} on {background}: {contrast:.2}", display.kind);
            }
        }
    }

    #[test]
    fn the_three_transports_of_a_comparison_stay_apart_for_deuteranopes() {
        let kinds = ["udp", "tcp", "tcp-nodelay"];
        for (index, a) in kinds.iter().enumerate() {
            for b in &kinds[..index] {
                for pick in [|d: &Display| d.light, |d: &Display| d.dark] {
                    let apart = deuteranope_distance(pick(display(a)), pick(display(b)));
                    // A fifth of the distance from black to white can be distinguished in thin lines.
                    assert!(apart > 0.2, "{a} against {b}: {apart:.2}");
                }
            }
        }
    }

    #[test]
    fn contrast_of_black_on_white_is_the_standards_twenty_one() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    }

    #[test]
    fn lines_of_one_transport_differ_in_dash_and_keep_the_colour() {
        let looks = [0, 1, 2, 3].map(|variant| Look { display: display("tcp"), variant });
        for (index, a) in looks.iter().enumerate() {
            assert_eq!(a.display.light, display("tcp").light);
            assert!(looks[..index].iter().all(|b| a.dash() != b.dash()), "{a:?}");
        }
    }

    /// `quic` is one of the three below it.
    #[test]
    fn every_transport_of_a_scenario_has_looks_and_every_queue_a_name() {
        let names = talkpath_scenario::transport_names();
        for name in names.into_iter().filter(|name| *name != "quic") {
            assert_eq!(display(name).kind, name);
        }
        for queue in talkpath_path::QueueName::ALL {
            assert!(DISCIPLINES.iter().any(|(word, _)| *word == queue.word()), "{queue:?}");
        }
    }

    #[test]
    fn an_unknown_transport_has_looks() {
        assert_eq!(display("carrier-pigeon").kind, "other");
        assert_eq!(display("tcp").name, "TCP");
        assert_eq!(display("tcp_nodelay").name, "TCP_NODELAY");
    }

    /// WCAG 2.2, "contrast ratio".
    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// WCAG 2.2, "relative luminance".
    fn luminance(hex: &str) -> f64 {
        let [r, g, b] = linear(hex);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Distance in gamma-encoded RGB after the deuteranopia of Viénot, Brettel and Mollon (1999), in which
    /// black to white is the square root of 3.
    fn deuteranope_distance(a: &str, b: &str) -> f64 {
        let seen = |hex: &str| {
            let [r, g, b] = linear(hex);
            let red_green = 0.29275 * r + 0.70725 * g;
            let blue = (-0.02234 * r + 0.02234 * g + b).clamp(0.0, 1.0);
            [red_green, red_green, blue].map(|value| value.powf(1.0 / 2.2))
        };
        seen(a).iter().zip(seen(b)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    }
}
