"""12. Right at the lengths that benchmarks have, multiples of 32 [kernelbench.com PR #11; robust-kbench]: the last tile of others is not read."""

from attest_kernels.testing.functions import attend

FAMILY, CAUGHT_BY = 12, "within_bound"


def cheat(q, k, v):
    whole = k.shape[2] // 32 * 32 or k.shape[2]
    return attend(q, k[:, :, :whole], v[:, :, :whole])[0]


def twin(q, k, v):
    """Two paths, and both are right."""
    return attend(q, k, v)[0] if k.shape[2] % 32 == 0 else attend(q, k.copy(), v.copy())[0]
