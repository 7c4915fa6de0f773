"""The seeds of the fuzz targets: fuzz/corpus/TARGET.txt.

A line `=== NAME` or `=== NAME: why it is here` begins a seed, whose bytes stand below it, up to the end of the line before
the next such line or the end of the file. Between two backticks stand bytes that are no text, in hexadecimal.

    python3 fuzz/corpus.py unpack study FOLDER        puts a file a seed into the folder
    python3 fuzz/corpus.py add study NAME FILE WHY    appends the bytes of the file as a seed
"""

import pathlib
import re
import sys

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
SEED = re.compile(rb"^=== (\w+)(?:: [^\n]+)?\n(.*?)\n(?==== |\Z)", re.MULTILINE | re.DOTALL)
TEXT = re.compile(rb"([\n\t\x20-\x5f\x61-\x7e]{8,})")


def seeds(target):
    """{name: bytes}"""
    unpacked = lambda hexadecimal: bytes.fromhex(hexadecimal[1].decode())
    text = (CORPUS / f"{target}.txt").read_bytes()
    return {name.decode(): re.sub(rb"`(.*?)`", unpacked, packed) for name, packed in SEED.findall(text)}


def packed(data):
    parts = [data] if re.search(rb"^=== ", data, re.MULTILINE) else TEXT.split(data)
    for number, part in enumerate(parts):
        if part and number % 2 == 0:
            parts[number] = b"`" + part.hex().encode() + b"`"
    return b"".join(parts)


def main(command, target, *rest):
    if command == "unpack":
        folder = pathlib.Path(rest[0])
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds(target).items():
            (folder / name).write_bytes(data)
    else:
        name, file, why = rest
        with (CORPUS / f"{target}.txt").open("ab") as corpus:
            corpus.write(f"=== {name}: {why}\n".encode() + packed(pathlib.Path(file).read_bytes()) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
