// HTTP requests, one connection each.
#ifndef MUSTER_AGENTS_SLURM_HTTP_H_
#define MUSTER_AGENTS_SLURM_HTTP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::slurm {

struct HttpRequest {
  std::string method = "GET";
  std::string path;                  // from '/' on, with the query
  std::vector<std::string> headers;  // "Name: value"
  std::string body;                  // JSON; sent if it is not empty
  absl::Duration timeout = absl::Seconds(60);
};

struct HttpResponse {
  int status = 0;
  std::string body;
};

// Any thread may use it.
class Http {
 public:
  virtual ~Http() = default;
  // Returns the answer whatever its status is. UNAVAILABLE: the server was not reached, so it has
  // done nothing; DEADLINE_EXCEEDED: it did not answer in time; ABORTED: its answer broke off, or
  // is longer than 64 MiB. After the latter two it may have done what it was asked to.
  virtual absl::StatusOr<HttpResponse> Send(const HttpRequest& request) = 0;
};

// `url` is "http://host:port", "https://host:port" or "unix:/path", with nothing after it.
// INVALID_ARGUMENT otherwise. Proxies of the environment are not used, and redirections not
// followed: requests carry tokens.
absl::Status CheckHttpUrl(const std::string& url);
std::unique_ptr<Http> MakeHttp(const std::string& url);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_HTTP_H_
