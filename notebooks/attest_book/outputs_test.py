"""Laws of the outputs that notebooks are committed with."""

import base64
import unittest

import altair
import nbformat
import pandas

from attest_book import charts, outputs, png


def chart_of(*values):
    frame = pandas.DataFrame({"length": range(len(values)), "rate": values})
    return altair.Chart(frame, title="made up").mark_line().encode(x="length:Q", y=altair.Y("rate:Q", title="TFLOP/s")).to_dict()


def notebook_of(*ran, count=None):
    """A notebook of one cell with these outputs."""
    cell = nbformat.v4.new_code_cell("chart", id="a-cell", outputs=list(ran), execution_count=count)
    return nbformat.v4.new_notebook(cells=[cell])


def executed(*values, count=7):
    run = [nbformat.v4.new_output("stream", name="stdout", text="said\n"),
           nbformat.v4.new_output("execute_result", data={charts.VEGA_LITE: chart_of(*values), "text/plain": "alt.Chart(...)"}, execution_count=count)]
    notebook = notebook_of(*run, count=count)
    notebook.metadata.language_info = {"version": "3.11.2"}
    notebook.cells[0].metadata.execution = {"iopub.status.busy": "2026-11-28T00:00:00Z"}
    return notebook


def stored(before, after):
    return nbformat.reads(outputs.stored(before, after), as_version=4)


class Stored(unittest.TestCase):
    def test_a_chart_is_a_picture_and_words(self):
        output = stored(notebook_of(), executed(1.0, 2.0)).cells[0].outputs[1]
        self.assertTrue(base64.b64decode(output.data["image/png"]).startswith(png.SIGNATURE))
        self.assertEqual((output.data["text/plain"], output.metadata["image/png"].alt), ("made up; Across: length; up: TFLOP/s",) * 2)
        self.assertEqual(set(output.data), {"image/png", "text/plain"})

    def test_nothing_tells_when_where_or_how_often_it_ran(self):
        text = outputs.stored(notebook_of(), executed(1.0, 2.0))
        self.assertEqual(text, outputs.stored(notebook_of(), executed(1.0, 2.0, count=9)))
        self.assertNotRegex(text, "3.11.2|2026-11|iopub")
        self.assertTrue(text.endswith("}\n") and not text.endswith("\n\n"))

    def test_storing_again_changes_nothing_and_draws_nothing(self):
        first = stored(notebook_of(), executed(1.0, 2.0))
        other = png.in_few_colours(drawn(chart_of(2.0, 1.0)))  # as fonts of another machine would make of it
        first.cells[0].outputs[1].data["image/png"] = base64.b64encode(other).decode()
        self.assertEqual(stored(first, executed(1.0, 2.0)), first)

    def test_another_number_is_another_picture_and_digest(self):
        first = stored(notebook_of(), executed(1.0, 2.0))
        second = stored(first, executed(1.0, 2.0001))
        for part in (lambda output: output.metadata.chart, lambda output: output.data["image/png"]):
            self.assertNotEqual(part(first.cells[0].outputs[1]), part(second.cells[0].outputs[1]))

    def test_the_last_digits_of_a_number_do_not_count(self):
        self.assertEqual(outputs.digest(chart_of(1.0, 0.1)), outputs.digest(chart_of(1.0, 0.1 * (1 + 1e-14))))


def drawn(spec):
    return outputs.vl_convert.vegalite_to_png(spec)


class Pictures(unittest.TestCase):
    def test_a_picture_keeps_its_size_and_its_commonest_colours(self):
        before = drawn(chart_of(1.0, 3.0, 2.0))
        after = png.in_few_colours(before)
        self.assertEqual(png.width(after), png.width(before))
        self.assertLess(len(after), len(before) / 4)
        palette, picture = png.with_palette(png.pixels(before))
        self.assertLessEqual(len(palette), png.COLOURS)
        changed = (palette[picture] != png.pixels(before)).any(axis=2)
        self.assertLess(changed.mean(), 0.02)  # pixels at the edges of letters and lines


if __name__ == "__main__":
    unittest.main()
