"""Problems drawn for a test that you have: @given(problems(...)) above a function of q, k, v and problem calls it with many, and with the smallest that
fails last. Needs NumPy alone."""

import dataclasses
import functools
import inspect
import typing

import numpy

from attest_kernels import declaring

NUMPY_TYPES = {"fp32": numpy.float32, "fp16": numpy.float16}
LENGTHS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 41, 63, 64, 65, 97, 127, 128, 129)  # edges of tiles, and primes
GIVEN = ("q", "k", "v", "problem")
MOST_TRIES = 200  # to make a failing problem smaller


@dataclasses.dataclass(frozen=True)
class Problem:
    """One problem of attention, and the seed of its arrays."""
    batch: int
    query_heads: int
    kv_heads: int
    query_len: int
    key_len: int
    head_dim: int
    mask: str        # none, causal_top_left or causal_bottom_right
    type: str        # fp32 or fp16
    seed: int

    @property
    def causal(self):
        """False, "top_left" or "bottom_right", as assert_attention takes it."""
        return False if self.mask == "none" else self.mask.removeprefix("causal_")

    def arrays(self):
        """(q, k, v) of NumPy, [B, H, N, D], N(0, 1)."""
        draw = numpy.random.default_rng(self.seed)
        shapes = ((self.query_heads, self.query_len), (self.kv_heads, self.key_len), (self.kv_heads, self.key_len))
        return tuple(draw.standard_normal((self.batch, *shape, self.head_dim)).astype(NUMPY_TYPES[self.type]) for shape in shapes)

    def __str__(self):
        return (f"b{self.batch} h{self.query_heads}/{self.kv_heads} q{self.query_len} k{self.key_len} d{self.head_dim} {self.mask} {self.type}, "
                f"arrays of seed {self.seed}")


@dataclasses.dataclass(frozen=True)
class Problems:
    """What is drawn: problems(...) makes it."""
    types: tuple
    masks: tuple
    head_dims: tuple
    max_batch: int
    max_heads: int
    max_len: int
    grouped: bool
    cases: int
    seed: int

    def __iter__(self):
        """The same problems each time: a problem is a function of the seed and its number."""
        for number in range(self.cases):
            draw = numpy.random.default_rng((self.seed, number))
            kv_heads = int(draw.integers(1, self.max_heads + 1))
            group = int(draw.integers(1, self.max_heads // kv_heads + 1)) if self.grouped else 1
            lengths = [length for length in LENGTHS if length <= self.max_len]
            yield Problem(int(draw.integers(1, self.max_batch + 1)), kv_heads * group, kv_heads, int(draw.choice(lengths)), int(draw.choice(lengths)),
                          int(draw.choice(self.head_dims)), str(draw.choice(self.masks)), str(draw.choice(self.types)), int(draw.integers(2**31)))

    def simpler(self, problem):
        """Problems that are one step simpler, the largest step first."""
        steps = [{"batch": 1}, {"query_heads": 1, "kv_heads": 1}, {"query_heads": problem.kv_heads}, {"mask": self.masks[0]}, {"type": self.types[0]},
                 {"head_dim": min(self.head_dims)}]
        for name in ("query_len", "key_len"):
            length = getattr(problem, name)
            steps += [{name: smaller} for smaller in (1, length // 2, length - length // 4, length - 1)]
        for step in steps:
            one = dataclasses.replace(problem, **step)
            if one != problem and min(one.query_len, one.key_len) >= 1:
                yield one


def problems(*, types=("fp32", "fp16"), masks=declaring.MASKS_WITHOUT_WINDOW, head_dims=(16, 32, 64), max_batch=2, max_heads=4, max_len=129,
             grouped=False, cases=20, seed=1):
    """What @given draws. types: of fp32, fp16. masks: of none, causal_top_left, causal_bottom_right. head_dims: any of these. Batch, heads and lengths
    are at least 1 and at most `max_batch`, `max_heads` and `max_len` (up to 129; most lie at the edges of tiles); `grouped`: fewer heads of K and V, too.
    `cases` problems, a function of `seed`. Raises ValueError with one line."""
    size = declaring.size
    return Problems(declaring.listed("types", types, tuple(NUMPY_TYPES)), declaring.listed("masks", masks, declaring.MASKS_WITHOUT_WINDOW),
                    tuple(size("head_dims", one) for one in head_dims), size("max_batch", max_batch), size("max_heads", max_heads),
                    size("max_len", max_len), bool(grouped), size("cases", cases), int(seed))


def given(drawn: Problems) -> typing.Callable:
    """A decorator of a test that takes any of q, k, v (arrays of NumPy) and problem (a Problem); what else it takes, `self` or a fixture of pytest,
    it goes on taking. The test runs on every problem. Where one fails it is made smaller as long as it fails, the smallest is printed, and its
    exception is what the test raises."""
    def decorate(test):
        asked = [name for name in GIVEN if name in inspect.signature(test).parameters]

        def run(problem, args, kwargs):
            values = dict(zip(GIVEN, (*problem.arrays(), problem)))
            return test(*args, **kwargs, **{name: values[name] for name in asked})

        @functools.wraps(test)
        def on_all(*args, **kwargs):
            for number, problem in enumerate(drawn):
                try:
                    run(problem, args, kwargs)
                except Exception:
                    smallest = _smallest(drawn, problem, lambda one: run(one, args, kwargs))
                    print(f"attest_kernels: {test.__name__} fails on {smallest} (from case {number} of seed {drawn.seed})")
                    run(smallest, args, kwargs)
                    raise  # it failed once, and does not now
        signature = inspect.signature(test)
        on_all.__signature__ = signature.replace(parameters=[one for name, one in signature.parameters.items() if name not in asked])
        return on_all
    return decorate


def _smallest(drawn, problem, run):
    tries = 0

    def fails(one):
        nonlocal tries
        tries += 1
        try:
            run(one)
        except Exception:
            return True
        return False
    while tries < MOST_TRIES:
        found = next((one for one in drawn.simpler(problem) if tries < MOST_TRIES and fails(one)), None)
        if found is None:
            break
        problem = found
    return problem
