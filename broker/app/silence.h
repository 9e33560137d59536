// Jobs on clusters of which there is no word.
#ifndef MUSTER_BROKER_APP_SILENCE_H_
#define MUSTER_BROKER_APP_SILENCE_H_

#include <vector>

#include "broker/app/answer_room.h"
#include "broker/core/cluster_view.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {

// Says since when there is no word of the unfinished jobs of a cluster: its agent is not connected,
// or its scheduler does not answer the agent. Their states stay as they were last seen. Does not
// block; any thread.
void AddSilence(const core::ClusterViews& clusters, const std::vector<v1::Job*>& jobs,
                AnswerRoom& room);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SILENCE_H_
