#include "agents/slurm/rest_client.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/history.h"
#include "agents/slurm/rest_json.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

// slurmrestd's number for an error that it does not tell, as when slurmctld refuses the token.
constexpr int64_t kUnspecified = -1;
// Slurm's own for a token that is refused, from Slurm 23.11 on.
constexpr int64_t kAuthenticationError = 1007;
// Bytes that an error quotes of an answer that is no JSON.
constexpr size_t kQuotedAnswerBytes = 200;

absl::Status RestErrorOf(const RestQuestion& question, const std::vector<RestError>& errors) {
  const std::string words = fmt::format("{}: {}", question.name, WordsOf(errors));
  if (IsUnknownJob(words)) return absl::NotFoundError(words);
  if (HasEndedAlready(words)) return absl::FailedPreconditionError(words);
  const bool untold = std::any_of(errors.begin(), errors.end(), [](const RestError& error) {
    return error.number == kUnspecified || error.number == kAuthenticationError;
  });
  return absl::UnavailableError(
      untold ? words +
                   " (slurmctld does not answer slurmrestd, or refuses the token: try "
                   "`scontrol ping`, and look at the token's user and age)"
             : words);
}

}  // namespace

int RestServes::api() const {
  return ParseNumber<int>(version.substr(version.rfind('.') + 1)).value_or(0);
}

RestServes ReadRestServes(const json& description) {
  RestServes serves;
  const json& paths = Member(description, "paths");
  if (!paths.is_object()) return serves;
  constexpr std::string_view kJobs = "/slurm/";
  constexpr std::string_view kLast = "/jobs";
  // v0.0.40 and later have a slash at the end.
  const auto has = [&](const std::string& path) {
    return paths.find(path) != paths.end() || paths.find(path + "/") != paths.end();
  };
  for (const auto& [whole, unused] : paths.items()) {
    const std::string_view path =
        std::string_view(whole).substr(0, whole.size() - (whole.ends_with('/') ? 1 : 0));
    if (!path.ends_with(kLast) || !path.starts_with(kJobs)) continue;
    serves.versions.emplace_back(
        path.substr(kJobs.size(), path.size() - kJobs.size() - kLast.size()));
  }
  for (std::string_view version : kRestVersions) {
    if (!serves.version.empty() || !has(fmt::format("/slurm/{}/jobs", version))) continue;
    serves.version = version;
    serves.accounting = has(fmt::format("/slurmdb/{}/jobs", version));
  }
  return serves;
}

RestClient::RestClient(std::string where, std::string user, std::unique_ptr<Http> http,
                       std::unique_ptr<TokenSource> tokens, CallGate* gate)
    : where_(std::move(where)),
      user_(std::move(user)),
      http_(std::move(http)),
      tokens_(std::move(tokens)),
      gate_(gate) {}

absl::Status RestClient::Refused(int status, const std::string& name) const {
  if (status == 401 || status == 403) {
    return absl::UnavailableError(fmt::format(
        "{}: slurmrestd at {} refuses the token of user {} (HTTP {}): renew it (rest_token_file), "
        "and look whether rest_user is whom it is for",
        name, where_, user_, status));
  }
  if (status == 404) {
    return absl::UnavailableError(
        fmt::format("{}: slurmrestd at {} does not serve API {} (any more): restart this agent to "
                    "have it choose "
                    "another one, or leave out slurm.rest_url, and Slurm's commands are used",
                    name, where_, version_.load()));
  }
  return absl::OkStatus();
}

absl::StatusOr<RestAnswer> RestClient::Ask(const RestQuestion& question) {
  const absl::StatusOr<std::string> token = tokens_->Get(absl::Now());
  if (!token.ok())
    return absl::UnavailableError(
        fmt::format("{}: {}", question.name, ToStd(token.status().message())));
  HttpRequest request;
  request.method = question.method;
  request.path = question.base.empty()
                     ? question.path
                     : fmt::format("/{}/{}{}", question.base, version_.load(), question.path);
  request.headers = {"X-SLURM-USER-NAME: " + user_, "X-SLURM-USER-TOKEN: " + *token};
  request.body = question.body;
  request.timeout = question.timeout;
  if (absl::Status status = gate_->Enter(question.name, question.kind); !status.ok()) return status;
  const absl::StatusOr<HttpResponse> response = http_->Send(request);
  if (!response.ok()) {
    return absl::Status(
        response.status().code(),
        fmt::format("{}: slurmrestd cannot be asked: {}. Look whether it runs there, and at "
                    "slurm.rest_url",
                    question.name, ToStd(response.status().message())));
  }
  std::optional<json> parsed = ParseRestJson(response->body);
  // An answer with 404 is about a job that Slurm does not know.
  const bool is_answer = response->status == 404 && parsed.has_value();
  if (absl::Status refused = Refused(response->status, question.name);
      !is_answer && !refused.ok()) {
    tokens_->Doubt();
    return refused;
  }
  if (!parsed.has_value()) {
    return absl::AbortedError(fmt::format("{}: what {} answers is not slurmrestd's (HTTP {}): {}",
                                          question.name, where_, response->status,
                                          response->body.substr(0, kQuotedAnswerBytes)));
  }
  const std::vector<RestError> errors = ErrorsOf(*parsed);
  gate_->OnAnswer(WordsOf(errors));
  for (const RestError& error : errors) {
    if (error.number == kAuthenticationError ||
        (error.number == kUnspecified && response->status >= 500))
      tokens_->Doubt();
  }
  return RestAnswer{response->status, std::make_shared<const json>(*std::move(parsed))};
}

absl::StatusOr<RestAnswer> RestClient::AskWell(const RestQuestion& question) {
  absl::StatusOr<RestAnswer> answer = Ask(question);
  if (!answer.ok()) return absl::UnavailableError(answer.status().message());
  std::vector<RestError> errors = ErrorsOf(*answer->json);
  std::erase_if(errors, [](const RestError& error) { return error.number == kRestNothingFound; });
  if (!errors.empty()) return RestErrorOf(question, errors);
  if (answer->status == 200) return answer;
  return absl::UnavailableError(
      fmt::format("{}: slurmrestd answers with HTTP {}", question.name, answer->status));
}

}  // namespace muster::slurm
