"""The recorder on its own: what it writes, what it loses and says so, and that training never notices it.

    MEGATRON_CORE=FOLDER PYTHONPATH=recorder python tests/recorder/test_recorder.py

Each test runs a process of its own, because the recorder hooks a process once and for good.
"""

from __future__ import annotations

import ast
import glob
import gzip
import http.server
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "train.py")
RECORDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "recorder")
SECRET = "pa'ss wörd"
LEVEL_1 = {"forward-backward", "all-grads-sync", "optimizer"}
LEVEL_2 = {
    "forward-compute",
    "backward-compute",
    "batch-generator",
    "forward-send",
    "backward-recv",
    "forward-send-backward-recv",
}

# What a test does within the process, before the training: names of train.py are at hand.
PRELUDE = """
import json, os, sys, threading, time
sys.path[:0] = [{recorder!r}, {here!r}, {stub!r}]
sys.argv = ["train.py"]
real_monotonic = time.monotonic
import simulated_clock as clock
import mt_recorder
import train, torch
torch.distributed.rank, torch.distributed.world_size, torch.distributed.reduced = 0, 8, 1_767_254_000.0
def run(**asked):
    train.pretrain({{**train.DEFAULTS, **asked}})
recorder = mt_recorder._recorder
"""


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MT_RECORDER", "SLURM", "TORCH"))}
        kept |= {"RANK": "0", "WORLD_SIZE": "8", "PYTHONPATH": RECORDER, "PYTHONDONTWRITEBYTECODE": "1"}
        kept |= {"MT_RECORDER_JOB": "job", "MT_RECORDER_NODE": "gpu-0", "MT_RECORDER_GZIP": "0"}
        # A busy machine takes its time; what is held up on purpose says so itself.
        kept["MT_RECORDER_EXIT_SECONDS"] = "100"
        kept |= {"MT_RECORDER_" + name: value for name, value in settings.items()}
        return kept

    def process(self, arguments: list[str], **settings: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment(**settings), capture_output=True, text=True, timeout=120
        )

    def training(self, body: str, **settings: str) -> str:
        """Runs a body of Python that must end well; gives standard error."""
        prelude = PRELUDE.format(recorder=RECORDER, here=HERE, stub=os.path.join(HERE, "stub"))
        ran = self.process(["-c", prelude + textwrap.dedent(body) + "\nprint('trained')"], **settings)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(ran.stdout.endswith("trained\n"), ran.stdout + ran.stderr)
        return ran.stderr

    def files(self, folder: str = "mt_recorder") -> list[str]:
        return sorted(glob.glob(os.path.join(self.folder, folder, "*", "*", "*")))

    def rows(self, folder: str = "mt_recorder") -> list[dict[str, Any]]:
        found = []
        for path in self.files(folder):
            opened = gzip.open if path.endswith(".gz") else open
            with opened(path, "rt", encoding="utf-8") as file:
                found += [json.loads(line) for line in file]
        return found

    def named(self, name: str, kind: str = "megatron_timers") -> dict[int, list[float]]:
        """Iteration -> values of a timer."""
        picked = [row for row in self.rows() if row["metric_name"] == kind and row["subname"] == name]
        return {row["iteration"]: row["metric_values"] for row in picked}


