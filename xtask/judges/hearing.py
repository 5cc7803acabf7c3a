"""Holds our opinion scores against what judges hear in the sound of the same calls, which `talkpath listen` makes.

    python hearing.py RUN_DIR... SOUNDS...

Each RUN_DIR is a simulated run of one kind of path (hearing-*.toml), whose calls are played with two receivers: one with a fixed delay, and the receiver
of browsers. SOUNDS are recordings of speech, WAV with 8 or 16 kHz, one channel, 16 bit; those of a folder are of one speaker. For each repetition of each
cell `talkpath listen` makes the sound of the call from the recordings of each speaker, joined, six times: each time the speech begins at another place.
Of repetitions that are the same one counts.

- PESQ (ITU-T P.862, mapped by P.862.1) compares the sound with the recording, for the fixed delay alone, because it punishes stretched speech.
- PLCMOS (speechmos, the network of Microsoft's Packet Loss Concealment Challenge) hears the sound alone.
- ViSQOL (visqol-python, speech mode) compares the sound with the recording, stretched or not.

No judge hears the delay from mouth to ear, so the score is compared without its part for the delay: that of R + Id, with Id for the mean delay. A call
without a score does not count. Prints for each judge Spearman's correlation with the score over all calls, with the lower bound of its interval of 95 %
(Fisher's transformation, with the standard error 1.03 over the square root of n - 3: Fieller and others 1957), the correlation for each kind of path and
receiver, and the difference from PESQ up to 5 % of frames not played, by the length of the runs in which they are not played. Exit code 1 if the bound of
a judge is below 0.85.

It also prints how reliable a judge is: the correlation of the mean over half of the places with the mean over the other half, for the same calls, and what
it is for all places (2 r / (1 + r): Spearman 1910, Brown 1910). No score can correlate with a judge by more than about the square root of that.

The calls are heard at one place after the other, all calls at each, by as many processes as there are processors. What was heard is kept in heard.jsonl of
each RUN_DIR: a hearing that was cut short goes on from there.
"""

import functools
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import wave
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from pesq import pesq
from raters import network
from visqol import VisqolApi

MIN_BOUND = 0.85
MAX_DIFFERENCE = 0.5
UP_TO = 0.05
# By the burst ratio (ITU-T G.107 §7.5): 1 is that of losses at random.
RUNS_OF_LOSSES = [(0.0, 1.3, "losses at random"), (1.3, 2.5, "losses in short runs"), (2.5, math.inf, "losses in long runs")]
MIN_CALLS = 60
# The first second is not rated.
FROM_S, PIECE_S = 1, 8
RATE = 8000
# A gap in a pause is not heard, and PLCMOS gives one piece of speech up to 0.9 more than another of the same call (2026-11-29).
TURNS = 6
# Those that also have the recording need fewer, and ViSQOL takes a second for each. They hear the last turns.
TURNS_WITH_RECORDING = 1
HALVINGS = 100
PROGRAM = os.environ.get("TALKPATH", str(Path(__file__).parents[2] / "target/release/talkpath"))


def samples(path):
    """The samples of a WAV file from -1 to 1, and its rate."""
    with wave.open(str(path)) as file:
        if file.getnchannels() != 1 or file.getsampwidth() != 2:
            raise ValueError(f"{path}: expected one channel of 16 bit")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768.0, file.getframerate()


def write(path, speech, rate):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(np.clip(speech, -1, 1) * 32767).astype("<i2").tobytes())


def at_8_khz(speech, rate):
    """A windowed sinc that ends below 4 kHz, then every other sample."""
    if rate == 8000:
        return speech
    at = np.arange(-64, 65)
    kernel = 0.475 * np.sinc(0.475 * at) * np.hamming(129)
    return np.convolve(speech, kernel / kernel.sum(), "same")[::2]


def at_16_khz(speech):
    """A zero after each sample, and the same kind of filter."""
    at = np.arange(-64, 65)
    kernel = 0.95 * np.sinc(0.475 * at) * np.hamming(129)
    doubled = np.zeros(2 * len(speech))
    doubled[::2] = speech
    return np.convolve(doubled, kernel, "same")


