"""A monitor of fifty calls beside irtt for an hour, both held against a bridge between the hosts that counts.

    monitor.py TALKPATH SECONDS

Two network namespaces, near and far, have a veth pair each. This script is the bridge between the pairs. It carries each
frame, counts the messages of both tools by port and size, and drops one of 200. So it knows what was sent and what was lost,
each way.

- The counts of the monitor's end event, and irtt's, are the bridge's, without a tolerance. So are the sums of the
  intervals, and the textfile. What the far kernel had no room for in a socket is irtt's loss, and not the bridge's.
- Each interval begins where the one before it ended, and there is no outage.
- promtool takes the metrics every 10 s, if it is installed (Debian: prometheus).
- Memory of the monitor and of its server does not grow: a line through the resident sizes of the second half of the time
  rises by at most GROWTH in an hour. The first half has the allocator's room for putting directories together, thrice in
  an hour's run.

Needs root, ip(8), ethtool and irtt, all of Debian. Exit code 1 if one differs. The last line says what was judged, or what is
missing, with exit code 3.
"""

import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

TALKPATH, SECONDS = sys.argv[1], int(sys.argv[2])
NEAR, FAR = f"talkpath-near-{os.getpid()}", f"talkpath-far-{os.getpid()}"
NEAR_ADDRESS, FAR_ADDRESS = "10.77.0.1", "10.77.0.2"
FLOWS = 50
# Of a message of the monitor's calls (G.711, 20 ms), and of irtt's packets: sizes that nothing else of either tool has.
CALL, IRTT = 160, 172
PORTS = {7160: ("talkpath", CALL), 2112: ("irtt", IRTT)}
# Chosen: enough losses each way in a minute, and calls stay calls.
LOSS = 0.005
# Bytes an hour. Chosen: a word kept for each message would be 72 MB, a histogram's new buckets are some kB.
GROWTH = 1 << 20
# Seconds. Chosen: three directories of 10 min are put together in the first half.
LEAST_FOR_MEMORY = 3_600
failures, judged, children = [], [], []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"DIFFERS: {what}")


def run(*arguments):
    subprocess.run(arguments, check=True, capture_output=True, text=True)


def inside(namespace, *arguments, **more):
    child = subprocess.Popen(["ip", "netns", "exec", namespace, *arguments], text=True, **more)
    children.append(child)
    return child


class Bridge(threading.Thread):
    """Carries frames between two devices. `seen` and `dropped` count datagrams by tool and direction."""

    # linux/if_packet.h, linux/if_ether.h and asm-generic/socket.h: what Python has no names for.
    SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING, ETH_P_ALL, SO_RCVBUFFORCE = 263, 6, 23, 3, 33

    def __init__(self, devices):
        super().__init__(daemon=True)
        self.ends = []
        for device in devices:
            end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(self.ETH_P_ALL))
            end.setsockopt(self.SOL_PACKET, self.PACKET_IGNORE_OUTGOING, 1)
            # Room for what comes while this script waits for a processor.
            end.setsockopt(socket.SOL_SOCKET, self.SO_RCVBUFFORCE, 1 << 25)
            end.bind((device, 0))
            end.setblocking(False)
            self.ends.append(end)
        self.random = random.Random(2026)
        self.seen = {(tool, way): 0 for tool in ("talkpath", "irtt") for way in ("there", "back")}
        self.dropped = dict(self.seen)
        self.ending = False

    def tool(self, frame, way):
        """The tool whose message this is. Other frames (ARP, TCP, a tool's openings and ends) are carried and not counted."""
        if len(frame) < 42 or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
            return None
        udp = 14 + (frame[14] & 15) * 4
        source, target, length = struct.unpack_from("!HHH", frame, udp)
        tool, size = PORTS.get(target if way == "there" else source, (None, 0))
        return tool if length - 8 == size else None

    def run(self):
        way_of = {self.ends[0]: ("there", self.ends[1]), self.ends[1]: ("back", self.ends[0])}
        while not self.ending:
            for end in select.select(self.ends, [], [], 0.2)[0]:
                way, other = way_of[end]
                for _ in range(64):
                    try:
                        frame = end.recv(65536)
                    except BlockingIOError:
                        break
                    tool = self.tool(frame, way)
                    if tool:
                        self.seen[tool, way] += 1
                        if self.random.random() < LOSS:
                            self.dropped[tool, way] += 1
                            continue
                    other.send(frame)

    def overruns(self):
        """Frames that the sockets had no room for: with one, the bridge's counts are not what was sent."""
        return sum(struct.unpack("II", end.getsockopt(self.SOL_PACKET, self.PACKET_STATISTICS, 8))[1] for end in self.ends)


