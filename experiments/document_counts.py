"""The counts in sentences of the documents: a method each, by the name that a mark bears. See documents.py."""

import re
import subprocess
import tempfile


class Counts:
    """Of what lies in the tree, and of what a program has: None where no program is given. LookupError: there is nothing to count."""

    def __init__(self, tree, program=None):
        self._tree, self._program = tree, program

    def planted_bugs(self, kernel=""):
        """Sections of verify/mutants that plant a bug: of all, or of the kernel whose name their files begin with."""
        texts = [path.read_text() for path in sorted((self._tree / "verify/mutants").glob(f"{kernel}*.mutants"))]
        count = sum(len(re.findall(r"^=== (?!family\b)", text, re.MULTILINE)) for text in texts)
        if count == 0:
            raise LookupError(f"no planted bug of {kernel or 'any kernel'} in verify/mutants")
        return count

    def features(self):
        """Features of cases that a campaign can reach, as it says itself."""
        if self._program is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run([self._program.resolve(), "verify", "--kernel", "o5_deferred", "--cases", "1", "--no-regressions"],
                                 capture_output=True, text=True, cwd=folder, timeout=600)
        said = re.search(r"^coverage: \d+ of (\d+) features", ran.stdout, re.MULTILINE)
        if said is None:
            raise LookupError(f"{self._program} says no number of features: {ran.stderr.strip()[-200:]}")
        return int(said[1])
