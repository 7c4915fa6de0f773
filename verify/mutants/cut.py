"""Cuts planted bugs: makes the sources of mutants out of today's kernels.

    python3 verify/mutants/cut.py --source TREE --out FOLDER [--named-in FILE...] [--depfile FILE]
    python3 verify/mutants/cut.py --source TREE --out FOLDER --list

The first is a step of the build; the second, for CMake, prints the paths of what that step makes: `all PATH` and `sample PATH`, a source of
up to eight mutants and one of those of a KERNEL.mutants file that the tests judge (sample.py). A KERNEL.mutants file names a kernel and holds its mutants:

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
bug. Headers of device code, .cuh, beside the kernel become part of the copy and may be edited like it. A kernel in a folder of its own, NAME/NAME.cu, is a
family: so do all headers of its folder, and those beside the folder, which families share. The pairs of the section `=== family` are edits of every mutant.
Below the line of the kernel, lines `with: cpu_reference/kernels/a_header.hpp` name other headers that become part of the copy.
"""

import argparse
import dataclasses
import pathlib
import re
import sys

import sample

KEYS = ("claim", "summary", "killed_by")
TOGETHER = 8  # mutants of a source: most of what compiling one costs are its headers


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
    """(kernel, other headers of the copy, edits of the family, mutants) of a file."""
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
    return kernel[1], re.findall(r"^with: (\S+)$", head, flags=re.MULTILINE), family, mutants


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

    def kernel(self, name, headers=()):
        """What mutants of a kernel are copies of; `headers` become part of it."""
        folder, stem = pathlib.PurePosixPath(name).parent, pathlib.PurePosixPath(name).stem
        if folder.name == stem:
            return self.flattened(name, rf"(?:{re.escape(str(folder))}|{re.escape(str(folder.parent))})/[^/\"]+", set())
        return self.flattened(name, "|".join([rf"{re.escape(str(folder))}/[^/\"]+\.cuh", *map(re.escape, headers)]), set())

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


def mutants_files(source):
    return sorted((pathlib.Path(source) / "verify/mutants").glob("*.mutants"))


def outputs(source, out):
    """(sources of all mutants, sources of the sample) that cut() makes: functions of the .mutants files alone."""
    everything, some = [], []
    for path in mutants_files(source):
        kernel, _, _, mutants = read(path)
        suffix = pathlib.PurePosixPath(kernel).suffix
        some.append(out / f"sample/{path.stem}{suffix}")
        everything += [out / f"all/{path.stem}_{batch}{suffix}" for batch in range(-(-len(mutants) // TOGETHER))]
    return everything, some


def batch(names, suffix):
    """A source of several mutants. The compiler then says of an error: included from verify/mutants/NAME."""
    return "".join(f'#line 1 "verify/mutants/{name}"\n#include "../{name}{suffix}"\n' for name in names)


def cut(source, out, named=""):
    """Writes the sources, and what sample.py says of them. Returns the files that were read."""
    tree, fingerprints = Tree(source), sample.Fingerprints(source)
    for folder in (out / "all", out / "sample"):
        folder.mkdir(parents=True, exist_ok=True)
    record = sample.read_record(source)
    choice = sample.Choice()
    for path in mutants_files(source):
        tree.text(path.relative_to(tree.root))
        kernel, headers, family, mutants = read(path)
        code = tree.kernel(kernel, headers)
        for edit in family:
            code = replaced_once(code, *edit, f"{path.name}: family", kernel)
        suffix = pathlib.PurePosixPath(kernel).suffix
        mutants.sort(key=lambda mutant: mutant.name)
        for mutant in mutants:
            write(out / f"{mutant.name}{suffix}", planted(mutant, code, f"{path.name}: {mutant.name}", kernel))
            fingerprints.add(mutant.name, str(mutant), code)
        names = [mutant.name for mutant in mutants]
        for number in range(0, len(names), TOGETHER):
            write(out / f"all/{path.stem}_{number // TOGETHER}{suffix}", batch(names[number:number + TOGETHER], suffix))
        write(out / f"sample/{path.stem}{suffix}", batch(choice.of(names, fingerprints, record, named), suffix))
    write(out / "fingerprints.tsv", fingerprints.text())
    write(out / "sample.txt", choice.report())
    return [*tree.read_files, *fingerprints.read_files, *(path for path in [sample.record_of(source)] if path.is_file())]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--source", required=True, type=pathlib.Path)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    arguments.add_argument("--list", action="store_true", help="only print what would be made")
    arguments.add_argument("--named-in", nargs="*", default=[], type=pathlib.Path, help="mutants that one of these files names belong to the sample")
    arguments.add_argument("--depfile", type=pathlib.Path, help="where to write, for ninja, what was read")
    options = arguments.parse_args()
    try:
        if options.list:
            everything, some = outputs(options.source, options.out)
            print("\n".join([*(f"all {path}" for path in everything), *(f"sample {path}" for path in some)]))
            return
        read_files = cut(options.source, options.out, "".join(path.read_text() for path in options.named_in))
    except Wrong as wrong:
        sys.exit(f"verify/mutants: {wrong}")
    if options.depfile:
        names = " ".join(str(path).replace(" ", "\\ ") for path in [*read_files, *options.named_in])
        options.depfile.write_text(f"{options.out / 'fingerprints.tsv'}: {names}\n")


if __name__ == "__main__":
    main()
