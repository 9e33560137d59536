#include "tests/unit/store/store_fixture.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "broker/core/timestamps.h"
#include "contract/filter.h"

namespace muster::store {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "store_test.XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

core::Change Insert(uint64_t id, const JobOptions& options) {
  auto spec = std::make_shared<v1::JobSpec>();
  spec->set_name(options.name);
  spec->set_project(options.project);
  spec->set_priority(options.priority);
  spec->set_nodes(options.nodes);
  spec->mutable_command()->set_script(std::string(options.script_bytes, 'x'));
  for (const auto& [key, value] : options.labels) (*spec->mutable_labels())[key] = value;
  core::InsertJob insert;
  insert.id = id;
  insert.spec = std::move(spec);
  insert.request_id = options.request_id;
  insert.fingerprint = 0xF000000000000000 + id;
  insert.user = options.user;
  insert.create_time = options.create_time;
  return insert;
}

core::Change Update(uint64_t id, v1::JobState state, uint64_t job_sequence,
                    const std::string& cluster) {
  core::UpdateJob update;
  update.id = id;
  update.state = state;
  update.job_sequence = job_sequence;
  update.cluster = cluster;
  update.runs = cluster.empty() ? 0 : 1;
  return update;
}

core::Change RunOf(uint64_t job, uint32_t number, v1::RunState state, bool logs_complete) {
  core::PutRun put;
  put.job = job;
  put.run.set_number(number);
  put.run.set_cluster("here");
  put.run.set_state(state);
  put.run.set_logs_complete(logs_complete);
  return put;
}

core::Change Step(uint64_t job, uint64_t sequence, uint64_t job_sequence) {
  core::AppendTransition step;
  step.job = job;
  step.transition.set_sequence(sequence);
  step.transition.set_job_sequence(job_sequence);
  return step;
}

std::vector<core::Change> Finished(uint64_t id, absl::Time end) {
  core::Change update = Update(id, v1::JOB_STATE_SUCCEEDED, 3, "here");
  std::get<core::UpdateJob>(update).end_time = end;
  return {update, RunOf(id, 1, v1::RUN_STATE_SUCCEEDED, true)};
}

void StoreTest::Open() {
  if (GetParam() == Kind::kMemory) {
    if (store_ == nullptr) store_ = std::make_unique<MemoryStore>("k7m2");
    return;
  }
  store_.reset();
  SqliteOptions options;
  options.directory = directory_.path();
  auto opened = SqliteStore::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = *std::move(opened);
}

void StoreTest::Reopen() { Open(); }

void StoreTest::Commit(std::vector<core::Change> changes) {
  const absl::Status status = store_->Commit(changes);
  ASSERT_TRUE(status.ok()) << status;
}

core::Restored StoreTest::Restore(absl::Time now) {
  auto restored = store_->Restore(now);
  EXPECT_TRUE(restored.ok()) << restored.status();
  return restored.ok() ? *std::move(restored) : core::Restored{};
}

std::vector<uint64_t> StoreTest::List(const std::string& filter, int page_size,
                                      const std::string& order) {
  auto parsed = contract::ParseFilter(filter, kStart);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  ListQuery query{.filter = *parsed, .page_size = page_size};
  query.order = *contract::ParseJobOrder(order);
  std::vector<uint64_t> ids;
  do {
    auto page = store_->ListJobs(Scope::All(), query);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) break;
    EXPECT_LE(page->jobs.size(), static_cast<size_t>(page_size));
    for (const v1::Job& job : page->jobs) ids.push_back(job.id());
    query.page_token = page->next_page_token;
  } while (!query.page_token.empty());
  return ids;
}

}  // namespace muster::store
