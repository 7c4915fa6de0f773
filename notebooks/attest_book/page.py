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
body { font: 15px/1.5 "DejaVu Sans", Verdana, sans-serif; color: var(--text); background: var(--paper); max-width: 1100px; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
table { overflow-wrap: normal; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; }
table { border-collapse: collapse; font-size: 13px; margin: .8rem 0; } th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
.number { white-space: nowrap; } td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; } th { background: var(--shade); }
td small { display: block; color: var(--faint); font-size: 11px; line-height: 1.2; }
pre, code { font: 12.5px/1.45 "DejaVu Sans Mono", monospace; } pre { background: var(--shade); padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
details > summary { color: var(--faint); cursor: pointer; font-size: 13px; margin: .6rem 0; } .caption { color: var(--text); max-width: 60rem; margin: .2rem 0 1.6rem; }
.answer { font-size: 1.1rem; border-left: 4px solid #0072b2; padding: .4rem 1rem; background: var(--answer); } .held { color: var(--held); } .failed { color: var(--failed); }
nav { font-size: 13px; columns: 16rem; } nav a { color: inherit; display: block; }
/* The first column of a wide table stays in sight. */
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); } th:first-child { background: var(--shade); }
/* A picture is as wide as the page; what cannot be drawn to a width shrinks with it. Panels stand side by side where two have room. */
.chart { width: 100%; } .chart > div { width: 100%; } .chart.fixed svg { max-width: 100%; height: auto; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: .4rem 1.5rem; } .panels.alone { display: block; } .panels > div { min-width: 0; }
.panels h3 { font-size: 13px; font-weight: normal; margin: .6rem 0 .2rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; font-size: 13px; } .legend i { display: inline-block; width: .75em; height: .75em; border-radius: 50%; margin-right: .4em; }
/* Where there is no room for columns of texts, they stand below each other. */
@media (max-width: 700px) { .texts thead { display: none; } .texts tr, .texts td { display: block; position: static; border: 0; padding: .1rem 0; } .texts tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .texts td:empty { display: none; } .texts td::before { content: attr(data-title); color: var(--faint); font-size: 11px; display: block; } }
/* Wide tables and pictures take what is left of the window beside the text, and scroll only then. */
.scroll { overflow-x: auto; width: max-content; max-width: min(100vw - 3rem, 50vw + 550px - 1.5rem); } .provenance { color: var(--faint); font-size: 12.5px; }
"""


SHOWN_PANELS = 8
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
  const more = document.querySelector(id).closest("details");
  if (more && !more.open) return more.addEventListener("toggle", () => draw(id, spec), {once: true});
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
    """(specification, is of one panel): one panel takes the width that there is; several keep theirs, and are scaled as a whole, as is one
    that says `autosize` itself, for its labels have places of their own."""
    if "autosize" in spec or any(key in spec for key in ("hconcat", "vconcat", "concat", "facet", "repeat")) or spec.get("width", 0) < NARROW:
        return spec, False
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}, True


def chart_html(spec, number):
    """The picture of a Vega-Lite specification, drawn by the script that a page carries once."""
    spec, is_one = as_wide_as_the_page(spec)
    drawn = json.dumps(spec, allow_nan=False).replace("</", "<\\/")
    return f'<div class="chart{"" if is_one else " fixed"}"><div id="chart{number}"></div></div>\n<script>draw("#chart{number}", {drawn});</script>'


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
        """Cells are texts, or (text, "number") to stand to the right, or (text, "number", what stands small below it)."""
        is_texts = not any(isinstance(value, tuple) for row in rows for value in row)

        def cell(value, title):
            text, kind, *below = value if isinstance(value, tuple) else (value, "")
            small = "".join(f"<small>{escape(line)}</small>" for line in below if line)
            named = f' data-title="{escape(title)}"' if is_texts and title else ""
            return f'<td class="{kind}">{escape(text)}{small}</td>' if kind else f'<td{named}>{escape(text)}</td>'
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        lines = "\n".join(f"<tr>{''.join(cell(value, title) for value, title in zip(row, header))}</tr>" for row in rows)
        kind = ' class="texts"' if is_texts else ""
        self.parts.append(f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>\n<tbody>{lines}</tbody></table></div>')

    def chart(self, chart, caption):
        self.charts += 1
        self.parts.append(chart_html(chart.to_dict(), self.charts))
        self.parts.append(f'<p class="caption">{escape(caption)}</p>')

    def panels(self, panels, caption, legend=()):
        """Panels, [(title, chart)], under one legend, [(name, colour)]; those behind the first few are a click away."""
        if legend:
            names = "".join(f'<span><i style="background: {"var(--text)" if colour == "#000000" else escape(colour)}"></i>{escape(name)}</span>' for name, colour in legend)
            self.parts.append(f'<div class="legend">{names}</div>')
        shown = SHOWN_PANELS if len(panels) > 1.5 * SHOWN_PANELS else len(panels)
        for first, some in ((True, panels[:shown]), (False, panels[shown:])):
            if some:
                alone = " alone" if len(panels) == 1 else ""
                drawn = f'<div class="panels{alone}">{"".join(self.panel(title, chart) for title, chart in some)}</div>'
                self.parts.append(drawn if first else f"<details><summary>{len(some)} more panels</summary>{drawn}</details>")
        self.parts.append(f'<p class="caption">{escape(caption)}</p>')

    def panel(self, title, chart):
        self.charts += 1
        heading = f"<h3>{escape(title)}</h3>" if title else ""
        return f"<div>{heading}{chart_html(chart.to_dict(), self.charts)}</div>"

    def contents(self):
        """A table of contents, for pages of several parts."""
        links = "".join(f'<a href="#part{number}">{escape(text)}</a>' for number, text in enumerate(self.headings, start=1))
        return f"<nav>{links}</nav>" if len(self.headings) > 2 else ""

    def html(self):
        return document(self.title, "\n".join([f"<h1>{escape(self.title)}</h1>", self.contents(), *self.parts]))
