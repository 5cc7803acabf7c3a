"""What runs for ever, judged by others' programs.

    operations.py TALKPATH PACKAGING STAMP_SUITE

- `metrics`: both texts of a monitor on loopback, by prometheus_client's parser of OpenMetrics, and by promtool
  if it is installed (Debian: prometheus). The counts of both are the monitor's last event's.
- `units`: systemd-analyze verify and security, if it is installed (Debian: systemd). EXPOSURE is the most.
- `stamp`: stamp-suite (crates.io) as a reflector for our sender, stateless and stateful, and as a sender to
  our reflectors; STAMP_SUITE is its binary.

Exit code 1 if one differs; the last line says what was judged and what is missing.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

TALKPATH, PACKAGING, STAMP_SUITE = sys.argv[1:4]
# Tenths: systemd-analyze's threshold. Chosen: what the units have, 1.7, and a little.
EXPOSURE = 20
failures, judged, missing, children = [], [], [], []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"DIFFERS: {what}")


def started(arguments, begins):
    """A program that has said where it is, and the rest of that line."""
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    children.append(child)
    line = child.stdout.readline()
    assert line.startswith(begins), f"{arguments}: {line}"
    return child, line[len(begins) :].strip()


def ended(child):
    child.send_signal(signal.SIGINT)
    return child.communicate(timeout=60)[0]


def scrape(port, accept):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def samples(text):
    """Names and values of the samples of one flow, or of the monitor."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "le" not in sample.labels:
                found[sample.name] = sample.value
    return found


def metrics():
    server, address = started([TALKPATH, "serve", "--bind", "127.0.0.1:0"], "listening on ")
    with tempfile.TemporaryDirectory() as folder:
        port = 20_000 + os.getpid() % 10_000
        textfile = os.path.join(folder, "talkpath.prom")
        monitor = subprocess.Popen(
            [TALKPATH, "monitor", "--to", address, "--interval", "1s", "--session", "2s", "--json-stream", "--records", "none",
             "--metrics", f"127.0.0.1:{port}", "--textfile", textfile],
            stdout=subprocess.PIPE, text=True, cwd=folder)
        children.append(monitor)
        events = []
        while sum(event["event"] == "interval" for event in events) < 4:
            events.append(json.loads(monitor.stdout.readline()))
        during = samples(scrape(port, "application/openmetrics-text"))
        check(during["talkpath_up"] == 1, "talkpath_up is 1 while it measures")
        plain = scrape(port, "text/plain")
        events += [json.loads(line) for line in ended(monitor).splitlines()]
        check(monitor.returncode == 0 and events[-1]["event"] == "end", "Ctrl-C ends it with its end event")
        end = events[-1]["data"]["streams"][0]["udp"]["counts"]
        with open(textfile) as file:
            last = file.read()
        found = dict(re.findall(r"^(talkpath_messages_[a-z_]+){[^}]*} (\S+)$", last, re.M))
        for key in ["sent", "received", "lost"]:
            value = float(found[f"talkpath_messages_{key}_total"])
            check(value == end[key], f"{key}: the textfile has {value}, the end event {end[key]}")
            summed = sum(event["data"]["streams"][0]["counts"][key] for event in events if event["event"] == "interval")
            check(summed == end[key], f"{key}: the intervals have {summed}, the end event {end[key]}")
        judged.append("OpenMetrics")
        if shutil.which("promtool"):
            for text in [plain, last]:
                seen = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
                check(seen.returncode == 0, f"promtool: {seen.stdout}{seen.stderr}")
            judged.append("promtool")
        else:
            missing.append("promtool (Debian: prometheus)")
    ended(server)


def units():
    if not shutil.which("systemd-analyze"):
        missing.append("systemd-analyze (Debian: systemd)")
        return
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(PACKAGING, "systemd")
        for name in sorted(it for it in os.listdir(source) if it.endswith(".service")):
            with open(os.path.join(source, name)) as file:
                text = file.read().replace("/usr/bin/talkpath", TALKPATH)
            unit = os.path.join(folder, name.replace("@.", "@nightly."))
            with open(unit, "w") as file:
                file.write(text)
            for command in [["verify", "--man=no"], ["security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager"]]:
                seen = subprocess.run(["systemd-analyze", *command, unit], capture_output=True, text=True)
                closing = (seen.stdout + seen.stderr).strip().splitlines()[-1:]
                print(name, command[0], *closing)
                check(seen.returncode == 0, f"{name}: {command[0]}: {closing}")
        judged.append("units")


def stamp():
    if not os.access(STAMP_SUITE, os.X_OK):
        missing.append("stamp-suite (cargo install stamp-suite --root target/judges/stamp)")
        return
    port = 30_000 + os.getpid() % 10_000
    send = [TALKPATH, "stamp", "--count", "50", "--interval", "10ms", "--dscp", "46/10", "--size", "300", "--json"]
    for more in [[], ["--stateful-reflector"]]:
        port += 1
        theirs = subprocess.Popen(
            [STAMP_SUITE, "--is-reflector", "--local-addr", "127.0.0.1", "--local-port", str(port), *more],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children.append(theirs)
        time.sleep(2)
        seen = subprocess.run([*send, "--to", f"127.0.0.1:{port}"], capture_output=True, text=True)
        theirs.send_signal(signal.SIGINT)
        theirs.wait(timeout=20)
        check(seen.returncode == 0, f"our sender, their reflector {more}: {seen.stderr}")
        if seen.returncode == 0:
            found = json.loads(seen.stdout)
            check((found["sent"], found["received"], found["odd_answers"]) == (50, 50, 0), f"their reflector {more}: {found}")
            # They report the DSCP that came there, and answer with the one that is asked for.
            check(found["class_of_service"] and found["class_of_service"]["dscp_there"] == 46, f"{more}: {found['class_of_service']}")
            check(found["turn_round_ms"]["p50"] > 0 and found["round_trip_delay_ms"]["p50"] > 0, f"{more}: delays")
    for more in [[], ["--stateful"]]:
        ours, address = started([TALKPATH, "stamp", "--reflect", "--bind", "127.0.0.1:0", *more], "reflecting on ")
        host, port = address.rsplit(":", 1)
        seen = subprocess.run(
            [STAMP_SUITE, "--remote-addr", host, "--remote-port", port, "--count", "50", "--send-delay", "10ms",
             "--cos", "--dscp", "10", "--extra-padding", "100", "--output-format", "json"],
            capture_output=True, text=True, timeout=60)
        ended(ours)
        check(seen.returncode == 0, f"their sender, our reflector {more}: {seen.stderr[-500:]}")
        if seen.returncode == 0:
            summary = [json.loads(line) for line in seen.stdout.splitlines() if line.startswith("{")][-1]
            counts = (summary.get("packets_sent"), summary.get("packets_received"))
            check(counts == (50, 50), f"their sender {more}: {summary}")
    judged.append("stamp-suite both ways")


for part in [metrics, units, stamp]:
    try:
        part()
    except Exception as why:  # A judge that breaks off has not agreed.
        check(False, f"{part.__name__}: {why!r}")
for child in children:  # Of a part that broke off they still run, and hold this script's output.
    child.kill()
closing = f"{', '.join(judged) or 'nothing'} judged" + (f"; missing: {', '.join(missing)}" if missing else "")
print(closing if not failures else f"{len(failures)} differences; {closing}")
sys.exit(1 if failures else 0)
