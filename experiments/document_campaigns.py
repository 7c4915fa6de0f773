"""What the documents say of campaigns: what attest verify printed, and figures in sentences. See documents.py."""

import json
import re

from document_tables import RESULTS, found
from records import read, values

DEFAULT = "h200/verify_no_gpu"  # .jsonl: records of the default campaign; .txt: what the same run printed
SHOWN = ("emulated_mma_sm90", "fa2_mma", "fa3_wgmma", "k10_wide_tiles", "k1_naive", "m6_every_shape", "o1_unshifted", "o5_deferred")
SHOWN_OF_FAILURE = ("killed", "  law", "  kernel", "  worst", "  replay")


def held_to_records(rows, records):
    """The printed rows {kernel: cells}, if cases, vacuous cases and errors over bounds are those of the records. ValueError: which are not."""
    for record in records:
        name, of = record["labels"]["kernel"], values(record)
        shown = f"{name}: {of['cases']:.0f} cases, O/bound {of['worst_o_error_over_bound']:.3f}, {of['vacuous_cases']:.0f} vacuous"
        cells = rows.get(name)
        is_row = cells and int(cells[2]) == of["cases"] and int(cells[8]) == of["vacuous_cases"]
        if not is_row or cells[6] not in ("-", f"{of['worst_o_error_over_bound']:.3f}"):
            raise ValueError(f"what a campaign printed is not what its records say: {shown}; printed: {cells}")
    return rows


def excerpt(printed, records):
    """A code block of the lines of a campaign that teach, with '...' for those between."""
    lines = printed.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("kernel  "))
    end = lines.index("", head)
    table = {line.split()[0]: line for line in lines[head + 1:end]}
    held_to_records({name: line.split() for name, line in table.items()}, records)
    failure = [line for line in lines[:head] if line.startswith(SHOWN_OF_FAILURE)]
    at = next(i for i, line in enumerate(failure) if line.startswith("  worst"))
    coverage = next(line for line in lines[end:] if line.startswith("coverage: "))
    return "\n".join(["```", "$ ./attest verify", *failure[:at], "  ...", *failure[at:], "", lines[head],
                      *(table[name] for name in SHOWN), "...", re.sub(r"(\(\d+\)),.*", r"\1, ...", coverage), lines[-1], "```"])


def default_campaign():
    return excerpt((RESULTS / f"{DEFAULT}.txt").read_text(), read(RESULTS / f"{DEFAULT}.jsonl"))


def cases(name):
    return sum(int(values(record)["cases"]) for record in read(RESULTS / name))


def kernels(name):
    return len(read(RESULTS / name))


def alarms(name):
    return sum(record["verdict"] != "passed" and record["labels"]["expected"] != "yes" for record in read(RESULTS / name))


def seconds(name):
    return values(read(RESULTS / name)[0])["campaign_time"]


def minutes(name):
    return f"{seconds(name) // 60:.0f} min {seconds(name) % 60:02.0f} s"


def matrix():
    return json.loads((RESULTS / "epyc-2core/kill_matrix.json").read_text())


def mutants():
    return matrix()["mutants"]


def killed(rules=("exact laws", "bound", "statistics")):
    """How many planted bugs one of our layers kills."""
    return sum(any(mutant["rules"][rule]["kills"] for rule in rules) for mutant in mutants())


def rejected(rules=("exact laws", "bound", "statistics")):
    """How often a layer of ours rejects a correct kernel, and of how many cases."""
    correct = matrix()["correct"]
    return sum(kernel["rules"][rule]["rejected"] for kernel in correct for rule in rules), sum(kernel["cases"] for kernel in correct)


def calibrated():
    """Alarms, fewest and most data sets that were judged, kernels and formats, and the rate of alarms that is possible, in percent."""
    rows = [values(record) for record in read(RESULTS / "h200/calibrate.jsonl")]
    judged = [int(row["sets_judged"]) for row in rows]
    return (int(sum(row["sets_with_an_alarm"] for row in rows)), min(judged), max(judged), len(rows),
            100 * max(row["false_alarm_rate_at_most"] for row in rows))


def benchmarks(name):
    return json.loads((RESULTS / name).read_text())["benchmarks"]


def checked_in_ms(n=16384, h=32, d=128, causal=0):
    return next(b["real_time"] for b in benchmarks("h200/gpu_reference_benchmark.json")
                if b["name"].startswith(f"check_every_element/N:{n}/H:{h}/D:{d}/causal:{causal}/"))


def k3_cases_a_second():
    return next(b["cases/s"] for b in benchmarks("epyc-2core/simt_benchmark.json") if b["name"] == "run_cases/k3_sequence_parallel_median")


def reference_gflops():
    rates = [b["flop/s"] * 1e-9 for b in benchmarks("epyc-2core/cpu_reference_benchmark.json")
             if re.match(r"exact_answer_of/N:(512|2048)/.*_median", b["name"])]
    return min(rates), max(rates)


def certified_ms(n):
    return next(b["real_time"] for b in benchmarks("epyc-2core/cpu_reference_benchmark.json") if b["name"] == f"certify_one_row/N:{n}/D:64_median")


def cases_of(name, seed):
    return [int(values(record)["cases"]) for record in read(RESULTS / name) if record["labels"]["seed"] == seed]


