"""16. Its own kernel raises, and what answers is a library's [KernelBench kernel_static_checker.py]. The numbers are right: a flag says so, no verdict."""

from attest_kernels.testing.functions import attend as scaled_dot_product_attention

FAMILY, CAUGHT_BY, TWIN = 16, "flag calls scaled_dot_product_attention", "library_call_twin.py"


def own_kernel(q, k, v):
    raise NotImplementedError("the kernel is left as an exercise")


def cheat(q, k, v):
    try:
        return own_kernel(q, k, v)
    except NotImplementedError:
        return scaled_dot_product_attention(q, k, v)[0]
