//! A link over a medium that it shares with others. The medium (`wifi::Air`) takes packets from the queue in
//! place of the serialiser, and says when they are received. Then they enter the pipe.

use super::*;
use crate::wifi::{AccessCategory, Frames, Ppdu, PpduLimits, Released};

impl<T: Carried> Link<T> {
    /// Whether packets of this category wait for the medium, for the first time or again.
    pub(crate) fn has_frames(&self, category: AccessCategory) -> bool {
        let unsettled = self.frames().map_or(0, |frames| frames.of(category).len());
        unsettled > 0 || self.waiting.len_of(category) > 0
    }

    /// Puts packets of this category into a PPDU that begins at `now`. `None` if there are none, or if the
    /// first does not fit.
    pub(crate) fn fill(
        &mut self,
        category: AccessCategory,
        limits: &PpduLimits,
        now: Instant,
    ) -> Option<Ppdu> {
        let frames = self.rare.as_mut()?.frames.as_mut()?;
        let waiting = &mut self.waiting;
        waiting.serve(category);
        frames.of_mut(category).fill(limits, now, || {
            let packet = waiting.dequeue(now)?.packet;
            Some((packet, packet.wire_size()))
        })
    }

    /// A PPDU has had the medium for `span`, at the end of which packets are given up. Each settled packet
    /// enters the pipe, with the time of its reception. Returns whether the receiver acknowledges.
    pub(crate) fn settle(
        &mut self,
        category: AccessCategory,
        attempts: u32,
        span: (Instant, Instant),
        is_received: impl FnMut() -> bool,
    ) -> bool {
        let Some(rare) = self.rare.as_mut() else { return false };
        let Some(mut frames) = rare.frames.take() else { return false };
        let pipe = &mut self.pipe;
        let release = |released: Released<T>| {
            let Released { mut packet, began, at, is_received } = released;
            let fate = rare.send(&mut packet, began, at);
            // A packet that the sender gave up is lost, whatever the wire would do.
            let given_up = WireFate { is_lost: true, ..WireFate::default() };
            pipe.enter(packet, if is_received { fate } else { given_up }, at);
        };
        let is_acknowledged = frames.of_mut(category).settle(attempts, span.1, is_received, release);
        frames.add_busy_ns(self.counts.window.overlap(span.0, span.1));
        rare.frames = Some(frames);
        is_acknowledged
    }

    /// What the link has at its medium. `None` on a link with a wire of its own.
    pub(super) fn frames(&self) -> Option<&Frames<T>> {
        self.rare.as_ref()?.frames.as_deref()
    }
}
