"""The module that FILE.py or MODULE names, and what it holds."""

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


def loaded(text):
    """The function of FILE.py:FUNCTION or MODULE:FUNCTION, and its module."""
    where, _, name = text.rpartition(":")
    found = made = module(where)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        names = sorted(each for each, value in vars(made).items() if callable(value) and getattr(value, "__module__", "") == made.__name__)
        raise LookupError(f"no function '{name}'; allowed: {', '.join(names) or 'none is there'}")
    return found, made
