// Says what a call is about, for the audit log: the jobs, and a few named fields of its request.
// Only fields that the table here names are ever recorded, so a secret in a later message never is.
// One thread at a time.
#ifndef MUSTER_BROKER_APP_AUDIT_SUBJECT_H_
#define MUSTER_BROKER_APP_AUDIT_SUBJECT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "broker/audit/shared_record.h"

namespace google::protobuf {
class Message;
}

namespace muster::broker {

// Bytes of the text of jobs, and of the rest, in a record.
inline constexpr size_t kMaxAuditedJobsBytes = audit::kMaxJobsBytes;
inline constexpr size_t kMaxAuditedTargetBytes = 1024;

class AuditSubject {
 public:
  void AddRequest(const google::protobuf::Message& request);
  // The jobs of the answer, if it has any, replace those of the request; a cluster or a token that
  // it gives out is named.
  void AddAnswer(const google::protobuf::Message& answer);

  // Returns "3,7-9", or empty for no job.
  std::string Jobs() const;
  // Returns NAME=VALUE, with spaces between.
  const std::string& target() const { return target_; }

 private:
  // Adds NAME=VALUE, or nothing when there is no room.
  void AddTarget(const std::string& part);

  std::vector<uint64_t> jobs_;
  std::string target_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_AUDIT_SUBJECT_H_
