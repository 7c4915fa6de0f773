#include "cpu_reference/reference.hpp"

#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

const ReferenceRegistration registration{
    {.operation = &forward_operation,
     .exact =
         [](const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
           return exact_answer(problem, inputs, roundings.as<PrecisionPlan>());
         },
     .certify = certify_rows}};

}  // namespace
}  // namespace attest
