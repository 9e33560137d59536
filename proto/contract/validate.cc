#include "contract/validate.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "contract/characters.h"
#include "contract/defaults.h"
#include "contract/dependencies.h"
#include "contract/duration_text.h"
#include "contract/errors.h"
#include "contract/gpu_types.h"
#include "contract/honoured.h"
#include "contract/image.h"
#include "contract/kubernetes_options.h"
#include "contract/lost_clusters.h"
#include "contract/path_bytes.h"
#include "contract/program.h"
#include "contract/retry.h"
#include "contract/roles.h"
#include "contract/secrets.h"
#include "contract/slurm_container.h"
#include "contract/slurm_options.h"
#include "contract/slurm_program.h"
#include "contract/storage_uri.h"
#include "contract/task_array.h"
#include "contract/text.h"
#include "contract/uploads.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr size_t kMaxLabelValueBytes = 63;
constexpr size_t kMaxClusterNameBytes = 63;
constexpr int kMaxMounts = 64;                 // more are better one directory higher
constexpr size_t kMaxPlacementClusters = 100;  // a list that a person still writes
constexpr uint64_t kMaxCpuMillis = 10'000'000;
constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 50;
constexpr uint64_t kGpuMillis = 1'000;
constexpr uint64_t kMaxGpuMillis = 1'000'000;
// A hundred years are the bound: Slurm takes any number of days, and some sites have limits of
// several years.
constexpr int64_t kMaxTimeLimitSeconds = 36500 * int64_t{86400};
constexpr int32_t kMaxPriority = 1000;

bool IsClusterName(std::string_view name) {
  const auto is_inner = [](char c) { return IsLowerLetter(c) || IsDigit(c) || c == '-'; };
  return !name.empty() && name.size() <= kMaxClusterNameBytes && name.front() != '-' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), is_inner);
}

// ---- checks; each adds what is wrong with its part of the spec

template <typename Number>
void CheckAtMost(std::string_view field, Number value, Number max, FieldErrors* errors) {
  if (value > max) errors->Add(field, fmt::format("{} is too large; use at most {}", value, max));
}

void CheckPriority(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.priority() >= -kMaxPriority && spec.priority() <= kMaxPriority) return;
  errors->Add("priority", fmt::format("{} is out of range; use {} to {}", spec.priority(),
                                      -kMaxPriority, kMaxPriority));
}

void CheckIdentity(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.name().size() > kMaxNameBytes) {
    errors->Add("name", fmt::format("{} is longer than {} bytes; shorten it", Quoted(spec.name()),
                                    kMaxNameBytes));
  }
  if (HasControlCharacter(spec.name()) || !IsUtf8(spec.name())) {
    errors->Add("name", fmt::format("{} holds a control character or is not UTF-8; use plain text",
                                    Quoted(spec.name())));
  }
  if (!IsClusterName(spec.project())) {
    errors->Add("project", fmt::format("{} is not a project name; use 1 to 63 of a-z, 0-9 and "
                                       "'-', with a letter or digit at both ends",
                                       Quoted(spec.project())));
  }
  CheckPriority(spec, errors);
}

void CheckLabels(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.labels_size() > static_cast<int>(kMaxLabels)) {
    errors->Add("labels", fmt::format("{} labels; use at most {}", spec.labels_size(), kMaxLabels));
  }
  const auto is_key_character = [](char c) {
    return IsLowerLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.';
  };
  for (const auto& [key, value] : spec.labels()) {
    const std::string field = fmt::format("labels[{}]", Quoted(key));
    if (key.empty() || key.size() > kMaxLabelValueBytes ||
        !std::all_of(key.begin(), key.end(), is_key_character)) {
      errors->Add(field, "not a label key; use 1 to 63 of a-z, 0-9, '-', '_' and '.'");
    }
    if (value.size() > kMaxLabelValueBytes || HasControlCharacter(value) || !IsUtf8(value)) {
      errors->Add(field, fmt::format("{} is not a label value; use up to 63 bytes of UTF-8 "
                                     "without control characters",
                                     Quoted(value)));
    }
  }
}

void CheckGpus(const v1::Resources& resources, FieldErrors* errors) {
  if (resources.gpus_size() > 1) {
    errors->Add("resources.gpus[1]",
                "a job has GPUs of one type; ask for one, or submit several jobs");
  }
  for (int i = 0; i < resources.gpus_size(); ++i) {
    const v1::GpuRequest& gpus = resources.gpus(i);
    const std::string field = fmt::format("resources.gpus[{}]", i);
    const bool is_none = gpus.count_millis() == 0 && gpus.type().empty();
    if (!is_none && (gpus.count_millis() == 0 || gpus.count_millis() > kMaxGpuMillis)) {
      errors->Add(field + ".count_millis",
                  fmt::format("{} is out of range; use 1000 (one GPU) to {}, or 0 without a type "
                              "for none",
                              gpus.count_millis(), kMaxGpuMillis));
    } else if (gpus.count_millis() > kGpuMillis && gpus.count_millis() % kGpuMillis != 0) {
      errors->Add(field + ".count_millis",
                  fmt::format("{} is neither a share of one GPU nor whole GPUs; use 1 to 999, or a "
                              "multiple of 1000",
                              gpus.count_millis()));
    }
    if (!gpus.type().empty() && !IsGpuType(gpus.type()))
      errors->Add(field + ".type", NoGpuType(gpus.type()));
  }
}

