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

// Returns the job of a change as far as its step tells of it: without runs and spec, and before its
// end without what only an end has. The same from memory, where the job is as it was at the step,
// and of a job that is further.
v1::Job JobAtStep(const v1::JobChange& change);

// Makes the change's job, which is further than its step, the one that it was. `past`: the job
// right after the step, as the steps up to there tell. An ended job has changed its labels and its
// priority alone.
void GoBack(v1::Job past, v1::JobChange* change);

// Returns whether the change is the step into one of the webhook's states, in its project.
bool MayWant(const Webhook& webhook, const v1::JobChange& change);
// Returns whether the webhook is told of the change: it may want it, and its filter takes the job.
bool Wants(const Webhook& webhook, const v1::JobChange& change);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_WEBHOOK_H_
