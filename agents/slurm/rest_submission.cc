#include "agents/slurm/rest_submission.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "agents/hosts/shell_quote.h"
#include "agents/slurm/fields.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

// How an option's value becomes a field's.
enum class Kind {
  kText,       // as it is
  kNumber,     // a whole number; slurmrestd 22.05 misreads ranges
  kMebibytes,  // "100", "100M", "2G": in MiB, rounded up
  kFlag,       // no value: true
  kExclusive,  // no value, "user" or "mcs"
  kSignal,     // not "B:...", which slurmrestd does not take
  kPresent,    // a value that says yes: true
};

struct Field {
  std::string_view option;
  Kind kind;
  std::string_view name;
  // The variable by which sbatch tells the job, for the steps of the job.
  std::string_view variable = {};
};

// The fields' names are those that slurmrestd 22.05 takes, which are not always those that its
// description names. `requeue` set to false is taken for true there, so it is never sent so.
constexpr std::array kFields = {
    Field{"account", Kind::kText, "account"},
    Field{"acctg-freq", Kind::kText, "account_gather_frequency"},
    Field{"array", Kind::kText, "array"},
    Field{"batch", Kind::kText, "batch_features"},
    Field{"bb", Kind::kText, "burst_buffer"},
    Field{"begin", Kind::kText, "begin_time"},
    Field{"chdir", Kind::kText, "current_working_directory"},
    Field{"comment", Kind::kText, "comment"},
    Field{"constraint", Kind::kText, "constraints"},
    Field{"core-spec", Kind::kNumber, "core_specification"},
    Field{"cores-per-socket", Kind::kNumber, "cores_per_socket"},
    Field{"cpu-freq", Kind::kText, "cpu_frequency"},
    Field{"cpus-per-gpu", Kind::kText, "cpus_per_gpu", "SLURM_CPUS_PER_GPU"},
    Field{"cpus-per-task", Kind::kNumber, "cpus_per_task", "SLURM_CPUS_PER_TASK"},
    Field{"deadline", Kind::kText, "deadline"},
    Field{"delay-boot", Kind::kNumber, "delay_boot"},
    Field{"dependency", Kind::kText, "dependency"},
    Field{"distribution", Kind::kText, "distribution", "SLURM_DISTRIBUTION"},
    Field{"error", Kind::kText, "standard_error"},
    Field{"exclude", Kind::kText, "exclude_nodes"},
    Field{"exclusive", Kind::kExclusive, "exclusive"},
    Field{"gpus", Kind::kText, "gpus", "SLURM_GPUS"},
    Field{"gpus-per-node", Kind::kText, "gpus_per_node", "SLURM_GPUS_PER_NODE"},
    Field{"gpus-per-task", Kind::kText, "gpus_per_task", "SLURM_GPUS_PER_TASK"},
    Field{"gres", Kind::kText, "gres"},
    Field{"gres-flags", Kind::kText, "gres_flags"},
    Field{"hold", Kind::kFlag, "hold"},
    Field{"input", Kind::kText, "standard_input"},
    Field{"job-name", Kind::kText, "name"},
    Field{"kill-on-invalid-dep", Kind::kPresent, "kill_on_invalid_dependency"},
    Field{"licenses", Kind::kText, "licenses"},
    Field{"mail-type", Kind::kText, "mail_type"},
    Field{"mail-user", Kind::kText, "mail_user"},
    Field{"mcs-label", Kind::kText, "mcs_label"},
    Field{"mem", Kind::kMebibytes, "memory_per_node"},
    Field{"mem-per-cpu", Kind::kMebibytes, "memory_per_cpu"},
    Field{"mem-per-gpu", Kind::kMebibytes, "memory_per_gpu", "SLURM_MEM_PER_GPU"},
    Field{"mincpus", Kind::kNumber, "minimum_cpus_per_node"},
    Field{"nice", Kind::kNumber, "nice"},
    Field{"nodelist", Kind::kText, "nodelist"},
    Field{"nodes", Kind::kNumber, "nodes"},
    Field{"no-requeue", Kind::kFlag, "no_requeue"},
    Field{"ntasks", Kind::kNumber, "tasks", "SLURM_NTASKS"},
    Field{"ntasks-per-core", Kind::kNumber, "tasks_per_core", "SLURM_NTASKS_PER_CORE"},
    Field{"ntasks-per-node", Kind::kNumber, "tasks_per_node", "SLURM_NTASKS_PER_NODE"},
    Field{"ntasks-per-socket", Kind::kNumber, "tasks_per_socket", "SLURM_NTASKS_PER_SOCKET"},
    Field{"open-mode", Kind::kText, "open_mode"},
    Field{"output", Kind::kText, "standard_output"},
    Field{"oversubscribe", Kind::kFlag, "oversubscribe"},
    Field{"partition", Kind::kText, "partition"},
    Field{"prefer", Kind::kText, "prefer"},
    Field{"profile", Kind::kText, "profile", "SLURM_PROFILE"},
    Field{"qos", Kind::kText, "qos"},
    Field{"requeue", Kind::kFlag, "requeue"},
    Field{"reservation", Kind::kText, "reservation"},
    Field{"signal", Kind::kSignal, "signal"},
    Field{"sockets-per-node", Kind::kNumber, "sockets_per_node"},
    Field{"spread-job", Kind::kFlag, "spread_job"},
    Field{"thread-spec", Kind::kNumber, "thread_specification"},
    Field{"threads-per-core", Kind::kNumber, "threads_per_core", "SLURM_THREADS_PER_CORE"},
    Field{"time", Kind::kText, "time_limit"},
    Field{"time-min", Kind::kText, "time_minimum"},
    Field{"use-min-nodes", Kind::kFlag, "minimum_nodes"},
    Field{"wait-all-nodes", Kind::kNumber, "wait_all_nodes"},
    Field{"wckey", Kind::kText, "wckey"},
};