void CheckMemory(uint64_t bytes, FieldErrors* errors) {
  CheckAtMost("resources.memory_bytes", bytes, kMaxMemoryBytes, errors);
  if (bytes == 0 || bytes >= kMinMemoryBytes) return;
  errors->Add("resources.memory_bytes",
              fmt::format("{0} bytes are too few; use at least 1Mi, with its unit ({0}Mi, {0}Gi), "
                          "or leave it out for the cluster's default",
                          bytes));
}

void CheckResources(const v1::JobSpec& spec, FieldErrors* errors) {
  CheckAtMost("nodes", spec.nodes(), kMaxNodes, errors);
  CheckAtMost("resources.cpu_millis", spec.resources().cpu_millis(), kMaxCpuMillis, errors);
  CheckMemory(spec.resources().memory_bytes(), errors);
  CheckGpus(spec.resources(), errors);
  if (!spec.has_time_limit()) return;
  const auto& limit = spec.time_limit();
  const bool is_too_long = limit.seconds() > kMaxTimeLimitSeconds ||
                           (limit.seconds() == kMaxTimeLimitSeconds && limit.nanos() > 0);
  if (limit.seconds() < 1 || is_too_long || limit.nanos() < 0 || limit.nanos() > 999'999'999) {
    errors->Add(
        "time_limit",
        fmt::format("{} is out of range; use 1s to 36500d, or leave it out for the cluster's "
                    "own limit",
                    DurationText(limit)));
  }
}

void CheckPrograms(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.roles().empty()) {
    CheckCommand("command", spec.command(), errors);
  } else {
    CheckRoles(spec, errors);
  }
  CheckScriptText("setup", spec.setup(), errors);
  CheckEnv("env", spec.env(), errors, IsArrayVariable);
  CheckArrayTask(spec, errors);
  const std::string& directory = spec.working_directory();
  if (!directory.empty() && (directory.front() != '/' || directory.size() > kMaxPathBytes ||
                             HasControlCharacter(directory) || !IsUtf8(directory))) {
    errors->Add("working_directory",
                fmt::format("{} is not a usable path; use an absolute one of at most {} bytes "
                            "without control characters",
                            Quoted(directory), kMaxPathBytes));
  }
}

void CheckContainer(const v1::JobSpec& spec, FieldErrors* errors) {
  if (!spec.image().empty()) {
    const absl::StatusOr<Image> image = ParseImage(spec.image());
    if (const auto bad = GetBadRequest(image.status()); bad.has_value()) {
      for (const auto& field : bad->field_violations()) {
        errors->Add(field.field(), field.description());
      }
    }
  } else if (spec.mounts_size() > 0) {
    errors->Add("mounts",
                "only the container of an image that the job names has mounts (a default of the "
                "cluster's operator does not count); name an image, or leave mounts out");
  }
  CheckAtMost("mounts", spec.mounts_size(), kMaxMounts, errors);
  for (int i = 0; i < spec.mounts_size(); ++i) {
    const auto check = [&](std::string_view name, const std::string& path) {
      if (!path.empty() && path.front() == '/' && path.size() <= kMaxPathBytes &&
          !HasControlCharacter(path) && IsUtf8(path)) {
        return;
      }
      errors->Add(fmt::format("mounts[{}].{}", i, name),
                  fmt::format("{} is not a usable path; use an absolute one of at most {} bytes "
                              "without control characters",
                              Quoted(path), kMaxPathBytes));
    };
    check("source", spec.mounts(i).source());
    check("target", spec.mounts(i).target());
  }
}

// Every cluster could have this data: paths and URIs that mean the same wherever they are read, or
// a file of a machine, which only a cluster of machines can have (fit.cc of the broker).
void CheckStorageUri(const std::string& field, const std::string& text, FieldErrors* errors) {
  const absl::StatusOr<StorageUri> uri = ParseStorageUri(field, text);
  if (const auto bad = GetBadRequest(uri.status()); bad.has_value()) {
    for (const auto& one : bad->field_violations()) errors->Add(one.field(), one.description());
  } else if (uri.ok() && uri->kind == StorageUri::Kind::kRelative) {
    errors->Add(field, fmt::format("{} is a relative path, which means nothing on a cluster; copy "
                                   "the data there and write lustre:///path",
                                   Quoted(text)));
  }
}

