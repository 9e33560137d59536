#include "agents/core/job_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "contract/admission.h"
#include "contract/characters.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/path_within.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

// Missing inputs that are named at most.
constexpr size_t kMaxNamed = 8;
// Others may read what the job makes; its umask decides about the files.
constexpr uint32_t kResultsMode = 0755;

absl::Status Resolve(const std::string& field, const JobStorage& storage, std::string* text) {
  absl::StatusOr<std::string> path = contract::ResolveStorageUri(field, *text, storage.cluster);
  if (!path.ok()) return path.status();
  *text = *std::move(path);
  return absl::OkStatus();
}

absl::Status ResolveVariables(const std::string& prefix, const JobStorage& storage,
                              google::protobuf::Map<std::string, std::string>* env) {
  for (auto& [name, value] : *env) {
    if (!contract::IsClusterUri(value)) continue;
    if (absl::Status s = Resolve(fmt::format("{}env[\"{}\"]", prefix, name), storage, &value);
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status ResolveWords(const std::string& prefix, const JobStorage& storage,
                          v1::Command* command) {
  const auto resolve = [&](const char* list, auto* words) {
    for (int i = 0; i < words->size(); ++i) {
      if (!contract::IsClusterUri(words->Get(i))) continue;
      const std::string field = fmt::format("{}command.{}[{}]", prefix, list, i);
      if (absl::Status s = Resolve(field, storage, words->Mutable(i)); !s.ok()) return s;
    }
    return absl::OkStatus();
  };
  if (command->has_argv()) return resolve("argv.args", command->mutable_argv()->mutable_args());
  return resolve("script_arguments", command->mutable_script_arguments());
}

absl::Status ResolvePrograms(const JobStorage& storage, v1::JobSpec* spec) {
  absl::Status status = ResolveVariables("", storage, spec->mutable_env());
  if (spec->has_command()) status.Update(ResolveWords("", storage, spec->mutable_command()));
  for (int i = 0; i < spec->roles_size() && status.ok(); ++i) {
    const std::string prefix = fmt::format("roles[{}].", i);
    status.Update(ResolveVariables(prefix, storage, spec->mutable_roles(i)->mutable_env()));
    if (spec->roles(i).has_command())
      status.Update(ResolveWords(prefix, storage, spec->mutable_roles(i)->mutable_command()));
  }
  return status;
}

bool IsShown(const v1::JobSpec& spec, const JobStorage& storage, std::string_view path) {
  const auto& own = spec.mounts();
  return std::any_of(storage.container_mounts.begin(), storage.container_mounts.end(),
                     [&](const std::string& mount) { return contract::IsWithin(path, mount); }) ||
         std::any_of(own.begin(), own.end(), [&](const v1::Mount& mount) {
           return mount.source() == mount.target() && contract::IsWithin(path, mount.source());
         });
}

void AddMount(const std::string& source, const std::string& target, bool read_only,
              v1::JobSpec* spec) {
  v1::Mount* mount = spec->add_mounts();
  mount->set_source(source);
  mount->set_target(target);
  mount->set_read_only(read_only);
}

// The results come last: they may be below an input, which is read-only.
void AddMounts(const JobStorage& storage, v1::JobSpec* spec) {
  if (spec->image().empty()) return;
  const std::string& results = spec->results_directory();
  bool show_results = !results.empty() && !IsShown(*spec, storage, results);
  for (const v1::Input& input : spec->inputs()) {
    const std::string& target = input.path().empty() ? input.uri() : input.path();
    if (target == input.uri() && IsShown(*spec, storage, target)) continue;
    AddMount(input.uri(), target, /*read_only=*/true, spec);
    show_results |= contract::IsWithin(results, target);
  }
  if (show_results) AddMount(results, results, /*read_only=*/false, spec);
}

// Turns an answer of the file system itself into an error of `field`; other errors stay as they
// are.
absl::Status Explain(const std::string& field, const std::string& path, std::string_view problem,
                     const absl::Status& status) {
  const bool is_answer = absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
                         absl::IsPermissionDenied(status) || absl::IsAlreadyExists(status);
  if (!is_answer) return status;
  return contract::BadField(
      field, fmt::format("{} {}: {}", contract::Quoted(path), problem, ToStd(status.message())));
}

}  // namespace

absl::StatusOr<agent::v1::Assignment> OnCluster(const agent::v1::Assignment& assignment,
                                                const JobStorage& storage) {
  agent::v1::Assignment resolved = assignment;
  v1::JobSpec* spec = resolved.mutable_spec();
  for (int i = 0; i < spec->inputs_size(); ++i) {
    const std::string field = fmt::format("inputs[{}].uri", i);
    if (absl::Status s = Resolve(field, storage, spec->mutable_inputs(i)->mutable_uri()); !s.ok())
      return s;
  }
  if (!spec->results_directory().empty()) {
    if (absl::Status s = Resolve("results_directory", storage, spec->mutable_results_directory());
        !s.ok()) {
      return s;
    }
  } else if (!storage.results_root.empty()) {
    spec->set_results_directory(fmt::format("{}/{}", storage.results_root, assignment.job_id()));
  } else if (spec->status_json()) {
    return contract::BadField("status_json", contract::NoPlaceForStatus(storage.cluster.cluster));
  }
  if (absl::Status s = ResolvePrograms(storage, spec); !s.ok()) return s;
  AddMounts(storage, spec);
  return resolved;
}

absl::Status CheckInputs(const v1::JobSpec& spec, hosts::Host* host) {
  if (spec.inputs().empty()) return absl::OkStatus();
  std::vector<std::string> paths;
  for (const v1::Input& input : spec.inputs()) paths.push_back(input.uri());
  std::vector<absl::StatusOr<hosts::FileInfo>> infos = host->StatMany(paths);
  // A slash at the end makes stat follow a link; a path that is no directory then still exists.
  std::vector<size_t> links;
  std::vector<std::string> behind;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!infos[i].ok() || infos[i]->type != hosts::FileType::kSymlink) continue;
    links.push_back(i);
    behind.push_back(paths[i] + "/");
  }
  const std::vector<absl::StatusOr<hosts::FileInfo>> targets =
      behind.empty() ? std::vector<absl::StatusOr<hosts::FileInfo>>() : host->StatMany(behind);
  for (size_t i = 0; i < links.size(); ++i) {
    if (!absl::IsFailedPrecondition(targets[i].status())) infos[links[i]] = targets[i];
  }
  std::vector<std::string> missing;
  size_t count = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].ok()) continue;
    const absl::Status why =
        Explain(fmt::format("inputs[{}].uri", i), paths[i], "", infos[i].status());
    if (!absl::IsInvalidArgument(why)) return why;
    if (++count > kMaxNamed) continue;
    missing.push_back(fmt::format(
        "inputs[{}].uri {} ({})", i, contract::Quoted(paths[i]),
        absl::IsPermissionDenied(infos[i].status()) ? "may not be read" : "is not there"));
  }
  if (count == 0) return absl::OkStatus();
  return contract::BadField("inputs", fmt::format("cannot be used on {}: {}; put the data there, "
                                                  "or correct the path",
                                                  host->Name(), contract::Listed(missing, count)));
}

