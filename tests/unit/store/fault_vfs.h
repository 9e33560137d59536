// Makes a file layer for SQLite that fails on purpose: a disk that is full, a call that fails,
// power that goes.
//
// Passes everything on to the default layer and remembers, for each file, what has been written and
// not yet synced. When the power goes, all calls fail from then on; LosePower then drops, tears and
// reorders what was not synced. For one thread, one instance at a time.
#ifndef MUSTER_TESTS_UNIT_STORE_FAULT_VFS_H_
#define MUSTER_TESTS_UNIT_STORE_FAULT_VFS_H_

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace muster::store {

class FaultVfs {
 public:
  static constexpr const char* kName = "fault";

  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  // The call so many writing calls (write, sync, truncate) from now answers `error`; later ones are
  // fine again.
  void FailCall(int from_now, int error);
  // Lets nothing work from that call on until LosePower.
  void CutPowerAt(int from_now);
  // Lets so many more bytes be written; then the disk is full.
  void LimitBytes(int64_t bytes);
  void Heal();

  bool power_is_off() const { return power_is_off_; }
  // Returns whether a planned fault has happened.
  bool fired() const { return fired_; }
  // Decides what became of each write that was not synced. All files must be closed. The power is
  // on again.
  void LosePower(std::mt19937_64& random);

  // ---- for the file methods
  // Returns the error that this call must answer instead of doing its work; SQLITE_OK if none.
  int BeforeChange(int64_t bytes);
  void BeforeWrite(const std::string& path, sqlite3_file* real, int64_t offset, int bytes);
  void AfterWrite(const std::string& path, const void* data, int64_t offset, int bytes);
  void AfterTruncate(const std::string& path) { unsynced_.erase(path); }
  void AfterSync(const std::string& path) { unsynced_.erase(path); }
  sqlite3_vfs* real() const { return real_; }

 private:
  struct Write {
    int64_t offset;
    std::string before;   // what was there
    int64_t size_before;  // of the file
    std::string data;
  };

  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  std::map<std::string, std::vector<Write>> unsynced_;  // by path, in the order of the calls
  std::optional<int> countdown_;
  int error_ = SQLITE_OK;  // at the end of the countdown; SQLITE_OK: the power goes
  std::optional<int64_t> bytes_left_;
  bool power_is_off_ = false;
  bool fired_ = false;
};

}  // namespace muster::store

#endif  // MUSTER_TESTS_UNIT_STORE_FAULT_VFS_H_
