"""The tables of the documents, made of committed records: {name: a function that gives Markdown}. See documents.py.

A table's records are files of results/; LookupError names one that is missing.
"""

import json
import pathlib
import re
import sys

import false_alarms
import hardware_check

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "notebooks"))
from attest_book.records import json_lines, read, sizes  # noqa: E402
from attest_book.statistics import geometric_mean  # noqa: E402

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
INPUTS = {"normal": "N(0, 1)", "outliers": "FlashAttention-3's outliers", "real": "real activations"}
MASKS = {"none": "full", "causal_top_left": "causal", "causal_bottom_right": "causal"}
DEFAULT = "h200/verify_no_gpu"  # .jsonl: records of the default campaign; .txt: what the same run printed
TABLES = {}


def table(make):
    """Makes the table of the function's name."""
    TABLES[make.__name__] = make
    return make


def markdown(*rows):
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * len(rows[0])) + " |")
    return "\n".join(re.sub(r"\|  (?=\|)", "| ", line) for line in lines)


def one(found, what):
    """The only item. LookupError: there is none, or more."""
    if len(found) != 1:
        raise LookupError(f"{len(found)} records of {what}, one is wanted")
    return found[0]


def found(name, **labels):
    """Measurements of the one record of results/NAME whose labels are these."""
    return one([r for r in read(RESULTS / name) if labels.items() <= r.labels.items()], f"{labels} in results/{name}").values


class Study:
    """What a study of results/h200/studies measured: kernels that were timed, points and baselines."""

    def __init__(self, name):
        self.name = name
        self.rows = [(r.labels, r.values) for r in read(RESULTS / f"h200/studies/{name}/records.jsonl")
                     if r.kind == "study" and r.verdict == "passed"]

    def codes(self, problem, kind):
        """[measurements] of decode_codes at problems whose words of codes and scales are these and no others."""
        of_codes = re.compile(r"[qkv](code|scales)_")
        return [row for labels, row in self.rows if labels["contender"] == "decode_codes"
                and set(problem) <= set(labels["problem"].split())
                and {w for w in labels["problem"].split() if of_codes.match(w) and not w.startswith("vcode_")} == set(kind)]

    def all(self, kernel, *parts):
        """[measurements] of a kernel at problems, and with Plans, that have all of `parts` as words."""
        return [row for labels, row in self.rows if labels["contender"] == kernel
                and set(parts) <= set(labels["problem"].split()) | set(labels["plan"].split())]

    def one(self, kernel, *parts):
        return one(self.all(kernel, *parts), f"{kernel} {' '.join(parts)} in the study {self.name}")


# Several GPUs: modelled, nothing measured

@table
def ring():
    """From which length on a ring's exchange hides, and what is left at 1 Mi and 10 Mi tokens."""
    lines = [line for line in json_lines(RESULTS / "model/ring.jsonl") if len(line["rows"]) > 1]  # others are one number of GPUs, for the picture
    mi = 2**20

    def line(link, heads, mask, tokens):
        problem = f"b1 h{heads} n{tokens} d128 {mask} bf16"
        return one([found for found in lines if (found["link"], found["problem"]) == (link, problem)], f"{problem} by {link}")

    def efficiencies(link, tokens):
        rows = {row["ranks"]: row["zigzag"] for row in line(link, "32/8", "causal_top_left", tokens)["rows"]}
        return " / ".join(f"{100 * rows[ranks]:.0f}" for ranks in (64, 256, 1024))

    def break_even(link, heads, mask):
        return f"{line(link, heads, mask, mi)['break_even_queries']['zigzag']:,.0f}"

    causal = "causal_top_left"
    return markdown(("a link of GB/s, as it is reached", "tokens a GPU, full, 32 heads", "causal zigzag", "the same, 8 heads of keys",
                     "of these, 1 Mi tokens on 64 / 256 / 1,024 GPUs: %", "10 Mi tokens"),
                    *((f"`{link}`, {line(link, '32/8', causal, mi)['link_bytes_per_s'] / 1e9:.3g}", break_even(link, "32/32", "none"),
                       break_even(link, "32/32", causal), break_even(link, "32/8", causal), efficiencies(link, mi), efficiencies(link, 10 * mi))
                      for link in dict.fromkeys(found["link"] for found in lines)))


# Who notices planted bugs