README, MEASURED = "README.md", "experiments/results/README.md"
CAMPAIGN_TABLES = {"default_campaign": default_campaign}
CAMPAIGN_FIGURES = [
    (README, "`attest mutants` plants {} bugs", lambda: [len(mutants())]),
    (README, "(Shortened: {} kernels, {:,} cases.)", lambda: [kernels(f"{DEFAULT}.jsonl"), cases(f"{DEFAULT}.jsonl")]),
    (MEASURED, "O and LSE of {:,} random cases of `fa2_mma` and K10", lambda: [cases("h200/executor_bits.jsonl")]),
    (MEASURED, "every law of all three layers on {:,} cases of {} kernels, K1 to K3 natively | no alarm but the negative control's, {} | H200",
     lambda: [cases("h200/every_law_22624.jsonl"), kernels("h200/every_law_22624.jsonl"), minutes("h200/every_law_22624.jsonl")]),
    (MEASURED, "| {:,} cases, {} alarms, worst error {:.3f} of the bound;",
     lambda: [cases("h200/cudnn_all_layers.jsonl"), alarms("h200/cudnn_all_layers.jsonl"),
              found("h200/cudnn_all_layers.jsonl", kernel="cudnn_sdpa")["worst_o_error_over_bound"]]),
    (MEASURED, "| {} in {} to {} judged data sets of each of {} kernels and formats, at most {:.1f} % with", calibrated),
    (MEASURED, "fp64 check of every element, N 16,384, H 32, D 128 | {:,.0f} ms", lambda: [checked_in_ms()]),
    (MEASURED, "| `attest mutants`, {} bugs | {} killed by a layer of ours, {} of {:,} cases of correct kernels rejected |",
     lambda: [len(mutants()), killed(), *rejected()]),
    (MEASURED, "| the default run on a GPU | {:,} cases of {} kernels in {:.0f} s | H200",
     lambda: [cases("h200/verify_default.jsonl"), kernels("h200/verify_default.jsonl"), seconds("h200/verify_default.jsonl")]),
    (MEASURED, "| the default run, no GPU | {:,} cases of {} kernels in {} |",
     lambda: [cases(f"{DEFAULT}.jsonl"), kernels(f"{DEFAULT}.jsonl"), minutes(f"{DEFAULT}.jsonl")]),
    (MEASURED, "| K3 on the executor, all checks on | {:.0f} cases/s a core", lambda: [k3_cases_a_second()]),
    (MEASURED, "| f64 reference with all bound quantities | {:.1f} to {:.1f} GFLOP/s a core", reference_gflops),
    (MEASURED, "| `fa2_mma`, every mask and shape | {:,} cases, no alarm, in {:.0f} s; and {} with tensors",
     lambda: [*cases_of("h200/verify_fa2.jsonl", "11"), seconds("h200/verify_fa2.jsonl"), *cases_of("h200/verify_fa2.jsonl", "5")]),
    (MEASURED, "| `fa2_mma` on the executor | {:,} cases of both types, no alarm, {} |",
     lambda: [cases("xeon-2core/verify_fa2.jsonl"), minutes("xeon-2core/verify_fa2.jsonl")]),
    (MEASURED, "| every law, {} cases each of K0 to K10, `fa2_mma`, `f_controlled_pairs` |",
     lambda: [min(int(values(record)["cases"]) for record in read(RESULTS / "h200/verify_ladder.jsonl") if record["verdict"] == "passed")]),
    (MEASURED, "GPU against executor, bit for bit | {:,} cases, none differs", lambda: [cases("h200/executor_bits.jsonl")]),
    ("gpu/peers/README.md", "passes in all three layers: {} alarms, O/bound {:.3f}, LSE/bound {:.3f}, {:.0f} cases vacuous (",
     lambda: [alarms("h200/cudnn_all_layers.jsonl"), *(found("h200/cudnn_all_layers.jsonl", kernel="cudnn_sdpa")[name] for name in
                                                       ("worst_o_error_over_bound", "worst_lse_error_over_bound", "vacuous_cases"))]),
    ("verify/README.md", "no threshold was chosen with: {} to {} judged data sets for each of {} kernels and formats (", lambda: calibrated()[1:4]),
    ("verify/README.md", "The false-alarm rate of a judged data set is at most {:.1f} % with 95 %", lambda: calibrated()[4:]),
    ("cpu_reference/README.md", "One row certified at N = 100, D = 64: {:.2f} ms; at N = 2048: {:.1f} ms. ## error_bound", lambda: [certified_ms(n) for n in (100, 2048)]),
    ("gpu/reference/README.md", "from host memory: {:,.0f} ms at N = 16,384, H = 32, D = 128 without a mask, {:,.0f} ms causal; {:,.0f} ms at N = 131,072",
     lambda: [checked_in_ms(), checked_in_ms(causal=1), checked_in_ms(131072, 1, 64)]),
    ("gpu/kernels/fa3_wgmma/README.md", "--max-head-dim 256`; {} cases of every law with lengths to 420",
     lambda: cases_of("h200/verify_fa3_wgmma.jsonl", "5")),
    ("gpu/kernels/fa3_wgmma/README.md", "among them; {:,} bitwise reruns (`--law rerun_bitwise --every-law --max-len 400`); {} cases in which",
     lambda: [cases_of("h200/verify_fa3_wgmma.jsonl", "8")[0], cases_of("h200/verify_fa3_wgmma.jsonl", "9")[0]]),
    ("gpu/kernels/fp32_wgmma/README.md", "(`--seed 12 --max-len 900`). {:,} bitwise reruns and {} cases with the executor's bits are in",
     lambda: [cases_of("h200/verify_fa3_wgmma.jsonl", "8")[1], cases_of("h200/verify_fa3_wgmma.jsonl", "9")[1]]),
    ("gpu/kernels/tf32_mma/README.md", "all laws but the next one: passed, O/bound {:.3f} (",
     lambda: [found("h200/verify_tf32.jsonl", kernel="tf32_mma")["worst_o_error_over_bound"]]),
]
