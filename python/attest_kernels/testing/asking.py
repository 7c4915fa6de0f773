"""What the judge is told of a function."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


def lines_of(place):
    """What a worker writes that is asked nothing: objects."""
    worker = pathlib.Path(__file__).resolve().parents[1] / "worker.py"
    with tempfile.NamedTemporaryFile() as shared:
        done = subprocess.run([sys.executable, "-B", str(worker), str(os.getpid()), place, shared.name], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def described(module, name):
    """What a worker says of a function, or its error."""
    return lines_of(f"{module.__file__}:{name}")[-1]
