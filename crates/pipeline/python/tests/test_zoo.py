"""What the zoo's quantised models promise, where torch and transformers are installed; skipped elsewhere."""

import copy
import importlib
import importlib.util
import pathlib
import unittest

HERE = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
if HERE:
    import torch
    from benchgate_export import zoo
    from benchgate_export.zoo import _llama, _quantised, llama_qlora, llama_spinquant


@unittest.skipUnless(HERE, "no torch and transformers here")
class Quantised(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_rotations_leave_the_function_as_it_is(self):
        model = _llama.half("small", "random")
        for name, parameter in model.named_parameters():
            # A new norm has a scale of one, which would hide that the scale was not merged.
            if "norm" in name:
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        ids, mask = _llama.inputs("small", None)
        with torch.no_grad():
            expected = model(input_ids=ids, attention_mask=mask).logits
            rotated = llama_spinquant.rotate(copy.deepcopy(model))
            found = rotated(input_ids=ids, attention_mask=mask).logits
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
        changed = [name for name, p in rotated.named_parameters() if not torch.equal(p, dict(model.named_parameters()).get(name, p))]
        self.assertEqual(len([name for name in changed if name.endswith("proj.weight")]), 2 * 6, "all but the wrapped ones")

    def test_hadamard_matrices_are_orthogonal_and_symmetric_also_at_full_size(self):
        for size in (1, 12, 128, 3072):
            matrix = llama_spinquant.hadamard(size).double()
            self.assertTrue(torch.equal(matrix, matrix.T))
            self.assertEqual(matrix.abs().unique().numel(), 1)
            torch.testing.assert_close(matrix @ matrix, torch.eye(size, dtype=torch.float64), rtol=0, atol=1e-6)
        for size in (128, 3072, 8192):
            rotation, x = llama_spinquant.Rotation(size), torch.randn(2, size)
            # Sums of thousands of f32 terms in another order; a wrong rotation is off by about 1.
            torch.testing.assert_close(rotation(x), x @ torch.kron(rotation.left, rotation.right), rtol=0, atol=1e-4)
            torch.testing.assert_close(rotation(rotation(x)), x, rtol=0, atol=1e-5)
        with self.assertRaises(ValueError):
            llama_spinquant.hadamard(20)

    def test_every_linear_layer_and_the_embedding_is_quantised(self):
        for make in (llama_qlora.make, llama_spinquant.make):
            model, _ = make()
            kinds = [type(m) for m in model.modules()]
            self.assertEqual(kinds.count(_quantised.QuantisedLinear), 2 * 7 + 1)
            self.assertEqual(kinds.count(_quantised.QuantisedEmbedding), 1)
            # Only the adapters are left: two for each linear layer of a block.
            self.assertEqual(kinds.count(torch.nn.Linear), 2 * 7 * 2 if make is llama_qlora.make else 0)

    @unittest.skipUnless(importlib.util.find_spec("torchao"), "no torchao here")
    def test_the_arithmetic_is_that_of_torchao(self):
        from torchao.quantization.quantize_.workflows.intx import intx_unpacked_to_int8_tensor as torchao

        weight = torch.randn(64, 128)
        for bits, group in ((4, 32), (8, 128)):
            values, scales = _quantised.quantised(weight, bits, group)
            expected = torchao.IntxUnpackedToInt8Tensor.from_hp(weight, (1, group), getattr(torch, f"int{bits}"))
            self.assertTrue(torch.equal(values, expected.qdata) and torch.equal(scales, expected.scale))
        x = torch.randn(3, 5, 128) + 1
        self.assertTrue(torch.equal(_quantised.per_token(x), torchao._apply_int8_act_asym_per_token_quant_dequant(x)))


@unittest.skipUnless(HERE, "no torch and transformers here")
class References(unittest.TestCase):
    def test_random_weights_give_outputs_that_a_tolerance_tells_from_zero(self):
        folder = pathlib.Path(zoo.__file__).parent
        for path in sorted(folder.glob("[!_]*.py")):
            if not (importlib.util.find_spec("torch_geometric") or path.stem not in ("gat", "gatv2", "gcn", "graphsage")):
                continue
            with self.subTest(path.stem):
                torch.manual_seed(0)
                model, inputs = importlib.import_module(f"benchgate_export.zoo.{path.stem}").make("small", "random")
                with torch.no_grad():
                    output = model.eval()(*inputs)
                output = getattr(output, "logits", output)
                output = output[0] if isinstance(output, (tuple, list)) else output
                self.assertGreater(float(output.float().pow(2).mean().sqrt()), 1e-2)


if __name__ == "__main__":
    unittest.main()
