// A bounded set of open files. Any thread.
#ifndef MUSTER_BROKER_LOGS_OPEN_FILES_H_
#define MUSTER_BROKER_LOGS_OPEN_FILES_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "broker/logs/archive.h"
#include "broker/logs/disk.h"

namespace muster::logs {

// Keeps the descriptors used last. One that is in use stays open beyond its eviction until its user
// lets go.
class OpenFiles {
 public:
  explicit OpenFiles(size_t capacity) : capacity_(capacity) {}

  // Null: not open.
  std::shared_ptr<FileDescriptor> Find(const LogId& log);
  void Insert(const LogId& log, std::shared_ptr<FileDescriptor> file);
  void Erase(const LogId& log);
  size_t size() const;

 private:
  using Entry = std::pair<LogId, std::shared_ptr<FileDescriptor>>;

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // used last first
  std::map<LogId, std::list<Entry>::iterator> by_log_;
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_OPEN_FILES_H_
