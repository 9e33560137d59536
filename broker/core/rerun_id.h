// How the jobs of one RerunJobs remember its request_id: the first one stands for all of them, and
// the others say that they belong to it. A mark that no client's request_id can have tells both
// from the request ids of submits. Pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_RERUN_ID_H_
#define MUSTER_BROKER_CORE_RERUN_ID_H_

#include <string>
#include <string_view>

namespace muster::core {

inline constexpr char kFirstOfRerun = '\x01';
inline constexpr char kOtherOfRerun = '\x02';

// What the first job, or another one, has as its request_id.
inline std::string RerunId(std::string_view request_id, bool is_first) {
  std::string marked(1, is_first ? kFirstOfRerun : kOtherOfRerun);
  return marked.append(request_id);
}

// Whether a job with this request_id is of that RerunJobs.
inline bool IsOfRerun(std::string_view stored, std::string_view request_id, bool is_first) {
  return stored == RerunId(request_id, is_first);
}

// A job that is remembered by the first one of its RerunJobs.
inline bool IsOtherOfRerun(std::string_view stored) {
  return !stored.empty() && stored.front() == kOtherOfRerun;
}

// Whether it names a RerunJobs, whose request ids are unique in the broker, not in a project.
inline bool IsFirstOfRerun(std::string_view stored) {
  return !stored.empty() && stored.front() == kFirstOfRerun;
}

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RERUN_ID_H_
