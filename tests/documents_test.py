"""What holds of every document: its links lead somewhere, README.md is one page, no record lies there that nobody names, and doc comments of headers
stand alone. Argument: the repository's root."""

import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
LINK = re.compile(r"\]\(([^)\s]+)\)")
ONE_PAGE = 9_000  # bytes
RESULTS = "experiments/results/"
NAMING = (".md", ".py", ".yaml", ".ipynb", ".cpp")  # documents, claims, and code that reads records

# How a doc comment begins that is read only with the one before it, or asks instead of saying.
FRAGMENT = re.compile(r"(?:Of|The same|What|Whether|Which|How|Where|In which|Is|Are|Was|Has|Do|Did|Can|May|Does (?:it|the|any|a)|Inverse)\b|Exact\.")


def fragments_in(text):
    """[line number] of doc comments that do not stand alone."""
    lines = [line.strip() for line in text.splitlines()]
    begins = [n for n, line in enumerate(lines) if line.startswith("/// ") and not (n > 0 and re.match("///(?!<)", lines[n - 1]))]
    return [n + 1 for n in begins if FRAGMENT.match(lines[n], 4)]


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


def files(*patterns):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--", *patterns], capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0")[:-1] if (ROOT / name).exists()]


def names_in(texts):
    """All that may be the name of a file or a folder, without where the results are."""
    return {name.split("results/")[-1].rstrip("./").removesuffix(".gz") for text in texts for name in re.findall(r"[\w*./-]{5,}", text)}


def is_named(record, names):
    """By its path with or without its ending, by a pattern, or by a folder that it is in."""
    path = pathlib.PurePath(record.removesuffix(".gz"))
    folders = {str(folder) for folder in path.parents if len(folder.parts) > 1}
    patterns = (name for name in names if "*" in name and "/" in name)
    return bool(names & {str(path), str(path.with_suffix("")), *folders}) or any(fnmatch.fnmatch(path, name) for name in patterns)


class Documents(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        names = files("*.md") or [str(path.relative_to(ROOT)) for path in ROOT.glob("*.md")]
        self.assertEqual({name: dead for name in names if (dead := dead_links(ROOT / name))}, {})

    def test_every_record_is_named_by_a_document_a_claim_or_code(self):
        names = names_in((ROOT / name).read_text() for name in files(*("*" + ending for ending in NAMING)) if not name.endswith("/study.yaml"))
        records = [name.removeprefix(RESULTS) for name in files(RESULTS) if not name.endswith(".md")]
        self.assertEqual([record for record in records if not is_named(record, names)], [])

    def test_a_record_that_nobody_names_is_found(self):
        names = names_in(["see `experiments/results/h200/a.jsonl.gz`, b.jsonl, [records](x/results/h200/studies/b); `h200/d_*.jsonl`, h200/e."])
        for record in ("h200/a.jsonl.gz", "h200/studies/b/study.yaml", "h200/d_1.jsonl", "h200/e.txt"):
            self.assertTrue(is_named(record, names), record)
        for record in ("h200/f.jsonl", "h100/a.json", "h200/studies/c/study.yaml", "h100/d_1.jsonl", "h200/b.jsonl"):
            self.assertFalse(is_named(record, names), record)

    def test_a_dead_link_or_anchor_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder) / "a.md"
            document.write_text("# One `heading`\n[x](#one-heading) [y](b.md) [z](#two)\n")
            self.assertEqual(dead_links(document), ["b.md", "#two"])

    def test_the_readme_of_the_kernels_names_each_that_registers_itself(self):
        kernels = ROOT / "gpu/kernels"
        rows = re.findall(r"^\| `(\w+)/?` \|", (kernels / "README.md").read_text(), re.MULTILINE)
        there = {path.relative_to(kernels).parts[0].removesuffix(".cu") for path in kernels.rglob("*.cu") if "KernelRegistration" in path.read_text()}
        self.assertGreater(len(there), 15)
        self.assertEqual(there - set(rows), set())

    def test_doc_comments_of_headers_stand_alone(self):
        self.assertEqual([f"{name}:{line}" for name in files("*.hpp", "*.cuh") for line in fragments_in((ROOT / name).read_text())], [])

    def test_a_doc_comment_that_leans_on_another_is_found(self):
        text = "/// What it is.\nint a;\n/// A number.\n/// Of what it says more.\nint b;\nint c;  ///< of it\n  /// The same.\nint d;\n/// Officially none.\nint e;\n"
        self.assertEqual(fragments_in(text), [1, 7])

    def test_a_citation_names_the_version_that_is_built(self):
        built = re.search(r"project\(attest VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1], built)

    def test_the_readme_is_one_page(self):
        self.assertLessEqual(len((ROOT / "README.md").read_bytes()), ONE_PAGE)


if __name__ == "__main__":
    unittest.main()
