"""Programs of others in `talkpath shell`, unchanged, at both ends of a path.

    shell.py TALKPATH

- `exact`: ping, irtt, sipp, curl, iperf3 and aioquic over 20 Mb/s and 10 ms, with tcpdump at both ends. Each packet of
  tcpdump is one of the record: handed over, lost by the path, or still inside. The programs' own counts of round
  trips, losses and retransmissions are those of the path.
- `call`: a call by WebRTC between two Chromium on LTE. Both connect, and the round trips that they measure are
  those of the path. Chromium runs with --no-sandbox, because its sandbox needs namespaces of its own.

- `same_path`: calls over UDP and TCP between a talkpath in each shell of a pair, and the same calls of `compare --arena
  emu` on the same path: the same round trips, losses and scores.

What is not installed is said to be missing. Exit code 1 if one differs, 3 if all are missing; the last line says
what was judged.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

TALKPATH = os.path.abspath(sys.argv[1])
failures, judged, missing = [], [], []
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("TALKPATH_")}


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"DIFFERS: {what}")


def pair(folder, path, near, far, seconds):
    """Runs two shell scripts at the ends of a path; the summary of the run, and what the near end printed."""
    environment = ENVIRONMENT | {"XDG_RUNTIME_DIR": folder, "PYTHON": sys.executable}
    command = [TALKPATH, "shell", "--pair", "judge"]
    options = dict(cwd=folder, env=environment, stdin=subprocess.DEVNULL)
    other = subprocess.Popen([*command, "--", "sh", "-c", far], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True, **options)
    try:
        seen = subprocess.run([*command, *path, "--", "sh", "-c", near], capture_output=True, text=True,
                              timeout=seconds, **options)
        other.wait(timeout=20)
    finally:
        if other.poll() is None:
            os.killpg(other.pid, signal.SIGKILL)
    check(seen.returncode == 0, f"exit code {seen.returncode}: {seen.stderr[-1000:]}")
    [run] = pathlib.Path(folder, "talkpath-runs").iterdir()
    return json.loads((run / "summary.json").read_text())["runs"][0]["flows"], seen.stdout


def packets(folder, end, source):
    """The packets of an address in a capture of tcpdump."""
    text = subprocess.run(["tcpdump", "-nr", f"{folder}/{end}.pcap", "src", "host", source], capture_output=True,
                          text=True, check=True).stdout
    return len(text.splitlines())


# The buffer of 64 MB is for a busy machine, on which tcpdump reads late.
WATCH = "tcpdump -i talkpath -B 65536 -U --immediate-mode"

QUIC = '''
import asyncio, hashlib, os, ssl, sys
from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration
DATA = bytes(500_000)
def answer(reader, writer):
    async def digest():
        writer.write(hashlib.sha256(await reader.read()).digest())
        writer.write_eof()
    asyncio.ensure_future(digest())
async def server():
    configuration = QuicConfiguration(is_client=False)
    configuration.load_cert_chain("cert.pem", "key.pem")
    await serve("192.0.2.2", 4433, configuration=configuration, stream_handler=answer)
    await asyncio.Event().wait()
async def client():
    async with connect("192.0.2.2", 4433, configuration=QuicConfiguration(verify_mode=ssl.CERT_NONE)) as quic:
        reader, writer = await quic.create_stream()
        writer.write(DATA)
        writer.write_eof()
        print("aioquic", await reader.read() == hashlib.sha256(DATA).digest())
asyncio.run(server() if sys.argv[1] == "server" else client())
'''


def exact(folder):
    programs = ["ping", "irtt", "sipp", "curl", "iperf3"]
    there = [program for program in programs if shutil.which(program)]
    missing.extend(program for program in programs if program not in there)
    if not shutil.which("tcpdump"):
        return missing.append("tcpdump")
    try:
        import aioquic

        there.append(f"aioquic {aioquic.__version__}")
        has_quic = True
        pathlib.Path(folder, "quic.py").write_text(QUIC)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", "key.pem",
                        "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)
    except ImportError:
        has_quic = False
        missing.append("aioquic")
    far = [f"{WATCH} -w far.pcap 2>far.err &"]
    near = [f"{WATCH} -w near.pcap 2>near.err &", "watch=$!", "sleep 2"]
    if "ping" in there:
        near.append("ping -i 0.05 -c 20 192.0.2.2 >ping.txt")
    if "irtt" in there:
        far.append("irtt server >/dev/null 2>&1 &")
        near.append("irtt client -i 10ms -d 2s -l 160 -o irtt.json -Q 192.0.2.2 >/dev/null")
    if "sipp" in there:
        far.append("sipp -sn uas -i 192.0.2.2 -nostdin >/dev/null 2>&1 &")
        near.append("sipp -sn uac 192.0.2.2 -i 192.0.2.1 -m 20 -r 20 -nostdin >/dev/null 2>&1; echo sipp $?")
    if "curl" in there:
        pathlib.Path(folder, "file.bin").write_bytes(os.urandom(2_000_000))
        far.append("$PYTHON -m http.server 8080 --bind 192.0.2.2 >/dev/null 2>&1 &")
        near.append("curl -s -w '%{json}' -o got.bin http://192.0.2.2:8080/file.bin >curl.json")
    if "iperf3" in there:
        far.append("iperf3 -s >/dev/null 2>&1 &")
        near.append("iperf3 -c 192.0.2.2 -t 4 -J >iperf3.json")
    if has_quic:
        far.append("$PYTHON quic.py server 2>/dev/null &")
        near.append("$PYTHON quic.py client")
    near += ["sleep 1", "kill $watch", "wait $watch || true"]
    path = ["--up", "20Mbps/10ms/64kB", "--down", "20Mbps/10ms/64kB"]
    flows, printed = pair(folder, path, "\n".join(near), "\n".join([*far, "exec sleep 1000"]), 90)

    def total(key, way):
        return sum(flow[key] for name, flow in flows.items() if name.endswith(way))

    for way, source, leaves, arrives in [("-up", "192.0.2.1", "near", "far"), ("-down", "192.0.2.2", "far", "near")]:
        sent, received, inside = total("sent", way), total("received", way), total("unfinished", way)
        check(packets(folder, leaves, source) == sent, f"tcpdump saw {packets(folder, leaves, source)} leave, the record {sent}")
        check(packets(folder, arrives, source) == received, f"tcpdump saw {packets(folder, arrives, source)} arrive, the record {received}")
        check(sent == received + total("lost", way) + inside, f"{way}: {sent} packets are {received} and lost and {inside}")
    if "ping" in there:
        times = pathlib.Path(folder, "ping.txt").read_text().rsplit(" = ", 1)[-1].split("/")
        check(20.0 <= float(times[0]) < 21.0, f"ping's least round trip is {times[0]} ms over 20.07 ms")
    if "irtt" in there:
        stats = json.loads(pathlib.Path(folder, "irtt.json").read_text())["stats"]
        # A busy machine makes irtt miss some of its 200 times to send.
        sent, received = stats["packets_sent"], stats["packets_received"]
        check(sent == received >= 180, f"irtt: {received} of {sent} packets came back")
        least = stats["rtt"]["min"] / 1e6
        check(20.0 <= least < 21.0, f"irtt's least round trip is {least} ms over 20.15 ms")
    if "sipp" in there:
        check("sipp 0\n" in printed, f"sipp: {printed}")
    if "curl" in there:
        timing = json.loads(pathlib.Path(folder, "curl.json").read_text())
        check(pathlib.Path(folder, "got.bin").read_bytes() == pathlib.Path(folder, "file.bin").read_bytes(), "curl's file differs")
        rate = 8e-6 * timing["speed_download"]
        # 2 MB take 0.83 s at 19.3 Mb/s of payload, and the handshake and slow start some round trips of 20 ms.
        check(timing["time_connect"] >= 0.02 and 10.0 < rate < 19.4, f"curl connected after {timing['time_connect']} s, {rate} Mb/s")
    if "iperf3" in there:
        end = json.loads(pathlib.Path(folder, "iperf3.json").read_text())["end"]
        rate = end["sum_received"]["bits_per_second"] / 1e6
        check(18.0 < rate < 19.4, f"iperf3 received {rate} Mb/s over 20 Mb/s, of which 19.3 Mb/s are payload")
        retransmitted = end["sum_sent"]["retransmits"]
        upload = max((flow for name, flow in flows.items() if name.startswith("tcp-5201-")), key=lambda flow: flow["sent"])
        # iperf3 reads its counter when it stops sending. What is in flight then may be sent again later.
        check(0 <= upload["retransmissions"] - retransmitted <= 5 and upload["lost"] <= upload["retransmissions"],
              f"iperf3 sent {retransmitted} segments again, the record says {upload['retransmissions']}, lost {upload['lost']}")
    if has_quic:
        check("aioquic True\n" in printed, f"aioquic: {printed}")
    judged.extend([*there, "tcpdump at both ends"])


PAGE = '''
<script>
const caller = location.search == "?caller";
const put = (path, body) => fetch(path, {method: "PUT", body});
const wait = async path => { for (;;) { const r = await fetch(path); if (r.ok) return r.json(); await new Promise(f => setTimeout(f, 100)); } };
const gathered = pc => new Promise(f => { const look = () => { if (pc.iceGatheringState == "complete") f(); }; pc.onicegatheringstatechange = look; look(); });
(async () => { try {
  const media = await navigator.mediaDevices.getUserMedia({audio: true, video: {width: 320, height: 240}});
  const pc = new RTCPeerConnection();
  media.getTracks().forEach(track => pc.addTrack(track, media));
  if (caller) {
    await pc.setLocalDescription(await pc.createOffer());
    await gathered(pc);
    await put("/offer", JSON.stringify(pc.localDescription));
    await pc.setRemoteDescription(await wait("/answer"));
    await new Promise(f => setTimeout(f, 12000));
    const all = [];
    (await pc.getStats()).forEach(one => all.push(one));
    await put("/stats", JSON.stringify({state: pc.connectionState, all}));
  } else {
    await pc.setRemoteDescription(await wait("/offer"));
    await pc.setLocalDescription(await pc.createAnswer());
    await gathered(pc);
    await put("/answer", JSON.stringify(pc.localDescription));
  }
} catch (error) { await put("/stats", JSON.stringify({state: String(error), all: []})); } })();
</script>
'''
SERVER = '''
import http.server
page, told = open("page.html").read(), {}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def answer(self, code, body, kind):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())
    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/":
            self.answer(200, page, "text/html")
        else:
            self.answer(200 if path in told else 404, told.get(path, ""), "application/json")
    def do_PUT(self):
        told[self.path] = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer(200, "", "text/plain")
        if self.path == "/stats":
            open("stats.part", "w").write(told[self.path])
            __import__("os").rename("stats.part", "stats.json")
http.server.ThreadingHTTPServer(("192.0.2.2", 8000), Handler).serve_forever()
'''
BROWSER = " ".join(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
                    "--disable-features=WebRtcHideLocalIpsWithMdns",
                    "--unsafely-treat-insecure-origin-as-secure=http://192.0.2.2:8000"])


def call(folder):
    if not shutil.which("chromium"):
        return missing.append("chromium")
    pathlib.Path(folder, "page.html").write_text(PAGE)
    pathlib.Path(folder, "server.py").write_text(SERVER)
    far = f"""
        $PYTHON server.py &
        sleep 1
        exec {BROWSER} --user-data-dir="$PWD/callee" 'http://192.0.2.2:8000/?callee' >/dev/null 2>&1"""
    near = f"""
        sleep 2
        {BROWSER} --user-data-dir="$PWD/caller" 'http://192.0.2.2:8000/?caller' >/dev/null 2>&1 &
        for look in $(seq 180); do if [ -e stats.json ]; then break; fi; sleep 0.5; done
        cat stats.json"""
    flows, printed = pair(folder, ["--path", "lte"], textwrap.dedent(near), textwrap.dedent(far), 120)
    stats = json.loads(printed)
    check(stats["state"] == "connected", f"Chromium's call: {stats['state']}")

    def of_type(kind):
        return [one for one in stats["all"] if one["type"] == kind]

    for stream in of_type("inbound-rtp"):
        check(stream["packetsReceived"] > 200, f"Chromium received {stream['packetsReceived']} packets of {stream['kind']}")
    trips = [1000 * one["roundTripTime"] for one in of_type("remote-inbound-rtp") if "roundTripTime" in one]
    # Delays on LTE vary, so the medians of the path are the measure.
    medians = [max((flow for name, flow in flows.items() if name.startswith("udp-") and name.endswith(way)),
                   key=lambda flow: flow["sent"])["one_way_delay_ms"]["p50"] for way in ["-up", "-down"]]
    check(trips and all(abs(trip - sum(medians)) < 25 for trip in trips),
          f"Chromium's round trips: {trips} ms, the path's medians: {medians} ms")
    rtp = {name: flow for name, flow in flows.items() if name.startswith("rtp-")}
    check(len(rtp) >= 4, f"streams of RTP: {sorted(rtp)}")
    received = sum(stream["packetsReceived"] for stream in of_type("inbound-rtp"))
    recorded = sum(flow["received"] for name, flow in rtp.items() if name.endswith("-down"))
    # The call goes on for a moment after Chromium has counted, and a source of fewer than 16 packets, such as a
    # probe for bandwidth, is no stream of the record.
    check(received * 0.98 <= recorded < received * 1.3, f"Chromium received {received} packets, the record has {recorded}")
    judged.append(f"a call of Chromium ({received} packets, {', '.join(f'{trip:.0f} ms' for trip in trips)})")


def same_path(folder):
    calls = ["--transports", "udp,tcp", "--repeat", "3", "--duration", "4s", "--json"]
    path = ["--up", "5Mbps/15ms", "--down", "5Mbps/25ms"]
    far = f"exec '{TALKPATH}' serve --open >/dev/null 2>&1"
    near = f"sleep 1; exec '{TALKPATH}' compare --to 192.0.2.2 --clocks-synchronised --out inner {' '.join(calls)}"
    _, printed = pair(folder, path, near, far, 120)
    options = dict(cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=120)
    outer = [TALKPATH, "compare", "--arena", "emu", "--alone", "--out", "outer", *path, *calls]
    outside = subprocess.run(outer, **options).stdout

    def figures(text):
        cells = json.loads(text)["cells"]
        return {cell["sweep"]["flow.call.transport"]: cell["flows"]["call"] for cell in cells}

    inside, outside = figures(printed), figures(outside)
    check(sorted(inside) == sorted(outside) == ["tcp", "udp"], f"transports: {sorted(inside)}, {sorted(outside)}")
    for transport, flow in inside.items():
        for figure, tolerance in [("round_trip_delay_ms.p50", 1.0), ("loss_rate", 0.005), ("call.mos", 0.05)]:
            here, there = (flows[figure]["median"] for flows in [flow, outside[transport]])
            check(abs(here - there) <= tolerance, f"{transport}: {figure} is {here} in the shell, {there} in emu")
    judged.append("calls of talkpath as in emu")


for part in [exact, call, same_path]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            part(folder)
        except Exception as why:  # A judge that breaks off has not agreed.
            check(False, f"{part.__name__}: {why!r}")
        time.sleep(0.5)
closing = f"{', '.join(judged) or 'nothing'} judged" + (f"; missing: {', '.join(missing)}" if missing else "")
print(closing if not failures else f"{len(failures)} differences; {closing}")
sys.exit(1 if failures else 0 if judged else 3)
