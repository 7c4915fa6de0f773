"""The tables of the documents, made of committed records: {name: a function that gives Markdown}. See documents.py."""

import json
import pathlib
import re

import false_alarms
import forward_grid_tables
import hardware_check
import ladder_report
from records import counters_by_run, geometric_mean, read, values

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
MASKS = ladder_report.MASKS
LADDER_DIMS = (64, 128, 32)
POST = "b8 h32 n8192 d128 none fp16"
# DRAM read in GB and time in ms, as a blog post gives them for an H100 [S0].
POSTED = {("qt64", "q_slowest"): (129.45, 134.75), ("qt128", "q_slowest"): (64.50, 88.38), ("qt128", "q_fastest"): (1.50, 33.86)}
ORDERS = {"q_slowest": "heads fastest (G3)", "q_fastest": "query tiles fastest (G2)"}
INPUTS = {"normal": "N(0, 1)", "outliers": "FlashAttention-3's outliers", "real": "real activations"}


def found(name, **labels):
    """Measurements of the one record of results/NAME whose labels are these. LookupError: there is none, or more."""
    matching = [record for record in read(RESULTS / name) if labels.items() <= record["labels"].items()]
    if len(matching) != 1:
        raise LookupError(f"results/{name}: {len(matching)} records of {labels}")
    return values(matching[0])


def timed(name, contender, shape, plan="", whole_end=False):
    """Measurements of the first record of a contender at a shape whose plan has `plan` in it, or ends with it."""
    for record in read(RESULTS / name):
        labels = record["labels"]
        has_plan = labels["plan"].endswith(plan) if whole_end else plan in labels["plan"]
        if (labels["contender"], labels["shape"]) == (contender, shape) and has_plan:
            return values(record)
    raise LookupError(f"results/{name}: no record of {contender} at {shape}, plan {plan}")


def markdown(*rows):
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * len(rows[0])) + " |")
    return "\n".join(re.sub(r"\|  (?=\|)", "| ", line) for line in lines)


def posted_swizzle():
    """A blog post's swizzle, predicted and measured."""
    explanations = {(e["kernel"], e["plan"]): e for e in read(RESULTS / "h200/hardware_check.jsonl")}
    runs = counters_by_run(read(RESULTS / "h200/counters.jsonl"))
    rows = [("tiles of", "order", "DRAM: predicted, measured", "L2 hits: predicted, measured", "time",
             "the post (H100): DRAM read, time")]
    for (tile, order), (read_gb, time_ms) in POSTED.items():
        plan = next(plan for shape, kernel, plan in runs if shape == POST and plan.startswith(tile) and order in plan)
        expected = hardware_check.predicted(explanations["fa2_mma", plan])
        counted = hardware_check.measured(runs[POST, "fa2_mma", plan])
        time = timed("h200/grid_orders.jsonl", "fa2_mma", POST, plan)["time"]
        rows.append((f"{tile[2:]} rows", ORDERS[order], f"{expected['dram'] * 1e-9:.3g} GB, {counted['dram'] * 1e-9:.3g} GB",
                     f"{expected['l2_hit']:.1f} %, {counted['l2_hit']:.1f} %", f"{time:.1f} ms", f"{read_gb:.2f}, {time_ms:.2f} ms"))
    return markdown(*rows)


def ladder_at_the_top():
    """K10 beside PyTorch and cuBLAS, by head dim."""
    rows = [("H200, B 8, H 12, N 4096", *MASKS.values())]
    sdpa, sgemm = " PyTorch's fp32 SDPA", " of cuBLAS's fp32 8192³"
    for dim in LADDER_DIMS:
        cells = []
        for mask in MASKS:
            shape = f"b8 h12 n4096 d{dim} {mask} fp32"
            own, cublas = (timed("h200/ladder.jsonl", name, shape) for name in ("k10_wide_tiles", "cublas_sgemm_8192"))
            over = f"{own['speed_over_baseline']:.2f}x"
            first = not cells and dim == LADDER_DIMS[0]
            cells.append(f"{own['rate']:.1f}{' TFLOP/s' if first else ''}, {f'**{over}**' if dim == 64 else over}"
                         f"{sdpa if first else ''}, {100 * own['rate'] / cublas['rate']:.0f} %{sgemm if first else ''}")
        rows.append((f"K10, D {dim}", *cells))
    return markdown(*rows)


def forward_grid_over_fa2():
    """Geometric mean, smallest and largest speed over FlashAttention-2, by head dim and mask."""
    shapes = forward_grid_tables.by_set(read(RESULTS / "h200/forward_grid.jsonl"))["grid"]
    rows = [("H200, bf16", *MASKS.values())]
    for dim in forward_grid_tables.DIMS:
        cells = []
        for mask in MASKS:
            ratios = [forward_grid_tables.speeds(shape, contenders)["FA2"] for shape, contenders in shapes.items()
                      if {f"d{dim}", mask} <= set(shape.split())]
            first = " FA2" if not cells and len(rows) == 1 else ""
            cells.append(f"{geometric_mean(ratios):.2f}x{first} ({min(ratios):.2f} to {max(ratios):.2f})")
        rows.append((f"D {dim}", *cells))
    return markdown(*rows)


