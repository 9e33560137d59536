// The three resources that shares are measured in. Pure.
#ifndef MUSTER_BROKER_CORE_AMOUNTS_H_
#define MUSTER_BROKER_CORE_AMOUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "broker/core/requirements.h"
#include "muster/v1/cluster.pb.h"

namespace muster::core {

// Thousandths of cores, bytes of memory, thousandths of GPUs. They are whole numbers, and sums of
// them are exact up to 2^53, so that what was added can be taken away.
inline constexpr size_t kResources = 3;
using Amounts = std::array<double, kResources>;

void AddTo(const Amounts& amounts, Amounts* sum);

// Returns the demand of one run of such a job, on all nodes. A job that leaves its cores open
// counts as one core for each node.
Amounts AmountsOf(const Requirements& requirements);

// Returns the thousandths of GPUs of one run, on all nodes.
uint64_t GpuMillisOf(const Requirements& requirements);

// Returns the type of its GPUs, in lower case; empty means any.
std::string GpuTypeOf(const Requirements& requirements);

// Returns the nodes of a cluster. Pools may have nodes in common: of the nodes that are alike,
// those of the pool with most of them count. Zero: not known.
Amounts CapacityOf(const v1::Inventory& inventory);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_AMOUNTS_H_
