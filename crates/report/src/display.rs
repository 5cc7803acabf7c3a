//! The appearance of each transport in every output: name, colours, dash and marker.
//!
//! The colours began as the palette of Okabe and Ito ("Color Universal Design", 2002), whose colours differ
//! for people with the common forms of colour blindness. We darkened each hue for the light page, and
//! lightened it for the dark page, until it had a contrast of 3:1 with its background, as WCAG 2.2 §1.4.11
//! asks. A test computes the contrast. Dash and marker also tell transports apart, for print and for people
//! who see no colours.
//!
//! Begin to read with [`Display`], and then with [`Look`].

/// The page's background in the light theme.
pub(crate) const LIGHT_BACKGROUND: &str = "#ffffff";
/// The page's background in the dark theme.
pub(crate) const DARK_BACKGROUND: &str = "#15181d";

/// The appearance of one transport.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Display {
    /// The transport's name in scenarios and summaries. Multipath TCP is an option of TCP there, so it has a
    /// name of our own.
    pub kind: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// A remark for readers who do not know the transport. Empty if the name says enough.
    pub about: &'static str,
    /// The colour on the light page, `#rrggbb`.
    pub light: &'static str,
    /// The colour on the dark page, `#rrggbb`.
    pub dark: &'static str,
    /// The nearest of the terminal's 256 colours that is readable on black and on white.
    pub ansi: u8,
    /// The SVG attribute `stroke-dasharray`.
    pub dash: &'static str,
    pub marker: Marker,
}

/// The shape of the points on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// The look of one line in a chart. Lines of one transport have one colour, but different dashes and markers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub display: &'static Display,
    /// The number of the line among those of its transport, from 0.
    pub variant: usize,
}

/// The appearance of the transport `kind`, which may have hyphens or underscores. Transports that are not
/// known share one appearance.
pub(crate) fn display(kind: &str) -> &'static Display {
    let kind = match kind {
        "icmpv6" => "icmp".to_owned(),
        kind => kind.replace('_', "-"),
    };
    TRANSPORTS.iter().find(|display| display.kind == kind).unwrap_or(&FALLBACK)
}

/// The appearance of the transport `kind` with its option for Multipath TCP (RFC 8684). Returns `None` if the
/// transport does not have this option.
pub(crate) fn multipath(kind: &str) -> Option<&'static Display> {
    match kind.replace('_', "-").as_str() {
        "tcp" => Some(display("mptcp")),
        "tcp-nodelay" => Some(display("mptcp-nodelay")),
        _ => None,
    }
}

/// The appearance of the transport whose name for people is `name`.
pub(crate) fn named(name: &str) -> Option<&'static Display> {
    TRANSPORTS.iter().find(|display| display.name == name)
}

/// All appearances.
pub(crate) fn all() -> impl Iterator<Item = &'static Display> {
    TRANSPORTS.iter().chain([&FALLBACK])
}

impl Look {
    /// The colour as a variable of the style sheet, which has a value in each theme.
    pub(crate) fn colour(self) -> String {
        format!("var(--t-{})", self.display.kind)
    }

    pub(crate) fn line_style(self) -> String {
        format!("stroke:{};stroke-dasharray:{}", self.colour(), self.dash())
    }

    /// The `style` attribute of a marker, a bar or a text.
    pub(crate) fn fill_style(self) -> String {
        format!("fill:{}", self.colour())
    }

    /// The SVG attribute `stroke-dasharray`.
    pub(crate) fn dash(self) -> &'static str {
        self.dash_and_marker().dash
    }

    pub(crate) fn marker(self) -> Marker {
        self.dash_and_marker().marker
    }

    /// The transport that the dash and the marker are from. The first line has those of its own transport.
    /// Each further line has those of the next transport in the table.
    fn dash_and_marker(self) -> &'static Display {
        if self.variant == 0 {
            return self.display;
        }
        let own_index = TRANSPORTS.iter().position(|display| display.kind == self.display.kind).unwrap_or(0);
        &TRANSPORTS[(own_index + self.variant) % TRANSPORTS.len()]
    }
}

