"""A results folder of `attest study run`: the study as it was run and the records of all its writers."""

import dataclasses
import hashlib
import json
import pathlib

import pandas
import yaml

from attest_book import records as record_files
from attest_book.charts import number_text, title_of
from attest_book.records import BadInput

PLOT_KINDS = ("heat_map", "lines", "pareto", "roofline", "bars")
AXIS = "axis."
LENGTH, PAGE_SIZE, CONTIGUOUS = "problem.length", "layout.page_size", "contiguous"
# What tells points apart besides axes; a label of each record.
POINT_LABELS = ("contender", "executor", "problem", "plan")
COMMITTED = record_files.RESULTS / "studies.json"
SHIPPED = record_files.RESULTS.parent / "studies"
HIGH_IS_BETTER = ("rate", "bandwidth", "speed_over_", "hit_rate", "occupancy")


@dataclasses.dataclass
class Study:
    folder: pathlib.Path
    name: str
    question: str
    plots: list[dict]            # as study.yaml has them
    expected: int                # how many expectations it has; asked when all points have a record
    points: pandas.DataFrame     # timed or modelled, one row each; axes by their names without `axis.`
    baselines: pandas.DataFrame  # the same of baselines
    skipped: pandas.DataFrame    # what was asked for and not run: what, by, reason
    refused: pandas.DataFrame    # what was not verified: the same columns
    answers: list[dict]          # labels of the study_answer records
    summaries: list[record_files.Record]
    axes: list[str]              # in the order of their first appearance
    units: dict[str, str]
    records: list[record_files.Record]
    settings: dict               # how it was begun; empty where nothing says so

    def left(self):
        """How many points have no result yet, but for those that were skipped for good. None where no writer has come to its end."""
        wanted = max((int(summary.values.get("points", 0)) for summary in self.summaries), default=None)
        if wanted is None:
            return None
        return max(0, wanted - len(self.points) - int((self.refused["role"] != "baseline").sum()))

    def timed(self):
        """Points and baselines under each other."""
        return pandas.concat([self.points, self.baselines], ignore_index=True)

    def machines(self):
        """Descriptions of the GPUs that ran its points or, where none did, of the hosts."""
        def of(key):
            return sorted({record.provenance[key] for record in self.records} - {""})
        return of("device") or of("host")

    def title(self):
        """Its name and that of the machine that it is about: the one that was timed or, where nothing was timed, the one that was modelled."""
        if "time" not in self.points and self.settings.get("device"):
            return f"{self.name}, modelled for {self.settings['device'].upper()}"
        names = sorted({machine.partition(",")[0].replace("(R)", "") for machine in self.machines()})
        return f"{self.name} on {' and '.join(names)}"

    def varying(self, beginning=""):
        """Axes that have several values among the points, the most values first."""
        counts = {axis: self.points[axis].nunique() for axis in self.axes if axis in self.points and axis.startswith(beginning)}
        return [axis for axis in sorted(counts, key=lambda axis: -counts[axis]) if counts[axis] > 1]

    def column(self, name):
        """The column that a plot means by `name`: as it stands, or the one axis or measurement whose last part it is. None where
        the records have none: a run on the executor has no times."""
        columns = list(self.points.columns)
        if name == "kernel":
            name = "contender"
        if name in columns:
            return name
        ends = [column for column in columns if column.endswith("." + name)]
        if len(ends) == 1:
            return ends[0]
        return None

    def value(self):
        """The measurement that a study is about when its file does not say: speed if it was timed, else a value of the model."""
        for name in ("rate", "time", "model.time_floor"):
            if name in self.points and self.points[name].notna().any():
                return name
        modelled = [name for name in self.points if name.startswith(("model.", "counter.", "error."))]
        return next((name for name in modelled if self.points[name].nunique() > 1), None)


def is_better_high(name):
    return any(part in name for part in HIGH_IS_BETTER)


