//! The page of `listen`: it plays the sound of a call over each transport, one below the other.
//!
//! The page has each sound as a WAV file in itself, and below it the waveform. Its script moves a mark over
//! the waveform and jumps to where the reader points. Without JavaScript the sounds play all the same.

use core::fmt::Write as _;

use base64ct::{Base64, Encoding as _};
use maud::{Markup, PreEscaped, html};

use crate::display::display;
use crate::html::document;

/// What the page shows.
#[derive(Clone, Debug, Default)]
pub struct SoundPage {
    /// The title.
    pub title: String,
    /// The line below the title: what the speaker reads, and what of it is played.
    pub about: String,
    /// The sounds, in the order in which they are shown.
    pub sounds: Vec<PageSound>,
}

/// A sound on the page.
#[derive(Clone, Debug, Default)]
pub struct PageSound {
    /// The transport, as the user wrote it.
    pub transport: String,
    /// What is heard, as a line below the heading.
    pub about: String,
    /// The sound as a WAV file.
    pub wav: Vec<u8>,
    /// The length in seconds.
    pub seconds: f64,
    /// The waveform from left to right. Each column is equally long.
    pub columns: Vec<SoundColumn>,
}

/// A column of a waveform.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SoundColumn {
    /// The smallest and the largest sample, from -1 to 1.
    pub extent: (f32, f32),
    /// What is heard in the column. It is the worst of its samples.
    pub heard: ColumnHeard,
}

/// What is heard in a column, from the best to the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnHeard {
    /// The speech of packets.
    #[default]
    Speech,
    /// Speech that was made longer or shorter.
    Stretched,
    /// Speech that was made up in place of missing speech.
    MadeUp,
    /// Nothing, because no speech had arrived.
    Nothing,
}

impl ColumnHeard {
    const COLOURED: [Self; 3] = [Self::MadeUp, Self::Stretched, Self::Nothing];

    /// The class of its colour in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Speech => "speech",
            Self::Stretched => "stretched",
            Self::MadeUp => "made-up",
            Self::Nothing => "nothing",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Speech => "speech of packets",
            Self::Stretched => "made longer or shorter by a pitch period",
            Self::MadeUp => "missing or late, and made up",
            Self::Nothing => "before the first speech that arrived",
        }
    }
}

/// The height of a waveform in SVG units. A column is one unit wide.
const HEIGHT: f64 = 120.0;

/// Writes the page. It loads no other file. `talkpath` is the version of the program.
pub fn sound_page(page: &SoundPage, talkpath: &str) -> String {
    let main = html! {
        style { (PreEscaped(include_str!("sound.css"))) }
        (legend())
        @for (index, sound) in page.sounds.iter().enumerate() { (sound_section(index, sound)) }
        p.about {
            "Play one sound, and then another one: it begins at the same moment of the call. A click into a waveform jumps there."
        }
        script { (PreEscaped(concat!("//<![CDATA[\n", include_str!("sound.js"), "//]]>"))) }
    };
    document(&page.title, &page.about, &main, talkpath)
}

fn legend() -> Markup {
    html! {
        ul.legend {
            @for heard in ColumnHeard::COLOURED {
                li { span.swatch.{ "heard-" (heard.class()) } {} (heard.meaning()) }
            }
        }
    }
}

fn sound_section(index: usize, sound: &PageSound) -> Markup {
    let id = format!("sound-{index}");
    let name = display(&sound.transport).name;
    html! {
        section.sound id=(id) data-seconds=(sound.seconds) {
            h2 { (name) }
            p.about { (sound.about) }
            audio controls="controls" preload="metadata" aria-label={ "the call over " (name) }
                src={ "data:audio/wav;base64," (Base64::encode_string(&sound.wav)) } {}
            (waveform(&id, name, sound))
        }
    }
}

/// Draws the waveform, with a band of colour behind each part that is not speech of packets.
fn waveform(id: &str, name: &str, sound: &PageSound) -> Markup {
    let width = sound.columns.len().max(1);
    let summary = format!("{:.1} s of sound. {}", sound.seconds, sound.about);
    html! {
        svg.waveform viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img"
            aria-labelledby={ (id) "-title" } xmlns="http://www.w3.org/2000/svg" {
            title id={ (id) "-title" } { "Waveform over " (name) ": " (summary) }
            @for (heard, from, to) in bands(&sound.columns) {
                rect.{ "heard-" (heard.class()) } x=(from) y="0" width=(to - from) height=(HEIGHT) {}
            }
            path.wave d=(outline(&sound.columns)) {}
            line.mark x1="0" x2="0" y1="0" y2=(HEIGHT) {}
        }
    }
}

/// The columns that follow each other and are alike, but for speech: what is heard, the first column, and
/// the one after the last.
fn bands(columns: &[SoundColumn]) -> Vec<(ColumnHeard, usize, usize)> {
    let mut bands: Vec<(ColumnHeard, usize, usize)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        match bands.last_mut() {
            Some((heard, _, to)) if *heard == column.heard && *to == at => *to = at + 1,
            _ if column.heard == ColumnHeard::Speech => {}
            _ => bands.push((column.heard, at, at + 1)),
        }
    }
    bands
}

/// The waveform as a path: a vertical line for each column.
fn outline(columns: &[SoundColumn]) -> String {
    let y = |value: f32| HEIGHT / 2.0 * (1.0 - f64::from(value));
    let mut path = String::new();
    for (at, SoundColumn { extent: (low, high), .. }) in columns.iter().enumerate() {
        // A line of no length would not be drawn.
        let bottom = (y(*low)).max(y(*high) + 0.5);
        let _ = write!(path, "M{at}.5 {:.1}V{bottom:.1}", y(*high));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> SoundPage {
        let column = |heard| SoundColumn { extent: (-0.5, 0.25), heard };
        let [speech, made_up] = [ColumnHeard::Speech, ColumnHeard::MadeUp].map(column);
        let sound = PageSound {
            transport: "udp".to_owned(),
            about: "1 s: <half> made up".to_owned(),
            wav: b"RIFF, and so on".to_vec(),
            seconds: 1.0,
            columns: vec![speech, made_up, made_up, speech, column(ColumnHeard::Stretched)],
        };
        let sounds = vec![sound.clone(), PageSound { transport: "tcp".to_owned(), ..sound }];
        SoundPage { title: "a & b".to_owned(), about: "of it".to_owned(), sounds }
    }

    #[test]
    fn the_page_is_xml_has_each_sound_in_itself_and_loads_nothing() {
        let text = sound_page(&page(), "0");
        let document = roxmltree::Document::parse_with_options(
            &text,
            roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() },
        )
        .unwrap();
        let sources: Vec<&str> = document.descendants().filter_map(|node| node.attribute("src")).collect();
        assert_eq!(sources, ["data:audio/wav;base64,UklGRiwgYW5kIHNvIG9u"; 2]);
        assert_eq!(text.matches("http").count(), text.matches("http://www.w3.org/2000/svg").count());
        assert!(!text.contains("href="));
    }

    #[test]
    fn a_band_lies_behind_each_part_that_is_not_speech_of_packets() {
        let columns = &page().sounds[0].columns;
        assert_eq!(bands(columns), [(ColumnHeard::MadeUp, 1, 3), (ColumnHeard::Stretched, 4, 5)]);
        assert!(outline(columns).starts_with("M0.5 45.0V90.0M1.5"));
    }
}
