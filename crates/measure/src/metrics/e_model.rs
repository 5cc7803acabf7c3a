//! The E-model predicts how people rate a telephone connection over which they talk. This is ITU-T G.107
//! (06/2015) for narrowband, in full. The scales of wider speech are in `scales`.
//!
//! ```text
//!  R = Ro - Is - Id - Ie,eff + A      (7-1)      MOS follows from R (Annex B)
//!      │    │    │     │       └ advantage of access
//!      │    │    │     └ codec and loss
//!      │    │    └ talker echo, listener echo, delay
//!      │    └ loudness, sidetone and quantising, which arise together with the speech
//!      └ signal to noise
//! ```
//!
//! A packet network changes three inputs ([`Call`]): the delay from mouth to ear, the share of frames that
//! are not played, and whether these frames come in bursts. The other inputs ([`Inputs`]) are those of two
//! digital telephones, and keep the defaults of Table 2.
//!
//! Table 2 also permits a range for each input. A call outside these ranges is rated nevertheless, and
//! [`Call::outside`] reports the inputs:
//!
//! - The burst ratio is cut at the end of its range. Ie,eff grows with it without a limit, so one gap in a
//!   long call would be rated below a call in which nothing is heard.
//! - Loss and delay are used as they are, because more loss or delay is never better.
//! - R is at least 0, and it is 0 if all frames are lost. We chose this, so that no call is rated below a
//!   call without speech. MOS is 1 for R = 0 and below (Annex B).
//!
//! Begin to read with [`Call::rate`].

mod scales;

use talkpath_config::{Impairment, Rated, Scale};

use crate::summary::{ModelInput, OutsideModel};
pub use scales::{FULLY_BURSTY, ScaleRow, scale_row};

/// The inputs that the network and the playout change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// The delay from mouth to ear, ms.
    pub mouth_to_ear_ms: f64,
    /// The share of the frames that are not played, 0 to 1.
    pub loss: f64,
    /// The mean length of the runs of lost frames, divided by the mean length if frames were lost at random
    /// (§7.5). It is 1 for random losses, and larger for bursts.
    pub burst_ratio: f64,
    /// How much the codec impairs the speech, and on which scale.
    pub codec: Rated,
}

/// The rating of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// The transmission rating factor. It can be above 100. The factor of a [`Call`] is at least 0.
    pub r: f64,
    /// The estimated mean opinion score of a conversation, 1 to 4.5, on the scale of the codec.
    pub mos: f64,
    /// Id: by how much echo and delay lower R.
    pub id: f64,
    /// Ie,eff: by how much the codec and losses lower R.
    pub ie_eff: f64,
}

/// The inputs that a packet network does not change, with the symbols of Table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs {
    /// SLR: send loudness rating, dB.
    pub send_loudness: f64,
    /// RLR: receive loudness rating, dB.
    pub receive_loudness: f64,
    /// STMR: sidetone masking rating, dB.
    pub sidetone: f64,
    /// Ds: D-factor of the sending telephone.
    pub send_d_factor: f64,
    /// Dr: D-factor of the receiving telephone.
    pub receive_d_factor: f64,
    /// TELR: talker echo loudness rating, dB.
    pub talker_echo: f64,
    /// WEPL: weighted echo path loss, dB.
    pub echo_path_loss: f64,
    /// T: mean one-way delay of the echo path, ms.
    pub echo_delay_ms: f64,
    /// Tr: round-trip delay in the four-wire loop, ms.
    pub loop_delay_ms: f64,
    /// Ta: absolute delay from mouth to ear, ms.
    pub delay_ms: f64,
    /// qdu: quantising distortion units.
    pub quantising: f64,
    /// Nc: circuit noise referred to the 0 dBr point, dBm0p.
    pub circuit_noise: f64,
    /// Nfor: noise floor at the receiving side, dBmp.
    pub noise_floor: f64,
    /// Ps: room noise at the sending side, dB(A).
    pub send_room_noise: f64,
    /// Pr: room noise at the receiving side, dB(A).
    pub receive_room_noise: f64,
    /// A: advantage factor.
    pub advantage: f64,
    /// mT: the largest delay that nobody perceives, ms (Table 2, "minimal perceivable delay").
    pub unperceived_delay_ms: f64,
    /// sT: delay sensitivity.
    pub delay_sensitivity: f64,
}

