#include "broker/audit/shared_record.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/audit/directory.h"

namespace muster::audit {
namespace {

std::string Joined(std::string jobs, std::string_view more) {
  AddJobs(more, &jobs);
  return jobs;
}

TEST(SharedRecordTest, JobsThatFollowOneAnotherAreARange) {
  EXPECT_EQ(Joined("3", "4"), "3-4");
  EXPECT_EQ(Joined("3-4", "5"), "3-5");
  EXPECT_EQ(Joined("1,3-4", "5-7"), "1,3-7");
  EXPECT_EQ(Joined("1,3", "4-7,9"), "1,3-7,9");
  EXPECT_EQ(Joined("9", "10,12-13"), "9-10,12-13");
}

TEST(SharedRecordTest, OtherJobsStayInTheOrderOfTheirCalls) {
  EXPECT_EQ(Joined("5", "3"), "5,3");
  EXPECT_EQ(Joined("5", "5"), "5,5");
  EXPECT_EQ(Joined("5-7", "9-10"), "5-7,9-10");
}

TEST(SharedRecordTest, CallsThatDifferInAnythingElseDoNotShare) {
  const auto shares = [](auto change) {
    Record last = CancelOf("1");
    Record call = CancelOf("2");
    change(&call);
    return Share(call, &last);
  };
  EXPECT_TRUE(shares([](Record*) {}));
  EXPECT_TRUE(shares([](Record* call) { call->micros = 7; }));
  for (std::string Record::*field :
       {&Record::user, &Record::role, &Record::credential, &Record::origin, &Record::action,
        &Record::target, &Record::result}) {
    EXPECT_FALSE(shares([&](Record* call) { call->*field += "x"; }));
  }
  EXPECT_FALSE(shares([](Record* call) { call->left_out = 1; }));
  EXPECT_FALSE(shares([](Record* call) { call->jobs = ""; }));
  EXPECT_FALSE(shares([](Record* call) { call->jobs = "2,..."; }));
}

TEST(SharedRecordTest, ARecordThatIsFullIsNotShared) {
  Record last = CancelOf("2");
  last.jobs = std::string(kMaxJobsBytes - 3, '1');
  EXPECT_FALSE(Share(CancelOf("300"), &last));
  EXPECT_TRUE(Share(CancelOf("30"), &last));
}

}  // namespace
}  // namespace muster::audit
