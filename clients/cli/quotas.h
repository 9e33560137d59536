// Quotas of projects, as people write and read them: "queued=100,active=10,gpus=8,gpus:h100=4".
#ifndef MUSTER_CLIENTS_CLI_QUOTAS_H_
#define MUSTER_CLIENTS_CLI_QUOTAS_H_

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/projects_service.pb.h"

namespace muster::cli {

// "none": no bound. INVALID_ARGUMENT names the part that is wrong.
absl::StatusOr<v1::Quota> ParseQuota(const std::string& text);

// The same the other way round; "none" for no bound.
std::string QuotaText(const v1::Quota& quota);

// The use beside its bound: "12 of 100 queued, 3 active, 5 of 8 gpus".
std::string UseText(const v1::ProjectUse& use, const v1::Quota& quota);

// A part as people read it: "33.3%".
std::string PercentText(double part);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_QUOTAS_H_
