"""Reads a trace for the network animator nam, by the grammar of the ns manual (chapter "Nam Trace").

    python3 nam.py TRACE

Shares no code with talkpath. It refuses a line that the manual does not have, and a trace that tells an
impossible story: a packet on a link that was not declared, an event before the one that it needs, a packet
that leaves a node where it did not arrive, a link that serves two packets at once. Prints what became of
the packets of each flow as JSON: {"FLOW": {"packets": N, "arrived": N, "dropped": N}}.
"""

import json
import sys

# The flags of each kind of line, those that must be there first.
SETUP = {
    "V": ("tv", "a"),
    "A": ("t", "nphomasc"),
    "c": ("tin", ""),
    "n": ("ta", "sSvciz"),
    "l": ("tsd", "SrDco"),
    "q": ("tsda", ""),
}
PACKET = {letter: ("tsdpecia", "xky") for letter in "+-hrd"}
# What must have happened to a packet on this link before. `+` is the first.
BEFORE = {"+": "", "-": "+", "h": "-", "r": "h", "d": "+h"}
# A nanosecond, the last digit of a time, and what a double adds.
ROUNDING_S = 2e-9


class Wrong(Exception):
    """What a line has wrong."""


def flags(line):
    letter, *words = line.split()
    required, optional = {**SETUP, **PACKET}.get(letter, (None, None))
    if required is None:
        raise Wrong(f"no line of nam begins with {letter!r}")
    if len(words) % 2 or any(len(word) != 2 or word[0] != "-" for word in words[::2]):
        raise Wrong("flags and values do not alternate")
    found = {flag[1]: value for flag, value in zip(words[::2], words[1::2])}
    if len(found) * 2 != len(words):
        raise Wrong("a flag twice")
    missing = set(required) - set(found)
    unknown = set(found) - set(required) - set(optional)
    if missing or unknown:
        raise Wrong(f"missing flags {sorted(missing)}, unknown flags {sorted(unknown)}")
    return letter, found


class Trace:
    def __init__(self):
        self.is_begun = False
        self.nodes = set()
        self.rates = {}  # of each declared pair of nodes, both ways
        self.now = 0.0
        self.free_at = {}  # when each direction of a link has sent its last packet
        self.packets = {}  # (flow, id): (node, event there, time)

    def add(self, line):
        letter, found = flags(line)
        if not self.is_begun and letter != "V":
            raise Wrong("the first line is not the version, V")
        self.is_begun = True
        if letter in SETUP:
            if found["t"] != "*":
                raise Wrong("a line of the set-up at a time")
            self.set_up(letter, found)
        else:
            self.event(letter, found)

    def set_up(self, letter, found):
        if letter == "n":
            self.nodes.add(found["a"])
        elif letter in "lq":
            pair = (found["s"], found["d"])
            if letter == "q" and pair not in self.rates:
                raise Wrong(f"a queue on {pair}, which is no link")
            if not self.nodes.issuperset(pair):
                raise Wrong(f"a link between {pair}, of which one is no node")
            if letter == "l":
                self.rates[pair] = self.rates[pair[::-1]] = float(found["r"])
                float(found["D"])

    def event(self, letter, found):
        at, way = float(found["t"]), (found["s"], found["d"])
        if at < self.now:
            raise Wrong(f"{at} comes after {self.now}")
        self.now = at
        if way not in self.rates:
            raise Wrong(f"{way} is no link")
        key = (found["c"], found["i"])
        node, before, since = self.packets.get(key, (way[0], "r", at))
        # A packet that came out of a link is on none until it comes to the next one.
        is_new = before == "r"
        if is_new and letter != "+" or not is_new and before not in BEFORE[letter]:
            raise Wrong(f"`{letter}` of packet {key} after `{before}`")
        if is_new and node != way[0] or not is_new and node != way:
            raise Wrong(f"packet {key} is at {node}, not on {way}")
        if letter == "-":
            if at < self.free_at.get(way, 0.0) - ROUNDING_S:
                raise Wrong(f"{way} serves two packets at once")
            self.free_at[way] = at + int(found["e"]) * 8 / self.rates[way]
        if letter == "r" and at < since:
            raise Wrong(f"packet {key} arrives before it left")
        self.packets[key] = (way[1] if letter == "r" else way, letter, at)

    def outcome(self):
        flows = {}
        for (flow, _), (_, last, _) in self.packets.items():
            counts = flows.setdefault(flow, {"packets": 0, "arrived": 0, "dropped": 0})
            counts["packets"] += 1
            counts["arrived"] += last == "r"
            counts["dropped"] += last == "d"
        return flows


def main():
    trace = Trace()
    with open(sys.argv[1], encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            try:
                trace.add(line)
            except (Wrong, ValueError) as why:
                sys.exit(f"{sys.argv[1]}:{number}: {why}: {line.strip()}")
    print(json.dumps(trace.outcome()))


if __name__ == "__main__":
    main()
