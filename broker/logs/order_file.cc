#include "broker/logs/order_file.h"

#include <zlib.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "broker/logs/disk.h"

namespace muster::logs {
namespace {

// The form is in the machine's byte order. Nothing matches on a machine of another order.
struct Record {
  uint64_t out = 0;
  uint64_t err = 0;
  uint32_t crc = 0;  // CRC of the two above
  uint32_t unused = 0;
};
static_assert(sizeof(Record) == kMarkBytes);

// Marks read at a time.
constexpr size_t kMarksPerRead = 512;

uint32_t Crc(const Record& record) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(&record), offsetof(Record, crc)));
}

std::optional<OrderMark> Parse(std::string_view bytes) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof(record));
  if (record.crc != Crc(record)) return std::nullopt;
  return OrderMark{.out = record.out, .err = record.err};
}

}  // namespace

absl::Status WriteMark(int fd, uint64_t number, const OrderMark& mark) {
  Record record{.out = mark.out, .err = mark.err};
  record.crc = Crc(record);
  size_t written = 0;
  return WriteAt(fd, std::string_view(reinterpret_cast<const char*>(&record), sizeof(record)),
                 number * kMarkBytes, kArchive, &written);
}

absl::StatusOr<OrderMarks> ReadMarks(int fd, uint64_t from, size_t max) {
  const auto bytes = ReadAt(fd, from * kMarkBytes, max * kMarkBytes, kArchive);
  if (!bytes.ok()) return bytes.status();
  OrderMarks found;
  found.next = from;
  for (std::string_view rest = *bytes; rest.size() >= kMarkBytes; rest.remove_prefix(kMarkBytes)) {
    if (const auto mark = Parse(rest)) found.marks.push_back(*mark);
    ++found.next;
  }
  return found;
}

absl::StatusOr<uint64_t> CountMarksWithin(int fd, const OrderMark& sizes) {
  uint64_t count = 0;
  while (true) {
    const auto bytes = ReadAt(fd, count * kMarkBytes, kMarksPerRead * kMarkBytes, kArchive);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size() < kMarkBytes) return count;
    for (std::string_view rest = *bytes; rest.size() >= kMarkBytes;
         rest.remove_prefix(kMarkBytes)) {
      const auto mark = Parse(rest);
      if (mark && (mark->out > sizes.out || mark->err > sizes.err)) return count;
      ++count;
    }
  }
}

}  // namespace muster::logs
