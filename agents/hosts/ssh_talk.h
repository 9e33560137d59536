// A program on a host that its caller talks with as long as it runs.
#ifndef MUSTER_AGENTS_HOSTS_SSH_TALK_H_
#define MUSTER_AGENTS_HOSTS_SSH_TALK_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "sync/mutex.h"

namespace muster::hosts {

// Both are called on the connection's thread, and return at once. `ended` comes last, once: the
// program has ended, was not started, or the connection was lost.
struct TalkListener {
  std::function<void(std::string_view)> hear;
  std::function<void(const absl::Status&)> ended;
};

// The words of both sides. Thread-safe.
class TalkWords {
 public:
  explicit TalkWords(TalkListener listener) : listener_(std::move(listener)) {}

  // ---- the caller's
  void Say(std::string_view bytes);
  // The program's input ends, and nobody listens any more.
  void Close();

  // ---- the connection's
  // Takes all that was said since the last call.
  std::string TakeSaid();
  bool is_closed() const;
  void Hear(std::string_view bytes);
  void End(const absl::Status& why);

 private:
  mutable Mutex mutex_;
  std::string said_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  TalkListener listener_ ABSL_GUARDED_BY(mutex_);
};

// The caller's side. The host outlives it.
class SshTalk {
 public:
  // `wake` tells the connection that there is something to say.
  SshTalk(std::shared_ptr<TalkWords> words, std::function<void()> wake)
      : words_(std::move(words)), wake_(std::move(wake)) {}
  // Ends the program's input. The listener is not called afterwards; not from within it.
  ~SshTalk();
  SshTalk(const SshTalk&) = delete;
  SshTalk& operator=(const SshTalk&) = delete;

  // The program gets all of it, in this order, unless `ended` is called.
  void Say(std::string_view bytes);

 private:
  const std::shared_ptr<TalkWords> words_;
  const std::function<void()> wake_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_TALK_H_
