"""Makes the ladder's table and picture from its records.

    python3 experiments/ladder_report.py --times ladder.jsonl --counters counters.jsonl --out experiments/results/h200

Writes ladder.md and ladder.png. Nothing is computed anew: rates and ratios are those of the records.
"""

import argparse
import pathlib

from records import counters_by_run, read, values

# The founding blog post's own times on an A6000, in ms. It counts the FLOPs of full attention; its loop bounds and
# instruction counts are those of causal attention, so true rates are half of what it prints.
PUBLISHED_MS = {"k1_naive": 1122.45, "k2_coalesced": 223.02, "k2_coalesced row_reduce=shuffle": 226.0,
                "k3_sequence_parallel": 122.48, "k4_register_tile": 37.28, "k5_padded_tiles": 21.68, "k6_sliced_dims": 20.51,
                "torch_sdpa_efficient": 12.06, "torch_eager": 51.26}
LEDGER = "b8 h12 n4096 d64"
MASKS = {"none": "full", "causal_top_left": "causal"}
SLOWEST = 0.1  # TFLOP/s at which bars begin
REFERENCES = {"cublas_sgemm_8192": "cuBLAS fp32, 8192³", "torch_sdpa_efficient": "PyTorch fp32 SDPA"}


def name_of(labels):
    """The contender, and the one choice of its plan that tells two rows of a kernel apart."""
    return labels["contender"] + (" row_reduce=shuffle" if "row_reduce=shuffle" in labels["plan"]
                                  and labels["contender"] == "k2_coalesced" else "")


def of_ledger(records):
    """{mask: {name: values}} in the order of the file; a later record of the same row replaces an earlier one."""
    rows = {mask: {} for mask in MASKS}
    for record in records:
        labels = record["labels"]
        for mask in MASKS:
            if labels["shape"] == f"{LEDGER} {mask} fp32":
                rows[mask][name_of(labels)] = values(record)
    return rows


def counters_of_ledger(records):
    """{mask: {name: counters}}"""
    rows = {mask: {} for mask in MASKS}
    for (shape, contender, plan), counters in counters_by_run(records).items():
        for mask in MASKS:
            if shape == f"{LEDGER} {mask} fp32":
                rows[mask][name_of({"contender": contender, "plan": plan})] = counters
    return rows


def cell(row, key, pattern, scale=1.0):
    return pattern.format(row[key] * scale) if key in row else ""


def table(times, counters):
    lines = ["| kernel | time | TFLOP/s | of PyTorch | occupancy | conflicts, loads | DRAM | time, published |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, row in times.items():
        counted = counters.get(name, {})
        conflicts = (counted["shared_load_conflicts"] / counted["shared_load_requests"]
                     if counted.get("shared_load_requests") else None)
        dram = (f"{(counted['dram_read'] + counted['dram_written']) * 1e-9:.2f} GB" if "dram_read" in counted else "")
        lines.append(" | ".join([
            f"| `{name}`", f"{row['time']:.2f} ms", f"{row['rate']:.2f}", f"{row.get('speed_over_baseline', float('nan')):.3f}",
            cell(counted, "achieved_occupancy", "{:.0f} %"), "" if conflicts is None else f"{conflicts:.2f}", dram,
            f"{PUBLISHED_MS[name]:.2f} ms |" if name in PUBLISHED_MS else "|"]))
    return "\n".join(lines)


def picture(times):
    """Rate of every kernel of ours, full and causal, and where PyTorch and cuBLAS are."""
    import altair  # here, for the tables do without it

    bars, rules = [], []
    for mask, rows in times.items():
        for name, row in rows.items():
            if name in REFERENCES:
                rules.append({"mask": MASKS[mask], "rate": row["rate"], "text": f"{REFERENCES[name]}: {row['rate']:.1f}"})
            elif name.startswith("k"):
                bars.append({"mask": MASKS[mask], "kernel": name.replace("row_reduce=", ""), "rate": row["rate"],
                             "text": f"{row['rate']:.2f}" if row["rate"] < 10 else f"{row['rate']:.1f}"})
    order = list(dict.fromkeys(bar["kernel"] for bar in bars))
    x = altair.X("rate:Q", scale=altair.Scale(type="log", domain=[SLOWEST, 100], nice=False), title="TFLOP/s (log scale)")
    panels = []
    for mask in MASKS.values():
        base = altair.Chart(altair.Data(values=[b for b in bars if b["mask"] == mask]))
        y = altair.Y("kernel:N", sort=order, title=None)
        bars_of_mask = base.mark_bar(color="#4c78a8", height=14).encode(x=x, x2=altair.datum(SLOWEST), y=y)
        lines = altair.Chart(altair.Data(values=[r for r in rules if r["mask"] == mask]))
        rules_of_mask = lines.mark_rule(strokeDash=[4, 3], strokeWidth=1.5).encode(
            x=x, color=altair.Color("text:N", title=None, legend=altair.Legend(orient="bottom", labelLimit=300),
                                    scale=altair.Scale(range=["#e45756", "#54a24b"])))
        labels = base.encode(x=x, y=y, text="text:N")
        halo = labels.mark_text(align="left", dx=4, fontSize=11, stroke="white", strokeWidth=4)
        panel = bars_of_mask + rules_of_mask + halo + labels.mark_text(align="left", dx=4, fontSize=11)
        panels.append(panel.properties(width=420, height=24 * len(order), title=f"{mask}: {LEDGER}, fp32"))
    return altair.hconcat(*panels).resolve_scale(color="independent").configure_view(stroke=None)


def report(times_path, counters_path):
    """The tables of two record files, as Markdown."""
    records = read(times_path)
    times, counters = of_ledger(records), counters_of_ledger(read(counters_path))
    where = records[0]["provenance"]
    text = [f"# The fp32 ladder\n\n{LEDGER}. {where['device']}; commit {where['commit']}, {where['date'][:10]}.\n"
            f"`ladder.py` and `hardware_counters.py` made the records, `ladder_report.py` this table. TFLOP/s of every row: 4 B H D "
            "FLOPs for each visible\npair of query and key. *Of PyTorch*: median of the rounds' ratios to PyTorch's fp32 "
            "memory-efficient SDPA. *Occupancy*: achieved. *Conflicts*:\nbank conflicts a shared load request. *Published*: the "
            "founding blog post's, on an A6000.\n"]
    for mask, rows in times.items():
        text.append(f"## {MASKS[mask]}\n\n{table(rows, counters[mask])}\n")
    return "\n".join(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--times", required=True)
    arguments.add_argument("--counters", required=True)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "ladder.md").write_text(report(options.times, options.counters))
    picture(of_ledger(read(options.times))).save(options.out / "ladder.png", scale_factor=2)


if __name__ == "__main__":
    main()
