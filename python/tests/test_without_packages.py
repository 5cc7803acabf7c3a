"""What needs nothing but Python's own library, and the program: `cargo xtask ci python` runs these alone."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import signal
import tempfile
import threading
import tomllib
import unittest
from collections.abc import Generator
from pathlib import Path
from typing import ClassVar

import talkpath
from talkpath import _scale, _toml
from talkpath._program import ask
from talkpath.looks import LOOKS, OTHER, look

ROOT = Path(__file__).parents[2]

CALL: dict[str, object] = {
    "name": "a call",
    "duration": "1 s",
    "path": "home-adsl",
    "flow": {"call": {"transport": "udp", "workload": {"kind": "voice", "echo": True}}},
}


class Folder(unittest.TestCase):
    """Each test in a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, Path.cwd())
        os.chdir(folder.name)


class Options(unittest.TestCase):
    """What a call takes is what its command takes."""

    # The program's own: a call has its results in another form.
    OF_PROGRAM = frozenset({"help", "json", "progress", "tui", "quiet", "verbose", "explain"})
    # `talkpath.resume` and `talkpath.sweep`; and what a rating by hand has of a run.
    BUT: ClassVar[dict[str, frozenset[str]]] = {
        "run": frozenset({"resume", "shard", "output"}),
        "mos": frozenset({"out", "jobs", "records", "series"}),
        "listen": frozenset({"out", "jobs", "records", "series"}),
    }
    OF_PYTHON = frozenset({"progress", "scenario", "name", "source"})
    # Several of one option, and words that Python has taken.
    OTHER_NAMES: ClassVar[dict[str, str]] = {
        "claims": "claim",
        "sets": "set",
        "payload-types": "payload-type",
        "speech": "input",
        "length": "for",
    }

    def test_every_option_of_a_command_is_an_argument_and_every_argument_an_option(self) -> None:
        calls = {
            "run": talkpath.run,
            "compare": talkpath.compare,
            "mos": talkpath.mos,
            "listen": talkpath.listen,
            "study run": talkpath.study,
        }
        for command, call in calls.items():
            text = ask([*command.split(), "--help"]).out
            options = set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]*)", text, re.MULTILINE)) - self.OF_PROGRAM
            options -= self.BUT.get(command, frozenset())
            names = {name.replace("_", "-") for name in inspect.signature(call).parameters} - self.OF_PYTHON
            arguments = {self.OTHER_NAMES.get(name, name) for name in names}
            self.assertGreater(len(options), 4, command)
            self.assertEqual(options, arguments, command)

    def test_a_call_is_rated_by_hand(self) -> None:
        clean, lossy = talkpath.mos(one_way="100 ms"), talkpath.mos(one_way="100 ms", loss="5%")
        self.assertGreater(clean["mos"], lossy["mos"])
        with self.assertRaisesRegex(talkpath.UsageError, "1% or 100%"):
            talkpath.mos(loss=1)


class Listening(Folder):
    def test_a_run_is_heard_and_each_sound_has_a_file(self) -> None:
        run = talkpath.run(CALL, progress=False)
        heard = talkpath.listen(run, output="a.wav", length="1 s")
        (sound,) = heard["sounds"]
        self.assertEqual((sound["file"], sound["transport"]), ("a.wav", "udp"))
        self.assertTrue(Path("a.wav").read_bytes().startswith(b"RIFF"))
        with self.assertRaisesRegex(talkpath.UsageError, "no call of this name"):
            talkpath.listen(run.path, flow="speech")


class Toml(unittest.TestCase):
    def test_a_dict_is_read_back_as_it_was(self) -> None:
        scenario: dict[str, object] = {
            **CALL,
            "seed": 3,
            "link": {"acc-{n}": {"rate": "1 Mbps"}, 'a "b"\n': {"mtu": "1500 B"}},
            "sweep": {"path.up.loss": [0.0, 1e-9, 0.5], "flow.call.transport": [{"kind": "tcp", "cc": "reno"}, "udp"]},
            "empty": {},
            "flags": (True, False),
        }
        read = tomllib.loads(_toml.dumps(scenario))
        self.assertEqual(read, json.loads(json.dumps(scenario)))

    def test_what_has_no_form_names_its_key(self) -> None:
        with self.assertRaisesRegex(TypeError, r"path\.up\.delay: None"):
            _toml.dumps({"path": {"up": {"delay": None}}})


class Looks(unittest.TestCase):
    def test_they_are_the_reports(self) -> None:
        source = (ROOT / "crates/report/src/display.rs").read_text(encoding="utf-8")
        fields = r'kind: "(.*?)",\s+name: "(.*?)",.*?light: "(.*?)",.*?dash: "(.*?)",\s+marker: Marker::(\w+)'
        letters = {"Circle": "o", "Square": "s", "Triangle": "^", "Diamond": "D", "Cross": "X"}
        found = re.findall(fields, source, re.DOTALL)
        theirs = {kind: (name, light, dash, letters[marker]) for kind, name, light, dash, marker in found}
        self.assertEqual(theirs.pop("other"), tuple(OTHER))
        self.assertEqual(theirs, {kind: tuple(it) for kind, it in LOOKS.items()})

    def test_lines_of_one_transport_keep_the_colour_and_differ_in_dash(self) -> None:
        lines = [look("tcp", variant) for variant in range(4)]
        self.assertEqual({it.colour for it in lines}, {LOOKS["tcp"].colour})
        self.assertEqual(len({it.dash for it in lines}), 4)


