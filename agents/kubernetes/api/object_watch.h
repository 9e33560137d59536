// Keeps up with all objects of one kind that a label selects: lists them once and then receives
// each change, so that nothing is polled.
#ifndef MUSTER_AGENTS_KUBERNETES_API_OBJECT_WATCH_H_
#define MUSTER_AGENTS_KUBERNETES_API_OBJECT_WATCH_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/api.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Takes what a watch learns. The calls come from the watch's own thread, and must not block for
// long: the watch hears nothing meanwhile.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // Gets all objects that there are. An object that is not among them is gone, even if no OnDelete
  // told so.
  virtual void OnAll(std::vector<Json> objects) = 0;
  virtual void OnChange(Json object) = 0;
  // `object` is the last known version.
  virtual void OnDelete(Json object) = 0;
};

class ObjectWatch {
 public:
  struct Settings {
    std::string path = {};      // of the collection: "/apis/batch/v1/namespaces/lab/jobs"
    std::string selector = {};  // labelSelector, not escaped; empty: all
    std::string field_selector = {};
    // The part of a listed object that is to be kept, where lists are long and little of each
    // object counts. Changes come as they are. Null: all of it.
    std::function<Json(const Json&)> trim = {};
    // Called whenever the server answers again after a refusal or a failure, from the watch's
    // thread; must not block. Null: nobody wants to know.
    std::function<void()> on_recovery = {};
    // Times below are of this clock, which nobody sets.
    std::function<absl::Time()> clock = agents::SteadyNow;
  };

  // Begins at once. `api` and `sink` must outlive this object.
  ObjectWatch(Settings settings, Api* api, ObjectSink* sink);
  ~ObjectWatch();
  ObjectWatch(const ObjectWatch&) = delete;
  ObjectWatch& operator=(const ObjectWatch&) = delete;

  // OK: the sink knows how things are, but for the time that news needs. Otherwise why the server
  // could not be asked or has refused; the sink's knowledge then dates from freshness().
  absl::Status state() const;
  // Returns when the server was last heard of, by Settings::clock; infinite past if never.
  absl::Time freshness() const;
  // Waits for the first whole list. false: not within the time.
  bool AwaitFirstList(absl::Duration timeout);
  // Waits for that or for the first refusal or failure, which state() tells.
  bool AwaitFirstAnswer(absl::Duration timeout);
  // The server has just answered something else: one that could not be reached, or did not know who
  // asks, is tried again at once. Nothing happens to a watch that is well, or was refused.
  void Hurry();

 private:
  class Stream;
  class Inbox;

  void Run();
  absl::Status ListAll();
  absl::Status FollowOnce();
  // Takes what the stream brings until it ends, or is of no more use.
  absl::Status Follow(Inbox* inbox);
  absl::Status TakeLine(std::string_view line);
  // The server has answered.
  void Heard(bool is_list = false);
  // Returns false if it is being destroyed.
  bool Pause(absl::Duration duration);

  const Settings settings_;
  Api& api_;
  ObjectSink& sink_;
  std::string resource_version_;  // of the last news; empty: list first. Owned by the thread.

  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurries_ ABSL_GUARDED_BY(mutex_) = false;  // the next pause is none
  bool has_listed_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_answer_ ABSL_GUARDED_BY(mutex_) = false;       // or a failure
  std::shared_ptr<Inbox> inbox_ ABSL_GUARDED_BY(mutex_);  // of the latest stream
  absl::Status state_ ABSL_GUARDED_BY(mutex_);
  absl::Time freshness_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration retry_after_;  // what the latest answer of a watch asks for
  std::thread thread_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_OBJECT_WATCH_H_