def kills(name, rejected_by_ours):
    """Of results/NAME: who notices the planted bugs, our layers together and alone, and rules of other projects. `rejected_by_ours(layers,
    kernels)`: how many correct launches these reject."""
    matrix = json.loads((RESULTS / name).read_text())
    mutants, correct = matrix["mutants"], matrix["correct"]
    theirs = list(mutants[0]["rules_on_normal"])
    layers = [rule for rule in mutants[0]["rules"] if rule not in theirs]

    def killed(rules, inputs="rules"):
        return str(sum(any(mutant[inputs][rule]["kills"] > 0 for rule in rules) for mutant in mutants))

    return markdown(
        ("", f"bugs killed, of {len(mutants)}", "on N(0, 1), as projects test", f"correct rejected, of {sum(kernel['cases'] for kernel in correct):,}"),
        ("**our layers together**", f"**{killed(layers)}**", "", f"**{rejected_by_ours(layers, correct)}**"),
        *((f"one layer alone: {layer}", killed([layer]), "", rejected_by_ours([layer], correct)) for layer in layers),
        (f"the {len(theirs)} rules below together", killed(theirs), killed(theirs, "rules_on_normal"), ""),
        *((rule, killed([rule]), killed([rule], "rules_on_normal"), str(sum(kernel["rules"][rule]["rejected"] for kernel in correct))) for rule in theirs))


@table
def kills_by_rule():
    """Who notices bugs of attention. Correct kernels: ours are judged in campaigns of their own, with the rate that is still possible."""
    judged, alarms = false_alarms.totals(read(RESULTS / "h200/false_alarms.jsonl"))

    def rejected(layers, correct):
        count = sum(alarms[layer.removesuffix(" laws")] for layer in layers)
        return f"{count} of {judged:,}, at most {100 * false_alarms.upper_rate(count, judged):.2g} %" if len(layers) > 1 else str(count)

    return kills("xeon-16core/kill_matrix.json", rejected)


@table
def gradient_kills_by_rule():
    """Who notices bugs of gradients."""
    return kills("xeon-16core/kill_matrix_backward.json",
                 lambda layers, correct: str(sum(kernel["rules"][layer]["rejected"] for kernel in correct for layer in layers)))


@table
def gradient_bugs_that_others_miss():
    """Planted bugs of gradients that at most one rule of another project notices on our cases: in how many cases each rule does."""
    matrix = json.loads((RESULTS / "xeon-16core/kill_matrix_backward.json").read_text())
    rules, theirs = list(matrix["mutants"][0]["rules"]), list(matrix["mutants"][0]["rules_on_normal"])
    missed = [m for m in matrix["mutants"] if sum(m["rules"][rule]["kills"] > 0 for rule in theirs) <= 1]
    return markdown(("mutant", *rules), *((m["kernel"].removeprefix("mutant/"), *(str(m["rules"][rule]["kills"]) for rule in rules)) for m in missed))


# Speed

PEERS = {"cudnn_sdpa": "cuDNN 9.28.1", "flash_attention_3": "FlashAttention-3", "torch_flash": "FlashAttention-2"}


def speeds_on_the_grid(kernel):
    """{(dim, mask, peer): speeds over it} on the 36 bf16 shapes of FlashAttention-3's grid."""
    ratios = {}
    for labels, row in Study("forward_grid").rows:
        has_groups = sizes(labels["problem"])["h"] != sizes(labels["problem"])["kv"]
        if labels["contender"] != kernel or "bf16" not in labels["problem"] or has_groups or "lengths" in labels["problem"]:
            continue
        for peer in PEERS:
            place = labels["axis.problem.head_dim"], MASKS[labels["axis.problem.mask"]], peer
            ratios.setdefault(place, []).append(row[f"speed_over_{peer}"])
    return ratios


def over_peers(kernel):
    require_library(Study("forward_grid"), "cudnn_sdpa", "cuDNN 9.28.1")
    ratios = speeds_on_the_grid(kernel)

    def cell(those):
        return f"{geometric_mean(those):.3f}x ({min(those):.2f} to {max(those):.2f})"

    rows = [(f"`{kernel}`, bf16, H200", *(f"over {name}" for name in PEERS.values()))]
    for dim in ("64", "128", "256"):
        rows += [(f"D {dim}, {mask}", *(cell(ratios[dim, mask, peer]) for peer in PEERS)) for mask in ("full", "causal")]
    everything = {peer: [x for (_, _, other), those in ratios.items() if other == peer for x in those] for peer in PEERS}
    rows.append((f"all {len(everything['cudnn_sdpa'])} shapes", *(cell(everything[peer]) for peer in PEERS)))
    return markdown(*rows)


@table
def fa3_wgmma_over_peers():
    return over_peers("fa3_wgmma")


@table
def fa2_mma_over_peers():
    return over_peers("fa2_mma")


