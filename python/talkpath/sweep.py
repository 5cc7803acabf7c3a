"""A sweep on several machines, by an engine that is there already: Ray, Dask, or the cores of this one.

    from talkpath.sweep import sweep
    run = sweep("grid.toml", engine="dask", engine_options={"address": "tcp://head:8786"}, directory="/shared/grid")

    directory/plan/      the scenario as resolved, which every worker runs its part of
    directory/sweep.json how the repetitions are divided
    directory/parts/     a folder for each task; what was finished in it stays, whatever dies
    directory/run/       the run that `talkpath merge` makes of them: byte for byte that of one machine

Which repetitions run, and with which seeds, is decided by the plan alone (`talkpath run --shard`). An engine
only carries commands to its workers, so a worker that dies, or a second call in the same directory, changes
nothing in the result. Nothing but the program is needed on a worker, and a directory that all of them see. If
there is none, parts go through object storage (`store=`), and workers need fsspec besides.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from ._calls import load
from ._program import binary as own_program
from ._progress import Progress, teller
from ._run import Run
from ._scenario import Scenario, checked
from ._store import Store, part_range

Engine = Literal["local", "ray", "dask"]
File = str | os.PathLike[str]
Done = dict[str, Any]
Task = dict[str, Any]


class SweepError(RuntimeError):
    """A sweep that did not end. What is finished stays in `directory`; the same call goes on with it."""

    def __init__(self, message: str, directory: Path) -> None:
        super().__init__(f"{message}\nwhat is finished is in {directory}: the same call goes on with it")
        self.directory = directory


def sweep(
    scenario: Scenario,
    *,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    engine: Engine = "local",
    engine_options: Mapping[str, Any] | None = None,
    directory: File | None = None,
    store: str | None = None,
    store_options: Mapping[str, Any] | None = None,
    binary: File | None = None,
    records: Literal["none", "summary", "all"] = "all",
    series: Literal["sampled", "full"] = "sampled",
    seconds_a_task: float = 20.0,
    retries: int = 3,
    progress: Progress = None,
) -> Run:
    """Runs a simulated scenario on the workers of an engine, and merges what they leave.

    Args:
        scenario: the path of a scenario file, or a dict with its keys.
        sweep: keys, each with its values; they join those that the scenario sweeps, as in `talkpath.run`.
        set: keys and their values: `{"path.up.rate": "2 Mbps"}`.
        repeat: how many repetitions of each cell.
        seed: that of the first repetition.
        engine: `local` runs on this machine's cores, `ray` and `dask` on their workers.
        engine_options: `ray`: arguments of `ray.init` (`address`). `dask`: `client`, or arguments of
            `distributed.Client` (`address`). `local`: `workers`, one for each core unless given.
        directory: a folder that all workers see under this path; a new one under `talkpath-runs` unless given.
            If the same sweep was begun in it, what is missing is run. With a `store`, only the driver sees it.
        store: object storage between driver and workers, `s3://BUCKET/PREFIX`, if they see no common folder.
            Driver and workers need fsspec, and what it needs for this storage (s3fs).
        store_options: what fsspec is given for it: `{"endpoint_url": "https://s3.example"}`. Workers find
            credentials by themselves, or here.
        binary: the program as workers find it; the package's own, or the one on the PATH, unless given.
        records: `summary` leaves out messages, `none` series too.
        series: how many points of each line are kept.
        seconds_a_task: about how long a task is to take, by what the ones before it took.
        retries: how often a task is tried again after its worker died.
        progress: as of `talkpath.run`.

    Raises:
        ScenarioError: with every mistake of the scenario.
        ValueError: the directory has parts of a sweep without this store, or with other `records` or `series`.
        SweepError: the program refused a part, or a task's workers died too often.
    """
    program = str(binary) if binary is not None else str(Path(own_program()).resolve())
    flags = [
        word for name, it in (("repeat", repeat), ("seed", seed)) if it is not None for word in (f"--{name}", str(it))
    ]
    with checked(scenario, sweep, set or {}, repeat) as ready:
        # A scenario with mistakes leaves no folder.
        into = Path(directory) if directory is not None else _new_directory()
        into.mkdir(parents=True, exist_ok=True)
        into = into.resolve()
        plan = _plan(program, ready.file, [*ready.settings, *flags], into)
    shared = Store(store, store_options or {}, into) if store is not None else None
    if shared is not None and shared.has_other_plan():
        raise SweepError(f"{store} holds another scenario (or sweep, seed, repeat): name another store", into)
    carrier = _carrier(engine, dict(engine_options or {}))
    try:
        kept = {"records": records, "series": series}
        division = _Division.made(plan, into, carrier.slots(), shared, kept)
        tell = teller(progress, division.repetitions)
        common = ["--records", records, "--series", series, "--jobs", "1", "--json", "--quiet"]
        work = _Work(program, into, division, common, seconds_a_task, retries, tell, shared, division.done)
        try:
            work.carry_out(carrier)
        finally:
            tell(-1)
        if shared is not None:
            shared.fetch()
    finally:
        carrier.close()
    return _merged(program, into)


@dataclass
class _Division:
    """How the repetitions are divided: parts as the program counts them, and those that no folder holds yet."""

    of: int
    repetitions: int
    free: list[tuple[int, int]]
    begun: list[tuple[int, int]]
    done: int
    """Repetitions in parts of a store, which are whole."""

    @staticmethod
    def made(
        plan: Mapping[str, Any], into: Path, slots: int, store: Store | None, kept: Mapping[str, str]
    ) -> _Division:
        """The division that the directory or the store has, or a new one of parts that keep what `kept` says."""
        repetitions = len(plan["cells"]) * plan["repeat"]
        file = into / "sweep.json"
        if store is not None:
            store.share(file.name)
        if file.is_file():
            begun_as = json.loads(file.read_text())
            parts = int(begun_as["parts"])
            for name, word in kept.items():
                # A directory of an earlier version says nothing of it.
                there = begun_as.get(name, word)
                if there != word:
                    raise ValueError(f"{name}={word!r}: {into} was begun with {there!r}; name another directory")
        else:
            # Parts are what tasks are made of: each short beside a task, and several for each worker.
            wanted = max(int(plan["cost_s"] / _SECONDS_A_PART), slots * _PARTS_A_SLOT)
            parts = max(1, min(wanted, repetitions, _MOST_PARTS))
            draft = file.with_suffix(".draft")
            draft.write_text(json.dumps({"parts": parts, **kept}))
            draft.replace(file)
            if store is not None:
                store.share(file.name)
        whole = store.fetch() if store is not None else []
        done = sum(it.is_dir() for name in whole for it in (into / "parts" / name / "parts").iterdir())
        held = {it.name for it in (into / "parts").iterdir() if it.is_dir()}
        if store is not None and not held <= set(whole):
            raise ValueError(f"{into} has parts that are not in the store: name a new directory")
        begun = sorted(part_range(name) for name in held)
        free: list[tuple[int, int]] = []
        next_part = 1
        for first, last in begun:
            if first > next_part:
                free.append((next_part, first - 1))
            next_part = last + 1
        if next_part <= parts:
            free.append((next_part, parts))
        return _Division(parts, repetitions, free, begun if store is None else [], done)

    def take(self, size: int) -> tuple[int, int] | None:
        """The next parts, at most `size` of them; those that were begun first."""
        if self.begun:
            return self.begun.pop(0)
        if not self.free:
            return None
        first, last = self.free.pop(0)
        end = min(last, first + size - 1)
        if end < last:
            self.free.insert(0, (end + 1, last))
        return first, end

    def left(self) -> int:
        return sum(last - first + 1 for first, last in self.free)


class _Carrier(Protocol):
    """What an engine must do: run commands on workers, and say when one ended."""

    def slots(self) -> int: ...

    def submit(self, task: Task) -> Any: ...

    def wait(self, handles: Sequence[Any]) -> tuple[Any, Done | BaseException]: ...

    def close(self) -> None: ...


@dataclass
class _Work:
    """The tasks of a sweep, each some parts that follow each other."""

    program: str
    into: Path
    division: _Division
    common: Sequence[str]
    seconds_a_task: float
    retries: int
    tell: Callable[[int], None]
    store: Store | None
    done: int
    seconds: float = 0.0
    """In the program, once it has read the scenario."""
    starts: float = 0.0
    """Until then."""
    parts: int = 0
    log: list[Done] = field(default_factory=list[Done])

    def carry_out(self, carrier: _Carrier) -> None:
        """Runs every part; more tasks than workers are under way, so that none waits for the next."""
        running: dict[Any, tuple[tuple[int, int], int]] = {}
        while True:
            slots = max(1, carrier.slots())
            while len(running) < slots + _AHEAD:
                task = self.division.take(self._size(slots))
                if task is None:
                    break
                running[carrier.submit(self._task(task))] = (task, 0)
            if not running:
                self._log()
                return
            handle, result = carrier.wait(list(running))
            task, tries = running.pop(handle)
            if isinstance(result, BaseException):
                if tries >= self.retries:
                    name = f"{task[0]}-{task[1]}/{self.division.of}"
                    why = f"{type(result).__name__}: {result}"
                    raise SweepError(f"the workers of part {name} died {tries + 1} times; the last: {why}", self.into)
                running[carrier.submit(self._task(task))] = (task, tries + 1)
            elif result["exit_code"] < 0:
                # A signal ended the program and not the worker: somebody was out of memory, or killed it.
                if tries >= self.retries:
                    raise SweepError(f"signal {-result['exit_code']} ended part {task} {tries + 1} times", self.into)
                running[carrier.submit(self._task(task))] = (task, tries + 1)
            elif result["exit_code"] != 0:
                raise SweepError(result["err"].strip(), self.into)
            else:
                self._count(task, result, tries + 1)

    def _task(self, task: tuple[int, int]) -> Task:
        first, last = task
        name = f"{first:06}-{last:06}"
        # Where parts go through a store, a worker runs in a folder of its own.
        base = self.into if self.store is None else Path()
        scenario, folder = base / "plan" / "scenario.toml", base / "parts" / name
        shard = f"{first}-{last}/{self.division.of}"
        command = [self.program, "run", str(scenario), "--shard", shard, "-o", str(folder), *self.common]
        return {"command": command, "part": name, "store": self.store.task if self.store is not None else None}

    def _count(self, task: tuple[int, int], result: Done, tries: int) -> None:
        told = json.loads(result["out"])
        self.done += told["repetitions"]
        self.seconds += told["wall_s"]
        self.starts += result["seconds"] - told["wall_s"]
        self.parts += task[1] - task[0] + 1
        self.log.append(
            {
                "shard": told["shard"],
                "repetitions": told["repetitions"],
                "wall_s": told["wall_s"],
                "cpu_s": told["cpu_s"],
                "began": result["began"],
                "task_s": result["seconds"],
                "tries": tries,
                "host": result["host"],
            }
        )
        self.tell(self.done)

    def _size(self, slots: int) -> int:
        """How many parts a task gets: as many as take the time that it is to take, and at the end so few that
        all workers end together (guided self-scheduling, Polychronopoulos and Kuck, 1987)."""
        fair = -(-self.division.left() // (2 * slots)) or 1
        if not self.parts:
            return 1
        each = max(self.seconds / self.parts, 1e-6)
        # The program reads the whole plan before it begins, which takes seconds if it has 100,000 cells.
        start = self.starts / len(self.log)
        wanted = max(self.seconds_a_task, _STARTS_A_TASK * start)
        # Nor is a task shorter than its beginning: the workers would read plans, and not run them.
        return max(1, int(start / each), min(int(wanted / each), fair))

    def _log(self) -> None:
        (self.into / "tasks.json").write_text(json.dumps(self.log, indent=1))


def _task() -> Callable[[Task], Done]:
    """What runs on a worker. It is made here and not in the module, so that engines send it whole and a worker
    need not have this package."""

    def run(task: dict[str, Any]) -> dict[str, Any]:
        import tempfile

        if task["store"] is None:
            return program(task["command"], None)
        import importlib
        import tarfile
        from pathlib import Path

        fsspec: Any = importlib.import_module("fsspec")
        files, root = fsspec.core.url_to_fs(task["store"]["url"], **task["store"]["options"])
        with tempfile.TemporaryDirectory(prefix="talkpath-") as folder:
            with files.open(f"{root}/plan.tar", "rb") as file, tarfile.open(fileobj=file) as packed:
                packed.extractall(Path(folder) / "plan", filter="data")
            done = program(task["command"], folder)
            if done["exit_code"] == 0:
                part = Path(folder) / "part.tar"
                with tarfile.open(part, "w") as packed:
                    packed.add(Path(folder) / "parts" / task["part"], arcname=".")
                files.put_file(str(part), f"{root}/parts/{task['part']}.tar")
        return done

    def program(command: list[str], folder: str | None) -> dict[str, Any]:
        import os
        import socket
        import subprocess
        import time

        # The plan and the command say all: what a worker has set of its own would be another sweep.
        environment = {name: it for name, it in os.environ.items() if not name.startswith("TALKPATH_")}
        began, begun = time.time(), time.monotonic()
        while True:
            ended = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
            # A worker that died can leave its program behind, which finishes what it began.
            if ended.returncode != 2 or "another process works on it" not in ended.stderr:
                break
            if time.monotonic() - begun > 600:
                break
            time.sleep(0.5)
        return {
            "exit_code": ended.returncode,
            "out": ended.stdout,
            "err": ended.stderr,
            "began": began,
            "seconds": time.monotonic() - begun,
            "host": socket.gethostname(),
        }

    return run


class _Local:
    """The cores of this machine."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._slots = int(options.pop("workers", None) or len(os.sched_getaffinity(0)))
        _no_more(options, "local")
        self._pool = futures.ThreadPoolExecutor(self._slots)
        self._run = _task()

    def slots(self) -> int:
        return self._slots

    def submit(self, task: Task) -> Any:
        return self._pool.submit(self._run, task)

    def wait(self, handles: Sequence[Any]) -> tuple[Any, Done | BaseException]:
        done = next(iter(futures.wait(handles, return_when=futures.FIRST_COMPLETED).done))
        why = done.exception()
        return done, why if why is not None else done.result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Ray:
    """The workers of a Ray cluster, each task on one CPU."""

    def __init__(self, options: dict[str, Any]) -> None:
        # By its name: a type checker must not need an engine that few have.
        ray: Any = import_module("ray")
        self._ray = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            ray.init(**{"log_to_driver": False, **options})
        # Tries are counted here, for every engine alike. Ray's default fills one node before the next, by what it last
        # heard of them, and a node of one CPU waits between its tasks.
        self._remote: Any = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(_task())

    def slots(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, task: Task) -> Any:
        return self._remote.remote(task)

    def wait(self, handles: Sequence[Any]) -> tuple[Any, Done | BaseException]:
        done = self._ray.wait(list(handles), num_returns=1)[0][0]
        try:
            return done, self._ray.get(done)
        except self._ray.exceptions.RayError as why:
            return done, why

    def close(self) -> None:
        if self._is_ours:
            self._ray.shutdown()


