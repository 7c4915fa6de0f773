"""The kernels of this repository, launched from Python between those of PyTorch.

`Library(path)` loads build/<preset>/lib/libattest_kernels.so (built where nvcc is). PyTorch's work
is put into the library's stream, so everything is timed in one process and one queue.
"""

import ctypes
import json

import torch


class KernelError(RuntimeError):
    """What the library says in one line: bad input, or a failed launch."""


class Library:
    def __init__(self, path):
        self._c = ctypes.CDLL(path)
        for name in ("attest_stream", "attest_prepare"):
            getattr(self._c, name).restype = ctypes.c_void_p
        for name in ("attest_error", "attest_problem", "attest_plan", "attest_default_plan", "attest_counters", "attest_count"):
            getattr(self._c, name).restype = ctypes.c_char_p
        self.stream = torch.cuda.ExternalStream(self._checked(self._c.attest_stream()))

    def _checked(self, result):
        if result in (None, -1):
            raise KernelError(self._c.attest_error().decode())
        return result

    def prepare(self, kernel, problem, plan, q, k, v):
        """A Run of `kernel` on contiguous tensors of the shapes that problem() says; `plan` as text, "" for the default one."""
        return Run(self, kernel, problem, plan, q, k, v)

    def problem(self, text):
        """What a problem's text means: `forward_flops`, the shapes of `q`, `k`, `v`, `o`, `lse` in memory, and where the
        entries of the batch start, `query_starts` and `key_starts` (cu_seqlens, each with its end)."""
        return json.loads(self._checked(self._c.attest_problem(text.encode())))

    def default_plan(self, kernel, problem):
        """(plan, where it is from) of `kernel` on this GPU: the tuned one, else the kernel's first."""
        said = json.loads(self._checked(self._c.attest_default_plan(kernel.encode(), problem.encode())))
        return said["plan"], said["origin"]

    def counters(self, names):
        """[{name, unit, metric, per, rest}] of groups, counters and metrics (core/records/hardware_counters.hpp)."""
        return json.loads(self._checked(self._c.attest_counters(json.dumps(names).encode())))

    def count(self, names, call):
        """[(name, value, unit)]: what the counters said of `call`, which launches in the library's stream and runs several times."""
        failed = []

        def work():
            try:
                call()
                return 0
            except Exception as error:  # must not cross the C interface
                failed.append(error)
                return -1

        counted = self._c.attest_count(json.dumps(names).encode(), ctypes.CFUNCTYPE(ctypes.c_int)(work))
        if failed:
            raise failed[0]
        return [(m["name"], m["value"], m["unit"]) for m in json.loads(self._checked(counted))]

    def append_record(self, path, kind, labels, measurements):
        """`measurements`: (name, value, unit) each. Commit, machine and date are filled in by the library."""
        rows = [{"name": name, "value": float(value), "unit": unit} for name, value, unit in measurements]
        arguments = (str(path), kind, json.dumps(labels), json.dumps(rows))
        self._checked(self._c.attest_append_record(*(text.encode() for text in arguments)))


class Run:
    """A kernel with its arguments. `o` and `lse`, of the shapes that Library.problem says, hold the last launch's answer."""

    def __init__(self, library, kernel, problem, plan, q, k, v):
        said = library.problem(problem)
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            assert tensor.is_contiguous() and list(tensor.shape) == said[name], f"{name}: {list(tensor.shape)}, not {said[name]}"
        self.kernel = kernel
        self._library, self._inputs = library, (q, k, v)
        self.o = torch.full(said["o"], float("nan"), device=q.device, dtype=q.dtype)
        self.lse = torch.full(said["lse"], float("nan"), device=q.device, dtype=torch.float32)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (q, k, v, self.o, self.lse)]
        prepared = library._c.attest_prepare(kernel.encode(), problem.encode(), plan.encode(), *pointers)
        self._handle = ctypes.c_void_p(library._checked(prepared))
        self.problem, self.flops = said["problem"], said["forward_flops"]
        self.plan = library._checked(library._c.attest_plan(self._handle)).decode()

    def __call__(self):
        self._library._checked(self._library._c.attest_launch(self._handle))

    def close(self):
        self._library._c.attest_release(self._handle)
