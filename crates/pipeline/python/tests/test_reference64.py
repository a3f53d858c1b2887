"""The fp64 reference, where torch is installed; skipped elsewhere."""

import copy
import importlib.util
import unittest
import weakref
from unittest import mock

if importlib.util.find_spec("torch"):
    import torch
    from torch import nn

    class Function(nn.Module):
        def __init__(self, function, **tensors):
            super().__init__()
            self.function = function
            for name, tensor in tensors.items():
                self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

        def forward(self, *inputs):
            return self.function(self, *inputs)

    class Norm(nn.Module):
        """As the language models of Hugging Face write it."""

        def __init__(self, size):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(size))

        def forward(self, x):
            wide = x.to(torch.float32)
            return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    class Tied(nn.Module):
        """A weight in two places, a parameter next to children, and a constant in a buffer."""

        def __init__(self):
            super().__init__()
            self.embedding, self.norm, self.out = nn.Embedding(30, 8), Norm(8), nn.Linear(8, 30, bias=False)
            self.out.weight = self.embedding.weight
            self.shift = nn.Parameter(torch.randn(8))
            self.register_buffer("scale", torch.rand(8))

        def forward(self, ids):
            return self.out(self.norm(self.embedding(ids) * self.scale + self.shift))


@unittest.skipUnless(importlib.util.find_spec("torch"), "no torch here")
class Reference64(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(2, 5, 8)

    def wide(self, model, *inputs):
        from benchgate_export.reference64 import widened

        with torch.no_grad(), widened(model.eval()) as doubled:
            return doubled(*(t.double() if t.is_floating_point() else t for t in inputs))

    def assertRefused(self, words, model, *inputs):
        from benchgate_export.reference64 import NotWide

        with self.assertRaisesRegex(NotWide, words):
            self.wide(model, *inputs)

    def test_a_model_without_casts_is_what_double_makes_of_it(self):
        class Recurrent(nn.LSTM):
            def forward(self, x):
                return super().forward(x)[0]

        attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        masked = Function(lambda m, x: nn.functional.scaled_dot_product_attention(x, x, x, torch.ones(5, 5, dtype=torch.bool).tril()))
        normalised = nn.Sequential(nn.Conv1d(5, 4, 3), nn.BatchNorm1d(4), nn.GELU(), nn.Linear(6, 3))
        for model in (attention, masked, normalised, Recurrent(8, 6, 2, batch_first=True)):
            with self.subTest(type(model).__name__):
                with torch.no_grad():
                    expected = copy.deepcopy(model).eval().double()(self.x.double())
                torch.testing.assert_close(self.wide(model, self.x), expected, rtol=1e-14, atol=1e-14)
                self.assertLessEqual({p.dtype for p in model.parameters()}, {torch.float32}, "the model stays as it is")

    def test_casts_inside_are_to_fp64_and_a_tied_weight_stays_tied(self):
        ids = torch.arange(6)
        for dtype in (torch.float32, torch.bfloat16):
            model = Tied().to(dtype)
            found = self.wide(model, ids)
            e, w, b, s = (t.detach().double() for t in (model.embedding.weight, model.norm.weight, model.shift, model.scale))
            h = e[ids] * s + b
            expected = (w * h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)) @ e.T
            self.assertEqual(found.dtype, torch.float64)
            torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)

    def test_a_quotient_of_integers_and_a_constant_of_the_model_are_wide(self):
        model = Function(lambda m, x: x * (torch.tensor(1) / torch.tensor(3)) + torch.ones(8, dtype=torch.float32) / 3)
        torch.testing.assert_close(self.wide(model, self.x), (self.x.double() + 1) / 3, rtol=1e-14, atol=1e-14)

    def test_rounding_that_is_part_of_the_function_stays(self):
        model = Function(lambda m, x: (x * 10).round().to(torch.int8).float() / 10)
        expected = (self.x.double() * 10).round() / 10
        self.assertTrue(torch.equal(self.wide(model, self.x), expected))

    def test_one_parameter_at_a_time_exists_in_fp64(self):
        from benchgate_export import reference64

        model, size = nn.Sequential(*(nn.Linear(64, 64, bias=False) for _ in range(8))), 64 * 64
        alive, most, make = [], 0, reference64._wide

        def counted(value):
            nonlocal most
            made = make(value)
            if isinstance(made, torch.Tensor) and made.numel() == size:
                alive.append(weakref.ref(made.untyped_storage()))
                most = max(most, len({s.data_ptr() for s in (ref() for ref in alive) if s is not None}))
            return made

        with mock.patch.object(reference64, "_wide", counted):
            self.wide(model, torch.randn(2, 64))
        self.assertGreaterEqual(len(alive), 8)
        self.assertEqual(most, 1)

    def test_a_buffer_that_the_model_writes_is_its_copys(self):
        model = Function(lambda m, x: m.seen.add_(x.mean()) + x)
        model.register_buffer("seen", torch.zeros(1))
        self.assertEqual(self.wide(model, self.x).dtype, torch.float64)
        self.assertEqual(float(model.seen), 0.0)

    def test_no_reference_where_the_run_would_not_be_one(self):
        @torch.library.custom_op("benchgate_test::narrow", mutates_args=())
        def narrow(x: torch.Tensor) -> torch.Tensor:
            return x.float() * 2

        self.assertRefused("returns torch.float32", Function(lambda m, x: torch.ops.benchgate_test.narrow(x)), self.x)
        self.assertRefused("random numbers", Function(lambda m, x: x + torch.rand(8)), self.x)
        self.assertRefused("reads the bits", Function(lambda m, x: x.view(torch.int32)), self.x)
        self.assertRefused("writes into", Function(lambda m, x: m.w.mul_(2) + x, w=torch.ones(8)), self.x)
        self.assertEqual(torch.get_default_dtype(), torch.float32)


if __name__ == "__main__":
    unittest.main()
