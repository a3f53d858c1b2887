"""The backends' package without torch: its protocol, its clock, its memory."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
from types import SimpleNamespace

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))

from benchgate_backends import after, case, graphs, protocol, timing  # noqa: E402
from benchgate_backends.memory import Memory, resident  # noqa: E402
from benchgate_backends.profiling import Profile  # noqa: E402
from benchgate_backends.torch_backends import cxx_compiler  # noqa: E402

LEAST = {"source": "/m.py", "symbol": "make", "backend": "eager", "out": "/tmp"}


class Protocol(unittest.TestCase):
    def test_a_request_gets_the_defaults(self):
        request = protocol.parse_request(json.dumps({**LEAST, "batch-size": 8, "matmul-precision": "high"}))
        self.assertEqual((request.test, request.batch_size, request.matmul_precision, request.verify), ("eval", 8, "high", True))

    def test_what_is_no_request(self):
        for wrong, part in [
            ({"backend": "tpu"}, "backend 'tpu' is not one of eager"),
            ({"test": "fit"}, "test 'fit'"),
            ({"dtype": "int4"}, "dtype 'int4'"),
            ({"colour": 1}, "unknown key 'colour'"),
            ({"symbol": ""}, "'symbol' is missing"),
            ({"repetitions": 0}, "must be at least 1"),
            ({"dump": ["profile"]}, "'dump-dir' is missing"),
            ({"dump": ["secrets"], "dump-dir": "/d"}, "dump 'secrets'"),
            ({"collect": ["secrets"]}, "collect 'secrets'"),
            ({"dump": ["xla-ir"], "dump-dir": "/d"}, "would change what is timed"),
            ({"dump": ["profile"], "dump-dir": "/d", "measure": False}, "takes one dump of xla-ir"),
            ({"measure": False}, "takes one dump of xla-ir"),
        ]:
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, part.replace("(", r"\(")):
                protocol.parse_request(json.dumps({**LEAST, **wrong}))

    def test_an_answer_has_every_key_and_no_other(self):
        keys = set(protocol.answer("unsupported", error="no"))
        self.assertEqual(keys, set(protocol.answer("ok", samples=[1.0], compile_seconds=2)))
        with self.assertRaises(AssertionError):
            protocol.answer("ok", smaples=[1.0])

    def test_the_end_of_a_traceback_is_kept(self):
        text = "x" * 50_000 + "Boom"
        self.assertTrue(protocol.answer("failed", traceback=text)["traceback"].endswith("Boom"))

    def test_lines_are_on_disk_before_the_work_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "answer")
            answers = protocol.Answers(path)
            answers.send({"stage": "import"})
            self.assertEqual(pathlib.Path(path).read_text(), '{"stage":"import"}\n')


class Clock:
    def __init__(self, cost):
        self.now, self.cost, self.calls = 0.0, cost, []

    def __call__(self):
        return self.now

    def run(self, iterations):
        self.calls.append(iterations)
        self.now += iterations * self.cost


class Timing(unittest.TestCase):
    def test_warm_up_lasts_as_long_as_asked_and_three_calls_at_least(self):
        clock = Clock(0.010)
        self.assertAlmostEqual(timing.warm_up(clock.run, 0.1, clock), 0.010)
        self.assertIn(len(clock.calls), (10, 11))
        slow = Clock(5.0)
        timing.warm_up(slow.run, 0.1, slow)
        self.assertEqual(len(slow.calls), 3)

    def test_iterations_fill_the_time(self):
        self.assertEqual(timing.iterations_for(0.010, 0.040), 4)
        self.assertEqual(timing.iterations_for(1.0, 0.040), 1)
        self.assertEqual(timing.iterations_for(0.0, 0.040), timing.MOST_ITERATIONS)

    def test_a_sample_is_one_iteration_in_nanoseconds(self):
        clock = Clock(0.002)
        samples, metrics = timing.repeat(clock.run, 3, 5, clock, around=lambda: lambda n: {"n": n})
        self.assertEqual([round(s) for s in samples], [2_000_000] * 3)
        self.assertEqual(metrics, {"n": [5, 5, 5]})


def event(key, **times):
    known = {"count": 3, "self_cpu_time_total": 1e6, "cpu_time_total": 2e6, "device_type": "DeviceType.CPU"}
    return SimpleNamespace(key=key, **{**known, **times})


class Collected(unittest.TestCase):
    def profile(self, *events):
        profile = Profile.__new__(Profile)
        profile.iterations, profile.events = 5, events
        return profile

    def test_times_are_seconds_and_kernels_are_counted_once(self):
        launched = event("aten::mm", self_device_time_total=4e6, device_time_total=4e6)
        kernel = event("gemm", self_cpu_time_total=0.0, self_device_time_total=4e6, device_type="DeviceType.CUDA")
        self.assertEqual(self.profile(launched, kernel).totals(), {"iterations": 5, "cpu_seconds": 1.0, "cuda_seconds": 4.0})

    def test_operators_are_atens_and_those_that_fell_back_where_that_is_asked(self):
        old_names = event("aten::mm", self_cuda_time_total=4e6, cuda_time_total=5e6)
        profile = self.profile(old_names, event("aten::nonzero"), event("gemm"))
        times = {"calls": 3, "self_cpu_seconds": 1.0, "cpu_seconds": 2.0}
        nonzero = {**times, "self_cuda_seconds": 0.0, "cuda_seconds": 0.0}
        mm = {**times, "self_cuda_seconds": 4.0, "cuda_seconds": 5.0}
        self.assertEqual(profile.operators(None), {"aten::mm": mm, "aten::nonzero": nonzero})
        self.assertEqual(profile.operators({"aten::nonzero"}), {"aten::nonzero": nonzero})

    def test_what_was_not_asked_for_is_absent_and_no_counter_is_an_empty_group(self):
        request = SimpleNamespace(collect=["dynamo-counters"])
        self.assertEqual(after.collect(None, request, None, {}), {"dynamo_counters": {}})
        counters = {"stats": {"unique_graphs": 1, "why": "text"}}
        self.assertEqual(after.collect(None, request, None, counters), {"dynamo_counters": {"stats": {"unique_graphs": 1}}})


class Graphs(unittest.TestCase):
    def setUp(self):
        environment = unittest.mock.patch.dict(os.environ, {"XLA_FLAGS": "--user"})
        environment.start()
        self.addCleanup(environment.stop)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "out").mkdir()

    def request(self, kind):
        dumps = str(self.folder / "dumps")
        return SimpleNamespace(out=str(self.folder / "out"), dump=[kind], dump_dir=dumps, label="m")

    def test_the_graphs_of_all_devices_become_one_file(self):
        request = self.request("xla-stablehlo")
        graphs.prepare(request)
        self.assertEqual((os.environ["XLA_SAVE_TENSORS_FMT"], os.environ["XLA_FLAGS"]), ("stablehlo", "--user"))
        for number in range(2):
            pathlib.Path(f"{os.environ['XLA_SAVE_TENSORS_FILE']}.{number}").write_text(f"graph {number}\n")
        self.assertEqual(graphs.keep(request), ["dump-m.stablehlo"])
        self.assertEqual((self.folder / "dumps/dump-m.stablehlo").read_text(), "graph 0\ngraph 1\n")

    def test_compiled_modules_replace_those_of_an_earlier_run_and_the_users_flags_stay(self):
        request = self.request("xla-compiled-hlo")
        graphs.prepare(request)
        mine, dump = os.environ["XLA_FLAGS"].split()
        self.assertEqual(mine, "--user")
        old = self.folder / "dumps/hlo/module_0000.old.txt"
        old.parent.mkdir(parents=True)
        old.write_text("old")
        staged = pathlib.Path(dump.removeprefix("--xla_dump_to="))
        staged.mkdir()
        (staged / "module_0000.new.txt").write_text("new")
        self.assertEqual(graphs.keep(request), ["hlo"])
        self.assertEqual(os.listdir(self.folder / "dumps/hlo"), ["module_0000.new.txt"])

    def test_an_empty_dump_is_a_failure(self):
        for kind in protocol.COMPILER_DUMPS:
            with self.subTest(kind), self.assertRaisesRegex(protocol.Failed, "wrote no"):
                graphs.keep(self.request(kind))


class MixedPrecision(unittest.TestCase):
    def test_autocast_is_that_of_the_tensors_device(self):
        used = []

        @contextlib.contextmanager
        def autocast(kind, dtype):
            used.append((kind, dtype))
            yield

        class Module:
            def parameters(self):
                return iter(())

        torch = SimpleNamespace(autocast=autocast, bfloat16="bf16", float16="f16", nn=SimpleNamespace(Module=Module))
        tensor = lambda kind: SimpleNamespace(device=SimpleNamespace(type=kind))  # noqa: E731
        for device, kind in [("cpu", "cpu"), ("cpu", "xla"), ("cuda", "cuda"), ("cuda", "xla")]:
            case.autocast(torch, lambda value: value, device).forward(tensor(kind))
        self.assertEqual(used, [("cpu", "bf16"), ("xla", "bf16"), ("cuda", "f16"), ("xla", "f16")])


class TheRest(unittest.TestCase):
    def test_memory_is_noted_by_stage(self):
        memory = Memory(host=lambda: 7, clock=iter([1.0, 3.5]).__next__)
        memory.note("import")
        self.assertEqual(memory.points, [[2.5, 7, None, "import"]])
        self.assertGreater(resident(), 1_000_000)

    def test_no_compiler_is_found_where_there_is_none(self):
        before = dict(os.environ)
        try:
            os.environ.pop("CXX", None)
            os.environ["PATH"] = "/nonexistent"
            self.assertIsNone(cxx_compiler())
        finally:
            os.environ.update(before)


if __name__ == "__main__":
    unittest.main()
