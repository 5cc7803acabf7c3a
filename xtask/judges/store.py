"""Campaigns whose `store_command` is rclone, judged with moto's server, which speaks S3, and polars.

    store.py TALKPATH FOLDER

FOLDER is emptied. Hosts are addresses of loopback. The server checks signatures (moto's IAM), and forgets
everything when it ends.

- `run`: the server is away for some seconds while the campaign measures. No measurement is missing or later,
  and at the end every file is there.
- `push`: killed again and again, in the middle of objects of one and of several parts. After each kill every
  object is a local file byte for byte. A kill counts if it left the store incomplete. Then it goes on with the
  rest, and once more it copies the plan alone. An object that was changed is put again by `--all`. A server
  that ends meanwhile, and comes back empty, is given everything again.
- `read`: one line of polars reads all rows, with day, pair and measurement as columns.
- `folder`: the same command copies to a folder.
- `mistakes`: no bucket, wrong key, wrong secret, no rights, no network, no credentials, no such program, and the
  `store` of old. One sentence each, and the records are as they were.

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
# Chosen: ten of rclone's parts, so that a kill finds one of them on its way.
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
    own = ("AWS_", "TALKPATH_", "RCLONE_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    # No configuration of the machine's user, and no look for credentials of a virtual machine.
    variables |= {"RCLONE_CONFIG": str(FOLDER / "rclone.conf"), "AWS_EC2_METADATA_DISABLED": "true"}
    return {**variables, "AWS_ACCESS_KEY_ID": key[0], "AWS_SECRET_ACCESS_KEY": key[1]} if key else variables


def at(bucket, url):
    """Where rclone finds a bucket. Parts of 8 MB come from 16 MB on, and no bucket is made. Behind parts rclone
    looks for the version `null`, which moto refuses (`no_head`)."""
    options = "env_auth,provider=Other,no_check_bucket,no_head,chunk_size=8M,upload_cutoff=16M"
    return f":s3,{options},endpoint='{url}':{bucket}"


def commands_at_work():
    """The commands of the store that run: what a killed coordinator started ends by itself."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(bytes(1))
        except OSError:
            continue
        if words[0].endswith(b"rclone") and any(str(FOLDER).encode() in word for word in words):
            found.append(path.parent.name)
    return found