std::optional<v1::ClusterCheck> PlanInputs(const v1::JobSpec& spec, hosts::Host* host) {
  if (spec.inputs().empty()) return std::nullopt;
  v1::ClusterCheck line;
  line.set_code(v1::CHECK_CODE_STORAGE);
  line.set_subject("inputs");
  const absl::Status there = CheckInputs(spec, host);
  if (there.ok()) {
    line.set_result(v1::CHECK_RESULT_OK);
    line.set_seen(fmt::format("all {} are on {}", spec.inputs_size(), host->Name()));
  } else if (absl::IsInvalidArgument(there)) {
    line.set_result(v1::CHECK_RESULT_FAIL);
    line.set_seen(WhatIsWrong(there));
    line.set_remedy("Correct the job, or put the data there.");
  } else {
    line.set_result(v1::CHECK_RESULT_WARN);
    line.set_seen(fmt::format("they could not be looked at: {}", ToStd(there.message())));
  }
  return line;
}

std::string WhatIsWrong(const absl::Status& status) {
  const auto bad = contract::GetBadRequest(status);
  if (!bad.has_value() || bad->field_violations().empty())
    return std::string(ToStd(status.message()));
  return fmt::format("{}: {}", bad->field_violations(0).field(),
                     bad->field_violations(0).description());
}

absl::Status MakeResultsDirectory(const v1::JobSpec& spec, hosts::Host* host) {
  const std::string& path = spec.results_directory();
  if (path.empty()) return absl::OkStatus();
  const absl::Status status = host->MakeDirectories(path, kResultsMode);
  if (status.ok()) return status;
  return Explain("results_directory", path, "cannot be made", status);
}

}  // namespace muster::agents