impl Default for Inputs {
    /// Returns the defaults of Table 2.
    fn default() -> Self {
        Self {
            send_loudness: 8.0,
            receive_loudness: 2.0,
            sidetone: 15.0,
            send_d_factor: 3.0,
            receive_d_factor: 3.0,
            talker_echo: 65.0,
            echo_path_loss: 110.0,
            echo_delay_ms: 0.0,
            loop_delay_ms: 0.0,
            delay_ms: 0.0,
            quantising: 1.0,
            circuit_noise: -70.0,
            noise_floor: -64.0,
            send_room_noise: 35.0,
            receive_room_noise: 35.0,
            advantage: 0.0,
            unperceived_delay_ms: 100.0,
            delay_sensitivity: 1.0,
        }
    }
}

impl Call {
    /// Rates this call between two telephones with the default [`Inputs`]. All delay is between the two
    /// telephones, so T = Ta and Tr = 2 T (§7.4). The documentation of the module says what happens outside
    /// the ranges of Table 2.
    pub fn rate(&self) -> Rating {
        match self.codec.scale {
            Scale::Narrow => self.rate_narrowband(),
            Scale::Wide | Scale::SuperWide | Scale::Full => scales::rate(self),
        }
    }

    fn rate_narrowband(&self) -> Rating {
        let delay_ms = self.mouth_to_ear_ms;
        let inputs =
            Inputs { echo_delay_ms: delay_ms, loop_delay_ms: 2.0 * delay_ms, delay_ms, ..Inputs::default() };
        let (smallest, largest) = BURST_RATIO;
        let burst_ratio = self.burst_ratio.clamp(smallest, largest);
        let rating = inputs.rate_with(scales::codec_impairment(&Self { burst_ratio, ..*self }));
        let r = if self.loss >= 1.0 { 0.0 } else { rating.r.max(0.0) };
        Rating { r, mos: mos(r), ..rating }
    }

    /// Whether the delay or the loss lies beyond its range. The rating of such a call is worse than the model
    /// can say.
    pub fn is_beyond(&self) -> bool {
        self.mouth_to_ear_ms > MOUTH_TO_EAR_MS.1 || self.loss > LOSS.1
    }

    /// Returns the inputs that lie outside the ranges of Table 2. The ranges of the delays T and Ta end at
    /// 500 ms, and that of Tr ends at 1000 ms. Because Tr = 2 T, these are the same bound.
    pub fn outside(&self) -> Vec<OutsideModel> {
        let (delay_ms, loss, burst_ratio) = (self.mouth_to_ear_ms, self.loss, self.burst_ratio);
        let mut inputs = vec![
            OutsideModel { input: ModelInput::MouthToEarMs, value: delay_ms, range: MOUTH_TO_EAR_MS },
            OutsideModel { input: ModelInput::Loss, value: loss, range: LOSS },
            OutsideModel { input: ModelInput::BurstRatio, value: burst_ratio, range: BURST_RATIO },
        ];
        if self.codec.bursty_bpl.is_some() {
            // Such a codec has a Bpl for bursts in place of the model's burst ratio.
            inputs.pop();
        }
        inputs.retain(|input| {
            let (smallest, largest) = input.range;
            input.value < smallest || largest < input.value
        });
        inputs
    }
}

impl Inputs {
    /// Rates a connection with `codec`. `loss` is the share of lost frames, 0 to 1.
    pub fn rate(&self, codec: Impairment, loss: f64, burst_ratio: f64) -> Rating {
        let most = scale_row(Scale::Narrow).most_impairment;
        self.rate_with(effective_equipment_impairment(codec, loss, burst_ratio, most))
    }

    /// Rates a connection whose codec and losses have the impairment `ie_eff`.
    fn rate_with(&self, ie_eff: f64) -> Rating {
        let noise = self.noise();
        let ro = 15.0 - 1.5 * (self.send_loudness + noise);
        let id =
            self.talker_echo_impairment(noise) + self.listener_echo_impairment(ro) + self.delay_impairment();
        let r = ro - self.simultaneous_impairment(ro, noise) - id - ie_eff + self.advantage;
        Rating { r, mos: mos(r), id, ie_eff }
    }