@table
def ladder():
    """Each rung's time and rate, full and causal, beside PyTorch and cuBLAS in the same rounds."""
    study, rows = Study("ladder"), [("B 8, H 12, N 4096, D 64, fp32, H200", "full: ms", "TFLOP/s", "of PyTorch's SDPA",
                                     "causal: ms", "TFLOP/s", "of PyTorch's SDPA")]
    names = sorted({(labels["contender"], labels["plan"] if labels["contender"] == "k2_coalesced" else "") for labels, _ in study.rows},
                   key=lambda name: (not name[0].startswith("k"), int(re.sub(r"\D.*", "", name[0][1:]) or 0), name))
    for contender, plan in names:
        cells = []
        for mask in ("none", "causal_top_left"):
            row = one([row for labels, row in study.rows if labels["contender"] == contender and mask in labels["problem"].split()
                       and (not plan or labels["plan"] == plan)], f"{contender} {mask} in the study ladder")
            cells += [f"{row['time']:.4g}", f"{row['rate']:.2f}", f"{row['speed_over_torch_efficient']:.3f}"]
        rows.append((f"`{contender}`{' row_reduce=shuffle' if 'shuffle' in plan else ''}", *cells))
    return markdown(*rows)


@table
def ffma_shapes():
    study, rows = Study("ffma_shapes"), [("K10, B 8, H 12, fp32, H200", "full", "causal")]
    for dim, length in ((32, 4096), (64, 1024), (64, 4096), (64, 16384), (128, 4096)):
        found_there = [study.one("k10_wide_tiles", f"d{dim}", f"q{length}", mask) for mask in ("none", "causal_top_left")]
        rows.append((f"D {dim}, N {length}", *(f"{row['rate']:.1f} TFLOP/s, {row['speed_over_torch_efficient']:.2f}x PyTorch" for row in found_there)))
    return markdown(*rows)


def scientific(value):
    mantissa, exponent = f"{float(value):.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


@table
def speed_and_error():
    """By the formats of inputs and of products: rate, speed over PyTorch's memory-efficient SDPA on the same inputs, errors of O."""
    study = Study("speed_and_error")
    rows = [("B 2, H 16, N 4096, full, H200", "inputs", "D 64: TFLOP/s", "over PyTorch", "RMSE of O", "D 128: TFLOP/s", "over PyTorch", "RMSE of O")]
    for kernel, products, element_type in (
            ("k10_wide_tiles", "", "fp32"), ("tf32_mma", "products=tf32_x3", "fp32"), ("tf32_mma", "products=tf32", "fp32"),
            ("fp32_wgmma", "products=automatic", "fp32"), ("fp32_wgmma", "products=bf16_x6", "fp32"),
            ("fa2_mma", "", "fp16"), ("fa2_mma", "", "bf16"), ("fa3_wgmma", "", "fp16"), ("fa3_wgmma", "", "bf16")):
        cells = []
        for dim in (64, 128):
            row = study.one(kernel, f"d{dim}", "none", element_type, *filter(None, [products]))
            cells += [f"{row['rate']:.0f}", f"{row['speed_over_torch_efficient']:.2f}x", scientific(row["error.rmse"])]
        rows.append((f"`{kernel}` {products.removeprefix('products=')}".strip(), element_type, *cells))
    return markdown(*rows)


@table
def choices():
    """Time with one choice of f_controlled_pairs changed, over that with the usual one, same tiles."""
    rows = [("`f_controlled_pairs`, fp32, D 64, H200: the time takes", "full", "causal")]
    for title, plan in (("O normalised at every step", "normalise=every_step"), ("every tile masked", "masked_tiles=all"),
                        ("expf for __expf", "exp=library"), ("exp2 for __expf", "exp=exp2"), ("Q K^T formed twice", "passes=two")):
        study, usual = Study("softmax_variants"), ("normalise=at_the_end", "masked_tiles=boundary", "exp=fast", "passes=one")
        rows.append((title, *(f"{study.one('f_controlled_pairs', mask, plan)['time'] / study.one('f_controlled_pairs', mask, *usual)['time']:.3f}x"
                              for mask in ("none", "causal_top_left"))))
    loops = Study("loop_order")
    times = [loops.one("f_controlled_pairs", "b8", "q2048", order)["time"] for order in ("loop_order=keys_outside", "loop_order=queries_outside")]
    rows.append(("FA1's loop order, keys outside (B 8, H 8, N 2048)", f"{times[0] / times[1]:.1f}x", ""))
    return markdown(*rows)


@table
def grid_order():
    """A blog post's swizzle: DRAM bytes and times by order of blocks."""
    posted = {("qt64", "q_slowest"): "129.45 GB, 134.75 ms", ("qt128", "q_slowest"): "64.50 GB, 88.38 ms", ("qt128", "q_fastest"): "1.50 GB, 33.86 ms"}
    orders = {"q_slowest": "heads fastest (G3)", "q_fastest": "query tiles fastest (G2)"}
    study, rows = Study("grid_order"), [("B 8, H 32, N 8192, D 128, fp16, `fa2_mma`", "order", "DRAM read", "L2 hits", "time", "the post (H100)")]
    for (tile, order), theirs in posted.items():
        row = study.one("fa2_mma", tile, f"grid_order={order}")
        rows.append((f"tiles of {tile[2:]} rows", orders[order], f"{row['counter.dram_read_bytes'] * 1e-9:.2f} GB",
                     f"{row['counter.l2_hit_rate']:.1f} %", f"{row['time']:.1f} ms", theirs))
    return markdown(*rows)


