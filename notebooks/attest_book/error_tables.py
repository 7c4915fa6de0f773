"""Tables of the records of `attest errors`, as the documents show them. Nothing is computed anew: every figure is one of the records, or a ratio of two."""

import math
import statistics

from attest_book.records import read

# RMSE against fp64 in fp16, N(0, 1) + N(0, 100) Bernoulli(0.001); the paper's shape is not known [FA3, Table 3].
PUBLISHED_RMSE = {"torch_eager": ("baseline", 3.2e-4), "torch_sdpa_flash": ("FA2", 1.9e-4), "fa2_mma": ("FA2, FA3", 1.9e-4)}
ULP = ("ulp_0", "ulp_1", "ulp_2", "ulp_3_to_4", "ulp_5_to_8", "ulp_more")
TYPES = ("fp32", "fp16", "bf16")


def without_type(problem):
    return " ".join(part for part in problem.split() if part not in TYPES)


def inputs_of(labels):
    """A layer of a file is called after its type too."""
    return labels["inputs"].replace("_" + labels["element_type"], "")


def is_of_a_tensor(record):
    """Rows and heads alone, and maps, have records of their own."""
    return record.kind == "errors" and "by" not in record.labels


def tables(records):
    """{(problem without its type, inputs): {(contender, executor, type, tensor): (labels, values)}}; later records replace."""
    found = {}
    for record in records:
        labels = record.labels
        table = found.setdefault((without_type(labels["problem"]), inputs_of(labels)), {})
        table[labels["contender"], labels["executor"], labels["element_type"], labels["tensor"]] = (labels, record.values)
    return found


def number(row, name, pattern):
    return pattern.format(float(row[name])) if name in row else ""


def table(rows):
    lines = ["| kernel | on | inputs in | of | RMSE | relative L2 | largest error, at | ulp 0 / 1 / 2 / 3-4 / 5-8 / more, % | bias, t "
             "| outward bias, t | error / bound: max | p99 | median |", "| --- |" + " --- |" * 12]
    for (contender, executor, element_type, tensor), (labels, row) in rows.items():
        histogram = " / ".join(f"{100 * float(row[name]):.2f}" for name in ULP)
        lines.append(" | ".join([
            f"| `{contender}`", executor, element_type, tensor, number(row, "rmse", "{:.3g}"), number(row, "relative_l2", "{:.3g}"),
            f"{number(row, 'max_abs_error', '{:.3g}')} {labels['largest_error_at']}", histogram, number(row, "bias", "{:.1f}"),
            number(row, "outward_bias", "{:.1f}"), number(row, "error_over_bound_max", "{:.3f}"),
            number(row, "error_over_bound_p99", "{:.3f}"), number(row, "error_over_bound_median", "{:.3f}")]) + " |")
    return "\n".join(lines)


def published(found):
    """Rows of FA3's Table 3 beside ours, where there are any."""
    lines = []
    for (problem, inputs), rows in found.items():
        for (contender, executor, element_type, tensor), (_, row) in rows.items():
            if inputs.startswith("outliers") and element_type == "fp16" and tensor == "O" and contender in PUBLISHED_RMSE:
                name, rmse = PUBLISHED_RMSE[contender]
                lines.append(f"| {inputs} | {problem} | `{contender}` on {executor} | {float(row['rmse']):.3g} | "
                             f"{float(row['relative_l2']):.3g} | {name}: {rmse:.2g} |")
    if not lines:
        return ""
    return "\n".join(["## FlashAttention-3's Table 3", "", "| inputs | problem | kernel, fp16 | RMSE | relative L2 | RMSE, published |",
                      "| --- | --- | --- | --- | --- | --- |", *lines, ""])


