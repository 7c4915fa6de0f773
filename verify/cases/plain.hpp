#pragma once

#include "core/run/kernel.hpp"

namespace attest {
/// The problem under the mask, without a window.
[[nodiscard]] Problem with_prefix_mask(Problem problem, Mask mask);

/// The problem without any feature (problem_fields()), and under the first mask without a window
/// that the kernel has, if it has one.
[[nodiscard]] Problem plain_problem(const KernelInfo& kernel, Problem problem);

/// How the fields of a Problem are drawn that only one operation has. The function draws from
/// RapidCheck, inside rc::gen::exec, after the fields that all operations share.
struct OwnFieldsRegistration {
  OwnFieldsRegistration(const Operation& operation,
                        void (*draw)(const KernelInfo& kernel, Problem& problem));
};

/// Does nothing for an operation without fields of its own.
void draw_own_fields(const KernelInfo& kernel, Problem& problem);

}  // namespace attest
