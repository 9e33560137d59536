// A bounded set of open files. Any thread.
#ifndef MUSTER_BROKER_LOGS_OPEN_FILES_H_
#define MUSTER_BROKER_LOGS_OPEN_FILES_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "broker/logs/archive.h"
#include "broker/logs/disk.h"
#include "sync/mutex.h"

namespace muster::logs {

// Keeps the descriptors used last. A descriptor in use stays open after its eviction until its user
// lets it go.
class OpenFiles {
 public:
  explicit OpenFiles(size_t capacity) : capacity_(capacity) {}

  // Returns null if the file is not open.
  std::shared_ptr<FileDescriptor> Find(const LogId& log);
  void Insert(const LogId& log, std::shared_ptr<FileDescriptor> file);
  void Erase(const LogId& log);
  size_t size() const;

 private:
  using Entry = std::pair<LogId, std::shared_ptr<FileDescriptor>>;

  const size_t capacity_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the one used last comes first
  std::map<LogId, std::list<Entry>::iterator> by_log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_OPEN_FILES_H_