@table
def fa3_counters():
    """fa3_wgmma beside cuDNN's kernel, as CUPTI counted them."""
    runs = {}
    for record in read(RESULTS / "h200/counters_fa3_wgmma.jsonl"):
        if record.labels["source"] == "cupti":
            runs.setdefault(record.labels["shape"], {})[record.labels["contender"]] = record.values
    columns = [("tensor pipe active", "tensor_active", 1, "{:.1f} %"), ("L2 hits", "l2_hit_rate", 1, "{:.1f} %"),
               ("DRAM read", "dram_read_bytes", 1e-9, "{:.2f} GB"), ("warps at a barrier", "stall_barrier", 1, "{:.1f} %")]
    rows = [("shape", *(f"{title}: ours, cuDNN's" for title, *_ in columns))]
    for shape, by_contender in runs.items():
        pairs = [[pattern.format(by_contender[contender][name] * scale) for contender in ("fa3_wgmma", "torch_sdpa_cudnn")]
                 for _, name, scale, pattern in columns]
        rows.append((f"{shape.split()[3]} {'full' if 'none' in shape else 'causal'}", *(", ".join(pair) for pair in pairs)))
    return markdown(*rows)


@table
def predictions():
    """How far `attest explain` is from the counters of the launches that were counted."""
    runs = hardware_check.counters_by_run(read(RESULTS / "h200/counters.jsonl"))
    explanations = json_lines(RESULTS / "h200/hardware_check.jsonl")
    rows = [(f"{len(explanations)} launches, H200", "predicted exactly", "median deviation", "largest deviation")]
    for quantity, title in (("registers", "registers"), ("global_load_sectors", "sectors of global loads"), ("shared_load_passes", "passes of shared loads"),
                            ("dram", "DRAM bytes"), ("l2_hit", "L2 hits, points")):
        apart = []
        for run, explanation in zip(runs.items(), explanations, strict=True):
            (_, kernel, plan), counters = run
            expected, counted = hardware_check.predicted(explanation)[quantity], hardware_check.measured(counters)[quantity]
            if expected and counted is not None:
                apart.append((abs(counted - expected) if quantity == "l2_hit" else abs(counted / expected - 1) * 100, f"`{kernel}` {plan}".removesuffix(" -")))
        apart.sort(key=lambda one_of: one_of[0])
        unit = "" if quantity == "l2_hit" else " %"
        rows.append((title, f"{sum(deviation == 0 for deviation, _ in apart)} of {len(apart)}", f"{apart[len(apart) // 2][0]:.2g}{unit}",
                     f"{apart[-1][0]:.3g}{unit} ({apart[-1][1]})" if apart[-1][0] else "none"))
    return markdown(*rows)


@table
def studies():
    """The shipped studies as they ran: points, and what became of the expectations."""
    rows = [("study", "question", "points timed, skipped, left out or refused", "expectations", "commit")]
    for folder in sorted((RESULTS / "h200/studies").iterdir()):
        records = [record for path in sorted(folder.glob("records*.jsonl")) for record in read(path)]
        summary = next(r for r in records if r.kind == "study_summary")
        last = {r.labels["point"]: r for r in records if r.kind == "study" and r.labels.get("role") == "point"}
        timed_points = sum(r.verdict == "passed" for r in last.values())
        skipped = sum(r.labels.get("skipped_by") in ("kernel", "constraint") for r in last.values())
        answers = {r.labels["that"]: r.labels["answer"] for r in records if r.kind == "study_answer"}
        counts = ", ".join(f"{n} {answer}" for answer in ("holds", "refuted", "undecided", "no_results")
                           if (n := sum(a == answer for a in answers.values())))
        rows.append((f"[{folder.name}](../studies/{folder.name}.yaml)", summary.labels["question"],
                     f"{timed_points}, {skipped}, {len(last) - timed_points - skipped}", counts or "none asked", summary.provenance["commit"][:7]))
    return markdown(*rows)


# Errors

@table
def errors_by_precision():
    labels = {record.labels["inputs"] for record in read(RESULTS / "h200/errors.jsonl")}
    rows = [("RMSE of O, N 512, D 64; largest error over bound", *INPUTS.values())]
    for element_type, kernel in (("fp32", "k7_shuffled_rows"), ("fp16", "fa2_mma"), ("bf16", "fa2_mma")):
        cells = []
        for inputs in INPUTS:
            of_type = f"{inputs}_{element_type}"  # some are called after their type too
            name = of_type if element_type != "fp32" and inputs != "normal" and of_type in labels else inputs
            row = found("h200/errors.jsonl", contender=kernel, element_type=element_type, tensor="O", inputs=name)
            cells.append(f"{scientific(row['rmse'])}; {float(row['error_over_bound_max']):.2f}")
        rows.append((f"{element_type}, `{kernel}`", *cells))
    return markdown(*rows)


