// Handles jobs whose cluster is lost and that another run follows, if their users want it.
#ifndef MUSTER_BROKER_APP_CLUSTER_LOSSES_H_
#define MUSTER_BROKER_APP_CLUSTER_LOSSES_H_

#include <vector>

#include "broker/app/answer_room.h"
#include "broker/app/queue_reasons.h"
#include "broker/app/services.h"
#include "broker/store/scope.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {

// Says when another run follows for jobs on clusters whose agents are not connected, if their users
// want one, and when the lease of the present run ends. Call it after AddSilence. Reads the specs
// of such jobs that have none, or only parts of them (`read`).
void AddLosses(const Services& services, const store::Scope& scope,
               const std::vector<v1::Job*>& jobs, AnswerRoom& room,
               SpecsRead read = SpecsRead::kWhole);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CLUSTER_LOSSES_H_
