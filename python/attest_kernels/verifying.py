"""A function under all laws: the campaign of `attest verify`, and what came of it as Python's objects."""

import dataclasses
import inspect
import json
import pathlib
import tempfile

from attest_kernels import program


@dataclasses.dataclass(frozen=True)
class Failure:
    law: str       # the one that was broken
    problem: str   # the smallest one that fails, as reports print it
    what: str      # what is wrong, in a line
    replay: str    # the file that `attest-kernels replay` shows the failure again with


@dataclasses.dataclass(frozen=True)
class Report:
    """`verdict`: passed, failed, crashed, timed_out or inconclusive. `text`: what the program printed."""
    verdict: str
    cases: int
    failures: list
    text: str
    shortfalls: list  # sentences: what was refused or not asked, and why nothing is decided

    @property
    def passed(self):
        return self.verdict == "passed"

    def __bool__(self):
        return self.passed


def place_of(function):
    """FILE.py:FUNCTION. Raises ValueError for what another process cannot import."""
    if isinstance(function, str):
        return function
    name = getattr(function, "__qualname__", type(function).__name__)
    module = inspect.getmodule(function)
    if "<" in name or module is None:
        raise ValueError(f"'{name}' is no function that another process can import; allowed: one of a file, by its name, or 'FILE.py:FUNCTION'")
    file = getattr(module, "__file__", None)
    if module.__name__ != "__main__" and "." not in module.__name__ and file is None:
        return f"{module.__name__}:{name}"
    if file is None:
        raise ValueError(f"'{name}' was typed in and is in no file; allowed: a function of a file")
    return f"{file}:{name}" if module.__name__ == "__main__" or "site-packages" not in file else f"{module.__name__}:{name}"


def verify(function, *, operation=None, seconds=None, cases=None, seed=1, jobs=None, out=None, executor=None, parts=16):
    """Judges a function by all laws on inputs that are drawn, and shrinks the first that fails.

    `function`: one that another process can import, or "FILE.py:FUNCTION" or "MODULE:FUNCTION"; it takes q, k and v as conventions.py reads them.
    `operation`: "forward", or "backward" for gradients, by its framework or its own (gradients.py); by default what it declares, else backward for one
    that takes do.
    It runs in processes of its own: one that crashes or hangs is a verdict. `seconds`, a number or a text such as "5min", or `cases` end the
    campaign, by default 60 cases; which verdict a case gets is a function of `seed` and its number. Counterexamples stay in `out`, by default a
    folder of the system for such files.
    `executor`: any concurrent.futures.Executor, of MPI or Dask, say: the campaign is cut into so many `parts`, which need no folder in common
    (engines.py). Returns a Report, true if it passed. Raises program.ProgramError for a function that answers no probe."""
    folder = pathlib.Path(out) if out is not None else pathlib.Path(tempfile.mkdtemp(prefix="attest"))
    place = place_of(function) + ("" if operation is None else f"@{operation}")
    if executor is not None:
        from attest_kernels import engines
        if seconds is not None:
            raise ValueError(f"seconds is {seconds!r} with an executor; allowed: cases, which are shared out")
        return engines.run(executor, place, folder, cases=60 if cases is None else cases, seed=seed, jobs=jobs, parts=parts)
    return campaign(place, folder, [*options(seconds=seconds, cases=cases, jobs=jobs), "--seed", str(int(seed))])


def options(*, seconds=None, cases=None, jobs=None):
    given = (("--for", seconds if seconds is None or isinstance(seconds, str) else f"{float(seconds):g}s"), ("--cases", cases), ("--jobs", jobs))
    return [word for name, value in given if value is not None for word in (name, str(value))]


def campaign(place, folder, arguments):
    """The Report of `attest verify` of a place's function, whose files lie in the folder."""
    _, text = program.run(["verify", "--python", place, "--out", str(folder), *arguments], may_end_with=(0, 1, 4))
    record = json.loads((folder / "verify.jsonl").read_text().splitlines()[-1])
    cases = next(found["value"] for found in record["measurements"] if found["name"] == "cases")
    name = record["labels"]["kernel"] + ": "
    return Report(record["verdict"], int(cases), failures_in(text), text, [line.removeprefix(name) for line in text.splitlines() if line.startswith(name)])


def failures_in(text):
    """Of what a campaign prints: a block of lines `  word  what it is` for each failure."""
    found, block = [], {}
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if line.startswith("  ") and word in ("law", "problem", "what", "worst", "replay"):
            block[word] = rest.strip()
        if word == "replay":
            found.append(Failure(block["law"], block["problem"], "; ".join(block[name] for name in ("what", "worst") if name in block),
                                 block["replay"].rpartition(" replay ")[2]))
            block = {}
    return found