@table
def tf32_errors():
    def cell(name, contender, plan, inputs):
        row = next(r.values for r in read(RESULTS / name) if plan in r.labels["plan"]
                   and (r.labels["contender"], r.labels["inputs"], r.labels["tensor"]) == (contender, inputs, "O"))
        over = float(row["error_over_bound_max"])
        return f"{scientific(row['rmse'])}, {over:.3f}" if over < 0.1 else f"{scientific(row['rmse'])}, {over:.2f}"

    rows = [("", *INPUTS.values())]
    for title, name, kernel, plan in (("`tf32_x3`", "h200/errors_tf32.jsonl", "tf32_mma", "tf32_x3"),
                                      ("`k10_wide_tiles`, FFMA", "h200/errors_tf32.jsonl", "k10_wide_tiles", ""),
                                      ("`tf32`", "xeon-2core/errors_tf32.jsonl", "tf32_mma", "products=tf32")):
        rows.append((title, *(cell(name, kernel, plan, inputs) for inputs in INPUTS)))
    return markdown(*rows)


# Campaigns

def verdict_of(record, outputs=("O", "LSE")):
    of, labels = record.values, record.labels
    if record.verdict != "passed":
        return f"**{record.verdict}** after {of['cases']:.0f} cases, `{labels['law']}`: {labels['what']}"
    shares = ", ".join(f"{name}/bound {of[f'worst_{name.lower()}_error_over_bound']:.3f}" for name in outputs)
    return f"passed {of['cases']:,.0f} cases; {shares}, {of['vacuous_cases']:.0f} vacuous"


@table
def cudnn_campaigns():
    runs = ("--cases 2000 --seed 7 --law L", "--cases 2000 --seed 7 --family F", "--cases 300 --max-len 700 --seed 8 --every-law --law L",
            "--cases 2000 --seed 7", "--cases 300 --max-len 700 --seed 8 --every-law")  # whose records are cudnn.jsonl, in its order
    return markdown(("`attest verify --kernel cudnn_sdpa --executor gpu` with", "result"),
                    *((f"`{options}`", verdict_of(record)) for options, record in zip(runs, read(RESULTS / "h200/cudnn.jsonl"))))


@table
def peer_campaigns():
    of = {record.labels["kernel"]: record
          for name in ("h200/verify_peers.jsonl", "h200/verify_flash_attention_3.jsonl") for record in read(RESULTS / name)}
    kernels = ("torch_flash", "flash_attention_3", "torch_efficient", "torch_cudnn", "triton_flash", "cublas_standard", "cublas_standard_tf32", "torch_math")
    return markdown(("kernel", "commit", "result"),
                    *((f"`{kernel}`", of[kernel].provenance["commit"][:7], verdict_of(of[kernel])) for kernel in kernels))


@table
def peer_backward_campaigns():
    return markdown(("kernel", "result"), *((f"`{record.labels['kernel']}`", verdict_of(record, ("dQ", "dK", "dV")))
                                            for record in read(RESULTS / "h100/verify_peers_backward.jsonl")))


@table
def peer_decode_campaigns():
    return markdown(("kernel", "commit", "result"), *((f"`{record.labels['kernel']}`", record.provenance["commit"][:7], verdict_of(record))
                                                      for record in read(RESULTS / "h200/verify_peers_decode.jsonl")))


def is_alarm(record):
    return record.verdict != "passed" and record.labels["expected"] != "yes"


