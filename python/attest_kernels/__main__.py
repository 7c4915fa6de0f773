"""The program, under the package's name: python -m attest_kernels verify --python my_kernels.py:flash."""

import os
import sys

from attest_kernels import program


def main():
    try:
        file = program.path()
        for name, value in program.environment().items():
            os.environ.setdefault(name, value)
        os.execv(file, [file, *sys.argv[1:]])
    except (program.ProgramError, OSError) as error:
        print(f"attest-kernels: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
