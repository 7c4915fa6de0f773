"""Runs `attest errors` for a report: every kernel along kinds of inputs, length, head dim, size of the logits, order of the keys and rows under a causal mask.
Of kernels of the backward pass it is the errors of dQ, dK and dV."""

import pathlib
import re
import shutil
import subprocess

from attest_book import records
from attest_book.records import BadInput

PROBLEM = "h2 n512 d64"
GRADIENT = "backward"  # a word of a problem that asks for gradients
GRADIENT_PROBLEM = f"h2 n256 d64 {GRADIENT}"
FAMILIES = ("normal", "outliers", "sink:8", "ties:1", "all_negative:200", "real")
GRADIENT_FAMILIES = ("normal", "outliers", "sink:8", "gradient_mean_kv:3", "gradient_along_o", "gradient_inexact_saved", "real")
MAPPED = ("outliers", "real")  # where the error sits tells something; on the others all columns are alike
MAGNITUDES = "normal:{0.25,1,4,16,64}"
ORDERS = ("drawn", "falling", "rising", "reversed")  # of the keys, of inputs whose first key holds most of the weight
BAD_INPUT = 2  # exit code of the program: it cannot do what was asked, and says why in one line
VERDICT_FAILED = 1  # something is beyond its bound; everything was measured


def lengths(problem):
    """Braces around an eighth to twice the problem's length."""
    found = re.search(r"(?:^| )n(\d+)(?: |$)", problem)
    if not found:
        raise BadInput(f"--problem '{problem}' has no length; allowed: for example '{PROBLEM}'")
    n = int(found[1])
    chosen = sorted({max(1, n // 8), max(1, n // 4), max(1, n // 2), n, 2 * n})
    return re.sub(r"\bn\d+\b", f"n{{{','.join(map(str, chosen))}}}", problem)


def head_dims(problem):
    """Braces around a quarter to twice the problem's head dim; the problem itself where it names none."""
    found = re.search(r"(?:^| )d(\d+)(?: |$)", problem)
    if not found:
        return problem
    d = int(found[1])
    chosen = sorted({max(1, d // 4), max(1, d // 2), d, 2 * d})
    return re.sub(r"\bd\d+\b", f"d{{{','.join(map(str, chosen))}}}", problem)


def axes(problem):
    """{axis: arguments of attest errors}. The families are asked for one by one: not every problem suits all of them."""
    asked = {f"inputs {family}": ["--problem", problem, "--family", family, *(["--map"] if family in MAPPED else [])]
             for family in (GRADIENT_FAMILIES if GRADIENT in problem.split() else FAMILIES)}
    asked["length"] = ["--problem", lengths(problem), "--family", "normal"]
    asked["head_dim"] = ["--problem", head_dims(problem), "--family", "normal"]
    asked["key_order"] = ["--problem", problem, "--family", "sink:8", *(part for order in ORDERS for part in ("--key-order", order))]
    asked["magnitude"] = ["--problem", problem, "--family", MAGNITUDES]
    asked["row"] = ["--problem", f"{problem} causal_top_left", "--family", "normal", "--by", "row", "--map"]
    return asked


def problems(asked):
    """What is tried, one after the other: a problem that does not say what it asks for is one of attention, and of its gradients to kernels that have no other answer."""
    if GRADIENT in asked.split():
        return [asked]
    return [asked, GRADIENT_PROBLEM if asked == PROBLEM else f"{asked} {GRADIENT}"]


def measure(program, kernels, folder, problem=PROBLEM, plugins=(), executor="auto"):
    """({axis: records}, {axis: why there are none}). Records of an earlier run in `folder` are replaced. BadInput with the program's
    own sentence when nothing could be measured, or when it failed."""
    reasons = []
    for tried in problems(problem):
        found, left_out = measure_axes(program, kernels, folder, tried, plugins, executor)
        if found:
            return found, left_out
        reasons += left_out.values()
    raise BadInput(reasons[0])


def measure_axes(program, kernels, folder, problem, plugins, executor):
    """As `measure`; nothing found where nothing could be measured."""
    chosen = [part for kernel in kernels for part in ("--kernel", kernel)] + [part for plugin in plugins for part in ("--plugin", str(plugin))]
    shutil.rmtree(folder, ignore_errors=True)
    found, left_out = {}, {}
    for axis, arguments in axes(problem).items():
        target = pathlib.Path(folder) / axis.replace(" ", "_").replace(":", "_")
        run = subprocess.run([str(program), "errors", *chosen, "--executor", executor, "--sets", "2", "--out", str(target), *arguments],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode in (0, VERDICT_FAILED):  # the figures of a wrong kernel are what its report is for
            found[axis] = records.read(target / "errors.jsonl")
            continue
        said = [line.removeprefix("attest: ") for line in run.stderr.splitlines() if line.startswith("attest: ")]
        reason = said[0] if said else run.stderr[-200:]
        if run.returncode != BAD_INPUT:
            raise BadInput(f"attest errors ended with {run.returncode} on {axis}: {reason}")
        left_out[axis] = reason
    return found, left_out