def namespaces():
    for namespace, device, address in [(NEAR, "tp-near", NEAR_ADDRESS), (FAR, "tp-far", FAR_ADDRESS)]:
        run("ip", "netns", "add", namespace)
        run("ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        run("ip", "link", "set", device, "up")
        for command in [
            ["ip", "address", "add", f"{address}/24", "dev", "eth0"],
            ["ip", "link", "set", "eth0", "up"],
            ["ip", "link", "set", "lo", "up"],
            # A frame is then one datagram with its checksum, as on a wire.
            ["ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off"],
        ]:
            run("ip", "netns", "exec", namespace, *command)
    return Bridge(["tp-near", "tp-far"])


def removed():
    # Of a judge that breaks off they still run.
    for child in children:
        child.kill()
    for namespace in (NEAR, FAR):
        subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)


def resident(child):
    """Bytes that the program has in memory: `ip netns exec` becomes the program, so the process is the program's."""
    with open(f"/proc/{child.pid}/status") as file:
        return int(re.search(r"^VmRSS:\s+(\d+) kB", file.read(), re.M)[1]) * 1024


def growth(samples):
    """Bytes an hour: the slope of least squares through (seconds, bytes)."""
    mean_time = sum(time for time, _ in samples) / len(samples)
    mean_size = sum(size for _, size in samples) / len(samples)
    spread = sum((time - mean_time) ** 2 for time, _ in samples)
    return 3600 * sum((time - mean_time) * (size - mean_size) for time, size in samples) / spread


def scrape(port):
    code = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/metrics', timeout=5).read().decode())"
    return subprocess.run(["ip", "netns", "exec", NEAR, sys.executable, "-c", code], capture_output=True, text=True).stdout


def without_room():
    """Datagrams that sockets of the far host had no room for (RcvbufErrors in Linux's /proc/net/snmp)."""
    counters = subprocess.run(["ip", "netns", "exec", FAR, "cat", "/proc/net/snmp"], capture_output=True, text=True, check=True)
    names, values = [line.split() for line in counters.stdout.splitlines() if line.startswith("Udp:")]
    return int(values[names.index("RcvbufErrors")])


def events_of(monitor, events):
    for line in monitor.stdout:
        events.append(json.loads(line))


def of_all(event, key):
    return sum(stream["counts"][key] for stream in event["data"]["streams"])


