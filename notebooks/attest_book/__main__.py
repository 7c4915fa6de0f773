"""The command line behind `./attest report` and `./attest notebooks`."""

import argparse
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


def parser():
    top = argparse.ArgumentParser(prog="attest")
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("notebooks", help="run notebooks and write each as one HTML file")
    command.add_argument("names", nargs="*", metavar="NAME", help="for example ladder; all when none is named")
    command.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/notebooks"), help="folder, out/notebooks if not given")
    command.set_defaults(run=notebooks)
    return top


def main():
    arguments = parser().parse_args()
    try:
        return arguments.run(arguments)
    except BadInput as error:
        print(f"attest: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that cannot be written
        print(f"attest: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
