#include "broker/core/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "contract/roles.h"
#include "contract/shell_environment.h"
#include "contract/slurm_only.h"
#include "contract/slurm_options.h"
#include "contract/storage_uri.h"
#include "contract/task_array.h"

namespace muster::core {
namespace {

bool IsFileUri(std::string_view field, std::string_view text) {
  // Most jobs name none, and making the error that says so costs more than the rest of this file.
  if (text.empty()) return false;
  const auto uri = contract::ParseStorageUri(field, text);
  return uri.ok() && uri->kind == contract::StorageUri::Kind::kFile;
}

std::string MachineFileField(const v1::JobSpec& spec) {
  for (int i = 0; i < spec.inputs_size(); ++i) {
    std::string field = fmt::format("inputs[{}].uri", i);
    if (IsFileUri(field, spec.inputs(i).uri())) return field;
  }
  return IsFileUri("results_directory", spec.results_directory()) ? "results_directory" : "";
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const size_t comma = text.find(',');
    names.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

void PutPools(const v1::JobSpec& spec, Requirements* out) {
  out->pool_is_namespace = !spec.kubernetes().namespace_().empty();
  if (out->pool_is_namespace) {
    out->pools = {spec.kubernetes().namespace_()};
  } else if (!spec.slurm().partition().empty()) {
    out->pools = SplitAtCommas(spec.slurm().partition());
  } else if (!spec.placement().pool().empty()) {
    out->pools = {spec.placement().pool()};
  }
}

RolesNeed RolesOf(const v1::JobSpec& spec) {
  if (spec.roles_size() == 0) return RolesNeed::kNone;
  return contract::FindRolesThatShareNodes(spec).has_value() ? RolesNeed::kSharedNodes
                                                             : RolesNeed::kNodesOfTheirOwn;
}

ImageNeed ImageOf(const v1::JobSpec& spec) {
  if (spec.image().empty()) return ImageNeed::kNone;
  return spec.image().front() == '/' ? ImageNeed::kFile : ImageNeed::kRegistry;
}

LossRule LossRuleOf(const v1::JobSpec& spec) {
  switch (spec.on_cluster_loss()) {
    case v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED:
      return LossRule::kWhenFenced;
    case v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW:
      return LossRule::kNow;
    default:
      return LossRule::kWait;
  }
}

}  // namespace

AdmissionPart::AdmissionPart(contract::AdmissionNeeds needs) {
  std::string bytes = contract::BytesOf(needs);
  part_ = std::make_shared<const Part>(Part{std::move(needs), std::move(bytes)});
}

Requirements RequirementsOf(const v1::JobSpec& spec, uint64_t archive_bytes) {
  Requirements out;
  out.project = spec.project();
  out.nodes = std::max<uint32_t>(1, spec.nodes());
  out.cpu_millis = spec.resources().cpu_millis();
  out.memory_bytes = spec.resources().memory_bytes();
  if (spec.resources().gpus_size() > 0) {
    out.gpu_type = spec.resources().gpus(0).type();
    out.gpu_millis = spec.resources().gpus(0).count_millis();
  }
  out.is_total = contract::IsTotalOfGpus(spec.slurm());
  if (spec.has_time_limit()) out.time_limit_s = spec.time_limit().seconds();
  out.clusters.assign(spec.placement().clusters().begin(), spec.placement().clusters().end());
  PutPools(spec, &out);
  out.needs_slurm = !contract::WhySlurmOnly(spec).empty();
  out.needs_kubernetes = spec.has_kubernetes();
  out.brings_files = spec.uploads_size() > 0;
  out.brings_shell = contract::HasShellEnvironment(spec);
  out.has_secrets = spec.secrets_size() > 0;
  if (const auto task = contract::FindArrayTask(spec)) out.is_array_task = task->count > 1;
  out.preemptible = spec.preemptible();
  out.roles = RolesOf(spec);
  out.image = ImageOf(spec);
  out.on_loss = LossRuleOf(spec);
  out.machine_file_field = MachineFileField(spec);
  out.retry = contract::RetryRuleOf(spec);
  if (auto needs = contract::AdmissionNeedsOf(spec)) {
    needs->archive_bytes = archive_bytes;
    if (auto refusable = contract::RefusableOf(*std::move(needs)))
      out.admission = AdmissionPart(*std::move(refusable));
  }
  return out;
}

RequirementsList::RequirementsList() : index_(0, Hash{&list_}, Equal{&list_}) {}

uint32_t RequirementsList::Add(Requirements requirements) {
  const auto next = static_cast<uint32_t>(list_.size());
  list_.push_back(std::move(requirements));
  const auto [at, is_new] = index_.insert(next);
  if (!is_new) list_.pop_back();
  return *at;
}

}  // namespace muster::core
