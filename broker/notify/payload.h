// Makes the bodies that receivers get. Pure; any thread.
#ifndef MUSTER_BROKER_NOTIFY_PAYLOAD_H_
#define MUSTER_BROKER_NOTIFY_PAYLOAD_H_

#include <string>
#include <string_view>

#include "broker/notify/webhook.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::notify {

// Returns the step in one line for people, of the API's own sentences: "Job 42 (train) of ada in
// project ml FAILED on lab: rank 1 exited with code 3. Read its log ...".
std::string SentenceOf(const v1::JobChange& change);

// Returns the JSON that a webhook of the formats kMuster and kSlack posts for a change with a
// transition. `broker` is
// the broker's instance, because each broker has numbers of its own.
std::string BodyOf(Webhook::Format format, std::string_view broker, const v1::JobChange& change);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_PAYLOAD_H_
