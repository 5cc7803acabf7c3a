"""Computes shares in time, opinion scores and winners again from the rows of runs, and compares them.

It follows docs/reference (metrics.md, records.md) and the documents that it names, and uses no code of
talkpath's, so a difference is a mistake here, there, or in the pages. Its author had read the code of the
playout, the calls and the ranking, but not that of the E-model and of shares in time: a misreading of a
paper can be in both for the first three.

    python recount.py RUN_DIR...

Prints every difference, then how much was compared. Exit code 1 if there is a difference.

A bootstrap draws at random. Where a bound of an interval is so near to a limit that another draw could fall
on the other side, both outcomes are right; such comparisons are counted, not hidden.
"""

import json
import math
import statistics
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

# ---------------------------------------------------------------------------------------------------------
# The E-model: ITU-T G.107 (06/2015), narrowband. Names are those of its clause 7 and its Table 2.

SLR, RLR, STMR, LSTR, DS, DR, TELR, WEPL = 8.0, 2.0, 15.0, 18.0, 3.0, 3.0, 65.0, 110.0
QDU, NC, NFOR, PS, PR, A = 1.0, -70.0, -64.0, 35.0, 35.0, 0.0
OLR = SLR + RLR


def decibels(x):
    return 10 * math.log10(x)


def signal_to_noise():
    """Ro, and No of equations 7-2 to 7-6."""
    nos = PS - SLR - DS - 100 + 0.004 * (PS - OLR - DS - 14) ** 2
    pre = PR + decibels(1 + 10 ** ((10 - LSTR) / 10))
    nor = RLR - 121 + pre + 0.008 * (pre - 35) ** 2
    nfo = NFOR + RLR
    no = decibels(sum(10 ** (level / 10) for level in (NC, nos, nor, nfo)))
    return 15 - 1.5 * (SLR + no), no


