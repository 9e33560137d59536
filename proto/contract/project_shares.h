// The shares and quotas of projects, as the broker's core takes them. Pure values, for any thread.
#ifndef MUSTER_PROTO_CONTRACT_PROJECT_SHARES_H_
#define MUSTER_PROTO_CONTRACT_PROJECT_SHARES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace muster::contract {

inline constexpr uint32_t kDefaultWeight = 1;
inline constexpr uint32_t kMaxWeight = 1'000'000;
// Types in max_gpu_millis. Each is compared with the type of a job that is to start.
inline constexpr size_t kMaxQuotaTypes = 64;

// The meaning of the fields is that of Quota in projects_service.proto.
struct Quota {
  std::optional<uint32_t> max_queued_jobs;
  std::optional<uint32_t> max_active_runs;
  // By type in lower case, because letter case does not count; "" stands for all.
  std::map<std::string, uint64_t, std::less<>> max_gpu_millis;

  bool is_none() const { return *this == Quota(); }
  friend bool operator==(const Quota&, const Quota&) = default;
};

struct ProjectShare {
  uint32_t weight = kDefaultWeight;
  std::string parent;  // the project whose share this one divides with others; empty: none
  Quota quota;         // the bounds of all of its jobs
  Quota user_quota;    // the bounds of those of each user

  friend bool operator==(const ProjectShare&, const ProjectShare&) = default;
};

struct ProjectShares {
  // False: nobody has made a project, and jobs are served by priority, then by age, alone.
  bool are_on = false;
  // By the name of the project. A project that is not here has no parent, weight 1 and no quotas.
  std::map<std::string, ProjectShare, std::less<>> projects;

  friend bool operator==(const ProjectShares&, const ProjectShares&) = default;
};

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PROJECT_SHARES_H_
