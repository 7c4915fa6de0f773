"""One HTML file that needs no network: text, tables and pictures, the Vega libraries inside."""

import functools
import html
import json

import vl_convert

STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --paper: #fff; --line: #ddd; --shade: #f5f5f5; --faint: #555; --answer: #f2f8fc; --held: #00664d; --failed: #a33a00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e4e4; --paper: #16181c; --line: #3a3d44; --shade: #22252b; --faint: #a8adb5; --answer: #1b2733; --held: #59c9a5; --failed: #ff9d66; }
}
body { font: 15px/1.5 "DejaVu Sans", Verdana, sans-serif; color: var(--text); background: var(--paper); max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; }
table { border-collapse: collapse; font-size: 13px; margin: .8rem 0; } th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
.number { white-space: nowrap; } td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; } th { background: var(--shade); }
pre, code { font: 12.5px/1.45 "DejaVu Sans Mono", monospace; } pre { background: var(--shade); padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
details > summary { color: var(--faint); cursor: pointer; font-size: 12px; } .caption { color: var(--text); max-width: 60rem; margin: .2rem 0 1.6rem; }
.answer { font-size: 1.1rem; border-left: 4px solid #0072b2; padding: .4rem 1rem; background: var(--answer); } .held { color: var(--held); } .failed { color: var(--failed); }
nav { font-size: 13px; columns: 16rem; } nav a { color: inherit; display: block; }
/* The first column of a wide table stays in sight. */
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); } th:first-child { background: var(--shade); }
/* A picture is as wide as the page; one of several panels shrinks with it. */
.chart { width: 100%; } .chart > div { width: 100%; } .chart.panels svg { max-width: 100%; height: auto; }
/* Wide tables and pictures take what is left of the window beside the text, and scroll only then. */
.scroll { overflow-x: auto; width: max-content; max-width: min(100vw - 3rem, 50vw + 550px - 1.5rem); } .provenance { color: var(--faint); font-size: 12.5px; }
"""


NARROW = 300  # a chart of few columns is not drawn out to the width of the page


@functools.cache
def vega():
    """Vega, Vega-Lite and vegaEmbed as one script; `</script>` cannot occur inside."""
    return vl_convert.javascript_bundle().replace("</script", "<\\/script")


def escape(text):
    return html.escape(str(text), quote=True)


# Dark pages get dark pictures: the same colours of data on a ground and with texts that can be read there.
DRAW = """
function draw(id, spec) {
  if (matchMedia("(prefers-color-scheme: dark)").matches) {
    const text = {labelColor: "#d0d0d0", titleColor: "#e4e4e4"};
    spec = JSON.parse(JSON.stringify(spec).replaceAll('"stroke": "white"', '"stroke": "#16181c"').replaceAll('"stroke":"white"', '"stroke":"#16181c"').replaceAll('"#000000"', '"#f0f0f0"').replaceAll('"#444444"', '"#c0c0c0"'));
    const config = spec.config = spec.config || {};
    config.background = "#16181c";
    for (const part of ["axis", "legend", "header"]) config[part] = {...config[part], ...text};
    config.axis = {...config.axis, gridColor: "#33363d", domainColor: "#888888", tickColor: "#888888"};
    config.title = {...config.title, color: "#e4e4e4"};
    config.text = {...config.text, color: "#e4e4e4"};
  }
  vegaEmbed(id, spec, {actions: {export: true, source: false, compiled: false, editor: false}, renderer: "svg"});
}
"""


def as_wide_as_the_page(spec):
    """(specification, is of one panel): one panel takes the width that there is; several keep theirs, and are scaled as a whole."""
    if any(key in spec for key in ("hconcat", "vconcat", "concat", "facet", "repeat")) or spec.get("width", 0) < NARROW:
        return spec, False
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}, True


def chart_html(spec, number):
    """The picture of a Vega-Lite specification, drawn by the script that a page carries once."""
    spec, is_one = as_wide_as_the_page(spec)
    drawn = json.dumps(spec, allow_nan=False).replace("</", "<\\/")
    return f'<div class="chart{"" if is_one else " panels"}"><div id="chart{number}"></div></div>\n<script>draw("#chart{number}", {drawn});</script>'


def document(title, body):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
            f"<script>{vega()}</script><script>{DRAW}</script></head>\n<body>\n{body}\n</body></html>\n")


class Page:
    """Collects parts from top to bottom."""

    def __init__(self, title):
        self.title = title
        self.charts = 0
        self.headings = []
        self.parts = []

    def heading(self, text):
        self.headings.append(text)
        self.parts.append(f'<h2 id="part{len(self.headings)}">{escape(text)}</h2>')

    def paragraph(self, text, kind=""):
        self.parts.append(f'<p class="{escape(kind)}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>")

    def preformatted(self, text, summary):
        self.parts.append(f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>")

    def table(self, header, rows):
        """Cells are texts, or (text, "number") to stand to the right."""
        def cell(value):
            text, kind = value if isinstance(value, tuple) else (value, "")
            return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        lines = "\n".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
        self.parts.append(f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{lines}</tbody></table></div>')

    def chart(self, chart, caption):
        self.charts += 1
        self.parts.append(chart_html(chart.to_dict(), self.charts))
        self.parts.append(f'<p class="caption">{escape(caption)}</p>')

    def contents(self):
        """A table of contents, for pages of several parts."""
        links = "".join(f'<a href="#part{number}">{escape(text)}</a>' for number, text in enumerate(self.headings, start=1))
        return f"<nav>{links}</nav>" if len(self.headings) > 2 else ""

    def html(self):
        return document(self.title, "\n".join([f"<h1>{escape(self.title)}</h1>", self.contents(), *self.parts]))
