"""usage: help_test.py ROOT PROGRAM: `attest help TOPIC` prints the documents of the tree, from the launcher and from the program alike."""

import pathlib
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(sys.argv.pop()).resolve()
TOPICS = dict(row.split(" ", 1) for row in (ROOT / "cli/help_topics.txt").read_text().splitlines())


def said(command, *words):
    done = subprocess.run([command, "help", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def document_of(topic):
    name, _, paragraph = TOPICS[topic].partition(":")
    text = (ROOT / name).read_text()
    if not paragraph:
        return text
    begin = text.index("\n" + paragraph) + 1
    return text[begin:text.index("\n\n", begin) + 2]


class Help(unittest.TestCase):
    maxDiff = None

    def test_every_topic_prints_its_document(self):
        self.assertGreater(len(TOPICS), 15)
        for command in (PROGRAM, ROOT / "attest"):
            for topic in TOPICS:
                self.assertEqual(said(command, topic), (0, document_of(topic), ""), topic)

    def test_without_a_topic_all_are_listed_with_their_titles(self):
        rows = [f"{topic:<12}  {document_of(topic).splitlines()[0].removeprefix('# ')}\n" for topic in TOPICS]
        self.assertEqual(said(PROGRAM), (0, "".join(rows), ""))
        code, out, err = said(ROOT / "attest")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.endswith("\n\nTopics of ./attest help TOPIC:\n" + "".join(rows)), out)

    def test_an_unknown_topic_gets_one_line(self):
        for command in (PROGRAM, ROOT / "attest"):
            self.assertEqual(said(command, "lws"), (2, "", f"attest: help: 'lws' is no topic; allowed: {', '.join(TOPICS)}\n"))
            self.assertEqual(said(command, "laws", "words")[:2], (2, ""))


if __name__ == "__main__":
    unittest.main()
