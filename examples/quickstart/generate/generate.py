#!/usr/bin/env python3
"""Re-creates models/*.mlir and data/* of the quickstart suite.

The suite runs without this script, because its output is checked in. It needs Python 3.11, x86-64 Linux and, in
one environment (torch brings about 5 GB):

    pip install torch==2.15.0 torch-mlir==20261001 numpy==2.4.6 packaging==26.3 \
        iree-base-runtime==3.13.0
    python generate.py [--out DIR] [MODEL ...]

The weights are ordinary seeded torch weights; they go to `data/<model>.irpa` and the MLIR loads them
as parameters of scope `model`. Splat weights would make all output columns equal and hide numeric
faults. References are the eager fp64 result rounded to fp32.

With the versions above, two runs on one machine give the same bytes. On another CPU torch may pick other fp64
kernels, and then the last bit of a reference can differ: that much is not promised.
"""

import argparse
import copy
import pathlib
import re
import sys

import iree.runtime as rt
import numpy as np
import torch
from torch import nn
from torch_mlir import fx

SEED = 20261120


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        return self.proj(y.transpose(1, 2).reshape(b, n, c))


class VitBlock(nn.Module):
    """A pre-norm ViT layer on 196 patches and a class token: the odd 197 is what makes it hard."""

    def __init__(self, dim=192, heads=4, hidden=192, depth=1):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "n1": nn.LayerNorm(dim),
                    "attn": Attention(dim, heads),
                    "n2": nn.LayerNorm(dim),
                    "mlp": nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)),
                }
            )
            for _ in range(depth)
        )

    def forward(self, x):
        for layer in self.layers:
            x = x + layer["attn"](layer["n1"](x))
            x = x + layer["mlp"](layer["n2"](x))
        return x


class ConvBlock(nn.Module):
    """A residual block as in ResNet-18's second stage, with batch norm in inference form."""

    def __init__(self, channels=64):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        for bn in (self.bn1, self.bn2):
            nn.init.uniform_(bn.weight, 0.5, 1.5)
            nn.init.normal_(bn.bias, std=0.1)
            nn.init.normal_(bn.running_mean, std=0.1)
            nn.init.uniform_(bn.running_var, 0.5, 1.5)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(y)))


def mlp(dim=128, hidden=512, out=64):
    return nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, out))


def transformer_layer(dim=128, heads=4, hidden=256):
    return nn.TransformerEncoderLayer(
        dim, heads, hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )


class PairwiseL1(nn.Module):
    """L1 distances of a batch of vectors to seeded prototypes: a fused reduction, no matrix product."""

    def __init__(self, prototypes=256, dim=256):
        super().__init__()
        self.prototypes = nn.Parameter(torch.randn(prototypes, dim))

    def forward(self, x):
        return (x[:, None] - self.prototypes[None]).abs().mean(-1)


# name → (constructor, input shape, torch-mlir output type)
MODELS = {
    "vit-block": (VitBlock, (1, 197, 192), "linalg-on-tensors"),
    "pairwise-l1": (PairwiseL1, (128, 256), "linalg-on-tensors"),
    "conv-block": (ConvBlock, (1, 64, 28, 28), "linalg-on-tensors"),
    "mlp": (mlp, (256, 128), "linalg-on-tensors"),
    "transformer-layer": (transformer_layer, (1, 256, 128), "linalg-on-tensors"),
}

RESOURCE = re.compile(r'^ +([\w.$-]+|"[^"]+"): "0x([0-9A-Fa-f]*)",?$')


def externalise(text, minimum=64):
    """Turns dense_resource constants into parameters: returns the MLIR and {name: bytes}.

    Names are w0, w1, … in order of use, so they do not depend on torch-mlir's own hashes."""
    body, found, tail = text.partition("{-#")
    blobs = {}
    for line in tail.splitlines():
        m = RESOURCE.match(line)
        if m:
            blobs[m.group(1)] = bytes.fromhex(m.group(2))[4:]  # the first four bytes are the alignment
    names, types = {}, {}

    def use(m):
        op, key, ty, result = m.groups()
        name = names.setdefault(key, f"w{len(names)}")
        types[name] = ty
        if op == "arith.constant":
            return f"util.global.load @{name} : {ty}"
        raise ValueError(f"{op} of a resource")

    body = re.sub(r"(arith\.constant) dense_resource<([^>]+)> : (tensor<[^>]+>)()", use, body)
    if "dense_resource" in body:
        raise ValueError("a resource constant that is not an arith.constant")
    globals_ = "".join(
        f'  util.global private @{n} = #flow.parameter.named<"model"::"{n}"> : {t}\n' for n, t in types.items()
    )
    # After the alias lines, the first `module {`.
    body = re.sub(r"^(module[^\n]*\{\n)", lambda m: m.group(1) + globals_, body, count=1, flags=re.M)
    return body, {names[k]: blobs[k] for k in names}


def write_irpa(path, tensors):
    index = rt.ParameterIndex()
    for name, data in tensors.items():
        index.add_buffer(name, data)
    index.create_archive_file(str(path))
    path.chmod(0o644)


def build(name):
    make, shape, output_type = MODELS[name]
    torch.manual_seed(SEED)
    module = make().eval()
    x = torch.randn(shape)
    with torch.no_grad():
        expected = copy.deepcopy(module).double()(x.double()).float()
        mlir = str(fx.export_and_import(module, x, output_type=output_type, func_name="main"))
    return mlir, x.numpy(), expected.numpy()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    p.add_argument("models", nargs="*", choices=[[], *MODELS], default=[])
    a = p.parse_args()
    for name in a.models or MODELS:
        mlir, x, y = build(name)
        body, weights = externalise(mlir)
        (a.out / "models").mkdir(parents=True, exist_ok=True)
        (a.out / "data").mkdir(parents=True, exist_ok=True)
        (a.out / "models" / f"{name}.mlir").write_text(body)
        np.save(a.out / "data" / f"{name}.input0.npy", x)
        np.save(a.out / "data" / f"{name}.output0.npy", y)
        write_irpa(a.out / "data" / f"{name}.irpa", weights)


if __name__ == "__main__":
    sys.exit(main())
