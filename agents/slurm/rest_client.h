// Asks one slurmrestd questions that are authenticated and counted, and reads the answers as far as
// all of them are alike.
#ifndef MUSTER_AGENTS_SLURM_REST_CLIENT_H_
#define MUSTER_AGENTS_SLURM_REST_CLIENT_H_

#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/slurm/call_gate.h"
#include "agents/slurm/http.h"
#include "agents/slurm/rest_token.h"

namespace muster::slurm {

// This agent speaks these versions of slurmrestd's API, the one that it likes best first. Others
// ignore members that they do not know, and a job would lose options in silence.
inline constexpr std::array<std::string_view, 5> kRestVersions = {"v0.0.42", "v0.0.41", "v0.0.40",
                                                                  "v0.0.38", "v0.0.37"};

// slurmrestd's options for the best ones.
inline constexpr std::string_view kHowToServe =
    "-s openapi/slurmctld,openapi/slurmdbd -d v0.0.42 (before Slurm 23.11: -s "
    "openapi/v0.0.38,openapi/dbv0.0.38)";

// Lists the paths that slurmrestd's description of itself has: "/slurm/v0.0.38/jobs" and so on.
struct RestServes {
  std::vector<std::string> versions;  // all that it has for jobs
  std::string_view version;           // the best one of kRestVersions; empty: none of them
  bool accounting = false;            // in that version

  // Returns the number of `version`, 42 for v0.0.42; 0 if it is empty.
  int api() const;
};
RestServes ReadRestServes(const nlohmann::json& description);

// Slurm's own number for an answer that lists nothing.
inline constexpr int64_t kRestNothingFound = 9003;

struct RestQuestion {
  std::string name;  // for counts and errors: "rest-jobs"
  CallKind kind = CallKind::kOther;
  std::string method = "GET";
  std::string path;  // after "/slurm/" and the version, or what `base` says
  std::string body;
  std::string base = "slurm";  // or "slurmdb", or empty: `path` is whole
  absl::Duration timeout;
};

struct RestAnswer {
  int status = 0;
  std::shared_ptr<const nlohmann::json> json;  // an object
};

// Any thread may use it.
class RestClient {
 public:
  // `where` is the address, for errors. `gate` must outlive this object.
  RestClient(std::string where, std::string user, std::unique_ptr<Http> http,
             std::unique_ptr<TokenSource> tokens, CallGate* gate);

  // Sets which of kRestVersions is spoken from now on. Before, only questions without one can be
  // asked.
  void Speak(std::string_view version) { version_ = version.data(); }
  // Returns the token that the next question would use. The errors are those of TokenSource.
  absl::StatusOr<std::string> Token() { return tokens_->Get(absl::Now()); }
  // The answer, if it is JSON, whatever it says. UNAVAILABLE says what kept slurmrestd from being
  // asked, and what to do. After ABORTED and DEADLINE_EXCEEDED it may have been.
  absl::StatusOr<RestAnswer> Ask(const RestQuestion& question);
  // Returns the answer, if it holds no error; else NOT_FOUND for a job that Slurm does not know,
  // FAILED_PRECONDITION for one that has ended, UNAVAILABLE for all others.
  absl::StatusOr<RestAnswer> AskWell(const RestQuestion& question);

 private:
  absl::Status Refused(int status, const std::string& name) const;

  // These are constant after construction.
  const std::string where_;
  const std::string user_;
  // They have locks of their own.
  std::atomic<const char*> version_ = kRestVersions.front().data();  // one of kRestVersions
  const std::unique_ptr<Http> http_;
  const std::unique_ptr<TokenSource> tokens_;
  CallGate* const gate_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_CLIENT_H_
