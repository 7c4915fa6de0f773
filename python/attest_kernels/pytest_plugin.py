"""pytest --attest-kernels FILE.py[:FUNCTION]: every function that @attest_kernels.kernel marks there, or the one that is named, is a test. Without other
arguments nothing else is collected."""

import argparse
import pathlib
import re

import pytest


def duration(text):
    if not re.fullmatch(r"\d+(\.\d+)?(s|min|h)", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; allowed: 30s, 5min, 1h")
    return text


def pytest_addoption(parser):
    group = parser.getgroup("attest_kernels", "attention kernels, judged against exact arithmetic")
    group.addoption("--attest-kernels", action="append", default=[], metavar="FILE.py[:FUNCTION]",
                    help="judge the functions of the file that @attest_kernels.kernel marks, or the one that is named; may be repeated")
    group.addoption("--attest-for", type=duration, metavar="TIME", help="for so long each: 30s, 5min, 1h; by default 60 cases")
    group.addoption("--attest-seed", type=int, default=1, metavar="N", help="seed of the cases, by default 1")


def pytest_configure(config):
    if config.getoption("attest_kernels") and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []


@pytest.hookimpl(tryfirst=True)  # so that -k and markers choose among these too
def pytest_collection_modifyitems(session, config, items):
    for text in config.getoption("attest_kernels"):
        file, _, function = text.partition(":")
        path = config.invocation_params.dir / file
        if not path.is_file():
            raise pytest.UsageError(f"--attest-kernels {text}: there is no file {file}; allowed: FILE.py or FILE.py:FUNCTION")
        items.extend(session.genitems(KernelFile.from_parent(session, path=path.resolve(), function=function)))


class KernelFile(pytest.File):
    def __init__(self, function="", **rest):
        super().__init__(**rest)
        self.function = function

    def collect(self):
        from attest_kernels import loading
        names = [self.function]
        if not self.function:
            names = [name for name, value in vars(loading.module(str(self.path))).items() if hasattr(value, "__attest_kernel__")]
        if not names:
            raise self.CollectError(f"{self.path.name}: no function is marked by @attest_kernels.kernel; allowed: {self.path.name}:FUNCTION, or such a mark")
        return [Kernel.from_parent(self, name=name) for name in names]


class NotPassed(Exception):
    """A verdict, as the lines that a person reads."""


class Kernel(pytest.Item):
    def runtest(self):
        from attest_kernels import program, verify
        try:
            report = verify(f"{self.path}:{self.name}", seconds=self.config.getoption("attest_for"), seed=self.config.getoption("attest_seed"))
        except program.ProgramError as error:
            raise NotPassed(str(error)) from error
        if report.verdict == "inconclusive":
            pytest.skip(next((line for line in report.shortfalls if line.startswith("inconclusive")), "inconclusive"))
        if not report.passed:
            raise NotPassed("\n".join([f"{report.verdict} after {report.cases} cases, shrunk to"] +
                                      [f"  law      {one.law}\n  problem  {one.problem}\n  what     {one.what}\n  replay   attest-kernels replay {one.replay}"
                                       for one in report.failures]))

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if isinstance(excinfo.value, NotPassed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"attest-kernels: {self.name}"