def judge(bridge, folder):
    server = inside(FAR, TALKPATH, "serve", "--open", "--bind", f"{FAR_ADDRESS}:7160", stdout=subprocess.DEVNULL, cwd=folder)
    reflector = inside(FAR, "irtt", "server", "-b", f"{FAR_ADDRESS}:2112", "-d", "0", stdout=subprocess.DEVNULL)
    time.sleep(1)
    textfile = os.path.join(folder, "talkpath.prom")
    monitor = inside(
        NEAR, TALKPATH, "monitor", "--to", FAR_ADDRESS, "--flows", str(FLOWS), "--json-stream", "--records", "summary",
        "--rotate", "10min", "--metrics", "127.0.0.1:9160", "--textfile", textfile, stdout=subprocess.PIPE, cwd=folder)
    irtt = inside(
        NEAR, "irtt", "client", "-Q", "-i", "20ms", "-l", str(IRTT), "-d", f"{SECONDS}s", "-o",
        os.path.join(folder, "irtt.json"), FAR_ADDRESS, stdout=subprocess.DEVNULL)
    events = []
    reader = threading.Thread(target=events_of, args=(monitor, events), daemon=True)
    reader.start()
    began, sizes, texts = time.monotonic(), {monitor: [], server: []}, 0
    while time.monotonic() - began < SECONDS:
        time.sleep(min(10.0, SECONDS / 20))
        for child, samples in sizes.items():
            check(child.poll() is None, f"{child.args[4]} runs")
            samples.append((time.monotonic() - began, resident(child)))
        if shutil.which("promtool"):
            seen = subprocess.run(["promtool", "check", "metrics"], input=scrape(9160), capture_output=True, text=True)
            check(seen.returncode == 0, f"promtool: {seen.stdout}{seen.stderr}")
            texts += 1
        if failures:
            break
    irtt.wait(timeout=60)
    monitor.send_signal(signal.SIGINT)
    check(monitor.wait(timeout=90) == 0, "Ctrl-C ends the monitor with exit code 0")
    reader.join(timeout=10)
    for child in (server, reflector):
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
    bridge.ending = True
    bridge.join()
    lost = bridge.overruns()
    check(lost == 0, f"void: the bridge came too late for {lost} frames")

    end = next(event for event in events if event["event"] == "end")
    counts = {key: sum(one["udp"]["counts"][key] for one in end["data"]["streams"]) for key in
              ["sent", "received", "lost", "lost_forward", "lost_return", "unfinished", "refused", "duplicates"]}
    wire = {
        "sent": bridge.seen["talkpath", "there"],
        "received": bridge.seen["talkpath", "back"] - bridge.dropped["talkpath", "back"],
        "lost_forward": bridge.dropped["talkpath", "there"],
        "lost_return": bridge.dropped["talkpath", "back"],
        "refused": 0,
        "duplicates": 0,
    }
    print(f"monitor {counts}\nbridge {wire}")
    for key, value in wire.items():
        check(counts[key] == value, f"monitor's {key}: {counts[key]}, the bridge's {value}")
    for key in counts:
        summed = sum(of_all(event, key) for event in events if event["event"] == "interval")
        check(summed == counts[key], f"{key}: the intervals have {summed}, the end event {counts[key]}")
    with open(textfile) as file:
        text = file.read()
    for key in ["sent", "received", "lost"]:
        value = sum(float(it) for it in re.findall(rf"^talkpath_messages_{key}_total{{[^}}]*}} (\S+)$", text, re.M))
        check(value == counts[key], f"{key}: the textfile has {value}, the end event {counts[key]}")
    outages = [event for event in events if event["event"] in ("outage", "error")]
    check(not outages, f"no outage and no error: {outages}")
    # Each interval begins where the one before it ended.
    borders = [(event["data"]["sum"]["start"], event["data"]["sum"]["end"]) for event in events if event["event"] == "interval"]
    check(all(one[1] == two[0] for one, two in zip(borders, borders[1:])), "no gap between intervals")
    judged.append(f"{counts['sent']} messages of {FLOWS} calls in {len(borders)} intervals")

    with open(os.path.join(folder, "irtt.json")) as file:
        stats = json.load(file)["stats"]
    wire = {
        "packets_sent": bridge.seen["irtt", "there"],
        "server_packets_received": bridge.seen["irtt", "there"] - bridge.dropped["irtt", "there"] - without_room(),
        "packets_received": bridge.seen["irtt", "back"] - bridge.dropped["irtt", "back"],
    }
    print(f"irtt {({key: stats[key] for key in wire})}\nbridge {wire}")
    for key, value in wire.items():
        check(stats[key] == value, f"irtt's {key}: {stats[key]}, the bridge's {value}")
    judged.append(f"irtt's {stats['packets_sent']}")
    if texts:
        judged.append(f"promtool {texts} times")
    else:
        print("SKIP promtool: not installed (Debian: prometheus)")

    for child, samples in sizes.items():
        name, late = child.args[5], [it for it in samples if it[0] > SECONDS / 2]
        slope = growth(late)
        print(f"{name}: {late[0][1] / 1e6:.1f} MB after half of the time, {late[-1][1] / 1e6:.1f} MB at the end, "
              f"{slope / 1e3:+.1f} kB an hour")
        if SECONDS < LEAST_FOR_MEMORY:
            print(f"SKIP {name}'s memory: {SECONDS} s are too short")
        else:
            check(slope <= GROWTH, f"{name}: memory grows by {slope / 1e6:.2f} MB an hour")
    if SECONDS >= LEAST_FOR_MEMORY:
        judged.append("memory")


missing = [tool for tool in ("ip", "ethtool", "irtt") if not shutil.which(tool)]
if os.geteuid() != 0:
    missing.append("root")
if missing:
    print(f"missing: {', '.join(missing)}")
    sys.exit(3)
try:
    with tempfile.TemporaryDirectory() as place:
        judge_bridge = namespaces()
        judge_bridge.start()
        judge(judge_bridge, place)
except Exception as why:  # A judge that breaks off has not agreed.
    check(False, repr(why))
finally:
    removed()
closing = f"{', '.join(judged) or 'nothing'} judged"
print(closing if not failures else f"{len(failures)} differences; {closing}")
sys.exit(1 if failures else 0)
