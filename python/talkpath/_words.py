"""Words that the program knows. Printed by `cargo run -p talkpath-measure --example figure_table words`."""

from __future__ import annotations

from typing import Literal

Codec = Literal["g711", "g729a", "opus"]
"""A voice codec."""