class _Dask:
    """The workers of a Dask cluster, each task on one thread."""

    def __init__(self, options: dict[str, Any]) -> None:
        distributed: Any = import_module("distributed")
        self._distributed = distributed
        client = options.pop("client", None)
        self._is_ours = client is None
        self._client: Any = distributed.Client(**options) if client is None else client
        if client is not None:
            _no_more(options, "dask")
        self._run = _task()

    def slots(self) -> int:
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, task: Task) -> Any:
        return self._client.submit(self._run, task, pure=False)

    def wait(self, handles: Sequence[Any]) -> tuple[Any, Done | BaseException]:
        done = next(iter(self._distributed.wait(list(handles), return_when="FIRST_COMPLETED").done))
        why = done.exception()
        return done, why if why is not None else done.result()

    def close(self) -> None:
        if self._is_ours:
            self._client.close()


def _carrier(engine: Engine, options: dict[str, Any]) -> _Carrier:
    carriers: dict[str, Callable[[dict[str, Any]], _Carrier]] = {"local": _Local, "ray": _Ray, "dask": _Dask}
    if engine not in carriers:
        raise ValueError(f"engine={engine!r}: expected one of {', '.join(carriers)}")
    return carriers[engine](options)


def _no_more(options: Mapping[str, Any], engine: str) -> None:
    if options:
        raise ValueError(f"engine_options: {engine} has no {', '.join(options)}")


