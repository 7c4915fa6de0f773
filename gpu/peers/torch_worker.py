"""Runs attention of PyTorch and Triton on tensors in GPU memory that another process owns.

Started by core/base/python_worker.cpp with the parent's process id and the paths of triton_flash.py, torch_decode.py and
torch_backward.py. A request is a line of JSON on stdin, its answer a line on stdout: {} or what was asked for, or
{"error": sentence}, with "fatal" where this process ends because the GPU's context is lost. It ends with its parent.

{"do": "open", "handle": hex, "bytes": n}  memory of the parent (cudaIpcGetMemHandle); "close" gives it back
{"do": "run", "kernel": name, "type": "fp16", "mask": name, "scale": x, "plan": {...}, "q": tensor, ..., "launches": n}
    tensor: {"at": first byte, "shape": [...], "strides": [...]} in that memory, with a "type" of its own where it is codes
    or their scales ("q_scale", "k_scale", "v_scale"). Writes o and lse, or with them
    and "d_o" as inputs dq, dk and dv; with launches
    {"ms": mean of so many launches in a row by CUDA events, "ran": names of the GPU kernels of one, profiled once a problem}.
    "graph": true times the replay of a CUDA graph of all launches, captured once a problem.
    "copied": true where the memory may hold other values than before.
    "query_starts", "key_starts": where entries that are packed begin, int32, with "most_queries" and "most_keys" of one.
    "pages": the dense page table, int32; k and v are pools then; "key_lengths": keys of every entry.
"""

import ctypes
import functools
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import signal
import sys
import threading
import time

import torch

aten = torch.ops.aten
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn,
          "e5m2": torch.float8_e5m2, "int8": torch.int8}
MASK_TYPES = {"none": 0, "causal_top_left": 1, "causal_bottom_right": 2}


