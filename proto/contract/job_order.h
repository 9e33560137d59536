// The order of a list of jobs (ListJobsRequest.order_by), and places in it.
#ifndef MUSTER_PROTO_CONTRACT_JOB_ORDER_H_
#define MUSTER_PROTO_CONTRACT_JOB_ORDER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

struct JobOrder {
  enum class Field { kId, kStartTime, kEndTime, kPriority, kName };

  Field field = Field::kId;
  bool descending = true;

  friend bool operator==(const JobOrder&, const JobOrder&) = default;
};

// INVALID_ARGUMENT with field "order_by". Empty: the default, "id desc".
absl::StatusOr<JobOrder> ParseJobOrder(std::string_view text);

// A job's place in the order. No two jobs have the same place.
struct JobPlace {
  bool is_absent = false;  // the job does not have the field; it comes after all that have it
  int64_t number = 0;      // kPriority; kStartTime, kEndTime in microseconds
  std::string text;        // kName
  uint64_t id = 0;

  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

JobPlace PlaceOf(const v1::Job& job, const JobOrder& order);
bool ComesBefore(const JobPlace& a, const JobPlace& b, const JobOrder& order);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_JOB_ORDER_H_
