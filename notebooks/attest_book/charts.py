"""One look for all pictures, and the kinds of pictures that reports and notebooks share."""

import math
import re

import altair
import pandas
import vl_convert

# Okabe and Ito's colours, which colour-blind readers can tell apart, without their yellow, which is too light for lines.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f"]
WIDTH, HEIGHT = 420, 280
VIEWS = {"mark", "layer", "hconcat", "vconcat", "concat", "spec"}  # what has a title of its own in Vega-Lite
VEGA_LITE = "application/vnd.vegalite.v6+json"
FONT = "DejaVu Sans, Verdana, sans-serif"


@altair.theme.register("attest", enable=True)
def theme():
    text = {"labelFont": FONT, "titleFont": FONT, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    return altair.theme.ThemeConfig({"config": {
        "background": "white", "font": FONT,
        "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": HEIGHT},
        "axis": {**text, "gridColor": "#e6e6e6", "domainColor": "#888888", "tickColor": "#888888", "labelLimit": 420},
        "legend": {**text, "labelLimit": 320, "symbolStrokeWidth": 2, "symbolOpacity": 1}, "header": {**text, "labelFontSize": 12},
        "title": {"font": FONT, "fontSize": 13, "fontWeight": "normal", "anchor": "start"},
        "range": {"category": COLOURS, "heatmap": {"scheme": "viridis"}},
        "line": {"strokeWidth": 2}, "point": {"filled": True, "size": 60}}})


def draw(spec, **_):
    """A chart in a notebook: a picture that every viewer shows without a network, and the specification, of which our HTML
    files make pictures with tooltips."""
    spec = finite(spec)
    return {"image/svg+xml": vl_convert.vegalite_to_svg(spec), VEGA_LITE: spec}


def only_specifications():
    """From now on a chart in a notebook is its specification alone: for runs whose pictures are made afterwards."""
    altair.renderers.register("specification", lambda spec, **_: {VEGA_LITE: finite(spec)})
    altair.renderers.enable("specification")


def parts_of(spec):
    """All objects inside a specification, but for its data."""
    if isinstance(spec, dict):
        yield spec
        spec = [value for key, value in spec.items() if key not in ("data", "datasets", "config")]
    for part in spec:
        if isinstance(part, (dict, list)):
            yield from parts_of(part)


def words_of(spec):
    """A picture in words, for who cannot see it: its titles, what stands along its axes, what its colours say."""
    parts = list(parts_of(spec))

    def names(channel):
        encoded = [part["encoding"][channel] for part in parts if channel in part.get("encoding", {})]
        titled = [item["title"] for item in encoded if (item.get("title") or "").strip()]
        return titled or [item["field"].replace("\\", "") for item in encoded if "field" in item]

    titles = [title if isinstance(title, str) else title["text"] for part in parts if VIEWS & set(part) and (title := part.get("title"))]
    said = [("", titles), ("Across: ", names("x")), ("up: ", names("y")), ("colours: ", names("color"))]
    return "; ".join(start + ", ".join(map(str, dict.fromkeys(found))) for start, found in said if found)


