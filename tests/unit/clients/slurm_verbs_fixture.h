// The fixture of the tests of the verbs that Slurm's users know, against a fake broker.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_SLURM_VERBS_FIXTURE_H_
#define MUSTER_TESTS_UNIT_CLIENTS_SLURM_VERBS_FIXTURE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "contract/filter.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {

// Sets up two jobs on a Slurm cluster "lab" with partitions gpu and cpu, of ada and bob.
class SlurmVerbsTest : public CommandTest {
 protected:
  SlurmVerbsTest() {
    jobs_.push_back(client::JobInState(7, v1::JOB_STATE_RUNNING));
    jobs_.push_back(client::JobInState(8, v1::JOB_STATE_PENDING));
    for (v1::Job& job : jobs_) {
      job.set_cluster("lab");
      job.mutable_spec()->set_nodes(2);
      job.mutable_spec()->mutable_resources()->set_cpu_millis(4000);
      job.mutable_spec()->mutable_time_limit()->set_seconds(5400);
      job.mutable_spec()->mutable_slurm()->set_partition("gpu");
    }
    v1::Run& run = *jobs_[0].mutable_runs(0);
    run.set_cluster("lab");
    run.set_external_id("4711");
    run.add_nodes("n1");
    run.add_nodes("n2");
    jobs_[0].mutable_start_time()->set_seconds(1'772'366'400);
    jobs_[0].mutable_end_time()->set_seconds(1'772'366'400 + 3723);
    jobs_[1].set_user("bob");
    jobs_[1].set_name("second");
    jobs_[1].mutable_spec()->mutable_slurm()->clear_partition();
    *jobs_[1].mutable_state_reason() = client::SlurmSays("Resources");
    broker_.list_jobs =
        [this](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
      v1::ListJobsResponse response;
      filter_ = request.filter();
      for (const v1::Job& job : jobs_) {
        if (!IsNumbered(request.filter(), job)) continue;
        *response.add_jobs() = job;
        if (!request.include_latest_run()) response.mutable_jobs()->rbegin()->clear_runs();
      }
      return response;
    };
    broker_.get_job =
        [this](const v1::GetJobRequest& request) -> absl::StatusOr<v1::GetJobResponse> {
      for (const v1::Job& job : jobs_) {
        v1::GetJobResponse response;
        *response.mutable_job() = job;
        if (job.id() == request.job_id()) return response;
      }
      return absl::NotFoundError("no such job");
    };
    broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
      v1::ListClustersResponse response;
      *response.add_clusters() = Lab();
      return response;
    };
    broker_.get_cluster = [](const auto&) -> absl::StatusOr<v1::GetClusterResponse> {
      v1::GetClusterResponse response;
      *response.mutable_cluster() = Lab();
      return response;
    };
  }

  // Tells whether a filter by numbers takes the job; every other filter takes it.
  static bool IsNumbered(const std::string& text, const v1::Job& job) {
    if (!text.starts_with("id ")) return true;
    const auto filter = contract::ParseFilter(text, absl::Now());
    EXPECT_TRUE(filter.ok()) << filter.status();
    return filter.ok() && filter->Matches(job);
  }

  static v1::Cluster Lab() {
    v1::Cluster lab;
    lab.set_name("lab");
    lab.set_kind(v1::CLUSTER_KIND_SLURM);
    lab.set_state(v1::CLUSTER_STATE_CONNECTED);
    for (const char* name : {"cpu", "gpu"}) {
      v1::Pool* pool = lab.mutable_inventory()->add_pools();
      pool->set_name(name);
      pool->set_is_default(std::string(name) == "cpu");
    }
    return lab;
  }

  std::string WriteScript(const std::string& text) {
    const std::string path = WriteFile(text);
    const std::string script = std::filesystem::path(path).parent_path() / "train.sh";
    std::filesystem::rename(path, script);
    return script;
  }

  std::vector<v1::Job> jobs_;
  std::string filter_;
};

}  // namespace muster::cli

#endif  // MUSTER_TESTS_UNIT_CLIENTS_SLURM_VERBS_FIXTURE_H_
