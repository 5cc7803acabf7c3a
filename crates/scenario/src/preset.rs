//! Path presets: the files under `scenarios/paths/`, built in. Each is the content of a `[path]` table.

use crate::spec::is_same_word;

/// A named path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name for `path = "NAME"` and `--path NAME`.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The TOML of its `up` and `down`.
    pub text: &'static str,
}

/// Returns all presets, in the order of the documentation.
pub const fn presets() -> &'static [Preset] {
    PRESETS
}

/// Returns the preset called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| is_same_word(preset.name, name))
}

macro_rules! preset_file {
    ($name:literal, $summary:literal) => {
        Preset {
            name: $name,
            summary: $summary,
            text: include_str!(concat!("../../../scenarios/paths/", $name, ".toml")),
        }
    };
}

const PRESETS: &[Preset] = &[
    preset_file!("lan", "switched gigabit Ethernet in one building"),
    preset_file!("home-adsl", "ADSL at home: 1 Mbps up, 8 Mbps down, 40 ms round trip"),
    preset_file!("home-adsl-fq", "home-adsl with FQ-CoDel on the uplink"),
    preset_file!("home-cable", "cable modem at home: 20 Mbps up, 200 Mbps down, 24 ms round trip"),
    preset_file!("home-cable-fq", "home-cable with FQ-CoDel on the uplink"),
    preset_file!("wifi-busy", "2.4 GHz Wi-Fi that the neighbours use too"),
    preset_file!("lte", "a phone on LTE, standing still"),
    preset_file!("starlink", "a low-orbit satellite terminal"),
    preset_file!("geo-satellite", "a geostationary satellite terminal: 600 ms round trip"),
    preset_file!("transatlantic", "two data centres, London and New York"),
];