@table
def campaigns():
    """Campaigns whose records are committed: what was judged, alarms, how long it took."""
    of = {
        "every law of all three layers, K1 to K3 natively": ("h200/every_law_22624", "attest verify --kernel '[!c]*' --cases 1500 --seed 7 --every-law --jobs 8"),
        "cuDNN 9.19, all three layers": ("h200/cudnn_all_layers", "attest verify --kernel cudnn_sdpa --executor gpu --cases 2000 --seed 7 --jobs 12"),
        "the default run on a GPU": ("h200/verify_default", "attest verify --executor gpu --jobs 14"),
        "the default run, no GPU": (DEFAULT, "CUDA_VISIBLE_DEVICES= attest verify --jobs 16"),
        "`fa2_mma`, every mask and shape; tensors beyond 2^31 elements": ("h200/verify_fa2", "attest verify --kernel fa2_mma --executor gpu --cases 5200 --seed 11 "
                                                                          "--jobs 16 --max-head-dim 256`; `--cases 700 --seed 5 --jobs 4 --far-on-gpu"),
        "`fa2_mma` on the executor": ("xeon-2core/verify_fa2", "attest verify --kernel fa2_mma --executor simt --cases 2200 --seed 31 --jobs 3"),
        "gradients on the CPU and the executor": ("xeon-2core/verify_backward", "attest verify --operation backward --cases 125 --seed 101`; `--seed 102`; "
                                                  "`--seed 103`; `--seed 104"),
        "GPU against executor, bit for bit": ("h200/executor_bits", "attest verify --executor gpu --kernel 'fa2_mma,k10_wide_tiles' --law executor_matches_bitwise "
                                              "--every-law --cases 1500 --jobs 16 --seed 21 --max-head-dim 256"),
        "every law, K0 to K10, `fa2_mma`, `f_controlled_pairs`": ("h200/verify_ladder", "attest verify --kernel 'k*,f2_*,fa2*,f_*' --executor gpu --cases 300 --every-law"),
    }
    rows = [("what", "cases, kernels", "alarms", "took", "machine", "command, record")]
    for what, (name, command) in of.items():
        records = read(RESULTS / f"{name}.jsonl")
        seconds = sum({r.values["campaign_time"] for r in records})
        device = next((r.provenance["device"].split(",")[0] for r in records if r.provenance["device"].startswith("NVIDIA")), "")
        rows.append((what, f"{sum(int(r.values['cases']) for r in records):,}, {len({r.labels['kernel'] for r in records})}",
                     str(sum(map(is_alarm, records))), f"{seconds // 60:.0f} min {seconds % 60:02.0f} s",
                     device or records[0].provenance["host"], f"`{command}`, `{name}.jsonl`"))
    return markdown(*rows)


@table
def long_rows():
    """FlashAttention-3's fp8 forward pass by length (experiments/long_rows.py)."""
    records = json.loads((RESULTS / "h200/long_rows.json").read_text())
    equal = {r["keys"]: r["most"] for r in records if "most" in r}
    errors = {(r["question"], r["keys"]): r["relative_rmse"] for r in records if "relative_rmse" in r}
    with_mean, without = (f"V = N(0, 1) + {mean}, N(0, 1) logits" for mean in (1, 0))
    return markdown(("keys", "O of equal weights and V = 1, where 1 is right", "relative RMSE, V = N(0, 1) + 1", "V = N(0, 1)"),
                    *((f"{keys:,}", f"{o:.4g}", *(f"{errors[name, keys]:.3f}" if (name, keys) in errors else ""
                                                  for name in (with_mean, without))) for keys, o in equal.items()))


def codes_row(study, problem, words):
    """Microseconds of decode_mma and of decode_codes with some of its kinds of codes and scales, and how often as fast."""
    of_16_bits = one(study.all("decode_mma", *problem), f"decode_mma at {problem}")["time"] * 1e3
    times = [one(found, f"decode_codes at {problem}")["time"] * 1e3 if (found := study.codes(problem, kind)) else None
             for kind in words]
    return [f"{of_16_bits:.1f}"] + [f"{t:.1f}, {of_16_bits / t:.2f}x" if t else "" for t in times]


@table
def decode_codes():
    study = Study("decode_codes")
    kinds = ((), ("kscales_row",), ("kcode_int8",))
    shapes = ((1, 4096), (1, 32768), (1, 262144), (8, 4096), (32, 4096), (64, 4096))
    return markdown(("entries", "keys", "`decode_mma` bf16, us", "e4m3, a scale a head", "e4m3, K's a key", "int8, a scale a head"),
                    *((str(batch), f"{keys:,}", *codes_row(study, (f"b{batch}", f"k{keys}"), kinds)) for batch, keys in shapes))


@table
def fp8_forward():
    """TFLOP/s of fp8_wgmma, and its speed over FlashAttention-3's pass of e4m3 in the same rounds."""
    study = Study("fp8_forward")
    lengths = (512, 1024, 2048, 4096, 8192, 16384)
    rows = [("e4m3, O in bf16, H200", *(f"N {n:,}" for n in lengths))]
    for dim in ("64", "128"):
        for mask in ("none", "causal_bottom_right"):
            those = [study.one("fp8_wgmma", f"d{dim}", f"q{n}", mask) for n in lengths]
            rows.append((f"D {dim}, {MASKS[mask]}", *(f"{row['rate']:.0f}, {row['speed_over_flash_attention_3_fp8']:.2f}x" for row in those)))
    return markdown(*rows)


