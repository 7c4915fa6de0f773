#include "cpu_reference/reference.hpp"

#include "cpu_reference/forward/device_reference.hpp"

namespace attest {
namespace {

const ReferenceRegistration registration{
    {.operation = &forward_operation,
     .exact =
         [](const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
           return best_answer(problem, inputs, roundings.as<PrecisionPlan>());
         },
     .certify = certify_rows}};

}  // namespace
}  // namespace attest
