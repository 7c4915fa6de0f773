"""Where labels of a scatter plot go so that they hide neither points nor each other. In pixels, y downwards."""

import itertools

CHARACTER, LINE = 5.4, 13.0  # of 11-pixel sans-serif text: a character's mean width, rounded up, and a line's height
POINT = 5.0                  # half the side of a point's square


def overlap(a, b):
    """Of boxes (left, top, right, bottom), in square pixels."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def candidates(x, y, text):
    """Boxes beside, above and below a point, nearest first."""
    width, half = CHARACTER * len(text), LINE / 2
    for gap in (POINT + 2, 2 * POINT + 2, 4 * POINT):
        for left, middle in ((x + gap, y), (x - gap - width, y), (x - width / 2, y - gap - half), (x - width / 2, y + gap + half),
                             (x + POINT, y - gap - half), (x + POINT, y + gap + half),
                             (x - POINT - width, y - gap - half), (x - POINT - width, y + gap + half)):
            yield left, middle - half, left + width, middle + half


def place(points, width, height, lines=()):
    """[(x, y, text)] in a panel with vertical lines at some x: the left end and the middle line of each text, in the order of
    the points. Where every place is taken it is the one that hides least."""
    marks = [(x - POINT, y - POINT, x + POINT, y + POINT) for x, y, _ in points]
    marks += [(x - 1.0, 0.0, x + 1.0, height) for x in lines]
    boxes = {}
    for i in sorted(range(len(points)), key=lambda i: -points[i][0]):  # the panel's edge leaves the rightmost the fewest places
        def hidden(box):
            outside = (box[2] - box[0]) * (box[3] - box[1]) - overlap(box, (0.0, 0.0, width, height))
            return outside + sum(overlap(box, other) for other in itertools.chain(marks, boxes.values()))
        boxes[i] = min(candidates(*points[i]), key=hidden)
    return [(boxes[i][0], (boxes[i][1] + boxes[i][3]) / 2) for i in range(len(points))]
