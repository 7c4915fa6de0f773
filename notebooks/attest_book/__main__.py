"""The command line behind `./attest report` and `./attest notebooks`."""

import argparse
import os
import pathlib
import re
import sys

from attest_book.records import BadInput

ROOT = pathlib.Path(__file__).resolve().parents[2]


def notebooks(arguments):
    from attest_book import notebooks
    try:
        for path in notebooks.make_all(arguments.names, arguments.out, notebooks.FOLDER if arguments.write else None):
            print(path, flush=True)
    except notebooks.NotebookFailed as error:
        print(f"attest: {error}", file=sys.stderr)
        return 1
    return 0


def file_name(title):
    return re.sub(r"\W+", "_", title).strip("_")


def report_errors(arguments):
    from attest_book import error_report, measured_errors
    program = os.environ.get("ATTEST_BINARY")
    if not program:
        raise BadInput("report --errors runs the program that ./attest builds, and ATTEST_BINARY does not name it; allowed: ./attest report --errors")
    target = arguments.out or pathlib.Path("out/reports") / f"errors_{file_name(' '.join(arguments.errors))}.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    measured = measured_errors.measure(program, arguments.errors, target.with_suffix(""), arguments.problem or measured_errors.PROBLEM, arguments.plugin,
                                       arguments.executor or "auto")
    target.write_text(error_report.page(*measured, f"Errors of {', '.join(arguments.errors)}").html(), encoding="utf-8")
    print(error_report.terminal(measured[0]))
    print(f"\n{target}, records in {target.with_suffix('')}")
    return 0


def share(text):
    """0.03 of `3%`; nothing of nothing."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,4}(\.\d{1,6})?%", text):
        raise BadInput(f"--fail-if-slower is '{text}'; allowed: a share such as 3%")
    return float(text[:-1]) / 100


def check_report(arguments):
    """Raises BadInput for options that do not go together."""
    limit = share(arguments.fail_if_slower)
    if arguments.errors:
        if arguments.folders:
            raise BadInput(f"report takes a results folder or --errors, not both: {arguments.folders[0]}")
        return
    for option in ("plugin", "problem", "executor"):
        if getattr(arguments, option):
            raise BadInput(f"--{option} belongs to report --errors KERNEL")
    if not arguments.folders:
        raise BadInput("report takes one results folder, two to compare, or --errors KERNEL")
    if len(arguments.folders) > 2:
        raise BadInput(f"report takes one results folder, or two to compare, not {len(arguments.folders)}")
    if limit is not None and len(arguments.folders) != 2:
        raise BadInput("--fail-if-slower compares two results folders: report A B --fail-if-slower 3%")


def report(arguments):
    if arguments.errors:
        return report_errors(arguments)
    from attest_book import compare, study, study_report
    limit = share(arguments.fail_if_slower)
    studies = [study.read(folder) for folder in arguments.folders]
    which, name = (study_report, studies[0].title()) if len(studies) == 1 else (compare, "comparison")
    made = which.page(*studies).html()
    target = arguments.out or pathlib.Path("out/reports") / f"{file_name(name)}.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(made, encoding="utf-8")
    print(which.terminal(*studies))
    print(f"\n{target}")
    if limit is None:
        return 0
    slower = compare.regressions(*studies, limit)
    print(f"{len(slower)} points are slower by more than {arguments.fail_if_slower}" + (f", the worst: {slower[0]}" if slower else ""))
    return 1 if slower else 0


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the program does, instead of a usage that knows two subcommands only."""

    def error(self, message):
        raise BadInput(f"{self.prog.removeprefix('attest ')}: {message} (./{self.prog} --help)")


def parser():
    top = Parser(prog="attest")
    top.add_argument("--parse-only", action="store_true", help=argparse.SUPPRESS)  # of the launcher, before it makes an environment
    commands = top.add_subparsers(dest="command", required=True, metavar="SUBCOMMAND")
    command = commands.add_parser("notebooks", help="run notebooks and write each as one HTML file")
    command.add_argument("names", nargs="*", metavar="NAME", help="for example ladder; all when none is named")
    command.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/notebooks"), help="folder, out/notebooks if not given")
    command.add_argument("--write", action="store_true", help="also store the outputs in notebooks/NAME.ipynb, as they are committed")
    command.set_defaults(run=notebooks, check=lambda _: None, options=command)
    command = commands.add_parser("report", help="a page about the results of a study, or about what changed between two")
    command.add_argument("folders", nargs="*", metavar="DIR", type=pathlib.Path, help="results folder of attest study run")
    command.add_argument("--fail-if-slower", metavar="SHARE", help="with two folders: exit code 1 when a point is slower in the second by more than that, such as 3%%, and its interval leaves out 1")
    command.add_argument("--errors", nargs="+", metavar="KERNEL", default=[], help="instead: measure the errors of kernels, and make a page about them")
    command.add_argument("--plugin", action="append", metavar="FILE", type=pathlib.Path, default=[], help="with --errors: a shared object with your kernels")
    command.add_argument("--problem", help="with --errors: 'h2 n512 d64' if not given; an element type in it leaves out the others")
    command.add_argument("--executor", help="with --errors: auto, gpu, simt or cpu")
    command.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the page, a file of out/reports named after the study and the machine if not given")
    command.set_defaults(run=report, check=check_report, options=command)
    return top


def parsed():
    """The arguments. Raises BadInput."""
    arguments, unknown = parser().parse_known_args()
    if unknown:
        allowed = ", ".join(option for option in arguments.options._option_string_actions if option.startswith("--"))
        raise BadInput(f"{arguments.command}: '{unknown[0]}' is unknown; allowed: {allowed}")
    arguments.check(arguments)
    return arguments


def main():
    try:
        arguments = parsed()
        return 0 if arguments.parse_only else arguments.run(arguments)
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
