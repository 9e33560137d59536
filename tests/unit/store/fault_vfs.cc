#include "tests/unit/store/fault_vfs.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace muster::store {
namespace {

struct File {
  sqlite3_file base;
  FaultVfs* vfs;
  std::string* path;
  sqlite3_file* real;  // right behind this struct
};

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real; }

int Close(sqlite3_file* file) {
  const int code = Real(file)->pMethods != nullptr ? Real(file)->pMethods->xClose(Real(file)) : 0;
  delete Of(file)->path;
  return code;
}

int Read(sqlite3_file* file, void* data, int bytes, sqlite3_int64 offset) {
  if (Of(file)->vfs->power_is_off()) return SQLITE_IOERR_READ;
  return Real(file)->pMethods->xRead(Real(file), data, bytes, offset);
}

int Write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
  FaultVfs* vfs = Of(file)->vfs;
  // The write during which the power goes may still reach the disk in part, like those before it.
  vfs->BeforeWrite(*Of(file)->path, Real(file), offset, bytes);
  const int error = vfs->BeforeChange(bytes);
  if (error != SQLITE_OK) return error;
  const int code = Real(file)->pMethods->xWrite(Real(file), data, bytes, offset);
  if (code == SQLITE_OK) vfs->AfterWrite(*Of(file)->path, data, offset, bytes);
  return code;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (int error = Of(file)->vfs->BeforeChange(0); error != SQLITE_OK) return error;
  Of(file)->vfs->AfterTruncate(*Of(file)->path);
  return Real(file)->pMethods->xTruncate(Real(file), size);
}

int Sync(sqlite3_file* file, int) {
  if (int error = Of(file)->vfs->BeforeChange(0); error != SQLITE_OK) return error;
  // The disk of this layer is the list of unsynced writes; the real one need not be waited for.
  Of(file)->vfs->AfterSync(*Of(file)->path);
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) { return Real(file)->pMethods->xLock(Real(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* out) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
}
int FileControl(sqlite3_file* file, int op, void* arg) {
  return Real(file)->pMethods->xFileControl(Real(file), op, arg);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}
int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
  return Real(file)->pMethods->xShmMap(Real(file), region, size, extend, out);
}
int ShmLock(sqlite3_file* file, int offset, int n, int flags) {
  return Real(file)->pMethods->xShmLock(Real(file), offset, n, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Real(file)->pMethods->xShmUnmap(Real(file), remove);
}

const sqlite3_io_methods kMethods = {2,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics,
                                     ShmMap,
                                     ShmLock,
                                     ShmBarrier,
                                     ShmUnmap,
                                     nullptr,
                                     nullptr};

FaultVfs* Of(sqlite3_vfs* vfs) { return static_cast<FaultVfs*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* out, int flags, int* out_flags) {
  File* file = Of(out);
  file->base.pMethods = nullptr;
  if (Of(vfs)->power_is_off()) return SQLITE_CANTOPEN;
  file->vfs = Of(vfs);
  file->real = reinterpret_cast<sqlite3_file*>(file + 1);
  const int code = Of(vfs)->real()->xOpen(Of(vfs)->real(), path, file->real, flags, out_flags);
  if (code != SQLITE_OK) return code;
  file->path = new std::string(path != nullptr ? path : "");
  file->base.pMethods = &kMethods;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* path, int sync) {
  if (Of(vfs)->power_is_off()) return SQLITE_IOERR_DELETE;
  Of(vfs)->AfterTruncate(path);
  return Of(vfs)->real()->xDelete(Of(vfs)->real(), path, sync);
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

FaultVfs::FaultVfs() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
  vfs_.zName = kName;
  vfs_.pNext = nullptr;
  vfs_.pAppData = this;
  vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
  vfs_.xOpen = Open;
  vfs_.xDelete = Delete;
  sqlite3_vfs_register(&vfs_, 0);
}

FaultVfs::~FaultVfs() { sqlite3_vfs_unregister(&vfs_); }

void FaultVfs::FailCall(int from_now, int error) {
  countdown_ = from_now;
  error_ = error;
  fired_ = false;
}

void FaultVfs::CutPowerAt(int from_now) { FailCall(from_now, SQLITE_OK); }

void FaultVfs::LimitBytes(int64_t bytes) { bytes_left_ = bytes; }

void FaultVfs::Heal() {
  countdown_.reset();
  bytes_left_.reset();
  power_is_off_ = false;
}

int FaultVfs::BeforeChange(int64_t bytes) {
  if (power_is_off_) return SQLITE_IOERR;
  if (countdown_ && (*countdown_)-- == 0) {
    countdown_.reset();
    fired_ = true;
    if (error_ != SQLITE_OK) return error_;
    power_is_off_ = true;
    return SQLITE_IOERR;
  }
  if (bytes_left_) {
    if (*bytes_left_ < bytes) {
      fired_ = true;
      return SQLITE_FULL;
    }
    *bytes_left_ -= bytes;
  }
  return SQLITE_OK;
}

void FaultVfs::BeforeWrite(const std::string& path, sqlite3_file* real, int64_t offset, int bytes) {
  if (power_is_off_) return;
  Write write{offset, std::string(bytes, '\0'), 0, {}};
  sqlite3_int64 size = 0;
  real->pMethods->xFileSize(real, &size);
  write.size_before = size;
  // Short reads are filled with zeros.
  real->pMethods->xRead(real, write.before.data(), bytes, offset);
  unsynced_[path].push_back(std::move(write));
}

void FaultVfs::AfterWrite(const std::string& path, const void* data, int64_t offset, int bytes) {
  Write& write = unsynced_[path].back();
  write.data.assign(static_cast<const char*>(data), bytes);
  write.offset = offset;
}

void FaultVfs::LosePower(std::mt19937_64& random) {
  for (const auto& [path, writes] : unsynced_) {
    std::string disk = Contents(path);
    for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
      if (write->data.empty()) continue;  // it was refused
      disk.replace(write->offset, write->data.size(), write->before);
      disk.resize(write->size_before);
    }
    std::vector<Write> survivors;
    for (const Write& write : writes) {
      if (write.data.empty() || random() % 2 == 0) continue;
      survivors.push_back(write);
      // Torn at a sector.
      if (random() % 4 == 0) {
        constexpr size_t kSector = 512;
        survivors.back().data.resize(random() % (write.data.size() / kSector + 1) * kSector);
      }
    }
    std::shuffle(survivors.begin(), survivors.end(), random);
    for (const Write& write : survivors) {
      disk.resize(std::max(disk.size(), write.offset + write.data.size()));
      disk.replace(write.offset, write.data.size(), write.data);
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << disk;
  }
  unsynced_.clear();
  Heal();
}

}  // namespace muster::store