class Rows(Case):
    def test_rows_have_the_columns_of_the_table(self) -> None:
        self.training("run(iterations=10)", CLUSTER="c1", RERUN="r7", TRACE_EVERY="10")
        for row in self.rows():
            self.assertEqual(row["timestamp"][:17], "2026-01-01T08:00:")
            self.assertEqual([row[name] for name in ("job", "rank", "node", "cluster")], ["job", 0, "gpu-0", "c1"])
            self.assertEqual(row["rerun_uuid"], "r7")
            self.assertTrue(row["metric_values"])
        forward = self.named("forward-compute")
        self.assertEqual(sorted(forward), list(range(1, 11)))
        self.assertAlmostEqual(forward[5][0], 4 * 0.020, delta=0.002)
        calls = self.named("forward-compute", "megatron_timers_trace")
        self.assertEqual(list(calls), [10])
        self.assertEqual(len(calls[10]), 8)
        lasted = sum(end - start for start, end in zip(calls[10][::2], calls[10][1::2]))
        self.assertAlmostEqual(lasted, forward[10][0], places=5)

    def test_the_run_is_named_by_what_all_ranks_agree_on(self) -> None:
        self.training("run(iterations=2)")
        self.assertEqual({row["rerun_uuid"] for row in self.rows()}, {"20260101T075320.000"})

    def test_a_start_time_that_nobody_reduced_names_no_run(self) -> None:
        body = """
            def pretrain():
                train._TRAIN_START_TIME = 5.0
                asked = {**train.DEFAULTS, "iterations": 2}
                train.initialise(asked)
                train.train(asked, train.Timers(0, "minmax"))
            pretrain()
        """
        self.training(body)
        self.assertEqual({row["rerun_uuid"] for row in self.rows()}, {"run"})

    def test_the_step_is_from_start_to_start_without_evaluations(self) -> None:
        self.training("run(iterations=6, evaluate_every=2)")
        steps = self.named("interval-time")
        # Nobody knows how long the last one would have been.
        self.assertEqual(sorted(steps), [1, 2, 3, 4, 5])
        for seconds in steps.values():
            self.assertAlmostEqual(seconds[0], steps[1][0], delta=0.02)
        self.assertNotIn("evaluate", {row["subname"] for row in self.rows()})

    def test_a_resumed_job_keeps_megatrons_numbers(self) -> None:
        self.training("run(iterations=3, first=501)")
        self.assertEqual(sorted(self.named("forward-compute")), [501, 502, 503])

    def test_a_restart_within_the_process_is_a_run_of_its_own(self) -> None:
        body = """
            timers = train.Timers(0, "minmax")
            asked = {**train.DEFAULTS, "iterations": 4}
            train.initialise(asked)
            train.train(asked, timers)
            timers("interval-time").stop()
            train.train({**asked, "first": 3}, train.Timers(0, "minmax"))
        """
        self.training(body, RERUN="r")
        runs = {(row["rerun_uuid"], row["iteration"]) for row in self.rows() if row["subname"] == "optimizer"}
        self.assertEqual({number for run, number in runs if run == "r"}, {1, 2, 3, 4})
        self.assertEqual({number for run, number in runs if run == "r-1"}, {3, 4, 5, 6})

    def test_several_passes_of_an_iteration_are_one(self) -> None:
        body = """
            def twice():
                asked = {**train.DEFAULTS}
                train.initialise(asked)
                timers = train.Timers(0, "minmax")
                for iteration in range(3):
                    train.global_vars._GLOBAL_ARGS.curr_iteration = iteration
                    for _ in range(2):
                        timers("forward-backward", log_level=1).start()
                        timers("forward-compute", log_level=2).start()
                        clock.advance(0.5)
                        timers("forward-compute").stop()
                        timers("forward-backward").stop()
            twice()
        """
        self.training(body)
        self.assertEqual(self.named("forward-compute"), {number: [1.0] for number in (1, 2, 3)})

    def test_bridge_tells_iterations_and_the_run(self) -> None:
        body = """
            import types
            code = '''
            def train(global_state, timers, clock):
                for _ in range(3):
                    timers("forward-backward", log_level=1).start()
                    clock.advance(0.25)
                    timers("forward-backward").stop()
                    global_state.train_state.step += 1
            '''
            module = types.ModuleType("megatron.bridge.training.train")
            import textwrap
            exec(textwrap.dedent(code), vars(module))
            del train.global_vars._GLOBAL_ARGS
            state = types.SimpleNamespace(train_state=types.SimpleNamespace(step=70), start_time=1_767_254_000.5)
            module.train(state, train.Timers(0, "minmax"), clock)
        """
        self.training(body)
        self.assertEqual(sorted(self.named("forward-backward")), [71, 72, 73])
        self.assertEqual({row["rerun_uuid"] for row in self.rows()}, {"20260101T075320.500"})

    def test_levels(self) -> None:
        for job in (0, 1, 2):
            for level, names in ((0, set()), (1, LEVEL_1), (2, LEVEL_1 | LEVEL_2)):
                with self.subTest(job=job, recorder=level):
                    folder = f"of-{job}-{level}"
                    self.training(f"run(iterations=3, log_level={job})", LEVEL=str(level), DIR=folder)
                    timers = {row["subname"] for row in self.rows(folder) if row["metric_name"] == "megatron_timers"}
                    self.assertEqual(timers, names | {"interval-time"})


