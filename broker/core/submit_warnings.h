// What a submit warns of: what the facts that agents publish say of a job that is accepted.
// Owner: the core's thread; lives for one submit.
#ifndef MUSTER_BROKER_CORE_SUBMIT_WARNINGS_H_
#define MUSTER_BROKER_CORE_SUBMIT_WARNINGS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "broker/core/cluster.h"
#include "broker/core/requirements.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::core {

// Warnings of one job that its answer has at most.
inline constexpr int kMaxWarnings = 4;
// Bytes of all warnings of one answer: many jobs that are alike have the same ones.
inline constexpr size_t kMaxWarningsBytes = 1 << 20;

class Warner {
 public:
  using Clusters = std::map<std::string, Cluster*, std::less<>>;
  // `clusters` must outlive this object.
  explicit Warner(const Clusters& clusters) : clusters_(clusters) {}

  // Adds what the clusters warn of that fit now.
  void Warn(const v1::JobSpec& spec, const Requirements& requirements,
            v1::SubmitJobResponse* response);

 private:
  std::vector<v1::SubmitWarning> Find(const contract::AdmissionNeeds& needs,
                                      const Requirements& requirements) const;

  const Clusters& clusters_;
  size_t bytes_ = 0;  // of the warnings that were added
  // The last job's, which the next one often has as well.
  std::string last_;
  Requirements last_requirements_;
  std::vector<v1::SubmitWarning> last_warnings_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SUBMIT_WARNINGS_H_
