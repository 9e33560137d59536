// The fixture of the tests that run the muster binary against a fake broker.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_COMMAND_FIXTURE_H_
#define MUSTER_TESTS_UNIT_CLIENTS_COMMAND_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/clients/command.h"
#include "tests/unit/clients/fake_broker.h"

namespace muster::cli {

// The broker accepts every job as number 42, and says of each job that it is in the state of job_.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    broker_.submit_job =
        [this](const v1::SubmitJobRequest& request) -> absl::StatusOr<v1::SubmitJobResponse> {
      const std::lock_guard<std::mutex> lock(mutex_);
      submitted_.push_back(request);
      v1::SubmitJobResponse response;
      response.set_job_id(request.validate_only() ? 0 : 42);
      return response;
    };
    broker_.get_job =
        [this](const v1::GetJobRequest& request) -> absl::StatusOr<v1::GetJobResponse> {
      v1::GetJobResponse response;
      *response.mutable_job() = job_;
      response.mutable_job()->set_id(request.job_id());
      return response;
    };
    broker_.watch_jobs = [this](const v1::WatchJobsRequest& request, const auto& write) {
      for (uint64_t id : request.job_ids()) write(client::Step(id, 3, job_.state()));
      return absl::OkStatus();
    };
    // The history is what a watch would begin with.
    broker_.list_transitions = [this](const v1::ListTransitionsRequest& request)
        -> absl::StatusOr<v1::ListTransitionsResponse> {
      v1::WatchJobsRequest watch;
      watch.add_job_ids(request.job_id());
      v1::ListTransitionsResponse response;
      const absl::Status status =
          broker_.watch_jobs(watch, [&response](const v1::WatchJobsResponse& step) {
            if (step.changes().empty()) return false;
            if (step.changes(0).has_transition())
              *response.add_transitions() = step.changes(0).transition();
            return true;
          });
      if (!status.ok()) return status;
      return response;
    };
  }

  Outcome Run(std::vector<std::string> arguments) {
    return RunCommand(broker_.address(), std::move(arguments));
  }

  std::string WriteFile(const std::string& text) {
    const std::string path =
        std::filesystem::path(broker_.address().substr(5)).parent_path() / "job.yaml";
    std::ofstream(path) << text;
    return path;
  }

  // These stand before the broker, whose threads use them to its end.
  std::mutex mutex_;
  std::vector<v1::SubmitJobRequest> submitted_;
  v1::Job job_ = client::JobInState(42, v1::JOB_STATE_SUCCEEDED);
  std::atomic<bool> stop_ = false;
  client::FakeBroker broker_;
};

}  // namespace muster::cli

#endif  // MUSTER_TESTS_UNIT_CLIENTS_COMMAND_FIXTURE_H_
