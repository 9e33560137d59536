// New jobs and their transitions, which a store writes many at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::SizeIs;

class InsertJobsTest : public StoreTest {};

TEST_P(InsertJobsTest, ManyNewJobsOfOneCommitComeBackEachAsItWas) {
  constexpr uint64_t kJobs = 23;  // statements of 16, of 4 and of one row
  const auto options = [](uint64_t id) {
    JobOptions job{.name = "job-" + std::to_string(id), .priority = static_cast<int32_t>(id)};
    if (id % 2 == 0) job.labels = {{"number", std::to_string(id)}};
    if (id % 3 == 0) job.request_id = "request-" + std::to_string(id);
    return job;
  };
  std::vector<core::Change> changes;
  for (uint64_t id = 1; id <= kJobs; ++id) {
    changes.push_back(Insert(id, options(id)));
    changes.push_back(Step(id, id, 1));
  }
  changes.push_back(Update(kJobs, v1::JOB_STATE_CANCELED, 2));
  changes.push_back(Step(kJobs, kJobs + 1, 2));
  Commit(std::move(changes));
  Reopen();
  std::map<uint64_t, std::string> requests;
  for (const auto& request : Restore().requests) requests[request.job] = request.request_id;
  for (uint64_t id = 1; id <= kJobs; ++id) {
    const JobOptions wanted = options(id);
    const v1::Job job = *store().GetJob(Scope::All(), id);
    EXPECT_EQ(job.name(), wanted.name);
    EXPECT_EQ(job.priority(), wanted.priority);
    EXPECT_EQ((std::map<std::string, std::string>(job.labels().begin(), job.labels().end())),
              wanted.labels);
    EXPECT_EQ(requests[id], wanted.request_id);
    EXPECT_EQ(store().ListTransitions(Scope::All(), {id}, 0, 100)->front().transition.sequence(),
              id);
  }
  EXPECT_EQ(store().GetJob(Scope::All(), kJobs)->state(), v1::JOB_STATE_CANCELED);
  EXPECT_THAT(*store().ListTransitions(Scope::All(), {kJobs}, 0, 100), SizeIs(2));
}

INSTANTIATE_TEST_SUITE_P(Stores, InsertJobsTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

}  // namespace
}  // namespace muster::store
