"""A test is called with problems that are drawn, and fails with the smallest that fails."""

import contextlib
import io
import unittest

import attest_kernels
from attest_kernels.drawing import given, problems
from attest_kernels.testing import functions

WITHOUT_MASK = problems(masks="none", head_dims=[16, 32], cases=20)


def printed_by(test):
    """What a test that must fail prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            test()
        except AssertionError as error:
            return printed.getvalue(), error
    raise AssertionError("it passed")


class Given(unittest.TestCase):
    @given(problems(cases=6))
    def test_a_right_function_passes_on_all(self, q, k, v, problem):
        o, lse = functions.attend(q, k, v, problem.causal, corner=problem.causal)
        attest_kernels.assert_attention(o, q, k, v, lse=lse, causal=problem.causal)

    def test_a_dropped_key_is_made_as_small_as_it_gets(self):
        @given(WITHOUT_MASK)
        def check(q, k, v):
            attest_kernels.assert_attention(functions.last_key_dropped(q, k, v)[0], q, k, v)
        printed, error = printed_by(check)
        self.assertRegex(printed, r"check fails on b1 h1/1 q1 k41 d16 none fp(32|16), arrays of seed \d+ \(from case \d+ of seed 1\)")
        self.assertIn("b1 h1/1 q1 k41 d16 none", str(error))

    def test_a_seed_draws_its_problems_again_and_another_one_others(self):
        self.assertEqual(list(WITHOUT_MASK), list(WITHOUT_MASK))
        self.assertNotEqual(list(problems(seed=1)), list(problems(seed=2)))

    def test_problems_are_of_what_was_asked(self):
        for one in problems(types="fp16", masks=["causal_top_left"], head_dims=[8], max_batch=1, max_heads=6, max_len=17, grouped=True, cases=100):
            self.assertEqual((one.type, one.causal, one.head_dim, one.batch), ("fp16", "top_left", 8, 1))
            self.assertTrue(one.query_heads <= 6 and one.query_heads % one.kv_heads == 0 and max(one.query_len, one.key_len) <= 17)
            self.assertEqual([array.shape[1] for array in one.arrays()], [one.query_heads, one.kv_heads, one.kv_heads])
        with self.assertRaisesRegex(ValueError, "types has 'fp8'; allowed: fp32, fp16"):
            problems(types="fp8")


if __name__ == "__main__":
    unittest.main()