impl From<&'static Display> for Look {
    fn from(display: &'static Display) -> Self {
        Self { display, variant: 0 }
    }
}

/// The name of a queueing discipline for people. A discipline that is not known keeps its word.
pub(crate) fn discipline(word: &str) -> &str {
    DISCIPLINES.iter().find(|discipline| discipline.word == word).map_or(word, |discipline| discipline.name)
}

/// A queueing discipline.
struct Discipline {
    /// The word in scenarios and summaries.
    word: &'static str,
    /// The name for people.
    name: &'static str,
}

static DISCIPLINES: [Discipline; 6] = [
    Discipline { word: "drop-tail", name: "drop-tail" },
    Discipline { word: "codel", name: "CoDel" },
    Discipline { word: "fq_codel", name: "FQ-CoDel" },
    Discipline { word: "fq", name: "fair queueing" },
    Discipline { word: "priority", name: "strict priority" },
    Discipline { word: "drr", name: "DRR" },
];

/// The known transports. [`Look`] depends on their order.
static TRANSPORTS: [Display; 14] = [
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
    Display {
        kind: "icmp",
        name: "ICMP",
        about: "as ping sends it",
        light: "#a3157a",
        dark: "#f38fd3",
        ansi: 163,
        dash: "1 2",
        marker: Marker::Diamond,
    },
];

/// The appearance of transports that are not in the table. Their names are shown unchanged.
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
    fn every_colour_has_a_contrast_of_three_to_one_with_its_background() {
        for display in all() {
            for (colour, background) in [(display.light, LIGHT_BACKGROUND), (display.dark, DARK_BACKGROUND)] {
                let contrast = contrast(colour, background);
                assert!(contrast >= 3.0, "{} {colour} on {background}: {contrast:.2}", display.kind);
            }
        }
    }

    #[test]
    fn the_three_transports_of_a_comparison_differ_for_people_with_deuteranopia() {
        let kinds = ["udp", "tcp", "tcp-nodelay"];
        for (index, a) in kinds.iter().enumerate() {
            for b in &kinds[..index] {
                for colour_of in [|d: &Display| d.light, |d: &Display| d.dark] {
                    let distance = deuteranope_distance(colour_of(display(a)), colour_of(display(b)));
                    // A fifth of the distance from black to white can be distinguished in thin lines.
                    assert!(distance > 0.2, "{a} against {b}: {distance:.2}");
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

    #[test]
    fn every_transport_of_a_scenario_has_an_appearance_and_every_queue_a_name() {
        // `quic` is the family of three transports that have names of their own.
        let names = talkpath_scenario::transport_names();
        for name in names.into_iter().filter(|name| *name != "quic") {
            assert_eq!(display(name).kind, name);
        }
        for queue in talkpath_path::QueueName::ALL {
            assert!(DISCIPLINES.iter().any(|discipline| discipline.word == queue.word()), "{queue:?}");
        }
    }

    #[test]
    fn an_unknown_transport_has_an_appearance() {
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
        [1, 3, 5].map(|start| {
            let value = f64::from(u8::from_str_radix(&hex[start..start + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// The distance of two colours in gamma-encoded RGB, after the model of deuteranopia by Viénot, Brettel
    /// and Mollon (1999). The distance from black to white is the square root of 3.
    fn deuteranope_distance(a: &str, b: &str) -> f64 {
        let perceived = |hex: &str| {
            let [r, g, b] = linear(hex);
            let red_green = 0.29275 * r + 0.70725 * g;
            let blue = (-0.02234 * r + 0.02234 * g + b).clamp(0.0, 1.0);
            [red_green, red_green, blue].map(|value| value.powf(1.0 / 2.2))
        };
        perceived(a).iter().zip(perceived(b)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    }
}
