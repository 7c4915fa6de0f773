"""What a reader of a solution would look at twice, by its text: which libraries it calls instead of computing, what it falls back to, what it looks
into. Never a verdict: whoever wants to hide hides; what computes is judged by its numbers."""

import ast
import pathlib

LIBRARIES = ("flash_attn", "flash_attn_interface", "xformers", "flashinfer", "sageattention", "cudnn")
CALLS = ("scaled_dot_product_attention", "dot_product_attention", "flex_attention", "memory_efficient_attention", "flash_attn_func")
LOOKED_INTO = ("ctypes", "gc", "inspect", "mmap", "signal", "socket", "subprocess", "threading", "multiprocessing")


def _imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def of(text):
    """[sentence] of FILE.py:NAME; of another text, or one that is no Python, none."""
    file = pathlib.Path(text.rpartition(":")[0])
    try:
        tree = ast.parse(file.read_bytes()) if file.suffix == ".py" else ast.Module([], [])
    except (OSError, SyntaxError, ValueError):
        return []
    imported = sorted(set(_imports(tree)))
    names = {node.attr if isinstance(node, ast.Attribute) else node.id for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))}
    flags = [f"imports {name}" for name in imported if name in LIBRARIES + LOOKED_INTO]
    flags += [f"calls {name}" for name in CALLS if name in names]
    if any(isinstance(node, ast.Try) and any(isinstance(inner, ast.Return) for handler in node.handlers for inner in ast.walk(handler))
           for node in ast.walk(tree)):
        flags.append("returns something else where an exception is raised")
    decorators = [each.func if isinstance(each, ast.Call) else each for node in ast.walk(tree) for each in getattr(node, "decorator_list", ())]
    if any(getattr(each, "attr", getattr(each, "id", "")) == "kernel" for each in decorators):
        flags.append("declares itself, which does not count")
    return flags
