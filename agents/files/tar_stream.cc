#include "agents/files/tar_stream.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "agents/files/tree_modes.h"
#include "contract/file_tree.h"

namespace muster::uploads {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameBytes = 100;
// Two empty blocks end an archive.
constexpr size_t kEndBytes = 2 * kBlock;
// More does not fit into the eleven octal digits of a header.
constexpr uint64_t kMaxOctalSize = (uint64_t{1} << 33) - 1;

constexpr char kFile = '0';
constexpr char kLink = '2';
constexpr char kDirectory = '5';
// An entry before the one that it is about, whose content is the whole name.
constexpr char kLongTarget = 'K';
constexpr char kLongName = 'L';

uint64_t Padded(uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

using Header = std::array<char, kBlock>;

void Put(std::string_view text, size_t offset, size_t room, Header* header) {
  std::memcpy(header->data() + offset, text.data(), std::min(text.size(), room));
}

// A size that octal digits cannot hold is written as GNU does: big-endian, behind a byte of 0x80.
void PutSize(uint64_t size, Header* header) {
  constexpr size_t kOffset = 124;
  constexpr size_t kBytes = 12;
  if (size <= kMaxOctalSize) return Put(fmt::format("{:011o}", size), kOffset, kBytes, header);
  (*header)[kOffset] = static_cast<char>(0x80);
  for (size_t i = 0; i < 8; ++i)
    (*header)[kOffset + kBytes - 1 - i] = static_cast<char>(size >> (8 * i));
}

Header MakeHeader(char type, std::string_view name, std::string_view target, uint32_t mode,
                  uint64_t size) {
  Header header{};
  Put(name, 0, kNameBytes, &header);
  Put(fmt::format("{:07o}", mode), 100, 8, &header);
  Put("0000000", 108, 8, &header);
  Put("0000000", 116, 8, &header);
  PutSize(size, &header);
  // The unpacking program gives the files its own time.
  Put("00000000000", 136, 12, &header);
  Put("        ", 148, 8, &header);
  header[156] = type;
  Put(target, 157, kNameBytes, &header);
  Put(std::string_view("ustar  \0", 8), 257, 8, &header);
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  Put(std::string_view(fmt::format("{:06o}", sum) + '\0'), 148, 7, &header);
  return header;
}

std::string NameOf(const v1::FileTreeEntry& entry) {
  return entry.kind() == v1::FILE_KIND_DIRECTORY ? entry.path() + "/" : entry.path();
}

char TypeOf(const v1::FileTreeEntry& entry) {
  if (entry.kind() == v1::FILE_KIND_DIRECTORY) return kDirectory;
  return entry.kind() == v1::FILE_KIND_SYMLINK ? kLink : kFile;
}

uint32_t ModeInTar(const v1::FileTreeEntry& entry) {
  if (entry.kind() == v1::FILE_KIND_DIRECTORY) return kDirectoryMode;
  return entry.kind() == v1::FILE_KIND_SYMLINK ? 0777 : ModeOf(entry);
}

class TarWriter {
 public:
  TarWriter(FileCache* cache, const ByteSink& sink) : cache_(cache), sink_(sink) {}

  absl::Status Add(const v1::FileTreeEntry& entry) const {
    const std::string name = NameOf(entry);
    if (absl::Status s = AddLong(kLongTarget, entry.link_target()); !s.ok()) return s;
    if (absl::Status s = AddLong(kLongName, name); !s.ok()) return s;
    absl::Status status = Send(
        MakeHeader(TypeOf(entry), name, entry.link_target(), ModeInTar(entry), entry.size_bytes()));
    if (!status.ok() || entry.kind() != v1::FILE_KIND_FILE) return status;
    status = cache_->Read(entry.sha256(), entry.size_bytes(), sink_);
    return status.ok() ? Pad(entry.size_bytes()) : status;
  }

  absl::Status End() const { return sink_(std::string(kEndBytes, '\0')); }

 private:
  absl::Status AddLong(char type, const std::string& name) const {
    if (name.size() <= kNameBytes) return absl::OkStatus();
    absl::Status status = Send(MakeHeader(type, "././@LongLink", "", 0644, name.size() + 1));
    if (status.ok()) status = sink_(name + '\0');
    return status.ok() ? Pad(name.size() + 1) : status;
  }

  absl::Status Send(const Header& header) const { return sink_({header.data(), header.size()}); }

  absl::Status Pad(uint64_t size) const {
    const uint64_t rest = Padded(size) - size;
    return rest == 0 ? absl::OkStatus() : sink_(std::string(rest, '\0'));
  }

  FileCache* const cache_;
  const ByteSink& sink_;
};

}  // namespace

uint64_t TarBytes(const v1::FileTree& tree) { return contract::ArchiveBytes(tree); }

absl::Status WriteTar(const LocalFiles& files, FileCache* cache, const ByteSink& sink) {
  const TarWriter writer(cache, sink);
  for (const bool links : {false, true}) {
    for (const v1::FileTreeEntry& entry : files.tree.entries()) {
      if ((entry.kind() == v1::FILE_KIND_SYMLINK) != links) continue;
      if (absl::Status status = writer.Add(entry); !status.ok()) return status;
    }
  }
  return writer.End();
}

}  // namespace muster::uploads
