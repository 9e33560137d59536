#include "agents/kubernetes/logs/log_read.h"

#include <algorithm>
#include <utility>

#include "agents/kubernetes/api/retry_after.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// Lines of the two streams may be out of order by less than that.
constexpr absl::Duration kOrderSlack = absl::Seconds(2);
constexpr size_t kMaxRefusalBytes = 64 << 10;

}  // namespace

std::string LogPath(const LogTarget& target, LogPart part, bool follows, const LogPosition& known) {
  std::string path =
      fmt::format("/api/v1/namespaces/{}/pods/{}/log?container={}&timestamps=true",
                  Escape(target.name_space), Escape(target.pod), Escape(target.container));
  if (part != LogPart::kAll) path += part == LogPart::kStdout ? "&stream=Stdout" : "&stream=Stderr";
  if (follows) path += "&follow=true";
  if (known.count > 0 && known.time != LogPosition::kNoTime) {
    const absl::Time since = absl::FromUnixNanos(known.time) - kOrderSlack;
    path +=
        "&sinceTime=" + Escape(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", since, absl::UTCTimeZone()));
  }
  return path;
}

bool LogReadResult::is_gone() const {
  return refusal.status == 404 && TextAt(refusal.body, "details/kind") == "pods";
}

bool LogReadResult::cannot_split() const {
  if (refusal.status == 400)
    return refusal.message.find("PodLogsQuerySplitStreams") != std::string::npos;
  const Json& causes = At(refusal.body, "details/causes");
  return refusal.status == 422 && std::any_of(causes.begin(), causes.end(), [](const Json& cause) {
           return TextAt(cause, "field") == "stream";
         });
}

absl::Status LogReadResult::trouble(const LogTarget& target) const {
  const std::string what = fmt::format("log of {}/{}", target.pod, target.container);
  if (!disk.ok()) return disk;
  if (refusal.status != 0 && refusal.status != 200) return RefusalOf(refusal, what);
  if (!connection.ok()) return connection;
  if (!words.empty())
    return absl::UnavailableError(fmt::format("{}: the node says: {}", what, words));
  if (!has_found)
    return absl::NotFoundError(
        fmt::format("{}: the node does not have what it told before any more", what));
  return absl::OkStatus();
}

LogRead::LogRead(std::shared_ptr<SharedSpool> spool, const LogPosition& known, LogPart part,
                 std::function<void(LogReadResult)> ended)
    : spool_(std::move(spool)), ended_(std::move(ended)), lines_(known, part != LogPart::kAll) {}

void LogRead::OnStatus(int status, const std::map<std::string, std::string>& headers) {
  result_.refusal.status = status;
  result_.retry_after = RetryAfterOf(headers);
}

bool LogRead::OnBytes(std::string_view bytes) {
  if (result_.refusal.status != 200) {
    body_.append(bytes.substr(0, kMaxRefusalBytes - body_.size()));
    return true;
  }
  lines_.Take(bytes, &news_);
  return WriteNews();
}

bool LogRead::WriteNews() {
  if (news_.empty()) return true;
  const MutexLock lock(spool_->mutex);
  if (spool_->is_dropped) return false;
  const bool has_gap = lines_.has_gap() && !std::exchange(has_told_gap_, true);
  result_.disk = spool_->spool.Append(news_, lines_.position(), has_gap);
  news_.clear();
  return result_.disk.ok();
}

void LogRead::OnEnd(const absl::Status& status) {
  result_.connection = status;
  if (result_.refusal.status == 200) {
    if (status.ok()) {
      lines_.End(&news_);
      WriteNews();
    }
    // The lines after a gap are known now.
    result_.has_found = lines_.has_found() || lines_.has_gap();
    result_.has_news = lines_.has_news();
    result_.words = lines_.words();
  } else {
    ApiAnswer& refusal = result_.refusal;
    refusal.body = Json::parse(body_, nullptr, /*allow_exceptions=*/false);
    if (refusal.body.is_discarded()) refusal.body = nullptr;
    refusal.reason = TextAt(refusal.body, "reason");
    refusal.message = refusal.body.is_object() ? TextAt(refusal.body, "message") : body_;
  }
  ended_(std::move(result_));
}

}  // namespace muster::kubernetes
