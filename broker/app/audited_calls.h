// Says which calls leave a record in the audit log. Pure; any thread.
#ifndef MUSTER_BROKER_APP_AUDITED_CALLS_H_
#define MUSTER_BROKER_APP_AUDITED_CALLS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::broker {

enum class AuditRule : uint8_t {
  kNever,         // health and reflection
  kIfRefused,     // reads, and the streams of agents
  kAfterAnswer,   // the record is on disk a moment after the answer
  kBeforeAnswer,  // and here before it
};

// Returns the name of a call in the audit log: "JobsService.SubmitJob" for
// "/muster.v1.JobsService/SubmitJob".
std::string AuditedAction(std::string_view method);

// `method` as above. A call that no list names has kBeforeAnswer, so that a call that is added
// later is audited until somebody says that it changes nothing.
AuditRule AuditRuleOf(std::string_view method, bool audits_log_reads);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_AUDITED_CALLS_H_