class Memory:
    """The parent's memory, as one tensor of bytes."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.address = None
        self.bytes = None

    def open(self, handle, count):
        handle_type = type("CUipcMemHandle", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_ubyte * 64)]})
        address = ctypes.c_uint64()
        lazy_peer_access = 1
        code = self.driver.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle_type.from_buffer_copy(bytes.fromhex(handle)),
                                                 lazy_peer_access)
        if code != 0:
            raise RuntimeError(f"cuIpcOpenMemHandle gave CUDA error {code}: no memory of another process can be opened here")
        self.address = address
        interface = {"shape": (count,), "typestr": "|u1", "data": (address.value, False), "version": 3}
        owner = type("Owner", (), {"__cuda_array_interface__": interface})()
        self.bytes = torch.as_tensor(owner, device="cuda")

    def close(self):
        torch.cuda.synchronize()
        self.bytes = None
        if self.address is not None:
            self.driver.cuIpcCloseMemHandle(self.address)
        self.address = None

    def tensor(self, where, dtype):
        dtype = DTYPES[where["type"]] if "type" in where else dtype
        typed = self.bytes.view(dtype)
        # Nothing multiplies the stride of a dimension of size 1, which may be anything; PyTorch's kernels check it all the same.
        strides = [stride if size > 1 else where["shape"][-1] for size, stride in zip(where["shape"], where["strides"])]
        return typed.as_strided(where["shape"], strides, where["at"] // dtype.itemsize)


class Problem:
    def __init__(self, request, memory):
        self.kernel, self.mask, self.scale, self.plan = (request[name] for name in ("kernel", "mask", "scale", "plan"))
        self.q, self.k, self.v, self.o = (memory.tensor(request[name], DTYPES[request["type"]]) for name in "qkvo")
        self.lse = memory.tensor(request["lse"], torch.float32)
        self.outputs = (self.o, self.lse)
        if "d_o" in request:
            self.d_o, *self.outputs = (memory.tensor(request[name], DTYPES[request["type"]])
                                       for name in ("d_o", "dq", "dk", "dv"))
        self.is_causal = self.mask != "none"
        self.softcap = request.get("softcap", 0.0)
        self.query_starts, self.key_starts, self.key_lengths = (self.integers(request, memory, name)
                                                                for name in ("query_starts", "key_starts", "key_lengths"))
        self.most_queries, self.most_keys = request.get("most_queries"), request.get("most_keys")
        self.scales = [memory.tensor(request[name], torch.float32) if name in request else None
                       for name in ("q_scale", "k_scale", "v_scale")]
        self.pages = memory.tensor(request["pages"], torch.int32) if "pages" in request else None

    @staticmethod
    def integers(request, memory, name):
        return memory.tensor(request[name], torch.int32)[0] if name in request else None

    def hidden(self):
        """True where a key is hidden from a query; None for no mask."""
        queries, keys = self.q.shape[2], self.k.shape[2]
        if not self.is_causal:
            return None
        diagonal = keys - queries if self.mask == "causal_bottom_right" else 0
        return torch.ones(queries, keys, dtype=torch.bool, device="cuda").triu(diagonal + 1)


# Each gives (run, results): run() makes what is timed, results(what it made) are the outputs; None: run() writes them itself.

def flash(p):
    def run():
        return aten._scaled_dot_product_flash_attention(p.q, p.k, p.v, 0.0, p.is_causal, False, scale=p.scale)
    return run, lambda made: (made[0], made[1])


def cudnn(p):
    def run():
        return aten._scaled_dot_product_cudnn_attention(p.q, p.k, p.v, None, True, 0.0, p.is_causal, False, scale=p.scale)
    return run, lambda made: (made[0], made[1].reshape(p.lse.shape))


def efficient(p):
    q, k, v = (tensor.transpose(1, 2) for tensor in (p.q, p.k, p.v))
    mask = MASK_TYPES[p.mask]

    def run():
        return aten._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, mask, True, scale=p.scale)
    # LSE is padded to a multiple of 32 rows.
    return run, lambda made: (made[0].transpose(1, 2), made[1][:, :, :p.q.shape[2]])


def flash_attention_3(p):
    import fa3_fwd._C  # noqa: F401, registers the operator
    q, k, v = (tensor.transpose(1, 2) for tensor in (p.q, p.k, p.v))
    # As its own interface calls it (fa3_fwd_interface.py): no chunk; one split, so that a row's bits do not hang on its batch.
    # It has windows, the wheel is built without them. The last three are scales of codes, [batch, KV heads].
    without = [None] * 17 + [None if scales is None else scales[:, :, 0, 0] for scales in p.scales]
    window, chunk, interleaved, metadata, splits, pack, margin = (-1, -1), 0, True, None, 1, None, 0

    def run():
        return torch.ops.fa3_fwd.fwd(q, k, v, *without, p.scale, p.is_causal, *window, chunk, p.softcap, interleaved, metadata,
                                     splits, pack, margin)
    return run, lambda made: (made[0].transpose(1, 2), made[1])


def flash_attention_4(p):
    # What its interface compiles at the first call of each type, head dim, group and mask it keeps; one split.
    from flash_attn.cute import flash_attn_func
    q, k, v = (tensor.transpose(1, 2) for tensor in (p.q, p.k, p.v))

    def run():
        return flash_attn_func(q, k, v, softmax_scale=p.scale, causal=p.is_causal, return_lse=True)
    return run, lambda made: (made[0].transpose(1, 2), made[1])


def math(p):
    is_grouped = p.q.shape[1] != p.k.shape[1]
    # To the operator a mask is what is added to the scores: SDPA makes that of one of bools.
    added = None
    if p.mask == "causal_bottom_right":
        hidden = p.hidden()
        added = torch.zeros(hidden.shape, dtype=p.q.dtype, device="cuda").masked_fill_(hidden, float("-inf"))

    def run():
        return aten._scaled_dot_product_attention_math(p.q, p.k, p.v, added, 0.0, p.mask == "causal_top_left", None,
                                                       scale=p.scale, enable_gqa=is_grouped)

    def results(made):
        # The backend keeps no LSE: that of its own scores, formed by its own formula (sqrt(scale) on either side, in fp32).
        root = abs(p.scale) ** 0.5
        keys = p.k.float().repeat_interleave(p.q.shape[1] // p.k.shape[1], dim=1)
        scores = (p.q.float() * (root if p.scale >= 0 else -root)) @ (keys * root).transpose(2, 3)
        every = p.hidden()
        if every is not None:
            scores.masked_fill_(every, float("-inf"))
        # How logsumexp adds hangs on how a row is aligned in memory: all alike, so that equal rows get equal bits.
        padded = torch.nn.functional.pad(scores, (0, -scores.shape[-1] % 8), value=float("-inf"))
        return made[0], torch.logsumexp(padded, dim=-1)
    return run, results


def triton(p):
    kernel = script("triton_flash", 2)
    return (lambda: kernel.forward(p.q, p.k, p.v, p.o, p.lse, p.scale, p.mask, p.plan)), None


def in_torch_decode(name):
    return lambda p: getattr(script("torch_decode", 3), name)(p)


def backward(name):
    return lambda p: getattr(script("torch_backward", 4), name)(p)


@functools.cache
def script(name, argument):
    """The module of that name: read from a file without a suffix, and only where it is asked for."""
    loader = importlib.machinery.SourceFileLoader(name, sys.argv[argument])
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


KERNELS = {"torch_flash": flash, "torch_cudnn": cudnn, "torch_efficient": efficient, "torch_math": math, "triton_flash": triton,
           "flash_attention_3": flash_attention_3, "flash_attention_3_fp8": flash_attention_3, "flash_attention_4": flash_attention_4,
           **{name: in_torch_decode(name) for name in ("flash_attention_3_kvcache", "flashinfer_decode", "flashinfer_prefill")},
           **{f"torch_{name}_backward": backward(name) for name in ("flash", "cudnn", "efficient", "math")},
           "flash_attention_4_backward": backward("flash_attention_4")}
# What the name of a GPU kernel of each contains; of math's, that of no other.
NAMES = {"torch_flash": "flash", "torch_cudnn": "cudnn", "torch_efficient": "fmha", "triton_flash": "triton_flash_forward",
         "flash_attention_3": "FlashAttnFwdSm90", "flash_attention_3_fp8": "FlashAttnFwdSm90", "flash_attention_3_kvcache": "FlashAttnFwdSm90",
         "flash_attention_4": "FlashAttentionForwardSm90", "flash_attention_4_backward": "FlashAttentionBackwardSm90",
         "flashinfer_decode": "KVCacheKernel", "flashinfer_prefill": "PrefillWithKVCacheKernel", "torch_flash_backward": "flash_bwd",
         "torch_cudnn_backward": "cudnn", "torch_efficient_backward": "fmha"}


def gpu_kernels_of(run):
    """Names of the GPU kernels that run() launches; none where the profiler cannot say."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    return sorted({event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA})


