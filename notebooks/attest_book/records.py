"""Reads record files (core/records/record.hpp), one JSON object a line, as strictly as the program that writes them."""

import dataclasses
import gzip
import json
import math
import pathlib
import re

SCHEMA = 1  # readers refuse any other: older code would misunderstand newer records
RESULTS = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "results"
RECORD_KEYS = {"schema": int, "kind": str, "case": (dict, type(None)), "verdict": str, "labels": dict, "measurements": list,
               "provenance": dict}
MEASUREMENT_KEYS = {"name": str, "value": (int, float, str), "unit": str}
PROVENANCE_KEYS = {"commit": str, "dirty": bool, "compiler": str, "cuda_compiler": str, "build_type": str, "sanitizers": str,
                   "host": str, "device": str, "date": str}
NOT_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # JSON has none of them


class BadInput(ValueError):
    """The one exception that a user may see. One line: what is wrong, what was found, what is allowed, where. The command line ends with exit code 2."""


@dataclasses.dataclass(frozen=True)
class Record:
    kind: str
    case: dict | None
    verdict: str
    labels: dict[str, str]
    values: dict[str, float]  # of the measurements, by name
    units: dict[str, str]     # the same names
    provenance: dict
    where: str                # file:line


def committed(*paths):
    """Records of files under experiments/results, the only ones that notebooks read: committed("h200/errors.jsonl")."""
    return [record for path in paths for record in read(RESULTS / path)]


def read(path):
    """All records of a file. A last line that a killed writer left unfinished is no record; anything else that is none raises."""
    text = text_of(path)
    lines = text.split("\n")
    unfinished = len(lines) if lines[-1] else None
    records = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        where = f"{path}:{number}"
        try:
            found = json.loads(line)
        except ValueError as error:
            if number == unfinished:
                break
            raise BadInput(f"{where}: is no JSON: {error}") from None
        records.append(record_of(found, where))
    return records


def json_lines(path):
    """The JSON objects of a file that holds one a line and no records: what `attest explain --json` printed."""
    return [json.loads(line) for line in text_of(path).splitlines()]


def text_of(path):
    """The text of a file, or of FILE.gz where a large one is kept so."""
    packed = pathlib.Path(f"{path}.gz")
    try:
        if packed.is_file():
            return gzip.decompress(packed.read_bytes()).decode("utf-8")
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: is no UTF-8 text: {error.reason} at byte {error.start}") from None


def record_of(found, where):
    check_keys(found, RECORD_KEYS, where)
    if found["schema"] != SCHEMA:
        raise BadInput(f"{where}: 'schema' must be {SCHEMA}, but is {found['schema']}")
    check_keys(found["provenance"], PROVENANCE_KEYS, f"{where}: provenance")
    for name, text in found["labels"].items():
        if not isinstance(text, str):
            raise BadInput(f"{where}: label '{name}' must be a string, but is {json.dumps(text)}")
    values, units = {}, {}
    for i, measurement in enumerate(found["measurements"]):
        check_keys(measurement, MEASUREMENT_KEYS, f"{where}: measurements[{i}]")
        name = measurement["name"]
        if name in values:
            raise BadInput(f"{where}: measurement '{name}' stands there twice")
        values[name] = number_of(measurement["value"], f"{where}: measurement '{name}'")
        units[name] = measurement["unit"]
    return Record(found["kind"], found["case"], found["verdict"], found["labels"], values, units, found["provenance"], where)


def sizes(problem):
    """{"b": 4, "h": 16, "kv": 2, "q": 512, "k": 1024, "d": 128} of a problem's text: entries, query heads, key heads, queries, keys, head dim."""
    found = {}
    for letter, number, key_heads in re.findall(r"\b([bhnqkd])(\d+)(?:/(\d+))?\b", problem):
        found |= {name: int(number) for name in {"n": "qk", "h": ("h", "kv")}.get(letter, letter)}
        if key_heads:
            found["kv"] = int(key_heads)
    return found


def number_of(value, where):
    if isinstance(value, str):
        if value not in NOT_NUMBERS:
            raise BadInput(f'{where} must be a number, "nan", "inf" or "-inf", but is {json.dumps(value)}')
        return NOT_NUMBERS[value]
    return float(value)


def check_keys(found, wanted, where):
    if not isinstance(found, dict):
        raise BadInput(f"{where}: must be an object, but is {json.dumps(found)[:60]}")
    for key, kind in wanted.items():
        if key not in found:
            raise BadInput(f"{where}: the key '{key}' is missing")
        is_bool_for_number = isinstance(found[key], bool) and kind is not bool
        if not isinstance(found[key], kind) or is_bool_for_number:
            raise BadInput(f"{where}: '{key}' has the wrong type: {json.dumps(found[key])[:60]}")
    unknown = sorted(set(found) - set(wanted))
    if unknown:
        raise BadInput(f"{where}: the key '{unknown[0]}' is unknown")


def frame(records):
    """A table, one row a record: kind, verdict, labels and measurements by their names, `provenance.commit` and the like. A
    name that a record lacks is missing there. `frame.attrs["units"]` gives the unit of each measurement."""
    import pandas  # the tools that make documents run without it
    rows, units = [], {}
    for record in records:
        for name, unit in record.units.items():
            if units.setdefault(name, unit) != unit:
                raise BadInput(f"{record.where}: measurement '{name}' is in {unit}, but others are in {units[name]}")
            if name in record.labels:
                raise BadInput(f"{record.where}: '{name}' is a label and a measurement")
        rows.append({"kind": record.kind, "verdict": record.verdict, **record.labels, **record.values,
                     **{f"provenance.{key}": value for key, value in record.provenance.items()}})
    table = pandas.DataFrame(rows)
    table.attrs["units"] = units
    return table


def kill_matrix(path="xeon-16core/kill_matrix.json"):
    """The document that `attest mutants` writes: one JSON object, not records."""
    return json.loads(text_of(RESULTS / path))


def provenance_line(records):
    """Where and when the records were made, in a sentence."""
    def of(key):
        return ", ".join(sorted({record.provenance[key] for record in records if record.provenance[key]})) or "-"
    dates = sorted({record.provenance["date"][:10] for record in records})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    changed = " with uncommitted changes" if any(record.provenance["dirty"] for record in records) else ""
    return f"{len(records)} records, {of('device') if of('device') != '-' else of('host')}; commit {of('commit')}{changed}, {when}"
