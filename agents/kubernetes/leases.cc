#include "agents/kubernetes/leases.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/core/steady_time.h"
#include "agents/kubernetes/cluster/access.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "agents/kubernetes/objects/objects.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// A renewal that takes longer than this comes with the next one.
constexpr absl::Duration kLeaseWriteTimeout = absl::Seconds(10);

// Returns the time for which pods may see an older file than the one that was written last. A
// kubelet brings it up to date when it looks at a pod, every syncFrequency (60 s by default) and up
// to half of that later (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go of
// Kubernetes); what it looks at then may be as old as its cache allows, a minute where it does not
// watch ConfigMaps (configMapAndSecretChangeDetectionStrategy). Source:
// https://kubernetes.io/docs/concepts/configuration/configmap/#mounted-configmaps-are-updated-automatically
constexpr int kKubeletSyncSeconds = 90;
constexpr int kKubeletCacheSeconds = 60;
constexpr absl::Duration kLeasePropagation =
    absl::Seconds(kKubeletSyncSeconds + kKubeletCacheSeconds);

// The agent starts while it asks; a server that is away is asked by the writes.
constexpr absl::Duration kLeaseAskTimeout = absl::Seconds(5);
constexpr const char* kLeaseVerbs[] = {"create", "patch"};

// The same server would be as long about the next namespace.
bool IsServerAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

// Pods are given kLeasePropagation more than the lease has, or it would end between two looks of
// their kubelet. The end in the file bounds all that is late beyond that.
absl::Duration LeaseFenceDelay() {
  return kLeasePropagation + absl::Milliseconds(2 * agents::kLeaseClockSkewMs) +
         absl::Milliseconds(agents::kLeaseLookMs) + kLeaseGrace +
         absl::Milliseconds(agents::kLeaseKillTimeMs);
}

Leases::Leases(std::string cluster, std::vector<std::string> namespaces, Api* api)
    : cluster_(std::move(cluster)), namespaces_(std::move(namespaces)), api_(*api) {}

bool Leases::MayWrite() {
  const MutexLock lock(mutex_);
  if (may_write_.has_value()) return *may_write_;
  bool may_write = true;
  bool is_away = false;
  for (const std::string& name_space : namespaces_) {
    for (const char* verb : kLeaseVerbs) {
      if (is_away) continue;
      Access access{.verb = verb, .resource = "configmaps", .name_space = name_space};
      // A right to create cannot be limited to a name.
      if (access.verb != "create") access.name = kLeaseObject;
      const absl::StatusOr<bool> allowed = IsAllowed(access, &api_, kLeaseAskTimeout);
      may_write = may_write && allowed.value_or(true);
      is_away = !allowed.ok();
    }
  }
  may_write_ = may_write;
  return may_write;
}

Leases::Place Leases::PlaceOf(const std::string& name_space, const std::string& run_key) const {
  return {name_space, LeaseKey(run_key, cluster_)};
}

void Leases::Adopt(const std::string& name_space, const std::string& run_key) {
  // The project of the run may have no namespace any more.
  if (name_space.empty()) return;
  const MutexLock lock(mutex_);
  places_.try_emplace(PlaceOf(name_space, run_key), false);
}

absl::Status Leases::Open(const std::string& name_space, const std::string& run_key) {
  const Place place = PlaceOf(name_space, run_key);
  absl::Duration remaining;
  {
    const MutexLock lock(mutex_);
    const bool is_written = places_.try_emplace(place, false).first->second;
    remaining = end_ - agents::SteadyNow();
    if (remaining > absl::ZeroDuration() && is_written) return absl::OkStatus();
  }
  if (remaining <= absl::ZeroDuration()) {
    return absl::UnavailableError(
        "not launched yet: its lease (on_cluster_loss) waits for the broker's next answer");
  }
  return Write(place, remaining);
}

absl::Status Leases::Renew(absl::Duration remaining) {
  const absl::Time end = agents::SteadyNow() + remaining;
  std::vector<Place> places;
  {
    const MutexLock lock(mutex_);
    end_ = end;
    for (const auto& [place, is_written] : places_) places.push_back(place);
  }
  absl::Status first;
  for (const Place& place : places) {
    const absl::Status status = Write(place, end - agents::SteadyNow());
    if (first.ok()) first = status;
    if (IsServerAway(status)) break;
  }
  return first;
}

absl::Status Leases::Write(const Place& place, absl::Duration remaining) {
  agents::LeaseFile lease;
  {
    const MutexLock lock(mutex_);
    lease = agents::NextLease(number_, absl::ToUnixMillis(absl::Now()),
                              absl::ToInt64Milliseconds(remaining + kLeasePropagation));
    number_ = lease.number;
  }
  const Json data = {{place.key, FormatLeaseFile(lease)}};
  const std::string collection = "/api/v1/namespaces/" + Escape(place.name_space) + "/configmaps";
  absl::StatusOr<ApiAnswer> answer = api_.Call({.method = "PATCH",
                                                .path = collection + "/" + kLeaseObject,
                                                .body = {{"data", data}},
                                                .content_type = "application/merge-patch+json",
                                                .timeout = kLeaseWriteTimeout});
  if (answer.ok() && answer->status == 404) {
    const Json labels = {{kManagedByLabel, kManagedByMuster}};
    answer = api_.Call({.method = "POST",
                        .path = collection,
                        .body = {{"apiVersion", "v1"},
                                 {"kind", "ConfigMap"},
                                 {"metadata", {{"name", kLeaseObject}, {"labels", labels}}},
                                 {"data", data}},
                        .timeout = kLeaseWriteTimeout});
  }
  absl::Status status = answer.status();
  if (answer.ok() && !answer->ok()) {
    status = RefusalOf(*answer, fmt::format("write the lease of runs into ConfigMap {}/{}",
                                            place.name_space, kLeaseObject));
  }
  const MutexLock lock(mutex_);
  places_[place] = places_[place] || status.ok();
  return status;
}

}  // namespace muster::kubernetes
