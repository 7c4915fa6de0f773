"""Times contenders side by side on one GPU: interleaved, in random order, medians and ratios.

A contender is a kernel of this repository or a function of PyTorch on the same tensors. Each round times every
contender once, in an order drawn anew, so that drifts of clock and temperature meet all of them; ratios are formed
within a round. A time is the mean over as many launches as fill about two milliseconds, by CUDA events.
"""

import argparse
import math
import random
import re

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attest_kernels import Library
from median_interval import FEWEST_VALUES, median_interval

SHORTEST_BLOCK_MS = 2.0
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Shape:
    """`b8 h12 n4096 d64 causal_top_left fp32`, the text of a Problem with equal query and key lengths; `h16/2`: 2 key heads."""

    def __init__(self, text):
        self.text = text
        sizes = dict(re.findall(r"\b([bhnd])(\d+)\b", text))
        self.batch, self.heads, self.length, self.dim = (int(sizes[letter]) for letter in "bhnd")
        grouped = re.search(r"\bh\d+/(\d+)\b", text)
        self.key_heads = int(grouped.group(1)) if grouped else self.heads
        self.sizes = (self.batch, self.heads, self.key_heads, self.length, self.dim)
        self.is_causal = "causal" in text
        self.dtype = DTYPES[next((part for part in text.replace(",", " ").split() if part in DTYPES), "fp32")]

    def tensors(self, seed=0):
        generator = torch.Generator(device="cuda").manual_seed(seed)
        return [torch.randn((self.batch, heads, self.length, self.dim), generator=generator, device="cuda", dtype=self.dtype)
                for heads in (self.heads, self.key_heads, self.key_heads)]


def sdpa(backend):
    def make(shape, q, k, v):
        def call():
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, is_causal=shape.is_causal,
                                                    enable_gqa=shape.heads != shape.key_heads)
        return call
    return make


def eager(shape, q, k, v):
    """Three operations, S and P in device memory."""
    hidden = torch.ones(shape.length, shape.length, device="cuda", dtype=torch.bool).triu(1) if shape.is_causal else None

    def call():
        s = torch.matmul(q, k.transpose(-1, -2)) * shape.dim**-0.5
        if hidden is not None:
            s = s.masked_fill(hidden, -math.inf)
        return torch.matmul(torch.softmax(s, dim=-1), v)
    return call


PEERS = {
    "torch_sdpa_efficient": sdpa(SDPBackend.EFFICIENT_ATTENTION),
    "torch_sdpa_cudnn": sdpa(SDPBackend.CUDNN_ATTENTION),
    "torch_sdpa_flash": sdpa(SDPBackend.FLASH_ATTENTION),
    "torch_sdpa_math": sdpa(SDPBackend.MATH),
    "torch_eager": eager,
}


def matrix_product(size):
    """PyTorch's fp32 matrix product of that size (cuBLAS): what the FP32 pipes give at best. (call, FLOPs)."""
    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    return (lambda: torch.matmul(a, b)), 2.0 * size**3


def repeated(call, launches):
    def block():
        for _ in range(launches):
            call()
    return block


def elapsed_ms(call, launches):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    repeated(call, launches)()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / launches


def replayed(call, launches):
    """`launches` calls as one CUDA graph in the current stream: the host's time for a launch, which differs between
    contenders and exceeds the smallest kernels' own, drops out."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(launches):
            call()
    return graph.replay


def interleaved(calls, rounds, seed=0, as_graphs=False):
    """{name: call} -> {name: [ms, one a round]}."""
    launches, blocks = {}, {}
    for name, call in calls.items():
        call()  # compiles, allocates
        launches[name] = max(1, math.ceil(SHORTEST_BLOCK_MS / elapsed_ms(call, 1)))
        blocks[name] = replayed(call, launches[name]) if as_graphs else repeated(call, launches[name])
        blocks[name]()
    order, draw = list(calls), random.Random(seed)
    times = {name: [] for name in calls}
    for _ in range(rounds):
        draw.shuffle(order)
        for name in order:
            times[name].append(elapsed_ms(blocks[name], 1) / launches[name])
    return times


def ratio_rows(name, above, below):
    """Median of above / below by rounds, with its interval."""
    median, low, high = median_interval([a / b for a, b in zip(above, below)])
    return [(name, median, "1"), (f"{name}_low", low, "1"), (f"{name}_high", high, "1")]


def measurements(times, name, flops, baseline):
    median, low, high = median_interval(times[name])
    rows = [("time", median, "ms"), ("time_low", low, "ms"), ("time_high", high, "ms"),
            ("rounds", len(times[name]), "1"), ("rate", flops / median * 1e-9, "TFLOP/s")]
    if baseline in times:
        rows += ratio_rows("speed_over_baseline", times[baseline], times[name])
    return rows


def time_shape(library, shape_text, kernels, peers, baseline, rounds, extra=()):
    """Times (kernel, plan) pairs and peers on one shape; yields (labels, measurements), one a contender.

    `baseline` is the name of a contender; None: the first kernel. `extra`: {name: (call, flops)} of contenders that are no attention. Every record names the baseline and its time
    comes from the same rounds.
    """
    shape = Shape(shape_text)
    q, k, v = shape.tensors()
    runs = {}
    for kernel, plan in kernels:
        run = library.prepare(kernel, shape_text, plan, q, k, v)
        runs[f"{kernel} {run.plan}"] = run
    baseline = baseline or next(iter(runs))
    flops = {name: run.flops for name, run in runs.items()}
    calls = dict(runs)
    for peer in peers:
        calls[peer] = PEERS[peer](shape, q, k, v)
        flops[peer] = next(iter(flops.values()))
    for name, (call, operations) in dict(extra).items():
        calls[name], flops[name] = call, operations
    times = interleaved(calls, rounds)
    for name in calls:
        labels = {"contender": name.split(" ")[0], "shape": shape_text, "baseline": baseline,
                  "plan": runs[name].plan if name in runs else "-",
                  "inputs": "normal", "torch": torch.__version__, "tf32": "off"}
        yield labels, measurements(times, name, flops[name], baseline)
    for run in runs.values():
        run.close()


def open_library(path):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    library = Library(path)
    torch.cuda.set_stream(library.stream)
    return library


def parser(description):
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--library", required=True, help="libattest_kernels.so")
    arguments.add_argument("--out", required=True, help="records are appended to this file (JSONL)")
    arguments.add_argument("--rounds", type=int, default=20, choices=range(FEWEST_VALUES, 1001), metavar="N",
                           help=f"times each contender is timed, {FEWEST_VALUES} to 1000; default 20")
    return arguments


def report(library, out, kind, results):
    for labels, rows in results:
        library.append_record(out, kind, labels, rows)
        values = {name: value for name, value, _ in rows}
        print(f"{labels['shape']:36} {labels['contender']:24} {labels['plan']:44} {values['time']:9.3f} ms "
              f"{values['rate']:7.2f} TFLOP/s {values.get('speed_over_baseline', float('nan')):6.3f}x", flush=True)
