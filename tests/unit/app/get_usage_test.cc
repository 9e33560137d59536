#include "broker/app/get_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

class GetUsageTest : public AppTest {
 protected:
  void SetUp() override {
    AppTest::SetUp();
    services_.now = [] { return absl::FromUnixSeconds(100 * 86'400 + 5); };
  }
  void Use(int64_t day, const std::string& project, const std::string& user, int64_t gpu_ms,
           const std::string& type) {
    const core::AddUsage usage{.day = day,
                               .project = project,
                               .user = user,
                               .cluster = "lab",
                               .gpu_type = type,
                               .runs = 1,
                               .run_ms = 1000,
                               .core_ms = 2000,
                               .gpu_ms = gpu_ms};
    ASSERT_TRUE(store_.Commit(core::Changes{usage}).ok());
  }
  static v1::GetUsageRequest By(std::initializer_list<v1::UsageGrouping> groupings) {
    v1::GetUsageRequest request;
    for (const v1::UsageGrouping grouping : groupings) request.add_group_by(grouping);
    return request;
  }
};

TEST_F(GetUsageTest, TellsTheLast30DaysWithTheLargestUseOfGpusFirst) {
  Use(69, "old", "alice", 1, "");
  Use(70, "speech", "alice", 3000, "a100");
  Use(100, "vision", "alice", 1000, "");
  Use(100, "vision", "alice", 4000, "h100");
  const auto answer = GetUsage(alice_, services_, By({v1::USAGE_GROUPING_PROJECT}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->rows_size(), 2);
  EXPECT_EQ(answer->rows(0).project(), "vision");
  EXPECT_EQ(answer->rows(0).user(), "");
  EXPECT_EQ(answer->rows(0).runs(), 2u);
  EXPECT_EQ(answer->rows(0).gpu_time().seconds(), 5);
  EXPECT_EQ(answer->rows(0).gpu_time_by_type().at("h100").seconds(), 4);
  EXPECT_EQ(answer->rows(0).gpu_time_by_type().at("").seconds(), 1);
  EXPECT_EQ(answer->rows(1).project(), "speech");
  EXPECT_EQ(answer->total().gpu_time().seconds(), 8);
  EXPECT_EQ(answer->total().core_time().seconds(), 6);
  EXPECT_EQ(answer->start_time().seconds(), 70 * 86'400);
  EXPECT_EQ(answer->end_time().seconds(), 101 * 86'400);
}

TEST_F(GetUsageTest, TellsDaysInTheirOrder) {
  Use(99, "vision", "alice", 5000, "");
  Use(98, "vision", "alice", 1000, "");
  const auto answer = GetUsage(alice_, services_, By({v1::USAGE_GROUPING_DAY}));
  ASSERT_EQ(answer->rows_size(), 2);
  EXPECT_EQ(answer->rows(0).day().seconds(), 98 * 86'400);
  EXPECT_EQ(answer->rows(0).project(), "");
}

TEST_F(GetUsageTest, WithoutAGroupingOnlyTheTotalIsTold) {
  Use(99, "vision", "alice", 5000, "");
  const auto answer = GetUsage(alice_, services_, {});
  EXPECT_EQ(answer->rows_size(), 0);
  EXPECT_EQ(answer->total().runs(), 1u);
}

TEST_F(GetUsageTest, AUserSeesTheUseOfJobsThatTheUserMaySee) {
  Use(99, "vision", "alice", 5000, "");
  Use(99, "vision", "carol", 1000, "");
  const auto answer = GetUsage(carol_, services_, By({v1::USAGE_GROUPING_USER}));
  ASSERT_EQ(answer->rows_size(), 1);
  EXPECT_EQ(answer->rows(0).user(), "carol");
  EXPECT_EQ(answer->total().gpu_time().seconds(), 1);
  EXPECT_TRUE(absl::IsPermissionDenied(GetUsage(stranger_, services_, {}).status()));
}

TEST_F(GetUsageTest, BadInputIsNamed) {
  const auto message = [&](const v1::GetUsageRequest& request) {
    return std::string(GetUsage(alice_, services_, request).status().message());
  };
  EXPECT_THAT(message(By({v1::USAGE_GROUPING_DAY, v1::USAGE_GROUPING_DAY})),
              ::testing::HasSubstr("group_by[1]"));
  EXPECT_THAT(message(By({v1::USAGE_GROUPING_UNSPECIFIED})), ::testing::HasSubstr("use project"));
  v1::GetUsageRequest request;
  request.mutable_start_time()->set_seconds(200 * 86'400);
  EXPECT_THAT(message(request), ::testing::HasSubstr("start_time"));
  request.mutable_start_time()->set_nanos(-1);
  EXPECT_THAT(message(request), ::testing::HasSubstr("no time of the years"));
}

}  // namespace
}  // namespace muster::broker
