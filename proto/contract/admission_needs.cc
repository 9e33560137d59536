// Takes from a spec the part that admission facts judge.
#include <algorithm>
#include <map>
#include <utility>

#include "contract/admission.h"
#include "contract/slurm_options.h"
#include "contract/spank_options.h"
#include "contract/storage_uri.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace muster::contract {
namespace {

constexpr uint64_t kMillisOfOneGpu = 1000;

void AddVariables(const std::string& prefix,
                  const google::protobuf::Map<std::string, std::string>& env,
                  std::vector<PlaceText>* places) {
  // Each submit comes here, and few have one.
  if (std::none_of(env.begin(), env.end(),
                   [](const auto& entry) { return IsClusterUri(entry.second); }))
    return;
  const std::map<std::string, std::string> sorted(env.begin(), env.end());
  for (const auto& [name, value] : sorted) {
    if (IsClusterUri(value)) places->push_back({fmt::format("{}env[\"{}\"]", prefix, name), value});
  }
}

void AddWords(const std::string& prefix, const v1::Command& command,
              std::vector<PlaceText>* places) {
  const bool is_argv = command.has_argv();
  const auto& words = is_argv ? command.argv().args() : command.script_arguments();
  for (int i = 0; i < words.size(); ++i) {
    if (!IsClusterUri(words[i])) continue;
    places->push_back(
        {fmt::format("{}command.{}[{}]", prefix, is_argv ? "argv.args" : "script_arguments", i),
         words[i]});
  }
}

std::vector<PlaceText> PlacesOf(const v1::JobSpec& spec) {
  std::vector<PlaceText> places;
  for (int i = 0; i < spec.inputs_size(); ++i)
    places.push_back({fmt::format("inputs[{}].uri", i), spec.inputs(i).uri()});
  if (!spec.results_directory().empty())
    places.push_back({"results_directory", spec.results_directory()});
  AddVariables("", spec.env(), &places);
  AddWords("", spec.command(), &places);
  for (int i = 0; i < spec.roles_size(); ++i) {
    const std::string prefix = fmt::format("roles[{}].", i);
    AddVariables(prefix, spec.roles(i).env(), &places);
    AddWords(prefix, spec.roles(i).command(), &places);
  }
  return places;
}

uint32_t PodsOf(const v1::JobSpec& spec) {
  if (spec.roles().empty()) return std::max<uint32_t>(spec.nodes(), 1);
  uint32_t pods = 0;
  for (const v1::Role& role : spec.roles()) pods += role.nodes();
  return pods;
}

uint32_t LastArrayIndexOf(const v1::JobSpec& spec) {
  // Each submit comes here, and few are tasks.
  if (!spec.slurm().has_batch_script() || spec.env().empty()) return 0;
  const std::optional<ArrayTask> task = FindArrayTask(spec);
  return task.has_value() ? task->max_id : 0;
}

// Keeps the part of the section that admission judges.
v1::KubernetesOptions Judged(v1::KubernetesOptions options) {
  options.clear_labels();
  options.clear_annotations();
  options.clear_preferred_nodes();
  options.clear_termination_grace();
  options.clear_time_to_live();
  options.clear_image_pull_secrets();
  options.clear_scheduler_name();
  const bool is_privileged = options.security_context().privileged();
  options.clear_security_context();
  if (is_privileged) options.mutable_security_context()->set_privileged(true);
  return options;
}

// Tells whether the cluster decides the job's cores and memory beside its GPUs, which it says at
// the submit.
bool LeavesOpenWhatGoesWithGpus(const v1::Resources& resources) {
  const bool is_open = resources.cpu_millis() == 0 || resources.memory_bytes() == 0;
  return is_open && resources.gpus_size() > 0 && resources.gpus(0).count_millis() > 0;
}

bool NamesResource(const v1::GpuRequest& gpus) {
  return gpus.type().find('/') != std::string::npos;
}

void Put(std::string_view text, std::string* bytes) {
  *bytes += fmt::format("{}:", text.size());
  *bytes += text;
}

// Makes "lustre:///lustre/sets/cats" of "lustre:///lustre/sets/cats/7".
std::string FirstParts(const std::string& text) {
  const size_t scheme = text.find("://");
  size_t at = scheme == std::string::npos ? 0 : scheme + 3;
  for (int parts = 0; parts < kKeptPathParts; ++parts) {
    at = text.find_first_not_of('/', at);
    if (at == std::string::npos) return text;
    at = text.find('/', at);
    if (at == std::string::npos) return text;
  }
  return text.substr(0, at);
}

void CutPlaces(AdmissionNeeds* needs) {
  needs->are_places_cut = true;
  std::map<std::string, std::string> first;  // the first field of each text
  for (PlaceText& place : needs->places)
    first.emplace(FirstParts(place.text), std::move(place.field));
  needs->places.clear();
  needs->results = FirstParts(needs->results);
  for (auto& [text, field] : first) needs->places.push_back({std::move(field), text});
  for (v1::Mount& mount : needs->mounts) {
    mount.set_source(FirstParts(mount.source()));
    mount.clear_read_only();
    if (BadMountPlace(mount.target()).empty()) mount.clear_target();
  }
}

std::string Deterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

std::optional<AdmissionNeeds> AdmissionNeedsOf(const v1::JobSpec& spec) {
  AdmissionNeeds needs;
  needs.places = PlacesOf(spec);
  needs.mounts.assign(spec.mounts().begin(), spec.mounts().end());
  needs.working_directory = spec.working_directory();
  needs.status_json = spec.status_json();
  if (needs.status_json) needs.results = spec.results_directory();
  for (SpankOption& option : SpankOptionsOf(spec.slurm()))
    needs.spank_options.push_back({std::move(option.field), std::move(option.name)});
  needs.last_array_index = LastArrayIndexOf(spec);
  const auto& gpus = spec.resources().gpus();
  const bool is_plain = !spec.has_kubernetes() && needs.places.empty() && needs.mounts.empty() &&
                        needs.working_directory.empty() && !needs.status_json &&
                        needs.spank_options.empty() && needs.last_array_index == 0 &&
                        spec.uploads_size() == 0 && !LeavesOpenWhatGoesWithGpus(spec.resources()) &&
                        std::none_of(gpus.begin(), gpus.end(), NamesResource);
  if (is_plain) return std::nullopt;
  needs.pods = PodsOf(spec);
  needs.cpu_millis = spec.resources().cpu_millis();
  needs.memory_bytes = spec.resources().memory_bytes();
  if (!gpus.empty()) {
    needs.gpu_type = gpus[0].type();
    needs.gpus = (gpus[0].count_millis() + kMillisOfOneGpu - 1) / kMillisOfOneGpu;
  }
  needs.kubernetes = Judged(spec.kubernetes());
  needs.pool = spec.placement().pool();
  needs.is_directory_implied = IsDirectoryImplied(spec);
  return needs;
}

std::optional<AdmissionNeeds> RefusableOf(AdmissionNeeds needs) {
  CutPlaces(&needs);
  needs.working_directory.clear();
  needs.is_directory_implied = false;
  if (needs.archive_bytes <= kSmallArchiveBytes) needs.archive_bytes = 0;
  const bool names_resource = needs.gpu_type.find('/') != std::string::npos;
  const bool is_plain = needs.places.empty() && needs.mounts.empty() && !needs.status_json &&
                        needs.spank_options.empty() && needs.last_array_index == 0 &&
                        needs.archive_bytes == 0 && !names_resource &&
                        needs.kubernetes.ByteSizeLong() == 0;
  if (is_plain) return std::nullopt;
  return needs;
}

std::string BytesOf(const AdmissionNeeds& needs) {
  std::string bytes = fmt::format("{} {} {} {} {} {} {} {} ", needs.pods, needs.cpu_millis,
                                  needs.memory_bytes, needs.gpus, needs.is_directory_implied,
                                  needs.status_json, needs.archive_bytes, needs.last_array_index);
  for (const std::string& text : {needs.gpu_type, needs.pool, needs.working_directory,
                                  needs.results, Deterministic(needs.kubernetes)}) {
    Put(text, &bytes);
  }
  for (const auto* texts : {&needs.places, &needs.spank_options}) {
    bytes += fmt::format("{} ", texts->size());
    for (const PlaceText& one : *texts) {
      Put(one.field, &bytes);
      Put(one.text, &bytes);
    }
  }
  for (const v1::Mount& mount : needs.mounts) Put(Deterministic(mount), &bytes);
  return bytes;
}

}  // namespace muster::contract
