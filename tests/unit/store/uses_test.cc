// The users of jobs, and what they have used, in every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;

class UsesTest : public StoreTest {};

INSTANTIATE_TEST_SUITE_P(Stores, UsesTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(UsesTest, TheUsersOfLiveJobsComeBackWithoutDoubles) {
  Commit({Insert(1, {.user = "ada"}), Insert(2, {.user = "bob"}), Insert(3, {.user = "ada"})});
  Reopen();
  const core::Restored restored = Restore();
  EXPECT_EQ(restored.users.size(), 2u);
  std::vector<std::string> users;
  for (const core::LiveJob& job : restored.jobs) users.push_back(restored.users.at(job.user));
  EXPECT_THAT(users, ElementsAre("ada", "bob", "ada"));
}

TEST_P(UsesTest, TheUseOfAUserComesBackAsItWasPutLast) {
  Commit({core::PutUse{"vision", "ada", {1, 2, 3}, kStart},
          core::PutUse{"vision", "bob", {4, 5, 6}, kStart},
          core::PutUse{"vision", "ada", {1.5, 1e21, 0}, kStart + absl::Minutes(1)}});
  Commit({core::RemoveUse{"vision", "bob"}, core::RemoveUse{"speech", "bob"}});
  Reopen();
  const std::vector<core::PutUse> uses = Restore().uses;
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].project, "vision");
  EXPECT_EQ(uses[0].user, "ada");
  EXPECT_THAT(uses[0].used, ElementsAre(1.5, 1e21, 0));
  EXPECT_EQ(uses[0].at, kStart + absl::Minutes(1));
}

}  // namespace
}  // namespace muster::store
