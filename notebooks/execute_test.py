"""Every notebook runs from top to bottom, from committed records alone, and is committed with the outputs of such a run."""

import base64
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import nbformat

from attest_book import notebooks, page, png
from attest_book.notebooks import NotebookFailed

LARGEST = 2_400_000  # bytes of all notebooks


def notebook_of(folder, *cells, name="planted"):
    path = pathlib.Path(folder) / f"{name}.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    return path


def outputs_of(path):
    return [output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]


def changes(committed, made):
    """What tells two texts apart, one line a cell; nothing where they are the same to the byte."""
    if committed.read_bytes() == made.read_bytes():
        return []
    before, after = (nbformat.read(path, as_version=4).cells for path in (committed, made))
    cells = [cell.id for cell, other in zip(before, after, strict=True) if cell != other]
    return [f"outputs of cell {name}" for name in cells] or ["the form of the file"]


class Unrepeatable(Exception):
    """Pickle calls it with what its base was given, one word, and gets no second exception."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


class Unreadable:
    """A notebook whose reader raises that."""

    name, stem = "unreadable.ipynb", "unreadable"

    def read(self):
        raise Unrepeatable("nothing", "it")


class Fatal:
    """A notebook that ends the process that reads it."""

    name, stem = "fatal.ipynb", "fatal"

    def read(self):
        os._exit(3)


class Notebooks(unittest.TestCase):
    def test_every_notebook_runs_draws_what_its_text_speaks_of_and_is_committed_with_what_it_gives(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            made = sorted(path.stem for path in notebooks.make_all([], folder, stored_in=folder))
            self.assertEqual(made, [path.stem for path in notebooks.every_notebook()])
            for name in made:
                text = (folder / f"{name}.html").read_text(encoding="utf-8").replace(page.vega(), "")
                with self.subTest(name):
                    self.assertIn("draw(\"#chart", text)
                    self.assertNotRegex(text, r"src=|@import|url\(|<link")
                    changed = changes(notebooks.FOLDER / f"{name}.ipynb", folder / f"{name}.ipynb")
                    self.assertEqual(changed, [], f"notebooks/{name}.ipynb is not what the records give; ./attest notebooks --write {name} writes it")

    def test_committed_outputs_are_texts_and_small_pictures_with_words(self):
        for path in notebooks.every_notebook():
            for output in outputs_of(path):
                with self.subTest(path.name):
                    self.assertLessEqual(set(output.get("data", {})), {"image/png", "text/html", "text/plain"})
                    if "image/png" in output.get("data", {}):
                        self.assertTrue(base64.b64decode(output.data["image/png"]).startswith(png.SIGNATURE))
                        self.assertGreater(len(output.metadata["image/png"].alt), 10)
        self.assertLess(sum(path.stat().st_size for path in notebooks.every_notebook()), LARGEST)

    def test_each_notebook_says_what_its_figures_show(self):
        for path in notebooks.every_notebook():
            text = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
            with self.subTest(path.name):
                self.assertTrue(text[0].startswith("# "))
                self.assertIn("**See:**", "\n".join(text))

    def test_a_notebook_that_reads_anything_but_records_fails(self):
        readme = pathlib.Path(__file__).parents[1] / "README.md"
        planted = [f"open({str(readme)!r}).read()", f"import pandas\npandas.read_csv({str(readme)!r})",
                   "import subprocess\nsubprocess.run(['true'])", f"open({str(readme.with_name('new.txt'))!r}, 'w')"]
        with tempfile.TemporaryDirectory() as folder:
            for cell in planted:
                with self.subTest(cell), self.assertRaisesRegex(NotebookFailed, "read records only"):
                    notebooks.make(notebook_of(folder, cell), pathlib.Path(folder))
            from_records = "from attest_book import records\nassert records.committed('h200/errors.jsonl')"
            self.assertTrue(notebooks.make(notebook_of(folder, from_records), pathlib.Path(folder)).exists())

    def test_a_warning_does_not_come_into_a_page(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(NotebookFailed, "planted.ipynb: a cell writes to stderr(.|\n)*careful"):
            notebooks.make(notebook_of(folder, "import warnings\nwarnings.warn('careful')"), pathlib.Path(folder))

    def test_a_cell_that_raises_is_named(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(NotebookFailed, "planted.ipynb(.|\n)*ZeroDivision"):
            notebooks.make(notebook_of(folder, "1 / 0"), pathlib.Path(folder))

    def test_a_failure_comes_back_from_the_process_that_ran_the_notebook_whatever_was_raised_there(self):
        with tempfile.TemporaryDirectory() as folder:
            for planted, words in ((notebook_of(folder, "1 / 0"), "planted.ipynb(.|\n)*ZeroDivision"), (Unreadable(), "unreadable.ipynb(.|\n)*nothing in it"),
                                   (Fatal(), "a process that ran notebooks died")):
                with (self.subTest(words), mock.patch.object(notebooks, "named", lambda _, one=planted: [one]),
                      self.assertRaisesRegex(NotebookFailed, words)):
                    list(notebooks.make_all([], pathlib.Path(folder)))

    def test_after_a_failure_those_that_wait_do_not_begin(self):
        with tempfile.TemporaryDirectory() as folder:
            others = [notebook_of(folder, "2", name=f"other_{number}") for number in range(4)]
            planted, made = [notebook_of(folder, "1 / 0"), *others], pathlib.Path(folder) / "made"
            with (mock.patch.object(notebooks, "named", lambda _: planted), mock.patch("os.cpu_count", lambda: 1),
                  self.assertRaisesRegex(NotebookFailed, "planted.ipynb")):
                list(notebooks.make_all([], made))
            self.assertLess(len(list(made.iterdir())), len(others))


if __name__ == "__main__":
    unittest.main()
