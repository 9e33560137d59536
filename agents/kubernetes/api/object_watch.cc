#include "agents/kubernetes/api/object_watch.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "agents/kubernetes/api/retry_after.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// The server's own choice for large lists; ten MB at most of Jobs.
constexpr int kListPageSize = 500;
constexpr absl::Duration kListTimeout = absl::Seconds(60);
// The server ends a watch by itself after so long, at random, so that servers share the load.
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
// Pages of one list: fifty thousand objects; a hundred thousand runs are two.
constexpr int kMaxListPages = 1000;

// True if the version that the refused watch named cannot be used again: 410, the server has
// forgotten it; 504, the server has never had it, because etcd was restored from a backup; other
// faults of the server may have the same cause. These have not: who asks, what he may, and when.
bool CannotGoOn(int status) { return status != 401 && status != 403 && status != 429; }

}  // namespace

// The state that both the watch's thread and its stream, on the loop's thread, touch.
struct ObjectWatch::Shared {
  mutable std::mutex mutex;
  std::condition_variable changed;
  const std::function<void()> on_recovery;
  bool stopping = false;
  bool hurries = false;  // the next pause is none
  bool has_listed = false;
  bool has_answer = false;                 // or a failure
  std::optional<HttpLoop::CallId> stream;  // the latest
  absl::Status state = absl::UnavailableError("nothing has been asked yet");
  absl::Time freshness = absl::InfinitePast();
  absl::Duration retry_after;  // what the latest answer of a watch asks for

  explicit Shared(std::function<void()> recovery) : on_recovery(std::move(recovery)) {}

  void Heard(bool is_list = false) {
    bool is_recovery = false;
    {
      const std::lock_guard lock(mutex);
      is_recovery = has_answer && !state.ok();
      state = absl::OkStatus();
      freshness = absl::Now();
      if (is_list) has_listed = has_answer = true;
      changed.notify_all();
    }
    if (is_recovery && on_recovery) on_recovery();
  }
};

// One watch request. Its lines are events; the sink gets them as they come.
class ObjectWatch::Stream : public HttpSink {
 public:
  struct End {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<absl::Status> status;
    std::string resource_version;
    bool must_list = false;
  };

  Stream(std::string path, std::shared_ptr<Shared> shared, ObjectSink* sink,
         std::shared_ptr<End> end)
      : path_(std::move(path)), shared_(std::move(shared)), sink_(*sink), end_(std::move(end)) {}

  void OnStatus(int status, const std::map<std::string, std::string>& headers) override {
    status_ = status;
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->retry_after = RetryAfterOf(headers);
    }
    if (status == 200) shared_->Heard();
  }

  bool OnBytes(std::string_view bytes) override {
    line_.append(bytes);
    if (status_ != 200) return line_.size() <= kMaxLineBytes;
    size_t begin = 0;
    for (size_t end = line_.find('\n'); end != line_.npos; end = line_.find('\n', begin)) {
      if (!Take(std::string_view(line_).substr(begin, end - begin))) return false;
      begin = end + 1;
    }
    line_.erase(0, begin);
    return line_.size() <= kMaxLineBytes;
  }

  void OnEnd(const absl::Status& status) override {
    absl::Status end = status;
    if (status_ != 200 && status.ok()) {
      end = RefusalOf(ToAnswer(status_, line_), "watch " + path_);
      must_list_ = CannotGoOn(status_);
    } else if (!problem_.ok()) {
      end = problem_;
    }
    const std::lock_guard lock(end_->mutex);
    end_->status = end;
    end_->resource_version = version_;
    end_->must_list = must_list_;
    end_->ended.notify_all();
  }

 private:
  // false: the stream is of no more use.
  bool Take(std::string_view line) {
    if (line.empty()) return true;
    Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const std::string type = event.is_object() ? TextAt(event, "type") : std::string();
    if (type.empty() || !event.contains("object")) {
      problem_ = absl::AbortedError("the watch brought a line that is no event");
      return false;
    }
    Json& object = event["object"];
    if (type == "ERROR") {
      const int code = static_cast<int>(NumberAt(object, "code"));
      must_list_ = CannotGoOn(code);
      problem_ = RefusalOf({.status = code,
                            .body = nullptr,
                            .reason = TextAt(object, "reason"),
                            .message = TextAt(object, "message")},
                           "watch " + path_);
      return false;
    }
    shared_->Heard();
    version_ = TextAt(object, "metadata/resourceVersion");
    if (type == "DELETED") {
      sink_.OnDelete(std::move(object));
    } else if (type != "BOOKMARK") {
      sink_.OnChange(std::move(object));
    }
    return true;
  }

  const std::string path_;  // of the collection
  const std::shared_ptr<Shared> shared_;
  ObjectSink& sink_;
  const std::shared_ptr<End> end_;
  int status_ = 0;
  std::string line_;
  std::string version_;
  bool must_list_ = false;
  absl::Status problem_;
};

