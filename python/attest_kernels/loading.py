"""The module that FILE.py or MODULE names."""

import importlib
import importlib.util
import pathlib
import sys


def module(where):
    if not where.endswith(".py"):
        return importlib.import_module(where)
    file = pathlib.Path(where).resolve()
    sys.path.insert(0, str(file.parent))  # what it imports may stand beside it
    spec = importlib.util.spec_from_file_location(file.stem, file)
    made = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = made
    spec.loader.exec_module(made)
    return made