    /// Returns No: the sum of all noise, referred to the 0 dBr point, dBm0p (§7.2).
    fn noise(&self) -> f64 {
        let overall_loudness = self.send_loudness + self.receive_loudness;
        // (7-5)
        let at_sender = self.send_room_noise - self.send_d_factor;
        let sent =
            at_sender - self.send_loudness - 100.0 + 0.004 * (at_sender - overall_loudness - 14.0).powi(2);
        // (7-6) and (7-7): Pr with the noise that comes through the sidetone.
        let listener_sidetone = self.sidetone + self.receive_d_factor;
        let room = self.receive_room_noise + decibels(1.0 + power(10.0 - listener_sidetone));
        let received = self.receive_loudness - 121.0 + room + 0.008 * (room - 35.0).powi(2);
        // (7-8)
        let floor = self.noise_floor + self.receive_loudness;
        // (7-4)
        decibels([self.circuit_noise, sent, received, floor].into_iter().map(power).sum())
    }

    /// Returns Is: the impairments that arise together with the speech (§7.3).
    fn simultaneous_impairment(&self, ro: f64, noise: f64) -> f64 {
        // (7-10) and (7-11): the connection is too loud.
        let x =
            (self.send_loudness + self.receive_loudness + 0.2 * (64.0 + noise - self.receive_loudness)) / 8.0;
        let loudness = 20.0 * (root(1.0 + x.powi(8), 8.0) - x);
        // (7-14) to (7-18): quantising.
        let q = 37.0 - 15.0 * self.quantising.log10();
        let g = 1.07 + 0.258 * q + 0.0602 * q * q;
        let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
        let z = 46.0 / 30.0 - g / 40.0;
        let quantising = 15.0 * (1.0 + 10_f64.powf(y) + 10_f64.powf(z)).log10();
        loudness + self.sidetone_impairment() + quantising
    }

    /// Returns Ist: the impairment by a sidetone that is not optimal (7-12).
    fn sidetone_impairment(&self) -> f64 {
        // (7-13): the sidetone together with the part of the echo that comes too early to be heard as an
        // echo.
        let early_echo = (-self.echo_delay_ms / 4.0).exp() * power(-self.talker_echo);
        let sidetone = -decibels(power(-self.sidetone) + early_echo);
        12.0 * root(1.0 + ((sidetone - 13.0) / 6.0).powi(8), 8.0)
            - 28.0 * root(1.0 + ((sidetone + 1.0) / 19.4).powi(35), 35.0)
            - 13.0 * root(1.0 + ((sidetone - 3.0) / 33.0).powi(13), 13.0)
            + 29.0
    }

    /// Returns Idte: the impairment by the echo of the talker's own voice (7-20 to 7-24).
    fn talker_echo_impairment(&self, noise: f64) -> f64 {
        let t = self.echo_delay_ms;
        if t < 1.0 {
            return 0.0;
        }
        let masked_by = ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10();
        let mut echo = self.talker_echo - 40.0 * masked_by + 6.0 * (-0.3 * t * t).exp();
        if self.sidetone < 9.0 {
            // (7-23): a loud sidetone masks the echo.
            echo += self.sidetone_impairment() / 2.0;
        }
        let roe = -1.5 * (noise - self.receive_loudness);
        let re = 80.0 + 2.5 * (echo - 14.0);
        let half = (roe - re) / 2.0;
        let impairment = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp());
        if self.sidetone > 20.0 {
            // (7-24): with a weak sidetone the echo is heard more clearly.
            return (impairment.powi(2) + self.sidetone_impairment().powi(2)).sqrt();
        }
        impairment
    }

    /// Returns Idle: the impairment by a listener echo, which is the other voice heard twice (7-25, 7-26).
    fn listener_echo_impairment(&self, ro: f64) -> f64 {
        let rle = 10.5 * (self.echo_path_loss + 7.0) * (self.loop_delay_ms + 1.0).powf(-0.25);
        let half = (ro - rle) / 2.0;
        half + (half * half + 169.0).sqrt()
    }

    /// Returns Idd: the impairment by the delay itself, with perfect echo control (7-27, 7-28).
    fn delay_impairment(&self) -> f64 {
        if self.delay_ms <= self.unperceived_delay_ms {
            return 0.0;
        }
        let x = (self.delay_ms / self.unperceived_delay_ms).log2();
        let power = 6.0 * self.delay_sensitivity;
        let bend = |x: f64| root(1.0 + x.powf(power), power);
        25.0 * (bend(x) - 3.0 * bend(x / 3.0) + 2.0)
    }
}

