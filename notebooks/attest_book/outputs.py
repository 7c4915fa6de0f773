"""Outputs as a committed notebook holds them: what GitHub shows, small, and the same on every machine.

A chart is a PNG picture, since GitHub shows neither SVG nor Vega-Lite in notebooks. Fonts make other bytes of it elsewhere. So its specification
stands beside it as a digest, and a picture is drawn only where the digest is new.
"""

import base64
import copy
import hashlib
import json

import nbformat
import vl_convert

from attest_book import png
from attest_book.charts import VEGA_LITE, words_of

SCALE = 1  # pixels of the picture for one of the chart
PNG = "image/png"


def with_digits(spec, digits=9):
    """The specification with numbers as every machine computes them: libraries differ in the last digits."""
    if isinstance(spec, dict):
        return {key: with_digits(value, digits) for key, value in spec.items()}
    if isinstance(spec, list):
        return [with_digits(value, digits) for value in spec]
    return float(f"{spec:.{digits}g}") if isinstance(spec, float) else spec


def digest(spec):
    """Of all that decides a picture, but for fonts. Altair names data by what is in them to the last digit; here they have numbers."""
    data = spec.get("datasets", {})
    text = json.dumps([with_digits({**spec, "datasets": list(data.values())}), vl_convert.__version__, SCALE, png.COLOURS], sort_keys=True)
    for number, name in enumerate(data):
        text = text.replace(name, str(number))
    return hashlib.sha256(text.encode()).hexdigest()


def draw(spec):
    """The picture in base64."""
    return base64.b64encode(png.in_few_colours(vl_convert.vegalite_to_png(spec, scale=SCALE))).decode()


def pictures_of(notebook):
    """{digest: picture} of a committed notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return {output.metadata.chart: output.data[PNG] for output in outputs if "chart" in output.get("metadata", {})}


def of_chart(spec, known):
    name = digest(spec)
    picture = known.get(name) or draw(spec)
    words = words_of(spec)
    shown = {"alt": words, "width": round(png.width(base64.b64decode(picture)) / SCALE)}
    return {"data": {PNG: picture, "text/plain": words}, "metadata": {PNG: shown, "chart": name}}


def as_committed(output, known):
    """An output of a run without counts and times. `known`: pictures that need not be drawn."""
    if output.output_type == "stream":
        return nbformat.v4.new_output("stream", name=output.name, text=output.text)
    spec = output.data.get(VEGA_LITE)
    return nbformat.v4.new_output(output.output_type, **(of_chart(spec, known) if spec else {"data": output.data}))


def stored(notebook, executed):
    """The text of `notebook` as it is committed, with the outputs of `executed`, which is the same notebook after a run."""
    known = pictures_of(notebook)
    notebook = copy.deepcopy(notebook)
    for cell, ran in zip(notebook.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [as_committed(output, known) for output in ran.outputs]
    return nbformat.writes(notebook) + "\n"