class Training(Case):
    """What the training itself must not notice."""

    def counted(self, record: str, **asked: Any) -> Any:
        environment = self.environment() | {"COUNT": "1", "RECORD": record}
        command = [sys.executable, TRAIN, json.dumps(asked)]
        ran = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def test_no_synchronisation_is_added(self) -> None:
        for level in (0, 1, 2):
            with self.subTest(level=level):
                without = self.counted("0", iterations=5, log_level=level)
                self.assertEqual(without["events"], 0)
                recorded = self.counted("1", iterations=5, log_level=level)
                self.assertEqual(recorded["synchronisations"], without["synchronisations"])
        self.assertTrue(self.rows())

    def test_events_are_used_again(self) -> None:
        body = """
            run(iterations=3)
            deadline = real_monotonic() + 20
            while len(recorder._events) < torch.cuda.Event.made * 0.5 and real_monotonic() < deadline:
                time.sleep(0.01)
            made = torch.cuda.Event.made
            train.train({**train.DEFAULTS, "iterations": 1, "first": 4}, train.Timers(0, "minmax"))
            assert torch.cuda.Event.made == made, (made, torch.cuda.Event.made)
        """
        self.training(body)

    def test_megatrons_own_numbers_stay_the_same(self) -> None:
        body = """
            timers = train.Timers(2, "minmax")
            asked = {**train.DEFAULTS, "iterations": 5, "log_level": 2}
            train.initialise(asked)
            train.train(asked, timers)
            print({name: timers(name).elapsed(reset=False) for name in sorted(timers._timers) if name != "interval-time"})
            print(sorted(timers._timers))
        """
        prelude = PRELUDE.format(recorder=RECORDER, here=HERE, stub=os.path.join(HERE, "stub"))
        texts = []
        for switch in ("0", "1"):
            environment = self.environment() | {"MT_RECORDER": switch}
            command = [sys.executable, "-c", prelude + textwrap.dedent(body)]
            texts.append(subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, check=True).stdout)
        self.assertEqual(texts[0], texts[1])
        self.assertTrue(self.rows())

    def test_timers_can_be_copied_and_pickled(self) -> None:
        body = """
            import copy, pickle
            timers = train.Timers(0, "minmax")
            asked = {**train.DEFAULTS, "iterations": 3}
            train.initialise(asked)
            train.train(asked, timers)
            for other in (copy.deepcopy(timers), pickle.loads(pickle.dumps(timers))):
                other("forward-backward", log_level=1).start()
                other("forward-backward").stop()
        """
        self.assertEqual(self.training(body).count("\n"), 1)

    def test_switched_off_it_does_nothing(self) -> None:
        environment = self.environment() | {"MT_RECORDER": "0"}
        ran = subprocess.run([sys.executable, TRAIN], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr, self.files()), (0, "", []))

    def test_a_failing_hook_ends_recording_with_one_line(self) -> None:
        for place in ("begin_iteration", "seen", "event", "started", "stopped", "_first", "role"):
            for level in (0, 2):
                with self.subTest(place=place, level=level):
                    body = f"""
                        def broken(*_, **__):
                            raise RuntimeError("made to fail")
                        assert hasattr(recorder, {place!r})
                        setattr(recorder, {place!r}, broken)
                        run(iterations=5, log_level={level})
                    """
                    told = self.training(body)
                    self.assertEqual(told.count("switched off, training goes on: RuntimeError: made to fail"), 1, told)

    def test_a_failing_thread_ends_recording_with_one_line(self) -> None:
        body = """
            def broken(*_):
                raise RuntimeError("made to fail")
            mt_recorder.Writer._rows = broken
            run(iterations=50)
        """
        self.assertEqual(self.training(body).count("made to fail"), 1)

    def test_what_the_training_raises_goes_through(self) -> None:
        body = """
            try:
                timers = train.Timers(2, "minmax")
                timers("forward-backward", log_level=1).start()
                timers("forward-backward", log_level=1).start()
            except AssertionError as error:
                assert "already been started" in str(error)
            else:
                raise SystemExit("Megatron's own check was lost")
        """
        self.training(body)

    def test_bad_settings_switch_it_off_with_one_line(self) -> None:
        for name, value in (("LEVEL", "3"), ("QUEUE", "many"), ("TRACE_EVERY", "-1"), ("QKV", "some"), ("QUEUE", "nan")):
            with self.subTest(name=name):
                told = self.training("run(iterations=2)", **{name: value})
                self.assertEqual(told.count("\n"), 1, told)
                self.assertIn(f"MT_RECORDER_{name}", told)
        self.assertEqual(self.files(), [])

    def test_a_folder_that_cannot_be_written_is_told(self) -> None:
        with open(os.path.join(self.folder, "taken"), "w", encoding="utf-8"):
            pass
        told = self.training("run(iterations=20)", DIR="taken/below")
        self.assertIn("writes no more files, training goes on", told)
        self.assertRegex(told, r"lost in this run: \d+ rows")

    def test_without_cuda_megatrons_own_timers_are_read(self) -> None:
        told = self.training("torch.cuda.available = False\nrun(iterations=3, log_level=2)")
        self.assertEqual(len(self.named("forward-compute")), 3)
        self.assertIn("no CUDA device", told)

    def test_without_timers_it_says_so(self) -> None:
        self.assertIn("nothing was recorded", self.training("train.Timers(0, 'minmax')"))

    def test_a_forked_child_writes_nothing(self) -> None:
        body = """
            run(iterations=3)
            child = os.fork()
            if child == 0:
                timers = train.Timers(0, "minmax")
                for _ in range(5):
                    timers("forward-backward", log_level=1).start()
                    timers("forward-backward").stop()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """
        self.training(body)
        self.assertEqual(sorted(self.named("forward-backward")), [1, 2, 3])

    def test_timers_that_were_loaded_before_are_hooked_too(self) -> None:
        text = PRELUDE.format(recorder=RECORDER, here=HERE, stub=os.path.join(HERE, "stub"))
        body = text.replace("import mt_recorder\nimport train", "os.environ['RECORD'] = '0'\nimport train")
        body = body.replace("recorder = mt_recorder._recorder", "import mt_recorder\nrun(iterations=3)")
        ran = self.process(["-c", body])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(len(self.named("forward-compute")), 3)

    def test_it_runs_scripts_and_modules(self) -> None:
        asked = json.dumps({"iterations": 3})
        for arguments in (["-m", "mt_recorder", TRAIN], [os.path.join(RECORDER, "mt_recorder.py"), TRAIN]):
            with self.subTest(arguments=arguments):
                ran = self.process([*arguments, asked], DIR=str(len(arguments)))
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertTrue(self.files(str(len(arguments))))
        environment = self.environment(DIR="module")
        environment["PYTHONPATH"] += os.pathsep + HERE
        command = [sys.executable, "-m", "mt_recorder", "-m", "train", asked]
        ran = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(self.files("module"))
        self.assertIn("usage", self.process(["-m", "mt_recorder"]).stderr)


