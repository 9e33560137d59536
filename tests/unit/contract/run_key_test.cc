#include "contract/run_key.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "contract/errors.h"

namespace muster::contract {
namespace {

TEST(RunKey, LooksLikeTheDocumentedExample) {
  EXPECT_EQ((RunKey{.instance = "k7m2", .job = 42, .run = 1}).ToString(), "k7m2-42-1");
}

TEST(RunKey, LeavesRoomForWhatKubernetesAddsForAPod) {
  const RunKey longest{.instance = "zzzz", .job = UINT64_MAX, .run = UINT32_MAX};
  constexpr size_t kMaxLabel = 63;
  EXPECT_LE((longest.ToString() + "-99999-abcde").size(), kMaxLabel);
}

RC_GTEST_PROP(RunKey, ComesBackFromItsText, ()) {
  RunKey key;
  key.instance = "k7m2";
  key.job = *rc::gen::positive<uint64_t>();
  key.run = *rc::gen::positive<uint32_t>();
  const auto parsed = RunKey::Parse(key.ToString());
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == key);
}

TEST(RunKey, RefusesEveryOtherSpelling) {
  for (const char* text : {"",
                           "k7m2",
                           "k7m2-42",
                           "k7m2-42-",
                           "k7m2--1",
                           "-42-1",
                           "k7m2-0-1",
                           "k7m2-42-0",
                           "k7m2-042-1",
                           "k7m2-42-01",
                           "k7m2-42-1 ",
                           " k7m2-42-1",
                           "k7m2-42-1-1",
                           "K7m2-42-1",
                           "77m2-42-1",
                           "k7m22-42-1",
                           "k7m-42-1",
                           "k7m2-+42-1",
                           "k7m2-4x-1",
                           "k7m2-18446744073709551616-1",
                           "k7m2-1-4294967296",
                           "k7m2-42-1\n"}) {
    const auto parsed = RunKey::Parse(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(RunKey, QuotesTheTextThatItRefuses) {
  const absl::Status status = RunKey::Parse("nonsense").status();
  EXPECT_NE(status.message().find("\"nonsense\""), std::string::npos) << status;
}

TEST(Instance, IsFourLowerCaseCharactersThatBeginWithALetter) {
  EXPECT_TRUE(IsInstance("abcd"));
  EXPECT_TRUE(IsInstance("a123"));
  EXPECT_FALSE(IsInstance("1abc"));
  EXPECT_FALSE(IsInstance("abc"));
  EXPECT_FALSE(IsInstance("abcde"));
  EXPECT_FALSE(IsInstance("ABcd"));
  EXPECT_FALSE(IsInstance("ab-d"));
}

}  // namespace
}  // namespace muster::contract