def report(paths):
    """The tables of record files, as Markdown."""
    records = [record for path in paths for record in read(path) if is_of_a_tensor(record)]
    found, where = tables(records), {r.provenance["device"] or r.labels.get("outputs_made_by", "") for r in records}
    commits = sorted({record.provenance["commit"] for record in records})
    text = [f"# Errors\n\n{'; '.join(sorted(name for name in where if name))}; commit {', '.join(commits)}, {records[0].provenance['date'][:10]}.\n"
            "`attest errors` made the records, `experiments/documents.py` this table. Against the f64 reference, rows of which the 113-bit oracle "
            "certified.\n*ulp*: share of the elements that many steps of their format from the correctly rounded result. *bias*: mean of "
            "got - want over its standard\nerror, rows being the observations; *outward*: of errors counted away from zero, so that "
            "truncation is negative. *bound*: the limit computed from\nthe roundings that the kernel declares; a library declares none.\n"]
    text.append(published(found))
    for (problem, inputs), rows in found.items():
        text.append(f"## {inputs}: {problem}\n\n{table(rows)}\n")
    return "\n".join(part for part in text if part)


OURS, OTHERS = "fp32_wgmma", {"k10_wide_tiles": "K10", "torch_sdpa_efficient": "PyTorch"}
MEASURES = {"rmse": "RMSE", "max_abs_error": "largest error"}


def fp32_tables(records):
    """{(problem, inputs): {contender: values}} of O."""
    found = {}
    for record in records:
        labels = record.labels
        if labels["tensor"] == "O":
            found.setdefault((labels["problem"], labels["inputs"]), {})[labels["contender"]] = record.values
    return found


def ratio(row, other, measure):
    ours, theirs = float(row[OURS][measure]), float(row[other][measure])
    return ours / theirs if theirs > 0 else 1.0 if ours == 0 else math.inf


def fp32_summary(found):
    lines = ["| against | of inputs | RMSE smaller or equal | largest error smaller or equal | median ratio of RMSE | the others: RMSE, largest error |",
             "| --- | --- | --- | --- | --- | --- |"]
    for other, name in OTHERS.items():
        rows = {key: row for key, row in found.items() if other in row}
        ratios = {measure: {key: ratio(row, other, measure) for key, row in rows.items()} for measure in MEASURES}
        worse = [f"{inputs}, {problem.removesuffix(' fp32')}: {ratios['rmse'][key]:.2f}x, {ratios['max_abs_error'][key]:.2f}x"
                 for key in rows for problem, inputs in [key] if max(ratios[measure][key] for measure in MEASURES) > 1]
        counts = [sum(value <= 1 for value in ratios[measure].values()) for measure in MEASURES]
        lines.append(f"| {name} | {len(rows)} | {counts[0]} | {counts[1]} | {statistics.median(ratios['rmse'].values()):.2f} "
                     f"| {'; '.join(worse) or 'none'} |")
    return "\n".join(lines)


def fp32_details(found):
    lines = ["| inputs | problem | RMSE: `fp32_wgmma` | K10 | PyTorch | largest error: `fp32_wgmma` | K10 | PyTorch |",
             "| --- |" + " --- |" * 7]
    for (problem, inputs), row in found.items():
        cells = [f"{float(row[contender][measure]):.3g}" if contender in row else ""
                 for measure in MEASURES for contender in (OURS, *OTHERS)]
        lines.append(f"| {inputs} | {problem.removesuffix(' fp32')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def fp32_report(paths):
    """The tables of record files, as Markdown."""
    records = [record for path in paths for record in read(path)]
    commits = sorted({record.provenance["commit"] for record in records})
    devices = sorted({record.provenance["device"] or record.labels.get("outputs_made_by", "") for record in records})
    found = fp32_tables(records)
    return (
        f"# Errors of fp32 attention\n\n{'; '.join(devices)}; commit {', '.join(commits)}, {records[0].provenance['date'][:10]}. "
        "Errors of O against the f64 reference, rows of which the\n113-bit oracle certified; `attest errors` made the records, "
        "`experiments/documents.py` this table. Magnitudes are 1 or what `attest list\ninputs` gives first, unless named.\n\n"
        f"{fp32_summary(found)}\n\n{fp32_details(found)}\n")
