"""Runs notebooks from top to bottom, makes an HTML file of each, in the look of all reports, and stores outputs in the notebooks."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import re
import traceback

import nbclient
import nbformat
import traitlets
from nbconvert import HTMLExporter
from nbconvert.preprocessors import Preprocessor

from attest_book import outputs
from attest_book.charts import VEGA_LITE
from attest_book.records import BadInput
from attest_book.page import chart_html, document

FOLDER = pathlib.Path(__file__).resolve().parents[1]
LONGEST_CELL_S = 1200
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of IPython's tracebacks
# The kernel reads records only, and leaves pictures to us. It listens on this machine alone, for as long as the notebook runs, and need not warn of it.
FIRST_LINE = "import attest_book.records_only; from attest_book import charts; charts.only_specifications()"
KERNEL_ARGUMENTS = [f"--IPKernelApp.exec_lines={FIRST_LINE}", "--IPKernelApp.log_level=ERROR"]
# nbconvert's plain body, with the code folded away: who reads a report looks at the pictures first.
TEMPLATE = """{%- extends 'basic/index.html.j2' -%}
{%- block input_group -%}<details><summary>code</summary>{{ super() }}</details>{%- endblock input_group -%}"""


class NotebookFailed(Exception):
    """A cell raised or warned: the notebook's name, the cell and Python's own words."""


class Charts(Preprocessor):
    """Turns each chart into the HTML of our pages."""

    charts = traitlets.Int(0)

    def preprocess_cell(self, cell, resources, index):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if VEGA_LITE in data:
                self.charts += 1
                output["data"] = {"text/html": chart_html(data[VEGA_LITE], self.charts)}
        return cell, resources


def every_notebook():
    return sorted(FOLDER.glob("*.ipynb"))


def named(names):
    """The notebooks of these names, with or without folder and .ipynb; all when none is named."""
    known = {path.stem: path for path in every_notebook()}
    for name in names:
        if pathlib.Path(name).stem not in known:
            raise BadInput(f"there is no notebook '{name}'; there are {', '.join(known)}")
    return [known[pathlib.Path(name).stem] for name in names] or list(known.values())


def execute(path):
    """The notebook with the outputs of a fresh run. A cell that fails raises nbclient's CellExecutionError."""
    notebook = nbformat.read(path, as_version=4)
    os.environ["PYTHONPATH"] = str(FOLDER)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    nbclient.NotebookClient(notebook, timeout=LONGEST_CELL_S, resources={"metadata": {"path": str(FOLDER)}},
                            coalesce_streams=True, extra_arguments=KERNEL_ARGUMENTS).execute()
    return notebook


def words_on_stderr(notebook):
    """Warnings: they are no part of a page, and name paths of this machine."""
    return "".join(output.text for cell in notebook.cells for output in cell.get("outputs", []) if output.get("name") == "stderr")


def to_html(notebook, title):
    exporter = HTMLExporter(raw_template=TEMPLATE, preprocessors=[Charts], exclude_input_prompt=True, exclude_output_prompt=True,
                            exclude_anchor_links=True)
    body, _ = exporter.from_notebook_node(notebook)
    return document(title, body)


def make(path, folder, stored_in=None):
    """Runs a notebook and writes its page to `folder`; to `stored_in` the notebook as it is committed."""
    target = folder / f"{path.stem}.html"
    try:
        notebook = execute(path)
    except nbclient.exceptions.CellExecutionError as error:
        raise NotebookFailed(f"{path.name}: {COLOURS.sub('', str(error))}") from None
    if words := words_on_stderr(notebook):
        raise NotebookFailed(f"{path.name}: a cell writes to stderr, which would stand in the page: {words}")
    target.write_text(to_html(notebook, path.stem.replace("_", " ")), encoding="utf-8")
    if stored_in:
        (stored_in / path.name).write_text(outputs.stored(nbformat.read(path, as_version=4), notebook), encoding="utf-8")
    return target


def attempt(path, folder, stored_in):
    """(the page, None), or (None, why there is none). Raises nothing: an exception that pickle does not bring back whole breaks a pool of processes,
    and takes what it said with it."""
    try:
        return make(path, folder, stored_in), None
    except NotebookFailed as error:
        return None, str(error)
    except Exception:  # whatever the libraries raise
        return None, f"{path.name}: {traceback.format_exc()}"


def make_all(names, folder, stored_in=None):
    """One process a notebook at a time, as many as there are cores; yields the pages as they are finished. Raises the first NotebookFailed; what has
    not begun by then does not begin.

    Processes are spawned: a copy of this one would have the locks of its threads, those of ZeroMQ among them, as they just were, and nobody to open
    them."""
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        try:
            for done in concurrent.futures.as_completed([pool.submit(attempt, path, folder, stored_in) for path in named(names)]):
                page, why = done.result()
                if why:
                    raise NotebookFailed(why)
                yield page
        except concurrent.futures.process.BrokenProcessPool:
            raise NotebookFailed("a process that ran notebooks died, for want of memory perhaps") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
