#include "agents/slurm/rest_submission.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "agents/hosts/shell_quote.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/rest_fields.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

absl::Status Lacks(std::string_view word) {
  return absl::InvalidArgumentError(
      fmt::format("slurmrestd has nothing for sbatch's option {}; leave it out, or have the "
                  "cluster's agent use Slurm's commands (without slurm.rest_url)",
                  word.substr(0, 200)));
}

absl::Status AddOption(std::string_view word, int api, json* job,
                       std::map<std::string, std::string>* environment) {
  // The environment is given whole, and slurmrestd hands no limits on.
  if (word == "--export=ALL" || word == "--propagate=NONE") return absl::OkStatus();
  return AddRestOption(word, api, job, environment) ? absl::OkStatus() : Lacks(word);
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

// Returns the number in a field, which may be a text.
std::optional<uint64_t> CountIn(const json& job, std::string_view name) {
  const auto field = job.find(name);
  if (field == job.end()) return std::nullopt;
  if (field->is_string()) return ParseNumber<uint64_t>(field->get_ref<const std::string&>());
  return field->get<uint64_t>();
}

// sbatch counts the tasks, and by them the CPUs, before it asks.
void AddTasks(json* job) {
  const std::optional<uint64_t> nodes = CountIn(*job, "nodes");
  const std::optional<uint64_t> per_node = CountIn(*job, "tasks_per_node");
  if (!job->contains("tasks") && nodes.has_value() && per_node.has_value())
    (*job)["tasks"] = *nodes * *per_node;
}

json Environment(const std::map<std::string, std::string>& variables, int api) {
  if (api < kFirstTypedApi) return variables;
  json list = json::array();
  for (const auto& [name, value] : variables) list.push_back(fmt::format("{}={}", name, value));
  return list;
}

}  // namespace

absl::StatusOr<std::string> RestSubmission(const Submission& submission,
                                           std::map<std::string, std::string> environment,
                                           int api) {
  json job = json::object();
  for (const std::string& word : submission.options) {
    if (absl::Status status = AddOption(word, api, &job, &environment); !status.ok()) return status;
  }
  AddTasks(&job);
  const absl::StatusOr<std::string> script = ScriptText(submission);
  if (!script.ok()) return script.status();
  job["environment"] = Environment(environment, api);
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