def simultaneous(ro, no, t):
    """Is = Iolr + Ist + Iq; and Ist."""
    xolr = OLR + 0.2 * (64 + no - RLR)
    iolr = 20 * ((1 + (xolr / 8) ** 8) ** (1 / 8) - xolr / 8)
    stmro = -decibels(10 ** (-STMR / 10) + math.exp(-t / 4) * 10 ** (-TELR / 10))
    ist = (
        12 * (1 + ((stmro - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((stmro + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((stmro - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )
    q = 37 - 15 * math.log10(QDU)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    y = (ro - 100) / 15 + 46 / 8.4 - g / 9
    z = 46 / 30 - g / 40
    iq = 15 * math.log10(1 + 10**y + 10**z)
    return iolr + ist + iq, ist


def delayed(ro, no, t):
    """Id = Idte + Idle + Idd, with T = Ta = Tr / 2 = t ms."""
    tr, ta = 2 * t, t
    # STMR is 15, between 9 and 20, so that TERV and Idte have no term for the sidetone.
    terv = TELR - 40 * math.log10((1 + t / 10) / (1 + t / 150)) + 6 * math.exp(-0.3 * t * t)
    roe = -1.5 * (no - RLR)
    re = 80 + 2.5 * (terv - 14)
    idte = ((roe - re) / 2 + math.sqrt((roe - re) ** 2 / 4 + 100) - 1) * (1 - math.exp(-t))
    if t < 1:
        idte = 0.0
    rle = 10.5 * (WEPL + 7) * (tr + 1) ** -0.25
    idle = (ro - rle) / 2 + math.sqrt((ro - rle) ** 2 / 4 + 169)
    idd = 0.0
    if ta > 100:
        x = math.log2(ta / 100)
        idd = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
    return idte + idle + idd


def e_model(mouth_to_ear_ms, loss, burst_ratio, bpl, ie=0.0):
    """R and MOS."""
    ro, no = signal_to_noise()
    impaired, _ = simultaneous(ro, no, mouth_to_ear_ms)
    ppl = 100 * loss
    # The burst ratio is held to Table 2; R is at least 0, and 0 where all is lost.
    effective = ie + (95 - ie) * ppl / (ppl / min(8.0, burst_ratio) + bpl)
    r = ro - impaired - delayed(ro, no, mouth_to_ear_ms) - effective + A
    r = 0.0 if loss >= 1 else max(0.0, r)
    if r <= 0:
        mos = 1.0
    elif r >= 100:
        mos = 4.5
    else:
        mos = max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)
    return r, mos


# ---------------------------------------------------------------------------------------------------------
# Playout: metrics.md, "Call", and Ramjee et al. 1994, algorithm 4. Times in ns.


class Adaptive:
    def __init__(self, frame):
        self.frame = frame
        self.per_talkspurt = max(1, 1_004_000_000 // frame)
        self.mean = None
        self.talkspurt = None

    def until(self, seq, delay):
        """The playout delay of frame `seq`, which came after `delay`."""
        self._average(float(delay))
        talkspurt = seq // self.per_talkspurt
        if talkspurt != self.talkspurt:
            self.talkspurt = talkspurt
            self.playout = math.ceil(self.mean + max(4 * self.variation, self.frame))
        return self.playout

    def _average(self, n):
        if self.mean is None:
            self.mean, self.variation, self.in_spike = n, 0.0, False
            self.last, self.before = n, n
        last, before = self.last, self.before
        self.last, self.before = n, last
        if not self.in_spike:
            if abs(n - last) > 2 * self.variation + 100e6:
                self.in_spike, self.slope = True, 0.0
        else:
            self.slope = self.slope / 2 + abs((2 * n - last - before) / 8)
            if self.slope <= 7.875e6:
                self.in_spike = False
                return
        if self.in_spike:
            self.mean += n - last
        else:
            self.mean += (n - self.mean) / 8
        self.variation += (abs(n - self.mean) - self.variation) / 8


class Fixed:
    def __init__(self, wait):
        self.wait = wait
        self.playout = None

    def until(self, _seq, delay):
        if self.playout is None:
            self.playout = delay + self.wait
        return self.playout


class BeyondLeast:
    """The second receiver: 60 ms beyond the smallest delay of the whole call."""

    def __init__(self, frames):
        self.playout = min((delay for _, delay in frames if delay is not None), default=0) + 60_000_000

    def until(self, _seq, _delay):
        return self.playout


def gaps_in_a_minute(begins, frame):
    """The most long gaps whose first frames, by number, lie within a minute."""
    within = lambda first: sum(first <= it and (it - first) * frame < 60_000_000_000 for it in begins)
    return max(map(within, begins), default=0)


def listen(frames, frame, playout, bpl, floor):
    """What a listener hears of `frames`: (seq, delay in ns or None), in order of seq."""
    played, late, missing, gaps, in_gap, delays = 0, 0, 0, 0, False, []
    longest, current, long_begins = 0, 0, []
    for number, (seq, delay) in enumerate(frames):
        if delay is None:
            missing += 1
        else:
            until = playout.until(seq, delay)
            if delay <= until:
                played += 1
                delays.append(until)
                in_gap = False
                continue
            late += 1
        gaps += not in_gap
        current = current + 1 if in_gap else 1
        longest = max(longest, current)
        if (current - 1) * frame < 200_000_000 <= current * frame:
            long_begins.append(number + 1 - current)
        in_gap = True
    due = played + late + missing
    if due == 0:
        return None
    loss = (late + missing) / due
    burst_ratio = max(1.0, (late + missing) / gaps * (1 - loss)) if gaps else 1.0
    delays.sort()
    ear = None
    if delays:
        rank = lambda p: (frame + delays[max(1, -(-len(delays) * p // 100)) - 1]) / 1e6
        ear = {"mean": (frame + sum(delays) / len(delays)) / 1e6, "p50": rank(50), "p95": rank(95)}
    r, mos = e_model(max(0.0, ear["mean"]) if ear else 0.0, loss, burst_ratio, bpl)
    longest_gap_ms, in_a_minute = longest * frame / 1e6, gaps_in_a_minute(long_begins, frame)
    barred = longest_gap_ms >= 1000 or in_a_minute >= 2
    return {
        "mos": mos, "r": r, "played": played, "late": late, "missing": missing,
        "burst_ratio": burst_ratio, "mouth_to_ear_ms": ear, "longest_gap_ms": longest_gap_ms,
        "gaps_in_a_minute": in_a_minute, "barred": barred, "usable": mos >= floor and not barred,
    }  # fmt: skip


def worse(heard):
    """The direction that counts; `None` without a frame in either."""
    heard = [it for it in heard if it]
    return min(heard, key=lambda it: (it["played"] > 0, it["usable"], it["r"])) if heard else None


# ---------------------------------------------------------------------------------------------------------
# A run directory.

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}


def nanoseconds(text):
    number, unit = text.split()
    return round(float(number) * UNITS[unit])


class Rows:
    """The messages of one flow of one repetition."""

    def __init__(self, table):
        order = np.argsort(table["seq"], kind="stable")
        column = lambda name: table[name][order]
        self.seq, self.due, self.received = column("seq"), column("due_ns"), column("received_ns")
        self.arrived = column("fate") == "delivered"


def read_rows(path):
    """(cell, repetition, flow, leg) -> Rows."""
    table = parquet.read_table(
        path, columns=["cell", "repetition", "flow", "leg", "seq", "due_ns", "received_ns", "fate"]
    )
    found = {}
    plain = {}
    for name in table.column_names:
        column = table.column(name)
        if name == "received_ns":
            column = column.fill_null(-1)
        plain[name] = np.asarray(column.to_pylist() if str(column.type) != "int64" else column.to_numpy())
    key = [f"{c}\0{r}\0{f}\0{l}" for c, r, f, l in zip(plain["cell"], plain["repetition"], plain["flow"], plain["leg"])]
    names, where = np.unique(np.asarray(key), return_inverse=True)
    for at, name in enumerate(names):
        c, r, f, l = name.split("\0")
        pick = where == at
        found[int(c), int(r), f, l] = Rows({k: v[pick] for k, v in plain.items()})
    return found


def settings(scenario, sweep, flow):
    """The flow's table, with the values of this cell's sweep."""
    scenario = json.loads(json.dumps(scenario))
    for key, value in sweep.items():
        if key == "run":
            continue
        names, at = key.split("."), scenario
        for name in names[:-1]:
            at = at[name]
        at[names[-1]] = value
    name = flow
    while name not in scenario["flow"]:
        name = name.rpartition("-")[0]
    return scenario["flow"][name], name


def figures(flow, forward, back, window):
    """in_time, and the call, of one flow from its rows."""
    work = flow["workload"]
    echoes = back is not None
    inside = (forward.due >= window[0]) & (forward.due < window[1])
    result = {"in_time": None, "call": None, "other": None}
    returned = {}
    if echoes:
        returned = {s: (d, r if a else None) for s, d, r, a in zip(back.seq, back.due, back.received, back.arrived)}
    kind = work["kind"]
    has_clock = kind in ("voice", "cbr")
    if has_clock or "deadline" in work:
        limit = 300_000_000 if echoes else 150_000_000
        if "deadline" in work:
            limit = nanoseconds(work["deadline"])
        in_time = 0
        for seq, due, received, arrived in zip(
            forward.seq[inside], forward.due[inside], forward.received[inside], forward.arrived[inside]
        ):
            end = received if arrived else None
            if echoes:
                end = returned.get(seq, (0, None))[1]
            in_time += end is not None and end - due <= limit
        count = int(inside.sum())
        result["in_time"] = in_time / count if count else None
    if kind == "voice":
        frame = nanoseconds(work.get("ptime", "20 ms"))
        bpl = 4.3 if work.get("concealment") == "none" else 25.1
        floor = work.get("floor", 3.1)
        rule = work.get("playout", "adaptive")
        if rule == "adaptive":
            # The receiver of browsers, and ratings in windows, are not recounted.
            return result
        fixed = isinstance(rule, dict) and rule["kind"] == "fixed"
        playout = lambda: Fixed(nanoseconds(rule["delay"])) if fixed else Adaptive(frame)
        there, back_again = [], []
        for seq, due, received, arrived in zip(
            forward.seq[inside], forward.due[inside], forward.received[inside], forward.arrived[inside]
        ):
            there.append((int(seq), int(received - due) if arrived else None))
            if seq in returned:
                due, received = returned[seq]
                back_again.append((int(seq), None if received is None else int(received - due)))
        ways = [there, back_again] if echoes else [there]
        result["call"] = worse([listen(way, frame, playout(), bpl, floor) for way in ways])
        if work.get("playout") is None:
            result["other"] = worse([listen(way, frame, BeyondLeast(way), bpl, floor) for way in ways])
    return result


# ---------------------------------------------------------------------------------------------------------
# The ranking: metrics.md, "Which transport is best".

RESAMPLES = 9999
normal = statistics.NormalDist()


def student_t(p, degrees):
    """Quantile of Student's t, by bisection of its density's integral (Simpson)."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def below(t, steps=4000):
        x = np.linspace(0.0, t, steps + 1)
        y = scale * (1 + x * x / degrees) ** (-(degrees + 1) / 2)
        weights = np.ones(steps + 1)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        return 0.5 + float((y * weights).sum()) * t / steps / 3

    low, high = 0.0, 1000.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < p else (low, middle)
    return (low + high) / 2


def interval(values, level, possible, seed):
    n = len(values)
    if n < 2:
        return None
    if len(set(values)) == 1:
        return values[0], values[0]
    t = student_t(0.5 + level / 2, n - 1)
    mean = statistics.fmean(values)
    if n < 6:
        half = t * statistics.stdev(values) / math.sqrt(n)
        return max(possible[0], mean - half), min(possible[1], mean + half)
    draws = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    means = np.sort(np.asarray(values)[draws].mean(axis=1))
    tail = normal.cdf(-t * math.sqrt(n / (n - 1)))
    k = min(max(int((RESAMPLES + 1) * tail), 1), RESAMPLES // 2)
    return float(means[k - 1]), float(means[-k])


def relation(bounds, tolerance):
    if bounds is None:
        return "undecided"
    low, high = bounds
    if -tolerance <= low and high <= tolerance:
        return "alike"
    return "distinct" if high < 0 or low > 0 else "undecided"


def rank(candidates, tolerance, floor, most, seed):
    """Outcome, and the indices of the best; `candidates` has a dict of (figure, barred) by repetition for each."""
    barred = [statistics.fmean(b for _, b in it.values()) >= 0.5 for it in candidates]
    candidates = [{k: figure for k, (figure, _) in it.items()} for it in candidates]
    means = [statistics.fmean(it.values()) for it in candidates]
    serves = [mean >= floor and not b for mean, b in zip(means, barred)]
    leader = max(range(len(means)), key=lambda at: (serves[at], means[at], -at))
    relations = []
    for at, candidate in enumerate(candidates):
        if at == leader:
            relations.append("leader")
            continue
        if serves[leader] and barred[at]:
            relations.append("distinct")
            continue
        differences = [candidate[k] - candidates[leader][k] for k in sorted(candidate) if k in candidates[leader]]
        relations.append(relation(interval(differences, 0.95, (-most, most), seed), tolerance))
    best = [at for at, it in enumerate(relations) if it != "distinct"]
    if not serves[leader]:
        return "unusable", best
    for outcome in ("undecided", "alike"):
        if outcome in relations:
            return outcome, best
    return "distinct", best


def with_both(own, other):
    """The answer with both receivers."""
    unusable = [it[0] == "unusable" for it in (own, other)]
    if all(unusable) or not any(unusable) and set(own[1]) & set(other[1]):
        return own
    named = [at for it in (own, other) if it[0] != "unusable" for at in it[1]]
    return "depends-on-receiver", list(dict.fromkeys(named))


# ---------------------------------------------------------------------------------------------------------
# The comparison with summary.json.


class Report:
    def __init__(self):
        self.compared = {}
        self.differences = []
        self.by_chance = 0

    def equal(self, what, where, ours, theirs):
        self.compared[what] = self.compared.get(what, 0) + 1
        if ours is None or theirs is None:
            same = ours is theirs
        elif isinstance(ours, (int, float)):
            # Rounding of a sum of doubles, no more.
            same = math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
        else:
            same = ours == theirs
        if not same:
            self.differences.append(f"{where}: {what}: recounted {ours}, summary.json has {theirs}")


def judged_group(name, copies):
    """The worst and the median copy of the group `name`, and whether one is barred; its directions are one conversation."""
    talks = {}
    for copy, (figure, _) in copies.items():
        talk = copy.removeprefix(name)
        for direction in ("-up", "-down"):
            talk = talk.removesuffix(direction)
        talks[talk] = min(figure, talks.get(talk, figure))
    return min(talks.values()), statistics.median(talks.values()), any(barred for _, barred in copies.values())


def recount(folder, report):
    folder = Path(folder)
    scenario = tomllib.loads((folder / "scenario.toml").read_text())
    summary = json.loads((folder / "summary.json").read_text())
    rows = read_rows(folder / "packets.parquet")
    window = nanoseconds(scenario.get("warm_up", "0 s")), nanoseconds(scenario["duration"])
    judged, judged_beside = {}, {}
    for run in summary["runs"]:
        cell, repetition, sweep = run["cell"], run["repetition"], run["sweep"]
        copies, beside = {}, {}
        for name, theirs in run["flows"].items():
            where = f"{folder.name}: cell {cell}, repetition {repetition}, {name}"
            forward = rows.get((cell, repetition, name, "forward"))
            if forward is None:
                report.differences.append(f"{where}: no rows")
                continue
            flow, group = settings(scenario, sweep, name)
            echoes = flow["workload"].get("echo", False)
            back = rows.get((cell, repetition, name, "return")) if echoes else None
            ours = figures(flow, forward, back, window)
            report.equal("in_time", where, ours["in_time"], theirs["in_time"])
            call, their_call = ours["call"], theirs["call"]
            if (call is None) != (their_call is None):
                report.differences.append(f"{where}: call: recounted {call}, summary.json has {their_call}")
            if call and their_call:
                keys = ("mos", "r", "played", "late", "burst_ratio", "longest_gap_ms", "gaps_in_a_minute", "usable")
                for key in (*keys, "missing"):
                    report.equal(key, where, call[key], their_call[key])
                other, their_other = ours["other"], their_call["other_receiver"]
                if (other is None) != (their_other is None):
                    report.differences.append(f"{where}: other_receiver: recounted {other}, summary.json has {their_other}")
                elif other:
                    for key in keys:
                        report.equal(f"other {key}", where, other[key], their_other[key])
                for key in ("mean", "p50", "p95"):
                    ear, their_ear = call["mouth_to_ear_ms"], their_call["mouth_to_ear_ms"]
                    report.equal("mouth_to_ear_ms", where, ear and ear[key], their_ear and their_ear[key])
            figure = call["mos"] if call else ours["in_time"]
            if figure is not None:
                copies.setdefault(group, {})[name] = figure, bool(call and call["barred"])
            if ours["other"]:
                beside.setdefault(group, {})[name] = ours["other"]["mos"], ours["other"]["barred"]
        for group, of in beside.items():
            worst, _, barred = judged_group(group, of)
            judged_beside[cell, group, repetition] = worst, barred
        for group, of in copies.items():
            if group in run["flows"]:
                judged[cell, group, repetition] = of[group]
                continue
            worst, median, barred = judged_group(group, of)
            judged[cell, group, repetition] = worst, barred
            theirs = run["groups"][group]["judged"]
            where = f"{folder.name}: cell {cell}, repetition {repetition}, {group}"
            report.equal("worst copy", where, worst, theirs and theirs["worst"])
            report.equal("median copy", where, median, theirs and theirs["median"])
    sweeps = {cell["cell"]: cell["sweep"] for cell in summary["cells"]}
    for comparison in summary["comparisons"]:
        flow, cells = comparison["flow"], comparison["cells"]
        is_call = scenario["flow"][flow]["workload"]["kind"] == "voice"
        floor = scenario["flow"][flow]["workload"].get("floor", 3.1 if is_call else 0.95)
        tolerance, most = (0.1, 3.5) if is_call else (0.01, 1.0)
        candidates, others = (
            [{r: figure for (c, f, r), figure in of.items() if (c, f) == (cell, flow)} for cell in cells]
            for of in (judged, judged_beside)
        )
        answers = {}
        for seed in range(9):
            outcome, best = rank(candidates, tolerance, floor, most, seed)
            if all(others):
                outcome, best = with_both((outcome, best), rank(others, tolerance, floor, most, seed))
            names = [sweeps[cells[at]][f"flow.{flow}.transport"] for at in best]
            names = tuple(it["kind"] if isinstance(it, dict) else it for it in names)
            answers[outcome, names] = answers.get((outcome, names), 0) + 1
        theirs = comparison["answer"]["outcome"], tuple(comparison["answer"]["best"])
        report.compared["winners"] = report.compared.get("winners", 0) + 1
        if theirs not in answers:
            report.differences.append(f"{folder.name}: cells {cells}: recounted {answers}, summary.json has {theirs}")
        elif len(answers) > 1:
            report.by_chance += 1
    report.cells = getattr(report, "cells", 0) + len(summary["cells"])


def main(folders):
    report = Report()
    for folder in folders:
        recount(folder, report)
    for difference in report.differences:
        print(difference)
    compared = ", ".join(f"{count} {what}" for what, count in report.compared.items())
    print(f"compared over {report.cells} cells: {compared}")
    print(
        f"{len(report.differences)} differences; {report.by_chance} winners on which another draw of the "
        f"bootstrap could answer otherwise"
    )
    return 1 if report.differences or not report.compared else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
