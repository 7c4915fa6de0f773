"""One HTML file that needs no network: text, tables and pictures, the Vega libraries inside."""

import functools
import html
import json

import vl_convert

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 "DejaVu Sans", Verdana, sans-serif; color: #1a1a1a; background: #fff; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd; } h3 { font-size: 1rem; }
table { border-collapse: collapse; font-size: 13px; margin: .8rem 0; } th, td { padding: .25rem .7rem; border-bottom: 1px solid #e3e3e3; text-align: left; }
.number { white-space: nowrap; } td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; } th { background: #f5f5f5; }
pre, code { font: 12.5px/1.45 "DejaVu Sans Mono", monospace; } pre { background: #f6f6f6; padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
details > summary { color: #666; cursor: pointer; font-size: 12px; } .caption { color: #333; max-width: 60rem; margin: .2rem 0 1.6rem; }
.answer { font-size: 1.1rem; border-left: 4px solid #0072b2; padding: .4rem 1rem; background: #f2f8fc; } .held { color: #00664d; } .failed { color: #a33a00; }
/* Wide tables and pictures take what is left of the window beside the text, and scroll only then. */
.scroll { overflow-x: auto; width: max-content; max-width: min(100vw - 3rem, 50vw + 550px - 1.5rem); } .provenance { color: #555; font-size: 12.5px; }
"""


@functools.cache
def vega():
    """Vega, Vega-Lite and vegaEmbed as one script; `</script>` cannot occur inside."""
    return vl_convert.javascript_bundle().replace("</script", "<\\/script")


def escape(text):
    return html.escape(str(text), quote=True)


def chart_html(spec, number):
    """The picture of a Vega-Lite specification, drawn by the script that a page carries once."""
    drawn = json.dumps(spec, allow_nan=False).replace("</", "<\\/")
    return (f'<div class="scroll"><div id="chart{number}"></div></div>\n<script>vegaEmbed("#chart{number}", {drawn}, '
            '{actions: {export: true, source: false, compiled: false, editor: false}, renderer: "svg"});</script>')


def document(title, body):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
            f"<script>{vega()}</script></head>\n<body>\n{body}\n</body></html>\n")


class Page:
    """Collects parts from top to bottom."""

    def __init__(self, title):
        self.title = title
        self.charts = 0
        self.parts = [f"<h1>{escape(title)}</h1>"]

    def heading(self, text):
        self.parts.append(f"<h2>{escape(text)}</h2>")

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

    def html(self):
        return document(self.title, "\n".join(self.parts))