def require_right_kernels(name, ran):
    if not ran:
        return
    if name in NAMES:
        is_right = any(NAMES[name] in kernel for kernel in ran)
    else:
        is_right = not any(other in kernel for other in NAMES.values() for kernel in ran)
    if not is_right:
        raise RuntimeError(f"PyTorch ran another backend: {', '.join(ran)}")


def captured(name, run, launches):
    """(replay, what it makes): a CUDA graph of so many run() in a row."""
    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):  # what only the first launch does
        run()
    beside.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(launches):
                made = run()
    except Exception as error:
        raise RuntimeError(f"{name} cannot be captured in a CUDA graph: {sentence(error)}") from error
    return graph.replay, made


class Worker:
    HOW = ("launches", "graph", "copied")  # parts of a request that say nothing of what is computed

    def __init__(self):
        self.memory = Memory()
        self.ran = {}       # names of GPU kernels by request
        self.forget()

    def forget(self):
        self.ready = {}     # (problem, run, results) by request, of one problem: peers take turns on it
        self.graphs = {}    # (replay, what it makes) by request and launches
        self.ready_on = None

    def made_ready(self, request, key):
        place = {name: value for name, value in request.items() if name not in ("kernel", "plan", *self.HOW)}
        if place != self.ready_on or request.get("copied"):
            self.forget()  # the old ones first: they may hold a mask of the size of the scores
            self.ready_on = place
        if key not in self.ready:
            problem = Problem(request, self.memory)
            self.ready[key] = (problem, *KERNELS[problem.kernel](problem))
        return self.ready[key]

    @staticmethod
    def write(problem, results, made):
        if results is not None:
            for output, result in zip(problem.outputs, results(made), strict=True):
                output.copy_(result)
        torch.cuda.synchronize()

    def run(self, request):
        key = json.dumps({name: value for name, value in request.items() if name not in self.HOW})
        problem, run, results = self.made_ready(request, key)
        launches = request["launches"]
        if launches == 0:
            self.write(problem, results, run())
            return {}
        if key not in self.ran:
            self.ran[key] = gpu_kernels_of(run)
        require_right_kernels(problem.kernel, self.ran[key])
        if request.get("graph"):
            if (key, launches) not in self.graphs:
                self.graphs[key, launches] = captured(problem.kernel, run, launches)
            replay, made = self.graphs[key, launches]
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        if request.get("graph"):
            replay()
        else:
            for _ in range(launches):
                made = run()
        stop.record()
        stop.synchronize()
        self.write(problem, results, made)
        return {"ms": start.elapsed_time(stop) / launches, "ran": self.ran[key]}

    def answer(self, request):
        if request["do"] == "open":
            self.memory.open(request["handle"], request["bytes"])
        elif request["do"] == "close":
            self.forget()  # their tensors lie in it
            self.memory.close()
        else:
            return self.run(request)
        return {}


def sentence(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def versions():
    found = [f"PyTorch {torch.__version__}"]
    cudnn = torch.backends.cudnn.version()
    if isinstance(cudnn, int):  # by which known findings of it are told
        found.append(f"cuDNN {cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}")
    for name, package in (("Triton", "triton"), ("FlashAttention-3, fa3_fwd", "fa3_fwd"), ("FlashAttention-4", "flash-attn-4"),
                          ("CuTe DSL", "nvidia-cutlass-dsl"), ("FlashInfer", "flashinfer-python")):
        try:
            found.append(f"{name} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def die_with(parent):
    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)
    threading.Thread(target=watch, daemon=True).start()


def main():
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nothing that a library prints is an answer

    def say(answer):
        answers.write(json.dumps(answer) + "\n")

    try:
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("highest")  # no TF32
        torch.zeros(1, device="cuda")
        worker = Worker()
    except Exception as error:
        say({"error": sentence(error), "fatal": True})
        return
    say({"ready": ", ".join(versions())})
    for line in sys.stdin:
        try:
            say(worker.answer(json.loads(line)))
        except Exception as error:
            try:
                torch.cuda.synchronize()
                say({"error": sentence(error), "machine": isinstance(error, torch.cuda.OutOfMemoryError)})
            except Exception:
                say({"error": sentence(error), "fatal": True})
                return


if __name__ == "__main__":
    main()
