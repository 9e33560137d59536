#include "broker/notify/courier.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "broker/core/sequences.h"
#include "broker/core/timestamps.h"
#include "broker/notify/payload.h"
#include "broker/notify/signature.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "rpc/backoff.h"

namespace muster::notify {
namespace {

// A feed that cannot be read is opened again after half to all of this, doubled up to the second.
constexpr absl::Duration kFirstFeedPause = absl::Seconds(1);
constexpr absl::Duration kMaxFeedPause = absl::Minutes(1);

std::string Text(uint64_t number) { return fmt::format("{}", number); }

std::string Words(const absl::Status& status) { return std::string(ToStd(status.message())); }

// The URL may be a secret, and errors begin with it.
std::string WithoutUrl(std::string words, const std::string& url) {
  const std::string prefix = url + ": ";
  return words.starts_with(prefix) ? words.substr(prefix.size()) : words;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Courier>> Courier::Make(CourierOptions options) {
  absl::StatusOr<std::optional<Cursor>> found = ReadCursor(options.cursor_file);
  if (!found.ok()) return found.status();
  const absl::StatusOr<uint64_t> last = options.last_stored();
  if (!last.ok()) return last.status();
  Cursor cursor = found->value_or(Cursor{.after = *last});
  if (cursor.after > *last) {
    LogEvent(spdlog::level::warn, "webhook_is_ahead",
             {{"webhook", options.webhook.name},
              {"after", Text(cursor.after)},
              {"last", Text(*last)},
              {"effect",
               "the database is older than the webhook's file; it begins with what comes "
               "next"}});
    cursor = {.after = *last};
  }
  if (*found != std::optional<Cursor>(cursor)) {
    const absl::Status status = WriteCursor(options.cursor_file, cursor);
    if (!status.ok()) return status;
  }
  auto courier = std::unique_ptr<Courier>(new Courier(std::move(options), cursor));
  courier->saved_ = cursor.after;
  return courier;
}

void Courier::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Courier::Stop() {
  bell_->Stop();
  if (thread_.joinable()) thread_.join();
}

WebhookCounts Courier::counts() const {
  return {.name = options_.webhook.name,
          .backlog = core::ChangesBetween(position_, options_.last_change()),
          .delivered = delivered_,
          .failed_tries = failed_tries_,
          .given_up = given_up_};
}

void Courier::Run() {
  rpc::Backoff pauses(kFirstFeedPause, kMaxFeedPause);
  while (!bell_->is_stopped()) {
    const absl::Status status = Follow();
    if (status.ok()) return;
    LogEvent(spdlog::level::warn, "webhook_feed_broken",
             {{"webhook", options_.webhook.name}, {"error", Words(status)}});
    bell_->Pause(pauses.Next());
  }
}

absl::Status Courier::Follow() {
  const auto feed = options_.open_feed(cursor_.after);
  if (!feed.ok()) return feed.status();
  (*feed)->Hook(bell_);
  absl::Status status = ReadOn(**feed);
  (*feed)->Unhook();
  return status;
}

absl::Status Courier::ReadOn(broker::WatchSource& feed) {
  while (!bell_->is_stopped()) {
    const broker::WatchSource::Pulled pulled = feed.Next();
    for (const broker::ChangeBytes& message : pulled.messages) {
      if (!Take(*message)) return absl::OkStatus();
    }
    if (pulled.final_status) return *pulled.final_status;
    if (pulled.more) continue;
    // The heartbeat tells how far the feed was looked through.
    const std::optional<broker::ChangeBytes> heartbeat = feed.KeepAlive();
    if (heartbeat && !Take(**heartbeat)) return absl::OkStatus();
    told_gap_ = false;
    const bool is_due = options_.now() - saved_at_ >= kSavePause;
    if (saved_ != cursor_.after && is_due && !Save()) return absl::OkStatus();
    bell_->Await(kSavePause);
  }
  return absl::OkStatus();
}

bool Courier::Take(const std::string& bytes) {
  v1::WatchJobsResponse message;
  if (!message.ParseFromString(bytes)) return true;
  for (const v1::JobChange& change : message.changes()) {
    if (!TakeChange(change)) return false;
  }
  if (message.has_heartbeat()) TakeHeartbeat(message.heartbeat().sequence());
  return true;
}

bool Courier::TakeChange(const v1::JobChange& change) {
  if (bell_->is_stopped()) return false;
  NoteGap(change.sequence());
  bool is_wanted = MayWant(options_.webhook, change);
  if (is_wanted) {
    v1::JobChange then = change;
    if (!GoBackTo(&then)) return false;
    is_wanted = Wants(options_.webhook, then);
    if (is_wanted && !Deliver(then)) return false;
  }
  MoveTo(change.sequence());
  if (change.has_transition()) cursor_.time = core::ToTime(change.transition().time());
  return !is_wanted || Save();
}

void Courier::TakeHeartbeat(uint64_t sequence) {
  if (sequence <= cursor_.after) return;
  // The feed of a broker that has just started is ahead of the store. A place that is ahead of it
  // would look to the next broker like that of a newer database.
  const absl::StatusOr<uint64_t> stored = options_.last_stored();
  if (!stored.ok()) return;  // the next heartbeat asks again
  const uint64_t looked_through = std::min(sequence, *stored);
  if (looked_through <= cursor_.after) return;
  NoteGap(looked_through + 1);
  MoveTo(looked_through);
  cursor_.time = options_.now();
}

bool Courier::GoBackTo(v1::JobChange* change) {
  // Memory gives the job as it was at the step, the store as it is now.
  if (change->job().job_sequence() == change->transition().job_sequence()) return true;
  rpc::Backoff pauses(kFirstFeedPause, kMaxFeedPause);
  while (!bell_->is_stopped()) {
    absl::StatusOr<std::optional<v1::Job>> past =
        options_.read_past(change->job().id(), change->sequence());
    if (past.ok()) {
      if (*past) GoBack(**std::move(past), change);
      return true;
    }
    NoteUnread(*change, past.status());
    bell_->Pause(pauses.Next());
  }
  return false;
}

void Courier::NoteUnread(const v1::JobChange& change, const absl::Status& status) {
  LogEvent(spdlog::level::warn, "webhook_job_unread",
           {{"webhook", options_.webhook.name},
            {"job", Text(change.job().id())},
            {"error", Words(status)}});
}

std::optional<std::string> Courier::MakeBody(const v1::JobChange& change) {
  if (options_.webhook.format != Webhook::Format::kOtlp)
    return BodyOf(options_.webhook.format, options_.broker, change);
  rpc::Backoff pauses(kFirstFeedPause, kMaxFeedPause);
  while (!bell_->is_stopped()) {
    const absl::StatusOr<History> history = options_.read_history(change.job().id());
    if (history.ok()) return TraceOf(options_.broker, *history);
    NoteUnread(change, history.status());
    if (absl::IsNotFound(history.status())) return std::nullopt;
    bell_->Pause(pauses.Next());
  }
  return std::nullopt;
}

bool Courier::Deliver(const v1::JobChange& change) {
  const std::optional<std::string> body = MakeBody(change);
  if (!body) return !bell_->is_stopped();
  retries_.Begin(options_.now());
  while (!bell_->is_stopped()) {
    const Outcome outcome = Post(change.sequence(), *body);
    if (bell_->is_stopped() && outcome.status == 0) return false;
    const Retries::Next next = retries_.After(outcome, options_.now());
    if (next.verdict == Retries::Verdict::kDelivered) {
      NoteSuccess();
      return true;
    }
    ++failed_tries_;
    if (next.verdict == Retries::Verdict::kGiveUp) {
      ++given_up_;
      LogEvent(spdlog::level::warn, "webhook_gave_up",
               {{"webhook", options_.webhook.name},
                {"event", Text(change.sequence())},
                {"job", Text(change.job().id())},
                {"status", fmt::format("{}", outcome.status)}});
      return true;
    }
    bell_->Pause(next.wait);
  }
  return false;
}

Outcome Courier::Post(uint64_t event, const std::string& body) {
  const Webhook& webhook = options_.webhook;
  oidc::HttpsRequest request{
      .url = webhook.url,
      .ca = webhook.ca,
      .body = body,
      .headers = {"Content-Type: application/json", "User-Agent: muster-broker/" MUSTER_VERSION,
                  fmt::format("Muster-Event-Id: {}", event)},
      .is_cancelled = [this] { return bell_->is_stopped(); }};
  if (!webhook.secret.empty()) {
    request.headers.push_back(
        fmt::format("Muster-Signature: {}", Signature(webhook.secret, options_.now(), body)));
  }
  const absl::StatusOr<oidc::HttpsAnswer> answer = options_.exchange(request);
  if (bell_->is_stopped() && !answer.ok()) return {};
  const Outcome outcome = answer.ok() ? Outcome{answer->status, answer->retry_after} : Outcome{};
  if (!IsTaken(outcome)) {
    NoteFailure(outcome, answer.ok() ? fmt::format("it answers with status {}", outcome.status)
                                     : WithoutUrl(Words(answer.status()), webhook.url));
  }
  return outcome;
}

void Courier::NoteFailure(const Outcome& outcome, const std::string& words) {
  // One line for each time that the receiver goes away: it may stay away for days.
  if (std::exchange(is_failing_, true)) return;
  LogEvent(spdlog::level::warn, "webhook_failing",
           {{"webhook", options_.webhook.name},
            {"status", fmt::format("{}", outcome.status)},
            {"error", words},
            {"effect", "its events wait, and are tried again"}});
}

void Courier::NoteSuccess() {
  ++delivered_;
  if (!std::exchange(is_failing_, false)) return;
  LogEvent(spdlog::level::info, "webhook_delivers", {{"webhook", options_.webhook.name}});
}

void Courier::NoteGap(uint64_t next) {
  const absl::Duration kept = options_.job_retention;
  const uint64_t missing = core::ChangesBetween(cursor_.after + 1, next);
  const bool may_miss = kept > absl::ZeroDuration() && cursor_.time &&
                        options_.now() - *cursor_.time > kept && missing > 0;
  if (!may_miss || std::exchange(told_gap_, true)) return;
  LogEvent(spdlog::level::warn, "webhook_skips_deleted",
           {{"webhook", options_.webhook.name},
            {"after", Text(cursor_.after)},
            {"next", Text(next)},
            {"changes_at_most", Text(missing)},
            {"effect", "jobs were deleted (jobs.retention) before their events were delivered"}});
}

void Courier::MoveTo(uint64_t sequence) {
  if (sequence <= cursor_.after) return;
  cursor_.after = sequence;
  position_ = sequence;
}

bool Courier::Save() {
  rpc::Backoff pauses(kFirstWait, kMaxWait);
  bool told = false;
  for (;;) {
    const absl::Status status = WriteCursor(options_.cursor_file, cursor_);
    if (status.ok()) break;
    // The webhook waits: else a broker that starts again would repeat everything since then.
    if (!std::exchange(told, true)) {
      LogEvent(spdlog::level::warn, "webhook_place_not_written",
               {{"webhook", options_.webhook.name}, {"error", Words(status)}});
    }
    bell_->Pause(pauses.Next());
    if (bell_->is_stopped()) return false;
  }
  saved_ = cursor_.after;
  saved_at_ = options_.now();
  return true;
}

}  // namespace muster::notify