@table
def served():
    """TFLOP/s of fa3_wgmma on prompts and on what diffusion models have, and its speed over peers in the same rounds."""
    study = Study("serving_and_diffusion")
    require_library(study, "cudnn_sdpa", "cuDNN 9.28.1")
    rows = [("`fa3_wgmma`, bf16, H200", "N", "TFLOP/s", "over cuDNN 9.28.1", "over FlashAttention-3")]
    for words, *which in (("one prompt, 32 heads over 8, D 128, causal", "h32/8", "d128"), ("B 2, H 24, D 64, full", "h24/24", "d64"),
                          ("B 2, H 24, D 128, full", "h24/24", "d128")):
        for length in (1024, 2048, 4096, 8192, 16384, 32768, 65536):
            for row in study.all("fa3_wgmma", *which, f"q{length}"):
                rows.append((words, f"{length:,}", f"{row['rate']:.0f}", *(f"{row[f'speed_over_{peer}']:.3f}x" for peer in ("cudnn_sdpa", "flash_attention_3"))))
                words = ""
    return markdown(*rows)


@table
def newest_peers():
    """Speeds of fa3_wgmma over the newest peers, by head dim."""
    study, peers = Study("peers_newest"), {"cudnn_sdpa": "cuDNN 9.28.1", "flash_attention_3": "FlashAttention-3", "flash_attention_4": "FlashAttention-4"}
    require_library(study, "cudnn_sdpa", "cuDNN 9.28.1")
    rows = [("`fa3_wgmma`, bf16, in graphs, H200", *(f"over {name}" for name in peers.values()))]
    for words in (("d64",), ("d128",), ("d256",), ()):
        those = study.all("fa3_wgmma", *words)
        rows.append((f"D {words[0][1:]}" if words else f"all {len(those)} shapes", *(spread([row[f"speed_over_{peer}"] for row in those]) for peer in peers)))
    return markdown(*rows)


@table
def newest_decode_peers():
    """Speeds of decode_mma over pages of 16 and 64 keys."""
    study, peers = Study("peers_newest_decode"), {"cudnn_sdpa": "cuDNN 9.28.1", "flashinfer_decode": "FlashInfer 0.7.2"}
    require_library(study, "cudnn_sdpa", "cuDNN 9.28.1")
    rows = [("`decode_mma`, bf16, in graphs, H200", *(f"over {name}" for name in peers.values()))]
    for size in ("16", "64"):
        those = [row for labels, row in study.rows if labels["contender"] == "decode_mma" and labels["axis.layout.page_size"] == size]
        rows.append((f"pages of {size}, {len(those)} shapes", *(spread([row[f"speed_over_{peer}"] for row in those]) for peer in peers)))
    return markdown(*rows)


def spread(ratios):
    return f"{geometric_mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


@table
def decode_over_peers():
    """Speed of decode_mma in graphs: over everybody, and one entry by its keys."""
    sizes_of_pages = {"0": "contiguous", "64": "pages of 64", "16": "pages of 16"}
    peers = {"cudnn_sdpa": "cuDNN 9.28.1", "flash_attention_3_kvcache": "FlashAttention-3", "torch_flash": "FlashAttention-2", "read_once": "reading alone"}
    study = Study("decode_graph")
    require_library(study, "cudnn_sdpa", "cuDNN 9.28.1")
    rows = [("13 shapes", *(f"over {name}" for name in peers.values()))]
    for size, words in sizes_of_pages.items():
        those = [row for labels, row in study.rows if labels["contender"] == "decode_mma" and labels.get("axis.layout.page_size", "0") == size]
        cells = [[row[f"speed_over_{peer}"] for row in those if f"speed_over_{peer}" in row] for peer in peers]
        rows.append((words, *(spread(cell) if len(cell) == len(those) else "" for cell in cells)))
    return markdown(*rows)


@table
def decode_by_keys():
    study = Study("decode_graph")
    rows = [("keys of one entry, 32 query heads, 8 KV heads", *(f"{words}: us | over cuDNN 9.28.1" for words in ("contiguous", "pages of 64", "pages of 16")))]
    for keys in (1024, 4096, 8192, 16384, 65536, 131072):
        cells = []
        for size in ("0", "64", "16"):
            row = one([row for labels, row in study.rows if labels["contender"] == "decode_mma" and labels.get("axis.layout.page_size", "0") == size
                       and f"b1 h32/8 q1 k{keys} " in labels["problem"] + " "], f"{keys} keys, page size {size} in the study decode_graph")
            cells.append(f"{1e3 * row['time']:.2f} | {row['speed_over_cudnn_sdpa']:.2f}")
        rows.append((f"{keys:,}", *cells))
    return markdown(tuple(" | ".join(rows[0]).split(" | ")), *rows[1:])


