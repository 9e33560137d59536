#include "agents/slurm/profile.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "contract/errors.h"
#include "fmt/format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster::slurm {
namespace {

constexpr uint64_t kMillis = 1000;

// The fields of SlurmOptions that a job gets if it does not set them.
constexpr std::array<std::string_view, 8> kFilledIn = {
    "account", "qos", "reservation", "constraint", "comment", "mail_type", "mail_user", "requeue"};

void FillSlurmOptions(const v1::SlurmOptions& defaults, v1::SlurmOptions* slurm) {
  const auto* reflection = v1::SlurmOptions::GetReflection();
  v1::SlurmOptions missing;
  for (const std::string_view name : kFilledIn) {
    const auto* field = v1::SlurmOptions::descriptor()->FindFieldByName(std::string(name));
    if (reflection->HasField(*slurm, field) || !reflection->HasField(defaults, field)) continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL) {
      reflection->SetBool(&missing, field, reflection->GetBool(defaults, field));
    } else {
      reflection->SetString(&missing, field, reflection->GetString(defaults, field));
    }
  }
  slurm->MergeFrom(missing);
}

// Recognises "--gpus=4", "--gres=gpu:4", "--tres-per-task=gres/gpu:1", "--exclusive".
bool AsksForGpus(const std::string& option) {
  return option.find("gpu") != option.npos || option.starts_with("--exclusive");
}

std::string_view NameOf(std::string_view option) { return option.substr(0, option.find('=')); }

void FillExtraOptions(const v1::SlurmOptions& defaults, v1::SlurmOptions* slurm) {
  for (const std::string& option : defaults.extra_options()) {
    const bool is_given =
        std::any_of(slurm->extra_options().begin(), slurm->extra_options().end(),
                    [&](const std::string& given) { return NameOf(given) == NameOf(option); });
    if (!is_given) slurm->add_extra_options(option);
  }
}

// The default partition, and how much a job gets there.
void FillMeasure(const v1::JobSpec& defaults, v1::JobSpec* spec) {
  spec->mutable_slurm()->set_partition(defaults.slurm().partition());
  if (!spec->has_time_limit() && defaults.has_time_limit())
    *spec->mutable_time_limit() = defaults.time_limit();
  v1::Resources& resources = *spec->mutable_resources();
  if (resources.cpu_millis() == 0) resources.set_cpu_millis(defaults.resources().cpu_millis());
  if (resources.memory_bytes() == 0)
    resources.set_memory_bytes(defaults.resources().memory_bytes());
  if (resources.gpus().empty()) *resources.mutable_gpus() = defaults.resources().gpus();
}

// It belongs to the profile's time limit: a job that names a longer one would be stopped long
// before its end. A stop makes sense only if there is time left after it.
void FillTimeout(const v1::SlurmOptions& defaults, v1::JobSpec* spec) {
  if (!defaults.has_timeout() || spec->slurm().has_timeout()) return;
  if (spec->has_time_limit() && spec->time_limit().seconds() > defaults.timeout().seconds())
    *spec->mutable_slurm()->mutable_timeout() = defaults.timeout();
}

// A request for 0 GPUs has kept the profile's away, and is nothing that Slurm is asked for.
void DropGpusOfNone(v1::JobSpec* spec) {
  if (spec->resources().gpus_size() > 0 && spec->resources().gpus(0).count_millis() == 0)
    spec->mutable_resources()->clear_gpus();
}

absl::Status TakeWholeNodes(uint64_t gpus_per_node, v1::JobSpec* spec) {
  if (gpus_per_node == 0 || spec->resources().gpus().empty()) return absl::OkStatus();
  const uint64_t gpus = spec->resources().gpus(0).count_millis() / kMillis;
  const WholeNodes whole =
      RoundToWholeNodes(std::max<uint64_t>(1, spec->nodes()), gpus, gpus_per_node);
  if (gpus > gpus_per_node) {
    return contract::BadField(
        "resources.gpus",
        fmt::format("{} GPUs on a node, and a node has {}; ask for {} nodes with {} each", gpus,
                    gpus_per_node, whole.nodes, whole.gpus));
  }
  if (whole.exclusive) spec->mutable_slurm()->set_exclusive(true);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::JobSpec> ApplyProfile(v1::JobSpec spec, const Profile& profile) {
  const v1::SlurmOptions& defaults = profile.defaults.slurm();
  const bool is_script = spec.slurm().has_batch_script();
  const bool has_own_limit = spec.has_time_limit();
  if (spec.slurm().partition().empty() && spec.placement().pool().empty()) {
    if (is_script) {
      spec.mutable_slurm()->set_partition(defaults.partition());
    } else {
      FillMeasure(profile.defaults, &spec);
    }
  }
  DropGpusOfNone(&spec);
  FillSlurmOptions(defaults, spec.mutable_slurm());
  FillExtraOptions(defaults, spec.mutable_slurm());
  if (is_script) return spec;
  if (!has_own_limit) FillTimeout(defaults, &spec);
  if (absl::Status status = TakeWholeNodes(profile.gpus_per_node, &spec); !status.ok())
    return status;
  return spec;
}

bool MayHaveGpus(const v1::JobSpec& spec) {
  const v1::SlurmOptions& slurm = spec.slurm();
  return spec.resources().gpus_size() > 0 || slurm.exclusive() || slurm.has_batch_script() ||
         slurm.gres().find("gpu") != std::string::npos ||
         std::any_of(slurm.extra_options().begin(), slurm.extra_options().end(), AsksForGpus);
}

WholeNodes RoundToWholeNodes(uint64_t nodes, uint64_t gpus, uint64_t gpus_per_node) {
  if (gpus < gpus_per_node) return {nodes, gpus, false};
  const uint64_t needed = (gpus + gpus_per_node - 1) / gpus_per_node;
  return {std::max(nodes, needed), gpus_per_node, true};
}

}  // namespace muster::slurm
