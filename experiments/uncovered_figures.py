"""Lists figures with a unit, or a decimal point, in the prose of the documents that nothing holds against a record.

    python3 experiments/uncovered_figures.py [DOCUMENT...]

Held are tables between marks and the places of sentences (documents.py). Code is left out. documents.py --check fails where a document of
HELD_WHOLE has a figure that is not held; what is no measurement stands in
NOT_MEASURED.
"""

import re
import sys

UNITS = r"%|[TG]?FLOP(?:/s)?\b|[mun]?s\b|min\b|[GM]i?B\b|[GT]B/s|[GM]Hz|W\b|cases|bugs|clk|alarms?\b"
FIGURE = re.compile(rf"(?<![\w.^/@-])(?:\d[\d,]*\.\d+|\d[\d,]*(?=x\b| (?:{UNITS})))")
CODE = re.compile(r"^```.*?^```$|^    \S[^\n]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
HELD_BY_OTHER_TESTS = {"gpu/microbench/README.md": re.compile(r"^\| \w+ \| .*$", re.MULTILINE)}  # rows: benchmark_test.cpp
HELD_WHOLE = ("README.md", "experiments/results/README.md")
NOT_MEASURED = {"README.md": ("whose glibc is 2.36", "CMake 3.25"), "experiments/results/README.md": (
    "shapes are at 0.95x or more",  # a bar
    "on random values 700 W",  # the card's limit
    "cuDNN 9.19",  # a version
    "% with 95 % confidence",
    "one (labelled: its error is 2^-11",
)}


def spans_held(text, name, mark, sentences, pattern_of):
    """Where the text is made of records: tables, and the places of sentences."""
    spans = [found.span() for found in mark.finditer(text)]
    for document, sentence, _ in sentences:
        found = pattern_of(sentence).search(text) if document == name else None
        if found:
            spans += [found.span(place) for place in range(2, found.re.groups + 1, 2)]
    return spans


def uncovered(text, name, mark, sentences, pattern_of):
    """[(line, the figure and what stands around it)] of figures that nothing holds."""
    spans = spans_held(text, name, mark, sentences, pattern_of) + [found.span() for found in CODE.finditer(text)]
    if name in HELD_BY_OTHER_TESTS:
        spans += [found.span() for found in HELD_BY_OTHER_TESTS[name].finditer(text)]
    for words in NOT_MEASURED.get(name, ()):
        spans += [found.span() for found in re.finditer(r"\s+".join(map(re.escape, words.split())), text)]
    return [(text.count("\n", 0, found.start()) + 1, " ".join(text[max(0, found.start() - 40):found.end() + 20].split()))
            for found in FIGURE.finditer(text) if not any(first <= found.start() < end for first, end in spans)]


def main():
    import documents
    for path in documents.documents():
        name = str(path.relative_to(documents.TREE))
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        found = uncovered(path.read_text(), name, documents.MARK, documents.ALL_FIGURES, documents.pattern_of)
        for line, words in found:
            print(f"{name}:{line}: {words}")


if __name__ == "__main__":
    main()
