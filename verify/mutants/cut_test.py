"""Tests of cut.py on a small tree of its own: python3 -m unittest cut_test.py"""

import pathlib
import tempfile
import unittest

import cut

KERNEL = """#include <cmath>
namespace attest {
int one() { return 1; }
const KernelRegistration registration{{.name = "k"}};
}  // namespace attest
"""
MUTANTS = """kernel: gpu/k.cu

=== c01_two
claim: C1
summary: two for one
killed_by: within_bound
--- correct
return 1;
--- planted
return 2;
"""
FAMILY = MUTANTS.replace("gpu/k.cu", "gpu/f/f.cu").replace("=== c01", "=== family\nwith fewer\n--- correct\nint many;\n--- planted\nint few;\n\n=== c01")


class Cut(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree, self.out = pathlib.Path(folder.name) / "tree", pathlib.Path(folder.name) / "out"
        self.put("gpu/k.cu", KERNEL)
        self.put("verify/mutants/k.mutants", MUTANTS)

    def put(self, name, text):
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text)

    def made(self, name="c01_two.cu"):
        cut.cut(self.tree, self.out)
        return (self.out / name).read_text()

    def refusal(self, text, name="verify/mutants/k.mutants"):
        self.put(name, text)
        with self.assertRaises(cut.Wrong) as raised:
            cut.cut(self.tree, self.out)
        return str(raised.exception)

    def test_a_mutant_is_its_kernel_with_one_edit_in_a_namespace_of_its_own(self):
        self.assertEqual(self.made(), '#line 1 "gpu/k.cu"\n#include <cmath>\nnamespace attest { namespace mutant_c01_two {\nint one() { return 2; }\n'
                         'const MutantRegistration registration{{"mutant/c01_two", "two for one", "C1", "within_bound"},{.name = "k"}};\n'
                         '} }  // namespace attest\n')

    def test_a_text_that_occurs_never_or_twice_is_named_with_its_mutant_and_kernel(self):
        for kernel, times in ((KERNEL.replace("return 1;", "return 3;"), 0), (KERNEL.replace("return 1;", "return 1; return 1;"), 2)):
            why = self.refusal(kernel, "gpu/k.cu")
            self.assertTrue(why.startswith(f"k.mutants: c01_two: this text occurs {times} times in gpu/k.cu, once is wanted"), why)

    def test_what_a_file_lacks_is_named(self):
        for text, wanted in ((MUTANTS.replace("kernel: gpu/k.cu", ""), "k.mutants: the line 'kernel: ...' is missing"),
                             (MUTANTS.replace("killed_by: within_bound\n", ""), "k.mutants: c01_two: has the lines claim, summary; wanted: claim, summary, killed_by"),
                             (MUTANTS.replace("--- planted", "--- plnted"), "'--- correct' and '--- planted' must follow each other"),
                             (MUTANTS + MUTANTS.partition("\n\n")[2], "k.mutants: c01_two: is there twice"),
                             (MUTANTS.replace("gpu/k.cu", "gpu/none.cu"), "there is no gpu/none.cu")):
            self.assertIn(wanted, self.refusal(text))
        self.put("verify/mutants/k.mutants", MUTANTS)
        self.assertIn("registers no kernel", self.refusal(KERNEL.replace("KernelRegistration", "Nothing"), "gpu/k.cu"))

    def test_device_code_beside_a_kernel_is_part_of_the_copy_and_may_be_edited(self):
        self.put("gpu/tile.cuh", "#pragma once\nint tile() { return 1; }\n")
        self.put("gpu/plan.hpp", "#pragma once\nint plan;\n")
        self.put("gpu/k.cu", '#include "gpu/tile.cuh"\n#include "gpu/plan.hpp"\n' + KERNEL.replace("return 1;", "return tile();"))
        made = self.made()
        self.assertIn("int tile() { return 2; }", made)
        self.assertNotIn('#include "gpu/tile.cuh"', made)
        self.assertIn('#include "gpu/plan.hpp"', made)

    def test_headers_that_the_file_names_are_part_of_the_copy(self):
        self.put("gpu/plan.hpp", "#pragma once\nint one() { return 1; }\n")
        self.put("gpu/other.hpp", "#pragma once\nint other;\n")
        self.put("gpu/k.cu", '#include "gpu/plan.hpp"\n#include "gpu/other.hpp"\n' + KERNEL.replace("return 1;", "return one();"))
        self.put("verify/mutants/k.mutants", MUTANTS.replace("kernel: gpu/k.cu\n", "kernel: gpu/k.cu\nwith: gpu/plan.hpp\n"))
        made = self.made()
        self.assertIn("int one() { return 2; }", made)
        self.assertNotIn('#include "gpu/plan.hpp"', made)
        self.assertIn('#include "gpu/other.hpp"', made)

    def test_of_a_family_the_headers_of_its_folder_are_part_of_the_copy_each_once(self):
        self.put("gpu/f/a.cuh", "#pragma once\nint many;\n")
        self.put("gpu/f/b.cuh", '#pragma once\n#include "gpu/f/a.cuh"\n#include "gpu/shared.cuh"\n#include "gpu/far/other.cuh"\n')
        self.put("gpu/shared.cuh", "#pragma once\nint shared;\n")
        self.put("gpu/f/f.cu", '#include "gpu/f/a.cuh"\n#include "gpu/f/b.cuh"\n' + KERNEL)
        self.put("verify/mutants/k.mutants", FAMILY)
        made = self.made()
        self.assertEqual(made.count("int few;"), 1)
        self.assertNotIn("int many;", made)
        self.assertNotIn('#include "gpu/f/', made)
        self.assertEqual(made.count("int shared;"), 1)
        self.assertIn('#include "gpu/far/other.cuh"', made)
        # What a compiler says of the registration names its line in the family's file.
        before = made[:made.index("int one()")]
        self.assertEqual(int(before.rpartition("#line ")[2].split()[0]) + before.rpartition("#line ")[2].count("\n") - 1,
                         (self.tree / "gpu/f/f.cu").read_text().partition("int one()")[0].count("\n") + 1)
        self.put("verify/judge/judge.cpp", "int judge;")
        self.assertEqual({path.name for path in cut.cut(self.tree, self.out)}, {"k.mutants", "f.cu", "a.cuh", "b.cuh", "shared.cuh", "judge.cpp"})

    def test_eight_mutants_of_a_kernel_are_compiled_together_and_the_sample_apart(self):
        body = MUTANTS.partition("\n\n")[2]
        self.put("verify/mutants/k.mutants", "kernel: gpu/k.cu\n" + "".join("\n" + body.replace("c01", f"c{n:02}") for n in range(1, 10)))
        everything, some = cut.outputs(self.tree, self.out)
        self.assertEqual([path.name for path in everything], ["k_0.cu", "k_1.cu"])
        self.assertEqual([path.name for path in some], ["k.cu"])
        cut.cut(self.tree, self.out)
        self.assertEqual([path.read_text().count("#include") for path in everything], [8, 1])
        self.assertTrue(all(path.is_file() for path in some))

    def test_what_did_not_change_is_not_written_again(self):
        self.made()
        before = (self.out / "c01_two.cu").stat().st_mtime_ns
        self.made()
        self.assertEqual((self.out / "c01_two.cu").stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