def errors_by_precision():
    rows = [("RMSE of O, N 512, D 64; largest error over bound", *INPUTS.values())]
    for element_type, kernel in (("fp32", "k7_shuffled_rows"), ("fp16", "fa2_mma"), ("bf16", "fa2_mma")):
        cells = []
        for inputs in INPUTS:
            row = found("h200/errors.jsonl", contender=kernel, element_type=element_type, tensor="O",
                        inputs=inputs if inputs == "normal" or element_type == "fp32" else inputs_named(inputs, element_type))
            mantissa, exponent = f"{float(row['rmse']):.1e}".split("e")
            cells.append(f"{mantissa}e{int(exponent)}; {float(row['error_over_bound_max']):.2f}")
        rows.append((f"{element_type}, `{kernel}`", *cells))
    return markdown(*rows)


def inputs_named(inputs, element_type):
    """The label of these inputs in errors.jsonl, where some are called after their type too."""
    labels = {record["labels"]["inputs"] for record in read(RESULTS / "h200/errors.jsonl")}
    return next(label for label in (f"{inputs}_{element_type}", inputs) if label in labels)


def kills_by_rule():
    """Who notices the planted bugs: rules of other projects, and ours."""
    matrix = json.loads((RESULTS / "epyc-2core/kill_matrix.json").read_text())
    mutants, correct = matrix["mutants"], matrix["correct"]
    rules, theirs = list(mutants[0]["rules"]), list(mutants[0]["rules_on_normal"])

    judged, alarms = false_alarms.totals(read(RESULTS / "h200/false_alarms.jsonl"))

    def rejected(rule):
        """Of correct kernels; by a rule of ours, which may reject none, in campaigns of its own, with the rate that is still possible."""
        if rule in theirs:
            return str(sum(kernel["rules"][rule]["rejected"] for kernel in correct))
        count = alarms[rule.removesuffix(" laws")]
        return f"**{count}** of {judged:,}, at most {100 * false_alarms.upper_rate(count, judged):.2g} %"

    cases = sum(kernel["cases"] for kernel in correct)
    return markdown(
        ("", *(rule if rule in theirs else f"our {rule}" for rule in rules)),
        (f"mutants killed, of {len(mutants)}, on our cases",
         *(str(sum(mutant["rules"][rule]["kills"] > 0 for mutant in mutants)) for rule in rules)),
        ("on N(0, 1) inputs only, as the projects test",
         *(str(sum(mutant["rules_on_normal"][rule]["kills"] > 0 for mutant in mutants)) if rule in theirs else "" for rule in rules)),
        (f"correct kernels rejected, of {cases:,} cases", *map(rejected, rules)))


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


def fa3_counters():
    """fa3_wgmma beside cuDNN's kernel, as CUPTI counted them."""
    runs = {}
    for record in read(RESULTS / "h200/counters_fa3_wgmma.jsonl"):
        if record["labels"]["source"] == "cupti":
            runs.setdefault(record["labels"]["shape"], {})[record["labels"]["contender"]] = values(record)
    columns = [("tensor pipe active", "tensor_active", 1, "{:.1f} %"), ("L2 hits", "l2_hit_rate", 1, "{:.1f} %"),
               ("DRAM read", "dram_read_bytes", 1e-9, "{:.2f} GB"), ("warps at a barrier", "stall_barrier", 1, "{:.1f} %")]
    rows = [("shape", *(f"{title}: ours, cuDNN's" for title, *_ in columns))]
    for shape, found in runs.items():
        pairs = [[pattern.format(found[contender][name] * scale) for contender in ("fa3_wgmma", "torch_sdpa_cudnn")]
                 for _, name, scale, pattern in columns]
        rows.append((f"{shape.split()[3]} {'full' if 'none' in shape else 'causal'}", *(", ".join(pair) for pair in pairs)))
    return markdown(*rows)


def studies():
    """The shipped studies as they ran: points, and what became of the expectations."""
    rows = [("study", "question", "points timed, skipped, left out or refused", "expectations")]
    for folder in sorted((RESULTS / "h200/studies").iterdir()):
        records = [record for path in sorted(folder.glob("records*.jsonl")) for record in read(path)]
        question = next(r["labels"]["question"] for r in records if r["kind"] == "study_summary")
        last = {r["labels"]["point"]: r for r in records if r["kind"] == "study" and r["labels"].get("role") == "point"}
        timed_points = sum(r["verdict"] == "passed" for r in last.values())
        skipped = sum(r["labels"].get("skipped_by") in ("kernel", "constraint") for r in last.values())
        answers = {r["labels"]["that"]: r["labels"]["answer"] for r in records if r["kind"] == "study_answer"}
        counts = ", ".join(f"{n} {answer}" for answer in ("holds", "refuted", "undecided", "no_results")
                           if (n := sum(a == answer for a in answers.values())))
        rows.append((f"[{folder.name}](../studies/{folder.name}.yaml)", question,
                     f"{timed_points}, {skipped}, {len(last) - timed_points - skipped}", counts or "none asked"))
    return markdown(*rows)


TABLES = {"studies": studies, "claims_by_document": claims_by_document, "kills_by_rule": kills_by_rule, "ladder_at_the_top": ladder_at_the_top, "posted_swizzle": posted_swizzle,
          "forward_grid_over_fa2": forward_grid_over_fa2, "errors_by_precision": errors_by_precision,
          "fa3_counters": fa3_counters}
