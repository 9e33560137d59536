#include "contract/nearest.h"

#include <gtest/gtest.h>

namespace muster::contract {
namespace {

const std::vector<std::string_view> kNames = {"memory", "cpus", "gpus", "output_file",
                                              "output_mode"};

TEST(NearestTest, FindsSlipsAndTheWholeOfABeginning) {
  EXPECT_EQ(Nearest("cpu", kNames), "cpus");
  EXPECT_EQ(Nearest("memroy", kNames), "memory");
  EXPECT_EQ(Nearest("mem", kNames), "memory");
  EXPECT_EQ(Nearest("Mem-", kNames), "memory");
  EXPECT_EQ(Nearest("outputmode", kNames), "output_mode");
}

TEST(NearestTest, GuessesNothingFromALetterOrFromABeginningOfSeveral) {
  EXPECT_EQ(Nearest("m", kNames), "");
  EXPECT_EQ(Nearest("outp", kNames), "");
  EXPECT_EQ(Nearest("xyz", kNames), "");
}

}  // namespace
}  // namespace muster::contract
