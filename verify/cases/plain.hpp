#pragma once

#include "core/run/kernel.hpp"

namespace attest {
/// The problem under the mask, without a window.
[[nodiscard]] Problem with_prefix_mask(Problem problem, Mask mask);

/// The problem without any feature (problem_fields()), and under the first mask without a window
/// that the kernel has, if it has one.
[[nodiscard]] Problem plain_problem(const KernelInfo& kernel, Problem problem);

/// Registers a function that draws the fields of a Problem which only one operation has. It draws
/// from RapidCheck, inside rc::gen::exec, after the fields that all operations share.
struct OwnFieldsRegistration {
  OwnFieldsRegistration(const Operation& operation,
                        void (*draw)(const KernelInfo& kernel, Problem& problem));
};

/// Draws the operation's own fields; does nothing for an operation without any.
void draw_own_fields(const KernelInfo& kernel, Problem& problem);

}  // namespace attest