class Losses(Case):
    def test_a_full_queue_loses_iterations_and_counts_them(self) -> None:
        body = """
            taken, free = threading.Event(), threading.Event()
            rows_of = mt_recorder.Writer._rows
            def held(self, step):
                taken.set()
                assert free.wait(60)
                return rows_of(self, step)
            mt_recorder.Writer._rows = held
            hand_over = recorder._hand_over
            def counted(step):
                hand_over(step)
                # The thread holds the first one; the queue has room for three more.
                assert taken.wait(60)
            recorder._hand_over = counted
            run(iterations=10)
            counted(recorder.step)
            recorder.step = None
            free.set()
        """
        told = self.training(body, QUEUE="3", TRACE_EVERY="0")
        # 1 is held, 2 to 4 wait, 5 to 10 find no room.
        self.assertEqual(sorted(self.named("forward-backward")), [1, 2, 3, 4])
        # Nine timers each, and the step's, which the last one lacks.
        rows = 6 * len(LEVEL_1 | LEVEL_2) + 5
        self.assertIn(f"lost in this run: 6 iterations, {rows} rows", told)
        counted = [row for row in self.rows() if row["metric_name"] == "megatron_recorder"]
        totals = {row["subname"]: row["metric_values"][0] for row in counted}
        self.assertEqual(totals, {"lost_iterations": 6, "lost_rows": rows})

    def test_calls_that_the_device_never_reaches_are_counted(self) -> None:
        told = self.training("mt_recorder._EVENT_SECONDS = 0.0\ntorch.cuda.Event.hung = True\nrun(iterations=5)")
        # Part of the calls would look like a fast rank: there are none.
        self.assertEqual({row["subname"] for row in self.rows() if row["metric_name"] == "megatron_timers"},
                         {"interval-time", "batch-generator"})
        self.assertRegex(told, r"lost in this run: \d+ calls")

    def test_a_hanging_device_does_not_hold_the_end_up(self) -> None:
        body = """
            torch.cuda.Event.hung = True
            run(iterations=5)
            began = real_monotonic()
            mt_recorder.stop()
            assert real_monotonic() - began < 10, "the end was held up"
        """
        self.assertIn("lost", self.training(body, EXIT_SECONDS="0.5"))


