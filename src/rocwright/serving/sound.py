"""A short sound to ask a server about: the same bytes everywhere."""

from __future__ import annotations

import io
import struct
import wave

# Samples a second, as models of speech hear.
RATE = 16_000

SECONDS = 2
_HALF = 20  # samples of half a wave: 400 Hz
_LOUD = 8_000  # a quarter of what is possible


def tone() -> bytes:
    """A WAV file with one tone: a wave of straight lines, of whole numbers alone."""
    steps = [*range(-_HALF, _HALF, 2), *range(_HALF, -_HALF, -2)]
    samples = [_LOUD * steps[index % len(steps)] // _HALF for index in range(RATE * SECONDS)]
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", "not compressed"))
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return buffer.getvalue()
