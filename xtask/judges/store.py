"""Campaigns that copy their records to a storage that speaks S3, judged with moto's server and polars.

    store.py TALKPATH FOLDER

TALKPATH is built with the feature s3; FOLDER is emptied. Hosts are addresses of loopback. The server checks
signatures (moto's IAM), and forgets everything when it ends.

- `run`: the server is away for some seconds while the campaign measures. No measurement is missing or later,
  and at the end every file is there.
- `push`: killed again and again, in the middle of objects of one and of several parts. After each kill every
  object is a local file byte for byte. A kill counts if it left the store incomplete; one that came too late
  is followed by an empty store. Then it ends, and once more it copies nothing. An object that was changed is
  put again. A server that ends meanwhile, and comes back empty, is given everything again.
- `read`: one line of polars reads all rows, with day, pair and measurement as columns.
- `mistakes`: no bucket, wrong key, wrong secret, no rights, no network, no credentials. One sentence each, and
  the records are as they were.

Exit code 1 if one differs; the last line says what was judged.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import boto3
import botocore.exceptions
import polars

TALKPATH, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BUCKET, NAME = "records", "two-sites"
RECORDS = FOLDER / "talkpath-runs" / f"campaign-{NAME}" / "records"
# Chosen: three parts, so that a kill finds one of them on its way.
LARGE = 80_000_000
KILLS = 12
# Chosen: a kill that comes too late is tried again.
TRIES = 48
failures, judged = [], []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"DIFFERS: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """moto's server: a user who may do everything with S3, one who may do nothing, and a bucket."""

    def __init__(self, port):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.log = open(FOLDER / "server.log", "ab")
        self.child = subprocess.Popen(
            [str(pathlib.Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)],
            stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5).read()
                break
            except OSError:
                assert time.monotonic() < until, "moto's server did not start"
                time.sleep(0.1)
        iam = self.client("iam", ("setup", "setup"))
        self.keys = {}
        for user in ["copies", "nothing"]:
            iam.create_user(UserName=user)
            key = iam.create_access_key(UserName=user)["AccessKey"]
            self.keys[user] = (key["AccessKeyId"], key["SecretAccessKey"])
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_user_policy(UserName="copies", PolicyName="s3", PolicyDocument=json.dumps(policy))
        # From here on no request goes without a right signature.
        reset = urllib.request.Request(
            f"{self.url}/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"})
        urllib.request.urlopen(reset).read()
        self.s3 = self.client("s3", self.keys["copies"])
        self.s3.create_bucket(Bucket=BUCKET)

    def client(self, service, key):
        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=key[0],
                            aws_secret_access_key=key[1])

    def objects(self, prefix=""):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {found["Key"] for page in pages for found in page.get("Contents", [])}

    def empty(self, prefix):
        for key in self.objects(prefix):
            self.s3.delete_object(Bucket=BUCKET, Key=key)

    def unfinished(self):
        """Uploads in parts that were never completed."""
        return len(self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []))

    def bytes_of(self, key):
        return self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def end(self):
        self.child.kill()
        self.child.wait()
        self.log.close()


