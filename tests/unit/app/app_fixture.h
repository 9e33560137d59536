// Use cases on an engine and a memory store, without gRPC.
#ifndef MUSTER_TESTS_UNIT_APP_APP_FIXTURE_H_
#define MUSTER_TESTS_UNIT_APP_APP_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/app/pull_source.h"
#include "broker/app/services.h"
#include "broker/engine/engine.h"
#include "broker/files/file_store.h"
#include "broker/files/job_files.h"
#include "broker/logs/archive.h"
#include "broker/store/memory/memory_store.h"

namespace muster::broker {

// Runs each task in the call that posts it. The test says how many it takes.
class FakeReaders : public Readers {
 public:
  bool PostCall(Task task) override {
    if (calls_left.fetch_sub(1) <= 0) return false;
    task();
    return true;
  }
  bool Reserve() override {
    if (places.fetch_sub(1) > 0) return true;
    ++places;
    return false;
  }
  bool PostReserved(Task task) override {
    if (stopped) return false;
    ++places;
    task();
    return true;
  }
  void Unreserve() override { ++places; }

  std::atomic<int> calls_left = 1'000'000;
  std::atomic<int> places = 1;
  std::atomic<bool> stopped = false;
};

// A memory store whose reads fail or meddle as the test says.
class FakeStore : public store::MemoryStore {
 public:
  FakeStore() : MemoryStore("k7m2") {}

  absl::StatusOr<std::vector<v1::Job>> GetJobs(const store::Scope& scope,
                                               absl::Span<const uint64_t> ids) const override {
    if (get_jobs_fails) return absl::DataLossError("a page is damaged");
    return MemoryStore::GetJobs(scope, ids);
  }
  absl::StatusOr<store::JobPage> ListJobs(const store::Scope& scope,
                                          const store::ListQuery& query) const override {
    if (lists_left.fetch_sub(1) <= 0) return absl::DataLossError("a page is damaged");
    if (auto once = std::exchange(before_list, nullptr)) once();
    auto page = MemoryStore::ListJobs(scope, query);
    if (page.ok() && first_is_stale.exchange(false)) {
      page->jobs.front().set_job_sequence(page->jobs.front().job_sequence() + 1);
    }
    return page;
  }

  absl::StatusOr<std::vector<store::StoredSpec>> GetSpecs(
      const store::Scope& scope, absl::Span<const uint64_t> ids) const override {
    ++spec_reads;
    return MemoryStore::GetSpecs(scope, ids);
  }

  // Called once, before the next list. Set it while nothing is read.
  mutable std::function<void()> before_list;
  mutable std::atomic<int> spec_reads = 0;
  std::atomic<bool> get_jobs_fails = false;
  mutable std::atomic<int> lists_left = 1'000'000;
  // The first job of the next list looks as if it had changed since.
  mutable std::atomic<bool> first_is_stale = false;
};

// The sending end of a pull source.
class FakeStream : public Watcher {
 public:
  void Wake() override {
    std::lock_guard lock(mutex_);
    is_woken_ = true;
    changed_.notify_all();
  }
  // Waits until there has been a wake since the last call.
  void AwaitWake() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return std::exchange(is_woken_, false); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_woken_ = false;
};

// Everything that a source has to give until it waits for a wake.
template <typename Message>
typename PullSource<Message>::Pulled PullAll(PullSource<Message>& source) {
  typename PullSource<Message>::Pulled all;
  do {
    auto next = source.Next();
    for (Message& message : next.messages) all.messages.push_back(std::move(message));
    all.more = next.more;
    all.final_status = std::move(next.final_status);
  } while (all.more && !all.final_status);
  return all;
}

class AppTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto core = std::make_unique<core::Core>(core::Options{}, *store_.Restore(absl::Now()));
    engine_ = std::make_unique<Engine>(
        EngineOptions{}, std::move(core), &store_,
        [this](const core::JobsChanged& changed) { watches_.Notify(changed); },
        [](const absl::Status&) {});
    engine_->Start();
    char name[] = "/tmp/muster-app-XXXXXX";
    directory_ = mkdtemp(name);
    archive_ = *logs::Archive::Open(directory_ / "logs", {}, absl::Now);
    files_ = *files::FileStore::Open(directory_ / "files", {.keep_free_bytes = 0}, absl::Now);
    services_.archive = archive_.get();
    services_.files = files_.get();
    services_.watches = &watches_;
    services_.changes = &engine_->changes();
    services_.engine = engine_.get();
    services_.store = &store_;
    services_.readers = &readers_;
    services_.counters = &counters_;
    job_files_.emplace(files_.get());
    services_.job_files = &*job_files_;
    services_.file_workers = &file_workers_;
    services_.now = absl::Now;
  }

  // Stops before the objects go that a test's callbacks use.
  void TearDown() override {
    engine_.reset();
    archive_.reset();
    job_files_.reset();
    files_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Calls `start` with a callback, and returns the answer.
  template <typename Result>
  static absl::StatusOr<Result> Await(
      const std::function<void(std::function<void(absl::StatusOr<Result>)>)>& start) {
    auto result = std::make_shared<std::promise<absl::StatusOr<Result>>>();
    start([result](absl::StatusOr<Result> answer) { result->set_value(std::move(answer)); });
    return result->get_future().get();
  }

  // Numbered from 1 on in a new store.
  void SubmitJobs(int count, const std::string& request_id = "", const std::string& name = "job") {
    const auto submitted = Await<v1::SubmitJobsResponse>([&](SubmitDone done) {
      core::Submit submit;
      for (int i = 0; i < count; ++i) {
        v1::JobSpec spec;
        spec.set_name(name);
        spec.set_project("default");
        spec.set_nodes(1);
        spec.mutable_command()->mutable_argv()->add_args("true");
        submit.items.push_back({.spec = std::make_shared<const v1::JobSpec>(std::move(spec)),
                                .request_id = request_id});
      }
      submit.user = "alice";
      engine_->Submit(std::move(submit), std::move(done));
    });
    ASSERT_TRUE(submitted.ok()) << submitted.status();
  }

  v1::Job Read(uint64_t id) { return *store_.GetJob(store::Scope::All(), id); }

  const Principal alice_{"alice", KnownBy::kSocket, Role::kAdmin};
  // A user who may do all with her own jobs, and has none.
  const Principal carol_{"carol", KnownBy::kSocket, Role::kSubmitter};
  // Its role is in no table.
  const Principal stranger_{"mallory", KnownBy::kNobody, static_cast<Role>(200)};
  std::filesystem::path directory_;
  std::unique_ptr<logs::Archive> archive_;
  std::unique_ptr<files::FileStore> files_;
  WatchHub watches_;
  FakeStore store_;
  FakeReaders readers_;
  FakeReaders counters_;
  FakeReaders file_workers_;
  std::optional<files::JobFiles> job_files_;
  std::unique_ptr<Engine> engine_;
  Services services_;
};

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_APP_APP_FIXTURE_H_
