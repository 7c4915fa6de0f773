"""A function is called as it wants to be, judged by all laws, and what it does wrong is shrunk."""

import json
import pathlib
import tempfile
import unittest

import attest_kernels
from attest_kernels import program
from attest_kernels.testing import functions
from attest_kernels.testing.asking import described
from attest_kernels.verifying import place_of

FILE = pathlib.Path(functions.__file__)
JOBS = 1  # each has a process of Python, which costs more than the cases here


class Conventions(unittest.TestCase):
    def test_are_found_by_names_and_probes(self):
        plain = described(functions, "right")
        self.assertIn("right(q, k, v [B,H,N,D], causal, scale); causal bottom right", plain["convention"])
        self.assertEqual((plain["types"], plain["masks"], plain["head_dims"]), (["fp32", "fp16"], ["none", "causal_bottom_right"], []))
        self.assertTrue(not plain["missing"] and plain["any_scale"] and plain["no_keys"])
        self.assertFalse(plain["grouped"])
        other = described(functions, "heads_behind_tokens")
        self.assertIn("[B,N,H,D], is_causal, softmax_scale, return_lse); causal top left; LSE in base 2", other["convention"])
        self.assertEqual(other["masks"], ["none", "causal_top_left"])
        self.assertIn("into(q, k, v, o, lse [B,H,N,D], causal, sm_scale)", described(functions, "into")["convention"])

    def test_what_a_function_lacks_is_known(self):
        tiles = described(functions, "only_multiples_of_64")
        self.assertEqual((tiles["query_len_multiple"], tiles["key_len_multiple"]), (64, 64))
        self.assertFalse(tiles["any_scale"] or tiles["no_keys"])
        self.assertEqual(tiles["missing"], ["lse"])
        self.assertEqual(tiles["masks"], ["none"])

    def test_a_wrong_answer_is_no_reason_to_ask_for_other_lengths(self):
        zeros = described(functions, "zeros_past_the_keys")
        self.assertEqual((zeros["query_len_multiple"], zeros["key_len_multiple"]), (1, 1))

    def test_what_nobody_can_call_gets_one_line(self):
        for name, line in (("with_blocks", "with_blocks asks for 'block_size', which nobody knows"), ("nobody", "no function 'nobody'; allowed: "),
                           ("wrong_shape", "it returned shape [2, 3, 5, 1]; allowed: [2, 3, 5, 16]")):
            self.assertIn(line, described(functions, name)["error"])


class Verify(unittest.TestCase):
    def test_a_right_function_passes(self):
        for function in (functions.right, functions.heads_behind_tokens, functions.into, functions.only_multiples_of_64, functions.prints):
            report = attest_kernels.verify(function, cases=6, seed=5, jobs=JOBS)
            self.assertTrue(report.passed, report.text)
            self.assertGreaterEqual(report.cases, 6)

    def test_no_order_of_sums_is_blamed(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text = program.run(["verify", "--python", f"{FILE}:in_lanes", "--family", "alternating_v", "--law", "o_*", "--cases", "45",
                                      "--seed", "2", "--max-head-dim", "4", "--no-regressions", "--out", folder], may_end_with=(0, 1, 4))
        self.assertEqual(code, 0, text)

    def test_parts_that_are_rounded_are_an_error_where_nobody_declares_them(self):
        for function, code in (("in_two_rounded_parts", 0), ("in_two_parts", 1)):
            with tempfile.TemporaryDirectory() as folder:
                got, text = program.run(["verify", "--python", f"{FILE}:{function}", "--family", "positive_v", "--law", "o_*,within_bound",
                                         "--cases", "20", "--seed", "2", "--no-regressions", "--out", folder], may_end_with=(0, 1, 4))
            self.assertEqual(got, code, text)

    def test_a_dropped_key_is_shrunk_and_replays(self):
        with tempfile.TemporaryDirectory() as folder:
            report = attest_kernels.verify(functions.last_key_dropped, cases=40, jobs=JOBS, out=folder)
            self.assertEqual(report.verdict, "failed")
            failure = report.failures[0]
            self.assertRegex(failure.problem, r"^b1 h1/1 q1 k41 d1 ")
            code, text = program.run(["replay", failure.replay], may_end_with=(1,))
            self.assertIn("reproduced", text)

    def test_sarif_points_to_the_function(self):
        with tempfile.TemporaryDirectory() as folder:
            sarif = pathlib.Path(folder) / "attest.sarif"
            program.run(["verify", "--python", f"{FILE}:last_key_dropped", "--law", "within_bound", "--cases", "10", "--max-head-dim", "4",
                         "--no-regressions", "--out", folder, "--sarif", str(sarif)], may_end_with=(1,))
            place = json.loads(sarif.read_text())["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        self.assertTrue(place["artifactLocation"]["uri"].endswith("attest_kernels/testing/functions.py"), place)
        self.assertTrue(FILE.read_text().splitlines()[place["region"]["startLine"] - 1].startswith("def last_key_dropped("), place)

    def test_what_ends_or_stops_its_process_is_a_verdict(self):
        for function, verdict in ((functions.crashes, "crashed"), (functions.exits, "crashed")):
            report = attest_kernels.verify(function, cases=10, jobs=JOBS)
            self.assertEqual(report.verdict, verdict, report.text)
        report = attest_kernels.verify(functions.writes_to_keys, cases=3, jobs=JOBS)
        self.assertIn("it wrote to k, which is an input", report.failures[0].what)

    def test_one_that_crashes_in_a_probe_is_told_by_which_signal_and_in_which(self):
        with self.assertRaisesRegex(program.ProgramError, "was killed by SIGSEGV while it answered a probe, b2 h3/3 q5 k7 d16 none fp16 in BHND"):
            attest_kernels.verify(functions.crashes_in_a_probe, jobs=JOBS)

    def test_only_what_another_process_can_import_is_taken(self):
        with self.assertRaisesRegex(ValueError, "no function that another process can import"):
            attest_kernels.verify(lambda q, k, v: q)
        self.assertEqual(place_of(functions.right), f"{FILE}:right")
        with self.assertRaisesRegex(program.ProgramError, "no function 'nobody'"):
            attest_kernels.verify(f"{FILE}:nobody")

    def test_a_declaration_counts_more_than_a_probe(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "declared.py"
            file.write_text("import attest_kernels\nfrom attest_kernels.testing.functions import attend\n"
                            "@attest_kernels.kernel(types='fp16', masks='none', head_dims=[16, 32], name='mine')\n"
                            "def f(q, k, v, causal, scale):\n    return attend(q, k, v, causal, scale)\n")
            report = attest_kernels.verify(f"{file}:f", cases=6, jobs=JOBS, out=folder)
        self.assertTrue(report.passed, report.text)
        self.assertIn("\nmine ", report.text)


class Declarations(unittest.TestCase):
    def test_bad_ones_get_one_line(self):
        for how, line in (({"types": ["fp8"]}, "types has 'fp8'; allowed: fp32, fp16, bf16"), ({"layout": "NHD"}, "layout has 'NHD'; allowed: BHND, BNHD"),
                          ({"head_dims": [0]}, "head_dims is 0; allowed: whole numbers from 1 to 4096")):
            with self.assertRaisesRegex(ValueError, line):
                attest_kernels.kernel(functions.right, **how)


if __name__ == "__main__":
    unittest.main()
