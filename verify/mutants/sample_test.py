"""Tests of sample.py on mutants of a made-up kernel: python3 -m unittest sample_test.py"""

import pathlib
import tempfile
import unittest

import sample

NAMES = [f"c{n:02}_bug" for n in range(20)]


class Sample(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        self.put("verify/mutants/k.mutants", "")
        self.put("verify/judge/judge.cpp", "int judge;\n")
        # All were killed, c07 first.
        self.record(self.fingerprints(), NAMES)

    def put(self, name, text):
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text)

    def record(self, fingerprints, names):
        sample.add_to_record(self.tree, fingerprints.text(), "".join(f"{name}\twithin_bound\t{0 if 'c07' in name else 5}\n" for name in names))

    def fingerprints(self, kernel="int kernel;", sections={}, names=NAMES):
        found = sample.Fingerprints(self.tree)
        for name in names:
            found.add(name, sections.get(name, "section"), kernel)
        return found

    def chosen(self, fingerprints, named="", names=NAMES):
        self.choice = sample.Choice()
        return self.choice.of(names, fingerprints, sample.read_record(self.tree), named)

    def test_of_a_kernel_that_did_not_change_the_one_that_died_first_and_those_that_tests_name(self):
        self.assertEqual(self.chosen(self.fingerprints()), ["c07_bug"])
        self.assertEqual(self.chosen(self.fingerprints(), named='find("mutant/c12_bug")'), ["c07_bug", "c12_bug"])
        self.assertEqual(self.choice.report(), "2 of 20 planted bugs are judged\n")

    def test_a_comment_or_a_space_is_no_change(self):
        self.assertEqual(self.chosen(self.fingerprints("int  kernel; // as it was\n/* and\n is */")), ["c07_bug"])

    def test_a_changed_section_and_a_new_mutant_are_judged(self):
        self.assertEqual(self.chosen(self.fingerprints(sections={"c03_bug": "other"})), ["c03_bug", "c07_bug"])
        names = [*NAMES, "c99_new"]
        self.assertEqual(self.chosen(self.fingerprints(names=names), names=names), ["c07_bug", "c99_new"])

    def test_of_a_changed_kernel_eight_are_judged_others_after_another_edit_and_the_rest_is_named(self):
        first = self.chosen(self.fingerprints("int edited;", sections={"c03_bug": "other"}))
        self.assertLessEqual(len(first), sample.MOST_STALE + 1)
        self.assertIn("c03_bug", first)
        line, *left = self.choice.report().splitlines()
        self.assertEqual(sorted(set(NAMES) - set(first)), left)
        self.assertIn(f"{len(left)} whose kernel changed are left out: ./attest mutants --kills judges all", line)
        judged = {name for edit in range(50) for name in self.chosen(self.fingerprints(f"int edit{edit};"))}
        self.assertEqual(judged, set(NAMES))

    def test_what_was_judged_is_judged_again_only_after_the_next_edit(self):
        edited = self.fingerprints("int edited;")
        first = self.chosen(edited)
        self.record(edited, first)
        self.assertFalse(set(self.chosen(edited)) & set(first) - {"c07_bug"})

    def test_another_judge_is_said_and_changes_no_choice(self):
        self.put("verify/judge/judge.cpp", "int other;\n")
        self.assertEqual(self.chosen(self.fingerprints()), ["c07_bug"])
        self.assertIn("the record of 20 is by an older judge", self.choice.report())

    def test_a_mutant_that_is_gone_leaves_the_record(self):
        self.record(self.fingerprints(names=NAMES[1:]), NAMES[1:2])
        self.assertEqual(sorted(sample.read_record(self.tree)), NAMES[1:])

    def test_without_a_record_every_kernel_has_its_sample(self):
        sample.record_of(self.tree).unlink()
        self.assertIn(len(self.chosen(self.fingerprints())), (sample.MOST_STALE, sample.MOST_STALE + 1))


if __name__ == "__main__":
    unittest.main()
