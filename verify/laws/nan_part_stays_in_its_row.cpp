#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/combine.hpp"
#include "verify/judge/combine_cases.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_nan_part_stays_in_its_row {

const LawRegistration registration{
    {.name = "nan_part_stays_in_its_row",
     .statement =
         "a NaN in LSE_p, or in O_p of a part that weighs something, makes NaN of its row (of "
         "its column) and changes no other bit",
     .cost = Law::Cost::more_launches,
     .operations = {&combine_operation},
     .applies = [](Run& run) { return run.problem().rows() > 0; },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const auto drawn = [&](std::uint64_t index, std::int64_t below) {
             return random_below(run.the_case().inputs.seed, stream_nan_part, index, below);
           };
           const std::int64_t b = drawn(0, p.batch), h = drawn(1, p.query_heads),
                              n = drawn(2, p.query_len), part = drawn(3, p.parts),
                              d = drawn(4, p.head_dim);
           const bool is_in_lse = drawn(5, 2) == 0;
           constexpr float nan = std::numeric_limits<float>::quiet_NaN();
           Inputs inputs = run.inputs();
           const std::int64_t row = part * p.query_len + n;
           const bool weighs_nothing = std::isinf(inputs[combine::partial_lse].at(b, h, row, 0));
           const auto tensor = is_in_lse ? combine::partial_lse : combine::partial_o;
           inputs[tensor].at(b, h, row, is_in_lse ? 0 : d) = nan;
           const Launch launch = run.launch(run.the_case(), inputs);
           const auto is_hit = [=](OutputIndex output, std::int64_t at_b, std::int64_t at_h,
                                   std::int64_t at_n, std::int64_t at_d) {
             if (at_b != b || at_h != h || at_n != n) return false;
             return is_in_lse || (output == combine::o && at_d == d && !weighs_nothing);
           };
           const float got = launch.outputs[combine::o].at(b, h, n, d);
           if (is_hit(combine::o, b, h, n, d) && !std::isnan(got)) {
             return Check::failed_at("O", {.index = {b, h, n, d}, .got = got, .want = nan},
                                     "a NaN part was swallowed");
           }
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              agreement_of(run, {}),
                              "a NaN part reached an element that does not depend on it",
                              [&](auto... at) { return !is_hit(at...); });
         }}};

}  // namespace law_nan_part_stays_in_its_row
}  // namespace attest
