"""Sweeps on engines that exist: the cores of this machine, Ray with two nodes, a Dask cluster of two workers, the
same with parts through S3 (moto's server), and Slurm with two nodes. All of them run on this machine.

    engines.py TALKPATH FOLDER [ENGINE...] [cells=2000] [seconds=240] [many=100000]

ENGINE is local, ray, dask, s3, slurm or many; all of them unless named. FOLDER is emptied. A cell simulates
`seconds`, more than 10.

- Each engine runs a sweep with one worker, with two, and with two of which some are killed. Every run must be
  the one that `talkpath run` leaves: the record files byte for byte, and summary.json from the runs on.
- A kill counts if it met a repetition on its way. Engines with workers of their own lose a worker whose program
  lives on, a worker with its program, and a program alone. Slurm loses a node, and two programs.
- Two workers take at most 0.6 of the time of one, from the call to the merged run. This is judged on a quiet
  machine with two processors or more: other programs use less than 0.2 of a processor before and after.
- An overhead is the time of the workers beside repetitions, for each task: to start it, and to wait for it.
- `many`: 100,000 short cells on the cores. It prints the memory of the driver and of the largest program.

An engine that is not installed is skipped with the reason. Exit code 1 if something differs.

Daemons, workers and programs end with the judge, whatever ends it: a guardian waits for its end in a session of its
own, and then kills every process that has the judge's mark in its environment.
"""

import hashlib
import json
import os
import pathlib
import pwd
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from importlib.util import find_spec

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Ray's default is 15: beside other programs its workers would get next to no time.
os.environ["RAY_worker_niceness"] = "0"

from talkpath.sweep import SweepError, sweep  # noqa: E402

NAMED = [word for word in sys.argv[3:] if "=" not in word]
OPTIONS = {"cells": 2000, "seconds": 240, "many": 100_000} | {
    name: int(value) for name, value in (word.split("=") for word in sys.argv[3:] if "=" in word)}
FOLDER = pathlib.Path(sys.argv[2]).resolve()
# A copy: a build meanwhile would give parts of two programs, which `merge` refuses.
TALKPATH = str(FOLDER / "talkpath")
# Chosen: where in the sweep something is killed.
KILLS_AT = [0.1, 0.35, 0.6]
# Chosen: parts of Slurm's array.
PARTS = 24
RATIO, QUIET = 0.6, 0.2
MARK = "TALKPATH_ENGINES_JUDGE"
failures, rows, skipped, notes = [], [], [], []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"DIFFERS: {what}", flush=True)


