"""The shapes of forward_grid.py, and how many tiles of scores a causal mask leaves."""

import argparse
import re

SETS = ("grid", "fp16", "grouped", "lengths")
TOKENS, WIDTH = 16384, 2048  # B N and H D
DIMS = (64, 128, 256)
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
FP16_LENGTHS = (1024, 4096, 16384)
GROUP = 8  # query heads a key head
GROUPED_LENGTHS = (4096, 16384)
LENGTH_SEED = 1  # odd: an entry has as many keys as queries
LONGEST = 4096
STEP = 128  # of the dense problem's length


def names_in(text, allowed):
    """'grid,fp16' as a list, for argparse."""
    names = text.split(",")
    for name in names:
        if name not in allowed:
            raise argparse.ArgumentTypeError(f"'{name}' is unknown; allowed: {','.join(allowed)}, with commas between")
    return names


def stem(dim, length, group=1):
    heads = WIDTH // dim
    keys = f"/{heads // group}" if group > 1 else ""
    return f"b{TOKENS // length} h{heads}{keys} n{length} d{dim}"


def grid():
    """(set, stem, element type) of every shape that is timed full and causal."""
    yield from (("grid", stem(dim, length), "bf16") for dim in DIMS for length in LENGTHS)
    yield from (("fp16", stem(dim, length), "fp16") for dim in DIMS for length in FP16_LENGTHS)


def grouped_pairs():
    """(stem with 8 query heads a key head, stem with as many key heads as query heads)."""
    yield from ((stem(dim, length, GROUP), stem(dim, length)) for dim in DIMS for length in GROUPED_LENGTHS)


def mixed_lengths():
    """Stems of entries whose lengths are drawn: some 0, some 1, some the longest, the others anything between."""
    yield from (f"b16 h{WIDTH // dim} n{LONGEST} d{dim} lengths{LENGTH_SEED}" for dim in DIMS)


def dense_twin(text, starts):
    """The problem `text` with entries of one length, near the mixed one's work: the length at which a token has as much
    work on average, as many of them as hold about as many tokens."""
    lengths = [end - begin for begin, end in zip(starts, starts[1:])]
    length = max(STEP, round(sum(n * n for n in lengths) / sum(lengths) / STEP) * STEP)
    batch = max(1, round(sum(lengths) / length))
    text = re.sub(r" lengths\d+", "", text)
    return re.sub(r"\bn\d+\b", f"n{length}", re.sub(r"\bb\d+\b", f"b{batch}", text))


def visited_share(length, query_tile, key_tile):
    """Part of the tiles of scores in which a causal row sees a key: (T + 1) / 2T for T x T square tiles."""
    query_tiles, key_tiles = -(-length // query_tile), -(-length // key_tile)
    visited = sum(min(-(-((i + 1) * query_tile) // key_tile), key_tiles) for i in range(query_tiles))
    return visited / (query_tiles * key_tiles)
