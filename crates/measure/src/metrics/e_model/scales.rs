//! The scales of wideband and full-band speech: ITU-T G.107.1 (06/2019) and G.107.2 (03/2023).
//!
//! ```text
//!  R = Ro - Id - Ie,eff        Ro is 129 on the wide scale and 148 on the full one
//!  MOS = that of G.107, Annex B, for R / 1.29 or R / 1.48
//! ```
//!
//! Both models leave out what they do not yet cover, so Is and A are 0. Super-wideband speech is rated on the
//! full scale. Scores of two scales are not comparable: G.711 has an R of 93.2 on its own scale, and would
//! begin near 93 of 129 on the wide one.
//!
//! Departures, and what we could not read:
//!
//! - Echo is taken as cancelled, so Id is the impairment by the delay alone. With the default echo losses of
//!   the recommendations nothing else remains.
//! - The delay impairs by the curve of G.107, stretched as the scale is. rtpengine's implementation of
//!   G.107.2 does so (`daemon/ssrc.c`), and the tests compare with it. We found no text and no implementation
//!   that says it of G.107.1. Without the stretch the wide scale would be more lenient, by 22 % of Id.
//! - The models have no burst ratio. A coding with a Bpl for bursts has it from a burst ratio of
//!   [`FULLY_BURSTY`] on; below, Bpl lies on the line between its two values. Both take losses in bursts into
//!   account once.

use talkpath_config::{Impairment, Rated, Scale};

use super::{Call, Inputs, Rating, effective_equipment_impairment, mos};

/// The constants of a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleRow {
    /// The name of the recommendation.
    pub recommendation: &'static str,
    /// The speech that the scale is for.
    pub speech: &'static str,
    /// The best rating factor, without any impairment.
    pub best: f64,
    /// Ro over that of G.107's scale of 100.
    pub stretch: f64,
    /// The impairment that total loss comes to.
    pub most_impairment: f64,
}

/// Returns the constants of a scale.
pub const fn scale_row(scale: Scale) -> ScaleRow {
    match scale {
        Scale::Narrow => ScaleRow {
            recommendation: "ITU-T G.107, 06/2015",
            speech: "narrowband",
            best: 93.2,
            stretch: 1.0,
            most_impairment: 95.0,
        },
        // Ro: §7.2. 95: eq. 7-15, as sipnab's implementation says. 1.29: Annex A.
        Scale::Wide => ScaleRow {
            recommendation: "ITU-T G.107.1, 06/2019",
            speech: "wideband",
            best: 129.0,
            stretch: 1.29,
            most_impairment: 95.0,
        },
        // As rtpengine's implementation says.
        Scale::SuperWide => ScaleRow { speech: "super-wideband", ..scale_row(Scale::Full) },
        Scale::Full => ScaleRow {
            recommendation: "ITU-T G.107.2, 03/2023",
            speech: "full band",
            best: 148.0,
            stretch: 1.48,
            most_impairment: 132.0,
        },
    }
}

/// Rates a call on the wide or the full scale.
pub(super) fn rate(call: &Call) -> Rating {
    let row = scale_row(call.codec.scale);
    let delay = Inputs { delay_ms: call.mouth_to_ear_ms, ..Inputs::default() };
    let id = row.stretch * delay.delay_impairment();
    let ie_eff = codec_impairment(call);
    let r = row.best - id - ie_eff;
    let r = if call.loss >= 1.0 { 0.0 } else { r.max(0.0) };
    Rating { r, mos: mos(r / row.stretch), id, ie_eff }
}

/// Returns Ie,eff of the call's scale. The burst ratio is used as it is.
pub(super) fn codec_impairment(call: &Call) -> f64 {
    let Rated { scale, impairment, bursty_bpl, .. } = call.codec;
    let most = scale_row(scale).most_impairment;
    let Some(bursty_bpl) = bursty_bpl else {
        return effective_equipment_impairment(impairment, call.loss, call.burst_ratio, most);
    };
    let share = ((call.burst_ratio - 1.0) / (FULLY_BURSTY - 1.0)).clamp(0.0, 1.0);
    let bpl = impairment.bpl + share * (bursty_bpl - impairment.bpl);
    let impairment = Impairment { bpl, ..impairment };
    effective_equipment_impairment(impairment, call.loss, 1.0, most)
}