def campaign(what, file, key, *more):
    return subprocess.Popen([TALKPATH, "campaign", what, file, *more], cwd=FOLDER, env=environment(key), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(child):
    out, err = child.communicate(timeout=600)
    return child.returncode, out, err


def command(target, program="rclone"):
    """The line of the file; rclone tries once, so that a server that is away is soon noticed."""
    once = ["--retries", "1", "--low-level-retries", "1"]
    return f"store_command = {json.dumps([program, 'copyto', *once, '{file}', target + '/{key}'])}"


def write(file, line, hosts):
    tables = "".join(f'[host.{name}]\naddress = "{address}"\n\n' for name, address in hosts.items())
    (FOLDER / file).write_text(
        f'name = "Two sites"\n{line}\n'
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
    line = command(at(BUCKET, way.url))
    write("run.toml", line, hosts)
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
    check(code == 0 and "not copied to the store: rclone: exit code" in err, f"run: exit code {code}: {err}")
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
    store = json.loads(out)["store"]
    check((store["there"], store["failing"]) == (10, None) and "rclone copyto" in store["command"], f"status: {out}")
    way.close()
    judged.append(f"a server that was away for 6 s of a run of {len(planned)} measurements")


def began(measurement):
    """When the journal has its first line, in ms."""
    lines = (RECORDS.parent / "journal.jsonl").read_text().splitlines()
    return next(it["at_ms"] for it in map(json.loads, lines) if it["id"] == measurement["id"])


def push(server, hosts):
    write("push.toml", command(at(f"{BUCKET}/lab/2026", server.url)), hosts)
    large = next(RECORDS.iterdir()) / "captures"
    large.mkdir()
    (large / "0-0.pcapng").write_bytes(os.urandom(LARGE))
    prefix, notes = "lab/2026/", RECORDS.parent / "uploads.jsonl"
    files, _ = local(prefix)

    def pushed(*more):
        code, out, err = ended(campaign("push", "push.toml", server.keys["copies"], "--json", *more))
        check(code == 0, f"push: exit code {code}: {err}")
        return json.loads(out or '{"copied": null, "before": null}')

    def as_here(what):
        check(server.objects(prefix) == set(files), f"{what}: the keys")
        for key, path in files.items():
            check(server.bytes_of(key) == path.read_bytes(), f"{what}: {key}")

    began = time.monotonic()
    check(pushed()["copied"] == len(files), "push: the files")
    whole = time.monotonic() - began
    counts, late, unfinished = [], 0, 0
    while len(counts) < KILLS and len(counts) + late < TRIES:
        server.empty(prefix)
        notes.unlink(missing_ok=True)
        child = campaign("push", "push.toml", server.keys["copies"])
        if len(counts) % 3 == 0:
            # In the middle of an object of several parts.
            while not server.unfinished() and child.poll() is None:
                time.sleep(0.01)
        else:
            time.sleep(whole * (0.1 + 0.8 * ((len(counts) + late) * 7 % KILLS) / KILLS))
        child.send_signal(signal.SIGKILL)
        _, err = child.communicate()
        unfinished += server.unfinished()
        found = server.objects(prefix)
        for key in found:
            check(key in files and server.bytes_of(key) == files[key].read_bytes(), f"after a kill: {key}")
        # What runs copies its file to the end.
        until = time.monotonic() + 60
        while commands_at_work() and time.monotonic() < until:
            time.sleep(0.05)
        check(not commands_at_work(), "a command outlives the one that started it")
        if found == set(files):
            late += 1
        else:
            check(child.returncode == -signal.SIGKILL, f"a push that was not killed: {child.returncode}: {err}")
            counts.append(len(found))
    print(f"{len(counts)} kills left an incomplete store, with {counts} of {len(files)} objects; {late} came too late; "
          f"{unfinished} met an object between its parts")
    check(len(counts) == KILLS, f"push: only {len(counts)} kills left an incomplete store")
    check(unfinished > 0, "push: no kill met an object between its parts")
    pushed()
    as_here("push after the kills")
    check(pushed() | {"bytes": 0, "store": ""} == {"copied": 1, "before": 10, "bytes": 0, "store": ""}, "a second push")
    # Of the same size, and not the same.
    changed = next(key for key, path in files.items() if path.name == "packets.parquet")
    server.s3.put_object(Bucket=BUCKET, Key=changed, Body=bytes(files[changed].stat().st_size))
    check(pushed("--all")["copied"] == len(files), "push --all: the files")
    as_here("an object that was changed")
    server.empty(prefix)
    child = campaign("push", "push.toml", server.keys["copies"], "--all")
    while not server.objects(prefix) and child.poll() is None:
        time.sleep(0.02)
    server.end()
    code, _, err = ended(child)
    check(code == 4 and "rclone: exit code" in err, f"a server that ended: exit code {code}: {err}")
    server = Server(server.port)
    pushed("--all")
    as_here("a server that came back empty")
    judged.append(f"{len(counts)} kills that left an incomplete store and a server that ended, {len(files)} objects byte for byte")
    return server


def folder(hosts):
    """rclone's local backend, which needs no server."""
    share = FOLDER / "share"
    write("folder.toml", command(str(share)), hosts)
    code, _, err = ended(campaign("push", "folder.toml", None))
    files, _ = local("")
    found = {str(path.relative_to(share)): path for path in share.rglob("*") if path.is_file()}
    check(code == 0 and set(found) == set(files), f"folder: exit code {code}: {err} {set(found) ^ set(files)}")
    for key, path in found.items():
        check(path.read_bytes() == files[key].read_bytes(), f"folder: {key}")
    judged.append(f"{len(found)} files in a folder")


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
    write("no-bucket.toml", command(at("nowhere", server.url)), hosts)
    write("no-network.toml", command(at(BUCKET, f"http://127.0.0.1:{free_port()}")), hosts)
    write("no-program.toml", command(at(BUCKET, server.url), "rclown"), hosts)
    write("old.toml", f'store = "s3://{BUCKET}"\nstore_endpoint = "{server.url}"', hosts)
    write("push.toml", command(at(f"{BUCKET}/lab/2026", server.url)), hosts)
    before = digest()
    cases = [
        ("no-bucket.toml", right, 4, "NoSuchBucket"),
        ("no-network.toml", right, 4, "connection refused"),
        ("no-program.toml", right, 4, "cannot start rclown: "),
        ("old.toml", right, 2, f"endpoint='{server.url}':{BUCKET}/{{key}}"),
        ("push.toml", ("AKIAIOSFODNN7EXAMPLE", right[1]), 4, "403"),
        ("push.toml", (right[0], "wrong"), 4, "403"),
        ("push.toml", server.keys["nothing"], 4, "403"),
        ("push.toml", None, 4, "rclone: exit code"),
    ]
    for file, key, expected, says in cases:
        began = time.monotonic()
        code, out, err = ended(campaign("push", file, key, *(["--all"] if expected == 4 else [])))
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
        folder(hosts)
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
