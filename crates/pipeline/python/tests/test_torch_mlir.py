"""The real exporter, where torch and torch-mlir are installed; skipped elsewhere."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))

MODELS = '''
import os, random, sys
import torch
from torch import nn

class Fn(nn.Module):
    def __init__(self, f): super().__init__(); self.f = f
    def forward(self, *a): return self.f(*a)

X = (torch.zeros(2, 3) + 0.5,)
def simple(width=4): print("hello"); return nn.Linear(3, width), (torch.randn(2, 3),)
def outputs(): return Fn(lambda x: {"z": x + 1, "a": (x * 2, None, [x.sum()])}), X
def noisy(): return Fn(lambda x: x + torch.rand(2, 3)), X
def dropout(): return nn.Sequential(nn.Dropout(0.5)), X
def raises(): return Fn(lambda x: x @ x), X
def inplace(): return Fn(lambda x: x.add_(1) * 2), X
def cached(): return Fn(lambda x, cache: cache.copy_(x @ x) * 0 + x), (torch.rand(3, 3), torch.zeros(3, 3))
def casts(): return Fn(lambda x: x.float() * 2), X
def nan(): return Fn(lambda x: torch.log(x - 1)), X
def brain(): return nn.Linear(3, 4).bfloat16(), (torch.randn(2, 3).bfloat16(),)
def tiny(): return Fn(lambda x: x.to(torch.float8_e4m3fn)), X
def branches(): return Fn(lambda x: x + 1 if x.sum() > 0 else x), X
def sparse(): return Fn(lambda x: torch.special.airy_ai(x)), X
def bare(): return nn.Linear(3, 3)
def crash(): os.kill(os.getpid(), 11)
def hub(): return torch.hub.load("a/b", "c")
def plain(): return nn.Linear(3, 4), (torch.randn(2, 3),)
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.a, self.b = nn.Embedding(300, 64), nn.Linear(64, 300, bias=False), nn.Linear(64, 300, bias=False)
        self.a.weight = self.e.weight
    def forward(self, ids): return self.a(self.e(ids)), self.b(self.e(ids))
def tied(): return Tied(), torch.arange(5)
class Rotary(nn.Module):
    def __init__(self):
        super().__init__(); self.register_buffer("freq", torch.arange(3.0), persistent=False)
    def forward(self, x): return x * self.freq
def rotary(): return Rotary(), X
class Keeps(nn.Module):
    def __init__(self, keep):
        super().__init__(); self.keep, self.kept, self.all, self.table = keep, None, [], None
        self.register_buffer("state", torch.zeros(3))
    def forward(self, x):
        if self.table is None: self.table = torch.arange(3.0)
        self.keep(self, x * x)
        return x + self.table
LAST = None
def keep_global(m, y):
    global LAST
    LAST = y
def keeps_attribute(): return Keeps(lambda m, y: setattr(m, "kept", y)), X
def keeps_list(): return Keeps(lambda m, y: m.all.append(y)), X
def keeps_buffer(): return Keeps(lambda m, y: setattr(m, "state", y[0])), X
def keeps_global(): return Keeps(keep_global), X
def keeps_nothing(): return Keeps(lambda m, y: None), X
def unsafe():
    import pickle, tempfile
    class Evil:
        def __reduce__(self): return (os.system, ("true",))
    f = tempfile.NamedTemporaryFile(); torch.save(Evil(), f.name)
    torch.load(f.name, weights_only=False)
'''

LAYERS = '''
import torch
from torch import nn

def make(layers=1, seed=None):
    module = nn.Sequential(*(nn.Linear(3, 3) for _ in range(layers)))
    nn.init.normal_(module[-1].bias)
    if seed is not None: torch.manual_seed(seed)
    return module, (torch.randn(3, 3), torch.randn(3, 3), torch.empty(3).uniform_(), torch.randint(0, 9, (4,)))
'''


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
class Seeds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "m.py")
        pathlib.Path(self.path).write_text(LAYERS)

    def made(self, **options):
        import torch
        from benchgate_export import source
        from benchgate_export.protocol import Request

        torch.manual_seed(0)
        module, inputs = source.construct(
            source.load(self.path), Request(id=1, source=self.path, symbol="make", out="/o", options=options)
        )
        return list(module.parameters()), inputs, torch.rand(3)

    def equal(self, some, others):
        return [bool((a == b).all()) for a, b in zip(some, others, strict=True)]

    def test_a_layer_more_leaves_the_inputs_as_they_are(self):
        import torch

        (weights, inputs, after), (more, same, _) = self.made(), self.made(layers=3)
        self.assertEqual(self.equal(inputs, same), [True] * 4)
        self.assertEqual(self.equal(weights[:1], more[:1]), [True])
        # The weights, and what follows them, are those of the seed, as if no input had been drawn.
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 3)
        torch.nn.init.normal_(layer.bias)
        self.assertEqual(self.equal([*weights, after], [*layer.parameters(), torch.rand(3)]), [True] * 3)

    def test_inputs_differ_from_each_other_and_from_the_weights(self):
        weights, (first, second, *_), _ = self.made()
        self.assertFalse(bool((first == second).any()))
        self.assertFalse(bool((first == weights[0]).any()))

    def test_a_model_that_seeds_torch_gets_the_numbers_of_its_own_seed(self):
        import torch

        _, inputs, _ = self.made(seed=7)
        torch.manual_seed(7)
        self.assertEqual(self.equal(inputs[:1], [torch.randn(3, 3)]), [True])


@unittest.skipUnless(importlib.util.find_spec("torch") and importlib.util.find_spec("torch_mlir"), "no torch-mlir here")
class Exporter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.root = pathlib.Path(cls.dir.name)
        (cls.root / "models.py").write_text(MODELS)
        names = ["simple", "outputs", "noisy", "dropout", "raises", "inplace", "casts", "nan", "brain", "branches", "sparse", "bare", "hub"]
        names += ["keeps_attribute", "keeps_list", "keeps_buffer", "keeps_global", "keeps_nothing"]
        names += ["cached", "rotary", "unsafe", "tiny", "tied", "plain", "crash", "simple"]
        requests = [
            {"id": i, "source": str(cls.root / "models.py"), "symbol": n, "out": str(cls.root / n / str(i))} for i, n in enumerate(names)
        ]
        requests[0]["options"] = {"width": 5}
        requests[names.index("plain")]["dtype"] = "bf16"
        done = subprocess.run(
            [sys.executable, "-m", "benchgate_export"], cwd=PACKAGE, capture_output=True, timeout=300,
            input="".join(json.dumps(r) + "\n" for r in requests).encode(),
        )
        cls.returncode, cls.stderr = done.returncode, done.stderr.decode()
        cls.lines = [json.loads(line) for line in done.stdout.splitlines()]
        cls.answers = {names[m["id"]]: m for m in cls.lines if m.get("status") in ("ok", "failed")}

    def outcome(self, name):
        a = self.answers[name]
        return a["status"], a["stage"], a["code"]

    def test_a_plain_model(self):
        import numpy as np

        a = self.answers["simple"]
        self.assertEqual(a["status"], "ok", a)
        out = self.root / "simple" / "0"
        self.assertEqual(sorted(os.listdir(out)), ["expected0.npy", "expected64_0.npy", "input0.npy", "main.mlir"])
        self.assertEqual(a["expected"], [{"path": "expected0.npy", "shape": [2, 5], "dtype": "float32", "non-finite": 0}])
        self.assertEqual(a["output-type"], "linalg-on-tensors")
        self.assertIn("func.func @main", (out / "main.mlir").read_text())
        narrow, wide = (np.load(out / f"expected{s}0.npy", allow_pickle=False) for s in ("", "64_"))
        self.assertEqual(wide.dtype, np.float64)
        self.assertLess(abs(narrow - wide).max(), 1e-6)
        self.assertIn("hello", self.stderr)

    def test_bf16_is_raw_and_its_constants_leave_the_text(self):
        a = self.answers["brain"]
        self.assertEqual(a["status"], "ok", a)
        out = self.root / "brain" / str(a["id"])
        self.assertEqual([t["path"] for t in a["inputs"] + a["expected"]], ["input0.2x3xbf16.bin", "expected0.2x4xbf16.bin"])
        self.assertEqual((out / "expected0.2x4xbf16.bin").stat().st_size, 2 * 4 * 2)
        self.assertNotIn("dense_resource", (out / "main.mlir").read_text())
        self.assertTrue((out / "parameters.irpa").exists())

    def test_a_tied_weight_is_stored_once_and_leaves_the_text(self):
        a = self.answers["tied"]
        self.assertEqual(a["status"], "ok", a)
        out = self.root / "tied" / str(a["id"])
        self.assertNotIn("dense_resource", (out / "main.mlir").read_text())
        # The embedding is also the output layer; the third weight is another one of the same size.
        size = (out / "parameters.irpa").stat().st_size
        self.assertTrue(2 * 300 * 64 * 4 <= size < 3 * 300 * 64 * 4, size)

    def test_a_model_is_cast_with_its_reference_and_the_fp64_reference_stays(self):
        a = self.answers["plain"]
        self.assertEqual([t["dtype"] for t in a["inputs"] + a["expected"]], ["bfloat16", "bfloat16"], a)
        self.assertEqual(a["expected64"][0]["dtype"], "float64")

    def test_outputs_of_every_shape(self):
        self.assertEqual(self.outcome("outputs")[0], "ok", self.answers["outputs"])
        self.assertEqual([o["shape"] for o in self.answers["outputs"]["expected"]], [[2, 3], [2, 3], []])

    def test_what_works(self):
        for name in ("dropout", "inplace", "rotary"):
            self.assertEqual(self.outcome(name)[0], "ok", self.answers[name])

    def test_an_input_that_the_model_writes_to_is_one_more_output(self):
        for name, shapes in (("inplace", [[2, 3], [2, 3]]), ("cached", [[3, 3], [3, 3]])):
            self.assertEqual(self.outcome(name)[0], "ok", self.answers[name])
            self.assertEqual([o["shape"] for o in self.answers[name]["expected"]], shapes)

    def test_what_a_call_leaves_in_the_model_is_named(self):
        for name, kept in (("attribute", ["kept"]), ("list", ["all"]), ("buffer", ["state"]), ("global", ["LAST"]), ("nothing", [])):
            with self.subTest(name):
                self.assertEqual(self.outcome(f"keeps_{name}")[0], "ok", self.answers[f"keeps_{name}"])
                self.assertEqual(self.answers[f"keeps_{name}"]["left-out"], kept)
        self.assertEqual(self.answers["simple"]["left-out"], [])

    def test_failures_and_their_codes(self):
        for name, stage, code in [
            ("raises", "eager", "EAGER_FAILED"),
            ("tiny", "write", "UNSUPPORTED_DTYPE"),
            ("branches", "export", "TORCH_EXPORT_FAILED"),
            ("sparse", "export", "EXPORT_FAILED"),
            ("bare", "construct", "BAD_MODEL"),
            ("hub", "construct", "CONSTRUCT_FAILED"),
            ("unsafe", "construct", "CONSTRUCT_FAILED"),
        ]:
            with self.subTest(name):
                self.assertEqual(self.outcome(name), ("failed", stage, code), self.answers[name])
        self.assertIn("Weights only load failed", self.answers["unsafe"]["traceback"])
        self.assertEqual([a["output-type"] for a in self.answers["sparse"]["attempts"]], ["linalg-on-tensors", "stablehlo", "torch"])
        self.assertIn("airy_ai", self.answers["sparse"]["error"])
        self.assertIn("torch.hub", self.answers["hub"]["error"])

    def test_a_model_that_disagrees_with_itself_is_exported_without_a_reference(self):
        a = self.answers["noisy"]
        self.assertEqual(self.outcome("noisy"), ("ok", None, "NONDETERMINISTIC_EAGER_RUN"), a)
        self.assertIn("two eager runs on the same input differ", a["error"])

    def test_a_cast_inside_is_to_fp64_in_the_fp64_reference(self):
        self.assertEqual(self.answers["casts"]["expected64"][0]["dtype"], "float64", self.answers["casts"])

    def test_no_fp64_reference_is_said_and_not_fatal(self):
        a = self.answers["noisy"]
        self.assertEqual((a["status"], a["expected64"]), ("ok", None))
        self.assertIn("random numbers", a["expected64-error"])

    def test_non_finite_references_are_counted(self):
        self.assertEqual(self.answers["nan"]["expected"][0]["non-finite"], 6)

    def test_a_segfault_is_pinned_to_its_model(self):
        self.assertEqual(self.returncode, -11)
        self.assertEqual((self.lines[-1]["id"], self.lines[-1]["stage"]), (24, "construct"))


if __name__ == "__main__":
    unittest.main()