def scenario(file, cells, seconds):
    """A long upload and a short call: with 240 s some 25 ms of a processor for each cell, and few rows."""
    delays = ", ".join(f'"{1 + number} ms"' for number in range(cells // 10))
    file.write_text(
        f'name = "a grid"\nduration = "{seconds} s"\ndrain = "1 s"\nrepeat = 1\n\n'
        '[path]\nup = { rate = "2 Mbps", delay = "15 ms" }\ndown = { rate = "16 Mbps", delay = "15 ms" }\n\n'
        f'[flow.call]\ntransport = "udp"\nstart = "{seconds - 10} s"\nworkload = {{ kind = "voice", echo = true }}\n\n'
        '[flow.upload]\ntransport = "tcp"\nworkload = { kind = "bulk" }\n\n'
        '[sweep]\n"flow.call.transport" = ["udp", "tcp"]\n"path.up.loss" = [0.0, 0.005, 0.01, 0.02, 0.05]\n'
        f'"path.up.delay" = [{delays}]\n')


def digests(run):
    """The record files, and what summary.json says beside the names of a machine."""
    text = (run / "summary.json").read_text()
    figures = text[text.index('\n  "runs": [') : text.index('\n  "provenance": {')].encode()
    files = [(run / name).read_bytes() for name in ("packets.parquet", "series.parquet")]
    assert len(figures) > 1000 and all(len(it) > 100 for it in files), run
    return [hashlib.sha256(it).hexdigest() for it in [*files, figures]]


def others():
    """How many processors are busy within a second, with nothing of ours on them."""

    def busy():
        fields = [int(it) for it in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(fields) - fields[3] - fields[4]

    before, ticks = busy(), os.sysconf("SC_CLK_TCK")
    time.sleep(1)
    return (busy() - before) / ticks


def processes():
    """Each process: its parent and its command."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                found[int(entry.name)] = (parent, (entry / "cmdline").read_bytes().decode().split("\0"))
            except (OSError, ValueError, IndexError):
                pass
    return found


def below(root):
    """The processes that `root` began, and those that these began."""
    every, found = processes(), {root}
    while more := {pid for pid, (parent, _) in every.items() if parent in found and pid not in found}:
        found |= more
    return found - {root}


def programs(directory, among=None):
    """Programs that run a part and have finished a repetition of it, so a kill meets the next: those of this
    sweep, or of these processes."""
    found = []
    for pid, (_, command) in processes().items():
        is_ours = pid in among if among is not None else str(directory / "plan" / "scenario.toml") in command
        if is_ours and command[:2] == [TALKPATH, "run"]:
            try:
                part = pathlib.Path(f"/proc/{pid}/cwd").resolve() / command[command.index("-o") + 1] / "parts"
                if any(it.is_dir() for it in part.iterdir()):
                    found.append(pid)
            except OSError:
                pass
    return found


def end(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until(what, holds, seconds=60.0, step=0.005):
    until = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(step)
    return found


def guard():
    """Starts the guardian of this process, and marks all processes that are begun from now on."""
    # Short, because it stands in the paths of Ray's sockets, which have at most 107 bytes.
    mark = f"{random.getrandbits(32):08x}"
    subprocess.Popen([sys.executable, __file__, "guard", str(os.getpid()), mark], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.environ[MARK] = mark


def outlive(judge, mark):
    """The guardian: waits until `judge` has ended, then ends the processes with its mark, and removes its folders.
    Neither a signal to the judge's group nor SIGKILL to the judge itself reaches it."""
    try:
        process = os.pidfd_open(judge)
        # Its child still, so the number is not that of a later process.
        if os.getppid() == judge:
            select.select([process], [], [])
    except ProcessLookupError:
        pass
    # More than once: a nanny may start another worker while it dies.
    until = time.monotonic() + 60
    while (left := marked(mark)) and time.monotonic() < until:
        end(left)
        time.sleep(0.05)
    for folder in pathlib.Path("/tmp").glob(f"e-{mark}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def marked(mark):
    """The processes that were begun with `mark` in their environment; one that is dead and not yet waited for has
    none."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Local:
    """This machine's cores: a worker is a thread of the driver, so only programs can die."""

    def __init__(self, workers, _):
        self.options = {"workers": workers}

    def kill(self, directory, _):
        end(wait_until("a program", lambda: programs(directory))[:1])

    def close(self):
        pass


class Ray:
    """A head and a node beside it, each with one processor."""

    def __init__(self, workers, short):
        from ray.cluster_utils import Cluster

        os.environ["RAY_TMPDIR"] = str(short)
        self.arguments = {"num_cpus": 1, "object_store_memory": 100_000_000}
        head = {**self.arguments, "include_dashboard": False}
        # Its hooks at exit are for the main thread, and a thread adds nodes.
        self.cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)
        self.nodes = [self.cluster.add_node(**self.arguments) for _ in range(workers - 1)]
        self.options = {"address": self.cluster.address, "logging_level": "ERROR", "log_to_driver": False}

    def kill(self, directory, number):
        node = self.nodes[-1]
        raylet = node.all_processes["raylet"][0].process.pid
        if number == 2:
            end(wait_until("a program", lambda: programs(directory))[:1])
            return
        mine = wait_until("a program of the node", lambda: programs(directory, below(raylet)))
        # Without its raylet a worker ends itself; its program does not.
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)
        if number == 1:
            end(mine)
        self.nodes.append(self.cluster.add_node(**self.arguments))

    def close(self):
        self.cluster.shutdown()


class Dask:
    """A scheduler, and workers with their nannies, each with one thread."""

    def __init__(self, workers, short):
        self.file = short / "dask.json"
        self.log = open(FOLDER / "dask.log", "ab")
        self.scheduler = self.start("scheduler", "--port", "0")
        self.workers = [self.worker() for _ in range(workers)]
        self.options = {"scheduler_file": str(self.file)}
        from distributed import Client

        with Client(scheduler_file=str(self.file)) as client:
            client.wait_for_workers(workers, timeout=60)

    def start(self, *words):
        program = pathlib.Path(sys.executable).with_name("dask")
        command = [str(program), *words, "--scheduler-file", str(self.file), "--no-dashboard"]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log, cwd=self.file.parent)

    def worker(self):
        return self.start("worker", "--nthreads", "1")

    def kill(self, directory, number):
        nanny = self.workers[0]
        mine = wait_until("a program of the worker", lambda: programs(directory, below(nanny.pid)))
        rest = [pid for pid in below(nanny.pid) if pid not in mine]
        if number < 2:
            # The nanny first: it would start its worker again.
            end([nanny.pid, *rest])
            nanny.wait()
            self.workers = [*self.workers[1:], self.worker()]
        if number > 0:
            end(mine)

    def close(self):
        for process in [*self.workers, self.scheduler]:
            end([*below(process.pid), process.pid])
            process.wait()
        self.log.close()


class S3(Dask):
    """Workers that see no folder of the driver: parts go through moto's server."""

    def __init__(self, workers, short):
        super().__init__(workers, short)
        port = free_port()
        program = pathlib.Path(sys.executable).with_name("moto_server")
        self.server = subprocess.Popen([str(program), "-H", "127.0.0.1", "-p", str(port)], stdout=self.log, stderr=self.log)
        url = f"http://127.0.0.1:{port}"
        wait_until("moto's server", lambda: answers(url), step=0.1)
        import s3fs

        key = {"key": "judge", "secret": "judge", "endpoint_url": url}
        s3fs.S3FileSystem(**key).mkdir("sweeps")
        self.store = {"store": "s3://sweeps/grid", "store_options": key}

    def close(self):
        super().close()
        self.server.kill()
        self.server.wait()


def answers(url):
    try:
        return bool(urllib.request.urlopen(f"{url}/moto-api/", timeout=5).read())
    except OSError:
        return False


def by_python(name, engine, workers, kills, directory, short):
    """Runs the sweep by `talkpath.sweep`. Returns what the table needs."""
    cluster = engine(workers, short)
    done, killed, over = [0], [], threading.Event()

    def killer():
        for number, at in enumerate(KILLS_AT[:kills]):
            while done[0] < at * OPTIONS["cells"] and not over.is_set():
                time.sleep(0.01)
            if over.is_set():
                return
            try:
                cluster.kill(directory, number)
                killed.append(number)
            except TimeoutError as why:
                print(f"{name}: not killed: {why}")

    thread = threading.Thread(target=killer)
    thread.start()
    began = time.monotonic()
    try:
        # Short tasks, so that there are enough of them to kill and to count.
        run = sweep(str(FOLDER / "grid.toml"), engine="dask" if name == "s3" else name, engine_options=cluster.options,
                    directory=directory, binary=TALKPATH, seconds_a_task=5.0,
                    progress=lambda n, _: done.__setitem__(0, n), **getattr(cluster, "store", {}))
        seconds = time.monotonic() - began
    finally:
        over.set()
        thread.join()
        cluster.close()
    tasks = json.loads((directory / "tasks.json").read_text())
    span = max(it["began"] + it["task_s"] for it in tasks) - min(it["began"] for it in tasks)
    return run.path, seconds, span, tasks, len(killed)


class Slurm:
    """slurmctld, and two slurmd that say they are a node with one processor each."""

    def __init__(self, short):
        self.short, self.children, self.nodes = short, {}, {}
        ports = [free_port() for _ in range(3)]
        host, user = socket.gethostname(), pwd.getpwuid(os.geteuid()).pw_name
        # munged wants its socket within reach of everybody.
        short.chmod(0o755)
        (short / "key").write_bytes(os.urandom(128))
        (short / "key").chmod(0o400)
        (short / "state").mkdir()
        nodes = "".join(
            f"NodeName=n{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[n]} CPUs=1\n" for n in (1, 2))
        (short / "slurm.conf").write_text(
            f"ClusterName=judge\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={ports[0]}\n"
            f"AuthType=auth/munge\nAuthInfo=socket={short}/munge\nSlurmUser={user}\nSlurmdUser={user}\n"
            f"StateSaveLocation={short}/state\nSlurmdSpoolDir={short}/spool-%n\n"
            f"SlurmctldPidFile={short}/slurmctld.pid\nSlurmdPidFile={short}/slurmd-%n.pid\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nReturnToService=2\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\n"
            # A node that does not answer for this long is down, and its tasks are queued again.
            f"SlurmdTimeout=10\n{nodes}"
            "PartitionName=one Nodes=n1 MaxTime=INFINITE\n"
            "PartitionName=two Nodes=n1,n2 Default=YES MaxTime=INFINITE\n")
        self.environment = {**os.environ, "SLURM_CONF": str(short / "slurm.conf"), "TALKPATH": TALKPATH}
        try:
            self.begin()
        except TimeoutError:
            self.close()
            raise

    def begin(self):
        short = self.short
        self.start("munged", "--foreground", f"--socket={short}/munge", f"--key-file={short}/key",
                   f"--pid-file={short}/munged.pid", f"--log-file={short}/munged.log", f"--seed-file={short}/seed")
        wait_until("munged", (short / "munge").exists)
        self.start("slurmctld", "-D", "-i")
        for name in ["n1", "n2"]:
            self.node(name)
        wait_until("Slurm's nodes", lambda: self.ask("sinfo", "-h", "-p", "two", "-t", "idle", "-o", "%D") == "2", step=0.2)

    def start(self, *words):
        log = open(FOLDER / f"{words[0]}.log", "ab")
        child = subprocess.Popen([tool(words[0]), *words[1:]], env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.children[child.pid] = child
        return child

    def node(self, name):
        self.nodes[name] = self.start("slurmd", "-D", "-N", name)

    def ask(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout.strip()

    def run(self, workers, kills, directory):
        environment = {**self.environment, "SBATCH_PARTITION": "one" if workers == 1 else "two"}
        script = ROOT / "packaging" / "slurm" / "talkpath-sweep.sh"
        began, clock = time.monotonic(), time.time()
        command = [str(script), str(FOLDER / "grid.toml"), str(PARTS), str(directory), "--json", "--quiet"]
        subprocess.run(command, env=environment, cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)
        killed, down, until = 0, None, time.monotonic() + 1200
        logs = directory / "log"
        while self.ask("squeue", "-h", "-o", "%i"):
            if time.monotonic() > until:
                raise TimeoutError(f"Slurm: the queue is not empty: {self.ask('squeue')}")
            done = sum(last_json(it) is not None for it in logs.glob("part-*.log"))
            if killed < kills and done >= KILLS_AT[killed] * PARTS:
                down = self.kill(directory, killed) or down
                killed += 1
            if down and self.ask("sinfo", "-h", "-n", "n2", "-t", "down", "-o", "%D") == "1":
                self.node("n2")
                down = None
            time.sleep(0.2)
        seconds = time.monotonic() - began
        if not (directory / "run" / "summary.json").is_file():
            raise SweepError((logs / "merge.log").read_text(), directory)
        parts = list(logs.glob("part-*.log"))
        span = max(it.stat().st_mtime for it in parts) - clock
        return directory / "run", seconds, span, [last_json(it) for it in parts], killed

    def kill(self, directory, number):
        if number > 0:
            end(wait_until("a program", lambda: programs(directory))[:1])
            return False
        spool = str(self.short / "spool-n2")

        def steps():
            every = processes()
            shells = [pid for pid, (_, command) in every.items() if any(it.startswith(spool) for it in command)]
            mine = programs(directory, set().union(*(below(it) for it in shells)))
            return [it for shell in shells for it in (every[shell][0], shell)] + mine if mine else []

        found = wait_until("a program of the node", steps)
        end([self.nodes["n2"].pid, *found])
        self.nodes["n2"].wait()
        return True

    def close(self):
        self.ask("scancel", "--user", pwd.getpwuid(os.geteuid()).pw_name)
        for child in reversed(self.children.values()):
            child.terminate()
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def last_json(file):
    """What the program printed at its end; nothing if none has come so far."""
    found = re.findall(r"^\{\n.*?^\}$", file.read_text(), re.DOTALL | re.MULTILINE)
    return json.loads(found[-1]) if found else None


def tool(name):
    """Debian has daemons where only root looks for them."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_port():
    """A port below those that Linux gives to whoever wants any: nobody takes it before its server does."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                pass


def missing(name):
    """Why an engine cannot be had; nothing if it can."""
    if name == "ray" and not find_spec("ray"):
        return "no Ray: pip install ray"
    if name == "dask" and not find_spec("distributed"):
        return "no Dask: pip install distributed"
    if name == "s3":
        lacking = [it for it in ["distributed", "moto", "s3fs"] if not find_spec(it)]
        return f"no {', '.join(lacking)}: pip install distributed 'moto[server]' s3fs" if lacking else None
    if name == "slurm":
        lacking = [it for it in ["munged", "slurmctld", "slurmd", "sbatch"] if not tool(it)]
        if lacking:
            return f"no {', '.join(lacking)}: apt-get install --no-install-recommends slurmctld slurmd munge"
        if os.geteuid() != 0:
            return "slurmd needs the rights of root"
    return None


def engine(name, whole):
    """One worker, two workers, and two that are killed."""
    times, calm = {}, True
    for workers, kills in [(1, 0), (2, 0), (2, len(KILLS_AT))]:
        directory = FOLDER / f"{name}-{workers}-{kills}"
        short = pathlib.Path(tempfile.mkdtemp(prefix=f"e-{os.environ[MARK]}-", dir="/tmp"))
        before, load = others(), os.getloadavg()[0]
        if name == "slurm":
            slurm = Slurm(short)
            try:
                run, seconds, span, tasks, killed = slurm.run(workers, kills, directory)
            finally:
                slurm.close()
        else:
            kind = {"local": Local, "ray": Ray, "dask": Dask, "s3": S3}[name]
            run, seconds, span, tasks, killed = by_python(name, kind, workers, kills, directory, short)
        busy = max(before, others())
        same = digests(run) == whole
        check(same, f"{name}, {workers} workers, {killed} kills: the run is not the local one")
        check(killed == kills, f"{name}: {killed} of {kills} kills met a repetition on its way")
        ratio = None
        if not kills:
            times[workers] = seconds
            calm &= busy < QUIET
            ratio = seconds / times[1] if workers == 2 else None
        work = sum(it["wall_s"] for it in tasks)
        # A task that was killed leaves no time, so its overhead is not known.
        overhead = None if kills else (workers * span - work) / len(tasks)
        share = sum(it["cpu_s"] for it in tasks) / work
        rows.append([name, workers, OPTIONS["cells"], len(tasks), f"{seconds:.1f}", f"{ratio:.2f}" if ratio else "",
                     f"{span:.1f}", f"{1000 * overhead:.0f}" if overhead is not None else "", f"{share:.2f}", killed,
                     "yes" if same else "NO", f"{load:.1f}", f"{busy:.1f}"])
        print(line(rows[-1]), flush=True)
        shutil.rmtree(directory)
        shutil.rmtree(short, ignore_errors=True)
    ratio = times[2] / times[1]
    if len(os.sched_getaffinity(0)) < 2:
        notes.append(f"{name}: the ratio {ratio:.2f} is not judged: one processor")
    elif not calm:
        notes.append(f"{name}: the ratio {ratio:.2f} is not judged: other programs ran")
    else:
        check(ratio <= RATIO, f"{name}: two workers take {ratio:.2f} of the time of one, more than {RATIO}")


HEAD = ["engine", "workers", "cells", "tasks", "s", "ratio", "tasks' s", "ms a task", "cpu", "kills", "equal", "load", "others"]


def line(fields):
    return "".join(f"{field!s:>10}" for field in fields)


def driver(directory):
    """The sweep of many cells, in a process of its own: what it takes at most is what the kernel says."""
    cells = OPTIONS["many"]
    delays = max(1, cells // 2500)
    call = {
        "name": "many cells", "duration": "1 s", "drain": "200 ms", "repeat": 1,
        "path": {"up": {"rate": "2 Mbps", "delay": "15 ms"}, "down": {"rate": "16 Mbps", "delay": "15 ms"}},
        "flow": {"call": {"transport": "udp", "workload": {"kind": "voice", "echo": True}}}}
    grid = {"path.up.loss": [number / 1000 for number in range(50)],
            "path.up.delay": [f"{1 + number} ms" for number in range(50)],
            "path.down.delay": [f"{1 + number} ms" for number in range(delays)]}
    began = time.monotonic()
    run = sweep(call, sweep=grid, directory=directory, binary=TALKPATH, records="none", progress=False)
    seconds = time.monotonic() - began
    tasks = json.loads((pathlib.Path(directory) / "tasks.json").read_text())
    own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    runs = sum(it["repetitions"] for it in tasks)
    check(runs == 2500 * delays and run.path.joinpath("summary.json").is_file(), f"many: {runs} repetitions")
    print(f"many: {runs} cells, {len(tasks)} tasks, {seconds:.0f} s, {child.ru_utime + child.ru_stime:.0f} s of CPU time in programs; "
          f"the driver takes {own.ru_maxrss // 1000} MB at most, the largest program {child.ru_maxrss // 1000} MB (merge)")


def many():
    directory = FOLDER / "many"
    directory.mkdir()
    shutil.copy(TALKPATH, directory / "talkpath")
    ended = subprocess.run([sys.executable, __file__, TALKPATH, str(directory), "driver", f"many={OPTIONS['many']}"],
                           stdout=subprocess.PIPE, text=True, check=False)
    print(ended.stdout, end="", flush=True)
    check(ended.returncode == 0, f"many: exit code {ended.returncode}")
    shutil.rmtree(directory, ignore_errors=True)


def main():
    if sys.argv[1] == "guard":
        outlive(int(sys.argv[2]), sys.argv[3])
        return
    if NAMED == ["driver"]:
        driver(str(FOLDER))
        sys.exit(bool(failures))
    guard()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    shutil.copy(sys.argv[1], TALKPATH)
    names = NAMED or ["local", "ray", "dask", "s3", "slurm", "many"]
    whole = None
    for name in names:
        if why := missing(name):
            skipped.append(f"{name}: {why}")
            print(f"SKIPPED: {skipped[-1]}", flush=True)
        elif name == "many":
            many()
        else:
            if whole is None:
                scenario(FOLDER / "grid.toml", OPTIONS["cells"], OPTIONS["seconds"])
                subprocess.run([TALKPATH, "run", str(FOLDER / "grid.toml"), "--out", str(FOLDER / "alone"), "--quiet"],
                               check=True, stdout=subprocess.DEVNULL)
                run = next((FOLDER / "alone").iterdir())
                whole = digests(run)
                shutil.rmtree(run)
                print(line(HEAD), flush=True)
            engine(name, whole)
    if rows:
        print("\n" + "\n".join(line(it) for it in [HEAD, *rows]))
    for note in notes:
        print(note)
    tried = [it for it in names if not any(why.startswith(f"{it}:") for why in skipped)]
    print(f"{len(failures)} differences on {', '.join(tried) or 'no engine'}"
          + (f"; skipped: {'; '.join(skipped)}" if skipped else "") + (f"; {len(notes)} ratios not judged" if notes else ""))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
