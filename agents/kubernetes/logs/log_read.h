// One request for a container's log, and what becomes of its answer.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_READ_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_READ_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/logs/log_lines.h"
#include "agents/kubernetes/logs/log_spool.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// The part of a container's output that is asked for.
enum class LogPart { kAll, kStdout, kStderr };

struct LogTarget {
  std::string name_space;
  std::string pod;
  std::string pod_uid;
  std::string container;

  // Returns the name of the source in LogSpool: "UID/CONTAINER".
  std::string key() const { return pod_uid + "/" + container; }
};

// From what is known on, or from a little before: sinceTime has whole seconds.
std::string LogPath(const LogTarget& target, LogPart part, bool follows, const LogPosition& known);

// A file that the request writes while somebody else may want to remove it.
struct SharedSpool {
  explicit SharedSpool(std::string path) : spool(std::move(path)) {}

  Mutex mutex;
  LogSpool spool ABSL_GUARDED_BY(mutex);           // of the request as long as there is one
  bool is_dropped ABSL_GUARDED_BY(mutex) = false;  // nothing is written any more
};

struct LogReadResult {
  absl::Status connection;  // as HttpSink::OnEnd says
  absl::Status disk;        // why the output could not be written
  ApiAnswer refusal;        // its status is that of HTTP, also if it is 200
  absl::Duration retry_after;
  bool has_found = false;  // what was known before is in the answer
  bool has_news = false;
  std::string words;  // of the node, instead of a log or at its end

  // The node has told all that it has, up to the answer's end.
  bool is_whole() const {
    return connection.ok() && disk.ok() && refusal.status == 200 && has_found && words.empty();
  }
  bool is_gone() const;       // there is no such pod
  bool cannot_split() const;  // the server or the node knows only all output together
  // Returns the reason that the log could not be read, in the words of its source.
  absl::Status trouble(const LogTarget& target) const;
};

// Writes what is new into the file; then calls `ended`, once.
class LogRead : public HttpSink {
 public:
  LogRead(std::shared_ptr<SharedSpool> spool, const LogPosition& known, LogPart part,
          std::function<void(LogReadResult)> ended);

  void OnStatus(int status, const std::map<std::string, std::string>& headers) override;
  bool OnBytes(std::string_view bytes) override;
  void OnEnd(const absl::Status& status) override;

 private:
  bool WriteNews();

  const std::shared_ptr<SharedSpool> spool_;
  const std::function<void(LogReadResult)> ended_;
  LogLines lines_;
  std::string news_;
  bool has_told_gap_ = false;
  std::string body_;  // of a refusal
  LogReadResult result_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_READ_H_
