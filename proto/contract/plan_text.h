// Agents and clients agree here on the text of a plan's submission.
#ifndef MUSTER_PROTO_CONTRACT_PLAN_TEXT_H_
#define MUSTER_PROTO_CONTRACT_PLAN_TEXT_H_

#include <string_view>

namespace muster::contract {

// Begins the last line of what is the job's own. The text after it is alike for all jobs, and shown
// to people who ask for everything. Texts of users come before it, so that its last place counts.
inline constexpr std::string_view kAlikeForAllJobs = "# ---- alike for all jobs: ";

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PLAN_TEXT_H_
