#!/usr/bin/env python3
"""Checks in a program's machine code that the loops of instruction_rates hold what is counted: count_instructions.py PROGRAM.

Needs cuobjdump of the CUDA toolkit on the PATH. Exit code 1 if an instruction is missing or merged, 2 without loops."""
import collections
import re
import subprocess
import sys

STEPS = 128  # chains * chain_unroll (kernels.hpp)
# For each step of instruction_chains.cuh: how often which opcodes (the part before the first dot), together.
EXPECTED = {
    **{step: {"FFMA": 1} for step in ("Ffma", "FfmaMoving", "FfmaImmediate")},
    **{step: {"FADD": 1} for step in ("Fadd", "FaddMoving", "FaddRm")},
    **{step: {"FMUL": 1} for step in ("Fmul", "FmulImmediate")},
    **{step: {"MUFU": 1} for step in ("Ex2F32", "Ex2F16", "Rsqrt")},
    **{step: {"MUFU": 2} for step in ("Ex2F16x2", "Ex2Bf16x2", "TanhF16x2")},
    **{step: {"F2FP": 1} for step in ("CvtBf16x2", "CvtF16x2")},
    **{step: {"HFMA2": 1} for step in ("Hfma2Bf16", "Hfma2F16")},
    **{step: {"HMNMX2": 1} for step in ("Hmnmx2Bf16", "Hmnmx2F16")},
    "Fmnmx": {"FMNMX": 1}, "Imnmx": {"VIMNMX": 1}, "WidenF16": {"HADD2": 1}, "FloatToInt": {"F2I": 1},
    "RoundFloat": {"FRND": 1}, "ShiftAdd": {"LEA|IMAD": 1}, "Iadd3": {"IADD3": 1}, "Imad": {"IMAD": 1},
    "Lop3": {"LOP3": 1}, "Prmt": {"PRMT": 1}, "Shfl": {"SHFL": 1}, "Select": {"SEL": 1},
    "CompareSelect": {"ISETP": 1, "SEL": 1}, "Exp2Cubic": {"FADD": 3, "FFMA": 3, "FMNMX": 1, "LEA|IMAD": 1},
}


def loops(listing):
    """Yields (function, opcodes of its longest loop) of a listing by cuobjdump -sass."""
    for part in re.split(r"Function : ", listing)[1:]:
        code = re.findall(r"^\s+/\*([0-9a-f]+)\*/\s+(?:@!?U?P\d+ )?([A-Z][A-Z0-9_.]*)([^;]*);", part, re.M)
        spans = [(int(target, 16), int(at, 16)) for at, op, rest in code if op.startswith("BRA")
                 for target in re.findall(r"0x([0-9a-f]+)", rest) if int(target, 16) < int(at, 16)]
        if spans:
            first, last = max(spans, key=lambda span: span[1] - span[0])
            opcodes = (op.split(".")[0] for at, op, _ in code if first <= int(at, 16) <= last)
            yield part.split()[0], collections.Counter(opcodes)


def main(program):
    listing = subprocess.run(["cuobjdump", "-sass", program], check=True, capture_output=True, text=True).stdout
    checked, wrong = 0, 0
    for function, opcodes in loops(listing):
        step = re.search(r"chains_ofINS\d*_\d+(\w+?)EEE", function)
        if not step:
            continue
        checked += 1
        for names, count in EXPECTED[step[1]].items():
            found = sum(opcodes[name] for name in names.split("|"))
            # The loop itself may need one or two of a kind.
            if not 0 <= found - count * STEPS <= 2:
                wrong += 1
                print(f"{step[1]}: {found} {names} in the loop; counted: {count * STEPS}")
    print(f"{checked} loops, {wrong} wrong counts")
    return 2 if checked < len(EXPECTED) - 1 else int(wrong > 0)  # FaddMoving runs beside wgmma alone


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
