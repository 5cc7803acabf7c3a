"""Sweeps on engines: each gives the run of one machine, byte for byte, whatever dies on the way.

The tests of an engine are skipped if it is not installed. `TALKPATH` names the program.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
PROGRAM = os.environ.get("TALKPATH") or os.environ.get("TALKPATH_PROGRAM") or shutil.which("talkpath")
if PROGRAM:
    os.environ["TALKPATH_PROGRAM"] = PROGRAM

from talkpath import ScenarioError  # noqa: E402
from talkpath._store import Store  # noqa: E402
from talkpath.sweep import SweepError, sweep  # noqa: E402

CALL: dict[str, Any] = {
    "name": "a grid",
    "duration": "1 s",
    "drain": "200 ms",
    "repeat": 2,
    "path": {"up": {"rate": "2 Mbps", "delay": "15 ms"}, "down": {"rate": "16 Mbps", "delay": "15 ms"}},
    "flow": {"call": {"transport": "udp", "workload": {"kind": "voice", "echo": True}}},
}
GRID: dict[str, list[Any]] = {
    "flow.call.transport": ["udp", "tcp"],
    "path.up.loss": [0.0, 0.01, 0.02, 0.05],
    "path.up.delay": ["5 ms", "20 ms", "80 ms"],
}


def has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@unittest.skipUnless(PROGRAM, "no program: TALKPATH=...")
class Sweeps(unittest.TestCase):
    """Each test in a folder of its own."""

    folder: Path
    whole: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.start = Path.cwd()
        os.chdir(cls.folder)
        cls.whole = sweep(CALL, sweep=GRID, binary=PROGRAM, directory="plan-only").path
        scenario = cls.folder / "plan-only" / "plan" / "scenario.toml"
        subprocess.run([str(PROGRAM), "run", str(scenario), "--out", "alone", "-q"], check=True)
        cls.whole = next((cls.folder / "alone").iterdir())

    @classmethod
    def tearDownClass(cls) -> None:
        os.chdir(cls.start)
        cls.temporary.cleanup()

    def assert_same(self, run: Any) -> None:
        """The run is that of one machine."""
        run = run.path
        for file in ("packets.parquet", "series.parquet"):
            ours, theirs = (run / file).read_bytes(), (self.whole / file).read_bytes()
            self.assertTrue(ours == theirs and len(ours) > 100, file)
        ours, theirs = (figures(it) for it in (run, self.whole))
        self.assertTrue(ours == theirs and len(ours) > 1000, "summary.json")

    def test_the_cores_of_one_machine(self) -> None:
        told: list[tuple[int, int | None]] = []
        run = sweep(
            CALL,
            sweep=GRID,
            binary=PROGRAM,
            directory="local",
            engine_options={"workers": 3},
            progress=lambda done, all: told.append((done, all)),
        )
        self.assert_same(run)
        self.assertEqual(told[-1], (48, 48))
        self.assertEqual(sum(it["repetitions"] for it in json.loads(Path("local/tasks.json").read_text())), 48)

    def test_a_second_call_goes_on_and_another_scenario_is_refused(self) -> None:
        stop = threading.Event()

        def tell(done: int, _all: int | None) -> None:
            if done > 5 and not stop.is_set():
                stop.set()
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            sweep(CALL, sweep=GRID, binary=PROGRAM, directory="again", progress=tell)
        there = len(list(Path("again/parts").iterdir()))
        self.assertTrue(0 < there < 32, there)
        with self.assertRaisesRegex(SweepError, "holds another scenario"):
            sweep(CALL, sweep=GRID, seed=9, binary=PROGRAM, directory="again")
        with self.assertRaisesRegex(ValueError, "records='none': .* was begun with 'all'"):
            sweep(CALL, sweep=GRID, binary=PROGRAM, directory="again", records="none")
        self.assert_same(sweep(CALL, sweep=GRID, binary=PROGRAM, directory="again"))

    def test_what_a_worker_has_set_of_its_own_changes_nothing(self) -> None:
        # `run` refuses --strict of a part, and another seed would draw other numbers.
        own = {"TALKPATH_STRICT": "1", "TALKPATH_SEED": "99"}
        with unittest.mock.patch.dict(os.environ, own):
            run = sweep(CALL, sweep=GRID, repeat=2, seed=1, binary=PROGRAM, directory="own")
        self.assert_same(run)

    def test_killed_programs_change_nothing(self) -> None:
        killed = 0
        is_over = threading.Event()

        def kill() -> None:
            nonlocal killed
            while killed < 3 and not is_over.is_set():
                killed += kill_one("killed/plan/scenario.toml", "run")
                time.sleep(0.01)

        killer = threading.Thread(target=kill)
        killer.start()
        run = sweep(CALL, sweep=GRID, binary=PROGRAM, directory="killed", retries=10)
        is_over.set()
        killer.join()
        # How many programs are met while they run is the machine's matter.
        self.assertGreater(killed, 0)
        self.assert_same(run)

    @unittest.skipUnless(has("fsspec"), "no fsspec: pip install fsspec")
    def test_parts_through_a_store_are_kept_by_it_and_not_by_the_drivers_folder(self) -> None:
        store: dict[str, Any] = {"store": f"file://{self.folder}/store", "store_options": {"auto_mkdir": True}}
        seen: list[int] = []

        def stop(done: int, _all: int | None) -> None:
            seen.append(done)
            if len(seen) == 6:
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            sweep(CALL, sweep=GRID, binary=PROGRAM, directory="first driver", progress=stop, **store)
        kept = {it.name: it.read_bytes() for it in Path("store/parts").iterdir()}
        self.assertGreaterEqual(len(kept), 6)
        with self.assertRaisesRegex(SweepError, "holds another scenario"):
            sweep(CALL, sweep=GRID, seed=9, binary=PROGRAM, directory="another seed", **store)
        told: list[int] = []
        run = sweep(
            CALL,
            sweep=GRID,
            binary=PROGRAM,
            directory="second driver",
            progress=lambda done, _all: told.append(done),
            **store,
        )
        self.assert_same(run)
        self.assertEqual(told[-1], 48)
        # What the first has finished does not run again.
        again = json.loads(Path("second driver/tasks.json").read_text())
        self.assertLess(sum(it["repetitions"] for it in again), 48)
        self.assertEqual(kept, {name: (Path("store/parts") / name).read_bytes() for name in kept})

    @unittest.skipUnless(has("fsspec"), "no fsspec: pip install fsspec")
    def test_a_part_of_a_store_writes_nothing_outside_its_folder(self) -> None:
        into, parts = self.folder / "driver", self.folder / "bad-store" / "parts"
        for folder in (into / "parts", parts):
            folder.mkdir(parents=True)
        with tarfile.open(parts / "000001-000001.tar", "w") as packed:
            packed.addfile(tarfile.TarInfo("../../outside"))
        with self.assertRaises(tarfile.OutsideDestinationError):
            Store(f"file://{self.folder}/bad-store", {}, into).fetch()
        self.assertFalse((self.folder / "outside").exists())

    def test_no_task_is_shorter_than_its_beginning(self) -> None:
        slow = self.folder / "slow"
        slow.write_text(f'#!/bin/sh\nif [ "$1" = run ]; then sleep 0.5; fi\nexec "{PROGRAM}" "$@"\n')
        slow.chmod(0o755)
        run = sweep(CALL, sweep=GRID, binary=slow, directory="slow start", engine_options={"workers": 1})
        self.assert_same(run)
        # The three that began before any had ended, and one or, on a busy machine, two with all the rest.
        self.assertLessEqual(len(json.loads(Path("slow start/tasks.json").read_text())), 5)

    def test_mistakes_are_the_programs_words(self) -> None:
        with self.assertRaisesRegex(ScenarioError, "path.up.los"):
            sweep(CALL, sweep={"path.up.los": [0.1]}, binary=PROGRAM, directory="wrong")
        self.assertFalse(Path("wrong").exists(), "a folder for nothing")
        other: Any = "slurm"
        with self.assertRaisesRegex(ValueError, "expected one of local, ray, dask"):
            sweep(CALL, engine=other, binary=PROGRAM, directory="engine")

    @unittest.skipUnless(has("ray"), "no ray: pip install ray")
    def test_ray_with_two_nodes_of_which_one_dies(self) -> None:
        clusters: Any = importlib.import_module("ray.cluster_utils")
        cluster = clusters.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            node = cluster.add_node(num_cpus=1)
            seen: list[int] = []

            def tell(done: int, _all: int | None) -> None:
                seen.append(done)
                if len(seen) == 4:
                    cluster.remove_node(node, allow_graceful=False)
                    cluster.add_node(num_cpus=1)

            options = {"address": cluster.address}
            run = sweep(
                CALL,
                sweep=GRID,
                binary=PROGRAM,
                directory="ray",
                engine="ray",
                engine_options=options,
                progress=tell,
                seconds_a_task=1,
            )
            self.assertGreaterEqual(len(seen), 5)
            self.assert_same(run)
        finally:
            cluster.shutdown()

    @unittest.skipUnless(has("distributed"), "no dask: pip install distributed")
    def test_dask_with_two_workers_of_which_one_dies(self) -> None:
        scheduler = subprocess.Popen(
            [*DASK, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", "dask.json"],
            stderr=subprocess.DEVNULL,
        )
        worker = [*DASK, "worker", "--scheduler-file", "dask.json", "--nthreads", "1", "--no-dashboard"]
        workers = [subprocess.Popen(worker, stderr=subprocess.DEVNULL) for _ in range(2)]
        try:
            seen: list[int] = []

            def tell(done: int, _all: int | None) -> None:
                seen.append(done)
                if len(seen) == 4:
                    # The nanny would start it again.
                    workers[0].kill()
                    workers.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL))

            options = {"scheduler_file": "dask.json"}
            run = sweep(
                CALL,
                sweep=GRID,
                binary=PROGRAM,
                directory="dask",
                engine="dask",
                engine_options=options,
                progress=tell,
                seconds_a_task=1,
            )
            self.assertGreaterEqual(len(seen), 5)
            self.assert_same(run)
        finally:
            for process in [*workers, scheduler]:
                process.kill()
                process.wait()


DASK = [str(Path(sys.executable).with_name("dask"))]


def figures(run: Path) -> str:
    """summary.json from `runs` on, without the machine's names."""
    text = (run / "summary.json").read_text()
    return text[text.index('\n  "runs": [') : text.index('\n  "provenance": {')]


def kill_one(*words: str) -> int:
    """Kills one of our children whose command line has all these words."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            command = (process / "cmdline").read_bytes().decode().split("\0")
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == os.getpid() and all(any(it.endswith(word) for it in command) for word in words):
            os.kill(int(process.name), signal.SIGKILL)
            return 1
    return 0


if __name__ == "__main__":
    unittest.main()
