#include "agents/kubernetes/api/object_watch.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/random/random.h"
#include "agents/kubernetes/api/retry_after.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// This is the server's own choice for large lists: ten MB at most of Jobs.
constexpr int kListPageSize = 500;
constexpr absl::Duration kListTimeout = absl::Seconds(60);
// The server ends a watch by itself after at least this long, at random, so that servers share the
// load.
constexpr int kShortestWatchSeconds = 300;
constexpr int kLongestWatchSeconds = 600;
// The server sends a bookmark each minute; one that is silent for so long is not there any more.
constexpr absl::Duration kSilence = absl::Seconds(150);
constexpr absl::Duration kFirstWatchPause = absl::Milliseconds(500);
constexpr absl::Duration kLongestWatchPause = absl::Seconds(30);
// While nobody listens at the server's address: asking costs it nothing, and runs wait for it.
constexpr absl::Duration kLongestPauseUnreached = absl::Seconds(4);
// One object of etcd is 1.5 MiB at most.
constexpr size_t kMaxLineBytes = 8 << 20;
// The most bytes of changes that wait for the watch's thread. A stream that brings more is ended,
// and followed anew from the last change that was taken.
constexpr size_t kMaxUnreadBytes = 32 << 20;
// One list has at most this many pages: fifty thousand objects; a hundred thousand runs are two.
constexpr int kMaxListPages = 1000;

// True if the version that the refused watch named cannot be used again: 410, the server has
// forgotten it; 504, the server has never had it, because etcd was restored from a backup; other
// faults of the server may have the same cause. These have not: who asks, what he may, and when.
bool CannotGoOn(int status) { return status != 401 && status != 403 && status != 429; }

}  // namespace

// Keeps the bytes that a stream has brought and the watch has not taken yet: between the loop's
// thread, which only puts them there, and the watch's, which reads them.
class ObjectWatch::Inbox {
 public:
  struct News {
    std::optional<int> status;                   // of HTTP, once
    std::map<std::string, std::string> headers;  // with it
    std::string bytes;                           // of the answer
    std::optional<absl::Status> end;             // of the stream; after its bytes
  };

  void PutStatus(int status, const std::map<std::string, std::string>& headers) {
    const MutexLock lock(mutex_);
    news_.status = status;
    news_.headers = headers;
    changed_.notify_all();
  }
  // Returns false if nobody has read for long.
  bool PutBytes(std::string_view bytes) {
    const MutexLock lock(mutex_);
    if (news_.bytes.size() + bytes.size() > kMaxUnreadBytes) return false;
    news_.bytes.append(bytes);
    changed_.notify_all();
    return true;
  }
  void PutEnd(const absl::Status& status) {
    const MutexLock lock(mutex_);
    news_.end = status;
    changed_.notify_all();
  }
  // Waits for the next.
  News Take() {
    MutexLock lock(mutex_);
    while (!news_.status.has_value() && news_.bytes.empty() && !news_.end.has_value())
      lock.Wait(changed_);
    return std::exchange(news_, {});
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  News news_ ABSL_GUARDED_BY(mutex_);
};

// Makes one watch request.
class ObjectWatch::Stream : public HttpSink {
 public:
  explicit Stream(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}

  void OnStatus(int status, const std::map<std::string, std::string>& headers) override {
    inbox_->PutStatus(status, headers);
  }
  bool OnBytes(std::string_view bytes) override { return inbox_->PutBytes(bytes); }
  void OnEnd(const absl::Status& status) override { inbox_->PutEnd(status); }

 private:
  const std::shared_ptr<Inbox> inbox_;
};

ObjectWatch::ObjectWatch(Settings settings, Api* api, ObjectSink* sink)
    : settings_(std::move(settings)),
      api_(*api),
      sink_(*sink),
      state_(absl::UnavailableError("nothing has been asked yet")),
      thread_([this] { Run(); }) {}

ObjectWatch::~ObjectWatch() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (inbox_ != nullptr) inbox_->PutEnd(absl::CancelledError());
  }
  thread_.join();
}

absl::Status ObjectWatch::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

absl::Time ObjectWatch::freshness() const {
  const MutexLock lock(mutex_);
  return freshness_;
}

bool ObjectWatch::AwaitFirstList(absl::Duration timeout) {
  MutexLock lock(mutex_);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(timeout);
  while (!has_listed_ && lock.WaitUntil(changed_, due)) {
  }
  return has_listed_;
}

bool ObjectWatch::AwaitFirstAnswer(absl::Duration timeout) {
  MutexLock lock(mutex_);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(timeout);
  while (!has_answer_ && lock.WaitUntil(changed_, due)) {
  }
  return has_answer_;
}

void ObjectWatch::Hurry() {
  const MutexLock lock(mutex_);
  if (!absl::IsUnauthenticated(state_) && !absl::IsUnavailable(state_)) return;
  hurries_ = has_answer_;
  changed_.notify_all();
}

void ObjectWatch::Heard(bool is_list) {
  bool is_recovery = false;
  {
    const MutexLock lock(mutex_);
    is_recovery = has_answer_ && !state_.ok();
    state_ = absl::OkStatus();
    freshness_ = settings_.clock();
    if (is_list) has_listed_ = has_answer_ = true;
    changed_.notify_all();
  }
  if (is_recovery && settings_.on_recovery) settings_.on_recovery();
}

bool ObjectWatch::Pause(absl::Duration duration) {
  MutexLock lock(mutex_);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(duration);
  while (!stopping_ && !hurries_ && lock.WaitUntil(changed_, due)) {
  }
  if (duration > absl::ZeroDuration()) hurries_ = false;
  return !stopping_;
}

