"""Commands that documents show: each is parsed, and run as shown or shortened. Arguments: the repository's root, the binary."""

import collections
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(sys.argv.pop()).resolve()

BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    (\S[^\n]*)$", re.MULTILINE)
INLINE = re.compile(r"`((?:\./)?attest [^`]*)`")
COMMAND = re.compile(r"^(?:\$ |mpirun -n \d+ |\w+=\S* )*(?:\./|build/release/bin/)?attest (?P<arguments>.*)$")
AFTER = re.compile(r"\s{2,}\S.*$|\s+#\s.*$|;.*$|\s[|>].*$|\\$")  # what stands behind a command
SYNOPSIS = re.compile(r"\.\.\.|\[(?=--)|(?<=\w)\](?= |$)")  # KERNEL... [--plugin mine.so]
OF_THE_LAUNCHER = ("test", "report", "notebooks", "install", "--gpu")

# What readers put in, and the like of it here.
PLACEHOLDERS = {"KERNEL": "k1_naive", "FILE": "tiles.yaml"}

# Commands that are parsed but not run: a pattern, and why. Each must still be shown by some document.
ONLY_PARSED = {
    r"--executor gpu|^tune |--kernel 'fa\*'|cudnn": "needs a GPU",
    r"--thorough": "takes ten minutes; verify/cases/coverage_test.cpp draws its cases",
    r"\.so\b": "needs a shared object of the reader's; plugin_test.sh builds one and runs these",
    r"--python mine\.py": "needs a file of the reader's; python/wheel_test.py runs one",
    r"--python (examples/python|torch)": "needs PyTorch and Triton; examples/python/examples_test.py and pytorch_test.py run these",
    r"--python examples/peers": "needs a library and a GPU; examples/peers/peers_test.py calls these with stand-ins",
    r"^judge ": "needs somebody's solution; verify/cheats/judge_test.py has many",
    r"^verify --inputs|^errors --outputs": "needs tensors of the reader's",
    r"^replay |--resume|^study resume": "goes on from what another run left; campaign_test.sh and study_run_test.sh run them",
    r"^verify --kernel 'mutant/\*'": "takes minutes, and fails as it must; the tests of mutants/ run them",
}

# Options that make a command short: of the first pattern that fits. They replace those that a document shows, or are added; None: a flag.
SHORTER = {
    r"^verify .*--for": {"--for": "1s"},
    r"^verify --kernel '\[!c\]\*'.*--every-law": {"--cases": "1", "--kernel": "k1*,k2*"},
    r"^verify --large": {"--cases": "1", "--kernel": "k1_naive"},
    r"^verify --operation backward(?!.*--kernel)": {"--cases": "2", "--kernel": "backward_tiled", "--no-regressions": None},
    r"^verify --operation backward": {"--cases": "2", "--no-regressions": None},  # one that is vacuous for a kernel is then half, which passes
    r"^verify (?!.*--kernel)|^verify$": {"--cases": "1", "--kernel": "k1_naive,o5_deferred", "--no-regressions": None},  # all kernels: verify/campaign/campaign_test.cpp
    r"^verify": {"--cases": "1", "--no-regressions": None},
    r"^errors": {"--sets": "1", "--problem": "h1 n64 d64"},
    r"^calibrate": {"--sets": "1"},
    r"^mutants .*--operation backward": {"--kernel": "mutant/b01_delta_missing", "--cases": "1", "--normal-cases": "1", "--correct-cases": "1"},
    r"^mutants .*--operation quantised": {"--kernel": "mutant/z80_scale_of_k_for_v", "--cases": "1", "--normal-cases": "1", "--correct-cases": "1"},
    r"^mutants .*--operation combine": {"--kernel": "mutant/p03_last_part_dropped", "--cases": "1", "--normal-cases": "1", "--correct-cases": "1"},
    r"^mutants .*--operation quantise": {"--kernel": "mutant/q01_amax_past_the_length", "--cases": "1", "--normal-cases": "1", "--correct-cases": "1"},
    r"^mutants": {"--kernel": "mutant/c05_tail_lanes_in_denominator", "--cases": "1", "--normal-cases": "1"},
    r"^bench (?!.*--kernel)": {"--kernel": "o5_deferred", "--benchmark_min_time": "0.001"},
    r"^bench": {"--benchmark_min_time": "0.001"},
    r"^study run speed_and_error": {"--time-budget": "1s", "--shard": "1/8"},
    r"^study run": {"--time-budget": "1s"},
}


def commands_of(text):
    """[arguments] of the commands that a document shows. Names in capitals and <brackets> stay as they are."""
    lines = []
    for block in BLOCK.findall(text):
        lines += block.replace("\\\n", " ").splitlines()
    lines += INDENTED.findall(text.replace("\\\n", " "))
    lines += [words for words in INLINE.findall(text) if " --" in words]
    found = []
    for line in lines:
        shown = COMMAND.match(line.strip())
        if shown:
            found.append(AFTER.sub("", shown["arguments"]).strip())
            found += [more.strip() for more in re.findall(r"; (?:\./)?attest ([^;]*)", line)]
    return [SYNOPSIS.sub("", AFTER.sub("", arguments)).strip() for arguments in found]


