// Tells one receiver of steps of jobs, in order and at least once each: it reads the broker's feed
// of changes like any watcher, posts what the webhook wants, and notes in the webhook's file how
// far the receiver is before it goes on. It has a thread of its own, so that a slow receiver holds
// up nobody else; what is not delivered yet is in the broker's store, not in memory.
//
// Start and Stop belong to the owner; counts() is for any thread.
#ifndef MUSTER_BROKER_NOTIFY_COURIER_H_
#define MUSTER_BROKER_NOTIFY_COURIER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/app/watch_jobs.h"
#include "broker/notify/bell.h"
#include "broker/notify/cursor.h"
#include "broker/notify/retries.h"
#include "broker/notify/trace.h"
#include "broker/notify/webhook.h"
#include "oidc/discovery.h"

namespace muster::notify {

// The place in the feed goes to the disk with each event, and this often while others come: a
// broker that starts again reads these anew.
inline constexpr absl::Duration kSavePause = absl::Seconds(10);

// The counts since the broker began.
struct WebhookCounts {
  std::string name;
  uint64_t backlog = 0;       // changes of the broker that the webhook has yet to look at
  uint64_t delivered = 0;     // events that the receiver took
  uint64_t failed_tries = 0;  // tries to deliver one that it did not take
  uint64_t given_up = 0;      // events that it never took
};

struct CourierOptions {
  Webhook webhook;
  std::string broker;                                   // the broker's instance
  std::string cursor_file;                              // in a directory that is there
  absl::Duration job_retention = absl::ZeroDuration();  // as in BrokerOptions
  // Opens the feed behind a change.
  std::function<absl::StatusOr<std::unique_ptr<broker::WatchSource>>(uint64_t after)> open_feed;
  // Returns the sequence up to which the feed has all changes. After a start it is ahead of the
  // store: see core/sequences.h.
  std::function<uint64_t()> last_change;
  // Returns the sequence of the latest change that the store has.
  std::function<absl::StatusOr<uint64_t>()> last_stored;
  // Reads a job with its runs and steps; needed for the format kOtlp alone.
  std::function<absl::StatusOr<History>(uint64_t job)> read_history;
  // Reads a job as it was right after the step of this sequence. Nothing: its steps are gone, or
  // too many.
  std::function<absl::StatusOr<std::optional<v1::Job>>(uint64_t job, uint64_t sequence)> read_past;
  oidc::Exchanger exchange = oidc::Exchange;
  std::function<absl::Time()> now = absl::Now;
};

class Courier {
 public:
  // Begins where the file says, or behind the last change in the store, and then writes the file.
  static absl::StatusOr<std::unique_ptr<Courier>> Make(CourierOptions options);
  ~Courier() { Stop(); }

  void Start();
  // Asks the thread to end, and does not wait for it.
  void RingOut() { bell_->Stop(); }
  // Waits for the thread, about a second if a try is under way.
  void Stop();
  WebhookCounts counts() const;

 private:
  Courier(CourierOptions options, const Cursor& cursor)
      : options_(std::move(options)), cursor_(cursor), position_(cursor.after) {}

  void Run();
  // Both return once the bell has stopped, or with what is wrong with the feed.
  absl::Status Follow();
  absl::Status ReadOn(broker::WatchSource& feed);
  // Reads one message of the feed. False: the bell has stopped before all of it was done with.
  bool Take(const std::string& message);
  bool TakeChange(const v1::JobChange& change);
  // The feed was looked through up to here.
  void TakeHeartbeat(uint64_t sequence);
  // Goes on until the receiver has the event or it is given up. False: the bell has stopped first.
  bool Deliver(const v1::JobChange& change);
  // Goes on until the job of the change is as it was at the step. False: the bell has stopped
  // first.
  bool GoBackTo(v1::JobChange* change);
  void NoteUnread(const v1::JobChange& change, const absl::Status& status);
  // Goes on until the body can be made. Nothing: the job was deleted, or the bell has stopped.
  std::optional<std::string> MakeBody(const v1::JobChange& change);
  Outcome Post(uint64_t event, const std::string& body);
  void NoteFailure(const Outcome& outcome, const std::string& words);
  void NoteSuccess();
  // Says that changes before `next` were deleted before the webhook came to them, once until it has
  // caught up.
  void NoteGap(uint64_t next);
  void MoveTo(uint64_t sequence);
  // Goes on until the place is on disk. False: the bell has stopped first.
  bool Save();

  const CourierOptions options_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::thread thread_;

  // The thread's own.
  Cursor cursor_;
  absl::Time saved_at_ = absl::InfinitePast();
  uint64_t saved_ = 0;  // the sequence on disk
  Retries retries_;
  bool is_failing_ = false;  // the receiver took nothing at the last try
  bool told_gap_ = false;

  std::atomic<uint64_t> position_;
  std::atomic<uint64_t> delivered_ = 0;
  std::atomic<uint64_t> failed_tries_ = 0;
  std::atomic<uint64_t> given_up_ = 0;
};

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_COURIER_H_