@table
def gradients_over_peers():
    """Rates of bwd_wgmma in TFLOP/s, and its speed over cuDNN and FlashAttention-2, by head dim, mask and length."""
    study = Study("peers_backward")
    require_library(study, "cudnn_sdpa_backward", "cuDNN 9.28.1")
    lengths = (1024, 4096, 16384)
    rows = [("`bwd_wgmma`, bf16, H200: TFLOP/s, over cuDNN 9.28.1, over FlashAttention-2", *(f"{length:,}" for length in lengths))]
    for dim in ("128", "64"):
        for mask in ("none", "causal_bottom_right"):
            those = [one([row for labels, row in study.rows if labels["contender"] == "bwd_wgmma" and labels["axis.problem.mask"] == mask
                          and labels["axis.problem.head_dim"] == dim and labels["axis.problem.length"] == str(length)], f"D {dim} {mask} {length}")
                     for length in lengths]
            rows.append((f"D {dim}, {MASKS[mask]}", *(f"{row['rate']:.0f}, {row['speed_over_cudnn_sdpa_backward']:.2f}x, {row['speed_over_torch_flash_backward']:.2f}x"
                                                      for row in those)))
    return markdown(*rows)


def require_library(study, kernel, library):
    """LookupError where a study's records of a kernel are of another version than a table's head says."""
    there = {labels.get("library") for labels, _ in study.rows if labels["contender"] == kernel}
    if there != {library}:
        raise LookupError(f"the study {study.name} measured {kernel} of {sorted(map(str, there))}, the table says {library}")


@table
def default_campaign():
    """A code block of the lines of a campaign that teach, with '...' for those between."""
    shown = ("emulated_mma_sm90", "fa2_mma", "fa3_wgmma", "k10_wide_tiles", "k1_naive", "m6_every_shape", "o1_unshifted", "o5_deferred")
    lines = (RESULTS / f"{DEFAULT}.txt").read_text().splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("kernel  "))
    end = lines.index("", head)
    printed = {line.split()[0]: line for line in lines[head + 1:end]}
    require_printed(printed, read(RESULTS / f"{DEFAULT}.jsonl"))
    failure = [line for line in lines[:head] if line.startswith(("killed", "  law", "  kernel", "  worst", "  replay"))]
    at = next(i for i, line in enumerate(failure) if line.startswith("  worst"))
    return "\n".join(["```", "$ ./attest verify --thorough", *failure[:at], "  ...", *failure[at:], "", lines[head], *(printed[name] for name in shown), "...",
                      lines[-1], "```"])


def require_printed(printed, records):
    """LookupError where the printed rows {kernel: line} are of another run than the records."""
    for record in records:
        name, of = record.labels["kernel"], record.values
        cells = printed.get(name, "").split()
        is_row = len(cells) > 8 and int(cells[2]) == of["cases"] and int(cells[8]) == of["vacuous_cases"]
        if not is_row or cells[6] not in ("-", f"{of['worst_o_error_over_bound']:.3f}"):
            raise LookupError(f"results/{DEFAULT}.txt is of another run than its records: {name} has {of['cases']:.0f} cases there; printed: {cells}")


# Claims and references

@table
def claims_by_document():
    """How many claims of each founding document have which verdict, from the table that attest claims writes."""
    verdicts = ("reproduced", "refuted", "not comparable", "open")
    rows, of = [("document", "claims", *verdicts)], {}
    for line in (RESULTS / "h200/claims.md").read_text().splitlines():
        if line.startswith("## S"):
            of = {}
            rows.append((line.removeprefix("## "), of))
        elif line.startswith("| Q"):
            verdict = re.split(r"(?<!\\) \| ", line)[4]
            of[verdict] = of.get(verdict, 0) + 1
    counts = [(title, str(sum(of.values())), *(str(of.get(verdict, 0)) for verdict in verdicts)) for title, of in rows[1:]]
    return markdown(rows[0], *counts, ("all", *(str(sum(int(row[i]) for row in counts)) for i in range(1, len(rows[0])))))


def benchmarks(name):
    return json.loads((RESULTS / name).read_text())["benchmarks"]


@table
def reference_speed():
    rows = [("N", "D", "time", "GFLOP/s")]
    for n, d in ((100, 32), (100, 64), (512, 64), (2048, 64), (2048, 128)):
        row = next(b for b in benchmarks("epyc-2core/cpu_reference_benchmark.json") if re.fullmatch(f"exact_answer_of/N:{n}/D:{d}_median", b["name"]))
        rows.append((str(n), str(d), f"{row['real_time']:.3g} ms", f"{row['flop/s'] * 1e-9:.1f}"))
    return markdown(*rows)


@table
def gpu_reference_speed():
    rows = [("every element checked, from host memory, H200", "time")]
    checks = {"check_every_element": "O and LSE", "check_every_gradient": "dQ, dK and dV"}
    for b in benchmarks("h200/gpu_reference_benchmark.json"):
        sizes = dict(re.findall(r"(\w+):(\d+)", b["name"]))
        check = checks.get(b["name"].split("/")[0])
        if check and "causal" in sizes:
            rows.append((f"{check}, N {int(sizes['N']):,}, H {sizes['H']}, D {sizes['D']}, {'causal' if sizes['causal'] == '1' else 'full'}", f"{b['real_time']:,.0f} ms"))
    return markdown(*rows)
