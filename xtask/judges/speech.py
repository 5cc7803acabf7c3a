"""Holds our opinion scores against PESQ (ITU-T P.862, mapped by P.862.1) on real speech.

    python speech.py RUN_DIR SOUNDS...

RUN_DIR holds simulated calls over a path with losses (speech.toml). SOUNDS are recordings, WAV with 8 or 16
kHz, one channel, 16 bit. Each is cut into pieces of 8 s, coded by G.711 (mu-law) in frames of 20 ms, and
played as a call's listener heard it: where playout found a frame late or missing, it is concealed by G.711
Appendix I. PESQ compares that with the recording.

PESQ hears no delay, and the calls here have little. Prints a table, then the rank correlation and the
largest difference up to 3 % of frames not played. Exit code 1 if one of them does not hold.
"""

import json
import statistics
import sys
import tomllib
import wave
from pathlib import Path

import numpy as np
from pesq import pesq

from recount import Adaptive, nanoseconds, read_rows

RATE = 8000
FRAME = 160
PIECE_S = 8
MIN_CORRELATION = 0.9
MAX_DIFFERENCE = 0.5
UP_TO = 0.03

# ---------------------------------------------------------------------------------------------------------
# Speech.


def recording(path):
    """Its samples at 8 kHz, from -1 to 1."""
    with wave.open(str(path)) as file:
        if file.getnchannels() != 1 or file.getsampwidth() != 2:
            raise ValueError(f"{path}: expected one channel of 16 bit")
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768.0
    if rate == 2 * RATE:
        # A windowed sinc that ends below 4 kHz, then every other sample.
        at = np.arange(-64, 65)
        kernel = 0.475 * np.sinc(0.475 * at) * np.hamming(129)
        samples = np.convolve(samples, kernel / kernel.sum(), "same")[::2]
    elif rate != RATE:
        raise ValueError(f"{path}: {rate} Hz, expected 8000 or 16000")
    return samples


def pieces(sounds):
    """Of 8 s, at -26 dB of full scale. The recordings of a folder, one speaker's, are joined."""
    folders = {}
    for sound in map(Path, sounds):
        folders.setdefault(sound.parent, []).append(recording(sound))
    return [piece for of in folders.values() for piece in cut(np.concatenate(of))]


def cut(samples):
    size = PIECE_S * RATE
    whole = [samples[at : at + size] for at in range(0, len(samples) - size + 1, size)]
    level = lambda it: np.sqrt(np.mean(it**2))
    return [np.clip(it * 10 ** (-26 / 20) / level(it), -1, 1) for it in whole]


def g711(samples):
    """There and back through the mu-law of ITU-T G.711: a sign, 8 segments and 16 steps in each."""
    size = np.minimum(np.abs(np.round(samples * 8192)).astype(int), 8158) + 33
    segment = np.log2(size).astype(int) - 5
    step = (size >> (segment + 1)) & 15
    return np.sign(samples) * (((2 * step + 33) << segment) - 33) / 8192


# ---------------------------------------------------------------------------------------------------------
# Concealment: ITU-T G.711 Appendix I. It works on 10 ms; here its output is not delayed by 3.75 ms, because
# the end of the last good frame is at hand.

STEP = 80
PITCH = (40, 120)
HISTORY = 390


