// Makes the warnings of a submit from the facts that agents publish. Owner: the core's thread;
// lives for one submit.
#ifndef MUSTER_BROKER_CORE_SUBMIT_WARNINGS_H_
#define MUSTER_BROKER_CORE_SUBMIT_WARNINGS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "broker/core/cluster.h"
#include "broker/core/requirements.h"
#include "contract/place_limits.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::core {

// Most warnings of one job in an answer.
inline constexpr int kMaxWarnings = 4;
// Most bytes of all warnings in one answer: many jobs that are alike have the same ones.
inline constexpr size_t kMaxWarningsBytes = 1 << 20;

class Warner {
 public:
  using Clusters = std::map<std::string, Cluster*, std::less<>>;
  // Both must outlive this object.
  Warner(const Clusters& clusters, const contract::PlaceLimits& limits)
      : clusters_(clusters), limits_(limits) {}

  // Adds the warnings of the clusters that fit now.
  void Warn(const v1::JobSpec& spec, const Requirements& requirements,
            v1::SubmitJobResponse* response);

 private:
  std::vector<v1::SubmitWarning> Find(const contract::AdmissionNeeds& needs,
                                      const Requirements& requirements) const;

  const Clusters& clusters_;
  const contract::PlaceLimits& limits_;
  size_t bytes_ = 0;  // size of the warnings that were added
  // The warnings of the last job, which the next one often has as well.
  std::string last_;
  Requirements last_requirements_;
  std::vector<v1::SubmitWarning> last_warnings_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SUBMIT_WARNINGS_H_
