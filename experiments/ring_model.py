"""Keeps what `attest explain` says of attention over several GPUs, which pictures and tables of documents read: the model of ranks, nothing measured.

    python3 experiments/ring_model.py --attest build/release/bin/attest            writes results/model/ring.jsonl
    python3 experiments/ring_model.py --attest build/release/bin/attest --check    asks every fifth question again, and fails where the answer is another

A line a question: H200s at 800 TFLOP/s each, which is what fa3_wgmma reaches at 16,384 keys and D 128 (795 full, 809 causal: results/h200/studies/forward_grid).
"""

import argparse
import json
import pathlib
import subprocess
import sys

RECORD = pathlib.Path(__file__).resolve().parent / "results/model/ring.jsonl"
RATE = 800
LINKS = ("nvlink4", "pcie5", "ndr")
HEADS = ("32/32", "32/8")
MILLION = 2**20
SWEPT_RANKS = 64  # at lengths from 128 tokens a GPU on


def questions():
    """(heads, mask, link, tokens, numbers of GPUs; empty: all)"""
    for heads in HEADS:
        for link in LINKS:
            yield heads, "none", link, MILLION, ()
            for tokens in (MILLION, 10 * MILLION):
                yield heads, "causal_top_left", link, tokens, ()
            for tokens in (SWEPT_RANKS * 2**power for power in range(7, 18)):
                yield heads, "causal_top_left", link, tokens, (SWEPT_RANKS,)


def short(number):
    return None if number is None else float(f"{number:.6g}")


def answer(attest, heads, mask, link, tokens, ranks):
    problem = f"b1 h{heads} n{tokens} d128 {mask} bf16"
    command = [attest, "explain", "n3_ring", "--problem", problem, "--plan", "r8,distribution=zigzag", "--device", "h200", "--link", link,
               "--rate", str(RATE), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"ring_model: {' '.join(command)}: {ran.stderr.strip()}")
    model = json.loads(ran.stdout)["ranks"]
    rows = []
    for row in model["rows"]:
        if ranks and row["ranks"] not in ranks:
            continue
        step = row["ring"]["zigzag"]["longest_step"]
        rows.append({"ranks": row["ranks"], "queries_a_rank": row["queries_a_rank"], "computing_s": short(step["computing_s"]),
                     "exchange_s": short(step["exchange_s"]), "ulysses": short(row["ulysses"]["efficiency"]),
                     **{name: short(ring["efficiency"]) for name, ring in row["ring"].items()}})
    break_even = {name: short(ring["break_even_queries"]) for name, ring in model["asked"]["ring"].items()}
    return {"problem": problem, "device": "h200", "tflops": RATE, "link": link, "link_bytes_per_s": model["asked"]["link_bytes_per_s"],
            "break_even_queries": break_even, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attest", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    every = 5 if arguments.check else 1
    lines = [json.dumps(answer(arguments.attest, *question)) for question in list(questions())[::every]]
    if not arguments.check:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text("".join(line + "\n" for line in lines))
    elif RECORD.read_text().splitlines()[::every] != lines:
        sys.exit(f"ring_model: {RECORD.name} is not what this program says: make it again without --check")


if __name__ == "__main__":
    main()
