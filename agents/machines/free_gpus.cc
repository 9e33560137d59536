#include "agents/machines/free_gpus.h"

#include <algorithm>
#include <functional>

namespace muster::machines {
namespace {

// The contract's bound on parts of one type.
constexpr int kMaxParts = 64;

}  // namespace

void AddFreeGpus(const Ledger& ledger, uint32_t host,
                 google::protobuf::Map<std::string, v1::FreeGpus>* free_gpus) {
  for (const Room::Device& device : ledger.room().DevicesOf(host)) {
    v1::FreeGpus& of_type = (*free_gpus)[ledger.room().TypeName(device.type)];
    if (device.Free() == kWholeGpu) {
      of_type.set_whole(of_type.whole() + 1);
    } else if (device.Free() > 0) {
      of_type.add_parts_millis(device.Free());
    }
  }
  for (auto& [type, of_type] : *free_gpus) {
    auto* parts = of_type.mutable_parts_millis();
    std::sort(parts->begin(), parts->end(), std::greater<>());
    if (parts->size() > kMaxParts) parts->Truncate(kMaxParts);
  }
}

}  // namespace muster::machines
