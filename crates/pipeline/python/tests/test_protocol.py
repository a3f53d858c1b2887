"""The protocol without torch: a fake exporter in the real loop, in a real process where descriptors matter.

    python -m unittest discover -s crates/pipeline/python/tests
"""

import ast
import json
import os
import pathlib
import py_compile
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
import unittest.mock

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))

from benchgate_export import onnx_model, source, tensors, trace  # noqa: E402
from benchgate_export.protocol import EXPORTERS, Failure, Request, Unsupported, answer, parse_request  # noqa: E402


def request(**changes):
    return json.dumps({"id": 1, "source": "/m.py", "symbol": "make", "out": "/out", **changes})


class Requests(unittest.TestCase):
    def test_defaults(self):
        r = parse_request(request())
        self.assertEqual((r.function, r.seed, r.preset, r.options, r.output_types), ("main", 0, None, {}, None))
        self.assertEqual(r.exporter, "torch-mlir")

    def test_one_output_type_may_be_a_string(self):
        self.assertEqual(parse_request(request(**{"output-type": "torch"})).output_types, ("torch",))

    def test_refusals_name_the_trouble_and_keep_the_id(self):
        for changes, words in [
            ({"sede": 1}, "'sede'"),
            ({"exporter": "torch_xla"}, "'torch_xla'"),
            ({"folder": "weights"}, "absolute"),
            ({"source": "zoo:bert"}, "'symbol'"),
            ({"source": "m.py"}, "absolute"),
            ({"symbol": None}, "'symbol' is missing"),
            ({"output-type": ["tosa"]}, "'tosa'"),
            ({"output-type": []}, "output-type"),
            ({"function": "../x"}, "function"),
            ({"seed": -1}, "seed"),
            ({"options": [1]}, "options"),
            ({"preset": "a", "options": {"preset": "b"}}, "preset"),
        ]:
            with self.subTest(changes), self.assertRaises(Failure) as caught:
                parse_request(request(**changes))
            self.assertEqual((caught.exception.stage, caught.exception.code), ("request", "BAD_REQUEST"))
            self.assertIn(words, str(caught.exception))
            self.assertEqual(caught.exception.extra["id"], 1)

    def test_not_json(self):
        with self.assertRaises(Failure) as caught:
            parse_request("{")
        self.assertIsNone(caught.exception.extra["id"])

    def test_a_model_of_the_zoo_needs_no_symbol(self):
        r = parse_request(json.dumps({"id": 1, "source": "zoo:bert", "out": "/out", "exporter": "onnx"}))
        self.assertEqual((r.source, r.symbol, r.exporter), ("zoo:bert", None, "onnx"))

    def test_unsupported_is_neither_ok_nor_failed(self):
        a = answer(1, unsupported=Unsupported("no such operator"))
        self.assertEqual((a["status"], a["stage"], a["code"], a["error"]), ("unsupported", None, None, "no such operator"))

    def test_an_answer_has_every_key_and_bounded_text(self):
        ok, bad = answer(1, {"mlir": "main.mlir"}), answer(1, failure=Failure("eager", "X", "e" * 9999, traceback="t" * 99999))
        self.assertEqual(set(ok), set(bad))
        self.assertLess(len(bad["error"]) + len(bad["traceback"]), 23_000)


