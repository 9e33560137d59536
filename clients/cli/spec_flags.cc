#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "clients/cli/invocation.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/lost_clusters.h"
#include "contract/parts.h"
#include "contract/secrets.h"
#include "contract/text.h"
#include "contract/units.h"
#include "contract/validate.h"

namespace muster::cli {
namespace {

absl::Status Bad(std::string_view flag, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", flag, problem));
}

// Turns an error of the contract's parsers into one about a flag.
absl::Status BadFlag(std::string_view flag, const absl::Status& status) {
  const auto bad_request = contract::GetBadRequest(status);
  const bool named = bad_request && !bad_request->field_violations().empty();
  return Bad(flag,
             named ? bad_request->field_violations(0).description() : ToStd(status.message()));
}

// "KEY=VALUE"; the value may hold more of '='.
absl::Status AddPairs(std::string_view flag, const std::vector<std::string>& pairs,
                      google::protobuf::Map<std::string, std::string>* out) {
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Bad(flag, fmt::format("{} is not KEY=VALUE", contract::Quoted(pair)));
    }
    (*out)[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return absl::OkStatus();
}

// "SRC:DST" or "SRC:DST:ro". A path with a colon can be written in a job file.
absl::Status AddMounts(const std::vector<std::string>& mounts, v1::JobSpec* spec) {
  for (const std::string& text : mounts) {
    std::string_view rest = text;
    const bool read_only = rest.ends_with(":ro");
    if (read_only) rest.remove_suffix(3);
    const size_t colon = rest.find(':');
    const bool whole = colon != rest.npos && colon > 0 && colon + 1 < rest.size() &&
                       rest.find(':', colon + 1) == rest.npos;
    if (!whole) {
      return Bad("--mount",
                 fmt::format("{} is not SRC:DST or SRC:DST:ro, e.g. /lustre/data:/data:ro",
                             contract::Quoted(text)));
    }
    v1::Mount* mount = spec->add_mounts();
    mount->set_source(std::string(rest.substr(0, colon)));
    mount->set_target(std::string(rest.substr(colon + 1)));
    mount->set_read_only(read_only);
  }
  return absl::OkStatus();
}

// "VAR=NAME". A variable that the spec has already gets this one.
absl::Status AddSecrets(std::string_view flag, const std::vector<std::string>& pairs, bool as_file,
                        v1::JobSpec* spec) {
  google::protobuf::Map<std::string, std::string> uses;
  for (const std::string& pair : pairs) {
    if (contract::IsSecretName(pair.substr(std::min(pair.find('='), pair.size() - 1) + 1)))
      continue;
    // The rest may be a value, which is repeated nowhere.
    return Bad(flag, fmt::format("{}=... is not VAR=NAME with the name of a secret (muster secret "
                                 "list); a value comes by muster secret set NAME",
                                 contract::Quoted(pair.substr(0, pair.find('=')))));
  }
  if (absl::Status status = AddPairs(flag, pairs, &uses); !status.ok()) return status;
  for (const auto& [variable, name] : uses) {
    auto* known = spec->mutable_secrets();
    const auto same = std::find_if(known->begin(), known->end(), [&](const v1::SecretUse& use) {
      return use.variable() == variable;
    });
    v1::SecretUse* use = same == known->end() ? spec->add_secrets() : &*same;
    use->set_variable(variable);
    use->set_name(name);
    use->set_as_file(as_file);
  }
  return absl::OkStatus();
}

// "12,13": jobs that have to end so before this one.
absl::Status AddDependencies(std::string_view flag, const std::vector<std::string>& lists,
                             v1::JobOutcome outcome, v1::JobSpec* spec) {
  for (const std::string& list : lists) {
    for (const std::string_view word : contract::Split(list, ',')) {
      const auto job = contract::ParseNumber<uint64_t>(word);
      if (!job || *job == 0) {
        return Bad(flag, fmt::format("{} is not the number of a job, as in {} 12 or {} 12,13",
                                     contract::Quoted(word), flag, flag));
      }
      v1::JobDependency& one = *spec->add_depends_on();
      one.set_job_id(*job);
      one.set_outcome(outcome);
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyResources(const SpecFlags& flags, v1::JobSpec* spec) {
  if (flags.cpus) {
    const auto millis = contract::ParseCpus(*flags.cpus);
    if (!millis.ok()) return BadFlag("--cpus", millis.status());
    spec->mutable_resources()->set_cpu_millis(*millis);
  }
  if (flags.memory) {
    const auto bytes = contract::ParseBytes(*flags.memory);
    if (!bytes.ok()) return BadFlag("--memory", bytes.status());
    if (*bytes < contract::kMinMemoryBytes) {
      return Bad("--memory", fmt::format("{} is less than 1Mi; write the unit, as in 512Mi or 16Gi",
                                         contract::Quoted(*flags.memory)));
    }
    spec->mutable_resources()->set_memory_bytes(*bytes);
  }
  if (flags.gpus) {
    const auto gpus = contract::ParseGpus(*flags.gpus);
    if (!gpus.ok()) return BadFlag("--gpus", gpus.status());
    spec->mutable_resources()->clear_gpus();
    *spec->mutable_resources()->add_gpus() = *gpus;
  }
  if (flags.time) {
    const auto limit = contract::ParseDuration(*flags.time);
    if (!limit.ok()) return BadFlag("--time", limit.status());
    const int64_t seconds = absl::ToInt64Seconds(*limit);
    if (seconds < 1) {
      return Bad("--time",
                 fmt::format("{} is out of range; use 1s to 36500d, or leave it out for the "
                             "cluster's own limit",
                             contract::Quoted(*flags.time)));
    }
    spec->mutable_time_limit()->set_seconds(seconds);
    spec->mutable_time_limit()->set_nanos(
        static_cast<int>(absl::ToInt64Nanoseconds(*limit - absl::Seconds(seconds))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SpecFlags::ApplyTo(v1::JobSpec* spec) const {
  if (name) spec->set_name(*name);
  if (project) spec->set_project(*project);
  if (pool) spec->mutable_placement()->set_pool(*pool);
  if (image) spec->set_image(*image);
  if (nodes) spec->set_nodes(*nodes);
  if (priority) spec->set_priority(*priority);
  if (preemptible) spec->set_preemptible(true);
  if (!clusters.empty()) {
    spec->mutable_placement()->mutable_clusters()->Assign(clusters.begin(), clusters.end());
  }
  if (on_cluster_loss) {
    const v1::ClusterLossPolicy policy = contract::ClusterLossPolicyOf(*on_cluster_loss);
    if (policy == v1::CLUSTER_LOSS_POLICY_UNSPECIFIED) {
      return Bad("--on-cluster-loss",
                 fmt::format("{} is no policy; use wait, fail_over_when_fenced or fail_over_now",
                             contract::Quoted(*on_cluster_loss)));
    }
    spec->set_on_cluster_loss(policy);
  }
  if (absl::Status status = AddPairs("--env", env, spec->mutable_env()); !status.ok()) {
    return status;
  }
  if (absl::Status status = AddPairs("--label", labels, spec->mutable_labels()); !status.ok()) {
    return status;
  }
  absl::Status given = AddSecrets("--secret", secrets, /*as_file=*/false, spec);
  if (given.ok()) given = AddSecrets("--secret-file", secret_files, /*as_file=*/true, spec);
  if (!given.ok()) return given;
  if (absl::Status status = AddMounts(mounts, spec); !status.ok()) return status;
  absl::Status waits = AddDependencies("--after", after, v1::JOB_OUTCOME_SUCCEEDED, spec);
  if (waits.ok())
    waits = AddDependencies("--after-failed", after_failed, v1::JOB_OUTCOME_FAILED, spec);
  if (waits.ok())
    waits = AddDependencies("--after-ended", after_ended, v1::JOB_OUTCOME_ENDED, spec);
  if (!waits.ok()) return waits;
  return ApplyResources(*this, spec);
}

}  // namespace muster::cli
