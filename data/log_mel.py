"""What Whisper hears [Radford et al. 2022, section 2.2]: the logarithm of the power in 80 bands of pitch, 100 times a second, of 30 s of sound."""

import numpy as np

RATE, SECONDS, BANDS, WINDOW, HOP = 16000, 30, 80, 400, 160  # samples a second; samples of a window and of a step
LINEAR_UP_TO = 1000.0  # Hz


def mel_of(hertz: np.ndarray) -> np.ndarray:
    """Slaney's scale of pitch: linear up to 1,000 Hz, 15 there, and 27 steps for each factor of 6.4 above."""
    above = 15 + 27 * np.log(np.maximum(hertz, LINEAR_UP_TO) / LINEAR_UP_TO) / np.log(6.4)
    return np.where(hertz < LINEAR_UP_TO, 15 * hertz / LINEAR_UP_TO, above)


def hertz_of(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, LINEAR_UP_TO * mel / 15, LINEAR_UP_TO * 6.4 ** ((mel - 15) / 27))


def filters() -> np.ndarray:
    """[bands, frequencies of a window]: triangles that overlap by half, evenly spaced in mel up to half the rate, each of area 1 over Hz."""
    corners = hertz_of(np.linspace(0, mel_of(np.array(RATE / 2)), BANDS + 2))
    frequencies = np.arange(WINDOW // 2 + 1) * RATE / WINDOW
    left, centre, right = (corners[i : i + BANDS, None] for i in range(3))
    triangles = np.minimum((frequencies - left) / (centre - left), (right - frequencies) / (right - centre))
    return np.maximum(triangles, 0) * 2 / (right - left)


def log_mel(samples: np.ndarray) -> np.ndarray:
    """[bands, 3000] of samples in [-1, 1], with silence after them up to 30 s."""
    sound = np.zeros(RATE * SECONDS)
    sound[: len(samples)] = samples
    # A window is centred at each step, so that both ends of the sound are mirrored.
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(sound, WINDOW // 2, mode="reflect"), WINDOW)[:-1:HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(windows * hann)) ** 2
    logarithms = np.log10(np.maximum(filters() @ power.T, 1e-10))
    # Nothing further than 80 dB below the loudest counts.
    return (np.maximum(logarithms, logarithms.max() - 8) + 4) / 4