class Sources(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def write(self, name, text):
        path = pathlib.Path(self.dir.name, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    def construct(self, path, **changes):
        return source.construct(source.load(path, folder=self.dir.name), Request(**{"id": 1, "source": path, "symbol": "make", "out": "/o", **changes}))

    def code(self, *args, **changes):
        with self.assertRaises(Failure) as caught:
            self.construct(*args, **changes)
        return caught.exception.code

    def test_options_and_preset_are_keywords(self):
        path = self.write("m.py", "def make(preset=None, n=1): return preset, n")
        self.assertEqual(self.construct(path, preset="small", options={"n": 3}), ("small", 3))
        self.assertEqual(self.code(path, options={"m": 3}), "BAD_OPTIONS")

    def test_failures_have_their_codes(self):
        self.assertEqual(self.code("/nowhere/m.py"), "SOURCE_NOT_FOUND")
        for key in ("unknown", "_weights", "../source"):
            self.assertEqual(self.code(f"zoo:{key}"), "SOURCE_NOT_FOUND")
        missing = self.write("c.py", "import no_such_package")
        with self.assertRaisesRegex(Failure, "No module named 'no_such_package'; `requirements`"):
            source.load(missing)
        self.assertEqual(self.code(self.write("a.py", "def make(: pass")), "IMPORT_FAILED")
        self.assertEqual(self.code(self.write("b.py", "raise SystemExit(3)")), "IMPORT_FAILED")
        self.assertEqual(self.code(self.write("c.py", "def made(): pass")), "SYMBOL_NOT_FOUND")
        self.assertEqual(self.code(self.write("d.py", "def make(): 1/0")), "CONSTRUCT_FAILED")

    def test_siblings_of_two_folders_with_one_name_are_two_modules(self):
        for folder in ("one", "two"):
            self.write(f"{folder}/helper.py", f"NAME = '{folder}'")
        paths = [self.write(f"{f}/m.py", "import helper\ndef make(): return helper.NAME") for f in ("one", "two")]
        self.assertEqual([self.construct(p) for p in paths], ["one", "two"])

    def test_packages_without_a_file_are_fresh_too(self):
        for folder in ("one", "two"):
            self.write(f"{folder}/m.py", "import outer.middle.inner\ndef make(): return outer.middle.inner.NAME")
            for below in ("outer", "outer/middle"):
                pathlib.Path(self.dir.name, folder, below).mkdir()
            self.write(f"{folder}/outer/middle/inner.py", f"NAME = '{folder}'")
        paths = [os.path.join(self.dir.name, folder, "m.py") for folder in ("one", "two", "one")]
        self.assertEqual([self.construct(p) for p in paths], ["one", "two", "one"])

    def test_a_file_in_a_package_imports_relatively_and_from_the_suites_folder(self):
        self.write("outer/__init__.py", "")
        self.write("outer/inner/__init__.py", "from ..base import WIDTH")
        self.write("outer/base.py", "WIDTH = 8")
        self.write("outer/inner/layers.py", "from . import WIDTH\ndef layer(): return WIDTH + 1")
        relative = self.write("outer/inner/model.py", "from .layers import layer\ndef make(): return layer()")
        self.assertEqual(self.construct(relative), 9)
        absolute = self.write("bench/model.py", "from outer.inner.layers import layer\ndef make(): return layer() + 1")
        self.assertEqual(self.construct(absolute), 10)

    def test_folders_to_import_from_come_after_the_suites_own(self):
        self.write("src/widths.py", "WIDTH = 8")
        self.write("src/names.py", "NAME = 'src'")
        self.write("names.py", "NAME = 'suite'")
        path = self.write("bench/model.py", "import names, widths\ndef make(): return names.NAME, widths.WIDTH")
        module = source.load(path, None, self.dir.name, [os.path.join(self.dir.name, "src")])
        self.assertEqual(module.make(), ("suite", 8))

    def test_every_load_is_fresh(self):
        path = self.write("m.py", "calls = []\ndef make():\n    calls.append(1)\n    return len(calls)")
        self.assertEqual([self.construct(path), self.construct(path)], [1, 1])

    def torchbench(self, constructor, **options):
        """Constructs the model of a checkout, next to a torch and a timm that do nothing."""
        self.write("torchbenchmark/__init__.py", "")
        for package in ("models", "models/net"):
            pathlib.Path(self.dir.name, "torchbenchmark", package).mkdir()
        text = f"class Model:\n    def __init__(self, **_): {constructor}\n    def get_module(self): return None, ()"
        self.write("torchbenchmark/models/net/__init__.py", text)
        module = type("Module", (), {"load_state_dict": None})
        torch = types.SimpleNamespace(nn=types.SimpleNamespace(Module=module), hub=types.SimpleNamespace(load_state_dict_from_url=None))
        builder = types.ModuleType("timm.models._builder")
        builder.load_pretrained = unittest.mock.Mock(side_effect=OSError("no route to the hub"))
        made = source.load("torchbench:net", self.dir.name)
        with unittest.mock.patch.dict(sys.modules, {"torch": torch, "timm.models._builder": builder}):
            made.make(**options)

    def test_a_model_of_torchbench_that_can_not_download_names_the_option_that_needs_no_download(self):
        with self.assertRaisesRegex(ConnectionError, "weights = 'random'"):
            self.torchbench("raise OSError('urlopen error')")

    def test_random_weights_of_torchbench_download_nothing_from_timms_hub(self):
        loads = "import sys; sys.modules['timm.models._builder'].load_pretrained()"
        # It gets as far as the fake module, which is not one of torch's.
        with self.assertRaises(Unsupported):
            self.torchbench(loads, weights="random")


class Zoo(unittest.TestCase):
    """What every model's file has to have, read without torch."""

    def test_every_model_says_what_it_is_and_has_both_presets(self):
        files = [p for p in (PACKAGE / "benchgate_export" / "zoo").glob("*.py") if not p.name.startswith("_")]
        self.assertGreaterEqual(len(files), 17)
        for path in files:
            with self.subTest(path.stem):
                tree = ast.parse(path.read_text())
                self.assertTrue(ast.get_docstring(tree))
                (make,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "make"]
                defaults = dict(zip((a.arg for a in make.args.args), make.args.defaults))
                self.assertEqual(defaults["preset"].value, "small")
                self.assertIsNone(defaults["weights"].value)

    def test_what_is_declared_unsupported_names_an_exporter_and_a_reason(self):
        for path in (PACKAGE / "benchgate_export" / "zoo").glob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.Assign) and node.targets[0].id == "UNSUPPORTED":
                    for exporter, reason in ast.literal_eval(node.value).items():
                        self.assertIn(exporter, EXPORTERS, path.name)
                        self.assertGreater(len(reason), 20, path.name)


class Followed(unittest.TestCase):
    def test_a_model_that_looks_for_a_file_or_has_a_compiled_one_is_followed(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder).resolve()
            model, layers = folder / "followed_model.py", folder / "followed_layers.py"
            layers.write_text("FAST = True")
            compiled = py_compile.compile(str(layers), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
            layers.write_text("FAST = False")
            looks = f"[pathlib.Path({str(folder / 'a')!r}).exists(), os.path.isfile({str(folder / 'b')!r}), os.access({str(folder / 'c')!r}, 0)]"
            model.write_text(f"import os, pathlib, followed_layers\nLOOKS = {looks}\nFAST = followed_layers.FAST\n")
            heard = trace.begin()
            try:
                module = source.load(str(model), folder=str(folder))
            finally:
                trace.end()
            self.assertEqual((module.LOOKS, module.FAST), ([False] * 3, False))
            self.assertLessEqual({str(folder / name) for name in "abc"}, set(heard.answer()["read"]))
            self.assertNotIn(compiled, heard.answer()["read"])


class Traced(unittest.TestCase):
    """torch-xla's text becomes a function of the inputs; tensors are faked."""

    TEXT = """module @m attributes {x = 1} {
  func.func @main(%arg0: tensor<2x4xf32>, %arg1: tensor<3x4xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.custom_call @mhlo.erf(%arg0) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""

    def test_weights_leave_the_arguments(self):
        from benchgate_export.exporters import torch_xla_exporter as xla

        class Large:
            dtype = "torch.float32"

            def numel(self):
                return 1 << 20

            def element_size(self):
                return 4

        class Torch:
            float16 = bfloat16 = float64 = bool = None
            float32 = "f32"

        class Input:
            dtype, shape = "f32", (2, 4)

        weight = Large()
        text, weights = xla.without_weights(Torch, xla.known_words(self.TEXT), "main", [0, ("model.w-1", weight)], [Input()])
        self.assertEqual(weights, {"w_1": weight})
        self.assertIn("%0 = chlo.erf %arg0 : tensor<2x4xf32> -> tensor<2x4xf32>", text)
        self.assertIn('util.global private @"w_1" = #flow.parameter.named<"model"::"w_1"> : tensor<3x4xf32>', text)
        self.assertIn("func.func public @main(%in0: tensor<2x4xf32>) -> (tensor<2x3xf32>) {", text)
        self.assertIn("func.call @traced(%in0, %w1)", text)
        self.assertIn("func.func private @traced(%arg0", text)


class Weights(unittest.TestCase):
    def check(self, preset="full", **options):
        source.check_weights("zoo:bert", preset, options)

    def test_published_weights_that_cannot_be_had_are_refused_with_the_way_out(self):
        hub = types.ModuleType("huggingface_hub")
        hub.constants = types.SimpleNamespace(ENDPOINT="https://hub.invalid")
        hub.try_to_load_from_cache = lambda _, file, revision: file if revision == "cached" else None
        utils = types.ModuleType("huggingface_hub.utils")
        utils.get_session = lambda: types.SimpleNamespace(head=unittest.mock.Mock(side_effect=OSError("no route")))
        with unittest.mock.patch.dict(sys.modules, {"huggingface_hub": hub, "huggingface_hub.utils": utils}):
            for options, words in [({}, "revision = '<commit>'"), ({"weights": "hub", "revision": "other"}, "no route")]:
                with self.subTest(options), self.assertRaises(Failure) as caught:
                    self.check(**options)
                self.assertEqual(caught.exception.stage, "construct")
                self.assertIn(words, str(caught.exception))
                self.assertIn("options = { weights = 'random' }", str(caught.exception))
            self.check(revision="cached")
            self.check(weights="random")
            self.check(preset="small")
            self.check(preset=None)
            source.check_weights("zoo:resnet", "full", {})


class FakeTensor:
    shape = ()

    def detach(self):
        return self


class Outputs(unittest.TestCase):
    def test_a_type_that_npy_lacks_is_named_as_the_runtime_names_it(self):
        class Tensor(FakeTensor):
            dtype = "torch.bfloat16"

        one, matrix = Tensor(), Tensor()
        matrix.shape = (4, 8)
        self.assertEqual([tensors.raw_type(t) for t in (one, matrix)], ["bf16", "4x8xbf16"])
        one.dtype = "torch.float32"
        self.assertIsNone(tensors.raw_type(one))

    def test_flattening_is_depth_first_and_in_order(self):
        a, b, c, d = (FakeTensor() for _ in range(4))
        self.assertEqual(tensors.flatten({"z": a, "a": [b, None, (c,)], "m": {"k": d}}, "eager"), [a, b, c, d])

    def test_what_is_no_tensor_is_refused(self):
        with self.assertRaises(Failure) as caught:
            tensors.flatten([FakeTensor(), "text"], "eager")
        self.assertEqual(caught.exception.code, "UNSUPPORTED_VALUE")

    def test_a_failed_write_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "x.npy")
            tensors.write_atomically(path, lambda f: f.write(b"old"))

            def half(f):
                f.write(b"ne")
                raise OSError(28, "No space left on device")

            with self.assertRaises(OSError):
                tensors.write_atomically(path, half)
            self.assertEqual((os.listdir(d), pathlib.Path(path).read_bytes()), (["x.npy"], b"old"))


FAKE = """
import os, sys
from benchgate_export import serve
from benchgate_export.protocol import Channel, Failure
import benchgate_export.exporting as real

def export(request, enter):
    enter("import")
    print("a model's words")
    os.write(1, b"and from C++\\n")
    os.system("echo and from a child")
    assert sys.stdin.read() == ""
    enter("eager")
    if request.symbol == "leave": sys.exit(0)
    if request.symbol == "abort": os.abort()
    if request.symbol == "fail": raise Failure("eager", "EAGER_FAILED", "no") from ValueError("deep")
    return {"mlir": "main.mlir", "attempts": [{"error": "\\u2028 \\ud800"}]}

real.export = export
sys.exit(serve.main())
"""


class Loop(unittest.TestCase):
    def run_fake(self, *symbols):
        lines = "".join(request(id=s, symbol=s) + "\n" for s in symbols) + "\nnonsense\n"
        done = subprocess.run(
            [sys.executable, "-c", FAKE], input=lines.encode(), capture_output=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        )
        return done, [json.loads(line) for line in done.stdout.decode("ascii").splitlines()]

    def test_prints_go_to_stderr_and_the_loop_survives(self):
        done, lines = self.run_fake("ok", "leave", "fail", "ok")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines[0]["hello"], "benchgate-export/3")
        self.assertEqual(set(lines[0]), {"hello", "python", "torch", "torch-mlir", "torch-xla", "iree-turbine", "onnx"})
        answers = [m for m in lines if m.get("status") in ("ok", "failed")]
        self.assertEqual(
            [(m["id"], m["status"], m["stage"], m["code"]) for m in answers],
            [
                ("ok", "ok", None, None),
                ("leave", "failed", "eager", "EXPORTER_ERROR"),
                ("fail", "failed", "eager", "EAGER_FAILED"),
                ("ok", "ok", None, None),
                (None, "failed", "request", "BAD_REQUEST"),
            ],
        )
        self.assertIn("ValueError: deep", answers[2]["traceback"])
        for words in (b"a model's words", b"and from C++", b"and from a child"):
            self.assertEqual(done.stderr.count(words), 4)

    def test_a_crash_leaves_word_of_what_was_running(self):
        done, lines = self.run_fake("ok", "abort", "ok")
        self.assertEqual(done.returncode, -6)
        self.assertEqual(lines[-1], {"id": "abort", "status": "stage", "stage": "eager"})
        self.assertIn({"id": "abort", "status": "started"}, lines)


class OnnxInputs(unittest.TestCase):
    def test_token_ids_select_all_rows_of_the_smallest_table_that_they_select_from(self):
        def node(op, inputs, output, **attributes):
            given = [types.SimpleNamespace(name=name, i=value) for name, value in attributes.items()]
            return types.SimpleNamespace(op_type=op, input=inputs, output=[output], attribute=given)

        stored = {"words": [1000, 8], "kinds": [8, 3], "bytes": [500, 8]}
        graph = types.SimpleNamespace(
            initializer=[types.SimpleNamespace(name=name, dims=dims) for name, dims in stored.items()],
            input=[types.SimpleNamespace(name=name) for name in ("ids", "kind", "mask", "flat", "position")],
            output=[types.SimpleNamespace(name="e")],
            node=[
                node("Cast", ["ids"], "ids64"),
                node("Gather", ["words", "ids64"], "a"),
                node("DequantizeLinear", ["bytes", "scale"], "wide"),
                node("Reshape", ["ids64", "shape"], "row"),
                node("Gather", ["wide", "row"], "b"),
                node("Gather", ["kinds", "kind"], "c", axis=-1),
                node("Mul", ["mask", "a"], "d"),
                node("Gather", ["a", "flat"], "e"),
                node("Gather", ["words", "position"], "f"),
                node("ScatterElements", ["d", "position", "f"], "h"),
                node("Equal", ["ids", "pad"], "i"),
            ],
        )
        self.assertEqual(onnx_model._rows_of_tables(graph), {"ids": 500, "kind": 3})


if __name__ == "__main__":
    unittest.main()
