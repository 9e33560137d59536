// A gauge tells how full a queue is, beside its bound.
#ifndef MUSTER_BROKER_ENGINE_GAUGE_H_
#define MUSTER_BROKER_ENGINE_GAUGE_H_

#include <cstdint>
#include <string_view>

namespace muster::broker {

struct Gauge {
  std::string_view queue;  // in lower_snake_case; part of what /metrics shows
  uint64_t fill = 0;
  uint64_t bound = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_GAUGE_H_
