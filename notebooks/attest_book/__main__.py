"""The command line behind `./attest report` and `./attest notebooks`."""

import argparse
import os
import pathlib
import sys

from attest_book.error import BadInput

ROOT = pathlib.Path(__file__).resolve().parents[2]


def notebooks(arguments):
    from attest_book import notebooks
    try:
        for path in notebooks.make_all(arguments.names, arguments.out):
            print(path, flush=True)
    except notebooks.NotebookFailed as error:
        print(f"attest: {error}", file=sys.stderr)
        return 1
    return 0


def report(arguments):
    from attest_book import compare, study, study_report
    if len(arguments.folders) > 2:
        raise BadInput(f"report takes one results folder, or two to compare, not {len(arguments.folders)}")
    studies = [study.read(folder) for folder in arguments.folders]
    which, name = (study_report, studies[0].name) if len(studies) == 1 else (compare, "comparison")
    made = which.page(*studies).html()
    target = arguments.out or pathlib.Path("out/reports") / f"{name.replace('/', '_')}.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(made, encoding="utf-8")
    print(which.terminal(*studies))
    print(f"\n{target}")
    return 0


def parser():
    top = argparse.ArgumentParser(prog="attest")
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("notebooks", help="run notebooks and write each as one HTML file")
    command.add_argument("names", nargs="*", metavar="NAME", help="for example ladder; all when none is named")
    command.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/notebooks"), help="folder, out/notebooks if not given")
    command.set_defaults(run=notebooks)
    command = commands.add_parser("report", help="a page about the results of a study, or about what changed between two")
    command.add_argument("folders", nargs="+", metavar="DIR", type=pathlib.Path, help="results folder of attest study run")
    command.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the page, out/reports/NAME.html if not given")
    command.set_defaults(run=report)
    return top


def main():
    arguments = parser().parse_args()
    try:
        return arguments.run(arguments)
    except BadInput as error:
        print(f"attest: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the table has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a folder that cannot be written
        print(f"attest: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
