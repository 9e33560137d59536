#include "broker/auth/oidc/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "contract/text.h"
#include "daemon/log.h"

namespace muster::oidc {

Provider::Provider(ProviderOptions options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

Provider::~Provider() { Stop(); }

std::shared_ptr<const Keys> Provider::keys() const {
  const MutexLock lock(mutex_);
  return keys_;
}

void Provider::Want() {
  {
    const MutexLock lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_all();
}

void Provider::Stop() {
  is_stopping_ = true;
  {
    // The thread looks at the flag under this lock, and must not miss the notice.
    const MutexLock lock(mutex_);
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<Provider::Fetched> Provider::Fetch() const {
  HttpsRequest request{.ca = options_.ca, .is_cancelled = [this] { return is_stopping_.load(); }};
  const absl::StatusOr<Discovery> discovery = Discover(options_.exchange, options_.issuer, request);
  if (!discovery.ok()) return discovery.status();
  request.url = discovery->jwks_uri;
  const absl::StatusOr<HttpsAnswer> answer = options_.exchange(request);
  if (!answer.ok()) return answer.status();
  if (answer->status != kHttpOk) {
    return absl::UnavailableError(
        ToAbsl(fmt::format("{} answers with status {}", request.url, answer->status)));
  }
  absl::StatusOr<Keys> keys = ReadKeySet(answer->body);
  if (keys.ok() && keys->empty())
    keys = absl::FailedPreconditionError("it has no key for RS256 or ES256");
  if (!keys.ok()) {
    return absl::FailedPreconditionError(
        ToAbsl(fmt::format("{}: {}", request.url, ToStd(keys.status().message()))));
  }
  const absl::Duration age = answer->max_age.value_or(kDefaultKeyAge);
  return Fetched{*std::move(keys), std::clamp(age, kMinKeyAge, kMaxKeyAge)};
}

absl::Duration Provider::Take(absl::StatusOr<Fetched> fetched) {
  std::string names;
  if (fetched.ok()) {
    for (const SigningKey& key : fetched->keys) {
      names += fmt::format("{}{}:{}", names.empty() ? "" : ",", NameOf(key.algorithm), key.id);
    }
  }
  const MutexLock lock(mutex_);
  is_wanted_ = false;
  if (!fetched.ok()) {
    if (!std::exchange(is_away_, true)) {
      LogEvent(spdlog::level::warn, "oidc_provider_away",
               {{"issuer", options_.issuer},
                {"error", std::string(ToStd(fetched.status().message()))},
                {"keys", fmt::format("{}", keys_->size())},
                {"effect", keys_->empty() ? "nobody can log in" : "the keys of before stay good"}});
    }
    return options_.fetch_pause;
  }
  const bool is_same =
      std::equal(keys_->begin(), keys_->end(), fetched->keys.begin(), fetched->keys.end(),
                 [](const SigningKey& a, const SigningKey& b) {
                   return a.id == b.id && a.algorithm == b.algorithm &&
                          EVP_PKEY_eq(a.key.get(), b.key.get()) == 1;
                 });
  if (std::exchange(is_away_, false) || !is_same) {
    LogEvent(spdlog::level::info, "oidc_keys", {{"issuer", options_.issuer}, {"keys", names}});
  }
  keys_ = std::make_shared<const Keys>(std::move(fetched->keys));
  return fetched->age;
}

void Provider::Run() {
  while (!is_stopping_) {
    const absl::Duration age = Take(Fetch());
    const Clock::time_point fetched = Clock::now();
    const Clock::time_point due = fetched + absl::ToChronoNanoseconds(age);
    const Clock::time_point earliest = fetched + absl::ToChronoNanoseconds(options_.fetch_pause);
    MutexLock lock(mutex_);
    while (!is_stopping_) {
      const Clock::time_point next = is_wanted_ ? std::min(due, earliest) : due;
      if (Clock::now() >= next) break;
      lock.WaitUntil(changed_, next);
    }
  }
}

}  // namespace muster::oidc
