#include "agents/slurm/rest_json.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

// Bytes that an error quotes of one text.
constexpr size_t kQuotedBytes = 300;

// Every member that some reader wants, by name, in any object.
constexpr std::array kKept = std::to_array<std::string_view>(
    {// answers
     "errors", "error", "error_number", "error_code", "description", "meta", "Slurm", "slurm",
     "release", "cluster", "pings", "ping", "pinged", "mode", "paths", "clusters", "status", "code",
     "string",
     // numbers
     "set", "infinite", "number",
     // jobs
     "jobs", "job_id", "name", "user_name", "user", "job_state", "state", "current", "state_reason",
     "nodes", "submit_time", "start_time", "end_time", "exit_code", "return_code", "signal",
     "signal_id", "id", "array", "array_job_id", "array_task_id", "array_task_string", "task",
     "task_id", "time", "start", "end", "kill_request_user", "restart_cnt",
     // what they used
     "steps", "system", "seconds", "microseconds", "tres", "requested", "max", "type", "count",
     // partitions and nodes
     "partitions", "partition", "flags", "max_time_limit", "maximum_nodes_per_job", "maximums",
     "cpus", "real_memory", "gres", "state_flags", "default_time_limit", "allowed_groups",
     "allowed_accounts", "denied_accounts", "allowed_qos", "denied_qos", "allowed_allocation_nodes",
     "qos", "min nodes per job", "maximum_cpus_per_node", "maximum_memory_per_node",
     "maximum_memory_per_cpu", "preemption_mode", "accounts", "groups", "allowed", "deny",
     "assigned", "allowed_allocation", "minimums", "defaults", "cpus_per_node",
     "partition_memory_per_node", "partition_memory_per_cpu", "alloc_cpus", "alloc_memory",
     "gres_used", "reason", "reason_set_by_user", "reason_changed_at", "active_features",
     // accounts, slurmctld
     "associations", "account", "lineage", "hostname", "statistics", "req_time"});

bool IsKept(std::string_view name) {
  // The description of the API names its versions in its paths.
  return name.starts_with('/') || std::find(kKept.begin(), kKept.end(), name) != kKept.end();
}

}  // namespace

std::optional<json> ParseRestJson(std::string_view text) {
  const auto keep = [](int, json::parse_event_t event, json& parsed) {
    return event != json::parse_event_t::key || IsKept(parsed.get_ref<const std::string&>());
  };
  json parsed = json::parse(text, keep, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  return parsed;
}

const json* ListIn(const json& answer, std::string_view name) {
  const json& list = Member(answer, name);
  return list.is_array() ? &list : nullptr;
}

absl::Status UnreadableAnswer(std::string_view what) {
  return absl::InternalError(
      fmt::format("slurmrestd's answer has {} that is not as expected", what));
}

std::optional<int64_t> NumberOf(const json& value) {
  if (const std::optional<int64_t> number = agents::IntegerOf(value)) return number;
  if (!agents::FlagOf(Member(value, "set")) || agents::FlagOf(Member(value, "infinite")))
    return std::nullopt;
  return agents::IntegerOf(Member(value, "number"));
}

std::optional<absl::Time> TimeOf(const json& value) {
  const std::optional<int64_t> seconds = NumberOf(value);
  if (!seconds.has_value() || *seconds <= 0) return std::nullopt;
  return absl::FromUnixSeconds(*seconds);
}

std::vector<std::string> WordsOf(const json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  std::vector<std::string> words;
  if (!value.is_array()) return words;
  for (const json& word : value) words.push_back(TextOf(word));
  return words;
}

std::vector<RestError> ErrorsOf(const json& answer) {
  std::vector<RestError> errors;
  const json* list = ListIn(answer, "errors");
  for (const json& one : list == nullptr ? json::array() : *list) {
    RestError error;
    error.number = NumberOf(Member(one, "error_number"))
                       .value_or(NumberOf(Member(one, "error_code")).value_or(0));
    error.error = TextOf(Member(one, "error"));
    error.description = TextOf(Member(one, "description"));
    errors.push_back(std::move(error));
  }
  // A cancel says here, from v0.0.41 on, what became of each job.
  const json* jobs = ListIn(answer, "status");
  for (const json& one : jobs == nullptr ? json::array() : *jobs) {
    const json& why = Member(one, "error");
    RestError error;
    error.number = NumberOf(Member(why, "code")).value_or(0);
    error.error = TextOf(Member(why, "string"));
    if (error.number != 0) errors.push_back(std::move(error));
  }
  return errors;
}

std::string WordsOf(const std::vector<RestError>& errors) {
  std::string words;
  for (const RestError& error : errors) {
    const std::string_view what = std::string_view(error.description).substr(0, kQuotedBytes);
    const std::string_view why = std::string_view(error.error).substr(0, kQuotedBytes);
    const bool both = !what.empty() && !why.empty() && what.find(why) == std::string_view::npos;
    words += fmt::format("{}{}{}{}", words.empty() ? "" : "; ", what, both ? ": " : "",
                         both || what.empty() ? why : "");
  }
  return words;
}

}  // namespace muster::slurm