/// Returns Ie,eff: the impairment by the codec and by losses (7-29). `loss` is a share, 0 to 1. `most` is the
/// impairment that total loss comes to: 95 in G.107.
fn effective_equipment_impairment(codec: Impairment, loss: f64, burst_ratio: f64, most: f64) -> f64 {
    let percent = 100.0 * loss;
    if percent <= 0.0 {
        return codec.ie;
    }
    codec.ie + (most - codec.ie) * percent / (percent / burst_ratio + codec.bpl)
}

/// Returns the mean opinion score of a conversation with the rating factor `r` (Annex B, B-4).
///
/// A departure: between R = 0 and 6.5 the cubic is up to 0.011 below 1, which is the lowest possible score.
/// The result is 1 there, so that a better connection never has a lower score.
pub fn mos(r: f64) -> f64 {
    if r >= 100.0 {
        return 4.5;
    }
    if r <= 0.0 {
        return 1.0;
    }
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

/// Returns the mean opinion score for the rating factor `r` on a scale.
pub fn mos_on(scale: Scale, r: f64) -> f64 {
    mos(r / scale_row(scale).stretch)
}

// The permitted ranges of ITU-T G.107 (06/2015), Table 2.

/// T and Ta, ms. The range of Tr ends at twice as much.
const MOUTH_TO_EAR_MS: (f64, f64) = (0.0, 500.0);
/// Ppl, here as a share.
const LOSS: (f64, f64) = (0.0, 0.2);
/// BurstR.
const BURST_RATIO: (f64, f64) = (1.0, 8.0);

/// Converts decibels to a ratio of powers.
fn power(decibels: f64) -> f64 {
    10_f64.powf(decibels / 10.0)
}

fn decibels(power: f64) -> f64 {
    10.0 * power.log10()
}

fn root(radicand: f64, n: f64) -> f64 {
    radicand.powf(1.0 / n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const G711: Rated = rated(0.0, 4.3);
    const G711_CONCEALED: Rated = rated(0.0, 25.1);
    const G729A_VAD: Rated = rated(11.0, 19.0);

    pub(super) const fn rated(ie: f64, bpl: f64) -> Rated {
        let impairment = Impairment { ie, bpl };
        Rated { scale: Scale::Narrow, impairment, bursty_bpl: None, source: "" }
    }

    const GOOD: Call = Call { mouth_to_ear_ms: 0.0, loss: 0.0, burst_ratio: 1.0, codec: G711 };

    pub(super) fn assert_close(what: &str, is: f64, should_be: f64, within: f64) {
        assert!((is - should_be).abs() <= within, "{what}: {is} and not {should_be}");
    }

    #[test]
    fn the_defaults_of_the_recommendation_give_93_2() {
        let rating = Inputs::default().rate(G711.impairment, 0.0, 1.0);
        assert_close("R", rating.r, 93.2, 0.05);
        assert_close("MOS", rating.mos, 4.41, 0.005);
    }

    #[test]
    fn delay_alone_impairs_as_in_the_recommendation() {
        let golden = [
            (150.0, 0.164),
            (200.0, 3.044),
            (250.0, 8.917),
            (300.0, 14.761),
            (400.0, 24.070),
            (500.0, 30.636),
        ];
        for (delay_ms, idd) in golden {
            let inputs = Inputs { delay_ms, ..Inputs::default() };
            assert_close("Idd", inputs.delay_impairment(), idd, 0.0005);
        }
    }

    #[test]
    fn delay_between_two_telephones_rates_as_the_recommendation_does() {
        let golden =
            [(0.0, 93.21), (100.0, 90.66), (150.0, 89.54), (200.0, 85.80), (300.0, 72.67), (400.0, 62.25)];
        for (mouth_to_ear_ms, r) in golden {
            assert_close("R", Call { mouth_to_ear_ms, ..GOOD }.rate().r, r, 0.005);
        }
    }

    #[test]
    fn loss_impairs_each_codec_as_in_the_recommendation() {
        let golden = [
            (G711, [93.2, 75.3, 54.2, 42.1, 26.8]),
            (G711_CONCEALED, [93.2, 89.6, 83.1, 77.4, 66.1]),
            (G729A_VAD, [82.2, 78.0, 70.8, 64.7, 53.2]),
        ];
        for (codec, factors) in golden {
            for (loss, r) in [0.0, 0.01, 0.03, 0.05, 0.10].into_iter().zip(factors) {
                assert_close("R", Call { loss, codec, ..GOOD }.rate().r, r, 0.05);
            }
        }
    }

    /// A departure from Annex B: there the cubic is below 1, by 0.011 at most.
    #[test]
    fn a_score_is_one_where_the_cubic_dips_below_it() {
        let cubic = |r: f64| 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6;
        let factors = (0..=100).map(|tenths| f64::from(tenths) / 10.0);
        let scores: Vec<_> = factors.clone().map(mos).collect();
        assert!(scores.is_sorted() && scores.iter().all(|score| *score >= 1.0));
        let dips: Vec<_> = factors.filter(|r| cubic(*r) < 1.0).collect();
        assert_eq!((dips.first(), dips.last()), (Some(&0.1), Some(&6.5)));
        assert!(dips.iter().all(|r| mos(*r).to_bits() == 1_f64.to_bits() && cubic(*r) > 0.9888));
        assert!(mos(6.6) > 1.0);
    }

    #[test]
    fn bursts_of_loss_are_worse_than_as_much_loss_at_random() {
        let of = |burst_ratio| Call { loss: 0.03, burst_ratio, codec: G711_CONCEALED, ..GOOD }.rate().r;
        // 95 x 3 / (3 / 2 + 25.1) is 10.71, and 10.14 with a burst ratio of one.
        assert_close("R", of(1.0) - of(2.0), 0.571, 0.001);
    }

    // Five published tools had the model wrong; one test for each.

    /// flent, issue 247: Bpl was 1.
    #[test]
    fn robustness_of_g711_is_4_3_and_not_1() {
        // With a Bpl of 1 one percent would take 47.5.
        assert_close("Ie,eff", Call { loss: 0.01, ..GOOD }.rate().ie_eff, 95.0 / 5.3, 1e-9);
    }

    /// twilio-client.js, issue 75: the score rose above a second of delay.
    #[test]
    fn a_second_of_delay_and_more_scores_ever_lower() {
        let of = |mouth_to_ear_ms| Call { mouth_to_ear_ms, ..GOOD }.rate().r;
        let factors: Vec<f64> = (1..=100).map(|tenths| of(f64::from(tenths) * 100.0)).collect();
        assert!(factors.is_sorted_by(|earlier, later| earlier > later), "{factors:?}");
    }

    /// homer, issue 258: a count of lost packets stood for their percentage, so that calls grew worse by
    /// lasting.
    #[test]
    fn loss_is_a_share_and_as_long_a_call_with_as_much_of_it_scores_the_same() {
        let of = |lost: f64, sent: f64| Call { loss: lost / sent, ..GOOD }.rate();
        assert_eq!(of(20.0, 1_000.0), of(200.0, 10_000.0));
        assert!(of(20.0, 10_000.0).mos > 4.2, "20 of 10,000 frames are 0.2 %");
    }

    /// voipmonitor's sniffer, issue 61: the score stayed at 4.5 through outages.
    #[test]
    fn a_tenth_of_loss_is_heard() {
        assert!(Call { loss: 0.1, ..GOOD }.rate().mos < 1.5);
        assert!(Call { loss: 0.1, codec: G711_CONCEALED, ..GOOD }.rate().mos < 3.5);
    }

    /// rtpengine, pull request 1221: a negative R went into the cubic.
    #[test]
    fn a_rating_below_zero_is_zero_and_scores_one() {
        let worst = Call { mouth_to_ear_ms: 2_000.0, loss: 0.5, ..GOOD }.rate();
        assert_eq!((worst.r.to_bits(), worst.mos.to_bits()), (0_f64.to_bits(), 1_f64.to_bits()));
        assert_eq!(mos(f64::MIN).to_bits(), 1_f64.to_bits());
    }

    #[test]
    fn a_burst_ratio_beyond_the_table_is_rated_as_the_tables_last_and_said() {
        let call = Call { loss: 0.082, burst_ratio: 37.6, codec: G711_CONCEALED, ..GOOD };
        assert_eq!(call.rate(), Call { burst_ratio: 8.0, ..call }.rate());
        let said = OutsideModel { input: ModelInput::BurstRatio, value: 37.6, range: (1.0, 8.0) };
        assert_eq!(call.outside(), [said]);
        let text = "burst ratio 37.6 (the table has 1 to 8, rated as the nearest of these)";
        assert_eq!(said.to_string(), text);
    }

    #[test]
    fn what_the_table_has_is_not_outside_and_each_input_beyond_it_is() {
        let last = Call { mouth_to_ear_ms: 500.0, loss: 0.2, burst_ratio: 8.0, codec: G711 };
        assert_eq!((last.outside(), GOOD.outside()), (vec![], vec![]));
        let beyond = Call { mouth_to_ear_ms: 2_000.0, loss: 0.5, burst_ratio: 10.0, codec: G711 };
        let said: Vec<_> = beyond.outside().iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "mouth to ear 2000 ms (the table has 0 to 500 ms, worse than the model rates)",
                "loss 50.00 % (the table has 0 to 20 %, worse than the model rates)",
                "burst ratio 10.0 (the table has 1 to 8, rated as the nearest of these)",
            ]
        );
        // The loss is not lowered to the table's.
        assert!(Call { loss: 0.3, codec: G711_CONCEALED, ..GOOD }.rate().r < last_of_loss().r);
    }

    fn last_of_loss() -> Rating {
        Call { loss: 0.2, codec: G711_CONCEALED, ..GOOD }.rate()
    }

    #[test]
    fn nothing_is_rated_below_a_call_of_which_all_is_lost() {
        for codec in [G711, G711_CONCEALED, G729A_VAD] {
            let dead = Call { loss: 1.0, codec, ..GOOD }.rate();
            assert_eq!((dead.r.to_bits(), dead.mos.to_bits()), (0_f64.to_bits(), 1_f64.to_bits()));
            let gap = Call { loss: 0.082, burst_ratio: 37.6, mouth_to_ear_ms: 100.0, codec };
            assert!(gap.rate().r >= dead.r);
        }
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(256))]

        /// The echo's terms hold from 1 ms on; below, the model leaves the talker's echo out.
        #[test]
        fn more_delay_loss_or_burstiness_never_scores_higher(
            mouth_to_ear_ms in 1.0..5_000_f64, loss in 0.0..=1_f64, burst_ratio in 1.0..20_f64,
            more_ms in 0.0..5_000_f64, more_loss in 0.0..=1_f64, more_bursts in 0.0..20_f64,
            ie in 0.0..40_f64, bpl in 4.3..40_f64,
        ) {
            let call = Call { mouth_to_ear_ms, loss, burst_ratio, codec: rated(ie, bpl) };
            let before = call.rate().mos;
            let later = Call { mouth_to_ear_ms: mouth_to_ear_ms + more_ms, ..call };
            let lossier = Call { loss: (loss + more_loss).min(1.0), ..call };
            let burstier = Call { burst_ratio: burst_ratio + more_bursts, ..call };
            for worse in [later, lossier, burstier] {
                // The sums of the terms round.
                prop_assert!(worse.rate().mos <= before + 1e-9, "{worse:?}: {:?}, {call:?}: {before}", worse.rate());
            }
            prop_assert!((1.0..=4.5).contains(&before));
        }
    }
}
