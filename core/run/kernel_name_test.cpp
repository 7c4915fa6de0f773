#include "core/run/kernel_name.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(KernelName, keepsTemplateArgumentsAndDropsNamespacesResultAndParameters) {
  EXPECT_EQ(kernel_name_of("void attest::(anonymous namespace)::k3<2>(attest::Arguments)"),
            "k3<2>");
  EXPECT_EQ(kernel_name_of("attest::(anonymous namespace)::k2(attest::Arguments)"), "k2");
  EXPECT_EQ(kernel_name_of("void a::f<b::X, std::integral_constant<int, 4> >(a::Y<b::Z>)"),
            "f<X, integral_constant<int, 4> >");
}

TEST(KernelName, isTheSameWhetherNumbersNameTheirTypeOrNot) {
  EXPECT_EQ(kernel_name_of("void k<(int)8, (bool)1>(int)"), "k<8, 1>");
  EXPECT_EQ(kernel_name_of("void k<8, 1>(int)"), "k<8, 1>");
  EXPECT_EQ(kernel_name_of("void attest::k<2, (attest::Mode)1>(attest::A)"), "k<2, 1>");
  EXPECT_EQ(kernel_name_of("void k<(int)-8>(int)"), "k<-8>");
}

TEST(KernelName, isTheSameOnTheExecutorAndOnTheGpu) {
  EXPECT_EQ(kernel_name_of("void attest::fa2_mma<(attest::Executor)1, attest::Shape<64> >(int)"),
            kernel_name_of("void attest::fa2_mma<(attest::Executor)2, attest::Shape<64> >(int)"));
  EXPECT_EQ(kernel_name_of("void attest::fa2_mma<(attest::Executor)2, attest::Shape<64> >(int)"),
            "fa2_mma<Shape<64> >");
  EXPECT_EQ(kernel_name_of("void k<(attest::Executor)1>(int)"), "k");
}

TEST(KernelName, isTheSameWhetherLastMembersThatAreZeroAreSaidOrNot) {
  EXPECT_EQ(kernel_name_of("void k<S{64, 0, 2, 0, true, false, false, 0}>(int)"),
            kernel_name_of("void k<S{64, 0, 2, 0, true}>(int)"));
  EXPECT_EQ(kernel_name_of("void k<S{64, 10}, T{20}>(int)"), "k<S{64, 10}, T{20}>");
}

TEST(KernelName, isTheSameForTheExecutorsSixteenBitTypesAndForThoseOfNvcc) {
  const std::string_view parameters =
      ", 128, 64, (attest::Scheduling::Value)1>(attest::Arguments, attest::TileLaunch)";
  const auto named = [&](std::string_view type) {
    return kernel_name_of("void attest::(anonymous namespace)::k<" + std::string(type) +
                          std::string(parameters));
  };
  EXPECT_EQ(named("__half"), "k<__half, 128, 64, 1>");
  EXPECT_EQ(named("attest::simt::SixteenBitFloat<&attest::simt::half_bits, "
                  "&attest::simt::half_value>"),
            named("__half"));
  EXPECT_EQ(named("attest::simt::SixteenBitFloat<&attest::simt::bfloat16_bits, "
                  "&attest::simt::bfloat16_value>"),
            named("__nv_bfloat16"));
  EXPECT_EQ(kernel_name_of("void attest::k<attest::simt::SixteenBitFloat<&attest::simt::half_bits, "
                           "&attest::simt::half_value> >(attest::Arguments)"),
            "k<__half>")
      << "the last argument";
  // As c++filt has them.
  EXPECT_EQ(named("attest::simt::SixteenBitFloat<&(attest::simt::half_bits(float)), "
                  "&(attest::simt::half_value(unsigned short))>"),
            named("__half"));
}

TEST(KernelName, dropsTheNamespaceThatStandsForAnAnonymousOne) {
  EXPECT_EQ(kernel_name_of("void attest::_GLOBAL__N__1f_5_k1_cu_ab::k1(attest::Arguments)"), "k1");
}

TEST(KernelName, leavesABareNameAlone) {
  EXPECT_EQ(kernel_name_of("k1_naive"), "k1_naive");
  EXPECT_EQ(kernel_name_of(""), "");
}

}  // namespace
}  // namespace attest
