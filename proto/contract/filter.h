// Implements the filter language of ListJobs and of every other method that takes a filter, a
// subset of AIP-160 (https://google.aip.dev/160). Fields and values: ListJobsRequest.filter.
//
//   filter      = [ expression ]
//   expression  = factor { [ "AND" ] factor }
//   factor      = term { "OR" term }              OR binds more tightly than AND
//   term        = [ "NOT" ] ( "(" expression ")" | restriction )
//   restriction = field ( operator value | ":*" )
//   value       = WORD | "\"" text with \" and \\ "\""
//
// Keywords are upper case. A comparison is true or false and nothing else: one with a field that
// the job does not have is false, and NOT turns it into true.
#ifndef MUSTER_PROTO_CONTRACT_FILTER_H_
#define MUSTER_PROTO_CONTRACT_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
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
    kId,
    kName,
    kState,
    kProject,
    kUser,
    kCluster,
    kClusterKind,
    kPriority,
    kHeld,
    kCancelRequested,  // not in the language; for programs
    kCreateTime,
    kStartTime,
    kEndTime,
    kFailureClass,
    kExitCode,
    kLabel
  };
  enum class Op { kEq, kNe, kLt, kLe, kGt, kGe, kHas };

  Kind kind = Kind::kAll;
  Op op = Op::kEq;
  std::string key;    // kLabel
  std::string value;  // the text fields; `*` in a name stands for any characters
  // Other fields have an enumerator, 0 or 1, a plain number, or microseconds since 1970.
  int64_t number = 0;
  bool is_relative = false;      // the time was given relative to now
  std::vector<Filter> children;  // kAnd, kOr (two or more), kNot (one)

  // Returns whether the job is taken. It needs neither runs nor spec.
  bool Matches(const v1::Job& job) const;
  // Returns whether `value` is a pattern.
  bool is_pattern() const;
};

// Tells whether the values of the field are texts.
bool IsText(Filter::Kind kind);

// Returns the exit code by which filters find a job; nothing if a signal ended it, although
// ExitStatus.code is 0 then.
std::optional<int32_t> ExitCodeOf(const v1::ExitStatus& exit);

// Returns whether the text is made of the pattern's pieces in their order, with anything where it
// has `*`.
bool MatchesPattern(std::string_view text, std::string_view pattern);

// INVALID_ARGUMENT with field "filter", the position and what was expected there. `now` is what
// relative times begin from.
absl::StatusOr<Filter> ParseFilter(std::string_view text, absl::Time now);

// Joins both filters; one that takes everything adds nothing.
Filter And(Filter a, Filter b);
// Takes jobs that are in one of these states.
Filter InStates(const std::vector<v1::JobState>& states);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FILTER_H_