ObjectWatch::ObjectWatch(Settings settings, Api* api, ObjectSink* sink)
    : settings_(std::move(settings)),
      api_(*api),
      sink_(*sink),
      shared_(std::make_shared<Shared>(settings_.on_recovery)),
      thread_([this] { Run(); }) {}

ObjectWatch::~ObjectWatch() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.notify_all();
    if (shared_->stream.has_value()) api_.Cancel(*shared_->stream);
  }
  thread_.join();
}

absl::Status ObjectWatch::state() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->state;
}

absl::Time ObjectWatch::freshness() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->freshness;
}

bool ObjectWatch::AwaitFirstList(absl::Duration timeout) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                                   [&] { return shared_->has_listed; });
}

bool ObjectWatch::AwaitFirstAnswer(absl::Duration timeout) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                                   [&] { return shared_->has_answer; });
}

void ObjectWatch::Hurry() {
  const std::lock_guard lock(shared_->mutex);
  if (!absl::IsUnauthenticated(shared_->state) && !absl::IsUnavailable(shared_->state)) return;
  shared_->hurries = shared_->has_answer;
  shared_->changed.notify_all();
}

bool ObjectWatch::Pause(absl::Duration duration) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, absl::ToChronoMilliseconds(duration),
                            [&] { return shared_->stopping || shared_->hurries; });
  if (duration > absl::ZeroDuration()) shared_->hurries = false;
  return !shared_->stopping;
}

void ObjectWatch::Run() {
  absl::Duration pause = kFirstWatchPause;
  while (Pause(absl::ZeroDuration())) {
    const absl::Time begin = absl::Now();
    const absl::Status status = resource_version_.empty() ? ListAll() : FollowOnce();
    // A watch that went well for a while has nothing to do with earlier troubles.
    if (absl::Now() - begin > pause) pause = kFirstWatchPause;
    absl::Duration retry_after;
    {
      const std::lock_guard lock(shared_->mutex);
      retry_after = std::exchange(shared_->retry_after, absl::ZeroDuration());
      if (status.ok()) continue;
      shared_->state = status;
      shared_->has_answer = true;
      shared_->changed.notify_all();
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
    shared_->Heard(/*is_list=*/true);
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
  const absl::Time begin = absl::Now();
  const auto end = std::make_shared<Stream::End>();
  const absl::StatusOr<HttpLoop::CallId> id =
      api_.Stream(path, kSilence, std::make_unique<Stream>(settings_.path, shared_, &sink_, end));
  if (!id.ok()) return id.status();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stream = *id;
    if (shared_->stopping) api_.Cancel(*id);
  }
  std::unique_lock lock(end->mutex);
  end->ended.wait(lock, [&] { return end->status.has_value(); });
  if (!end->resource_version.empty()) resource_version_ = end->resource_version;
  // Earlier changes are lost; only the present objects can be known.
  if (end->must_list) resource_version_.clear();
  const bool is_expired = absl::IsOutOfRange(*end->status);
  // A server that ends each watch at once must not be asked as fast as it can.
  const bool was_short = end->status->ok() && absl::Now() - begin < kFirstWatchPause;
  if (is_expired || was_short) Pause(PauseOf(kFirstWatchPause, absl::ZeroDuration()));
  return is_expired ? absl::OkStatus() : *end->status;
}

}  // namespace muster::kubernetes
