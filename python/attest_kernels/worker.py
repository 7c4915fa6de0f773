"""Runs a function as a kernel under test, in a process of its own: plugin/python_process.cpp starts it, once a process that judges.

Arguments: the parent's process id, FILE.py:FUNCTION or MODULE:FUNCTION with @OPERATION behind it or not, and a file of shared memory. The first lines
that it writes are {"doing": words}, what it is about to do, and then one that describes the function (subject.py); after that a request is a line of
JSON on stdin, its answer a line on stdout, {} or {"error": sentence}:

{"bytes": n, "causal": true, "scale": x, "modified": {"softcap": x, "window": [left, right]},
 "tensors": {"q": {"type": "fp16", "at": first byte, "shape": [...]}, ...}, "indices": {...}}
    the operation's tensors by name, contiguous in the shared memory, whose size is now n; outputs are written. `modified` has what the case has, and a
    window that ends at the diagonal is `causal`, too; of a choice of keys it has top_k. Where more hides keys a tensor "mask" of booleans says all of it,
    and neither `causal` nor a window does. A gate and a residual lie as o does. `indices` are lists: query_starts and key_starts where the entries lie packed in [1, H, T, D]
    (packed.py), and a page table (paged.py). What a request has as "number" its answer has too. It ends with its parent. Without a function among the arguments it is ready first, {"ready": true}; the first request is then
{"load": FILE.py:FUNCTION, "asked": what a task asks}, and the function is taken as judged.py says."""

import importlib
import json
import mmap
import os
import pathlib
import sys
import threading
import time

# Small problems one after the other, in a process for each core: threads of a library's own would get into each other's way.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

if not __package__:
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from attest_kernels import interpreter, judged, subject


class Memory:
    """The file that the parent shares, mapped as far as it reaches now."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR)
        self.map, self.size = None, 0

    def of(self, size):
        if size != self.size:
            self.map, self.size = mmap.mmap(self.file, size), size  # what still looks into the old one keeps it
        return self.map


def answer(function, memory, request):
    framework, space = function.framework, memory.of(request["bytes"])
    tensors = {name: framework.view(space, one["type"], one["shape"], one["at"]) for name, one in request["tensors"].items()}
    given = {**tensors, **request["indices"], **request["modified"]}
    for name, made in function.convention.call(framework, given, request["causal"], request["scale"]).items():
        framework.store(tensors[name], made)
    return {}


def die_with(parent):
    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)
    threading.Thread(target=watch, daemon=True).start()


def main(parent, *others):
    *text, shared = others
    # Lines for the parent go where nothing that the function prints does.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what):
        channel.write(json.dumps(what) + "\n")
        channel.flush()

    def number_of(request):
        return {"number": request["number"]} if "number" in request else {}

    die_with(int(parent))
    interpreter.choose()
    number = {}
    try:
        memory = Memory(shared)
        if text:
            function = subject.Subject(*text, notes=lambda words: say({"doing": words}))
        else:
            importlib.import_module("numpy")  # most use it, and who is judged may be asked later than this process is started
            say({"ready": True})
            request = json.loads(sys.stdin.readline() or "{}")
            if not request:
                return
            number = number_of(request)
            function = judged.Judged(request["load"], request["asked"])
        say({**function.describe(), **number})
    except BaseException as error:  # sys.exit() of a file among them
        say({"error": subject.sentence(error), **number})
        return
    for line in sys.stdin:
        request = json.loads(line)
        number = number_of(request)
        try:
            say({**answer(function, memory, request), **number})
        except Exception as error:
            say({"error": subject.sentence(error), **number})


if __name__ == "__main__":
    main(*sys.argv[1:])
