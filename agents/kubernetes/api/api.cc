#include "agents/kubernetes/api/api.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/lane_sink.h"
#include "agents/kubernetes/api/retry_after.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// A list of five hundred Jobs with their pods fits; lists are asked for in pages of that.
constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
// The format of the header Date.
constexpr char kHttpDate[] = "%a, %d %b %E4Y %H:%M:%S GMT";
// A stream waits so long for its credentials; whoever wants it tries again.
constexpr absl::Duration kStreamStartTimeout = absl::Seconds(30);
// Waits between repetitions if the server names none.
constexpr absl::Duration kFirstWait = absl::Milliseconds(200);
constexpr absl::Duration kLongestWait = absl::Seconds(10);
// This is enough for a server that restarts, at the waits above; the call's own time is the other
// bound.
constexpr int kMaxTries = 10;
// Calls of which each broke its connection; more of them is no coincidence.
constexpr int kMaxCuts = 4;

bool MayBeAskedAgain(const ApiCall& call, const absl::StatusOr<HttpAnswer>& answer, int tries) {
  const bool only_reads = call.method == "GET";
  // Connections break now and then: servers end them to share their load.
  if (!answer.ok()) return only_reads && absl::IsAborted(answer.status()) && tries < kMaxCuts;
  // A call that was told to come later has not been looked at, unless admission has.
  const bool was_sent_away =
      answer->status == 429 && !ToAnswer(answer->status, answer->body).IsDenied();
  const bool may = was_sent_away || (answer->status >= 500 && only_reads);
  return may && tries < kMaxTries;
}

// Waits with jitter, so that many that were sent away together do not come back together.
absl::Duration WaitBefore(int next_try, const std::map<std::string, std::string>& headers) {
  thread_local absl::BitGen random;
  absl::Duration wait =
      std::min(kLongestWait, kFirstWait * static_cast<double>(1 << std::min(next_try - 1, 10)));
  wait = std::max(wait, RetryAfterOf(headers));
  return wait * absl::Uniform(random, 1.0, 1.5);
}

// Returns advice that the server does not give to somebody whom it did not recognise.
std::string_view HintOf(const ApiAnswer& answer) {
  if (answer.status == 401 && !answer.IsDenied())
    return "; the credentials have expired, or are another cluster's: renew those of the context";
  if (answer.status == 403 && answer.message.find("\"system:anonymous\"") != std::string::npos) {
    return "; no credentials were sent: name a user in the kubeconfig's context, and give it a "
           "token, a certificate or a plug-in";
  }
  return "";
}

}  // namespace

// The source is ToStatusErr in staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors,
// and plugin/policy/validating, of Kubernetes.
bool ApiAnswer::IsDenied() const {
  const auto has = [&](std::string_view words) { return message.find(words) != message.npos; };
  return !ok() && ((has("admission webhook ") && has(" denied the request")) ||
                   (has("ValidatingAdmissionPolicy ") && has(" denied request: ")));
}

// "jobs.batch is forbidden: User "x" cannot create resource ..."; others may say "cannot" as well.
bool ApiAnswer::IsRbac() const {
  return status == 403 && message.find("is forbidden: User \"") != std::string::npos;
}

ApiAnswer ToAnswer(int status, const std::string& body) {
  ApiAnswer answer;
  answer.status = status;
  answer.body = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (answer.body.is_discarded()) answer.body = nullptr;
  if (answer.ok()) return answer;
  if (answer.body.is_object() && TextAt(answer.body, "kind") == "Status") {
    answer.reason = TextAt(answer.body, "reason");
    answer.message = TextAt(answer.body, "message");
  } else {
    answer.message = body;  // of a proxy, say
  }
  return answer;
}

absl::Status RefusalOf(const ApiAnswer& answer, std::string_view what) {
  const std::string text = fmt::format(
      "{}: the API server answered {}{}{}: {}{}", what, answer.status,
      answer.reason.empty() ? "" : " ", answer.reason,
      answer.message.empty() ? std::string("without a word") : answer.message, HintOf(answer));
  switch (answer.status) {
    case 400:
    case 413:
    case 422:
      return absl::InvalidArgumentError(text);
    case 401:
      return absl::UnauthenticatedError(text);
    case 403:
      return absl::PermissionDeniedError(text);
    case 404:
      return absl::NotFoundError(text);
    case 409:
      return answer.reason == "AlreadyExists" ? absl::AlreadyExistsError(text)
                                              : absl::AbortedError(text);
    case 410:
      return absl::OutOfRangeError(text);
    case 429:
      return absl::ResourceExhaustedError(text);
    default:
      return answer.status >= 500 ? absl::InternalError(text) : absl::UnknownError(text);
  }
}

