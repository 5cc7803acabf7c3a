"""What the paths of neteq.py do with the packets of a stream: for each packet its delay in ms, or None if it is lost.

Each path draws from a seed of its own, so that all repeats and all recordings meet the same delays. The figures of
a path are in its name, its function or the table at the end. We chose them; LTE's steps are those of HARQ's round
trip (8 ms, 3GPP TS 36.321).
"""

import math
import random

PACKET_MS = 20


def constant(_, count):
    return [0] * count


def random_loss(percent):
    def path(chance, count):
        return [None if chance.random() < percent / 100 else 0 for _ in range(count)]

    return path


def burst_loss(percent, mean_length=3):
    """Loses packets in runs, as a Gilbert model does."""

    def path(chance, count):
        leave = 1 / mean_length
        enter = leave * percent / (100 - percent)
        delays, is_bad = [], False
        for _ in range(count):
            is_bad = chance.random() >= leave if is_bad else chance.random() < enter
            delays.append(None if is_bad else 0)
        return delays

    return path


def ramps(height_ms):
    """Each 20 s: 5 s even, 5 s up, 5 s even, 5 s down."""

    def path(_, count):
        def height(number):
            quarter, within = divmod(number * PACKET_MS % 20_000, 5_000)
            return [0, within / 5_000, 1, 1 - within / 5_000][quarter] * height_ms

        return [height(number) for number in range(count)]

    return path


def pauses(every_ms, least_ms, most_ms):
    """Holds all packets of a pause back until its end, as a station of Wi-Fi does that scans or waits its turn."""

    def path(chance, count):
        delays, begin = [0] * count, chance.expovariate(1 / every_ms)
        while begin < count * PACKET_MS:
            end = begin + chance.uniform(least_ms, most_ms)
            hold(delays, begin, end)
            begin = end + chance.expovariate(1 / every_ms)
        return delays

    return path


def lte(share):
    """Sends a share of the packets again, each time 8 ms later and at most 7 times, and keeps the order."""

    def path(chance, count):
        delays = []
        for _ in range(count):
            again = 0
            while again < 7 and chance.random() < share:
                again += 1
            delays.append(8 * again)
        return in_order(delays)

    return path


def handovers(is_lost):
    """Each 6 to 10 s a gap of 100 to 400 ms, and then another delay of the path, up to 100 ms."""

    def path(chance, count):
        delays, begin = [0] * count, chance.uniform(6_000, 10_000)
        while begin < count * PACKET_MS:
            end = begin + chance.uniform(100, 400)
            base = chance.uniform(0, 100)
            for number in range(math.ceil(begin / PACKET_MS), count):
                delays[number] = base
            if is_lost(chance):
                for number in range(math.ceil(begin / PACKET_MS), min(math.ceil(end / PACKET_MS), count)):
                    delays[number] = None
            else:
                hold(delays, begin, end)
            begin = end + chance.uniform(6_000, 10_000)
        return in_order(delays)

    return path


def reordering(percent, least_ms, most_ms):
    """Sends a share of the packets on a slower way."""

    def path(chance, count):
        return [chance.uniform(least_ms, most_ms) if chance.random() < percent / 100 else 0 for _ in range(count)]

    return path


def uniform(width_ms):
    """Delays each packet by itself, so that packets overtake each other if the width is above 20 ms."""

    def path(chance, count):
        return [chance.uniform(0, width_ms) for _ in range(count)]

    return path


def normal(deviation_ms):
    """Delays by a normal distribution, cut at three deviations, in order."""

    def path(chance, count):
        most = 3 * deviation_ms
        return in_order([most + max(-most, min(chance.gauss(0, deviation_ms), most)) for _ in range(count)])

    return path


def hold(delays, begin_ms, end_ms):
    """Lets no packet that is sent in a span of time arrive before its end."""
    for number in range(math.ceil(begin_ms / PACKET_MS), min(math.ceil(end_ms / PACKET_MS), len(delays))):
        delays[number] = max(delays[number], end_ms - number * PACKET_MS)


def in_order(delays):
    """Lets no packet arrive before the packets sent before it."""
    arrival = 0
    ordered = []
    for number, delay in enumerate(delays):
        if delay is not None:
            arrival = max(arrival, number * PACKET_MS + delay)
            delay = arrival - number * PACKET_MS
        ordered.append(delay)
    return ordered


PATHS = {
    "constant": constant,
    **{f"loss-{percent}": random_loss(percent) for percent in (1, 3, 5, 10)},
    **{f"burst-loss-{percent}": burst_loss(percent) for percent in (1, 3, 5, 10)},
    **{f"ramps-{height}": ramps(height) for height in (50, 100, 200, 500)},
    "wifi-rare-pauses": pauses(8_000, 60, 300),
    "wifi-pauses": pauses(1_500, 60, 300),
    "lte-10": lte(0.10),
    "lte-30": lte(0.30),
    "handover-late": handovers(lambda _: False),
    "handover-lost": handovers(lambda _: True),
    "handover-mixed": handovers(lambda chance: chance.random() < 0.5),
    "reordering-1": reordering(1, 30, 80),
    "reordering-5": reordering(5, 30, 80),
    "reordering-10": reordering(10, 100, 150),
    "uniform-20": uniform(20),
    "uniform-40": uniform(40),
    "uniform-80": uniform(80),
    "normal-10": normal(10),
    "normal-40": normal(40),
    "normal-80": normal(80),
}


def delays(name, count):
    return PATHS[name](random.Random(f"neteq {name}"), count)
