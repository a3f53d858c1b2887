"""The backends' package without torch: its protocol, its clock, its memory."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))

from benchgate_backends import protocol, timing  # noqa: E402
from benchgate_backends.memory import Memory, resident  # noqa: E402
from benchgate_backends.torch_backends import cxx_compiler  # noqa: E402

LEAST = {"source": "/m.py", "symbol": "make", "backend": "eager", "out": "/tmp"}


class Protocol(unittest.TestCase):
    def test_a_request_gets_the_defaults(self):
        request = protocol.parse_request(json.dumps({**LEAST, "batch-size": 8, "matmul-precision": "high"}))
        self.assertEqual((request.test, request.batch_size, request.matmul_precision, request.verify), ("eval", 8, "high", True))

    def test_what_is_no_request(self):
        for wrong, part in [
            ({"backend": "tpu"}, "backend 'tpu' is none of eager"),
            ({"test": "fit"}, "test 'fit'"),
            ({"dtype": "int4"}, "dtype 'int4'"),
            ({"colour": 1}, "unknown key 'colour'"),
            ({"symbol": ""}, "'symbol' is missing"),
            ({"repetitions": 0}, "no repetition"),
            ({"dump": ["profile"]}, "'dump-dir' is missing"),
            ({"dump": ["secrets"], "dump-dir": "/d"}, "dump 'secrets'"),
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
