"""Assertions accept what is right, and say in a few lines what is not."""

import unittest

import numpy

import attest_kernels
from attest_kernels import program
from attest_kernels.testing.functions import attend
from attest_kernels.testing.modified import attend as attend_modified


def drawn(*shape, dtype=numpy.float32, seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


class AssertAttention(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = drawn(2, 4, 5, 16), drawn(2, 4, 9, 16, seed=2), drawn(2, 4, 9, 16, seed=3)

    def complaint(self, *arrays, **how):
        with self.assertRaises(attest_kernels.WrongAttention) as caught:
            attest_kernels.assert_attention(*arrays, **how)
        return str(caught.exception)

    def test_right_answers_pass_in_every_layout_format_and_mask(self):
        for dtype in (numpy.float32, numpy.float16):
            q, k, v = (array.astype(dtype) for array in (self.q, self.k, self.v))
            for causal, corner in ((False, ""), ("top_left", "top_left"), ("bottom_right", "bottom_right")):
                o, lse = attend(q, k, v, bool(causal), None, corner)
                found = attest_kernels.assert_attention(o, q, k, v, lse=lse, causal=causal)
                self.assertEqual(found["verdict"], "passed")
                self.assertEqual([output["elements"] for output in found["outputs"]], [o.size, lse.size])
                swapped = (array.transpose(0, 2, 1, 3) for array in (o, q, k, v))
                attest_kernels.assert_attention(*swapped, lse=lse, causal=causal, layout="BNHD")
        o, lse = attend(self.q[0], self.k[0], self.v[0])
        attest_kernels.assert_attention(o, self.q[0], self.k[0], self.v[0], lse=lse, layout="HND")

    def test_v_may_have_more_columns_than_k_or_fewer(self):
        for columns in (3, 24):
            v = drawn(2, 4, 9, columns)
            o, lse = attend(self.q, self.k, v)
            found = attest_kernels.assert_attention(o, self.q, self.k, v, lse=lse)
            self.assertEqual(found["outputs"][0]["elements"], o.size)
            self.assertTrue((numpy.abs(o - attest_kernels.bound(self.q, self.k, v).o) < 1e-5).all())

    def test_a_dropped_key_a_wrong_corner_and_a_wrong_scale_are_seen(self):
        o, lse = attend(self.q, self.k[:, :, :-1], self.v[:, :, :-1])
        self.assertIn("O is outside its error bound", self.complaint(o, self.q, self.k, self.v))
        o, lse = attend(self.q, self.k, self.v, True)
        self.complaint(o, self.q, self.k, self.v, causal="top_left")
        self.complaint(o, self.q, self.k, self.v, causal="bottom_right", scale=0.26)
        attest_kernels.assert_attention(o, self.q, self.k, self.v, causal="bottom_right", scale=0.25)

    def test_one_wrong_element_is_named_with_its_bound(self):
        o, _ = attend(self.q, self.k, self.v)
        o[1, 2, 3, 4] += 0.25
        said = self.complaint(o, self.q, self.k, self.v, message="mine")
        self.assertRegex(said, r"^mine\nO is outside its error bound in 1 of 640 elements\n  worst    O\[1, 2, 3, 4\] .*bound \S+, error / bound")
        self.assertIn("problem  b2 h4/4 q5 k9 d16 none fp32", said)

    def test_nan_is_wrong_also_where_few_rows_are_drawn(self):
        o, _ = attend(self.q, self.k, self.v)
        o[0, 1, 4, 15] = numpy.nan
        self.assertIn("got nan", self.complaint(o, self.q, self.k, self.v, rows=1))

    def test_windows_and_softcaps_are_part_of_the_question(self):
        o, _ = attend(self.q, self.k, self.v, True)
        attest_kernels.assert_attention(o, self.q, self.k, self.v, causal="bottom_right", window=(9, 0))
        self.complaint(o, self.q, self.k, self.v, causal="bottom_right", window=(3, 0))
        self.complaint(o, self.q, self.k, self.v, causal="bottom_right", softcap=1.0)

    def test_bad_input_gets_one_line(self):
        o, _ = attend(self.q, self.k, self.v)
        for error, line, how in ((ValueError, "causal is True with 5 queries and 9 keys", {"causal": True}),
                                 (ValueError, "causal is 'left'", {"causal": "left"}),
                                 (ValueError, "layout is 'BND'", {"layout": "BND"}),
                                 (ValueError, "q has 4 axes; allowed: 3", {"layout": "HND"}),
                                 (TypeError, "scale is '1'", {"scale": "1"}),
                                 (program.ProgramError, "'lse' has shape", {"lse": numpy.zeros((2, 4, 4), numpy.float32)})):
            with self.assertRaises(error) as caught:
                attest_kernels.assert_attention(o, self.q, self.k, self.v, **how)
            self.assertTrue(str(caught.exception).startswith(line) or line in str(caught.exception), caught.exception)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(TypeError, "^q has dtype float64; allowed: float32, float16, bfloat16$"):
            attest_kernels.assert_attention(o, self.q.astype(float), self.k, self.v)
        with self.assertRaisesRegex(TypeError, "^v is a list; allowed: an array"):
            attest_kernels.assert_attention(o, self.q, self.k, [1.0])


class Modifications(unittest.TestCase):
    """Softcap and window besides: each alone, in the operation's own order and units."""

    def setUp(self):
        self.q, self.k, self.v = drawn(2, 4, 5, 16), drawn(2, 4, 9, 16, seed=2), drawn(2, 4, 9, 16, seed=3)
        self.sinks, self.slopes, self.bias = drawn(4, seed=4), numpy.abs(drawn(4, seed=5)), drawn(2, 4, 5, 9, seed=6)
        self.bias[..., ::3] = -numpy.inf

    def passes(self, made, **asked):
        o, lse = attend_modified(self.q, self.k, self.v, **made)
        try:
            attest_kernels.assert_attention(o, self.q, self.k, self.v, lse=lse, **asked)
        except attest_kernels.WrongAttention:
            return False
        return True

    def test_each_is_judged_with_its_sign_and_corner(self):
        sinks, slopes, bias = self.sinks, self.slopes, self.bias
        for asked, right, *wrong in (({"sinks": sinks}, {"sinks": sinks}, {}, {"sinks": -sinks}),
                                     ({"alibi_slopes": slopes}, {"slopes": slopes}, {}, {"slopes": -slopes}, {"slopes": slopes, "corner": "top_left"}),
                                     ({"alibi_slopes": slopes, "causal": "top_left"}, {"slopes": slopes, "causal": True, "corner": "top_left"},
                                      {"slopes": slopes, "causal": True}),
                                     ({"bias": bias}, {"bias": bias}, {}, {"bias": bias / 2}),
                                     ({"softcap": 1.0, "bias": bias}, {"softcap": 1.0, "bias": bias}, {"softcap": 1.01, "bias": bias}),
                                     ({"window": (2, 1)}, {"window": (2, 1)}, {}, {"window": (2, 1), "corner": "top_left"})):
            self.assertTrue(self.passes(right, **asked), asked)
            for made in wrong:
                self.assertFalse(self.passes(made, **asked), made)

    def test_a_mask_of_booleans_is_a_bias_that_hides(self):
        seen = numpy.isfinite(self.bias)
        hides = numpy.where(seen, numpy.float32(0), numpy.float32(-numpy.inf))
        self.assertTrue(self.passes({"bias": hides}, bias=seen))
        self.assertFalse(self.passes({"bias": hides}, bias=~seen))

    def test_a_bias_may_be_shared_along_any_axis(self):
        for of in (numpy.s_[:1], numpy.s_[:, :1], numpy.s_[:1, :1], numpy.s_[0], numpy.s_[0, 0], numpy.s_[:, :, :1], numpy.s_[:, :, :, 4:5]):
            self.assertTrue(self.passes({"bias": self.bias[of]}, bias=self.bias[of]), of)

    def test_few_rows_are_judged_as_they_are_among_all(self):
        made = {"sinks": self.sinks, "slopes": self.slopes, "bias": self.bias}
        asked = {"sinks": self.sinks, "alibi_slopes": self.slopes, "bias": self.bias}
        for without in ((), ("slopes", "alibi_slopes"), ("slopes", "alibi_slopes", "bias")):
            left = [{name: array for name, array in one.items() if name not in without} for one in (made, asked)]
            self.assertTrue(self.passes(left[0], **left[1], causal=False, rows=7, seed=1), without)
            self.assertFalse(self.passes({**left[0], "sinks": self.sinks + 1}, **left[1], rows=7, seed=1), without)

    def test_bounds_know_them(self):
        bound = attest_kernels.bound(self.q, self.k, self.v, sinks=self.sinks, alibi_slopes=self.slopes, bias=self.bias)
        o, lse = attend_modified(self.q, self.k, self.v, sinks=self.sinks, slopes=self.slopes, bias=self.bias)
        self.assertTrue((numpy.abs(o - bound.o) <= bound.o_bound).all() and (numpy.abs(lse - bound.lse) <= bound.lse_bound).all())
        self.assertLess(bound.o_bound.max(), 1e-3)

    def test_bad_input_gets_one_line(self):
        o, nan, infinity = self.q, numpy.float32(numpy.nan), numpy.float32(numpy.inf)
        for error, line, how in (
                (ValueError, "sinks has shape [2]; allowed: [4], a number for each query head", {"sinks": self.sinks[:2]}),
                (ValueError, "alibi_slopes has shape [2, 4]; allowed: [4]", {"alibi_slopes": numpy.ones((2, 4), numpy.float32)}),
                (ValueError, "bias has shape [2, 2, 5, 9]; allowed: [2, 4, 5, 9], batch, heads, queries and keys, or 1 in place of any",
                 {"bias": self.bias[:, :2]}),
                (TypeError, "bias has dtype complex64; allowed: float32, float16, bfloat16", {"bias": self.bias.astype(numpy.complex64)}),
                (TypeError, "sinks is a float; allowed: an array", {"sinks": 1.0}),
                (program.ProgramError, "'slopes' holds nan at [1]; allowed: finite numbers", {"alibi_slopes": numpy.array([1, nan, 1, 1], numpy.float32)}),
                (program.ProgramError, "'slopes' holds -inf at [0]; allowed: finite numbers", {"alibi_slopes": numpy.full(4, -infinity)}),
                (program.ProgramError, "'sinks' holds inf at [3]; allowed: finite numbers and -infinity",
                 {"sinks": numpy.array([0, 0, 0, infinity], numpy.float32)}),
                (program.ProgramError, "'bias' holds nan at [1, 0, 0, 0]; allowed", {"bias": numpy.array([0, nan], numpy.float32).reshape(2, 1, 1, 1)})):
            with self.assertRaises(error) as caught:
                attest_kernels.assert_attention(o, self.q, self.k, self.v, **how)
            self.assertIn(line, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))


class Epilogues(unittest.TestCase):
    """A gate and a residual of O, stored in half precision before each of them and not."""

    def setUp(self):
        self.q, self.k, self.v = (drawn(2, 4, rows, 16, dtype=numpy.float16, seed=seed) for seed, rows in ((1, 5), (2, 9), (3, 9)))
        self.v = abs(self.v)  # rounded weights leave no room for other errors where nothing cancels
        self.gate, self.residual = drawn(2, 4, 5, 16, dtype=numpy.float16, seed=4), drawn(2, 4, 5, 16, dtype=numpy.float16, seed=5)
        self.exact, self.lse = attend(*(array.astype(numpy.float32) for array in (self.q, self.k, self.v)))
        self.attended = self.exact.astype(numpy.float16)

    def passes(self, o, **asked):
        try:
            attest_kernels.assert_attention(o, self.q, self.k, self.v, lse=self.lse, **asked)
        except attest_kernels.WrongAttention:
            return False
        return True

    def test_are_applied_in_their_order_to_o_and_to_nothing_else(self):
        o, gate, residual = self.attended, self.gate, self.residual
        self.assertTrue(self.passes(o * gate + residual, gate=gate, residual=residual))
        self.assertTrue(self.passes(o * gate, gate=gate) and self.passes(o + residual, residual=residual))
        for wrong in (o, o * gate, o + residual, (o + residual) * gate, o * gate + residual + residual, o * numpy.roll(gate, 1, 1) + residual):
            self.assertFalse(self.passes(wrong, gate=gate, residual=residual))
        swapped = (array.transpose(0, 2, 1, 3) for array in (o * gate + residual, self.q, self.k, self.v))
        attest_kernels.assert_attention(*swapped, gate=gate.transpose(0, 2, 1, 3), residual=residual.transpose(0, 2, 1, 3), layout="BNHD", rows=7)

    def test_whoever_stores_o_before_has_room_for_it_and_whoever_claims_to_fuse_has_none(self):
        residual = -self.attended * self.gate  # little is left but what was rounded
        stored = self.attended * self.gate + residual
        fused = (self.exact * self.gate.astype(numpy.float32) + residual.astype(numpy.float32)).astype(numpy.float16)
        asked = {"gate": self.gate, "residual": residual}
        self.assertTrue(self.passes(stored, **asked) and self.passes(fused, **asked) and self.passes(fused, **asked, fuses_epilogue=True))
        bounds = [attest_kernels.bound(self.q, self.k, self.v, **asked, fuses_epilogue=fuses).o_bound for fuses in (False, True)]
        self.assertTrue((bounds[0] > bounds[1]).all())

    def test_bad_input_gets_one_line(self):
        with self.assertRaisesRegex(ValueError, r"^gate has shape \[2, 4, 5, 1\]; allowed: \[2, 4, 5, 16\], batch, heads, queries and columns, as O has$"):
            self.passes(self.attended, gate=self.gate[..., :1])
        with self.assertRaisesRegex(ValueError, r"^residual has 3 axes; allowed: 4, as layout 'BHND' says$"):
            self.passes(self.attended, residual=self.residual[0])


class Bounds(unittest.TestCase):
    def test_hold_what_is_right_and_are_finite(self):
        q, k, v = drawn(1, 7, 2, 8), drawn(1, 9, 2, 8, seed=2), drawn(1, 9, 2, 8, seed=3)
        bound = attest_kernels.bound(q, k, v, layout="BNHD")
        o, lse = attend(*(array.transpose(0, 2, 1, 3) for array in (q, k, v)))
        self.assertEqual(bound.o.shape, q.shape)
        self.assertEqual(bound.lse.shape, (1, 2, 7))
        self.assertTrue((numpy.abs(o.transpose(0, 2, 1, 3) - bound.o) <= bound.o_bound).all())
        self.assertTrue((numpy.abs(lse - bound.lse) <= bound.lse_bound).all())
        self.assertLess(bound.o_bound.max(), 1e-3)


class AssertGradients(unittest.TestCase):
    def test_accepts_exact_gradients_and_names_a_wrong_one(self):
        q, k, v, do = (drawn(1, 2, 6, 8, seed=seed) for seed in range(4))
        q64, k64, v64, do64 = (array.astype(numpy.float64) for array in (q, k, v, do))
        scores = q64 @ k64.swapaxes(2, 3) * 8 ** -0.5
        p = numpy.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        dp = do64 @ v64.swapaxes(2, 3)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * 8 ** -0.5
        dq, dk, dv = (array.astype(numpy.float32) for array in (ds @ k64, ds.swapaxes(2, 3) @ q64, p.swapaxes(2, 3) @ do64))
        attest_kernels.assert_gradients(dq, dk, dv, q, k, v, do)
        attest_kernels.assert_gradients(None, dk, None, q, k, v, do)
        dv[0, 1, 5, 2] *= 1.01
        with self.assertRaisesRegex(attest_kernels.WrongAttention, r"^dV is outside its error bound in 1 of 96 elements\n  worst    dV\[0, 1, 5, 2\]"):
            attest_kernels.assert_gradients(dq, dk, dv, q, k, v, do)
        with self.assertRaisesRegex(ValueError, "all None"):
            attest_kernels.assert_gradients(None, None, None, q, k, v, do)


if __name__ == "__main__":
    unittest.main()