void ObjectWatch::Run() {
  absl::Duration pause = kFirstWatchPause;
  while (Pause(absl::ZeroDuration())) {
    const absl::Time begin = settings_.clock();
    const absl::Status status = resource_version_.empty() ? ListAll() : FollowOnce();
    // A watch that went well for a while has nothing to do with earlier troubles.
    if (settings_.clock() - begin > pause) pause = kFirstWatchPause;
    absl::Duration retry_after;
    {
      const MutexLock lock(mutex_);
      retry_after = std::exchange(retry_after_, absl::ZeroDuration());
      if (status.ok()) continue;
      state_ = status;
      has_answer_ = true;
      changed_.notify_all();
    }
    if (absl::IsUnauthenticated(status)) api_.RenewCredentials();
    if (!Pause(PauseOf(pause, retry_after))) return;
    pause = std::min(absl::IsUnavailable(status) ? kLongestPauseUnreached : kLongestWatchPause,
                     pause * 2);
  }
}

absl::Status ObjectWatch::ListAll() {
  std::vector<Json> objects;
  std::string next;
  for (int page = 0; page < kMaxListPages; ++page) {
    ApiCall call;
    call.path = fmt::format("{}?limit={}&labelSelector={}&fieldSelector={}&continue={}",
                            settings_.path, kListPageSize, Escape(settings_.selector),
                            Escape(settings_.field_selector), Escape(next));
    call.timeout = kListTimeout;
    absl::StatusOr<ApiAnswer> answer = api_.Call(call);
    if (!answer.ok()) return answer.status();
    if (!answer->ok()) return RefusalOf(*answer, "list " + settings_.path);
    std::string version = TextAt(answer->body, "metadata/resourceVersion");
    // Something else than an API server may answer, too: a proxy's page, say.
    if (version.empty())
      return absl::AbortedError(fmt::format("list {}: the answer is no list", settings_.path));
    if (const auto items = answer->body.find("items"); items != answer->body.end()) {
      for (Json& item : *items)
        objects.push_back(settings_.trim ? settings_.trim(item) : std::move(item));
    }
    next = TextAt(answer->body, "metadata/continue");
    if (!next.empty()) continue;
    resource_version_ = std::move(version);
    sink_.OnAll(std::move(objects));
    Heard(/*is_list=*/true);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      fmt::format("list {}: more than {} objects", settings_.path, kListPageSize * kMaxListPages));
}

absl::Status ObjectWatch::FollowOnce() {
  thread_local absl::BitGen random;
  const std::string path = fmt::format(
      "{}?watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}&labelSelector={}"
      "&fieldSelector={}",
      settings_.path, Escape(resource_version_),
      absl::Uniform(random, kShortestWatchSeconds, kLongestWatchSeconds),
      Escape(settings_.selector), Escape(settings_.field_selector));
  const absl::Time begin = settings_.clock();
  const auto inbox = std::make_shared<Inbox>();
  const absl::StatusOr<HttpLoop::CallId> id =
      api_.Stream(path, kSilence, std::make_unique<Stream>(inbox));
  if (!id.ok()) return id.status();
  {
    const MutexLock lock(mutex_);
    inbox_ = inbox;
    if (stopping_) inbox->PutEnd(absl::CancelledError());
  }
  const absl::Status end = Follow(inbox.get());
  api_.Cancel(*id);
  const bool is_expired = absl::IsOutOfRange(end);
  // A server that ends each watch at once must not be asked as fast as it can.
  const bool was_short = end.ok() && settings_.clock() - begin < kFirstWatchPause;
  if (is_expired || was_short) Pause(PauseOf(kFirstWatchPause, absl::ZeroDuration()));
  return is_expired ? absl::OkStatus() : end;
}

absl::Status ObjectWatch::Follow(Inbox* inbox) {
  int status = 0;
  std::string rest;  // of which the end has not come
  while (true) {
    const Inbox::News news = inbox->Take();
    if (news.status.has_value()) {
      status = *news.status;
      if (status == 200) Heard();
      const MutexLock lock(mutex_);
      retry_after_ = RetryAfterOf(news.headers);
    }
    rest += news.bytes;
    size_t begin = 0;
    for (size_t end = rest.find('\n'); status == 200 && end != rest.npos;
         end = rest.find('\n', begin)) {
      const absl::Status taken = TakeLine(std::string_view(rest).substr(begin, end - begin));
      if (!taken.ok()) return taken;
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() > kMaxLineBytes)
      return absl::AbortedError(fmt::format("watch {}: a line has no end", settings_.path));
    if (!news.end.has_value()) continue;
    if (status == 200 || !news.end->ok()) return *news.end;
    if (CannotGoOn(status)) resource_version_.clear();
    return RefusalOf(ToAnswer(status, rest), "watch " + settings_.path);
  }
}

absl::Status ObjectWatch::TakeLine(std::string_view line) {
  if (line.empty()) return absl::OkStatus();
  Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const std::string type = event.is_object() ? TextAt(event, "type") : std::string();
  if (type.empty() || !event.contains("object"))
    return absl::AbortedError("the watch brought a line that is no event");
  Json& object = event["object"];
  if (type == "ERROR") {
    const int code = static_cast<int>(NumberAt(object, "code"));
    // Earlier changes are lost; only the present objects can be known.
    if (CannotGoOn(code)) resource_version_.clear();
    return RefusalOf({.status = code,
                      .body = nullptr,
                      .reason = TextAt(object, "reason"),
                      .message = TextAt(object, "message")},
                     "watch " + settings_.path);
  }
  Heard();
  if (std::string version = TextAt(object, "metadata/resourceVersion"); !version.empty())
    resource_version_ = std::move(version);
  if (type == "DELETED") {
    sink_.OnDelete(std::move(object));
  } else if (type != "BOOKMARK") {
    sink_.OnChange(std::move(object));
  }
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
