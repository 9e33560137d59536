// Every store, opened, filled and opened again in the same way.
#ifndef MUSTER_TESTS_UNIT_STORE_STORE_FIXTURE_H_
#define MUSTER_TESTS_UNIT_STORE_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker/store/memory/memory_store.h"
#include "broker/store/sqlite/sqlite_store.h"

namespace muster::store {

// A directory that is removed with its files at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// ---- changes with sensible values, to be altered by the test

inline const absl::Time kStart = absl::FromUnixSeconds(1'750'000'000);

struct JobOptions {
  std::string name = "train";
  std::string project = "default";
  std::string user = "alice";
  std::map<std::string, std::string> labels = {};
  std::string request_id = "";
  int32_t priority = 0;
  absl::Time create_time = kStart;
  size_t script_bytes = 10;
  uint32_t nodes = 1;
};

core::Change Insert(uint64_t id, const JobOptions& options = {});
core::Change Update(uint64_t id, v1::JobState state, uint64_t job_sequence,
                    const std::string& cluster = "");
core::Change RunOf(uint64_t job, uint32_t number, v1::RunState state, bool logs_complete = false);
core::Change Step(uint64_t job, uint64_t sequence, uint64_t job_sequence);

// Returns all transitions of a job from QUEUED to SUCCEEDED, its logs complete.
std::vector<core::Change> Finished(uint64_t id, absl::Time end);

enum class Kind { kMemory, kSqlite };

class StoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  StoreTest() { Open(); }

  // Restarts the broker: what was committed must be there again.
  void Reopen();
  void Commit(std::vector<core::Change> changes);
  core::Restored Restore(absl::Time now = kStart);
  // Pages through the whole list; checks that no page is larger than asked for.
  std::vector<uint64_t> List(const std::string& filter, int page_size = 1000,
                             const std::string& order = "");
  Store& store() { return *store_; }

 private:
  void Open();

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

#define EXPECT_OK(expression)                        \
  do {                                               \
    const absl::Status& status_of_it = (expression); \
    EXPECT_TRUE(status_of_it.ok()) << status_of_it;  \
  } while (false)

}  // namespace muster::store

#endif  // MUSTER_TESTS_UNIT_STORE_STORE_FIXTURE_H_
