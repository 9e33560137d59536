#include "clients/cpp/dialect.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "contract/nearest.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {
namespace {

// Only a SkyPilot task has these fields at the top of a document, and under its resources.
constexpr std::string_view kSkyPilotTop[] = {"num_nodes", "envs",          "volumes",
                                             "service",   "config",        "event_callback",
                                             "execution", "primary_tasks", "termination_delay"};
// Both have it, and it is much more common in tasks.
constexpr std::string_view kMostlySkyPilot = "file_mounts";
constexpr std::string_view kSkyPilotResources[] = {
    "accelerators",    "infra",           "any_of",       "ordered",  "image_id",
    "cloud",           "region",          "zone",         "labels",   "priority",
    "instance_type",   "use_spot",        "job_recovery", "ports",    "disk_size",
    "disk_tier",       "network_tier",    "local_disk",   "autostop", "spot_recovery",
    "max_hourly_cost", "accelerator_args"};
// The fields that job files call by other names than the API does.
constexpr std::string_view kMusterTop[] = {"time", "cluster", "arguments"};
// Fields of the API whose names both have.
constexpr std::string_view kOfBoth[] = {"name", "setup", "resources"};
// Others that both have.
constexpr std::string_view kOfBothByOtherNames[] = {"run", "workdir", "pool", "secrets",
                                                    kMostlySkyPilot};
constexpr std::string_view kResourcesOfBoth[] = {"cpus", "memory", "gpus"};

template <size_t kCount>
bool IsOneOf(std::string_view name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsMusterTop(const std::string& name, const YAML::Node& value) {
  if (name == "pool") return value.IsScalar();
  if (name == "run" || name == "secrets" || IsOneOf(name, kOfBoth)) return false;
  const auto& type = *v1::JobSpec::descriptor();
  return IsOneOf(name, kMusterTop) || type.FindFieldByName(name) != nullptr ||
         type.FindFieldByCamelcaseName(name) != nullptr;
}

bool IsSkyPilotTop(const std::string& name, const YAML::Node& value) {
  const bool has_other_meaning = name == "pool" || name == "workdir";
  return IsOneOf(name, kSkyPilotTop) || (has_other_meaning && value.IsMap());
}

// "4+" is at least so many, "2x" so many times the others': nothing that a job file may ask for.
bool IsSkyPilotResource(const std::string& name, const YAML::Node& value) {
  if (IsOneOf(name, kSkyPilotResources)) return true;
  const bool is_amount = (name == "cpus" || name == "memory") && value.IsScalar();
  return is_amount && (value.Scalar().ends_with('+') || value.Scalar().ends_with('x'));
}

bool HasField(const YAML::Node& node,
              const std::function<bool(const std::string&, const YAML::Node&)>& is_it) {
  if (!node.IsMap()) return false;
  return std::any_of(node.begin(), node.end(), [&](const auto& entry) {
    return entry.first.IsScalar() && is_it(entry.first.Scalar(), entry.second);
  });
}

bool IsMuster(const YAML::Node& document) { return HasField(document, IsMusterTop); }

bool IsSkyPilot(const YAML::Node& document) {
  return HasField(document, [](const std::string& name, const YAML::Node& value) {
    if (name != "resources") return IsSkyPilotTop(name, value);
    return HasField(value, IsSkyPilotResource);
  });
}

// Returns whether a name that belongs to neither dialect is a misspelling of one that only a task
// has.
template <size_t kCount>
bool IsSlipOf(const std::string& name, std::vector<std::string_view> others,
              const std::string_view (&of_task)[kCount]) {
  if (std::find(others.begin(), others.end(), name) != others.end()) return false;
  others.insert(others.end(), std::begin(of_task), std::end(of_task));
  const std::string_view meant = contract::Nearest(name, others);
  return !meant.empty() && IsOneOf(meant, of_task);
}

// Returns the names that a job file may have at the top.
std::vector<std::string_view> MusterTopNames() {
  std::vector<std::string_view> names(std::begin(kMusterTop), std::end(kMusterTop));
  names.insert(names.end(), std::begin(kOfBothByOtherNames), std::end(kOfBothByOtherNames));
  const auto& type = *v1::JobSpec::descriptor();
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

bool IsMeantForSkyPilot(const YAML::Node& document) {
  const std::vector<std::string_view> top = MusterTopNames();
  return HasField(document, [&](const std::string& name, const YAML::Node& value) {
    if (name != "resources") return IsSlipOf(name, top, kSkyPilotTop);
    return HasField(value, [](const std::string& inner, const YAML::Node&) {
      return IsSlipOf(inner, {std::begin(kResourcesOfBoth), std::end(kResourcesOfBoth)},
                      kSkyPilotResources);
    });
  });
}

// A job file's document that has a name only describes no job.
bool IsHeader(const YAML::Node& document) {
  return document.IsMap() && document.size() == 1 &&
         HasField(document,
                  [](const std::string& name, const YAML::Node&) { return name == "name"; });
}

}  // namespace

FoundDialect DialectOf(const std::vector<YAML::Node>& documents) {
  if (std::any_of(documents.begin(), documents.end(), IsMuster)) return {Dialect::kMuster};
  const auto is_there = [](const YAML::Node& document) { return !document.IsNull(); };
  const auto first = std::find_if(documents.begin(), documents.end(), is_there);
  const bool has_header = std::count_if(first, documents.end(), is_there) > 1 && IsHeader(*first);
  const bool is_task = has_header || std::any_of(documents.begin(), documents.end(), IsSkyPilot) ||
                       std::any_of(documents.begin(), documents.end(), IsMeantForSkyPilot);
  if (is_task) return {Dialect::kSkyPilot};
  const bool has_mounts = std::any_of(documents.begin(), documents.end(), [](const auto& document) {
    return HasField(document, [](const std::string& name, const YAML::Node&) {
      return name == kMostlySkyPilot;
    });
  });
  return {has_mounts ? Dialect::kSkyPilot : Dialect::kMuster, /*is_told=*/false};
}

}  // namespace muster::client
