#include "clients/cli/slurm/squeue_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/job_resources.h"
#include "clients/cli/slurm/squeue_times.h"
#include "contract/task_array.h"

namespace muster::cli {
namespace {

using QueueJson = nlohmann::ordered_json;

// 0 where there is none, as squeue has it.
int64_t Seconds(const google::protobuf::Timestamp& time) { return time.seconds(); }

// Returns the status in the form of wait(2).
int64_t WaitStatus(const v1::Job& job) { return (job.exit().code() << 8) | job.exit().signal(); }

void AddArray(const v1::Job& job, QueueJson* out) {
  const std::optional<contract::ArrayTask> task = contract::FindArrayTask(job.spec());
  (*out)["array_job_id"] = task ? contract::ArrayNumber(job.id(), *task) : 0;
  (*out)["array_task_id"] = task ? QueueJson(task->id) : QueueJson(nullptr);
  (*out)["array_task_string"] = "";
}

void AddTimes(const JobRecord& record, absl::Time now, QueueJson* out) {
  const v1::Job& job = record.job();
  (*out)["submit_time"] = Seconds(job.create_time());
  (*out)["start_time"] = Seconds(StartOf(record));
  (*out)["end_time"] = Seconds(EndOf(record));
  if (record.time_limit.has_value())
    (*out)["time_limit"] = absl::ToInt64Minutes(*record.time_limit);
  (*out)["run_time"] = absl::ToInt64Seconds(Elapsed(record, now));
}

QueueJson JobObject(const JobRecord& record, absl::Time now) {
  const v1::Job& job = record.job();
  const v1::JobSpec& spec = job.spec();
  const v1::SlurmOptions& slurm = spec.slurm();
  QueueJson out;
  out["account"] = record.account;
  AddArray(job, &out);
  out["cluster"] = job.cluster();
  out["comment"] = slurm.comment();
  out["cpus"] = TotalCpus(spec);
  out["current_working_directory"] = spec.working_directory();
  out["dependency"] = slurm.dependency();
  out["excluded_nodes"] = slurm.exclude();
  out["exit_code"] = WaitStatus(job);
  out["features"] = slurm.constraint();
  out["job_id"] = job.id();
  out["job_state"] = StateWord(record);
  out["licenses"] = slurm.licenses();
  if (spec.resources().memory_bytes() > 0)
    out["memory_per_node"] = spec.resources().memory_bytes() >> 20;
  out["name"] = job.name();
  out["nice"] = slurm.nice();
  out["node_count"] = NodeCount(record);
  const v1::Run* run = record.run();
  out["nodes"] = run == nullptr ? "" : HostList({run->nodes().begin(), run->nodes().end()});
  out["batch_host"] = run == nullptr || run->nodes().empty() ? "" : run->nodes(0);
  out["partition"] = record.partition;
  out["priority"] = job.priority();
  out["qos"] = record.qos;
  out["required_nodes"] = slurm.nodelist();
  out["restart_cnt"] = run == nullptr ? 0 : run->restarts();
  out["resv_name"] = slurm.reservation();
  out["state_reason"] = ReasonWord(record);
  AddTimes(record, now, &out);
  out["tres_req_str"] = TresText(record, TresOrder::kSqueue);
  out["tres_alloc_str"] = HasStarted(record) ? TresText(record, TresOrder::kSqueue) : "";
  out["user_name"] = job.user();
  // Slurm's own number, beside Muster's.
  out["slurm_job_id"] = SlurmNumber(record);
  return out;
}

}  // namespace

std::string SqueueJson(std::span<const JobRecord> records, absl::Time now) {
  QueueJson jobs = QueueJson::array();
  for (const JobRecord& record : records) jobs.push_back(JobObject(record, now));
  const QueueJson out = {
      {"meta", {{"plugin", {{"type", "muster"}, {"name", "muster squeue --json"}}}}},
      {"errors", QueueJson::array()},
      {"jobs", std::move(jobs)}};
  // Names are bytes of their users'; what is not UTF-8 is replaced.
  return out.dump(2, ' ', false, QueueJson::error_handler_t::replace) + "\n";
}

}  // namespace muster::cli
