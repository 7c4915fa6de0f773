"""Holds the figures of the documents against the records that they come from.

    python3 experiments/documents.py            rewrites what differs
    python3 experiments/documents.py --check    names what differs, and fails

Three kinds: tables between marks in a document (document_tables.py, document_kernel_tables.py), figures in its sentences (document_figures.py), and
reports that are made of records from the first line to the last (REPORTS below). A mark is a comment of Markdown:

    <!-- table: NAME -->
    ...
    <!-- end of table -->
"""

import argparse
import difflib
import pathlib
import re
import sys

import counters_check
import errors_report
import forward_grid_report
import fp32_errors_report
import hardware_check
import ladder_report
import speed_error_report
import uncovered_figures
from document_campaigns import CAMPAIGN_FIGURES, CAMPAIGN_TABLES
from document_error_figures import ERROR_FIGURES
from document_figures import FIGURES
from document_hopper_figures import HOPPER_FIGURES
from document_kernel_tables import KERNEL_TABLES
from document_peer_tables import PEER_TABLES
from document_prediction_figures import PREDICTION_FIGURES
from document_tables import RESULTS, TABLES

ALL_TABLES = TABLES | KERNEL_TABLES | CAMPAIGN_TABLES | PEER_TABLES
ALL_FIGURES = FIGURES + ERROR_FIGURES + CAMPAIGN_FIGURES + HOPPER_FIGURES + PREDICTION_FIGURES
TREE = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("*.md", "*/README.md", "*/*/README.md", "*/*/*/README.md")
MARK = re.compile(r"^<!-- table: (\S+) -->\n(.*?)<!-- end of table -->$", re.DOTALL | re.MULTILINE)
BEGIN = re.compile(r"^<!-- table:", re.MULTILINE)
PLACE = re.compile(r"\{[^{}]*\}")

SPEEDS = [RESULTS / f"h200/{name}.jsonl" for name in ("fp32_speed", "tf32_speed", "forward_grid", "forward_grid_fa3_wgmma")]
ERRORS = [RESULTS / f"{name}.jsonl" for name in ("h200/errors", "h200/errors_fp32", "h200/errors_tf32", "h200/errors_torch",
                                                 "h200/errors_precision", "xeon-2core/errors_timed")]
REPORTS = {
    "h200/ladder.md": lambda: ladder_report.report(RESULTS / "h200/ladder.jsonl", RESULTS / "h200/counters.jsonl"),
    "h200/forward_grid.md": lambda: forward_grid_report.report(RESULTS / "h200/forward_grid.jsonl"),
    "h200/forward_grid_fa3_wgmma.md": lambda: forward_grid_report.report(RESULTS / "h200/forward_grid_fa3_wgmma.jsonl"),
    "h200/speed_against_error.md": lambda: speed_error_report.report(SPEEDS, ERRORS),
    "h200/errors.md": lambda: errors_report.report([RESULTS / "h200/errors.jsonl"]),
    "h200/errors_torch.md": lambda: errors_report.report([RESULTS / "h200/errors_torch.jsonl"]),
    "h200/errors_fp32.md": lambda: fp32_errors_report.report([RESULTS / "h200/errors_fp32.jsonl"]),
    "xeon-2core/errors.md": lambda: errors_report.report([RESULTS / "xeon-2core/errors.jsonl"]),
    "h200/counters_check.md": lambda: counters_check.report(
        [RESULTS / "h200/counters_fa3_wgmma.jsonl", RESULTS / "h200/counters_check.jsonl"]),
    "h200/hardware_check.md": lambda: hardware_check.report(RESULTS / "h200/counters.jsonl", RESULTS / "h200/hardware_check.jsonl"),
}


class Wrong(Exception):
    """What is wrong with a document, in one sentence."""


def with_tables(text, where, tables):
    """`text` with the content of every mark made again."""
    if len(BEGIN.findall(text)) != len(MARK.findall(text)):
        raise Wrong(f"{where}: a table is begun and not ended (<!-- end of table -->)")

    def made(match):
        if match[1] not in tables:
            raise Wrong(f"{where}: nobody makes a table named {match[1]} (document_tables.py: {', '.join(tables)})")
        return f"<!-- table: {match[1]} -->\n{tables[match[1]]()}\n<!-- end of table -->"

    return MARK.sub(made, text)


def pattern_of(sentence):
    """Matches the sentence however its lines are broken, with anything short in its places."""
    literal = [r"\s+".join(re.escape(word) for word in re.split(r"\s+", part)) for part in PLACE.split(sentence)]
    return re.compile("([^|\n]{1,24}?)".join(f"({part})" for part in literal))


def with_figure(text, where, sentence, figures):
    """`text` with the figures of its one sentence like `sentence`, whose {places} are formats, as `figures` has them."""
    if sentence.startswith("{") or sentence.endswith("}"):
        raise Wrong(f"{where}: '{sentence}' must begin and end with words: they say where a figure ends (document_figures.py)")
    found = list(pattern_of(sentence).finditer(text))
    if len(found) != 1:
        raise Wrong(f"{where}: a sentence like '{sentence}' is wanted once, is there {len(found)} times (document_figures.py)")
    values = [place.format(figure) for place, figure in zip(PLACE.findall(sentence), figures, strict=True)]
    parts = list(found[0].groups())
    parts[1::2] = values
    return text[:found[0].start()] + "".join(parts) + text[found[0].end():]


def documents():
    return sorted({path for pattern in DOCUMENTS for path in TREE.glob(pattern) if "build" not in path.relative_to(TREE).parts})


def remade():
    """{path: text as the records have it} of every document with a table or a figure, and of every report."""
    texts = {}
    for path in documents():
        text = path.read_text()
        if BEGIN.search(text):
            texts[path] = with_tables(text, path.relative_to(TREE), ALL_TABLES)
    for name, sentence, figures in ALL_FIGURES:
        path = TREE / name
        texts[path] = with_figure(texts.get(path) or path.read_text(), name, sentence, figures())
    for name, report in REPORTS.items():
        texts[RESULTS / name] = report()
    return texts


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="write nothing; fail where a document differs from its records")
    options = arguments.parse_args()
    try:
        texts = remade()
    except Wrong as wrong:
        sys.exit(f"documents: {wrong}")
    free = [f"{name}:{line}: {words}" for name in uncovered_figures.HELD_WHOLE
            for line, words in uncovered_figures.uncovered((TREE / name).read_text(), name, MARK, ALL_FIGURES, pattern_of)]
    if options.check and free:
        sys.exit("documents: no record holds (document_*figures.py, or NOT_MEASURED of uncovered_figures.py)\n" + "\n".join(free))
    differ = {path: text for path, text in texts.items() if not path.is_file() or path.read_text() != text}
    for path, text in differ.items():
        name = str(path.relative_to(TREE))
        if options.check:
            there = path.read_text() if path.is_file() else ""
            print("\n".join(difflib.unified_diff(there.splitlines(), text.splitlines(), f"{name}, as it is", f"{name}, of its records",
                                                 lineterm="", n=0)))
        else:
            path.write_text(text)
            print(f"wrote {name}")
    if options.check and differ:
        sys.exit(f"documents: {len(differ)} differ from their records; python3 experiments/documents.py writes them")
    print(f"{len(texts)} documents and reports, {len(ALL_FIGURES)} sentences: as their records have it" if not differ else "")


if __name__ == "__main__":
    main()
