"""Every cheat is caught by what its file names, its honest twin passes, and what a solution does to those around it is a clear verdict. Arguments:
the program; the Python that has NumPy is the one that runs this."""

import ast
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
CHEATS = sorted(file for file in HERE.glob("*.py") if "\ndef cheat(" in file.read_text())
PLUGINS = sorted(HERE.glob("*.c"))  # the same, as shared objects
NOT_EXPRESSIBLE = {15: "launches over the limit of shared memory", 20: "several ranks"}
SMALL = {"--task": "d16:n1-64:h1-2:b1-2", "--cases": "4", "--runs": "4", "--jobs": "1", "--seed": "7", "--json": "-"}
OPTIONS = {key.removeprefix("--"): value for key, value in SMALL.items() if key != "--json"}  # of a request
ENVIRONMENT = {**os.environ, "ATTEST_PYTHON": sys.executable}
RIGHT = "from attest_kernels.testing.functions import attend\nimport os, sys, time\ndef attention(q, k, v):\n    "

sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import rules  # noqa: E402


def judged(place, *arguments):
    """(the verdict, exit code, what stderr says); `arguments` are options and their values."""
    options = {**SMALL, **dict(zip(arguments[::2], arguments[1::2]))}
    if "--seed-file" in options:
        del options["--seed"]
    done = subprocess.run([PROGRAM, "judge", place, *(word for pair in options.items() for word in pair)], capture_output=True, text=True, timeout=300,
                          check=False, stdin=subprocess.DEVNULL, env=ENVIRONMENT)
    return (json.loads(done.stdout) if done.stdout else None), done.returncode, done.stderr


def compiled(source, folder):
    """The shared object of a file in C."""
    made = pathlib.Path(folder) / f"{source.stem}.so"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-I", HERE, "-I", HERE.parents[1] / "include", source, "-o", made, "-lm", "-lpthread"], check=True)
    return made


def type_of(file):
    return "float32" if file.suffix == ".c" else named(file).get("DTYPE", "float16")


def twin_of(file):
    return HERE / named(file).get("TWIN", file.name)


def both(file):
    """The verdicts, as judged() gives them, of a cheat and of its twin."""
    more = ["--task", f"{SMALL['--task']}:{type_of(file).replace('float', 'fp')}", "--cases", str(named(file).get("CASES", SMALL["--cases"]))]
    if file.suffix == ".c":
        with tempfile.TemporaryDirectory() as folder:
            plugin = compiled(file, folder)
            answers = judged(f"{plugin}:cheat", *more), judged(f"{plugin}:twin", *more)
            left = [each.name for each in pathlib.Path(folder).iterdir()]
            assert left == [plugin.name], left
            return answers
    return judged(f"{file}:cheat", *more), judged(f"{twin_of(file)}:twin", *more)


def named(file):
    """{NAME: value} of the constants at the head of a cheat, which is not imported here."""
    values = {}
    if file.suffix == ".c":
        return {name: ast.literal_eval(value) for name, value in re.findall(r"^#define (FAMILY|CAUGHT_BY) (.+)$", file.read_text(), re.MULTILINE)}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and all(isinstance(each, (ast.Name, ast.Tuple)) for each in node.targets):
            target = node.targets[0]
            names = [target.id] if isinstance(target, ast.Name) else [each.id for each in target.elts]
            try:
                given = ast.literal_eval(node.value)
            except ValueError:
                continue
            values.update(zip(names, given if isinstance(target, ast.Tuple) else [given]))
    return values


def setUpModule():
    verdict, _, said = judged(f"{HERE / 'mean_of_v.py'}:twin", "--cases", "1", "--runs", "0")
    if verdict is not None and "no " in verdict["box"]:
        raise unittest.SkipTest(f"a cheat would be loose here: {verdict['box']}")