class Files(Case):
    def test_files_rotate_and_each_is_whole(self) -> None:
        told = self.training("run(iterations=200)", GZIP="1", ROTATE_MB="0.02", FLUSH_SECONDS="0")
        files = self.files()
        self.assertGreater(len(files), 3, told)
        self.assertTrue(all(name.endswith(".ndjson.gz") for name in files), files)
        for path in files:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                first = [json.loads(next(file))["subname"] for _ in range(3)]
            self.assertEqual(first, ["tp", "dp", "pp"])
        self.assertEqual(sorted(self.named("forward-compute")), list(range(1, 201)))
        optimizer = [row for row in self.rows() if row["metric_name"] == "megatron_timers" and row["subname"] == "optimizer"]
        self.assertEqual(len(optimizer), 200)

    def test_only_the_newest_are_kept_where_that_is_asked(self) -> None:
        self.training("run(iterations=200)", GZIP="1", ROTATE_MB="0.02", FLUSH_SECONDS="0", KEEP_FILES="2")
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(max(self.named("forward-compute")), 200)

    def test_rows_can_be_read_while_training_runs(self) -> None:
        body = """
            import glob
            run(iterations=3)
            deadline = real_monotonic() + 30
            while not glob.glob("mt_recorder/*/*/*") and real_monotonic() < deadline:
                time.sleep(0.01)
            for path in glob.glob("mt_recorder/*/*/*"):
                assert all(json.loads(line) for line in open(path))
            assert glob.glob("mt_recorder/*/*/*.ndjson")
        """
        self.training(body, FLUSH_SECONDS="0", GZIP="1")

    def test_another_start_under_the_same_name_overwrites_nothing(self) -> None:
        for first in (1, 3):
            self.training(f"run(iterations=2, first={first})", RERUN="same", GZIP="1")
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(sorted(self.named("optimizer")), [1, 2, 3, 4])

    def test_names_cannot_leave_the_folder(self) -> None:
        self.training("run(iterations=2)", JOB="../../x", RERUN="..")
        self.assertEqual([os.path.relpath(path, self.folder).split(os.sep)[1:3] for path in self.files()], [["_.._x", "_"]])


