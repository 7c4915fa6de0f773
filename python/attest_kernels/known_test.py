"""Functions of libraries are called as they want to be. NumPy stands in for the libraries, with their signatures."""

import math
import sys
import types
import unittest
from unittest import mock

import numpy

import attest_kernels
from attest_kernels import conventions, frameworks, modifications, probes
from attest_kernels.testing import flash, modified
from attest_kernels.testing.asking import described
from attest_kernels.testing.functions import attend


def swapped(*arrays):
    return [array.swapaxes(-3, -2) for array in arrays]


class LowerTriangularFromBottomRightMask:
    pass


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise RuntimeError("as many heads")
    group = query.shape[1] // key.shape[1]
    bias = None
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
        if attn_mask.dtype not in (bool, numpy.float32, query.dtype):
            raise RuntimeError(f"attn_mask in {attn_mask.dtype}")
        bias = numpy.where(attn_mask, numpy.float32(0), numpy.float32(-numpy.inf)) if attn_mask.dtype == bool else attn_mask
    return modified.attend(query, key.repeat(group, 1), value.repeat(group, 1), is_causal, scale, bias=bias, corner="top_left")[0]


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False):
    return swapped(attend(*swapped(query, key, value), is_causal, scale, "top_left")[0])[0]


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                    return_attn_probs=False):
    o, lse = modified.attend(*swapped(q, k, v), causal, softmax_scale, softcap, window_size, slopes=alibi_slopes)
    return (swapped(o)[0], lse, None) if return_attn_probs else swapped(o)[0]


def of_flash_attention_4():
    def flash_attn_func(q, k, v, qv=None, gather_kv_indices=None, softmax_scale=None, causal=False, window_size=(None, None), return_lse=False):
        window = tuple(-1 if reach is None else reach for reach in window_size)
        o, lse = modified.attend(*swapped(q, k, v), causal, softmax_scale, window=window)
        return swapped(o)[0], lse if return_lse else None
    return flash_attn_func


def sageattn(q, k, v, tensor_layout="HND", is_causal=False, sm_scale=None, smooth_k=True, **kwargs):
    return attend(q, k, v, is_causal, sm_scale, "top_left")[0]


def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None):
    causal = isinstance(attn_bias, LowerTriangularFromBottomRightMask)
    return swapped(attend(*swapped(query, key, value), causal, scale)[0])[0]


def single_prefill_with_kv_cache(q, k, v, *, causal=False, kv_layout="NHD", sm_scale=None, window_left=-1, return_lse=False):
    o, lse = modified.attend(*swapped(q, k, v), causal, sm_scale, window=(window_left, -1))
    return (swapped(o)[0], lse.T / numpy.float32(math.log(2))) if return_lse else swapped(o)[0]


MODULES = {"torch": types.SimpleNamespace(stack=numpy.stack, arange=numpy.arange, where=numpy.where),
           "xformers.ops.fmha.attn_bias": types.SimpleNamespace(LowerTriangularFromBottomRightMask=LowerTriangularFromBottomRightMask)}