class Scales(unittest.TestCase):
    def test_they_are_the_reports(self) -> None:
        for file, ratio in (("plot/scale.rs", _scale.LOG_RATIO), ("chart/sweep.rs", _scale.SWEPT_LOG_RATIO)):
            source = (ROOT / "crates/report/src" / file).read_text(encoding="utf-8")
            self.assertEqual(re.findall(r"const LOG_RATIO: f64 = ([0-9.]+);", source), [str(ratio)], file)

    def test_values_over_decades_get_a_log_scale_and_others_start_at_zero(self) -> None:
        self.assertEqual(_scale.fitting(40.0, 430.0), (False, 0.0, 500.0))
        self.assertEqual(_scale.fitting(0.4, 430.0), (True, 0.2, 500.0))
        self.assertEqual(_scale.fitting(-3.0, 4.3), (False, -3.0, 5.0))
        self.assertEqual(_scale.fitting(-3.7, -1.0), (False, -4.0, 0.0))
        self.assertEqual(_scale.fitting(float("inf"), float("-inf")), (False, 0.0, 1.0))
        swept = ([1.0, 12.0], [1.0, 13.0], [0.0, 9.0])
        self.assertEqual([_scale.is_swept_log(it) for it in swept], [False, True, False])

    def test_ticks_of_decades_are_round_and_inside(self) -> None:
        self.assertEqual(_scale.log_ticks(20.0, 500.0, 6), [20.0, 50.0, 100.0, 200.0, 500.0])
        self.assertEqual([f"{it:g}" for it in _scale.log_ticks(0.0003, 1.0, 4)], ["0.001", "0.01", "0.1", "1"])

    def test_a_label_that_would_run_into_the_one_before_is_left_out(self) -> None:
        texts = [str(it) for it in range(100)]
        shown = [it for it in _scale.with_room([float(it) for it in range(100)], texts, False) if it]
        self.assertEqual(shown[:2], ["0", "8"])
        self.assertEqual(_scale.with_room([1.0, 10.0, 100.0], texts[:3], True), texts[:3])
        self.assertEqual(_scale.with_room([3.0], ["x"], False), ["x"])


class Errors(Folder):
    def test_a_files_mistakes_are_those_of_the_command_line(self) -> None:
        Path("wrong.toml").write_text('duration = 1\npath = "home-adsl"\n\n[flow.call]\ntransport = "upd"\n')
        with self.assertRaises(talkpath.ScenarioError) as caught:
            talkpath.run("wrong.toml")
        mistakes = {it.key: it for it in caught.exception.mistakes}
        transport = mistakes["flow.call.transport"]
        self.assertEqual((transport.file, transport.line, transport.column), ("wrong.toml", 5, 13))
        self.assertEqual((transport.text, transport.option), ('transport = "upd"', None))
        self.assertIn('did you mean "udp"', transport.help or "")
        self.assertIn("wrong.toml:1:12: duration: found 1", str(caught.exception))
        self.assertIn(f"{len(mistakes)} mistakes in wrong.toml", str(caught.exception))
        self.assertFalse(Path("talkpath-runs").exists())

    def test_a_dicts_mistake_has_its_key_and_its_line(self) -> None:
        with self.assertRaises(talkpath.ScenarioError) as caught:
            talkpath.run({**CALL, "duratoin": "1 s"})
        (mistake,) = caught.exception.mistakes
        self.assertEqual((mistake.file, mistake.key, mistake.text), ("scenario", "duratoin", 'duratoin = "1 s"'))
        self.assertEqual(list(Path().iterdir()), [], "nothing is left behind")

    def test_a_mistake_in_a_file_of_the_path_has_that_files_name(self) -> None:
        Path("line.toml").write_text('[up]\nrate = "5"\n\n[down]\nrate = "5 Mbps"\n')
        with self.assertRaises(talkpath.ScenarioError) as caught:
            talkpath.run({**CALL, "path": "line.toml"})
        (mistake,) = caught.exception.mistakes
        self.assertEqual((mistake.file, mistake.line), ("line.toml", 2))

    def test_a_sweeps_mistake_behind_a_file_keeps_the_files_lines(self) -> None:
        Path("call.toml").write_text(_toml.dumps({name: it for name, it in CALL.items() if name != "name"}))
        with self.assertRaises(talkpath.ScenarioError) as caught:
            talkpath.run("call.toml", sweep={"path.up.lss": [0.0]}, set={"seed": "x"})
        keys = {it.key for it in caught.exception.mistakes}
        self.assertEqual(len(keys), 1, keys)
        (option,) = {it.option for it in caught.exception.mistakes}
        self.assertEqual(option, '--set seed="x"')
        with self.assertRaises(talkpath.ScenarioError) as caught:
            talkpath.run("call.toml", sweep={"path.up.lss": [0.0]})
        self.assertIn("lss", str(caught.exception))
        self.assertEqual(caught.exception.mistakes[0].file, "call.toml")

    def test_a_file_that_is_not_there_is_wrong_usage(self) -> None:
        with self.assertRaisesRegex(talkpath.UsageError, r"no\.toml: no such file"):
            talkpath.run("no.toml")
        with self.assertRaisesRegex(talkpath.UsageError, "not a run directory"):
            talkpath.load(".")

    def test_a_threshold_that_does_not_hold_has_the_run(self) -> None:
        with self.assertRaises(talkpath.ThresholdError) as caught:
            talkpath.run(CALL, require=["call.mos >= 4.6"])
        self.assertIn("call.mos", str(caught.exception))
        run = caught.exception.run
        assert run is not None
        self.assertTrue(run.complete)

    def test_a_threshold_that_is_undecided_did_not_pass_and_is_told_apart(self) -> None:
        with self.assertRaises(talkpath.ThresholdError) as caught:
            talkpath.run(CALL, require=["call.loss_rate <= 0.0001%"])
        self.assertIsInstance(caught.exception, talkpath.UndecidedError)
        run = caught.exception.run
        assert run is not None
        self.assertEqual(run.summary["thresholds"][0]["needed"], 3000000)


