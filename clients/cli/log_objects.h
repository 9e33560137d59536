// A log as JSON, an object on each line. Pure.
#ifndef MUSTER_CLIENTS_CLI_LOG_OBJECTS_H_
#define MUSTER_CLIENTS_CLI_LOG_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "muster/v1/jobs_service.pb.h"

namespace muster::cli {

// A line of the log that is longer becomes several objects.
inline constexpr size_t kMaxLogObjectBytes = 64 << 10;

// Turns pieces of the logs of a run into objects, one for each line of a log:
//
//   {"run":1,"rank":0,"stream":"LOG_STREAM_STDERR","offset":"1200","data":"epoch 3\n"}
//
// The data has its line end, so that all of them one after the other are the log, byte for byte.
// "data_base64" is in place of "data" where the bytes are not UTF-8. The last object of a stream
// says how it ended: {"run":1,"rank":0,"stream":"LOG_STREAM_STDERR","offset":"1208","end":
// "LOG_END_COMPLETE"}. Names and the form of numbers are those of the API's JSON. There is no time:
// a log has none.
class LogObjects {
 public:
  // `job`: named first in each object, where there are logs of others; 0: it is not.
  explicit LogObjects(uint32_t run, uint64_t job = 0) : run_(run), job_(job) {}

  // Returns the objects that are complete with this piece. If the offset is not the end of the
  // piece before, the bytes between are not kept.
  std::string Next(uint32_t rank, v1::LogStream stream, uint64_t offset, std::string_view data);
  // Returns the rest of the stream, and its end.
  std::string End(uint32_t rank, v1::LogStream stream, v1::LogEnd end);
  // Returns the rest of all streams, of a log that breaks off.
  std::string Flush();

 private:
  using Source = std::pair<uint32_t, v1::LogStream>;
  struct Line {
    uint64_t offset = 0;  // of its first byte
    std::string data;     // no line end yet
  };

  // The line's beginning as an object; the rest stays.
  std::string Take(const Source& source, size_t bytes, Line* line) const;

  const uint32_t run_;
  const uint64_t job_;
  std::map<Source, Line> lines_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_LOG_OBJECTS_H_
