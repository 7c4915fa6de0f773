"""Which record of a speed and which of an error belong together, and the table of them."""

import collections
import dataclasses
import math
import pathlib
import re

from records import read, sizes, values

DIMS = (64, 128)
LENGTH = 4096  # the timed length that is asked for; where it was not timed, the nearest
FULL, CAUSAL = "none", "causal_top_left"
# Title: the names of the same distribution in `attest errors` and in the files of outputs, and the mask.
INPUTS = {"N(0, 1)": (("normal",), FULL), "outliers": (("outliers", "outliers_sd10"), FULL), "real": (("real",), FULL),
          **{f"SmolLM2, layer {layer}, causal": ((f"smollm2.layer{layer}",), CAUSAL) for layer in (0, 16, 18, 29)}}
DEFAULT = "-"  # the plan of outputs that another process made: the kernel's own choice
SETS = (None, "grid", "fp16")  # of the forward grid; other records name none
TIMED_INPUTS = "normal"
UNROUNDED = "_unrounded"  # ends the name of fp32 inputs that a 16-bit kernel got rounded


@dataclasses.dataclass(frozen=True)
class Precision:
    """One way to attention: a kernel, and what tells it from its other ways."""
    name: str
    kernel: str
    element_type: str
    products: str | None = None
    is_default: bool = True      # of the kernel's products
    inputs_suffix: str = ""      # of the inputs that errors are held against

    def timed(self, labels):
        return (self.is_of(labels) and labels["shape"].split()[-1] == self.element_type and labels.get("set") in SETS
                and labels["inputs"] == TIMED_INPUTS)

    def judged(self, labels):
        return (self.is_of(labels) and labels["element_type"] == self.element_type and labels["tensor"] == "O"
                and "by" not in labels and labels.get("key_order", "drawn") == "drawn")

    def is_of(self, labels):
        return labels["contender"] == self.kernel and (
            self.products is None or f"products={self.products}" in labels["plan"].split()
            or (labels["plan"] == DEFAULT and self.is_default))


PRECISIONS = (Precision("fp32, PyTorch", "torch_sdpa_efficient", "fp32"), Precision("fp32, K10", "k10_wide_tiles", "fp32"),
              Precision("TF32 x3", "tf32_mma", "fp32", "tf32_x3"),
              Precision("fp16 x3", "fp32_wgmma", "fp32", "automatic"),
              Precision("bf16 x6", "fp32_wgmma", "fp32", "bf16_x6", is_default=False),
              Precision("TF32", "tf32_mma", "fp32", "tf32", is_default=False),
              Precision("fp16", "fa2_mma", "fp16"), Precision("fp16 of fp32 inputs", "fa2_mma", "fp16", inputs_suffix=UNROUNDED),
              Precision("bf16", "fa2_mma", "bf16"), Precision("bf16, Hopper", "fa3_wgmma", "bf16"), Precision("bf16 of fp32 inputs", "fa2_mma", "bf16", inputs_suffix=UNROUNDED))


@dataclasses.dataclass
class Found:
    """A record, and the file it is of."""
    record: dict
    file: str

    @property
    def labels(self):
        return self.record["labels"]

    @property
    def problem(self):
        return self.labels.get("shape") or self.labels["problem"]

    @property
    def length(self):
        size = sizes(self.problem)
        return size.get("n") or size["k"]

    @property
    def tiles(self):
        """The plan without the order of the grid, which changes no bit."""
        return [part for part in self.labels["plan"].split() if not re.fullmatch(r"grid_order=\w+|g\d+", part)]

    @property
    def commit(self):
        return self.record["provenance"]["commit"]

    @property
    def date(self):
        return self.record["provenance"]["date"]

    @property
    def on_executor(self):
        return self.labels.get("executor") == "simt"

    def value(self, name):
        return float(values(self.record)[name])


def read_all(paths):
    return [Found(record, "/".join(pathlib.Path(path).resolve().parts[-2:])) for path in paths for record in read(path)
            if record["kind"] != "error_map"]


def inputs_of(labels):
    """A layer of a file is called after its head dim or its type too."""
    name = labels["inputs"]
    for suffix in ("_d64", "_d128", "_fp16", "_bf16"):
        name = name.replace(suffix, "")
    return name