class Runs(Folder):
    def test_a_dict_is_run_and_its_progress_told(self) -> None:
        told: list[tuple[int, int | None]] = []
        sweep = {"flow.call.transport": ["udp", "tcp"], "path.up.loss": [0.0, 0.05]}
        run = talkpath.run(CALL, sweep=sweep, repeat=3, progress=lambda done, total: told.append((done, total)))
        self.assertEqual(told, [(done, 12) for done in range(1, 13)])
        self.assertEqual((run.name, run.arena, run.valid, run.complete), ("a call", "sim", True, True))
        self.assertEqual(len(run.summary["cells"]), 4)
        self.assertEqual([it.sweep for it in run.answers], [{"path.up.loss": 0.0}, {"path.up.loss": 0.05}])
        self.assertEqual(run.answers[0].flow, "call")
        self.assertEqual(talkpath.load(run.path).summary, run.summary)
        self.assertEqual([it.name for it in Path().iterdir()], ["talkpath-runs"])

    def test_a_file_with_a_sweep_is_run_under_its_own_name(self) -> None:
        Path("mine.toml").write_text(_toml.dumps({name: it for name, it in CALL.items() if name != "name"}))
        first = talkpath.run("mine.toml", sweep={"path.up.loss": [0.0, 0.5]}, set={"seed": 7}, out="out")
        self.assertEqual((first.name, first.path.parent, first.scenario["seed"]), ("mine", Path("out"), 7))
        Path("swept.toml").write_text(_toml.dumps({**CALL, "sweep": {"path.up.loss": [0.0, 0.5]}}))
        both = talkpath.run("swept.toml", sweep={"flow.call.transport": ["udp", "tcp"]}, records="none")
        self.assertEqual(len(both.summary["cells"]), 4)

    def test_compare_answers(self) -> None:
        run = talkpath.compare(transports=["udp", "tcp"], duration="2 s", repeat=2, set={"seed": 4}, jobs=1)
        (answer,) = [it for it in run.answers if not it.sweep] or run.answers[:1]
        self.assertIn(answer.line, str(run))
        self.assertEqual(run.scenario["seed"], 4)

    def test_one_word_where_several_may_stand_is_one(self) -> None:
        run = talkpath.compare(transports="tcp,tcp-nodelay", cc="reno", duration="2 s", repeat=1, jobs=1)
        self.assertEqual({it["flows"]["call"]["cc"] for it in run.summary["runs"]}, {"reno"})
        with self.assertRaisesRegex(talkpath.UsageError, "S99"):
            talkpath.study("spoor-2014", claims="S99", quick=True)

    def test_an_interrupt_ends_the_program_and_leaves_whole_repetitions(self) -> None:
        def interrupt(done: int, _: int | None) -> None:
            if done == 3:
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

        # A shell starts what it runs in the background with SIGINT ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with self.assertRaises(talkpath.Interrupted) as caught:
            talkpath.run({**CALL, "duration": "60 s"}, repeat=5000, records="none", progress=interrupt)
        run = caught.exception.run
        assert run is not None
        kept = len(run.summary["runs"])
        self.assertTrue(3 <= kept < 5000, kept)
        self.assertFalse(run.complete)
        self.assertTrue(all(it["flows"]["call"]["sent"] == 3000 for it in run.summary["runs"]))


@contextlib.contextmanager
def _variable(name: str, value: str) -> Generator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class Environment(Folder):
    def test_variables_that_silence_the_program_do_not_silence_progress(self) -> None:
        told: list[int] = []
        with _variable("TALKPATH_QUIET", "1"), _variable("TALKPATH_JSON", "1"):
            talkpath.run(CALL, repeat=2, progress=lambda done, _: told.append(done))
        self.assertEqual(told, [1, 2])


if __name__ == "__main__":
    unittest.main()
