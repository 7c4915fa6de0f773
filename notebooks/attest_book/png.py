"""PNG files of charts in a sixth of the bytes: few colours in a palette instead of four bytes a pixel."""

import struct
import zlib

import numpy

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 64  # more cost a sixth more bytes, and look the same
RGBA, PALETTE = 6, 3  # colour types
FROM_THE_LEFT = 1  # the filter of every line that vl-convert writes: a byte less that of the pixel before


def chunks(png):
    """[(type, data)] of a PNG file."""
    found, at = [], len(SIGNATURE)
    while at < len(png):
        length, = struct.unpack_from(">I", png, at)
        found.append((png[at + 4:at + 8], png[at + 8:at + 8 + length]))
        at += 12 + length
    return found


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def width(png):
    """Pixels."""
    return struct.unpack_from(">I", chunks(png)[0][1])[0]


def pixels(png):
    """uint8 [line, column, 3] of an opaque picture as vl-convert writes it. Another form is our mistake, not a reader's."""
    parts = chunks(png)
    columns, lines, depth, kind = struct.unpack_from(">IIBB", parts[0][1])
    filtered = numpy.frombuffer(zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT")), numpy.uint8).reshape(lines, -1)
    assert (depth, kind) == (8, RGBA) and (filtered[:, 0] == FROM_THE_LEFT).all()
    found = numpy.cumsum(filtered[:, 1:].reshape(lines, columns, 4), axis=1, dtype=numpy.uint8)
    assert (found[:, :, 3] == 255).all()
    return found[:, :, :3]


def with_palette(picture):
    """(palette, uint8 [line, column] into it). Each next colour is the one whose pixels, together, are furthest from the colours before it."""
    codes = picture.astype(numpy.int64) @ (1 << 16, 1 << 8, 1)
    found, where, count = numpy.unique(codes, return_inverse=True, return_counts=True)
    colours = numpy.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    palette, nearest, distance = [], numpy.zeros(len(found), numpy.uint8), numpy.full(len(found), 3 * 256 ** 2)
    while len(palette) < COLOURS and distance.any():
        new = colours[(count * distance).argmax()]
        from_new = ((colours - new) ** 2).sum(axis=1)
        nearest[from_new < distance] = len(palette)
        distance = numpy.minimum(distance, from_new)
        palette.append(new)
    return numpy.array(palette, numpy.uint8), nearest[where].reshape(picture.shape[:2])


def in_few_colours(png):
    """The same picture with a palette of COLOURS; exact where it has no more."""
    palette, picture = with_palette(pixels(png))
    lines, columns = picture.shape
    unfiltered = numpy.insert(picture, 0, 0, axis=1).tobytes()
    return b"".join([SIGNATURE, chunk(b"IHDR", struct.pack(">IIBBBBB", columns, lines, 8, PALETTE, 0, 0, 0)), chunk(b"PLTE", palette.tobytes()),
                     chunk(b"IDAT", zlib.compress(unfiltered, 9)), chunk(b"IEND", b"")])
