"""What a task asks decides how a function is taken, and its text is looked at."""

import pathlib
import tempfile
import unittest

import numpy

from attest_kernels import judged, tripwires

ASKED = {"format": "numpy", "types": ["fp32"], "masks": ["none"], "layout": "BHND", "lse": False, "scale": False}


class InAFile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def place(self, text, name="attention"):
        file = pathlib.Path(self.folder.name) / f"solution_{abs(hash(text))}.py"
        file.write_text("import numpy\n" + text)
        return f"{file}:{name}"


class Judged(InAFile):
    def made(self, text, name="attention", **asked):
        subject = judged.Judged(self.place(text, name), {**ASKED, **asked})
        q = numpy.arange(2 * 3 * 5 * 4, dtype=numpy.float32).reshape(2, 3, 5, 4)
        return subject.convention.call(subject.framework, {"q": q, "k": q, "v": q, "o": q * 0, "lse": q[..., 0] * 0}, False, 0.5)

    def test_it_is_called_in_the_layout_of_the_task_and_without_a_probe(self):
        text = "CALLS = []\ndef attention(q, k, v):\n    CALLS.append(1)\n    assert q.shape == (2, 5, 3, 4) and len(CALLS) == 1\n    return v\n"
        self.assertEqual(self.made(text, layout="BNHD")["o"].shape, (2, 3, 5, 4))

    def test_what_is_returned_holds_its_numbers(self):
        for made, word in (("v.view(type('Later', (numpy.ndarray,), {}))", "it returned Later; allowed: ndarray itself"), ("[[0]]", "it returned "),
                           ("(v, v.view(numpy.matrix) if 0 else 'lse')", "it returned str")):
            with self.assertRaisesRegex(TypeError, word):
                self.made(f"def attention(q, k, v):\n    return {made}\n")

    def test_what_the_task_asks_and_it_has_not_is_a_line(self):
        plain = "def attention(q, k, v):\n    return v\n"
        for asked, line in (({"types": ["bf16"]}, "the task asks for bf16, which NumPy"), ({"masks": ["none", "causal_bottom_right"]}, "no parameter 'causal'"),
                            ({"scale": True}, "no parameter 'scale'"), ({"lse": True}, "the task asks for O and LSE")):
            with self.assertRaisesRegex(TypeError, line):
                self.made(plain, **asked)

    def test_what_it_declares_is_not_read(self):
        text = "import attest_kernels\n@attest_kernels.kernel(layout='BNHD', types='fp16')\ndef attention(q, k, v):\n    assert q.shape[1] == 3\n    return v\n"
        self.made(text)


class Tripwires(InAFile):
    def of(self, text):
        return tripwires.of(self.place(text))

    def test_plain_code_has_none(self):
        self.assertEqual(self.of("def attention(q, k, v):\n    try:\n        return q\n    finally:\n        pass\n"), [])

    def test_what_is_looked_at_twice_is_said(self):
        text = ("import ctypes, flash_attn\nimport attest_kernels\n@attest_kernels.kernel\ndef attention(q, k, v):\n    try:\n        return own(q)\n"
                "    except ValueError:\n        return F.scaled_dot_product_attention(q, k, v)\n")
        self.assertEqual(self.of(text), ["imports ctypes", "imports flash_attn", "calls scaled_dot_product_attention",
                                         "returns something else where an exception is raised", "declares itself, which does not count"])

    def test_what_is_no_python_has_none(self):
        self.assertEqual(self.of("def attention(q,\n"), [])
        self.assertEqual(tripwires.of("module:function"), [])


if __name__ == "__main__":
    unittest.main()
