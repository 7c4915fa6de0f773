"""What holds of every document: its links lead somewhere, and README.md is one page. Argument: the repository's root."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
LINK = re.compile(r"\]\(([^)\s]+)\)")
ONE_PAGE = 9_000  # bytes


def anchors_of(document):
    """Names that GitHub gives the headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(document):
    """[link] of those that lead to no file, or to no heading of one."""
    dead = []
    for link in LINK.findall(document.read_text()):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if target.is_dir() and anchor:
            target /= "README.md"
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors_of(target)):
            dead.append(link)
    return dead


class Documents(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.md"], capture_output=True, text=True)
        names = listed.stdout.split("\0")[:-1] or [str(path.relative_to(ROOT)) for path in ROOT.glob("*.md")]
        self.assertEqual({name: dead for name in names if (ROOT / name).exists() and (dead := dead_links(ROOT / name))}, {})

    def test_a_dead_link_or_anchor_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder) / "a.md"
            document.write_text("# One `heading`\n[x](#one-heading) [y](b.md) [z](#two)\n")
            self.assertEqual(dead_links(document), ["b.md", "#two"])

    def test_help_prints_every_topic(self):
        rows = re.search(r"^topics=\((.*?)^\)", (ROOT / "attest").read_text(), re.DOTALL | re.MULTILINE)[1]
        topics = [row.split()[0] for row in re.findall(r'"([^"]*)"', rows)]
        self.assertGreater(len(topics), 5)
        for topic in topics:
            said = subprocess.run([ROOT / "attest", "help", topic], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stderr), (0, ""), topic)
            self.assertGreater(len(said.stdout), 100, topic)

    def test_the_readme_of_the_kernels_names_each_that_registers_itself(self):
        kernels = ROOT / "gpu/kernels"
        rows = re.findall(r"^\| `(\w+)/?` \|", (kernels / "README.md").read_text(), re.MULTILINE)
        there = {path.relative_to(kernels).parts[0].removesuffix(".cu") for path in kernels.rglob("*.cu") if "KernelRegistration" in path.read_text()}
        self.assertGreater(len(there), 15)
        self.assertEqual(there - set(rows), set())

    def test_the_readme_is_one_page(self):
        self.assertLessEqual(len((ROOT / "README.md").read_bytes()), ONE_PAGE)


if __name__ == "__main__":
    unittest.main()