void CheckStorage(const v1::JobSpec& spec, FieldErrors* errors) {
  const int inputs = spec.inputs_size();
  CheckAtMost("inputs", inputs, static_cast<int>(kMaxInputs), errors);
  for (int i = 0; i < std::min(inputs, static_cast<int>(kMaxInputs)); ++i) {
    const v1::Input& input = spec.inputs(i);
    CheckStorageUri(fmt::format("inputs[{}].uri", i), input.uri(), errors);
    if (input.path().empty()) continue;
    const std::string field = fmt::format("inputs[{}].path", i);
    if (spec.image().empty()) {
      errors->Add(
          field,
          "only the container of an image that the job names has its data at a path of its "
          "own (a default of the cluster's operator does not count); name an image, or leave "
          "path out");
    } else if (input.path().front() != '/' || input.path().size() > kMaxPathBytes ||
               HasControlCharacter(input.path()) || !IsUtf8(input.path())) {
      errors->Add(field, fmt::format("{} is not a usable path; use an absolute one of at most {} "
                                     "bytes without control characters",
                                     Quoted(input.path()), kMaxPathBytes));
    }
  }
  if (!spec.results_directory().empty())
    CheckStorageUri("results_directory", spec.results_directory(), errors);
}

// Names the part that has most of it.
void CheckSize(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.ByteSizeLong() <= kMaxSpecBytes) return;
  size_t env = 0;
  for (const auto& [name, value] : spec.env()) env += name.size() + value.size();
  const std::pair<size_t, std::string_view> parts[] = {
      {spec.setup().size(), "setup"}, {spec.command().ByteSizeLong(), "command"}, {env, "env"}};
  const auto [bytes, field] = *std::max_element(std::begin(parts), std::end(parts));
  errors->Add(field, fmt::format("{} bytes make the spec {} bytes long; use at most {} in all, and "
                                 "files on the cluster for more",
                                 bytes, spec.ByteSizeLong(), kMaxSpecBytes));
}

void CheckPlacement(const v1::JobSpec& spec, FieldErrors* errors) {
  const v1::Placement& placement = spec.placement();
  if (placement.clusters_size() > static_cast<int>(kMaxPlacementClusters)) {
    errors->Add("placement.clusters",
                fmt::format("{} clusters; use at most {}", placement.clusters_size(),
                            kMaxPlacementClusters));
  }
  for (int i = 0; i < placement.clusters_size(); ++i) {
    if (IsClusterName(placement.clusters(i))) continue;
    errors->Add(fmt::format("placement.clusters[{}]", i),
                fmt::format("{} is not a cluster's name; `muster clusters` lists them",
                            Quoted(placement.clusters(i))));
  }
  CheckOptionValue("placement.pool", placement.pool(), errors);
  if (placement.pool().find(',') != std::string::npos) {
    errors->Add("placement.pool", fmt::format("{} names several pools; use one, or "
                                              "slurm.partition",
                                              Quoted(placement.pool())));
  }
}

}  // namespace

absl::Status FindBadFields(v1::JobSpec* spec, FieldErrors* errors) {
  if (absl::Status honoured = CheckHonoured(*spec); !honoured.ok()) return honoured;
  FillDefaults(spec);
  CheckSize(*spec, errors);
  CheckIdentity(*spec, errors);
  CheckResources(*spec, errors);
  CheckPrograms(*spec, errors);
  CheckSecrets(*spec, errors);
  CheckContainer(*spec, errors);
  CheckUploads(*spec, errors);
  CheckStorage(*spec, errors);
  CheckLabels(*spec, errors);
  CheckPlacement(*spec, errors);
  CheckDependencies(*spec, errors);
  CheckSlurmOptions(spec->slurm(), errors);
  CheckRetry(*spec, errors);
  CheckClusterLoss(*spec, errors);
  CheckSlurmContainer(*spec, errors);
  CheckSlurmProgram(*spec, errors);
  CheckKubernetesOptions(*spec, errors);
  return absl::OkStatus();
}

absl::StatusOr<v1::JobSpec> NormalizeJobSpec(v1::JobSpec spec) {
  FieldErrors errors;
  if (absl::Status honoured = FindBadFields(&spec, &errors); !honoured.ok()) return honoured;
  if (!errors.empty()) return errors.ToStatus();
  return spec;
}

absl::Status ValidateEdit(const v1::JobSpec& spec) {
  FieldErrors errors;
  CheckPriority(spec, &errors);
  CheckLabels(spec, &errors);
  return errors.ToStatus();
}

absl::Status ValidateClusterName(std::string_view name) {
  if (IsClusterName(name)) return absl::OkStatus();
  return BadField("cluster", fmt::format("{} is not a cluster's name; use 1 to 63 of a-z, 0-9 and "
                                         "'-', with a letter or digit at both ends",
                                         Quoted(name)));
}

absl::Status ValidateRequestId(std::string_view request_id) {
  if (request_id.size() <= kMaxRequestIdBytes && IsUtf8(request_id) &&
      !HasControlCharacter(request_id)) {
    return absl::OkStatus();
  }
  return BadField("request_id",
                  fmt::format("{} is not a usable request id; use up to {} bytes without control "
                              "characters, a UUID for example",
                              Quoted(request_id), kMaxRequestIdBytes));
}

}  // namespace muster::contract
