"""PyTorch: context_parallel, a ring of as many GPUs as there are, one process each, under scaled_dot_product_attention by one backend.

The processes are those that torchrun would start, with its variables; they wait for problems and end with the process that started them.
Claimed: lengths that are multiples of twice the GPUs, as its load balancing needs, and a causal mask of as many queries as keys. Other
causal problems are put together from such: rows past the last key see all of them, keys past the last row are seen by none."""

import ctypes
import functools
import io
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing.connection import Client, Listener

import torch
import torch.distributed
from torch.nn.attention import SDPBackend, sdpa_kernel

from attest_kernels import kernel

RANKS = max(torch.cuda.device_count(), 2)
multiple = 2 * RANKS


def packed(value):
    to = io.BytesIO()
    torch.save(value, to)
    return to.getvalue()


def unpacked(value):
    return torch.load(io.BytesIO(value))


def context_parallel_parts():
    """(context_parallel, context_parallel_unshard, options): its modules have moved."""
    from torch.distributed.tensor.experimental import context_parallel
    try:
        from torch.distributed.tensor.experimental import _context_parallel as package
        from torch.distributed.tensor.experimental._context_parallel import _attention as module
    except ImportError:
        from torch.distributed.tensor.experimental import _attention as module
        package = module
    return context_parallel, getattr(package, "context_parallel_unshard", None) or module.context_parallel_unshard, module._cp_options


def ring(mesh, q, k, v, causal, scale, backend):
    context_parallel, unshard, options = context_parallel_parts()
    options.enable_load_balance = causal  # without a mask all ranks have as much to do, and it refuses
    q, k, v = (tensor.cuda() for tensor in (q, k, v))
    with sdpa_kernel(getattr(SDPBackend, backend)), context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
        o, = unshard(mesh, [o], [2])
    return o.cpu()


def work():
    """A rank, until nobody asks any more."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    folder, rank, ranks = os.environ["ATTEST_MEETING"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    pipe = Client(f"{folder}/asker", "AF_UNIX")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl", init_method=f"file://{folder}/ranks", rank=rank, world_size=ranks)
    mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (ranks,))
    pipe.send_bytes(packed(rank))
    while True:
        try:
            asked_for = unpacked(pipe.recv_bytes())
        except EOFError:
            return
        try:
            answer = ring(mesh, *asked_for)
        except Exception as error:  # the asker's to judge
            answer = f"{type(error).__name__}: {error}"
        pipe.send_bytes(packed(answer))


@functools.cache
def group():
    """Connections to the ranks."""
    if torch.cuda.device_count() < RANKS:
        raise RuntimeError(f"context_parallel is judged on {RANKS} GPUs; this machine has {torch.cuda.device_count()}")
    folder = tempfile.mkdtemp(prefix="attest_context_parallel_")
    listener = Listener(f"{folder}/asker", "AF_UNIX")
    for rank in range(RANKS):
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "ATTEST_MEETING": folder,
                       "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.Popen([sys.executable, __file__], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    pipes = [listener.accept() for _ in range(RANKS)]
    by_rank = dict((unpacked(pipe.recv_bytes()), pipe) for pipe in pipes)
    return [by_rank[rank] for rank in range(RANKS)]


def asked(q, *rest):
    pipes, message = group(), packed((q.cpu(), *(one.cpu() if isinstance(one, torch.Tensor) else one for one in rest)))
    for pipe in pipes:
        pipe.send_bytes(message)
    answers = [unpacked(pipe.recv_bytes()) for pipe in pipes]
    for rank, answer in enumerate(answers):
        if isinstance(answer, str):
            raise RuntimeError(f"rank {rank}: {answer}")
    if not all(torch.equal(answers[0].nan_to_num(), answer.nan_to_num()) for answer in answers):
        raise RuntimeError("ranks have put together different answers")
    return answers[0].to(q.device)


def attention(q, k, v, causal, scale, backend):
    if not causal:
        return asked(q, k, v, False, scale, backend)
    both = min(q.shape[2], k.shape[2])
    parts = [asked(q[:, :, :both], k[:, :, :both], v[:, :, :both], True, scale, backend)]
    if q.shape[2] > both:
        parts.append(asked(q[:, :, both:], k, v, False, scale, backend))
    return torch.cat(parts, dim=2)


takes = functools.partial(kernel, rounds_parts=True, head_dims=[8, 64, 128], positive_scale=True, causal="top_left", layout="BHND", grouped=False,
                          query_len_multiple=multiple, key_len_multiple=multiple, masks=["none", "causal_top_left"])


@takes(types=["fp16", "bf16"])
def context_parallel_flash(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, "FLASH_ATTENTION")


@takes(types=["fp16", "bf16"], deterministic=False)  # FINDINGS.md, P6
def context_parallel_cudnn(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, "CUDNN_ATTENTION")


@takes(types=["fp32", "fp16", "bf16"])
def context_parallel_efficient(q, k, v, causal, scale):
    return attention(q, k, v, causal, scale, "EFFICIENT_ATTENTION")


if __name__ == "__main__":
    work()
