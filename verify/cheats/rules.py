"""Rules by which three projects accept a solution, in NumPy: the inputs that they draw, in which order and process they call whom, and how they
compare. Read from their sources at the commits that are named; shapes are theirs or smaller, float16 where they have bfloat16. Run as a program it
applies one rule to one function: rules.py RULE FILE.py NAME DTYPE, whose last line is `accepted` or `caught: why`."""

import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys

import numpy

from attest_kernels import probes

HERE = pathlib.Path(__file__).resolve().parent


def exact(q, k, v):
    return probes.exact(q, k, v, None, q.shape[3] ** -0.5)[0].astype(q.dtype)


def called(function, q, k, v):
    """Where a solution writes to a destination, one that nobody has written to."""
    if len(inspect.signature(function).parameters) == 3:
        return function(q, k, v)
    out = numpy.empty(q.shape, q.dtype)
    function(q, k, v, out)
    return out


def drawn(dtype, seed, draw, *sizes):
    batch, heads, queries, keys, dim = sizes
    generator = numpy.random.default_rng(seed)
    return [getattr(generator, draw)((batch, heads, rows, dim)).astype(dtype) for rows in (queries, keys, keys)]


def kernelbench(function, dtype):
    """src/kernelbench/eval.py, run_and_check_correctness: five trials of torch.rand, the reference first and on the same tensors;
    torch.allclose(reference, solution), atol and rtol 1e-2 in half precision and 1e-4 in single. Inputs of level1/97, one batch and head of 32."""
    tolerance = {"float16": 1e-2, "float32": 1e-4}[dtype]
    for trial in range(5):
        q, k, v = drawn(dtype, trial, "random", 1, 1, 512, 512, 1024)
        want = exact(q, k, v)
        got = called(function, q, k, v)
        if got.shape != want.shape:
            return f"trial {trial}: shape"
        if not numpy.allclose(want, got, atol=tolerance, rtol=tolerance):
            return f"trial {trial}: not close"
    return None


def gpu_mode(function, dtype):
    """problems/amd_202602/eval.py, leaderboard mode, and utils.py, match_reference: a check on a copy of the inputs, then timed runs with new
    inputs, each checked against a reference from a copy; rtol = atol = 1e-1, and for MLA one element in 20 may be outside."""
    for run in range(12):
        q, k, v = drawn(dtype, run, "standard_normal", 2, 2, 1, 1024, 64)
        copies = [each.copy() for each in (q, k, v)]
        got = called(function, q, k, v)
        want = exact(*copies)
        if got.shape != want.shape or (~numpy.isclose(got, want, atol=1e-1, rtol=1e-1)).mean() > 0.05:
            return f"run {run}: mismatch"
    return None


def flashinfer_bench(function, dtype):
    """flashinfer_bench/bench/evaluators/default.py, and bench/utils.py, compute_error_stats: three trials of torch.randn, all references before the
    first call; nothing infinite or NaN, and no element with both its absolute and its relative error over 1e-2. Timed runs are not looked at."""
    trials = [drawn(dtype, trial, "standard_normal", 2, 2, 128, 128, 64) for trial in range(3)]
    wanted = [exact(*trial) for trial in trials]
    for number, (trial, want) in enumerate(zip(trials, wanted)):
        got = called(function, *trial)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"trial {number}: shape or type"
        if not numpy.isfinite(got).all():
            return f"trial {number}: not finite"
        error = numpy.abs(got.astype(numpy.float32) - want.astype(numpy.float32))
        if ((error > 1e-2) & (error / (numpy.abs(want.astype(numpy.float32)) + 1e-8) > 1e-2)).any():
            return f"trial {number}: outside"
    return None


RULES = {"KernelBench 423217d": kernelbench, "GPU MODE f83cb92": gpu_mode, "FlashInfer-Bench 40e6ca7": flashinfer_bench}


def applied(rule, file, name, dtype):
    """What main() says, in a process of its own: `accepted`, or `caught: why`."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, HERE / "rules.py", rule, file, name, dtype], capture_output=True, text=True, check=False, env=environment,
                          stdin=subprocess.DEVNULL, timeout=300)
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines and lines[-1].startswith(("accepted", "caught")) else "caught: no answer"


def main(rule, file, name, dtype):
    spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        why = RULES[rule](getattr(module, name), dtype)
    except Exception as error:  # whatever a solution raises
        why = type(error).__name__
    print(f"\n{'accepted' if why is None else f'caught: {why}'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
