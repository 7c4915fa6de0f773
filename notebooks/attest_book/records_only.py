"""Importing this forbids the process to read anything of the repository but records, and to start programs.

Notebooks run under it: what they show is then what is committed, on every machine.
"""

import pathlib
import sys

from attest_book.records import RESULTS

ROOT = RESULTS.parents[1]
STUDIES = ROOT / "experiments" / "studies"  # texts that records name
ALLOWED = [RESULTS, STUDIES, ROOT / "build" / "venv", pathlib.Path(__file__).resolve().parent]
SCRIPTS = ROOT / "experiments"  # its Python files know the forms of older record files
# Where Python, its packages, fonts and the kernel's connection file lie; a notebook has no records there.
SYSTEM = [pathlib.Path(path).resolve() for path in (sys.prefix, sys.base_prefix, "/usr", "/lib", "/etc", "/proc", "/sys", "/dev")]


def is_allowed(path, mode):
    resolved = pathlib.Path(path).resolve()
    is_read = not isinstance(mode, str) or not any(letter in mode for letter in "wax+")
    is_script = resolved.parent == SCRIPTS and resolved.suffix == ".py"
    return is_read and (is_script or any(resolved.is_relative_to(folder) for folder in ALLOWED + SYSTEM))


def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode(errors="replace")
        if not is_allowed(path, arguments[1]):
            raise PermissionError(f"notebooks read records only (experiments/results), not {path}")
    elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        raise PermissionError(f"notebooks read records only; they start no programs: {arguments[0]}")


sys.addaudithook(watch)