Api::Api(Endpoint endpoint, hosts::Host* host)
    : endpoint_(std::move(endpoint)),
      credentials_(endpoint_, host),
      server_ahead_(absl::Now() - agents::SteadyNow()) {}

absl::Time Api::ServerTime() const {
  const MutexLock lock(mutex_);
  return agents::SteadyNow() + server_ahead_;
}

void Api::NoteTime(const std::map<std::string, std::string>& headers) {
  const auto date = headers.find("date");
  absl::Time time;
  if (date == headers.end() || !absl::ParseTime(kHttpDate, date->second, &time, nullptr)) return;
  const MutexLock lock(mutex_);
  server_ahead_ = time - agents::SteadyNow();
}

void Api::Count(const std::string& what) {
  const MutexLock lock(mutex_);
  ++calls_[what];
}

std::map<std::string, uint64_t> Api::Calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

absl::StatusOr<HttpCall> Api::Prepare(const std::string& method, const std::string& path,
                                      absl::Time deadline, Credential* credential) {
  absl::StatusOr<Credential> present = credentials_.Get(deadline);
  if (!present.ok()) return present.status();
  *credential = *std::move(present);
  HttpCall call;
  call.method = method;
  call.url = endpoint_.server + path;
  call.proxy_url = endpoint_.proxy_url;
  call.headers = {"Accept: application/json", "User-Agent: muster-agent/" MUSTER_VERSION};
  if (!credential->authorization.empty())
    call.headers.push_back("Authorization: " + credential->authorization);
  call.tls = {.ca_pem = credential->ca_pem.empty() ? endpoint_.ca_pem : credential->ca_pem,
              .server_name = endpoint_.tls_server_name,
              .skips_verify = endpoint_.skips_tls_verify,
              .certificate_pem = credential->certificate_pem,
              .key_pem = credential->key_pem};
  return call;
}

absl::StatusOr<Json> Api::Get(const std::string& path, std::string_view what) {
  absl::StatusOr<ApiAnswer> answer = Call({.path = path});
  if (!answer.ok()) return answer.status();
  if (!answer->ok()) return RefusalOf(*answer, fmt::format("get {}", what));
  return std::move(answer->body);
}

absl::StatusOr<ApiAnswer> Api::Call(const ApiCall& call) {
  const absl::Time end = agents::SteadyNow() + call.timeout;
  bool renewed = false;
  // Any of the tries may have been: the last one knows nothing of those before it.
  bool may_have_been_heard = false;
  for (int tries = 1;; ++tries) {
    Credential credential;
    absl::StatusOr<HttpCall> http = Prepare(call.method, call.path, end, &credential);
    if (!http.ok()) return http.status();
    if (!call.body.is_null()) {
      http->body = call.body.dump();
      http->headers.push_back("Content-Type: " + call.content_type);
    }
    http->timeout = std::max(absl::Milliseconds(1), end - agents::SteadyNow());
    Count(call.method);
    const absl::StatusOr<HttpAnswer> answer = loop_.Send(*std::move(http), kMaxAnswerBytes);
    if (answer.ok()) NoteTime(answer->headers);
    may_have_been_heard = may_have_been_heard || !answer.ok() || answer->was_sent_again;
    if (answer.ok() && answer->status == 401 && !std::exchange(renewed, true)) {
      credentials_.Refuse(credential);
      continue;
    }
    if (MayBeAskedAgain(call, answer, tries)) {
      const absl::Duration wait =
          WaitBefore(tries, answer.ok() ? answer->headers : std::map<std::string, std::string>());
      if (agents::SteadyNow() + wait < end) {
        absl::SleepFor(wait);
        continue;
      }
    }
    if (!answer.ok()) return answer.status();
    ApiAnswer told = ToAnswer(answer->status, answer->body);
    told.was_sent_again = may_have_been_heard;
    return told;
  }
}

absl::StatusOr<HttpLoop::CallId> Api::Stream(const std::string& path, absl::Duration silence,
                                             std::unique_ptr<HttpSink> sink,
                                             agents::WorkerLane* lane) {
  Credential credential;
  absl::StatusOr<HttpCall> http =
      Prepare("GET", path, agents::SteadyNow() + kStreamStartTimeout, &credential);
  if (!http.ok()) return http.status();
  http->timeout = absl::InfiniteDuration();
  http->silence = silence;
  Count("stream");
  if (lane != nullptr) sink = std::make_unique<LaneSink>(std::move(sink), lane, &loop_);
  return loop_.Start(*std::move(http), std::move(sink));
}

void Api::RenewCredentials() {
  if (const absl::StatusOr<Credential> present = credentials_.Get(agents::SteadyNow());
      present.ok())
    credentials_.Refuse(*present);
}

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const unsigned char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    escaped += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return escaped;
}

}  // namespace muster::kubernetes
