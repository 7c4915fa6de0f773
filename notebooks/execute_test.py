"""Every notebook runs from top to bottom, from committed records alone, and is committed without outputs."""

import pathlib
import tempfile
import unittest

import nbformat

from attest_book import notebooks, page
from attest_book.notebooks import NotebookFailed


def notebook_of(folder, *cells):
    path = pathlib.Path(folder) / "planted.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    return path


class Notebooks(unittest.TestCase):
    def test_every_notebook_runs_and_draws_what_its_text_speaks_of(self):
        with tempfile.TemporaryDirectory() as folder:
            made = sorted(path.stem for path in notebooks.make_all([], pathlib.Path(folder)))
            self.assertEqual(made, [path.stem for path in notebooks.every_notebook()])
            for name in made:
                text = (pathlib.Path(folder) / f"{name}.html").read_text(encoding="utf-8").replace(page.vega(), "")
                with self.subTest(name):
                    self.assertIn("draw(\"#chart", text)
                    self.assertNotRegex(text, r"src=|@import|url\(|<link")

    def test_no_notebook_is_committed_with_outputs(self):
        for path in notebooks.every_notebook():
            for cell in nbformat.read(path, as_version=4).cells:
                if cell.cell_type == "code":
                    self.assertEqual((path.name, cell.outputs, cell.execution_count), (path.name, [], None))

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
                    notebooks.make_html(notebook_of(folder, cell), pathlib.Path(folder))
            from_records = "from attest_book import records\nassert records.committed('h200/errors.jsonl')"
            self.assertTrue(notebooks.make_html(notebook_of(folder, from_records), pathlib.Path(folder)).exists())

    def test_a_warning_does_not_come_into_a_page(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(NotebookFailed, "planted.ipynb: a cell writes to stderr(.|\n)*careful"):
            notebooks.make_html(notebook_of(folder, "import warnings\nwarnings.warn('careful')"), pathlib.Path(folder))

    def test_a_cell_that_raises_is_named(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(NotebookFailed, "planted.ipynb(.|\n)*ZeroDivision"):
            notebooks.make_html(notebook_of(folder, "1 / 0"), pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main()
