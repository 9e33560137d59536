// The filter language of ListJobs and WatchJobs, a subset of AIP-160 (https://google.aip.dev/160).
//
//   filter     = [ expression ]
//   expression = sequence { "OR" sequence }
//   sequence   = factor { "AND" factor }
//   factor     = [ "NOT" ] ( "(" expression ")" | restriction )
//   restriction = field operator value
//   field      = "state" | "name" | "cluster" | "project" | "held" | "create_time" |
//                "label." KEY
//   operator   = "=" | "!=" | "<" | "<=" | ">" | ">="     (the ordered ones for create_time only)
//   value      = WORD | "\"" text with \" and \\ "\""
//
// Keywords are upper case; AND binds tighter than OR (unlike AIP-160, like SQL); times are RFC
// 3339, held is true or false. An absent label equals no value: `label.a = "x"` is false and
// `label.a != "x"` is true for a job without label a.
#ifndef MUSTER_PROTO_CONTRACT_FILTER_H_
#define MUSTER_PROTO_CONTRACT_FILTER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// Bounds the stack and the work of one evaluation.
inline constexpr size_t kMaxFilterBytes = 4096;
inline constexpr int kMaxFilterDepth = 32;

struct Filter {
  enum class Kind {
    kAll,
    kAnd,
    kOr,
    kNot,
    kState,
    kName,
    kCluster,
    kProject,
    kLabel,
    kHeld,
    kCreateTime
  };
  enum class Op { kEq, kNe, kLt, kLe, kGt, kGe };

  Kind kind = Kind::kAll;
  Op op = Op::kEq;
  std::string key;                                 // kLabel
  std::string value;                               // kName, kCluster, kProject, kLabel
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // kState
  bool held = false;                               // kHeld
  absl::Time time;                                 // kCreateTime
  std::vector<Filter> children;                    // kAnd, kOr (two or more), kNot (one)

  // Whether the job is taken; reads its state, name, cluster, project, held, labels and
  // create_time.
  bool Matches(const v1::Job& job) const;
};

// INVALID_ARGUMENT with field "filter", the position and what was expected there.
absl::StatusOr<Filter> ParseFilter(std::string_view text);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FILTER_H_
