#pragma once

#include <memory>
#include <string>

#include "core/run/arguments.hpp"
#include "plugin/subject_process.hpp"

namespace attest {

/// A function of Python in a process of its own (python/attest_kernels/worker.py); one that is
/// judged runs in a box.
class PythonProcess {
 public:
  /// `text`: FILE.py:FUNCTION or MODULE:FUNCTION. Throws MachineError; WorkerFault for what the
  /// function's file does.
  explicit PythonProcess(const std::string& text);
  /// One that is judged: its file is copied into the folder of its box. Throws KernelError,
  /// besides, for a file that cannot be used.
  explicit PythonProcess(const Judgeable& judged);

  /// Description of the function that worker.py or judged.py found by its probes.
  [[nodiscard]] const Json& description() const { return process_->description(); }
  /// One at a time: the function has one process. Throws KernelError and what JsonWorker does.
  void launch(const Arguments& arguments);

 private:
  std::unique_ptr<SubjectProcess> process_;
};

/// Starts Python and NumPy in a box for the next function that is judged here and needs no other
/// processes. Where that fails, that one will say why. Not for several threads.
void start_python_ahead();

}  // namespace attest
