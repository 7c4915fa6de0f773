"""Values arrive bit for bit from whatever carries them."""

import unittest

import numpy

from attest_kernels import arrays


class ByDlpack:
    """An array of which only DLPack is known."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


class OnHost(unittest.TestCase):
    def test_strided_arrays_keep_their_values_by_dlpack(self):
        whole = numpy.arange(2 * 3 * 4 * 6, dtype=numpy.float32).reshape(2, 3, 4, 6)
        for array in (whole, whole.transpose(0, 2, 1, 3), whole[:, ::2], whole[..., 1:5], whole[:0], whole.astype(numpy.float16)[:, :, 1:]):
            host = arrays.on_host(ByDlpack(array), "q")
            numpy.testing.assert_array_equal(host.values, array)
            self.assertEqual(host.format, {"float32": "F32", "float16": "F16"}[array.dtype.name])

    def test_memory_of_another_device_is_not_read(self):
        with self.assertRaisesRegex(TypeError, "^k lies in memory of DLPack's device type 2; allowed: the host's"):
            arrays.on_host(ByDlpack(numpy.zeros(3, numpy.float32), (2, 0)), "k")

    def test_other_types_are_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "^v has dtype int32; allowed: float32, float16, bfloat16$"):
            arrays.on_host(numpy.zeros(3, numpy.int32), "v")
        with self.assertRaisesRegex(TypeError, "^v has DLPack's type code 0 of 64 bits"):
            arrays.on_host(ByDlpack(numpy.zeros(3, numpy.int64)), "v")


if __name__ == "__main__":
    unittest.main()
