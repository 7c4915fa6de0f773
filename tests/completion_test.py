"""usage: completion_test.py PROGRAM: the manual page and the shells' completion have every subcommand and option of --help."""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path(sys.argv.pop()).resolve()


def output(*words, given=None):
    return subprocess.run([*words], input=given, stdin=None if given else subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def help_of(*command):
    """({subcommand}, {option}) that --help of a command shows."""
    text = output(PROGRAM, *command, "--help")
    below = re.search(r"^Subcommands:\n(.*?)(\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    options = re.findall(r"^  (-[\w-]+(?:,-[\w-]+)*)", text, re.MULTILINE)
    return set(re.findall(r"^  (\w+) ", below[1], re.MULTILINE) if below else ()), {name for names in options for name in names.split(",")}


def commands():
    """[words] of every command, the program itself first."""
    found = [()]
    for command in found:
        found += [(*command, name) for name in sorted(help_of(*command)[0])]
    return found


def completed(script, *words):
    """What bash completes the last word to."""
    line = " ".join(f"'{word}'" for word in ("attest", *words))
    asked = f"{script}\nCOMP_WORDS=({line}) COMP_CWORD={len(words)}\n_attest\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    return set(output("bash", "-c", asked).split())


class Completion(unittest.TestCase):
    def test_bash_offers_every_subcommand_and_option_where_it_belongs(self):
        script = output(PROGRAM, "completion", "bash")
        output("bash", "-n", given=script)
        self.assertRegex(output("bash", "-c", f"{script}\ncomplete -p attest"), "-F _attest attest")
        self.assertGreater(len(commands()), 18)
        for command in commands():
            subcommands, options = help_of(*command)
            self.assertGreater(len(options), 0, command)
            self.assertEqual(completed(script, *command, ""), subcommands | options, command)
        self.assertEqual(completed(script, "verify", "--kernel", "k1*", "--ju"), {"--junit"})
        self.assertEqual(completed(script, "stu"), {"study"})

    def test_zsh_and_fish_have_every_subcommand_and_option(self):
        zsh, fish = (output(PROGRAM, "completion", shell) for shell in ("zsh", "fish"))
        for command in commands():
            subcommands, options = help_of(*command)
            self.assertLessEqual(subcommands | options, set(re.search(f"^ +'{' '.join(('attest', *command))}' '(.*)'$", zsh, re.MULTILINE)[1].split()))
            for name in subcommands:
                self.assertRegex(fish, f"-a {name} -d ")
            for name in options:
                self.assertRegex(fish, f"(-l {name[2:]}|-s {name[1:]}) ")
        for shell, script in (("zsh", zsh), ("fish", fish)):
            if shutil.which(shell):
                output(shell, "-n", given=script)

    def test_the_manual_page_has_every_subcommand_and_option(self):
        page = output(PROGRAM, "man")
        for command in commands():
            section = re.search(rf"^\.SS {' '.join(('attest', *command))}\n(.*?)(?=^\.SS|\Z)", page, re.DOTALL | re.MULTILINE)
            self.assertTrue(section, command)
            for name in help_of(*command)[1]:
                self.assertRegex(section[1].replace("\\-", "-").replace("\\fB", " "), rf"(?m)^ .*(?<![\w-]){name}\b", command)
        if shutil.which("groff"):
            said = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=page, capture_output=True, text=True, check=True).stderr
            self.assertEqual([line for line in said.splitlines() if "can't break line" not in line and "cannot adjust" not in line], [])

    def test_an_unknown_shell_gets_one_line(self):
        done = subprocess.run([PROGRAM, "completion", "tcsh"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "attest: completion: 'tcsh' is no shell; allowed: bash, zsh, fish\n"))


if __name__ == "__main__":
    unittest.main()
