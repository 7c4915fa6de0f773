"""Cuts planted bugs: makes the sources of mutants out of today's kernels.

    python3 verify/mutants/cut.py --source TREE --out FOLDER [--only-named-in FILE...]

Prints `source PATH` for each file to compile and `depends PATH` for each file that was read; CMake runs it when one of these changes. A KERNEL.mutants file
names a kernel and holds its mutants:

    kernel: gpu/kernels/k3_sequence_parallel.cu

    === c39_output_not_rescaled
    claim: C39
    summary: the output is not rescaled when the running maximum rises
    killed_by: within_bound
    --- correct
    text that occurs exactly once in the kernel
    --- planted
    what stands there instead

The kernel's text is copied with that one edit, in namespace mutant_NAME, and registered as `mutant/NAME`: a mutant always is today's kernel plus its
bug. A kernel in a folder of its own, NAME/NAME.cu, is a family: headers of its folder, and those beside the folder, which families share, become part of the
copy and may be edited like it. The pairs of the section `=== family` are edits of every mutant.
"""

import argparse
import dataclasses
import pathlib
import re
import sys

KEYS = ("claim", "summary", "killed_by")
TOGETHER = 8  # mutants of a source: most of what compiling one costs are its headers
INCLUDE = '#include "{}"\n'


class Wrong(Exception):
    """What is wrong with a file, in one sentence."""


@dataclasses.dataclass
class Mutant:
    name: str
    facts: dict[str, str]
    edits: list[tuple[str, str]]  # correct, planted


def pairs(text, where):
    """The edits of a section."""
    parts = re.split(r"^--- (correct|planted)\n", text, flags=re.MULTILINE)[1:]
    kinds, texts = parts[::2], [part.strip("\n") for part in parts[1::2]]
    if not kinds or kinds != ["correct", "planted"] * (len(kinds) // 2):
        raise Wrong(f"{where}: '--- correct' and '--- planted' must follow each other")
    return list(zip(texts[::2], texts[1::2]))


def read(path):
    """(kernel, edits of the family, mutants) of a file."""
    head, *sections = re.split(r"^=== ", path.read_text(), flags=re.MULTILINE)
    kernel = re.search(r"^kernel: (\S+)$", head, flags=re.MULTILINE)
    if not kernel:
        raise Wrong(f"{path.name}: the line 'kernel: ...' is missing")
    family, mutants = [], []
    for section in sections:
        name, _, text = section.partition("\n")
        where = f"{path.name}: {name}"
        if name == "family":
            family = pairs(text, where)
            continue
        facts = dict(re.findall(r"^(\w+): (.+)$", text.partition("--- correct")[0], flags=re.MULTILINE))
        if set(facts) != set(KEYS):
            raise Wrong(f"{where}: has the lines {', '.join(sorted(facts))}; wanted: {', '.join(KEYS)}")
        if any(mutant.name == name for mutant in mutants):
            raise Wrong(f"{where}: is there twice")
        mutants.append(Mutant(name, facts, pairs(text, where)))
        if len(mutants[-1].edits) != 1:
            raise Wrong(f"{where}: has {len(mutants[-1].edits)} edits; a mutant is one")
    return kernel[1], family, mutants


def replaced_once(code, correct, planted, where, kernel):
    if code.count(correct) != 1:
        raise Wrong(f"{where}: this text occurs {code.count(correct)} times in {kernel}, once is wanted:\n{correct}")
    return code.replace(correct, planted)


class Tree:
    """Files of the project, and which of them were read."""

    def __init__(self, root):
        self.root, self.read_files = pathlib.Path(root), []

    def text(self, name):
        path = self.root / name
        if not path.is_file():
            raise Wrong(f"there is no {name}")
        if path not in self.read_files:
            self.read_files.append(path)
        return path.read_text()

    def kernel(self, name):
        """What mutants of a kernel are copies of."""
        folder, stem = pathlib.PurePosixPath(name).parent, pathlib.PurePosixPath(name).stem
        if folder.name == stem:
            return self.flattened(name, rf"(?:{re.escape(str(folder))}|{re.escape(str(folder.parent))})/[^/\"]+", set())
        return f'#line 1 "{name}"\n{self.text(name)}'

    def flattened(self, name, header, seen):
        """The file with the headers of that pattern in place of their #include lines, each once."""
        result, line = f'#line 1 "{name}"\n', 1
        rest = self.text(name).replace("#pragma once\n", "\n")
        while found := re.search(rf'#include "({header})"\n', rest):
            before, rest = rest[:found.start()], rest[found.end():]
            line += before.count("\n") + 1
            flat = ""
            if found[1] not in seen:
                seen.add(found[1])
                flat = self.flattened(found[1], header, seen)
            result += f'{before}{flat}\n#line {line} "{name}"\n'
        return result + rest


def planted(mutant, code, where, kernel):
    """The source of a mutant: a copy with its edit, registered under its name."""
    for edit in mutant.edits:
        code = replaced_once(code, *edit, where, kernel)
    code = code.replace("namespace attest {", f"namespace attest {{ namespace mutant_{mutant.name} {{")
    code = code.replace("}  // namespace attest", "} }  // namespace attest")
    begin = re.search(r"const KernelRegistration registration[({]", code)
    if not begin:
        raise Wrong(f"{where}: {kernel} registers no kernel")
    names = ", ".join(f'"{text}"' for text in (f"mutant/{mutant.name}", *(mutant.facts[key] for key in ("summary", "claim", "killed_by"))))
    return replaced_once(code, begin[0], f"const MutantRegistration registration{begin[0][-1]}{{{names}}},", where, kernel)


def write(path, text):
    """Leaves a file alone that has this text already: nobody compiles it again."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def cut(source, out, is_wanted=lambda name: True):
    """Writes the sources. Returns (files to compile, files that were read)."""
    tree, together = Tree(source), {}
    out.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(source) / "verify/mutants"
    for path in sorted(folder.glob("*.mutants")):
        tree.text(path.relative_to(tree.root))
        kernel, family, mutants = read(path)
        code = tree.kernel(kernel)
        for edit in family:
            code = replaced_once(code, *edit, f"{path.name}: family", kernel)
        suffix = pathlib.PurePosixPath(kernel).suffix
        for number, mutant in enumerate(sorted(mutants, key=lambda mutant: mutant.name)):
            write(out / f"{mutant.name}{suffix}", planted(mutant, code, f"{path.name}: {mutant.name}", kernel))
            if is_wanted(mutant.name):
                # The compiler then says of an error: included from verify/mutants/NAME.
                lines = f'#line 1 "verify/mutants/{mutant.name}"\n' + INCLUDE.format(out / f"{mutant.name}{suffix}")
                batch = out / f"{path.stem}_{number // TOGETHER}{suffix}"
                together[batch] = together.get(batch, "") + lines
    for batch, text in together.items():
        write(batch, text)
    return list(together), tree.read_files


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--source", required=True, type=pathlib.Path)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    arguments.add_argument("--only-named-in", nargs="*", type=pathlib.Path, help="compile only mutants that one of these files names")
    options = arguments.parse_args()
    named = None if options.only_named_in is None else "".join(path.read_text() for path in options.only_named_in)
    try:
        sources, read_files = cut(options.source, options.out, lambda name: named is None or name in named)
    except Wrong as wrong:
        sys.exit(f"verify/mutants: {wrong}")
    print("\n".join([*(f"source {path}" for path in sources), *(f"depends {path}" for path in read_files)]))


if __name__ == "__main__":
    main()
