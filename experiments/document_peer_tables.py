"""Tables of campaigns on libraries' kernels, and of the CPU reference's speed: {name: a function that gives Markdown}. See documents.py."""

import re

from document_campaigns import benchmarks
from document_tables import RESULTS, markdown
from records import read, values

# The runs whose records are h200/cudnn.jsonl, in its order.
CUDNN_RUNS = ("--cases 2000 --seed 7 --law L", "--cases 2000 --seed 7 --family F", "--cases 300 --max-len 700 --seed 8 --every-law --law L",
              "--cases 2000 --seed 7", "--cases 300 --max-len 700 --seed 8 --every-law")
PEERS = ("torch_flash", "torch_efficient", "torch_cudnn", "triton_flash", "cublas_standard", "cublas_standard_tf32", "torch_math")
REFERENCE_SIZES = ((100, 32), (100, 64), (512, 64), (2048, 64), (2048, 128))


def result(record):
    """What a campaign said of a kernel."""
    of, labels = values(record), record["labels"]
    if record["verdict"] != "passed":
        return f"**{record['verdict']}** after {of['cases']:.0f} cases, `{labels['law']}`: {labels['what']}"
    return (f"passed {of['cases']:,.0f} cases; O/bound {of['worst_o_error_over_bound']:.3f}, LSE/bound {of['worst_lse_error_over_bound']:.3f}, "
            f"{of['vacuous_cases']:.0f} vacuous")


def cudnn_campaigns():
    records = read(RESULTS / "h200/cudnn.jsonl")
    return markdown(("`attest verify --kernel cudnn_sdpa --executor gpu` with", "result"),
                    *((f"`{options}`", result(record)) for options, record in zip(CUDNN_RUNS, records)))


def peer_campaigns():
    of = {record["labels"]["kernel"]: record for record in read(RESULTS / "h200/verify_peers.jsonl")}
    return markdown(("kernel", "commit", "result"),
                    *((f"`{kernel}`", of[kernel]["provenance"]["commit"][:7], result(of[kernel])) for kernel in PEERS))


def reference_speed():
    rows = [("N", "D", "time", "GFLOP/s")]
    for n, d in REFERENCE_SIZES:
        found = next(b for b in benchmarks("epyc-2core/cpu_reference_benchmark.json") if re.fullmatch(f"exact_answer_of/N:{n}/D:{d}_median", b["name"]))
        rows.append((str(n), str(d), f"{found['real_time']:.3g} ms", f"{found['flop/s'] * 1e-9:.1f}"))
    return markdown(*rows)


PEER_TABLES = {"cudnn_campaigns": cudnn_campaigns, "peer_campaigns": peer_campaigns, "reference_speed": reference_speed}