def speakers(sounds):
    """The recordings of each folder, joined, at -26 dB of full scale and 8 kHz."""
    folders = {}
    for sound in map(Path, sounds):
        folders.setdefault(sound.parent, []).append(at_8_khz(*samples(sound)))
    joined = [np.concatenate(it) for it in folders.values()]
    return [it * 10 ** (-26 / 20) / np.sqrt(np.mean(it**2)) for it in joined]


@functools.cache
def judges():
    """Each judge's name, and a function of the recording and the sound, both at 8 kHz."""

    def by_network(_, heard):
        return network()(np.clip(at_16_khz(heard), -1, 1))

    api = VisqolApi()
    api.create(mode="speech", use_lattice_model=False)

    def by_similarity(clean, heard):
        return float(api.measure_from_arrays(at_16_khz(clean), at_16_khz(heard), 16000).moslqo)

    by_model = lambda clean, heard: pesq(8000, clean.astype(np.float32), heard.astype(np.float32), "nb")
    return {"PESQ": by_model, "PLCMOS": by_network, "ViSQOL": by_similarity}


def without_delay(call):
    """The score of a call without what the delay takes from it (ITU-T G.107, Annex B)."""
    delay = call["mouth_to_ear_ms"]["mean"]
    r = call["r"] + json.loads(run("mos", "--one-way", f"{delay:.3f}ms", "--json"))["id"]
    return 1.0 if r <= 0 else min(4.5, max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6))


def ranks(values):
    values = np.asarray(values)
    return np.array([(values < it).sum() + ((values == it).sum() + 1) / 2 for it in values])


def bound(left, right):
    """Spearman's correlation, and the lower bound of its interval of 95 %."""
    rank = float(np.corrcoef(ranks(left), ranks(right))[0, 1])
    error = 1.03 / math.sqrt(max(len(left) - 3, 1))
    return rank, math.tanh(math.atanh(min(rank, 0.999999)) - 1.96 * error)


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def calls(folder):
    """The calls of a run that have a score, each of those that are the same once."""
    known = []
    for repetition in json.loads((Path(folder) / "summary.json").read_text())["runs"]:
        call = repetition["flows"]["call"]["call"]
        if call["mos"] is None or (repetition["cell"], call) in known:
            continue
        known.append((repetition["cell"], call))
        yield repetition["cell"], repetition["repetition"], call


