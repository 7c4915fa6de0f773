"""Times of PyTorch's work on a GPU."""

import statistics

import torch

ROUNDS = 15


def median_ms(work, in_a_row=1):
    times = []
    for _ in range(ROUNDS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(in_a_row):
            work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / in_a_row)
    return statistics.median(times[3:])
