// muster sky exec: a task or a command for one cluster.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include "clients/cli/alternatives.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/sky/exec_words.h"
#include "clients/cli/sky/follow_job.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/submission.h"
#include "clients/cli/text.h"
#include "clients/cpp/jobfile.h"
#include "clients/cpp/local_upload.h"
#include "clients/cpp/skypilot/envs.h"
#include "clients/cpp/skypilot/task.h"
#include "contract/characters.h"
#include "contract/validate.h"
#include "daemon/read_file.h"

namespace muster::cli::sky {
namespace {

// The options whose fields have other names in the API.
constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"command.script", "the command"},
    {"name", "--name"},
    {"nodes", "--num-nodes"},
    {"resources.gpus", "--gpus"},
    {"resources.cpu_millis", "--cpus"},
    {"resources.memory_bytes", "--memory"},
    {"image", "--image-id"},
    {"working_directory", "--workdir"},
    {"placement.clusters", "the cluster"},
    {"env", "--env"},
    {"secrets", "--secret"},
};

bool IsNamedAsYaml(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml");
}

// Makes a task that runs a command as SkyPilot does: the words with blanks between them, for bash.
client::JobFile TaskOfCommand(const ExecWords& words) {
  client::JobFile task;
  v1::JobSpec& spec = task.specs.emplace_back();
  spec.set_name("sky-cmd");
  client::JobFileOptions options;
  options.secrets = words.secrets;
  client::skypilot::AddGivenSecrets(options, /*job=*/0, &spec, &task.local_secrets);
  spec.mutable_command()->set_script(
      client::skypilot::BashScript(fmt::format("{}\n", fmt::join(words.entry, " "))));
  return task;
}

absl::StatusOr<client::JobFile> TaskOfFile(Session& session, const std::string& path,
                                           std::string_view text, const ExecWords& words) {
  client::JobFileOptions options;
  options.dialect = client::Dialect::kSkyPilot;
  options.env = words.env;
  options.secrets = words.secrets;
  options.own_variable = std::getenv;
  absl::StatusOr<client::JobFile> file = client::ParseJobFile(path, text, options);
  if (!file.ok()) return file.status();
  for (const std::string& note : file->notes) session.terminal.Note(note);
  if (file->specs.size() != 1) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: holds {} tasks, and exec takes one; use: muster submit", path, file->specs.size()));
  }
  return file;
}

// A lone word is a task if a file of that name is there and holds more than a text.
absl::StatusOr<client::JobFile> ReadTask(Session& session, const ExecWords& words) {
  if (words.entry.size() > 1) return TaskOfCommand(words);
  const std::string& path = words.entry.front();
  const auto text = ReadFile(path, client::kMaxJobFileBytes);
  const bool is_task = text.ok() && client::IsYamlStructure(*text);
  if (!is_task && !IsNamedAsYaml(path)) return TaskOfCommand(words);
  if (!text.ok()) return text.status();
  return TaskOfFile(session, path, *text, words);
}

// The task may name the clusters that it wants, but the command line has the last word.
absl::Status PlaceOn(const std::string& cluster, v1::JobSpec* spec) {
  auto& named = *spec->mutable_placement()->mutable_clusters();
  if (!named.empty() && std::find(named.begin(), named.end(), cluster) == named.end()) {
    return absl::FailedPreconditionError(
        fmt::format("Requested resources do not match the existing cluster.\n  Requested: {} "
                    "(resources.infra of the task)\n  Existing: {}",
                    fmt::join(named, ", "), cluster));
  }
  named.Clear();
  *named.Add() = cluster;
  return absl::OkStatus();
}

int Submitted(Session& session, const ExecWords& words, const v1::JobSpec& spec, uint64_t id) {
  const std::string cluster = Harmless(words.cluster);
  const std::string line = fmt::format("Job submitted, ID: {}", id);
  if (words.detach) {
    session.terminal.Out(line + "\n");
    session.terminal.Note(fmt::format(
        "to stream its log: muster sky logs {} {}; to cancel it: muster sky cancel {} {}", cluster,
        id, cluster, id));
    return kOk;
  }
  session.terminal.Note(line);
  session.interrupt->SetRemark(fmt::format(
      "no longer waiting; the job goes on. Come back with: muster sky logs {} {}", cluster, id));
  v1::Job job;
  job.set_id(id);
  // The name is the one that the broker gives a job without one, as `sky logs` shows it.
  const absl::StatusOr<v1::JobSpec> named = contract::NormalizeJobSpec(spec);
  *job.mutable_spec() = named.ok() ? *named : spec;
  return FollowJob(session, id, ChoiceFor(session, job));
}

}  // namespace

int Exec(Session& session, const Words& given) {
  const absl::StatusOr<ExecWords> words = ReadExecWords(given);
  if (!words.ok()) return FailUsage(session, words.status());
  absl::StatusOr<client::JobFile> task = ReadTask(session, *words);
  if (!task.ok()) return FailOther(session, task.status());
  const auto complete = [&](v1::JobSpec* spec) {
    absl::Status status = words->ApplyTo(spec);
    status.Update(PlaceOn(words->cluster, spec));
    return status;
  };
  ChooseAlternatives(session, complete, &*task);
  v1::JobSpec& spec = task->specs.front();
  if (absl::Status status = words->ApplyTo(&spec); !status.ok()) {
    return FailUsage(session, status);
  }
  if (words->workdir) client::SetWorkdir(*words->workdir, /*is_local=*/true, 0, &*task);
  if (absl::Status status = PlaceOn(words->cluster, &spec); !status.ok()) {
    return FailOther(session, status);
  }
  const auto sent = SendJobs(session, *task, {.names = kFlags}, words->dry_run);
  // SkyPilot does not tell which code it is.
  if (std::holds_alternative<int>(sent)) return kError;
  if (words->dry_run) {
    session.terminal.Note("Dryrun finished: the job is good; nothing was submitted");
    return kOk;
  }
  const auto& accepted = std::get<v1::SubmitJobsResponse>(sent);
  return Submitted(session, *words, spec, accepted.responses(0).job_id());
}

}  // namespace muster::cli::sky