def read(folder):
    folder = pathlib.Path(folder)
    files = sorted(folder.glob("records*.jsonl"))
    if not files:
        what = "has no records*.jsonl" if folder.is_dir() else "is no folder"
        raise BadInput(f"{folder}: {what}; a report needs a results folder of `attest study run`")
    settings = read_settings(folder)
    spec = read_spec(path_of_spec(folder, settings))
    found = [record for path in files for record in record_files.read(path)]
    by_kind = {}
    for record in found:
        by_kind.setdefault(record.kind, []).append(record)
    unknown = sorted(set(by_kind) - {"study", "study_answer", "study_summary"})
    if unknown:
        raise BadInput(f"{by_kind[unknown[0]][0].where}: kind '{unknown[0]}' is no part of a study")
    return assemble(spec, by_kind, found, folder, settings)


def committed(name):
    """A study whose records are under experiments/results: committed("h200/studies/block_size")."""
    return read(record_files.RESULTS / name)


def path_of_spec(folder, settings):
    """study.yaml of the folder, or the shipped study where its settings name the text: the blob that git knows it by."""
    blob = settings.get("study_blob")
    if blob is None:
        return folder / "study.yaml"
    shipped = SHIPPED / f"{settings.get('name')}.yaml"
    if not shipped.is_file() or blob_of(shipped.read_bytes()) != blob:
        raise BadInput(f"{folder}: was run of another {shipped.name} than the one that is shipped; `git show {blob} > study.yaml` there, and leave study_blob out of its settings")
    return shipped


def blob_of(text):
    """What `git hash-object` says of a file."""
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def read_spec(path):
    try:
        spec = yaml.safe_load(record_files.text_of(path))
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(spec, dict):
        raise BadInput(f"{path}: must be a map of keys such as name and question")
    spec["plots"] = spec.get("plots") or []
    is_list = isinstance(spec["plots"], list) and all(isinstance(plot, dict) for plot in spec["plots"])
    if not is_list or any(plot.get("kind") not in PLOT_KINDS for plot in spec["plots"]):
        raise BadInput(f"{path}: 'plots' must be a list of plots, each of kind {', '.join(PLOT_KINDS)}")
    return spec


def read_settings(folder):
    """How the study was begun: run.json of the folder; of one that is committed, its row in results/studies.json."""
    if (folder / "run.json").exists():
        return read_object(folder / "run.json")
    return read_object(COMMITTED).get(str(folder.resolve()).removeprefix(f"{record_files.RESULTS}/"), {})


def read_object(path):
    try:
        found = json.loads(record_files.text_of(path))
    except ValueError as error:
        raise BadInput(f"{path}: is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{path}: must be an object that says how the study was begun")
    return found


def assemble(spec, by_kind, found, folder, settings):
    of_points = latest(by_kind.get("study", []))
    if not of_points:
        raise BadInput(f"{folder}: has no record of kind study")
    table = record_files.frame(of_points)
    units = table.attrs["units"]
    table = table.drop(columns=AXIS + "kernel", errors="ignore")  # the contender
    axes = [column.removeprefix(AXIS) for column in table if column.startswith(AXIS)]
    table = table.rename(columns={AXIS + axis: axis for axis in axes})
    for axis in axes:
        table[axis] = as_numbers(table[axis])
    if PAGE_SIZE in axes:
        table[PAGE_SIZE] = table[PAGE_SIZE].map(lambda keys: CONTIGUOUS if keys == 0 else keys if keys != keys else number_text(keys))
    lengths = {"problem.query_len", "problem.key_len"} & set(axes)
    if LENGTH in axes and lengths:  # queries and keys of one number
        for axis in lengths:
            table[axis] = table[axis].fillna(table[LENGTH])
        axes.remove(LENGTH)
    for label in ("role", "name", "reason", "skipped_by", "flags", *POINT_LABELS):
        if label not in table:
            table[label] = ""
        table[label] = table[label].fillna("")
    for rate in ("rate", "bandwidth"):  # something over time, so its interval is that of the time
        if {rate, "time", "time_low", "time_high"} <= set(table):
            table[rate + "_low"], table[rate + "_high"] = (table[rate] * table["time"] / table[end] for end in ("time_high", "time_low"))
    timed = table[table.verdict == "passed"]
    summaries = by_kind.get("study_summary", [])
    return Study(
        folder=folder, name=of_points[0].labels.get("study") or folder.resolve().name, question=question_of(spec, summaries), plots=spec["plots"],
        expected=len(spec.get("expect") or []),
        points=timed[timed.role != "baseline"].reset_index(drop=True), baselines=timed[timed.role == "baseline"].reset_index(drop=True),
        skipped=table[table.verdict == "unsupported"], refused=table[~table.verdict.isin(["passed", "unsupported"])],
        answers=list({record.labels["that"]: record.labels for record in by_date(by_kind.get("study_answer", []))}.values()), summaries=summaries, axes=axes, units=units, records=found, settings=settings)