class Way:
    """A port in front of a server, which can be closed and opened again: the server keeps what it has."""

    def __init__(self, target):
        self.target, self.port, self.ends = target, free_port(), []
        self.url = f"http://127.0.0.1:{self.port}"
        self.open()

    def open(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, args=[self.listener], daemon=True).start()

    def accept(self, listener):
        try:
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self.ends += [near, far]
                for one, other in [(near, far), (far, near)]:
                    threading.Thread(target=self.carry, args=[one, other], daemon=True).start()
        except OSError:
            pass

    def carry(self, one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for end in [self.listener, *self.ends]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.ends = []


def environment(key):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TALKPATH_"))}
    return {**variables, "AWS_ACCESS_KEY_ID": key[0], "AWS_SECRET_ACCESS_KEY": key[1]} if key else variables


def campaign(what, file, key, *more):
    return subprocess.Popen([TALKPATH, "campaign", what, file, *more], cwd=FOLDER, env=environment(key), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(child):
    out, err = child.communicate(timeout=300)
    return child.returncode, out, err


def write(file, store, endpoint, hosts):
    tables = "".join(f'[host.{name}]\naddress = "{address}"\n\n' for name, address in hosts.items())
    (FOLDER / file).write_text(
        f'name = "Two sites"\nstore = "{store}"\nstore_endpoint = "{endpoint}"\n'
        f'between = {{ kind = "hub", hub = "here" }}\n\n[host.here]\nlocal = true\nat_once = 2\n\n{tables}'
        '[measure.call]\ntransports = ["udp", "tcp"]\nduration = "500 ms"\ndrain = "200 ms"\nrounds = 1\n\n'
        '[schedule]\nevery = "4 s"\ndays = 1\nday = "20 s"\nwindow = "60 s"\nretry = "1 s"\n')


def local(prefix):
    """Every file of the records and the plan, by the key that it has to have."""
    plan = json.loads((RECORDS.parent / "plan.json").read_text())
    files = {f"{prefix}{NAME}/plan.json": RECORDS.parent / "plan.json"}
    for it in plan["measurements"]:
        folder = RECORDS / it["id"]
        place = f"{prefix}{NAME}/day={it['local'][:10]}/pair={it['near']}-to-{it['far']}/measurement={it['id']}"
        files |= {f"{place}/{path.relative_to(folder)}": path for path in folder.rglob("*") if path.is_file()}
    return files, plan["measurements"]


def digest():
    every = sorted(path for path in RECORDS.rglob("*") if path.is_file())
    return [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in every]


def run(server, hosts):
    way = Way(server.port)
    write("run.toml", f"s3://{BUCKET}", way.url, hosts)
    child = campaign("run", "run.toml", server.keys["copies"])
    until = time.monotonic() + 60
    while not server.objects() and time.monotonic() < until:
        time.sleep(0.05)
    before = server.objects()
    way.close()
    # Long enough for measurements that find no server.
    time.sleep(6)
    journal = [json.loads(line) for line in (RECORDS.parent / "journal.jsonl").read_text().splitlines()]
    way.open()
    code, _, err = ended(child)
    check(code == 0 and "cannot be reached" in err, f"run: exit code {code}: {err}")
    files, planned = local("")
    check(before and len(journal) > 4, f"run: {len(before)} objects, {len(journal)} lines of the journal before the server came back")
    measured = [it for it in planned if (RECORDS / it["id"] / "summary.json").is_file()]
    check(len(measured) == len(planned) == 10, f"run: {len(measured)} of {len(planned)} measured")
    late = [it for it in planned if began(it) - it["due_ms"] > 2000]
    check(not late, f"run: {len(late)} began later than 2 s after their time")
    check(server.objects() == set(files), f"run: the keys: {server.objects() ^ set(files)}")
    for key, path in files.items():
        check(server.bytes_of(key) == path.read_bytes(), f"run: {key}")
    code, out, err = ended(campaign("status", "run.toml", None, "--json"))
    check(json.loads(out)["store"] == {"url": f"s3://{BUCKET}", "there": 10, "failing": None}, f"status: {out}")
    way.close()
    judged.append(f"a server that was away for 6 s of a run of {len(planned)} measurements")


def began(measurement):
    """When the journal has its first line, in ms."""
    lines = (RECORDS.parent / "journal.jsonl").read_text().splitlines()
    return next(it["at_ms"] for it in map(json.loads, lines) if it["id"] == measurement["id"])


def push(server, hosts):
    write("push.toml", f"s3://{BUCKET}/lab/2026", server.url, hosts)
    large = next(RECORDS.iterdir()) / "captures"
    large.mkdir()
    (large / "0-0.pcapng").write_bytes(os.urandom(LARGE))
    files, _ = local("lab/2026/")
    prefix = "lab/2026/"
    began = time.monotonic()
    code, out, err = ended(campaign("push", "push.toml", server.keys["copies"], "--json"))
    whole = time.monotonic() - began
    check(code == 0 and json.loads(out)["copied"] == len(files), f"push: {out} {err}")
    server.empty(prefix)
    counts, late = [], 0
    while len(counts) < KILLS and len(counts) + late < TRIES:
        child = campaign("push", "push.toml", server.keys["copies"])
        time.sleep(whole * (0.1 + 0.8 * ((len(counts) + late) * 7 % KILLS) / KILLS))
        child.send_signal(signal.SIGKILL)
        _, err = child.communicate()
        found = server.objects(prefix)
        for key in found:
            check(key in files and server.bytes_of(key) == files[key].read_bytes(), f"after a kill: {key}")
        if found == set(files):
            late += 1
            server.empty(prefix)
        else:
            check(child.returncode == -signal.SIGKILL, f"a push that was not killed: {child.returncode}: {err}")
            counts.append(len(found))
    unfinished = server.unfinished()
    print(f"{len(counts)} kills left an incomplete store, with {counts} of {len(files)} objects; {late} came too late; "
          f"{unfinished} met an object between its parts")
    check(len(counts) == KILLS, f"push: only {len(counts)} kills left an incomplete store")
    check(unfinished > 0, "push: no kill met an object between its parts")
    code, out, err = ended(campaign("push", "push.toml", server.keys["copies"], "--json"))
    said = json.loads(out or "{}")
    check(code == 0 and said["copied"] + said["there"] == len(files), f"push after the kills: {out} {err}")
    code, out, err = ended(campaign("push", "push.toml", server.keys["copies"], "--json"))
    check(code == 0 and json.loads(out)["copied"] == 0, f"a second push: {out} {err}")
    # Of the same size, and not the same.
    changed = next(key for key, path in files.items() if path.name == "packets.parquet")
    server.s3.put_object(Bucket=BUCKET, Key=changed, Body=bytes(files[changed].stat().st_size))
    code, out, err = ended(campaign("push", "push.toml", server.keys["copies"], "--json"))
    check(code == 0 and json.loads(out)["copied"] == 1, f"an object that was changed: {out} {err}")
    check(server.objects(prefix) == set(files), "push: the keys")
    for key, path in files.items():
        check(server.bytes_of(key) == path.read_bytes(), f"push: {key}")
    server.empty(prefix)
    child = campaign("push", "push.toml", server.keys["copies"])
    while not server.objects(prefix) and child.poll() is None:
        time.sleep(0.02)
    server.end()
    code, _, err = ended(child)
    check(code == 4 and "cannot be reached" in err, f"a server that ended: exit code {code}: {err}")
    server = Server(server.port)
    code, out, err = ended(campaign("push", "push.toml", server.keys["copies"], "--json"))
    check(code == 0 and json.loads(out)["copied"] == len(files), f"a server that came back empty: {out} {err}")
    for key, path in files.items():
        check(server.bytes_of(key) == path.read_bytes(), f"a server that came back empty: {key}")
    judged.append(f"{len(counts)} kills that left an incomplete store and a server that ended, {len(files)} objects byte for byte")
    return server


def read(server):
    options = {"aws_endpoint_url": server.url, "aws_allow_http": "true", "aws_region": "us-east-1",
               "aws_access_key_id": server.keys["copies"][0], "aws_secret_access_key": server.keys["copies"][1]}
    rows = polars.scan_parquet(f"s3://{BUCKET}/lab/2026/{NAME}/**/packets.parquet", hive_partitioning=True,
                               storage_options=options).collect()
    files, planned = local("lab/2026/")
    alone = sum(polars.read_parquet(path).height for path in files.values() if path.name == "packets.parquet")
    check(rows.height == alone > 0, f"polars: {rows.height} rows of {alone}")
    pairs = {f"{it['near']}-to-{it['far']}" for it in planned}
    check(set(rows["pair"].unique()) == pairs, f"polars: pairs {rows['pair'].unique()}")
    check(set(rows["measurement"].unique()) == {it["id"] for it in planned}, "polars: measurements")
    check({str(day) for day in rows["day"].unique()} == {it["local"][:10] for it in planned}, "polars: days")
    print(rows.group_by("day", "pair").agg(polars.len()).sort("pair"))
    judged.append(f"{rows.height} rows by one line of polars")


def mistakes(server, hosts):
    right = server.keys["copies"]
    write("no-bucket.toml", "s3://nowhere", server.url, hosts)
    write("no-network.toml", f"s3://{BUCKET}", f"http://127.0.0.1:{free_port()}", hosts)
    write("push.toml", f"s3://{BUCKET}/lab/2026", server.url, hosts)
    before = digest()
    cases = [
        ("no-bucket.toml", right, 4, "has no bucket nowhere: make it, or correct `store`"),
        ("no-network.toml", right, 4, "cannot be reached"),
        ("push.toml", ("AKIAIOSFODNN7EXAMPLE", right[1]), 4, "refuses the credentials (InvalidAccessKeyId)"),
        ("push.toml", (right[0], "wrong"), 4, "refuses the credentials (SignatureDoesNotMatch)"),
        ("push.toml", server.keys["nothing"], 4, "these credentials have to list, read and write"),
        ("push.toml", None, 3, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ]
    for file, key, expected, says in cases:
        began = time.monotonic()
        code, out, err = ended(campaign("push", file, key))
        seconds = time.monotonic() - began
        print(f"{seconds:4.1f} s  exit {code}  {err.strip()}")
        check(code == expected and says in err and out == "", f"{file}: exit code {code}: {err}")
        check(right[1] not in err, f"{file}: the secret is shown")
    check(digest() == before, "the records are as they were")
    judged.append(f"{len(cases)} mistakes")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    servers, hosts = [], {}
    for name, address in [("lima", "127.0.0.2"), ("tokyo", "127.0.0.3")]:
        child = subprocess.Popen([TALKPATH, "serve", "--bind", f"{address}:0"], stdout=subprocess.PIPE, text=True)
        hosts[name] = child.stdout.readline().strip().removeprefix("listening on ")
        servers.append(child)
    server = Server(free_port())
    try:
        run(server, hosts)
        server = push(server, hosts)
        read(server)
        mistakes(server, hosts)
    except (AssertionError, LookupError, OSError, StopIteration, ValueError, subprocess.TimeoutExpired,
            botocore.exceptions.ClientError) as why:
        check(False, f"{type(why).__name__}: {why}")
    finally:
        server.end()
        for child in servers:
            child.kill()
    print(f"{len(failures)} differences" if failures else "agrees: " + ", ".join(judged))
    sys.exit(bool(failures))


main()
