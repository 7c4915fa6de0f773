"""Libraries of several ranks: processes as torchrun would start them, with its variables, one for each GPU, and without a GPU two on the CPU. They wait
for problems, and end with the process that started them.

Such a library takes lengths that its ranks share evenly, and a causal mask of as many queries as keys. Other causal problems are put together from
such: rows past the last key see all of them, keys past the last row are seen by none."""

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

from attest_kernels import kernel

RANKS = max(torch.cuda.device_count(), 2)
MULTIPLE = 2 * RANKS  # zigzag gives each rank two parts
DEVICE, BACKEND = ("cuda", "nccl") if torch.cuda.is_available() else ("cpu", "gloo")

takes = functools.partial(kernel, head_dims=[8, 64, 128], positive_scale=True, causal="top_left", layout="BNHD", grouped=False,
                          query_len_multiple=MULTIPLE, key_len_multiple=MULTIPLE, masks=["none", "causal_top_left"])


def share(order, count, rank):
    """Tokens of one rank, of `count`: neighbours, two chunks as far from the middle (zigzag), or each RANKS-th (stripes)."""
    if order == "stripes":
        return list(range(rank, count, RANKS))
    chunks = {"neighbours": [2 * rank, 2 * rank + 1], "zigzag": [rank, MULTIPLE - 1 - rank]}[order]
    size = count // MULTIPLE
    return [token for chunk in chunks for token in range(chunk * size, (chunk + 1) * size)]


# A rank.

def of_rank(take, attend, q, k, v, do):
    """What a rank answers: [(tokens, its part), ...] of O [B, N, H, D] and LSE [B, H, N], or with `do` of dQ, dK and dV by its library's own backward pass.
    take(array): its part of [B, N, ...]; attend(q, k, v): (O, LSE) or (O,) of its parts."""
    rows, keys = (take(torch.arange(array.shape[1], device=array.device)[None])[0] for array in (q, k))
    parts = [take(array).detach().contiguous().requires_grad_(do is not None) for array in (q, k, v)]
    outputs = attend(*parts)
    if do is None:
        return [(rows, part) for part in outputs]
    return [*zip((rows, keys, keys), torch.autograd.grad(outputs[0], parts, take(do).contiguous()))]


def packed(value):
    to = io.BytesIO()
    torch.save(value, to)
    return to.getvalue()


def unpacked(value, device="cpu"):
    return torch.load(io.BytesIO(value), map_location=device)


def work(answer):
    """A rank, until nobody asks any more: answer(*what was asked) goes back. Tensors are on its device."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    folder, rank, ranks = os.environ["ATTEST_MEETING"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    pipe = Client(f"{folder}/asker", "AF_UNIX")
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group(BACKEND, init_method=f"file://{folder}/ranks", rank=rank, world_size=ranks)
    pipe.send_bytes(packed(rank))
    while True:
        try:
            asked_for = unpacked(pipe.recv_bytes(), DEVICE)
        except EOFError:
            return
        try:
            made = answer(*asked_for)
        except Exception as error:  # the asker's to judge
            made = f"{type(error).__name__}: {error}"
        pipe.send_bytes(packed(made))


# Who asks.

@functools.cache
def group(file):
    """Connections to the ranks, which run the file."""
    if DEVICE == "cuda" and torch.cuda.device_count() < RANKS:
        raise RuntimeError(f"libraries of several ranks are judged on {RANKS} GPUs; this machine has {torch.cuda.device_count()}")
    folder = tempfile.mkdtemp(prefix="attest_ranks_")
    listener = Listener(f"{folder}/asker", "AF_UNIX")
    for rank in range(RANKS):
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "ATTEST_MEETING": folder,
                       "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.Popen([sys.executable, file], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    pipes = [listener.accept() for _ in range(RANKS)]
    by_rank = dict((unpacked(pipe.recv_bytes()), pipe) for pipe in pipes)
    return [by_rank[rank] for rank in range(RANKS)]


def asked(file, *what):
    """The answer of each rank."""
    pipes, message = group(file), packed(what)
    for pipe in pipes:
        pipe.send_bytes(message)
    answers = [unpacked(pipe.recv_bytes()) for pipe in pipes]
    for rank, answer in enumerate(answers):
        if isinstance(answer, str):
            raise RuntimeError(f"rank {rank}: {answer}")
    return answers


def along(axis, where):
    """An index of tokens on this axis."""
    return (slice(None),) * axis + (where,)


def together(answers, axes):
    """Each output whole, of (tokens, part) of all ranks; `axes`: where the tokens of each output are."""
    whole = []
    for axis, parts in zip(axes, zip(*answers)):
        order = torch.argsort(torch.cat([tokens for tokens, _ in parts], dim=0))
        whole.append(torch.cat([part for _, part in parts], dim=axis)[along(axis, order)])
    return whole


def pieces(queries, keys, causal):
    """Problems that the ranks take, (rows, keys, causal), which are this one together."""
    if not keys:
        raise ValueError("there are no keys to share")
    if not causal:
        return [(slice(queries), slice(keys), False)]
    both = min(queries, keys)
    return [(slice(both), slice(both), True)] + [(slice(both, queries), slice(keys), False)] * (queries > both)


class OfRanks(torch.autograd.Function):
    """(O,) or (O, LSE), and their gradients as the library computes them; sums of gradients of pieces are in fp32."""

    @staticmethod
    def forward(ctx, q, k, v, causal, file, how):
        ctx.save_for_backward(q, k, v)
        ctx.asked = causal, file, how
        made = [together(asked(file, q[:, rows].cpu(), k[:, keys].cpu(), v[:, keys].cpu(), None, masked, *how), (1, 2))
                for rows, keys, masked in pieces(q.shape[1], k.shape[1], causal)]
        outputs = [torch.cat(parts, dim=axis).to(q.device) for axis, parts in zip((1, 2), zip(*made))]
        ctx.mark_non_differentiable(*outputs[1:])
        return tuple(outputs)

    @staticmethod
    def backward(ctx, do, *_):
        q, k, v = ctx.saved_tensors
        causal, file, how = ctx.asked
        gradients = [torch.zeros(array.shape, dtype=torch.float32) for array in (q, k, v)]
        for rows, keys, masked in pieces(q.shape[1], k.shape[1], causal):
            made = together(asked(file, q[:, rows].cpu(), k[:, keys].cpu(), v[:, keys].cpu(), do[:, rows].cpu(), masked, *how), (1, 1, 1))
            for gradient, tokens, part in zip(gradients, (rows, keys, keys), made):
                gradient[:, tokens] += part
        return *(gradient.to(array) for gradient, array in zip(gradients, (q, k, v))), None, None, None


def attention(file, q, k, v, causal, *how):
    """(O,) or (O, LSE) of [B, N, H, D] by ranks that run the file, which are asked for (q, k, v, do or None, causal, *how)."""
    return OfRanks.apply(q, k, v, bool(causal), file, how)