def of_problem(found, dim, mask):
    return [one for one in found if sizes(one.problem)["d"] == dim and mask in one.problem.split()]


def nearest(found):
    best = min((abs(math.log(one.length / LENGTH)) for one in found), default=0.0)
    return [one for one in found if abs(math.log(one.length / LENGTH)) == best]


def draw_of(error):
    """The inputs of an error, whatever their type."""
    return " ".join(error.problem.split()[:-1]), inputs_of(error.labels).removesuffix(UNROUNDED)


def pair(speeds, errors, company):
    """(speed, error) that fit best. Plans with the same tiles, or one of outputs that another process made; the GPU before the
    executor; the length nearest to the timed one; inputs that most precisions were judged on, {draw: how many}; the same
    commit; the newest. None where no two fit."""
    fitting = [(speed, error) for speed in speeds for error in errors
               if error.labels["plan"] == DEFAULT or error.tiles == speed.tiles]
    return max(fitting, default=None, key=lambda both: (
        not both[1].on_executor, -abs(math.log(both[1].length / both[0].length)), company[draw_of(both[1])],
        both[0].commit == both[1].commit, both[0].date, both[1].date))


def what_is_missing(timed, judged):
    if timed and judged:
        return "an error of a timed plan"
    return "error" if timed else "speed" if judged else "speed and error"


def pairs(speeds, errors):
    """({(inputs, head dim): {precision: (speed, error)}}, {(inputs, head dim): {precision: (what is missing, newest speed)}})"""
    found, missing = {}, {}
    for title, (names, mask) in INPUTS.items():
        for dim in DIMS:
            judged = {precision: [one for one in of_problem(errors, dim, mask) if precision.judged(one.labels)
                                  and inputs_of(one.labels) in [name + precision.inputs_suffix for name in names]]
                      for precision in PRECISIONS}
            if not any(judged.values()):
                continue
            company = collections.Counter(draw for own in judged.values() for draw in {draw_of(one) for one in own})
            for precision, own in judged.items():
                timed = nearest([one for one in of_problem(speeds, dim, mask) if precision.timed(one.labels)])
                best = pair(timed, own, company)
                if best:
                    found.setdefault((title, dim), {})[precision] = best
                else:
                    newest = max(timed, default=None, key=lambda one: one.date)
                    missing.setdefault((title, dim), {})[precision] = what_is_missing(timed, own), newest
    return found, missing


def differences(speed, error):
    """In what the two differ."""
    batches = [sizes(one.problem)["b"] for one in (speed, error)]
    names = ["problem"] if speed.length != error.length or batches[0] != batches[1] else []
    names += ["commit"] if speed.commit != error.commit else []
    names += ["machine: the **executor**, not the GPU"] if error.on_executor else []
    names += ["plan: not named, the default"] if error.labels["plan"] == DEFAULT != speed.labels["plan"] else []
    return ", ".join(names)


def source(one):
    plan = "" if one.labels["plan"] == DEFAULT else f", `{one.labels['plan']}`"
    executor = f", on {one.labels['executor']}" if "executor" in one.labels else ""
    return f"{one.problem}{plan}{executor}; {one.commit}; {one.file}"


def table(rows):
    lines = ["| precision | kernel | TFLOP/s | relative RMSE | RMSE | largest error | timed: problem, plan; commit; record "
             "| judged: problem, plan; commit; record | they differ in |", "| --- |" + " --- |" * 8]
    for precision, (speed, error) in rows.items():
        figures = " | ".join(f"{error.value(name):.3g}" for name in ("relative_l2", "rmse", "max_abs_error"))
        lines.append(f"| {precision.name} | `{precision.kernel}` | {speed.value('rate'):.1f} | {figures} | {source(speed)} "
                     f"| {source(error)} | {differences(speed, error)} |")
    return "\n".join(lines)


def missing_lines(missing):
    lines = []
    for (title, dim), rows in missing.items():
        by_what = {}
        for precision, (what, _) in rows.items():
            by_what.setdefault(what, []).append(precision.name)
        said = "; ".join(f"no record of {what} of {', '.join(names)}" for what, names in by_what.items())
        lines.append(f"- {title}, D {dim}: {said}.")
    return "\n".join(lines)