// "--name=value", "--name".
struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

std::optional<Option> ReadOption(std::string_view word) {
  if (!word.starts_with("--")) return std::nullopt;
  word.remove_prefix(2);
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return Option{word, std::nullopt};
  return Option{word.substr(0, equals), word.substr(equals + 1)};
}

// Reads amounts as sbatch does.
std::optional<uint64_t> Mebibytes(std::string_view text) {
  constexpr uint64_t kMost = uint64_t{1} << 40;  // no node has so many
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseNumber<uint64_t>(text.substr(0, end));
  if (!number.has_value() || *number > kMost) return std::nullopt;
  if (end == text.size()) return number;
  switch (text[end]) {
    case 'K':
    case 'k':
      return (*number + 1023) / 1024;
    case 'M':
    case 'm':
      return number;
    case 'G':
    case 'g':
      return *number << 10;
    case 'T':
    case 't':
      return *number << 20;
    default:
      return std::nullopt;
  }
}

// The field's value; null: slurmrestd has none for this one.
json ValueFor(Kind kind, const std::optional<std::string_view>& value) {
  if (kind == Kind::kFlag) return value.has_value() ? json() : json(true);
  if (kind == Kind::kExclusive) {
    if (!value.has_value()) return "exclusive";
    return *value == "user" || *value == "mcs" ? json(*value) : json();
  }
  if (!value.has_value()) return json();
  if (kind == Kind::kPresent) return *value == "yes" ? json(true) : json();
  if (kind == Kind::kSignal) return value->starts_with("B:") ? json() : json(*value);
  if (kind == Kind::kText) return *value;
  const std::optional<uint64_t> number =
      kind == Kind::kMebibytes ? Mebibytes(*value) : ParseNumber<uint64_t>(*value);
  return number.has_value() ? json(*number) : json();
}

absl::Status Lacks(std::string_view word) {
  return absl::InvalidArgumentError(
      fmt::format("slurmrestd has nothing for sbatch's option {}; leave it out, or have the "
                  "cluster's agent use Slurm's commands (without slurm.rest_url)",
                  word.substr(0, 200)));
}

absl::Status AddOption(std::string_view word, json* job,
                       std::map<std::string, std::string>* environment) {
  // The environment is given whole, and slurmrestd hands no limits on.
  if (word == "--export=ALL" || word == "--propagate=NONE") return absl::OkStatus();
  const std::optional<Option> option = ReadOption(word);
  if (!option.has_value()) return Lacks(word);
  const auto* field = std::find_if(kFields.begin(), kFields.end(),
                                   [&](const Field& one) { return one.option == option->name; });
  if (field == kFields.end()) return Lacks(word);
  json value = ValueFor(field->kind, option->value);
  if (value.is_null()) return Lacks(word);
  (*job)[field->name] = std::move(value);
  if (!field->variable.empty())
    (*environment)[std::string(field->variable)] = option->value.value_or("");
  return absl::OkStatus();
}

// slurmrestd has a field for the script's arguments and dies of it (22.05), so a script of our own
// brings them. Words are quoted; nothing else differs from one job to the next.
absl::StatusOr<std::string> ScriptText(const Submission& submission) {
  std::string text = "#!/bin/bash\nexec /bin/bash";
  std::vector<std::string> words = {submission.script};
  words.insert(words.end(), submission.arguments.begin(), submission.arguments.end());
  for (const std::string& word : words) {
    const absl::StatusOr<std::string> quoted = hosts::ShellQuote(word);
    if (!quoted.ok()) return quoted.status();
    text += " " + *quoted;
  }
  return text + "\n";
}

// sbatch counts the tasks, and by them the CPUs, before it asks.
void AddTasks(json* job) {
  if (job->contains("tasks") || !job->contains("nodes") || !job->contains("tasks_per_node")) return;
  (*job)["tasks"] = (*job)["nodes"].get<uint64_t>() * (*job)["tasks_per_node"].get<uint64_t>();
}

}  // namespace

absl::StatusOr<std::string> RestSubmission(const Submission& submission,
                                           std::map<std::string, std::string> environment) {
  json job = json::object();
  for (const std::string& word : submission.options) {
    if (absl::Status status = AddOption(word, &job, &environment); !status.ok()) return status;
  }
  AddTasks(&job);
  const absl::StatusOr<std::string> script = ScriptText(submission);
  if (!script.ok()) return script.status();
  job["environment"] = std::move(environment);
  const json body = {{"script", *script}, {"job", std::move(job)}};
  try {
    return body.dump();
  } catch (const json::exception&) {
    return absl::InvalidArgumentError(
        "an option of the job is not UTF-8 text, which slurmrestd does not take; correct the slurm "
        "section of the job");
  }
}

}  // namespace muster::slurm
