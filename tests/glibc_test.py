"""usage: glibc_test.py PROGRAM: the program asks for no glibc newer than 2.34, so that it starts on Ubuntu 22.04 and RHEL 9."""

import re
import subprocess
import sys

NEWEST = (2, 34)

program = sys.argv[1]
symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
asked = re.findall(r"\(?GLIBC_(\d+)\.(\d+)[.\d]*\)?\s+(\S+)$", symbols, re.MULTILINE)
if len(asked) < 100:
    sys.exit(f"{program}: only {len(asked)} symbols of glibc found: what does objdump -T print?")
newer = sorted({f"{name} ({major}.{minor})" for major, minor, name in asked if (int(major), int(minor)) > NEWEST})
if newer:
    sys.exit(f"{program}: asks glibc for {', '.join(newer)}; allowed: {'.'.join(map(str, NEWEST))} and older (cli/old_glibc.cpp)")
print(f"{len(asked)} symbols of glibc, none newer than {'.'.join(map(str, NEWEST))}")
