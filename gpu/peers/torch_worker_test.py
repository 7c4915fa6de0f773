"""What the worker keeps between requests, with stand-ins for PyTorch and for the GPU's memory."""

import importlib.util
import pathlib
import sys
import unittest
from unittest import mock

TENSORS = {name: {"at": 0, "shape": [1, 1, 2, 8], "strides": [16, 16, 8, 1]} for name in "qkvo"}


def worker_module():
    """A fresh copy, which finds a mock where it looks for PyTorch."""
    spec = importlib.util.spec_from_file_location("torch_worker", pathlib.Path(__file__).with_name("torch_worker.py"))
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"torch": mock.MagicMock()}):
        spec.loader.exec_module(module)
    module.torch.cuda.Event.return_value.elapsed_time.return_value = 6.0
    return module


def request(kernel, launches=3, scale=1.0, **more):
    return {"do": "run", "kernel": kernel, "type": "fp16", "mask": "none", "scale": scale, "plan": {}, "launches": launches,
            "lse": TENSORS["q"], **TENSORS, **more}


class Requests(unittest.TestCase):
    def setUp(self):
        self.module = worker_module()
        self.module.Memory = mock.MagicMock
        self.made, self.launched = [], []
        for name in ("torch_flash", "torch_efficient"):
            self.module.KERNELS[name] = self.kernel(name)
        self.module.gpu_kernels_of = mock.Mock(side_effect=lambda run: ["flash fmha"])
        self.worker = self.module.Worker()

    def kernel(self, name):
        def make(problem):
            self.made.append((name, problem.scale))
            return lambda: self.launched.append(name), lambda made: (mock.Mock(), mock.Mock())
        return make

    def test_rivals_that_take_turns_on_a_problem_are_made_ready_once(self):
        for _ in range(3):
            for name in ("torch_flash", "torch_efficient"):
                self.assertEqual(self.worker.answer(request(name))["ms"], 2.0)
        self.assertEqual(self.made, [("torch_flash", 1.0), ("torch_efficient", 1.0)])
        self.assertEqual(len(self.launched), 3 * 2 * 3)
        self.assertEqual(self.module.gpu_kernels_of.call_count, 2)

    def test_another_problem_gets_its_own_and_the_first_is_let_go(self):
        for scale in (1.0, 0.5, 1.0):
            self.worker.answer(request("torch_flash", scale=scale))
            self.assertEqual(len(self.worker.ready), 1)
        self.assertEqual([scale for _, scale in self.made], [1.0, 0.5, 1.0])

    def test_nothing_is_kept_of_memory_that_is_given_back(self):
        self.worker.answer(request("torch_flash"))
        self.worker.answer({"do": "close"})
        self.assertEqual(self.worker.ready, {})
        self.worker.answer({"do": "open", "handle": "00", "bytes": 64})
        self.worker.answer(request("torch_flash"))
        self.assertEqual(len(self.made), 2)

    def test_an_answer_is_written_without_being_timed(self):
        self.assertEqual(self.worker.answer(request("torch_flash", launches=0)), {})
        self.assertEqual(self.launched, ["torch_flash"])
        self.assertEqual(self.module.gpu_kernels_of.call_count, 0)

    def test_what_the_last_timed_launch_made_is_written_after_its_time_is_taken(self):
        written, stopped = [], []
        self.module.torch.cuda.Event.return_value.synchronize.side_effect = lambda: stopped.append(len(self.launched))
        self.worker.write = lambda problem, results, made: written.append((made, len(stopped)))
        numbers = iter(range(9))
        self.module.KERNELS["torch_flash"] = lambda problem: (lambda: next(numbers), lambda made: (mock.Mock(), mock.Mock()))
        self.worker.answer(request("torch_flash", launches=3))
        self.assertEqual(written, [(2, 1)])

    def test_another_backend_than_the_one_asked_for_is_an_error(self):
        self.module.gpu_kernels_of = mock.Mock(return_value=["fmha_cutlass"])
        with self.assertRaisesRegex(RuntimeError, "PyTorch ran another backend: fmha_cutlass"):
            self.worker.answer(request("torch_flash"))


    def test_what_was_made_ready_from_other_values_is_made_again(self):
        for copied in (True, False, True):
            self.worker.answer(request("torch_flash", copied=copied))
        self.assertEqual(len(self.made), 2)

    def test_a_graph_is_captured_once_a_problem_and_its_replays_are_timed(self):
        graph = self.module.torch.cuda.CUDAGraph.return_value
        for turn in range(2):
            self.launched.clear()
            graph.replay.reset_mock()
            self.assertEqual(self.worker.answer(request("torch_flash", 5, graph=True))["ms"], 6.0 / 5)
            self.assertEqual(graph.replay.call_count, 1)  # all five
            self.assertEqual(len(self.launched), 1 + 5 if turn == 0 else 0)  # one before the capture
        self.assertEqual(self.module.torch.cuda.graph.call_count, 1)
        self.worker.answer(request("torch_flash", graph=False))
        self.assertEqual(graph.replay.call_count, 1)
        self.worker.answer(request("torch_flash", 3, graph=True))
        self.worker.answer(request("torch_flash", scale=0.5, graph=True))
        self.assertEqual(self.module.torch.cuda.graph.call_count, 3)

    def test_outputs_of_a_graph_are_those_that_its_replays_write(self):
        written, numbers = [], iter(range(9))
        self.worker.write = lambda problem, results, made: written.append(made)
        self.module.KERNELS["torch_flash"] = lambda problem: (lambda: next(numbers), lambda made: (mock.Mock(), mock.Mock()))
        for _ in range(2):
            self.worker.answer(request("torch_flash", graph=True))
        self.assertEqual(written, [3, 3])  # 0 was made before the capture of three

    def test_a_launch_that_cannot_be_captured_says_so(self):
        self.module.torch.cuda.graph.return_value.__exit__.return_value = False
        count = iter(range(9))

        def run():
            if next(count) == 1:
                raise ValueError("a host copy")
        self.module.KERNELS["torch_flash"] = lambda problem: (run, None)
        with self.assertRaisesRegex(RuntimeError, "torch_flash cannot be captured in a CUDA graph: ValueError: a host copy"):
            self.worker.answer(request("torch_flash", graph=True))

    def test_arrays_of_lengths_and_pages_reach_the_kernel(self):
        seen = []
        self.module.KERNELS["torch_flash"] = lambda problem: (seen.append(problem) or (lambda: None, None))
        self.worker.answer(request("torch_flash"))
        array = {"at": 64, "shape": [1, 3], "strides": [3, 1]}
        self.worker.answer(request("torch_flash", query_starts=array, key_starts=array, most_queries=2, most_keys=7))
        self.worker.answer(request("torch_flash", pages=array, key_lengths=array))
        plain, packed, paged = seen
        self.assertEqual([plain.query_starts, plain.key_starts, plain.pages, plain.key_lengths], [None] * 4)
        self.assertEqual((packed.most_queries, packed.most_keys), (2, 7))
        self.assertIsNotNone(packed.query_starts)
        self.assertIsNotNone(paged.pages)
        self.assertIsNotNone(paged.key_lengths)


    def test_a_backward_pass_writes_gradients_and_reads_o_and_lse(self):
        tensors = {name: {**TENSORS["q"], "at": 64 * i} for i, name in enumerate(("d_o", "dq", "dk", "dv"))}
        self.module.Memory = mock.Mock()
        self.worker.memory.tensor = lambda where, dtype: written.setdefault(where["at"], mock.Mock(at=where["at"]))
        written, seen = {}, []
        self.module.KERNELS["torch_flash_backward"] = lambda problem: (lambda: seen.append(problem) or (1, 2, 3), tuple)
        self.worker.answer(request("torch_flash_backward", launches=0, **tensors))
        problem, = seen
        self.assertEqual(problem.d_o.at, tensors["d_o"]["at"])
        for value, name in enumerate(("dq", "dk", "dv"), 1):
            written[tensors[name]["at"]].copy_.assert_called_once_with(value)
        self.assertEqual(len(problem.outputs), 3)

    def test_as_many_results_as_outputs_or_an_error(self):
        self.module.KERNELS["torch_flash"] = lambda problem: (lambda: (1, 2, 3), tuple)
        with self.assertRaises(ValueError):
            self.worker.answer(request("torch_flash", launches=0))


class Versions(unittest.TestCase):
    def test_packages_are_named_where_they_are_installed(self):
        module = worker_module()
        module.torch.__version__ = "9.9"
        missing = module.importlib.metadata.PackageNotFoundError

        def version(package):
            if package not in installed:
                raise missing(package)
            return installed[package]

        installed = {"triton": "3.5"}
        with mock.patch.object(module.importlib.metadata, "version", side_effect=version):
            self.assertEqual(module.versions(), ["PyTorch 9.9", "Triton 3.5"])
            installed["fa3_fwd"] = "0.0.3"
            self.assertEqual(module.versions()[-1], "FlashAttention-3, fa3_fwd 0.0.3")
            installed.clear()
            self.assertEqual(module.versions(), ["PyTorch 9.9"])
            module.torch.backends.cudnn.version = lambda: 91902
            self.assertEqual(module.versions(), ["PyTorch 9.9", "cuDNN 9.19.2"])


if __name__ == "__main__":
    unittest.main()