def hear(folder, cell, repetition, is_fixed, clean, turn):
    """What each judge hears in the pieces of one call, whose speech begins at the place `turn`."""
    clean = np.roll(clean, turn * len(clean) // TURNS)
    names = {"PLCMOS"}
    if turn >= TURNS - TURNS_WITH_RECORDING:
        names |= {"ViSQOL", "PESQ"} if is_fixed else {"ViSQOL"}
    with tempfile.TemporaryDirectory() as place:
        recording, heard_file = Path(place) / "speech.wav", Path(place) / "call.wav"
        write(recording, clean, RATE)
        which = ["--cell", cell, "--repetition", repetition]
        run("listen", folder, *which, "--input", recording, "-o", heard_file, "--quiet")
        heard, rate = samples(heard_file)
    assert rate == RATE, rate
    whole = np.tile(clean, len(heard) // len(clean) + 1)[: len(heard)]
    starts = range(FROM_S * RATE, len(heard) - PIECE_S * RATE + 1, PIECE_S * RATE)
    parts = [slice(at, at + PIECE_S * RATE) for at in starts]
    return {name: [judges()[name](whole[it], heard[it]) for it in parts] for name in sorted(names)}


def main(folders, sounds):
    speech = speakers(sounds)
    places = list(itertools.product(range(TURNS), range(len(speech))))
    known = {folder: list(calls(folder)) for folder in folders}
    heard = {}
    for folder in folders:
        for line in kept(folder).read_text().splitlines() if kept(folder).exists() else []:
            it = json.loads(line)
            heard[folder, it["cell"], it["repetition"], it["turn"], it["speaker"]] = it["heard"]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = []
        for turn, speaker in places:
            # The kinds of path take turns.
            for of_each in itertools.zip_longest(*([(folder, *it) for it in known[folder]] for folder in folders)):
                for folder, cell, repetition, call in filter(None, of_each):
                    key = folder, cell, repetition, turn, speaker
                    if key not in heard:
                        task = folder, cell, repetition, is_fixed(call), speech[speaker], turn
                        waiting.append((key, pool.submit(hear, *task)))
        for key, future in waiting:
            heard[key] = future.result()
            values = dict(zip(("cell", "repetition", "turn", "speaker"), key[1:])) | {"heard": heard[key]}
            with kept(key[0]).open("a") as file:
                print(json.dumps(values), file=file)
    points = []
    for folder in folders:
        name = json.loads((Path(folder) / "summary.json").read_text())["name"]
        for cell, repetition, call in known[folder]:
            at = [heard[folder, cell, repetition, *it] for it in places]
            points.append(point(name, call, at))
    return report(points, list(judges()))


def kept(folder):
    return Path(folder) / "heard.jsonl"


def is_fixed(call):
    return call["playout"].startswith("fixed")


def point(name, call, at):
    """A call: what it is, its scores, and for each judge the mean at each place of the speech that it heard."""
    of = {"path": name, "fixed": is_fixed(call), "concealed": call["concealed"], "burst": call["burst_ratio"]}
    of |= {"MOS": call["mos"], "heard": without_delay(call), "places": {}}
    for judge in judges():
        means = [float(np.mean(it[judge])) for it in at if judge in it]
        if means:
            of[judge] = float(np.mean(means))
            of["places"][judge] = means
    return of


def reliability(of, name):
    """The rank correlation of the mean over half of the places with the mean over the other half, averaged over a hundred ways to halve the places.

    And the correlation that follows for all places."""
    values = np.array([it["places"][name] for it in of])
    draw = np.random.default_rng(1)
    found = []
    for _ in range(HALVINGS):
        order = draw.permutation(values.shape[1])
        half = values.shape[1] // 2
        found.append(bound(values[:, order[:half]].mean(axis=1), values[:, order[half : 2 * half]].mean(axis=1))[0])
    half = float(np.mean(found))
    return half, 2 * half / (1 + half)


def report(points, names):
    print(f"{'path':28} {'receiver':9} {'concealed %':>11} {'MOS':>5} {'heard':>5} " + " ".join(f"{it:>7}" for it in names))
    for it in sorted(points, key=lambda it: (it["path"], it["fixed"], it["concealed"])):
        receiver = "fixed" if it["fixed"] else "adaptive"
        values = " ".join(f"{it[name]:7.2f}" if name in it else " " * 7 for name in names)
        print(f"{it['path']:28} {receiver:9} {100 * it['concealed']:11.2f} {it['MOS']:5.2f} {it['heard']:5.2f} {values}")
    holds, texts = True, []
    for name in names:
        of = [it for it in points if name in it]
        rank, low = bound([it["heard"] for it in of], [it[name] for it in of])
        for kind in sorted({(it["path"], it["fixed"]) for it in of}):
            part = [it for it in of if (it["path"], it["fixed"]) == kind]
            within = bound([it["heard"] for it in part], [it[name] for it in part])[0]
            print(f"{name:7} {kind[0]:28} {'fixed' if kind[1] else 'adaptive':9} {within:6.3f} ({len(part)} calls)")
        half, whole = reliability(of, name)
        print(f"{name:7} agrees with itself by {half:.3f} at half of the places, so by {whole:.3f} at all: a score can reach {math.sqrt(whole):.3f}")
        holds &= low >= MIN_BOUND and len(of) >= MIN_CALLS
        texts.append(f"{name} {rank:.3f} (at least {low:.3f}, {len(of)} calls)")
    near = [it for it in points if "PESQ" in it and it["concealed"] <= UP_TO]
    for lowest, highest, what in RUNS_OF_LOSSES:
        part = [it["heard"] - it["PESQ"] for it in near if lowest <= it["burst"] < highest]
        if part:
            print(f"score - PESQ, {what}: {min(part):+.2f} to {max(part):+.2f}, mean {np.mean(part):+.2f} ({len(part)} calls)")
    worst = max((abs(it["heard"] - it["PESQ"]) for it in near), default=0.0)
    print(f"rank correlation with {', '.join(texts)}; at most {worst:.2f} from PESQ up to {100 * UP_TO:.0f} % concealed")
    return 0 if holds else 1


if __name__ == "__main__":
    folders = [it for it in sys.argv[1:] if Path(it).is_dir()]
    sounds = [it for it in sys.argv[1:] if not Path(it).is_dir()]
    if not folders or not sounds:
        sys.exit(__doc__)
    sys.exit(main(folders, sounds))