class Cheats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            cls.answers = dict(zip(CHEATS + PLUGINS, pool.map(both, CHEATS + PLUGINS)))

    def test_each_is_caught_by_what_its_file_names(self):
        for file in CHEATS + PLUGINS:
            with self.subTest(file.name):
                what, (verdict, code, said) = named(file), self.answers[file][0]
                self.assertIsNotNone(verdict, said)
                if what["CAUGHT_BY"].startswith("flag "):
                    self.assertIn(what["CAUGHT_BY"].removeprefix("flag "), verdict["flags"])
                elif what["CAUGHT_BY"] == "time_ms":
                    self.assertGreaterEqual(verdict["time_ms"], what["AT_LEAST_MS"])
                else:
                    self.assertEqual((code, verdict["verdict"] != "passed"), (1, True), verdict)
                    self.assertRegex(verdict["reason"], what["CAUGHT_BY"])
                    self.assertLess(verdict["score"], 0.8)

    def test_each_twin_passes(self):
        for file in CHEATS + PLUGINS:
            with self.subTest(file.name):
                verdict, code, said = self.answers[file][1]
                self.assertEqual((code, verdict and verdict["verdict"]), (0, "passed"), (verdict, said))
                self.assertTrue(verdict["exact"] and verdict["bound"] and verdict["time_ms"] > 0)
                self.assertNotIn(named(file)["CAUGHT_BY"].removeprefix("flag "), verdict["flags"])

    def test_rules_of_others_accept_an_honest_twin(self):
        for rule in rules.RULES:
            with self.subTest(rule):
                self.assertEqual(rules.applied(rule, HERE / "mean_of_v.py", "twin", "float16"), "accepted")

    def test_no_family_is_missing(self):
        families = {named(file)["FAMILY"] for file in CHEATS}
        self.assertEqual(families | set(NOT_EXPRESSIBLE), set(range(1, 21)))
        self.assertEqual(families & set(NOT_EXPRESSIBLE), set())


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.outside = pathlib.Path(self.folder.name) / "outside"
        self.outside.mkdir()

    def of(self, text, *arguments):
        file = pathlib.Path(self.folder.name) / "solution.py"
        file.write_text(text)
        return judged(str(file), *arguments)

    def test_what_it_does_when_it_is_loaded_is_one_line(self):
        forged = ("import os\nfor fd in range(9):\n  try: os.write(fd, b'{\"error\": \"two\\\\nlines\\\\u001b\", \"machine\": true}\\n')\n"
                  "  except OSError: pass\n")
        for text, line in (("def attention(q, k:\n", "SyntaxError"), ("raise ValueError('no')\n", "ValueError: no"),
                           ("import sys; sys.exit(0)\n", "SystemExit"),
                           ("import os; os._exit(0)\n", "it called exit(0)"), ("x = 1\n", "no function 'attention'"), ("import no_such_module\n", "No module named"),
                           ("def attention(q, k, v, blocks): pass\n", "asks for 'blocks'"),
                           (forged, "two?lines?")):
            verdict, code, said = self.of(text)
            self.assertEqual((code, verdict and verdict["compiled"], verdict and verdict["score"]), (1, False, 0), (text, verdict, said))
            self.assertIn(line, verdict["reason"])
            self.assertEqual(verdict["reason"].count("\n"), 0)

    def test_who_knows_the_judge_by_its_parent_gains_nothing(self):
        knows = "import os\nif b'worker' in open(f'/proc/{os.getppid()}/cmdline', 'rb').read():\n    raise ValueError('not again')\n"
        verdict, code, said = self.of(knows + RIGHT + "return attend(q, k, v)[0]\n")
        self.assertEqual((code, verdict and verdict["score"]), (1, 0.1), (verdict, said))
        self.assertIn("it was loaded once and not again", verdict["reason"])

    def test_what_hangs_is_ended(self):
        for text, compiled in (("while True: pass\n", False), (RIGHT + "time.sleep(1000)\n", True)):
            verdict, code, _ = self.of(text, "--timeout", "1s")
            self.assertEqual((code, verdict["compiled"]), (1, compiled), verdict)
            self.assertRegex(verdict["reason"], "no answer (in|within) 1 s")

    def test_what_it_prints_does_not_matter(self):
        prints = "import os\nprint('{}')\n" + RIGHT + "print('{}'); sys.stderr.write('x' * 9999)\n    return attend(q, k, v)[0]\n"
        verdict, code, _ = self.of(prints, "--runs", "0")
        self.assertEqual((code, verdict["verdict"]), (0, "passed"), verdict)

    def test_nothing_outside_its_folder_changes_and_nothing_is_left(self):
        mark = f"attest-left-behind-{os.getpid()}"
        tried = [f"open({str(self.outside / 'new')!r}, 'w')", f"os.mkdir({str(self.outside / 'folder')!r})", "__import__('socket').socket()",
                 "os.setsid()", "os.kill(os.getppid(), 9)"]
        text = RIGHT + "".join(f"\n    try:\n        {each}\n        return q * 0\n    except OSError: pass" for each in tried)
        verdict, code, said = self.of(text + "\n    return attend(q, k, v)[0]\n", "--runs", "0")
        self.assertEqual((code, verdict and verdict["verdict"]), (0, "passed"), (verdict, said))
        self.assertEqual(list(self.outside.iterdir()), [])
        fork = ("import subprocess\ndef attention(data):\n    subprocess.Popen(['sh', '-c', 'sleep 600; echo " + mark + "'])\n"
                "    raise ValueError('left')\ncustom_kernel = attention\n")
        verdict, code, _ = self.of(fork, "--format", "gpumode")
        self.assertEqual(code, 1)
        self.assertIn("ValueError: left", verdict["reason"])
        self.assertFalse(mark in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout)

    def test_work_after_the_answer_is_no_work(self):
        verdict, code, _ = self.of("import threading\nfrom attest_kernels.testing.functions import attend\ndef attention(q, k, v, out):\n"
                                   "    out[...] = attend(q, k, v)[0]\n    threading.Timer(0.001, lambda: out.fill(7)).start()\n", "--runs", "0")
        self.assertEqual(code, 1, verdict)

    def test_a_secret_seed_cannot_be_read(self):
        secret = self.outside / "seed"
        secret.write_text("four")
        file = pathlib.Path(self.folder.name) / "solution.py"
        file.write_text(RIGHT + f"try:\n        open({str(secret)!r}).read()\n        return q * 0\n    except OSError: return attend(q, k, v)[0]\n")
        verdict, _, said = judged(str(file), "--runs", "0", "--seed-file", str(secret))
        self.assertEqual(verdict and verdict["verdict"], "passed", (verdict, said))

    def test_what_it_declares_does_not_count(self):
        text = ("import attest_kernels\nfrom attest_kernels.testing.functions import attend\n"
                "@attest_kernels.kernel(types='fp16', head_dims=[64], deterministic=False)\ndef attention(q, k, v):\n    return attend(q, k, v)[0] * 1.001\n")
        verdict, code, _ = self.of(text)
        self.assertEqual((code, verdict["bound"]), (1, False))
        self.assertIn("declares itself, which does not count", verdict["flags"])

    def test_what_the_task_asks_and_it_refuses_is_a_failure(self):
        verdict, code, _ = self.of(RIGHT + "assert k.shape[2] % 8 == 0, 'whole tiles only'\n    return attend(q, k, v)[0]\n")
        self.assertEqual(code, 1)
        self.assertIn("whole tiles only", verdict["reason"])
        verdict, _, _ = self.of(RIGHT + "return attend(q, k, v)[0]\n", "--task", "d16:none,causal")
        self.assertIn("there is no parameter 'causal'", verdict["reason"])

    def test_every_format_is_called_in_its_way(self):
        body = "    return attend(q, k, v)[0]\n"
        model = "from attest_kernels.testing.functions import attend\nclass ModelNew:\n    def __init__(self, scale): self.scale = scale\n" \
                "    def forward(self, q, k, v):\n    " + body + "def get_init_inputs(): return [1]\n"
        custom = "from attest_kernels.testing.functions import attend\ndef custom_kernel(data):\n    q, k, v = data\n" + body
        ragged = ("import numpy\nfrom attest_kernels.testing.functions import attend\ndef run(q, k, v, qo_indptr, kv_indptr, sm_scale):\n"
                  "    rows, keys = (numpy.diff(starts) for starts in (qo_indptr, kv_indptr))\n    assert len(set(rows)) == len(set(keys)) == 1\n"
                  "    q, k, v = (each.reshape(len(rows), -1, *each.shape[1:]).swapaxes(1, 2) for each in (q, k, v))\n"
                  "    o, lse = (each.swapaxes(1, 2).reshape(-1, *each.swapaxes(1, 2).shape[2:]) for each in attend(q, k, v, scale=sm_scale))\n"
                  "    return o, lse / numpy.float32(numpy.log(2))\n")
        for name, text in (("kernelbench", model), ("gpumode", custom), ("numpy", RIGHT + body.strip() + "\n"), ("flashinfer", ragged)):
            task = SMALL["--task"] + (":lse" if name == "flashinfer" else "")
            verdict, code, said = self.of(text, "--format", name, "--runs", "0", "--task", task)
            self.assertEqual((code, verdict and verdict["verdict"]), (0, "passed"), (name, verdict, said))

    def test_bad_input_is_one_line(self):
        for arguments, line in ((["--task", "d16:tall"], "'tall' is no word of a task"), (["--format", "excel"], "--format is 'excel'; allowed: numpy"),
                                (["--seed-file", "nowhere"], "nowhere")):
            verdict, code, said = self.of(RIGHT, *arguments)
            self.assertEqual((verdict, code, said.count("\n")), (None, 2, 1), said)
            self.assertIn(line, said)
        self.assertEqual(judged("nowhere.py")[1], 2)

    def test_a_counterexample_replays_in_a_box(self):
        out = str(self.outside)
        verdict, _, _ = judged(f"{HERE / 'mean_of_v.py'}:cheat", "--out", out)
        again, temporary = [PROGRAM, "replay", verdict["replay"]], self.outside / "tmp"
        temporary.mkdir()
        done = subprocess.run(again, capture_output=True, text=True, env={**ENVIRONMENT, "TMPDIR": str(temporary)}, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("reproduced", done.stdout)
        self.assertEqual(list(temporary.iterdir()), [], "its folder is left")


class HostilePlugin(unittest.TestCase):
    """What a shared object does to those around it is a line or a verdict."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def of(self, body, *arguments, head="", name="cheat"):
        """`body`: of the function; `head`: what stands before it."""
        source = pathlib.Path(self.folder.name) / "solution.c"
        source.write_text(f'#define _GNU_SOURCE\n#include <fenv.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <attest/plugin.h>\nstatic int* volatile nowhere;\n{head}\n#include "plugin_cheat.h"\n'
                          f"static const char* cheat(const AttestRun* run) {{ {body} }}\nstatic const char* twin(const AttestRun* run) {{ return attend(run); }}\n")
        return judged(f"{compiled(source, self.folder.name)}{name and ':' + name}", "--runs", "0", *arguments)

    def test_what_it_does_when_it_is_loaded_is_one_line(self):
        on_load = "__attribute__((constructor)) static void on_load(void) {{ {} }}"
        forged = 'for (int fd = 0; fd < 256; ++fd) (void)!write(fd, "{\\"error\\": \\"two\\\\nlines\\", \\"machine\\": true}\\n", 42);'
        for does, line in (("*nowhere = 1;", "it was killed by SIGSEGV while it was loaded"), ("_exit(0);", "it called exit(0) while it was loaded"),
                           ("abort();", "SIGABRT"), ("for (;;) pause();", "no answer in 1 s while it was loaded"), (forged, "two?lines")):
            verdict, code, said = self.of("return attend(run);", "--timeout", "1s", head=on_load.format(does))
            self.assertEqual((code, verdict and verdict["compiled"], verdict and verdict["score"]), (1, False, 0), (does, verdict, said))
            self.assertIn(line, verdict["reason"])
            self.assertEqual(verdict["reason"].count("\n"), 0)

    def test_what_it_does_when_it_is_asked_is_a_verdict(self):
        for does, line in (("*nowhere = 1;", "crashed: solution: it was killed by SIGSEGV"), ("exit(3);", r"crashed: solution: it called exit\(3\)"),
                           ("for (;;) pause();", "no answer (in|within) 1 s"), ('return "no\\nthank you";', "cheat returned an error .*: no.thank you"),
                           ('*row_of(run, "q", 0, 0, 0) = 1;', "SIGSEGV .it wrote to Q, which is an input., while the kernel ran"),
                           ('row_of(run, "o", 0, 0, 0)[-1] = 1;', "outside every element, was overwritten"),
                           ('attend(run); fesetround(FE_UPWARD);', "floating_point_mode_kept: .*rounding is upward"),
                           ("if (fork() >= 0) return zeros(run);", None), ('puts("{}"); fprintf(stderr, "%9999d", 7);', None)):
            verdict, code, said = self.of(f"{does} return attend(run);", "--timeout", "1s")
            self.assertEqual((code, verdict and verdict["verdict"] == "passed"), (1, False) if line else (0, True), (does, verdict, said))
            self.assertRegex(verdict["reason"], line or "no law is broken")
            self.assertEqual(verdict["reason"].count("\n"), 0)

    def test_a_secret_seed_cannot_be_read(self):
        secret = pathlib.Path(self.folder.name) / "seed"
        secret.write_text("four")
        verdict, _, said = self.of(f'return fopen("{secret}", "r") != NULL ? zeros(run) : attend(run);', "--seed-file", str(secret))
        self.assertEqual(verdict and verdict["verdict"], "passed", (verdict, said))

    def test_what_it_declares_does_not_count(self):
        loose = "static const AttestPrecision loose = {.size = sizeof(AttestPrecision), .division_error = 1};\n#define PRECISION &loose\n"
        verdict, code, _ = self.of("return answer(run, 1.001F);", head=loose)
        self.assertEqual((code, verdict["bound"]), (1, False), verdict)

    def test_what_the_task_asks_and_it_refuses_is_a_failure(self):
        for task, line in (("d16:fp16", "it refuses what the task asks for: .*fp16"), ("d16:causal", "it refuses what the task asks for"),
                           ("d16:lse", "it does not give LSE")):
            verdict, code, said = self.of("return attend(run);", "--task", f"{task}:n1-64:h1-2:b1-2")
            self.assertEqual(code, 1, (verdict, said))
            self.assertRegex(verdict["reason"], line)

    def test_which_kernel_is_meant_must_be_clear(self):
        for name, line in (("", "it describes cheat, twin; the solution is FILE.so:NAME"), ("nobody", "it describes cheat, twin")):
            verdict, code, _ = self.of("return attend(run);", name=name)
            self.assertEqual((code, verdict["compiled"]), (1, False), verdict)
            self.assertIn(line, verdict["reason"])

    def test_what_is_no_plugin_gets_one_line(self):
        file = pathlib.Path(self.folder.name) / "text.so"
        file.write_text("#!/bin/sh\n")
        verdict, code, said = judged(str(file))
        self.assertEqual(code, 1, said)
        self.assertIn("it cannot be loaded: file too short", verdict["reason"])
        self.assertNotIn(self.folder.name, verdict["reason"])
        _, code, said = judged(str(file), "--format", "numpy")
        self.assertEqual((code, said.count("\n")), (2, 1), said)
        self.assertIn("is no solution; allowed: FILE.py", said)

    def test_a_counterexample_replays_in_a_box(self):
        verdict, _, _ = self.of("return answer(run, 1.001F);", "--out", self.folder.name)
        done = subprocess.run([PROGRAM, "replay", verdict["replay"]], capture_output=True, text=True, env=ENVIRONMENT, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("reproduced", done.stdout)


class Served(unittest.TestCase):
    @contextlib.contextmanager
    def served(self):
        """(a function from a request to its answer, the server); afterwards nothing of it is left."""
        with tempfile.TemporaryDirectory() as folder:
            path, temporary = str(pathlib.Path(folder) / "judge"), pathlib.Path(folder) / "tmp"
            temporary.mkdir()
            server = subprocess.Popen([PROGRAM, "judge", "--serve", path], stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, "TMPDIR": str(temporary)})
            try:
                self.assertIn(path, server.stderr.readline())
                client = socket.socket(socket.AF_UNIX)
                client.connect(path)
                lines = client.makefile("rw")

                def answer(request):
                    lines.write((request if isinstance(request, str) else json.dumps(request)) + "\n")
                    lines.flush()
                    return json.loads(lines.readline())
                yield answer, server, path
                lines.close()
                client.close()
            finally:
                server.terminate()
                self.assertEqual(server.wait(60), 130)
                server.stderr.close()
            self.assertFalse(pathlib.Path(path).exists())
            self.assertEqual(list(temporary.iterdir()), [])

    def test_a_line_asked_at_a_socket_gets_a_line(self):
        with self.served() as (answer, _, path), tempfile.TemporaryDirectory() as folder:
            plugin = compiled(HERE / "forged_verdict.c", folder)
            for solution in (f"{HERE / 'mean_of_v.py'}", str(plugin)):
                for name, said in (("cheat", "failed"), ("twin", "passed")):
                    self.assertEqual(answer({"solution": f"{solution}:{name}", **OPTIONS})["verdict"], said)
            for request, error in (("{", "no JSON"), ("{}", "names no 'solution'"), ('{"solution": "a.py", "rm": 1}', "a request has 'rm'"),
                                   ('{"solution": "nowhere.py", "task": "d16"}', "nowhere.py"), ('{"solution": "a.py", "cases": -1}', "--cases")):
                self.assertIn(error, answer(request)["error"])
            self.assertEqual(subprocess.run([PROGRAM, "judge", "--serve", path], capture_output=True, check=False).returncode, 2)

    def test_nobody_is_judged_where_another_was(self):
        text = ("import os, pathlib\nimport numpy\nfrom attest_kernels.testing.functions import attend\n"
                "assert not hasattr(numpy, 'was_here') and 'was_here' not in os.listdir(), 'somebody was here'\n"
                "numpy.was_here = pathlib.Path('was_here').write_text('yes')\ndef attention(q, k, v):\n    return attend(q, k, v)[0]\n")
        with self.served() as (answer, _, _), tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "solution.py"
            file.write_text(text)
            for _ in range(3):
                said = answer({"solution": str(file), **OPTIONS})
                self.assertEqual(said.get("verdict"), "passed", said)

    def test_a_judge_that_is_gone_before_it_is_asked_is_replaced(self):
        with self.served() as (answer, server, _):
            waiting = []
            while len(waiting) != 1:  # it is started when the server listens, not before
                self.assertIsNone(server.poll())
                time.sleep(0.05)
                children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(server.pid)], capture_output=True, text=True, check=False).stdout
                waiting = [int(line.split()[0]) for line in children.splitlines() if "--ahead" in line]
            os.kill(waiting[0], signal.SIGTERM)
            time.sleep(0.5)
            self.assertEqual(answer({"solution": f"{HERE / 'mean_of_v.py'}:twin", **OPTIONS})["verdict"], "passed")


if __name__ == "__main__":
    unittest.main()
