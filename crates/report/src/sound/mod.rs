//! The sounds of `listen`: those of a call over each transport, or of each call of a capture, one below the
//! other. They have a page of their own, or a section in the page of their run.
//!
//! The page has each sound as a WAV file in itself, and below it the waveform. Its script (`sound.js`) moves
//! a mark over the waveform and jumps to where the reader points. Without JavaScript the sounds play all the
//! same.

mod page;

use core::fmt::Write as _;

use base64ct::{Base64, Encoding as _};
use maud::{Markup, PreEscaped, html};

use crate::display::display;

pub use self::page::sound_page;

/// The sounds of a page.
#[derive(Clone, Debug, Default)]
pub struct Sounds {
    /// The line above the sounds: what the speaker reads, and what of it is played.
    pub about: String,
    /// The sounds, in the order in which they are shown.
    pub sounds: Vec<PageSound>,
}

/// A sound on the page.
#[derive(Clone, Debug, Default)]
pub struct PageSound {
    /// The transport, as the user wrote it. `None` of a call that was captured.
    pub transport: Option<String>,
    /// The flow of the call.
    pub flow: String,
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

/// The sounds as the body of a section of another page.
pub(crate) fn sound_section(sounds: &Sounds) -> Markup {
    html! {
        p.about { (sounds.about) }
        (players(sounds, |name| html! { h3 { (name) } }))
    }
}

/// The sounds with their waveforms, below headings that `heading` makes.
fn players(sounds: &Sounds, heading: fn(&str) -> Markup) -> Markup {
    html! {
        style { (PreEscaped(include_str!("sound.css"))) }
        (legend())
        @for (index, sound) in sounds.sounds.iter().enumerate() { (player(index, sound, heading)) }
        p.about {
            "Play one sound, and then another one: it begins at the same moment of the call. A click into a waveform jumps there."
        }
    }
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

fn player(index: usize, sound: &PageSound, heading: fn(&str) -> Markup) -> Markup {
    let id = format!("sound-{index}");
    let name = sound.transport.as_deref().map_or(sound.flow.as_str(), |transport| display(transport).name);
    html! {
        section.sound id=(id) data-seconds=(sound.seconds) {
            (heading(name))
            p.about { (sound.about) }
            audio controls="controls" preload="metadata" aria-label={ "the sound of " (name) }
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
            title id={ (id) "-title" } { "Waveform of " (name) ": " (summary) }
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
    use crate::fixture;

    fn sounds() -> Sounds {
        let column = |heard| SoundColumn { extent: (-0.5, 0.25), heard };
        let [speech, made_up] = [ColumnHeard::Speech, ColumnHeard::MadeUp].map(column);
        let sound = PageSound {
            transport: Some("udp".to_owned()),
            flow: "call".to_owned(),
            about: "1 s: <half> made up".to_owned(),
            wav: b"RIFF, and so on".to_vec(),
            seconds: 1.0,
            columns: vec![speech, made_up, made_up, speech, column(ColumnHeard::Stretched)],
        };
        let sounds = vec![sound.clone(), PageSound { transport: None, ..sound }];
        Sounds { about: "of it".to_owned(), sounds }
    }

    fn parse(text: &str) -> roxmltree::Document<'_> {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        roxmltree::Document::parse_with_options(text, options).unwrap()
    }

    #[test]
    fn the_page_is_xml_has_each_sound_in_itself_and_loads_nothing() {
        let text = sound_page("a & b", &sounds(), "0");
        let document = parse(&text);
        let sources: Vec<&str> = document.descendants().filter_map(|node| node.attribute("src")).collect();
        assert_eq!(sources, ["data:audio/wav;base64,UklGRiwgYW5kIHNvIG9u"; 2]);
        assert_eq!(text.matches("http").count(), text.matches("http://www.w3.org/2000/svg").count());
        assert!(!text.contains("href="));
        assert!(text.contains("<h2>UDP</h2>") && text.contains("<h2>call</h2>"));
    }

    #[test]
    fn the_page_of_a_run_has_the_sounds_that_were_listened_to() {
        let summary = fixture::summary(1);
        let page = |sounds| {
            let figures = fixture::figures();
            let page = crate::Page {
                summary: &summary,
                chart_data: &figures,
                scenario_toml: fixture::SCENARIO,
                command: "",
                changes: &[],
                network: None,
                sounds,
            };
            crate::html(&page)
        };
        assert!(!page(None).contains("<audio"), "nobody has listened to it");
        let sounds = sounds();
        let text = page(Some(&sounds));
        let document = parse(&text);
        let section = document.descendants().find(|node| node.attribute("id") == Some("sound")).unwrap();
        let audios = section.descendants().filter(|node| node.has_tag_name("audio"));
        assert!(audios.count() == 2 && text.contains("<a href=\"#sound\">"), "{text}");
        assert_eq!(text.matches("<script").count(), 1);
    }

    #[test]
    fn a_band_lies_behind_each_part_that_is_not_speech_of_packets() {
        let columns = &sounds().sounds[0].columns;
        assert_eq!(bands(columns), [(ColumnHeard::MadeUp, 1, 3), (ColumnHeard::Stretched, 4, 5)]);
        assert!(outline(columns).starts_with("M0.5 45.0V90.0M1.5"));
    }
}
