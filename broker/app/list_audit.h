// The audit log, for those who may read it.
#ifndef MUSTER_BROKER_APP_LIST_AUDIT_H_
#define MUSTER_BROKER_APP_LIST_AUDIT_H_

#include <functional>

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/audit_service.pb.h"

namespace muster::broker {

// Both wait for the disk, and the second one reads the whole log.
absl::StatusOr<v1::ListAuditRecordsResponse> ListAuditRecords(
    const Principal& principal, const Services& services,
    const v1::ListAuditRecordsRequest& request);
absl::StatusOr<v1::VerifyAuditResponse> VerifyAudit(const Principal& principal,
                                                    const Services& services,
                                                    const v1::VerifyAuditRequest& request,
                                                    const std::function<bool()>& is_cancelled);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_LIST_AUDIT_H_