class Qkv(Case):
    def test_our_hook_stays_behind_others(self) -> None:
        body = """
            layers = []
            built = recorder.built
            recorder.built = lambda attention: (layers.append(attention.linear_qkv), built(attention))
            check = recorder._check_layers
            def add_waiting():
                check()
                if recorder._last == 3:
                    # As the parameters' gathering, which is hooked anew after the first iterations.
                    for layer in layers:
                        layer.register_forward_pre_hook(lambda *_: clock.advance(0.001))
            recorder._check_layers = add_waiting
            run(iterations=8, layers=1, pp=1, dp=8)
        """
        self.training(body, QKV="all")
        spent = {number: values[0] for number, values in self.named("self-attention-linear-qkv").items()}
        self.assertEqual(sorted(spent), list(range(1, 9)))
        for number in (1, 2, 5, 6, 7, 8):
            self.assertAlmostEqual(spent[number], 4 * 0.002, delta=0.0005)

    def test_some_layers_will_do(self) -> None:
        self.training("run(iterations=3, layers=4)", QKV="2")
        for values in self.named("self-attention-linear-qkv").values():
            self.assertAlmostEqual(values[0], 2 * 4 * 0.002, delta=0.0005)

    def test_without_an_attention_it_says_so(self) -> None:
        self.assertIn("is not recorded", self.training("run(iterations=3, layers=0)", QKV="all"))

    def test_every_release_has_what_is_hooked(self) -> None:
        releases = glob.glob(os.path.join(os.path.dirname(os.environ["MEGATRON_CORE"]), "megatron-core-*"))
        self.assertGreater(len(releases), 3)
        for release in releases:
            with open(os.path.join(release, "megatron/core/transformer/attention.py"), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            attention = next(
                node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "SelfAttention"
            )
            text = ast.dump(next(node for node in attention.body if getattr(node, "name", "") == "__init__"))
            self.assertIn("attr='linear_qkv', ctx=Store()", text)


class Server(http.server.ThreadingHTTPServer):
    """Answers inserts with the statuses that it is given, then with 200, and keeps what came."""

    daemon_threads = True

    def __init__(self, statuses: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses = statuses
        self.requests: list[tuple[str, Any, bytes]] = []
        self.taken: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, self.headers, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.taken += [json.loads(line) for line in body.splitlines()]
        answer = b"" if status == 200 else b"Code: 1. DB::Exception: told by the server\nsecond line"
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """The test tells what matters."""


class Posts(Case):
    def server(self, *statuses: int) -> Server:
        server = Server(list(statuses))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_rows_are_posted_in_batches(self) -> None:
        server = self.server()
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write(SECRET + "\n")
        settings = {"CLICKHOUSE_URL": server.url, "CLICKHOUSE_USER": "writer", "CLICKHOUSE_PASSWORD_FILE": secret}
        told = self.training("run(iterations=30)", CLICKHOUSE_DATABASE="d`b", DIR="files", **settings)
        path, headers, _ = server.requests[0]
        self.assertIn("INSERT+INTO+%60d%5C%60b%60.%60megatron_metrics%60+FORMAT+JSONEachRow", path)
        self.assertIn("async_insert=1", path)
        self.assertEqual(headers["X-ClickHouse-User"], "writer")
        self.assertEqual(headers["X-ClickHouse-Key"].encode("latin-1").decode(), SECRET)
        self.assertLess(len(server.requests), 5)
        # The same rows as in the files, which were asked for too.
        self.assertEqual(server.taken, self.rows("files"))
        self.assertNotIn("ss w", told)
        self.assertEqual(told.count("\n"), 1, told)

    def test_a_password_in_the_url_is_used_and_not_told(self) -> None:
        server = self.server()
        told = self.training("run(iterations=3)", CLICKHOUSE_URL=server.url.replace("//", "//me:hush@"))
        self.assertEqual(server.requests[0][1]["X-ClickHouse-Key"], "hush")
        self.assertNotIn("hush", told)
        self.assertEqual(self.files(), [])

    def test_a_server_that_is_away_for_a_while_loses_nothing(self) -> None:
        server = self.server(503, 503, 429)
        told = self.training("run(iterations=30)", CLICKHOUSE_URL=server.url)
        self.assertEqual({row["iteration"] for row in server.taken}, set(range(1, 31)))
        self.assertIn("rows wait", told)
        self.assertIn("taken again after 3 attempts", told)
        self.assertNotIn("lost", told)

    def test_a_refusal_ends_posting_and_counts(self) -> None:
        server = self.server(*[403] * 100)
        told = self.training("run(iterations=30)", CLICKHOUSE_URL=server.url, DIR="files")
        self.assertEqual(len(server.requests), 1)
        self.assertIn("posts no more rows, training goes on: HTTP 403: Code: 1. DB::Exception: told by the server", told)
        self.assertNotIn("second line", told)
        self.assertRegex(told, r"lost in this run: \d+ rows")
        # The files are not in the way.
        self.assertTrue(self.rows("files"))

    def test_a_server_that_is_gone_does_not_hold_the_end_up(self) -> None:
        body = """
            run(iterations=30)
            began = real_monotonic()
            mt_recorder.stop()
            assert real_monotonic() - began < 15, "the end was held up"
        """
        told = self.training(body, CLICKHOUSE_URL="http://127.0.0.1:9", EXIT_SECONDS="1")
        self.assertRegex(told, r"lost in this run: \d+ rows")

    def test_an_answer_that_is_no_http_is_no_end(self) -> None:
        body = """
            import socket
            listener = socket.create_server(("127.0.0.1", 0))
            def answer():
                while True:
                    connection, _ = listener.accept()
                    connection.recv(1 << 20)
                    connection.sendall(b"hello\\r\\n\\r\\n")
                    connection.close()
            threading.Thread(target=answer, daemon=True).start()
            recorder.settings.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            run(iterations=10)
        """
        told = self.training(body, DIR="files", EXIT_SECONDS="1")
        self.assertIn("rows wait", told)
        self.assertTrue(self.rows("files"))

    def test_bad_urls_are_told_without_what_stands_in_them(self) -> None:
        for url in ("ftp://me:hush@host", "http://me:hush/@host", "http://me:hush@:8123", "me:hush@host:8123"):
            with self.subTest(url=url):
                told = self.training("run(iterations=3)", CLICKHOUSE_URL=url)
                self.assertIn("MT_RECORDER_CLICKHOUSE_URL", told)
                self.assertNotIn("hush", told)

    def test_a_password_that_no_header_can_hold_is_not_told(self) -> None:
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("hu\x01sh")
        settings = {"CLICKHOUSE_URL": "http://127.0.0.1:9", "CLICKHOUSE_PASSWORD_FILE": secret}
        told = self.training("run(iterations=3)", **settings)
        self.assertIn("control characters", told)
        self.assertNotIn("hu", told.replace("authority", ""))


if __name__ == "__main__":
    unittest.main()
