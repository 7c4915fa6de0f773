#pragma once

#include "core/run/kernel.hpp"

namespace attest {

/// How the fields of a Problem are drawn that only one operation has. The function draws from
/// RapidCheck, inside rc::gen::exec, after the fields that all operations share.
struct OwnFieldsRegistration {
  OwnFieldsRegistration(const Operation& operation,
                        void (*draw)(const KernelInfo& kernel, Problem& problem));
};

/// Does nothing for an operation without fields of its own.
void draw_own_fields(const KernelInfo& kernel, Problem& problem);

}  // namespace attest
