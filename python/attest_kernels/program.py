"""The program `attest`, which this package carries."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class ProgramError(RuntimeError):
    """The program could not do what it was asked for: bad input, or trouble of the machine; its own line."""


def path():
    """$ATTEST_PROGRAM, the one in the wheel, or the newest one that was built in this package's clone."""
    named = os.environ.get("ATTEST_PROGRAM")
    if named:
        return named
    carried = HERE / "bin" / "attest"
    if carried.exists():
        return str(carried)
    built = sorted(HERE.parents[1].glob("build/*/bin/attest"), key=lambda file: file.stat().st_mtime)
    if built:
        return str(built[-1])
    raise ProgramError(f"no program attest in {carried.parent}, nor built beside it; set ATTEST_PROGRAM")


def environment():
    """Functions run in the Python that asks, and replay lines name this package's command."""
    return {"ATTEST_PYTHON": sys.executable, "ATTEST_COMMAND": "attest-kernels"}


def run(arguments, may_end_with=(0,)):
    """(exit code, what it wrote to stdout). Raises ProgramError with its own line where it ends otherwise."""
    try:
        done = subprocess.run([path(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={**environment(), **os.environ})
    except OSError as error:
        raise ProgramError(f"{path()} cannot be started: {error.strerror}") from error
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    has_broken = bool(lines) and lines[-1].startswith("attest: internal error")  # with the code of a failed verdict
    if done.returncode not in may_end_with or has_broken:
        raise ProgramError(lines[-1].removeprefix("attest: ") if lines else f"{path()} ended with {done.returncode}")
    return done.returncode, done.stdout
