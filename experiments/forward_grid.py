"""Times the forward pass on FlashAttention-3's grid beside PyTorch's backends, and what grouped heads, fp16 and lengths cost.

    PYTHONPATH=experiments python3 experiments/forward_grid.py --kernel fa3_wgmma --library build/release/lib/libattest_kernels.so \
        --out forward_grid_fa3_wgmma.jsonl

The grid [FA3 §4.1]: bf16, 16,384 tokens and 2,048 columns in all (B = 16384 / N, H = 2048 / D), D 64, 128, 256, N 512 to
16,384, full and causal. Of each pair of problems everybody is timed in the same rounds, full and causal, so that every ratio
is one of neighbours. Before that, the first head of everybody's answer is held against fp32 arithmetic: the exit code is 1 where
ours errs more than twice as much, by RMSE, as that of PyTorch's flash backend. That is a check against timing nonsense; verification
is `attest verify`. Problems that the kernel refuses are left out, with one sentence a set.
"""

import json
import pathlib
import re

import torch

import timing
from attest_kernels import KernelError
from grid_shapes import SETS, dense_twin, grid, grouped_pairs, mixed_lengths, names_in, visited_share

MASKS = ("none", "causal_top_left")
FLASH, CUDNN, EFFICIENT = "torch_sdpa_flash", "torch_sdpa_cudnn", "torch_sdpa_efficient"
PEERS = {"flash": FLASH, "cudnn": CUDNN, "efficient": EFFICIENT}
WARM_UP_MS = 300
FIRST = "b32 h32 n512 d64 none bf16"  # every kernel that is raced here takes it


def warm_up():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    spent = 0.0
    while spent < WARM_UP_MS:
        spent += timing.elapsed_ms(lambda: torch.matmul(a, a), 5) * 5


def errors_of(o, q, k, v, is_causal, queries, keys):
    """(largest, RMS) of the first head's rows `queries`, which see `keys`, against fp32 arithmetic on the same 16-bit inputs."""
    q, o = (tensor[:1, :1, queries].float() for tensor in (q, o))
    k, v = (tensor[:1, :1, keys].float() for tensor in (k, v))
    s = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1]**-0.5
    if is_causal:
        s.masked_fill_(torch.ones(s.shape[-2:], device="cuda", dtype=torch.bool).triu(1), -torch.inf)
    error = o - torch.matmul(torch.softmax(s, dim=-1), v)
    return error.abs().max().item(), error.square().mean().sqrt().item()


def tuned_plans(path, kernel):
    """{text of a problem: plan} of a table that `attest tune` wrote. Where queries and keys are as many, one causal mask
    is the other."""
    def text_of(problem):
        problem = re.sub(r"\bh(\d+)/\1\b", r"h\1", problem)
        return re.sub(r"\bq(\d+) k\1\b", r"n\1", problem).replace("bottom_right", "top_left")
    rows = json.loads(pathlib.Path(path).read_text())["rows"]
    return {text_of(row["problem"]): row["plan"] for row in rows if row["kernel"] == kernel}


class Race:
    """Contenders timed in the same rounds. A contender is a (name, text of a problem)."""

    def __init__(self, library, kernel, plans):
        self.library, self.kernel, self.plans = library, kernel, plans
        self.calls, self.runs, self.flops, self.errors, self.times = {}, {}, {}, {}, {}
        self.refused = {}  # {text: why}

    def add(self, text, tensors, peers, queries=slice(None), keys=slice(None)):
        """Puts the kernel at the start, and those of `peers`, {name: call that returns O}, that take the problem. Nobody
        starts where the kernel refuses it; that it refuses a plan asked for is an error."""
        dim, is_causal = tensors[0].shape[-1], "causal" in text
        try:
            plan = self.plans.get(text, self.plans.get(dim, ""))
            run = self.library.prepare(self.kernel, text, plan, *tensors)
        except KernelError as refusal:
            if plan:
                raise
            self.refused[text] = str(refusal)
            return
        self.runs[text], self.flops[text] = run, run.flops

        def answer_of_run():
            run()
            return run.o

        for name, call in [(self.kernel, answer_of_run), *peers.items()]:
            try:
                answer = call()
            except KernelError:
                raise
            except RuntimeError as refusal:
                print(f"{text}: {name} is left out: {str(refusal).splitlines()[0]}", flush=True)
                continue
            self.calls[name, text] = run if name == self.kernel else call
            self.errors[name, text] = errors_of(answer, *tensors, is_causal, queries, keys)

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
                if peer in own and name == self.kernel:
                    rows += timing.ratio_rows(f"speed_over_{peer}", own[peer], own[name])
            rows += [(measure, error, "value") for measure, error in zip(("largest_error", "rmse"), self.errors[name, text])]
            rows += extra(name, text)
            yield ({"set": kind, "contender": name, "shape": text, "baseline": FLASH,
                    "plan": self.runs[text].plan if name == self.kernel else "-", "inputs": "normal",
                    "torch": torch.__version__, "launches": "CUDA graphs"}, rows)

    def wrong(self):
        return [text for text in self.runs
                if not self.errors[self.kernel, text][1] <= 2 * self.errors.get((FLASH, text), (float("inf"),) * 2)[1]]


def causal_over_full(race, full, causal):
    """Of every contender, and the share of tiles that the kernel's causal plan visits."""
    def extra(name, text):
        if text != causal or (name, full) not in race.times:
            return []
        rows = timing.ratio_rows("causal_over_full", race.times[name, causal], race.times[name, full])
        if name == race.kernel:
            tiles = dict(re.findall(r"\b(qt|kt)(\d+)", race.runs[text].plan))
            share = visited_share(timing.Shape(text).length, int(tiles["qt"]), int(tiles["kt"]))
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


