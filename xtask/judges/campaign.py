"""Judges the campaign that rebuilds Zhang and Schulzrinne (2004) in small, from what `campaign report --json` printed
and from its directory: the plan, the journal and the records.

    campaign.py FINDINGS.json DIRECTORY

What must hold follows from the paths that scenarios/campaigns/columbia describes, and from the paper's text. Only Python's own
library is used.
"""

import collections
import json
import pathlib
import statistics
import sys

findings = json.load(open(sys.argv[1], encoding="utf-8"))
directory = pathlib.Path(sys.argv[2])
entries = [json.loads(line) for line in open(directory / "journal.jsonl", encoding="utf-8")]
plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
records = directory / "records"
WRONG = {"au", "hk", "cmu", "ucsb"}  # whose clocks jump
STEADY = {"cam": 75.0, "uw": 73.6, "uv": 10.8}  # round trips of the paths, ms
failed = []


def hold(what, is_so):
    if not is_so:
        failed.append(what)


def median(estimate):
    return None if estimate is None else estimate["median"]


hold(
    f"{findings['done']} of {findings['planned']} measured and {len(findings['missing'])} with a reason",
    findings["done"] + len(findings["missing"]) == findings["planned"],
)
hold("every measurement is in the records", findings["done"] == findings["planned"])

ends = collections.Counter(entry["id"] for entry in entries if entry["event"] in ("done", "abandoned"))
for name, times in sorted(ends.items()):
    hold(f"{name} has ended {times} times in the journal", times == 1)
hold(f"{len(ends)} of {findings['planned']} have an end in the journal", len(ends) == findings["planned"])

p90 = {(row["far"], row["day"], row["transport"]): median(row["delay_ms_p90"]) for row in findings["days"]}
for (node, day, transport), delay in sorted(p90.items()):
    base = STEADY.get(node)
    if base is None or delay is None:
        continue
    name = f"{node}, day {day}: p90 over {transport} is {delay:.1f} ms"
    if transport == "udp":
        # Three standard deviations of jitter each way, and the host's own.
        hold(f"{name}, the path's round trip is {base}", base <= delay <= base + 12)
    if transport == "tcp-nodelay":
        # The paper's section 4.2: "less than 15 %" of difference on the steady paths. A lost packet costs more.
        hold(f"{name}, over udp {p90[node, day, 'udp']:.1f}", delay <= 1.5 * p90[node, day, "udp"] + 5)
    if transport == "tcp" and base > 50:
        # Z1: Nagle holds packets back at both ends, for 2.8 round trips in all.
        hold(f"{name}, over udp {p90[node, day, 'udp']:.1f}", delay >= 2 * p90[node, day, "udp"])

for row in findings["matrix"]:
    name = f"{row['far']} over {row['transport']}: clocks trusted in {row['clock_trusted']} of {row['measurements']}"
    # One clock serves both emulated hosts unless the file makes one of them wrong: a jump is not corrected.
    hold(name, row["clock_trusted"] == (0 if row["far"] in WRONG else row["measurements"]))
# Each repetition over UDP of a measurement whose clocks were trusted: half the round trip, and one way.
ways = collections.defaultdict(list)
for measurement in plan["measurements"]:
    path = records / measurement["id"] / "summary.json"
    if not path.is_file():
        continue
    summary = json.loads(path.read_text(encoding="utf-8"))
    far, day = measurement["far"], measurement["day"]
    flows = [run["flows"]["call"] for run in summary["runs"] if run["sweep"]["flow.call.transport"] == "udp"]
    both = [it for it in flows if it["round_trip_delay_ms"] and it["one_way_delay_ms"]]
    hold(f"{far}, day {day}: no one-way figure though its clock is wrong", far not in WRONG or not both)
    if summary["clock"]["trusted"]:
        ways[far, day] += [(it["round_trip_delay_ms"]["mean"] / 2, it["one_way_delay_ms"]["mean"]) for it in both]
for (far, day), found in sorted(ways.items()):
    if far in STEADY and found:
        # Z8: a path that is the same both ways.
        half, one_way = (statistics.median(it) for it in zip(*found, strict=True))
        hold(f"{far}, day {day}: half the round trip {half:.1f} ms, one way {one_way:.1f}", abs(half - one_way) <= 2)
for node in STEADY:
    hold(f"{node}: half of some round trip beside one way", any(found for (far, _), found in ways.items() if far == node))

for what in failed:
    print(f"does not hold: {what}")
rows = len(findings["days"])
print(f"{findings['done']} measurements, {rows} rows of days, {len(failed)} demands do not hold")
sys.exit(1 if failed else 0)