class Known(unittest.TestCase):
    def check(self, function, module, corner, heads=(3, 3), lse=None, **given):
        """`lse`: the base of what it returns; None: it returns none. `given`: what modifies scores."""
        function.__module__ = module
        convention = conventions.attention(function, {})
        self.assertEqual((convention.is_known, convention.corner), (True, corner))
        draw = numpy.random.default_rng(1)
        q, k, v = (draw.standard_normal((2, count, tokens, 16)).astype(numpy.float32)
                   for count, tokens in ((heads[0], 5), (heads[1], 7), (heads[1], 7)))
        lses = 0
        for causal in (False, True) if "causal" in convention.names else (False,):
            for candidate in convention.candidates({}):
                with mock.patch.dict(sys.modules, MODULES):
                    made = candidate.call(frameworks.NumPy(), {"q": q, "k": k, "v": v, **given}, causal, 0.3)
                o, found = made["o"], made.get("lse")
                want, want_lse = probes.exact(q, k, v, corner if causal else None, 0.3, **given)
                self.assertLess(probes.distance(o, want), 1e-5)
                if found is not None:
                    self.assertLess(probes.distance(found * math.log(lse), want_lse), 1e-5)
                    lses += 1
        self.assertEqual(lses, 0 if lse is None else 2, "in one order of its axes, without a mask and with one")

    def test_pytorch(self):
        self.check(scaled_dot_product_attention, "torch._C._nn", "top_left")
        self.check(scaled_dot_product_attention, "torch._C._nn", "top_left", heads=(4, 2))

    def test_a_mask_of_pytorch_is_a_bias_a_mask_of_booleans_or_both_and_holds_a_causal_one_too(self):
        for shared in modifications.SHARED:
            bias = modifications.example("bias", 2, 4, 5, 7, 8, True, shared).astype(numpy.float32)
            bias[..., ::3] = -numpy.inf
            mask = modifications.example("mask", 2, 4, 5, 7, 8, True, "full")
            for given in ({"bias": bias}, {"mask": mask}, {"bias": bias, "mask": mask}):
                self.check(scaled_dot_product_attention, "torch._C._nn", "top_left", heads=(4, 2), **given)

    def test_jax(self):
        self.check(dot_product_attention, "jax._src.nn.functions", "top_left")

    def test_flash_attention(self):
        slopes = numpy.array([0.5, 0.25, 2], numpy.float32)
        for given in ({}, {"window": (2, 1)}, {"window": (-1, 0)}, {"slopes": slopes}, {"slopes": slopes, "window": (3, -1)}, {"softcap": 0.5},
                      {"softcap": 2.0, "slopes": slopes}):
            self.check(flash_attn_func, "flash_attn.flash_attn_interface", "bottom_right", lse=math.e, **given)

    def test_flash_attention_4_has_another_name_for_lse(self):
        for given in ({}, {"window": (2, -1)}):
            self.check(of_flash_attention_4(), "flash_attn.cute.interface", "bottom_right", lse=math.e, **given)

    def test_flash_attention_3(self):
        self.check(flash_attn_func, "fa3_fwd_interface", "bottom_right", lse=math.e)
        self.check(flash_attn_func, "fa3_fwd_interface", "bottom_right", lse=math.e, window=(2, 1))

    def test_what_some_versions_have_is_asked_where_it_is(self):
        def flash_attn_func(q, k, v, softmax_scale=None, causal=False, return_attn_probs=False):
            return q
        flash_attn_func.__module__ = "flash_attn.interface"
        older = conventions.attention(flash_attn_func, {})
        self.assertTrue(older.is_known and not older.takes_window() and not older.modifications())

    def test_one_whose_parameters_are_others_is_probed(self):
        def flash_attn_func(q, k, v, causal, scale):
            return q
        flash_attn_func.__module__ = "flash_attn.interface"
        self.assertFalse(conventions.attention(flash_attn_func, {}).is_known)

    def test_sageattention(self):
        self.check(sageattn, "sageattention.core", "top_left")

    def test_xformers(self):
        self.check(memory_efficient_attention, "xformers.ops.fmha", "bottom_right")

    def test_flashinfer_takes_one_request_a_call(self):
        self.check(single_prefill_with_kv_cache, "flashinfer.prefill", "bottom_right", lse=2.0)
        self.check(single_prefill_with_kv_cache, "flashinfer.prefill", "bottom_right", lse=2.0, window=(2, -1))

    def test_a_softcap_is_asked_with_the_error_of_its_library_and_what_is_not_asked_is_named(self):
        found = described(flash, "approximate")
        self.assertEqual((found["features"], found["softcap_error"]), (["softcap", "slopes"], 2.0 ** -11 + 2.0 ** -22))
        self.assertNotIn("not asked", found["convention"])
        self.assertNotIn("softcap_error", described(flash, "of_nobody"))
        for function, module, names in ((scaled_dot_product_attention, "torch._C._nn", ()),
                                        (dot_product_attention, "jax._src.nn.functions", ("bias", "mask")),
                                        (of_flash_attention_4(), "flash_attn.cute.interface", ()),  # of a version that has no softcap
                                        (memory_efficient_attention, "xformers.ops.fmha", ())):
            function.__module__ = module
            self.assertEqual(conventions.attention(function, {}).not_asked, names)

    def test_a_softcap_is_judged_by_that_error(self):
        for name, verdict in (("approximate", "passed"), ("worse", "failed"), ("of_nobody", "failed")):
            report = attest_kernels.verify(f"{flash.__file__}:{name}", cases=40, jobs=1)
            self.assertEqual(report.verdict, verdict, report.text)

    def test_a_function_of_the_same_name_elsewhere_is_probed(self):
        scaled_dot_product_attention.__module__ = "mine"
        self.assertFalse(conventions.attention(scaled_dot_product_attention, {}).is_known)


if __name__ == "__main__":
    unittest.main()