def _plan(program: str, scenario: Path, flags: Sequence[str], into: Path) -> dict[str, Any]:
    """The scenario's plan, written where every worker finds it; that of the directory, if it is the same."""
    (into / "parts").mkdir(exist_ok=True)
    new = into / f".plan-{os.getpid()}"
    try:
        ended = _ask([program, "plan", str(scenario), "--json", "-o", str(new), *flags], into)
        there = into / "plan"
        if there.is_dir():
            old, fresh = ((it / "scenario.toml").read_text() for it in (there, new))
            if old != fresh:
                raise SweepError(
                    f"{there} holds another scenario (or sweep, seed, repeat): name another directory", into
                )
        else:
            new.replace(there)
        return json.loads(ended)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _merged(program: str, into: Path) -> Run:
    run = into / "run"
    if not (run / "summary.json").is_file():
        shutil.rmtree(run, ignore_errors=True)
        parts = sorted(str(it) for it in (into / "parts").iterdir() if it.is_dir())
        _ask([program, "merge", *parts, "-o", str(run), "--quiet"], into, may_fail=5)
    return load(run)


def _ask(command: Sequence[str], into: Path, may_fail: int = 0) -> str:
    ended = subprocess.run(list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, may_fail):
        raise SweepError(ended.stderr.strip() or f"{command[0]} ended with {ended.returncode}", into)
    return ended.stdout


def _new_directory() -> Path:
    """A folder named after the time, which nobody has."""
    base = Path("talkpath-runs") / time.strftime("%Y-%m-%dT%H-%M-%SZ-sweep", time.gmtime())
    for number in range(1, 1000):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(str(base))


_SECONDS_A_PART = 0.5
"""Chosen: a part is short beside a task, and long beside what starting the program takes."""

_PARTS_A_SLOT = 16
"""Chosen: so that the last tasks of all workers end together within a sixteenth of the whole."""

_MOST_PARTS = 4096
"""Chosen: as many folders as a shared file system lists without pain, and arguments as a command takes."""

_STARTS_A_TASK = 10
"""Chosen: a task takes this many times as long as it takes to begin one."""

_AHEAD = 2
"""Chosen: tasks that wait at an engine, so that a worker that ends one has the next at once."""