def question_of(spec, summaries):
    texts = [str(spec.get("question") or "")] + [summary.labels.get("question", "") for summary in summaries]
    return " ".join(next((text for text in texts if text), "").split())


def latest(records):
    """A point that a run left out and a later one measured has several records: the last one counts. Not all that was skipped has an id."""
    kept = {}
    for record in by_date(records):
        labels = record.labels
        name = (labels.get("point"), labels.get("role")) if labels.get("point") else record.where
        kept.pop(name, None)
        kept[name] = record
    return list(kept.values())


def by_date(records):
    return sorted(records, key=lambda record: record.provenance["date"])


def as_numbers(column):
    """The column as numbers where every value is one, so that axes are in their order; texts stay texts."""
    numbers = pandas.to_numeric(column, errors="coerce")
    return numbers if column.notna().any() and (numbers.notna() == column.notna()).all() else column


# What tells the points of a study apart, and which of them stand for others.

TELLING = ["problem.length", "problem.key_len", "problem.query_len", "problem.head_dim"]  # before a batch that follows from them


def others(table, used, candidates):
    """Those candidates without which rows of the table that agree in `used` would still differ; not a batch that follows from the length."""
    chosen = []
    for name in candidates:
        keys = [key for key in (*used, *chosen) if key]
        if name in keys or table[name].nunique(dropna=False) < 2:
            continue
        counts = table.groupby(keys, dropna=False)[name].nunique(dropna=False) if keys else table[[name]].nunique(dropna=False)
        if (counts > 1).any():
            chosen.append(name)
    return chosen


def of_problem(study):
    """What a picture must not mix: kernels, problems, inputs. Of several Plans it may show the best."""
    axes = [axis for axis in study.axes if not axis.startswith("plan.")]
    return ["contender"] + sorted(axes, key=lambda axis: TELLING.index(axis) if axis in TELLING else len(TELLING))


def said(values):
    """Values of axes in words: "head dim 64, bf16, no mask, contiguous"; nothing of those that are missing."""
    return ", ".join(value_said(name, value) for name, value in values if value == value)


def value_said(name, value):
    if name == "problem.mask" and value == "none":
        return "no mask"
    if name in ("contender", "problem.mask", "problem.element_type") or value == CONTIGUOUS:
        return value
    return f"{title_of(name)} {number_text(value)}"


def kernel_of(study):
    """A sentence that names the kernel, where all points are of one and no legend does."""
    kernels = study.points.contender.unique()
    return f" Kernel: {kernels[0]}." if len(kernels) == 1 else ""


def best_of(table, value, keys):
    """One row for each combination of the keys, the best; and whether there was a choice."""
    ordered = table.sort_values(value, ascending=not is_better_high(value), kind="stable")
    kept = ordered.drop_duplicates(keys)
    return kept, len(kept) < len(ordered)


def with_values(table, *names):
    return table[table[[name for name in names if name]].notna().all(axis=1)]
