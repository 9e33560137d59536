// Shows the broker's estimates of starts.
#ifndef MUSTER_CLIENTS_CLI_ESTIMATES_H_
#define MUSTER_CLIENTS_CLI_ESTIMATES_H_

#include <string>

#include "absl/time/time.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"

namespace muster::cli {

// "at once", or "2026-11-28T19:00:00Z (in 12 min), as a rule from ... to ...".
std::string EstimateText(const v1::StartEstimate& estimate, absl::Time now);

// "12 runs; they waited 3m on average, and the estimates were off by 40s".
std::string EstimateErrorsText(const v1::EstimateErrors& errors);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_ESTIMATES_H_
