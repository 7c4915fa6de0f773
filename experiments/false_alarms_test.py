"""Rates and sums of false_alarms.py."""

import unittest

import false_alarms

from attest_book.records import PROVENANCE_KEYS, Record, record_of

PROVENANCE = {name: kind() for name, kind in PROVENANCE_KEYS.items()}


def record(kernel, verdict="passed", cases=10.0, vacuous=1.0, expected=None, **labels):
    """One of attest verify."""
    expected = expected or ("yes" if verdict == "passed" else "no")
    values = {"cases": cases, "vacuous_cases": vacuous}
    return Record("verify", None, verdict, {"kernel": kernel, "executor": "cpu", "expected": expected, **labels}, values,
                  dict.fromkeys(values, "1"), PROVENANCE, "here")


class FalseAlarms(unittest.TestCase):
    def test_the_limit_of_the_rate_is_that_at_which_so_few_alarms_come_once_in_twenty(self):
        for cases in (1, 30, 200_000):
            self.assertAlmostEqual((1 - false_alarms.upper_rate(0, cases)) ** cases, 0.05)
        rate = false_alarms.upper_rate(1, 100)
        self.assertAlmostEqual((1 - rate) ** 100 + 100 * rate * (1 - rate) ** 99, 0.05)
        self.assertEqual(false_alarms.upper_rate(5, 5), 1.0)

    def test_cases_and_alarms_add_up_by_kernel_and_layer(self):
        rows = false_alarms.summed([record("a"), record("a", "failed", 4.0, 0.0, layer="bound"), record("b", "crashed"),
                                    record("b", "inconclusive")], "1-2")
        self.assertEqual([row["labels"]["kernel"] for row in rows], ["a", "b"])
        self.assertEqual(false_alarms.totals(record_of(row, "here") for row in rows),
                         (9 + 4 + 9 + 9, {"exact": 0, "bound": 1, "statistics": 0, "no answer": 1}))

    def test_a_negative_control_that_is_killed_is_neither_a_case_nor_an_alarm(self):
        self.assertEqual(false_alarms.summed([record("o1", "failed", expected="yes", layer="bound")], "1"), [])


if __name__ == "__main__":
    unittest.main()
