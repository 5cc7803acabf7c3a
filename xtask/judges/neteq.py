"""Records what NetEq, the jitter buffer of Chromium, does with packets of known arrivals.

    neteq.py record FOLDER SPEECH.wav... [--repeats 5] [--seconds 60] [--attempts 4]

One page of Chromium calls itself with one PCMU stream of recorded speech for each path of neteq_paths.py, over a
relay between the two ends of the call. The relay lets each packet leave at its time, or never. Chromium's event log
says when each packet came and when each stream was asked for 10 ms of sound; `getStats` says each 500 ms what the
receiver did.

NetEq's own clock counts the blocks of 10 ms that it was asked for. So the relay first learns from the event log when
they are asked for, and lets all packets leave between them. Then it is certain between which two blocks a packet
came. A repeat is recorded again if the machine was so busy that this failed.

The files in FOLDER:

- `arrivals.csv.gz`: repeat, path, then for each packet that came the number of blocks of 10 ms that were asked for
  before it, less twice the packet's number; `-` for a packet that did not come; reordered ones stand at their number.
- `stats.csv.gz`: a row for each repeat, path and half second, with the counters of getStats since the start.
- `provenance.json`: versions, date, the machine's load, and how even the clocks were.

Exit code 1 if the call failed, 3 if something is missing or the machine was too busy; the last line says what was
recorded.
"""

import argparse
import bisect
import collections
import csv
import datetime
import gzip
import heapq
import io
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import wave

import neteq_event_log
import neteq_paths

from playwright.sync_api import sync_playwright

# The counters of the stats file; their definitions are in the W3C's webrtc-stats.
COUNTERS = ["jitterBufferTargetDelay", "jitterBufferMinimumDelay", "jitterBufferDelay", "jitterBufferEmittedCount",
            "concealedSamples", "silentConcealedSamples", "concealmentEvents", "insertedSamplesForDeceleration",
            "removedSamplesForAcceleration", "totalSamplesReceived", "packetsDiscarded", "packetsReceived", "packetsLost"]
SECONDS_OF_DELAY = COUNTERS[:3]
RATE = 8_000  # PCMU, RFC 3551 section 4.5.14.
PACKET_SAMPLES = RATE * neteq_paths.PACKET_MS // 1_000
GRID_NS = 10_000_000
# Chosen: the middle between two blocks, less the time that a packet takes into Chromium.
GRID_AFTER_A_BLOCK_NS = 4_000_000
# Chosen: more than the sender's own unevenness on a quiet machine, so that it does not show.
BASE_NS = 60_000_000

PAGE = """
<audio id=out autoplay></audio>
<script>
const gathered = pc => new Promise(done => {
  const look = () => { if (pc.iceGatheringState == "complete") done(); };
  pc.onicegatheringstatechange = look; look();
});
let sender, receiver, received = new MediaStream(), rows = [];
async function offer(count) {
  const plain = {echoCancellation: false, noiseSuppression: false, autoGainControl: false};
  const media = await navigator.mediaDevices.getUserMedia({audio: plain});
  sender = new RTCPeerConnection(); receiver = new RTCPeerConnection();
  const codecs = RTCRtpSender.getCapabilities("audio").codecs.filter(codec => codec.mimeType == "audio/PCMU");
  for (let number = 0; number < count; number++) {
    const track = media.getAudioTracks()[0].clone();
    sender.addTransceiver(track, {direction: "sendonly"}).setCodecPreferences(codecs);
  }
  receiver.ontrack = event => received.addTrack(event.track);
  await sender.setLocalDescription(await sender.createOffer());
  await gathered(sender);
  return sender.localDescription.sdp;
}
async function answer(sdp) {
  await receiver.setRemoteDescription({type: "offer", sdp});
  await receiver.setLocalDescription(await receiver.createAnswer());
  await gathered(receiver);
  document.getElementById("out").srcObject = received;
  return receiver.localDescription.sdp;
}
async function connect(sdp, counters) {
  await sender.setRemoteDescription({type: "answer", sdp});
  setInterval(async () => {
    (await receiver.getStats()).forEach(one => {
      if (one.type == "inbound-rtp") rows.push([one.ssrc, one.timestamp, ...counters.map(name => one[name] ?? 0)]);
    });
  }, 500);
}
function finish() { sender.close(); receiver.close(); return rows; }
</script>
"""


