// Describes who is told of which steps of jobs. A value; any thread.
#ifndef MUSTER_BROKER_NOTIFY_WEBHOOK_H_
#define MUSTER_BROKER_NOTIFY_WEBHOOK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "contract/filter.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::notify {

// Each webhook has a thread of its own and reads the feed of changes as one more watcher.
inline constexpr size_t kMaxWebhooks = 32;

struct Webhook {
  enum class Format : uint8_t {
    kMuster,  // the job and the step, signed
    kSlack,   // {"text": ...}
    kOtlp,    // a trace of the job, for OpenTelemetry, at its end
  };

  std::string name{};
  std::string url{};  // may be a secret by itself: no message and no line of the log has it
  std::string ca{};   // certificates in PEM that vouch for the receiver; empty: those of the system
  std::string secret{};   // signs what is sent; empty: nothing is signed
  std::string project{};  // the jobs of this one; empty: of all
  contract::Filter filter{};
  std::vector<v1::JobState> states{v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED,
                                   v1::JOB_STATE_CANCELED};
  Format format = Format::kMuster;
};

// Returns whether the webhook is told of the change: it is the step into one of its states, of a
// job that it wants.
bool Wants(const Webhook& webhook, const v1::JobChange& change);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_WEBHOOK_H_