def conceal(samples, heard):
    """`samples` with the frames that were not `heard` concealed."""
    out = samples.copy()
    ok = np.repeat(heard, 2)
    erased = 0
    for step in range(len(out) // STEP):
        at = step * STEP
        here = slice(at, at + STEP)
        if ok[step]:
            if erased:
                # Synthesis goes on into the first good step, for a quarter of a period and 4 ms per step more.
                length = min(STEP, pitch // 4 + 32 * (erased - 1), STEP)
                fade = fading(erased * STEP + np.arange(length))
                tail = periodic(source, pitch * periods, phase, length) * fade
                rise = (np.arange(length) + 1) / (length + 1)
                out[at : at + length] = (1 - rise) * tail + rise * out[at : at + length]
                erased = 0
            continue
        if at < HISTORY:
            out[here] = 0
            erased = 0
            continue
        if erased == 0:
            history = out[at - HISTORY : at].copy()
            pitch = pitch_of(history)
            quarter = max(1, pitch // 4)
            periods, phase = 1, 0
            source = cycle(history, pitch, periods, quarter)
            # The end of the last good step runs into the synthesis.
            out[at - quarter : at] = source_tail(history, pitch, quarter)
        elif erased < 3:
            # The second and third step use one more period each.
            longer = cycle(history, pitch, erased + 1, quarter)
            phase = phase % pitch
            ramp = (np.arange(quarter) + 1) / (quarter + 1)
            old = periodic(source, pitch * periods, phase, quarter)
            periods = erased + 1
            new = periodic(longer, pitch * periods, phase, STEP)
            new[:quarter] = (1 - ramp) * old + ramp * new[:quarter]
            source = longer
            out[here] = new * fading(erased * STEP + np.arange(STEP))
            phase += STEP
            erased += 1
            continue
        out[here] = periodic(source, pitch * periods, phase, STEP) * fading(erased * STEP + np.arange(STEP))
        phase += STEP
        erased += 1
    return out


def pitch_of(history):
    """The period with the largest normalised correlation over the last 20 ms."""
    last = history[-160:]
    best, found = -np.inf, PITCH[0]
    for lag in range(PITCH[0], PITCH[1] + 1):
        before = history[-160 - lag : -lag]
        score = float(last @ before) / max(np.sqrt(float(before @ before)), 1e-9)
        if score > best:
            best, found = score, lag
    return found


def cycle(history, pitch, periods, quarter):
    """The last periods, their end joined with what came before their beginning."""
    length = pitch * periods
    body = history[-length:].copy()
    before = history[-length - quarter : -length]
    ramp = (np.arange(quarter) + 1) / (quarter + 1)
    body[-quarter:] = (1 - ramp) * body[-quarter:] + ramp * before
    return body


def source_tail(history, pitch, quarter):
    ramp = (np.arange(quarter) + 1) / (quarter + 1)
    return (1 - ramp) * history[-quarter:] + ramp * history[-pitch - quarter : -pitch]


def periodic(body, length, phase, count):
    return body[(phase + np.arange(count)) % length]


def fading(at):
    """Whole for 10 ms, then a fifth less each 10 ms, and silence from 60 ms on."""
    return np.clip(1 - 0.2 * (at - STEP) / STEP, 0, 1)


# ---------------------------------------------------------------------------------------------------------
# Calls.


def heard_frames(rows, frame):
    """Whether each frame was played."""
    playout = Adaptive(frame)
    heard = []
    for seq, due, received, arrived in zip(rows.seq, rows.due, rows.received, rows.arrived):
        heard.append(bool(arrived) and int(received - due) <= playout.until(int(seq), int(received - due)))
    return np.array(heard)


def correlation(left, right):
    """Spearman's, ties by mean rank."""

    def ranks(values):
        values = np.asarray(values)
        return np.array([(values < it).sum() + ((values == it).sum() + 1) / 2 for it in values])

    return float(np.corrcoef(ranks(left), ranks(right))[0, 1])


def main(folder, sounds):
    folder = Path(folder)
    frame = nanoseconds(tomllib.loads((folder / "scenario.toml").read_text())["flow"]["call"]["workload"].get("ptime", "20 ms"))
    summary = json.loads((folder / "summary.json").read_text())
    rows = read_rows(folder / "packets.parquet")
    speech = [(it, g711(it)) for it in pieces(sounds)]
    frames = PIECE_S * RATE // FRAME
    points = []
    print(f"{len(speech)} pieces of {PIECE_S} s")
    print("loss %   not played %    MOS   PESQ   difference")
    for run in summary["runs"]:
        call = run["flows"]["call"]["call"]
        loss = run["sweep"]["path.up.loss"]
        heard = heard_frames(rows[run["cell"], run["repetition"], "call", "forward"], frame)
        played = int(heard.sum())
        if played != call["played"]:
            print(f"cell {run['cell']}: {played} frames were played, summary.json has {call['played']}")
            return 1
        scores = []
        for number, (clean, coded) in enumerate(speech):
            # Each piece meets another part of the call.
            from_frame = number * frames % (len(heard) - frames + 1)
            mask = heard[from_frame : from_frame + frames]
            scores.append(pesq(RATE, clean.astype(np.float32), conceal(coded, mask).astype(np.float32), "nb"))
        points.append((loss, 1 - played / len(heard), call["mos"], statistics.fmean(scores)))
    differences = {}
    for loss in sorted({it[0] for it in points}):
        of = [it for it in points if it[0] == loss]
        unplayed, mos, score = (statistics.fmean(it[k] for it in of) for k in (1, 2, 3))
        differences[unplayed] = mos - score
        print(f"{100 * loss:6.1f}   {100 * unplayed:12.2f}   {mos:4.2f}   {score:4.2f}   {mos - score:+10.2f}")
    rank = correlation([it[2] for it in points], [it[3] for it in points])
    worst = max(abs(it) for unplayed, it in differences.items() if unplayed <= UP_TO)
    beyond = max(abs(it) for it in differences.values())
    print(
        f"{len(points)} calls: rank correlation {rank:.3f}, at most {worst:.2f} apart up to {100 * UP_TO:.0f} % of "
        f"frames not played, {beyond:.2f} beyond"
    )
    return 0 if rank >= MIN_CORRELATION and worst <= MAX_DIFFERENCE else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
