"""A results folder for tests, with numbers from a formula, in the form that `attest study run` writes."""

import json
import pathlib

PROVENANCE = {"commit": "0123456789ab", "dirty": False, "compiler": "GNU", "cuda_compiler": "", "build_type": "Release", "sanitizers": "",
              "host": "a host", "device": "a device", "date": "2026-11-22T10:00:00Z"}
SPEC = """name: tiles
question: Which tiles are fastest?
plots:
  - {kind: heat_map, x: query_tile, y: key_tile, value: rate, title: Rate by tiles}
"""


def record(kind="study", verdict="passed", labels=(), values=(), units=()):
    measurements = [{"name": name, "value": value, "unit": dict(units).get(name, "1")} for name, value in dict(values).items()]
    return {"schema": 1, "kind": kind, "case": None, "verdict": verdict, "labels": {"study": "tiles", **dict(labels)},
            "measurements": measurements, "provenance": PROVENANCE}


UNITS = {"time": "ms", "time_low": "ms", "time_high": "ms", "rate": "TFLOP/s", "error.rmse": "value", "model.time_floor": "ms",
         "model.dram_bytes": "B", "model.peak_flops": "FLOP/s", "model.peak_bandwidth": "B/s"}


def timed(kernel, length, query_tile, key_tile, time, role="point", **labels):
    flops = 4.0 * 96 * 64 * length * length
    values = {"time": time, "time_low": time * 0.99, "time_high": time * 1.02, "rate": flops / time * 1e-9, "speed_over_torch": 10.0 / time,
              "speed_over_torch_low": 9.8 / time, "speed_over_torch_high": 10.1 / time, "error.rmse": 1e-7 * query_tile / key_tile,
              "model.dram_bytes": 4.0 * 96 * 64 * length * (2 + 2 * length / query_tile),
              "model.flops": flops, "model.peak_flops": 66.9e12, "model.peak_bandwidth": 4.8e12,
              "model.time_floor": time / 2, "model.time_floor.arithmetic": time / 2, "model.time_floor.memory": time / 7}
    plan = f"qt{query_tile} kt{key_tile}" if role == "point" else "-"
    axes = {"axis.kernel": kernel, "axis.problem.length": str(length)}
    if role == "point":
        axes |= {"axis.plan.query_tile": str(query_tile), "axis.plan.key_tile": str(key_tile)}
    return record(labels={"point": f"{kernel} {length} {plan}", "contender": kernel, "role": role, "executor": "gpu", "plan": plan,
                          "problem": f"b8 h12 n{length} d64 none fp32", "cache": "hot", **axes, **labels}, values=values, units=UNITS)


def points(slower=1.0):
    """Times in ms; `slower` multiplies those of tiles of 128 rows."""
    made = []
    for length in (512, 1024, 2048):
        for query_tile in (32, 64, 128):
            for key_tile in (32, 64):
                time = length * length * 1e-6 * (1 + abs(query_tile - 64) / 64 + 16 / key_tile) * (slower if query_tile == 128 else 1.0)
                made.append(timed("k10_wide_tiles", length, query_tile, key_tile, time, flags="throttled" if length == 2048 and key_tile == 32 else ""))
        made.append(timed("torch", length, 1, 1, length * length * 2e-6, role="baseline"))
    return made


def modelled():
    """The points as a run on the executor records them: values of models and errors, no times."""
    made = []
    for record in points():
        if record["labels"]["role"] == "point":
            kept = [m for m in record["measurements"] if m["name"].startswith(("model.", "error."))]
            made.append({**record, "measurements": kept, "labels": {**record["labels"], "executor": "simt"}})
    return made


def not_run():
    skipped = {"reason": "tiles of 256 rows need more shared memory than an SM has", "skipped_by": "kernel", "contender": "k10_wide_tiles"}
    refused = {"reason": "not verified: O is outside its error bound", "point": "bad", "contender": "k10_wide_tiles", "role": "point"}
    return [record(verdict="unsupported", labels=skipped)] * 3 + [record(verdict="failed", labels=refused)]


def ends():
    answers = [{"that": "max(rate) > 1", "because": "it should", "claim": "Q1.1", "answer": "holds", "found": "6.4 (6.3 to 6.5) > 1"},
               {"that": "all(speed_over_torch > 1)", "because": "", "claim": "", "answer": "refuted", "found": "0.9 at n512"}]
    summary = record("study_summary", "", {"question": "Which tiles are fastest?"}, {"points": 19, "timed": 18, "skipped": 3, "refused": 1,
                                                                                  "kernel_time": 20.0, "wall_time": 21.0, "overhead": 0.05})
    return [record("study_answer", "", answer) for answer in answers] + [summary]


def write(folder, records=None, spec=SPEC):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(spec)
    lines = records if records is not None else points() + not_run() + ends()
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