/// The burst ratio from which on Bpl is that for bursts. We chose 2, the end of BurstR's range in G.107
/// (03/2005).
pub const FULLY_BURSTY: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::e_model::tests::{assert_close, rated};

    fn call(scale: Scale, ie: f64, bpl: f64) -> Call {
        Call { mouth_to_ear_ms: 0.0, loss: 0.0, burst_ratio: 1.0, codec: Rated { scale, ..rated(ie, bpl) } }
    }

    /// The points of sipnab's tests (`src/rtp/emodel_wb.rs`, commit 3141f383): AMR-WB without loss, and at
    /// 12.65 kb/s with 2 % of loss. It is an implementation of G.107.1 by others, without delay.
    #[test]
    fn the_wide_scale_has_the_scores_of_an_independent_implementation() {
        for (ie, score) in
            [(0.0, 4.5), (1.0, 4.494), (8.0, 4.4206), (13.0, 4.3371), (41.0, 3.5123), (56.0, 2.922)]
        {
            assert_close("MOS", call(Scale::Wide, ie, 4.3).rate().mos, score, 5e-5);
        }
        let lossy = Call { loss: 0.02, ..call(Scale::Wide, 20.0, 4.3) }.rate();
        assert_close("Ie,eff", lossy.ie_eff, 43.8095, 1e-4);
        assert_close("MOS", lossy.mos, 3.4062, 5e-5);
    }

    /// R by rtpengine's `mos_calc_fb` (`daemon/ssrc.c`, commit e8b82121), compiled and run on 2026-11-29 for
    /// its codec (Ie 10.2, Bpl 4.3): delay in ms, loss in per cent, R.
    const RTPENGINE: [(f64, f64, f64); 15] = [
        (1.0, 0.0, 137.8),
        (1.0, 1.0, 114.8189),
        (1.0, 3.0, 87.7452),
        (1.0, 10.0, 52.6252),
        (100.0, 5.0, 72.3161),
        (150.0, 0.0, 137.558),
        (150.0, 1.0, 114.5768),
        (150.0, 10.0, 52.3831),
        (200.0, 0.0, 133.2943),
        (200.0, 3.0, 83.2395),
        (300.0, 0.0, 115.9542),
        (300.0, 1.0, 92.973),
        (300.0, 5.0, 50.4703),
        (400.0, 0.0, 102.1763),
        (400.0, 10.0, 17.0014),
    ];

    #[test]
    fn the_full_scale_has_the_ratings_of_an_independent_implementation() {
        for (mouth_to_ear_ms, percent, r) in RTPENGINE {
            let call = Call { mouth_to_ear_ms, loss: percent / 100.0, ..call(Scale::Full, 10.2, 4.3) };
            assert_close("R", call.rate().r, r, 5e-5);
        }
        assert_close("MOS", call(Scale::SuperWide, 0.0, 4.3).rate().mos, 4.5, 1e-9);
    }

    #[test]
    fn losses_in_bursts_have_the_bpl_for_bursts_and_are_not_counted_a_second_time() {
        let opus = |burst_ratio| {
            let codec = Rated { bursty_bpl: Some(8.0), scale: Scale::SuperWide, ..rated(10.0, 10.0) };
            Call { loss: 0.05, burst_ratio, codec, ..call(Scale::SuperWide, 10.0, 10.0) }.rate().ie_eff
        };
        assert_close("random", opus(1.0), 10.0 + 122.0 * 5.0 / 15.0, 1e-9);
        assert_close("halfway", opus(1.5), 10.0 + 122.0 * 5.0 / 14.0, 1e-9);
        assert_close("bursts", opus(2.0), 10.0 + 122.0 * 5.0 / 13.0, 1e-9);
        assert_close("longer bursts", opus(8.0), opus(2.0), 1e-9);
    }

    #[test]
    fn a_call_of_which_all_is_lost_has_the_least_score_on_each_scale() {
        for scale in Scale::ALL {
            let dead = Call { loss: 1.0, ..call(scale, 10.0, 10.0) }.rate();
            assert_eq!((dead.r.to_bits(), dead.mos.to_bits()), (0_f64.to_bits(), 1_f64.to_bits()));
        }
    }
}