def finite(spec):
    """The specification with null for NaN and infinities, which JSON has not; Altair leaves them in columns of mixed types."""
    if isinstance(spec, dict):
        return {key: finite(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [finite(value) for value in spec]
    return None if isinstance(spec, float) and not math.isfinite(spec) else spec


altair.renderers.register("attest", draw)
altair.renderers.enable("attest")


def title_of(name, units=None):
    """`time` in ms is "time, ms", `plan.query_tile` "query tile"; units that say nothing are left out."""
    unit = (units or {}).get(name, "")
    beginning, _, rest = name.partition(".")
    shown = (rest if beginning in ("plan", "problem", "inputs", "layout") else name).replace("_", " ").replace(".", " ")
    return f"{shown}, {unit}" if unit not in ("", "1", "value") else shown


def escaped(name):
    """A column's name as Vega-Lite reads it: it takes dots for members of an object."""
    return name.replace(".", "\\.").replace("[", "\\[").replace("]", "\\]")


def field(name, kind):
    """An encoding's field of kind Q (a number) or N (a name)."""
    return f"{escaped(name)}:{kind}"


def tip(name):
    return altair.Tooltip(escaped(name), title=name)


def number_text(value):
    """Four digits of a number, a text as it is."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    return f"{value:.0f}" if abs(value) < 1e6 and value == round(value) else f"{value:.4g}"


def small_text(value, digits=3):
    """A number as a table of errors shows it: 4.32e-4, 0.0432, 43.2."""
    if not math.isfinite(value) or value == 0 or abs(value) >= 1e-2:
        return f"{value:.{digits}g}"
    figures, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{figures}e{int(exponent)}"


def heat_map(frame, x, y, value, title=None, value_title=None, pattern=".3~g", is_better=None, scale="linear"):
    """A cell for each pair of x and y, its value written into it. `is_better`: "low" or "high" frames the best cell."""
    # A domain, as layers would each sort on their own.
    at_x = altair.X(field(x, "N"), scale=altair.Scale(domain=sorted_by_number(frame[x])), title=title_of(x), axis=altair.Axis(labelAngle=0))
    at_y = altair.Y(field(y, "N"), scale=altair.Scale(domain=sorted_by_number(frame[y])), title=title_of(y))
    ends = float(frame[value].min()), float(frame[value].max())
    middle = float(math.sqrt(ends[0] * ends[1]) if scale == "log" else (ends[0] + ends[1]) / 2)
    base = altair.Chart(frame).encode(x=at_x, y=at_y)
    cells = base.mark_rect(stroke="white", strokeWidth=1).encode(
        color=altair.Color(field(value, "Q"), title=value_title or title_of(value), legend=altair.Legend(format=".3~g", values=[ends[0], middle, ends[1]]),
                            scale=altair.Scale(scheme="viridis", type=scale)),
        tooltip=[tip(name) for name in (x, y, value)])
    texts = base.mark_text(fontSize=11).encode(
        text=altair.Text(field(value, "Q"), format=pattern),
        color=altair.condition(altair.datum[value] > middle, altair.value("black"), altair.value("white")))
    layers = cells + texts
    if is_better and frame[value].notna().any():
        best = frame.loc[[frame[value].idxmin() if is_better == "low" else frame[value].idxmax()]]
        layers += altair.Chart(best).mark_rect(fillOpacity=0, stroke=COLOURS[1], strokeWidth=3).encode(x=at_x, y=at_y)
    return layers.properties(title=title or "", width=max(60, 62 * frame[x].nunique()), height=max(40, 34 * frame[y].nunique()))


def lines(frame, x, value, color, low=None, high=None, title=None, x_log=True, y_log=False, units=None, colour_title=None,
          zero=False, x_title=None, y_title=None, is_numeric=True, colours=None, domain=None):
    """A line with its points for each colour; a band from `low` to `high` where both are given. x is a number or a text. `colours`: of
    the names, where a page says them beside the picture. `domain`: the ends of the vertical scale, for panels that share one."""
    x_name = x_title or title_of(x, units)
    if is_numeric:
        scale = altair.Scale(type="log", base=2) if x_log else altair.Scale(zero=False)
        ticks = sorted(frame[x].dropna().unique().tolist())
        x_axis = altair.X(field(x, "Q"), title=x_name, scale=scale, axis=altair.Axis(values=ticks, format=".3~s" if max(ticks) >= 1e6 else ",d" if max(ticks) >= 1 else "~g", labelOverlap="greedy"))
    else:
        x_axis = altair.X(field(x, "N"), title=x_name, scale=altair.Scale(domain=sorted_by_number(frame[x])), axis=altair.Axis(labelAngle=0))
    ends = {"domain": domain} if domain else {}
    y_scale = altair.Scale(type="log", **ends) if y_log else altair.Scale(zero=zero, **ends)
    y_axis = altair.Axis(labelOverlap="greedy", format="~g") if y_log else altair.Axis()
    y_name = y_title or title_of(value, units)
    colour = coloured(color, colours, sorted_by_number(frame[color]), title_of(color) if colour_title is None else colour_title)
    base = altair.Chart(frame).encode(x=x_axis, color=colour)
    layers = []
    if low and high:
        layers.append(base.mark_area(opacity=0.25).encode(y=altair.Y(field(low, "Q"), scale=y_scale, axis=y_axis, title=y_name), y2=altair.Y2(escaped(high))))
    layers.append(base.mark_line(point={"filled": True, "size": 35}).encode(
        y=altair.Y(field(value, "Q"), scale=y_scale, axis=y_axis, title=y_name),
        tooltip=[tip(name) for name in (color, x, value, low, high) if name]))
    if is_ratio(value):
        layers.append(altair.Chart(pandas.DataFrame({"one": [1.0]})).mark_rule(strokeDash=[4, 3], color="#888888").encode(y="one:Q"))
    return altair.layer(*layers).properties(title=title or "", width=560, height=300)


def coloured(name, colours, names, title):
    """The encoding of a colour: with a legend, or by `colours`, which the page says."""
    if colours:
        return altair.Color(field(name, "N"), legend=None, scale=altair.Scale(domain=list(colours), range=list(colours.values())))
    return altair.Color(field(name, "N"), title=title or None, scale=altair.Scale(domain=names, range=COLOURS))


def bars(frame, value, name, color=None, title=None, units=None, log=False, row_height=20, value_title=None, text=".3~g",
         start=None):
    """Horizontal bars in the table's order, each with its number. `start`: where bars begin on a logarithmic axis."""
    names = list(dict.fromkeys(frame[name]))
    longest = frame[value].max()  # room for the number behind the longest bar
    scale = altair.Scale(type="log", domain=[start, longest * 2], nice=False) if log else altair.Scale(domainMax=longest * 1.15)
    base = altair.Chart(frame).encode(y=altair.Y(field(name, "N"), sort=names, title=None))
    encoding = {"x": altair.X(field(value, "Q"), scale=scale, title=value_title or title_of(value, units))}
    if log:
        encoding["x2"] = altair.datum(start)
    if color:
        encoding["color"] = altair.Color(field(color, "N"), title=title_of(color), scale=altair.Scale(range=COLOURS),
                                         sort=list(dict.fromkeys(frame[color])))
    drawn = base.mark_bar(color=COLOURS[0], height=row_height - 6).encode(tooltip=[tip(name), tip(value)], **encoding)
    labels = base.mark_text(align="left", dx=4, fontSize=11).encode(x=encoding["x"], text=altair.Text(field(value, "Q"), format=text))
    around = base.mark_text(align="left", dx=4, fontSize=11, stroke="white", strokeWidth=4).encode(x=encoding["x"], text=altair.Text(field(value, "Q"), format=text))
    return (drawn + around + labels).properties(title=title or "", height=row_height * len(names))


def is_ratio(name):
    """A value of 1 says that two are alike."""
    return name.startswith("speed_over_")


def at_one():
    """A dashed line where two are alike."""
    return altair.Chart(pandas.DataFrame({"one": [1.0]})).mark_rule(strokeDash=[4, 3], color="#888888").encode(x="one:Q")


def with_finite_ends(frame, value, low, high):
    """Medians of few rounds have no interval: theirs is a point."""
    ends = {end: frame[end].where(frame[end].map(math.isfinite) & (frame[low] > 0), frame[value]) for end in (low, high)}
    return frame.assign(**ends)


def grouped_bars(frame, value, category, color=None, title=None, units=None, low=None, high=None, colours=None, domain=None, log=False):
    """A group of bars for each category, one for each colour, each with its number, its interval where `low` and `high` are given, and a line at 1
    where the value is a ratio. `log`: dots, as a bar on a logarithmic scale begins nowhere."""
    frame = frame.assign(**{name: frame[name].map(number_text) for name in (category, color) if name})
    if low and high:
        frame = with_finite_ends(frame, value, low, high)
    is_large = frame[value].max() >= 1e6
    base = altair.Chart(frame[list(dict.fromkeys(name for name in (category, color, value, low, high) if name))]).encode(
        y=altair.Y(field(category, "N"), scale=altair.Scale(domain=sorted_by_number(frame[category])), title=None if category == "contender" else title_of(category)))
    if color:
        base = base.encode(yOffset=altair.YOffset(field(color, "N"), scale=altair.Scale(domain=sorted_by_number(frame[color]))))
    scale = {"type": "log"} if log else {}
    scale |= {"domain": domain} if domain else {"domainMax": frame[high or value].max() * 1.2}
    along = altair.X(field(value, "Q"), scale=altair.Scale(**scale), title=title_of(value, units),
                     axis=altair.Axis(labelOverlap="greedy", **({"format": "~s"} if is_large else {"format": "~g"} if log else {})))
    mark = base.mark_point(color=COLOURS[0]) if log else base.mark_bar(color=COLOURS[0])
    drawn = mark.encode(x=along, tooltip=[tip(name) for name in (category, color, value, low, high) if name])
    if color:
        drawn = drawn.encode(color=coloured(color, colours, sorted_by_number(frame[color]), title_of(color)))
    layers = [drawn]
    if low and high:
        layers.append(base.mark_rule(strokeWidth=1.5, color="#444444").encode(x=altair.X(field(low, "Q")), x2=altair.X2(escaped(high))))
    layers.append(base.mark_text(align="left", dx=6 if log else 4, fontSize=11).encode(x=altair.X(field(high or value, "Q")),
                                                                                       text=altair.Text(field(value, "Q"), format=".4~s" if is_large else ".4~g")))
    if is_ratio(value):
        layers.append(at_one())
    rows = len(frame) if not color else frame[category].nunique() * frame[color].nunique()
    return altair.layer(*layers).properties(title=title or "", width=WIDTH, height=max(40, 24 * rows))


def sorted_by_number(values):
    """Distinct values, numbers inside texts by their size, so that an axis does not read 128, 16, 32; words before numbers."""
    def key(value):
        if not isinstance(value, str):
            return [(1, value, "")]
        return [(1, float(part), "") if part[:1].isdigit() else (0, 0.0, part) for part in re.split(r"(\d+(?:\.\d+)?)", value) if part]
    return sorted(set(values), key=key)