class Relay(threading.Thread):
    """Carries the packets between the two ends of the call, and those of RTP by the plan of their path."""

    def __init__(self, address, plans):
        super().__init__(daemon=True)
        self.plans = plans  # By SSRC: the delay of each packet in ms.
        self.near, self.far = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for end in (self.near, self.far):
            end.bind((address, 0))
            end.setblocking(False)
        self.sender = self.receiver = None
        self.grid_ns = None  # Until it is known, no packet of RTP passes.
        self.begun = {}  # By SSRC: the timestamp of the first packet, and its time to leave.
        self.behind_ns, self.too_late, self.is_over = [], 0, False

    def run(self):
        waiting = []
        while not self.is_over:
            timeout = max(0, waiting[0][0] - time.monotonic_ns()) / 1e9 if waiting else 0.1
            for end in select.select([self.near, self.far], [], [], min(timeout, 0.1))[0]:
                while True:
                    try:
                        packet = end.recv(2_048)
                    except BlockingIOError:
                        break
                    if end is self.far:
                        self.near.sendto(packet, self.sender)
                    elif is_rtp(packet):
                        leaves = None if self.grid_ns is None else self.time_to_leave(packet)
                        if leaves is not None:
                            heapq.heappush(waiting, (leaves, packet))
                    else:
                        self.far.sendto(packet, self.receiver)
            now = time.monotonic_ns()
            while waiting and waiting[0][0] <= now:
                leaves, packet = heapq.heappop(waiting)
                self.far.sendto(packet, self.receiver)
                self.behind_ns.append(time.monotonic_ns() - leaves)

    def time_to_leave(self, packet):
        timestamp, ssrc = int.from_bytes(packet[4:8], "big"), int.from_bytes(packet[8:12], "big")
        now = time.monotonic_ns()
        if ssrc not in self.begun:
            self.begun[ssrc] = timestamp, self.next_point(now + BASE_NS)
        first, begin = self.begun[ssrc]
        number = ((timestamp - first) % (1 << 32)) // PACKET_SAMPLES
        plan = self.plans[ssrc]
        if number >= len(plan) or plan[number] is None:
            return None
        leaves = self.next_point(begin + round((number * neteq_paths.PACKET_MS + plan[number]) * 1e6))
        self.too_late += leaves < now
        return max(leaves, self.next_point(now))

    def next_point(self, nanoseconds):
        """The next point of the grid."""
        return -(-(nanoseconds - self.grid_ns) // GRID_NS) * GRID_NS + self.grid_ns


def time_of_blocks(log):
    """At which nanosecond of each 10 ms the sound card asks for blocks; None until the log has a second of them."""
    times = []
    for file in log.iterdir():
        for playout in neteq_event_log.read(file)[1].values():
            times += playout
    common = collections.Counter(time % 10 for time in times[-1_000:]).most_common(1)
    return common[0][0] * 1_000_000 if len(times) > 1_000 else None


def is_rtp(packet):
    """Whether a packet is one of RTP among those of STUN, DTLS and RTCP (RFC 7983 section 7, RFC 5761 section 4)."""
    return len(packet) >= 12 and 128 <= packet[0] <= 191 and not 64 <= packet[1] & 0x7F <= 95


def only_candidate(sdp, port=None):
    """The description with its first candidate of UDP over IPv4 alone, with another port if one is given; and the
    candidate's address and port."""
    found = re.search(r"a=candidate:\S+ 1 udp \d+ ([\d.]+) (\d+) typ host[^\r\n]*\r\n", sdp)
    if found is None:
        raise RuntimeError(f"no candidate of UDP: {re.findall('a=candidate.*', sdp)}")
    lines, kept = [], False
    for line in sdp.splitlines():
        if line.startswith("a=candidate:"):
            if kept:
                continue
            kept = True
            line = found[0].strip()
            if port is not None:
                line = line.replace(f" {found[2]} typ", f" {port} typ")
        # Without these a sender does not adapt to what it hears of the path.
        if "transport-cc" not in line and "transport-wide-cc" not in line:
            lines.append(line)
    return "\r\n".join(lines) + "\r\n", (found[1], int(found[2]))


def call(folder, speech, seconds):
    """Calls once; the event log's arrivals and playout, the rows of getStats, the SSRC of each path, and the relay."""
    count = seconds * 1_000 // neteq_paths.PACKET_MS
    log = folder / "events"
    log.mkdir()
    options = ["--no-sandbox", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
               f"--use-file-for-fake-audio-capture={speech}", f"--webrtc-event-logging={log}",
               "--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_context(permissions=["microphone"]).new_page()
        page.route("https://judge.test/", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
        page.goto("https://judge.test/")
        offered, near = only_candidate(page.evaluate("offer", len(neteq_paths.PATHS)))
        ssrcs = list(dict.fromkeys(map(int, re.findall(r"a=ssrc:(\d+) ", offered))))
        paths = dict(zip(ssrcs, neteq_paths.PATHS, strict=True))
        relay = Relay(near[0], {ssrc: neteq_paths.delays(name, count) for ssrc, name in paths.items()})
        relay.sender = near
        to_relay = only_candidate(offered, relay.far.getsockname()[1])[0]
        answered, relay.receiver = only_candidate(page.evaluate("answer", to_relay))
        relay.start()
        to_relay = only_candidate(answered, relay.near.getsockname()[1])[0]
        page.evaluate("([sdp, counters]) => connect(sdp, counters)", [to_relay, COUNTERS])
        began = time.monotonic()
        while len(relay.begun) < len(paths):
            asked = time_of_blocks(log) if relay.grid_ns is None else None
            if asked is not None:
                relay.grid_ns = asked + GRID_AFTER_A_BLOCK_NS
            if time.monotonic() > began + 20:
                raise RuntimeError(f"{len(relay.begun)} of {len(paths)} streams began within 20 s")
            page.wait_for_timeout(200)
        page.wait_for_timeout(1_000 * seconds + 1_500)
        rows = page.evaluate("finish()")
        # The log is closed in the background.
        page.wait_for_timeout(1_000)
        relay.is_over = True
        relay.join()
        browser.close()
    arrivals, playouts = {}, {}
    for file in sorted(log.iterdir()):
        found = neteq_event_log.read(file)
        for ssrc in paths.keys() & found[0].keys():
            arrivals[ssrc], playouts[ssrc] = found[0][ssrc], found[1][ssrc]
    if arrivals.keys() != paths.keys():
        raise RuntimeError(f"the event log has {len(arrivals)} of {len(paths)} streams")
    return arrivals, playouts, rows, paths, relay


def blocks(arrivals, playout, first_timestamp):
    """For each packet by its number: the blocks that were asked for before it came, from the first packet on. And the
    number of packets for which that is not certain, because they came in the millisecond of a block."""
    begin = bisect.bisect_left(playout, arrivals[0][0])
    counts, uncertain = {}, 0
    for time_ms, _, timestamp in arrivals:
        number = ((timestamp - first_timestamp) % (1 << 32)) // PACKET_SAMPLES
        before = bisect.bisect_left(playout, time_ms)
        uncertain += before < len(playout) and playout[before] == time_ms
        counts[number] = before - begin
    return counts, uncertain


def speech_file(files, first, place):
    """Joins the recordings, beginning with another one in each repeat. Chromium plays the file again and again."""
    files = files[first % len(files):] + files[:first % len(files)]
    with wave.open(str(place), "wb") as joined:
        for file in files:
            with wave.open(file, "rb") as recording:
                if file == files[0]:
                    joined.setparams(recording.getparams())
                joined.writeframes(recording.readframes(recording.getnframes()))


def record_once(speech, seconds):
    """The rows of both files for one repeat, without their first column, and how even the clocks were."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        speech_file(*speech, folder / "speech.wav")
        arrivals, playouts, statistics_rows, paths, relay = call(folder, folder / "speech.wav", seconds)
    arrival_rows, counters, uncertain, steps = [], [], 0, collections.Counter()
    for ssrc, path in paths.items():
        counts, unsure = blocks(arrivals[ssrc], playouts[ssrc], relay.begun[ssrc][0])
        uncertain += unsure
        places = (counts[number] - 2 * number if number in counts else "-" for number in range(max(counts) + 1))
        arrival_rows.append([path, " ".join(map(str, places))])
        span = [time for time in playouts[ssrc] if arrivals[ssrc][0][0] <= time <= arrivals[ssrc][-1][0]]
        steps.update(after - before for before, after in zip(span, span[1:]))
        last = max(counts.values())
        for row in statistics_rows:
            counter = dict(zip(COUNTERS, row[2:]))
            # Before the first block there is nothing, and after the last packet all is concealed.
            if row[0] == ssrc and 0 < counter["totalSamplesReceived"] <= last * RATE // 100:
                in_ms = {name: round(1_000 * counter[name]) for name in SECONDS_OF_DELAY}
                counters.append([path, *(counter | in_ms).values()])
    received = sum(len(stream) for stream in arrivals.values())
    late = sorted(relay.behind_ns)
    evenness = {
        "packets": received,
        "uncertain_packets": uncertain,
        "uneven_blocks": sum(steps.values()) - sum(steps[step] for step in (9, 10, 11)),
        "longest_block_ms": max(steps),
        "sent_after_their_time": relay.too_late,
        "relay_behind_us_p50_p99_max": [round(late[place] / 1e3) for place in (len(late) // 2, len(late) * 99 // 100, -1)],
        "load_average": os.getloadavg(),
    }
    return arrival_rows, counters, evenness


def is_disturbed(evenness):
    """Whether more than one packet in a thousand is uncertain or left after its time. An uneven block harms nothing,
    because arrivals are counted in blocks."""
    return max(evenness["uncertain_packets"], evenness["sent_after_their_time"]) > evenness["packets"] / 1_000


def write(place, head, rows):
    """Writes a table, compressed, with the same bytes for the same rows."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(head)
    table.writerows(rows)
    place.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def record(folder, files, repeats, seconds, attempts):
    arrival_rows, counters, clocks, disturbed = [], [], [], 0
    for repeat in range(1, repeats + 1):
        for attempt in range(1, attempts + 1):
            arrived, counted, evenness = record_once((files, repeat - 1), seconds)
            print(f"repeat {repeat}, attempt {attempt}: {json.dumps(evenness)}", flush=True)
            if not is_disturbed(evenness):
                break
        disturbed += is_disturbed(evenness)
        arrival_rows += ([repeat, *row] for row in arrived)
        counters += ([repeat, *row] for row in counted)
        clocks.append({"repeat": repeat, "attempts": attempt, **evenness})
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "arrivals.csv.gz", ["repeat", "path", "blocks_before_less_twice_the_number"], arrival_rows)
    write(folder / "stats.csv.gz", ["repeat", "path", *COUNTERS], counters)
    version = subprocess.run(["chromium", "--version"], capture_output=True, text=True).stdout.strip()
    provenance = {
        "chromium": version, "recorded": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "codec": "PCMU", "packet_ms": neteq_paths.PACKET_MS, "seconds": seconds, "processors": os.cpu_count(),
        "speech": [pathlib.Path(file).name for file in files], "is_disturbed": disturbed > 0, "repeats": clocks,
    }
    (folder / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")
    return f"{repeats} repeats of {len(neteq_paths.PATHS)} paths of {seconds} s, {version}", disturbed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["record"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("speech", nargs="+")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--attempts", type=int, default=4, help="how often a disturbed repeat is recorded")
    options = parser.parse_args()
    if not shutil.which("chromium"):
        print("no chromium: apt-get install chromium")
        sys.exit(3)
    try:
        closing, disturbed = record(options.folder, sorted(options.speech), options.repeats, options.seconds,
                                    options.attempts)
    except RuntimeError as why:
        print(f"Chromium's call with itself: {why}")
        sys.exit(1)
    print(f"{closing}; {disturbed} repeats were disturbed: the machine was busy" if disturbed else closing)
    sys.exit(3 if disturbed else 0)


main()
