"""Keeps what `attest explain` says of attention over several GPUs, which pictures and tables of documents read: the model of ranks, nothing measured.

    python3 experiments/ring_model.py --attest build/release/bin/attest            writes results/model/ring.jsonl
    python3 experiments/ring_model.py --attest build/release/bin/attest --check    asks every fifth question again, and fails where the answer is another
    python3 experiments/ring_model.py --attest build/release/bin/attest --measured experiments/results/h200/studies/ring/records.jsonl
                                                                                    says how far the model is from study `ring` or `bwd_ring`, and fails past 5 % of it

A line a question of the record: H200s at 800 TFLOP/s each, which is what fa3_wgmma reaches at 16,384 keys and D 128 (795 full, 809 causal: results/h200/studies/forward_grid).
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
MOST_OFF = 0.05
LEAST_TOKENS = 4096
RINGS = {"ring": ("n3_ring", "ring_share", "fa3_wgmma"), "bwd_ring": ("bwd_ring", "bwd_ring_share", "bwd_wgmma")}  # explained as, limit, one GPU
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
    model = attest_json(command)["ranks"]
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


def attest_json(command):
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"ring_model: {' '.join(command)}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


def measured(path):
    """{(problem, kernel): (case, ms, TFLOP/s)} of a study's records."""
    found = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        values = {one["name"]: one["value"] for one in record["measurements"]}
        if record["case"] and "time" in values:
            found[record["labels"]["problem"], record["case"]["kernel"]] = record["case"], values["time"], values["rate"]
    return found


def compare(attest, path):
    """Prints what was measured beside the model, at the rate that the ring's own launches reached in the same rounds without an exchange (its share): the
    model knows neither that parts are smaller problems nor their merge. True: nowhere further off than MOST_OFF where a GPU has LEAST_TOKENS and more."""
    times, worst = measured(path), 0
    print(f"{'problem':<48} {'GPUs':>4} {'ring':>10} {'its share':>10} {'share/ring':>10} {'model':>10} {'off':>7} {'one GPU/ring':>12}")
    for problem, kernel in sorted(times, key=lambda key: (key[0].split()[1], times[key][0]["problem"]["mask"], times[key][0]["problem"]["query_len"])):
        if kernel not in RINGS:
            continue
        explained, limit, one_gpu = RINGS[kernel]
        (case, ms, _), (_, share_ms, rate), alone = times[problem, kernel], times[problem, limit], times.get((problem, one_gpu))
        ranks, distribution = case["plan"]["ranks"], case["plan"]["distribution"]
        model = attest_json([attest, "explain", explained, "--problem", problem, "--plan", f"r{ranks},distribution={distribution}", "--device", "h200", "--link",
                             "nvlink4", "--rate", f"{rate / ranks:.6g}", "--json"])["ranks"]["asked"]["ring"][distribution]["time_s"] * 1e3
        off = model / ms - 1
        if case["problem"]["query_len"] >= LEAST_TOKENS * ranks:
            worst = max(worst, abs(off))
        print(f"{problem:<48} {ranks:>4} {ms:>7.3f} ms {share_ms:>7.3f} ms {share_ms / ms:>10.3f} {model:>7.3f} ms {off:>+7.1%} {alone[1] / ms if alone else 0:>12.2f}")
    return worst <= MOST_OFF


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attest", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measured", type=pathlib.Path, help="records of study `ring` or `bwd_ring`")
    arguments = parser.parse_args()
    if arguments.measured:
        sys.exit(0 if compare(arguments.attest, arguments.measured) else f"ring_model: off by more than {MOST_OFF:.0%} somewhere from {LEAST_TOKENS} tokens a GPU on")
    every = 5 if arguments.check else 1
    lines = [json.dumps(answer(arguments.attest, *question)) for question in list(questions())[::every]]
    if not arguments.check:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text("".join(line + "\n" for line in lines))
    elif RECORD.read_text().splitlines()[::every] != lines:
        sys.exit(f"ring_model: {RECORD.name} is not what this program says: make it again without --check")


if __name__ == "__main__":
    main()
