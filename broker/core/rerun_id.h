// Makes the request ids that the jobs of one RerunJobs are stored with: the first job stands for
// all of them, and the others say that they belong to it. A mark that no client's request_id can
// have tells both from the request ids of submits. Pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_RERUN_ID_H_
#define MUSTER_BROKER_CORE_RERUN_ID_H_

#include <string>
#include <string_view>

namespace muster::core {

inline constexpr char kFirstOfRerun = '\x01';
inline constexpr char kOtherOfRerun = '\x02';

// Returns the request_id of the first job, or of another one.
inline std::string RerunId(std::string_view request_id, bool is_first) {
  std::string marked(1, is_first ? kFirstOfRerun : kOtherOfRerun);
  return marked.append(request_id);
}

// True if a job with this request_id belongs to that RerunJobs.
inline bool IsOfRerun(std::string_view stored, std::string_view request_id, bool is_first) {
  return stored == RerunId(request_id, is_first);
}

// True if the first job of its RerunJobs stands for this one.
inline bool IsOtherOfRerun(std::string_view stored) {
  return !stored.empty() && stored.front() == kOtherOfRerun;
}

// True if it names a RerunJobs; these request ids are unique in the broker, not in a project.
inline bool IsFirstOfRerun(std::string_view stored) {
  return !stored.empty() && stored.front() == kFirstOfRerun;
}

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RERUN_ID_H_
