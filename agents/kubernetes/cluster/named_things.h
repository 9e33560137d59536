// Knows the things that jobs name in their cluster: priority classes, service accounts, claims.
// Tells whether each is there, as far as the agent may see, and which field has named it.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMED_THINGS_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMED_THINGS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/verdict/verdict.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Any thread may use it. A thing that is not known, or may not be seen, counts as there.
class NamedThings {
 public:
  // `api` must outlive this object. A thing that was seen is believed to be there for `memory`, so
  // one request serves all launches of that time.
  explicit NamedThings(Api* api, absl::Duration memory = absl::Minutes(1))
      : api_(*api), memory_(memory) {}
  NamedThings(const NamedThings&) = delete;
  NamedThings& operator=(const NamedThings&) = delete;

  // Without which the API server refuses all pods of the job: 'kubernetes.priority_class "nosuch":
  // there is none; it has "high", "low"', one after the other. Empty: all are there.
  std::string FindMissing(const v1::JobSpec& spec, const std::string& name_space);

  struct Missing {
    std::string field;  // "kubernetes.volumes[0].claim"
    std::string words;  // '"nosuch": there is none in namespace lab; it has "data"'
    bool exists;        // it has no volume
  };
  // Returns the things that pods wait for, because they may still come: claims that are not there,
  // and those that have no volume and nothing that would make one.
  std::vector<Missing> FindAwaited(const v1::JobSpec& spec, const std::string& name_space);
  // Adds all of these things in the cluster and in the namespaces that the facts name. Things that
  // the agent may not see, or too many, are left out. Takes a few requests, and two for each
  // namespace.
  void AddFacts(v1::KubernetesFacts* facts);

  // The job's claims that have no volume, as they were within the last ten seconds.
  std::vector<UnboundClaim> FindUnbound(const v1::JobSpec& spec, const std::string& name_space);

 private:
  // The facts that tell whether a claim has a volume.
  struct ClaimState {
    std::string phase;
    std::string storage_class;
  };
  struct KnownClaims {
    absl::Time seen = absl::InfinitePast();
    std::optional<std::map<std::string, ClaimState>> claims;  // by name; none: not known
  };
  // Returns all of the namespace, as they were within the last ten seconds; nothing if not known.
  std::optional<std::map<std::string, ClaimState>> ClaimsOf(const std::string& name_space);
  // The next look asks the server again.
  void ForgetClaims(const std::string& name_space);
  // It has no volume, and nothing makes one.
  static bool IsStuck(const ClaimState& claim);

  // A kind's names in one place.
  struct Known {
    absl::Time seen;
    std::set<std::string> names;
  };
  // Returns all names of a collection, as the server has them now; nothing if not known.
  std::optional<std::set<std::string>> List(const std::string& path);
  // '"nosuch": there is none...'; nothing if it is there, or not known. `path`: of the collection.
  std::optional<std::string> Lacks(const std::string& name, const std::string& path,
                                   const std::string& where);

  Api& api_;
  const absl::Duration memory_;
  Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);         // by path
  std::map<std::string, KnownClaims> claims_ ABSL_GUARDED_BY(mutex_);  // by namespace
};

// ---- pure

// Returns the server's words about a volume that it does not find, followed by the field that has
// named it: 'secret "x" not found (kubernetes.volumes[1].secret)'. Others are returned as they are.
std::string WithField(std::string words, const v1::JobSpec& spec);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMED_THINGS_H_
