"""Reads record files (core/records/record.hpp) for the scripts that make tables of them."""

import gzip
import json
import math
import pathlib

# Of a run of several launches these are those of the longest one; other counters are sums.
OF_LONGEST = ("achieved_occupancy", "occupancy_limit", "registers", "shared_per_block", "blocks", "threads")


SCHEMA = 1  # of core/records/record.hpp; hardware_check.jsonl has rows of its own, without one


def read(path):
    """The records of a file, or of FILE.gz where a large one is kept so, oldest first. Raises ValueError for a schema that is not SCHEMA: its
    fields may mean something else."""
    packed = pathlib.Path(f"{path}.gz")
    text = gzip.decompress(packed.read_bytes()).decode() if packed.is_file() else pathlib.Path(path).read_text()
    records = [json.loads(line) for line in text.splitlines() if line]
    for number, record in enumerate(records, 1):
        if record.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"{path}:{number}: schema is {record['schema']}; allowed: {SCHEMA}")
    return records


def values(record):
    return {m["name"]: m["value"] for m in record["measurements"]}


def sizes(text):
    """{"b": 8, "n": 4096, "d": 64} of a shape's or a problem's text; heads are left out where key heads are named too."""
    return {part[0]: int(part[1:]) for part in text.split() if part[0] in "bhnqkd" and part[1:].isdigit()}


def geometric_mean(ratios):
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))


def counters_by_run(records):
    """{(shape, kernel, plan): counters}, from records of counters, one a launch."""
    runs, longest = {}, {}
    for record in records:
        labels, found = record["labels"], values(record)
        key = (labels["shape"], labels["contender"], labels["plan"])
        run = runs.setdefault(key, {})
        for name, value in found.items():
            if name not in OF_LONGEST:
                run[name] = run.get(name, 0.0) + value
        if found["duration_under_profiler"] > longest.get(key, -1.0):
            longest[key] = found["duration_under_profiler"]
            run.update({name: found[name] for name in OF_LONGEST if name in found})
    return runs
