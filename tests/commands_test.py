"""Commands that documents show: the program takes each, and runs those that are quick. Arguments: the repository's root, the binary."""

import collections
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(sys.argv.pop()).resolve()

BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    (\S[^\n]*)$", re.MULTILINE)
INLINE = re.compile(r"`((?:\./)?attest [^`]*)`")
COMMAND = re.compile(r"^(?:\$ |mpirun -n \d+ |\w+= ?)*(?:\./|build/release/bin/)?attest (?P<arguments>.*)$")
AFTER = re.compile(r"\s{2,}\S.*$|\s+#\s.*$|;.*$|\s[|>].*$|\\$")  # what stands behind a command
OF_THE_LAUNCHER = ("test", "report", "notebooks", "install", "help")  # launcher_test.sh and the tests of attest_book
QUICK = ("list", "doctor", "explain", "claims", "study check", "study keys", "study schema")  # run, not only parsed


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
    return [AFTER.sub("", arguments).strip() for arguments in found]


def shown():
    """{arguments: [document]} of every command of every document."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.md"], capture_output=True, text=True).stdout.split("\0")[:-1]
    places = collections.defaultdict(list)
    for name in listed or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if "build" not in path.parts]:
        if (ROOT / name).exists():
            for arguments in commands_of((ROOT / name).read_text()):
                places[arguments].append(name)
    return places


def attest(*words, where):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, cwd=where, stdin=subprocess.DEVNULL, timeout=300)


class Commands(unittest.TestCase):
    def test_the_program_takes_every_command_that_a_document_shows(self):
        wrong = {}
        with tempfile.TemporaryDirectory() as folder:
            for arguments, documents in shown().items():
                words = shlex.split(arguments)
                if not words or words[0] in OF_THE_LAUNCHER or "..." in words:
                    continue
                ran = attest("--parse-only", *words, where=folder)
                if ran.returncode != 0:
                    wrong[arguments] = (documents, ran.stderr.strip())
        self.assertEqual(wrong, {})

    def test_quick_commands_do_what_the_document_says(self):
        wrong, ran = {}, 0
        for arguments, documents in shown().items():
            if not arguments.startswith(QUICK) or re.search(r"<|\.\.\.|\b[A-Z]{2,}\b|tiles\.yaml|mine", arguments):
                continue
            ran += 1
            done = attest(*shlex.split(arguments), where=ROOT)
            if done.returncode != 0:
                wrong[arguments] = (documents, done.returncode, done.stderr.strip())
        self.assertEqual(wrong, {})
        self.assertGreater(ran, 10)

    def test_commands_are_found_however_they_are_shown(self):
        text = "```\n./attest verify --cases 3   some\n$ attest list; attest doctor\n```\nSay `attest errors --sets 2`, not `attest errors`.\n\n" \
               "    mpirun -n 2 attest study run a.yaml --out b   # both\n"
        self.assertEqual(commands_of(text), ["verify --cases 3", "list", "doctor", "study run a.yaml --out b", "errors --sets 2"])

    def test_an_option_that_is_gone_is_noticed(self):
        self.assertEqual(attest("--parse-only", "verify", "--property", "x", where=ROOT).returncode, 2)
        self.assertEqual(attest("--parse-only", "verify", "--cases", "3", where=ROOT).returncode, 0)


if __name__ == "__main__":
    unittest.main()
