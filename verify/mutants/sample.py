"""Which planted bugs a test run judges: those whose verdict may have changed.

    python3 verify/mutants/sample.py record --source TREE --fingerprints FILE --kills FILE

`killed.tsv` holds, for each mutant, which law killed it in which of its cases, and fingerprints of what decides that: its section, its kernel, and the judge
(cases, laws, inputs). cut.py chooses by it, for each .mutants file:

  - mutants that a test names;
  - mutants of which there is no record, or whose section or kernel is not that of the record, at most eight: changed sections first, then in an order that
    is another one for each kernel's text, so that edit after edit judges them all;
  - one mutant whatever happens: that which died first.

A changed judge makes the whole record stale; then these are a sample, and `attest mutants --kills` judges all and calls `record`.
"""

import argparse
import dataclasses
import hashlib
import pathlib
import re
import sys

MOST_STALE = 8
JUDGE = ("verify/cases", "verify/judge", "verify/laws", "core/inputs")
HEADER = "mutant\tsection\tkernel\tjudge\tlaw\tcase"


def fingerprint(code):
    """Of code without its comments and spaces."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|^#line [^\n]*", "", code, flags=re.DOTALL | re.MULTILINE)
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:10]


class Fingerprints:
    """Of each mutant (section, kernel), and of the judge."""

    def __init__(self, source):
        self.of = {}
        self.read_files = sorted(path for folder in JUDGE for path in (pathlib.Path(source) / folder).glob("*.[ch]pp") if not path.stem.endswith("_test"))
        self.judge = fingerprint("".join(path.read_text() for path in self.read_files))

    def add(self, name, section, kernel):
        self.of[name] = (fingerprint(section), fingerprint(kernel))

    def text(self):
        return "".join(f"{name}\t{section}\t{kernel}\t{self.judge}\n" for name, (section, kernel) in sorted(self.of.items()))


@dataclasses.dataclass
class Kill:
    section: str
    kernel: str
    judge: str
    law: str
    case: int


def record_of(source):
    return pathlib.Path(source) / "verify/mutants/killed.tsv"


def read_record(source):
    """{mutant: Kill}; empty without a file."""
    path = record_of(source)
    lines = path.read_text().splitlines()[1:] if path.is_file() else []
    rows = [line.split("\t") for line in lines]
    return {name: Kill(*facts, int(case)) for name, *facts, case in rows}


class Choice:
    """The sample."""

    def __init__(self):
        self.all = self.chosen = 0
        self.left, self.older_judge = [], 0

    def of(self, names, fingerprints, record, named):
        """Those of one .mutants file, in their order."""
        def suspicion(name):  # the smaller, the more suspect
            section, kernel = fingerprints.of[name]
            known = record.get(name)
            return known is not None, known is not None and known.section == section, fingerprint(name + kernel)

        stale = sorted((name for name in names if name not in record or (record[name].section, record[name].kernel) != fingerprints.of[name]), key=suspicion)
        first = min(names, key=lambda name: (record[name].case if name in record else 0, name))
        wanted = {first, *stale[:MOST_STALE], *(name for name in names if name in named)}
        self.all += len(names)
        self.chosen += len(wanted)
        self.left += [name for name in stale[MOST_STALE:] if name not in wanted]
        self.older_judge += sum(name in record and record[name].judge != fingerprints.judge for name in names)
        return [name for name in names if name in wanted]

    def report(self):
        """A line for people; after it the mutants that should have been judged and are left out."""
        text = f"{self.chosen} of {self.all} planted bugs are judged"
        if self.left:
            text += f"; {len(self.left)} whose kernel changed are left out"
        if self.older_judge:
            text += f"; the record of {self.older_judge} is by an older judge"
        return "\n".join((text + (": ./attest mutants --kills judges all" if self.left or self.older_judge else ""), *sorted(self.left), ""))


def add_to_record(source, fingerprints, kills):
    """Puts a run's kills, lines `mutant law case`, into the record; mutants that are gone leave it. Returns how many were put in."""
    current = {name: facts for name, *facts in (line.split("\t") for line in fingerprints.splitlines())}
    record = {name: kill for name, kill in read_record(source).items() if name in current}
    rows = [line.split("\t") for line in kills.splitlines()]
    record |= {name: Kill(*current[name], law, int(case)) for name, law, case in rows}
    lines = ["\t".join((name, *map(str, dataclasses.astuple(kill)))) for name, kill in sorted(record.items())]
    record_of(source).write_text("\n".join((HEADER, *lines)) + "\n")
    return len(rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("action", choices=["record"])
    arguments.add_argument("--source", required=True, type=pathlib.Path)
    arguments.add_argument("--fingerprints", required=True, type=pathlib.Path, help="what cut.py made when the program was built")
    arguments.add_argument("--kills", required=True, type=pathlib.Path, help="what attest mutants wrote")
    options = arguments.parse_args()
    try:
        count = add_to_record(options.source, options.fingerprints.read_text(), options.kills.read_text())
    except (OSError, KeyError) as wrong:
        sys.exit(f"verify/mutants: {wrong}")
    print(f"{count} kills recorded in {record_of(options.source)}")


if __name__ == "__main__":
    main()
