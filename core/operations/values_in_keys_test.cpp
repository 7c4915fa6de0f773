// Problems whose V is the first columns of K (Values::in_keys).
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "core/attention/layout_needs.hpp"
#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

const Problem latent{.batch = 2,
                     .query_heads = 4,
                     .kv_heads = 2,
                     .query_len = 3,
                     .key_len = 9,
                     .head_dim = 24,
                     .value_dim = 16,
                     .values = Values::in_keys,
                     .element_type = ElementType::bf16,
                     .scale = default_scale(24)};
const InputSpec normal{.family = "normal", .seed = 5};

std::string complaint_of(const char* text) {
  try {
    (void)problem_from_string(text);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(ValuesInKeys, TextSaysSoAndReadsBack) {
  EXPECT_EQ(latent.values, Values::in_keys);
  EXPECT_NE(to_string(latent).find("values_in_keys"), std::string::npos) << to_string(latent);
  EXPECT_EQ(problem_from_string(to_string(latent)), latent);
}

TEST(ValuesInKeys, MoreColumnsOfVThanOfKAreRefused) {
  EXPECT_NE(complaint_of("b1 h1 n4 d16 dv24 values_in_keys").find("'values' is in_keys"),
            std::string::npos);
  EXPECT_EQ(complaint_of("b1 h1 n4 d16 dv16 values_in_keys"), "");
}

TEST(ValuesInKeys, InputsHaveTheFirstColumnsOfKAsV) {
  for (const InputFamily* family : families_of(forward_operation)) {
    if (!family->head_dims.empty()) continue;
    const Inputs inputs = make_inputs(latent, {.family = family->name, .seed = 5});
    for (std::int64_t n = 0; n < latent.key_len; ++n) {
      for (std::int64_t d = 0; d < latent.output_dim(); ++d) {
        ASSERT_EQ(inputs[forward::v].at(1, 1, n, d), inputs[forward::k].at(1, 1, n, d))
            << family->name;
      }
    }
  }
}

TEST(ValuesInKeys, BytesCountKOnce) {
  Problem own = latent;
  own.values = Values::own;
  const double v_bytes = 2.0 * 2 * 2 * 9 * 16;
  EXPECT_EQ(tensor_bytes(own) - tensor_bytes(latent), v_bytes);
}

/// Looks at the arguments of a launch of a case.
template <typename Look>
void launch(const Case& c, const Inputs& inputs, const Look& look) {
  KernelInfo kernel;
  kernel.name = "test";
  kernel.launch = [&](const Arguments& a, Device&) { look(ForwardArguments(a)); };
  HostMemoryDevice device;
  Session session(kernel, c, inputs, device);
  session.launch();
}

TEST(ValuesInKeys, VLiesInTheMemoryOfKWhateverItsLayoutAndPages) {
  const Inputs inputs = make_inputs(latent, normal);
  for (const std::int64_t page_size : {0, 4}) {
    Case c{.kernel = "test",
           .problem = latent,
           .layouts = ForwardLayouts{.k = {DimOrder::bnhd, 3, 1}, .v = {DimOrder::hbnd, 5, 2}}};
    c.layouts.paging.page_size = page_size;
    launch(c, inputs, [](const ForwardArguments& a) {
      EXPECT_EQ(a.v, a.k);
      EXPECT_EQ(a.v_strides.row, a.k_strides.row);
      EXPECT_EQ(a.v_strides.head, a.k_strides.head);
      EXPECT_EQ(a.v_strides.batch, a.k_strides.batch);
    });
  }
}

// So that a law which changes one of the two is found, and not taken for a kernel's failure.
TEST(ValuesInKeys, VThatDiffersFromKIsNoLaunch) {
  Inputs inputs = make_inputs(latent, normal);
  inputs[forward::v].at(1, 0, 8, 15) += 1.0F;
  EXPECT_THROW(launch({.kernel = "test", .problem = latent}, inputs, [](const auto&) {}),
               std::logic_error);
}

TEST(ValuesInKeys, PagesOfKHaveNoVBesideIt) {
  Problem square = latent;
  square.value_dim = 0;
  Layouts joined;
  joined.paging = {.page_size = 4, .joins_kv = true};
  EXPECT_TRUE(why_layouts_do_not_fit({.pages = Pages::also}, square, joined));
  EXPECT_FALSE(fitted({.pages = Pages::also}, square, joined).paging.joins_kv);
  EXPECT_THROW(validate(joined.paging, square), InvalidInput);
}

}  // namespace
}  // namespace attest
