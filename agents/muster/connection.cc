#include "agents/muster/connection.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "agents/muster/translate.h"
#include "clients/cpp/credential.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "digest/token_text.h"

namespace muster::remote {
namespace {

// A call answers within this time, all its attempts together: the agent repeats what failed, and a
// look at the runs must not take longer than the pause between two.
constexpr absl::Duration kCallTimeout = absl::Seconds(20);
constexpr size_t kMaxTokenFileBytes = 4096;  // a token and some blanks
constexpr size_t kMaxCaFileBytes = 1 << 20;  // some hundred certificates
constexpr int kPageSize = 1000;              // as much as the API gives

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("muster.token_file: {} has mode {:04o}, so that others may read it; "
                           "chmod 600 {}, and revoke the token if others could read it",
                           path, info.st_mode & 07777, path)));
  }
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxTokenFileBytes);
  if (!text.ok()) return text.status();
  std::string token(absl::StripAsciiWhitespace(ToAbsl(*text)));
  if (IsTokenText(token)) return token;
  return absl::InvalidArgumentError(ToAbsl(
      fmt::format("muster.token_file: {} has no whole token; make one at the remote broker by "
                  "`muster token create` and write it there",
                  path)));
}

// Has the token of a file, which an operator may replace while the agent runs.
class TokenOfFile final : public client::Credential {
 public:
  TokenOfFile(std::string path, std::string token)
      : path_(std::move(path)), token_(std::move(token)) {}

  std::string Token() override {
    const MutexLock lock(mutex_);
    return token_;
  }
  absl::Status Renew(const std::string& refused) override {
    absl::StatusOr<std::string> token = ReadToken(path_);
    if (!token.ok()) return token.status();
    if (*token == refused) {
      return absl::UnauthenticatedError(ToAbsl(fmt::format(
          "the remote broker does not accept the token in {}: it was revoked or has expired; make "
          "another one there by `muster token create`, and write it to that file",
          path_)));
    }
    const MutexLock lock(mutex_);
    token_ = *std::move(token);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const RemoteConfig& config) {
  client::ClientOptions options;
  options.address = config.address;
  options.address_origin = "the setting muster.address";
  options.call_timeout = kCallTimeout;
  if (!config.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadToken(config.token_file);
    if (!token.ok()) return token.status();
    options.credential = std::make_shared<TokenOfFile>(config.token_file, *std::move(token));
  }
  if (!config.ca_file.empty()) {
    absl::StatusOr<std::string> ca = ReadFile(config.ca_file, kMaxCaFileBytes);
    if (!ca.ok()) return ca.status();
    options.ca = *std::move(ca);
  }
  absl::StatusOr<std::unique_ptr<client::Client>> client =
      client::Client::Create(std::move(options));
  if (!client.ok()) return client.status();
  return std::make_unique<Connection>(*std::move(client));
}

absl::StatusOr<std::vector<v1::Job>> Connection::List(const std::string& filter) {
  std::vector<v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(kPageSize);
  request.set_filter(filter);
  request.set_include_latest_run(true);
  do {
    absl::StatusOr<v1::ListJobsResponse> page = For("ListJobs").ListJobs(request);
    if (!page.ok()) return page.status();
    for (v1::Job& job : *page->mutable_jobs()) jobs.push_back(std::move(job));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

absl::StatusOr<std::optional<v1::Job>> Connection::FindRun(const std::string& cluster,
                                                           const std::string& run_key) {
  const absl::StatusOr<v1::WhoAmIResponse> who = For("WhoAmI").WhoAmI(v1::WhoAmIRequest());
  if (!who.ok()) return who.status();
  absl::StatusOr<std::vector<v1::Job>> jobs = List(FilterOfRun(cluster, who->user(), run_key));
  if (!jobs.ok()) return jobs.status();
  if (jobs->empty()) return std::nullopt;
  // The user's other jobs may have a run's label, too. The job with the lowest number is the run's.
  return std::move(
      *std::min_element(jobs->begin(), jobs->end(),
                        [](const v1::Job& a, const v1::Job& b) { return a.id() < b.id(); }));
}

absl::StatusOr<std::vector<v1::Cluster>> Connection::Clusters() {
  std::vector<v1::Cluster> clusters;
  v1::ListClustersRequest request;
  request.set_page_size(kPageSize);
  do {
    absl::StatusOr<v1::ListClustersResponse> page = For("ListClusters").ListClusters(request);
    if (!page.ok()) return page.status();
    for (v1::Cluster& cluster : *page->mutable_clusters()) clusters.push_back(std::move(cluster));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return clusters;
}

}  // namespace muster::remote