def shown():
    """{arguments: [document]} of every command of every document."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.md"], capture_output=True, text=True).stdout.split("\0")[:-1]
    places = collections.defaultdict(list)
    for name in listed or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if "build" not in path.parts]:
        if (ROOT / name).exists():
            for arguments in commands_of((ROOT / name).read_text()):
                places[arguments].append(name)
    return places


def rows_of(table, arguments):
    return [pattern for pattern in table if re.search(pattern, arguments)]


def shortened(arguments):
    """[word] of the command that is run instead."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(arguments)]
    for option, value in SHORTER[rows_of(SHORTER, arguments)[0]].items() if rows_of(SHORTER, arguments) else ():
        if option.startswith("--benchmark"):
            words.append(f"{option}={value}")
        elif value is None:
            words += [option] * (option not in words)
        elif option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    return words


def called(command, *words, where, **environment):
    return subprocess.run([*command, *words], capture_output=True, text=True, cwd=where, stdin=subprocess.DEVNULL, timeout=600,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment})


def attest(*words, where):
    return called([BINARY], *words, where=where)


def write_program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def launcher_in(folder):
    """./attest in a tree where building, testing and installing do nothing; a function of its arguments."""
    tree = pathlib.Path(folder)
    for name in ("attest", "cmake/packages.txt", "notebooks/attest_book"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
    for name in ("stubs/cmake", "stubs/ctest", "notebooks/make_environment", "gpu/peers/install_headers", "build/venv/bin/python",
                 "build/release/bin/attest"):
        write_program(tree / name, "exit 0")
    return lambda *words: called([tree / "attest"], *words, where=tree, ATTEST_INSTALL="never", ATTEST_PRESET="release",
                                 PATH=f"{tree / 'stubs'}:{os.environ['PATH']}")


class Commands(unittest.TestCase):
    maxDiff = None

    def of_program(self):
        return {arguments: documents for arguments, documents in shown().items() if arguments and arguments.split()[0] not in OF_THE_LAUNCHER}

    def test_the_program_takes_every_command_that_a_document_shows(self):
        wrong = {}
        with tempfile.TemporaryDirectory() as folder:
            for arguments, documents in self.of_program().items():
                ran = attest("--parse-only", *shlex.split(arguments), where=folder)
                if ran.returncode != 0:
                    wrong[arguments] = (documents, ran.stderr.strip())
        self.assertEqual(wrong, {})

    def test_every_command_ends_well_unless_a_reason_is_listed_why_it_is_not_run(self):
        wrong, ran = {}, set()
        for arguments, documents in self.of_program().items():
            words = shortened(arguments)
            if rows_of(ONLY_PARSED, arguments) or tuple(words) in ran:
                continue
            ran.add(tuple(words))
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "tiles.yaml").write_text(BLOCK.search((ROOT / "experiments/study/README.md").read_text())[1])
                done = attest(*words, where=folder)
            cut_short = 4 if "--time-budget" in words else 0  # by the second that it is given here
            if done.returncode not in (0, cut_short):
                wrong[arguments] = (documents, shlex.join(words), done.returncode, done.stderr.strip())
        self.assertEqual(wrong, {})
        self.assertGreater(len(ran), 25)

    def test_the_launcher_takes_its_own_commands(self):
        commands = {arguments: documents for arguments, documents in shown().items() if arguments.startswith(OF_THE_LAUNCHER)}
        wrong = {}
        with tempfile.TemporaryDirectory() as folder:
            launcher = launcher_in(folder)
            for arguments, documents in commands.items():
                done = launcher(*shlex.split(arguments))
                if done.returncode != 0:
                    wrong[arguments] = (documents, done.returncode, done.stderr.strip())
            self.assertEqual(wrong, {})
            self.assertGreater(len(commands), 8)
            for words in ("test --fast", "report a --nothing", "install everything", "verfy"):
                self.assertEqual(launcher(*words.split()).returncode, 2, words)

    def test_no_row_of_the_tables_is_left_over(self):
        commands = self.of_program()
        for table in (ONLY_PARSED, SHORTER):
            self.assertEqual([pattern for pattern in table if not any(rows_of(table, arguments)[:1] == [pattern] for arguments in commands)], [])

    def test_commands_are_found_however_they_are_shown(self):
        text = "```\n./attest verify --cases 3   some\n$ attest list; attest doctor\n```\nSay `attest errors --sets 2`, not `attest errors`.\n\n" \
               "    mpirun -n 2 attest study run a.yaml --out b   # both\n    ATTEST_PRESET=dev ./attest test -j 2\n" \
               "    CUDA_VISIBLE_DEVICES= attest report --errors KERNEL... [--out FILE]\n    attest verify --kernel '[!c]*'\n"
        self.assertEqual(commands_of(text), ["verify --cases 3", "list", "doctor", "study run a.yaml --out b", "test -j 2",
                                             "report --errors KERNEL --out FILE", "verify --kernel '[!c]*'", "errors --sets 2"])

    def test_an_option_that_is_gone_is_noticed(self):
        self.assertEqual(attest("--parse-only", "verify", "--property", "x", where=ROOT).returncode, 2)
        self.assertEqual(attest("--parse-only", "verify", "--cases", "3", where=ROOT).returncode, 0)


if __name__ == "__main__":
    unittest.main()
