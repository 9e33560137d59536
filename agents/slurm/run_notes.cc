// The files of a run that people read.
#include "agents/hosts/shell_quote.h"
#include "agents/slurm/run_files.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace muster::slurm {
namespace {

constexpr std::string_view kHidden = "(in env/)";

std::string Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return {};
  return text;
}

v1::JobSpec WithoutSecrets(v1::JobSpec spec) {
  for (auto& [name, value] : *spec.mutable_env()) value = kHidden;
  for (v1::Role& role : *spec.mutable_roles()) {
    for (auto& [name, value] : *role.mutable_env()) value = kHidden;
  }
  return spec;
}

std::string CommandLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const absl::StatusOr<std::string> quoted = hosts::ShellQuote(word);
    line += (line.empty() ? "" : " ") + quoted.value_or("");
  }
  return line + "\n";
}

}  // namespace

std::vector<RunFile> MakeRunNotes(const agent::v1::Assignment& assignment, std::string_view cluster,
                                  const RunPaths& paths,
                                  const std::vector<std::string>& sbatch_words,
                                  absl::Time submit_time) {
  google::protobuf::Struct run;
  const auto add = [&](const char* name, std::string text) {
    (*run.mutable_fields())[name].set_string_value(std::move(text));
  };
  add("run_key", assignment.run_key());
  add("job", std::to_string(assignment.job_id()));
  add("run", std::to_string(assignment.run()));
  add("user", assignment.user());
  add("cluster", std::string(cluster));
  add("submit_time", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", submit_time, absl::UTCTimeZone()));
  return {{paths.specs() + "/job.json", Json(WithoutSecrets(assignment.spec()))},
          {paths.meta() + "/run.json", Json(run)},
          {paths.command_line(), CommandLine(sbatch_words)}};
}

}  // namespace muster::slurm
