// Writes structured logs: one line for each event, with its name first and then its facts as pairs.
//
//   text   2026-01-02T03:04:05.678Z INFO agent_connected cluster=gpu kind=SLURM
//   json
//   {"time":"2026-01-02T03:04:05.678Z","level":"info","event":"agent_connected","cluster":"gpu","kind":"SLURM"}
//
// Any thread. spdlog carries the lines; EventFormatter gives them one of the two forms.
#ifndef MUSTER_PROTO_DAEMON_LOG_H_
#define MUSTER_PROTO_DAEMON_LOG_H_

#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

// `event` is in lower_snake_case and part of what operators may grep for.
void LogEvent(spdlog::level::level_enum level, std::string_view event, LogFields fields = {});

class EventFormatter : public spdlog::formatter {
 public:
  explicit EventFormatter(bool json) : json_(json) {}
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override;
  std::unique_ptr<spdlog::formatter> clone() const override;

 private:
  const bool json_;
};

// Sends events, from now on, to standard error as lines of `program`. `level` as spdlog names it.
void StartLogging(const std::string& program, bool json, const std::string& level);

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_LOG_H_