def packed_flash(q, k, v, starts, is_causal):
    """FlashAttention-2 on entries of their own lengths. [1, heads, all rows, head_dim] each."""
    rows = [tensor[0].transpose(0, 1) for tensor in (q, k, v)]
    ends = torch.tensor(starts, device="cuda", dtype=torch.int32)
    longest = max(end - begin for begin, end in zip(starts, starts[1:]))

    def call():
        o = torch.ops.aten._flash_attention_forward(*rows, ends, ends, longest, longest, 0.0, is_causal, False)[0]
        return o.transpose(0, 1)[None]
    return call


def rate_over_dense(race, mixed, dense):
    """Of every contender: FLOPs over time with mixed lengths, over the same of equal lengths."""
    def extra(name, text):
        if text != mixed or (name, dense) not in race.times:
            return []
        work = race.flops[mixed] / race.flops[dense]
        times = race.times[name, mixed]
        rows = timing.ratio_rows("rate_over_dense", [work * t for t in race.times[name, dense]], times)
        return rows + [("flops_over_dense", work, "1")]
    return extra


def add_dense(race, texts, peers):
    tensors = {}
    for text in texts:
        shape = timing.Shape(text)
        if shape.sizes not in tensors:
            tensors[shape.sizes] = shape.tensors()
        q, k, v = tensors[shape.sizes]
        race.add(text, (q, k, v), {peer: timing.PEERS[peer](shape, q, k, v) for peer in peers})


def add_mixed(race, library, text):
    """A problem with lengths; the longest entry is checked. Returns the text of the dense problem with about its work."""
    said = library.problem(text)
    starts = said["query_starts"]
    assert starts == said["key_starts"], f"{text}: an even seed gives other keys than queries"
    generator = torch.Generator(device="cuda").manual_seed(0)
    q, k, v = (torch.randn(said[name], generator=generator, device="cuda", dtype=timing.Shape(text).dtype) for name in "qkv")
    begin, end = max(zip(starts, starts[1:]), key=lambda entry: entry[1] - entry[0])
    race.add(text, (q, k, v), {FLASH: packed_flash(q, k, v, starts, "causal" in text)}, slice(begin, end), slice(begin, end))
    return dense_twin(text, starts)


def main():
    arguments = timing.parser(__doc__.splitlines()[0])
    arguments.add_argument("--kernel", default="fa2_mma", help="default fa2_mma; attest list kernels")
    arguments.add_argument("--sets", default=SETS, type=lambda text: names_in(text, SETS), help=f"default {','.join(SETS)}")
    arguments.add_argument("--peers", default=["flash", "cudnn"], type=lambda text: names_in(text, PEERS),
                           help=f"of {','.join(PEERS)}; default flash,cudnn; flash, the baseline, always runs")
    arguments.add_argument("--plan", action="append", default=[], metavar="D:PLAN",
                           help="plan of head dim D instead of the default one, '128:qt128 kt64 w8 st2'; may be repeated")
    arguments.add_argument("--tuned", help="table of `attest tune` to take plans from, instead of the library's own")
    arguments.add_argument("--only", default="", help="regular expression: only problems whose text it matches")
    options = arguments.parse_args()
    library = timing.open_library(options.library)
    try:
        library.default_plan(options.kernel, FIRST)
    except KernelError as refusal:
        arguments.error(f"--kernel {options.kernel}: {refusal}")
    peers = [name for short, name in PEERS.items() if short in options.peers or name == FLASH]
    plans = {int(dim): plan for dim, _, plan in (text.partition(":") for text in options.plan)}
    if options.tuned:
        plans |= tuned_plans(options.tuned, options.kernel)
    failed, refused = [], {}

    def race(kind, texts, put_at_the_start, extra):
        """`put_at_the_start(race)` returns the texts that `extra` takes."""
        if kind not in options.sets or not re.search(options.only, texts[0]):
            return
        contest = Race(library, options.kernel, plans)
        try:
            texts = put_at_the_start(contest)
        except KernelError as refusal:
            print(f"{texts[0]}: {refusal}", flush=True)
            failed.append(f"{texts[0]}: not run")
            return
        refused.setdefault(kind, {}).update(contest.refused)
        contest.start(options.rounds)
        timing.report(library, options.out, "forward_grid", contest.results(kind, extra(contest, *texts)))
        failed.extend(f"{text}: errs more than twice as much as {FLASH}" for text in contest.wrong())

    def race_dense(kind, texts, peers, extra):
        def put_at_the_start(contest):
            add_dense(contest, texts, peers)
            return texts
        race(kind, texts, put_at_the_start, extra)

    def race_mixed(text):
        def put_at_the_start(contest):
            dense = add_mixed(contest, library, text)
            if text not in contest.refused:
                add_dense(contest, [dense], [FLASH])
            return [text, dense]
        race("lengths", [text], put_at_the_start, rate_over_dense)

    warm_up()
    for kind, stem, dtype in grid():
        race_dense(kind, [f"{stem} {mask} {dtype}" for mask in MASKS], peers, causal_over_full)
    for grouped, whole in grouped_pairs():
        for mask in MASKS:
            race_dense("grouped", [f"{grouped} {mask} bf16", f"{whole} {mask} bf16"],
                       [peer for peer in peers if peer != EFFICIENT], grouped_over_all)
    for stem in mixed_lengths():
        for mask in MASKS:
            race_mixed(f"{stem.replace(' lengths', f' {mask} bf16 lengths')}")
    for kind, reasons in refused.items():
        for text, reason in list(reasons.items())[:1]:
            print(f"{kind}: {len(reasons)} problems are left out, the first, {text}, because {reason}", flush=True)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
