"""Times the forward pass on FlashAttention-3's grid beside PyTorch's backends, and what grouped heads, fp16 and lengths cost.

    PYTHONPATH=experiments python3 experiments/forward_grid.py --library build/release/lib/libattest_kernels.so --out forward_grid.jsonl

The grid [FA3 §4.1]: bf16, 16,384 tokens and 2,048 columns in all (B = 16384 / N, H = 2048 / D), D 64, 128, 256, N 512 to
16,384, full and causal. Of each pair of shapes everybody is timed in the same rounds, full and causal, so that every ratio
is one of neighbours. Before that, the first head of everybody's answer is held against fp32 arithmetic: the exit code is 1 where
ours errs more than twice as much as that of PyTorch's flash backend. That is a check against timing nonsense; verification
is `attest verify`.
"""

import re

import torch

import timing
from attest_kernels import KernelError
from grid_shapes import grid, grouped_pairs, visited_share

KERNEL = "fa2_mma"
MASKS = ("none", "causal_top_left")
FLASH, CUDNN, EFFICIENT = "torch_sdpa_flash", "torch_sdpa_cudnn", "torch_sdpa_efficient"
WARM_UP_MS = 300


def warm_up():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    spent = 0.0
    while spent < WARM_UP_MS:
        spent += timing.elapsed_ms(lambda: torch.matmul(a, a), 5) * 5


def largest_error(o, shape, q, k, v):
    """Of the first head of the first batch entry, against fp32 arithmetic on the same 16-bit inputs."""
    q, k, v = (tensor[:1, :1].float() for tensor in (q, k, v))
    s = torch.matmul(q, k.transpose(-1, -2)) * shape.dim**-0.5
    if shape.is_causal:
        s.masked_fill_(torch.ones(s.shape[-2:], device="cuda", dtype=torch.bool).triu(1), -torch.inf)
    return (o[:1, :1].float() - torch.matmul(torch.softmax(s, dim=-1), v)).abs().max().item()


class Race:
    """Contenders on the shapes that `texts` name, timed in the same rounds. A contender is a (name, shape text)."""

    def __init__(self, library, plans):
        self.library, self.plans = library, plans
        self.shapes, self.calls, self.runs, self.flops, self.errors, self.times = {}, {}, {}, {}, {}, {}

    def add(self, shape, peers, q, k, v):
        """Puts the kernel and those of `peers` that take the shape at the start."""
        text = shape.text
        run = self.library.prepare(KERNEL, text, self.plans.get(shape.dim, ""), q, k, v)
        self.runs[text], self.shapes[text], self.flops[text] = run, shape, run.flops
        run()
        self.calls[KERNEL, text] = run
        self.errors[KERNEL, text] = largest_error(run.o, shape, q, k, v)
        for peer in peers:
            call = timing.PEERS[peer](shape, q, k, v)
            try:
                answer = call()
            except RuntimeError as refusal:
                print(f"{text}: {peer} is left out: {str(refusal).splitlines()[0]}", flush=True)
                continue
            self.calls[peer, text] = call
            self.errors[peer, text] = largest_error(answer, shape, q, k, v)

    def start(self, rounds):
        self.times = timing.interleaved(self.calls, rounds, as_graphs=True)
        for run in self.runs.values():
            run.close()

    def results(self, kind, extra=lambda name, text: []):
        """(labels, measurements), one a contender; `extra` may add measurements."""
        for name, text in self.calls:
            own = {other: times for (other, where), times in self.times.items() if where == text}
            rows = timing.measurements(own, name, self.flops[text], FLASH)
            for peer in (CUDNN, EFFICIENT):
                if peer in own and name == KERNEL:
                    rows += timing.ratio_rows(f"speed_over_{peer}", own[peer], own[name])
            rows += [("largest_error", self.errors[name, text], "value")] + extra(name, text)
            yield ({"set": kind, "contender": name, "shape": text, "baseline": FLASH,
                    "plan": self.runs[text].plan if name == KERNEL else "-", "inputs": "normal",
                    "torch": torch.__version__, "launches": "CUDA graphs"}, rows)

    def wrong(self):
        return [text for text in self.runs
                if not self.errors[KERNEL, text] <= 2 * self.errors.get((FLASH, text), float("inf"))]


def causal_over_full(race, full, causal):
    """Of every contender, and the share of tiles that the kernel's causal plan visits."""
    def extra(name, text):
        if text != causal or (name, full) not in race.times:
            return []
        rows = timing.ratio_rows("causal_over_full", race.times[name, causal], race.times[name, full])
        if name == KERNEL:
            tiles = dict(re.findall(r"\b(qt|kt)(\d+)", race.runs[text].plan))
            share = visited_share(race.shapes[text].length, int(tiles["qt"]), int(tiles["kt"]))
            rows.append(("causal_tiles_over_full", share, "1"))
        return rows
    return extra


def grouped_over_all(race, grouped, whole):
    """Of every contender: time with grouped heads over that with as many key heads as query heads."""
    def extra(name, text):
        if text != grouped or (name, whole) not in race.times:
            return []
        return timing.ratio_rows("grouped_over_all_heads", race.times[name, grouped], race.times[name, whole])
    return extra


def main():
    arguments = timing.parser(__doc__.splitlines()[0])
    arguments.add_argument("--plan", action="append", default=[], metavar="D:PLAN",
                           help="plan of head dim D instead of the default one, '128:qt128 kt64 w8 st2'; may be repeated")
    arguments.add_argument("--only", default="", help="regular expression: only shapes whose text it matches")
    options = arguments.parse_args()
    library = timing.open_library(options.library)
    plans = {int(dim): plan for dim, _, plan in (text.partition(":") for text in options.plan)}
    failed = []

    def race(kind, texts, peers, extra):
        if not all(re.search(options.only, text) for text in texts):
            return
        contest, tensors = Race(library, plans), {}
        try:
            for text in texts:
                shape = timing.Shape(text)
                if shape.sizes not in tensors:
                    tensors[shape.sizes] = shape.tensors()
                contest.add(shape, peers, *tensors[shape.sizes])
        except KernelError as refusal:
            print(f"{text}: {refusal}", flush=True)
            failed.append(f"{text}: not run")
            return
        contest.start(options.rounds)
        timing.report(library, options.out, "forward_grid", contest.results(kind, extra(contest, *texts)))
        failed.extend(f"{text}: errs more than twice as much as {FLASH}" for text in contest.wrong())

    warm_up()
    for kind, stem, dtype in grid():
        race(kind, [f"{stem} {mask} {dtype}" for mask in MASKS], [FLASH, CUDNN, EFFICIENT], causal_over_full)
    for grouped, whole in grouped_pairs():
        for mask in MASKS:
            race("grouped", [f"{grouped} {mask} bf16", f"{whole} {mask} bf16"], [FLASH, CUDNN], grouped_over_all)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
