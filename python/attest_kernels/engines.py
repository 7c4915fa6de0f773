"""A campaign in parts on any concurrent.futures.Executor: threads and processes of this machine, mpi4py's MPIPoolExecutor, Dask's
client.get_executor(). A part is a shard of `attest verify`; what it needs travels with it, and so does what it found, so that workers need no
folder in common, only this package. A part whose worker is lost is done again, elsewhere; the first failure cancels what has not begun."""

import concurrent.futures
import dataclasses
import json
import pathlib
import tempfile

from attest_kernels import program
from attest_kernels.verifying import Report, campaign, options

TRIES = 3  # of a part, the first one counted


@dataclasses.dataclass(frozen=True)
class Part:
    number: int
    of: int
    place: str      # FILE.py:FUNCTION or MODULE:FUNCTION, as the one who asks has it
    source: bytes   # of the file; none of a module, which workers have installed
    arguments: tuple


def work(part):
    """What became of a part: (its Report, {name: text of a counterexample}). Runs on a worker."""
    with tempfile.TemporaryDirectory(prefix="attest") as name:
        folder, place = pathlib.Path(name), part.place
        if part.source is not None:
            file, _, function = part.place.rpartition(":")
            (folder / pathlib.Path(file).name).write_bytes(part.source)
            place = f"{folder / pathlib.Path(file).name}:{function}"
        report = campaign(place, folder, [*part.arguments, "--shard", f"{part.number}/{part.of}"])
        stored = {file.name: file.read_text() for file in (folder / "counterexamples").glob("*.json")}
    return report, stored


def run(executor, place, folder, *, cases, seed, jobs, parts):
    """The Report of the whole. Raises program.ProgramError for a function that cannot be judged, and what a worker raised that was lost too often."""
    parts = min(int(parts), int(cases))
    if parts < 1:
        raise ValueError(f"parts of {cases} cases are {parts}; allowed: at least 1")
    file = pathlib.Path(place.rpartition(":")[0])
    source = file.read_bytes() if file.suffix == ".py" else None
    arguments = (*options(cases=cases, jobs=jobs), "--seed", str(int(seed)))
    every = [Part(number, parts, place, source, arguments) for number in range(1, parts + 1)]
    waiting = {executor.submit(work, part): (part, 1) for part in every}
    reports, lost = [], None
    while waiting:
        done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            part, tries = waiting.pop(future)
            if future.cancelled():
                continue
            error = future.exception()
            if isinstance(error, program.ProgramError):
                cancel(waiting)
                raise error
            if error is not None and tries < TRIES:
                waiting[executor.submit(work, part)] = part, tries + 1
                continue
            if error is not None:
                lost = error
            else:
                report, stored = future.result()
                reports.append(kept(report, stored, place, folder))
            if error is not None or reports[-1].failures:
                cancel(waiting)
    failed = [report for report in reports if report.failures]
    if lost is not None and not failed:
        raise lost
    return merged(failed or reports, sum(report.cases for report in reports))


def cancel(waiting):
    for future in waiting:
        future.cancel()


def kept(report, stored, place, folder):
    """The report with its counterexamples here, of the function as it is called here."""
    there = folder / "counterexamples"
    for name, text in stored.items():
        example = json.loads(text)
        example["plugin"] = place
        there.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(json.dumps(example, indent=2) + "\n")
    return dataclasses.replace(report, failures=[dataclasses.replace(each, replay=str(there / pathlib.Path(each.replay).name)) for each in report.failures])


def merged(reports, cases):
    worst = ("crashed", "timed_out", "failed", "inconclusive", "passed")
    verdict = min((report.verdict for report in reports), key=lambda each: worst.index(each) if each in worst else 0)
    # A part may be too small to decide; the whole is what the parts together are.
    if verdict == "inconclusive" and any(report.verdict == "passed" for report in reports):
        verdict = "passed" if sum(report.verdict == "passed" for report in reports) * 2 >= len(reports) else verdict
    return Report(verdict, cases, [failure for report in reports for failure in report.failures], "\n".join(report.text for report in reports),
                  [shortfall for report in reports for shortfall in report.shortfalls])
