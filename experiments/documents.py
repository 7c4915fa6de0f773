"""Makes the tables of the documents from committed records.

    python3 experiments/documents.py            writes tables and reports that differ from their records
    python3 experiments/documents.py --check    names what differs, and fails
    ... --program build/release/bin/attest      makes counts of what the program has, too; without it they stay as they are

A table stands between two comments of Markdown, and is made by the function of that name in document_tables.py:

    <!-- table: NAME -->
    ...
    <!-- end of table -->

A count stands in a sentence between <!-- count: NAME --> and <!-- end of count -->, and is made by document_counts.py.

MADE_ELSEWHERE names the tables that are measured anew and rest on no record. Reports are records from the first line to the last, and are made whole. Nothing holds a sentence: prose points at a table, or names the record that
it tells of.
"""

import argparse
import difflib
import pathlib
import re
import sys

import hardware_check
from document_counts import Counts
from document_tables import RESULTS, TABLES  # finds attest_book too

from attest_book import error_tables

TREE = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("*.md", "*/README.md", "*/*/README.md", "*/*/*/README.md", "experiments/results/*.md")
MARK = re.compile(r"^<!-- table: (\S+) -->\n(.*?)<!-- end of table -->$", re.DOTALL | re.MULTILINE)
BEGIN = re.compile(r"^<!-- table:", re.MULTILINE)
COUNT = re.compile(r"(?<!`)<!-- count: (\w+)(?:\((\w+)\))? -->([^<]*)<!-- end of count -->")
BEGIN_OF_COUNT = re.compile(r"(?<!`)<!-- count:")  # behind a ` one is only spoken of
MADE_ELSEWHERE = ("growth",)  # by tests/growth.py
REPORTS = {
    "h200/errors.md": lambda: error_tables.report([RESULTS / "h200/errors.jsonl"]),
    "h200/errors_torch.md": lambda: error_tables.report([RESULTS / "h200/errors_torch.jsonl"]),
    "h200/errors_fp32.md": lambda: error_tables.fp32_report([RESULTS / "h200/errors_fp32.jsonl"]),
    "xeon-2core/errors.md": lambda: error_tables.report([RESULTS / "xeon-2core/errors.jsonl"]),
    "xeon-2core/errors_audio.md": lambda: error_tables.report([RESULTS / "xeon-2core/errors_audio.jsonl"]),
    "h200/hardware_check.md": lambda: hardware_check.report(RESULTS / "h200/counters.jsonl", RESULTS / "h200/hardware_check.jsonl"),
}


class Wrong(Exception):
    """What is wrong with a document, in one sentence."""


def with_tables(text, where, tables):
    """`text` with the content of every mark made again."""
    if len(BEGIN.findall(text)) != len(MARK.findall(text)):
        raise Wrong(f"{where}: a table is begun and not ended (<!-- end of table -->)")

    def made(match):
        if match[1] in MADE_ELSEWHERE:
            return match[0]
        if match[1] not in tables:
            raise Wrong(f"{where}: nobody makes a table named {match[1]} (document_tables.py: {', '.join(sorted(tables))})")
        return f"<!-- table: {match[1]} -->\n{tables[match[1]]()}\n<!-- end of table -->"

    return MARK.sub(made, text)


def with_counts(text, where, counts):
    """`text` with every count made again, but for those that only a program knows where there is none."""
    if len(BEGIN_OF_COUNT.findall(text)) != len(COUNT.findall(text)):
        raise Wrong(f"{where}: a count is begun and not ended (<!-- end of count -->)")

    def made(match):
        make = getattr(counts, match[1], None)
        if make is None:
            raise Wrong(f"{where}: nobody makes a count named {match[1]} (document_counts.py)")
        count = make(*([match[2]] if match[2] else []))
        if count is None:
            return match[0]
        return f"{match[0][:match.start(3) - match.start()]}{count:,}<!-- end of count -->"

    return COUNT.sub(made, text)


def documents():
    return sorted({path for pattern in DOCUMENTS for path in TREE.glob(pattern) if "build" not in path.relative_to(TREE).parts})


def remade(counts):
    """{path: text as the records and the program have it} of every document with a table or a count, and of every report."""
    texts = {}
    for path in documents():
        text, where = path.read_text(), path.relative_to(TREE)
        if BEGIN.search(text) or BEGIN_OF_COUNT.search(text):
            texts[path] = with_counts(with_tables(text, where, TABLES), where, counts)
    return texts | {RESULTS / name: report() for name, report in REPORTS.items()}


def difference(name, there, made):
    """The lines that differ, and under which mark they stand."""
    lines = difflib.unified_diff(there.splitlines(), made.splitlines(), f"{name}, as it is", f"{name}, of its records", lineterm="", n=0)
    tables = [match[1] for match, other in zip(MARK.finditer(there), MARK.finditer(made)) if match[2] != other[2]]
    tables += [match[1] for match, other in zip(COUNT.finditer(there), COUNT.finditer(made)) if match[3] != other[3]]
    return "\n".join([*lines, f"{name}: {', '.join(tables) or 'the report'} differs from its records; python3 experiments/documents.py writes it"])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="write nothing; fail where a document differs from its records")
    arguments.add_argument("--program", type=pathlib.Path, help="attest: counts of what it has are made, too")
    options = arguments.parse_args()
    try:
        texts = remade(Counts(TREE, options.program))
    except (Wrong, LookupError) as wrong:
        sys.exit(f"documents: {wrong}")
    differ = {path: text for path, text in texts.items() if not path.is_file() or path.read_text() != text}
    for path, text in differ.items():
        name = str(path.relative_to(TREE))
        if options.check:
            print(difference(name, path.read_text() if path.is_file() else "", text))
        else:
            path.write_text(text)
            print(f"wrote {name}")
    if options.check and differ:
        sys.exit(f"documents: {len(differ)} differ from their records")


if __name__ == "__main__":
    main()
